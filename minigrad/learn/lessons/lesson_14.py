"""GPT: temperatures, the likeliest words, and what length costs."""

import math

import numpy as np

from ..exercise import exercise


def _to_a_power(logits, temperature):
    chances = np.exp(logits - logits.max())
    powers = chances ** (1 / temperature)
    return powers / math.fsum(powers)


@exercise(
    cases=[
        (np.array([2.0, 1.0, 0.2]), 1.0),
        (np.array([2.0, 1.0, 0.2]), 0.5),
        (np.array([0.0, 3.0, -1.0, 0.5]), 3.0),
        (np.array([900.0, 901.0]), 0.7),
        (np.array([-800.0, 0.0, 1.0]), 1.0),
    ],
    oracle=_to_a_power,
    hint="a small temperature makes the differences between scores larger; mind that e^900 is too large",
)
def warmed(logits, temperature):
    """The probabilities of scores at a temperature: (V,) -> (V,).

    >>> warmed(np.array([1.0, 1.0]), 0.3).tolist()
    [0.5, 0.5]
    """
    raised = np.exp((logits - logits.max()) / temperature)
    return raised / raised.sum()


def _one_after_the_other(probabilities, p):
    left, total = dict(enumerate(probabilities.tolist())), 0.0
    kept = {}
    while total < p and left:
        word = max(left, key=left.__getitem__)
        kept[word] = left.pop(word)
        total += kept[word]
    return np.array([kept.get(word, 0.0) / total for word in range(len(probabilities))])


@exercise(
    cases=[
        (np.array([0.5, 0.1, 0.25, 0.15]), 0.7),
        (np.array([0.125, 0.5, 0.25, 0.125]), 0.5),
        (np.array([0.2, 0.3, 0.05, 0.45]), 1.0),
        (np.array([0.02, 0.03, 0.95]), 0.1),
        (np.array([0.125, 0.5, 0.0625, 0.25, 0.0625]), 0.8),
    ],
    oracle=_one_after_the_other,
    hint="a word stays if those that are likelier have not reached p yet; at least one always does; and then they add up to 1 again",
)
def nucleus(probabilities, p):
    """Top-p: only the likeliest words, as few as together reach p, and they share all of the probability: (V,) -> (V,).

    >>> nucleus(np.array([0.5, 0.125, 0.375]), 0.6).round(4).tolist()
    [0.5714, 0.0, 0.4286]
    """
    order = np.argsort(-probabilities)
    sums = np.cumsum(probabilities[order])
    kept = np.zeros_like(probabilities)
    stays = order[sums - probabilities[order] < p]
    kept[stays] = probabilities[stays]
    return kept / kept.sum()


def _counted(n, d):
    """Each product of matrices, (rows, inner, columns), that a block makes."""
    by_words = [(n, d, d)] * 4 + [(n, d, 4 * d), (n, 4 * d, d)]
    by_pairs = [(n, d, n), (n, n, d)]
    return [sum(a * b * c for a, b, c in products) for products in (by_words, by_pairs)]


@exercise(
    cases=[(3, 4), (128, 16), (96, 16), (1, 768)],
    oracle=_counted,
    hint="a product of (a, b) with (b, c) takes a · b · c multiplications; which products of a block have n on two sides?",
)
def cost(n, d):
    """How many multiplications a block makes of n words of d numbers: those of matrices with weights, and those of word with word.

    It has four matrices (d, d), and an MLP of (d, 4d) and (4d, d). Between words it makes the scores, and mixes the values.

    >>> cost(1, 2)
    (48, 4)
    """
    return 12 * n * d**2, 2 * n**2 * d
