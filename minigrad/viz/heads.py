"""The heads of an attention, watched while a model runs, and every stage of what they compute.

The stages are scores, scaled, masked, softmax, and times the values. L is the number of queries, S that of keys, E the
width of a query and a key, V that of a value, h the number of heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine.errors import ArgumentError, IndexingError, ShapeError
from ..nn.attention import AttentionCall, watch_attention
from ..nn.module import Module

__all__ = ["STAGES", "Heads", "as_numpy", "named", "numbers_below", "thumbnails", "watched"]

STAGES = {
    "scores": "q·k",
    "scaled": "q·k / √d",
    "masked": "q·k / √d where it may look, −∞ elsewhere",
    "softmax": "weights",
    "output": "weights · V",
}
THUMB = 40  # cells along a thumbnail, at most


def numbers_below(count: int) -> str:
    """What a place may be, in words.

    >>> numbers_below(1), numbers_below(4)
    ('0', '0 to 3')
    """
    return "0" if count == 1 else f"0 to {count - 1}"


def as_numpy(values: Any) -> np.ndarray:
    """Tensors of any device, arrays and lists, as an array."""
    return np.asarray(values.numpy() if hasattr(values, "numpy") else values)


@dataclass(frozen=True, eq=False)
class Heads:
    """One attention for one sentence: weights (h, L, S), and where they are known, q (h, L, E), k (h, S, E), v (h, S, V).

    `rows` are the tokens of the queries, `columns` those of the keys. `mask` is booleans that broadcast to (h, L, S),
    True = may attend, or None.
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
        size = small.shape[axis]
        if size > THUMB:
            starts = np.linspace(0, size, THUMB, endpoint=False).astype(int)
            small = np.maximum.reduceat(small, starts, axis=axis)
    return small if small.size else np.zeros((layer.count, 1, 1), np.float32)


def watched(
    model: Module,
    inputs: Sequence[Any],
    options: dict[str, Any],
    row: int,
    tokens: Sequence[Any] | None,
    keys: Sequence[Any] | None,
) -> tuple[list[Heads], Any]:
    """Run the model in evaluation mode: its attentions in the order of its parts, for one row of the batch; and its result."""
    from ..train.steps import undisturbed

    with undisturbed(model), watch_attention(model, stages=True) as seen:
        result = model(*inputs, **options)
    calls = [(f"{path} call {n + 1}" if n else path, call) for path in seen for n, call in enumerate(seen[path])]
    if not calls:
        raise ArgumentError(
            f"viz.attention: {type(model).__name__} called no attention", "an nn.MultiHeadAttention inside of the model"
        )
    deciding = {path.rpartition(".")[0] for path, call in calls if _is_cross(path, call, tokens, keys)}
    return [_heads(path, call, row, deciding, tokens, keys) for path, call in calls], result


def _is_cross(path: str, call: AttentionCall, tokens: Sequence[Any] | None, keys: Sequence[Any] | None) -> bool:
    """Whether it looks at another sentence, by its name, or because its keys are not as many as its queries.

    That may also be due to a cache, in which case the tokens are those of the keys.
    """
    length, size = call.weights.shape[2:]
    cached = keys is None and tokens is not None and len(tokens) == size
    return "cross" in path.rpartition(".")[2] or (length != size and not cached)


def _heads(
    path: str,
    call: AttentionCall,
    row: int,
    deciding: set[str],
    tokens: Sequence[Any] | None,
    keys: Sequence[Any] | None,
) -> Heads:
    """One call, as arrays; `deciding` are the modules that look at a source, and so do not read it themselves."""
    batch, _, length, size = call.weights.shape
    if not 0 <= row < batch:
        raise IndexingError(f"viz.attention: the batch has no row {row}", numbers_below(batch), row)
    place = path or "attention"
    if _is_cross(path, call, tokens, keys):
        kind, rows, columns = "cross", named(place, tokens, length), named(f"the source of {place}", keys, size)
    else:
        reads_source = keys is not None and path.rpartition(".")[0] not in deciding and len(keys) == size
        kind = "causal" if call.is_causal else "self"
        columns = named(place, keys if reads_source else tokens, size)
        rows = columns[size - length :]
    mask = None
    if call.mask is not None:
        given = call.mask.numpy()
        mask = given[None] if given.ndim == 2 else given[row if len(given) > 1 else 0]  # (1 or h, 1 or L, 1 or S)
    q, k, v, weights = (part.numpy()[row] for part in (call.queries, call.keys, call.values, call.weights))
    return Heads(place, kind, rows, columns, weights, q, k, v, mask, call.scale)


def named(place: str, given: Sequence[Any] | None, length: int) -> tuple[str, ...]:
    """One token for each position: those given, or numbers."""
    if given is None:
        return tuple(map(str, range(length)))
    if len(given) != length:
        raise ShapeError(
            f"viz.attention: {place} has {length} positions", f"{length} tokens", f"{len(given)} tokens",
            "name every position of the row, padding too",
        )  # fmt: skip
    return tuple(map(str, given))
