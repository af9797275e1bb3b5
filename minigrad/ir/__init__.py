"""The traced graph, the intermediate representation that the compiler and exports read: ops from inputs to outputs.

`Tracing` writes down what a function computes, `Graph` holds it, `with_symbols` finds the sizes that vary, and `save_graph`
and `load_graph` keep it as a file.
"""

from .files import load_graph, save_graph
from .graph import Graph, Number, Size, Step, Value
from .sizes import with_symbols
from .trace import TraceError, Tracing

__all__ = [
    "Graph", "Number", "Size", "Step", "TraceError", "Tracing", "Value", "load_graph", "save_graph", "with_symbols",
]  # fmt: skip
