"""Functions that enlarge, shrink, warp, frame and rearrange images. Arguments, defaults and results are PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...engine.tensor import Tensor
from ...errors import ArgumentError, ShapeError, is_whole, nearest
from ...ops.composite import host_constant
from ...ops.creation import _constant
from ...ops.layout import padding
from ...ops.layout.resampling import Taps, cubic_taps, linear_taps, nearest_taps, resample, source_positions
from ...ops.layout.shape import reshape, swapaxes, transpose
from ...ops.layout.windows import as_sizes
from ...ops.linalg.products import matmul
from ...ops.neural.pooling import adaptive_mean
from .declaration import TensorLike, as_tensor, function

__all__ = [
    "affine_grid",
    "channel_shuffle",
    "interpolate",
    "pad",
    "pixel_shuffle",
    "pixel_unshuffle",
    "upsample",
]

LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}  # these have corners to align; over how many axes
MODES = ["nearest", "nearest-exact", "area", *LINEAR]


@function
def interpolate(
    input: TensorLike,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """The input enlarged or shrunk to `size`, or by `scale_factor`, along each axis behind the channels: (N, C, *sizes) -> (N, C, *size).

    `mode` is "nearest", "nearest-exact", "area" (the mean), or "linear", "bilinear", "trilinear" (for one, two and three
    axes), or "bicubic". `align_corners` lays the middles of the corner elements on each other instead of the edges.

    >>> import minigrad as mg
    >>> mg.nn.functional.interpolate(mg.tensor([[[0.0, 4.0]]]), scale_factor=2, mode="linear").tolist()
    [[[0.0, 1.0, 3.0, 4.0]]]
    """
    sizes, out, factors = _new_sizes(input, size, scale_factor, recompute_scale_factor)
    _check_mode(input, mode, align_corners, antialias)
    if mode == "area":
        return adaptive_mean("interpolate", input, out, len(sizes))
    for i, (n, m, factor) in enumerate(zip(sizes, out, factors)):
        if n != m or factor is not None:
            taps = _taps(mode, n, m, n / m if factor is None else 1 / factor, bool(align_corners))
            input = resample(input, *taps, axis=2 + i)
    return input


def _taps(mode: str, size: int, out: int, scale: float, align_corners: bool) -> Taps:
    """The taps of one axis; `scale` says how many old elements one new element spans."""
    if mode not in LINEAR:
        return nearest_taps(size, out, scale, exact=mode == "nearest-exact")
    positions = source_positions(size, out, scale, align_corners)
    return cubic_taps(size, positions) if mode == "bicubic" else linear_taps(size, positions)


def _new_sizes(
    input: Any, size: Any, scale_factor: Any, recompute: bool | None
) -> tuple[tuple[int, ...], tuple[int, ...], list[float | None]]:
    """The sizes of the input and of the output, and the factor along each axis, None where the sizes alone decide."""
    if input.ndim not in (3, 4, 5):
        raise ShapeError(
            "interpolate: the input has a wrong number of axes", "(batch, channels, 1 to 3 axes)", input.shape
        )
    sizes = tuple(input.shape[2:])
    if (size is None) == (scale_factor is None):
        raise ArgumentError(
            "interpolate: the new size is not known", "either size or scale_factor", f"{size!r} and {scale_factor!r}"
        )
    if not math.prod(sizes):
        raise ShapeError("interpolate: the input has no elements", "axes of at least 1", input.shape)
    if scale_factor is None:
        return sizes, as_sizes("interpolate", "size", size, len(sizes)), [None] * len(sizes)
    factors = [*scale_factor] if isinstance(scale_factor, (tuple, list)) else [scale_factor] * len(sizes)
    if len(factors) != len(sizes) or any(not f > 0 for f in factors):
        raise ArgumentError(
            "interpolate: scale_factor does not fit", f"a positive number, or {len(sizes)} of them", repr(scale_factor)
        )
    out = as_sizes("interpolate", "the new size", [math.floor(n * f) for n, f in zip(sizes, factors)], len(sizes))
    return sizes, out, [None] * len(sizes) if recompute else factors


def _check_mode(input: Any, mode: str, align_corners: bool | None, antialias: bool) -> None:
    if mode not in MODES:
        raise ArgumentError(f"interpolate: unknown mode {mode!r}", ", ".join(MODES), fix=nearest(mode, MODES))
    axes = input.ndim - 2
    if LINEAR.get(mode, axes) != axes:
        fitting = [name for name, count in LINEAR.items() if count == axes]
        raise ArgumentError(
            f"interpolate: mode {mode!r} is for another number of axes",
            f"{' or '.join(map(repr, fitting))}, for {axes} axes behind the channels",
            f"input {input.shape}",
        )
    if align_corners is not None and mode not in LINEAR:
        raise ArgumentError(
            "interpolate: align_corners is for the linear and cubic modes", ", ".join(LINEAR), repr(mode)
        )
    if antialias:
        raise ArgumentError("interpolate: antialias is not offered", "antialias=False", fix="mode='area' to shrink")


def upsample(
    input: TensorLike,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """PyTorch's older name of `interpolate`."""
    return interpolate(input, size, scale_factor, mode, align_corners)


