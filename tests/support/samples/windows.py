"""Samples of what slides a window: convolution, pooling, and the windows themselves, each with loops in NumPy."""

from __future__ import annotations

import itertools
import math

import numpy as np

import minigrad.nn  # noqa: F401  (which makes the functions of neural networks known)

from . import add, spread


def unfold(a, kernel, stride, dilation):
    """(A, …, *sizes) -> (A, *kernel, …, *out)"""
    count = len(kernel)
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    views = np.lib.stride_tricks.sliding_window_view(a, reach, axis=tuple(range(-count, 0)))
    views = views[(..., *[slice(None, None, s) for s in stride], *[slice(None, None, d) for d in dilation])]
    return np.moveaxis(views, range(-count, 0), range(1, 1 + count))


def fold(a, sizes, stride, dilation):
    """(A, *kernel, …, *out) -> (A, …, *sizes), one element at a time."""
    count = len(sizes)
    kernel, out = a.shape[1 : 1 + count], a.shape[-count:]
    total = np.zeros((a.shape[0], *a.shape[1 + count : -count], *sizes), a.dtype)
    for k in np.ndindex(kernel):
        for o in np.ndindex(out):
            target = [i * s + j * d for i, s, j, d in zip(o, stride, k, dilation)]
            total[(..., *target)] += a[(slice(None), *k, ..., *o)]
    return total


for stride, dilation in (((1, 1), (1, 1)), ((2, 1), (1, 2))):
    add(
        "_unfold",
        unfold,
        spread(2, 2, 5, 4),
        kwargs={"kernel": (2, 2), "stride": stride, "dilation": dilation},
        label=f"{stride} {dilation}",
    )
    add(
        "_unfold",
        unfold,
        spread(2, 2, 5),
        kwargs={"kernel": (2,), "stride": stride[:1], "dilation": dilation[1:]},
        label=f"{stride[0]} {dilation[1]}",
    )
    windows = unfold(spread(2, 1, 5, 4), (2, 2), stride, dilation)
    add(
        "_fold",
        fold,
        spread(*windows.shape),
        kwargs={"sizes": (5, 4), "stride": stride, "dilation": dilation},
        label=f"{stride} {dilation}",
    )
add(
    "_fold",
    fold,
    spread(2, 3, 1, 2),
    kwargs={"sizes": (10,), "stride": (2,), "dilation": (2,)},
    label="windows that do not reach the end",
)


def convolution(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1):
    count = w.ndim - 2
    stride, padding, dilation = ((v,) * count if isinstance(v, int) else v for v in (stride, padding, dilation))
    x = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]])
    views = unfold(np.moveaxis(x, 1, 0), w.shape[2:], stride, dilation)  # (C, *kernel, N, *out)
    pairs = zip(np.split(w, groups), np.split(views, groups))
    parts = [np.tensordot(kernels, inputs, axes=count + 1) for kernels, inputs in pairs]  # (O/groups, N, *out) each
    out = np.moveaxis(np.concatenate(parts), 0, 1)  # (N, O, *out)
    return out if bias is None else out + bias.reshape(-1, *[1] * count)


add("conv1d", convolution, spread(2, 2, 5), spread(3, 2, 2, seed=1), spread(3, seed=2))
add(
    "conv1d",
    convolution,
    spread(1, 2, 7),
    spread(2, 1, 3, seed=1),
    kwargs={"stride": 2, "padding": 1, "dilation": 2, "groups": 2},
    label="options",
)
add("conv1d", lambda x, w: convolution(x[None], w)[0], spread(2, 5), spread(3, 2, 2, seed=1), label="no batch")
add("conv2d", convolution, spread(1, 2, 3, 4), spread(2, 2, 2, 2, seed=1), spread(2, seed=2))
add(
    "conv2d",
    convolution,
    spread(1, 2, 4, 5),
    spread(2, 1, 2, 3, seed=1),
    kwargs={"stride": (1, 2), "padding": (1, 2), "dilation": (2, 1), "groups": 2},
    label="options",
)
add(
    "conv2d",
    lambda x, w, padding: convolution(x, w, padding=(1, 1)),
    spread(1, 1, 3, 4),
    spread(2, 1, 3, 3, seed=1),
    kwargs={"padding": "same"},
    label="same",
)


