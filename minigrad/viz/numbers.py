"""Arrays in a few words: all numbers of a small one, the statistics and a thumbnail of a large one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .colors import diverging

__all__ = ["array_text", "brief", "count", "number", "statistics", "thumbnail"]

FEW = 4  # numbers that stand in a box
SOME = 64  # numbers that stand in the details
PIXELS = 24  # of a thumbnail, at most, in each direction


def number(value: Any) -> str:
    """Four digits of a number, or the whole of a whole one."""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (complex, np.complexfloating)):
        return f"{value:.4g}"
    value = float(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = str(int(value)) if value == int(value) and abs(value) < 1e6 else f"{value:.4g}"
    return text.replace("-", "−") if text != "-0" else "0"


def count(amount: float, unit: str = "") -> str:
    """A large number in thousands, millions, …: `1.2 M`."""
    for letter in ("", "k", "M", "G", "T"):
        if abs(amount) < 999.5 or letter == "T":
            break
        amount /= 1000
    digits = f"{amount:.0f}" if letter == "" or amount >= 100 else f"{amount:.1f}"
    return f"{digits} {letter}{unit}".rstrip()


def statistics(array: np.ndarray) -> dict[str, float]:
    """Mean, standard deviation, least and greatest of the finite numbers, complex ones by size; and how many others there are."""
    flat = np.asarray(np.abs(array) if array.dtype.kind == "c" else array, np.float64).ravel()
    finite = flat[np.isfinite(flat)]
    known = {"nonfinite": float(flat.size - finite.size)} if finite.size < flat.size else {}
    if finite.size:
        with np.errstate(over="ignore"):
            known |= {"mean": float(finite.mean()), "std": float(finite.std())}
        known |= {"least": float(finite.min()), "most": float(finite.max())}
    return known


def brief(array: np.ndarray, longest: int | None = None) -> str:
    """What stands in a box: the number, a few numbers, or where most of them lie; the last numbers are left out if it is too long."""
    if array.ndim == 0:
        return number(array[()])
    if array.size == 0:
        return "empty"
    if array.size <= FEW and array.ndim <= 2:
        text = array_text(array)
        return text if longest is None or len(text) <= longest else _first_of(array, longest)
    if array.dtype.kind == "b":
        return f"{int(array.sum())} of {array.size} True"
    known = statistics(array)
    if "mean" not in known:
        return "nothing finite"
    if known["least"] == known["most"] and "nonfinite" not in known:
        return f"all {number(known['least'])}"
    wrong = f" {int(known['nonfinite'])} not finite" if "nonfinite" in known else ""
    return f"{number(known['least'])} … {number(known['most'])}{wrong}"


def _first_of(array: np.ndarray, longest: int) -> str:
    """The first numbers, or the first rows, of a few that are too long: `[0.125, …]`."""
    if array.ndim == 2 and len(array) == 1:
        return f"[{_first_of(array[0], longest - 2)}]"
    for amount in range(len(array) - 1, 0, -1):
        text = f"{array_text(array[:amount])[:-1]}, …]"
        if len(text) <= longest:
            break
    return text


def array_text(array: np.ndarray) -> str:
    """All numbers of a small array, nested as lists; of a larger one its statistics."""
    if array.ndim == 0:
        return number(array[()])
    if array.size > SOME:
        return ", ".join(f"{name} {number(value)}" for name, value in statistics(array).items())
    rows = np.empty(array.shape, object)
    for index in np.ndindex(array.shape):
        rows[index] = number(array[index])
    return str(rows.tolist()).replace("'", "")


def thumbnail(array: np.ndarray) -> np.ndarray | None:
    """An array of more than a few numbers as pixels, (rows, columns, 3): its last two axes, thinned out; None if it is small."""
    if array.size <= FEW or array.dtype.kind not in "fiub":
        return None
    flat = array.reshape(-1, array.shape[-1]) if array.ndim > 1 else array.reshape(1, -1)
    rows, columns = (np.linspace(0, n - 1, min(n, PIXELS)).round().astype(int) for n in flat.shape)
    return diverging(flat[np.ix_(rows, columns)])
