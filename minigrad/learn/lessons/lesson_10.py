"""Attention by hand: questions, labels and contents, and what order has to do with it."""

import math

import numpy as np

from ..exercise import exercise


def _draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def _word_by_word(Q, K, V):
    rows = []
    for q in Q:
        scores = [sum(a * b for a, b in zip(q, k)) / math.sqrt(len(q)) for k in K]
        shares = [1 / sum(math.exp(min(other - score, 700)) for other in scores) for score in scores]
        rows.append([sum(share * v[column] for share, v in zip(shares, V)) for column in range(V.shape[1])])
    return np.array(rows)


@exercise(
    cases=[
        (_draw(3, 4), _draw(3, 4, seed=1), _draw(3, 4, seed=2)),
        (_draw(2, 9, seed=3), _draw(5, 9, seed=4), _draw(5, 3, seed=5)),
        (_draw(1, 1, seed=6), _draw(2, 1, seed=7), _draw(2, 2, seed=8)),
        (40 * _draw(3, 4, seed=9), 40 * _draw(3, 4, seed=10), _draw(3, 2, seed=11)),
    ],
    oracle=_word_by_word,
    hint="rows ask, columns are asked; the scores are divided before the softmax, by the root of how many numbers a key has",
)
def attention(Q, K, V):
    """What each word takes home: (N, D), (M, D), (M, E) -> (N, E). Scores may be large.

    >>> attention(np.array([[0.0]]), np.array([[1.0], [2.0]]), np.array([[4.0], [6.0]])).tolist()
    [[5.0]]
    """
    scores = Q @ K.T / np.sqrt(K.shape[1])  # (N, M)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ V


def _each_weight(scores, divisor):
    return np.array([[1 / sum(math.exp(min((b - a) / divisor, 700)) for b in row) for a in row] for row in scores])


@exercise(
    cases=[(_draw(3, 3), 2.0), (10 * _draw(2, 4, seed=1), 0.01), (_draw(3, 2, seed=2), 200.0)],
    oracle=_each_weight,
    hint="scores divided by 0.01 are huge: lower each row by its largest before you raise anything",
)
def weights(scores, divisor):
    """The attention weights of scores that are divided by a number, also by a very small one: (N, M) -> (N, M).

    >>> weights(np.array([[3.0, 3.0]]), 2.0).tolist()
    [[0.5, 0.5]]
    """
    divided = scores / divisor
    raised = np.exp(divided - divided.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def _put_back(output, order):
    rows = dict(zip(order.tolist(), output.tolist()))
    return np.array([rows[word] for word in range(len(order))])


@exercise(
    cases=[
        (_draw(3, 4), np.array([2, 0, 1])),
        (_draw(5, 2, seed=1), np.array([1, 2, 3, 4, 0])),
        (_draw(4, 1, seed=2), np.array([0, 2, 1, 3])),
    ],
    oracle=_put_back,
    hint="row 0 of the output belongs to word order[0], so that is the row where it goes to",
)
def in_their_places(output, order):
    """The rows of the output in the order of the sentence, where the words were given in another: word order[0] came first.

    Attention without positions gives each word the same, whatever the order; only the rows of the result are exchanged.

    >>> in_their_places(np.array([[7.0], [8.0], [9.0]]), np.array([2, 0, 1])).tolist()
    [[8.0], [9.0], [7.0]]
    """
    placed = np.empty_like(output)
    placed[order] = output
    return placed
