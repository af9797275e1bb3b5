"""Larger than one machine: an MLP cut among ranks, the bubble of a pipeline, and stages of equal work."""

import itertools

import numpy as np

from ..exercise import exercise


def _draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def _all_shares(answer, x, up, down, ranks):
    return [answer(x, up, down, rank, ranks) for rank in range(ranks)]


def _unit_by_unit(x, up, down, ranks):
    shares, each = [], len(up) // ranks
    for rank in range(ranks):
        share = np.zeros((len(x), len(down)))
        for unit in range(rank * each, (rank + 1) * each):
            share += np.outer(np.maximum(x @ up[unit], 0), down[:, unit])
        shares.append(share)
    return shares


@exercise(
    cases=[
        (_draw(5, 3), _draw(8, 3, seed=1), _draw(3, 8, seed=2), 2),
        (_draw(2, 4, seed=3), _draw(6, 4, seed=4), _draw(2, 6, seed=5), 3),
        (_draw(3, 2, seed=6), _draw(4, 2, seed=7), _draw(2, 4, seed=8), 1),
    ],
    oracle=_unit_by_unit,
    probe=_all_shares,
    hint="a rank has some of the hidden units: which rows of `up` make them, and which columns of `down` read them?",
)
def share(x, up, down, rank, ranks):
    """What one rank adds to relu(x @ up.T) @ down.T if it holds its part of the hidden units only: (N, I) -> (N, O).

    `up` is (H, I), `down` is (O, H); rank r has the units r · H / ranks up to (r + 1) · H / ranks.

    >>> share(np.array([[1.0]]), np.array([[2.0], [3.0]]), np.array([[10.0, 100.0]]), 1, 2).tolist()
    [[300.0]]
    """
    size = len(up) // ranks
    own = slice(rank * size, (rank + 1) * size)
    return np.maximum(x @ up[own].T, 0) @ down[:, own].T


def _timed(stages, pieces):
    """Each stage works on a piece one tick after the stage before it; then all the way back, twice as slow."""
    ends = {}
    for stage in range(stages):
        for piece in range(pieces):
            ends[stage, piece] = 1 + max(ends.get((stage - 1, piece), 0), ends.get((stage, piece - 1), 0))
    back = {}
    for stage in reversed(range(stages)):
        for piece in range(pieces):
            start = max(back.get((stage + 1, piece), ends[stages - 1, pieces - 1]), back.get((stage, piece - 1), 0))
            back[stage, piece] = start + 2
    whole = max(back.values())
    return 1 - 3 * pieces / whole


@exercise(
    cases=[(4, 8), (2, 1), (1, 5), (8, 32), (3, 2)],
    oracle=_timed,
    hint="the last stage waits until the first piece has come through all others: how many turns are there, and in how many is work?",
)
def bubble(stages, pieces):
    """The share of a step in which a stage of a pipeline waits, where all stages take equally long for each piece of a batch.

    >>> bubble(2, 3)
    0.25
    """
    return (stages - 1) / (pieces + stages - 1)


def _slowest(costs, counts):
    edges = [0, *itertools.accumulate(counts)]
    return max(sum(costs[a:b]) for a, b in itertools.pairwise(edges))


def _best_cut(costs, stages):
    cuts = itertools.combinations(range(1, len(costs)), stages - 1)
    every = ([b - a for a, b in itertools.pairwise((0, *cut, len(costs)))] for cut in cuts)
    return {
        "blocks": len(costs),
        "stages": stages,
        "empty stages": 0,
        "slowest stage": min(_slowest(costs, counts) for counts in every),
    }


def _measured(answer, costs, stages):
    counts = [int(count) for count in answer(costs, stages)]
    return {
        "blocks": sum(counts),
        "stages": len(counts),
        "empty stages": sum(c < 1 for c in counts),
        "slowest stage": _slowest(costs, counts),
    }


@exercise(
    cases=[
        ([1.0] * 6 + [3.0], 3),
        ([1.0] * 8, 4),
        ([5.0, 1.0, 1.0, 1.0, 1.0, 4.0, 1.0], 3),
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2),
        ([9.0, 1.0, 1.0, 1.0], 4),
        ([2.0, 7.0, 1.0, 8.0, 2.0, 8.0, 1.0, 8.0], 5),
    ],
    oracle=_best_cut,
    probe=_measured,
    hint="there are few ways to cut: try the number of blocks of the first stage, and let the rest be cut by the same function",
)
def balanced(costs, stages):
    """How many blocks, one after the other, each stage gets, at least one, so that the slowest stage is as fast as can be.

    >>> list(balanced([1.0, 1.0, 2.0], 2))
    [2, 1]
    """
    if stages == 1:
        return [len(costs)]
    best = None
    for first in range(1, len(costs) - stages + 2):
        rest = balanced(costs[first:], stages - 1)
        edges = itertools.accumulate(rest, initial=first)
        slowest = max(sum(costs[:first]), *(sum(costs[a : a + n]) for a, n in zip(edges, rest)))
        if best is None or slowest < best[0]:
            best = slowest, [first, *rest]
    return best[1]
