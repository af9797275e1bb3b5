"""Derivatives as in JAX: functions that take a function and return its derivative."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from .. import tree
from ..autograd import grad as _grad
from ..engine.backend import backend_of, duplicate, on_device_of
from ..engine.call import check_fresh, record
from ..engine.graph import Node, collect, leaf, sweep
from ..engine.modes import enable_grad, local, notify
from ..engine.op import op
from ..engine.tensor import Tensor, wrap
from ..engine.writes import tick
from ..errors import ArgumentError, DtypeError, GradientError, describe
from ..ops.creation import tensor
from ..ops.indexing.inplace import shows_a_leaf
from ..ops.layout.joining import stack
from ..random import Draws, draws, replay

_GOLDEN = 5**0.5 / 2 - 0.5  # whose multiples, without their whole parts, are spread evenly

__all__ = ["grad", "hessian", "jacrev", "recompute", "value_and_grad", "vjp"]


def value_and_grad(
    f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns both `f(...)`, a scalar, and its gradient for the chosen arguments.

    An argument may be a Tensor, a number, an array, or nested lists, tuples and dicts of them; its gradient
    has the same form. With `has_aux`, `f` returns `(value, anything)` and so does the new function.

    >>> import minigrad as mg
    >>> value, slope = mg.value_and_grad(lambda x: x ** 2)(3.0)
    >>> value.item(), slope.item()
    (9.0, 6.0)
    """

    check_transform("grad", f, argnums)

    @wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        start = tick()
        given, chosen = with_inputs(args, argnums)
        with enable_grad():
            result = f(*given, **kwargs)
        value, aux = result if has_aux else (result, None)
        if not isinstance(value, Tensor) or value.size != 1:
            raise GradientError(
                "grad: the function must return a scalar",
                "a Tensor with one element",
                f"shape {value.shape}" if isinstance(value, Tensor) else type(value).__name__,
                "reduce it with .sum() or .mean(), or use mg.jacobian",
            )
        inputs = list(tree.leaves(chosen))
        again = _reaches_outside(value, inputs, start)
        shaped = tree.unflatten(chosen, _filled(value, inputs, None, again))
        answer = shaped[0] if isinstance(argnums, int) else tuple(shaped)
        if again:
            shown = value
        else:
            shown, aux = value.detach(), tree.map(lambda x: x.detach() if isinstance(x, Tensor) else x, aux)
        return ((shown, aux), answer) if has_aux else (shown, answer)

    return differentiated


