"""Which kernels compute: numba's where numba is installed, NumPy's otherwise, CUDA's for CuPy's arrays.

`MINIGRAD_KERNELS=numpy` or `numba` in the environment decides, and so does `use("numpy")` for a block of code; with
"definitions" there are no kernels, and ordinary ops compute everything. numba takes a second to load, so nobody waits
for it before an array is large enough to be worth it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module

import numpy as np

from ..engine.errors import ArgumentError, MissingExtraError, nearest

NAMES = ("numpy", "numba", "definitions")
WORTHWHILE = 4096  # elements: below, loading numba would not pay, and NumPy is as quick
_forced: str | None = None
_order: tuple[str, ...] | None = None  # for large arrays on a CPU; None until one comes


def candidates(array_type: type, size: int) -> Sequence[str]:
    """The names of the kernels to try, best first, for arrays of a type of which the largest has `size` elements."""
    if array_type is np.ndarray:
        if size < WORTHWHILE and _forced is None:
            return ("numpy",)
        return _order if _order is not None else _decide()
    is_cupy = array_type.__module__.partition(".")[0] == "cupy"
    return _load_cuda() if is_cupy and _forced != "definitions" else ()


@cache
def _load_cuda() -> tuple[str, ...]:
    """Make the CUDA kernels known, when the first array of CuPy's comes."""
    import_module("minigrad.kernels.cuda")
    return ("cuda",)


def _decide() -> tuple[str, ...]:
    global _order
    if _forced == "definitions":
        _order = ()
    elif _forced != "numpy" and _load_numba(required=_forced == "numba"):
        _order = ("numba", "numpy")
    else:
        _order = ("numpy",)
    return _order


def _load_numba(required: bool) -> bool:
    """Load the compiled kernels; where that is not possible, say why if they were asked for, or if it is a surprise."""
    try:
        import_module("minigrad.kernels.numba").try_out()
        return True
    except ModuleNotFoundError as error:
        if error.name not in ("numba", "llvmlite"):
            raise
        if required:
            raise MissingExtraError(
                "MINIGRAD_KERNELS=numba: numba is not installed", fix="pip install 'minigrad[fast]'"
            ) from None
    except Exception as error:  # too old for this NumPy, a broken LLVM: whatever it is, NumPy's kernels work
        warnings.warn(f"numba does not work here, NumPy's kernels are used: {error}", RuntimeWarning, stacklevel=2)
    return False


def implementation() -> str:
    """The name of the kernels that large arrays on the CPU go to."""
    order = _decide() if _order is None else _order
    return order[0] if order else "definitions"


@contextmanager
def use(name: str | None) -> Iterator[None]:
    """Inside, these kernels are used for every size, "numpy", "numba" or "definitions"; None decides by itself."""
    global _forced, _order
    before = _forced, _order
    _forced, _order = _checked(name), None
    try:
        _decide()
        yield
    finally:
        _forced, _order = before


def _checked(name: str | None) -> str | None:
    if name and name not in NAMES:
        raise ArgumentError(f"unknown kernels {name!r}", " or ".join(NAMES), fix=nearest(name, NAMES))
    return name or None


_forced = _checked(os.environ.get("MINIGRAD_KERNELS"))
