"""Arrays in a few words: all numbers of a small one, the statistics and a thumbnail of a large one."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from ...engine.backend import is_array, to_numpy
from ...engine.tensor import Tensor
from .colors import diverging

__all__ = ["Digest", "array_text", "as_numpy", "brief", "count", "number", "statistics", "thumbnail"]

FEW = 4  # numbers that stand in a box
SOME = 64  # numbers that stand in the details
PIXELS = 24  # of a thumbnail, at most, in each direction
CHUNK = 1 << 16  # numbers that are read at a time


def as_numpy(values: Any) -> Any:
    """Tensors and arrays of any device, and lists, as an array; None stays None."""
    values = values.data if isinstance(values, Tensor) else values
    return None if values is None else np.asarray(to_numpy(values) if is_array(values) else values)


class Digest:
    """What is shown of an array, each part computed once. So a large array can be let go."""

    def __init__(self, array: np.ndarray):
        self.array: Any = array
        self.shape, self.ndim, self.size, self.dtype = array.shape, array.ndim, array.size, array.dtype

    def __getitem__(self, index: Any) -> Any:
        return self.array[index]

    @cached_property
    def shown(self) -> tuple[dict[str, float], np.ndarray | None]:
        """The statistics and the thumbnail."""
        return statistics(self.array), thumbnail(self.array)

    def let_go(self) -> Digest:
        """Keep what is shown, and not the array."""
        self.shown, self.array = self.shown, None
        return self


def number(value: Any) -> str:
    """Four digits of a number, or the whole of a whole one."""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (complex, np.complexfloating)):
        return f"{value:.4g}"
    value = float(value)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "−∞"
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


def statistics(array: np.ndarray | Digest) -> dict[str, float]:
    """Mean, standard deviation, least and greatest of the finite numbers, complex ones by size; and how many others there are."""
    if isinstance(array, Digest):
        return array.shown[0]
    flat = (np.abs(array) if array.dtype.kind == "c" else array).ravel(order="K")
    exact = flat.dtype in (np.float32, np.float64)
    amount, mean, squares, least, most = 0, 0.0, 0.0, math.inf, -math.inf
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, flat.size, CHUNK):
            piece = flat[start : start + CHUNK] if exact else flat[start : start + CHUNK].astype(np.float64)
            if not math.isfinite(piece.min()) or not math.isfinite(piece.max()):
                piece = piece[np.isfinite(piece)]
                if not piece.size:
                    continue
            center = float(piece.mean(dtype=np.float64))
            apart = piece - center
            amount, before = amount + piece.size, amount
            delta = center - mean
            mean += delta * piece.size / amount
            # Not by BLAS, whose threads would wait for each other.
            squares += float(np.einsum("i,i->", apart, apart)) + delta * delta * before * piece.size / amount
            least, most = min(least, float(piece.min())), max(most, float(piece.max()))
    known = {"nonfinite": float(flat.size - amount)} if amount < flat.size else {}
    if amount:
        known |= {"mean": mean, "std": math.sqrt(squares / amount), "least": least, "most": most}
    return known


def brief(array: np.ndarray | Digest, longest: int | None = None) -> str:
    """What stands in a box: the number, a few numbers, or where most of them lie; the last numbers are left out if it is too long."""
    if array.ndim == 0:
        return number(array[()])
    if array.size == 0:
        return "empty"
    if array.size <= FEW and array.ndim <= 2:
        text = array_text(array)
        return text if longest is None or len(text) <= longest else _first_of(array[...], longest)
    known = statistics(array)
    if array.dtype.kind == "b":
        return f"{round(known['mean'] * array.size)} of {array.size} True"
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


def array_text(array: np.ndarray | Digest) -> str:
    """All numbers of a small array, nested as lists; of a larger one its statistics."""
    if array.ndim == 0:
        return number(array[()])
    if array.size > SOME:
        return ", ".join(f"{name} {number(value)}" for name, value in statistics(array).items())
    words = np.array([number(array[index]) for index in np.ndindex(array.shape)], object)
    return str(words.reshape(array.shape).tolist()).replace("'", "")


def thumbnail(array: np.ndarray | Digest) -> np.ndarray | None:
    """An array of more than a few numbers as pixels, (rows, columns, 3): its last two axes, thinned out; None if it is small."""
    if isinstance(array, Digest):
        return array.shown[1]
    if array.size <= FEW or array.dtype.kind not in "fiub":
        return None
    columns = array.shape[-1] if array.ndim > 1 else array.size
    rows = array.size // columns
    places = [np.linspace(0, n - 1, min(n, PIXELS)).round().astype(int) for n in (rows, columns)]
    outer = np.unravel_index(places[0], array.shape[:-1]) if array.ndim > 1 else ()
    return diverging(array[tuple([place[:, None] for place in outer]) + (places[1],)].reshape(len(places[0]), -1))