def grad(f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of the scalar function `f`; apply it twice for the second derivative.

    >>> import minigrad as mg
    >>> mg.grad(mg.grad(lambda x: x ** 3))(2.0).item()
    12.0
    """
    both = value_and_grad(f, argnums, has_aux)

    @wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        value, answer = both(*args, **kwargs)
        return (answer, value[1]) if has_aux else answer

    return differentiated


def vjp(f: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[[Any], tuple[Tensor, ...]]]:
    """`f(*primals)`, and a function that takes a gradient of that output to the gradients of the primals.

    >>> import minigrad as mg
    >>> y, pull = mg.vjp(lambda x: x * x, mg.tensor([1.0, 2.0]))
    >>> pull(mg.ones(2))[0]
    tensor([2., 4.])
    """
    start = tick()
    args, inputs = with_inputs(primals, range(len(primals)))
    with enable_grad():
        out = f(*args)
    again = any(_reaches_outside(o, inputs, start) for o in outputs_of(out))

    def pull(g: Any) -> tuple[Tensor, ...]:
        return tuple(_filled(out, inputs, g, again, retain_graph=True))

    shown = out if again else out.detach() if isinstance(out, Tensor) else tuple(o.detach() for o in out)
    return shown, pull


def jvp_by_gradients(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """`f(*primals)`, and how it changes along `tangents`, by differentiating its gradient, which is linear in its seed.

    Every function has it, but its graph is kept meanwhile: `forward` uses it for single ops.
    """
    start = tick()
    args, inputs = with_inputs(primals, range(len(primals)))
    xs, directions = list(tree.leaves(inputs)), list(tree.leaves(tangents))
    with enable_grad():
        out = f(*args)
        outs = outputs_of(out)
        again = any(_reaches_outside(o, xs, start) for o in outs) or any(t.node is not None for t in directions)
        seeds = [zeros_like(o).requires_grad_() if o.dtype.kind == "f" else None for o in outs]
        pairs = [(o, s) for o, s in zip(outs, seeds) if s is not None and o.node is not None]
        pulled = _grad([o for o, _ in pairs], xs, [s for _, s in pairs], create_graph=True, allow_unused=True)
        used = [(p, t) for p, t in zip(pulled, directions) if p is not None and p.node is not None]
        given = [s for s in seeds if s is not None]
        pushed = iter(_filled([p for p, _ in used], given, [t for _, t in used], again) if used else given)
    found = [zeros_like(o) if s is None else next(pushed) if used else s.detach() for o, s in zip(outs, seeds)]
    if not again:
        outs = [o.detach() for o in outs]
    return (outs[0], found[0]) if isinstance(out, Tensor) else (tuple(outs), tuple(found))


def jacrev(f: Callable[..., Tensor], argnums: int = 0) -> Callable[..., Tensor]:
    """A function that returns all derivatives of `f` for one argument, by reverse mode: shape (*output, *input).

    One sweep for each element of the output; `mg.jacfwd` makes one pass for each element of the input.

    >>> import minigrad as mg
    >>> mg.jacrev(lambda x: x * x)(mg.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    check_transform("jacrev", f, argnums, several=False)

    @wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Tensor:
        start = tick()
        given, (x,) = with_inputs(args, (argnums,))
        if not isinstance(x, Tensor):
            raise ArgumentError("jacrev: the argument must be one tensor", "a Tensor or an array", type(x).__name__)
        with enable_grad():
            out = f(*given, **kwargs)
            again = _reaches_outside(out, [x], start)
            xp = backend_of(out.data).xp
            rows = []
            for i in range(out.size):
                with on_device_of(out.data):
                    flat = xp.zeros(out.size, out.dtype)
                    flat[i] = 1
                seed = flat.reshape(out.shape)
                notify("created", seed)
                rows.append(_filled(out, [x], wrap(seed), again, retain_graph=True)[0])
            if not rows:
                return wrap(backend_of(out.data).full((*out.shape, *x.shape), 0, out.dtype, out.device))
            return stack(rows).reshape(*out.shape, *x.shape)

    return differentiated


def hessian(f: Callable[..., Tensor], argnums: int = 0) -> Callable[..., Tensor]:
    """A function that returns all second derivatives of the scalar function `f`: shape (*input, *input).

    >>> import minigrad as mg
    >>> mg.hessian(lambda x: (x ** 3).sum())(mg.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    check_transform("hessian", f, argnums, several=False)
    return jacrev(grad(f, argnums), argnums)


def recompute(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` without keeping its intermediate values for the backward, which computes them again.

    Gradients, also of tensors in the closure of `f`, and random draws are the same as without it.

    >>> import minigrad as mg
    >>> x = mg.tensor(0.5, requires_grad=True)
    >>> mg.recompute(lambda x: x.exp().sin())(x).backward()
    >>> round(x.grad.item(), 4)
    -0.1283
    """

    @wraps(f)
    def lean(*args: Any, **kwargs: Any) -> Any:
        if not local.mode.record:
            return f(*args, **kwargs)
        drawn, start = draws(), tick()
        result = f(*args, **kwargs)
        outs = outputs_of(result)
        boundary = older([o.node for o in outs if o.node is not None], start)
        if not boundary:
            return result

        seen = [_fingerprint(o.data) for o in outs]

        def run(g: Sequence[Any]) -> list[Any]:
            return _rerun(f, args, kwargs, drawn, boundary, seen, g)

        arrays = [x.data for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
        given = tuple([duplicate(o.data) if shows_a_leaf(o) else o.data for o in outs])
        made = record(_recompute, given, arrays, boundary, -1, {"run": run})
        return made[0] if isinstance(result, Tensor) else made

    return lean


@op(several=True)
def _recompute(xp: Any, *inputs: Any, run: Any) -> Any:
    """The node of a recomputed function in the graph."""
    raise NotImplementedError("recompute builds its node itself")


_recompute.vjp(lambda g, run, inputs: run(g))


def _rerun(
    f: Callable[..., Any], args: Any, kwargs: Any, drawn: Draws, boundary: list[Node], seen: list[Any], g: Sequence[Any]
) -> list[Any]:
    """Run `f` again as before, and propagate the gradients of its outputs to its inputs."""
    create_graph = any(isinstance(part, Tensor) for part in g)
    with replay(drawn), enable_grad():
        outs = outputs_of(f(*args, **kwargs))
    if not all(_is_same(_fingerprint(o.data), was) for o, was in zip(outs, seen)):
        raise GradientError(
            "recompute: run again for the backward, the function gave other values",
            fix="what it reads must not be written to before the backward, nor by itself, and no other thread may draw random numbers",
        )
    seeds = [(o.node, part) for o, part in zip(outs, g) if o.node is not None]
    results = sweep(seeds, set(boundary), create_graph, quiet=True)
    return [results.get(node) for node in boundary]


@np.errstate(all="ignore")
def _fingerprint(array: Any) -> tuple[float, float]:
    """The norm of an array, and the sum of its elements times weights of their places, which a permutation changes."""
    xp = backend_of(array).xp
    with on_device_of(array):
        rows = array.astype("float64").reshape(-1, array.shape[-1] if array.ndim and array.size else 1)
        rows = xp.where(xp.isfinite(rows), rows, 1.0)
        weights = [1 + (xp.arange(n) * _GOLDEN) % 1 for n in rows.shape]
        return float((rows * rows).sum()) ** 0.5, float(weights[0] @ rows @ weights[1])


def _is_same(now: tuple[float, float], before: tuple[float, float]) -> bool:
    """Whether two fingerprints agree, but for rounding."""
    return bool(np.allclose(now, before, rtol=0, atol=1e-5 * before[0]))


def older(roots: list[Node], start: int) -> list[Node]:
    """The nodes older than `start` that `roots` depend on."""
    seen, waiting, found = set(roots), list(roots), []
    while waiting:
        node = waiting.pop()
        if node.time < start:
            found.append(node)
            continue
        for parent in node.parents:
            if parent is not None and parent not in seen:
                seen.add(parent)
                waiting.append(parent)
    return found


def outputs_of(out: Any) -> list[Tensor]:
    outs = [out] if isinstance(out, Tensor) else list(out) if isinstance(out, (tuple, list)) else [out]
    if not all(isinstance(o, Tensor) for o in outs):
        raise DtypeError("the function must return a Tensor or a tuple of Tensors", got=type(out).__name__)
    return outs


@op(view=True)
def _alias(xp: Any, a: Any) -> Any:
    """The same values with a new node, so that they can be differentiated with respect to."""
    return a[...]  # not `a` itself: what looks at memory of another is told by its base


_alias.vjp(a=lambda g: g)


def _as_inputs(value: Any) -> Any:
    """`value` with every number in it as a Tensor whose gradient can be asked for; a list of numbers becomes one."""
    return tree.map(as_input, value, is_leaf=_is_list_of_numbers)


def _is_list_of_numbers(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(item, (bool, int, float, complex)) for item in value)


def as_input(value: Any) -> Tensor:
    x = value if isinstance(value, Tensor) else tensor(value)
    if x.dtype.kind != "f":
        raise DtypeError(
            "grad: only floating arguments have a derivative",
            "float16, float32 or float64",
            x.dtype.name,
            "write 3.0 rather than 3, or use x.astype('float32')",
        )
    with enable_grad():
        if x.node is not None:
            return _alias(x)
        check_fresh("grad", [x.data], [None])
        return wrap(x.data, leaf(x.data))


def check_transform(name: str, f: Any, argnums: Any, several: bool = True) -> None:
    """A transform takes a function and returns one; give the arguments to that."""
    if isinstance(f, Tensor):
        raise ArgumentError(
            f"{name}: this takes a function, not a result",
            f"mg.{name}(f)(x)",
            "a Tensor",
            "or use mg.autograd.grad(y, x)",
        )
    numbers = [argnums] if not isinstance(argnums, (list, tuple, range)) else argnums
    if not callable(f) or not all(type(n) is int for n in numbers) or numbers is argnums and not several:
        expected = "an int or a tuple of ints" if several else "an int"
        raise ArgumentError(
            f"{name}: argnums says which arguments to differentiate", expected, describe(argnums), f"mg.{name}(f)(x)"
        )


def with_inputs(args: Sequence[Any], argnums: int | Sequence[int]) -> tuple[list[Any], list[Any]]:
    """The arguments, those to differentiate as inputs of a graph, and these alone."""
    numbers = [argnums] if isinstance(argnums, int) else list(argnums)
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise ArgumentError(f"there is no argument {n} to differentiate", f"argnums below {len(args)}", n)
    made = list(args)
    for n in numbers:
        made[n] = _as_inputs(args[n])
    return made, [made[n] for n in numbers]


def _reaches_outside(out: Tensor, inputs: Sequence[Tensor], start: int) -> bool:
    """Whether the result must stay differentiable, since it depends on tensors that the caller may differentiate."""
    if out.node is None or not local.mode.record:
        return False
    own = {x.node for x in inputs}
    nodes = [out.node, *(p for n in collect([out.node]) for p in n.parents if p is not None)]
    return any(n.time < start and n not in own for n in nodes)


def _filled(
    outs: Any, inputs: Sequence[Tensor], seeds: Any, create_graph: bool, retain_graph: bool = False
) -> list[Tensor]:
    """Gradients, with zeros for inputs that the output does not depend on."""
    grads = _grad(outs, inputs, seeds, create_graph, retain_graph, allow_unused=True)
    return [zeros_like(x) if g is None else g for g, x in zip(grads, inputs)]


def zeros_like(x: Tensor) -> Tensor:
    zeros = backend_of(x.data).full(x.shape, 0, x.dtype, x.device)
    notify("created", zeros)
    return wrap(zeros)
