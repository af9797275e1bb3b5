"""Pictures of what the engine and the models do: graphs, attention, training. Everything is drawn from the numbers themselves."""

from .failing import on_error
from .graph import Graph, graph
from .scene import Scene

__all__ = ["Graph", "Scene", "graph", "on_error"]
