"""Samples of discrete Fourier transforms of pairs of real arrays; `numpy.fft` is the reference."""

from __future__ import annotations

import numpy as np

from . import add, spread


def parts(z):
    return z.real, z.imag


def weighed(a, n, axis, weight):
    place = np.arange(a.shape[axis]).reshape([-1 if i == axis % a.ndim else 1 for i in range(a.ndim)])
    return np.where((place == 0) | (2 * place == n), a, a * a.dtype.type(weight))


for n in (4, 5, 1):
    half = n // 2 + 1
    add("_rfft", lambda a, axis: parts(np.fft.rfft(a, axis=axis)), spread(2, n), kwargs={"axis": -1}, label=f"{n}")
    add(
        "_irfft",
        lambda real, imag, n, axis: np.fft.irfft(real + 1j * imag, n=n, axis=axis),
        spread(half, 2),
        spread(half, 2, seed=1),
        kwargs={"n": n, "axis": 0},
        label=f"{n}",
    )
    add("_weigh_inner", weighed, spread(2, half), kwargs={"n": n, "axis": -1, "weight": 0.5}, label=f"{n}")
for inverse, transform in ((False, np.fft.fft), (True, np.fft.ifft)):
    add(
        "_fft",
        lambda real, imag, axis, inverse, transform=transform: parts(transform(real + 1j * imag, axis=axis)),
        spread(3, 2),
        spread(3, 2, seed=1),
        kwargs={"axis": 0, "inverse": inverse},
        label="inverse" if inverse else "forward",
    )
add("_join", lambda real, imag: real + 1j * imag, spread(2, 2), spread(2, 2, seed=1), gradient=False)
for name in ("real", "imag", "conj", "angle"):
    add(name, getattr(np, name), spread(2, 3))
    add(name, getattr(np, name), np.array([1 + 2j, -3j, -1 + 0j]), dtypes=("as given",), label="complex")
