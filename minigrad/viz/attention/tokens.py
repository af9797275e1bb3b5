"""Pictures of tokens: which may come next, and which words of a translation belong together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ..drawing.arrays import as_numpy
from ..drawing.heatmap import checked, heatmap, token_text
from ..drawing.scene import Group, Rect, Scene, Text, widest

__all__ = ["alignment", "next_tokens", "probabilities"]

NOTE = "target down, source across"
BAR, STEP = 320.0, 22.0  # points: the length of a probability of 1, and from bar to bar


def probabilities(logits: Any, temperature: float = 1.0) -> np.ndarray:
    """`softmax(logits / temperature)` over the last axis, in float64; -inf gets 0, and what is +inf shares all there is.

    >>> probabilities([0.0, 0.0, float("-inf")]).tolist()
    [0.5, 0.5, 0.0]
    """
    if not temperature > 0 or not np.isfinite(temperature):
        raise ArgumentError("a temperature is a positive number", "such as 0.7", temperature)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = as_numpy(logits).astype(float) / temperature
        most = scaled.max(axis=-1, keepdims=True, initial=-np.inf)
        powers = np.where(np.isinf(most), scaled == np.inf, np.exp(scaled - most))
    sums = powers.sum(axis=-1, keepdims=True)
    return powers / np.where(sums == 0, 1, sums)


def next_tokens(logits: Any, tokens: Sequence[Any], temperature: float = 1.0, top: int = 10) -> Scene:
    """Bars of the `top` most likely tokens: probabilities after temperature, of logits (V,) and the names of V tokens.

    >>> scene = next_tokens([2.0, 1.0, 0.0], ["yes", "no", "perhaps"], temperature=0.5, top=2)
    >>> [group.tip for group in scene.shapes if hasattr(group, "tip")]
    ["'yes': 0.8668", "'no': 0.1173"]
    """
    raw = checked("next_tokens: there is not one logit for each token", logits, len(tokens))
    if top < 1:
        raise ArgumentError("next_tokens: top is how many bars there are", "1 or more", top)
    chances = probabilities(raw, temperature)
    order = np.argsort(-np.nan_to_num(raw, nan=-np.inf, posinf=np.inf, neginf=-np.inf), kind="stable")[:top]
    names = [token_text(tokens[place]) for place in order]
    left = 24 + widest(names, 12)
    shapes: list[Any] = [Text(12, 22, f"next token, temperature {temperature:g}", 12, bold=True)]
    for row, (place, name) in enumerate(zip(order, names)):
        y, chance = 36 + row * STEP, float(chances[place])
        lengths = {"grid": BAR, "series-1": BAR * chance if chance == chance else 0.0}
        bars = [Rect(left, y + 2, length, STEP - 7, color, None) for color, length in lengths.items()]
        words = [Text(left - 8, y + 13, name, 12, anchor="end"), Text(left + BAR + 8, y + 13, f"{chance:.4f}", 12)]
        shapes.append(Group([*bars, *words], "bar", f"{str(tokens[place])!r}: {chance:.4g}"))
    return Scene(max(left + BAR + 76, 330), 44 + len(names) * STEP, shapes, "next token")


def alignment(
    weights: Any, source: Sequence[Any], target: Sequence[Any], title: str = "alignment", note: str = NOTE
) -> Scene:
    """Which source tokens each target token looked at: weights (target, source), the source across the top.

    >>> alignment([[0.9, 0.1], [0.2, 0.8]], ["Danke", "sehr"], ["Thank", "you"]).title
    'alignment'
    """
    array = checked("alignment: weights are (target, source)", weights, len(target), len(source))
    return heatmap(array, target, source, title=title, note=note)
