"""Tensor parallelism: each rank has some heads of every attention, some neurons of every MLP, and some words of the vocabulary.

The projections into attention and MLP are cut by rows (column-parallel, in the field's words), those out of them by columns
(row-parallel): what the ranks then have are terms of a sum, so that one all-reduce ends each part, and one its backward. With
`sequence`, the sum is scattered along the sequence in the place of that, and norms, dropouts and residuals work on a part of
the positions each, until the next part of the block gathers them again: as many bytes, and less memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from .. import functions as f
from ..engine.tensor import Tensor
from ..errors import ArgumentError, IndexingError
from ..kernels import Packed
from ..nn import (
    MLP,
    Decoder,
    Embedding,
    Encoder,
    Linear,
    Module,
    MultiHeadAttention,
    RelativePositions,
    TransformerBlock,
    VocabularyHead,
)
from ..ops.creation import tensor
from ..random import part_of_draws
from .collectives import all_gather, all_reduce, part, reduce_scatter, replicated
from .cuts import Cut
from .edits import Edits, hollow
from .flow import Flow
from .mesh import Mesh, part_edges
from .vocabulary import ParallelVocabulary

__all__ = ["TensorPlan", "plan_tensor"]


@dataclass
class TensorPlan:
    """How parameters are divided among tensor-parallel ranks, by their ids; others are on every rank, alike."""

    cuts: dict[int, Cut]
    summed: set[int]  # whole, but each rank has only a term of their gradient
    first: set[int]  # on the first rank alone


def plan_tensor(model: Module, mesh: Mesh, flow: Flow, edits: Edits) -> TensorPlan:
    """Plan the edits of a model, and say how its parameters are cut."""
    plan, count = TensorPlan({}, set(), set()), mesh.layout.tensor
    sequential = _sequential(model) if mesh.layout.sequence and count > 1 else set()
    for path, module in model.named_modules():
        if isinstance(module, VocabularyHead):
            _plan_vocabulary(model, path, module, mesh, flow, edits, plan)
        if count == 1:
            continue
        along = flow if id(module) in sequential else None
        if isinstance(module, MultiHeadAttention):
            _plan_attention(path, module, mesh, along, edits, plan)
        elif isinstance(module, MLP):
            _plan_mlp(path, module, mesh, along, edits, plan)
        elif isinstance(module, RelativePositions):
            heads = module.heads
            plan.cuts[id(module.weight)] = Cut(1, _shares(path, "heads", heads, 1, count))
            edits.set(module, "heads", heads // count)
        elif along is not None and isinstance(module, (Encoder, Decoder)):
            edits.wrap(module, partial(_along_sequence, mesh.tensor_group, flow))
            plan.summed |= {id(p) for p in module.norm.parameters()} if module.norm is not None else set()
        elif along is not None and isinstance(module, TransformerBlock):
            edits.wrap(module.dropout, partial(_dropped, mesh, flow))
            inner = {id(p) for part in _parts_of(module) for p in part.parameters()}
            plan.summed |= {id(p) for p in module.parameters()} - inner
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


def _shares(path: str, what: str, things: int, size: int, count: int) -> list[list[tuple[int, int]]]:
    """The rows of each rank, where each thing has `size` of them and things cannot be cut."""
    if things % count:
        raise ArgumentError(
            f"{path}: its {what} do not divide among {count} tensor-parallel ranks",
            f"tensor a divisor of {things}",
            f"tensor={count}",
            "choose another factor, or a model with other heads",
        )
    each = things // count * size
    return [[(rank * each, (rank + 1) * each)] for rank in range(count)]


def _check_linear(path: str, layer: Any) -> None:
    if type(layer) is not Linear or isinstance(layer.weight, Packed):
        kind = "a packed weight" if type(layer) is Linear else f"a {type(layer).__name__}"
        raise ArgumentError(
            f"{path}: this layer cannot be cut among ranks", "a Linear with floating weights", kind, "use tensor=1"
        )


def _plan_attention(
    path: str, module: MultiHeadAttention, mesh: Mesh, along: Flow | None, edits: Edits, plan: TensorPlan
) -> None:
    count, size = mesh.layout.tensor, module.head_dim
    _check_linear(f"{path}.out_proj", module.out_proj)
    own = _shares(path, "heads", module.heads, size, count)
    shared = _shares(path, "key-value heads", module.kv_heads, size, count)
    starts = (0, module.heads * size, (module.heads + module.kv_heads) * size)
    fused = [
        [(start + a, start + b) for start, ((a, b),) in zip(starts, (own[rank], shared[rank], shared[rank]))]
        for rank in range(count)
    ]
    for name, ranges in (
        ("in_proj_weight", fused), ("in_proj_bias", fused),
        ("q_proj_weight", own), ("k_proj_weight", shared), ("v_proj_weight", shared),
    ):  # fmt: skip
        weight = getattr(module, name, None)
        if isinstance(weight, Packed):
            raise ArgumentError(
                f"{path}: a packed weight cannot be cut among ranks", "floating weights", fix="tensor=1"
            )
        if weight is not None:
            plan.cuts[id(weight)] = Cut(0, ranges)
    _plan_out(module.out_proj, own, mesh, edits, plan)
    plan.summed |= {id(p) for norm in (module.q_norm, module.k_norm) if norm is not None for p in norm.parameters()}
    heads, whole = module.heads // count, module.heads
    edits.set(module, "heads", heads)
    edits.set(module, "kv_heads", module.kv_heads // count)

    def attend(forward: Any, query: Any, key: Any = None, value: Any = None, **given: Any) -> Tensor:
        query = _entered(query, mesh, along)
        key, value = (None if x is None else replicated(x, group=mesh.tensor_group) for x in (key, value))
        with part_of_draws(1, mesh.tensor * heads, whole):
            return _left(forward(query, key, value, **given), mesh, along)

    edits.wrap(module, attend)


def _plan_mlp(path: str, module: MLP, mesh: Mesh, along: Flow | None, edits: Edits, plan: TensorPlan) -> None:
    _check_linear(f"{path}.up", module.up)
    _check_linear(f"{path}.down", module.down)
    hidden = module.down.in_features
    own = [[edges] for edges in part_edges(hidden, mesh.layout.tensor)]
    rows = [[(a, b), (hidden + a, hidden + b)] for ((a, b),) in own] if module.is_gated else own
    plan.cuts[id(module.up.weight)] = Cut(0, rows)
    if module.up.bias is not None:
        plan.cuts[id(module.up.bias)] = Cut(0, rows)
    _plan_out(module.down, own, mesh, edits, plan)
    first = own[mesh.tensor][0][0]

    def run(forward: Any, x: Any) -> Tensor:
        x = _entered(x, mesh, along)
        with part_of_draws(-1, first, hidden):
            return _left(forward(x), mesh, along)

    edits.wrap(module, run)


def _plan_out(layer: Linear, columns: Any, mesh: Mesh, edits: Edits, plan: TensorPlan) -> None:
    """A row-parallel layer: its results are summed, so that only one rank may add the bias."""
    plan.cuts[id(layer.weight)] = Cut(1, columns)
    if layer.bias is not None:
        plan.first.add(id(layer.bias))
        if mesh.tensor:
            edits.set(layer, "bias", None)


def _entered(x: Any, mesh: Mesh, along: Flow | None) -> Tensor:
    """All positions, at the entrance of a part of a block: (B, T/t, C) -> (B, T, C)."""
    if along is None:
        return replicated(x, group=mesh.tensor_group)
    return all_gather(x, axis=1, group=mesh.tensor_group, whole=along.length)


def _left(x: Tensor, mesh: Mesh, along: Flow | None) -> Tensor:
    """The sum over ranks, at the exit of a part of a block: (B, T, C) -> (B, T/t, C)."""
    if along is None:
        return all_reduce(x, group=mesh.tensor_group, alike=True)
    return reduce_scatter(x, axis=1, group=mesh.tensor_group)


def _along_sequence(group: Any, flow: Flow, forward: Any, x: Any, *args: Any, **given: Any) -> Tensor:
    """A stack whose blocks have a part of the positions each: (B, T, C) -> (B, T/t, C) -> (B, T, C)."""
    outer, flow.length = flow.length, x.shape[1]
    try:
        made = forward(part(x, axis=1, group=group), *args, **given)
        if not flow.active:
            return hollow(x.shape, x.dtype)
        return all_gather(made, axis=1, group=group, whole=flow.length, alike=True)
    finally:
        flow.length = outer


def _dropped(mesh: Mesh, flow: Flow, forward: Any, x: Tensor) -> Tensor:
    first = part_edges(flow.length, mesh.layout.tensor)[mesh.tensor][0]
    with part_of_draws(1, first, flow.length):
        return forward(x)


def _plan_vocabulary(
    model: Module, path: str, head: VocabularyHead, mesh: Mesh, flow: Flow, edits: Edits, plan: TensorPlan
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
        if isinstance(weight, Packed):
            raise ArgumentError(f"{table}: a packed weight cannot be divided among ranks", "floating weights")
        if weight is not None:
            tables[id(weight)] = weight
    words = max((len(weight) for weight in tables.values()), default=0)
    edits.set(owner, name, ParallelVocabulary(mesh, flow, words))
    if mesh.layout.tensor == 1:
        return
    for weight in tables.values():
        plan.cuts[id(weight)] = Cut(0, [[edges] for edges in part_edges(len(weight), mesh.layout.tensor)])
    for module in modules.values():
        if isinstance(module, Embedding) and id(module.weight) in tables:
            if module.padding_idx is not None:
                raise ArgumentError("an Embedding with padding_idx cannot be cut among ranks", "padding_idx=None")
            edges = part_edges(len(module.weight), mesh.layout.tensor)[mesh.tensor]
            edits.wrap(module, partial(_looked_up, mesh, flow, edges, len(module.weight), module))


def _looked_up(
    mesh: Mesh, flow: Flow, edges: tuple[int, int], words: int, module: Any, forward: Any, ids: Any
) -> Tensor:
    """Vectors of tokens, of which each rank knows some: (…) -> (…, C)."""
    ids = tensor(ids, device=module.weight.device)
    if ids.size and not (int(ids.min()) >= 0 and int(ids.max()) < words):
        raise IndexingError("Embedding: an index is out of range", f"0 to {words - 1}", f"{ids.min()} to {ids.max()}")
    if not flow.active:
        return hollow((*ids.shape, module.embedding_dim), module.weight.dtype)
    start, stop = edges
    is_here = (ids >= start) & (ids < stop)
    found = forward(f.where(is_here, ids - start, 0))
    return all_reduce(found * is_here.astype(found.dtype).reshape(*ids.shape, 1), group=mesh.tensor_group, alike=True)
