"""One pass through a whole model: how long each block takes, and between which blocks each parameter is used."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

from ..engine.graph import collect
from ..engine.tensor import Tensor
from ..engine.writes import tick
from ..nn import Module
from ..random import shard_of_step
from .patches import Patches
from .pipeline import blocks_of

__all__ = ["profile_blocks"]


def profile_blocks(
    model: Module, loss: Callable[[Any, Any], Any], batch: Any, passes: int = 4
) -> tuple[list[float], dict[str, list[int]]]:
    """The seconds of each block, forward and backward, with those before the first and after the last added to these; and for
    each parameter outside of blocks, after how many blocks it is used.

    No gradient of the model is changed.
    """
    blocks = [block for _, block in blocks_of(model)]
    inside = {id(p) for block in blocks for p in block.parameters()}
    times: list[list[float]] = []
    grads = [(p, p.grad) for p in model.parameters()]
    for _ in range(passes):  # the first one warms up
        clock, patches = _Clock(), Patches()
        for block in blocks:
            patches.wrap(block, partial(_timed, clock))
        patches.apply()
        begin = perf_counter()
        try:
            with shard_of_step(0, 0, 1):
                terms = loss(model, batch)
        finally:
            patches.undo()
        times.append([clock.first - begin, *clock.seconds, perf_counter() - clock.last])
    amounts = [amount for amount, _ in terms.values() if isinstance(amount, Tensor) and amount.requires_grad]
    uses: dict[str, list[int]] = {}
    names = {p.node: name for name, p in model.named_parameters() if id(p) not in inside and p.node is not None}
    for node in collect([amount.node for amount in amounts if amount.node is not None]):
        for parent in node.parents:
            if parent in names:
                phase = sum(time <= node.time for time in clock.ticks)
                uses.setdefault(names[parent], []).append(phase)
    for p, grad in grads:
        p.grad = grad
    before, *inside_blocks, after = (
        3 * min(each) for each in zip(*times)
    )  # a backward takes twice as long as its forward
    costs = list(inside_blocks)
    costs[0] += before
    costs[-1] += after
    return costs, {name: sorted(set(found)) for name, found in uses.items()}


class _Clock:
    """When blocks began and ended, in seconds and by the clock of the graph."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.ticks: list[int] = []
        self.first, self.last = 0.0, 0.0


def _timed(clock: _Clock, forward: Any, *args: Any, **given: Any) -> Any:
    begin = perf_counter()
    clock.first = clock.first or begin
    made = forward(*args, **given)
    clock.last = perf_counter()
    clock.seconds.append(clock.last - begin)
    clock.ticks.append(tick())
    return made
