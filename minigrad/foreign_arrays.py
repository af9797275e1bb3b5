"""Arrays of other libraries (PyTorch, JAX, pandas …), taken through DLPack's and NumPy's protocols, or refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import DeviceError, DtypeError, GradientError, MinigradError

__all__ = ["as_numpy", "is_foreign", "no_bfloat16"]


def is_foreign(value: Any) -> bool:
    """Whether it is an array that NumPy can read, such as a tensor of PyTorch."""
    return hasattr(value, "__array__") or hasattr(value, "__dlpack__")


def as_numpy(value: Any, where: str) -> np.ndarray:
    """What NumPy makes of a list or another library's array, sharing its memory if it can; refused if that would lose something."""
    name = f"{type(value).__module__.partition('.')[0]}.{type(value).__qualname__}"
    if "bfloat16" in str(getattr(value, "dtype", "")):
        raise no_bfloat16(where, name)
    if getattr(value, "requires_grad", False):
        raise GradientError(
            f"{where}: this would silently cut the graph of another library", got=name, fix="pass x.detach()"
        )
    if hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] not in (
        1,
        3,
    ):  # the CPU, and memory pinned to it
        raise DeviceError(
            f"{where}: an array of another library is not on the CPU",
            "cpu",
            name,
            "take it by mg.from_dlpack(x), or move it",
        )
    try:
        return np.asarray(value)
    except MinigradError:  # which says what to do
        raise
    except (ValueError, TypeError, RuntimeError):
        return np.asarray(None)


def no_bfloat16(where: str, got: object) -> DtypeError:
    """The error for numbers in bfloat16, which NumPy does not have."""
    fix = "convert it first: float32 holds every bfloat16 exactly, as in x.float() of PyTorch or x.astype('float32')"
    return DtypeError(f"{where}: bfloat16 cannot be stored in a Tensor", "float16, float32 or float64", got, fix)
