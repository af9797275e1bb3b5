"""Words as vectors: pieces of words, tables of vectors, and who stands beside whom."""

import re

import numpy as np

import minigrad as mg

from ..exercise import exercise

_MERGES = [("l", "o"), ("lo", "w"), (" ", "low"), ("e", "r"), ("s", "lo"), ("w", "er")]


def _by_text(word, merges):
    text = "|".join(word)
    for left, right in merges:
        text = re.sub(rf"(?<![^|]){re.escape(left)}\|{re.escape(right)}(?![^|])", left + right, text)
    return text.split("|")


@exercise(
    cases=[
        (" slowing", _MERGES),
        (" blower", _MERGES),
        (" lower", _MERGES),
        ("aaaaa", [("a", "a"), ("aa", "a")]),
        ("banana", [("a", "n"), ("an", "a"), ("n", "a")]),
        ("x", _MERGES),
    ],
    oracle=_by_text,
    hint="one merge at a time, over the whole word from the left; what has just been joined is not joined again by that merge",
)
def encode(word, merges):
    """The pieces of a word: from its characters on, each merge in its order joins its two pieces wherever they are neighbours.

    >>> encode("lower", [("l", "o"), ("lo", "w"), ("e", "r")])
    ['low', 'er']
    """
    pieces = [*word]
    for left, right in merges:
        joined, place = [], 0
        while place < len(pieces):
            if pieces[place : place + 2] == [left, right]:
                joined.append(left + right)
                place += 2
            else:
                joined.append(pieces[place])
                place += 1
        pieces = joined
    return pieces


def _by_minigrad(rows, size, width):
    table = mg.zeros(size, width, requires_grad=True)
    table[mg.tensor(rows)].sum().backward()
    return table.grad.numpy()


@exercise(
    cases=[(np.array([1, 1, 1, 0]), 4, 3), (np.array([4, 0, 4, 2, 2, 4]), 5, 2), (np.array([0]), 2, 1)],
    oracle=_by_minigrad,
    hint="each look at a row adds 1 to its gradient; `gradient[rows] += 1` counts a row once, however often it stands in rows",
)
def table_gradient(rows, size, width):
    """The gradient of a table of shape (size, width), of which `rows` are looked up and all their numbers added up.

    >>> table_gradient(np.array([2, 2, 0]), 3, 2).tolist()
    [[1.0, 1.0], [0.0, 0.0], [2.0, 2.0]]
    """
    gradient = np.zeros((size, width))
    np.add.at(gradient, rows, 1)
    return gradient


def _pair_by_pair(words, window):
    known = sorted(set(words))
    counts = np.zeros((len(known), len(known)))
    for i, first in enumerate(words):
        for j, second in enumerate(words):
            if 0 < abs(i - j) <= window:
                counts[known.index(first), known.index(second)] += 1
    return counts


@exercise(
    cases=[(["the", "dog", "saw", "the", "red", "dog"], 2), (["a", "b", "c", "d", "a"], 1), (["a", "a", "b"], 5)],
    oracle=_pair_by_pair,
    hint="both sides of a word count, also beyond it: up to `window` places to the left, and as many to the right",
)
def neighbours(words, window):
    """How often each word stands within `window` places of each other: a table, its rows and columns in alphabetical order.

    >>> neighbours(["b", "a", "b"], 1).tolist()
    [[0.0, 2.0], [2.0, 0.0]]
    """
    known = {word: number for number, word in enumerate(sorted(set(words)))}
    counts = np.zeros((len(known), len(known)))
    for place, word in enumerate(words):
        for other in words[max(0, place - window) : place] + words[place + 1 : place + window + 1]:
            counts[known[word], known[other]] += 1
    return counts
