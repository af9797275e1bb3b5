"""A real translator: a recurrence in the place of attention, weights in few bits, and a list of allowed words."""

import numpy as np

from ..exercise import exercise


def _draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def _summed_up(x, gates):
    states = []
    for last in range(len(x)):
        state = np.zeros(x.shape[1])
        for place in range(last + 1):
            state = state + np.prod(gates[place + 1 : last + 1], axis=0) * (1 - gates[place]) * x[place]
        states.append(state)
    return np.array(states)


@exercise(
    cases=[
        (_draw(5, 3), 1 / (1 + np.exp(-_draw(5, 3, seed=1)))),
        (_draw(1, 2, seed=2), np.array([[0.25, 1.0]])),
        (_draw(4, 2, seed=3), np.zeros((4, 2))),
    ],
    oracle=_summed_up,
    hint="before the first word the memory is 0; a gate of 1 keeps all of the memory, and one of 0 takes the new word only",
)
def remembered(x, gates):
    """The memory after each word: gate · memory before + (1 - gate) · word, number by number: (T, D), (T, D) -> (T, D).

    >>> remembered(np.array([[4.0], [8.0]]), np.array([[0.5], [0.25]])).tolist()
    [[2.0], [6.5]]
    """
    states, state = [], np.zeros(x.shape[1])
    for word, gate in zip(x, gates):
        state = gate * state + (1 - gate) * word
        states.append(state)
    return np.array(states)


def _number_by_number(weight, bits, by_row):
    rows = weight.tolist()
    largest = max(abs(value) for row in rows for value in row)
    result = []
    for row in rows:
        scale = (max(map(abs, row)) if by_row else largest) / (2 ** (bits - 1) - 1)
        result.append([round(value / scale) * scale for value in row])
    return np.array(result)


@exercise(
    cases=[(_draw(4, 6), bits, by_row) for bits in (6, 4) for by_row in (False, True)]
    + [(_draw(3, 3, seed=1), 2, True)],
    oracle=_number_by_number,
    hint="the largest weight, of the matrix or of the row, becomes the largest whole number, of which there are as many below 0 as above",
)
def rounded(weight, bits, by_row):
    """The weights that are left of a matrix in so many bits, with one scale for it, or for each row: (O, I) -> (O, I).

    >>> rounded(np.array([[1.0, 3.0], [0.2, 0.0]]), 3, True).round(6).tolist()
    [[1.0, 3.0], [0.2, 0.0]]
    """
    largest = np.abs(weight).max(axis=1 if by_row else None, keepdims=True)
    scale = largest / (2 ** (bits - 1) - 1)
    return np.rint(weight / scale) * scale


def _of_the_list(hidden, table, bias, allowed):
    scores = {word: sum(a * b for a, b in zip(hidden, table[word])) + bias[word] for word in allowed.tolist()}
    return max(scores, key=scores.__getitem__), sorted(scores.values())


@exercise(
    cases=[
        (_draw(4), _draw(9, 4, seed=1), _draw(9, seed=2), np.array([2, 5, 7])),
        (_draw(3, seed=3), _draw(20, 3, seed=4), _draw(20, seed=5), np.array([19, 4, 11, 0])),
        (_draw(2, seed=6), _draw(5, 2, seed=7), 9 * _draw(5, seed=8), np.array([3, 1])),
    ],
    oracle=_of_the_list,
    probe=lambda answer, *case: (lambda word, scores: (word, sorted(np.asarray(scores).tolist())))(*answer(*case)),
    hint="take the rows of the allowed words out of the table first; the best place in the shortlist is not yet the number of a word",
)
def next_word(hidden, table, bias, allowed):
    """The allowed word with the highest score, and the scores of the allowed ones only: (D,), (V, D), (V,), (A,) -> number, (A,).

    The score of a word is the product of `hidden` with its row of the table, plus its bias.

    >>> word, scores = next_word(np.array([1.0]), np.array([[9.0], [2.0], [3.0]]), np.zeros(3), np.array([1, 2]))
    >>> int(word), scores.tolist()
    (2, [2.0, 3.0])
    """
    scores = table[allowed] @ hidden + bias[allowed]
    return int(allowed[scores.argmax()]), scores
