"""chrF: precision P and recall R of runs of one to six characters, spaces left out, joined so that recall counts more.

    chrF = 100 · (1 + β²) · P · R / (β² · P + R)

P and R are means over those lengths of which hypotheses and references both have any. chrF++ (`word_order=2`) counts
single words and pairs of words as two lengths more.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..engine.errors import ArgumentError
from .score import References, Score, checked, ngrams, signature

__all__ = ["ChrfScore", "corpus_chrf"]


@dataclass(frozen=True)
class ChrfScore(Score):
    """A chrF score, and the means of precision and recall that it joins, in percent."""

    precision: float
    recall: float


class _Counts(NamedTuple):
    """Of the runs of one length: how many the hypothesis has, how many the reference, and how many both."""

    hypothesis: int
    reference: int
    both: int


def corpus_chrf(
    hypotheses: Sequence[str],
    references: References,
    *,
    char_order: int = 6,
    word_order: int = 0,
    beta: int = 2,
    lowercase: bool = False,
) -> ChrfScore:
    """chrF of a whole corpus, equal to sacreBLEU's; `references[i]` is a text or several texts for `hypotheses[i]`.

    Of several references the one that fits best is counted.

    >>> score = corpus_chrf(["una casa roja"], ["la casa roja"])
    >>> print(f"{score.score:.2f}", score.signature.partition("|version")[0])
    83.59 nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no
    """
    if char_order < 1 or word_order < 0 or beta <= 0:
        got = f"char_order={char_order}, word_order={word_order}, beta={beta}"
        raise ArgumentError(
            "corpus_chrf: these orders cannot be used", "char_order 1 or more, word_order 0 or more", got
        )
    texts, expected = checked("corpus_chrf", hypotheses, references)
    summed = [_Counts(0, 0, 0)] * (char_order + word_order)
    for text, those in zip(texts, expected):
        runs, *judges = (_runs(t.lower() if lowercase else t, char_order, word_order) for t in (text, *those))
        compared = [[_counted(own, other) for own, other in zip(runs, judge)] for judge in judges]
        best = max(compared, key=lambda counts: _f_score(counts, beta)[0])
        summed = [_Counts(*map(sum, zip(*pair))) for pair in zip(summed, best)]
    case = "lc" if lowercase else "mixed"
    made = signature(expected, case=case, eff="yes", nc=char_order, nw=word_order, space="no")
    score, precision, recall = _f_score(summed, beta)
    return ChrfScore(f"chrF{beta}" + "+" * word_order, score, made, precision, recall)


def _runs(text: str, char_order: int, word_order: int) -> list[Counter[Any]]:
    """The runs of each length: of characters without spaces, then of words."""
    letters, words = "".join(text.split()), _words(text)
    by_letters = [ngrams(letters, n) for n in range(1, char_order + 1)]
    return by_letters + [ngrams(words, n) for n in range(1, word_order + 1)]


def _words(text: str) -> list[str]:
    """Words, with a mark at the end of one cut off, or else one at its beginning."""
    found = []
    for word in text.split():
        if len(word) > 1 and word[-1] in string.punctuation:
            found += [word[:-1], word[-1]]
        elif len(word) > 1 and word[0] in string.punctuation:
            found += [word[0], word[1:]]
        else:
            found.append(word)
    return found


def _counted(own: Counter[Any], other: Counter[Any]) -> _Counts:
    """Where the reference has none of a length, those of the hypothesis are not held against it."""
    return _Counts(own.total() if other else 0, other.total(), (own & other).total())


def _f_score(counts: Sequence[_Counts], beta: int) -> tuple[float, float, float]:
    """The score, precision and recall, in percent."""
    used = [c for c in counts if c.hypothesis and c.reference]
    if not any(c.both for c in used):
        return 0.0, 0.0, 0.0
    precision = sum(c.both / c.hypothesis for c in used) / len(used)
    recall = sum(c.both / c.reference for c in used) / len(used)
    score = (1 + beta**2) * precision * recall / (beta**2 * precision + recall)
    return 100 * score, 100 * precision, 100 * recall
