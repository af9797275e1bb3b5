"""A compiler: from a function made of ops to a few loops, forward and backward.

trace -> simplify -> group -> plan memory -> write source -> compile and keep. Each step is a file of its own, and what it
makes can be printed.
"""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ..ir import Graph, Number, Size, Step, TraceError, Value, load_graph, save_graph
from .function import Compiled, compile, trace

__all__ = [
    "Compiled", "Graph", "Number", "Size", "Step", "TraceError", "Value", "compile", "load_graph", "save_graph", "trace",
]  # fmt: skip


class _CallableModule(ModuleType):
    """`mg.compile(f)`: the package and its first function have one name, and the package is loaded when it is first used."""

    def __call__(self, function: Callable[..., Any]) -> Compiled:
        return self.compile(function)


sys.modules[__name__].__class__ = _CallableModule
