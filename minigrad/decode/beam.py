"""Beam search: several continuations of each sequence at once, of which the best are kept.

N sequences with K beams each are N·K rows of one batch. Each step looks at the 2·K best continuations of a sequence: those
among the first K that end are finished, and the best K of those that do not end live on. A sequence is done when it has K
finished ones and the best of them is better than any that lives: a sure model finishes K bad ones, each a word too short,
while the good one is still being written. With K = 1 this is greedy decoding, token for token.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import ArgumentError, NonFiniteError
from .continuation import Continuation

__all__ = ["Branch", "Hypothesis", "beam_search"]

GREATEST_ALPHA = 10.0  # published ones are up to 1; with hundreds, the penalty is more than a float can be


@dataclass(eq=False)
class Branch:
    """A continuation that was looked at: a node of the tree that a search leaves behind."""

    token: int
    score: float  # the sum of the logarithms of the probabilities so far
    parent: Branch | None = None
    children: list[Branch] = field(default_factory=list)
    is_kept: bool = False  # whether the search continued it
    is_final: bool = False  # whether it is finished
    depth: int = 0  # how many tokens there are after the start

    def tokens(self) -> list[int]:
        """From the first token after the start to this one."""
        found = []
        branch: Branch | None = self
        while branch is not None and branch.parent is not None:
            found.append(branch.token)
            branch = branch.parent
        return found[::-1]


@dataclass(frozen=True)
class Hypothesis:
    """A finished continuation, without its end; `score` is divided by the length penalty."""

    tokens: list[int]
    score: float
    branch: Branch


def length_penalty(length: int, alpha: float) -> float:
    """What a score is divided by: 1 for alpha 0, longer sequences are forgiven more the larger alpha is."""
    return float(((5 + length) / 6) ** alpha)


def beam_search(
    continuation: Continuation,
    prompt: np.ndarray,
    *,
    beams: int = 5,
    length: int | Sequence[int],
    end: int,
    alpha: float = 1.0,
) -> list[list[Hypothesis]]:
    """The best continuations of each prompt (N, n), best first, at most `beams`, each of up to `length` tokens.

    `length` may be one for each prompt. The tree of all that was looked at hangs on each hypothesis: go up its branch
    to the root.
    """
    count = len(prompt)
    lengths = [length] * count if isinstance(length, int) else list(length)
    if beams < 1 or len(lengths) != count or min(lengths, default=1) < 1:
        raise ArgumentError(
            "beam_search: there is nothing to search", "beams and length of at least 1", (beams, length)
        )
    if not 0 <= alpha <= GREATEST_ALPHA:
        raise ArgumentError("beam_search: no such length penalty", f"alpha from 0 to {GREATEST_ALPHA:g}", alpha)
    if not count:
        return []
    living = [[Branch(int(row[-1]), 0.0, is_kept=True)] for row in prompt]  # one at first, since all would be the same
    finished: list[list[Branch]] = [[] for _ in range(count)]
    found = _candidates(continuation(np.asarray(prompt)), 2 * beams)  # of N rows, then of one for each that lives
    for step in range(max(lengths)):
        rows: list[int] = []
        first = 0
        for n in range(count):
            taken = len(living[n])
            block, first = found[first : first + taken], first + taken
            living[n], origins = _grown(living[n], block, finished[n], beams, end, is_last=step == lengths[n] - 1)
            if _is_done(living[n], finished[n], beams, alpha):
                living[n], origins = [], []
            rows += [first - taken + origin for origin in origins]
        if not rows:
            break
        continuation.select(np.array(rows))
        new = np.array([[branch.token] for branches in living for branch in branches])
        found = _candidates(continuation(new), 2 * beams)
    return [_ranked(branches, end, alpha)[:beams] for branches in finished]


def _candidates(scores: np.ndarray, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each row the best tokens, the best first and of equal ones the first, with the logarithms of their probabilities."""
    best = scores.max(axis=1, keepdims=True)
    if not np.isfinite(best).all():
        raise NonFiniteError(
            "beam_search: no token can be chosen, the scores are not finite",
            "at least one finite score in each row, and no NaN",
            fix="the model has diverged: use an earlier checkpoint, or train with a smaller lr",
        )
    total = np.log(np.exp(scores - best).sum(axis=1))  # only few of the probabilities are needed
    count = min(count, scores.shape[1])
    least = np.partition(scores, -count, axis=1)[:, -count]
    found = []
    for row, bound, top, rest in zip(scores, least, best[:, 0].astype(np.float64), total):
        places = np.flatnonzero(row >= bound)
        places = places[np.argsort(-row[places], kind="stable")][:count]
        found.append((places, row[places].astype(np.float64) - top - rest))
    return found


def _grown(
    living: list[Branch],
    found: list[tuple[np.ndarray, np.ndarray]],
    finished: list[Branch],
    beams: int,
    end: int,
    is_last: bool,
) -> tuple[list[Branch], list[int]]:
    """The branches of one sequence that live on after a step, and which of the old ones each grew from."""
    looked_at = [
        (branch.score + log, origin, token)
        for origin, (branch, (tokens, logs)) in enumerate(zip(living, found))
        for token, log in zip(tokens.tolist(), logs.tolist())
        if log > -math.inf
    ]
    looked_at.sort(key=lambda item: -item[0])  # equal ones stay in their order
    grown: list[Branch] = []
    origins: list[int] = []
    for rank, (score, origin, token) in enumerate(looked_at[: 2 * beams]):
        branch = Branch(token, score, living[origin], depth=living[origin].depth + 1)
        living[origin].children.append(branch)
        ends = token == end
        if rank < beams and (ends or is_last):
            branch.is_final = branch.is_kept = True
            finished.append(branch)
        elif not ends and len(grown) < beams and not is_last:
            branch.is_kept = True
            grown.append(branch)
            origins.append(origin)
    return grown, origins


def _is_done(living: list[Branch], finished: list[Branch], beams: int, alpha: float) -> bool:
    """Whether enough are finished, and the best of them is better than any that is not."""
    if len(finished) < beams:
        return False
    best, hope = (max((_worth(branch, alpha) for branch in some), default=-math.inf) for some in (finished, living))
    if hope > best:
        return False
    for branch in living:
        branch.is_kept = False
    return True


def _worth(branch: Branch, alpha: float) -> float:
    return branch.score / length_penalty(branch.depth, alpha)


def _ranked(branches: list[Branch], end: int, alpha: float) -> list[Hypothesis]:
    found = []
    for branch in branches:
        tokens = branch.tokens()
        found.append(Hypothesis(tokens[:-1] if tokens[-1] == end else tokens, _worth(branch, alpha), branch))
    return sorted(found, key=lambda hypothesis: -hypothesis.score)
