"""A strict fake device, "fake" and "fake:1", on which the CuPy path runs without a GPU.

`xp` stands in for the module cupy: it has only the names that cupy has (see cupy_names.py), takes only device arrays and
scalars, takes only the keywords that cupy takes, and gives device arrays back. Arrays come to the device through
`xp.array` and `xp.asarray`, and leave it through `xp.asnumpy` and `get`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from minigrad.engine.backend import CupyBackend, register

from .cupy_names import NAMES, missing
from .fake_array import DEVICE_COUNT, Device, FakeArray, check_call, computable, host_index, operand, rewrap, unwrap

_ATOMIC = ("int32", "uint32", "uint64", "float16", "float32", "float64")  # what CUDA can add without a race
_ARRAY_FIRST = ("a", "ary", "array", "m", "condition", "arr")  # CuPy calls methods of this argument: a scalar has none
_SCATTERS = ("add", "subtract", "maximum", "minimum")  # the ufuncs whose `at` CuPy implements
_linalg = threading.local()


def _arrays_in(value: Any) -> list[FakeArray]:
    if isinstance(value, FakeArray):
        return [value]
    return [array for item in value for array in _arrays_in(item)] if isinstance(value, (list, tuple)) else []


class FakeFunction:
    """One of cupy's functions, computed by NumPy's of the same name."""

    def __init__(self, name: str, compute: Any):
        self.name, self.compute = name, compute

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        check_call(self.name, args, kwargs)
        self.check_operands(args)
        with np.errstate(all="ignore"):
            result = self.compute(*unwrap(args), **{k: unwrap(v) for k, v in kwargs.items()})
        return rewrap(result, _arrays_in([*args, *kwargs.values()]))

    def check_operands(self, args: tuple[Any, ...]) -> None:
        parameters = NAMES[self.name] or [""]
        if args and parameters[0] in _ARRAY_FIRST and not isinstance(args[0], FakeArray):
            raise TypeError(f"cupy.{self.name} needs an array on the device, not {type(args[0])}")
        if args and parameters[0] == "tup" and not all(isinstance(item, FakeArray) for item in args[0]):
            raise TypeError(f"cupy.{self.name}: only cupy arrays can be concatenated")


class FakeUfunc(FakeFunction):
    """One of cupy's ufuncs: scalars will do as operands, and some have `at`, `reduce` …"""

    def check_operands(self, args: tuple[Any, ...]) -> None:
        for arg in args:
            operand(arg)

    def __getattr__(self, method: str) -> Any:
        dotted = f"{self.name}.{method}"
        if method not in ("reduce", "accumulate", "outer", "reduceat") or dotted not in NAMES:
            raise missing(dotted)
        return FakeFunction(dotted, getattr(self.compute, method))

    def at(self, a: FakeArray, indices: Any, b: Any = None) -> None:
        if self.name not in _SCATTERS:
            raise NotImplementedError(f"cupy.{self.name}.at is not supported")
        if a.dtype.name not in _ATOMIC:
            raise TypeError(f"scatter_{self.name} only supports {', '.join(_ATOMIC)} as data type, not {a.dtype}")
        self.compute.at(computable(a), host_index(a, indices), operand(b))


def _array(
    obj: Any, dtype: Any = None, copy: bool | None = True, order: Any = "K", subok: bool = False, ndmin: int = 0
) -> FakeArray:
    """`cupy.array`: from the host, from the device, or from nested lists of either."""
    if isinstance(obj, FakeArray):
        result = rewrap(np.array(obj._host, dtype=dtype, copy=bool(copy) or None, order=order, ndmin=ndmin), [obj])
        if result is not obj:
            computable(obj)
        return result
    if isinstance(obj, (list, tuple)):
        obj = [operand(item) if isinstance(item, FakeArray) else item for item in obj]
    return FakeArray(np.array(obj, dtype=dtype, order=order, ndmin=ndmin))


