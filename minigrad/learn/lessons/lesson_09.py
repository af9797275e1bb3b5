"""Positions: clock hands of different speeds, and what turns them."""

import cmath
import math

import numpy as np

from ..exercise import exercise


def _hands(count, dim, base=10000.0):
    rows = []
    for place in range(count):
        turned = [cmath.exp(1j * place / base ** (2 * i / dim)) for i in range(dim // 2)]
        rows.append([part for hand in turned for part in (hand.imag, hand.real)])
    return np.array(rows)


@exercise(
    cases=[(3, 4), (50, 8), (1, 2), (200, 6)],
    oracle=_hands,
    hint="a sine and its cosine share one speed; the speed falls from one pair to the next, not from one column to the next",
)
def codes(count, dim):
    """The codes of the positions 0, 1, …: sine and cosine of position / 10000^(2i / dim) in columns 2i and 2i + 1: (count, dim).

    >>> codes(2, 4).round(4).tolist()
    [[0.0, 1.0, 0.0, 1.0], [0.8415, 0.5403, 0.01, 1.0]]
    """
    speeds = 10000.0 ** (-np.arange(0, dim, 2) / dim)
    angles = np.arange(count)[:, None] * speeds  # (count, dim / 2)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(count, dim)


def _fitted(step, dim):
    places = _hands(60 + step, dim, base=100.0)
    return np.linalg.lstsq(places[:60], places[step:], rcond=None)[0]


@exercise(
    cases=[(3, 4), (1, 2), (10, 6), (0, 4)],
    oracle=_fitted,
    hint="each pair turns by itself: a block of 2 × 2 with a cosine twice, a sine, and a sine with a minus; on which side is it?",
)
def turned(step, dim):
    """The matrix R for which `code of p @ R` is the code of p + step, for every p: (dim, dim).

    The hands of pair i turn by 100^(-2i / dim) a position; a code has sine and cosine in turn, as in exercise 1.

    >>> turned(1, 2).round(4).tolist()
    [[0.5403, -0.8415], [0.8415, 0.5403]]
    """
    matrix = np.zeros((dim, dim))
    for i in range(0, dim, 2):
        angle = step * 100.0 ** (-i / dim)
        matrix[i, i] = matrix[i + 1, i + 1] = math.cos(angle)
        matrix[i + 1, i], matrix[i, i + 1] = math.sin(angle), -math.sin(angle)
    return matrix


def _every_pair(rows):
    count = len(rows)
    apart = {(i, j): math.dist(rows[i], rows[j]) for i in range(count) for j in range(i + 1, count)}
    return min(apart, key=apart.__getitem__)


@exercise(
    cases=[(_hands(30, 4, base=1.0),), (_hands(12, 4),), (np.array([[5.0, 0.0], [0.0, 1.0], [0.5, 1.0], [9.0, 9.0]]),)],
    oracle=_every_pair,
    hint="a row is as close to itself as can be; that does not count",
)
def closest(rows):
    """The numbers of the two rows that are closest to each other, the smaller one first.

    >>> closest(np.array([[0.0], [5.0], [6.0]]))
    (1, 2)
    """
    squares = ((rows[:, None] - rows[None]) ** 2).sum(-1)  # (N, N)
    squares[np.tril_indices(len(rows))] = np.inf
    first, second = np.unravel_index(squares.argmin(), squares.shape)
    return int(first), int(second)
