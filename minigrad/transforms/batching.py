"""`mg.vmap`: a function of single examples as a function of batches, without a loop over the batch.

The function is traced by the shapes of one example. Its graph is then run on whole batches: each value either has the batch as
its first axis, or is the same for all. How an op takes a batch follows from what kind of op it is, by the table `_RULES`;
an op that is not in it runs once for each example, and a warning says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial, wraps
from string import ascii_letters
from typing import Any

from .. import functions as mg
from .. import tree
from ..engine.tensor import Tensor, wrap
from ..errors import ArgumentError, ShapeError, describe
from ..ir.graph import Step, Value, run_step
from ..ops.creation import arange, tensor, zeros
from ..ops.indexing.getitem import is_basic
from ..random import draws, replay
from ..signature import unknown_argument
from .traced import Place, Traced, TraceError, last_uses, trace_by_shape

__all__ = ["vmap"]

Known = dict[Any, Any]
_said: set[str] = set()


def vmap(f: Callable[..., Any], in_axes: Any = 0, out_axes: int = 0, **unknown: Any) -> Callable[..., Any]:
    """`f` for a whole batch at once: each argument has the batch along its axis of `in_axes`, None where it has none.

    `in_axes` is one number for all arguments, or one for each; results have the batch along `out_axes`. What is given by
    name is the same for all examples, as in PyTorch, and so are random numbers that `f` draws.

    >>> import minigrad as mg
    >>> pairs = mg.vmap(lambda x, y: (x * y).sum())
    >>> pairs(mg.tensor([[1.0, 2.0], [3.0, 4.0]]), mg.tensor([[1.0, 1.0], [0.0, 2.0]])).tolist()
    [3.0, 8.0]
    """
    for name in unknown:
        raise unknown_argument("vmap", name, ("f", "in_axes", "out_axes"))
    if not callable(f):
        raise ArgumentError("vmap: this takes a function", "mg.vmap(f)(x)", describe(f))

    @wraps(f)
    def batched(*args: Any, **kwargs: Any) -> Any:
        of_one = partial(f, **kwargs) if kwargs else f
        axes = in_axes if isinstance(in_axes, (list, tuple)) else [in_axes] * len(args)
        if len(axes) != len(args):
            raise ArgumentError("vmap: one axis for each argument is needed", f"{len(args)} of in_axes", len(axes))
        leaves, size = _with_batch_first(args, axes)
        given = [x for x, _ in leaves]
        shapes = [x.shape[has:] if isinstance(x, Tensor) else None for x, has in leaves]
        try:
            traced = trace_by_shape(of_one, tree.unflatten(args, given), shapes, moving=False)
        except TraceError as error:
            _say(f"a function that cannot be traced ({str(error).splitlines()[0]})")
            return _one_by_one(of_one, args, leaves, size, out_axes)
        outs = _run(traced, given, [has for _, has in leaves], size)
        return traced.rebuilt([mg.moveaxis(out, source=0, destination=out_axes) for out in outs])

    return batched


def _with_batch_first(args: Any, axes: Sequence[Any]) -> tuple[list[tuple[Any, bool]], int]:
    """The leaves of the arguments, each with whether it has a batch, which is its first axis then; and the batch's size."""
    found: list[tuple[Any, bool]] = []
    sizes = set()
    for number, (arg, axis) in enumerate(zip(args, axes)):
        for x in tree.leaves(arg):
            is_array = isinstance(x, Tensor) or hasattr(x, "dtype")
            if axis is None or not is_array and not isinstance(x, (int, float)):  # a number, an option: given as it is
                found.append((tensor(x) if is_array and not isinstance(x, Tensor) else x, False))
                continue
            x = x if isinstance(x, Tensor) else tensor(x)
            if not -x.ndim <= axis < x.ndim:
                raise ShapeError(f"vmap: argument {number} has no axis {axis}", "in_axes of None for it", x.shape)
            sizes.add(x.shape[axis])
            found.append((mg.moveaxis(x, source=axis, destination=0) if axis else x, True))
    if len(sizes) != 1:
        raise ShapeError("vmap: the arguments have no one batch size", "one size", sorted(sizes) or "no batch at all")
    return found, sizes.pop()


