"""Text from tokens as they come: no character before it is whole, and nothing of a stop string."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..data.tokenizers import SPECIALS, UNK, Tokenizer
from ..errors import ArgumentError
from .continuation import LanguageModel
from .sampling import Sampling, generate

__all__ = ["TextStream", "continue_text"]

BROKEN = "\ufffd"  # what a tokenizer of bytes makes of a character that is not whole (yet)
STARTS = ("\n", ".", " ")  # what text is continued after, where there is none


class TextStream:
    """The text of tokens that come one by one, after those of a prompt, up to the first stop string.

    `push` returns what is certain so far: a character of several tokens is held back until it is whole, and so is what
    may be the beginning of a stop string. `finish` returns what was held back.

    >>> from minigrad.data import CharTokenizer
    >>> tokenizer = CharTokenizer.train("Hello, you.")
    >>> stream = TextStream(tokenizer, stop=["you"])
    >>> [stream.push(token) for token in tokenizer.encode("Hey, you.")]
    ['H', 'e', '', 'y,', ' ', '', '', '', '']
    >>> stream.is_stopped, stream.finish()
    (True, '')
    """

    def __init__(self, tokenizer: Tokenizer, prompt: Sequence[int] = (), stop: Sequence[str] = ()):
        if isinstance(stop, str) or not all(stop):
            raise ArgumentError("TextStream: stop strings cannot be empty", "a list of texts", repr(stop))
        self.tokenizer, self.stop, self.is_stopped = tokenizer, tuple(stop), False
        # Which spaces stand between words depends on all words before, so only those need the prompt and are kept.
        self._keeps = tokenizer.kind == "word"
        self._ids = list(prompt) if self._keeps else []
        self._shown = len(tokenizer.decode(self._ids))  # characters of the ids that have been dealt with
        self._held = ""

    def push(self, token: int) -> str:
        """Take one more token; returns the text that can be shown now, which may be none."""
        self._ids.append(token)
        text = self.tokenizer.decode(self._ids)
        whole = text.rstrip(BROKEN)
        new, self._shown = whole[self._shown :], max(self._shown, len(whole))
        if not self._keeps and len(whole) == len(text):
            self._ids, self._shown = [], 0
        return self._released(new)

    def finish(self) -> str:
        """What was held back, if no stop string came."""
        rest = self.tokenizer.decode(self._ids)[self._shown :]
        shown = self._released(rest) + ("" if self.is_stopped else self._held)
        self._ids, self._shown, self._held = [], 0, ""
        return shown

    def _released(self, new: str) -> str:
        """What of the text held back, and now longer, can be no part of a stop string."""
        if self.is_stopped:
            return ""
        text = self._held + new
        found = [place for stop in self.stop if (place := text.find(stop)) >= 0]
        if found:
            self.is_stopped, self._held = True, ""
            return text[: min(found)]
        kept = max(
            (size for stop in self.stop for size in range(1, len(stop)) if text.endswith(stop[:size])), default=0
        )
        self._held = text[len(text) - kept :]
        return text[: len(text) - kept]


def continue_text(
    model: Any,
    tokenizer: Tokenizer,
    prompt: str = "",
    *,
    length: int = 200,
    sampling: Sampling | None = None,
    stop: Sequence[str] = (),
    seed: int = 0,
    cached: bool = True,
    notice: Callable[[str], object] = warnings.warn,
) -> Iterator[str]:
    """Continue a text by up to `length` tokens, in pieces as they come; the prompt and the stop string are no part of it.

    What of the prompt the tokenizer does not know is left out, and if the model cannot see all of it, it sees the end;
    both are said to `notice`.
    """
    if length < 0:
        raise ArgumentError("continue_text: there is no text of such a length", "0 tokens or more", length)
    ids = known_ids(tokenizer, prompt, notice)
    if len(ids) > model.context:
        notice(f"the prompt has {len(ids):,} tokens and the model sees {model.context:,} at once: only its end counts")
    stream = TextStream(tokenizer, ids, stop)
    tokens = generate(
        LanguageModel(model, cached),
        np.array([ids or beginning(tokenizer)]),
        length=length,
        sampling=(sampling or Sampling()).without(range(len(SPECIALS))),
        seed=seed,
    )
    return _pieces(stream, tokens)


def _pieces(stream: TextStream, tokens: Iterator[np.ndarray]) -> Iterator[str]:
    for (token,) in tokens:
        if piece := stream.push(int(token)):
            yield piece
        if stream.is_stopped:
            return
    if rest := stream.finish():
        yield rest


def known_ids(tokenizer: Tokenizer, text: str, notice: Callable[[str], object]) -> list[int]:
    """The ids of a text without what the tokenizer does not know, which is said to `notice`."""
    ids = tokenizer.encode(text)
    if UNK not in ids:
        return list(ids)
    pieces = dict.fromkeys(text if tokenizer.kind == "char" else text.split())
    missing = [repr(piece) for piece in pieces if UNK in tokenizer.encode(piece)]
    shown = ", ".join(missing[:10]) + (" …" if len(missing) > 10 else "")
    notice(f"the model was trained on text without {shown}: left out of the prompt")
    return [i for i in ids if i != UNK]


def beginning(tokenizer: Tokenizer) -> list[int]:
    """What stands before a text of which nothing is given: an end of a line, a sentence or a word, whichever is known."""
    for text in STARTS:
        ids: list[int] = tokenizer.encode(text)
        if ids and min(ids) >= len(SPECIALS):
            return ids
    return [len(SPECIALS)]
