"""New tensors, and tensors moved to another dtype or device."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from ..changes import changes
from ..engine.backend import DTYPES, Array, backend_named, device_of, is_array, to_numpy
from ..engine.methods import Methods
from ..engine.modes import notify
from ..engine.op import op
from ..engine.tensor import Tensor, wrap
from ..errors import ArgumentError, DtypeError, GradientError, ShapeError, describe, is_whole, nearest
from ..foreign_arrays import as_numpy, is_foreign, no_bfloat16


def as_dtype(dtype: Any) -> np.dtype:
    """A NumPy dtype from `np.float32`, `"float32"`, `float` …; an unknown one gets the nearest names."""
    try:
        result = np.dtype(dtype)
    except TypeError:
        if "bfloat16" in str(dtype):
            raise no_bfloat16("dtype", repr(dtype)) from None
        raise DtypeError(f"unknown dtype {dtype!r}", fix=nearest(str(dtype), DTYPES)) from None
    if result.name == "bfloat16":  # where the package ml_dtypes is loaded
        raise no_bfloat16("dtype", repr(dtype))
    if result.name not in DTYPES:
        raise DtypeError(
            f"dtype {result.name!r} cannot be stored in a Tensor",
            "numbers or booleans",
            repr(dtype),
            nearest(result.name, DTYPES),
        )
    return result


_default_dtype = np.dtype(np.float32)


def set_default_dtype(dtype: Any) -> None:
    """The floating dtype given to Python numbers and to `zeros`, `randn` …; float32 unless set."""
    global _default_dtype
    chosen = as_dtype(dtype)
    if chosen.kind != "f":
        raise DtypeError("the default dtype must be floating", "float16, float32 or float64", chosen.name)
    _default_dtype = chosen
    changes.note()


def get_default_dtype() -> np.dtype:
    """The floating dtype that Python numbers become."""
    return _default_dtype


def new_array(data: Any, dtype: Any = None, device: str | None = None) -> Array:
    """A copy of `data` (a number, nested lists, an array, a Tensor) as an array on a device."""
    source = data.data if isinstance(data, Tensor) else data
    if not is_array(source):
        is_plain = isinstance(source, np.generic) or not is_foreign(source)
        source = _from_python(source, dtype) if is_plain else as_numpy(source, "tensor")
    wanted = source.dtype if dtype is None else as_dtype(dtype)
    as_dtype(source.dtype)  # refuses strings and objects, also where they could be converted
    device = device_of(source) if device is None else device
    backend = backend_named(device)
    if device_of(source) != device:
        source = backend.place(source, device)
    with backend.on(device):
        array = backend.xp.array(source, dtype=wanted, copy=True, order="C")
    if is_array(data) or isinstance(data, Tensor):
        notify("copied", data.data if isinstance(data, Tensor) else data, array)
    else:
        notify("created", array)
    return array


def _from_python(data: Any, dtype: Any) -> np.ndarray:
    """Numbers and nested sequences (Tensors among them) as an array, floats in the default dtype."""
    data, typed = without_tensors(data)
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
        array = array.astype(get_default_dtype())
    return array


def without_tensors(data: Any) -> tuple[Any, bool]:
    """Nested lists with arrays in place of Tensors, and whether the values bring their own dtype."""
    if isinstance(data, Tensor):
        return to_numpy(constant(data, "tensor: a list of tensors, which mg.stack would join")), True
    if isinstance(data, (list, tuple)):
        pairs = [
            without_tensors(item) if isinstance(item, (list, tuple, Tensor, np.ndarray)) else (item, False)
            for item in data
        ]
        return [item for item, _ in pairs], any(typed for _, typed in pairs)
    return data, isinstance(data, (np.generic, np.ndarray))


def constant(t: Any, where: str) -> Array:
    """The array of a Tensor that needs no gradient; for one that does, this would cut the graph."""
    if t.node is not None:
        is_plain = "scipy" in sys.modules and os.environ.get("SCIPY_ARRAY_API") != "1"
        scipys = (
            "; SciPy takes tensors as they are if SCIPY_ARRAY_API=1 is set before it is imported" if is_plain else ""
        )
        raise GradientError(
            f"{where}: this would silently cut the graph of a tensor that requires a gradient",
            fix=f"say so with x.detach(), or x.numpy(){scipys}",
        )
    notify("read", t, where)
    return t.data


def tensor(data: Any, dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> Tensor:
    """A new Tensor holding a copy of `data`: a number, nested lists, an array, or another Tensor.

    Python floats become the default dtype (float32); arrays keep theirs.

    >>> import minigrad as mg
    >>> mg.tensor([[1, 2], [3, 4.5]])
    tensor([[1. , 2. ],
            [3. , 4.5]])
    """
    result = wrap(new_array(data, dtype, device))
    return result.requires_grad_() if requires_grad else result


def _new_tensor(
    cls: type[Tensor], data: Any = (), dtype: Any = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    self = object.__new__(cls)
    self.data, self.node = new_array(data, dtype, device), None
    return self.requires_grad_() if requires_grad else self


Methods.__new__ = _new_tensor  # type: ignore[assignment]


def finish(array: Any, requires_grad: bool) -> Tensor:
    """A new array as the Tensor that the user gets."""
    notify("created", array)
    result = wrap(array)
    return result.requires_grad_() if requires_grad else result


def as_shape(name: str, shape: Any) -> tuple[int, ...]:
    """`zeros(2, 3)` and `zeros((2, 3))` mean the same."""
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    if any(not is_whole(n) or n < 0 for n in sizes):
        raise ArgumentError(f"{name}: a shape is made of whole numbers from 0 up", "such as (2, 3)", repr(tuple(sizes)))
    return tuple([n.__index__() for n in sizes])


def _made(device: str | None, function: str, *args: Any, **kwargs: Any) -> Any:
    """What the array library's function of that name makes, on the device."""
    backend = backend_named(device or "cpu")
    try:
        with backend.on(device or "cpu"):
            return getattr(backend.xp, function)(*args, **kwargs)
    except (ValueError, TypeError, OverflowError) as error:
        raise ArgumentError(
            f"{function}: {' '.join(str(error).split())}", got=", ".join(describe(a) for a in args)
        ) from None


