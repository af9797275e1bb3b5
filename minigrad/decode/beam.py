"""Beam search: several continuations of each sequence at once, of which the best are kept.

N sequences with K beams each are N·K rows of one batch. Each step looks at the 2·K best continuations of a sequence: those
among the first K that end are finished, and the best K of those that do not end live on. A sequence is done when it has K
finished ones and the best of them is better than any that lives: a sure model finishes K bad ones, each a word too short,
while the good one is still being written. With K = 1 this is greedy decoding, token for token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import ArgumentError
from .beam_tree import Branch, Level, Tree
from .candidates import candidates
from .continuation import Continuation

__all__ = ["Branch", "Hypothesis", "beam_search"]

GREATEST_ALPHA = 10.0  # published ones are up to 1; with hundreds, the penalty is more than a float can be


@dataclass(frozen=True)
class Hypothesis:
    """A finished continuation, without its end; `score` is divided by the length penalty."""

    tokens: list[int]
    score: float
    tree: Tree = field(repr=False, compare=False)
    node: tuple[int, int] = field(repr=False, compare=False)

    @property
    def branch(self) -> Branch:
        """The last branch of it, in the tree of all that the search looked at."""
        return self.tree.branches[self.node]


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
    words: np.ndarray | None = None,
) -> list[list[Hypothesis]]:
    """The best continuations of each prompt (N, n), best first, at most `beams`, each of up to `length` tokens.

    `length` may be one for each prompt. Scores are those of all tokens, or of `words`, in their order. The tree of all that
    was looked at hangs on each hypothesis: go up its branch to the root.
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
    search = Search(np.asarray(prompt)[:, -1], np.array(lengths), beams, end, alpha)
    scores = continuation(np.asarray(prompt))  # of N rows, then of one for each branch that lives
    for _ in range(max(lengths)):
        places, logs = candidates(scores, 2 * beams)
        rows, new = search.grow(places if words is None else words[places], logs)
        if not len(rows):
            break
        continuation.select(rows)
        scores = continuation(new[:, None])
    return search.found()


class Search:
    """The branches of N sequences that live, and those that are finished: each step is a few operations on arrays of all of them.

    R branches live, those of a sequence side by side. A is the number of sequences that have some.
    """

    def __init__(self, starts: np.ndarray, lengths: np.ndarray, beams: int, end: int, alpha: float):
        self.starts, self.lengths, self.beams, self.end, self.alpha = starts, lengths, beams, end, alpha
        self.sequence = np.arange(len(starts))  # (R,): whose branch it is; one each at first, which all would be
        self.score = np.zeros(len(starts))  # (R,)
        self.rank = np.zeros(len(starts), np.int64)  # (R,): its number in the level before
        self.levels: list[Level] = []
        self.finished = np.zeros(len(starts), np.int64)  # (N,): how many
        self.best = np.full(len(starts), -np.inf)  # (N,): the best of them, divided by the length penalty

    def grow(self, tokens: np.ndarray, logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take the best continuations of each branch, (R, C) each; returns which branches live on, and with which tokens."""
        level, firsts, origin = self._looked_at(tokens, logs)
        depth, there = len(self.levels) + 1, level.sequence
        is_last = (depth == self.lengths[there])[:, None]
        ends = level.token == self.end
        is_final = level.is_there & (ends | is_last)
        is_final[:, self.beams :] = False
        may_live = level.is_there & ~ends & ~is_last
        lives = may_live & (np.cumsum(may_live, axis=1) <= self.beams)
        worth = level.score / length_penalty(depth, self.alpha)
        self.finished[there] += is_final.sum(axis=1)
        self.best[there] = np.maximum(self.best[there], np.where(is_final, worth, -np.inf).max(axis=1))
        hope = np.where(lives, worth, -np.inf).max(axis=1)
        is_done = (self.finished[there] >= self.beams) & (hope <= self.best[there])
        lives &= ~is_done[:, None]
        self.levels.append(level._replace(is_kept=is_final | lives, is_final=is_final))
        place, self.rank = np.nonzero(lives)
        self.sequence, self.score = there[place], level.score[place, self.rank]
        return firsts[place] + origin[place, self.rank], level.token[place, self.rank]

    def _looked_at(self, tokens: np.ndarray, logs: np.ndarray) -> tuple[Level, np.ndarray, np.ndarray]:
        """The best 2·beams continuations of each sequence, best first; its first row, and which of its rows each continues."""
        there, firsts, counts = np.unique(self.sequence, return_index=True, return_counts=True)
        place = np.repeat(np.arange(len(there)), counts)  # (R,): whose branch it is, among those that live
        slot = np.arange(len(place)) - firsts[place]  # (R,): which of its branches
        width = tokens.shape[1]
        scores = np.full((len(there), counts.max(), width), -np.inf)
        scores[place, slot] = self.score[:, None] + logs
        flat = scores.reshape(len(there), -1)
        order = np.argsort(-flat, axis=1, kind="stable")[:, : 2 * self.beams]  # equal ones stay in their order
        origin, column = np.divmod(order, width)
        rows = np.minimum(firsts[:, None] + origin, len(place) - 1)  # beyond a sequence's rows nothing is there
        score = np.take_along_axis(flat, order, axis=1)
        nothing = np.zeros(order.shape, bool)
        level = Level(there, tokens[rows, column], score, self.rank[rows], score > -np.inf, nothing, nothing)
        return level, firsts, origin

    def found(self) -> list[list[Hypothesis]]:
        """The finished ones of each sequence, best first, at most `beams`."""
        finished: list[list[tuple[float, tuple[int, int]]]] = [[] for _ in self.starts]
        for depth, level in enumerate(self.levels):
            worth = level.score / length_penalty(depth + 1, self.alpha)
            for place, rank in zip(*(part.tolist() for part in np.nonzero(level.is_final))):
                finished[level.sequence[place]].append((float(worth[place, rank]), (depth, rank)))
        best = [sorted(some, key=lambda item: -item[0])[: self.beams] for some in finished]
        nodes = [(sequence, *node) for sequence, some in enumerate(best) for _, node in some]
        tokens = iter(self._tokens(np.array(nodes, np.int64).reshape(-1, 3)))
        trees = [Tree(self.levels, sequence, int(start)) for sequence, start in enumerate(self.starts)]
        return [
            [Hypothesis(next(tokens), score, tree, node) for score, node in some] for tree, some in zip(trees, best)
        ]

    def _tokens(self, nodes: np.ndarray) -> list[list[int]]:
        """From the first token after the start to each node (sequence, depth, rank), without the end."""
        sequence, depths, rank = nodes.T
        rank, found = rank.copy(), np.empty((len(nodes), len(self.levels)), np.int64)
        for depth, level in reversed([*enumerate(self.levels)]):
            there = np.flatnonzero(depths >= depth)
            place = np.searchsorted(level.sequence, sequence[there]), rank[there]
            found[there, depth], rank[there] = level.token[place], level.parent[place]
        lengths = depths + (found[np.arange(len(nodes)), depths] != self.end)
        return [row[:length] for row, length in zip(found.tolist(), lengths.tolist())]
