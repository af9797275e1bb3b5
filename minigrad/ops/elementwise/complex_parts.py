"""The parts of complex tensors, which are real, and their conjugates. Complex tensors themselves have no derivative."""

from __future__ import annotations

from .arithmetic import where
from .unary import elementwise


@elementwise(method=False)
def real(xp, a):
    """The real part, as NumPy's: also `x.real`."""
    return xp.array(xp.real(a))


@elementwise(method=False)
def imag(xp, a):
    """The imaginary part, 0 for real numbers, as NumPy's: also `x.imag`."""
    return xp.array(xp.imag(a))


@elementwise
def conj(xp, a):
    """With the sign of the imaginary part changed, as NumPy's."""
    return xp.conj(a)


@elementwise
def angle(xp, a):
    """The angle of a complex number, in radians, as NumPy's: 0 or π for real numbers."""
    return xp.angle(a)


for _same in (real, conj):
    _same.vjp(a=lambda g: g)
for _flat in (imag, angle):
    _flat.vjp(a=lambda g: where(False, g, 0))
