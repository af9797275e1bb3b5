"""The tree that a beam search leaves behind: all continuations that it looked at, as arrays, and as branches when somebody asks."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

__all__ = ["Branch", "Level", "Tree"]


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

    def steps(self) -> list[float]:
        """The logarithms of the probabilities of these tokens, each given those before it."""
        found = []
        branch: Branch | None = self
        while branch is not None and branch.parent is not None:
            found.append(branch.score - branch.parent.score)
            branch = branch.parent
        return found[::-1]


class Level(NamedTuple):
    """What a step looked at: for each sequence that lives some continuations, the best first."""

    sequence: np.ndarray  # (A,), ascending
    token: np.ndarray  # (A, looked at), as all below
    score: np.ndarray
    parent: np.ndarray  # which one of the level before it continues, by its rank there
    is_there: np.ndarray
    is_kept: np.ndarray
    is_final: np.ndarray


class Tree:
    """All that a search looked at for one sequence."""

    def __init__(self, levels: list[Level], sequence: int, start: int):
        self.levels, self.sequence, self.start = levels, sequence, start

    @cached_property
    def branches(self) -> dict[tuple[int, int], Branch]:
        """Every continuation as a branch, under its level and its rank there."""
        above = {0: Branch(self.start, 0.0, is_kept=True)}
        found: dict[tuple[int, int], Branch] = {}
        for depth, level in enumerate(self.levels):
            if self.sequence not in level.sequence:
                break
            place, below = int(np.searchsorted(level.sequence, self.sequence)), {}
            for rank in np.flatnonzero(level.is_there[place]).tolist():
                flags = bool(level.is_kept[place, rank]), bool(level.is_final[place, rank])
                parent = above[int(level.parent[place, rank])]
                token, score = int(level.token[place, rank]), float(level.score[place, rank])
                below[rank] = Branch(token, score, parent, [], *flags, depth + 1)
                parent.children.append(below[rank])
            found |= {(depth, rank): branch for rank, branch in below.items()}
            above = below
        return found
