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
from contextvars import ContextVar
from functools import cache
from importlib import import_module

import numpy as np

from ..engine.errors import ArgumentError, MissingExtraError, nearest

NAMES = ("numpy", "numba", "definitions")
WORTHWHILE = 4096  # elements: below, loading numba would not pay, and NumPy is as quick


def _checked(name: str | None) -> str | None:
    if name and name not in NAMES:
        raise ArgumentError(f"unknown kernels {name!r}", " or ".join(NAMES), fix=nearest(name, NAMES))
    return name or None


_asked = _checked(os.environ.get("MINIGRAD_KERNELS"))
_chosen: ContextVar[str | None] = ContextVar("kernels", default=_asked)


def candidates(array_type: type, size: int) -> Sequence[str]:
    """The names of the kernels to try, best first, for arrays of a type of which the largest has `size` elements."""
    name = _chosen.get()
    if array_type is np.ndarray:
        return ("numpy",) if size < WORTHWHILE and name is None else _order(name)
    is_cupy = array_type.__module__.partition(".")[0] == "cupy"
    return _load_cuda() if is_cupy and name != "definitions" else ()


@cache
def _load_cuda() -> tuple[str, ...]:
    """Make the CUDA kernels known, when the first array of CuPy's comes."""
    import_module("minigrad.kernels.cuda")
    return ("cuda",)


@cache
def _order(name: str | None) -> tuple[str, ...]:
    """What to try for large arrays on a CPU where these kernels were chosen, or none were."""
    if name == "definitions":
        return ()
    is_compiled = name != "numpy" and _load_numba(required=name == "numba")
    return ("numba", "numpy") if is_compiled else ("numpy",)


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
    return next(iter(_order(_chosen.get())), "definitions")


@contextmanager
def use(name: str | None) -> Iterator[None]:
    """Inside, these kernels are used for every size, "numpy", "numba" or "definitions"; None decides by itself.

    It holds for this thread, and for the threads that training divides a batch among.
    """
    before = _chosen.set(_checked(name))
    try:
        implementation()  # so that what cannot be loaded is said here
        yield
    finally:
        _chosen.reset(before)
