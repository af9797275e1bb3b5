"""Text from tokens as they come: no character before it is whole, and nothing of a stop string."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..data.tokenizers import Tokenizer
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
        # What a token adds to a text may depend on those before it, as spaces between words do.
        self._ids = [] if tokenizer.decodes_apart else list(prompt)
        self._whole = 0  # how many of the ids had whole characters when last looked at
        self._shown = len(tokenizer.decode(self._ids))  # characters of the ids that have been dealt with
        self._held = ""

    def push(self, token: int) -> str:
        """Take one more token; returns the text that can be shown now, which may be none."""
        self._ids.append(token)
        text = self.tokenizer.decode(self._ids)
        whole = text.rstrip(BROKEN)
        new, self._shown = whole[self._shown :], max(self._shown, len(whole))
        if len(whole) == len(text):
            self._forget(text)
        return self._released(new)

    def _forget(self, text: str) -> None:
        """Let go of ids that later ones do not depend on: of all, or of all but those that made the last characters."""
        if self.tokenizer.decodes_apart:
            self._ids, self._shown = [], 0
        elif self.tokenizer.kind != "word" and text and (kept := self.tokenizer.decode(self._ids[self._whole :])):
            self._ids = self._ids[self._whole :]
            self._whole, self._shown = len(self._ids), len(kept)

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
    tokens: int = 200,
    sampling: Sampling | None = None,
    stop: Sequence[str] = (),
    seed: int = 0,
    cached: bool = True,
    notice: Callable[[str], object] = warnings.warn,
) -> Iterator[str]:
    """Continue a text by up to so many `tokens`, in pieces as they come; the prompt and the stop string are no part of it.

    What of the prompt the tokenizer does not know is left out, and if the model cannot see all of it, it sees the end;
    both are said to `notice`.
    """
    if tokens < 0:
        raise ArgumentError("continue_text: there is no text of so many tokens", "0 tokens or more", tokens)
    ids = known_ids(tokenizer, prompt, notice)
    if len(ids) > model.context:
        notice(f"the prompt has {len(ids):,} tokens and the model sees {model.context:,} at once: only its end counts")
    stream = TextStream(tokenizer, ids, stop)
    drawn = generate(
        LanguageModel(model, cached),
        np.array([ids or beginning(tokenizer)]),
        length=tokens,
        sampling=(sampling or Sampling()).without(tokenizer.unwritten),
        seed=seed,
    )
    return _pieces(stream, drawn)


def _pieces(stream: TextStream, tokens: Iterator[np.ndarray]) -> Iterator[str]:
    """The text of tokens as they come, up to the token that ends a text."""
    for (token,) in tokens:
        if token == stream.tokenizer.eos_id:
            break
        if piece := stream.push(int(token)):
            yield piece
        if stream.is_stopped:
            return
    if rest := stream.finish():
        yield rest


def known_ids(tokenizer: Tokenizer, text: str, notice: Callable[[str], object]) -> list[int]:
    """The ids of a text without what the tokenizer does not know, which is said to `notice`."""
    ids = tokenizer.encode(text)
    unknown = tokenizer.unk_id
    if unknown is None or unknown not in ids:
        return list(ids)
    pieces = dict.fromkeys(text if tokenizer.kind == "char" else text.split())
    missing = [repr(piece) for piece in pieces if unknown in tokenizer.encode(piece)]
    shown = ", ".join(missing[:10]) + (" …" if len(missing) > 10 else "")
    notice(f"the model was trained on text without {shown}: left out of the prompt")
    return [i for i in ids if i != unknown]


def beginning(tokenizer: Tokenizer) -> list[int]:
    """What stands before a text of which nothing is given: an end of a line, a sentence or a word, whichever is known.

    A pretrained model has a token for it.
    """
    if tokenizer.bos_id is not None and tokenizer.bos_id not in tokenizer.unwritten:
        return [tokenizer.bos_id]
    for text in STARTS:
        ids: list[int] = tokenizer.encode(text)
        if ids and not {*ids} & {*tokenizer.unwritten}:
            return ids
    return [len(tokenizer.unwritten)]
