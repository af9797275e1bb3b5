"""Beam search: scores of sentences, what length is worth, and the search itself."""

import itertools
import math

from ..exercise import exercise


def _of_the_product(chances, alpha):
    return math.log(math.prod(chances)) * 6**alpha / (5 + len(chances)) ** alpha


@exercise(
    cases=[([0.5, 0.9, 0.95], 0.0), ([0.4, 0.9, 0.95], 0.6), ([1.0], 1.0), ([0.2] * 8, 1.5)],
    oracle=_of_the_product,
    hint="logarithms of chances are negative: dividing by more than 1 makes a long sentence better, not worse",
)
def score(chances, alpha):
    """The sum of the logarithms of the chances of the words, divided by ((5 + number of words) / 6)^alpha.

    >>> round(score([0.5, 0.5], 0.0), 4)
    -1.3863
    """
    return sum(math.log(chance) for chance in chances) / ((5 + len(chances)) / 6) ** alpha


def _by_halving(first, n, second, m):
    low, high = -20.0, 20.0
    better_at_first = first / ((5 + n) / 6) ** low > second / ((5 + m) / 6) ** low
    for _ in range(100):
        alpha = (low + high) / 2
        better = first / ((5 + n) / 6) ** alpha > second / ((5 + m) / 6) ** alpha
        low, high = (alpha, high) if better == better_at_first else (low, alpha)
    return low


@exercise(
    cases=[
        (math.log(0.342), 3, math.log(0.1485), 5),
        (-1.0, 2, -1.5, 4),
        (-3.0, 9, -2.0, 3),
        (-1.0, 1, -2.0, 10),
    ],
    oracle=_by_halving,
    hint="write down that both scores are equal, bring the powers to one side, and take the logarithm",
)
def crossing(first, n, second, m):
    """The alpha at which two sentences are worth the same: with sums of logarithms `first` and `second`, of n and m words.

    >>> round(crossing(-1.0, 1, -2.0, 7), 6)
    1.0
    """
    return math.log(second / first) / math.log((5 + m) / (5 + n))


_TUTORIAL = {
    "": {"no": 0.55, "de": 0.40, "nada": 0.05},
    "no": {"hay": 0.50, "nada": 0.30, ".": 0.20},
    "de": {"nada": 0.90, "qué": 0.10},
    "no hay": {"de": 0.60, "nada": 0.40},
    "de nada": {".": 0.95, "qué": 0.05},
    "no hay de": {"qué": 0.90, "nada": 0.10},
}
_OTHER = {
    "": {"a": 0.4, "b": 0.32, "c": 0.28},
    "a": {"a": 0.4, "b": 0.35, ".": 0.25},
    "b": {"a": 0.5, "c": 0.5},
    "b a": {"a": 0.5, "b": 0.5},
    "b c": {"a": 0.5, "b": 0.5},
    "c": {"a": 0.97, "b": 0.03},
    "c a": {"b": 0.6, "c": 0.4},
}


def _turn_by_turn(table, width):
    """The same search on chances by sorting all beginnings of a length, which are remade each time."""
    alive, best = {""}, ("", 0.0)
    for length in itertools.count(1):
        chances = {}
        for words in _sentences(table, length):
            beginning = " ".join(words[:-1])
            if beginning in alive:
                chances[" ".join(words)] = math.prod(
                    table.get(" ".join(words[:i]), {".": 1.0})[word] for i, word in enumerate(words)
                )
        for text, chance in chances.items():
            if text.endswith(".") and chance > best[1]:
                best = (text.removesuffix(".").strip(), chance)
        open_ones = sorted((text for text in chances if not text.endswith(".")), key=lambda text: -chances[text])
        alive = {*open_ones[:width]}
        if not alive:
            return best


def _sentences(table, length):
    beginnings = [[]]
    for _ in range(length):
        beginnings = [
            [*words, word]
            for words in beginnings
            if "." not in words
            for word in table.get(" ".join(words), {".": 1.0})
        ]
    return beginnings


@exercise(
    cases=[(table, width) for table in (_TUTORIAL, _OTHER) for width in (1, 2, 3, 10)],
    oracle=_turn_by_turn,
    hint="all next words of all beginnings that are alive compete with each other; what has ended needs no place among the alive",
)
def search(table, width):
    """The best sentence that a beam of some width finds, and its chance.

    `table[beginning]` has the chances of the next word; "." ends a sentence, and is not part of it. A beginning that is not
    in the table ends. Begin with "". Each turn, all beginnings that are alive go on by all their words; what ends is a
    sentence that was found; of the others the `width` likeliest stay alive.

    >>> search({"": {"a": 0.6, "b": 0.4}, "a": {"x": 0.5, "y": 0.5}}, 1)
    ('a x', 0.3)
    >>> search({"": {"a": 0.6, "b": 0.4}, "a": {"x": 0.5, "y": 0.5}}, 2)
    ('b', 0.4)
    """
    alive, best = [("", 1.0)], ("", 0.0)
    while alive:
        longer = []
        for beginning, chance in alive:
            for word, after in table.get(beginning, {".": 1.0}).items():
                if word == ".":
                    best = max(best, (beginning, chance * after), key=lambda found: found[1])
                else:
                    longer.append((f"{beginning} {word}".strip(), chance * after))
        alive = sorted(longer, key=lambda found: -found[1])[:width]
    return best
