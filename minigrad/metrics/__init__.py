"""Scores of texts: BLEU and chrF by sacrebleu (the extra `metrics`), and perplexity and exact match, which need nothing."""

from .bleu import BleuScore, Score, corpus_bleu, corpus_chrf, sentence_bleu
from .simple import exact_match, perplexity

__all__ = ["BleuScore", "Score", "corpus_bleu", "corpus_chrf", "exact_match", "perplexity", "sentence_bleu"]
