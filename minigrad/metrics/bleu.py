"""BLEU and chrF of translations, computed by sacrebleu, which the extra `metrics` installs.

    BLEU = 100 · BP · exp(mean over n = 1…4 of log p_n),   BP = min(1, exp(1 - r / h))
    chrF = 100 · (1 + β²) · P · R / (β² · P + R)

p_n is the share of n-grams of words that are in a reference, each counted at most as often as there; h and r are the
lengths of hypotheses and of references, all summed over the corpus. P and R are precision and recall of n-grams of
one to six characters.

What is ours, since sacrebleu lacks it: references by hypothesis, as many as each has, where sacrebleu takes columns that it
does not check; errors that say what was expected; and the signature kept with the score, without which no score can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from ..errors import ArgumentError, MissingExtraError, install_hint
from .references import References, checked

__all__ = ["BleuScore", "Score", "corpus_bleu", "corpus_chrf", "sentence_bleu"]

TOKENIZERS = ("13a", "intl", "char", "none")
SMOOTHING = ("exp", "floor", "none")


@dataclass(frozen=True)
class Score:
    """A score from 0 to 100, and sacrebleu's signature of how it was computed."""

    name: str
    score: float
    signature: str

    def __str__(self) -> str:
        return f"{self.name}|{self.signature} = {self.score:.2f}"


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
    """BLEU of a whole corpus; `references[i]` is a text or several texts for `hypotheses[i]`.

    `tokenize` is "13a", "intl", "char" or "none"; `smooth` says what an order without matches counts: "exp" halves it
    again and again, "floor" counts 0.1, "none" nothing, so that the score is 0. `effective_order` leaves out orders
    that are longer than all hypotheses.

    >>> score = corpus_bleu(["the cat sat on the mat"], [["the cat sat on a mat", "a cat sat on the mat"]])
    >>> print(f"{score.score:.2f}", score.signature.partition("|version")[0])
    95.54 nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp
    """
    texts, expected = checked("corpus_bleu", hypotheses, references)
    for what, value, known in (("tokenization", tokenize, TOKENIZERS), ("smoothing", smooth, SMOOTHING)):
        if value not in known:
            raise ArgumentError(f"corpus_bleu: there is no such {what}", ", ".join(map(repr, known)), repr(value))
    # `force` silences a warning about text that is tokenized already, as our corpora are.
    metric = _sacrebleu().BLEU(
        lowercase=lowercase, force=True, tokenize=tokenize, smooth_method=smooth, effective_order=effective_order
    )
    found = metric.corpus_score(texts, _columns(expected))
    return BleuScore(
        "BLEU", found.score, str(metric.get_signature()), tuple(found.precisions), found.bp, found.sys_len, found.ref_len,
        tuple(found.counts), tuple(found.totals),
    )  # fmt: skip


def sentence_bleu(hypothesis: str, references: str | Sequence[str], **options: Any) -> BleuScore:
    """BLEU of one sentence with one or more references, by default without the orders it is too short for.

    The mean over sentences is not the BLEU of the corpus, whose counts are summed first.

    >>> f"{sentence_bleu('de nada', 'de nada').score:.2f}"
    '100.00'
    """
    return corpus_bleu([hypothesis], [references], **{"effective_order": True, **options})


def corpus_chrf(
    hypotheses: Sequence[str],
    references: References,
    *,
    char_order: int = 6,
    word_order: int = 0,
    beta: int = 2,
    lowercase: bool = False,
) -> Score:
    """chrF of a whole corpus, or chrF++ with `word_order=2`; `references[i]` is a text or several for `hypotheses[i]`.

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
    metric = _sacrebleu().CHRF(char_order=char_order, word_order=word_order, beta=beta, lowercase=lowercase)
    found = metric.corpus_score(texts, _columns(expected))
    return Score(found.name, found.score, str(metric.get_signature()))


def _columns(references: list[list[str]]) -> list[list[str | None]]:
    """The first references of all, the second of all, …, as sacrebleu takes them; None where there is none."""
    return [list(column) for column in zip_longest(*references)]


def _sacrebleu() -> Any:
    try:
        import sacrebleu
    except ImportError as error:
        raise MissingExtraError(
            "BLEU and chrF need sacrebleu, which is not installed", fix=install_hint("metrics")
        ) from error
    return sacrebleu
