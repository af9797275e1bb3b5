"""Convolutions over one or two axes, forward and backward, without a matrix of windows in memory.

An image is first copied into planes: one for each channel, place in the kernel's width and residue of the vertical stride, whose
rows are as long as those of the result. In them a weight meets all positions of the result in one piece that begins at an
offset, so a result is a sum of such pieces times weights, and the gradient of a weight one long product. The gradient of the
input is a convolution again: of `g`, with the weights turned around; with strides, one for each residue.
By hand, since the compiler writes loops over elements, and here a tile of sums has to stay in registers.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numba import carray, types

from ...maths.addresses import at
from ...ops.layout.windows import out_sizes
from ...ops.neural.convolution import convolution
from ..numpy import are_floating
from ..registry import Kernel
from .compiling import kernel
from .convolution_plans import (
    CHANNELS,
    COLUMN,
    COLUMNS_OUT,
    DEPTH,
    FIRST,
    GROUPS,
    HEIGHT,
    LEFTS,
    OUTPUTS,
    PLANE,
    PLANE_ROWS,
    ROW,
    ROWS_OUT,
    STEP_X,
    STEP_Y,
    TOPS,
    WIDTH,
    WORDS,
    Plan,
    backward_plans,
    forward_plan,
)  # fmt: skip
from .convolution_tiles import (
    ITEM,
    LANES,
    NARROW,
    ROWS,
    TILE,
    VECTORS,
    copy_every_second,
    copy_row,
    correlate,
    correlate_narrow,
    products,
)
from .thread_pool import FUNCTION, JOB_WORDS, OWN, PARTS, address_of, pool_for, run_jobs, word

F = np.float32
MOST_PARTS = 8  # that the images are divided into
PARTS_OF_SUM = 4  # the same for the gradient of the weights: as many as sums that are then added
CACHED = 130_000  # elements of planes that products go over at a time
SHARED, WAKING = 200_000, 1_000_000  # multiplications from which others may help, and from which they are woken up

# The words of a job
TABLE, SOURCE, WEIGHT, BIAS, FEW, RESULT, SCRATCH, SCRATCH_SIZE, IMAGES, PER_PART = range(OWN, OWN + 10)


@kernel
def _copy_steps(row, high, first, step, count, target):
    """`target[k] = row[first + k · step]`, and 0 where that is not from 0 below `high`."""
    if step == 1:
        copy_row(row, 0, high, first, count, target)
    elif step == 2:
        copy_every_second(row, 0, high, first, count, target)
    else:
        values = carray(at(row, types.float32), (1,))
        filled = carray(at(target, types.float32), (1,))
        for k in range(count):
            j = k * step + first
            filled[k] = values[j] if 0 <= j < high else F(0)


@kernel
def _lay_out(table, source, planes):
    """The planes of one image: (C, H, W) -> (C, TOPS, LEFTS, PLANE_ROWS, COLUMNS_OUT)."""
    height, width, columns, rows = table[HEIGHT], table[WIDTH], table[COLUMNS_OUT], table[PLANE_ROWS]
    tops, lefts, step_y, step_x = table[TOPS], table[LEFTS], table[STEP_Y], table[STEP_X]
    is_line = width == 1 and columns == 1 and lefts == 1 and table[WORDS + tops] == 0
    target = planes
    for channel in range(table[CHANNELS]):
        image = source + channel * height * width * ITEM
        for top in range(tops):
            first = table[WORDS + top]
            if is_line:  # rows of one number each are copied as one
                _copy_steps(image, height, first, step_y, rows, target)
                target += rows * ITEM
                continue
            for left in range(lefts):
                x = table[WORDS + tops + left]
                for i in range(rows):
                    y = i * step_y + first
                    row, high = image + y * width * ITEM, width if 0 <= y < height else 0
                    _copy_steps(row, high, x, step_x, columns, target)
                    target += columns * ITEM


@kernel
def _offsets(job, table):
    return word(job, TABLE) + (WORDS + table[TOPS] + table[LEFTS]) * 8


@kernel
def _sizes(table):
    """How many elements a plane of the result has, all planes of an image, and an image itself."""
    planes = table[CHANNELS] * table[TOPS] * table[LEFTS] * table[PLANE_ROWS] * table[COLUMNS_OUT]
    return table[ROWS_OUT] * table[COLUMNS_OUT], planes, table[CHANNELS] * table[HEIGHT] * table[WIDTH]


@kernel
def _tiles(size):
    """How many tiles there are, and how many of them are wide: together as few vectors as two widths allow."""
    vectors = (size + LANES - 1) // LANES
    count = (vectors + VECTORS - 1) // VECTORS
    return count, max(0, vectors - count * (VECTORS - 1))


@kernel
def _correlate_directly(table, planes, weights, offsets, bias, result):
    """One group of one image, into a result whose positions lie side by side."""
    size, depth, outputs = table[ROWS_OUT] * table[COLUMNS_OUT], table[DEPTH], table[OUTPUTS]
    count, wide = _tiles(size)
    p = 0
    for tile in range(count):
        width = TILE if tile < wide else NARROW
        begin = min(p, size - width) * ITEM
        p += width
        for r in range(0, outputs, ROWS):
            out, rows = result + r * size * ITEM + begin, min(ROWS, outputs - r)
            left, start = weights + r * depth * ITEM, bias + r * ITEM
            if tile < wide:
                correlate(left, depth * ITEM, planes + begin, offsets, depth, start, out, size * ITEM, rows)
            else:
                correlate_narrow(left, depth * ITEM, planes + begin, offsets, depth, start, out, size * ITEM, rows)


@kernel
def _correlate_apart(table, planes, weights, offsets, bias, result, rows):
    """One group of one image, into a result whose positions lie anywhere, by way of `rows` (ROWS, size and more)."""
    size, depth = table[ROWS_OUT] * table[COLUMNS_OUT], table[DEPTH]
    length = (size + TILE - 1) // TILE * TILE
    tiles, wide = _tiles(size)
    lines, columns, step = table[ROWS_OUT], table[COLUMNS_OUT], table[COLUMN]
    if columns == 1:  # rows of one number each are one
        lines, columns, step = 1, lines, table[ROW]
    made = carray(at(rows, types.float32), (ROWS * length,))
    for r in range(0, table[OUTPUTS], ROWS):
        count = min(ROWS, table[OUTPUTS] - r)
        left, start = weights + r * depth * ITEM, bias + r * ITEM
        shift = 0
        for tile in range(tiles):
            source, out = planes + shift, rows + shift
            if tile < wide:
                correlate(left, depth * ITEM, source, offsets, depth, start, out, length * ITEM, count)
            else:
                correlate_narrow(left, depth * ITEM, source, offsets, depth, start, out, length * ITEM, count)
            shift += (TILE if tile < wide else NARROW) * ITEM
        for k in range(count):
            out = carray(at(result, types.float32), (1,))
            for y in range(lines):
                place = table[FIRST] + (r + k) * table[PLANE] + y * table[ROW]
                for x in range(columns):
                    out[place + x * step] = made[k * length + y * columns + x]


@kernel
def _correlate_part(job, part, room):
    """A few images: each is laid out, and multiplied with the weights."""
    table = carray(at(word(job, TABLE), types.int64), (WORDS,))
    scratch = word(job, SCRATCH) + part * word(job, SCRATCH_SIZE) * ITEM
    offsets, outputs, groups = _offsets(job, table), table[OUTPUTS], table[GROUPS]
    size, planes, image_size = _sizes(table)
    is_direct = table[COLUMN] == 1 and table[PLANE] == size and size >= TILE  # tiles may then overlap
    first = part * word(job, PER_PART)
    for image in range(first, min(first + word(job, PER_PART), word(job, IMAGES))):
        _lay_out(table, word(job, SOURCE) + image * image_size * ITEM, scratch)
        for group in range(groups):
            weights = word(job, WEIGHT) + group * outputs * table[DEPTH] * ITEM
            own, bias = scratch + group * (planes // groups) * ITEM, word(job, BIAS) + group * outputs * ITEM
            result = word(job, RESULT) + (image * groups + group) * outputs * table[PLANE] * ITEM
            if is_direct:
                _correlate_directly(table, own, weights, offsets, bias, result)
            else:
                _correlate_apart(table, own, weights, offsets, bias, result, scratch + (planes + TILE) * ITEM)


@kernel
def _weights_part(job, part, room):
    """The gradient of the weights, summed over a share of the images, and behind each row that of the bias.

    WEIGHT is `g`, RESULT (parts, O, depth + 1).
    """
    table = carray(at(word(job, TABLE), types.int64), (WORDS,))
    scratch, few = word(job, SCRATCH) + part * word(job, SCRATCH_SIZE) * ITEM, word(job, FEW)
    depth, outputs, groups = table[DEPTH], table[OUTPUTS], table[GROUPS]
    size, planes, image_size = _sizes(table)
    all_outputs = groups * outputs
    result = carray(
        at(word(job, RESULT) + part * all_outputs * (depth + 1) * ITEM, types.float32), (all_outputs * (depth + 1),)
    )
    result[:] = 0
    last = min((part + 1) * word(job, PER_PART), word(job, IMAGES))
    for image in range(part * word(job, PER_PART), last, few):
        count, slopes = min(few, last - image), word(job, WEIGHT) + image * all_outputs * size * ITEM
        for i in range(count):
            _lay_out(table, word(job, SOURCE) + (image + i) * image_size * ITEM, scratch + i * planes * ITEM)
            values = carray(at(slopes + i * all_outputs * size * ITEM, types.float32), (all_outputs, size))
            for r in range(all_outputs):
                result[r * (depth + 1) + depth] += values[r].sum()
        for group in range(groups):
            for r in range(group * outputs, (group + 1) * outputs, ROWS):
                rows = min(ROWS, (group + 1) * outputs - r)
                _products(job, table, count, scratch, slopes, r, rows, result, room)


@kernel
def _products(job, table, count, scratch, slopes, r, rows, result, room):
    """Add the gradient of the weights of a few outputs, from `r` on, over `count` images."""
    depth, outputs, groups = table[DEPTH], table[OUTPUTS], table[GROUPS]
    size, planes, _ = _sizes(table)
    own = scratch + r // outputs * (planes // groups) * ITEM
    left, left_image = slopes + r * size * ITEM, groups * outputs * size * ITEM
    made = carray(at(room, types.float32), (ROWS * VECTORS,))
    for k in range(0, depth, VECTORS):
        columns, offsets = min(VECTORS, depth - k), _offsets(job, table) + k * 8
        products(left, size * ITEM, left_image, rows, own, offsets, planes * ITEM, columns, count, size, room)
        for a in range(rows):
            for b in range(columns):
                result[(r + a) * (depth + 1) + k + b] += made[a * VECTORS + b]


@kernel
def _run(table, source, weight, bias, few, result, scratch, per_part, function, pool, wake):
    """Run one job for all images; `scratch` has a row for each part."""
    job = np.zeros(JOB_WORDS, np.int64)
    job[FUNCTION], job[PARTS] = function, scratch.shape[0]
    job[TABLE], job[SOURCE], job[WEIGHT] = table.ctypes.data, source.ctypes.data, weight.ctypes.data
    job[BIAS], job[FEW], job[RESULT] = bias.ctypes.data, few, result.ctypes.data
    job[SCRATCH], job[SCRATCH_SIZE] = scratch.ctypes.data, scratch.shape[1]
    job[IMAGES], job[PER_PART] = source.shape[0], per_part
    run_jobs(job.ctypes.data, 1, pool, wake)


@cache
def _function(part: str) -> int:
    return address_of({"correlate": _correlate_part, "weights": _weights_part}[part])


def _scratch(parts: int, size: int) -> np.ndarray:
    """(parts, size and a little more), each row beginning where a register does."""
    size = -(-size // LANES) * LANES
    memory = np.empty(parts * size + LANES, F)
    skipped = -memory.ctypes.data // ITEM % LANES
    return memory[skipped : skipped + parts * size].reshape(parts, size)


def _correlated(plan: Plan, source: np.ndarray, weight: np.ndarray, bias: np.ndarray, result: np.ndarray) -> None:
    images = len(source)
    pool = pool_for(images * plan.work >= SHARED)
    per_part = -(-images // MOST_PARTS) if pool else images
    scratch = _scratch(-(-images // per_part), plan.planes + TILE + plan.rows)
    wake = images * plan.work >= WAKING
    _run(plan.table, source, weight, bias, 0, result, scratch, per_part, _function("correlate"), pool, wake)


def _forward(a, weight, bias, stride, before, dilation, groups, out):
    plan = forward_plan(a.shape[1:], weight.shape, out, stride, before, dilation, groups)
    result = np.empty((len(a), len(weight), *out), F)
    bias = np.zeros(len(weight), F) if bias is None else bias
    _correlated(plan, a, weight, bias, result)
    return result


def _to_input(g, a, weight, stride, before, dilation, groups):
    plans = backward_plans(a.shape[1:], weight.shape, g.shape[2:], stride, before, dilation, groups)
    result = (np.empty if len(plans) == 1 and stride == (1, 1) else np.zeros)(a.shape, F)
    outputs, inner, *kernel = weight.shape
    apart, none = weight.reshape(groups, outputs // groups, inner, *kernel), np.zeros(a.shape[1], F)
    for plan in plans:
        rows, columns = plan.taps
        turned = apart[:, :, :, rows][..., columns].swapaxes(1, 2)  # (g, C/g, O/g, taps, taps)
        _correlated(plan, g, np.ascontiguousarray(turned), none, result)
    return result


def _to_weight(g, a, weight, stride, before, dilation, groups):
    plan = forward_plan(a.shape[1:], weight.shape, g.shape[2:], stride, before, dilation, groups)
    per_part = -(-len(a) // PARTS_OF_SUM)
    few = max(1, min(per_part, CACHED // plan.planes))
    parts = -(-len(a) // per_part)
    depth, work = math.prod(weight.shape[1:]), len(a) * plan.work
    result = np.empty((parts, len(weight), depth + 1), F)
    pool, scratch = pool_for(work >= SHARED), _scratch(parts, few * plan.planes + TILE)
    _run(plan.table, a, g, result, few, result, scratch, per_part, _function("weights"), pool, work >= WAKING)
    total = result.sum(axis=0)
    return np.ascontiguousarray(total[:, :depth]).reshape(weight.shape), total[:, depth].copy()


def convolution_forward(a, weight, bias, *, stride, padding, dilation, groups):
    out = out_sizes([n + sum(p) for n, p in zip(a.shape[2:], padding)], weight.shape[2:], stride, dilation)
    images, weight, *rest = _as_planes(a, weight, stride, [p[0] for p in padding], dilation)
    bias = None if bias is None else np.ascontiguousarray(bias)
    return _forward(images, weight, bias, *rest, groups, (*out, 1)[:2]).reshape(len(a), -1, *out), None


def convolution_backward(g, kept, needs, a, weight, bias, *, stride, padding, dilation, groups):
    images, kernel, *rest = _as_planes(a, weight, stride, [p[0] for p in padding], dilation)
    g = np.ascontiguousarray(g)
    slopes = g.reshape(*g.shape[:2], *(*g.shape[2:], 1)[:2])
    to_a = _to_input(slopes, images, kernel, *rest, groups).reshape(a.shape) if needs[0] else None
    to_weight, to_bias = _to_weight(slopes, images, kernel, *rest, groups) if needs[1] or needs[2] else (None, None)
    return to_a, to_weight.reshape(weight.shape) if needs[1] else None, to_bias if needs[2] else None


def _as_planes(a, weight, stride, before, dilation):
    """One axis as the first of two: images (N, C, H, W), weights (O, C/groups, kh, kw), and pairs.

    As the second, each place in the kernel would have planes of its own; as the first, all share one.
    """
    a, weight = np.ascontiguousarray(a), np.ascontiguousarray(weight)
    if a.ndim == 4:
        return a, weight, stride, tuple(before), dilation
    return a[..., None], weight[..., None], (*stride, 1), (*before, 0), (*dilation, 1)


def accepts_convolution(a, weight, bias, *, stride, padding, dilation, groups):
    """Images or rows of float32, weights and a bias that fit them: no loop broadcasts."""
    fits = 2 < a.ndim < 5 and weight.ndim == a.ndim and weight.shape[1] * groups == a.shape[1]
    fits = fits and len(weight) % groups == 0 and (bias is None or bias.shape == weight.shape[:1])
    return fits and a.dtype == F and are_floating(a, weight, bias) and a.size > 0 and weight.size > 0


convolution.kernels["numba"] = Kernel(convolution_forward, convolution_backward, accepts_convolution)
