"""L-BFGS, which approximates Newton's method from the last changes of the gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...engine.backend import Array, backend_of, on_device_of
from ...engine.modes import enable_grad, local
from ...engine.tensor import Tensor, wrap
from ...engine.writes import writes
from ...errors import ArgumentError, CallError
from ..optimizer import Group, Optimizer
from ..saved_state import like, misfit, parts, restored
from .line_search import Point, strong_wolfe

__all__ = ["LBFGS"]


@dataclass
class Memory:
    """What a later step needs of those before."""

    iterations: int = 0
    evaluations: int = 0
    t: float = 0.0  # the length of the last move, along `direction`
    scale: float = 1.0  # of the first approximation of the inverse Hessian
    direction: Any = None
    gradient: Any = None  # before the last move
    changes: list[Any] = field(default_factory=list)  # of the gradient, oldest first
    moves: list[Any] = field(default_factory=list)  # of the weights, that led to them
    products: list[float] = field(default_factory=list)  # 1 / (change · move)


class LBFGS(Optimizer):
    """Limited-memory BFGS (Nocedal 1980), as PyTorch's: Newton's step with the Hessian of the last `history_size` moves.

    `step(closure)` takes up to `max_iter` moves; `closure()` clears the gradients, computes the loss, calls backward, and
    returns the loss. With line_search_fn="strong_wolfe" it searches along each direction, without one it moves by `lr`.
    It is for losses without chance, of whole batches: it compares gradients of different moves. So the Trainer, loss scaling
    and compiled steps do not go with it (a compiled loss inside the closure does).

    >>> import minigrad as mg
    >>> x = mg.tensor([-1.5, 2.0], dtype="float64", requires_grad=True)
    >>> optimizer = mg.optim.LBFGS([x], line_search_fn="strong_wolfe", max_iter=50)
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    ...     loss.backward()
    ...     return loss
    >>> loss = optimizer.step(closure)
    >>> x.detach().round(decimals=4)
    tensor([1., 1.], dtype=float64)
    """

    elementwise = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        **unknown: Any,
    ):
        options = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        self.memory = Memory()
        super().__init__(params, options, unknown)

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Take the one group that there can be."""
        if self.param_groups:
            raise ArgumentError(
                "LBFGS: there can be only one group", "parameters that share all options", "a second group"
            )
        super().add_param_group(group)
        params = self.param_groups[0]["params"]
        kinds = {(p.dtype, p.device) for p in params}
        if len(kinds) > 1:
            raise ArgumentError(
                "LBFGS: all parameters must have one dtype and device", "one of each", sorted(map(str, kinds))
            )

    def buffers(self, group: Group) -> tuple[str, ...]:
        return ()

    @property
    def _params(self) -> list[Tensor]:
        return list(self.param_groups[0]["params"])

    @np.errstate(all="ignore")
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]  # it needs the loss itself
        """Take up to `max_iter` moves, and return the loss before the first."""
        if not callable(closure):
            raise CallError(
                "LBFGS: a step needs a function that computes the loss",
                "step(closure)",
                "no function",
                "def closure(): optimizer.zero_grad(); loss = …; loss.backward(); return loss",
            )
        if any(tracer.symbolic for tracer in local.mode.tracers):
            raise CallError(
                "LBFGS: a step cannot be compiled, for the number of its moves depends on the loss",
                fix="compile the loss inside the closure",
            )
        with on_device_of(self._params[0].data):
            return _Minimisation(self, closure).run()

    def state_dict(self) -> dict[str, dict[str, Any]]:
        """All that a later run needs, as of every optimiser; the arrays are those of all parameters, one after the other."""
        state, kept = super().state_dict(), self.memory
        for name in ("direction", "gradient"):
            if (array := getattr(kept, name)) is not None:
                state["arrays"][name] = wrap(array)
        for name in ("changes", "moves"):
            state["arrays"] |= {f"{name}.{i}": wrap(array) for i, array in enumerate(getattr(kept, name))}
        numbers = {name: getattr(kept, name) for name in ("iterations", "evaluations", "t", "scale", "products")}
        state["values"]["memory"] = {**numbers, "products": list(kept.products)}
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a state; if anything does not fit, nothing is changed."""
        values, arrays = parts("LBFGS", state)
        numbers = values.get("memory")
        groups, _ = restored(self, {"arrays": {}, "values": {k: v for k, v in values.items() if k != "memory"}})
        if not isinstance(numbers, Mapping) or not isinstance(numbers.get("products"), list):
            raise misfit("LBFGS", "it has no memory of the moves so far")
        count = len(numbers["products"])
        single = ["direction", "gradient"] if numbers.get("iterations") else []
        lists = {name: [f"{name}.{i}" for i in range(count)] for name in ("changes", "moves")}
        if arrays.keys() != {*single, *lists["changes"], *lists["moves"]}:
            raise misfit("LBFGS", "it has other arrays", f"{count} changes and moves", ", ".join(arrays))
        first, size = self._params[0], sum(p.size for p in self._params)
        found = {name: like("LBFGS", name, first, array, (size,)) for name, array in arrays.items()}
        try:
            memory = Memory(**dict(numbers), **{name: found[name] for name in single})
        except TypeError:
            raise misfit("LBFGS", "its memory holds other values", got=", ".join(map(str, numbers))) from None
        memory.changes, memory.moves = ([found[name] for name in lists[kind]] for kind in ("changes", "moves"))
        params = self._params
        self.param_groups[0].clear()
        self.param_groups[0].update(params=params, **groups[0])
        self.memory = memory


class _Minimisation:
    """One step: the moves until the loss, the gradient or the weights no longer change, or enough were made."""

    def __init__(self, optimizer: LBFGS, closure: Callable[[], Any]):
        self.group, self.memory, self.params = optimizer.param_groups[0], optimizer.memory, optimizer._params
        self.closure = closure
        self.xp = backend_of(self.params[0].data).xp

    def run(self) -> Any:
        first, loss, gradient = self._evaluate()
        group, evaluations = self.group, 1
        for count in range(1, group["max_iter"] + 1):
            if self._largest(gradient) <= group["tolerance_grad"]:
                break
            before, direction = loss, self._direction(gradient)
            slope = float(gradient @ direction)
            if slope > -group["tolerance_change"]:
                break
            loss, gradient, more = self._move(
                Point(0.0, loss, gradient, slope), evaluations, count == group["max_iter"]
            )
            evaluations += more
            if evaluations >= group["max_eval"]:
                break
            if self._largest(direction) * abs(self.memory.t) <= group["tolerance_change"]:
                break
            if abs(loss - before) < group["tolerance_change"]:
                break
        return first

    def _largest(self, array: Array) -> float:
        return float(self.xp.abs(array).max())

    def _evaluate(self) -> tuple[Any, float, Array]:
        """What the closure returns, the loss as a number, and the gradients one after the other."""
        with enable_grad():
            given = self.closure()
        self.memory.evaluations += 1
        parts = [
            self.xp.zeros(p.size, p.dtype) if p.node is None or p.node.grad is None else p.node.grad.reshape(-1)
            for p in self.params
        ]
        return given, float(given), self.xp.concatenate(parts)

    def _direction(self, gradient: Array) -> Array:
        """Minus the gradient times the approximate inverse Hessian, by the two loops over the moves so far."""
        kept = self.memory
        kept.iterations += 1
        if kept.iterations == 1:
            kept.t = min(1.0, 1.0 / float(self.xp.abs(gradient).sum())) * self.group["lr"]
            kept.direction, kept.gradient = -gradient, gradient.copy()
            return kept.direction
        self._remember(gradient - kept.gradient, kept.direction * kept.t)
        steps, shares = -gradient, []
        past = list(zip(kept.changes, kept.moves, kept.products))
        for change, move, product in reversed(past):
            shares.append(float(move @ steps) * product)
            steps -= shares[-1] * change
        steps *= kept.scale
        for (change, move, product), share in zip(past, reversed(shares)):
            steps += (share - float(change @ steps) * product) * move
        kept.t, kept.direction, kept.gradient = self.group["lr"], steps, gradient.copy()
        return steps

    def _remember(self, change: Array, move: Array) -> None:
        """Keep a move if the loss curves upwards along it."""
        kept, product = self.memory, float(change @ move)
        if product <= 1e-10:
            return
        for past, new in ((kept.changes, change), (kept.moves, move), (kept.products, 1.0 / product)):
            past.append(new)
            del past[: -self.group["history_size"]]
        kept.scale = product / float(change @ change)

    def _move(self, start: Point, evaluations: int, is_last: bool) -> tuple[float, Array, int]:
        """Move the weights; the loss and the gradient there, and how often they were evaluated."""
        kept = self.memory
        if self.group["line_search_fn"] is None:
            self._shift(kept.t)
            if is_last:  # nobody will look at them
                return start.loss, start.gradient, 0
            _, loss, gradient = self._evaluate()
            return loss, gradient, 1
        begin = [p.data.copy() for p in self.params]

        def evaluate(t: float) -> Point:
            self._shift(t)
            _, loss, gradient = self._evaluate()
            for p, data in zip(self.params, begin):
                p.data[...] = data
            return Point(t, loss, gradient, float(gradient @ kept.direction))

        limit = self.group["max_eval"] - evaluations
        point, count = strong_wolfe(evaluate, start, kept.t, self._largest(kept.direction), limit)
        kept.t = point.t
        self._shift(point.t)
        return point.loss, point.gradient, count

    def _shift(self, t: float) -> None:
        """Add t times the direction to the weights."""
        place = 0
        for p in self.params:
            p.data[...] += t * self.memory.direction[place : place + p.size].reshape(p.shape)
            place += p.size
        writes.mark_all([p.data for p in self.params])
