"""Pooling over any number of axes: the largest element, the mean or the norm of each window, and its way back."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...engine.op import op
from ...errors import ArgumentError, ShapeError, is_whole
from ..composite import Composite, host_constant
from ..creation import _constant, astype
from ..indexing.along import _zeros, put_along_axis
from ..layout.resampling import area_taps, resample
from ..layout.shape import moveaxis, reshape
from ..layout.windows import Sizes, _unfold, as_sizes, check_axes, check_room, framed, reach_of
from ..reductions.reduction import sum as sum_


@op(several=True)
def _largest(xp, a, *, inside=None):
    """The largest element of each window and its number in it: (A, k, …, *out) -> two of (A, …, *out).

    The first of equal ones is taken; a NaN counts as largest. `inside` (k, *out) is True where an element is not padding;
    None if none is padding.
    """
    best = a[:, 0]
    winner = xp.zeros(best.shape, np.min_scalar_type(a.shape[1]))
    for k in range(1, a.shape[1]):
        rival = a[:, k]
        better = (rival > best) | (rival != rival)
        if inside is not None:
            unopposed = inside[k] & ~inside[:k].any(axis=0)
            better = better & xp.asarray(inside[k]) | xp.asarray(unopposed)
        best = xp.where(better, rival, best)
        winner = xp.where(better, k, winner)
    return best if a.shape[1] > 1 else best.copy(), winner


@_largest.vjp
def _largest_back(g, out, a_shape):
    return (_spread(g[0], out[1], count=a_shape[1]),)


@op(cost=0)
def _spread(xp, a, winner, *, count):
    """Each element at its number in a window of `count`, among zeros: (A, …, *out) -> (A, count, …, *out)."""
    windows = xp.empty((a.shape[0], count, *a.shape[1:]), a.dtype)
    for k in range(count):
        windows[:, k] = xp.where(winner == k, a, 0)
    return windows


@op(cost=0)
def _pick(xp, a, winner):
    """The element of each window that `winner` numbers: (A, k, …, *out), (A, …, *out) -> (A, …, *out)."""
    picked = a[:, 0]
    for k in range(1, a.shape[1]):
        picked = xp.where(winner == k, a[:, k], picked)
    return xp.broadcast_to(picked, winner.shape).copy()


_spread.vjp(a=lambda g, winner: _pick(g, winner))
_pick.vjp(a=lambda g, winner, a_shape: _spread(g, winner, count=a_shape[1]))


class Slide(NamedTuple):
    """How a window slides, one number for each axis."""

    kernel: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes
    surplus: Sizes  # how far the last windows reach beyond the padding: 0 unless ceil_mode asks for more windows

    def windows(self, a: Any) -> Any:
        """(A, …, *sizes) -> (A, prod(kernel), …, *out)"""
        around = framed(a, [(p, p + extra) for p, extra in zip(self.padding, self.surplus)])
        windows = _unfold(around, kernel=self.kernel, stride=self.stride, dilation=self.dilation)
        return reshape(windows, shape=(a.shape[0], math.prod(self.kernel), *windows.shape[1 + len(self.kernel) :]))

    def of_plane(self, plane: np.ndarray, padding: Any = 0) -> np.ndarray:
        """The windows of an array of the axes alone, with `padding` for what was padded: (prod(kernel), *out)."""
        beyond = np.pad(plane, [(p, p) for p in self.padding], constant_values=padding)
        return self._replace(padding=(0,) * len(self.kernel)).windows(beyond[None])[0]


def _slide(
    name: str, a: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, count: int
) -> Slide:
    """The checked and completed arguments of a pooling."""
    check_axes(name, a, count)
    kernel = as_sizes(name, "kernel_size", kernel, count)
    stride = kernel if stride is None else as_sizes(name, "stride", stride, count)
    padding, dilation = as_sizes(name, "padding", padding, count, least=0), as_sizes(name, "dilation", dilation, count)
    reach = reach_of(kernel, dilation)
    if any(p > r // 2 for p, r in zip(padding, reach)):
        raise ArgumentError(
            f"{name}: the padding is more than half the kernel", f"at most {tuple(r // 2 for r in reach)}", padding
        )
    sizes = tuple([n + 2 * p for n, p in zip(a.shape[-count:], padding)])
    check_room(name, sizes, kernel, dilation)
    surplus = [0] * count
    for i in range(count if ceil_mode else 0):
        over = -(sizes[i] - reach[i]) % stride[i]
        starts_inside = (
            sizes[i] + over - reach[i] < sizes[i] - padding[i]
        )  # a window of nothing but padding is left out
        surplus[i] = over if starts_inside else 0
    return Slide(kernel, stride, padding, dilation, tuple(surplus))


def pool_max(
    name: str,
    a: Any,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    return_indices: bool,
    count: int,
) -> Any:
    """The largest element of each window and, if asked for, its position in the plane of the input."""
    slide = _slide(name, a, kernel, stride, padding, dilation, ceil_mode, count)
    _check_met(name, slide, a.shape[-count:])
    if not return_indices:
        return max_pool(a, **slide._asdict())
    return _largest_and_positions(slide.windows(a), *_places(slide, a.shape[-count:]), return_indices)


def _check_met(name: str, slide: Slide, sizes: Sizes) -> None:
    """Refuse a window that meets nothing but padding, which a dilated one may."""
    for n, k, s, p, d, extra in zip(sizes, *slide):
        starts = range(-p, n + p + extra - d * (k - 1), s)
        if p and any(not any(0 <= start + i * d < n for i in range(k)) for start in starts):
            raise ShapeError(
                f"{name}: a window meets nothing but padding", "an element of the input in each window", sizes
            )


def _places(slide: Slide, sizes: Sizes) -> tuple[np.ndarray, np.ndarray | None]:
    """Where in the plane the elements of each window lie, -1 for padding, and which are no padding: (k, *out), None for all."""
    plane = np.arange(math.prod(sizes)).reshape(sizes)
    places = slide.of_plane(plane + 1) - 1
    return places, None if (places >= 0).all() else host_constant(places >= 0)


@partial(
    Composite, public=False, cost=lambda inputs, out, attrs: out.size * math.prod(attrs["kernel"]), lowering="whole"
)
def max_pool(a, *, kernel, stride, padding, dilation, surplus) -> Any:
    """The largest element of each window, the first of equal ones: (…, *sizes) -> (…, *out)."""
    slide = Slide(kernel, stride, padding, dilation, surplus)
    has_padding = any(padding) or any(surplus)
    inside = _places(slide, tuple(a.shape[-len(kernel) :]))[1] if has_padding else None
    return _largest(slide.windows(a), inside=inside)[0]


@partial(
    Composite, public=False, cost=lambda inputs, out, attrs: out.size * math.prod(attrs["kernel"]), lowering="whole"
)
def avg_pool(a, *, kernel, stride, padding, surplus, count_include_pad, divisor) -> Any:
    """The sum of each window by the divisor, or else by how many elements it has: (…, *sizes) -> (…, *out)."""
    slide = Slide(kernel, stride, padding, (1,) * len(kernel), surplus)
    total = sum_(slide.windows(a), axis=1)
    counts = window_counts(slide, tuple(a.shape[-len(kernel) :]), count_include_pad, divisor)
    return total / (counts if isinstance(counts, int) else _constant(total, values=host_constant(counts)))


def window_counts(slide: Slide, sizes: Sizes, count_include_pad: bool, divisor: int | None) -> Any:
    """What the sum of each window is divided by: one number for all, or (*out)."""
    if divisor is not None:
        return divisor
    if not any(slide.surplus) and (count_include_pad or not any(slide.padding)):
        return math.prod(slide.kernel)
    return slide.of_plane(np.ones(sizes, int), padding=int(count_include_pad)).sum(axis=0)


def _largest_and_positions(windows: Any, places: np.ndarray, inside: np.ndarray | None, return_indices: bool) -> Any:
    """The largest element of each window (A, k, …, *out) and, if asked for, where `places` (k, *out) says that it lies."""
    values, winner = _largest(windows, inside=inside)
    if not return_indices:
        return values
    winner = astype(winner, dtype="int64")
    table = places.reshape(1, len(places), *[1] * (winner.ndim - places.ndim), *places.shape[1:])
    return values, _pick(_constant(winner, values=host_constant(table)), winner)


def pool_mean(
    name: str,
    a: Any,
    kernel: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
    count: int,
) -> Any:
    """The sum of each window, divided by its size, by its elements that are not padding, or by `divisor`."""
    slide = _slide(name, a, kernel, stride, padding, 1, ceil_mode, count)
    if divisor is not None and (not is_whole(divisor) or not divisor):
        raise ArgumentError(f"{name}: divisor_override cannot divide", "a whole number but 0", repr(divisor))
    options = {key: value for key, value in slide._asdict().items() if key != "dilation"}
    return avg_pool(a, count_include_pad=count_include_pad, divisor=divisor, **options)


def pool_norm(name: str, a: Any, norm_type: float, kernel: Any, stride: Any, ceil_mode: bool, count: int) -> Any:
    """`(sum of x ** norm_type) ** (1 / norm_type)` of each window; one that ceil_mode cuts off counts as if it went on."""
    size = math.prod(as_sizes(name, "kernel_size", kernel, count))
    means = pool_mean(name, a**norm_type, kernel, stride, 0, ceil_mode, True, None, count)
    return (means * size) ** (1.0 / norm_type)


def _adaptive_sizes(name: str, a: Any, output_size: Any, count: int) -> Sizes:
    """The size of each axis of the output; None keeps that of the input."""
    check_axes(name, a, count)
    given = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * count
    if len(given) == count:
        given = tuple([n if size is None else size for size, n in zip(given, a.shape[-count:])])
    if not math.prod(a.shape[-count:]):
        raise ShapeError(f"{name}: the input has no elements", "axes of at least 1", a.shape)
    return as_sizes(name, "output_size", given, count)


def adaptive_mean(name: str, a: Any, output_size: Any, count: int) -> Any:
    """The means of as many windows as asked for, which cover each axis evenly."""
    out, sizes = _adaptive_sizes(name, a, output_size, count), a.shape[-count:]
    if not any(n % m for n, m in zip(sizes, out)):
        kernel = tuple([n // m for n, m in zip(sizes, out)])
        return pool_mean(name, a, kernel, None, 0, False, True, None, count)
    for i, (n, m) in enumerate(zip(sizes, out)):
        a = resample(a, *area_taps(n, m), axis=a.ndim - count + i)
    return a


def adaptive_max(name: str, a: Any, output_size: Any, return_indices: bool, count: int) -> Any:
    """The largest elements of as many windows as asked for, which cover each axis evenly; and their positions, if asked for."""
    out, sizes = _adaptive_sizes(name, a, output_size, count), a.shape[-count:]
    if not any(n % m for n, m in zip(sizes, out)):
        kernel = tuple([n // m for n, m in zip(sizes, out)])
        return pool_max(name, a, kernel, None, 0, 1, False, return_indices, count)
    places = np.zeros((1, *[1] * count), np.int64)  # (k, *out); a shorter window names its last element again
    for i, (n, m) in enumerate(zip(sizes, out)):
        along = area_taps(n, m)[0].T.reshape(-1, *[m if j == i else 1 for j in range(count)])  # (k, 1, …, m, …, 1)
        places = (places[:, None] * n + along[None]).reshape(
            -1, *np.broadcast_shapes(places.shape[1:], along.shape[1:])
        )
    plane = reshape(a, shape=(*a.shape[: a.ndim - count], math.prod(sizes)))
    windows = moveaxis(
        plane[..., host_constant(places)], source=a.ndim - count, destination=1
    )  # (A, …, k, *out) -> (A, k, …, *out)
    return _largest_and_positions(windows, places, None, return_indices)


def unpool(
    name: str, a: Any, indices: Any, kernel: Any, stride: Any, padding: Any, output_size: Any, count: int
) -> Any:
    """Zeros, and the elements of `a` at the positions that a max pooling gave: (N, C, *out) -> (N, C, *sizes)."""
    check_axes(name, a, count)
    if a.shape != indices.shape:
        raise ShapeError(f"{name}: there is not one position for each element", a.shape, indices.shape)
    kernel = as_sizes(name, "kernel_size", kernel, count)
    stride = kernel if stride is None else as_sizes(name, "stride", stride, count)
    padding = as_sizes(name, "padding", padding, count, least=0)
    usual = tuple([(n - 1) * s - 2 * p + k for n, s, p, k in zip(a.shape[-count:], stride, padding, kernel)])
    sizes = usual if output_size is None else tuple(output_size)[-count:]
    if len(sizes) != count or any(not abs(n - u) < s for n, u, s in zip(sizes, usual, stride)):
        raise ShapeError(f"{name}: output_size does not fit", f"about {usual}, less than {stride} away", output_size)
    before, area = a.shape[: a.ndim - count], math.prod(sizes)
    lines, places = reshape(a, shape=(*before, -1)), reshape(indices, shape=(*before, -1))
    empty = _zeros(a, shape=(*before, area))
    return reshape(put_along_axis(empty, indices=places, values=lines, axis=-1), shape=(*before, *sizes))
