"""The whole translator: no peeking, teacher forcing, and speaking on one's own."""

import numpy as np

from ..exercise import exercise


def _up_to_itself(scores):
    weights = np.zeros_like(scores)
    for row in range(len(scores)):
        raised = [np.exp(scores[row, column]) for column in range(row + 1)]
        weights[row, : row + 1] = [value / sum(raised) for value in raised]
    return weights


@exercise(
    cases=[(np.random.default_rng(seed).normal(size=(n, n)),) for seed, n in ((0, 3), (1, 6), (2, 1))],
    oracle=_up_to_itself,
    hint="a word may look at itself; what it may not see needs a score of minus infinity before the softmax",
)
def causal_weights(scores):
    """Attention weights where word i looks at the words 0 to i only: (N, N) -> (N, N).

    >>> causal_weights(np.zeros((2, 2))).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    hidden = np.where(np.tril(np.ones_like(scores)) > 0, scores, -np.inf)
    raised = np.exp(hidden - hidden.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def _cut_in_two(target, start, end):
    whole = [start] + target + [end]
    return whole[:-1], whole[1:]


@exercise(
    cases=[([5, 6, 7], 0, 1), ([9], 2, 3), ([], 0, 1)],
    oracle=_cut_in_two,
    hint="at each place the word that is wanted is the one that is fed at the next place",
)
def forced(target, start, end):
    """What a decoder is fed, and what it should say, while a teacher sits beside it: two lists of the same length.

    >>> forced([5, 6], start=0, end=1)
    ([0, 5, 6], [5, 6, 1])
    """
    return [start, *target], [*target, end]


_NEXT = {0: 4, 4: 2, 2: 5, 5: 1, 3: 3, 1: 1}


def _follows(said):
    return [1.0 if word == _NEXT[said[-1]] else -1.0 - word for word in range(6)]


def _counts(said):
    return [-abs(word - len(said)) - (10.0 if word == 1 and len(said) < 5 else 0.0) for word in range(9)]


def _by_table(scores, start, end, longest):
    said, word = [], start
    for _ in range(longest):
        word = _NEXT[word] if scores is _follows else _best_of(_counts([start, *said]))
        if word == end:
            break
        said += [word]
    return said


def _best_of(scores):
    return sorted(range(len(scores)), key=lambda word: (-scores[word], word))[0]


@exercise(
    cases=[(_follows, 0, 1, 10), (_follows, 0, 1, 2), (_follows, 3, 1, 7), (_counts, 7, 8, 20), (_follows, 5, 1, 4)],
    oracle=_by_table,
    hint="the start is fed but was not said; the end is said but is no word; and one must stop somewhere, whatever happens",
)
def greedy(scores, start, end, longest):
    """The words that are said, each time the likeliest: until `end` is, which does not count, or `longest` words are.

    `scores(words)` gives a score for each word of the vocabulary, after the words that were fed, `start` the first of them.

    >>> greedy(lambda words: [0, 0, len(words) == 3, len(words) < 3], start=0, end=2, longest=9)
    [3, 3]
    """
    words = [start]
    while len(words) <= longest:
        word = int(np.argmax(scores(words)))
        if word == end:
            break
        words.append(word)
    return words[1:]
