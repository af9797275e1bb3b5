"""Pipeline parallelism: each stage has some blocks, and microbatches pass through the stages one after the other.

Every rank runs the whole of `loss(model, batch)`. Blocks of other stages do nothing there; the last one before a rank's own
receives what the stage before has sent, and the last of its own sends. Both are differentiable, so the backward of a stage
begins by waiting for the gradient of what it sent, and ends by sending that of what it received. A schedule is then no more
than an order of forwards and backwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ..engine.modes import no_grad
from ..engine.tensor import Tensor
from ..errors import ArgumentError
from ..nn import Decoder, Encoder, MixtureOfExperts, Module, TransformerBlock, imbalances
from ..nn.layers.experts import collected
from ..ops.creation import zeros
from ..random import position, shard_of_step, skip_keys
from ..transforms import recompute
from .collectives import receive, send
from .mesh import Mesh
from .pass_state import PassState
from .patches import Patches, placeholder

__all__ = ["balanced", "blocks_of", "check_blocks", "plan_pipeline", "plan_recompute", "schedule"]


def blocks_of(model: Module) -> list[tuple[str, TransformerBlock]]:
    """The blocks of all stacks, by path, in the order in which they are called."""
    return [
        (f"{path}.blocks.{index}" if path else f"blocks.{index}", block)
        for path, stack in model.named_modules()
        if isinstance(stack, (Encoder, Decoder))
        for index, block in enumerate(stack.blocks)
    ]


def check_blocks(model: Module) -> None:
    """Refuse a model of which no stages could be made."""
    if not blocks_of(model):
        raise ArgumentError(
            "this model has no blocks that stages of a pipeline could be made of",
            "an nn.Encoder or nn.Decoder in it",
            type(model).__name__,
            "use pipeline=1",
        )


def balanced(costs: Sequence[float], stages: int) -> tuple[int, ...]:
    """How many neighbouring blocks each stage gets, so that the most costly stage costs as little as possible.

    >>> balanced([1, 1, 1, 1, 4], 2)
    (4, 1)
    """
    if len(costs) < stages:
        raise ArgumentError(
            f"there are fewer blocks than stages of a pipeline, {stages}",
            f"pipeline at most {len(costs)}",
            f"pipeline={stages}",
        )
    best: dict[tuple[int, int], tuple[float, tuple[int, ...]]] = {}
    sums = [sum(costs[:i]) for i in range(len(costs) + 1)]
    for end in range(1, len(costs) + 1):
        best[end, 1] = sums[end], (end,)
    for count in range(2, stages + 1):
        for end in range(count, len(costs) + 1):
            best[end, count] = min(
                (max(best[cut, count - 1][0], sums[end] - sums[cut]), (*best[cut, count - 1][1], end - cut))
                for cut in range(count - 1, end)
            )
    return best[len(costs), stages][1]


def schedule(kind: str, stages: int, stage: int, pieces: int) -> list[tuple[str, int]]:
    """The order in which a stage computes forwards and backwards of microbatches.

    GPipe computes all forwards first. In 1F1B a stage begins the first backward as soon as it can, so that it holds the
    activations of at most `stages - stage` microbatches and not of all; both wait equally long.

    >>> schedule("1f1b", 2, 0, 3)
    [('forward', 0), ('forward', 1), ('backward', 0), ('forward', 2), ('backward', 1), ('backward', 2)]
    """
    ahead = pieces if kind == "gpipe" else min(stages - stage, pieces)
    order = [("forward", i) for i in range(ahead)]
    for i in range(pieces):
        order.append(("backward", i))
        if ahead + i < pieces:
            order.append(("forward", ahead + i))
    return order


def plan_pipeline(model: Module, mesh: Mesh, pass_state: PassState, patches: Patches, counts: Sequence[int]) -> None:
    """Plan what each block does on this rank's stage, given how many blocks each stage has."""
    blocks = [block for _, block in blocks_of(model)]
    begin = sum(counts[: mesh.pipeline])
    end = begin + counts[mesh.pipeline]
    for index, block in enumerate(blocks):
        if not begin <= index < end:
            keys = keys_of(block)
            if index == begin - 1:
                patches.wrap(block, partial(_received, mesh, pass_state, keys, block))
            else:
                patches.wrap(block, partial(_skipped, keys, block))
            continue
        if block.cross_attention is not None:
            patches.wrap(block, partial(_remembering, pass_state))
        if index == end - 1 and not mesh.is_last:
            patches.wrap(block, partial(_sent, mesh, pass_state, block))


