"""BERT: hiding words, filling two blanks, and counting what counts."""

import numpy as np

from ..exercise import exercise

IGNORED = -100  # what is wanted where nothing is
MASK = 4


def _word_by_word(row, chances, ways, others):
    fed, wanted = [], []
    for word, chance, way, other in zip(*(part.tolist() for part in (row, chances, ways, others))):
        if chance >= 0.15:
            fed.append(word), wanted.append(-100)
            continue
        wanted.append(word)
        fed.append(4 if way < 0.8 else other if way < 0.9 else word)
    return fed, wanted


def _drawn(count, seed):
    rng = np.random.default_rng(seed)
    return rng.integers(5, 90, count), rng.random(count) / 3, rng.random(count), rng.integers(100, 190, count)


@exercise(
    cases=[
        _drawn(200, 0),
        (
            np.array([7, 8, 9, 6]),
            np.array([0.1, 0.1, 0.1, 0.15]),
            np.array([0.8, 0.9, 0.0, 0.0]),
            np.array([50, 51, 52, 53]),
        ),
    ],
    oracle=_word_by_word,
    hint="a word that was chosen is wanted in any case, also where it is fed as it is; 0.8 and 0.9 are where the next way begins",
)
def hide(row, chances, ways, others):
    """What BERT is fed, and what it should say, of the words in `row`: two sequences of numbers.

    Word i is chosen if chances[i] < 0.15. If chosen, ways[i] < 0.8 hides it behind MASK; from there on up to 0.9 it becomes
    others[i]; else it stays. Wanted are the words that were chosen; everywhere else IGNORED.

    >>> fed, wanted = hide(np.array([7, 8]), np.array([0.1, 0.5]), np.array([0.3, 0.3]), np.array([9, 9]))
    >>> list(map(int, fed)), list(map(int, wanted))
    ([4, 8], [7, -100])
    """
    chosen = chances < 0.15
    fed = np.where(ways < 0.8, MASK, np.where(ways < 0.9, others, row))
    return np.where(chosen, fed, row), np.where(chosen, row, IGNORED)


def _pair_by_pair(first, second):
    best = (0, 0)
    for a in range(len(first)):
        for b in range(second.shape[1]):
            if first[a] * second[a, b] > first[best[0]] * second[best]:
                best = (a, b)
    return best


def _chances(*shape, seed):
    return np.random.default_rng(seed).dirichlet(np.ones(shape[-1]), size=shape[:-1])


@exercise(
    cases=[
        (np.array([0.5, 0.3, 0.2]), np.array([[0.3, 0.3, 0.4], [0.1, 0.9, 0.0], [0.2, 0.4, 0.4]])),
        (np.array([0.2, 0.45, 0.35]), np.array([[0.1, 0.8, 0.1], [0.4, 0.35, 0.25], [0.95, 0.03, 0.02]])),
        (_chances(6, seed=0), _chances(6, 4, seed=1)),
        (_chances(3, seed=2), _chances(3, 7, seed=3)),
    ],
    oracle=_pair_by_pair,
    hint="the likeliest first word need not be in the likeliest pair: P(a, b) = P(a) · P(b | a), for all pairs at once",
)
def likeliest(first, second):
    """The likeliest pair of words (a, b) for two blanks: first[a] is P(a), (A,), and second[a, b] is P(b | a), (A, B).

    >>> likeliest(np.array([0.6, 0.4]), np.array([[0.5, 0.5], [0.1, 0.9]]))
    (1, 1)
    """
    a, b = np.unravel_index((first[:, None] * second).argmax(), second.shape)
    return int(a), int(b)


def _of_those(scores, wanted):
    asked = [(row, word) for row, word in zip(scores.tolist(), wanted.tolist()) if word != -100]
    return sum(row.index(max(row)) == word for row, word in asked) / len(asked) if asked else 0.0


@exercise(
    cases=[
        (np.random.default_rng(0).normal(size=(40, 5)), np.where(np.arange(40) % 3, -100, np.arange(40) % 5)),
        (np.eye(4), np.array([0, -100, 3, 3])),
        (np.eye(3), np.array([-100, -100, -100])),
    ],
    oracle=_of_those,
    hint="what is IGNORED is neither right nor wrong; and if nothing was asked, do not divide by nothing",
)
def accuracy(scores, wanted):
    """The share of right answers among the words that are wanted, 0.0 if none is: (N, V), (N,) -> a number.

    >>> float(accuracy(np.eye(3), np.array([0, IGNORED, 1])))
    0.5
    """
    asked = wanted != IGNORED
    if not asked.any():
        return 0.0
    return (scores[asked].argmax(axis=1) == wanted[asked]).mean()
