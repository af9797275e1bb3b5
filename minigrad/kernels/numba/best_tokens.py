"""The best tokens of each row of scores, by one pass over the scores for them and one for the sum of all exponentials."""

from __future__ import annotations

from functools import cache

import numpy as np

from ...maths.addresses import at
from .compiling import kernel
from .thread_pool import FUNCTION, JOB_WORDS, OWN, PARTS, TAKEN, address_of, pool_for, run_jobs, word
from .vectors import LANES, exp, larger, largest, load, splat, total, up_to

F, ITEM = np.float32, 4
INF = F(np.inf)
AT_ONCE = 4 * LANES  # scores of which the best is compared first
TAKES = 16  # times that threads take some of the rows
SHARED = 1 << 17  # scores from which others are woken up to help

S_SCORES, S_ROW, S_SIZE, S_COUNT, S_TOKENS, S_BEST, S_LOGS = range(OWN, OWN + 7)


@kernel
def _inserted(tokens, best, count, token, score):
    """Put a score where it belongs among the best, behind those that are as good; the last one goes."""
    place = count - 1
    while place > 0 and at(best, F)[place - 1] < score:
        at(best, F)[place] = at(best, F)[place - 1]
        at(tokens, np.int64)[place] = at(tokens, np.int64)[place - 1]
        place -= 1
    at(best, F)[place], at(tokens, np.int64)[place] = score, token


@kernel
def _best_of_row(scores, size, tokens, best, count):
    for i in range(count):
        at(best, F)[i], at(tokens, np.int64)[i] = -INF, 0
    whole = size // AT_ONCE * AT_ONCE
    for begin in range(0, size, AT_ONCE):
        if begin < whole:
            place = scores + begin * ITEM
            a = larger(load(place), load(place + LANES * ITEM))
            b = larger(load(place + 2 * LANES * ITEM), load(place + 3 * LANES * ITEM))
            if not largest(larger(a, b)) > at(best, F)[count - 1]:
                continue
        for token in range(begin, min(begin + AT_ONCE, size)):
            if at(scores, F)[token] > at(best, F)[count - 1]:
                _inserted(tokens, best, count, token, at(scores, F)[token])


@kernel
def _sum_of_row(scores, size, top):
    """The sum of `exp(score - top)`."""
    added = splat(F(0))
    for begin in range(0, size - LANES + 1, LANES):
        added = added + exp(load(scores + begin * ITEM) - splat(top))
    rest = size % LANES
    result = total(added)
    if rest:
        last = load(scores + (size - LANES) * ITEM) - splat(top)  # of which only the last ones are new
        result += total(up_to(np.int32(LANES - rest), splat(F(0)), exp(last)))
    return result


@kernel
def best_part(job, part, room):
    """The best tokens of one row, the best first and of equal ones the first, and the logarithms of their probabilities."""
    size, count = word(job, S_SIZE), word(job, S_COUNT)
    scores, best = word(job, S_SCORES) + part * word(job, S_ROW), word(job, S_BEST) + part * count * ITEM
    _best_of_row(scores, size, word(job, S_TOKENS) + part * count * 8, best, count)
    top = at(best, F)[0]
    log = np.log(np.float64(_sum_of_row(scores, size, top)))
    for i in range(count):
        at(word(job, S_LOGS), np.float64)[part * count + i] = np.float64(at(best, F)[i]) - np.float64(top) - log


@cache
def _function() -> int:
    return address_of(best_part)


def best_tokens(scores: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tokens, scores and logarithms of probabilities, (B, count) each, of scores (B, V) in float32, at least `count` and 16 of them."""
    rows, size = scores.shape
    tokens, best, logs = np.empty((rows, count), np.int64), np.empty((rows, count), F), np.empty((rows, count))
    job = np.zeros(JOB_WORDS, np.int64)
    job[FUNCTION], job[PARTS], job[TAKEN] = _function(), rows, rows // TAKES
    job[OWN : OWN + 7] = (
        scores.ctypes.data, scores.strides[0], size, count, tokens.ctypes.data, best.ctypes.data, logs.ctypes.data
    )  # fmt: skip
    run_jobs(job.ctypes.data, 1, pool_for(scores.size >= SHARED // 4), scores.size >= SHARED)
    return tokens, best, logs