def zeros(*shape: Any, dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> Tensor:
    """A tensor of zeros: `zeros(2, 3)` or `zeros((2, 3))`."""
    return finish(
        _made(device, "zeros", as_shape("zeros", shape), as_dtype(dtype or get_default_dtype())), requires_grad
    )


def ones(*shape: Any, dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> Tensor:
    """A tensor of ones: `ones(2, 3)` or `ones((2, 3))`."""
    return full(
        as_shape("ones", shape), 1, dtype=dtype or get_default_dtype(), device=device, requires_grad=requires_grad
    )


def full(
    shape: Any, fill_value: Any, dtype: Any = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """A tensor filled with one value."""
    sizes = as_shape("full", shape if isinstance(shape, (tuple, list)) else (shape,))
    wanted = as_dtype(dtype) if dtype is not None else tensor(fill_value).dtype
    return finish(_made(device, "full", sizes, fill_value, wanted), requires_grad)


def empty(*shape: Any, dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> Tensor:
    """A tensor whose elements are whatever the memory holds: fill it before reading it."""
    return finish(
        _made(device, "empty", as_shape("empty", shape), as_dtype(dtype or get_default_dtype())), requires_grad
    )


def empty_like(other: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Whatever the memory holds, with the shape, dtype and device of `other`."""
    model = other if isinstance(other, Tensor) else tensor(other)
    return empty(model.shape, dtype=dtype or model.dtype, device=model.device, requires_grad=requires_grad)


def zeros_like(other: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros with the shape, dtype and device of `other`."""
    return full_like(other, 0, dtype, requires_grad)


def ones_like(other: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones with the shape, dtype and device of `other`."""
    return full_like(other, 1, dtype, requires_grad)


def full_like(other: Any, fill_value: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """One value, with the shape, dtype and device of `other`."""
    model = other if isinstance(other, Tensor) else tensor(other)
    return full(model.shape, fill_value, dtype=dtype or model.dtype, device=model.device, requires_grad=requires_grad)


def arange(
    start: Any,
    stop: Any = None,
    step: Any = 1,
    dtype: Any = None,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers from `start` up to, not including, `stop`: whole numbers stay int64, others get the default dtype."""
    if stop is None:
        start, stop = 0, start
    if dtype is None:
        dtype = "int64" if all(isinstance(v, int) for v in (start, stop, step)) else get_default_dtype()
    if step == 0:
        raise ArgumentError("arange: the step cannot be 0", "a step up or down", step)
    return finish(_made(device, "arange", start, stop, step, dtype=as_dtype(dtype)), requires_grad)


def linspace(
    start: float,
    stop: float,
    num: int = 50,
    dtype: Any = None,
    device: str | None = None,
    requires_grad: bool = False,
    *,
    endpoint: bool = True,
) -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`, both included unless `endpoint=False`."""
    wanted = as_dtype(dtype or get_default_dtype())
    return finish(_made(device, "linspace", start, stop, num, endpoint=endpoint, dtype=wanted), requires_grad)


def eye(
    n: int,
    m: int | None = None,
    dtype: Any = None,
    device: str | None = None,
    requires_grad: bool = False,
    *,
    k: int = 0,
) -> Tensor:
    """A matrix with ones on the diagonal, or with `k` on one above it."""
    return finish(_made(device, "eye", n, m, k, dtype=as_dtype(dtype or get_default_dtype())), requires_grad)


@op(cost=0, lowering="a")
def astype(xp, a, *, dtype):
    """The elements in another dtype, always a copy, as NumPy's."""
    return a.astype(as_dtype(dtype))


astype.vjp(a=lambda g: g)


@op(cost=0, lowering="a")
def clone(xp, a):
    """A copy in memory of its own, through which gradients flow."""
    return a.copy()


clone.vjp(a=lambda g: g)


@op(public=False, cost=0)
def to_device(xp, a, *, device):
    """The elements in the memory of another device."""
    return backend_named(device).place(a, device)


to_device.vjp(a=lambda g, a_device: to_device(g, device=a_device))


def to(self: Tensor, target: Any = None, *, dtype: Any = None, device: str | None = None) -> Tensor:
    """This tensor in another dtype, on another device, or like another tensor; itself where nothing changes.

    >>> import minigrad as mg
    >>> mg.ones(2).to("float64").dtype
    dtype('float64')
    """
    if isinstance(target, Tensor):
        dtype, device = target.dtype, target.device
    elif target is not None and (
        not isinstance(target, str) or target in DTYPES or ":" not in target and target[-1:].isdigit()
    ):
        dtype = target  # the error for a misspelt "flaot32" is that of a dtype
    elif target is not None:
        device = target
    result = self
    if dtype is not None and as_dtype(dtype) != self.dtype:
        result = astype(result, dtype=dtype)
    if device is not None:
        backend_named(device)
        if device != device_of(result.data):
            result = to_device(result, device=device)
    return result


def cpu(self: Tensor) -> Tensor:
    """This tensor on the CPU."""
    return to(self, "cpu")


def cuda(self: Tensor) -> Tensor:
    """This tensor on the first GPU."""
    return to(self, "cuda")


@op
def _constant(xp, a, *, values):
    """Numbers computed on the host, on the device and in the dtype of `a`."""
    return xp.asarray(values, dtype=a.dtype)
