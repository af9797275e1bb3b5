"""Samples of the functions that enlarge, warp and rearrange images, each with sums over all pixels in NumPy."""

from __future__ import annotations

import numpy as np

import minigrad.nn  # noqa: F401  (which makes the functions of neural networks known)

from . import add, spread


def hat(distance):
    return np.maximum(0, 1 - abs(distance))


def keys(distance):
    """The kernel of cubic convolution, with the coefficient -0.75."""
    d = abs(distance)
    near, far = 1.25 * d**3 - 2.25 * d**2 + 1, -0.75 * (d**3 - 5 * d**2 + 8 * d - 4)
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def matrix(mode, size, out, align_corners):
    """(out, size): what each new element takes of each old one along one axis."""
    if mode == "nearest":
        return np.eye(size)[[i * size // out for i in range(out)]]
    if mode == "nearest-exact":
        return np.eye(size)[[(2 * i + 1) * size // (2 * out) for i in range(out)]]
    at = np.linspace(0, size - 1, out) if align_corners else (np.arange(out) + 0.5) * size / out - 0.5
    if mode != "bicubic":
        return hat(np.clip(at, 0, size - 1)[:, None] - np.arange(size))
    beyond = np.clip(np.arange(-3, size + 3), 0, size - 1)  # the last elements go on at both ends
    return keys(at[:, None] - np.arange(-3, size + 3)) @ np.eye(size)[beyond]


def interpolation(x, size, mode="nearest", align_corners=None):
    for axis, (n, m) in enumerate(zip(x.shape[2:], size), start=2):
        along = matrix(mode, n, m, align_corners).astype(x.dtype)
        x = np.moveaxis(np.tensordot(along, x, axes=(1, axis)), 0, axis)
    return x


line, image, room = spread(1, 2, 5), spread(1, 2, 3, 4), spread(1, 1, 2, 3, 2)
for x, size, mode in (
    (line, (7,), "nearest"), (line, (3,), "nearest-exact"), (line, (8,), "linear"), (image, (5, 3), "bilinear"),
    (image, (5, 3), "bicubic"), (room, (3, 2, 3), "trilinear"), (room, (3, 2, 3), "nearest"),
):  # fmt: skip
    add("interpolate", interpolation, x, kwargs={"size": size, "mode": mode}, label=f"{mode} {len(size)}")
    if mode in ("linear", "bicubic"):
        options = {"size": size, "mode": mode, "align_corners": True}
        add("interpolate", interpolation, x, kwargs=options, label=f"{mode}, corners")
halves = {"size": (3, 2), "mode": "area"}
add(
    "interpolate",
    lambda x, size, mode: x.reshape(1, 2, 3, 2, 2).mean(-1),
    image,
    kwargs=halves,
    label="area",
)


def sampled(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    """All pixels, each weighted by its distance from the position; only positions inside have a border or a mirror image."""
    weights = []
    kernel = {"bilinear": hat, "bicubic": keys, "nearest": lambda d: (abs(d) < 0.5).astype(d.dtype)}[mode]
    for axis, n in enumerate(x.shape[:1:-1]):  # the last axis is the first coordinate
        at = (grid[..., axis] + 1) * (n - 1) / 2 if align_corners else ((grid[..., axis] + 1) * n - 1) / 2
        if padding_mode == "border":
            at = np.clip(at, 0, n - 1)
        elif padding_mode == "reflection":
            low, high = (0, n - 1) if align_corners else (-0.5, n - 0.5)
            at = np.clip(np.where(at < low, 2 * low - at, np.where(at > high, 2 * high - at, at)), 0, n - 1)
        weights.append(kernel(at[..., None] - np.arange(n)))  # (N, *out, n)
    if len(weights) == 2:
        return np.einsum("nchw,nijh,nijw->ncij", x, *weights[::-1])
    return np.einsum("ncdhw,nijkd,nijkh,nijkw->ncijk", x, *weights[::-1])


positions = spread(1, 2, 3, 2, low=-1.4, high=1.4, seed=3)
for mode, padding_mode, align_corners in (
    ("bilinear", "zeros", False), ("bilinear", "border", True), ("bilinear", "reflection", False), ("bicubic", "zeros", True),
):  # fmt: skip
    options = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    add(
        "grid_sample",
        sampled,
        image,
        positions,
        kwargs=options,
        label=f"{mode}, {padding_mode}",
        dtype_as_reference=False,
    )
nearest = {"mode": "nearest", "align_corners": False}
add("grid_sample", sampled, image, positions, kwargs=nearest, label="nearest", dtype_as_reference=False)
add(
    "grid_sample",
    sampled,
    room,
    spread(1, 1, 2, 2, 3, low=-0.9, high=0.9, seed=4),
    label="volume",
    dtype_as_reference=False,
)


def mapped(theta, size, align_corners=False):
    """Each position times its matrix, one by one."""
    out = np.zeros((size[0], *size[2:], len(size) - 2), theta.dtype)
    for n, *place in np.ndindex(out.shape[:-1]):
        ends = [(2 * i / max(m - 1, 1) - 1) if align_corners else (2 * i + 1) / m - 1 for i, m in zip(place, size[2:])]
        out[(n, *place)] = theta[n] @ np.array([*ends[::-1], 1], theta.dtype)
    return out


add("affine_grid", mapped, spread(2, 2, 3), kwargs={"size": (2, 1, 2, 3)})
add("affine_grid", mapped, spread(1, 3, 4), kwargs={"size": (1, 1, 2, 2, 3), "align_corners": True}, label="volume")


def shuffled(x, upscale_factor):
    *before, channels, high, wide = x.shape
    r = upscale_factor
    out = np.zeros((*before, channels // r**2, high * r, wide * r), x.dtype)
    for i, j in np.ndindex(r, r):
        out[..., i::r, j::r] = x[..., i * r + j :: r**2, :, :]
    return out


def unshuffled(x, downscale_factor):
    r = downscale_factor
    parts = [x[..., i::r, j::r] for i, j in np.ndindex(r, r)]
    return np.stack(parts, -3).reshape(*x.shape[:-3], -1, x.shape[-2] // r, x.shape[-1] // r)


add("pixel_shuffle", shuffled, spread(1, 8, 2, 1), kwargs={"upscale_factor": 2})
add("pixel_unshuffle", unshuffled, spread(1, 2, 4, 2), kwargs={"downscale_factor": 2})
add("channel_shuffle", lambda x, groups: x[:, [0, 3, 1, 4, 2, 5]], spread(1, 6, 2), kwargs={"groups": 2})
