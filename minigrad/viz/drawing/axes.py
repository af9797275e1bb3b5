"""Axes: round numbers to write beside them, and from numbers to places on a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .scene import Line, Rect, Text

__all__ = ["Scale", "frame", "labels", "round_ticks", "span"]

HUGE = 1e300  # what is larger is drawn as this, so that no difference of two numbers is infinite
TICK = 10.5  # the size of a number beside an axis


def span(values: Any, pad: float = 0.05, log: bool = False) -> tuple[float, float]:
    """From where to where an axis, of numbers or powers of ten, must reach for all finite values; constant ones lie in its middle.

    >>> span([0.0, 1.0], pad=0.1)
    (-0.1, 1.1)
    """
    if log:
        low, high = span(np.log10(values), pad)
        return 10.0 ** max(low, -300), 10.0 ** min(high, 300)
    known = np.asarray(values, float).reshape(-1)
    known = known[np.isfinite(known)].clip(-HUGE, HUGE)
    if not known.size:
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    size = max(abs(low), abs(high))
    tiny = size < 1 / HUGE
    room = 1.0 if tiny else 0.1 * size if high - low <= 1e-6 * size else pad * (high - low)
    return low - room, high + room


def round_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten from `low` to `high`, as many as there may be.

    >>> round_ticks(0.03, 1.1)
    [0.2, 0.4, 0.6, 0.8, 1.0]
    """
    if not high > low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next((m * power for m in (1, 2, 5) if (high - low) / (m * power) <= most), 10 * power)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = max(0, 1 - math.floor(math.log10(step)))
    return [round(i * step, digits) if digits < 300 else i * step for i in range(first, last + 1)] or [low]


def decades(low: float, high: float, most: int = 6) -> list[float]:
    """Powers of ten from `low` to `high`, and where these are few, twice and five times them."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    every = max(1, math.ceil((last - first + 1) / most))
    powers = [10.0**i for i in range(first, last + 1, every)]
    if len(powers) > 2:
        return powers
    finer = [m * 10.0**i for i in range(first - 1, last + 1) for m in (1, 2, 5)]
    finer = [tick for tick in finer if low <= tick <= high]
    return finer if len(finer) > 1 else round_ticks(low, high, most)


def labels(ticks: Sequence[float]) -> list[str]:
    """Numbers as they are written beside an axis: all with as many decimals as they need to differ, powers of ten each in its own form.

    >>> labels([0.0, 0.5, 1.0]), labels([20000.0, 40000.0]), labels([1e-7, 2e-7])
    (['0.0', '0.5', '1.0'], ['20,000', '40,000'], ['1e-7', '2e-7'])
    """
    size = max((abs(tick) for tick in ticks), default=0.0)
    if len(ticks) > 1 and 0 < 50 * min(ticks) < max(ticks) and min(b / a for a, b in zip(ticks, ticks[1:])) > 1.9:
        return [f"{tick:g}" if 1e-3 <= tick < 1e5 else _scientific(tick) for tick in ticks]
    if size and not 1e-3 <= size < 1e7:
        return [_scientific(tick) for tick in ticks]
    step = min((b - a for a, b in zip(ticks, ticks[1:])), default=size) or 1.0
    decimals = min(max(0, -math.floor(math.log10(abs(step)) + 1e-9)), 8)
    return [f"{tick:,.{decimals}f}" if tick else f"{0:.{decimals}f}" for tick in ticks]


def _scientific(number: float) -> str:
    digits, _, power = f"{number:.2e}".partition("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(power)}" if number else "0"


@dataclass(frozen=True)
class Scale:
    """Numbers from `low` to `high`, drawn from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    whole: bool = False  # only whole numbers are written beside it

    def __call__(self, values: Any) -> np.ndarray:
        """Where numbers are drawn; NaN stays what it is, and what is beyond the ends lies just outside of them."""
        known = np.asarray(values, float).clip(-HUGE, HUGE)
        low, high = self.low, self.high
        if self.log:
            with np.errstate(divide="ignore", invalid="ignore"):
                known = np.log10(known)
            low, high = math.log10(low), math.log10(high)
        share = (known - low) / ((high - low) or 1.0)
        return self.start + np.clip(share, -0.05, 1.05) * (self.end - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        """Round numbers on the axis."""
        if self.log:
            return decades(self.low, self.high, most)
        ticks = round_ticks(self.low, self.high, most)
        return [tick for tick in ticks if tick == int(tick)] if self.whole else ticks


def frame(x: Scale, y: Scale, most: tuple[int, int] = (7, 5)) -> list[Any]:
    """The box of a plot with its grid, and numbers below it and on its left. `y` runs from below upwards."""
    left, right, bottom, top = x.start, x.end, y.start, y.end
    shapes: list[Any] = []
    across, up = x.ticks(most[0]), y.ticks(most[1])
    for a, word in zip(x(across), labels(across)):
        shapes += [Line([(a, bottom), (a, top)], "grid"), Text(a, bottom + 14, word, TICK, "faint", "middle")]
    for b, word in zip(y(up), labels(up)):
        shapes += [Line([(left, b), (right, b)], "grid"), Text(left - 6, b + TICK * 0.35, word, TICK, "faint", "end")]
    return [*shapes, Rect(left, top, right - left, bottom - top, fill=None, stroke="line")]
