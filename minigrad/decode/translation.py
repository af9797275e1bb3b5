"""From text to text: long texts are cut into pieces that the model can take, and each piece is translated by beam search."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import ArgumentError
from ..ops.creation import tensor
from .beam import GREATEST_ALPHA, Hypothesis, length_penalty
from .encoder_decoder import search_all, special_ids

__all__ = ["Piece", "Translation", "attention_inputs", "doubted", "pieces_of", "search_tree", "spelt", "translate"]

SENTENCE_ENDS = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])\s*")  # Chinese and Japanese have no space there
# A translation is doubted if it is less sure of a token than this: on average, or, where tokens are words, of a single one.
# Parts of words are often as improbable in good translations, since there are many ways to say a thing.
DOUBTFUL, WEAK = 0.5, 0.3


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
    prompt: list[int]  # what targets of the model begin with
    by_word: bool = False  # whether tokens are words

    @property
    def text(self) -> str:
        """The best translation."""
        return self.best[0][1]

    @property
    def score(self) -> float:
        """Of the best: the logarithm of its probability, divided by the length penalty."""
        return self.best[0][0]

    @property
    def confidence(self) -> float:
        """Of the best: the probability of a token, as a geometric mean over all pieces."""
        chosen = [piece.hypotheses[0] for piece in self.pieces]
        lengths = [len(one.tokens) + 1 for one in chosen]  # with its end
        total = sum(one.score * length_penalty(n, self.alpha) for one, n in zip(chosen, lengths))
        return math.exp(min(total / sum(lengths), 0.0))

    @property
    def weakest(self) -> float:
        """Of the best: the probability of the token that it is least sure of, the end of each piece included."""
        last = [piece.hypotheses[0].branch for piece in self.pieces]
        return math.exp(min(step for branch in last for step in branch.steps()))

    @property
    def is_doubtful(self) -> bool:
        """Whether it is unlike what was learned: unsure on average, or of a single word."""
        return self.confidence < DOUBTFUL or (self.by_word and self.weakest < WEAK)


def composed(text: str) -> str:
    """A text with composed accents (Unicode NFC) and single spaces."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def translate(
    model: Any,
    tokenizer: Any,
    texts: Sequence[str],
    *,
    beams: int = 5,
    alpha: float = 1.0,
    max_length: int | None = None,
    prepare: Callable[[str], str] = composed,
    encode: Callable[[str], list[int]] | None = None,
    by_sentence: bool = False,
    cached: bool = True,
    shortlist: bool = True,
) -> list[Translation]:
    """Translate texts, all in one batch, by beam search with `beams` beams and the length penalty `alpha`.

    The model is called `model(sources, targets, cache=cache)` and has `new_cache()`. `prepare` brings a text into the
    form that the model was trained on, and `encode` makes tokens of it, with the end. A text of more than `max_length`
    tokens is cut between sentences, or else between words; with `by_sentence` every sentence is translated on its own. A
    model that has a lexical `shortlist` uses it, unless told otherwise.
    """
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise ArgumentError("translate: this is no list of texts", "a list of str", repr(texts)[:60])
    if beams < 1 or not 0 <= alpha <= GREATEST_ALPHA:
        raise ArgumentError(
            "translate: this cannot be searched with",
            f"beams from 1, alpha from 0 to {GREATEST_ALPHA:g}",
            (beams, alpha),
        )
    to_ids = encode or (lambda text: tokenizer.encode(text, eos=True))
    parts = [
        pieces_of(text, to_ids, max_length, lambda text: in_known_case(tokenizer, prepare(text)), by_sentence)
        for text in texts
    ]
    flat = [to_ids(piece) for pieces in parts for piece in pieces]
    model.eval()
    ids = special_ids(model, tokenizer)
    found = iter(zip(flat, search_all(model, flat, beams, alpha, cached, ids, shortlist)))
    return [
        _joined(tokenizer, text, pieces, [Piece(*next(found)) for _ in pieces], alpha, ids.prompt)
        for text, pieces in zip(texts, parts)
    ]


def _joined(
    tokenizer: Any, text: str, pieces: list[str], translated: list[Piece], alpha: float, prompt: list[int]
) -> Translation:
    count = max(len(piece.hypotheses) for piece in translated)
    best = []
    for rank in range(count):
        chosen = [piece.hypotheses[min(rank, len(piece.hypotheses) - 1)] for piece in translated]
        words = " ".join(tokenizer.decode(one.tokens).strip() for one in chosen)
        best.append((sum(one.score for one in chosen), words.strip()))
    return Translation(text, best, translated, _unknown(tokenizer, pieces), alpha, prompt, tokenizer.kind == "word")


