"""Tensors where others expect arrays: NumPy's functions, `np.asarray`, and DLPack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .backend import Array, to_numpy
from .errors import DtypeError, GradientError
from .graph import Node
from .writes import writes

NUMPY: dict[Callable[..., Any], Callable[..., Any]] = {}  # NumPy's function -> minigrad's, for np.exp(t) and the like


class Protocols:
    """What makes `np.exp(t)`, `np.concatenate([t, a])` and `array + t` work."""

    __slots__ = ()
    data: Array
    node: Node | None

    def __dlpack__(self, **options: Any) -> Any:
        return constant(self, "DLPack").__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.data.__dlpack_device__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = to_numpy(constant(self, "np.asarray"))
        return np.array(array, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        name = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
        if ufunc not in NUMPY or method != "__call__" or kwargs:
            raise DtypeError(
                f"{name} does not work on Tensors this way",
                fix="use the minigrad function of that name without extra arguments, or x.numpy()",
            )
        if out is None:
            return NUMPY[ufunc](*inputs)
        for x in (*inputs, *out):
            if isinstance(x, Protocols):
                constant(x, f"{name}(…, out=…)")
        ufunc(*[_array(x) for x in inputs], out=tuple([_array(x) for x in out]))
        for target in out:
            writes.mark(_array(target))
        return out[0]

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        if func in NUMPY:
            return NUMPY[func](*args, **kwargs)
        where = f"np.{func.__name__}, which has no counterpart in minigrad"
        return func(*[_read_only(x, where) for x in args], **{k: _read_only(x, where) for k, x in kwargs.items()})


def _read_only(value: Any, where: str) -> Any:
    """Constants as arrays that cannot be written to, also inside lists, for a function that knows nothing of Tensors."""
    if isinstance(value, (list, tuple)):
        return type(value)([_read_only(item, where) for item in value])
    if not isinstance(value, Protocols):
        return value
    array = to_numpy(constant(value, where)).view()
    array.flags.writeable = False
    return array


def _array(value: Any) -> Any:
    return value.data if isinstance(value, Protocols) else value


def constant(t: Protocols, where: str) -> Array:
    if t.node is not None:
        raise GradientError(
            f"{where}: this would silently cut the graph of a tensor that requires a gradient",
            fix="say so with x.detach(), or x.numpy()",
        )
    return t.data
