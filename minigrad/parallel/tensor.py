"""Tensor parallelism: each rank has some heads of every attention, some neurons of every MLP, and some words of the vocabulary.

The projections into attention and MLP are column-parallel, those out of them row-parallel: a column of x @ W is a row of `weight`, which is
W transposed. What the ranks then have are terms of a sum, so that one all-reduce ends each part, and one its backward. With
`sequence`, the sum is scattered along the sequence in the place of that, and norms, dropouts and residuals work on a part of
the positions each, until the next part of the block gathers them again: as many bytes, and less memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from .. import functions as f
from ..engine.tensor import Tensor
from ..errors import ArgumentError, IndexingError
from ..nn import (
    MLP,
    Decoder,
    Embedding,
    Encoder,
    Linear,
    MixtureOfExperts,
    Module,
    MultiHeadAttention,
    Parameter,
    RelativePositions,
    TransformerBlock,
    VocabularyHead,
)
from ..ops.creation import tensor
from ..random import part_of_draws
from .collectives import all_gather, all_reduce, part, reduce_scatter, replicated
from .experts import experts_inside, plan_experts
from .mesh import Mesh, part_edges
from .partition_spec import PartitionSpec
from .pass_state import PassState
from .patches import Patches, placeholder
from .vocabulary import ParallelVocabulary

__all__ = ["TensorPlan", "plan_tensor"]

Ranges = list[list[tuple[int, int]]]  # of each rank


@dataclass
class TensorPlan:
    """How parameters are sharded over tensor-parallel ranks, by their ids; others are replicated."""

    specs: dict[int, PartitionSpec]
    partial: set[int]  # replicated, but each rank has only a term of their gradient
    only: dict[int, int]  # on this rank alone


def plan_tensor(model: Module, mesh: Mesh, pass_state: PassState, patches: Patches) -> TensorPlan:
    """Plan the patches of a model, and say how its parameters are sharded."""
    plan, count = TensorPlan({}, set(), {}), mesh.layout.tensor
    sequential = _sequential(model) if mesh.layout.sequence and count > 1 else set()
    inside = experts_inside(model)
    for path, module in model.named_modules():
        if isinstance(module, VocabularyHead):
            _plan_vocabulary(model, path, module, mesh, pass_state, patches, plan)
        if count == 1 or id(module) in inside:
            continue
        along = pass_state if id(module) in sequential else None
        if isinstance(module, MultiHeadAttention):
            _plan_attention(path, module, mesh, along, patches, plan)
        elif isinstance(module, MixtureOfExperts):
            plan_experts(path, module, mesh, pass_state, along is not None, patches, plan)
        elif isinstance(module, MLP):
            _plan_mlp(path, module, mesh, along, patches, plan)
        elif isinstance(module, RelativePositions):
            heads = module.heads
            plan.specs[id(module.weight)] = PartitionSpec(1, _head_ranges(path, "heads", heads, 1, count))
            patches.set(module, "heads", heads // count)
        elif along is not None and isinstance(module, (Encoder, Decoder)):
            patches.wrap(module, partial(_along_sequence, mesh.tensor_group, pass_state))
            plan.partial |= {id(p) for p in module.norm.parameters()} if module.norm is not None else set()
        elif along is not None and isinstance(module, TransformerBlock):
            patches.wrap(module.dropout, partial(_dropped, mesh, pass_state))
            inner = {id(p) for part in _parts_of(module) for p in part.parameters()}
            plan.partial |= {id(p) for p in module.parameters()} - inner
    return plan


def _sequential(model: Module) -> set[int]:
    """The stacks whose norms may work on a part of the sequence, and what is in them."""
    found: set[int] = set()
    for stack in model.modules():
        if not isinstance(stack, (Encoder, Decoder)) or stack.relative is not None:  # whose table needs all positions
            continue
        if all(isinstance(block.attention, MultiHeadAttention) for block in stack.blocks):
            found |= {id(module) for module in stack.modules()}
    return found


def _parts_of(block: TransformerBlock) -> Iterator[Module]:
    return (part for part in (block.attention, block.cross_attention, block.mlp) if part is not None)


def _head_ranges(path: str, what: str, things: int, size: int, count: int) -> Ranges:
    """The rows of each rank, where each head has `size` of them and heads cannot be split."""
    if things % count:
        raise ArgumentError(
            f"{path}: its {what} do not divide among {count} tensor-parallel ranks",
            f"tensor a divisor of {things}",
            f"tensor={count}",
            "choose another factor, or a model with other heads",
        )
    each = things // count * size
    return [[(rank * each, (rank + 1) * each)] for rank in range(count)]


def _check_weight(path: str, weight: Any) -> None:
    """Refuse what is no parameter of its own: a packed weight, an adapter, a weight that is computed from others, a frozen one."""
    if not isinstance(weight, Parameter):
        kind = "a frozen tensor" if isinstance(weight, Tensor) else f"a {type(weight).__name__}"
        fix = "use tensor=1; pipeline= and shard= divide such a model"
        raise ArgumentError(
            f"{path}: this weight cannot be sharded over tensor-parallel ranks", "a Parameter", kind, fix
        )


def _column_parallel(path: str, module: Module, names: Iterable[str], ranges: Ranges, plan: TensorPlan) -> None:
    """Weights whose rows, and biases whose numbers, the ranks divide; each then computes some of the outputs."""
    for name in names:
        weight = getattr(module, name, None)
        if weight is not None:
            _check_weight(f"{path}.{name}", weight)
            plan.specs[id(weight)] = PartitionSpec(0, ranges)


def _row_parallel(path: str, layer: Any, ranges: Ranges, mesh: Mesh, patches: Patches, plan: TensorPlan) -> None:
    """A layer of whose weight the ranks divide the columns: their results are summed, so that only one may add the bias."""
    if type(layer) is not Linear:
        raise ArgumentError(f"{path}: this layer cannot be sharded", "a Linear", type(layer).__name__, "use tensor=1")
    _check_weight(f"{path}.weight", layer.weight)
    plan.specs[id(layer.weight)] = PartitionSpec(1, ranges)
    if layer.bias is not None:
        _check_weight(f"{path}.bias", layer.bias)
        plan.only[id(layer.bias)] = 0
        if mesh.tensor:
            patches.set(layer, "bias", None)


def _plan_attention(
    path: str, module: MultiHeadAttention, mesh: Mesh, along: PassState | None, patches: Patches, plan: TensorPlan
) -> None:
    count, size = mesh.layout.tensor, module.head_dim
    own = _head_ranges(path, "heads", module.heads, size, count)
    shared = _head_ranges(path, "key-value heads", module.kv_heads, size, count)
    starts = (0, module.heads * size, (module.heads + module.kv_heads) * size)
    fused = [
        [(start + a, start + b) for start, ((a, b),) in zip(starts, (own[rank], shared[rank], shared[rank]))]
        for rank in range(count)
    ]
    _column_parallel(path, module, ("in_proj_weight", "in_proj_bias"), fused, plan)
    _column_parallel(path, module, ("q_proj_weight",), own, plan)
    _column_parallel(path, module, ("k_proj_weight", "v_proj_weight"), shared, plan)
    _row_parallel(f"{path}.out_proj", module.out_proj, own, mesh, patches, plan)
    plan.partial |= {id(p) for norm in (module.q_norm, module.k_norm) if norm is not None for p in norm.parameters()}
    heads, whole = module.heads // count, module.heads
    patches.set(module, "heads", heads)
    patches.set(module, "kv_heads", module.kv_heads // count)

    def attend(forward: Any, query: Any, key: Any = None, value: Any = None, **given: Any) -> Tensor:
        query = _part_input(query, mesh, along)
        key, value = (None if x is None else replicated(x, group=mesh.tensor_group) for x in (key, value))
        with part_of_draws(1, mesh.tensor * heads, whole):
            return _part_output(forward(query, key, value, **given), mesh, along)

    patches.wrap(module, attend)


def _plan_mlp(path: str, module: MLP, mesh: Mesh, along: PassState | None, patches: Patches, plan: TensorPlan) -> None:
    hidden = module.down.in_features
    own = [[edges] for edges in part_edges(hidden, mesh.layout.tensor)]
    rows = [[(a, b), (hidden + a, hidden + b)] for ((a, b),) in own] if module.is_gated else own
    _column_parallel(f"{path}.up", module.up, ("weight", "bias"), rows, plan)
    _row_parallel(f"{path}.down", module.down, own, mesh, patches, plan)
    first = own[mesh.tensor][0][0]

    def run(forward: Any, x: Any) -> Tensor:
        x = _part_input(x, mesh, along)
        with part_of_draws(-1, first, hidden):
            return _part_output(forward(x), mesh, along)

    patches.wrap(module, run)


def _part_input(x: Any, mesh: Mesh, along: PassState | None) -> Tensor:
    """All positions, at the entrance of a part of a block: (B, T/t, C) -> (B, T, C)."""
    if along is None:
        return replicated(x, group=mesh.tensor_group)
    return all_gather(x, axis=1, group=mesh.tensor_group, whole=along.length)


def _part_output(x: Tensor, mesh: Mesh, along: PassState | None) -> Tensor:
    """The sum over ranks, at the exit of a part of a block: (B, T, C) -> (B, T/t, C)."""
    if along is None:
        return all_reduce(x, group=mesh.tensor_group, alike=True)
    return reduce_scatter(x, axis=1, group=mesh.tensor_group)


def _along_sequence(group: Any, pass_state: PassState, forward: Any, x: Any, *args: Any, **given: Any) -> Tensor:
    """A stack whose blocks have a part of the positions each: (B, T, C) -> (B, T/t, C) -> (B, T, C)."""
    outer, pass_state.length = pass_state.length, x.shape[1]
    try:
        made = forward(part(x, axis=1, group=group), *args, **given)
        if not pass_state.active:
            return placeholder(x.shape, x.dtype, x.device)
        return all_gather(made, axis=1, group=group, whole=pass_state.length, alike=True)
    finally:
        pass_state.length = outer


def _dropped(mesh: Mesh, pass_state: PassState, forward: Any, x: Tensor) -> Tensor:
    first = part_edges(pass_state.length, mesh.layout.tensor)[mesh.tensor][0]
    with part_of_draws(1, first, pass_state.length):
        return forward(x)


def _plan_vocabulary(
    model: Module,
    path: str,
    head: VocabularyHead,
    mesh: Mesh,
    pass_state: PassState,
    patches: Patches,
    plan: TensorPlan,
) -> None:
    """Give each rank some words of every table, of the model that owns the head."""
    modules = dict(model.named_modules())
    above, _, name = path.rpartition(".")
    owner = modules[above]
    tables: dict[int, Any] = {}
    for table in head.tables:
        place, _, attribute = table.rpartition(".")
        holder = modules.get(".".join(filter(None, (above, place))))
        weight = None if holder is None else vars(holder).get(attribute)
        if weight is not None:
            tables[id(weight)] = weight
            if mesh.layout.tensor > 1:
                _check_weight(table, weight)
    words = max((len(weight) for weight in tables.values()), default=0)
    patches.set(owner, name, ParallelVocabulary(mesh, pass_state, words))
    if mesh.layout.tensor == 1:
        return
    for weight in tables.values():
        plan.specs[id(weight)] = PartitionSpec(0, [[edges] for edges in part_edges(len(weight), mesh.layout.tensor)])
    for module in modules.values():
        if isinstance(module, Embedding) and id(module.weight) in tables:
            if module.padding_idx is not None:
                raise ArgumentError(
                    "an Embedding with padding_idx cannot be sharded over tensor-parallel ranks", "padding_idx=None"
                )
            edges = part_edges(len(module.weight), mesh.layout.tensor)[mesh.tensor]
            patches.wrap(module, partial(_looked_up, mesh, pass_state, edges, len(module.weight), module))


def _looked_up(
    mesh: Mesh, pass_state: PassState, edges: tuple[int, int], words: int, module: Any, forward: Any, ids: Any
) -> Tensor:
    """Vectors of tokens, of which each rank knows some: (…) -> (…, C)."""
    ids = tensor(ids, device=module.weight.device)
    if ids.size and not (int(ids.min()) >= 0 and int(ids.max()) < words):
        raise IndexingError("Embedding: an index is out of range", f"0 to {words - 1}", f"{ids.min()} to {ids.max()}")
    if not pass_state.active:
        return placeholder((*ids.shape, module.embedding_dim), module.weight.dtype, module.weight.device)
    start, stop = edges
    is_here = (ids >= start) & (ids < stop)
    found = forward(f.where(is_here, ids - start, 0))
    return all_reduce(found * is_here.astype(found.dtype).reshape(*ids.shape, 1), group=mesh.tensor_group, alike=True)
