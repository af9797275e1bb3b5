"""Where arrays live: NumPy on "cpu", CuPy on "cuda". The rest of the code says `xp` and does not ask.

A `Backend` is an array type and the module `xp` that computes on it.
CuPy imports without error on a machine without a GPU, so availability is asked of the driver, not of `import`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from ..errors import DeviceError, DtypeError, MissingExtraError, install_hint, nearest
from .modes import local, notify

Array = Any  # numpy.ndarray or cupy.ndarray
DTYPES = (
    "float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64",
    "bool", "complex64", "complex128",
)  # fmt: skip


class Backend:
    """NumPy's; the subclass for CuPy overrides what differs."""

    name = "cpu"

    def __init__(self, xp: Any = np, array_type: type = np.ndarray):
        self.xp = xp
        self.array_type = array_type

    def device_of(self, array: Array) -> str:
        return self.name

    def on(self, device: str) -> AbstractContextManager[Any]:
        """A context in which new arrays are made, and computed with, on `device`."""
        return nullcontext()

    def full(self, shape: tuple[int, ...], value: Any, dtype: Any, device: str) -> Array:
        with self.on(device):
            return self.xp.full(shape, value, dtype)

    def place(self, array: Array, device: str) -> Array:
        """`array`, from any backend, as an array of this one on `device`."""
        return to_numpy(array)

    def to_numpy(self, array: Array) -> np.ndarray:
        return np.asarray(array)

    def count(self) -> int:
        """How many devices of this kind there are."""
        return 1


class CupyBackend(Backend):
    """CuPy's, which computes on the current device only and says nothing about a singular matrix unless asked to."""

    name = "cuda"

    def device_of(self, array: Array) -> str:
        return self.name if array.device.id == 0 else f"{self.name}:{array.device.id}"

    @contextmanager
    def on(self, device: str) -> Iterator[None]:
        with self.xp.cuda.Device(int(device.partition(":")[2] or 0)), self.strict():
            yield

    def strict(self) -> AbstractContextManager[Any]:
        import cupyx

        return cupyx.errstate(linalg="raise")

    def place(self, array: Array, device: str) -> Array:
        with self.on(device):
            return self.xp.asarray(array) if isinstance(array, np.ndarray) else array.copy()

    def to_numpy(self, array: Array) -> np.ndarray:
        return self.xp.asnumpy(array)

    def count(self) -> int:
        return int(self.xp.cuda.runtime.getDeviceCount())


CPU = Backend()
_HOST = nullcontext()
_by_name: dict[str, Backend] = {"cpu": CPU}
_by_type: dict[type, Backend] = {np.ndarray: CPU}


def register(backend: Backend) -> None:
    """Make `backend` known under its name and its array type."""
    _by_name[backend.name] = backend
    _by_type[backend.array_type] = backend


def _load_cuda() -> Backend:
    try:
        import cupy
    except ImportError:
        raise MissingExtraError(
            "device 'cuda' needs CuPy, which is not installed",
            fix=f"{install_hint('cuda12')} (or cuda13), or stay on 'cpu'",
        ) from None
    if not cupy.cuda.is_available():
        raise DeviceError(
            "device 'cuda': CuPy is installed, but it finds no GPU",
            fix="stay on 'cpu', or check the driver with nvidia-smi",
        )
    register(CupyBackend(cupy, cupy.ndarray))
    return _by_name["cuda"]


def backend_named(device: str) -> Backend:
    """The backend of "cpu", "cuda" or "cuda:1"."""
    kind, colon, index = str(device).partition(":")
    if kind not in _by_name and kind != "cuda" or colon and not index.isdecimal():
        raise DeviceError(
            f"unknown device {device!r}",
            "'cpu', 'cuda' or 'cuda:1'",
            repr(device),
            "use 'cuda'" if kind == "gpu" else nearest(kind, ["cpu", "cuda"]),
        )
    backend = _by_name.get(kind) or _load_cuda()
    if index and int(index) >= backend.count():
        raise DeviceError(f"device {device!r} does not exist", f"an index below {backend.count()}", index)
    return backend


def backend_of(array: Array) -> Backend:
    """The backend whose array type `array` has."""
    backend = _by_type.get(type(array)) or next((b for kind, b in _by_type.items() if isinstance(array, kind)), None)
    if backend is None and not is_cupy(array):
        raise DtypeError(
            "this is not an array that minigrad knows", "a NumPy or CuPy array, or a Tensor", type(array).__name__
        )
    return backend or _load_cuda()


def is_array(value: Any) -> bool:
    return isinstance(value, tuple(_by_type)) or is_cupy(value) and hasattr(value, "dtype")


def is_cupy(value: Any) -> bool:
    """Whether it is CuPy's, without importing that."""
    return type(value).__module__.partition(".")[0] == "cupy"


def device_of(array: Array) -> str:
    return backend_of(array).device_of(array)


def to_numpy(array: Array) -> np.ndarray:
    return backend_of(array).to_numpy(array)


def on_device_of(array: Array) -> AbstractContextManager[Any]:
    """A context in which `array` can be computed with."""
    if isinstance(array, (np.ndarray, np.generic)):
        return _HOST
    backend = backend_of(array)
    return backend.on(backend.device_of(array))


def as_array(value: Any) -> Array:
    """An array; NumPy's arithmetic on arrays without axes gives scalars, which become such arrays again."""
    return np.asarray(value) if isinstance(value, np.generic) else value


def duplicate(array: Array) -> Array:
    """A copy on the same device: CuPy's own copy goes to the current one."""
    if type(array) is np.ndarray and not local.mode.tracers:  # the usual case
        return array.copy()
    with on_device_of(array):
        copy = array.copy()
    notify("copied", array, copy)
    return copy


def owner_of(array: Array) -> Array:
    """The array that owns the memory `array` looks at: writes are counted there."""
    while (base := array.base) is not None and type(base) in _by_type:
        array = base
    return array


def loaded_backends() -> list[Backend]:
    """NumPy's, and CuPy's once it was asked for."""
    return list(_by_name.values())
