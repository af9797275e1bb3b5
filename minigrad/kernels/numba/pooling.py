"""Pooling over one or two axes, forward and backward, without a matrix of windows in memory.

By hand: windows overlap and hang over the edge, and the way back goes to places that the data chose; the compiler writes neither.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numba import carray, types

from ...maths.addresses import at
from ...ops.layout.windows import out_sizes
from ...ops.neural.pooling import Slide, avg_pool, max_pool, window_counts
from ..registry import Kernel
from .compiling import kernel
from .thread_pool import FUNCTION, JOB_WORDS, OWN, PARTS, address_of, pool_for, run_jobs, word

F = np.float32
MOST_PARTS, MOST_NUMBERS = 8, 256  # parts of a job, and places in a window, whose numbers are bytes
SHARED, WAKING = 20_000, 100_000  # elements of windows from which others may help, and from which they are woken up

# The words of a job: addresses of the input, the output, and the bytes that number places; how the window slides over a plane.
SOURCE, RESULT, CHOSEN, PLANES, PER_PART, BACK = range(OWN, OWN + 6)
HEIGHT, WIDTH, HIGH, WIDE, TALL, BROAD, STEP_Y, STEP_X, BEFORE_Y, BEFORE_X, GAP_Y, GAP_X, FACTORS = range(
    OWN + 6, OWN + 19
)


@kernel
def _max_plane(source, result, chosen, tall, broad, step_y, step_x, before_y, before_x, gap_y, gap_x):
    """The largest of each window of a plane, and its number in the window."""
    height, width = source.shape
    high, wide = result.shape
    for y in range(high):
        for x in range(wide):
            best, number, found = F(0), 0, False
            for i in range(tall):
                row = y * step_y - before_y + i * gap_y
                if 0 <= row < height:
                    for j in range(broad):
                        column = x * step_x - before_x + j * gap_x
                        if 0 <= column < width:
                            value = source[row, column]
                            if not found or value > best or value != value:
                                best, number, found = value, i * broad + j, True
            result[y, x], chosen[y, x] = best, number


@kernel
def _max_pairs(source, result, chosen, back):
    """The same of windows of 2 x 2 side by side, which need no look at the edge; or back."""
    high, wide = result.shape
    for y in range(high):
        upper, lower, out, numbers = source[2 * y], source[2 * y + 1], result[y], chosen[y]
        for x in range(wide):
            if back:
                number, slope = numbers[x], out[x]
                upper[2 * x], upper[2 * x + 1] = slope if number == 0 else F(0), slope if number == 1 else F(0)
                lower[2 * x], lower[2 * x + 1] = slope if number == 2 else F(0), slope if number == 3 else F(0)
                continue
            best, number = upper[2 * x], 0
            value = upper[2 * x + 1]
            if value > best or value != value:
                best, number = value, 1
            value = lower[2 * x]
            if value > best or value != value:
                best, number = value, 2
            value = lower[2 * x + 1]
            if value > best or value != value:
                best, number = value, 3
            out[x], numbers[x] = best, number


@kernel
def _mean_pairs(source, result, factors, back):
    """Sums of windows of 2 x 2 side by side, times the factor of each; or back."""
    high, wide = result.shape
    for y in range(high):
        upper, lower, out, factor = source[2 * y], source[2 * y + 1], result[y], factors[y]
        if back:
            for x in range(wide):
                share = out[x] * factor[x]
                upper[2 * x] = share
                upper[2 * x + 1] = share
                lower[2 * x] = share
                lower[2 * x + 1] = share
        else:
            for x in range(wide):
                out[x] = ((upper[2 * x] + upper[2 * x + 1]) + (lower[2 * x] + lower[2 * x + 1])) * factor[x]


@kernel
def _are_pairs(job):
    """Whether windows are 2 x 2, side by side, and cover planes of even sizes."""
    kernels = word(job, TALL) == 2 and word(job, BROAD) == 2 and word(job, STEP_Y) == 2 and word(job, STEP_X) == 2
    gaps = word(job, BEFORE_Y) == 0 and word(job, BEFORE_X) == 0 and word(job, GAP_Y) == 1 and word(job, GAP_X) == 1
    return kernels and gaps and 2 * word(job, HIGH) == word(job, HEIGHT) and 2 * word(job, WIDE) == word(job, WIDTH)


@kernel
def _max_part(job, part, room):
    height, width, high, wide = word(job, HEIGHT), word(job, WIDTH), word(job, HIGH), word(job, WIDE)
    tall, broad, step_y, step_x = word(job, TALL), word(job, BROAD), word(job, STEP_Y), word(job, STEP_X)
    before_y, before_x, gap_y, gap_x = word(job, BEFORE_Y), word(job, BEFORE_X), word(job, GAP_Y), word(job, GAP_X)
    are_pairs = _are_pairs(job)
    first = part * word(job, PER_PART)
    for plane in range(first, min(first + word(job, PER_PART), word(job, PLANES))):
        source = carray(at(word(job, SOURCE) + plane * height * width * 4, types.float32), (height, width))
        result = carray(at(word(job, RESULT) + plane * high * wide * 4, types.float32), (high, wide))
        chosen = carray(at(word(job, CHOSEN) + plane * high * wide, types.uint8), (high, wide))
        if are_pairs:
            _max_pairs(source, result, chosen, word(job, BACK) == 1)
        elif word(job, BACK):
            source[:] = 0
            for y in range(high):
                for x in range(wide):
                    number = np.int64(chosen[y, x])
                    row, column = y * step_y - before_y, x * step_x - before_x
                    source[row + number // broad * gap_y, column + number % broad * gap_x] += result[y, x]
        else:
            _max_plane(source, result, chosen, tall, broad, step_y, step_x, before_y, before_x, gap_y, gap_x)


@kernel
def _mean_part(job, part, room):
    """Sums of windows times the factor of each, or back."""
    height, width, high, wide = word(job, HEIGHT), word(job, WIDTH), word(job, HIGH), word(job, WIDE)
    tall, broad, step_y, step_x = word(job, TALL), word(job, BROAD), word(job, STEP_Y), word(job, STEP_X)
    before_y, before_x = word(job, BEFORE_Y), word(job, BEFORE_X)
    factors, are_pairs = carray(at(word(job, FACTORS), types.float32), (high, wide)), _are_pairs(job)
    first = part * word(job, PER_PART)
    for plane in range(first, min(first + word(job, PER_PART), word(job, PLANES))):
        source = carray(at(word(job, SOURCE) + plane * height * width * 4, types.float32), (height, width))
        result = carray(at(word(job, RESULT) + plane * high * wide * 4, types.float32), (high, wide))
        if are_pairs:
            _mean_pairs(source, result, factors, word(job, BACK) == 1)
            continue
        if word(job, BACK):
            source[:] = 0
        for y in range(high):
            top, bottom = max(y * step_y - before_y, 0), min(y * step_y - before_y + tall, height)
            for x in range(wide):
                left, right = max(x * step_x - before_x, 0), min(x * step_x - before_x + broad, width)
                if word(job, BACK):
                    share = result[y, x] * factors[y, x]
                    for row in range(top, bottom):
                        for column in range(left, right):
                            source[row, column] += share
                else:
                    total = F(0)
                    for row in range(top, bottom):
                        for column in range(left, right):
                            total += source[row, column]
                    result[y, x] = total * factors[y, x]


@kernel
def _run(source, result, chosen, factors, slide, back, per_part, parts, function, pool, wake):
    job = np.zeros(JOB_WORDS, np.int64)
    job[FUNCTION], job[PARTS] = function, parts
    job[SOURCE], job[RESULT], job[CHOSEN] = source.ctypes.data, result.ctypes.data, chosen.ctypes.data
    job[FACTORS], job[BACK], job[PER_PART], job[PLANES] = factors.ctypes.data, back, per_part, source.shape[0]
    job[HEIGHT], job[WIDTH], job[HIGH], job[WIDE] = source.shape[1], source.shape[2], result.shape[1], result.shape[2]
    for i in range(slide.size):
        job[TALL + i] = slide[i]
    run_jobs(job.ctypes.data, 1, pool, wake)


@cache
def _function(name: str) -> int:
    return address_of({"max": _max_part, "mean": _mean_part}[name])


_NO_BYTES, _NO_FACTORS = np.empty(0, np.uint8), np.empty(0, F)


def _pooled(
    name: str, source: Any, result: Any, slide: Any, chosen: Any = _NO_BYTES, factors: Any = _NO_FACTORS, back: int = 0
) -> None:
    """Pool the planes (N, H, W) of `source` into `result`, or the other way; one axis counts as the second of two."""
    words = _words(slide)
    work = result.size * int(words[0] * words[1])
    pool = pool_for(work >= SHARED)
    per_part = -(-len(source) // MOST_PARTS) if pool else len(source)
    parts = -(-len(source) // per_part)
    _run(source, result, chosen, factors, words, back, per_part, parts, _function(name), pool, work >= WAKING)


@lru_cache(maxsize=256)
def _words(slide: Slide) -> np.ndarray:
    """Kernel, stride, padding and dilation as pairs, one after the other."""
    return np.array([(fill, *sizes)[-2:] for fill, sizes in zip((1, 1, 0, 1), slide)], np.int64).reshape(-1)


def _planes(a: np.ndarray, count: int) -> np.ndarray:
    """(…, *sizes) -> (planes, H, W)"""
    return np.ascontiguousarray(a).reshape(-1, *(1, *a.shape[a.ndim - count :])[-2:])


def _empty(a: np.ndarray, slide: Slide) -> np.ndarray:
    count = len(slide.kernel)
    sizes = [n + 2 * p + s for n, p, s in zip(a.shape[a.ndim - count :], slide.padding, slide.surplus)]
    out = out_sizes(tuple(sizes), slide.kernel, slide.stride, slide.dilation)
    return np.empty((*a.shape[: a.ndim - count], *out), F)


def max_forward(a, **slide):
    given, count = Slide(**slide), len(slide["kernel"])
    out = _empty(a, given)
    chosen = np.empty(out.shape, np.uint8)
    _pooled("max", _planes(a, count), _planes(out, count), given, chosen)
    return out, chosen


def max_backward(g, chosen, needs, a, **slide):
    to_a, count = np.empty(a.shape, F), len(slide["kernel"])
    _pooled("max", _planes(to_a, count), _planes(g, count), Slide(**slide), chosen, back=1)
    return (to_a,)


@lru_cache(maxsize=64)
def _factors(
    slide: Slide, sizes: tuple[int, ...], out: tuple[int, ...], count_include_pad: bool, divisor: Any
) -> np.ndarray:
    counts = window_counts(slide, sizes, count_include_pad, divisor)
    return np.ascontiguousarray(np.broadcast_to(1 / counts, out), F)


def mean_forward(a, *, kernel, stride, padding, surplus, count_include_pad, divisor):
    slide, count = Slide(kernel, stride, padding, (1,) * len(kernel), surplus), len(kernel)
    out = _empty(a, slide)
    factors = _factors(slide, a.shape[-count:], out.shape[-count:], count_include_pad, divisor)
    _pooled("mean", _planes(a, count), _planes(out, count), slide, factors=factors)
    return out, None


def mean_backward(g, kept, needs, a, *, kernel, stride, padding, surplus, count_include_pad, divisor):
    slide, to_a, count = Slide(kernel, stride, padding, (1,) * len(kernel), surplus), np.empty(a.shape, F), len(kernel)
    factors = _factors(slide, a.shape[-count:], g.shape[-count:], count_include_pad, divisor)
    _pooled("mean", _planes(to_a, count), _planes(g, count), slide, factors=factors, back=1)
    return (to_a,)


def accepts_pooling(a, *, kernel, **rest):
    """Rows or images of float32, and windows whose places a byte numbers."""
    return a.dtype == F and a.size > 0 and len(kernel) < 3 and math.prod(kernel) <= MOST_NUMBERS


max_pool.kernels["numba"] = Kernel(max_forward, max_backward, accepts_pooling)
avg_pool.kernels["numba"] = Kernel(mean_forward, mean_backward, accepts_pooling)
