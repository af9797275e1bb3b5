"""Where each parameter of a model is: its shards on tensor-parallel ranks, and the pipeline stages that have it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..nn import Decoder, Encoder, Module, Parameter
from .mesh import Mesh
from .partition_spec import PartitionSpec
from .pass_state import PassState
from .patches import Patches
from .pipeline import blocks_of
from .tensor import plan_tensor

__all__ = ["Placement", "placements"]


@dataclass
class Placement:
    """A parameter of the whole model: its shape, how tensor-parallel ranks shard it, and which stages have it.

    Without a spec it is replicated, or on tensor-parallel rank `only` alone; with `partial`, the gradients of replicas are
    terms of a sum.
    """

    name: str
    p: Parameter
    shape: tuple[int, ...]
    spec: PartitionSpec | None
    stages: tuple[int, ...]
    only: int | None
    partial: bool
    trained: bool

    def is_on(self, stage: int, tensor: int) -> bool:
        """Whether a rank with this place has it, or a shard of it."""
        return stage in self.stages and self.only in (None, tensor)

    def is_counted(self, stage: int, tensor: int) -> bool:
        """Whether this place is the one that counts it, of those that have replicas."""
        return stage == self.stages[0] and (self.spec is not None or tensor == self.owner)

    @property
    def owner(self) -> int:
        """Which tensor-parallel rank gives its value, if it is not sharded over them."""
        return self.only or 0

    def local_shape(self, tensor: int) -> tuple[int, ...]:
        """The shape of a tensor-parallel rank's shard."""
        return self.shape if self.spec is None else self.spec.local_shape(self.shape, tensor)


def placements(
    model: Module,
    mesh: Mesh,
    counts: Sequence[int],
    uses: dict[str, list[int]],
    pass_state: PassState | None = None,
    patches: Patches | None = None,
) -> list[Placement]:
    """The placement of each parameter of a whole model; `patches` get what is to be changed on this rank.

    `counts` are the blocks of each stage, and `uses` say for each parameter outside of blocks after how many blocks it is used.
    """
    state = PassState() if pass_state is None else pass_state
    plan = plan_tensor(model, mesh, state, Patches() if patches is None else patches)
    return [
        Placement(
            name,
            p,
            p.shape,
            plan.specs.get(id(p)),
            stages,
            plan.only.get(id(p)),
            id(p) in plan.partial,
            p.requires_grad,
        )
        for (name, p), stages in zip(model.named_parameters(), _stages(model, counts, uses))
    ]


def _stages(model: Module, counts: Sequence[int], uses: dict[str, list[int]]) -> Iterator[tuple[int, ...]]:
    """The stages that have each parameter: that of its block, or those that use it between blocks."""
    of_block = [stage for stage, count in enumerate(counts) for _ in range(count)]
    blocks = blocks_of(model)
    of_param = {id(p): {of_block[i]} for i, (_, block) in enumerate(blocks) for p in block.parameters()}
    places = {id(block): of_block[i] for i, (_, block) in enumerate(blocks)}
    for stack in model.modules():
        if isinstance(stack, (Encoder, Decoder)) and stack.relative is not None:
            of_param[id(stack.relative.weight)] = {places[id(block)] for block in stack.blocks}
    last = len(blocks) - 1
    for name, p in model.named_parameters():
        used = {of_block[min(use, last)] for use in uses.get(name, [])} if blocks else {0}
        yield tuple(sorted(of_param.get(id(p)) or used or {0}))
