"""One new position through a whole stack of blocks with a cache, without Python between them: what generating a text consists of.

The first step writes down what the stack computes as a program of compiled jobs; the following ones only run it. What is
unusual, such as a hook, a floating mask or another device, is left to the modules.
"""

from __future__ import annotations

import contextlib
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ...changes import changes
from ...engine.modes import local
from ...engine.tensor import Tensor, wrap
from ...kernels.selection import candidates
from ..module import Module
from .caches import KVCache, StackCache, StateCache
from .step_program import SINGLE, StepProgram, Unusual

__all__ = ["step"]

FEWEST_ROWS, MOST_ROWS = 16, 256  # of a batch: a program has memory for so many; beyond, the modules are as fast


def step(
    stack: Any,
    x: Any,
    cache: StackCache,
    mask: Any = None,
    positions: Any = None,
    memory: Any = None,
    memory_mask: Any = None,
) -> Tensor | None:
    """The next position of a stack, (B, 1, C) -> (B, 1, C), which its cache then has; None where the modules have to do it."""
    mode = local.mode
    if mode.record or mode.tracers or not isinstance(x, Tensor) or x.ndim != 3 or x.shape[1] != 1:
        return None
    if type(x.data) is not np.ndarray or x.dtype != SINGLE or not cache.length:
        return None
    if "numba" not in candidates(np.ndarray, x.shape[2] ** 2):
        return None
    free, rows = _known.setdefault(stack, []), len(x.data)  # what another thread uses is not among them
    known = free.pop() if free else None
    if known is None or known.is_outdated() or known.most_rows < rows <= MOST_ROWS:
        known = _Stepper(stack, FEWEST_ROWS if rows <= FEWEST_ROWS else MOST_ROWS)
    try:
        return None if known.program is None else known.run(x.data, cache, mask, positions, memory_mask)
    except Unusual:
        return None
    finally:
        free.append(known)


_known: WeakKeyDictionary[Module, list[_Stepper]] = WeakKeyDictionary()


class _Stepper:
    """The program of a stack, or None where it cannot have one, and the caches that it knows."""

    def __init__(self, stack: Any, rows: int):
        self.changes, self.most_rows = changes.count, rows
        self.stores: dict[int, Any] = {}  # by the first job that looks at it, the memory and slots it was told of
        self.masks: dict[str, Any] = {}
        self.program: StepProgram | None = None
        if stack.relative is None:
            with contextlib.suppress(Unusual):
                self.program = StepProgram(stack, rows)

    def is_outdated(self) -> bool:
        """Whether a module was changed, or a weight has other memory, since the program was written."""
        if changes.count != self.changes:
            return True
        return self.program is not None and any(tensor.data is not array for tensor, array in self.program.weights)

    def run(self, x: np.ndarray, cache: StackCache, mask: Any, positions: Any, memory_mask: Any) -> Tensor:
        """(B, 1, C) -> (B, 1, C)"""
        program, rows, past = self.program, len(x), cache.length
        assert program is not None
        caches = [block.own for block in cache.blocks]
        memories = [block.memory for block in cache.blocks] if program.memory else []
        size = memories[0].length if memories else 0
        if rows > program.most_rows or max(past + 1, size) > program.most_positions or x.shape[2] != program.width:
            raise Unusual
        for kept, length in [*((kept, past) for kept in caches), *((kept, size) for kept in memories)]:
            _check_cache(kept, length, rows)
        own, other = _plain_mask(mask, rows, past + 1), _plain_mask(memory_mask, rows, size)
        for rotary, room in program.turns:
            turns = rotary.rows(past, 1, positions, wrap(x)).data  # (1, 2 r), or (B, 1, 2 r)
            room[:rows, : turns.shape[-1]] = turns.reshape(-1, turns.shape[-1])
        self._show_masks("own", [jobs[-1] for jobs in program.own], own)
        self._show_masks("memory", [jobs[-1] for jobs in program.memory], other)
        for kept, jobs in zip(caches, program.own):
            kept.reserve(1)
            self._show_cache(kept, jobs)
        for kept, jobs in zip(memories, program.memory):
            self._show_cache(kept, jobs)
        program.x[:rows, : program.width] = x[:, 0]
        program.jobs.run(rows, past, size)
        return wrap(program.out[:rows, None, : program.width].copy())

    def _show_cache(self, kept: Any, jobs: tuple[int, ...]) -> None:
        """Let the jobs of a block know where its cache is, if that is not where it was."""
        assert self.program is not None
        told: tuple[Any, Any] = (kept.state, None) if isinstance(kept, StateCache) else (kept._stores[0], kept.slots)
        known = self.stores.get(jobs[0], (None, None))
        if known[0] is told[0] and known[1] is told[1]:
            return
        self.stores[jobs[0]] = told
        for job in jobs:
            if isinstance(kept, StateCache):
                self.program.jobs.remember(job, told[0].data)
            else:
                self.program.jobs.see(job, *[store.data for store in kept._stores], kept.slots)

    def _show_masks(self, name: str, jobs: list[int], mask: np.ndarray | None) -> None:
        assert self.program is not None
        if jobs and (mask is not None or self.masks.get(name) is not None):
            self.program.jobs.mask(jobs, mask)
            self.masks[name] = mask


def _check_cache(kept: Any, length: int, rows: int) -> None:
    """Refuse a cache of another length or batch, or whose memory jobs cannot look at."""
    is_state = isinstance(kept, StateCache)
    stores = [kept.state] if is_state else kept._stores if type(kept) is KVCache else []
    if kept.length != length or not stores or any(store is None for store in stores):
        raise Unusual
    if (len(kept.state) if is_state else kept.batch) != rows:
        raise Unusual
    for store in stores:
        data = store.data
        if type(data) is not np.ndarray or data.dtype != SINGLE or data.strides[-1] != SINGLE.itemsize:
            raise Unusual


def _plain_mask(mask: Any, rows: int, keys: int) -> np.ndarray | None:
    """A boolean mask (B or 1, 1, 1, S) as an array."""
    if mask is None:
        return None
    data = mask.data if isinstance(mask, Tensor) else mask
    if (
        type(data) is not np.ndarray
        or data.dtype != np.bool_
        or data.shape not in ((rows, 1, 1, keys), (1, 1, 1, keys))
    ):
        raise Unusual
    return data