def _one_by_one(f: Callable[..., Any], args: Any, leaves: Any, size: int, out_axis: int) -> Any:
    start, results = draws(), list[Any]()
    for i in range(size):
        with replay(start) if i else nullcontext():
            results.append(f(*tree.unflatten(args, [x[i] if has else x for x, has in leaves])))
    parts = [list(tree.leaves(result)) for result in results]
    joined = [
        mg.stack([*column], axis=out_axis) if isinstance(column[0], Tensor) else column[0] for column in zip(*parts)
    ]
    return tree.unflatten(results[0], joined)


def _run(traced: Traced, leaves: Sequence[Any], has: Sequence[bool], size: int) -> list[Tensor]:
    """The outputs of a graph, each with the batch as its first axis."""
    graph = traced.graph
    known: Known = {**{v: wrap(a) for v, a in graph.constants.items()}, **traced.numbers}
    batched: set[Value] = set()
    for value, x in zip(graph.inputs, traced.inputs):
        known[value] = leaves[x] if isinstance(x, Place) else x if isinstance(x, Tensor) else wrap(x)
        batched.update([value] if isinstance(x, Place) and has[x] else [])
    done = last_uses(graph)
    for step in graph.steps:
        if batched.isdisjoint(step.values):
            outs = run_step(step, known)
        else:
            outs = _batched_step(step, known, batched, size)
            batched.update(step.outputs)
        known.update(zip(step.outputs, outs))
        for value in done[step]:
            known.pop(value, None)
    return [known[v] if v in batched else _repeated(known[v], size) for v in graph.outputs]


def _batched_step(step: Step, known: Known, batched: set[Value], size: int) -> tuple[Any, ...]:
    rule = _elementwise if step.op.elementwise else _RULES.get(step.op.name)
    outs = None if rule is None else rule(step, known, batched, size)
    if outs is None:
        _say(step.op.name)
        outs = _each(step, known, batched, size)
    return outs


def _each(step: Step, known: Known, batched: set[Value], size: int) -> tuple[Any, ...]:
    """One example after the other."""
    mine = [v for v in step.values if v in batched]
    if not size:
        return tuple([zeros(0, *v.shape, dtype=v.dtype, device=known[mine[0]].device) for v in step.outputs])
    rows = [run_step(step, {**known, **{v: known[v][i] for v in mine}}) for i in range(size)]
    return tuple([mg.stack([*column], axis=0) for column in zip(*rows)])


def _say(what: str) -> None:
    """Warn once that something loops."""
    if what not in _said:
        _said.add(what)
        warnings.warn(f"vmap: {what} runs once for each example of the batch", RuntimeWarning, stacklevel=4)


def _repeated(x: Tensor, size: int) -> Tensor:
    return mg.broadcast_to(x, shape=(size, *x.shape))


# Rules: (step, known, batched, size) -> outputs with the batch first; None where the step has to loop


def _called(step: Step, known: Known, inputs: Sequence[Any], **attrs: Any) -> tuple[Any, ...]:
    """The outputs of the step's op for other inputs and attributes."""
    values = [Value(x.shape, x.dtype) if isinstance(x, Tensor) else x for x in inputs]
    bound = {**known, **{v: x for v, x in zip(values, inputs) if isinstance(x, Tensor)}}
    changed = replace(step, inputs=tuple(values), attrs={**step.attrs, **attrs})
    return run_step(changed, bound)


def _given(step: Step, known: Known) -> list[Any]:
    return [known.get(x, x) for x in step.inputs]


def _aligned(step: Step, known: Known, batched: set[Value], rank: int) -> list[Any]:
    """The inputs, those with a batch with as many axes behind it as `rank`, so that they are broadcast like single ones."""
    made = []
    for x, value in zip(_given(step, known), step.inputs):
        if value in batched and value.ndim < rank:
            x = mg.reshape(x, shape=(x.shape[0], *(1,) * (rank - value.ndim), *x.shape[1:]))
        made.append(x)
    return made


def _elementwise(step: Step, known: Known, batched: set[Value], size: int) -> tuple[Any, ...]:
    return _called(step, known, _aligned(step, known, batched, step.outputs[0].ndim))


def _direct(step: Step, known: Known, batched: set[Value], size: int) -> tuple[Any, ...]:
    """Ops of one input that take any axes before those they work on."""
    return _called(step, known, _given(step, known))


