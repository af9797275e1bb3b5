"""Plans for machines that are not here: memory, bytes, time and efficiency of each layout, from measured costs and formulas.

A rank computes its share of the work, at the rate that a block was measured to go at, and communicates what `cost_model` says, over a network with
a latency and a rate. Nothing overlaps, as in our runs.
A collective among n ranks goes round a ring: an all-reduce of b bytes takes 2 (n - 1) messages of b / n bytes, an all-gather
and a reduce-scatter half of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..nn import MixtureOfExperts, Module, TransformerBlock
from .cost_model import Load, memory, traffic
from .mesh import Layout, Mesh, part_sizes
from .pipeline import blocks_of
from .placement import Placement, placements

__all__ = ["Cluster", "Forecast", "forecast", "layouts_for", "simulated"]

BUFFERS = 2  # of AdamW, for each weight
SAVED = 34  # numbers kept for the backward by a block, for each token and each number of its width, without attention weights


@dataclass(frozen=True)
class Cluster:
    """Machines, with one rank for each `threads` cores; rates in bytes and in floating-point operations a second."""

    machines: int
    cores: int
    memory: float
    network: float = 1.25e9
    latency: float = 5e-5
    inside: float = 5e9  # between ranks of one machine
    inside_latency: float = 5e-6
    rate: float = 2e10  # of one core, as `measured_rate` finds it
    efficiency: float | None = None  # the share of the rate at which a block goes, as `measured_efficiency` finds it
    boost: float = 1.0  # how much faster a core is while the others of its machine rest, as `measured_boost` finds it
    threads: float | None = None  # of a rank; all cores of a machine unless given, less than 1 where ranks share cores

    @property
    def ranks(self) -> int:
        return self.machines * self.ranks_inside

    @property
    def ranks_inside(self) -> int:
        return max(int(self.cores / (self.threads or self.cores) + 1e-9), 1)

    def speedup(self, active: float) -> float:
        """How much faster a rank computes while so many of its machine do, than while all do."""
        return self._throughput(active) / active / (self._throughput(self.ranks_inside) / self.ranks_inside)

    def _throughput(self, ranks: float) -> float:
        """What so many ranks compute, in cores as fast as they are together."""
        used = min(ranks * max(self.threads or self.cores, 1), self.cores)
        return used * (1 + (self.boost - 1) * (self.cores - used) / max(self.cores - 1, 1))

    def seconds(self, kind: str, size: float, ranks: int, neighbours: int) -> float:
        """How long a collective of so many bytes takes among ranks that are `neighbours` apart."""
        if ranks < 2 or not size:
            return 0.0
        is_inside = (ranks - 1) * neighbours < self.ranks_inside
        rate, latency = (self.inside, self.inside_latency) if is_inside else (self.network, self.latency)
        if kind == "send":
            return latency + size / rate
        rounds = (2 if kind == "all_reduce" else 1) * (ranks - 1)
        return rounds * (latency + size / ranks / rate)


@dataclass(frozen=True)
class Forecast:
    """What is expected of a layout: seconds of a step and their parts, and the bytes of its fullest rank."""

    layout: Layout
    cluster: Cluster
    data: int
    pieces: int  # microbatches
    seconds: float
    computing: float
    communicating: float
    bubble: float  # the share of a step in which stages wait for each other
    weights: float
    optimizer: float
    gradients: float
    activations: float
    sent: float  # bytes given to collectives by the busiest rank
    efficiency: float

    @property
    def bytes(self) -> float:
        return self.weights + self.optimizer + self.gradients + self.activations


def layouts_for(model: Module, ranks: int) -> Iterator[Layout]:
    """The layouts of so many ranks that this model allows."""
    blocks = [block for _, block in blocks_of(model)]
    heads = math.gcd(*[n for block in blocks for n in (block.attention.heads, block.attention.kv_heads)])
    for tensor in _divisors(ranks):
        for pipeline in _divisors(ranks // tensor):
            if heads % tensor or pipeline > len(blocks):
                continue
            for shard in (0, 1, 2, 3) if ranks > tensor * pipeline else (0,):
                yield Layout(tensor=tensor, pipeline=pipeline, shard=shard)


def _divisors(n: int) -> list[int]:
    return [i for i in range(1, n + 1) if n % i == 0]


Known = dict[tuple[int, int], list[Placement]]


def forecast(
    model: Module, uses: dict[str, list[int]], layout: Layout, cluster: Cluster, batch: int, length: int, known: Known
) -> Forecast | None:
    """What to expect of a layout with so many rows of so many tokens in a batch; None if there are fewer rows than data-parallel ranks.

    What layouts have in common is `known` the next time.
    """
    data = cluster.ranks // layout.model_size
    if batch < data:
        return None
    blocks = blocks_of(model)
    counts = part_sizes(len(blocks), layout.pipeline)
    rows = math.ceil(batch / data)
    pieces = min(layout.pieces, rows)
    dim, mlp = blocks[0][1].dim, blocks[0][1].mlp
    mixture = (len(mlp.experts), mlp.active) if isinstance(mlp, MixtureOfExperts) else ()
    load = Load(pieces, math.ceil(rows / pieces), length, dim, 4, *mixture)
    busiest: dict[str, float] = {"work": 0.0, "wait": 0.0, "end": 0.0, "bytes": 0.0, "sent": 0.0}
    fullest: dict[str, float] = {}
    for stage in range(layout.pipeline):
        mesh = Mesh.imagined(layout, cluster.ranks, stage * layout.tensor)
        placed = _held(model, mesh, counts, uses, known)
        sizes = _sizes(placed, mesh, blocks[0][1], counts[stage], load)
        if sum(sizes.values()) > busiest["bytes"]:
            fullest, busiest["bytes"] = sizes, sum(sizes.values())
        work = _work(placed, mesh, counts, load, cluster) / (cluster.rate * cluster.cores / cluster.ranks_inside)
        bytes_of = traffic(placed, mesh, counts, load)
        busiest["sent"] = max(busiest["sent"], sum(sum(kinds.values()) for kinds in bytes_of.values()))
        calls = _calls(placed, mesh, counts[stage], load)
        each, end = _waits(cluster, mesh, bytes_of, calls, load)
        busiest["work"], busiest["wait"] = max(busiest["work"], work), max(busiest["wait"], each)
        busiest["end"] = max(busiest["end"], end)
    slots = pieces + layout.pipeline - 1
    computing = busiest["work"] * sum(1 / rate for rate in _speedups(cluster, layout, pieces))
    communicating = slots * busiest["wait"] + busiest["end"]
    seconds = computing + communicating
    mesh = Mesh.imagined(Layout(), 1, 0)
    whole = _held(model, mesh, [len(blocks)], uses, known)
    ideal = _work(whole, mesh, [len(blocks)], Load(1, batch, length, dim, 4), cluster) / (
        cluster.rate * cluster.cores * cluster.machines
    )
    return Forecast(
        layout, cluster, data, pieces, seconds, computing, communicating,
        (layout.pipeline - 1) / slots, fullest["parameters"], fullest["optimizer"], fullest["gradients"],
        fullest["activations"], busiest["sent"], ideal / seconds,
    )  # fmt: skip


def _speedups(cluster: Cluster, layout: Layout, pieces: int) -> list[float]:
    """For each slot of a pipeline, how much faster its stages are than if all stages computed: those that wait leave them the cores."""
    stages, slots = layout.pipeline, pieces + layout.pipeline - 1
    if stages * layout.tensor > cluster.ranks_inside:  # those that wait are on other machines
        return [1.0] * slots
    active = [min(slot + 1, pieces, stages, slots - slot) for slot in range(slots)]
    return [cluster.speedup(cluster.ranks_inside * count / stages) for count in active]


def _held(
    model: Module, mesh: Mesh, counts: Sequence[int], uses: dict[str, list[int]], known: Known
) -> list[Placement]:
    key = mesh.layout.tensor, mesh.layout.pipeline
    if key not in known:
        known[key] = placements(model, mesh, counts, uses)
    return known[key]


def _sizes(
    placed: Sequence[Placement], mesh: Mesh, block: TransformerBlock, blocks: int, load: Load
) -> dict[str, float]:
    """The bytes of a rank, by what they hold."""
    layout = mesh.layout
    sizes: dict[str, float] = dict(memory(placed, mesh, BUFFERS))
    own = sum(math.prod(h.local_shape(mesh.tensor)) * 4 for h in placed if h.is_on(mesh.pipeline, mesh.tensor))
    sizes["gradients"] = own / (mesh.shape[0] if layout.shard > 1 else 1)
    heads = block.attention.heads / layout.tensor
    of_block = SAVED * load.activation / layout.tensor + 2 * heads * load.rows * load.length**2 * load.itemsize
    kept = load.activation if layout.recompute or layout.shard == 3 else of_block
    held_pieces = load.pieces if layout.schedule == "gpipe" else min(layout.pipeline - mesh.pipeline, load.pieces)
    sizes["activations"] = held_pieces * blocks * kept + (of_block if kept < of_block else 0)
    return sizes


def _work(placed: Sequence[Placement], mesh: Mesh, counts: Sequence[int], load: Load, cluster: Cluster) -> float:
    """Floating-point operations of a rank for one microbatch: two for each weight and token forward, and four backward.

    Those of blocks are as many more as they take longer than a product of matrices.
    """
    tokens = load.rows * load.length
    passes = 4 if mesh.layout.recompute or mesh.layout.shard == 3 else 3
    matrices = sum(
        math.prod(h.local_shape(mesh.tensor))
        for h in placed
        if len(h.shape) == 2 and h.is_on(mesh.pipeline, mesh.tensor) and ".blocks." in h.name
    )
    attention = 4 * tokens * load.length * load.dim / mesh.layout.tensor * counts[mesh.pipeline]
    head = 0.0
    if mesh.is_last:
        tables = [h for h in placed if h.spec is not None and h.spec.axis == 0 or len(h.shape) == 2]
        words = max((h.shape[0] for h in tables if ".blocks." not in h.name), default=0)
        head = 2 * tokens * words * load.dim / mesh.layout.tensor
    return passes * (2 * tokens * matrices + attention) / (cluster.efficiency or 1.0) + 3 * head


def _calls(placed: Sequence[Placement], mesh: Mesh, blocks: int, load: Load) -> dict[str, int]:
    """How many collectives of each group a rank takes part in during a step."""
    here = sum(h.is_on(mesh.pipeline, mesh.tensor) for h in placed)
    forwards = 2 if mesh.layout.recompute or mesh.layout.shard == 3 else 1
    each = 2 if mesh.layout.sequence else 1
    of_weights = {0: 1, 1: 2 * here, 2: here * (1 + load.pieces), 3: here * 3 * load.pieces}[mesh.layout.shard]
    neighbours = (mesh.pipeline > 0) + (not mesh.is_last)
    of_tensor = load.pieces * (2 * each * blocks * (forwards + 1) + 4)
    return {"tensor": of_tensor, "pipeline": load.pieces * neighbours, "data": of_weights}


def _waits(
    cluster: Cluster, mesh: Mesh, bytes_of: dict[str, dict[str, int]], calls: dict[str, int], load: Load
) -> tuple[float, float]:
    """Seconds of communication for one microbatch, and at the end of a step."""
    data, pipeline, tensor = mesh.shape

    def spent(group: str, ranks: int, neighbours: int) -> float:
        whole = sum(cluster.seconds(kind, size, ranks, neighbours) for kind, size in bytes_of[group].items())
        extra = max(calls.get(group, 0) - len(bytes_of[group]), 0)
        return whole + extra * cluster.seconds("all_gather", 1, ranks, neighbours)

    each = spent("tensor", tensor, 1) / load.pieces + spent("pipeline", 2 if pipeline > 1 else 1, tensor) / load.pieces
    of_data = spent("data", data, tensor * pipeline)
    return each, of_data


def simulated(
    work: Sequence[tuple[float, float]], order: Sequence[Sequence[tuple[str, int]]], hop: float
) -> list[list[tuple[str, int, float, float]]]:
    """When each stage computes which forward and backward, `(kind, microbatch, begin, end)`, given the seconds of both on each stage, their
    order, and the seconds of a message.

    >>> spans = simulated([(1, 2), (1, 2)], [[("forward", 0), ("backward", 0)]] * 2, hop=0)
    >>> spans[0]
    [('forward', 0, 0.0, 1.0), ('backward', 0, 4.0, 6.0)]
    """
    done: dict[tuple[str, int, int], float] = {}
    clocks, places = [0.0] * len(order), [0] * len(order)
    spans: list[list[tuple[str, int, float, float]]] = [[] for _ in order]
    while any(place < len(own) for place, own in zip(places, order)):
        for stage, own in enumerate(order):
            if places[stage] == len(own):
                continue
            kind, index = own[places[stage]]
            before = stage - 1 if kind == "forward" else stage + 1
            needs = (kind, index, before)
            if 0 <= before < len(order) and needs not in done:
                continue
            ready = done[needs] + hop if needs in done else 0.0
            begin = max(clocks[stage], ready)
            clocks[stage] = begin + work[stage][kind == "backward"]
            done[kind, index, stage] = clocks[stage]
            spans[stage].append((kind, index, begin, clocks[stage]))
            places[stage] += 1
    return spans
