"""Which kernels compute: numba's where numba is installed, NumPy's otherwise, CUDA's for CuPy's arrays.

`MINIGRAD_KERNELS=numpy` or `numba` in the environment decides, and so does `use("numpy")` for a block of code; with
"definitions" there are no kernels, and ordinary ops compute everything. numba takes a second to load, so it is loaded
when the first array is large enough to be worth it.
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

from ..changes import changes
from ..errors import ArgumentError, MissingExtraError, install_hint

NAMES = ("numpy", "numba", "definitions")
WORTHWHILE = 4096  # elements: below, loading numba would not pay, and NumPy is as quick


# What the environment says is checked when it is first used: importing minigrad must not fail, least of all in the doctor.
_chosen: ContextVar[str | None] = ContextVar("kernels", default=os.environ.get("MINIGRAD_KERNELS") or None)


def _checked(name: str | None, where: str = "MINIGRAD_KERNELS") -> str | None:
    if name and name not in NAMES:
        raise ArgumentError(f"{where}: there are no such kernels", f"one of {', '.join(NAMES)}", repr(name))
    return name or None


def candidates(array_type: type, size: int) -> Sequence[str]:
    """The names of the kernels to try, best first, for arrays of a type of which the largest has `size` elements."""
    name = _chosen.get()
    if array_type is np.ndarray:
        return ("numpy",) if size < WORTHWHILE and name is None else _order(name)
    is_cupy = array_type.__module__.partition(".")[0] == "cupy"
    return _load_cuda() if is_cupy and _checked(name) != "definitions" else ()


@cache
def _load_cuda() -> tuple[str, ...]:
    """Make the CUDA kernels known, when the first array of CuPy's comes."""
    import_module("minigrad.compile.fused").register("cuda")
    return ("cuda",)


@cache
def _order(name: str | None) -> tuple[str, ...]:
    """What to try for large arrays on a CPU where these kernels were chosen, or none were.

    Kernels for "few rows" are compiled by numba too, and stand beside those that the compiler writes.
    """
    if _checked(name) == "definitions":
        return ()
    is_compiled = name != "numpy" and _load_numba(required=name == "numba")
    return ("few rows", "numba", "numpy") if is_compiled else ("numpy",)


def _load_numba(required: bool) -> bool:
    """Load the compiled kernels; where that is not possible, say why if they were asked for, or if it is a surprise."""
    problem = numba_problem()
    if problem is None:
        return True
    is_missing = isinstance(problem, ModuleNotFoundError)
    if required:
        raise MissingExtraError(
            f"numba's kernels were asked for, but numba {'is not installed' if is_missing else 'does not work here'}",
            got=None if is_missing else f"{type(problem).__name__}: {problem}",
            fix=f"{install_hint('fast', *[] if is_missing else ['--upgrade'])}, or MINIGRAD_KERNELS=numpy",
        )
    if not is_missing:
        warnings.warn(f"numba does not work here, NumPy's kernels are used: {problem}", RuntimeWarning, stacklevel=2)
    return False


@cache
def numba_problem() -> Exception | None:
    """What keeps numba's kernels, which are loaded and tried for that, from working here; None if nothing does."""
    try:
        import_module("minigrad.kernels.numba").try_out()
        import_module("minigrad.compile.fused").register("numba")
    except Exception as error:  # too old for this NumPy, a broken LLVM: whatever it is, NumPy's kernels work
        if isinstance(error, ModuleNotFoundError) and error.name not in ("numba", "llvmlite"):
            raise
        return error.with_traceback(None)
    return None


def implementation() -> str:
    """The name of the kernels that large arrays on the CPU go to."""
    return next((name for name in _order(_chosen.get()) if name in NAMES), "definitions")


def check_environment() -> None:
    """Say now what is wrong with `MINIGRAD_KERNELS`, if anything is, and not when an op first runs."""
    if _chosen.get() is not None:
        implementation()


@contextmanager
def use(name: str | None) -> Iterator[None]:
    """Inside, these kernels are used for every size, "numpy", "numba" or "definitions"; None decides by itself.

    It holds for this thread, and for the threads that training divides a batch among.
    """
    before = _chosen.set(_checked(name, "use"))
    changes.note()
    try:
        implementation()  # so that what cannot be loaded is said here
        yield
    finally:
        _chosen.reset(before)
        changes.note()
