"""Discrete Fourier transforms of pairs of real tensors, the real and the imaginary parts: linear, so each rule is another transform.

Complex tensors have no derivative here. `minigrad.fft` builds the functions that users call from these ops.
"""

from __future__ import annotations

from ..engine.op import op
from .elementwise.unary import elementwise


@op(public=False, several=True)
def _rfft(xp, a, *, axis):
    """The transform of real numbers along an axis, without the half that mirrors the other: n -> n // 2 + 1, twice."""
    out = xp.fft.rfft(a, axis=axis)
    return xp.real(out), xp.imag(out)


@op(public=False)
def _irfft(xp, real, imag, *, n, axis):
    """The inverse of `_rfft` for `n` real numbers, divided by `n`."""
    return xp.fft.irfft(real + 1j * imag, n=n, axis=axis)


@op(public=False, several=True)
def _fft(xp, real, imag, *, axis, inverse):
    """The transform of complex numbers along an axis, or its inverse, which is divided by their number."""
    given = real + 1j * imag
    out = xp.fft.ifft(given, axis=axis) if inverse else xp.fft.fft(given, axis=axis)
    return xp.real(out), xp.imag(out)


@op(public=False)
def _weigh_inner(xp, a, *, n, axis, weight):
    """`a` times `weight`, but for frequency 0 and the middle one of an even `n`, which have no mirror image."""
    place = xp.arange(a.shape[axis]).reshape([-1 if i == axis % a.ndim else 1 for i in range(a.ndim)])
    return xp.where((place == 0) | (2 * place == n), a, a * weight)


_weigh_inner.vjp(a=lambda g, n, axis, weight: _weigh_inner(g, n=n, axis=axis, weight=weight))


@_rfft.vjp
def _rfft_rule(g, a_shape, axis):
    n = a_shape[axis]
    real, imag = (_weigh_inner(part, n=n, axis=axis, weight=0.5) for part in g)
    return [_irfft(real, imag, n=n, axis=axis) * n]


@_irfft.vjp
def _irfft_rule(g, n, axis):
    return [_weigh_inner(part, n=n, axis=axis, weight=2.0) / n for part in _rfft(g, axis=axis)]


@_fft.vjp
def _fft_rule(g, real_shape, axis, inverse):
    n = real_shape[axis]
    return [part / n if inverse else part * n for part in _fft(*g, axis=axis, inverse=not inverse)]


@elementwise(public=False)
def _join(xp, real, imag):
    """The complex numbers with these parts: without a derivative, as all complex tensors."""
    return real + 1j * imag
