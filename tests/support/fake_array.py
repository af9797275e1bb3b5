"""An array type over NumPy that is as hard to please as CuPy's.

It converts to NumPy only when asked (`get`), works with Python and NumPy scalars and with its own kind but never with
host arrays, gives 0-d arrays rather than scalars, has no writeable flag, wraps index arrays that are out of range, and has
only the methods, and these only the parameters, that `cupy.ndarray` has. Where releases of CuPy differ it is like the
strictest: a host array as an index, a second boolean array in an index, and an array of another than the current
device are refused.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace, TracebackType
from typing import Any

import numpy as np

from .cupy_names import NAMES, missing, misuse

SCALARS = (bool, int, float, complex, np.generic)
DEVICE_COUNT = 2
_current = threading.local()


def current_device() -> int:
    return getattr(_current, "id", 0)


class Device:
    """`cupy.cuda.Device`: inside a `with`, new arrays are made there, and only arrays from there can be computed with."""

    def __init__(self, id: int = 0):
        if not 0 <= id < DEVICE_COUNT:
            raise RuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
        self.id = id

    def __enter__(self) -> Device:
        self.previous = current_device()
        _current.id = self.id
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.id = self.previous


class FakeArray:
    """Behaves like `cupy.ndarray`; its elements lie, out of reach, in a NumPy array."""

    __slots__ = ("_host", "base", "device", "__weakref__")
    __array_ufunc__ = None
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, host: np.ndarray, base: FakeArray | None = None, device: int | None = None):
        assert type(host) is np.ndarray
        self._host = host
        self.base = base
        self.device = Device(current_device() if device is None else device)

    def __getattr__(self, name: str) -> Any:
        raise missing(f"ndarray.{name}")

    shape = property(lambda self: self._host.shape)
    dtype = property(lambda self: self._host.dtype)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    nbytes = property(lambda self: self._host.nbytes)
    itemsize = property(lambda self: self._host.itemsize)
    strides = property(lambda self: self._host.strides)
    T = property(lambda self: self.transpose())
    mT = property(lambda self: self.swapaxes(-1, -2))
    data = property(lambda self: SimpleNamespace(ptr=self._host.ctypes.data, device_id=self.device.id))

    @property
    def flags(self) -> SimpleNamespace:
        flags = self._host.flags
        return SimpleNamespace(
            c_contiguous=flags.c_contiguous, f_contiguous=flags.f_contiguous, owndata=self.base is None
        )

    def get(self, stream: Any = None, order: Any = "C", out: Any = None, blocking: bool = True) -> np.ndarray:
        return np.array(self._host, order=order)

    def copy(self, order: Any = "C") -> FakeArray:
        """A copy on the current device, wherever the original is: the one way from device to device."""
        return FakeArray(self._host.copy(order=order))

    def item(self) -> Any:
        return self._host.item()

    def tolist(self) -> Any:
        return self._host.tolist()

    def take(self, indices: Any, axis: int | None = None, out: Any = None) -> FakeArray:
        return rewrap(computable(self).take(unwrap(indices), axis, mode="wrap"), [self])

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array explicitly."
        )

    def __array_function__(self, function: Any, *_: Any) -> Any:
        raise TypeError(f"np.{function.__name__} was called on a device array: say xp.{function.__name__}")

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.device.id

    def __dlpack__(self, **_: Any) -> Any:
        raise BufferError("GPU memory cannot be exported to the CPU")

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a device array was pickled")

    def __repr__(self) -> str:
        return repr(self._host)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[FakeArray]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))

    def __bool__(self) -> bool:
        return bool(self._host)

    def __int__(self) -> int:
        return int(self._one())

    def __float__(self) -> float:
        return float(self._one())

    def __complex__(self) -> complex:
        return complex(self._one())

    def _one(self) -> Any:
        if self.size != 1:
            raise TypeError("only arrays of one element can be converted to Python scalars")
        return self._host.item()

    def __getitem__(self, index: Any) -> FakeArray:
        clean = host_index(self, index)
        if any(isinstance(i, np.ndarray) for i in clean):
            return rewrap(computable(self)[clean], [self])
        return rewrap(self._host[clean if Ellipsis in clean else (*clean, ...)], [self])

    def __setitem__(self, index: Any, value: Any) -> None:
        host, clean = computable(self), host_index(self, index)
        if not any(isinstance(i, np.ndarray) for i in clean) or not isinstance(value, FakeArray):
            host[clean] = operand(value)
            return
        places = np.arange(host.size).reshape(host.shape)[clean]
        values = np.broadcast_to(operand(value).reshape(value.shape[max(value.ndim - places.ndim, 0) :]), places.shape)
        backwards = slice(None, None, -1)  # a GPU writes in any order: here the first value for a place wins
        host.flat[places.ravel()[backwards]] = values.ravel()[backwards]


def computable(array: FakeArray) -> np.ndarray:
    """The elements, if a kernel on the current device can reach them."""
    if array.device.id != current_device():
        raise ValueError(
            f"The device where the array resides ({array.device.id}) is different from the current device ({current_device()}). "
            "Peer access is unavailable between these devices."
        )
    return array._host


def operand(value: Any) -> Any:
    """What NumPy computes with in place of an operand on the device."""
    if isinstance(value, FakeArray):
        return computable(value)
    if isinstance(value, SCALARS):
        return value
    raise TypeError(f"Unsupported type {type(value)}")


def unwrap(value: Any) -> Any:
    """An argument of a function with its device arrays made visible to NumPy; host arrays are refused wherever they hide."""
    if isinstance(value, FakeArray):
        return computable(value)
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    if type(value) in (list, tuple):
        return type(value)([unwrap(v) for v in value])
    return value


def rewrap(result: Any, sources: list[FakeArray]) -> Any:
    """NumPy's result as device arrays: views know whose memory they show, scalars become 0-d arrays."""
    if isinstance(result, (list, tuple)):
        parts = [rewrap(part, sources) for part in result]
        return parts if isinstance(result, list) else tuple(parts)
    if isinstance(result, np.generic):
        return FakeArray(np.asarray(result))
    if not isinstance(result, np.ndarray):
        return result
    for source in sources:
        if result is source._host:
            return source
        if np.may_share_memory(result, source._host):
            return FakeArray(result, source if source.base is None else source.base, source.device.id)
    return FakeArray(result)


