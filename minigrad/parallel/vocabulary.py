"""The end of a language model whose words are divided among tensor-parallel ranks, and which the last stage computes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import functions as f
from ..engine.backend import backend_of
from ..engine.tensor import Tensor, wrap
from ..nn import VocabularyHead
from ..nn import functional as F
from ..ops.creation import tensor, zeros
from .collectives import all_gather, all_reduce, replicated
from .mesh import Mesh, part_edges
from .pass_state import PassState
from .patches import placeholder

__all__ = ["ParallelVocabulary"]


class ParallelVocabulary(VocabularyHead):
    """Each rank scores its own words; the softmax needs the greatest score and the sums of all ranks, not the scores."""

    def __init__(self, mesh: Mesh, pass_state: PassState, words: int):
        super().__init__()
        self.mesh, self.pass_state, self.words = mesh, pass_state, words
        self.group = mesh.tensor_group
        self.start, self.stop = part_edges(words, mesh.layout.tensor)[mesh.tensor]

    def forward(self, input: Any, weight: Any, bias: Any = None) -> Tensor:
        """The logits of all words on every rank: (…, C) -> (…, V). The last stage sends them to the others."""
        made = self.scores(input, weight, bias)
        if self.pass_state.active and self.group.size > 1:
            made = all_gather(made, axis=-1, group=self.group, whole=self.words, alike=True)
        if self.mesh.layout.pipeline > 1:
            known = made.data.copy() if self.pass_state.active else self._empty(made)
            self.mesh.pipeline_group.broadcast_arrays([known], root=self.mesh.layout.pipeline - 1)
            made = made if self.pass_state.active else wrap(known)
            self.pass_state.begin()
        return made

    def _empty(self, like: Tensor) -> Any:
        return zeros((*like.shape[:-1], self.words), dtype=like.dtype, device=like.device).data

    def scores(self, input: Any, weight: Any, bias: Any = None) -> Tensor:
        """The logits of this rank's words: (…, C) -> (…, V/t)."""
        if not self.pass_state.active:
            return placeholder((*input.shape[:-1], self.stop - self.start), input.dtype, input.device)
        if self.group.size == 1:
            return F.linear(input, weight, bias)
        return F.linear(replicated(input, group=self.group), weight, bias)

    def cross_entropy(
        self, scores: Tensor, targets: Any, *, ignore_index: int = -100, label_smoothing: float = 0.0
    ) -> Tensor:
        """The summed cross-entropy of scores (…, V/t) with targets (…)."""
        if not self.pass_state.active:
            return placeholder((), scores.dtype, scores.device)
        options: dict[str, Any] = {"ignore_index": ignore_index, "label_smoothing": label_smoothing}
        if self.group.size == 1:
            return super().cross_entropy(scores, targets, **options)
        labels = tensor(targets, device=scores.device).reshape(-1)
        counts = labels != ignore_index
        flat = f.where(counts.reshape(-1, 1), scores.reshape(-1, scores.shape[-1]), 0.0)  # (…, V/t) -> (N, V/t)
        flat = flat - self._greatest(flat).reshape(-1, 1)
        is_here = counts & (labels >= self.start) & (labels < self.stop)
        places = f.where(is_here, labels - self.start, 0).reshape(-1, 1)
        picked = f.take_along_axis(flat, places, axis=-1).reshape(-1) * is_here.astype(flat.dtype)
        parts = [flat.exp().sum(axis=-1), picked]
        if label_smoothing:
            parts.append(flat.sum(axis=-1))
        sums = all_reduce(f.stack(parts), group=self.group, alike=True)  # (2 or 3, N)
        wanted = sums[1]
        if label_smoothing:
            wanted = (1 - label_smoothing) * wanted + label_smoothing / self.words * sums[2]
        return f.where(counts, sums[0].log() - wanted, 0.0).sum()

    def _greatest(self, scores: Tensor) -> Tensor:
        """The greatest score of each row on any rank, as a constant: (N, V/t) -> (N,)."""
        own = scores.data.max(axis=-1)
        return wrap(self.group.all_gather_array(own, [own.size] * self.group.size).reshape(-1, own.size).max(axis=0))

    def right(self, scores: Tensor, targets: Tensor) -> Tensor:
        """How many of the targets (N,) have the greatest score of all ranks: (N, V/t) -> ()."""
        if not self.pass_state.active:
            return zeros((), dtype="int64", device=scores.device)
        if self.group.size == 1:
            return super().right(scores, targets)
        xp, best = backend_of(scores.data).xp, scores.data.argmax(axis=-1)
        tops = xp.take_along_axis(scores.data, best[:, None], axis=-1)[:, 0]
        both = xp.stack([tops, (best + self.start).astype(tops.dtype)], axis=-1)  # (N, 2)
        every = self.group.all_gather_array(both, [both.size] * self.group.size).reshape(-1, *both.shape)  # (t, N, 2)
        chosen = xp.take_along_axis(every[..., 1], every[..., 0].argmax(axis=0)[None], axis=0)[0]
        return (wrap(chosen.astype(np.int64)) == targets).sum()
