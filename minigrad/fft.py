"""Discrete Fourier transforms under the names of `numpy.fft`, and PyTorch's `stft`: `mg.fft.irfft(mg.fft.rfft(x) * h)`.

They are differentiable for real signals. A complex tensor has values but no derivative. So what a transform gives is a
complex Tensor where nothing needs a gradient, and otherwise a `Spectrum`: a pair of real tensors, with the arithmetic of
complex numbers, through which derivatives of any order pass. Code that adds, multiplies, indexes, takes `abs` and transforms
back works with both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import functions as f
from .engine.tensor import Tensor
from .errors import ArgumentError, DtypeError, GradientError, axes_of, axis_problem, is_whole, public
from .ops.composite import host_constant
from .ops.creation import get_default_dtype, ones, tensor, zeros_like
from .ops.fourier import _fft, _irfft, _join, _rfft

__all__ = [
    "Spectrum", "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn", "stft",
]  # fmt: skip


class Spectrum:
    """Complex numbers that derivatives pass through: `real` and `imag`, two real tensors of one shape.

    In a sum or a product with a real tensor, it stands on the left.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 0.0, -1.0, 0.0], requires_grad=True)
    >>> power = abs(mg.fft.rfft(x)) ** 2
    >>> power.sum().backward()
    >>> power.tolist(), x.grad.tolist()
    ([0.0, 4.0, 0.0], [4.0, 0.0, -4.0, 0.0])
    """

    __array_ufunc__ = None  # an array on the left leaves the computation to this class

    def __init__(self, real: Tensor, imag: Tensor):
        self.real, self.imag = real, imag

    shape = property(lambda self: self.real.shape, doc="The sizes of the axes.")
    ndim = property(lambda self: self.real.ndim, doc="The number of axes.")

    def __repr__(self) -> str:
        return f"Spectrum({self.detach()!r})"

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise GradientError(
            "a Spectrum is a pair of tensors with a graph, and no array",
            fix="write it on the left, as in spectrum * x, take its parts .real and .imag, or say spectrum.detach()",
        )

    def detach(self) -> Tensor:
        """The values, as a complex Tensor without a graph."""
        return _join(self.real.detach(), self.imag.detach())

    def numpy(self) -> np.ndarray:
        """The values as a NumPy array, leaving the graph."""
        return self.detach().numpy()

    def conj(self) -> Any:
        """With the sign of the imaginary part changed."""
        return _result(self.real, -self.imag)

    def angle(self) -> Tensor:
        """The angles of the complex numbers, in radians."""
        return f.arctan2(self.imag, self.real)

    def __abs__(self) -> Tensor:
        is_zero = (self.real == 0) & (self.imag == 0)  # where the gradient is 0, as PyTorch's
        return f.where(is_zero, 0, f.hypot(f.where(is_zero, 1, self.real), self.imag))

    abs = __abs__

    def __getitem__(self, index: Any) -> Any:
        return _result(self.real[index], self.imag[index])

    def __neg__(self) -> Any:
        return _result(-self.real, -self.imag)

    def __add__(self, other: Any) -> Any:
        real, imag = _parts(other)
        return _result(self.real + real, self.imag + imag)

    def __mul__(self, other: Any) -> Any:
        real, imag = _parts(other)
        return _result(self.real * real - self.imag * imag, self.real * imag + self.imag * real)

    def __truediv__(self, other: Any) -> Any:
        real, imag = _parts(other)
        size = real * real + imag * imag
        return self * Spectrum(real / size, -imag / size)

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __rtruediv__(self, other: Any) -> Any:
        return _pair(other, self) / self

    __radd__, __rmul__ = __add__, __mul__


def _pair(value: Any, like: Spectrum) -> Spectrum:
    real, imag = _parts(value)
    return Spectrum(like.real * 0 + real, like.imag * 0 + imag)


def _parts(value: Any) -> tuple[Any, Any]:
    """The real and imaginary parts of a Spectrum, a tensor, an array or a number."""
    if isinstance(value, Spectrum):
        return value.real, value.imag
    if isinstance(value, (bool, int, float, complex)):
        return value.real, value.imag
    value = value if isinstance(value, Tensor) else tensor(value)
    return (value.real, value.imag) if value.dtype.kind == "c" else (value, 0.0)


def _result(real: Any, imag: Any) -> Any:
    """A Spectrum if there is a graph, else a complex Tensor."""
    return Spectrum(real, imag) if real.requires_grad or imag.requires_grad else _join(real, imag)


def _signal(name: str, x: Any) -> tuple[Tensor, Tensor]:
    """The real and imaginary parts to be transformed."""
    real, imag = _parts(x)
    if isinstance(real, (int, float)) or not real.ndim:
        raise ArgumentError(f"{name}: a number has no axis to transform along", "at least 1 axis", "shape ()")
    return real, zeros_like(real) if isinstance(imag, float) else imag


def _real_signal(name: str, x: Any) -> Tensor:
    x = x if isinstance(x, (Tensor, Spectrum)) else tensor(x)
    if isinstance(x, Spectrum) or x.dtype.kind == "c":
        raise DtypeError(f"{name}: complex numbers have no real transform", "real numbers", "complex", "use fft")
    return _signal(name, x)[0]


def _size(name: str, x: Any, n: int | None, axis: int, default: int | None = None) -> int:
    """How many elements are transformed along an axis, which must exist."""
    if problem := axis_problem(name, axis, x.ndim, x.shape):
        raise problem
    size = n if n is not None else x.shape[axis] if default is None else default
    if not is_whole(size) or size < 1:
        raise ArgumentError(f"{name}: there is nothing to transform", "n from 1 up", f"n={size!r} for shape {x.shape}")
    return int(size)


def _fitted(x: Tensor, n: int, axis: int) -> Tensor:
    """`x` cut, or filled up with zeros, to `n` elements along an axis."""
    axis, missing = axis % x.ndim, n - x.shape[axis]
    if missing > 0:
        return f.pad(x, [(0, missing if i == axis else 0) for i in range(x.ndim)])
    return x[(slice(None),) * axis + (slice(0, n),)] if missing else x


def _scale(name: str, norm: str | None, n: int, inverse: bool) -> float:
    """What `norm` multiplies a transform by, whose inverse is already divided by n."""
    factors = {
        "backward": 1.0,
        "ortho": math.sqrt(n) if inverse else 1 / math.sqrt(n),
        "forward": n if inverse else 1 / n,
    }
    if (norm or "backward") not in factors:
        raise ArgumentError(f"{name}: unknown norm {norm!r}", "'backward', 'ortho' or 'forward'")
    return float(factors[norm or "backward"])


def _scaled(parts: Sequence[Tensor], factor: float) -> list[Tensor]:
    return list(parts) if factor == 1 else [part * factor for part in parts]


def rfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The transform of real numbers along an axis, the half that is not redundant, as NumPy's: n -> n // 2 + 1.

    >>> import minigrad as mg
    >>> mg.fft.rfft([1.0, 2.0, 3.0, 4.0]).tolist()
    [(10+0j), (-2+2j), (-2+0j)]
    """
    x = _real_signal("rfft", a)
    size = _size("rfft", x, n, axis)
    return _result(*_scaled(_rfft(_fitted(x, size, axis), axis=axis), _scale("rfft", norm, size, False)))


def irfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `rfft`, always real, as NumPy's: `n` is even, 2 (m - 1) for m frequencies, unless it is given."""
    parts = _signal("irfft", a)
    size = _size("irfft", parts[0], n, axis, 2 * (parts[0].shape[axis % parts[0].ndim] - 1))
    real, imag = (_fitted(part, size // 2 + 1, axis) for part in parts)
    return _scaled([_irfft(real, imag, n=size, axis=axis)], _scale("irfft", norm, size, True))[0]


def _transform(name: str, a: Any, n: int | None, axis: int, norm: str | None, inverse: bool) -> Any:
    parts = _signal(name, a)
    size = _size(name, parts[0], n, axis)
    out = _fft(*[_fitted(part, size, axis) for part in parts], axis=axis, inverse=inverse)
    return _result(*_scaled(out, _scale(name, norm, size, inverse)))


def fft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The transform along an axis, as NumPy's."""
    return _transform("fft", a, n, axis, norm, inverse=False)


def ifft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The inverse of `fft`, as NumPy's."""
    return _transform("ifft", a, n, axis, norm, inverse=True)


def _swapped(norm: str | None) -> str | None:
    return {"backward": "forward", "forward": "backward"}.get(norm or "backward", norm)


def hfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """The real transform of a signal that equals its own mirror image conjugated, given as half of it, as NumPy's."""
    real, imag = _signal("hfft", a)
    return irfft(Spectrum(real, -imag), n, axis, _swapped(norm))


def ihfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The inverse of `hfft`, as NumPy's."""
    out = rfft(a, n, axis, _swapped(norm))
    real, imag = _parts(out)
    return _result(real, -imag)


def _along(name: str, ndim: int, shape: Any, s: Any, axes: Any) -> list[tuple[int | None, int]]:
    """The axes to transform along, each with its size."""
    if axes is None:
        axes = range(ndim) if s is None else range(ndim - len(s), ndim)
    axes = axes_of(tuple(axes) if isinstance(axes, range) else axes)
    if problem := axis_problem(name, axes, ndim, shape):
        raise problem
    sizes = [None] * len(axes) if s is None else [None if size == -1 else size for size in s]
    if len(sizes) != len(axes):
        raise ArgumentError(f"{name}: each axis has a size", f"{len(axes)} sizes", len(sizes))
    return list(zip(sizes, axes))


def _over(transform: Callable[..., Any], a: Any, steps: Any, norm: str | None) -> Any:
    for size, axis in steps:
        a = transform(a, size, axis, norm)
    return a


def fftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Any:
    """The transform along several axes, as NumPy's."""
    x = _signal("fftn", a)[0]
    return _over(fft, a, reversed(_along("fftn", x.ndim, x.shape, s, axes)), norm)


def ifftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Any:
    """The inverse of `fftn`, as NumPy's."""
    x = _signal("ifftn", a)[0]
    return _over(ifft, a, reversed(_along("ifftn", x.ndim, x.shape, s, axes)), norm)


def rfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Any:
    """The transform of real numbers along several axes, the last of them halved, as NumPy's."""
    x = _real_signal("rfftn", a)
    *others, (size, axis) = _along("rfftn", x.ndim, x.shape, s, axes)
    return _over(fft, rfft(x, size, axis, norm), reversed(others), norm)


def irfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None) -> Tensor:
    """The inverse of `rfftn`, always real, as NumPy's."""
    x = _signal("irfftn", a)[0]
    *others, (size, axis) = _along("irfftn", x.ndim, x.shape, s, axes)
    return irfft(_over(ifft, a, others, norm), size, axis, norm)


def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Any:
    """The transform along two axes, as NumPy's."""
    return fftn(a, s, axes, norm)


def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Any:
    """The inverse of `fft2`, as NumPy's."""
    return ifftn(a, s, axes, norm)


def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Any:
    """The transform of real numbers along two axes, as NumPy's."""
    return rfftn(a, s, axes, norm)


def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """The inverse of `rfft2`, always real, as NumPy's."""
    return irfftn(a, s, axes, norm)


def fftfreq(n: int, d: float = 1.0, dtype: Any = None, device: str | None = None) -> Tensor:
    """The frequencies of the elements of `fft`, for samples `d` apart, as NumPy's."""
    return tensor(np.fft.fftfreq(n, d), dtype=dtype or get_default_dtype(), device=device)


def rfftfreq(n: int, d: float = 1.0, dtype: Any = None, device: str | None = None) -> Tensor:
    """The frequencies of the elements of `rfft`, for samples `d` apart, as NumPy's."""
    return tensor(np.fft.rfftfreq(n, d), dtype=dtype or get_default_dtype(), device=device)


def stft(
    input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Any = None,
    center: bool = True, pad_mode: str = "reflect",
) -> Any:  # fmt: skip
    """The transform of short pieces of a real signal, as PyTorch's: (…, L) -> (…, n_fft // 2 + 1, pieces).

    A piece of `n_fft` samples begins every `hop_length`, a quarter of it unless given, and is multiplied by `window`, ones
    unless given, whose `win_length` numbers stand in its middle. With `center` the pieces are centred on their places, and
    the signal goes on at both ends by `pad_mode`, one of those of `mg.pad`.

    >>> import minigrad as mg
    >>> mg.fft.stft(mg.ones(2, 100), 16).shape
    (2, 9, 26)
    """
    x = _real_signal("stft", input)
    hop = n_fft // 4 if hop_length is None else hop_length
    width = (n_fft if win_length is None else win_length) if window is None else len(window)
    if (
        not all(map(is_whole, (n_fft, hop, width)))
        or not (hop >= 1 and 1 <= width <= n_fft)
        or win_length not in (None, width)
    ):
        got = f"n_fft={n_fft!r}, hop_length={hop!r}, win_length={win_length!r}, a window of {width!r}"
        raise ArgumentError(
            "stft: these sizes do not fit", "hop_length from 1 up, a window of up to n_fft numbers", got
        )
    if center:
        x = f.pad(x, [(0, 0)] * (x.ndim - 1) + [(n_fft // 2,) * 2], mode=pad_mode)
    if x.shape[-1] < n_fft:
        raise ArgumentError("stft: the signal is shorter than one piece", f"{n_fft} samples or more", x.shape[-1])
    starts = np.arange(0, x.shape[-1] - n_fft + 1, hop)
    pieces = f.take(x, host_constant(starts[:, None] + np.arange(n_fft)), axis=-1)  # (…, pieces, n_fft)
    if window is not None or width < n_fft:
        shape = ones(width, dtype=x.dtype, device=x.device) if window is None else _real_signal("stft", window)
        before = (n_fft - width) // 2
        pieces = pieces * f.pad(shape, (before, n_fft - width - before))
    real, imag = (part.mT for part in _rfft(pieces, axis=-1))
    return _result(real, imag)


def _shifted(x: Any, axes: Any, sign: int) -> Any:
    if isinstance(x, Spectrum):
        return _result(_shifted(x.real, axes, sign), _shifted(x.imag, axes, sign))
    x = x if isinstance(x, Tensor) else tensor(x)
    chosen = tuple(range(x.ndim)) if axes is None else axes_of(axes)
    return f.roll(x, tuple([sign * (x.shape[i] // 2) for i in chosen]), axis=chosen)


def fftshift(x: Any, axes: Any = None) -> Any:
    """Frequency 0 in the middle of each axis, as NumPy's."""
    return _shifted(x, axes, 1)


def ifftshift(x: Any, axes: Any = None) -> Any:
    """The inverse of `fftshift`, as NumPy's."""
    return _shifted(x, axes, -1)


if not TYPE_CHECKING:  # a type checker knows what is here
    __getattr__, __dir__ = public(__name__, __all__)
