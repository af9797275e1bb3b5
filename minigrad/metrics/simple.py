"""Two scores that need no settings and no library: perplexity and exact match."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .references import References, checked

__all__ = ["exact_match", "perplexity"]


def perplexity(mean_loss: float) -> float:
    """`exp` of the mean cross-entropy of a token; infinite where that is too large for a float.

    >>> f"{perplexity(math.log(50)):.3f}"
    '50.000'
    """
    try:
        return math.exp(mean_loss)
    except OverflowError:
        return math.inf


def exact_match(hypotheses: Sequence[str], references: References) -> float:
    """The percentage of hypotheses that equal one of their references, spaces at both ends left out.

    >>> exact_match(["de nada", "hola"], [["de nada", "no hay de qué"], "adiós"])
    50.0
    """
    texts, expected = checked("exact_match", hypotheses, references)
    right = sum(text.strip() in {other.strip() for other in those} for text, those in zip(texts, expected))
    return 100 * right / len(texts)
