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
    return on_arrays("fft", lambda xp, a: xp.fft.fft(a, n=n, axis=axis, norm=norm), x)


def ifft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of `fft`."""
    return on_arrays("ifft", lambda xp, a: xp.fft.ifft(a, n=n, axis=axis, norm=norm), x)


def fftn(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """The transform along several axes."""
    return on_arrays("fftn", lambda xp, a: xp.fft.fftn(a, s=s, axes=axes, norm=norm), x)


def ifftn(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """The inverse of `fftn`."""
    return on_arrays("ifftn", lambda xp, a: xp.fft.ifftn(a, s=s, axes=axes, norm=norm), x)


def rfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The transform of real numbers along an axis: the half that is not redundant."""
    return on_arrays("rfft", lambda xp, a: xp.fft.rfft(a, n=n, axis=axis, norm=norm), x)


def irfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of `rfft`."""
    return on_arrays("irfft", lambda xp, a: xp.fft.irfft(a, n=n, axis=axis, norm=norm), x)


def rfftn(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """The transform of real numbers along several axes."""
    return on_arrays("rfftn", lambda xp, a: xp.fft.rfftn(a, s=s, axes=axes, norm=norm), x)


def irfftn(x: Tensor, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
    """The inverse of `rfftn`."""
    return on_arrays("irfftn", lambda xp, a: xp.fft.irfftn(a, s=s, axes=axes, norm=norm), x)


def hfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The real transform of a Hermitian signal, given as half of it."""
    return on_arrays("hfft", lambda xp, a: xp.fft.hfft(a, n=n, axis=axis, norm=norm), x)


def ihfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of `hfft`."""
    return on_arrays("ihfft", lambda xp, a: xp.fft.ihfft(a, n=n, axis=axis, norm=norm), x)


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
