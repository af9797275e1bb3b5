"""Sharded data parallelism (ZeRO): what data-parallel ranks would hold alike is divided among them.

1 divides the state of the optimiser: each rank changes a part of the weights, and gathers the others'. 2 divides gradients as
well: they are summed to where they are needed as soon as a block's backward has made them. 3 divides the weights as well: they are
gathered when a block needs them, for its forward and again for its backward, and let go after it. Weights outside of blocks
are used in several places, and not in every microbatch: they are whole during a step, and their gradients are summed at its end.

Both come from one op: the whole weight is an all-gather of its shards, and the gradient of an all-gather is a reduce-scatter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from ..engine.op import Op
from ..engine.writes import writes
from ..errors import ArgumentError
from ..nn import Module, Parameter
from ..optim import Optimizer
from ..runtime.process_group import ProcessGroup
from .mesh import part_edges, part_sizes
from .pass_state import PassState
from .patches import Patches, placeholder, set_data
from .pipeline import blocks_of, recomputed

__all__ = ["Shards", "check_elementwise"]

Place = tuple[Module, str]


@Op
def _gathered(xp, shard, *, group, whole, shape):
    """The whole weight: gathered from all ranks, unless `whole` is it already."""
    if whole is not None:
        return whole
    sizes = part_sizes(int(np.prod(shape)), group.size)
    return group.all_gather_array(shard, sizes).reshape(shape)


@_gathered.vjp
def _scattered(g, group):
    sizes = part_sizes(g.size, group.size)
    return (group.reduce_scatter(g, sizes),)


class Shards:
    """The shards of this rank's parameters; each takes the place of its parameter in the optimiser."""

    def __init__(
        self, model: Module, params: Iterable[Parameter], level: int, group: ProcessGroup, pass_state: PassState
    ):
        self.model, self.level, self.group, self.pass_state = model, level, group, pass_state
        self.params = [p for p in params if p.node is not None]
        self.shapes = {id(p): p.shape for p in self.params}
        self.shards = {id(p): self._shard_of(p) for p in self.params}
        self._units = self._places()
        of_blocks = [p for unit, own in self._units.items() if unit is not None for p, _ in own]
        self._in_blocks = {id(p) for p in of_blocks} if level > 1 else set()

    def _shard_of(self, p: Parameter) -> Parameter:
        start, stop = part_edges(p.size, self.group.size)[self.group.rank]
        made = Parameter(np.zeros(0, p.dtype))
        piece = p.data.reshape(-1)[start:stop]
        set_data(made, piece.copy() if self.level == 3 else piece)  # else it is written to where the whole is
        if self.level == 3:
            set_data(p, placeholder(p.shape, p.dtype, p.device).data)
        return made

    def _places(self) -> dict[int | None, list[tuple[Parameter, list[Place]]]]:
        """The parameters of each block, by its id, and those outside of blocks, with the attributes that they are."""
        inside = {id(module): id(block) for _, block in blocks_of(self.model) for module in block.modules()}
        found: dict[int, list[Place]] = {}
        for module in self.model.modules():
            for name, value in vars(module).items():
                if id(value) in self.shards:
                    found.setdefault(id(value), []).append((module, name))
        units: dict[int | None, list[tuple[Parameter, list[Place]]]] = {}
        for p in self.params:
            owners = {inside.get(id(module)) for module, _ in found.get(id(p), [])}
            unit = owners.pop() if len(owners) == 1 else None
            units.setdefault(unit, []).append((p, found.get(id(p), [])))
        return units

    def plan(self, patches: Patches) -> None:
        """Plan that blocks get their weights just in time."""
        if self.level == 1:
            return
        for _, block in blocks_of(self.model):
            if id(block) in self._units:
                patches.wrap(block, partial(self._with_weights, self._units[id(block)]))
                if self.level == 3:
                    patches.wrap(block, partial(recomputed, self.pass_state))

    def _with_weights(self, unit: list[tuple[Parameter, list[Place]]], forward: Any, *args: Any, **given: Any) -> Any:
        """The forward of a block, whose modules have whole weights meanwhile, with gradients that go to the shards."""
        swapped = []
        try:
            for p, places in unit:
                known = None if self.level == 3 else p.data
                made = _gathered(self.shards[id(p)], group=self.group, whole=known, shape=self.shapes[id(p)])
                for module, name in places:
                    vars(module)[name] = made
                    swapped.append((module, name, p))
            return forward(*args, **given)
        finally:
            for module, name, p in swapped:
                vars(module)[name] = p

    def is_just_in_time(self, p: Parameter) -> bool:
        """Whether the backward sums the gradient of a parameter to its shards; others wait for the end of the step."""
        return id(p) in self._in_blocks

    @contextmanager
    def present(self) -> Iterator[None]:
        """Inside, weights outside of blocks are whole: for a step, or for an evaluation."""
        outside = [p for p in self.params if self.level == 3 and id(p) not in self._in_blocks]
        for p in outside:
            flat = self.group.all_gather_array(self.shards[id(p)].data, part_sizes(p.size, self.group.size))
            p.data = flat.reshape(p.shape)
        try:
            yield
        finally:
            for p in outside:
                p.data = placeholder(p.shape, p.dtype, p.device).data

    def reduced(self, p: Parameter) -> Any:
        """The sum of a gradient over ranks, of which the shard gets its part."""
        node, own = p.node, self.shards[id(p)].node
        assert node is not None and own is not None
        own.grad = self.group.reduce_scatter(node.grad, part_sizes(p.size, self.group.size))
        node.grad = None
        return own.grad

    def gather(self) -> None:
        """After a step: each rank has changed its shards, and gets those of the others."""
        for p in self.params if self.level < 3 else ():
            flat = self.group.all_gather_array(self.shards[id(p)].data, part_sizes(p.size, self.group.size))
            p.data[...] = flat.reshape(p.shape)
            writes.mark(p.data)


def check_elementwise(optimizer: Optimizer, what: str) -> None:
    """Refuse an optimiser whose step on a part of a matrix is not that part of its step."""
    if not optimizer.elementwise:
        raise ArgumentError(
            f"{type(optimizer).__name__} changes a matrix as a whole, and {what} gives each rank a part of it",
            "an optimiser that treats each number by itself, such as AdamW",
            type(optimizer).__name__,
        )
