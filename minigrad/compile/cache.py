"""Generated source as files, named after their contents, beside the compiled kernels; numba keeps what it makes of them there too."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numba

from ..kernels.numba import compiling
from ..saving import write_atomically

_loaded: dict[str, ModuleType] = {}
_lock = threading.Lock()
_compiled = numba.njit(nogil=True, error_model="numpy", fastmath={"contract"})


def _without_aliases(flags: Any) -> Any:
    """What is written to is no other argument: for a loop over many arrays LLVM would not look, and not vectorise it."""
    flags.noalias = flags.no_cfunc_wrapper = True
    return flags


def kernel(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """The function compiled for these types, or as another process compiled and kept it. Other types are refused."""

    def decorate(function: Callable[..., Any]) -> Any:
        with compiling.keeping():
            dispatcher = compiling.kept(_compiled(function))
        dispatcher._compiler._customize_flags = _without_aliases
        dispatcher.compile(signature)
        dispatcher.disable_compile()
        return dispatcher

    return decorate


@cache
def _directory(base: Path) -> Path:
    """Where generated source is kept: in the directory for what it calls, by how this file lets it be compiled."""
    path = base / f"loops-{hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]}"
    path.mkdir(parents=True, exist_ok=True)
    return path


def load(source: str) -> ModuleType:
    """The module with this source: from memory, from the file of an earlier run, or compiled now."""
    name = f"minigrad_loops_{hashlib.sha256(source.encode()).hexdigest()[:24]}"
    with _lock:
        if name not in _loaded:
            if compiling.KEPT_IN is not None:
                _loaded[name] = _imported(_directory(compiling.KEPT_IN), name, source)
            else:
                with tempfile.TemporaryDirectory() as folder:
                    _loaded[name] = _imported(Path(folder), name, source)
        return _loaded[name]


class _Loader(SourceFileLoader):
    """Reads the source alone: half a file of bytecode would be an error."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def _imported(folder: Path, name: str, source: str) -> ModuleType:
    """The module, from a file that numba keeps compiled code beside; it is written unless it is there, and whole."""
    path = folder / f"{name}.py"
    if not path.exists() or path.read_text(encoding="utf-8") != source:
        write_atomically(path, source.encode(), durable=False)
    spec = importlib.util.spec_from_file_location(name, path, loader=_Loader(name, str(path)))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where numba looks it up when it reads what it kept
    spec.loader.exec_module(module)
    return module
