"""Choosing the next token: the best one, or one drawn from those that are likely."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..errors import ArgumentError, NonFiniteError
from .continuation import Continuation

__all__ = ["Sampling", "generate", "greedy"]


@dataclass(frozen=True)
class Sampling:
    """How a token is drawn from scores.

    `temperature` 0 takes the best; above, scores are divided by it. `top_k` leaves only the k best, and others as good
    as the last of them; `top_p` only the fewest that are together at least so likely. `repetition_penalty` above 1 makes
    tokens that were there before less likely: their scores are divided by it, or multiplied if they are negative.
    Tokens that are `forbidden` never come.

    >>> Sampling(temperature=0).choose(np.array([[0.1, 2.0, 1.0]]), np.random.default_rng(0))
    array([1])
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    repetition_penalty: float = 1.0
    forbidden: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        wrong = {
            "temperature": (0 <= self.temperature < math.inf, "0 or more"),
            "top_k": (self.top_k is None or self.top_k >= 1, "1 or more"),
            "top_p": (self.top_p is None or 0 < self.top_p <= 1, "above 0, at most 1"),
            "repetition_penalty": (1 <= self.repetition_penalty < math.inf, "1 or more"),
        }
        for name, (is_right, expected) in wrong.items():
            if not is_right:
                raise ArgumentError(f"{name} cannot be {getattr(self, name)}", expected)

    def without(self, tokens: Iterable[int]) -> Sampling:
        """The same, with these tokens forbidden as well."""
        return replace(self, forbidden=self.forbidden | frozenset(tokens))

    def probabilities(self, scores: np.ndarray, seen: np.ndarray | None = None) -> np.ndarray:
        """How likely each token is to be drawn, after tokens `seen`: (B, V), (B, n) -> (B, V)."""
        scores = self._allowed(np.array(scores, np.float64), seen)
        best = scores.max(axis=1, keepdims=True)
        if self.temperature == 0:
            likely = np.zeros_like(scores)
            likely[np.arange(len(scores)), scores.argmax(axis=1)] = 1
            return likely
        with np.errstate(over="ignore"):  # at a temperature of almost 0 all but the best are infinitely unlikely
            scores = log_softmax((scores - best) / self.temperature)
        if self.top_k is not None and self.top_k < scores.shape[1]:
            least = np.sort(scores, axis=1)[:, -self.top_k, None]
            scores = log_softmax(np.where(scores >= least, scores, -np.inf))
        if self.top_p is not None:
            order = np.argsort(-scores, axis=1, kind="stable")
            ordered = np.exp(np.take_along_axis(scores, order, axis=1))
            before = np.cumsum(ordered, axis=1) - ordered  # how likely all better ones are together
            kept = np.take_along_axis(before < self.top_p, np.argsort(order, axis=1, kind="stable"), axis=1)
            scores = log_softmax(np.where(kept, scores, -np.inf))
        return np.exp(scores)

    def _allowed(self, scores: np.ndarray, seen: np.ndarray | None) -> np.ndarray:
        """The scores, which are changed in place: those of tokens that were there lowered, those that are forbidden -inf."""
        if seen is not None and self.repetition_penalty != 1:
            for row, tokens in zip(scores, seen):
                known = np.unique(tokens)
                penalised = np.where(row[known] > 0, 1 / self.repetition_penalty, self.repetition_penalty)
                row[known] *= penalised
        scores[:, [token for token in self.forbidden if token < scores.shape[1]]] = -np.inf
        best = scores.max(axis=1)
        if not np.isfinite(best).all():
            raise NonFiniteError(
                "no token can be chosen: the scores are not finite",
                "at least one finite score in each row, and no NaN",
                fix="the model has diverged: use an earlier checkpoint, or train with a smaller lr",
            )
        return scores

    def choose(self, scores: np.ndarray, rng: np.random.Generator, seen: np.ndarray | None = None) -> np.ndarray:
        """One token for each row: (B, V) -> (B,)."""
        if self.temperature == 0:
            return self._allowed(np.array(scores, np.float64), seen).argmax(axis=1)
        likely = self.probabilities(scores, seen)
        # Where a random number falls among the sums; the last sum may be a little below 1.
        return np.minimum((likely.cumsum(axis=1) <= rng.random((len(likely), 1))).sum(axis=1), _last_likely(likely))


def _last_likely(likely: np.ndarray) -> np.ndarray:
    return likely.shape[1] - 1 - (likely[:, ::-1] > 0).argmax(axis=1)


def log_softmax(scores: np.ndarray) -> np.ndarray:
    """The logarithms of probabilities: (B, V) -> (B, V)."""
    top = scores - scores.max(axis=1, keepdims=True)
    return top - np.log(np.exp(top).sum(axis=1, keepdims=True))


def generate(
    continuation: Continuation,
    prompt: np.ndarray,
    *,
    length: int,
    sampling: Sampling | None = None,
    seed: int = 0,
    end: Container[int] = (),
) -> Iterator[np.ndarray]:
    """Continue prompts (B, n) by up to `length` tokens, one (B,) after the other; stops when each row has had an `end`.

    A row that has ended is still filled; the caller cuts it off there.
    """
    sampling = sampling or Sampling()
    rng = np.random.default_rng(seed)
    seen = new = np.asarray(prompt)
    is_done = np.zeros(len(seen), bool)
    for _ in range(length):
        tokens = sampling.choose(continuation(new), rng, seen)
        yield tokens
        is_done |= [int(token) in end for token in tokens]
        if is_done.all():
            return
        new = tokens[:, None]
        if sampling.repetition_penalty != 1:  # nothing else asks for what came before
            seen = np.concatenate([seen, new], axis=1)


def greedy(continuation: Continuation, prompt: np.ndarray, *, length: int, end: int) -> list[list[int]]:
    """The best token each time, until `end`, which is left out: a list of tokens for each row."""
    found = list(generate(continuation, prompt, length=length, sampling=Sampling(temperature=0), end={end}))
    rows = np.stack(found, axis=1).tolist() if found else [[] for _ in prompt]
    return [row[: row.index(end)] if end in row else row for row in rows]
