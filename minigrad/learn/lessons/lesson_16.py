"""Making it fast: pieces of a batch, numbers of sixteen bits, and a ring of machines."""

import math
from fractions import Fraction

import numpy as np

from ..exercise import exercise


def _example_by_example(gradients, sizes):
    rows = [row for row, size in zip(gradients.tolist(), sizes) for _ in range(size)]
    return np.array([float(sum(map(Fraction, column)) / len(rows)) for column in zip(*rows)])


@exercise(
    cases=[
        (np.array([[1.0, 2.0], [4.0, -2.0], [0.5, 8.0]]), [3, 1, 2]),
        (np.random.default_rng(0).normal(size=(4, 3)), [8, 8, 8, 5]),
        (np.array([[7.0]]), [4]),
    ],
    oracle=_example_by_example,
    hint="a batch of three examples counts three times as much as a batch of one",
)
def accumulated(gradients, sizes):
    """The gradient of the mean over all examples, from those of the means of batches: (B, D), B sizes -> (D,).

    >>> accumulated(np.array([[3.0], [0.0]]), [2, 1]).tolist()
    [2.0]
    """
    sizes = np.array(sizes)
    return (gradients * sizes[:, None]).sum(axis=0) / sizes.sum()


def _tried_out(gradient):
    smallest = np.finfo(np.float16).smallest_normal
    return next(k for k in range(200) if gradient * 2.0**k >= smallest)


@exercise(
    cases=[(1e-9,), (3e-5,), (2.0**-14,), (2.0**-20,), (0.5,), (7e-12,)],
    oracle=_tried_out,
    hint="the exponent of the gradient is its logarithm to base 2; round up, since half a power is none, and do not go below 0",
)
def scale(gradient):
    """The smallest k from 0 up for which gradient · 2^k is a normal number of float16, which has all its digits: 2^-14 or more.

    >>> scale(2.0 ** -17)
    3
    """
    return max(0, math.ceil(-14 - math.log2(gradient)))


def _ring(answer, ranks):
    held = [[10.0**rank * (place + 1) for place in range(ranks)] for rank in range(ranks)]
    for turn in range(2 * (ranks - 1)):
        places = [answer(rank, turn, ranks) for rank in range(ranks)]
        letters = [held[rank][place] for rank, place in enumerate(places)]
        for rank, (place, letter) in enumerate(zip(places, letters)):
            after = (rank + 1) % ranks
            held[after][place] = held[after][place] + letter if turn < ranks - 1 else letter
    return held


@exercise(
    cases=[(4,), (2,), (5,), (1,)],
    oracle=lambda ranks: [[sum(10.0**rank for rank in range(ranks)) * (place + 1) for place in range(ranks)]] * ranks,
    probe=_ring,
    hint="whatever a rank has just received, it passes on in the next turn, in both halves; the places go around like the ranks",
)
def sends(rank, turn, ranks):
    """Which of its numbers a rank sends to the next one, rank + 1, in a turn of an all-reduce around a ring.

    In the first ranks - 1 turns, whoever gets a number adds it to its own in that place. In as many more turns, it takes it in
    the place of its own. In the end all ranks have all sums. (In the first turn, let rank r send number r.)

    >>> [sends(rank, 0, 3) for rank in range(3)]
    [0, 1, 2]
    """
    return (rank - turn) % ranks
