"""Initialisers: they fill a tensor in place, from minigrad's own random source, and return it. Inside of `skip()` they do nothing."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ..engine.backend import CPU
from ..engine.modes import no_grad
from ..engine.tensor import Tensor
from ..engine.writes import writes
from ..errors import ArgumentError, DtypeError, ShapeError, nearest, public
from ..ops.random import rand, randn
from ..random import source_of

__all__ = [
    "constant_",
    "gpt2_",
    "he_normal_",
    "he_uniform_",
    "normal_",
    "ones_",
    "skip",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

T = TypeVar("T", bound=Tensor)
_DRAWS = {"random": rand, "standard_normal": randn}  # by the method of a NumPy generator
_PART = 1 << 15  # so many numbers stay in a core's cache while they are drawn and scaled
_GAINS = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4}


class _Mode(threading.local):
    skips = False


_mode = _Mode()


@contextmanager
def skip() -> Iterator[None]:
    """Inside, initialisers of this thread leave their tensors as they are: 0 in a new layer, for which no memory is touched.

    It is for weights that are set later, from a file or by the initialiser of a whole model.

    >>> import minigrad as mg
    >>> with mg.nn.init.skip():
    ...     layer = mg.nn.Linear(2, 1)
    >>> layer.weight.tolist()
    [[0.0, 0.0]]
    """
    before, _mode.skips = _mode.skips, True
    try:
        yield
    finally:
        _mode.skips = before


def _check(name: str, tensor: Tensor, floating: bool = True) -> None:
    if not isinstance(tensor, Tensor):
        raise DtypeError(f"{name}: only a Tensor can be filled in place", "a Tensor", type(tensor).__name__)
    if floating and tensor.dtype.kind != "f":
        raise DtypeError(f"{name}: fractions need a floating tensor", "a floating dtype", tensor.dtype)


def _fill(name: str, tensor: T, values: Tensor | float) -> T:
    _check(name, tensor, floating=False)
    if not _mode.skips:
        with no_grad():
            tensor[...] = values
    return tensor


def _draw(name: str, tensor: T, draw: str, scale: float, shift: float) -> T:
    """Random numbers times `scale` plus `shift`, drawn into the tensor's own memory where NumPy can do that."""
    _check(name, tensor)
    array = tensor.data
    if _mode.skips:
        return tensor
    if isinstance(array, np.ndarray) and array.dtype.char in "fd" and array.flags.carray:
        for part in np.split(array.reshape(-1), range(_PART, array.size, _PART)):
            getattr(source_of(CPU).host, draw)(out=part, dtype=array.dtype)
            part *= scale
            part += shift
        writes.mark(array)
        return tensor
    return _fill(name, tensor, _DRAWS[draw](tensor.shape, dtype=tensor.dtype, device=tensor.device) * scale + shift)


def constant_(tensor: T, value: float) -> T:
    """Every element becomes `value`."""
    return _fill("constant_", tensor, value)


def zeros_(tensor: T) -> T:
    """Every element becomes 0."""
    return _fill("zeros_", tensor, 0)


def ones_(tensor: T) -> T:
    """Every element becomes 1."""
    return _fill("ones_", tensor, 1)


def uniform_(tensor: T, low: float = 0.0, high: float = 1.0) -> T:
    """Numbers spread evenly over [low, high).

    >>> import minigrad as mg
    >>> weight = mg.nn.init.uniform_(mg.empty(100), -0.5, 0.5)
    >>> bool((abs(weight) <= 0.5).all())
    True
    """
    if not low <= high:
        raise ArgumentError("uniform_: there is no number in this range", "low <= high", f"low={low}, high={high}")
    return _draw("uniform_", tensor, "random", high - low, low)


def normal_(tensor: T, mean: float = 0.0, std: float = 1.0) -> T:
    """Numbers from the normal distribution with this mean and standard deviation."""
    if not std >= 0:
        raise ArgumentError("normal_: a standard deviation is not negative", "0 or more", std)
    return _draw("normal_", tensor, "standard_normal", std, mean)


def xavier_uniform_(tensor: T, gain: float = 1.0) -> T:
    """Uniform with variance `gain² · 2 / (fan_in + fan_out)`: Glorot's, for tanh and sigmoid."""
    bound = gain * math.sqrt(6 / sum(_fans("xavier_uniform_", tensor)))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: T, gain: float = 1.0) -> T:
    """Normal with variance `gain² · 2 / (fan_in + fan_out)`: Glorot's, for tanh and sigmoid."""
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(_fans("xavier_normal_", tensor))))


def he_uniform_(tensor: T, mode: str = "fan_in", nonlinearity: str = "relu", negative_slope: float = 0.0) -> T:
    """Uniform with variance `gain² / fan`, so that signals keep their size: He's, where gain² is 2 for ReLU."""
    bound = math.sqrt(3) * _he_std("he_uniform_", tensor, mode, nonlinearity, negative_slope)
    return uniform_(tensor, -bound, bound)


def he_normal_(tensor: T, mode: str = "fan_in", nonlinearity: str = "relu", negative_slope: float = 0.0) -> T:
    """Normal with variance `gain² / fan`, so that signals keep their size: He's, where gain² is 2 for ReLU."""
    return normal_(tensor, 0.0, _he_std("he_normal_", tensor, mode, nonlinearity, negative_slope))


def gpt2_(tensor: T, layers: int | None = None, std: float = 0.02) -> T:
    """GPT-2's: normal with deviation 0.02, divided by `sqrt(2 · layers)` for a projection onto the residual stream.

    A model of so many layers adds `2 · layers` such projections up, and their sum keeps its size this way.
    """
    if layers is not None and layers < 1:
        raise ArgumentError("gpt2_: a model has at least one layer", "1 or more, or None", layers)
    return normal_(tensor, 0.0, std if layers is None else std / math.sqrt(2 * layers))


def _fans(name: str, tensor: Tensor) -> tuple[int, int]:
    """How many inputs each output has, and how many outputs each input: (out, in, *kernel) -> (fan_in, fan_out)."""
    if not isinstance(tensor, Tensor) or tensor.ndim < 2 or not tensor.size:
        got = tensor.shape if isinstance(tensor, Tensor) else type(tensor).__name__
        raise ShapeError(f"{name}: inputs and outputs cannot be counted", "a weight (out, in, …), not empty", got)
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _he_std(name: str, tensor: Tensor, mode: str, nonlinearity: str, negative_slope: float) -> float:
    fans = dict(zip(("fan_in", "fan_out"), _fans(name, tensor)))
    gains = {**_GAINS, "leaky_relu": math.sqrt(2 / (1 + negative_slope**2))}
    if mode not in fans:
        raise ArgumentError(f"{name}: unknown mode {mode!r}", fix=nearest(mode, fans))
    if nonlinearity not in gains:
        raise ArgumentError(f"{name}: unknown nonlinearity {nonlinearity!r}", fix=nearest(nonlinearity, gains))
    return gains[nonlinearity] / math.sqrt(fans[mode])


if not TYPE_CHECKING:  # a type checker knows what is here
    __getattr__, __dir__ = public(__name__, __all__)
