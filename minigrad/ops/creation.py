"""New tensors, and tensors moved to another dtype or device."""

from __future__ import annotations

from typing import Any

from ..engine.backend import DTYPES, as_dtype, backend_named, device_of
from ..engine.convert import get_default_dtype, tensor
from ..engine.errors import ArgumentError, describe, is_whole
from ..engine.op import op
from ..engine.tensor import Tensor, wrap


def finish(array: Any, requires_grad: bool) -> Tensor:
    """A new array as the Tensor that the user gets."""
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
    return full(
        as_shape("zeros", shape), 0, dtype=dtype or get_default_dtype(), device=device, requires_grad=requires_grad
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
    start: float, stop: float, num: int = 50, dtype: Any = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`, both included."""
    return finish(
        _made(device, "linspace", start, stop, num, dtype=as_dtype(dtype or get_default_dtype())), requires_grad
    )


def eye(
    n: int, m: int | None = None, dtype: Any = None, device: str | None = None, requires_grad: bool = False
) -> Tensor:
    """A matrix with ones on the diagonal."""
    return finish(_made(device, "eye", n, m, dtype=as_dtype(dtype or get_default_dtype())), requires_grad)


@op
def astype(xp, a, *, dtype):
    """The elements in another dtype, always a copy, as NumPy's."""
    return a.astype(as_dtype(dtype))


astype.vjp(a=lambda g: g)


@op
def clone(xp, a):
    """A copy in memory of its own, through which gradients flow."""
    return a.copy()


clone.vjp(a=lambda g: g)


@op
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
        dtype = target  # a misspelt "flaot32" is told so as a dtype
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
