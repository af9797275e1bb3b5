"""BLEU: which share of the words, pairs, triples and fours of a translation are in a reference, and whether it is too short.

    BLEU = 100 · BP · exp(mean over n = 1…4 of log p_n),   BP = min(1, exp(1 - r / h))

p_n is the share of runs of n words that are in a reference, each counted at most as often as there; h and r are the
lengths of hypotheses and of references, all summed over the whole corpus before anything is divided.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .score import References, Score, checked, chosen, ngrams, signature
from .tokenizing import TOKENIZERS, words_of

__all__ = ["BleuScore", "corpus_bleu", "sentence_bleu"]

ORDER = 4
FLOOR = 0.1  # what "floor" counts instead of no match
SMOOTHING = {"exp": "exp", "floor": f"floor[{FLOOR:.2f}]", "none": "none"}  # each as a signature names it


@dataclass(frozen=True)
class BleuScore(Score):
    """A BLEU score and the counts it was computed from."""

    precisions: tuple[float, ...]  # in percent, of 1 to 4 words, smoothed
    brevity_penalty: float
    hypothesis_length: int
    reference_length: int
    matches: tuple[int, ...]
    totals: tuple[int, ...]

    def __str__(self) -> str:
        shares = "/".join(f"{precision:.1f}" for precision in self.precisions)
        ratio = self.hypothesis_length / self.reference_length if self.reference_length else 0
        lengths = f"hyp_len = {self.hypothesis_length} ref_len = {self.reference_length}"
        return f"{super().__str__()} {shares} (BP = {self.brevity_penalty:.3f} ratio = {ratio:.3f} {lengths})"


def corpus_bleu(
    hypotheses: Sequence[str],
    references: References,
    *,
    tokenize: str = "13a",
    lowercase: bool = False,
    smooth: str = "exp",
    effective_order: bool = False,
) -> BleuScore:
    """BLEU of a whole corpus, equal to sacreBLEU's; `references[i]` is a text or several texts for `hypotheses[i]`.

    `tokenize` is "13a", "intl", "char" or "none"; `smooth` says what an order without matches counts: "exp" halves it
    again and again, "floor" counts 0.1, "none" nothing, so that the score is 0. `effective_order` leaves out orders
    that are longer than all hypotheses.

    >>> score = corpus_bleu(["the cat sat on the mat"], [["the cat sat on a mat", "a cat sat on the mat"]])
    >>> print(f"{score.score:.2f}", score.signature.partition("|version")[0])
    95.54 nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp
    """
    texts, expected = checked("corpus_bleu", hypotheses, references)
    chosen("corpus_bleu", "tokenization", tokenize, list(TOKENIZERS))
    chosen("corpus_bleu", "smoothing", smooth, list(SMOOTHING))
    matches, totals, lengths = [0] * ORDER, [0] * ORDER, [0, 0]
    for text, those in zip(texts, expected):
        words = words_of(text, tokenize, lowercase)
        judges = [words_of(reference, tokenize, lowercase) for reference in those]
        lengths[0] += len(words)
        lengths[1] += min((len(judge) for judge in judges), key=lambda n: (abs(n - len(words)), n))
        for n in range(ORDER):
            totals[n] += max(len(words) - n, 0)
            matches[n] += _matches(words, judges, n + 1)
    made = signature(
        expected,
        case="lc" if lowercase else "mixed",
        eff="yes" if effective_order else "no",
        tok=tokenize,
        smooth=SMOOTHING[smooth],
    )
    return _score(matches, totals, lengths[0], lengths[1], smooth, effective_order, made)


def sentence_bleu(hypothesis: str, references: str | Sequence[str], **options: Any) -> BleuScore:
    """BLEU of one sentence with one or more references, by default without the orders it is too short for.

    The mean over sentences is not the BLEU of the corpus, whose counts are summed first.

    >>> f"{sentence_bleu('de nada', 'de nada').score:.2f}"
    '100.00'
    """
    return corpus_bleu([hypothesis], [references], **{"effective_order": True, **options})


def _matches(words: list[str], judges: list[list[str]], n: int) -> int:
    """How many runs of n words are in a reference, each at most as often as in the one that has it most often."""
    most: Counter[Any] = Counter()
    for judge in judges:
        most |= ngrams(judge, n)
    return (ngrams(words, n) & most).total()


def _score(
    matches: list[int], totals: list[int], length: int, wanted: int, smooth: str, effective: bool, made: str
) -> BleuScore:
    penalty = 1.0
    if length < wanted:
        penalty = math.exp(1 - wanted / length) if length else 0.0
    orders = [n for n in range(ORDER) if totals[n]]
    precisions, halved = [0.0] * ORDER, 1
    for n in orders if any(matches) else ():
        counted: float = matches[n]
        if not matches[n] and smooth == "exp":
            halved *= 2
            counted = 1 / halved
        elif not matches[n] and smooth == "floor":
            counted = FLOOR
        precisions[n] = 100 * counted / totals[n]
    used = precisions[: len(orders)] if effective else precisions
    score = penalty * math.exp(sum(map(math.log, used)) / len(used)) if used and all(used) else 0.0
    return BleuScore("BLEU", score, made, tuple(precisions), penalty, length, wanted, tuple(matches), tuple(totals))
