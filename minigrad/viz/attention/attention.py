"""What a model attends to: all its heads at a glance, one of them in full, and a page to explore every stage on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ArgumentError, IndexingError, ShapeError, nearest
from ...nn.module import Module
from ..drawing.arrays import as_numpy
from ..drawing.heatmap import heatmap
from ..drawing.page import as_data, framed
from ..drawing.scene import Scene, write_as
from .heads import RELATIVE, STAGES, Heads, Names, named, numbers_below, overview, run_model
from .page import attention_page, check_size
from .tokens import NOTE, alignment, next_tokens

__all__ = ["FORMS", "Attention", "attention"]

FORMS = (".html", ".svg", ".png", ".pdf", ".json")
FULL = 64  # tokens; with more, colours are relative to the largest weight of a row
MOST_CELLS = 2**22  # whose numbers are listed


@dataclass(frozen=True, eq=False)
class Attention:
    """All attentions of a model for one sentence: pictures, a page to explore them on, and the numbers.

    `layers` are in the order of the model's parts. `logits` are (P, V): what the model says about the token after
    each of the last P positions; `vocabulary` names its V tokens. `sentences` are what was read, and what was written.
    """

    layers: tuple[Heads, ...]
    title: str = "attention"
    logits: np.ndarray | None = None
    vocabulary: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()

    @classmethod
    def of_weights(cls, weights: Any, tokens: Names = None, keys: Names = None) -> Attention:
        """From weights alone: (layers, h, L, S), or a list of (h, L, S). With `keys` it is cross-attention.

        >>> Attention.of_weights(np.full((1, 2, 3, 3), 1 / 3), ["a", "b", "c"])
        <Attention: 1 attention, 2 heads>
        """
        arrays = [as_numpy(given) for given in weights]
        if not arrays or any(array.ndim != 3 for array in arrays):
            got = {(len(arrays), *array.shape) for array in arrays} or "no layer"
            raise ShapeError("Attention: these are no weights", "(layers, heads, L, S)", str(got))
        return cls(tuple(_unnamed(f"layer {i}", array, False, tokens, keys) for i, array in enumerate(arrays)))

    @classmethod
    def of_heads(
        cls, q: Any, k: Any, v: Any, *, mask: Any = None, is_causal: bool = False, scale: float | None = None,
        tokens: Names = None, keys: Names = None,
    ) -> Attention:  # fmt: skip
        """One attention from its queries (h, L, E), keys (h, S, E) and values (h, S, V); the scale is 1/√E unless given."""
        q, k, v = (as_numpy(part) for part in (q, k, v))
        if any(part.ndim != 3 for part in (q, k, v)) or q.shape[::2] != k.shape[::2] or k.shape[:2] != v.shape[:2]:
            got = (q.shape, k.shape, v.shape)
            raise ShapeError("Attention: these do not fit", "(h, L, E), (h, S, E), (h, S, V)", got)
        layer = _unnamed("attention", np.zeros((len(q), q.shape[1], k.shape[1])), is_causal, tokens, keys)
        may = None if mask is None else _three_axes(as_numpy(mask).astype(bool), layer.weights.shape)
        layer = replace(layer, q=q, k=k, v=v, mask=may, scale=q.shape[-1] ** -0.5 if scale is None else scale)
        weights = np.stack([layer.stages(head)["softmax"] for head in range(len(q))])
        return cls((replace(layer, weights=weights),))

    @property
    def size(self) -> str:
        """How many attentions and heads there are, in words."""
        heads = sum(layer.count for layer in self.layers)
        return f"{len(self.layers)} attention{'s' * (len(self.layers) != 1)}, {heads} head{'s' * (heads != 1)}"

    def __repr__(self) -> str:
        return f"<Attention: {self.size}>"

    def only(self, *layers: int | str) -> Attention:
        """The same of some layers, by number or path."""
        return replace(self, layers=tuple(self.layer(which) for which in layers))

    def layer(self, which: int | str) -> Heads:
        """One layer, by its number or its path."""
        paths = [layer.path for layer in self.layers]
        if isinstance(which, str) and which in paths:
            return self.layers[paths.index(which)]
        if isinstance(which, int) and -len(paths) <= which < len(paths):
            return self.layers[which]
        fix = nearest(which, paths) if isinstance(which, str) else "a path does as well: " + ", ".join(paths[:8])
        expected = f"{numbers_below(len(paths))}, or a path"
        raise IndexingError(f"Attention: there is no layer {which!r}", expected, repr(which), fix)

    def _with_head(self, layer: int | str, head: int) -> Heads:
        heads = self.layer(layer)
        if not 0 <= head < heads.count:
            raise IndexingError(f"Attention: {heads.path} has no head {head}", numbers_below(heads.count), head)
        return heads

    def scene(self, layer: int | str = 0, head: int = 0, stage: str = "softmax") -> Scene:
        """One stage of one head: queries down the side, keys across the top, numbers where there is room."""
        heads = self._with_head(layer, head)
        stages = heads.stages(head)
        if stage not in stages:
            problem, fix = f"Attention: there is no stage {stage!r} here", nearest(stage, stages)
            raise ArgumentError(problem, ", ".join(stages), fix=fix)
        columns = [str(c) for c in range(stages[stage].shape[1])] if stage == "output" else heads.columns
        by_row = stage == "softmax" and max(len(heads.rows), len(columns)) > FULL
        hidden = ~heads.allowed(head) if stage == "softmax" else None
        barred = hidden is not None and bool(hidden.any())
        note = f"{stage}: {STAGES[stage]}" + ", grey where it may not look" * barred + f", {RELATIVE}" * by_row
        return heatmap(
            stages[stage], heads.rows, columns, title=f"{heads.title}, head {head}", note=note,
            signed=stage != "softmax", by_row=by_row, hidden=hidden,
        )  # fmt: skip

    def overview(self) -> Scene:
        """All heads, small: a row for each layer, and each row of weights relative to its largest."""
        return overview(self.layers, self.title)

    def alignment(self, layer: int | str | None = None) -> Scene:
        """Which source tokens each target token looked at: the mean over the heads of a cross-attention, the last unless given."""
        crosses = [heads for heads in self.layers if heads.kind == "cross"]
        if layer is None and not crosses:
            raise ArgumentError("Attention: there is no cross-attention to align by", fix="name a layer")
        heads = crosses[-1] if layer is None else self.layer(layer)
        note = "down: the word being chosen; across: where it looks" if heads.chosen else NOTE
        mean = heads.weights.mean(axis=0)
        return alignment(mean, heads.columns, heads.rows, title=f"{heads.title}, mean of heads", note=note)

    def next_tokens(self, temperature: float = 1.0, top: int = 10) -> Scene:
        """What may come next, where logits are known."""
        if self.logits is None:
            raise ArgumentError("Attention: no logits are known", fix="give vocabulary=, or logits=, to viz.attention")
        return next_tokens(self.logits[-1], self.vocabulary, temperature, top)

    def html(self, layer: int | str | None = None, head: int | None = None) -> str:
        """The page: every layer, head and stage, and the computation of each cell where the mouse is.

        It opens at this head, or without one at the mean of the last cross-attention, if there is one.
        """
        crosses = [number for number, heads in enumerate(self.layers) if heads.kind == "cross"]
        if layer is head is None and crosses:
            return attention_page(self, crosses[-1], None if self.layers[crosses[-1]].count > 1 else 0)
        return attention_page(self, self.layers.index(self._with_head(layer or 0, head or 0)), head or 0)

    def numbers(self) -> dict[str, Any]:
        """All stages of all heads, as lists."""
        check_size("these are too many weights to list", sum(heads.weights.size for heads in self.layers), MOST_CELLS)
        layers = [
            {"path": heads.path, "kind": heads.kind, "tokens": heads.rows, "keys": heads.columns, "heads": [
                {stage: values.tolist() for stage, values in heads.stages(head).items()} for head in range(heads.count)
            ]}
            for heads in self.layers
        ]  # fmt: skip
        return {"title": self.title, "layers": layers}

    def write(
        self, path: str | os.PathLike[str], layer: int | str | None = None, head: int | None = None, dark: bool = False
    ) -> Path:
        """Write a page, a picture or the numbers; the suffix says which. A picture shows all heads, unless a layer or head is given."""
        one = layer or 0, head or 0
        texts = {".html": lambda: self.html(layer, head), ".json": lambda: as_data(self.numbers())}
        return write_as(path, texts, lambda: self.overview() if layer is head is None else self.scene(*one), dark)

    def _repr_html_(self) -> str | None:
        return framed(self.html(), 760)

    def _repr_svg_(self) -> str:  # for notebooks that show no pages
        return self.overview().svg()


def attention(
    model: Module, *inputs: Any, tokens: Names = None, keys: Names = None, chosen: Names = None, row: int = 0,
    logits: Any = None, vocabulary: Names = None, sentences: Sequence[str] = (), title: str | None = None, **options: Any,
) -> Attention:  # fmt: skip
    """Run `model(*inputs, **options)` in evaluation mode and see all its attentions, for one row of the batch.

    `tokens` name the positions of the sentence, `keys` those of the source that cross-attention looks at, and that an
    encoder before it reads. A decoder that is fed `tokens` and so writes the `chosen` ones has its queries named by these.
    `sentences` stand above the page: what was read, and what was written.

    With a `vocabulary`, the model's result, or `logits` (V,) or (L, V) if given, is also shown
    as what may come next. A model's attentions are its `nn.MultiHeadAttention`s.

    >>> import minigrad as mg
    >>> model = mg.nn.Encoder(2, dim=8, heads=2, causal=True)
    >>> seen = attention(model, mg.randn(1, 3, 8), tokens=["You", "are", "welcome"])
    >>> seen, seen.layers[1].weights.shape
    (<Attention: 2 attentions, 4 heads>, (2, 3, 3))
    """
    layers, result = run_model(model, inputs, options, row, tokens, keys, chosen)
    names = () if vocabulary is None else tuple(str(name) for name in vocabulary)
    known = _logits(result if logits is None else logits, logits is None, row, names)
    return Attention(tuple(layers), title or type(model).__name__, known, names, tuple(map(str, sentences)))


def _unnamed(path: str, weights: np.ndarray, is_causal: bool, tokens: Names, keys: Names) -> Heads:
    """Weights (h, L, S) of a layer that only its position names; with as many keys as queries it is self-attention."""
    rows = named(path, tokens, weights.shape[1])
    is_self = keys is None and weights.shape[1] == weights.shape[2]
    columns = rows if is_self else named("keys", keys, weights.shape[2])
    return Heads(path, "causal" if is_causal else "self" if is_self else "cross", rows, columns, weights)


def _three_axes(mask: np.ndarray, scores: tuple[int, ...]) -> np.ndarray:
    whole = mask.reshape((1,) * max(3 - mask.ndim, 0) + mask.shape)
    if whole.ndim != 3 or any(size not in (1, full) for size, full in zip(whole.shape, scores)):
        raise ShapeError("Attention: the mask does not fit", f"what broadcasts to {scores}", mask.shape)
    return whole


def _logits(given: Any, is_result: bool, row: int, names: tuple[str, ...]) -> np.ndarray | None:
    """Logits as (P, V), of the row if they are the model's result, which need not be logits at all."""
    if not names or is_result and not (hasattr(given, "numpy") and given.ndim >= 2):
        return None
    array = as_numpy(given).astype(float)
    array = array[row] if is_result or array.ndim == 3 else array
    if array.ndim not in (1, 2) or array.shape[-1] != len(names) or not array.size:
        raise ShapeError("viz.attention: the logits do not fit the vocabulary", f"(…, {len(names)})", array.shape)
    return array.reshape(-1, len(names))
