"""What a model attends to: all its heads at a glance, one of them in full, and a page to explore every stage on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.errors import ArgumentError, IndexingError, ShapeError, nearest
from ..nn.module import Module
from ..saving import check_folder, write_atomically
from .heads import STAGES, Heads, as_numpy, named, numbers_below, watched
from .heatmap import heatmap
from .overview import RELATIVE, overview
from .scene import Scene

__all__ = ["FORMS", "Attention", "attention"]

FORMS = (".html", ".svg", ".png", ".pdf", ".json")
FULL = 64  # tokens; with more, colours are relative to the largest weight of a row
MOST_CELLS = 2**22  # whose numbers are listed


@dataclass(frozen=True, eq=False)
class Attention:
    """All attentions of a model for one sentence: pictures, a page to explore them on, and the numbers.

    `layers` are in the order of the model's parts. `logits` are (P, V): what the model says about the token after
    each of the last P positions; `vocabulary` names its V tokens.
    """

    layers: tuple[Heads, ...]
    title: str = "attention"
    logits: np.ndarray | None = None
    vocabulary: tuple[str, ...] = ()

    @classmethod
    def of_weights(
        cls, weights: Any, tokens: Sequence[Any] | None = None, keys: Sequence[Any] | None = None
    ) -> Attention:
        """From weights alone: (layers, h, L, S), or a list of (h, L, S). With `keys` it is cross-attention.

        >>> Attention.of_weights(np.full((1, 2, 3, 3), 1 / 3), ["a", "b", "c"])
        <Attention: 1 layer, 2 heads>
        """
        layers = []
        if not len(weights):
            raise ShapeError("Attention: there is no layer", "(layers, heads, L, S)", "nothing")
        for number, given in enumerate(weights):
            array = as_numpy(given)
            if array.ndim != 3:
                raise ShapeError(
                    "Attention: these are no weights", "(layers, heads, L, S)", (len(weights), *array.shape)
                )
            rows = named(f"layer {number}", tokens, array.shape[1])
            columns = rows if keys is None and array.shape[1] == array.shape[2] else named("keys", keys, array.shape[2])
            kind = "self" if columns is rows else "cross"
            layers.append(Heads(f"layer {number}", kind, rows, columns, array))
        return cls(tuple(layers))

    @classmethod
    def of_heads(
        cls,
        q: Any,
        k: Any,
        v: Any,
        *,
        mask: Any = None,
        is_causal: bool = False,
        scale: float | None = None,
        tokens: Sequence[Any] | None = None,
        keys: Sequence[Any] | None = None,
    ) -> Attention:
        """One attention from its queries (h, L, E), keys (h, S, E) and values (h, S, V); the scale is 1/√E unless given."""
        q, k, v = (as_numpy(part) for part in (q, k, v))
        if any(part.ndim != 3 for part in (q, k, v)) or q.shape[::2] != k.shape[::2] or k.shape[:2] != v.shape[:2]:
            raise ShapeError(
                "Attention: these do not fit", "(h, L, E), (h, S, E), (h, S, V)", (q.shape, k.shape, v.shape)
            )
        rows = named("tokens", tokens, q.shape[1])
        columns = rows if keys is None and q.shape[1] == k.shape[1] else named("keys", keys, k.shape[1])
        kind = "causal" if is_causal else "self" if columns is rows else "cross"
        scores = (len(q), q.shape[1], k.shape[1])
        may = None if mask is None else _three_axes(as_numpy(mask).astype(bool), scores)
        scale = q.shape[-1] ** -0.5 if scale is None else scale
        layer = Heads("attention", kind, rows, columns, np.zeros(scores), q, k, v, may, scale)
        weights = np.stack([layer.stages(head)["softmax"] for head in range(len(q))])
        return cls((replace(layer, weights=weights),))

    @property
    def told(self) -> str:
        """How much there is, in words."""
        heads = sum(layer.count for layer in self.layers)
        return f"{len(self.layers)} layer{'s' * (len(self.layers) != 1)}, {heads} head{'s' * (heads != 1)}"

    def __repr__(self) -> str:
        return f"<Attention: {self.told}>"

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
        raise IndexingError(
            f"Attention: there is no layer {which!r}", f"{numbers_below(len(paths))}, or a path", repr(which), fix
        )

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
            raise ArgumentError(
                f"Attention: there is no stage {stage!r} here", ", ".join(stages), fix=nearest(stage, stages)
            )
        columns = [str(c) for c in range(stages[stage].shape[1])] if stage == "output" else heads.columns
        by_row = stage == "softmax" and max(len(heads.rows), len(columns)) > FULL
        hidden = ~heads.allowed(head) if stage == "softmax" else None
        barred = hidden is not None and bool(hidden.any())
        note = f"{stage}: {STAGES[stage]}" + ", grey where it may not look" * barred + f", {RELATIVE}" * by_row
        return heatmap(
            stages[stage], heads.rows, columns, title=f"{heads.path} ({heads.kind}), head {head}", note=note,
            signed=stage != "softmax", by_row=by_row, hidden=hidden,
        )  # fmt: skip

    def overview(self) -> Scene:
        """All heads, small: a row for each layer, and each row of weights relative to its largest."""
        return overview(self.layers, self.title)

    def alignment(self, layer: int | str | None = None) -> Scene:
        """Which source tokens each target token looked at: the mean over the heads of a cross-attention, the last unless given."""
        from .tokens import alignment

        crosses = [heads for heads in self.layers if heads.kind == "cross"]
        if layer is None and not crosses:
            raise ArgumentError("Attention: there is no cross-attention to align by", fix="name a layer")
        heads = crosses[-1] if layer is None else self.layer(layer)
        note = "down: the word fed last; across: where it looks for the next one"
        mean = heads.weights.mean(axis=0)
        return alignment(mean, heads.columns, heads.rows, title=f"{heads.path}, mean of heads", note=note)

    def next_tokens(self, temperature: float = 1.0, top: int = 10) -> Scene:
        """What may come next, where logits are known."""
        from .tokens import next_tokens

        if self.logits is None:
            raise ArgumentError("Attention: no logits are known", fix="give vocabulary=, or logits=, to viz.attention")
        return next_tokens(self.logits[-1], self.vocabulary, temperature, top)

    def html(self, layer: int | str = 0, head: int = 0) -> str:
        """The page: every layer, head and stage, and the computation of each cell where the mouse is; it opens at this head."""
        from .attention_page import attention_page

        return attention_page(self, self.layers.index(self._with_head(layer, head)), head)

    def numbers(self) -> dict[str, Any]:
        """All stages of all heads, as lists."""
        cells = sum(heads.weights.size for heads in self.layers)
        if cells > MOST_CELLS:
            raise ArgumentError(
                "Attention: these are too many numbers to list", f"up to {MOST_CELLS:,} weights", f"{cells:,}",
                "keep some layers: seen.only(0, 5).write(…)",
            )  # fmt: skip
        layers = []
        for heads in self.layers:
            stages = [{k: v.tolist() for k, v in heads.stages(head).items()} for head in range(heads.count)]
            layers.append(
                {"path": heads.path, "kind": heads.kind, "tokens": heads.rows, "keys": heads.columns, "heads": stages}
            )
        return {"title": self.title, "layers": layers}

    def write(
        self, path: str | os.PathLike[str], layer: int | str | None = None, head: int | None = None, dark: bool = False
    ) -> Path:
        """Write a page, a picture or the numbers; the suffix says which. A picture shows all heads, unless a layer or head is given."""
        from .page import as_data

        target = Path(path)
        suffix = target.suffix.lower()
        if suffix not in FORMS:
            raise ArgumentError(
                f"{os.fspath(path)!r} is no picture", ", ".join(FORMS), target.suffix, nearest(suffix, FORMS)
            )
        check_folder(target)
        if suffix == ".html":
            write_atomically(target, self.html(layer or 0, head or 0).encode())
        elif suffix == ".json":
            write_atomically(target, as_data(self.numbers()).encode())
        else:
            all_heads = layer is None and head is None
            (self.overview() if all_heads else self.scene(layer or 0, head or 0)).write(target, dark)
        return target

    def _repr_svg_(self) -> str:
        return self.overview().svg()


def attention(
    model: Module,
    *inputs: Any,
    tokens: Sequence[Any] | None = None,
    keys: Sequence[Any] | None = None,
    row: int = 0,
    logits: Any = None,
    vocabulary: Sequence[Any] | None = None,
    title: str | None = None,
    **options: Any,
) -> Attention:
    """Run `model(*inputs, **options)` in evaluation mode and see all its attentions, for one row of the batch.

    `tokens` name the positions of the sentence, `keys` those of the source that cross-attention looks at, and that an
    encoder before it reads. With a `vocabulary`, the model's result, or `logits` (V,) or (L, V) if given, is also shown
    as what may come next. A model's attentions are its `nn.MultiHeadAttention`s.

    >>> import minigrad as mg
    >>> model = mg.nn.Encoder(2, dim=8, heads=2, causal=True)
    >>> seen = attention(model, mg.randn(1, 3, 8), tokens=["You", "are", "welcome"])
    >>> seen, seen.layers[1].weights.shape
    (<Attention: 2 layers, 4 heads>, (2, 3, 3))
    """
    layers, result = watched(model, inputs, options, row, tokens, keys)
    names = () if vocabulary is None else tuple(str(name) for name in vocabulary)
    known = _logits(result if logits is None else logits, logits is None, row, names)
    return Attention(tuple(layers), title or type(model).__name__, known, names)


def _three_axes(mask: np.ndarray, scores: tuple[int, int, int]) -> np.ndarray:
    """A mask that broadcasts to (h, L, S), with all three axes."""
    whole = mask.reshape((1,) * max(3 - mask.ndim, 0) + mask.shape)
    if whole.ndim != 3 or any(size not in (1, full) for size, full in zip(whole.shape, scores)):
        raise ShapeError("Attention: the mask does not fit", f"what broadcasts to {scores}", mask.shape)
    return whole


def _logits(given: Any, is_result: bool, row: int, names: tuple[str, ...]) -> np.ndarray | None:
    """Logits as (P, V), of the row if they are the model's result, which need not be logits at all."""
    if not names:
        return None
    if is_result and not (hasattr(given, "numpy") and given.ndim >= 2):
        return None
    array = as_numpy(given).astype(float)
    array = array[row] if is_result or array.ndim == 3 else array
    if array.ndim not in (1, 2) or array.shape[-1] != len(names) or not array.size:
        raise ShapeError("viz.attention: the logits do not fit the vocabulary", f"(…, {len(names)})", array.shape)
    return array.reshape(-1, len(names))
