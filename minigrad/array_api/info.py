"""What the namespace can do: `__array_namespace_info__()`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engine.backend import loaded_backends
from ..errors import ArgumentError
from ..ops.creation import get_default_dtype
from .dtypes import DTYPES, KINDS, default_complex


class Info:
    """The answers of the array API standard's inspection functions."""

    def capabilities(self) -> dict[str, Any]:
        """Which optional parts of the standard are offered."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Where new arrays are made."""
        return "cpu"

    def default_dtypes(self, *, device: str | None = None) -> dict[str, np.dtype]:
        """The dtypes of Python numbers and of indices; `mg.set_default_dtype` chooses the floating one."""
        integral = np.dtype(np.int64)
        return {
            "real floating": get_default_dtype(),
            "complex floating": default_complex(),
            "integral": integral,
            "indexing": integral,
        }

    def dtypes(self, *, device: str | None = None, kind: Any = None) -> dict[str, np.dtype]:
        """The dtypes of a kind, of several, or all of them."""
        wanted = tuple(DTYPES) if kind is None else kind if isinstance(kind, tuple) else (kind,)
        if unknown := [k for k in wanted if k not in KINDS]:
            raise ArgumentError("dtypes: unknown kind", ", ".join(KINDS), repr(unknown[0]))
        return {name: np.dtype(name) for k in wanted for part in KINDS[k] for name in DTYPES[part]}

    def devices(self) -> list[str]:
        """The devices in use: the CPU, and GPUs once one was asked for."""
        others = [b for b in loaded_backends() if b.name != "cpu"]
        return ["cpu", *[f"{b.name}:{i}" for b in others for i in range(b.count())]]


def __array_namespace_info__() -> Info:
    """What the namespace can do: dtypes, devices, capabilities."""
    return Info()
