"""Random tensors, from one seeded source for each device."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engine.backend import backend_named
from ..engine.modes import notify
from ..engine.tensor import Tensor
from ..errors import ArgumentError
from ..random import seed_everything, source_of
from .creation import as_dtype, as_shape, finish, get_default_dtype


def manual_seed(seed: int) -> None:
    """Start every random source of minigrad anew from `seed`.

    >>> import minigrad as mg
    >>> mg.manual_seed(0); a = mg.randn(3)
    >>> mg.manual_seed(0); b = mg.randn(3)
    >>> bool((a == b).all())
    True
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ArgumentError("manual_seed: a seed is a whole number from 0 up", "such as 0 or 42", repr(seed))
    seed_everything(seed)


def _drawn(device: str | None, draw: str, *args: Any) -> Any:
    backend = backend_named(device or "cpu")

    def again() -> Any:
        with backend.on(device or "cpu"):
            return getattr(source_of(backend), draw)(*args)

    array = again()
    notify("drawn", array, again)
    return array


def rand(*shape: Any, dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> Tensor:
    """Random numbers spread evenly over [0, 1)."""
    return finish(
        _drawn(device, "uniform", as_shape("rand", shape), as_dtype(dtype or get_default_dtype())), requires_grad
    )


def randn(*shape: Any, dtype: Any = None, device: str | None = None, requires_grad: bool = False) -> Tensor:
    """Random numbers from the normal distribution with mean 0 and variance 1."""
    return finish(
        _drawn(device, "normal", as_shape("randn", shape), as_dtype(dtype or get_default_dtype())), requires_grad
    )


def randint(low: int, high: int, shape: Any = (), dtype: Any = "int64", device: str | None = None) -> Tensor:
    """Random whole numbers from `low` up to, not including, `high`."""
    if low >= high:
        raise ArgumentError("randint: there is no whole number in this range", "low < high", f"low={low}, high={high}")
    kind = as_dtype(dtype)
    if kind.kind not in "iu" or low < np.iinfo(kind).min or high - 1 > np.iinfo(kind).max:
        got = f"{low} to {high - 1} as {kind}"
        raise ArgumentError("randint: the dtype does not hold these numbers", "whole numbers of enough bits", got)
    sizes = as_shape("randint", shape if isinstance(shape, (tuple, list)) else (shape,))
    return finish(_drawn(device, "integers", low, high, sizes, kind), False)


def randperm(n: int, device: str | None = None) -> Tensor:
    """The numbers 0 … n - 1 in random order."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise ArgumentError("randperm: how many is a whole number from 0 up", "such as 10", repr(n))
    return finish(_drawn(device, "permutation", n), False)
