"""How a kernel is found and started. The sources are the .cu files beside this one, compiled once for each dtype.

All whole numbers are `long long` in a kernel and all others `double`, so that what is passed has the size that is read.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any

import numpy as np

from ...engine.backend import Array, on_device_of
from ...engine.op import Function
from ..registry import Kernel

SOURCES = ("common.cu", "elementwise.cu", "rows.cu", "steps.cu")
REALS = {"f": "float", "d": "double"}
BLOCKS = 2**16  # that elementwise kernels are divided into at most; each goes on where another ended
THREADS = 256  # of a block
WARP = 32


def source(char: str) -> str:
    """All kernels as one text, for dtype "f" or "d"."""
    here = Path(__file__).parent
    texts = [(here / name).read_text(encoding="utf-8") for name in SOURCES]
    return "\n".join([f"typedef {REALS[char]} real;", *texts])


@cache
def module(char: str) -> Any:
    """The kernels for a dtype; CuPy compiles them when the first is called, and keeps them on disk."""
    import cupy

    return cupy.RawModule(code=source(char))


@cache
def compiled(name: str, char: str) -> Callable[..., None]:
    """The kernel of a name, to be called with a grid, a block and arguments."""
    return module(char).get_function(name)


def start(name: str, dtype: Any, grid: tuple[int, ...], threads: int, *arguments: Any) -> None:
    """Start a kernel; an array that is None becomes a null pointer. Arrays must be contiguous."""
    compiled(name, np.dtype(dtype).char)(grid, (threads,), tuple(_passed(a) for a in arguments))


def _passed(argument: Any) -> Any:
    if argument is None:
        return np.int64(0)
    if isinstance(argument, (int, np.integer)):
        return np.int64(argument)
    return np.float64(argument) if isinstance(argument, (float, np.floating)) else argument


def each(name: str, size: int, first: Array, *arguments: Any) -> None:
    """Start an elementwise kernel on `size` elements, of the dtype of its first array."""
    if size:
        grid = (min(-(-size // THREADS), BLOCKS),)
        start(name, first.dtype, grid, THREADS, first, *arguments, size)


def each_row(name: str, shape: tuple[int, int], first: Array, *arguments: Any) -> None:
    """Start a kernel that gives a block to each row, with a thread for every four of its columns."""
    rows, width = shape
    threads = min(-(-width // (4 * WARP)) * WARP, 2 * THREADS)
    start(name, first.dtype, (min(rows, BLOCKS),), threads, first, *arguments, width, rows)


def dropout_arguments(p: float, key: int, first: int) -> tuple[int, float, int, int, int]:
    """What the kernels want for dropout: threshold, factor, the halves of the key, the first element's number."""
    threshold = min(int(p * 2**32), 2**32 - 1)
    return threshold, 1 / (1 - p) if p < 1 else 0.0, key & 0xFFFFFFFF, key >> 32, first & 0xFFFFFFFF


def register(function: Function, forward: Any, backward: Any, accepts: Any) -> None:
    """Make this the CUDA kernel of a fused op; it runs on the device where its first array is."""
    function.kernels["cuda"] = Kernel(_there(forward), _there(backward), accepts)


def _there(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def run(first: Array, *rest: Any, **attributes: Any) -> Any:
        with on_device_of(first):
            return function(first, *rest, **attributes)

    return run
