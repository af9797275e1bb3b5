"""Calls of a model in the conformance suite: records how the loss calls it, and repeats the call in other ways."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from ... import functions, tree
from ...engine.backend import is_array, to_numpy
from ...engine.modes import no_grad
from ...engine.tensor import Tensor

__all__ = [
    "Call", "Failed", "NotApplicable", "first_call", "in_float64", "step_by_step", "unchanged", "unequal", "unlike_rows",
]  # fmt: skip

CLOSE = {"rtol": 1e-7, "atol": 1e-9}  # of float64, in which only a real difference is larger
ROWS = 4  # of a batch are tried one by one


class Failed(Exception):
    """A check that did not hold, and why."""


class NotApplicable(Exception):
    """A check that says nothing about this model, and why."""


@dataclasses.dataclass(frozen=True)
class Call:
    """One call of a model: what it was given, and what it returned."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any


def in_float64(value: Any) -> Any:
    """A batch, however it is nested, with its floating arrays in float64."""

    def cast(leaf: Any) -> Any:
        is_floating = (isinstance(leaf, Tensor) or is_array(leaf)) and np.dtype(leaf.dtype).kind == "f"
        return leaf.astype("float64") if is_floating else leaf

    return tree.map(cast, value)


def first_call(model: Any, loss: Callable[[Any, Any], Any], batch: Any) -> Call:
    """How the loss calls the model. A loss that only uses parts of the model is not applicable."""
    calls: list[Call] = []
    forward = model.forward

    def watched(*args: Any, **kwargs: Any) -> Any:
        result = forward(*args, **kwargs)
        calls.append(Call(args, kwargs, result))
        return result

    object.__setattr__(model, "forward", watched)
    try:
        with no_grad():
            loss(model, batch)
    finally:
        object.__delattr__(model, "forward")
    if not calls:
        raise NotApplicable("its loss does not call the model itself")
    return calls[0]


def unequal(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """The first name whose arrays differ in any bit, "" if none does."""
    arrays = [
        {name: to_numpy(v.data if isinstance(v, Tensor) else v) for name, v in side.items()} for side in (first, second)
    ]
    for name in sorted(first.keys() | second.keys()):
        if not all(name in side for side in arrays):
            return name
        a, b = (side[name] for side in arrays)
        if a.dtype != b.dtype or a.shape != b.shape or a.tobytes() != b.tobytes():
            return name
    return ""


@contextmanager
def unchanged(model: Any, doing: str) -> Iterator[None]:
    """Fail if what is done inside changes a weight of the model."""
    before = {name: to_numpy(tensor.data).copy() for name, tensor in model.state_dict().items()}
    yield
    if name := unequal(before, model.state_dict()):
        raise Failed(f"{doing} changes {name}")


def unlike_rows(model: Any, call: Call) -> str:
    """Compare rows alone with rows in the batch; a sentence on how many were equal, or Failed."""
    size = next((len(a) for a in (*call.args, *call.kwargs.values()) if _has_axis(a, 0)), 0)
    results = [r for r in _tensors(call.result) if _has_axis(r, 0) and len(r) == size]
    if not results:
        raise NotApplicable("it does not return a row for each row that it is given")
    if size < 2:
        raise NotApplicable("the example has a single row: give it two or more")
    rows = range(min(size, ROWS))
    for row in rows:
        part = slice(row, row + 1)
        with no_grad():
            alone = model(
                *(_cut(a, 0, size, part) for a in call.args),
                **{name: _cut(a, 0, size, part) for name, a in call.kwargs.items()},
            )
        together = [r[part] for r in _tensors(call.result) if _has_axis(r, 0) and len(r) == size]
        for mine, theirs in zip(_tensors(alone), together):
            if difference := _difference(mine, theirs):
                raise Failed(
                    f"row {row} of the example alone gives another result than in its batch: {difference}; if that is "
                    "meant, as in BatchNorm, set couples_batch = True in the module's class"
                )
    return f"{len(rows)} rows alone give what they give together"


def step_by_step(model: Any, call: Call) -> str:
    """Compare a call position by position, through a cache, with the call at once; Failed if they differ."""
    takes_cache = "cache" in inspect.signature(type(model).forward).parameters
    if not takes_cache or not callable(getattr(model, "new_cache", None)):
        raise NotApplicable("the model has no cache: no new_cache(), or no cache= in forward")
    result = call.result
    grows = [i for i, a in enumerate(call.args) if _has_axis(a, 1) and tuple(a.shape[:2]) == tuple(result.shape[:2])]
    if not grows:
        raise NotApplicable(f"nothing that the model is given is as long as its result, {tuple(result.shape)}")
    length = result.shape[1]
    cache, parts = model.new_cache(), []
    for position in range(length):
        args = list(call.args)
        args[grows[0]] = args[grows[0]][:, position : position + 1]  # (B, L, …) -> (B, 1, …)
        with no_grad():
            parts.append(model(*args, **{**call.kwargs, "cache": cache}))
    together = functions.concatenate(parts, axis=1)  # L times (B, 1, …) -> (B, L, …)
    if difference := _difference(together, result):
        raise Failed(f"decoding step by step with its cache gives another result than at once: {difference}")
    return f"{length} positions through the cache give what they give at once"


def _has_axis(value: Any, axis: int) -> bool:
    return (isinstance(value, Tensor) or is_array(value)) and value.ndim > axis


def _cut(value: Any, axis: int, size: int, part: slice) -> Any:
    return value[part] if _has_axis(value, axis) and value.shape[axis] == size else value


def _tensors(result: Any) -> list[Tensor]:
    several = result if isinstance(result, (tuple, list)) else [result]
    return [r for r in several if isinstance(r, Tensor)]


def _difference(first: Tensor, second: Tensor) -> str:
    """How two results differ, "" if they do not."""
    if tuple(first.shape) != tuple(second.shape):
        return f"shape {tuple(first.shape)}, not {tuple(second.shape)}"
    a, b = to_numpy(first.data), to_numpy(second.data)
    if np.allclose(a, b, **CLOSE, equal_nan=True):
        return ""
    return f"they are up to {np.abs(a - b).max():.2g} apart"
