"""The page of attention: what it holds of each head, as few bytes as the numbers allow, decoded only when a head is chosen.

A head is its queries, keys and values, from which the page computes every stage; where only weights are known, it is
these. Up to EXACT numbers they are float32. Beyond, each row is whole numbers and a scale, deflated, and the page says ≈.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine.errors import ArgumentError
from .colors import diverging, sequential
from .heads import STAGES, Heads, thumbnails
from .heatmap import FORBIDDEN, token_text
from .page import page
from .scene import clean

if TYPE_CHECKING:
    from .attending import Attention

__all__ = ["attention_page"]

EXACT = 2**21  # numbers that are kept as float32
LARGEST = 2**26  # bytes of numbers in a page, before they are deflated
LOGITS = 2**20  # numbers; with more, only the last position's are kept
NAME = 60  # letters of a token, where there is room for it


def attention_page(seen: Attention, layer: int = 0, head: int = 0) -> str:
    """The page of all layers and heads, open at one of them, with bars of the next token where logits are known."""
    exact = sum(part.size for layer in seen.layers for part in _parts(layer).values()) <= EXACT
    _check_size(seen)
    data = {
        "layers": [_layer(layer, exact) for layer in seen.layers],
        "start": [layer, head],
        "exact": exact,
        "stages": STAGES,
        "colors": {
            "sequential": _base64(sequential(np.linspace(0, 1, 256))),
            "diverging": _base64(diverging(np.linspace(-1, 1, 256), 1.0)),
            "forbidden": FORBIDDEN,
        },
        "next": _next(seen),
    }
    scripts = ["attention_numbers.js", "attention.js"]
    heading = "attention" if seen.title == "attention" else f"{clean(seen.title, NAME)}: attention"
    return page(heading, _body(heading), data, scripts, ["attention.css"])


def _parts(layer: Heads) -> dict[str, np.ndarray]:
    """What a head is kept as: (h, rows, width) each."""
    if layer.q is None or layer.k is None or layer.v is None:
        return {"weights": layer.weights}
    return {"q": layer.q, "k": layer.k, "v": layer.v}


def _check_size(seen: Attention) -> None:
    """Refuse what no browser would open in time; what is exact is far below."""
    sizes = [
        part.size * (1 if name == "weights" else 2) for layer in seen.layers for name, part in _parts(layer).items()
    ]
    if sum(sizes) > LARGEST:
        raise ArgumentError(
            "Attention: this is too much for a page",
            f"up to {LARGEST:,} bytes of numbers",
            f"{sum(sizes):,}",
            "keep some layers: seen.only(0, 5).write(…)",
        )


def _layer(layer: Heads, exact: bool) -> dict[str, Any]:
    small = (thumbnails(layer) * 255).round().astype(np.uint8)  # (h, l, s)
    rows = [token_text(token, NAME) for token in layer.rows]
    columns = rows if layer.columns is layer.rows else [token_text(token, NAME) for token in layer.columns]
    mask = None
    if layer.mask is not None:
        mask = {"shape": layer.mask.shape, "bits": _base64(np.packbits(layer.mask, bitorder="little"))}
    return {
        "path": clean(layer.path, NAME),
        "kind": layer.kind,
        "rows": rows,
        "columns": columns,
        "scale": float(layer.scale),
        "mask": mask,
        "thumbs": {"shape": small.shape, "bytes": _base64(small)},
        "widths": {name: part.shape[-1] for name, part in _parts(layer).items()},
        "heads": [
            {name: packed(part[head], exact, name) for name, part in _parts(layer).items()}
            for head in range(layer.count)
        ],
    }


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
    """Logits of the positions that they are known for, and the names of the tokens."""
    if seen.logits is None:
        return None
    logits = seen.logits if seen.logits.size <= LOGITS else seen.logits[-1:]
    return {
        "names": [token_text(name, NAME) for name in seen.vocabulary],
        "logits": _base64(logits.astype("<f4")),
        "after": _after(seen, len(logits)),
    }


def _after(seen: Attention, count: int) -> list[str]:
    """The tokens that the positions of logits stand at: the last ones of the last layer's queries."""
    rows = seen.layers[-1].rows if seen.layers else ()
    names = rows[-count:] if len(rows) >= count else range(count)
    first = len(rows) - len(names) if rows else 0
    return [f"{first + i}: {token_text(name, NAME)}" for i, name in enumerate(names)]


def _base64(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


def _body(heading: str) -> str:
    """The frame that the script fills; nothing but the heading comes from outside."""
    stages = _buttons("stage", STAGES)
    views = _buttons("view", ["matrix", "lines"])
    return f"""<header><h1>{escape(heading)}</h1><span class="faint" id="summary"></span>
<span class="spacer"></span><button data-switch="theme">light / dark</button></header>
<div class="attention">
<section class="panel" id="overview" aria-label="all heads"></section>
<section id="one">
<div class="controls"><label>layer <select id="layer"></select></label><label>head <select id="head"></select></label>
<span class="choices" id="stages">{stages}</span><span class="choices" id="views">{views}</span>
<label id="relative-label"><input type="checkbox" id="relative"> colours by row</label></div>
<p class="faint" id="caption"></p>
<div class="scroll" id="picture"></div>
</section>
<aside class="panel" id="cell" aria-live="polite"></aside>
</div>
<section id="next" hidden><h2>next token</h2><div class="controls"><label>after <select id="after"></select></label>
<label>temperature <input type="range" id="temperature" min="0.1" max="3" step="0.05" value="1">
<output id="temperature-shown">1</output></label></div><div id="bars"></div></section>"""


def _buttons(kind: str, names: Iterable[str]) -> str:
    return "".join(f'<button data-{kind}="{name}">{"· V" if name == "output" else name}</button>' for name in names)
