"""Beam search: several continuations of each sequence at once, of which the best are gone on with.

N sequences with K beams each are N·K rows of one batch. Each step looks at the 2·K best continuations of a sequence: those
among the first K that end are finished, and the best K of those that do not end live on. A sequence is done when it has K
finished ones. With K = 1 this is greedy decoding, token for token.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..engine.errors import ArgumentError
from .continuing import Continuation
from .sampling import log_softmax

__all__ = ["Branch", "Hypothesis", "beam_search"]


@dataclass(eq=False)
class Branch:
    """A continuation that was looked at: a node of the tree that a search leaves behind."""

    token: int
    score: float  # the sum of the logarithms of the probabilities so far
    parent: Branch | None = None
    children: list[Branch] = field(default_factory=list)
    is_kept: bool = False  # whether it was gone on with
    is_final: bool = False  # whether it is finished

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
    length: int,
    end: int,
    alpha: float = 1.0,
) -> list[list[Hypothesis]]:
    """The best continuations of each prompt (N, n), best first, at most `beams`, each of up to `length` tokens.

    The tree of all that was looked at hangs on each hypothesis: go up its branch to the root.
    """
    if beams < 1 or length < 1:
        raise ArgumentError(
            "beam_search: there is nothing to search", "beams and length of at least 1", (beams, length)
        )
    count = len(prompt)
    living = [[Branch(int(row[-1]), 0.0, is_kept=True)] for row in prompt]  # one at first, since all would be the same
    finished: list[list[Branch]] = [[] for _ in range(count)]
    scores = log_softmax(continuation(np.asarray(prompt)))  # (N, V), then (rows, V), one row for each that lives
    for step in range(length):
        rows: list[int] = []
        first = 0
        for n in range(count):
            taken = len(living[n])
            block, first = scores[first : first + taken], first + taken
            living[n], origins = _grown(living[n], block, finished[n], beams, end, is_last=step == length - 1)
            rows += [first - taken + origin for origin in origins]
        if not rows:
            break
        continuation.select(np.array(rows))
        new = np.array([[branch.token] for branches in living for branch in branches])
        scores = log_softmax(continuation(new)) if step < length - 1 else scores
    return [_ranked(branches, end, alpha)[:beams] for branches in finished]


def _grown(
    living: list[Branch], scores: np.ndarray, finished: list[Branch], beams: int, end: int, is_last: bool
) -> tuple[list[Branch], list[int]]:
    """The branches of one sequence that live on after a step, and which of the old ones each grew from."""
    if not living:
        return [], []
    totals = np.array([branch.score for branch in living])[:, None] + scores  # (living, V)
    best = _best(totals.reshape(-1), 2 * beams)
    grown: list[Branch] = []
    origins: list[int] = []
    for rank, place in enumerate(best):
        origin, token = divmod(int(place), scores.shape[1])
        if not np.isfinite(totals[origin, token]):
            continue
        branch = Branch(token, float(totals[origin, token]), living[origin])
        living[origin].children.append(branch)
        ends = token == end
        if ends and rank < beams or is_last and not ends and len(finished) < beams:
            branch.is_final = branch.is_kept = True
            finished.append(branch)
        elif not ends and len(grown) < beams and not is_last:
            branch.is_kept = True
            grown.append(branch)
            origins.append(origin)
    return ([], []) if len(finished) >= beams else (grown, origins)


def _best(scores: np.ndarray, count: int) -> np.ndarray:
    """Where the greatest are, the greatest first, and of equal ones the first."""
    count = min(count, len(scores))
    least = np.partition(scores, -count)[-count]
    places = np.flatnonzero(scores >= least)
    return places[np.argsort(-scores[places], kind="stable")][:count]


def _ranked(branches: list[Branch], end: int, alpha: float) -> list[Hypothesis]:
    found = []
    for branch in branches:
        tokens = branch.tokens()
        penalty = length_penalty(len(tokens), alpha)
        found.append(Hypothesis(tokens[:-1] if tokens[-1] == end else tokens, branch.score / penalty, branch))
    return sorted(found, key=lambda hypothesis: -hypothesis.score)
