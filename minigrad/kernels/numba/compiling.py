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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import event
from numba.core.caching import FunctionCache

from ...runtime.process_group import launched_rank

HERE = Path(__file__).parent
SECONDS = 15  # that compiling all of them takes, on an ordinary machine


def directory() -> Path:
    """Where compiled code is kept, for these sources, this numba and this NumPy (numba adds the processor itself)."""
    files = sorted([*HERE.glob("*.py"), *(HERE.parents[1] / "maths").glob("*.py")])
    sources = b"".join(path.name.encode() + path.read_bytes() for path in files)
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
    except (OSError, RuntimeError) as error:  # zipped sources, or no home directory
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
    """Inside, functions that are given to numba are kept in our directory; outside, the user's setting for numba holds."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = "" if KEPT_IN is None else str(KEPT_IN)
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


class _Kept(FunctionCache):
    """numba's store for the compiled code of one function, where what cannot be read counts as not there."""

    def load_overload(self, *wanted: Any) -> Any:
        try:
            return super().load_overload(*wanted)
        except Exception:  # unpickling half a file can raise anything
            _say_once(f"compiled kernels in {KEPT_IN} are damaged: they are dropped, and compiled anew")
            self._attempt(self.flush)
            return None

    def save_overload(self, *made: Any) -> None:
        self._attempt(super().save_overload, *made)

    def _attempt(self, write: Callable[..., None], *arguments: Any) -> None:
        """Kernels work without being kept, so what keeps them from that is only said."""
        try:
            write(*arguments)
        except Exception as error:  # a full disk; a directory that is no longer ours
            self.disable()
            reason = getattr(error, "strerror", None) or error
            _say_once(
                f"warning: compiled kernels cannot be kept in {KEPT_IN} ({reason}): "
                "delete that directory, or set NUMBA_CACHE_DIR to another"
            )


# Sums may be taken in any order, which lets them be vectorised; NaN and infinities keep their meaning. With "arcp" they
# would not: 1 / sqrt(x) then becomes an estimate and a step of Newton's, which is NaN for x = inf.
_compiled = numba.njit(nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})


def kernel(function: Callable[..., Any]) -> Any:
    """The function as numba compiles it when it is first called, or as it was compiled and kept by another process."""
    return kept(_compiled(function))


def kept(dispatcher: Any) -> Any:
    """A function of numba's whose compiled code is kept; it is said when it has to be compiled."""
    if KEPT_IN is not None:
        with keeping():
            dispatcher._cache = _Kept(dispatcher.py_func)  # as numba's own cache=True does
    _ours.add(dispatcher)
    return dispatcher


_said: set[str] = set()
_ours: set[Any] = set()  # the functions that are ours, among all that numba may compile


def _say_once(text: str) -> None:
    """Say it on stderr, if this process, which is the first of its training, has not yet."""
    if text not in _said and launched_rank()[0] == 0:
        _said.add(text)
        print(f"minigrad: {text}", file=sys.stderr, flush=True)


class _Notice(event.Listener):
    """Says that kernels are being compiled, so that the program does not seem to hang."""

    def on_start(self, event: Any) -> None:
        if event.data["dispatcher"] in _ours:
            _say_once("compiling kernels that are new here, a second or so for each …")

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Notice())
