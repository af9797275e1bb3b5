"""Pictures of what the engine and the models do: graphs, attention, training. Everything is drawn from the numbers themselves."""

from .attention.attention import Attention, attention
from .attention.tokens import alignment, next_tokens
from .drawing.beam import beam_tree
from .drawing.embeddings import embedding_map, positional_map
from .drawing.heatmap import heatmap
from .drawing.lines import lines
from .drawing.plane import decision_surface, directions, fit
from .drawing.scene import Scene
from .graph.failure import on_error
from .graph.graph import Graph, graph
from .runs.curves import curves
from .runs.live import serve
from .runs.ranks import holders, pipeline_schedule
from .runs.report import report

__all__ = [
    "Attention", "Graph", "Scene", "alignment", "attention", "beam_tree", "curves", "decision_surface", "directions",
    "embedding_map", "fit", "graph", "heatmap", "holders", "lines", "next_tokens", "on_error", "pipeline_schedule",
    "positional_map", "report", "serve",
]  # fmt: skip
