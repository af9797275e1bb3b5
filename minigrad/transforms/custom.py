"""Functions with derivatives of their own: rules given by hand, and fixed points, whose derivative is implicit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

from .. import tree
from ..engine.backend import duplicate, on_device_of
from ..engine.call import record
from ..engine.graph import Node, check_usable, collect, sweep
from ..engine.modes import enable_grad, local, no_grad, notify
from ..engine.op import op
from ..engine.tensor import Tensor, node_of, wrap
from ..engine.writes import tick
from ..errors import ArgumentError, GradientError, describe
from ..ir.trace import TraceError, Tracing
from ..ops.creation import tensor
from ..ops.indexing.inplace import shows_a_leaf
from .reverse import as_input, older, outputs_of

__all__ = ["custom_vjp", "fixed_point"]


@op(several=True)
def _custom(xp: Any, *inputs: Any, run: Any) -> Any:
    """The node of a function that has its own derivative."""
    raise NotImplementedError("custom_vjp and fixed_point build their nodes themselves")


_custom.vjp(lambda g, run, inputs: run(g))


class custom_vjp:
    """A function whose gradient is given by hand: `f.defvjp(forward, backward)`.

    `forward(*args)` returns the result and whatever `backward(kept, g)` needs to return one gradient, or None, for each
    argument. Both are made of ops, so the gradient can be differentiated again.

    >>> import minigrad as mg
    >>> @mg.custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda kept, g: (mg.clip(g, -1, 1),))
    >>> mg.grad(lambda x: clipped(x) * 5)(mg.tensor(2.0)).item()
    1.0
    """

    def __init__(self, function: Callable[..., Any]):
        if not callable(function):
            raise ArgumentError("custom_vjp: this takes a function", "@mg.custom_vjp", describe(function))
        update_wrapper(self, function)
        self.function = function
        self.forward: Callable[..., Any] | None = None
        self.backward: Callable[..., Any] | None = None

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """Give the two halves of the derivative."""
        self.forward, self.backward = forward, backward

    def __call__(self, *args: Any) -> Any:
        if not local.mode.record:
            return self.function(*args)
        if self.forward is None or self.backward is None:
            raise GradientError("custom_vjp: no derivative was given", fix="f.defvjp(forward, backward)")
        start = tick()
        result, kept = self.forward(*args)
        outs = outputs_of(result)
        given = [(i, x) for i, x in enumerate(args) if isinstance(x, Tensor) and x.node is not None]
        if not given:
            return result
        own = {x.node for _, x in given}
        _check_traced("custom_vjp", [x.node for _, x in given if x.node is not None])
        if any(node not in own for node in older([o.node for o in outs if o.node is not None], start)):
            raise GradientError(
                "custom_vjp: the function uses a tensor that requires a gradient besides its arguments",
                "arguments alone",
                fix="pass it as an argument, or detach() it",
            )
        backward, count, is_one = self.backward, len(args), isinstance(result, Tensor)

        def run(g: Any) -> list[Any]:
            again = any(isinstance(part, Tensor) for part in g)
            seeds = tuple([part if isinstance(part, Tensor) else wrap(part) for part in g])
            with enable_grad() if again else no_grad():
                found = backward(kept, seeds[0] if is_one else seeds)
            if not isinstance(found, (tuple, list)) or len(found) != count:
                got = len(found) if isinstance(found, (tuple, list)) else describe(found)
                raise GradientError("custom_vjp: one gradient for each argument is needed", f"a tuple of {count}", got)
            return [found[i] if again or found[i] is None else found[i].data for i, _ in given]

        read = [x for x in tree.leaves((args, kept)) if isinstance(x, Tensor)]
        return _recorded(outs, [x.node for _, x in given], run, is_one, read)


def _recorded(
    outs: list[Tensor], parents: list[Any], run: Callable[[Any], list[Any]], is_one: bool, read: Sequence[Tensor] = ()
) -> Any:
    """The outputs with a node whose gradients are those of `run`, refused once one of the Tensors it will `read` was written to."""
    arrays = [*[None] * len(parents), *[x.data for x in read]]
    others = [None] * len(read)
    given = tuple([duplicate(o.data) if shows_a_leaf(o) else o.data for o in outs])
    made = record(_custom, given, arrays, [*parents, *others], -1, {"run": lambda g: [*run(g), *others]})
    return made[0] if is_one else made


def _check_traced(name: str, nodes: list[Node]) -> None:
    """Refuse to become a part of a traced graph that is differentiated later: it has the ops of the function, not its rule."""
    for tracer in local.mode.tracers:
        if isinstance(tracer, Tracing) and older(nodes, tracer.start):
            raise TraceError(
                f"compile: {name} has a derivative of its own, which a traced function does not keep",
                "arguments that require no gradient",
                fix="leave it out of the compiled function, or take the gradient inside that",
            )


def fixed_point(f: Callable[..., Tensor], x: Any, *args: Any, tolerance: float = 1e-6, max_steps: int = 1000) -> Tensor:
    """The `x` with `f(x, *args) = x`, found by applying `f` again and again from the given one.

    Its gradient does not go back through these steps: with `J` the derivative of `f` for `x` at the solution, it solves
    `w = g + Jᵀ w` in the same way, and passes `w` through one application of `f` to all that requires a gradient.

    >>> import minigrad as mg
    >>> root = lambda a: mg.fixed_point(lambda x, a: (x + a / x) / 2, mg.tensor(1.0), a)
    >>> round(mg.grad(root)(mg.tensor(4.0)).item(), 4)
    0.25
    """
    options: Any = {"tolerance": tolerance, "max_steps": max_steps}
    with no_grad():
        found = _repeat(lambda x: f(x, *args), (x if isinstance(x, Tensor) else tensor(x)).detach(), **options)
    if not local.mode.record:
        return found
    start = tick()
    kept = as_input(found)
    once = f(kept, *args)
    boundary = older([once.node], start) if once.node is not None else []
    if not boundary:
        return found

    def run(g: Any) -> list[Any]:
        (seed,) = g
        again = isinstance(seed, Tensor)
        point, out = kept, once
        if again:  # the solution itself is differentiated too
            check_usable(collect([node_of(once, "fixed_point")], boundary))
            with enable_grad():
                point = as_input(fixed_point(f, found, *args, **options))
                out = f(point, *args)

        def pulled(w: Any, targets: set[Any]) -> Any:
            return sweep([(out.node, w)], {*targets, point.node}, again, retain_graph=True, quiet=True)

        def improved(w: Any) -> Any:
            back = pulled(w, set()).get(point.node)
            return seed if back is None else seed + back

        grads = pulled(_repeat(improved, seed, **options), set(boundary))
        return [grads.get(node) for node in boundary]

    return _recorded([found], boundary, run, is_one=True)


def _repeat(f: Callable[[Any], Any], x: Any, tolerance: float, max_steps: int) -> Any:
    """Apply `f` until its result is no longer another; refused where it does not come to rest."""
    for _ in range(max_steps):
        new = f(x)
        change, size = _largest(new - x), _largest(new)
        if size < math.inf and change <= tolerance * (1 + size):
            return new
        if not change < math.inf:
            break
        x = new
    raise ArgumentError(
        "fixed_point: the steps do not come to rest",
        f"changes below {tolerance:g}, within {max_steps} steps",
        f"a change of {change:g} in the last one",
        "begin nearer, or damp the function: 0.5 * x + 0.5 * f(x)",
    )


def _largest(x: Any) -> float:
    if isinstance(x, Tensor):
        notify("read", x, "fixed_point")
    data = x.data if isinstance(x, Tensor) else x
    with on_device_of(data):
        return float(abs(data).max()) if data.size else 0.0
