"""Generated source as files, named after their contents, beside the compiled kernels; numba keeps what it makes of them there too."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from importlib.abc import SourceLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import numba

from ..kernels.numba import compiling

_loaded: dict[str, ModuleType] = {}
_lock = threading.Lock()
_compiled = numba.njit(nogil=True, error_model="numpy", fastmath={"contract"})


def kernel(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """The function compiled for these types, or as another process compiled and kept it. Other types are refused."""

    def decorate(function: Callable[..., Any]) -> Any:
        with compiling.keeping():
            dispatcher = compiling.kept(_compiled(function))
        dispatcher.compile(signature)
        dispatcher.disable_compile()
        return dispatcher

    return decorate


def directory() -> Path | None:
    """Where generated source is kept, for this version of what it calls; None if nothing can be written."""
    if compiling.KEPT_IN is None:
        return None
    here = Path(__file__).parent
    names = ("addresses.py", "cache.py")
    sources = b"".join((here / name).read_bytes() for name in names)
    path = compiling.KEPT_IN / f"loops-{hashlib.sha256(sources).hexdigest()[:16]}"
    path.mkdir(parents=True, exist_ok=True)
    return path


def load(source: str) -> ModuleType:
    """The module with this source: from memory, from the file of an earlier run, or compiled now."""
    name = f"minigrad_loops_{hashlib.sha256(source.encode()).hexdigest()[:24]}"
    with _lock:
        if name not in _loaded:
            kept = directory()
            if kept is None:
                with tempfile.TemporaryDirectory() as folder:
                    _loaded[name] = _imported(_written(Path(folder), name, source), name, source)
            else:
                _loaded[name] = _imported(_written(kept, name, source), name, source)
        return _loaded[name]


def _written(folder: Path, name: str, source: str) -> Path:
    path = folder / f"{name}.py"
    if not path.exists() or path.read_text(encoding="utf-8") != source:
        handle, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(source)
        os.replace(temporary, path)
    return path


class _Text(SourceLoader):
    """Imports the text that was generated; the file is there for numba, which keeps compiled code beside it, and for people."""

    def __init__(self, path: Path, source: str):
        self.path, self.source = path, source

    def get_filename(self, fullname: str) -> str:
        return str(self.path)

    def get_data(self, path: Any) -> bytes:
        return self.source.encode()


def _imported(path: Path, name: str, source: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path, loader=_Text(path, source))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
