"""The end of a language model: from vectors to logits of all words, and how wrong they are."""

from __future__ import annotations

from typing import Any

from ...engine.tensor import Tensor
from .. import functional as F
from ..functional.declaration import as_tensor
from ..module import Module

__all__ = ["VocabularyHead"]


class VocabularyHead(Module):
    """Logits of words, by a table of vectors that belongs to the model, and the loss of targets; it has no parameters.

    `tables` are the paths, from the model, of what has a row or a number for each word. So `parallel.parallelize` knows what
    to divide among ranks, and puts a head into the place of this one of which each rank has some of the words.

    >>> import minigrad as mg
    >>> head, vectors, table = mg.nn.VocabularyHead("tokens.weight"), mg.ones(2, 3), mg.ones(10, 3)
    >>> head(vectors, table).shape, round(head.cross_entropy(head.scores(vectors, table), [4, 5]).item(), 3)
    ((2, 10), 4.605)
    """

    def __init__(self, *tables: str):
        self.tables = tables

    def forward(self, input: Any, weight: Any, bias: Any = None) -> Tensor:
        """The logits of all words: (…, C), (V, C), (V,) or None -> (…, V)."""
        return self.scores(input, weight, bias)

    def scores(self, input: Any, weight: Any, bias: Any = None) -> Tensor:
        """The logits of those words that this process has: all of them, here."""
        return F.linear(input, weight, bias)

    def cross_entropy(
        self, scores: Tensor, targets: Any, *, ignore_index: int = -100, label_smoothing: float = 0.0
    ) -> Tensor:
        """The summed cross-entropy of scores (…, V) with targets (…); at least in float32."""
        flat = scores.reshape(-1, scores.shape[-1])  # (…, V) -> (N, V)
        flat = flat.astype("float32") if flat.dtype == "float16" else flat
        options: dict[str, Any] = {"ignore_index": ignore_index, "label_smoothing": label_smoothing}
        return F.cross_entropy(flat, as_tensor(targets).reshape(-1), reduction="sum", **options)

    def right(self, scores: Tensor, targets: Tensor) -> Tensor:
        """How many of the targets (N,) have the greatest score: (N, V) -> ()."""
        return (scores.argmax(axis=1) == targets).sum()