def _along_axis(step: Step, known: Known, batched: set[Value], size: int) -> tuple[Any, ...] | None:
    """Ops that work along an axis, or several, of their first input; what is picked by indices gets a batch in every part."""
    x = step.inputs[0]
    axis = step.attrs.get("axis", step.op.signature.defaults.get("axis"))
    if axis is None and step.op.name not in _OVER_ALL:
        return None
    numbers = range(x.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else [axis]
    shifted = [a % max(x.ndim, 1) + 1 for a in numbers]
    attrs: dict[str, Any] = {"axis": shifted[0] if isinstance(axis, int) else tuple(shifted)}
    inputs = _aligned(step, known, batched, x.ndim)
    if "indices" in step.attrs:
        inputs = [_spread(known, batched, v, y, size) for v, y in zip(step.inputs, inputs)]
        indices = step.attrs["indices"]
        found = known[indices] if isinstance(indices, Value) else wrap(indices)
        attrs["indices"] = (found if indices in batched else _repeated(found, size)).data
    return _called(step, known, inputs, **attrs)


def _spread(known: Known, batched: set[Value], value: Any, x: Any, size: int) -> Any:
    """An input with the batch first, repeated if it is the same for all."""
    return x if value in batched or not isinstance(value, Value) else _repeated(x, size)


def _matmul(step: Step, known: Known, batched: set[Value], size: int) -> tuple[Any, ...]:
    left, right = step.inputs
    a, b = _given(step, known)
    if left.ndim == 1:  # a row, and a column
        a = mg.expand_dims(a, axis=-2)
    if right.ndim == 1:
        b = mg.expand_dims(b, axis=-1)
    rank = max(left.ndim, right.ndim, 2)
    for value, is_left in ((left, True), (right, False)):
        x = a if is_left else b
        own = x.ndim - (value in batched)
        if value in batched and own < rank:
            x = mg.reshape(x, shape=(x.shape[0], *(1,) * (rank - own), *x.shape[1:]))
        a, b = (x, b) if is_left else (a, x)
    out = mg.matmul(a, b)
    gone = [-2] * (left.ndim == 1) + [-1] * (right.ndim == 1)
    return (mg.squeeze(out, axis=tuple(gone)) if gone else out,)


def _with_shape(step: Step, known: Known, batched: set[Value], size: int) -> tuple[Any, ...]:
    """reshape and broadcast_to."""
    (x,) = _aligned(step, known, batched, step.outputs[0].ndim if step.op.name == "broadcast_to" else 0)
    return _called(step, known, [x], shape=(size, *step.outputs[0].shape))


def _transpose(step: Step, known: Known, batched: set[Value], size: int) -> tuple[Any, ...]:
    rank = step.inputs[0].ndim
    axes = step.attrs.get("axes") or range(rank)[::-1]
    return _called(step, known, _given(step, known), axes=(0, *[a % rank + 1 for a in axes]))


def _joined(step: Step, known: Known, batched: set[Value], size: int) -> tuple[Any, ...]:
    """concatenate and stack."""
    rank = step.outputs[0].ndim
    inputs = [_spread(known, batched, v, known[v], size) for v in step.inputs]
    return _called(step, known, inputs, axis=step.attrs.get("axis", 0) % rank + 1)


def _are_apart(parts: Sequence[Any]) -> bool:
    """Whether arrays in an index, beside which a number counts as one, have a slice between them: NumPy puts their axes first."""
    places = [i for i, part in enumerate(parts) if not isinstance(part, (slice, type(None), type(Ellipsis)))]
    return not is_basic(tuple(parts)) and places[-1] - places[0] >= len(places)


def _getitem(step: Step, known: Known, batched: set[Value], size: int) -> tuple[Any, ...] | None:
    """An index that is the same for all, or one array of them, first, as for the rows of an embedding."""
    index = step.attrs["index"]
    parts = index if isinstance(index, tuple) else (index,)
    (source,), given = step.inputs, _given(step, known)
    if not any(part in batched for part in parts if isinstance(part, Value)):
        return None if _are_apart(parts) else _called(step, known, given, index=(slice(None), *parts))
    if [i for i, part in enumerate(parts) if not is_basic(part)] != [0]:
        return None
    if source not in batched:
        return _called(step, known, given)
    rows = mg.reshape(arange(size, device=given[0].device), shape=(size, *(1,) * parts[0].ndim))
    return _called(step, known, given, index=(rows.data, *parts))


def _place(step: Step, known: Known, batched: set[Value], size: int) -> tuple[Any, ...] | None:
    """The gradient of an index that is the same for all."""
    index = step.attrs["index"]
    parts = index if isinstance(index, tuple) else (index,)
    if _are_apart(parts) or any(part in batched for part in parts if isinstance(part, Value)):
        return None
    shape = (size, *step.attrs["shape"])
    return _called(step, known, _given(step, known), index=(slice(None), *parts), shape=shape)


def _stacks(step: Step, known: Known, batched: set[Value], size: int) -> tuple[Any, ...]:
    """Ops that take stacks of matrices; a vector to solve for is a matrix of one column."""
    if step.op.name == "solve" and step.inputs[1].ndim == 1:
        matrices, vector = step.inputs
        a, b = _given(step, known)
        if vector in batched:  # (B, n) -> (B, …, n, 1), with as many axes as the matrices of one example
            b = mg.reshape(b, shape=(size, *(1,) * (matrices.ndim - 2), *vector.shape, 1))
        else:
            b = mg.expand_dims(b, axis=-1)
        return (mg.squeeze(mg.solve(a, b), axis=-1),)
    return _called(step, known, _aligned(step, known, batched, max(v.ndim for v in step.values)))


def _behind(count: Callable[[Step], int], back: Callable[[Step], int]) -> Callable[..., Any]:
    """Ops on windows: the batch goes behind the first axes, so many as `count` says, and comes from behind `back` of the results."""

    def rule(step: Step, known: Known, batched: set[Value], size: int) -> tuple[Any, ...]:
        inputs = [_spread(known, batched, v, x, size) for v, x in zip(step.inputs, _given(step, known))]
        places = [count(step), *[1] * (len(inputs) - 1)]
        moved = [
            mg.moveaxis(x, source=0, destination=n) if isinstance(x, Tensor) else x for x, n in zip(inputs, places)
        ]
        return tuple([mg.moveaxis(out, source=back(step), destination=0) for out in _called(step, known, moved)])

    return rule


def _einsum(step: Step, known: Known, batched: set[Value], size: int) -> tuple[Any, ...]:
    inputs, result = step.attrs["subscripts"].split("->")
    letter = next(c for c in ascii_letters if c not in inputs)
    terms = [letter * (v in batched) + term for v, term in zip(step.inputs, inputs.split(","))]
    return _called(step, known, _given(step, known), subscripts=f"{','.join(terms)}->{letter}{result}")


def _padded(step: Step, known: Known, batched: set[Value], size: int) -> tuple[Any, ...]:
    return _called(step, known, _given(step, known), widths=((0, 0), *step.attrs["widths"]))


def _same_for_all(step: Step, known: Known, batched: set[Value], size: int) -> tuple[Any, ...]:
    """Ops that look at the shape of their input alone."""
    if not size:
        return _each(step, known, batched, size)
    one = {v: known[v][0] for v in step.values if v in batched}
    return tuple([_repeated(out, size) for out in run_step(step, {**known, **one})])


_REDUCTIONS = "sum prod max min any all mean logsumexp"
_OVER_ALL = {*_REDUCTIONS.split(), "flip"}  # where no axis means all of them, and several may be named
_ALONG = (
    "_cumsum _cumprod argsort argmax argmin softmax log_softmax _masked_softmax flip roll _take_along _put_along _add_along "
    "_not_overwritten_along _split _unstack _winners_so_far _top_positions _resample"
)
_MATRICES = "inv solve det _slogdet cholesky _qr _qr_complete _svd _svd_full _eigh _lu matrix_exp _pinv tril triu"
_RULES: dict[str, Callable[..., tuple[Any, ...] | None]] = {
    **dict.fromkeys([*_REDUCTIONS.split(), *_ALONG.split()], _along_axis),
    **dict.fromkeys(_MATRICES.split(), _stacks),
    **dict.fromkeys(("astype", "clone", "to_device", "_one_hot", "_alias", "_output"), _direct),
    **dict.fromkeys(("reshape", "broadcast_to"), _with_shape),
    **dict.fromkeys(("concatenate", "stack"), _joined),
    **dict.fromkeys(("_zeros", "_eye", "_causal_mask", "_constant"), _same_for_all),
    "_unfold": _behind(lambda step: 1, lambda step: 1 + len(step.attrs["kernel"])),
    "_fold": _behind(lambda step: 1 + len(step.attrs["sizes"]), lambda step: 1),
    "_largest": _behind(lambda step: 2, lambda step: 1),
    "_pick": _behind(lambda step: 2, lambda step: 1),
    "_spread": _behind(lambda step: 1, lambda step: 2),
    "matmul": _matmul,
    "transpose": _transpose,
    "getitem": _getitem,
    "place": _place,
    "_einsum": _einsum,
    "_pad_constant": _padded,
}  # fmt: skip