def doubted(tokenizer: Any) -> tuple[float, float]:
    """How sure of a token a translation must be, on average and of each, for a page to show no doubt."""
    return DOUBTFUL, WEAK if getattr(tokenizer, "kind", "") == "word" else 0.0


def _unknown(tokenizer: Any, pieces: list[str]) -> list[str]:
    """The words that a vocabulary of words does not have."""
    if tokenizer.kind != "word":
        return []
    mask = tokenizer.token(tokenizer.mask_id)
    words = (word for piece in pieces for word in tokenizer.pattern.findall(piece.replace(mask, " ")))
    return list(dict.fromkeys(word for word in words if not _is_known(tokenizer, word)))


def _is_known(tokenizer: Any, word: str) -> bool:
    return tokenizer.unk_id not in tokenizer.encode(word)


def in_known_case(tokenizer: Any, text: str) -> str:
    """A text in which the words that a vocabulary of words knows in lower case only are in lower case."""
    if tokenizer.kind != "word":
        return text

    def known(found: re.Match[str]) -> str:
        word, lower = found[0], found[0].lower()
        return lower if not _is_known(tokenizer, word) and _is_known(tokenizer, lower) else word

    return str(tokenizer.pattern.sub(known, text))


def pieces_of(
    text: str,
    encode: Callable[[str], list[int]],
    max_length: int | None = None,
    prepare: Callable[[str], str] = composed,
    by_sentence: bool = False,
) -> list[str]:
    """A text, prepared, in pieces of at most `max_length` tokens, cut between sentences, or else between words."""
    whole = prepare(text)
    if not whole:
        raise ArgumentError("translate: there is nothing to translate", "a sentence", repr(text)[:60])
    is_short = max_length is None or len(encode(whole)) <= max_length
    sentences = [text] if is_short and not by_sentence else SENTENCE_ENDS.split(text.strip())
    prepared = filter(None, map(prepare, sentences))
    return [piece for sentence in prepared for piece in _cut(sentence, encode, max_length)]


def _cut(sentence: str, encode: Callable[[str], list[int]], max_length: int | None) -> list[str]:
    """A sentence in pieces of at most so many tokens; a single word of more is cut in its middle."""
    if max_length is None or len(encode(sentence)) <= max_length:
        return [sentence]
    words = sentence.split(" ")
    halves = [" ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])]
    if len(words) == 1:
        middle = len(sentence) // 2
        if not middle:
            return [sentence]
        halves = [sentence[:middle], sentence[middle:]]
    return [piece for half in halves for piece in _cut(half, encode, max_length)]


def spelt(tokenizer: Any, token: int) -> str:
    """The token of an id. Tables of words are often longer than the vocabulary, and a target may start with such an id."""
    return str(tokenizer.token(token)) if token < tokenizer.vocab_size else f"<{token}>"


def attention_inputs(tokenizer: Any, translation: Translation, vocab: int | None = None) -> dict[str, Any]:
    """What `mg.viz.attention` needs to show the attention while the first piece of a translation was decoded.

    `vocab` is how many logits the model has; as many as the tokenizer has tokens unless given.
    """
    piece = translation.pieces[0]
    best = piece.hypotheses[0]
    target = [*translation.prompt, *best.tokens]
    tokens = [spelt(tokenizer, token) for token in target]
    return {
        "inputs": (tensor([piece.ids]), tensor([target])),
        "tokens": tokens,
        "chosen": [*tokens[1:], tokenizer.token(best.branch.token) if best.branch.depth > len(best.tokens) else "…"],
        "sentences": (translation.source, translation.text),
        "keys": [tokenizer.token(token) for token in piece.ids],
        "vocabulary": [spelt(tokenizer, token) for token in range(vocab or tokenizer.vocab_size)],
    }


def search_tree(tokenizer: Any, translation: Translation) -> dict[str, Any]:
    """The tree of the search for the first piece of a translation, as `mg.viz.beam_tree` draws it.

    Every score is the one that finished translations are ranked by: the log-probability divided by the length penalty.
    """
    root = translation.pieces[0].hypotheses[0].branch
    while root.parent is not None:
        root = root.parent
    top: dict[str, Any] = {"token": spelt(tokenizer, translation.prompt[-1]), "score": 0.0, "children": []}
    if translation.alpha:
        penalty = f"((5 + n) / 6)^{translation.alpha:g}"
        top["note"] = f"log-probability of its n tokens, divided by {penalty}, so that lengths compare"
    waiting = [(root, top)]
    while waiting:
        branch, node = waiting.pop()
        for child in branch.children:
            score = child.score / length_penalty(child.depth, translation.alpha)
            below = {
                "token": tokenizer.token(child.token), "score": score, "kept": child.is_kept, "final": child.is_final,
                "children": [],
            }  # fmt: skip
            node["children"].append(below)
            waiting.append((child, below))
    return top
