"""From text to text: what a person types, in pieces that the model can take, to translations with their scores."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import minigrad as mg
from minigrad.data import BOS, UNK
from minigrad.decode import Hypothesis
from minigrad.decode.beam import GREATEST_ALPHA, length_penalty
from minigrad.engine.errors import ArgumentError

from .choosing import source_ids
from .corpora import form_of, written
from .decoding import search_all

SENTENCE_ENDS = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])\s*")  # Chinese and Japanese have no space there


@dataclass(frozen=True)
class Piece:
    """A part of a text that is translated on its own: its tokens, with the end, and its translations, best first."""

    ids: list[int]
    hypotheses: list[Hypothesis]


@dataclass(frozen=True)
class Translation:
    """A text and its translations, best first, as (score, text); the words that the model did not know."""

    source: str
    best: list[tuple[float, str]]
    pieces: list[Piece] = field(repr=False)
    unknown: list[str]
    alpha: float

    @property
    def text(self) -> str:
        """The best translation."""
        return self.best[0][1]

    @property
    def score(self) -> float:
        """Of the best: the logarithm of its probability, divided by the length penalty."""
        return self.best[0][0]


def translate(
    loaded: Any, texts: Sequence[str], beams: int | None = None, alpha: float | None = None, cached: bool = True
) -> list[Translation]:
    """Translate texts: all of them at once, by beam search; `beams` and `alpha` are those of its config unless given."""
    config = loaded.config
    beams, alpha = config.beams if beams is None else beams, config.alpha if alpha is None else alpha
    if beams < 1 or not 0 <= alpha <= GREATEST_ALPHA:
        raise ArgumentError(
            "translate: this cannot be searched with",
            f"beams from 1, alpha from 0 to {GREATEST_ALPHA:g}",
            (beams, alpha),
        )
    parts = [pieces_of(loaded, text) for text in texts]
    flat = [source_ids(config, loaded.tokenizer, piece) for pieces in parts for piece in pieces]
    loaded.model.eval()
    found = iter(zip(flat, search_all(loaded.model, flat, beams, alpha, cached)))
    return [
        _joined(loaded, text, pieces, [Piece(*next(found)) for _ in pieces], alpha)
        for text, pieces in zip(texts, parts)
    ]


def _joined(loaded: Any, text: str, pieces: list[str], translated: list[Piece], alpha: float) -> Translation:
    count = max(len(piece.hypotheses) for piece in translated)
    best = []
    for rank in range(count):
        chosen = [piece.hypotheses[min(rank, len(piece.hypotheses) - 1)] for piece in translated]
        words = " ".join(loaded.tokenizer.decode(one.tokens).strip() for one in chosen)
        best.append((sum(one.score for one in chosen), words.strip()))
    return Translation(text, best, translated, _unknown(loaded, pieces), alpha)


def _unknown(loaded: Any, pieces: list[str]) -> list[str]:
    """The words that the vocabulary does not have."""
    if loaded.config.vocabulary != "word":
        return []
    words = (word for piece in pieces for word in loaded.tokenizer.pattern.findall(piece.replace("<mask>", " ")))
    return list(dict.fromkeys(word for word in words if UNK in loaded.tokenizer.encode(word)))


def pieces_of(loaded: Any, text: str) -> list[str]:
    """A text in its form, in pieces that are not longer than what the model was trained on.

    A text that is too long is cut between sentences, and where one sentence is too long, between words. The phrasebook
    and its grammar have one sentence at a time, so there every sentence is a piece.
    """
    form, limit = form_of(loaded.config), loaded.config.max_length
    if not isinstance(text, str) or not written(text, form, True):
        raise ArgumentError("translate: there is nothing to translate", "a sentence", repr(text)[:60])
    is_short = len(source_ids(loaded.config, loaded.tokenizer, written(text, form, True))) <= limit
    sentences = [text] if form != "phrasebook" and is_short else SENTENCE_ENDS.split(text.strip())
    found: list[str] = []
    for sentence in filter(None, (written(sentence, form, True) for sentence in sentences)):
        found += _cut(loaded, sentence, limit)
    return found


def _cut(loaded: Any, sentence: str, limit: int) -> list[str]:
    """A sentence in pieces of at most so many tokens; a single word of more is cut in its middle."""
    if len(source_ids(loaded.config, loaded.tokenizer, sentence)) <= limit:
        return [sentence]
    words = sentence.split(" ")
    halves = [words[: len(words) // 2], words[len(words) // 2 :]]
    if len(words) == 1:
        middle = len(sentence) // 2
        if not middle:
            return [sentence]
        return _cut(loaded, sentence[:middle], limit) + _cut(loaded, sentence[middle:], limit)
    return [piece for half in halves for piece in _cut(loaded, " ".join(half), limit)]


def attend(loaded: Any, text: str, beams: int | None = None, alpha: float | None = None) -> dict[str, Any]:
    """What the model is called with to see its attention while it writes its translation of a text, or of its first sentence."""
    piece = translate(loaded, [text], beams, alpha)[0].pieces[0]
    target = [BOS, *piece.hypotheses[0].tokens]
    name = loaded.tokenizer.token
    return {
        "inputs": (mg.tensor([piece.ids]), mg.tensor([target])),
        "tokens": [name(token) for token in target],
        "keys": [name(token) for token in piece.ids],
        "vocabulary": [name(token) for token in range(loaded.tokenizer.vocab_size)],
    }


def tree_of(loaded: Any, translation: Translation) -> dict[str, Any]:
    """The tree of the search for the first piece of a translation, as `minigrad.viz.beam` draws it.

    Finished ones have the score that they are ranked by, divided by the length penalty; the others the plain sum.
    """
    root = translation.pieces[0].hypotheses[0].branch
    while root.parent is not None:
        root = root.parent
    top: dict[str, Any] = {"token": loaded.tokenizer.token(BOS), "score": 0.0, "children": []}
    waiting = [(root, top)]
    while waiting:
        branch, node = waiting.pop()
        for child in branch.children:
            penalty = length_penalty(child.depth, translation.alpha) if child.is_final else 1.0
            below = {
                "token": loaded.tokenizer.token(child.token), "score": child.score / penalty, "kept": child.is_kept,
                "final": child.is_final, "children": [],
            }  # fmt: skip
            node["children"].append(below)
            waiting.append((child, below))
    return top
