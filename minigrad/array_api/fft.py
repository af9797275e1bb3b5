"""The extension `fft`: discrete Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import functions as f
from ..engine.tensor import Tensor
from ..errors import axes_of
from ..ops.creation import get_default_dtype
from .arrays import on_arrays
from .creation import asarray

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]


def fft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The transform along an axis."""
    return on_arrays("fft.fft", x, n=n, axis=axis, norm=norm)


def ifft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of `fft`."""
    return on_arrays("fft.ifft", x, n=n, axis=axis, norm=norm)


def fftn(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """The transform along several axes."""
    return on_arrays("fft.fftn", x, s=s, axes=axes, norm=norm)


def ifftn(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """The inverse of `fftn`."""
    return on_arrays("fft.ifftn", x, s=s, axes=axes, norm=norm)


def rfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The transform of real numbers along an axis: the half that is not redundant."""
    return on_arrays("fft.rfft", x, n=n, axis=axis, norm=norm)


def irfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of `rfft`."""
    return on_arrays("fft.irfft", x, n=n, axis=axis, norm=norm)


def rfftn(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """The transform of real numbers along several axes."""
    return on_arrays("fft.rfftn", x, s=s, axes=axes, norm=norm)


def irfftn(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """The inverse of `rfftn`."""
    return on_arrays("fft.irfftn", x, s=s, axes=axes, norm=norm)


def hfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The real transform of a Hermitian signal, given as half of it."""
    return on_arrays("fft.hfft", x, n=n, axis=axis, norm=norm)


def ihfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of `hfft`."""
    return on_arrays("fft.ihfft", x, n=n, axis=axis, norm=norm)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: str | None = None) -> Tensor:
    """The frequencies of the elements of `fft`, for samples `d` apart."""
    return asarray(np.fft.fftfreq(n, d), dtype=get_default_dtype() if dtype is None else dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: str | None = None) -> Tensor:
    """The frequencies of the elements of `rfft`, for samples `d` apart."""
    return asarray(np.fft.rfftfreq(n, d), dtype=get_default_dtype() if dtype is None else dtype, device=device)


def fftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """Frequency 0 in the middle of each axis."""
    chosen = tuple(range(x.ndim)) if axes is None else tuple(axes_of(axes))
    return f.roll(x, tuple([x.shape[i] // 2 for i in chosen]), axis=chosen)


def ifftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """The inverse of `fftshift`."""
    chosen = tuple(range(x.ndim)) if axes is None else tuple(axes_of(axes))
    return f.roll(x, tuple([-(x.shape[i] // 2) for i in chosen]), axis=chosen)
