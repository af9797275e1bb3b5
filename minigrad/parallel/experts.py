"""Expert parallelism: each tensor-parallel rank has some of the experts of a mixture, whole.

A rank routes its part of the positions. An all-to-all brings each position to the ranks that have its experts, and another one brings
back what they made of it; the backward does the same the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import functions as f
from ..engine.tensor import Tensor
from ..errors import ArgumentError
from ..nn import MixtureOfExperts, Module, Parameter
from ..nn import functional as F
from ..ops.creation import tensor
from .collectives import all_gather, all_reduce, all_to_all, part
from .mesh import Mesh, part_edges
from .pass_state import PassState
from .patches import Patches

if TYPE_CHECKING:
    from .tensor import TensorPlan

__all__ = ["experts_inside", "plan_experts"]


def experts_inside(model: Module) -> set[int]:
    """The ids of the modules that are experts, or parts of them."""
    mixtures = [module for module in model.modules() if isinstance(module, MixtureOfExperts)]
    return {id(module) for mixture in mixtures for module in mixture.experts.modules()}


def plan_experts(
    path: str,
    module: MixtureOfExperts,
    mesh: Mesh,
    pass_state: PassState,
    is_sequential: bool,
    patches: Patches,
    plan: TensorPlan,
) -> None:
    """Plan that this rank computes its own experts; with `is_sequential` it is given a part of the positions already."""
    if len(module.experts) < mesh.layout.tensor:
        raise ArgumentError(
            f"{path}: there are fewer experts than tensor-parallel ranks",
            f"tensor at most {len(module.experts)}",
            f"tensor={mesh.layout.tensor}",
        )
    edges = part_edges(len(module.experts), mesh.layout.tensor)
    for rank, (start, stop) in enumerate(edges):
        for index in range(start, stop):
            for name, p in module.experts[index].named_parameters():
                _check(f"{path}.experts.{index}.{name}", p)
                plan.only[id(p)] = rank
    plan.partial |= {id(p) for p in module.router.parameters()}
    patches.set(module, "computed", partial(_computed, mesh, module, edges))
    patches.set(module, "over_positions", partial(_over_positions, mesh, pass_state))
    if not is_sequential:
        patches.wrap(module, partial(_routed, mesh, pass_state))


def _check(path: str, p: Any) -> None:
    if not isinstance(p, Parameter):
        raise ArgumentError(f"{path}: an expert that is not trained cannot be given to one rank", fix="use tensor=1")


def _routed(mesh: Mesh, pass_state: PassState, forward: Any, x: Any) -> Tensor:
    """A mixture whose positions all ranks have alike: each routes its part of them: (B, T, C) -> (B, T/t, C) -> (B, T, C)."""
    outer, pass_state.length = pass_state.length, x.shape[1]
    try:
        made = forward(part(x, axis=1, group=mesh.tensor_group))
        return all_gather(made, axis=1, group=mesh.tensor_group, whole=x.shape[1], alike=True)
    finally:
        pass_state.length = outer


def _over_positions(mesh: Mesh, pass_state: PassState, x: Tensor) -> Tensor:
    """The mean over the positions of all ranks: (B, T/t, E) -> (B, E)."""
    return all_reduce(x.sum(axis=-2), group=mesh.tensor_group, alike=True) / pass_state.length


def _computed(
    mesh: Mesh, module: MixtureOfExperts, edges: Sequence[tuple[int, int]], rows: Tensor, counts: Sequence[int]
) -> Tensor:
    """What the experts of all ranks make of this rank's rows, which are in the order of experts: (R, C) -> (R, C)."""
    group, (start, stop) = mesh.tensor_group, edges[mesh.tensor]
    flat = group.all_gather_array(np.array(counts, np.int64), [len(counts)] * group.size)
    mine = flat.reshape(group.size, -1)[:, start:stop]  # how many rows each rank gives to each of my experts: (t, E/t)
    given = [sum(counts[a:b]) for a, b in edges]
    got = mine.sum(axis=1).tolist()
    here = all_to_all(rows, group=group, given=given, got=got)  # in the order of ranks, and of experts for each
    expert_of = np.repeat(np.tile(np.arange(stop - start), group.size), mine.reshape(-1))
    order = np.argsort(expert_of, kind="stable")
    parts = np.split(order, np.cumsum(mine.sum(axis=0))[:-1])
    made = [module.experts[start + i](_picked(here, rows_of)) for i, rows_of in enumerate(parts)]
    ordered = _picked(f.concatenate(made), np.argsort(order))
    return all_to_all(ordered, group=group, given=got, got=given)


def _picked(x: Tensor, numbers: np.ndarray) -> Tensor:
    """The rows of these numbers."""
    return F.embedding(tensor(numbers, device=x.device), x)
