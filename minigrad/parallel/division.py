"""A model and its optimiser, divided among ranks: cut at the beginning, put together for checkpoints and at the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine.backend import to_numpy
from ..engine.tensor import Tensor
from ..engine.writes import writes
from ..nn import Decoder, Encoder, Module, Parameter
from ..nn.clipping import grad_norm
from ..optim import Optimizer
from .cuts import Cut
from .edits import Edits, hollow, set_data
from .flow import Flow
from .mesh import Mesh, part_edges, part_sizes
from .pipeline import blocks_of, plan_pipeline, plan_recompute
from .sharded import Shards, check_elementwise
from .tensor import plan_tensor

__all__ = ["Division", "Held", "holdings"]


@dataclass
class Held:
    """A parameter of the whole model: its shape, how tensor-parallel ranks cut it, and which stages have it."""

    name: str
    p: Parameter
    shape: tuple[int, ...]
    cut: Cut | None
    stages: tuple[int, ...]
    only_first: bool
    summed: bool
    trained: bool

    def is_on(self, stage: int, tensor: int) -> bool:
        """Whether a rank with this place has it, or a part of it."""
        return stage in self.stages and not (self.only_first and tensor)

    def is_counted(self, stage: int, tensor: int) -> bool:
        """Whether this place is the one that counts it, of those that have it alike."""
        return stage == self.stages[0] and not (tensor and self.cut is None)

    def local_shape(self, tensor: int) -> tuple[int, ...]:
        return self.shape if self.cut is None else self.cut.shape(self.shape, tensor)


class Division:
    """How this rank holds its part of a model and of its optimiser; see `Layout` and `Mesh`.

    `counts` are the blocks of each stage, and `phases` say for each parameter outside of blocks after how many blocks it is
    used, which a pass through the whole model has shown (`minigrad.parallel.measuring`).
    """

    def __init__(
        self, model: Module, optimizer: Optimizer, mesh: Mesh, counts: Sequence[int], phases: dict[str, list[int]]
    ):
        self.model, self.optimizer, self.mesh, self.counts = model, optimizer, mesh, tuple(counts)
        self.flow, self._edits, self._outer = Flow(mesh.pipeline == 0), Edits(), Edits()
        self._params: list[list[Tensor]] = [list(group["params"]) for group in optimizer.param_groups]
        self._group_of = {id(p): group for group in optimizer.param_groups for p in group["params"]}
        layout = mesh.layout
        if layout.tensor > 1 or layout.shard:
            check_elementwise(optimizer, f"tensor={layout.tensor}, shard={layout.shard}")
        self.held = holdings(model, mesh, self.counts, phases, self.flow, self._edits)
        self._ties = {
            stages: mesh.pipeline_group.split(int(mesh.pipeline in stages))
            for stages in sorted({h.stages for h in self.held if len(h.stages) > 1})
        }
        self.shards: Shards | None = None

    # What follows happens on all ranks together.

    def cut(self) -> None:
        """Let go of what other ranks hold."""
        mesh = self.mesh
        for held in self.held:
            state = self.optimizer.state.get(held.p)
            here = held.is_on(mesh.pipeline, mesh.tensor)
            if not here:
                self.optimizer.state.pop(held.p, None)
                set_data(held.p, hollow(held.shape, held.p.dtype).data)
                continue
            set_data(held.p, self._own(held, held.p.data))
            for name in () if state is None else [name for name in state if name != "step"]:
                state[name] = self._own(held, state[name])  # type: ignore[index]
        edits = self._outer
        if mesh.layout.shard:
            self._shard(edits)
        if mesh.layout.recompute and mesh.layout.shard < 3:
            plan_recompute(self.model, self.flow, edits)
        if mesh.layout.pipeline > 1:
            plan_pipeline(self.model, mesh, self.flow, edits, self.counts)
        for held in self.held:
            if not held.is_on(mesh.pipeline, mesh.tensor):
                held.p.requires_grad_(False)
        self._edits.apply()
        self._outer.apply()
        self._forget_flats()

    def _own(self, held: Held, whole: Any) -> Any:
        """This rank's part, in memory of its own."""
        if held.cut is None or whole.shape != held.shape:
            return np.array(whole, order="C")
        return held.cut.take(whole, self.mesh.tensor)

    def _shard(self, edits: Edits) -> None:
        mesh = self.mesh
        here = [h.p for h in self.held if h.is_on(mesh.pipeline, mesh.tensor)]
        self.shards = shards = Shards(self.model, here, mesh.layout.shard, mesh.data_group, self.flow)
        for p in shards.params:
            state = self.optimizer.state.pop(p, None)
            if state is not None:
                piece = self._piece(p)
                self.optimizer.state[shards.shards[id(p)]] = {
                    name: value if name == "step" else value.reshape(-1)[piece].copy() for name, value in state.items()
                }
        for group in self.optimizer.param_groups:
            group["params"] = [shards.shards.get(id(p), p) for p in group["params"]]
        shards.plan(edits)

    def _piece(self, p: Parameter) -> slice:
        assert self.shards is not None
        return slice(*part_edges(math.prod(self.shards.shapes[id(p)]), self.mesh.data_group.size)[self.mesh.data])

    def _forget_flats(self) -> None:
        self.optimizer._flats.clear()
        self.optimizer._is_loaded = True

    def _local_of(self, p: Parameter) -> tuple[Tensor, Any]:
        """What the optimiser changes for a parameter on this rank, and its state there."""
        q = p if self.shards is None else self.shards.shards.get(id(p), p)
        return q, self.optimizer.state.get(q)

    def gathered(self, optimizer: bool = True) -> dict[str, dict[str, Any]] | None:
        """On rank 0, all parameters of the whole model, with the state of the optimiser; None on the others."""
        world, mesh = self.mesh.world, self.mesh
        steps = {}
        for index, held in enumerate(self.held):
            state = self._local_of(held.p)[1]
            if state is not None:
                steps[str(index)] = state["step"]
        known: dict[str, int] = {}
        for one in world.all_gather(steps):
            known |= one
        result: dict[str, dict[str, Any]] = {}
        for index, held in enumerate(self.held):
            shapes = {"": held.shape}
            if optimizer and str(index) in known:
                shapes |= self._buffers(held)
                result.setdefault(held.name, {})["step"] = known[str(index)]
            for kind, shape in shapes.items():
                array = self._collect(held, kind, shape)
                if world.rank == 0:
                    result.setdefault(held.name, {})[kind] = array
        return result if mesh.world.rank == 0 else None

    def _buffers(self, held: Held) -> dict[str, tuple[int, ...]]:
        """The buffers of the optimiser for the whole parameter."""
        shapes = self.optimizer.buffer_shapes(held.p, self._group_of[id(held.p)])
        return dict.fromkeys(shapes, held.shape) if self.optimizer.elementwise else shapes

    def _collect(self, held: Held, kind: str, shape: tuple[int, ...]) -> Any:
        """Send a parameter, or a buffer, to rank 0, which puts it together."""
        mesh, world = self.mesh, self.mesh.world
        is_sharded = self.shards is not None and held.trained
        mine = None
        if mesh.pipeline == held.stages[0] and held.is_on(mesh.pipeline, mesh.tensor):
            q, state = self._local_of(held.p)
            needed = mesh.data == 0 or is_sharded
            cut = held.cut is not None or mesh.tensor == 0
            if needed and cut:
                mine = to_numpy(q.data if not kind else state[kind])
        if world.rank:
            if mine is not None:
                world.send(mine, 0)
            return None
        whole = np.empty(shape, held.p.dtype)
        for tensor in range(mesh.layout.tensor if held.cut is not None else 1):
            local = held.local_shape(tensor) if shape == held.shape else shape
            pieces = []
            for data in range(mesh.shape[0] if is_sharded else 1):
                rank = (data * mesh.layout.pipeline + held.stages[0]) * mesh.layout.tensor + tensor
                pieces.append(self._from(rank, mine, local, held.p.dtype, data, is_sharded))
            part = pieces[0] if not is_sharded else np.concatenate(pieces).reshape(local)
            if held.cut is None or shape != held.shape:
                whole[...] = part
            else:
                held.cut.put(whole, part, tensor)
        return whole

    def _from(self, rank: int, mine: Any, local: tuple[int, ...], dtype: Any, data: int, is_sharded: bool) -> Any:
        if rank == 0:
            return mine
        if is_sharded:
            local = (part_sizes(math.prod(local), self.mesh.shape[0])[data],)
        return self.mesh.world.receive(local, dtype, rank)

    @contextmanager
    def whole(self, optimizer: bool = False) -> Iterator[None]:
        """Inside, rank 0 has the whole model, and if asked for the whole optimiser; the others have theirs."""
        made = self.gathered(optimizer)
        if made is None:
            yield
            return
        kept = [(h.p, h.p.data, h.p.node) for h in self.held]
        states, params = self.optimizer.state, [group["params"] for group in self.optimizer.param_groups]
        self._outer.undo()
        self._edits.undo()
        try:
            for held in self.held:
                held.p.data = made[held.name][""]
            if optimizer:
                self._give_states(made)
            yield
        finally:
            for p, data, node in kept:
                p.data, p.node = data, node
            self.optimizer.state = states
            for group, own in zip(self.optimizer.param_groups, params):
                group["params"] = own
            self._edits.apply()
            self._outer.apply()

    def _give_states(self, made: dict[str, dict[str, Any]]) -> None:
        """Give the optimiser the whole parameters, and their states."""
        for group, own in zip(self.optimizer.param_groups, self._params):
            group["params"] = own
        self.optimizer.state = type(self.optimizer.state)(
            {
                h.p: {name: value for name, value in made[h.name].items() if name}
                for h in self.held
                if "step" in made[h.name]
            }
        )

    def join(self) -> None:
        """Give every rank the whole model and optimiser again."""
        made, world = self.gathered(), self.mesh.world
        names = world.broadcast(None if made is None else {n: [*parts] for n, parts in made.items()})
        steps = world.broadcast(None if made is None else {n: parts.get("step") for n, parts in made.items()})
        self._outer.undo()
        self._edits.undo()
        for held in self.held:
            held.p.requires_grad_(held.trained)
        every: dict[str, dict[str, Any]] = {}
        for held in self.held:
            parts = every[held.name] = {}
            for kind in names[held.name]:
                if kind == "step":
                    parts[kind] = steps[held.name]
                    continue
                shape = held.shape
                if kind:
                    shape = self._buffers(held)[kind]
                array = np.empty(shape, held.p.dtype) if made is None else made[held.name][kind]
                world.broadcast_arrays([array])
                parts[kind] = array
            set_data(held.p, parts[""])
        self._give_states(every)
        self.shards = None
        self._forget_flats()

    # What follows happens in every step.

    def loss(self, loss: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """The loss, computed by the divided model."""

        def divided(model: Any, batch: Any) -> Any:
            self.flow.begin()
            return loss(model, batch)

        for name in ("units", "unit", "couples_batch"):
            if hasattr(loss, name):
                setattr(divided, name, getattr(loss, name))
        return divided

    def reduce_gradients(self) -> None:
        """Sum the gradients over the ranks that hold the same parameters; one that no rank has used keeps none."""
        mesh, shards = self.mesh, self.shards
        before = [  # what the backward gave gradients
            self._local_of(h.p)[0] if shards is not None and shards.is_just_in_time(h.p) else h.p for h in self.held
        ]
        votes = np.array([float(q.node is not None and q.node.grad is not None) for q in before])
        mesh.world.all_reduce([votes])
        here = [
            (h, q)
            for h, q, vote in zip(self.held, before, votes)
            if vote and q.node is not None and h.is_on(mesh.pipeline, mesh.tensor)
        ]
        grads = {id(h): _gradient(q) for h, q in here}
        if mesh.layout.tensor > 1:
            mesh.tensor_group.all_reduce([grads[id(h)] for h, _ in here if h.summed])
        if shards is None:
            mesh.data_group.all_reduce([*grads.values()])
        else:
            grads |= {id(h): shards.reduced(h.p) for h, _ in here if not shards.is_just_in_time(h.p)}
        for stages, group in self._ties.items():
            if mesh.pipeline in stages:
                group.all_reduce([grads[id(h)] for h, _ in here if h.stages == stages])

    def present(self) -> AbstractContextManager[None]:
        """Inside, weights outside of blocks are there: for a step, or for an evaluation."""
        return nullcontext() if self.shards is None else self.shards.present()

    def grad_norm(self) -> float:
        """The norm of the gradient of the whole model."""
        mesh = self.mesh
        counted = [
            self._local_of(h.p)[0]
            for h in self.held
            if h.is_on(mesh.pipeline, mesh.tensor) and h.is_counted(mesh.pipeline, mesh.tensor)
        ]
        square = np.array([grad_norm(counted) ** 2], np.float64)
        (mesh.world if self.shards is not None else mesh.model_group).all_reduce([square])
        return float(mesh.world.broadcast(math.sqrt(square[0])))

    def memory(self) -> dict[str, int]:
        """The bytes of the arrays of weights and of the optimiser's state on this rank; what is hollow takes none."""
        mine = [self._local_of(h.p) for h in self.held if h.is_on(self.mesh.pipeline, self.mesh.tensor)]
        whole = self.shards is not None and self.shards.level < 3
        weights = [h.p for h in self.held] if whole else [q for q, _ in mine]
        return {
            "parameters": sum(p.data.nbytes for p in weights if any(p.data.strides)),
            "optimizer": sum(
                array.nbytes for _, state in mine for name, array in (state or {}).items() if name != "step"
            ),
        }

    def after_step(self) -> None:
        """Gather what other ranks have changed."""
        if self.shards is not None:
            self.shards.gather()


def holdings(
    model: Module, mesh: Mesh, counts: Sequence[int], phases: dict[str, list[int]], flow: Flow, edits: Edits
) -> list[Held]:
    """Who holds which part of each parameter of a whole model; `edits` get what is to be changed on this rank."""
    plan = plan_tensor(model, mesh, flow, edits)
    return [
        Held(name, p, p.shape, plan.cuts.get(id(p)), stages, id(p) in plan.first, id(p) in plan.summed, p.requires_grad)
        for (name, p), stages in zip(model.named_parameters(), _stages(model, counts, phases))
    ]


def _stages(model: Module, counts: Sequence[int], phases: dict[str, list[int]]) -> Iterator[tuple[int, ...]]:
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
        used = {of_block[min(phase, last)] for phase in phases.get(name, [])} if blocks else {0}
        yield tuple(sorted(of_param.get(id(p)) or used or {0}))


def _gradient(q: Tensor) -> Any:
    """The gradient on this rank, zeros where no row has used the parameter; it is about to be written to."""
    node = q.node
    assert node is not None
    if node.grad is None:
        node.grad = np.zeros(q.shape, q.dtype)
    writes.mark(node.grad)
    return node.grad
