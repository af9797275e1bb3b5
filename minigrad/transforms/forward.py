"""Forward mode: how the result of a function changes when its arguments move, step by step along with the result itself.

Nothing is kept for a backward: an intermediate value and its tangent are let go after their last use, so the memory that is
needed does not grow with the depth. The tangent of one op follows from its gradient rules:

- element by element, the rule applied to the tangent in the place of the gradient: both multiply by the same slopes;
- for the only input, or a factor, whose rule names neither this input nor the output, the op is linear in it: the op of the tangent;
- otherwise by differentiating the gradient of this one op, which is linear in its seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np

from .. import tree
from ..engine.backend import as_array, backend_of, on_device_of
from ..engine.modes import local, notify
from ..engine.tensor import Tensor, wrap
from ..engine.writes import tick, writes
from ..errors import ArgumentError, GradientError, ShapeError, describe
from ..functions import astype, broadcast_to
from ..ir.graph import Value, run_step
from ..ops.creation import tensor
from ..ops.layout.joining import stack
from ..random import draws, replay
from ..signature import missing_rule, names_of
from .reverse import check_transform, grad, jacrev, jvp_by_gradients, with_inputs, zeros_like
from .traced import Place, Traced, TraceError, last_uses, trace_by_shape

__all__ = ["hvp", "jacfwd", "jacobian", "jvp", "linearize"]

_PRODUCTS = {"matmul", "convolve", "reshape", "transpose", "broadcast_to", "sum", "getitem"}  # 0 gives 0


def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """`f(*primals)`, and how it changes when the primals move along `tangents`, in one pass forward.

    A function in which Python looks at values is differentiated by its gradient instead, which keeps its graph.

    >>> import minigrad as mg
    >>> mg.jvp(lambda x: x * x, (mg.tensor(3.0),), (mg.tensor(1.0),))[1].item()
    6.0
    """
    given, moves = _checked("jvp", primals, tangents)
    try:
        return _pushed(_traced(f, given), given, moves)
    except TraceError:
        return jvp_by_gradients(f, given, moves)


def linearize(f: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """`f(*primals)`, and the function that says how it changes along tangents; `f` is traced once.

    >>> import minigrad as mg
    >>> y, push = mg.linearize(lambda x: x ** 3, mg.tensor(2.0))
    >>> y.item(), push(mg.tensor(1.0)).item(), push(mg.tensor(0.5)).item()
    (8.0, 12.0, 6.0)
    """
    start = tick()
    given, still = _checked("linearize", primals, primals)
    try:
        traced = _traced(f, given)
    except TraceError:
        drawn = draws()

        def push_by_gradients(*tangents: Any) -> Any:
            """Run `f` again, with the random numbers that it drew."""
            with replay(drawn):
                return jvp_by_gradients(f, *_checked("linearize", given, tangents))[1]

        return f(*given), push_by_gradients
    out, _ = _pushed(traced, given, [None] * len(still))

    def push(*tangents: Any) -> Any:
        leaves = list(tree.leaves(given))
        for x in [leaves[x] if isinstance(x, Place) else x for x in traced.inputs]:
            if writes.time(_array(x)) > start:
                raise GradientError(
                    "linearize: a tensor that the function reads was overwritten in place since it was linearized",
                    got=describe(x),
                    fix="linearize it again, or write into a copy (x = x.clone())",
                )
        return _pushed(traced, *_checked("linearize", given, tangents))[1]

    return out, push


def jacfwd(f: Callable[..., Tensor], argnums: int = 0) -> Callable[..., Tensor]:
    """A function that returns all derivatives of `f` for one argument, by forward mode: shape (*output, *input).

    One pass for each element of the input: the better way where there are fewer of them than of the output.

    >>> import minigrad as mg
    >>> mg.jacfwd(lambda x: mg.stack([x, x * x]))(mg.tensor(3.0)).tolist()
    [1.0, 6.0]
    """
    check_transform("jacfwd", f, argnums, several=False)

    @wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Tensor:
        of_one, x = _of_one(f, args, kwargs, argnums)
        out, push = linearize(of_one, x)
        columns = [push(direction) for direction in _directions(x)]
        if not columns:
            return wrap(backend_of(out.data).full((*out.shape, *x.shape), 0, out.dtype, out.device))
        return stack(columns, axis=-1).reshape(*out.shape, *x.shape)

    return differentiated


def jacobian(f: Callable[..., Tensor], argnums: int = 0) -> Callable[..., Tensor]:
    """A function that returns all derivatives of `f` for one argument: shape (*output, *input).

    By forward mode where the input has fewer elements than the output, else by reverse mode.

    >>> import minigrad as mg
    >>> mg.jacobian(lambda x: x * x)(mg.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    check_transform("jacobian", f, argnums, several=False)

    @wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Tensor:
        of_one, x = _of_one(f, args, kwargs, argnums)
        try:
            is_wide = x.dtype.kind == "f" and x.size < sum(v.size for v in _traced(of_one, [x]).graph.outputs)
        except TraceError:
            is_wide = False
        return (jacfwd if is_wide else jacrev)(of_one)(x)

    return differentiated


def _of_one(f: Callable[..., Tensor], args: Any, kwargs: Any, number: int) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """The function of the argument of this number alone, and that argument."""
    given, (x,) = with_inputs(args, (number,))
    if not isinstance(x, Tensor):
        raise ArgumentError("jacobian: the argument must be one tensor", "a Tensor or an array", type(x).__name__)

    def of_one(x: Tensor) -> Tensor:
        return f(*[x if i == number % len(given) else y for i, y in enumerate(given)], **kwargs)

    return of_one, args[number] if isinstance(args[number], Tensor) else x.detach()


def hvp(f: Callable[..., Tensor], primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The product of the Hessian of a scalar function with tangents: forward over reverse, without the Hessian.

    >>> import minigrad as mg
    >>> mg.hvp(lambda x: (x ** 3).sum(), (mg.tensor([1.0, 2.0]),), (mg.tensor([1.0, 0.0]),)).tolist()
    [6.0, 0.0]
    """
    argnums = 0 if len(primals) == 1 else tuple(range(len(primals)))
    return jvp(grad(f, argnums), primals, tangents)[1]


def _directions(x: Tensor) -> list[Tensor]:
    """The unit vectors of a tensor's shape."""
    made = []
    for i in range(x.size):
        flat = zeros_like(x).data.reshape(-1)
        with on_device_of(flat):
            flat[i] = 1
        made.append(wrap(flat.reshape(x.shape)))
        notify("created", made[-1].data)
    return made


def _checked(name: str, primals: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
    """Primals and tangents as Tensors, one tangent like each primal."""
    if not isinstance(primals, (list, tuple)) or not isinstance(tangents, (list, tuple)):
        raise ArgumentError(f"{name}: primals and tangents come as tuples", f"{name}(f, (x,), (v,))", describe(primals))
    if len(primals) != len(tangents):
        raise ArgumentError(f"{name}: as many tangents as primals are needed", len(primals), len(tangents))
    given = [tree.map(lambda x: x if isinstance(x, Tensor) else tensor(x), x) for x in primals]
    moves = []
    for x, t in zip(given, tangents):
        wanted, parts = dict(tree.paths(x)), dict(tree.paths(t))
        if wanted.keys() != parts.keys():
            expected, got = [[path for path in paths if path] for paths in (wanted, parts)]
            raise ArgumentError(f"{name}: a tangent must have the parts of its primal", expected or "one tensor", got)
        found = []
        for path, like in wanted.items():
            if like.dtype.kind != "f":
                raise ArgumentError(f"{name}: only floating arguments move", "a floating dtype", describe(like))
            y = parts[path] if isinstance(parts[path], Tensor) else tensor(parts[path], dtype=like.dtype)
            if like.shape != y.shape:
                raise ShapeError(f"{name}: a tangent must look like its primal", like.shape, y.shape)
            found.append(y if y.dtype == like.dtype else astype(y, dtype=like.dtype))
        moves.append(tree.unflatten(x, found))
    return given, moves


def _traced(f: Callable[..., Any], given: Sequence[Any]) -> Traced:
    found = trace_by_shape(f, tuple(given), [x.shape for x in tree.leaves(given)], moving=True)
    if not all(isinstance(x, Tensor) for x in tree.leaves(found.result)):
        raise TraceError("the function returns something besides Tensors")
    return found


def _pushed(traced: Traced, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The result and its tangents. On the CPU, and where nothing can be differentiated again, all runs on arrays, else on Tensors."""
    graph, leaves = traced.graph, list(tree.leaves(primals))
    constants: dict[Any, Any] = graph.constants
    moves = [None] * len(leaves) if tangents[:1] == [None] else list(tree.leaves(tangents))
    inputs = [leaves[x] if isinstance(x, Place) else x for x in traced.inputs]
    directions = [moves[x] if isinstance(x, Place) else None for x in traced.inputs]
    nodes = [getattr(x, "node", None) for x in (*inputs, *directions)]
    on_cpu = all(isinstance(_array(x), np.ndarray) for x in (*inputs, *constants.values()))
    if on_cpu and not local.mode.tracers and not (local.mode.record and any(node is not None for node in nodes)):
        inputs, directions = [_array(x) for x in inputs], [_array(t) for t in directions]
    else:
        inputs = [_tensor(x) for x in inputs]
        constants = {v: wrap(a) for v, a in constants.items()}  # a tracer does not see an op of arrays alone
    known: dict[Any, Any] = {**dict(zip(graph.inputs, inputs)), **constants, **traced.numbers}
    moving = {v: t for v, t in zip(graph.inputs, directions) if t is not None}
    done = last_uses(graph)
    for step in graph.steps:
        outs = run_step(step, known)
        parts = [moving.get(x) if i not in step.constant else None for i, x in enumerate(_inputs(step))]
        if any(t is not None for t in parts):
            moving.update((v, t) for v, t in zip(step.outputs, _tangents(step, known, outs, parts)) if t is not None)
        known.update(zip(step.outputs, outs))
        for value in done[step]:
            known.pop(value, None)
            moving.pop(value, None)
    results = [_tensor(known[v]) for v in graph.outputs]
    pushed = [_tensor(moving[v]) if v in moving else zeros_like(out) for v, out in zip(graph.outputs, results)]
    return traced.rebuilt(results), traced.rebuilt(pushed)


def _inputs(step: Any) -> list[Any]:
    """The inputs of a step, by number; those that are not Values never move."""
    return [x if isinstance(x, Value) else None for x in step.inputs]


def _tangents(step: Any, known: dict[Any, Any], outs: tuple[Any, ...], parts: list[Any]) -> list[Any]:
    """The tangents of the outputs of one op, given those of its inputs, None where nothing moves."""
    op = step.op
    mask = sum(1 << i for i, t in enumerate(parts) if t is not None)
    if not op.own and mask & ~op.mask:
        raise missing_rule(op.name, op.signature, op.rules, mask)
    if not mask & op.mask or outs[0].dtype.kind != "f" and not op.several:
        return [None] * len(outs)
    given = [known[x] if isinstance(x, Value) else known.get(x, x) for x in step.inputs]
    if op.joint is not None or op.several or op.signature.variadic:
        return _by_gradient(step, known, given, parts)
    names = op.signature.inputs
    tangent = None
    for i, t in enumerate(parts):
        if t is None or not op.mask >> i & 1:
            continue
        asked = names_of(op.rules[names[i]])
        if op.elementwise:
            part = _by_rule(step, known, given, outs[0], i, t)
        elif names[i] not in asked and "out" not in asked and _is_linear(step, i):
            (part,) = run_step(step, {**known, step.inputs[i]: t})
        else:
            (part,) = _by_gradient(step, known, given, [t if k == i else None for k in range(len(parts))])
        tangent = part if tangent is None or part is None else tangent + part
    return [tangent]


def _by_rule(step: Any, known: dict[Any, Any], given: list[Any], out: Any, i: int, t: Any) -> Any:
    """The tangent through one input of an op that works element by element."""
    if t.shape != out.shape:
        t = broadcast_to(t, shape=out.shape)
    attrs = {name: known.get(x, x) if isinstance(x, Value) else x for name, x in step.attrs.items()}
    plan = step.op.plan_for(1 << i, len(given))
    saved = plan.save(given, out, attrs)
    ((_, rule, pick),) = plan.rules
    part = rule(t, *pick(saved))
    part = part if part.shape == out.shape else broadcast_to(part, shape=out.shape)
    return part if part.dtype == out.dtype else astype(part, dtype=out.dtype)


def _is_linear(step: Any, i: int) -> bool:
    """Whether an op of ours whose rule names neither input `i` nor the output gives 0 for 0 there.

    A user's rule need not be the derivative of the op, as one that passes gradients straight through is not.
    """
    alone = len(step.inputs) == 1 and step.op.name != "_pad_constant"  # which adds a border
    return step.op.own and (alone or step.op.name in _PRODUCTS and step.inputs.count(step.inputs[i]) == 1)


def _by_gradient(step: Any, known: dict[Any, Any], given: list[Any], parts: list[Any]) -> list[Any]:
    """The tangents of one op by differentiating its gradient."""
    moving = [i for i, t in enumerate(parts) if t is not None]
    values = [step.inputs[i] for i in moving]

    def of_moving(*xs: Tensor) -> Any:
        inputs = list(step.inputs)
        stand_ins = [Value(x.shape, x.dtype) for x in xs]
        for i, v in zip(moving, stand_ins):
            inputs[i] = v
        bound = {**known, **dict(zip(stand_ins, xs))}
        return run_step(replace(step, inputs=tuple(inputs), constant=()), bound)

    xs, ts = [_tensor(known[v]) for v in values], [_tensor(parts[i]) for i in moving]
    outs, pushed = jvp_by_gradients(of_moving, xs, ts)
    on_arrays = not isinstance(known[values[0]], Tensor)
    return [(_array(t) if on_arrays else t) if o.dtype.kind == "f" else None for o, t in zip(outs, pushed)]


def _tensor(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else wrap(as_array(x))


def _array(x: Any) -> Any:
    return x.data if isinstance(x, Tensor) else x
