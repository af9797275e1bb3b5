"""Random tensors, from one seeded source for each device."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engine.backend import backend_named
from ..engine.modes import notify
from ..engine.tensor import Tensor
from ..errors import ArgumentError, describe
from ..random import seed_everything, source_of
from .creation import as_dtype, as_shape, astype, finish, get_default_dtype, tensor
from .elementwise.arithmetic import isfinite, minimum, where
from .elementwise.numbers import nextafter
from .elementwise.unary import log1p
from .reductions.cumulative import cumsum
from .reductions.sorting import searchsorted, topk


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


def rand_like(other: Tensor, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Random numbers spread evenly over [0, 1), with the shape, dtype and device of `other`."""
    return rand(other.shape, dtype=dtype or other.dtype, device=other.device, requires_grad=requires_grad)


def randn_like(other: Tensor, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Random numbers from the normal distribution, with the shape, dtype and device of `other`."""
    return randn(other.shape, dtype=dtype or other.dtype, device=other.device, requires_grad=requires_grad)


def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None, dtype: Any = None, device: str | None = None) -> Tensor:
    """Random numbers spread evenly over [low, high), in the shape `size`, or in that of the limits, as NumPy's.

    >>> import minigrad as mg
    >>> mg.uniform(-1, 1, (2, 3)).shape
    (2, 3)
    """
    sizes, kind, place = _common("uniform", (low, high), size, dtype, device)
    return rand(sizes, dtype=kind, device=place) * (high - low) + low


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, dtype: Any = None, device: str | None = None) -> Tensor:
    """Random numbers from normal distributions, `mean + std * randn`, in the shape `size`, or in that of both.

    Gradients pass to `mean` and `std`.

    >>> import minigrad as mg
    >>> mg.normal(mg.zeros(4), 0.1).shape
    (4,)
    """
    sizes, kind, place = _common("normal", (mean, std), size, dtype, device)
    spread = std.detach() if isinstance(std, Tensor) else tensor(std)
    if not bool((spread >= 0).all()):
        raise ArgumentError("normal: a standard deviation is not negative", "std from 0 up", describe(std))
    return randn(sizes, dtype=kind, device=place) * std + mean


def _common(name: str, given: tuple[Any, Any], size: Any, dtype: Any, device: str | None) -> tuple[Any, Any, Any]:
    """The shape, dtype and device to draw in: as asked for, else those of the Tensors among the parameters."""
    tensors = [x for x in given if isinstance(x, Tensor)]
    if size is not None:
        sizes = as_shape(name, size if isinstance(size, (tuple, list)) else (size,))
    else:
        sizes = np.broadcast_shapes(*[x.shape if hasattr(x, "shape") else () for x in given])
    floats = [x.dtype for x in tensors if x.dtype.kind == "f"]
    kind = dtype or (np.result_type(*floats) if floats else get_default_dtype())
    return sizes, kind, device or (tensors[0].device if tensors else None)


def bernoulli(p: Any, size: Any = None, dtype: Any = None, device: str | None = None) -> Tensor:
    """1 with probability `p`, else 0, in the shape of `p`, or `size`; it has no gradient.

    >>> import minigrad as mg
    >>> mg.bernoulli(mg.tensor([0.0, 1.0, 1.0]))
    tensor([0., 1., 1.])
    """
    p = p.detach() if isinstance(p, Tensor) else tensor(p, device=device)
    if not bool(((p >= 0) & (p <= 1)).all()):
        raise ArgumentError("bernoulli: p is a probability", "numbers from 0 to 1", describe(p))
    sizes, kind, place = _common("bernoulli", (p, 0), size, dtype, device)
    return astype(rand(sizes, dtype="float64" if kind == "float64" else "float32", device=place) < p, dtype=kind)


def multinomial(input: Any, num_samples: int, replacement: bool = False) -> Tensor:
    """Places drawn with the probabilities that the last axis is proportional to, as PyTorch's: (…, n) -> (…, num_samples).

    >>> import minigrad as mg
    >>> mg.multinomial(mg.tensor([0.0, 3.0, 0.0]), 2, replacement=True)
    tensor([1, 1])
    """
    weights = input.detach() if isinstance(input, Tensor) else tensor(input)
    _check_weights(weights, num_samples, replacement)
    if weights.dtype != "float64":
        weights = astype(weights, dtype="float64")
    if replacement:
        edges = cumsum(weights, axis=-1)
        drawn = rand((*weights.shape[:-1], num_samples), dtype="float64", device=weights.device) * edges[..., -1:]
        return searchsorted(edges, minimum(drawn, nextafter(edges[..., -1:], 0)), side="right")
    # The smallest of -log(u) / weight is each one with the probability that its weight says; the next ones, as if it were gone.
    waiting = -log1p(-rand(weights.shape, dtype="float64", device=weights.device))
    return topk(where(weights > 0, waiting / where(weights > 0, weights, 1), np.inf), k=num_samples, largest=False)[1]


def _check_weights(weights: Tensor, num_samples: int, replacement: bool) -> None:
    finite = bool((isfinite(weights) & (weights >= 0)).all())
    if not finite or not weights.ndim or not bool((weights > 0).any(axis=-1).all()):
        expected = "lines of finite numbers from 0 up, one of them positive"
        raise ArgumentError("multinomial: these cannot be probabilities", expected, describe(weights))
    if isinstance(num_samples, bool) or not isinstance(num_samples, int) or num_samples < 1:
        raise ArgumentError("multinomial: how many is a whole number from 1 up", "such as 1", repr(num_samples))
    possible = int((weights > 0).sum(axis=-1).min())
    if not replacement and num_samples > possible:
        expected = f"at most {possible}, as many as have a chance"
        raise ArgumentError("multinomial: too many to draw", expected, num_samples, "use replacement=True")
