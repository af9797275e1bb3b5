"""How much memory a rank needs, and how many bytes it communicates in a step: docs/parallel.md has the same as formulas."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .mesh import Mesh, part_sizes
from .placement import Placement

__all__ = ["Load", "memory", "traffic"]


def memory(placed: Sequence[Placement], mesh: Mesh, buffers: int = 2) -> dict[str, int]:
    """The bytes of weights and of the optimiser's state, with so many buffers for each weight, on a rank."""
    parameters = state = 0
    for h in placed:
        if h.is_on(mesh.pipeline, mesh.tensor):
            size = math.prod(h.local_shape(mesh.tensor))
            mine = part_sizes(size, mesh.shape[0])[mesh.data] if mesh.layout.shard and h.trained else size
            parameters += (mine if mesh.layout.shard == 3 else size) * h.p.dtype.itemsize
            state += mine * h.p.dtype.itemsize * buffers * h.trained
    return {"parameters": parameters, "optimizer": state}


@dataclass(frozen=True)
class Load:
    """What a rank computes in a step of a model that reads one way: microbatches, each of rows x length tokens."""

    pieces: int
    rows: int
    length: int
    dim: int
    itemsize: int
    experts: int = 0  # in the place of each MLP
    active: int = 0

    @property
    def activation(self) -> int:
        """The bytes of what goes from block to block, for one microbatch."""
        return self.rows * self.length * self.dim * self.itemsize


def traffic(placed: Sequence[Placement], mesh: Mesh, counts: Sequence[int], load: Load) -> dict[str, dict[str, int]]:
    """The bytes of each kind of collective of a rank in a step, by group, as `Mesh.traffic` counts them.

    Of all-to-all it is the mean over a tensor-parallel group: what a rank sends back depends on what it was given.
    """
    return {
        "data": _of_data(placed, mesh, load),
        "pipeline": _of_pipeline(mesh, load),
        "tensor": _of_tensor(placed, mesh, counts[mesh.pipeline], load),
    }


def _of_tensor(placed: Sequence[Placement], mesh: Mesh, blocks: int, load: Load) -> dict[str, int]:
    layout, ends = mesh.layout, (mesh.pipeline == 0) + mesh.is_last
    if layout.tensor == 1:
        return {}
    again = layout.recompute or layout.shard == 3  # forwards are computed twice
    size, forwards = load.activation, 2 if again else 1
    tokens = load.rows * load.length * load.itemsize
    parts = (1 if load.experts else 2) * blocks * (forwards + 1)  # attentions and MLPs
    found = {"all_reduce": ends * size + (2 * tokens if mesh.is_last else 0), "all_gather": 0}
    if mesh.is_last:
        found["all_gather"] = layout.tensor * tokens
    if layout.sequence:
        found["all_gather"] += (parts + ends) * size
        found["reduce_scatter"] = parts * size
    else:
        found["all_reduce"] += parts * size
    if load.experts:
        here = blocks * load.rows * load.experts * load.itemsize
        found["all_to_all"] = 2 * blocks * (forwards + 1) * load.active * size // layout.tensor
        found["all_gather"] += forwards * blocks * layout.tensor * load.experts * 8
        found["all_gather"] += 0 if layout.sequence else (forwards + 1) * blocks * size
        found["all_reduce"] += forwards * 2 * here
    found = {kind: load.pieces * count for kind, count in found.items()}
    found["all_reduce"] += sum(_summed(h, mesh) for h in placed if h.partial)  # the gradients of norms, once a step
    return {kind: count for kind, count in found.items() if count}


def _of_pipeline(mesh: Mesh, load: Load) -> dict[str, int]:
    neighbours = (mesh.pipeline > 0) + (not mesh.is_last)
    length = load.length
    if mesh.layout.sequence and mesh.layout.tensor > 1:
        length = part_sizes(load.length, mesh.layout.tensor)[mesh.tensor]
    sent = neighbours * load.pieces * load.rows * (length * load.dim + (load.experts > 0)) * load.itemsize
    return {"send": sent} if sent else {}


def _of_data(placed: Sequence[Placement], mesh: Mesh, load: Load) -> dict[str, int]:
    if mesh.shape[0] == 1:
        return {}
    level, trained = mesh.layout.shard, [h for h in placed if h.trained]
    inside = _bytes([h for h in trained if ".blocks." in f".{h.name}"], mesh)
    outside = _bytes([h for h in trained if ".blocks." not in f".{h.name}"], mesh)
    agreed = 8  # the units of the first microbatch
    if level == 0:
        return {"all_reduce": inside + outside + agreed}
    gathered = inside + outside if level < 3 else 2 * load.pieces * inside + outside
    scattered = (1 if level == 1 else load.pieces) * inside + outside
    return {"all_reduce": agreed, "all_gather": gathered, "reduce_scatter": scattered}


def _summed(placed: Placement, mesh: Mesh) -> int:
    """The bytes of a gradient of which each tensor-parallel rank has a term, or of this rank's shard of it."""
    whole = _bytes([placed], mesh)
    if mesh.layout.shard < 2 or ".blocks." not in f".{placed.name}":
        return whole
    size = placed.p.dtype.itemsize
    return part_sizes(whole // size, mesh.shape[0])[mesh.data] * size


def _bytes(placed: Sequence[Placement], mesh: Mesh) -> int:
    """The bytes of these parameters on a rank."""
    return sum(
        math.prod(h.local_shape(mesh.tensor)) * h.p.dtype.itemsize
        for h in placed
        if h.is_on(mesh.pipeline, mesh.tensor)
    )
