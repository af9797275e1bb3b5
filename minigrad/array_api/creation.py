"""New arrays. Unlike `mg.tensor`, `asarray` copies only where it must."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import functions as f
from ..engine.backend import is_array
from ..engine.tensor import Tensor, wrap
from ..errors import ArgumentError
from ..interop import from_dlpack
from ..ops import creation as ours
from ..ops.creation import as_dtype, without_tensors
from .dtypes import astype, default_complex

__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]


def asarray(obj: Any, /, *, dtype: Any = None, device: str | None = None, copy: bool | None = None) -> Tensor:
    """A tensor of numbers, nested lists, or of anything with DLPack or a buffer, whose memory it shares unless `copy`."""
    shared = _shared(obj)
    if shared is None:
        if copy is False:
            raise ArgumentError(
                "asarray: this needs a copy", "an array, or copy=None", f"{type(obj).__name__}, copy=False"
            )
        made = ours.tensor(obj, dtype, device)
        wide = dtype is None and made.dtype == np.complex128 and not without_tensors(obj)[1]
        return made.to(dtype=default_complex()) if wide else made
    result = astype(shared, shared.dtype if dtype is None else dtype, copy=bool(copy), device=device)
    if copy is False and result is not shared:
        raise ArgumentError("asarray: another dtype or device needs a copy", f"dtype {shared.dtype}", f"dtype {dtype}")
    return result


def _shared(obj: Any) -> Tensor | None:
    """A tensor in the memory of `obj`, or None for what has no memory of its own, such as lists of numbers."""
    if isinstance(obj, Tensor):
        return obj
    if is_array(obj) or isinstance(obj, np.generic):
        as_dtype(obj.dtype)  # refuses strings and objects
        return wrap(np.asarray(obj) if isinstance(obj, (np.ndarray, np.generic)) else obj)
    if hasattr(obj, "__dlpack__"):
        return from_dlpack(obj)
    try:
        return wrap(np.asarray(memoryview(obj)))
    except TypeError:
        return None


def _default(value: Any, dtype: Any) -> Any:
    """The dtype of a Python number, unless one is given."""
    return asarray(value).dtype if dtype is None else dtype


def empty(shape: Any, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """An array whose elements are whatever the memory holds."""
    return ours.empty(shape, dtype=dtype, device=device)


def zeros(shape: Any, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """An array of zeros."""
    return ours.zeros(shape, dtype=dtype, device=device)


def ones(shape: Any, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """An array of ones."""
    return ours.ones(shape, dtype=dtype, device=device)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """An array filled with one value."""
    return ours.full(shape, fill_value, dtype=_default(fill_value, dtype), device=device)


def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """One value, with the shape, dtype and device of `x` unless given."""
    chosen = x.dtype if dtype is None else dtype
    return ours.full(x.shape, fill_value, dtype=chosen, device=x.device if device is None else device)


def empty_like(x: Tensor, /, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """An array like `x` whose elements are whatever the memory holds."""
    chosen = x.dtype if dtype is None else dtype
    return ours.empty(x.shape, dtype=chosen, device=x.device if device is None else device)


def zeros_like(x: Tensor, /, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """Zeros, with the shape, dtype and device of `x` unless given."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """Ones, with the shape, dtype and device of `x` unless given."""
    return full_like(x, 1, dtype=dtype, device=device)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """Numbers from `start` up to, not including, `stop`."""
    return ours.arange(start, stop, step, dtype=dtype, device=device)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: str | None = None, endpoint: bool = True
) -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`, which is included unless `endpoint=False`."""
    if dtype is None and (isinstance(start, complex) or isinstance(stop, complex)):
        dtype = default_complex()
    return ours.linspace(start, stop, num, dtype=dtype, device=device, endpoint=endpoint)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: str | None = None
) -> Tensor:
    """A matrix with ones on a diagonal."""
    return ours.eye(n_rows, n_cols, dtype=dtype, device=device, k=k)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """One grid for each of the given vectors."""
    return list(f.meshgrid(*arrays, indexing=indexing))


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangle of the last two axes, zeros above."""
    return f.tril(x, k=k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangle of the last two axes, zeros below."""
    return f.triu(x, k=k)