def keys_of(block: TransformerBlock) -> int:
    """How many keys for random numbers a block takes in training: a stage that has not got it passes over as many."""
    weight = next(p for p in block.parameters() if p.ndim == 1 or p.ndim == 2)
    dim = block.dim
    x = zeros((1, 1, dim), dtype=weight.dtype, device=weight.device)
    crossing = block.cross_attention
    memory = None if crossing is None else zeros((1, 1, crossing.key_dim), dtype=weight.dtype, device=weight.device)
    was = block.training
    with shard_of_step(0, 0, 1), no_grad():
        block.train()
        try:
            block(x, memory)
            return int(position()["taken"])
        finally:
            block.train(was)


def _skipped(keys: int, block: Module, forward: Any, x: Any, memory: Any = None, **given: Any) -> Tensor:
    if block.training:
        skip_keys(keys)
    return placeholder(x.shape, x.dtype, x.device)


def _received(
    mesh: Mesh, pass_state: PassState, keys: int, block: Module, forward: Any, x: Any, memory: Any = None, **given: Any
) -> Tensor:
    """The last block before this stage: what it made, on the stage before."""
    _skipped(keys, block, forward, x)
    group, source = mesh.pipeline_group, mesh.pipeline - 1
    made = receive(x.shape, x.dtype, group, source, x.device)
    pass_state.memory = None if memory is None else receive(memory.shape, memory.dtype, group, source, x.device)
    if (found := _imbalances_of(block)) is not None:
        found.append(receive(x.shape[:1], x.dtype, group, source, x.device))
    pass_state.active = True
    return made


def _imbalances_of(block: Any) -> list[Tensor] | None:
    """The list to which mixtures of experts add; None if they do not, or nobody collects."""
    is_mixture = isinstance(block.mlp, MixtureOfExperts) and block.training
    return collected() if is_mixture else None


def _remembering(pass_state: PassState, forward: Any, x: Any, memory: Any = None, **given: Any) -> Tensor:
    """A block that looks at a memory, which an earlier stage may have made."""
    return forward(x, memory if pass_state.memory is None else pass_state.memory, **given)


def _sent(
    mesh: Mesh, pass_state: PassState, block: Module, forward: Any, x: Any, memory: Any = None, **given: Any
) -> Tensor:
    """The last block of this stage, and what the next stage needs."""
    made = forward(x, memory, **given)
    group, to = mesh.pipeline_group, mesh.pipeline + 1
    pass_state.token = send(made, group, to)
    if memory is not None:
        pass_state.token = pass_state.token + send(
            memory if pass_state.memory is None else pass_state.memory, group, to
        )
    if (found := _imbalances_of(block)) is not None:
        pass_state.token = pass_state.token + send(sum(found[1:], found[0]), group, to)
    pass_state.active = False
    return placeholder(made.shape, made.dtype, made.device)


def plan_recompute(model: Module, pass_state: PassState, patches: Patches) -> None:
    """Plan that blocks keep no activations: the backward computes them again."""
    for _, block in blocks_of(model):
        patches.wrap(block, partial(recomputed, pass_state))


def recomputed(pass_state: PassState, forward: Any, x: Any, memory: Any = None, **given: Any) -> Tensor:
    """A block whose activations are computed again in the backward, with the same sequence length."""
    length, remembered = pass_state.length, pass_state.memory

    def run(x: Any, memory: Any) -> list[Tensor]:
        outer, pass_state.length, pass_state.memory = (pass_state.length, pass_state.memory), length, remembered
        try:
            with imbalances() as found:
                made = forward(x, memory, **given)
            return [made, *found]
        finally:
            pass_state.length, pass_state.memory = outer

    made, *uneven = recompute(run)(x, memory)
    if (found := collected()) is not None:
        found.extend(uneven)
    return made
