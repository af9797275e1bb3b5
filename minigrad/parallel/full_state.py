"""The full state, which checkpoints hold: whole parameters and buffers of the optimiser, put together from the shards of all ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..engine.backend import to_numpy
from ..engine.tensor import Tensor
from ..nn import Parameter
from ..optim import Optimizer
from .mesh import Mesh, part_sizes
from .placement import Placement
from .sharded import Shards

__all__ = ["FullState", "State"]

State = dict[str, dict[str, Any]]  # by parameter: "" is its array, "step" a count, and others buffers of the optimiser


class FullState:
    """Collects the shards of parameters and of the optimiser's buffers; every rank calls the same methods.

    `shards` are those of ZeRO, if there are any.
    """

    def __init__(self, optimizer: Optimizer, mesh: Mesh, placements: Sequence[Placement]):
        self.optimizer, self.mesh, self.placements = optimizer, mesh, placements
        self.shards: Shards | None = None
        self._group_of = {id(p): group for group in optimizer.param_groups for p in group["params"]}

    def local(self, p: Parameter) -> tuple[Tensor, Any]:
        """What the optimiser changes for a parameter on this rank, and its state there."""
        q = p if self.shards is None else self.shards.shards.get(id(p), p)
        return q, self.optimizer.state.get(q)

    def gathered(self, optimizer: bool = True) -> State | None:
        """On rank 0, all parameters of the whole model, with the state of the optimiser; None on the others."""
        world = self.mesh.world
        steps = {}
        for index, placement in enumerate(self.placements):
            state = self.local(placement.p)[1]
            if state is not None:
                steps[str(index)] = state["step"]
        known: dict[str, int] = {}
        for one in world.all_gather(steps):
            known |= one
        result: State = {}
        for index, placement in enumerate(self.placements):
            shapes = {"": placement.shape}
            if optimizer and str(index) in known:
                shapes |= self._buffers(placement)
                result.setdefault(placement.name, {})["step"] = known[str(index)]
            for kind, shape in shapes.items():
                array = self._collected(placement, kind, shape)
                if world.rank == 0:
                    result.setdefault(placement.name, {})[kind] = array
        return result if world.rank == 0 else None

    def everywhere(self) -> State:
        """The same on every rank."""
        made, world = self.gathered(), self.mesh.world
        kinds = world.broadcast(None if made is None else {name: [*parts] for name, parts in made.items()})
        steps = world.broadcast(None if made is None else {name: parts.get("step") for name, parts in made.items()})
        every: State = {}
        for placement in self.placements:
            parts = every[placement.name] = {}
            for kind in kinds[placement.name]:
                if kind == "step":
                    parts[kind] = steps[placement.name]
                    continue
                shape = self._buffers(placement)[kind] if kind else placement.shape
                array = np.empty(shape, placement.p.dtype) if made is None else made[placement.name][kind]
                world.broadcast_arrays([array])
                parts[kind] = array
        return every

    def _buffers(self, placement: Placement) -> dict[str, tuple[int, ...]]:
        """The buffers of the optimiser for the whole parameter."""
        shapes = self.optimizer.buffer_shapes(placement.p, self._group_of[id(placement.p)])
        return dict.fromkeys(shapes, placement.shape) if self.optimizer.elementwise else shapes

    def _collected(self, placement: Placement, kind: str, shape: tuple[int, ...]) -> Any:
        """Send a parameter, or a buffer, to rank 0, which puts it together."""
        mesh, world = self.mesh, self.mesh.world
        is_sharded = self.shards is not None and placement.trained
        mine = None
        if mesh.pipeline == placement.stages[0] and placement.is_on(mesh.pipeline, mesh.tensor):
            q, state = self.local(placement.p)
            if (mesh.data == 0 or is_sharded) and (placement.spec is not None or mesh.tensor == placement.owner):
                mine = to_numpy(q.data if not kind else state[kind])
        if world.rank:
            if mine is not None:
                world.send(mine, 0)
            return None
        whole = np.empty(shape, placement.p.dtype)
        for tensor in [placement.owner] if placement.spec is None else range(mesh.layout.tensor):
            local = placement.local_shape(tensor) if shape == placement.shape else shape
            pieces: list[Any] = []
            for data in range(mesh.shape[0] if is_sharded else 1):
                rank = (data * mesh.layout.pipeline + placement.stages[0]) * mesh.layout.tensor + tensor
                pieces.append(mine if rank == 0 else self._received(rank, local, placement.p.dtype, data, is_sharded))
            shard = pieces[0] if not is_sharded else np.concatenate(pieces).reshape(local)
            if placement.spec is None or shape != placement.shape:
                whole[...] = shard
            else:
                placement.spec.write(whole, shard, tensor)
        return whole

    def _received(self, rank: int, local: tuple[int, ...], dtype: Any, data: int, is_sharded: bool) -> Any:
        if is_sharded:
            local = (part_sizes(math.prod(local), self.mesh.shape[0])[data],)
        return self.mesh.world.receive(local, dtype, rank)
