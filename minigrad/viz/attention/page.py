"""The page of attention: what it holds of each head, as few bytes as the numbers allow, decoded only when a head is chosen.

A head is its queries, keys and values, from which the page computes every stage; where only weights are known, it is
these. Up to EXACT numbers they are float32. Beyond, each row is whole numbers and a scale, deflated, and the page says ≈.
"""

from __future__ import annotations

import base64
import zlib
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ArgumentError
from ..drawing.colors import diverging, sequential
from ..drawing.heatmap import FORBIDDEN, token_text
from ..drawing.page import filled, page
from ..drawing.scene import clean
from .heads import STAGES, Heads, thumbnails

if TYPE_CHECKING:
    from .attention import Attention

__all__ = ["attention_page", "check_size"]

EXACT = 2**21  # numbers that are kept as float32
LARGEST = 2**26  # bytes of numbers in a page, before they are deflated
LOGITS = 2**20  # numbers; with more, only the last position's are kept
LINE = 400  # letters of a sentence
MEAN = -1  # as the number of a head, which the page reads
NAME = 60  # letters of a token, where there is room for it


def attention_page(seen: Attention, layer: int, head: int | None) -> str:
    """The page of all layers and heads, open at a head, or at the mean of a layer, with bars of the next token where logits are known."""
    parts = [(name, part.size) for layer in seen.layers for name, part in _parts(layer).items()]
    exact = sum(size for _, size in parts) <= EXACT
    size = sum(size if name == "weights" else 2 * size for name, size in parts)
    check_size("no browser would open a page of so many bytes", size, LARGEST)
    scales = {
        "sequential": _base64(sequential(np.linspace(0, 1, 256))),
        "diverging": _base64(diverging(np.linspace(-1, 1, 256), 1.0)),
        "forbidden": FORBIDDEN,
    }
    data: dict[str, Any] = {"start": [layer, MEAN if head is None else head], "exact": exact, "stages": STAGES}
    data |= {"colors": scales, "next": _next(seen), "layers": [_layer(layer, exact) for layer in seen.layers]}
    heading = "attention" if seen.title == "attention" else f"{clean(seen.title, NAME)}: attention"
    sentences = " <b>→</b> ".join(f"<span>{escape(clean(text, LINE))}</span>" for text in seen.sentences)
    return page(heading, filled("attention.html", heading=escape(heading), sentences=sentences), data, "attention")


def check_size(problem: str, size: int, most: int) -> None:
    """Refuse more numbers than can be shown."""
    if size > most:
        fix = "keep some layers: seen.only(0, 5).write(…)"
        raise ArgumentError(f"Attention: {problem}", f"up to {most:,}", f"{size:,}", fix)


def _parts(layer: Heads) -> dict[str, np.ndarray]:
    if layer.q is None or layer.k is None or layer.v is None:
        return {"weights": layer.weights}
    return {"q": layer.q, "k": layer.k, "v": layer.v}


def _layer(layer: Heads, exact: bool) -> dict[str, Any]:
    small = (thumbnails(layer) * 255).round().astype(np.uint8)  # (h, l, s)
    parts, mask = _parts(layer), layer.mask
    return {
        "title": clean(layer.title, NAME), "path": clean(layer.path, NAME), "kind": layer.kind, "chosen": layer.chosen,
        "rows": [token_text(token, NAME) for token in layer.rows],
        "columns": [token_text(token, NAME) for token in layer.columns],
        "scale": float(layer.scale),
        "mask": mask if mask is None else {"shape": mask.shape, "bits": _base64(np.packbits(mask, bitorder="little"))},
        "thumbs": {"shape": small.shape, "bytes": _base64(small)},
        "widths": {name: part.shape[-1] for name, part in parts.items()},
        "heads": [{name: packed(part[i], exact, name) for name, part in parts.items()} for i in range(layer.count)],
    }  # fmt: skip


def packed(part: np.ndarray, exact: bool, name: str) -> str:
    """One matrix of a head as text; weights have 8 bits of their row's largest, all else 15 bits and a sign."""
    if exact:
        return _base64(part.astype("<f4"))
    largest = np.abs(part).max(axis=-1, keepdims=True, initial=0)  # NaN where the row holds one
    steps, kind = (255, "u1") if name == "weights" else (32767, "<i2")
    scales = np.where(np.isfinite(largest), largest / steps, np.nan).astype("<f4")
    known = np.where(np.isfinite(scales) & (scales > 0), scales, 1)
    whole = np.nan_to_num(part / known, nan=0, posinf=0, neginf=0).round().clip(-steps, steps).astype(kind)
    return base64.b64encode(zlib.compress(scales.tobytes() + whole.tobytes(), 6)).decode()


def _next(seen: Attention) -> dict[str, Any] | None:
    """Logits of the positions that they are known for, the tokens at these positions, and the names of the vocabulary."""
    if seen.logits is None:
        return None
    logits = seen.logits if seen.logits.size <= LOGITS else seen.logits[-1:]
    last = seen.layers[-1:]
    rows = last[0].rows if last else ()
    first = len(rows) - len(logits)
    tokens = rows[first:] if first >= 0 else range(len(logits))
    return {
        "names": [token_text(name, NAME) for name in seen.vocabulary], "logits": _base64(logits.astype("<f4")),
        "verb": "choosing" if last and last[0].chosen else "after",
        "after": [f"{max(first, 0) + i}: {token_text(token, NAME)}" for i, token in enumerate(tokens)],
    }  # fmt: skip


def _base64(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
