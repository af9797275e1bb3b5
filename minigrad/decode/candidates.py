"""The best tokens of each row of scores, with the logarithms of their probabilities."""

from __future__ import annotations

from importlib import import_module

import numpy as np

from ..errors import NonFiniteError
from ..kernels import selection

__all__ = ["candidates"]

AT_ONCE = 2**18  # scores that are looked at together: so many stay in a core's cache
LEAST = 64  # tokens: for fewer NumPy is as quick
GROUP = 32  # tokens of which the best is found first


def candidates(scores: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """For each row (B, V) its best tokens, the best first and of equal ones the first: tokens and logarithms, (B, count) each."""
    count = min(count, scores.shape[1])
    if _is_compiled(scores):
        tokens, best, logs = import_module("minigrad.kernels.numba.best_tokens").best_tokens(scores, count)
        _check_finite(best[:, 0] + logs[:, 0])
        return tokens, logs
    step = max(1, AT_ONCE // scores.shape[1])
    tokens, logs = np.empty((len(scores), count), np.int64), np.empty((len(scores), count))
    buffer = np.empty((step, scores.shape[1]), scores.dtype)
    for start in range(0, len(scores), step):
        some = scores[start : start + step]
        tokens[start : start + step], found = _best(some, count)
        best = found[:, :1]
        likely = np.exp(np.subtract(some, best, out=buffer[: len(some)]), out=buffer[: len(some)])
        total = np.log(likely.sum(axis=1, keepdims=True))  # only few of the probabilities are needed
        logs[start : start + step] = found.astype(np.float64) - best - total
    return tokens, logs


def _is_compiled(scores: np.ndarray) -> bool:
    if scores.dtype != np.float32 or scores.shape[1] < LEAST or scores.strides[1] != scores.itemsize:
        return False
    return "numba" in selection.candidates(np.ndarray, scores.size)


def _check_finite(best: np.ndarray) -> None:
    if not np.isfinite(best).all():
        raise NonFiniteError(
            "beam_search: no token can be chosen, the scores are not finite",
            "at least one finite score in each row, and no NaN",
            fix="the model has diverged: use an earlier checkpoint, or train with a smaller lr",
        )


def _best(scores: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The tokens of the greatest scores of each row, and the scores: (B, V) -> (B, count) each.

    The `count`-th best of the bests of all groups of tokens is a bound, which few scores reach.
    """
    rows, size = scores.shape
    groups = size // GROUP
    bests = scores
    if groups > count:  # (B, GROUP, groups) -> (B, groups)
        bests = scores[:, : GROUP * groups].reshape(rows, GROUP, groups).max(axis=1)
    ordered = np.partition(bests, -count, axis=1)[:, -count:]
    best = np.maximum(ordered.max(axis=1), scores[:, GROUP * groups :].max(axis=1, initial=-np.inf))
    _check_finite(best)
    row, token = np.divmod(np.flatnonzero(scores >= ordered[:, :1]), size)  # row by row, tokens in their order
    value = scores[row, token]
    order = np.lexsort((-value, row))  # which leaves equal ones in their order
    first = np.searchsorted(row, np.arange(rows))  # of each row
    chosen = order[first[:, None] + np.arange(count)]
    return token[chosen], value[chosen]