add(
    "conv3d", convolution, spread(1, 2, 3, 3, 2), spread(2, 1, 2, 2, 1, seed=1), spread(2, seed=2), kwargs={"groups": 2}
)
add(
    "conv3d",
    convolution,
    spread(1, 1, 3, 2, 4),
    spread(1, 1, 1, 2, 2, seed=1),
    kwargs={"stride": (2, 1, 1), "padding": (0, 1, 0), "dilation": (1, 1, 3)},
    label="options",
)


def adjoint(x, w, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Each element of the input, times the kernel, added where the kernel lies: (N, C, *sizes) -> (N, O, *out)."""
    count = w.ndim - 2
    values = (stride, padding, output_padding, dilation)
    stride, padding, further, dilation = ((v,) * count if isinstance(v, int) else v for v in values)
    inner, outer, kernel = w.shape[0] // groups, w.shape[1], w.shape[2:]
    sizes = [(n - 1) * s + d * (k - 1) + 1 for n, s, d, k in zip(x.shape[2:], stride, dilation, kernel)]
    out = np.zeros((len(x), outer * groups, *[n + f for n, f in zip(sizes, further)]), x.dtype)
    for place, k in itertools.product(np.ndindex(x.shape[2:]), np.ndindex(kernel)):
        target = tuple(i * s + j * d for i, s, j, d in zip(place, stride, k, dilation))
        for g in range(groups):
            c, o = slice(g * inner, (g + 1) * inner), slice(g * outer, (g + 1) * outer)
            out[(slice(None), o, *target)] += x[(slice(None), c, *place)] @ w[(c, slice(None), *k)]
    out = out[(..., *[slice(p, n - p) for p, n in zip(padding, out.shape[2:])])]
    return out if bias is None else out + bias.reshape(-1, *[1] * count)


add("conv_transpose1d", adjoint, spread(2, 2, 3), spread(2, 3, 2, seed=1), spread(3, seed=2))
add("conv_transpose1d", lambda x, w: adjoint(x[None], w)[0], spread(2, 3), spread(2, 3, 2, seed=1), label="no batch")
add(
    "conv_transpose1d",
    adjoint,
    spread(1, 4, 3),
    spread(4, 1, 3, seed=1),
    spread(2, seed=2),
    kwargs={"stride": 2, "padding": 1, "output_padding": 2, "groups": 2, "dilation": 3},
    label="options",
)
add(
    "conv_transpose2d",
    adjoint,
    spread(1, 2, 2, 3),
    spread(2, 2, 2, 3, seed=1),
    spread(2, seed=2),
    kwargs={"stride": (3, 2), "padding": (0, 1), "output_padding": (2, 1)},
    label="options",
)
add("conv_transpose3d", adjoint, spread(1, 1, 2, 2, 1), spread(1, 2, 1, 2, 2, seed=1), kwargs={"stride": (1, 2, 1)})


def columns(x, kernel_size, dilation=1, padding=0, stride=1):
    """(N, C, H, W) -> (N, C * kh * kw, windows)"""
    x = np.pad(x, [(0, 0), (0, 0), (padding,) * 2, (padding,) * 2])
    views = unfold(x[None], kernel_size, (stride,) * 2, (dilation,) * 2)[0]  # (kh, kw, N, C, *out)
    return np.moveaxis(views, (0, 1), (2, 3)).reshape(len(x), x.shape[1] * math.prod(kernel_size), -1)


def added_columns(x, output_size, kernel_size, **options):
    """The transpose of `columns`, as a matrix."""
    batch, length = x.shape[0], math.prod(output_size)
    channels = x.shape[1] // math.prod(kernel_size)
    units = np.eye(channels * length, dtype=x.dtype).reshape(-1, channels, *output_size)
    matrix = columns(units, kernel_size, **options).reshape(channels * length, -1)
    return (x.reshape(batch, -1) @ matrix.T).reshape(batch, channels, *output_size)


add("unfold", columns, spread(2, 2, 3, 4), kwargs={"kernel_size": (2, 3)})
more = {"kernel_size": (2, 2), "dilation": 2, "padding": 1, "stride": 2}
add("unfold", columns, spread(1, 2, 4, 5), kwargs=more, label="options")
add("fold", added_columns, spread(2, 12, 4), kwargs={"output_size": (3, 4), "kernel_size": (2, 3)})
add("fold", added_columns, spread(1, 8, 6), kwargs={"output_size": (4, 5), **more}, label="options")


def starts_of(size, kernel, stride, padding, dilation, ceil_mode):
    """Where the windows of one axis begin, the padding counted below 0."""
    reach = dilation * (kernel - 1) + 1
    starts = list(range(-padding, size + padding - reach + 1, stride))
    if ceil_mode and starts[-1] + reach < size + padding and starts[-1] + stride < size:
        starts.append(starts[-1] + stride)
    return starts


def pooled(how, x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, **rest):
    """`how` gets the elements of one window, their positions, and how many there would be with the padding."""
    sizes = x.shape[2:]
    count = len(sizes)
    values = (kernel_size, kernel_size if stride is None else stride, padding, dilation)
    axes = list(zip(sizes, *[(v,) * count if isinstance(v, int) else v for v in values]))
    starts = [starts_of(*axis, ceil_mode) for axis in axes]
    results = []
    for start in itertools.product(*starts):
        lines = [[i + k * axis[4] for k in range(axis[1])] for i, axis in zip(start, axes)]
        framed = math.prod(sum(i < axis[0] + axis[3] for i in line) for line, axis in zip(lines, axes))
        inside = [[i for i in line if 0 <= i < n] for line, n in zip(lines, sizes)]
        index = np.ix_(*inside)
        positions = np.arange(math.prod(sizes)).reshape(sizes)[index].ravel()
        results.append(how(x[(slice(None), slice(None), *index)].reshape(*x.shape[:2], -1), positions, framed, **rest))
    shape = (*x.shape[:2], *[len(s) for s in starts])
    if isinstance(results[0], tuple):
        return tuple(np.stack(parts, -1).reshape(shape) for parts in zip(*results))
    return np.stack(results, -1).reshape(shape)


def largest(window, positions, framed, return_indices=False):
    best = window.max(-1)
    return (best, positions[window.argmax(-1)]) if return_indices else best


def average(window, positions, framed, count_include_pad=True, divisor_override=None):
    return window.sum(-1) / (divisor_override or (framed if count_include_pad else window.shape[-1]))


def adaptive(how, x, output_size, **rest):
    """`how` over the windows that begin at floor(i * n / out) and end at ceil((i + 1) * n / out)."""
    sizes = x.shape[2:]
    given = (output_size,) * len(sizes) if isinstance(output_size, int) else output_size
    out = [n if m is None else m for m, n in zip(given, sizes)]
    results = []
    for place in np.ndindex(*out):
        spans = [range(i * n // m, math.ceil((i + 1) * n / m)) for i, n, m in zip(place, sizes, out)]
        index = np.ix_(*spans)
        positions = np.arange(math.prod(sizes)).reshape(sizes)[index].ravel()
        results.append(how(x[(slice(None), slice(None), *index)].reshape(*x.shape[:2], -1), positions, 0, **rest))
    if isinstance(results[0], tuple):
        return tuple(np.stack(parts, -1).reshape(*x.shape[:2], *out) for parts in zip(*results))
    return np.stack(results, -1).reshape(*x.shape[:2], *out)


def mean_of(window, positions, framed):
    return window.mean(-1)


def largest_pool(x, **options):
    return pooled(largest, x, **options)


def average_pool(x, **options):
    return pooled(average, x, **options)


line, image, room = spread(2, 2, 6), spread(1, 2, 4, 5), spread(1, 1, 3, 4, 3)
for x, count in ((line, 1), (image, 2), (room, 3)):
    add(f"max_pool{count}d", largest_pool, x, kwargs={"kernel_size": 2}, label="plain")
    further = {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}
    add(f"max_pool{count}d", largest_pool, x, kwargs={**further, "return_indices": True}, label="with indices")
    add(f"avg_pool{count}d", average_pool, x, kwargs={"kernel_size": 2}, label="plain")
    add(f"avg_pool{count}d", average_pool, x, kwargs=further, label="padding counts")
    add(f"avg_pool{count}d", average_pool, x, kwargs={**further, "count_include_pad": False}, label="padding does not")
    sizes = {1: 4, 2: (3, 2), 3: (2, None, 2)}[count]
    add(f"adaptive_avg_pool{count}d", lambda x, **o: adaptive(mean_of, x, **o), x, kwargs={"output_size": sizes})
    add(f"adaptive_avg_pool{count}d", lambda x, **o: adaptive(mean_of, x, **o), x, kwargs={"output_size": 1}, label="1")
    add(f"adaptive_max_pool{count}d", lambda x, **o: adaptive(largest, x, **o), x, kwargs={"output_size": sizes})
    add(
        f"adaptive_max_pool{count}d",
        lambda x, **o: adaptive(largest, x, **o),
        x,
        kwargs={"output_size": {1: 3, 2: 3, 3: (3, 2, 1)}[count], "return_indices": True},
        label="with indices",
    )
    add(
        f"lp_pool{count}d",
        lambda x, norm_type, **o: pooled(lambda window, *_: (window**norm_type).sum(-1) ** (1 / norm_type), x, **o),
        abs(x) + 0.5,
        kwargs={"norm_type": 3.0, "kernel_size": 2},
    )
add(
    "max_pool2d",
    largest_pool,
    image,
    kwargs={"kernel_size": (3, 2), "stride": (1, 2), "padding": 1, "dilation": (1, 2)},
    label="options",
)
add(
    "max_pool2d", lambda x, **o: pooled(largest, x[None], **o)[0], image[0], kwargs={"kernel_size": 2}, label="no batch"
)
add("avg_pool2d", average_pool, image, kwargs={"kernel_size": 3, "stride": 2, "divisor_override": 7}, label="divisor")


def put_back(x, indices, sizes):
    out = np.zeros((*x.shape[:2], math.prod(sizes)), x.dtype)
    np.put_along_axis(out, indices.reshape(*x.shape[:2], -1), x.reshape(*x.shape[:2], -1), axis=2)
    return out.reshape(*x.shape[:2], *sizes)


add(
    "max_unpool1d",
    lambda x, i, **_: put_back(x, i, (7,)),
    spread(1, 2, 3),
    np.array([[[0, 3, 5], [1, 2, 6]]]),
    kwargs={"kernel_size": 2, "output_size": (7,)},
)
add(
    "max_unpool2d",
    lambda x, i, **_: put_back(x, i, (4, 4)),
    spread(1, 1, 2, 2),
    np.array([[[[0, 3], [13, 10]]]]),
    kwargs={"kernel_size": 2},
)
add(
    "max_unpool3d",
    lambda x, i, **_: put_back(x, i, (1, 2, 4)),
    spread(1, 1, 1, 1, 2),
    np.array([[[[[5, 2]]]]]),
    kwargs={"kernel_size": (1, 2, 2)},
)
add("_largest", lambda a: (a.max(1), a.argmax(1).astype("uint8")), spread(2, 4, 3))
add(
    "_largest",
    lambda a, inside: (np.array([[1.0]], a.dtype), np.array([[1]], "uint8")),
    np.array([[[9.0], [1.0], [0.5]]]),
    kwargs={"inside": np.array([[False], [True], [True]])},
    label="padding",
)
winner = np.array([[0, 2, 1], [1, 1, 0]])
add("_pick", lambda a, w: np.take_along_axis(a, w[:, None], 1)[:, 0], spread(2, 3, 3), winner)
add("_spread", lambda a, w, count: np.where(w[:, None] == np.arange(count)[:, None], a[:, None], 0), spread(2, 3), winner,
    kwargs={"count": 3})  # fmt: skip
add("_constant", lambda a, values: values.astype(a.dtype), spread(2), kwargs={"values": np.array([1, 2])})
taps = {"places": np.array([[0, 2], [1, 1], [3, 0], [2, 2]]), "weights": np.array([[1, 2], [3, 0], [2, 1], [1, 1]])}
add(
    "_resample",
    lambda a, places, weights, axis: sum(
        np.take(a, places[:, t], axis) * np.expand_dims(weights[:, t].astype(a.dtype), tuple(range(1, a.ndim - axis)))
        for t in range(2)
    ),
    spread(2, 4, 3),
    kwargs={**taps, "axis": 1},
)

for mode in ("maximum", "minimum", "mean", "median", "linear_ramp"):
    options = {"end_values": ((1, 2), (0, 3))} if mode == "linear_ramp" else {"stat_length": ((2, 3), (1, 2))}
    if mode in ("mean", "median"):
        options = {"stat_length": 2}
    add("pad", np.pad, spread(3, 4), kwargs={"pad_width": ((1, 2), (0, 3)), "mode": mode, **options}, label=mode)
    whole = {"pad_width": 2, "mode": mode}
    add(
        "pad",
        np.pad,
        np.array([[5, 2, 8], [7, 1, 4]]),
        kwargs=whole,
        label=f"{mode} of whole numbers",
        dtypes=("as given",),
    )
add("pad", np.pad, spread(2, 2), kwargs={"pad_width": 1, "constant_values": ((1, 2), (3, 4))}, label="four values")
