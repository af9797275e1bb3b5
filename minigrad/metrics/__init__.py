"""Scores of texts: BLEU and chrF as sacreBLEU computes them, with its signature, perplexity and exact match.

A score without its settings cannot be compared, so that each carries them in its `signature`.
"""

from .bleu import BleuScore, corpus_bleu, sentence_bleu
from .chrf import ChrfScore, corpus_chrf
from .score import Score
from .simple import exact_match, perplexity

__all__ = [
    "BleuScore",
    "ChrfScore",
    "Score",
    "corpus_bleu",
    "corpus_chrf",
    "exact_match",
    "perplexity",
    "sentence_bleu",
]
