"""Scores of texts: BLEU and chrF by sacrebleu (the extra `metrics`), and perplexity and exact match, which need nothing."""

from typing import TYPE_CHECKING

from ..errors import public
from .bleu import BleuScore, Score, corpus_bleu, corpus_chrf, sentence_bleu
from .simple import exact_match, perplexity
from .units import spelled

__all__ = ["BleuScore", "Score", "corpus_bleu", "corpus_chrf", "exact_match", "perplexity", "sentence_bleu", "spelled"]

if not TYPE_CHECKING:  # a type checker knows what is here
    __getattr__, __dir__ = public(__name__, __all__)
