"""A model and its optimiser, divided among ranks: partitioned at the beginning, whole again for checkpoints and at the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from ..engine.backend import backend_named, backend_of, device_of
from ..engine.tensor import Tensor
from ..engine.writes import writes
from ..errors import ArgumentError
from ..nn import Module
from ..nn.clipping import grad_norm
from ..ops.creation import zeros
from ..optim import Optimizer
from .full_state import FullState, State
from .mesh import Mesh, part_edges
from .pass_state import PassState
from .patches import Patches, placeholder, set_data
from .pipeline import blocks_of, plan_pipeline, plan_recompute
from .placement import Placement, placements
from .sharded import Shards, check_elementwise

__all__ = ["DistributedModel", "parallelize"]


def parallelize(
    model: Module,
    optimizer: Optimizer,
    mesh: Mesh,
    counts: Sequence[int] | None = None,
    uses: Mapping[str, Sequence[int]] | None = None,
) -> DistributedModel:
    """Divide a model and its optimiser, which are whole and alike on every rank, in place; all ranks call it together.

    For a pipeline, `counts` are the blocks of each stage, and `uses` say for each parameter outside of blocks after how many
    blocks it is used, as `minigrad.parallel.profiling.profile_blocks` finds out.
    """
    blocks = len(blocks_of(model))
    counts = [blocks] if counts is None and mesh.layout.pipeline == 1 else counts
    if counts is None or len(counts) != mesh.layout.pipeline or sum(counts) != blocks:
        expected = f"{mesh.layout.pipeline} counts, {blocks} in all"
        raise ArgumentError("the stages of the pipeline have other blocks than the model", expected, counts)
    distributed = DistributedModel(
        model, optimizer, mesh, counts, {name: [*used] for name, used in (uses or {}).items()}
    )
    distributed.partition()
    return distributed


class DistributedModel:
    """How this rank holds its part of a model and of its optimiser; see `Layout`, `Mesh` and `parallelize`."""

    def __init__(
        self, model: Module, optimizer: Optimizer, mesh: Mesh, counts: Sequence[int], uses: dict[str, list[int]]
    ):
        self.model, self.optimizer, self.mesh, self.counts = model, optimizer, mesh, tuple(counts)
        self.pass_state = PassState(mesh.pipeline == 0)
        self._inner, self._outer = Patches(), Patches()  # of parts of blocks, and of blocks
        self._params: list[list[Tensor]] = [list(group["params"]) for group in optimizer.param_groups]
        layout = mesh.layout
        if layout.tensor > 1 or layout.shard:
            check_elementwise(optimizer, f"tensor={layout.tensor}, shard={layout.shard}")
        self.placements = placements(model, mesh, self.counts, uses, self.pass_state, self._inner)
        self._ties = {
            stages: mesh.pipeline_group.split(int(mesh.pipeline in stages))
            for stages in sorted({one.stages for one in self.placements if len(one.stages) > 1})
        }
        self.state = FullState(optimizer, mesh, self.placements)

    # What follows happens on all ranks together.

    def partition(self) -> None:
        """Keep this rank's shards, and let go of what other ranks hold."""
        for one in self.placements:
            kept = self.optimizer.state.get(one.p)
            if not self._is_here(one):
                self.optimizer.state.pop(one.p, None)
                set_data(one.p, placeholder(one.shape, one.p.dtype, one.p.device).data)
                continue
            set_data(one.p, self._own(one, one.p.data))
            for name in () if kept is None else [name for name in kept if name != "step"]:
                kept[name] = self._own(one, kept[name])  # type: ignore[index]
        layout = self.mesh.layout
        if layout.shard:
            self._shard()
        if layout.recompute and layout.shard < 3:
            plan_recompute(self.model, self.pass_state, self._outer)
        if layout.pipeline > 1:
            plan_pipeline(self.model, self.mesh, self.pass_state, self._outer, self.counts)
        for one in self.placements:
            if not self._is_here(one):
                one.p.requires_grad_(False)
        self._patch()
        self._forget_flats()

    def _is_here(self, one: Placement) -> bool:
        return one.is_on(self.mesh.pipeline, self.mesh.tensor)

    def _own(self, one: Placement, whole: Any) -> Any:
        """This rank's shard, in memory of its own."""
        if one.spec is None or whole.shape != one.shape:
            return backend_of(whole).xp.array(whole, order="C")
        return one.spec.shard(whole, self.mesh.tensor)

    def _shard(self) -> None:
        """Let data-parallel ranks share what they hold alike."""
        mesh = self.mesh
        here = [one.p for one in self.placements if self._is_here(one)]
        self.state.shards = shards = Shards(self.model, here, mesh.layout.shard, mesh.data_group, self.pass_state)
        for p in shards.params:
            kept = self.optimizer.state.pop(p, None)
            if kept is not None:
                piece = slice(*part_edges(math.prod(shards.shapes[id(p)]), mesh.data_group.size)[mesh.data])
                self.optimizer.state[shards.shards[id(p)]] = {
                    name: value if name == "step" else value.reshape(-1)[piece].copy() for name, value in kept.items()
                }
        for group in self.optimizer.param_groups:
            group["params"] = [shards.shards.get(id(p), p) for p in group["params"]]
        shards.plan(self._outer)

    def _patch(self) -> None:
        self._inner.apply()
        self._outer.apply()

    def _unpatch(self) -> None:
        self._outer.undo()
        self._inner.undo()

    def _forget_flats(self) -> None:
        self.optimizer._flats.clear()
        self.optimizer._is_loaded = True

    @contextmanager
    def whole(self, optimizer: bool = False) -> Iterator[None]:
        """Inside, rank 0 has the whole model, and if asked for the whole optimiser; the others have theirs."""
        made = self.state.gathered(optimizer)
        if made is None:
            yield
            return
        kept = [(one.p, one.p.data, one.p.node) for one in self.placements]
        states, params = self.optimizer.state, [group["params"] for group in self.optimizer.param_groups]
        self._unpatch()
        try:
            for one in self.placements:
                one.p.data = _placed(made[one.name][""], device_of(one.p.data))
            if optimizer:
                self._give_states(made)
            yield
        finally:
            for p, data, node in kept:
                p.data, p.node = data, node
            self.optimizer.state = states
            for group, own in zip(self.optimizer.param_groups, params):
                group["params"] = own
            self._patch()

    def _give_states(self, made: State) -> None:
        """Give the optimiser the whole parameters, and their states."""
        for group, own in zip(self.optimizer.param_groups, self._params):
            group["params"] = own
        self.optimizer.state = type(self.optimizer.state)(
            {
                one.p: {
                    name: value if name == "step" else _placed(value, one.p.device)
                    for name, value in made[one.name].items()
                    if name
                }
                for one in self.placements
                if "step" in made[one.name]
            }
        )

    def join(self) -> None:
        """Give every rank the whole model and optimiser again."""
        every = self.state.everywhere()
        self._unpatch()
        for one in self.placements:
            one.p.requires_grad_(one.trained)
            set_data(one.p, _placed(every[one.name][""], one.p.device))
        self._give_states(every)
        self.state.shards = None
        self._forget_flats()

    # What follows happens in every step.

    def loss(self, loss: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """The loss, computed by the divided model."""

        def divided(model: Any, batch: Any) -> Any:
            self.pass_state.begin()
            return loss(model, batch)

        for name in ("units", "unit", "couples_batch"):
            if hasattr(loss, name):
                setattr(divided, name, getattr(loss, name))
        return divided

    def reduce_gradients(self) -> None:
        """Sum the gradients over the ranks that hold the same parameters; one that no rank has used keeps none."""
        mesh, shards = self.mesh, self.state.shards
        before = [  # what the backward gave gradients
            self.state.local(one.p)[0] if shards is not None and shards.is_just_in_time(one.p) else one.p
            for one in self.placements
        ]
        votes = np.array([float(q.node is not None and q.node.grad is not None) for q in before])
        mesh.world.all_reduce([votes])
        here = [
            (one, q)
            for one, q, vote in zip(self.placements, before, votes)
            if vote and q.node is not None and self._is_here(one)
        ]
        grads = {id(one): _gradient(q) for one, q in here}
        if mesh.layout.tensor > 1:
            mesh.tensor_group.all_reduce([grads[id(one)] for one, _ in here if one.partial])
        if shards is None:
            mesh.data_group.all_reduce([*grads.values()])
        else:
            grads |= {id(one): shards.reduced(one.p) for one, _ in here if not shards.is_just_in_time(one.p)}
        for stages, group in self._ties.items():
            if mesh.pipeline in stages:
                group.all_reduce([grads[id(one)] for one, _ in here if one.stages == stages])

    def present(self) -> AbstractContextManager[None]:
        """Inside, weights outside of blocks are there: for a step, or for an evaluation."""
        return nullcontext() if self.state.shards is None else self.state.shards.present()

    def grad_norm(self) -> float:
        """The norm of the gradient of the whole model."""
        mesh = self.mesh
        counted = [
            self.state.local(one.p)[0]
            for one in self.placements
            if self._is_here(one) and one.is_counted(mesh.pipeline, mesh.tensor)
        ]
        square = np.array([grad_norm(counted) ** 2], np.float64)
        (mesh.world if self.state.shards is not None else mesh.model_group).all_reduce([square])
        return float(mesh.world.broadcast(math.sqrt(square[0])))

    def memory(self) -> dict[str, int]:
        """The bytes of the arrays of weights and of the optimiser's state on this rank; placeholders take none."""
        mine = [self.state.local(one.p) for one in self.placements if self._is_here(one)]
        shards = self.state.shards
        replicated = shards is not None and shards.level < 3
        weights = [one.p for one in self.placements] if replicated else [q for q, _ in mine]
        return {
            "parameters": sum(p.data.nbytes for p in weights if any(p.data.strides)),
            "optimizer": sum(
                array.nbytes for _, kept in mine for name, array in (kept or {}).items() if name != "step"
            ),
        }

    def after_step(self) -> None:
        """Gather what other ranks have changed."""
        if self.state.shards is not None:
            self.state.shards.gather()


def _placed(array: np.ndarray, device: str) -> Any:
    """An array of the host on a device."""
    return array if device == "cpu" else backend_named(device).place(array, device)


def _gradient(q: Tensor) -> Any:
    """The gradient on this rank, zeros where no row has used the parameter; it is about to be written to."""
    node = q.node
    assert node is not None
    if node.grad is None:
        node.grad = zeros(q.shape, dtype=q.dtype, device=q.device).data
    writes.mark(node.grad)
    return node.grad
