"""Colours: one set for light and one for dark pages, safe for colour-blind readers, and colour scales for numbers.

A shape names a colour by its role, as in `fill="parameter"`. The hues are those of Okabe and Ito; a shape
or a word always says the same as a colour.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["DARK", "HEATS", "LIGHT", "SERIES", "diverging", "resolve", "sequential"]

ROLES = {  # on a light page, on a dark page
    "paper": ("#ffffff", "#14191f"),
    "ink": ("#1c2530", "#e8edf2"),
    "faint": ("#5d6b7a", "#9fadba"),
    "line": ("#8593a1", "#748291"),
    "grid": ("#e3e8ed", "#2a333d"),
    "surface": ("#f6f8fa", "#1d242c"),
    "input": ("#d6ebf8", "#12384f"),
    "input-line": ("#0072b2", "#56b4e9"),
    "parameter": ("#fdebc8", "#463508"),
    "parameter-line": ("#b87b00", "#e69f00"),
    "constant": ("#eceff2", "#2a323a"),
    "constant-line": ("#7b8794", "#93a1ae"),
    "output": ("#d3f0e5", "#0b3d2e"),
    "output-line": ("#007a57", "#2fc79a"),
    "group": ("#f2eef8", "#2c2440"),
    "group-line": ("#7a5ea8", "#b096df"),
    "gradient": ("#c2448f", "#f08cc4"),
    "gradient-fill": ("#fbe3f0", "#45223a"),
    "error": ("#c33c00", "#ff8a5c"),
    "error-fill": ("#ffe1d1", "#4a2010"),
    "accent": ("#0072b2", "#56b4e9"),
    "series-1": ("#0072b2", "#56b4e9"),
    "series-2": ("#d55e00", "#ff8f4d"),
    "series-3": ("#009e73", "#2fc79a"),
    "series-4": ("#b0578d", "#e48bc0"),
    "series-5": ("#a07400", "#f0c04a"),
    "series-6": ("#3a87ad", "#9fd3f0"),
}
LIGHT, DARK = ({role: pair[side] for role, pair in ROLES.items()} for side in (0, 1))
# From little to much, and from negative over nothing to positive: lightness tells as much as the hue.
_SEQUENTIAL = np.array([(255, 255, 255), (206, 226, 240), (133, 184, 217), (56, 129, 185), (12, 76, 138), (5, 34, 76)])
_DIVERGING = np.array([(0, 68, 120), (86, 160, 209), (247, 247, 247), (236, 148, 84), (163, 62, 0)])
SERIES = tuple(role for role in LIGHT if role.startswith("series-"))  # the roles of things that are compared
_MISSING = (160, 160, 160)
HEATS = 8  # roles heat-1 … heat-8: from little to much, such that the ink on them can be read


def _blend(share: float, colors: dict[str, str]) -> str:
    pairs = [(int(colors["paper"][i : i + 2], 16), int(colors["accent"][i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


for _colors in (LIGHT, DARK):
    _colors.update({f"heat-{step}": _blend(0.06 + 0.44 * step / HEATS, _colors) for step in range(1, HEATS + 1)})


def resolve(color: str, dark: bool = False) -> str:
    """The colour of a role; what begins with # is one already."""
    return color if color.startswith("#") else (DARK if dark else LIGHT)[color]


def _mixed(stops: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Colours between stops: places from 0 to 1, (…) -> (…, 3) of uint8; NaN is grey."""
    known, at = np.where(np.isfinite(places), places, 0).clip(0, 1), np.linspace(0, 1, len(stops))
    mixed = np.stack([np.interp(known, at, channel) for channel in stops.T], axis=-1).round().astype(np.uint8)
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