def _asarray(a: Any, dtype: Any = None, order: Any = None, copy: bool | None = None) -> FakeArray:
    return _array(a, dtype, copy, order)


def _asnumpy(a: Any) -> np.ndarray:
    return a.get() if isinstance(a, FakeArray) else np.asarray(a)


def _broadcast_to(array: FakeArray, shape: Any) -> FakeArray:
    """A view as CuPy makes it: several elements in one place, and no flag that says so."""
    view = np.broadcast_to(array._host, shape)
    return rewrap(np.lib.stride_tricks.as_strided(array._host, view.shape, view.strides), [array])


@contextmanager
def _strict_linalg() -> Iterator[None]:
    """`cupyx.errstate(linalg="raise")`."""
    previous, _linalg.raises = getattr(_linalg, "raises", False), True
    try:
        yield
    finally:
        _linalg.raises = previous


def _quiet(compute: Any) -> Any:
    """A function of cupy.linalg: unless told to raise, it gives meaningless numbers for a matrix it cannot treat."""

    def careless(*args: Any, **kwargs: Any) -> Any:
        try:
            return compute(*args, **kwargs)
        except np.linalg.LinAlgError:
            if getattr(_linalg, "raises", False):
                raise
            return np.array(args[-1])

    return careless


def _solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The stacks of both must be equal in CuPy, they do not broadcast."""
    if b.ndim > 1 and a.shape[:-1] != b.shape[:-1]:
        raise ValueError("a must have (..., M, M) shape and b must have (..., M, K)")
    return np.linalg.solve(a, b)


class FakeGenerator:
    """`cupy.random.Generator`, which lacks normal, choice, permutation and shuffle."""

    def __init__(self, bit_generator: np.random.BitGenerator):
        self._host = np.random.Generator(bit_generator)

    def __getattr__(self, name: str) -> FakeFunction:
        if f"random.Generator.{name}" not in NAMES:
            raise missing(f"random.Generator.{name}")
        return FakeFunction(f"random.Generator.{name}", getattr(self._host, name))


def _philox(seed: int | None = None, *, size: int = -1) -> np.random.BitGenerator:
    return np.random.Philox(seed)


_SPECIAL = {
    "ndarray": FakeArray,
    "array": _array,
    "asarray": _asarray,
    "asnumpy": _asnumpy,
    "broadcast_to": _broadcast_to,
    "linalg.solve": FakeFunction("linalg.solve", _quiet(_solve)),
    "random.Generator": FakeGenerator,
    "random.Philox4x3210": _philox,
    "cuda": SimpleNamespace(
        Device=Device, is_available=lambda: True, runtime=SimpleNamespace(getDeviceCount=lambda: DEVICE_COUNT)
    ),
}


class FakeModule:
    """cupy, or a part of it such as cupy.linalg."""

    def __init__(self, real: ModuleType, prefix: str = ""):
        self._real, self._prefix = real, prefix

    def __getattr__(self, name: str) -> Any:
        dotted = self._prefix + name
        if dotted not in NAMES:
            raise missing(dotted)
        found = _SPECIAL[dotted] if dotted in _SPECIAL else self._convert(dotted, getattr(self._real, name))
        setattr(self, name, found)
        return found

    def _convert(self, dotted: str, real: Any) -> Any:
        if isinstance(real, ModuleType):
            return FakeModule(real, dotted + ".")
        if isinstance(real, np.ufunc):
            return FakeUfunc(dotted, real)
        if not callable(real) or isinstance(real, type):
            return real
        return FakeFunction(dotted, _quiet(real) if dotted.startswith("linalg.") else real)


class FakeBackend(CupyBackend):
    """CuPy's own backend, given other arrays to work on."""

    name = "fake"

    def strict(self) -> AbstractContextManager[None]:
        return _strict_linalg()


xp = FakeModule(np)
register(FakeBackend(xp, FakeArray))