def host_index(array: FakeArray, index: Any) -> tuple[Any, ...]:
    """The index for NumPy, with index arrays wrapped into range as CuPy wraps them."""
    parts = [
        FakeArray(np.asarray(i)) if isinstance(i, (bool, np.bool_)) else i
        for i in (index if isinstance(index, tuple) else (index,))
    ]
    if sum(_is_mask(i) for i in parts) > 1:
        raise IndexError("more than one boolean array in an index is not supported")
    spans = [0 if i is None or i is Ellipsis else i.ndim if _is_mask(i) else 1 for i in parts]
    axis = 0
    clean: list[Any] = []
    for i, span in zip(parts, spans):
        if isinstance(i, FakeArray):
            clean.append(computable(i) if _is_mask(i) else _wrapped(computable(i), array.shape[axis]))
        elif i is None or i is Ellipsis or isinstance(i, (slice, int, np.integer)):
            clean.append(i)
        else:
            raise TypeError(f"an index on the device cannot be a {type(i)}")
        axis += array.ndim - sum(spans) if i is Ellipsis else span
    return tuple(clean)


def _is_mask(i: Any) -> bool:
    return isinstance(i, FakeArray) and i.dtype.kind == "b"


def _wrapped(index: np.ndarray, size: int) -> np.ndarray:
    if index.dtype.kind not in "iu":
        raise IndexError("arrays used as indices must be of integer or boolean type")
    if index.size and not size:
        raise IndexError("cannot do a non-empty take from an empty axes.")
    return index % size if size else index


def check_call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse arguments that CuPy's function of that name does not take."""
    if problem := misuse(NAMES[name], len(args), kwargs):
        raise TypeError(f"cupy.{name}() {problem}")


_MAKE_VIEWS = {"reshape", "transpose", "swapaxes", "ravel", "squeeze", "view", "diagonal"}


def _method(name: str) -> Callable[..., Any]:
    def method(self: FakeArray, *args: Any, **kwargs: Any) -> Any:
        check_call(f"ndarray.{name}", args, kwargs)
        host = self._host if name in _MAKE_VIEWS else computable(self)
        with np.errstate(all="ignore"):  # CuPy never warns
            result = getattr(host, name)(*unwrap(args), **{k: unwrap(v) for k, v in kwargs.items()})
        return rewrap(result, [self])

    return method


def _operators(compute: np.ufunc) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """`a + b`, `b + a` and `a += b`. What is neither a number nor an array may know better itself."""

    def known(other: Any) -> bool:
        return isinstance(other, (FakeArray, np.ndarray, *SCALARS)) and not (
            compute is np.matmul and isinstance(other, SCALARS)
        )

    def forward(self: FakeArray, other: Any) -> Any:
        return kernel(compute, self, other) if known(other) else NotImplemented

    def reflected(self: FakeArray, other: Any) -> Any:
        return kernel(compute, other, self) if known(other) else NotImplemented

    def in_place(self: FakeArray, other: Any) -> FakeArray:
        kernel(compute, self, other, out=computable(self))
        return self

    return forward, reflected, in_place


def kernel(compute: np.ufunc, *operands: Any, **options: Any) -> FakeArray:
    with np.errstate(all="ignore"):
        return rewrap(compute(*[operand(x) for x in operands], **options), [])


def _unary(compute: np.ufunc) -> Callable[[FakeArray], FakeArray]:
    return lambda self: kernel(compute, self)


_ARITHMETIC = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "matmul": np.matmul,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
}
_COMPARISONS = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
_UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}

for _name, _compute in _ARITHMETIC.items():
    _forward, _reflected, _in_place = _operators(_compute)
    setattr(FakeArray, f"__{_name}__", _forward)
    setattr(FakeArray, f"__r{_name}__", _reflected)
    if _name != "matmul":  # CuPy has no @=
        setattr(FakeArray, f"__i{_name}__", _in_place)
for _name, _compute in _COMPARISONS.items():
    setattr(FakeArray, f"__{_name}__", _operators(_compute)[0])
for _name, _compute in _UNARY.items():
    setattr(FakeArray, f"__{_name}__", _unary(_compute))
for _name in (dotted.partition(".")[2] for dotted in NAMES.below("ndarray")):
    if callable(getattr(np.ndarray, _name, None)) and not hasattr(FakeArray, _name):
        setattr(FakeArray, _name, _method(_name))
