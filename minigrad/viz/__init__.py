"""Pictures of what the engine and the models do: graphs, attention, training. Everything is drawn from the numbers themselves."""

from .attending import Attention, attention
from .beam import beam_tree
from .curves import curves
from .embeddings import embedding_map, positional_map
from .failing import on_error
from .graph import Graph, graph
from .heatmap import heatmap
from .lines import lines
from .live import serve
from .plane import decision_surface, directions, fit
from .report import report
from .scene import Scene
from .tokens import alignment, next_tokens

__all__ = [
    "Attention", "Graph", "Scene", "alignment", "attention", "beam_tree", "curves", "decision_surface", "directions",
    "embedding_map", "fit", "graph", "heatmap", "lines", "next_tokens", "on_error", "positional_map", "report", "serve",
]  # fmt: skip
