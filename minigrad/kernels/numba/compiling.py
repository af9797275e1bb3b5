"""How numba compiles these kernels, where the compiled code is kept, and what is said meanwhile.

numba notices an edit of the file that a kernel is in, but not of one that it imports from. So the directory that compiled
code is kept in is named after everything it was made from.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import event

HERE = Path(__file__).parent
SECONDS = 15  # that compiling all of them takes, on an ordinary machine


def directory() -> Path:
    """Where compiled code is kept, for these sources, this numba and this NumPy (numba adds the processor itself)."""
    sources = b"".join(path.name.encode() + path.read_bytes() for path in sorted(HERE.glob("*.py")))
    made_from = hashlib.sha256(sources + f"{numba.__version__} {np.__version__}".encode()).hexdigest()
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    base = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "minigrad"
    return base / f"kernels-{made_from[:16]}"


def _is_writable(path: Path) -> bool:
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError:
        return False
    return True


def _kept_in() -> Path | None:
    """The directory, or None with a warning where nothing can be written."""
    try:
        path = directory()
        if _is_writable(path):
            return path
        where = f"{path} cannot be written to"
    except (OSError, RuntimeError) as error:  # zipped sources, or nobody's home
        where = str(error)
    warnings.warn(
        f"compiled kernels cannot be kept, and every process compiles its own (about {SECONDS} s): {where}; "
        "set NUMBA_CACHE_DIR to a directory that can be",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


KEPT_IN = _kept_in()


@contextmanager
def keeping() -> Iterator[None]:
    """Inside, functions that are given to numba are kept in our directory; elsewhere numba's setting is the user's."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = "" if KEPT_IN is None else str(KEPT_IN)
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


# Sums may be taken in any order, which lets them be vectorised; NaN and infinities keep their meaning. With "arcp" they
# would not: 1 / sqrt(x) then becomes an estimate and a step of Newton's, which is NaN for x = inf.
kernel = numba.njit(nogil=True, cache=KEPT_IN is not None, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
# Within these the order of additions is what makes them right.
exact = numba.njit(nogil=True, error_model="numpy", fastmath={"contract"})


class _Notice(event.Listener):
    """Says once that kernels are being compiled, so that nobody thinks that the program hangs."""

    said = False

    def on_start(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        if not self.said and (function.__module__ or "").startswith(__package__):
            self.said = True
            print(f"minigrad: compiling kernels once, about {SECONDS} s in all …", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Notice())
