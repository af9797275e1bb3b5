"""Tensors out of what people have: numbers, nested lists, arrays, other Tensors, and whatever speaks DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from .backend import as_dtype, backend_named, device_of, is_array, to_numpy
from .errors import DtypeError, ShapeError
from .protocols import constant
from .tensor import Tensor, wrap

_default_dtype = np.dtype(np.float32)


def set_default_dtype(dtype: Any) -> None:
    """The floating dtype given to Python numbers and to `zeros`, `randn` …; float32 unless set."""
    global _default_dtype
    chosen = as_dtype(dtype)
    if chosen.kind != "f":
        raise DtypeError("the default dtype must be floating", "float16, float32 or float64", chosen.name)
    _default_dtype = chosen


def get_default_dtype() -> np.dtype:
    """The floating dtype that Python numbers become."""
    return _default_dtype


def tensor(data: Any, dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> Tensor:
    """A new Tensor holding a copy of `data`: a number, nested lists, an array, or another Tensor.

    Python floats become the default dtype (float32); arrays keep theirs.

    >>> import minigrad as mg
    >>> mg.tensor([[1, 2], [3, 4.5]])
    tensor([[1. , 2. ],
            [3. , 4.5]])
    """
    source = data.data if isinstance(data, Tensor) else data
    if not is_array(source):
        source = _from_python(source, dtype)
    wanted = source.dtype if dtype is None else as_dtype(dtype)
    as_dtype(source.dtype)  # refuses strings and objects, also where they could be converted
    device = device_of(source) if device is None else device
    backend = backend_named(device)
    if device_of(source) != device:
        source = backend.place(source, device)
    with backend.on(device):
        result = wrap(backend.xp.array(source, dtype=wanted, copy=True, order="C"))
    return result.requires_grad_() if requires_grad else result


def _from_python(data: Any, dtype: Any) -> np.ndarray:
    """Numbers and nested sequences (Tensors among them) as an array, floats in the default dtype."""
    data, typed = _without_tensors(data)
    wanted = None if dtype is None or typed else as_dtype(dtype)
    try:
        array = np.asarray(data)
        if wanted is not None and array.dtype != wanted and array.dtype.kind in "biufcO":
            # From the numbers themselves, so that those that do not fit are refused.
            array = np.array(data, dtype=wanted)
    except (ValueError, TypeError, OverflowError) as error:
        if "inhomogeneous" in str(error):
            raise ShapeError(
                "tensor: the nested lists have different lengths",
                "a rectangular nest of numbers",
                type(data).__name__,
                "pad the short rows",
            ) from None
        raise DtypeError(
            f"tensor: a value does not fit into {wanted}",
            f"values of dtype {wanted}",
            " ".join(str(error).split()),
            "choose another dtype",
        ) from None
    if array.dtype.kind not in "biufc":
        raise DtypeError(
            "tensor: this is not made of numbers that a Tensor can hold",
            "numbers, booleans, or nested lists of them",
            f"{type(data).__name__} of {array.dtype}",
        )
    if array.dtype == np.float64 and not typed and dtype is None or array.size == 0 and not typed:
        array = array.astype(_default_dtype)
    return array


def _without_tensors(data: Any) -> tuple[Any, bool]:
    """Nested lists with arrays in place of Tensors, and whether the values bring their own dtype."""
    if isinstance(data, Tensor):
        return to_numpy(constant(data, "tensor: a list of tensors, which mg.stack would join")), True
    if isinstance(data, (list, tuple)):
        pairs = [
            _without_tensors(item) if isinstance(item, (list, tuple, Tensor, np.ndarray)) else (item, False)
            for item in data
        ]
        return [item for item, _ in pairs], any(typed for _, typed in pairs)
    return data, isinstance(data, (np.generic, np.ndarray))


def from_dlpack(source: Any) -> Tensor:
    """A Tensor that shares memory with any array that speaks DLPack (NumPy, CuPy, PyTorch, JAX …)."""
    if hasattr(source, "__dlpack_device__") and source.__dlpack_device__()[0] != 1:
        return wrap(backend_named("cuda").xp.from_dlpack(source))
    try:
        return wrap(np.from_dlpack(source))
    except (AttributeError, TypeError):
        raise DtypeError(
            "from_dlpack: this object does not speak DLPack", "an array with a __dlpack__ method", type(source).__name__
        ) from None