@function
def pixel_shuffle(input: TensorLike, upscale_factor: int) -> Tensor:
    """Channels become pixels: (…, C·r², H, W) -> (…, C, H·r, W·r), with r the `upscale_factor`."""
    r = as_sizes("pixel_shuffle", "upscale_factor", upscale_factor, 1)[0]
    if input.ndim < 3 or input.shape[-3] % r**2:
        raise ShapeError(
            "pixel_shuffle: the channels do not make squares", f"(…, a multiple of {r**2}, H, W)", input.shape
        )
    *before, channels, high, wide = input.shape
    n = len(before)
    parts = reshape(input, shape=(*before, channels // r**2, r, r, high, wide))
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)  # (…, C, r, r, H, W) -> (…, C, H, r, W, r)
    return reshape(transpose(parts, axes=order), shape=(*before, channels // r**2, high * r, wide * r))


@function
def pixel_unshuffle(input: TensorLike, downscale_factor: int) -> Tensor:
    """Pixels become channels: (…, C, H·r, W·r) -> (…, C·r², H, W), with r the `downscale_factor`."""
    r = as_sizes("pixel_unshuffle", "downscale_factor", downscale_factor, 1)[0]
    if input.ndim < 3 or input.shape[-2] % r or input.shape[-1] % r:
        raise ShapeError(
            "pixel_unshuffle: the image does not divide into squares", f"(…, C, multiples of {r})", input.shape
        )
    *before, channels, high, wide = input.shape
    n = len(before)
    parts = reshape(input, shape=(*before, channels, high // r, r, wide // r, r))
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)  # (…, C, H, r, W, r) -> (…, C, r, r, H, W)
    return reshape(transpose(parts, axes=order), shape=(*before, channels * r**2, high // r, wide // r))


@function
def channel_shuffle(input: TensorLike, groups: int) -> Tensor:
    """The channels of all groups in turn, the first of each, then the second …: (N, C, …) -> (N, C, …)."""
    if input.ndim < 3 or not is_whole(groups) or groups < 1 or input.shape[1] % groups:
        raise ArgumentError(
            "channel_shuffle: the channels do not divide into groups",
            "(batch, channels, sizes) and a divisor of the channels",
            f"input {input.shape}, groups={groups!r}",
        )
    apart = reshape(input, shape=(input.shape[0], groups, input.shape[1] // groups, *input.shape[2:]))
    return reshape(swapaxes(apart, axis1=1, axis2=2), shape=input.shape)


@function
def affine_grid(theta: TensorLike, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Where an affine map takes each pixel, for `grid_sample`: (N, 2, 3) and size (N, C, H, W) -> (N, H, W, 2), or (N, 3, 4) in 3-d."""
    axes = len(size) - 2
    if axes not in (2, 3) or theta.shape != (size[0], axes, axes + 1):
        raise ShapeError(
            "affine_grid: the matrices do not fit the size",
            "theta (N, 2, 3) for (N, C, H, W), or (N, 3, 4) for (N, C, D, H, W)",
            f"theta {theta.shape} and size {tuple(size)}",
        )
    out = as_sizes("affine_grid", "size", tuple(size)[2:], axes)
    lines = [np.linspace(-1, 1, n) if n > 1 else np.zeros(1) for n in out]
    if not align_corners:
        lines = [line * (n - 1) / n for line, n in zip(lines, out)]
    places = np.meshgrid(*lines, indexing="ij")[::-1]  # x comes first, and the last axis is x
    base = np.stack([*places, np.ones(out)], axis=-1).reshape(-1, axes + 1)
    mapped = matmul(
        _constant(theta, values=host_constant(base)), swapaxes(theta, axis1=1, axis2=2)
    )  # (N, pixels, axes)
    return reshape(mapped, shape=(size[0], *out, axes))


PAD_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def pad(input: TensorLike, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """A frame around the last axes, as PyTorch's: `pad` has (before, after) of the last axis, then of the one before it, and so on.

    `mode` is "constant" (filled with `value`), "reflect", "replicate" or "circular". A negative number cuts off.

    >>> import minigrad as mg
    >>> mg.nn.functional.pad(mg.tensor([[1, 2, 3]]), (2, 1), mode="circular").tolist()
    [[2, 3, 1, 2, 3, 1]]
    """
    x = as_tensor(input)
    widths = _pad_widths(x, pad, mode, value)
    framed = [(max(before, 0), max(after, 0)) for before, after in widths]
    cut = [(min(before, 0), min(after, 0)) for before, after in widths]
    if mode == "circular":
        x, cut = _cut(x, cut), []  # what was cut off does not come round
    if any(map(any, framed)):
        x = padding.pad(x, pad_width=framed, mode=PAD_MODES[mode], constant_values=0 if value is None else value)
    return _cut(x, cut)


def _cut(x: Any, widths: list[tuple[int, int]]) -> Any:
    """`x` without so many elements, as numbers from 0 down, before and after on each axis."""
    if not any(map(any, widths)):
        return x
    return x[tuple([slice(-before, n + after) for (before, after), n in zip(widths, x.shape)])]


def _pad_widths(x: Any, pad: Any, mode: str, value: Any) -> list[tuple[int, int]]:
    """(before, after) of each axis, refused where the mode has no such elements."""
    if mode not in PAD_MODES:
        raise ArgumentError(f"pad: unknown mode {mode!r}", ", ".join(PAD_MODES), fix=nearest(mode, PAD_MODES))
    if mode != "constant" and value is not None:
        raise ArgumentError("pad: a value is for mode='constant' alone", "value=None", f"{value!r} with mode={mode!r}")
    given = list(pad) if isinstance(pad, (tuple, list)) else [pad]
    if len(given) % 2 or len(given) > 2 * x.ndim or not all(map(is_whole, given)):
        raise ArgumentError(
            "pad: the widths do not fit", f"pairs of whole numbers, at most {x.ndim} for shape {x.shape}", repr(pad)
        )
    pairs = [(int(given[i]), int(given[i + 1])) for i in range(0, len(given), 2)][::-1]
    widths = [(0, 0)] * (x.ndim - len(pairs)) + pairs
    for axis, ((before, after), n) in enumerate(zip(widths, x.shape)):
        most = {"reflect": n - 1, "circular": n}.get(mode, math.inf)
        if max(before, after) > most or mode == "replicate" and not n:
            raise ShapeError(
                f"pad: mode {mode!r} has no more elements to take", f"at most {most} on axis {axis}", (before, after)
            )
        if n + before + after < 0 or n + min(before, 0) + min(after, 0) < 0:
            raise ShapeError("pad: more is cut off than there is", f"at most {n} on axis {axis}", (before, after))
    return widths
