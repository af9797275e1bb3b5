"""Texts as rows of tokens: one text or two between special tokens, whose numbers are those of the tokenizer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import minigrad as mg
from minigrad.data import BOS, EOS, MASK, PAD, UNK, WordTokenizer
from minigrad.tokenizers import PretrainedTokenizer

BLANK = re.compile(r"<mask>|\[MASK\]")
PIECE = re.compile(f"{BLANK.pattern}|{WordTokenizer.pattern.pattern}")  # a word, as people count them


class Specials(NamedTuple):
    """The numbers of the special tokens; -1 where there is none."""

    pad: int = PAD
    cls: int = BOS
    sep: int = EOS
    unk: int = UNK
    mask: int = MASK

    @classmethod
    def of(cls, tokenizer: Any) -> Specials:
        """Those of a tokenizer."""
        found = {name: getattr(tokenizer, f"{name}_id") for name in cls._fields}
        usual = {"cls": tokenizer.bos_id, "sep": tokenizer.eos_id}  # where a tokenizer has but one pair of them
        ids = (usual.get(name) if token is None else token for name, token in found.items())
        return cls(*(-1 if token is None else token for token in ids))


class Frame(NamedTuple):
    """The special tokens before a text, between two, and at the end."""

    before: tuple[int, ...] = (BOS,)
    between: tuple[int, ...] = (EOS,)
    after: tuple[int, ...] = (EOS,)

    @classmethod
    def of(cls, tokenizer: Any) -> Frame:
        """Those that a tokenizer puts there, as a text of one word shows."""
        if not is_pretrained(tokenizer):
            return cls()
        word, one, (two, _) = (
            tokenizer.encode("a", special=False),
            tokenizer.encode("a"),
            tokenizer.encode_pair("a", "a"),
        )
        start = next(i for i in range(len(one)) if one[i : i + len(word)] == word)
        before, after = one[:start], one[start + len(word) :]
        between = two[start + len(word) : len(two) - len(after) - len(word)]
        return cls(tuple(before), tuple(between), tuple(after))


OWN, FRAME = Specials(), Frame()


def is_pretrained(tokenizer: Any) -> bool:
    """Whether it is the tokenizer of a pretrained model, and not one of words that was made here."""
    return isinstance(tokenizer, PretrainedTokenizer)


def texts_of(given: str) -> list[str]:
    """The texts that have `|` between them."""
    return [text.strip() for text in given.split("|")]


def encoded(tokenizer: Any, text: str) -> list[int]:
    """The tokens of a text, without those before and after it; `<mask>` and `[MASK]` stand for the hidden token."""
    if is_pretrained(tokenizer):
        blank = None if tokenizer.mask_id is None else tokenizer.token(tokenizer.mask_id)
        return tokenizer.encode(text if blank is None else BLANK.sub(lambda _: blank, text), special=False)
    first, *others = BLANK.split(text)
    return tokenizer.encode(first) + [token for part in others for token in (MASK, *tokenizer.encode(part))]


def encoded_words(tokenizer: Any, text: str) -> list[list[int]]:
    """The tokens of each word of a text, as PIECE finds them; a word keeps the space before it."""
    ends = [match.end() for match in PIECE.finditer(text)]
    return [encoded(tokenizer, text[start:end]) for start, end in zip([0, *ends], ends)]


def encoded_for(task: str, tokenizer: Any, text: str) -> list[int]:
    """The tokens of a text, word by word where a task says something about words."""
    by_words = task in ("tag", "answer")
    return sum(encoded_words(tokenizer, text), []) if by_words else encoded(tokenizer, text)


def joined(first: Sequence[int], second: Sequence[int] | None, context: int, frame: Frame = FRAME) -> list[int]:
    """`<s> first </s>`, or `<s> first </s> second </s>`, of at most `context` tokens.

    Of the first text the end is kept, which is nearest to the second; of the second the beginning.
    """
    before, between, after = frame
    room = context - len(before) - len(after)
    if second is None:
        return [*before, *first[:room], *after]
    room -= len(between)
    start = max(len(first) - max(room - len(second), room - room // 2), 0)
    return [*before, *first[start:], *between, *second[: room - len(first) + start], *after]


def segments_of(ids: mg.Tensor, sep: int = EOS) -> mg.Tensor:
    """0 up to the first `</s>`, which is the first text, and 1 after it: (B, T) -> (B, T)."""
    ends = (ids == sep).astype("int64")
    return (ends.cumsum(axis=1) - ends).clip(0, 1)
