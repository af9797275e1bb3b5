"""What the tests of graphs share: a way to find boxes, and a small GPT."""

import numpy as np

import minigrad as mg
from minigrad.nn import functional as F


def leaf(values, dtype="float64"):
    return mg.tensor(np.asarray(values, dtype), requires_grad=True)


def boxes(graph, **wanted):
    return [b for b in graph.boxes if all(getattr(b, name) == value for name, value in wanted.items())]


def the(graph, **wanted):
    (box,) = boxes(graph, **wanted)
    return box


def edges(graph):
    """Which box goes into which, under which name."""
    return {(e.source.label, b.label, e.name) for b in graph.boxes for e in b.inputs if e.source is not None}


class GPT(mg.nn.Module):
    def __init__(self, layers=12, dim=16, vocabulary=20, length=6):
        self.tokens = mg.nn.Embedding(vocabulary, dim)
        self.positions = mg.nn.LearnedPositions(length, dim)
        self.encoder = mg.nn.Encoder(layers, dim, 4, activation="gelu_tanh", causal=True)

    def forward(self, tokens):
        x = self.encoder(self.positions(self.tokens(tokens)))  # (B, T) -> (B, T, C)
        return F.linear(x, self.tokens.weight)  # (B, T, C) -> (B, T, vocabulary)


def gpt_graph(**options):
    return mg.viz.graph(GPT(), mg.tensor(np.arange(6).reshape(1, 6)), **options)
