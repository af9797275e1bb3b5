"""Two scores that need no settings: how surprised a model is by a token, and which share of answers is exactly right."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .score import References, checked

__all__ = ["exact_match", "perplexity"]


def perplexity(mean_loss: float) -> float:
    """Among how many equally likely tokens a model hesitates: `exp` of its mean cross-entropy; infinite where that is too large.

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
