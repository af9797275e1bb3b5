"""Inside a block: norms, a neuron that is an AND, and words that are not there."""

import math
import statistics

import numpy as np

from ..exercise import exercise


def _draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def _row_by_row(x, eps):
    rows = []
    for row in x.tolist():
        mean, spread = statistics.fmean(row), math.sqrt(statistics.pvariance(row) + eps)
        rows.append([(value - mean) / spread for value in row])
    return np.array(rows)


@exercise(
    cases=[
        (_draw(3, 4), 1e-5),
        (5 + 0.01 * _draw(2, 6, seed=1), 1e-3),
        (np.array([[2.0, 2.0, 2.0], [0.0, 1.0, 2.0]]), 1e-5),
    ],
    oracle=_row_by_row,
    hint="each row for itself; the variance is the mean of the squares, and eps is added to it before the root",
)
def layer_norm(x, eps):
    """Each row less its mean, divided by √(its variance + eps): (N, D) -> (N, D).

    >>> layer_norm(np.array([[1.0, 2.0, 3.0, 4.0]]), 0.0).round(4).tolist()
    [[-1.3416, -0.4472, 0.4472, 1.3416]]
    """
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps)


_DIRECTIONS = np.linalg.qr(_draw(8, 8))[0]


def _least_missing(stream, key):
    return max(0.0, 1.0 - sum(1.0 - math.fsum(a * b for a, b in zip(stream, row)) for row in key))


@exercise(
    cases=[
        (_DIRECTIONS[0] + _DIRECTIONS[1] + _DIRECTIONS[5], _DIRECTIONS[:2]),
        (_DIRECTIONS[0] + _DIRECTIONS[4], _DIRECTIONS[:2]),
        (_DIRECTIONS[:3].sum(axis=0), _DIRECTIONS[:3]),
        (0.9 * _DIRECTIONS[:3].sum(axis=0), _DIRECTIONS[:3]),
        (_DIRECTIONS[0] + _DIRECTIONS[2], _DIRECTIONS[:3]),
        (1.5 * _DIRECTIONS[3], _DIRECTIONS[3:4]),
    ],
    oracle=_least_missing,
    hint="each word that is there adds 1 to the sum of the products; the bias has to take away what all but one of them add",
)
def fires(stream, key):
    """How much a neuron fires that wants all words of its key: max(0, sum of the products + bias).

    `key` has a row for each word, (n, D), of length 1 and at right angles to each other. With all of them in the stream, (D,),
    it is 1; with all but one, 0.

    >>> float(fires(np.array([1.0, 1.0, 0.0]), np.eye(3)[:2]))
    1.0
    """
    return max(0.0, (key @ stream).sum() - (len(key) - 1))


def _alone(scores, lengths):
    whole = np.zeros_like(scores)
    for sentence, length in enumerate(lengths):
        raised = np.exp(scores[sentence, :, :length])
        whole[sentence, :, :length] = (raised.T / raised.sum(axis=1)).T
    return whole


@exercise(
    cases=[(_draw(2, 5, 5), [5, 3]), (_draw(3, 2, 4, seed=1), [1, 4, 2]), (_draw(1, 3, 3, seed=2), [3])],
    oracle=_alone,
    hint="0 as a score is no silence, since e^0 is 1: which score becomes 0? And which axis are the words that are asked?",
)
def masked_weights(scores, lengths):
    """Attention weights where sentence b has only lengths[b] real words, and the rest is filler: (B, N, M) -> (B, N, M).

    Filler is never listened to; each row adds up to 1.

    >>> masked_weights(np.zeros((1, 1, 3)), [2]).tolist()
    [[[0.5, 0.5, 0.0]]]
    """
    real = np.arange(scores.shape[-1]) < np.array(lengths)[:, None, None]  # (B, 1, M)
    hidden = np.where(real, scores, -np.inf)
    raised = np.exp(hidden - hidden.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)
