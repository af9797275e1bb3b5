"""Colours: one set for light and dark pages, told apart also by those who do not see red or green, and scales for numbers.

A shape names a colour by its role, as in `fill="parameter"`. The hues of roles are those of Okabe and Ito; whatever they
tell is also told by a form or a word.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["DARK", "HEATS", "LIGHT", "SERIES", "diverging", "resolve", "sequential"]

LIGHT = {
    "paper": "#ffffff",
    "ink": "#1c2530",
    "faint": "#5d6b7a",
    "line": "#8593a1",
    "grid": "#e3e8ed",
    "surface": "#f6f8fa",
    "input": "#d6ebf8",
    "input-line": "#0072b2",
    "parameter": "#fdebc8",
    "parameter-line": "#b87b00",
    "constant": "#eceff2",
    "constant-line": "#7b8794",
    "output": "#d3f0e5",
    "output-line": "#007a57",
    "group": "#f2eef8",
    "group-line": "#7a5ea8",
    "gradient": "#c2448f",
    "gradient-fill": "#fbe3f0",
    "error": "#c33c00",
    "error-fill": "#ffe1d1",
    "accent": "#0072b2",
    "series-1": "#0072b2",
    "series-2": "#d55e00",
    "series-3": "#009e73",
    "series-4": "#b0578d",
    "series-5": "#a07400",
    "series-6": "#3a87ad",
}
DARK = {
    "paper": "#14191f",
    "ink": "#e8edf2",
    "faint": "#9fadba",
    "line": "#748291",
    "grid": "#2a333d",
    "surface": "#1d242c",
    "input": "#12384f",
    "input-line": "#56b4e9",
    "parameter": "#463508",
    "parameter-line": "#e69f00",
    "constant": "#2a323a",
    "constant-line": "#93a1ae",
    "output": "#0b3d2e",
    "output-line": "#2fc79a",
    "group": "#2c2440",
    "group-line": "#b096df",
    "gradient": "#f08cc4",
    "gradient-fill": "#45223a",
    "error": "#ff8a5c",
    "error-fill": "#4a2010",
    "accent": "#56b4e9",
    "series-1": "#56b4e9",
    "series-2": "#ff8f4d",
    "series-3": "#2fc79a",
    "series-4": "#e48bc0",
    "series-5": "#f0c04a",
    "series-6": "#9fd3f0",
}
# From little to much, and from negative over nothing to positive: lightness tells as much as the hue.
_SEQUENTIAL = np.array([(255, 255, 255), (206, 226, 240), (133, 184, 217), (56, 129, 185), (12, 76, 138), (5, 34, 76)])
_DIVERGING = np.array([(0, 68, 120), (86, 160, 209), (247, 247, 247), (236, 148, 84), (163, 62, 0)])
SERIES = tuple(role for role in LIGHT if role.startswith("series-"))  # the roles of things that are compared
_MISSING = (160, 160, 160)
HEATS = 8  # roles heat-1 … heat-8: from little to much, such that the ink on them can be read


def _blend(share: float, colors: dict[str, str]) -> str:
    """Between the paper and the accent."""
    pairs = [(int(colors["paper"][i : i + 2], 16), int(colors["accent"][i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


for _colors in (LIGHT, DARK):
    _colors.update({f"heat-{step}": _blend(0.06 + 0.44 * step / HEATS, _colors) for step in range(1, HEATS + 1)})


def resolve(color: str, dark: bool = False) -> str:
    """The colour of a role; what begins with # is one already."""
    return color if color.startswith("#") else (DARK if dark else LIGHT)[color]


def _mixed(stops: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Colours between stops: places from 0 to 1, (…) -> (…, 3) of uint8; NaN is grey."""
    known = np.where(np.isfinite(places), places, 0).clip(0, 1)
    at = np.linspace(0, 1, len(stops))
    channels = [np.interp(known, at, stops[:, channel]) for channel in range(3)]
    mixed = np.stack(channels, axis=-1).round().astype(np.uint8)
    mixed[np.isnan(places)] = _MISSING
    return mixed


def sequential(values: Any, most: float = 1.0) -> np.ndarray:
    """White for 0 to dark blue for `most`: (…) -> (…, 3) of uint8."""
    return _mixed(_SEQUENTIAL, np.asarray(values, float) / (most or 1.0))


def diverging(values: Any, most: float | None = None) -> np.ndarray:
    """Blue for -`most`, white for 0, orange for `most`, by default the largest size of a number: (…) -> (…, 3) of uint8."""
    values = np.asarray(values, float)
    if most is None:
        most = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
    return _mixed(_DIVERGING, values / (2 * (most or 1.0)) + 0.5)
