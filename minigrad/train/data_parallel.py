"""Data parallelism: the rows of a batch are sharded over ranks and threads; each shard has its own forward and backward.

Threads do not wait for each other within a pass, and every op uses every core, not only the large matrix products. The
gradients are those of the whole batch, up to the order of summation. They are summed shard by shard, so a given number of
threads always gives the same bits. Dropout does not depend on the sharding (minigrad.random).
"""

from __future__ import annotations

import dataclasses
import operator
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from .. import tree
from ..changes import changes
from ..engine.backend import device_of
from ..engine.graph import Node, store, sweep
from ..engine.modes import local
from ..engine.tensor import Tensor
from ..errors import ArgumentError
from ..random import new_seed, shard_of_step
from ..runtime.process_group import ProcessGroup
from ..runtime.threads import can_limit_blas, run_parallel, single_threaded_blas, thread_count

__all__ = [
    "Shard",
    "sum_gradients",
    "batch_coupling",
    "check_shardable",
    "row_count",
    "shard_batch",
    "shard_of_rank",
    "thread_shards",
]

MIN_WORK = 3_000_000  # weights times rows: with less, waking a thread costs more time than it saves


class Shard(NamedTuple):
    """Some `rows` of a batch, from row `first` of the whole one; `counts` is False where the result is not used."""

    batch: Any
    first: int
    rows: int
    counts: bool = True


def shard_batch(batch: Any, count: int) -> list[Shard]:
    """The batch in at most `count` shards of nearly equal size; in one where it cannot be cut into rows."""
    rows = row_count(batch)
    if rows is None:
        return [Shard(batch, 0, 1)]
    edges = np.linspace(0, rows, min(count, max(rows, 1)) + 1).astype(int).tolist()
    return [Shard(_cut(batch, slice(a, b)), a, b - a) for a, b in zip(edges, edges[1:])]


def row_count(batch: Any) -> int | None:
    """The number of rows, None if the parts of the batch differ in it, or one cannot be cut."""
    counts = {len(x) if _has_rows(x) else None for x in tree.leaves(batch, is_leaf=dataclasses.is_dataclass)}
    return counts.pop() if len(counts) == 1 else None


def _has_rows(x: Any) -> bool:
    """Whether it can be cut into rows; the characters of a string are none."""
    return hasattr(x, "__getitem__") and getattr(x, "shape", (1,)) != () and not isinstance(x, (str, bytes))


def _cut(batch: Any, rows: slice) -> Any:
    return tree.map(operator.itemgetter(rows), batch, is_leaf=dataclasses.is_dataclass)


def shard_of_rank(batch: Any, group: ProcessGroup) -> Shard:
    """The rows of a batch that this rank computes.

    With fewer rows than ranks, the other ranks compute the first row and do not count it: every rank must call the loss
    equally often and know its terms. Likewise all ranks compute a batch that cannot be cut, and only rank 0 counts it.
    """
    if group.size == 1:
        return Shard(batch, 0, row_count(batch) or 1)
    rows = row_count(batch)
    if rows is None:
        warnings.warn("batches that cannot be cut into rows are computed by every rank", RuntimeWarning, stacklevel=2)
        return Shard(batch, 0, 1, counts=group.rank == 0)
    shards = shard_batch(batch, group.size)
    if group.rank < len(shards):
        return shards[group.rank]
    return Shard(_cut(batch, slice(0, 1)), 0, 1, counts=False)


class _Walk(NamedTuple):
    """What a walk through a model finds, which takes long for a step: it holds as long as no module is changed."""

    at: int  # the count of changes
    params: list[tuple[str, Tensor]]
    coupling: str | None  # a module whose result depends on the whole batch


_walks: WeakKeyDictionary[Any, _Walk] = WeakKeyDictionary()


def _walk(model: Any) -> _Walk:
    found = _walks.get(model)
    if found is None or found.at != changes.count:
        coupling = [f"{type(m).__name__} {name!r}" for name, m in model.named_modules() if m.couples_batch]
        found = _Walk(changes.count, list(model.named_parameters()), next(iter(coupling), None))
        _walks[model] = found
    return found


def batch_coupling(model: Any, loss: Any) -> str | None:
    """What makes the result of an example, or of a hook, depend on the rest of the batch; None if nothing does."""
    if getattr(loss, "couples_batch", False):
        return type(loss).__name__
    walk = _walk(model)
    if walk.coupling is not None:
        return walk.coupling
    hooked = (name for name, p in walk.params if p.node is not None and p.node.hooks)
    return next((f"the hook on the gradient of {name!r}" for name in hooked), None)


def check_shardable(group: ProcessGroup, model: Any, loss: Any) -> None:
    """Refuse a model or a loss that computes something else on a shard than on the whole batch."""
    reason = batch_coupling(model, loss) if group.size > 1 else None
    if reason is not None:
        raise ArgumentError(
            f"Trainer: {reason} needs whole batches, and {group.size} ranks would divide them",
            "a model and a loss that treat each example by itself",
            fix="use LayerNorm instead of BatchNorm, or train without mpiexec, on all cores of one machine",
        )


def thread_shards(model: Any, loss: Any, shard: Shard, threads: int | None) -> list[Shard]:
    """The shards for this rank's threads; a single one where dividing would be wrong or would not pay."""
    count = thread_count() if threads is None else threads
    if count == 1 or local.mode.tracers or not shard.counts:
        return [shard]
    params = [p for _, p in _walk(model).params]
    if threads is None and sum(p.data.size for p in params) * shard.rows < MIN_WORK or not can_limit_blas():
        return [shard]
    if batch_coupling(model, loss) is not None or any(device_of(p.data) != "cpu" for p in params):
        return [shard]
    return [part._replace(first=shard.first + part.first) for part in shard_batch(shard.batch, count)]


def forward_shards(compute: Callable[[Any], Any], shards: Sequence[Shard]) -> list[Any]:
    """`compute` of each shard, in parallel; random draws are those of the whole batch."""
    seed = new_seed()

    def run(shard: Shard) -> Any:
        with shard_of_step(seed, shard.first, shard.rows):
            return compute(shard.batch)

    if len(shards) == 1:
        return [run(shards[0])]
    with single_threaded_blas():
        return run_parallel([partial(run, shard) for shard in shards])


def backward_shards(losses: Sequence[Tensor], backward: Callable[[Tensor], None]) -> None:
    """Add the gradients of the losses of all shards to `.grad`, in their order; `backward` does it for a single loss."""
    if len(losses) < 2:
        for loss in losses:
            backward(loss)
        return
    seeds = [[(loss.node, np.ones_like(loss.data))] for loss in losses]
    with single_threaded_blas():
        store(sum_gradients(run_parallel([partial(sweep, seed) for seed in seeds])))


def sum_gradients(results: Sequence[dict[Node, Any]]) -> dict[Node, Any]:
    """The sum of the gradients of all shards; each thread sums some of the parameters."""
    nodes = list(dict.fromkeys(node for result in results for node in result))

    def add(own: list[Node]) -> dict[Node, Any]:
        sums = {}
        for node in own:
            first, *others = [result.pop(node) for result in results if node in result]
            for other in others:
                first = first + other
            sums[node] = first
        return sums

    parts = run_parallel([partial(add, nodes[i :: len(results)]) for i in range(len(results))])
    return {node: g for part in parts for node, g in part.items()}
