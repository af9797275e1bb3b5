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
from ..functions import argsort, clip, diagonal, erfinv, qr, reshape, where
from ..ops.creation import eye
from ..ops.creation import tensor as as_tensor
from ..ops.random import rand, randn
from ..random import source_of

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "gpt2_",
    "he_normal_",
    "he_uniform_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "skip",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

T = TypeVar("T", bound=Tensor)
_DRAWS = {"random": rand, "standard_normal": randn}  # by the method of a NumPy generator
_PART = 1 << 15  # so many numbers stay in a core's cache while they are drawn and scaled
_LINEAR = ("linear", *[f"conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3)])
_GAINS = {**dict.fromkeys(_LINEAR, 1.0), "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4}


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


def kaiming_uniform_(tensor: T, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> T:
    """`he_uniform_` under PyTorch's name, in its order of arguments; `a` is the slope of a leaky ReLU."""
    bound = math.sqrt(3) * _he_std("kaiming_uniform_", tensor, mode, nonlinearity, a)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(tensor: T, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> T:
    """`he_normal_` under PyTorch's name, in its order of arguments; `a` is the slope of a leaky ReLU."""
    return normal_(tensor, 0.0, _he_std("kaiming_normal_", tensor, mode, nonlinearity, a))


def trunc_normal_(tensor: T, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0) -> T:
    """Numbers from the normal distribution, but only from the range [a, b]."""
    if not std > 0 or not a < b:
        raise ArgumentError(
            "trunc_normal_: there is no such distribution", "std above 0, a < b", f"std={std}, {a} to {b}"
        )
    _check("trunc_normal_", tensor)
    if _mode.skips:
        return tensor
    low, high = (math.erf((bound - mean) / (std * math.sqrt(2))) for bound in (a, b))
    drawn = rand(tensor.shape, dtype="float64", device=tensor.device) * (high - low) + low
    return _fill("trunc_normal_", tensor, clip(erfinv(drawn) * (std * math.sqrt(2)) + mean, a, b))


def eye_(tensor: T) -> T:
    """The identity: 1 on the diagonal of a matrix, 0 elsewhere."""
    _check_matrix("eye_", tensor)
    return _fill("eye_", tensor, eye(tensor.shape[0], tensor.shape[1], dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: T, groups: int = 1) -> T:
    """The convolution that changes nothing: 1 in the middle where output and input channel of a group are the same, 0 elsewhere."""
    if not isinstance(tensor, Tensor) or tensor.ndim not in (3, 4, 5) or tensor.shape[0] % groups:
        got = tensor.shape if isinstance(tensor, Tensor) else type(tensor).__name__
        expected = f"(out, in, …) with one to three axes of a kernel, out a multiple of {groups}"
        raise ShapeError("dirac_: this is no weight of a convolution", expected, got)
    values = np.zeros(tensor.shape)
    outputs = tensor.shape[0] // groups
    middle = tuple([n // 2 for n in tensor.shape[2:]])
    for group in range(groups):
        for channel in range(min(outputs, tensor.shape[1])):
            values[(group * outputs + channel, channel, *middle)] = 1
    return _fill("dirac_", tensor, as_tensor(values, dtype=tensor.dtype, device=tensor.device))


def orthogonal_(tensor: T, gain: float = 1.0) -> T:
    """Random rows, or columns if there are fewer of them, that are orthogonal and of length `gain`: (out, …) as a matrix."""
    _fans("orthogonal_", tensor)
    _check("orthogonal_", tensor)
    if _mode.skips:
        return tensor
    rows, columns = tensor.shape[0], tensor.size // tensor.shape[0]
    drawn = randn(max(rows, columns), min(rows, columns), dtype="float64", device=tensor.device)
    with no_grad():
        q, r = qr(drawn)
        q = q * where(diagonal(r) < 0, -1, 1)  # so that all of them are equally likely
        return _fill("orthogonal_", tensor, reshape((q.T if rows < columns else q) * gain, shape=tensor.shape))


def sparse_(tensor: T, sparsity: float, std: float = 0.01) -> T:
    """In each column of a matrix a share of zeros, at random places, and else normal numbers with deviation `std`."""
    _check_matrix("sparse_", tensor)
    if not 0 <= sparsity <= 1:
        raise ArgumentError("sparse_: sparsity is a share", "0 to 1", sparsity)
    normal_(tensor, 0.0, std)
    if _mode.skips:
        return tensor
    order = argsort(rand(tensor.shape, device=tensor.device), axis=0)  # in each column a permutation of the rows
    with no_grad():
        return _fill("sparse_", tensor, where(order < math.ceil(sparsity * tensor.shape[0]), 0, tensor))


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By how much weights should be larger than 1 / sqrt(fan) for signals to keep their size behind this function.

    `param` is the slope of a leaky ReLU, 0.01 unless given.
    """
    slope = 0.01 if param is None else param
    return _gain("calculate_gain", nonlinearity, slope)


def _check_matrix(name: str, tensor: Tensor) -> None:
    _check(name, tensor, floating=False)
    if tensor.ndim != 2:
        raise ShapeError(f"{name}: only a matrix can be filled", "(rows, columns)", tensor.shape)


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
    if mode not in fans:
        raise ArgumentError(f"{name}: unknown mode {mode!r}", fix=nearest(mode, fans))
    return _gain(name, nonlinearity, negative_slope) / math.sqrt(fans[mode])


def _gain(name: str, nonlinearity: str, negative_slope: float) -> float:
    gains = {**_GAINS, "leaky_relu": math.sqrt(2 / (1 + negative_slope**2))}
    if nonlinearity not in gains:
        raise ArgumentError(f"{name}: unknown nonlinearity {nonlinearity!r}", fix=nearest(nonlinearity, gains))
    return gains[nonlinearity]


if not TYPE_CHECKING:  # a type checker knows what is here
    __getattr__, __dir__ = public(__name__, __all__, "initialisers")
