"""The heads of an attention, watched while a model runs, and every stage of what they compute.

The stages are scores, scaled, masked, softmax, and times the values. L is the number of queries, S that of keys, E the
width of a query and a key, V that of a value, h the number of heads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import ArgumentError, IndexingError, ShapeError
from ...nn.module import Module
from ...nn.transformer.attention import AttentionCall, watch_attention
from ...train.evaluation import evaluation_mode
from ..drawing.heatmap import colored, legend, token_text
from ..drawing.scene import Image, Rect, Scene, Text, clean, text_width, widest

__all__ = ["RELATIVE", "STAGES", "Heads", "named", "numbers_below", "overview", "run_model", "thumbnails"]

STAGES = {
    "scores": "q·k",
    "scaled": "q·k / √d",
    "masked": "q·k / √d where it may look, −∞ elsewhere",
    "softmax": "weights",
    "output": "weights · V",
}
Names = Sequence[Any] | None  # of the positions of a sentence
THUMB = 40  # cells along a thumbnail, at most
TILE, GAP = 56.0, 6.0  # points: of a small matrix, and between two
SMALL = 8.0  # the size of a token's name
FITTING = int(TILE // SMALL)  # tokens that have room along a matrix
NAME = 10  # letters of a token
KINDS = {"self": "self-attention", "causal": "causal self-attention", "cross": "cross-attention"}
RELATIVE = "each row of weights is relative to its largest"


def numbers_below(count: int) -> str:
    """`0`, or `0 to 3`: what an index may be."""
    return "0" if count == 1 else f"0 to {count - 1}"


@dataclass(frozen=True, eq=False)
class Heads:
    """One attention for one sentence: weights (h, L, S), and where they are known, q (h, L, E), k (h, S, E), v (h, S, V).

    `rows` name the queries, `columns` the keys: each by its token, or, where `chosen` says so, a query by the token that is
    chosen there. `mask` is booleans that broadcast to (h, L, S), True = may attend, or None.
    """

    path: str
    kind: str  # "self", "causal" or "cross"
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    weights: np.ndarray
    q: np.ndarray | None = None
    k: np.ndarray | None = None
    v: np.ndarray | None = None
    mask: np.ndarray | None = None
    scale: float = 1.0
    chosen: bool = False

    @property
    def title(self) -> str:
        """What it is in words: `decoder.blocks.0.cross_attention` is "decoder block 0: cross-attention"."""
        path, *again = re.split(r" (?=call \d+$)", self.path)
        words = re.sub(r"s?\.(\d+)", r" \1", path).split(".")
        if "att" in words[-1]:  # which the kind says
            words.pop()
        place = " ".join([*words, *again]).replace("_", " ")
        return f"{place}: {KINDS[self.kind]}" if place else KINDS[self.kind]

    @property
    def count(self) -> int:
        """How many heads there are."""
        return len(self.weights)

    def allowed(self, head: int) -> np.ndarray:
        """Where the queries of a head may look: booleans (L, S)."""
        shape = self.weights.shape[1:]
        may = np.ones(shape, bool) if self.mask is None else self.mask[head if len(self.mask) > 1 else 0]
        return np.broadcast_to(may, shape) & (np.tri(*shape) > 0 if self.kind == "causal" else True)

    def stages(self, head: int) -> dict[str, np.ndarray]:
        """Every stage of one head, in float64: all but the output are (L, S), that is (L, V). Of weights alone, softmax only."""
        if self.q is None or self.k is None or self.v is None:
            return {"softmax": self.weights[head].astype(float)}
        q, k, v = (part[head].astype(float) for part in (self.q, self.k, self.v))
        with np.errstate(all="ignore"):  # what is not finite is shown, not complained about
            scores = q @ k.T  # (L, E) x (E, S) -> (L, S)
            scaled = scores * self.scale
            masked = np.where(self.allowed(head), scaled, -np.inf)
            most = masked.max(axis=-1, keepdims=True, initial=-np.inf)
            powers = np.exp(masked - np.where(most == -np.inf, 0, most))
            sums = powers.sum(axis=-1, keepdims=True)
            weights = powers / np.where(sums == 0, 1, sums)  # a query that may look nowhere gets zeros
            output = weights @ v  # (L, S) x (S, V) -> (L, V)
        return {"scores": scores, "scaled": scaled, "masked": masked, "softmax": weights, "output": output}


def thumbnails(layer: Heads) -> np.ndarray:
    """The weights of every head in at most THUMB × THUMB cells, the largest of each: (h, L, S) -> (h, l, s), from 0 to 1."""
    weights = np.nan_to_num(layer.weights.astype(np.float32))
    sizes = weights.max(axis=-1, keepdims=True, initial=0)
    small = weights / np.where(sizes > 0, sizes, 1)
    for axis in (1, 2):
        if (size := small.shape[axis]) > THUMB:
            starts = np.linspace(0, size, THUMB, endpoint=False).astype(int)
            small = np.maximum.reduceat(small, starts, axis=axis)
    return small if small.size else np.zeros((layer.count, 1, 1), np.float32)


def overview(layers: Sequence[Heads], title: str) -> Scene:
    """A row for each layer, a column for each head, and what the colours mean below."""
    paths = [f"{number} {clean(layer.title, 52)}" for number, layer in enumerate(layers)]
    beside = max([widest(_fitting(layer.rows), SMALL) for layer in layers], default=0)
    left = 20 + widest(paths, 10) + (beside + 8) * bool(beside)
    across = max([layer.count for layer in layers], default=0)
    shapes: list[Any] = [Text(12, 22, clean(title, 60), 13, bold=True)]
    shapes += [Text(left + (j + 0.5) * (TILE + GAP) - 3, 44, str(j), 10, "faint", "middle") for j in range(across)]
    y, before = 50.0, None
    for layer, path in zip(layers, paths):
        above = [] if layer.columns == before else _fitting(layer.columns)  # named once where they stay the same
        y, before = y + widest(above, SMALL) + GAP * bool(above), layer.columns
        shapes += [Text(12, y + TILE / 2 + 4, path, 10), *_layer(layer, above, left, y)]
        y += TILE + GAP
    shapes += [*legend(12, y + 6, False, 1.0, "the largest of its row"), Text(12, y + 34, RELATIVE, 10, "faint")]
    width = 24 + max(text_width(clean(title, 60), 13.5), text_width(RELATIVE, 10))
    return Scene(max(width, left + across * (TILE + GAP) + 8), y + 46, shapes, title)


def _fitting(tokens: Sequence[str]) -> list[str]:
    return [token_text(token, NAME) for token in tokens] if 0 < len(tokens) <= FITTING else []


def _layer(layer: Heads, above: Sequence[str], left: float, y: float) -> list[Any]:
    """The heads of one layer, their queries named on the left, and their keys above where they are given."""
    rows = _fitting(layer.rows)
    shapes: list[Any] = [
        Text(left - 5, y + (i + 0.5) * TILE / len(rows) + 0.35 * SMALL, name, SMALL, "faint", "end")
        for i, name in enumerate(rows)
    ]
    for head, small in enumerate(thumbnails(layer)):
        x = left + head * (TILE + GAP)
        shapes += [Image(x, y, TILE, TILE, colored(small)), Rect(x, y, TILE, TILE, None, "line")]
        for j, name in enumerate(above):
            at = x + (j + 0.5) * TILE / len(above) + 0.35 * SMALL
            shapes.append(Text(at, y - 4, name, SMALL, "faint", turned=True))
    return shapes


def run_model(
    model: Module, inputs: Sequence[Any], options: dict[str, Any], row: int, tokens: Names, keys: Names, chosen: Names
) -> tuple[list[Heads], Any]:
    """Run the model in evaluation mode: its attentions in the order of its parts, for one row of the batch; and its result."""
    with evaluation_mode(model), watch_attention(model, stages=True) as seen:
        result = model(*inputs, **options)
    calls = [(f"{path} call {n + 1}" if n else path, call) for path in seen for n, call in enumerate(seen[path])]
    if not calls:
        problem = f"viz.attention: {type(model).__name__} called no attention"
        raise ArgumentError(problem, "an nn.MultiHeadAttention inside of the model")
    decoders = {path.rpartition(".")[0] for path, call in calls if _is_cross(path, call, tokens, keys)}
    made = [_heads(path, call, row, decoders, tokens, keys) for path, call in calls]
    return made if chosen is None else [_by_choice(heads, decoders, chosen) for heads in made], result


def _is_cross(path: str, call: AttentionCall, tokens: Names, keys: Names) -> bool:
    """By its name, or because its keys are not as many as its queries, unless a cache holds keys of earlier tokens."""
    length, size = call.weights.shape[2:]
    cached = keys is None and tokens is not None and len(tokens) == size
    return "cross" in path.rpartition(".")[2] or (length != size and not cached)


def _heads(path: str, call: AttentionCall, row: int, decoders: set[str], tokens: Names, keys: Names) -> Heads:
    """One call, as arrays; the self-attention of a block in `decoders` reads the target, all other the source if there is one."""
    batch, _, length, size = call.weights.shape
    if not 0 <= row < batch:
        raise IndexingError(f"viz.attention: the batch has no row {row}", numbers_below(batch), row)
    place = path or "attention"
    if _is_cross(path, call, tokens, keys):
        kind, rows, columns = "cross", named(place, tokens, length), named(f"the source of {place}", keys, size)
    else:
        reads_source = keys is not None and path.rpartition(".")[0] not in decoders and len(keys) == size
        kind = "causal" if call.is_causal else "self"
        columns = named(place, keys if reads_source else tokens, size)
        rows = columns[size - length :]
    mask = None if call.mask is None else call.mask.numpy()
    is_biased = mask is not None and mask.dtype.kind == "f" and bool(np.isfinite(mask[mask != 0]).any())
    if is_biased or call.softcap is not None:  # the stages show a scale and a mask, but nothing that is added or bent
        return Heads(place, kind, rows, columns, call.weights.numpy()[row])
    if mask is not None:
        mask = mask if mask.dtype == bool else mask == 0
        mask = mask[None] if mask.ndim == 2 else mask[row if len(mask) > 1 else 0]  # (1 or h, 1 or L, 1 or S)
    q, k, v, weights = (part.numpy()[row] for part in (call.queries, call.keys, call.values, call.weights))
    k, v = (np.repeat(part, len(q) // len(part), axis=0) for part in (k, v))  # a shared one is shown with each head
    return Heads(place, kind, rows, columns, weights, q, k, v, mask, call.scale)


def _by_choice(heads: Heads, decoders: set[str], chosen: Sequence[Any]) -> Heads:
    """The same with its queries named by what is chosen there, if it is of a decoder."""
    is_decoder = heads.kind == "cross" or heads.path.rpartition(".")[0] in decoders or not decoders
    if not is_decoder:
        return heads
    length = len(heads.rows)
    rows = named(heads.path, chosen[-length:] if len(chosen) > length else chosen, length)
    return replace(heads, rows=rows, chosen=True)


def named(place: str, given: Names, length: int) -> tuple[str, ...]:
    """One token for each position: those given, or numbers."""
    if given is not None and len(given) != length:
        problem, fix = f"viz.attention: {place} has {length} positions", "name every position of the row, padding too"
        raise ShapeError(problem, f"{length} tokens", f"{len(given)} tokens", fix)
    return tuple(map(str, range(length) if given is None else given))
