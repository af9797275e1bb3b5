"""A text that is being continued for a client: what was asked for, and how far it has come."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

import numpy as np

from ..decode import LanguageModel, Sampling, TextStream

__all__ = ["Chance", "End", "Failure", "Piece", "Text"]


@dataclass(frozen=True)
class Chance:
    """A token that was chosen, the logarithm of its probability, and the likeliest tokens with theirs."""

    token: int
    logarithm: float
    likeliest: list[tuple[int, float]]


@dataclass(frozen=True)
class Piece:
    """What is new of a text; `chance` where the client asked for it."""

    text: str
    chance: Chance | None = None


@dataclass(frozen=True)
class End:
    """The text has ended: "stop" by itself or at a stop string, "length" after so many tokens as were asked for."""

    reason: str
    written: int  # tokens


@dataclass(frozen=True)
class Failure:
    """It cannot be answered, and why."""

    status: int
    message: str


class Text:
    """One text for a client, from its prompt to its end. Only the thread that computes changes it.

    `tell` is called with each Piece, and at last with an End or a Failure. Of a prompt that the model cannot see, the end counts.
    """

    def __init__(
        self,
        loaded: Any,
        prompt: Sequence[int],
        tell: Callable[[Any], object],
        *,
        tokens: int,
        sampling: Sampling,
        stop: Sequence[str] = (),
        seed: int | None = None,
        end: frozenset[int] = frozenset(),
        likeliest: int | None = None,
        temperature: float = 1.0,
    ):
        self.model, self.tell = loaded.model, tell
        self.tokens, self.sampling, self.end = tokens, sampling, end
        self.likeliest, self.temperature = likeliest, temperature  # of the chances that are told
        self.random = np.random.default_rng(seed)
        self.ids = list(prompt)  # all that the model has read, and the token that it reads next
        self.stream = TextStream(loaded.tokenizer, prompt, stop)
        self.written, self.is_cancelled, self.since = 0, False, monotonic()
        self.unread: list[int] = []
        self.reader: LanguageModel | None = None
        self.read_anew(loaded.model.context)

    def read_anew(self, size: int) -> None:
        """Begin to read the last tokens with a cache of its own."""
        self.unread, self.reader = self.ids[-size:], LanguageModel(self.model)

    def read(self, size: int) -> np.ndarray | None:
        """Read so many tokens more; the scores of the next token (V,) when all have been read."""
        assert self.reader is not None
        part, self.unread = self.unread[:size], self.unread[size:]
        scores = self.reader(np.array([part]))
        return None if self.unread else scores[0]

    def take(self, scores: np.ndarray) -> bool:
        """Choose the next token by the scores (V,), and tell it; whether the text goes on after it."""
        seen = np.array([self.ids]) if self.sampling.repetition_penalty != 1 else None
        token = int(self.sampling.choose(scores[None], self.random, seen)[0])
        if token in self.end:
            return self._ended("stop")
        self.ids.append(token)
        self.written += 1
        piece = self.stream.push(token)
        chance = None if self.likeliest is None else self._chance(scores, token, self.likeliest)
        if piece or chance is not None:
            self.tell(Piece(piece, chance))
        if self.stream.is_stopped:
            return self._ended("stop")
        return self.written < self.tokens or self._ended("length")

    def _ended(self, reason: str) -> bool:
        if rest := self.stream.finish():
            self.tell(Piece(rest))
        self.tell(End(reason, self.written))
        return False

    def _chance(self, scores: np.ndarray, token: int, count: int) -> Chance:
        plain = replace(self.sampling, temperature=self.temperature, top_k=None, top_p=None, repetition_penalty=1.0)
        likely = plain.probabilities(scores[None])[0]
        count = min(count, len(likely))
        best = np.argpartition(-likely, count - 1)[:count] if count else np.zeros(0, np.int64)
        ranked = best[np.argsort(-likely[best], kind="stable")].tolist()
        return Chance(token, _logarithm(likely[token]), [(i, _logarithm(likely[i])) for i in ranked if likely[i] > 0])


def _logarithm(share: float) -> float:
    return math.log(share) if share > 0 else -9999.0  # JSON has no infinity
