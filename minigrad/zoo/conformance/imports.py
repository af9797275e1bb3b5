"""Measures the import of a plugin, which every `minigrad list` imports."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from pathlib import Path

from ..spec import ModelSpec
from .calls import Failed, NotApplicable

__all__ = ["import_lightly"]

SECONDS, TRIES = 0.5, 3
HEAVY = ("torch", "numba", "cupy", "matplotlib", "scipy", "pandas", "tensorflow", "jax", "mpi4py")
_IMPORT = """
import importlib, json, sys, time
import minigrad, minigrad.zoo
sys.path.append(sys.argv[2])
before, start = set(sys.modules), time.perf_counter()
importlib.import_module(sys.argv[1])
seconds = time.perf_counter() - start
print(json.dumps([seconds, sorted({name.partition(".")[0] for name in set(sys.modules) - before})]))
"""


def import_lightly(spec: ModelSpec) -> str:
    """How long the module of a spec takes in a process of its own, beyond minigrad; Failed if too long, or if it loads too much."""
    module = _module_of(spec)
    inside = Path(str(module.__file__)).name == "__init__.py"
    root = Path(str(module.__file__)).absolute().parents[module.__name__.count(".") + inside]
    seconds: list[float] = []
    while not seconds or min(seconds) > SECONDS and len(seconds) < TRIES:  # a machine may be busy
        command = [sys.executable, "-c", _IMPORT, module.__name__, str(root)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise Failed(f"importing {module.__name__} alone fails: {done.stderr.strip().splitlines()[-1:]}")
        took, loaded = json.loads(done.stdout.splitlines()[-1])
        if heavy := [name for name in HEAVY if name in loaded]:
            raise Failed(f"importing {module.__name__} imports {', '.join(heavy)}: import it where it is used")
        seconds.append(took)
    if min(seconds) > SECONDS:
        raise Failed(f"importing {module.__name__} takes {min(seconds):.2f} s: import what is slow where it is used")
    return f"importing {module.__name__} takes {min(seconds):.3f} s"


def _module_of(spec: ModelSpec) -> types.ModuleType:
    """The module that the spec is a name in; where several are, the one that made its functions."""
    modules = [m for m in list(sys.modules.values()) if isinstance(m, types.ModuleType) and m.__name__ != "__main__"]
    holding = [m for m in modules if getattr(m, "__file__", None) and any(v is spec for v in list(vars(m).values()))]
    if not holding:
        raise NotApplicable("the spec is in no module that can be imported")
    return min(holding, key=lambda m: m.__name__ not in (spec.data.__module__, spec.build.__module__))
