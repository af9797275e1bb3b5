"""Connectionist temporal classification: the loss of a label sequence over all its alignments with a longer input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...engine.tensor import Tensor
from ...errors import ArgumentError, DtypeError, IndexingError, ShapeError, describe
from ...ops.creation import astype
from ...ops.elementwise.arithmetic import clip, where
from ...ops.indexing.along import take_along_axis
from ...ops.layout.joining import concatenate, stack
from ...ops.layout.padding import pad
from ...ops.layout.shape import broadcast_to, expand_dims, reshape
from ...ops.reductions.reduction import logsumexp
from ...tracer import is_compiling
from .declaration import TensorLike, constant_like, function
from .losses import check_reduction, reduce

__all__ = ["ctc_loss"]


@function
def ctc_loss(
    log_probs: TensorLike,
    targets: TensorLike,
    input_lengths: TensorLike,
    target_lengths: TensorLike,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """`-log Σ p(alignment)` over all ways to stretch the labels to the input, with blanks between them.

    log_probs (T, N, C), targets (N, S) or all labels in a row, lengths (N,) -> (N,), reduced; without N for a single
    example. "mean" divides each loss by the number of labels first. An example that cannot be aligned has the loss inf,
    or 0 with `zero_infinity`. The sum is by the forward recursion in logarithms, made of ops: derivatives are exact.
    """
    check_reduction("ctc_loss", reduction)
    single = log_probs.ndim == 2
    if single:
        log_probs, targets = expand_dims(log_probs, axis=1), reshape(targets, shape=(1, -1))
    batch = log_probs.shape[1] if log_probs.ndim == 3 else 1
    input_lengths, target_lengths = (reshape(n, shape=(-1, 1)) for n in (input_lengths, target_lengths))  # (N, 1)
    _check(log_probs, input_lengths, target_lengths, blank, batch)
    labels = _padded(targets, target_lengths, batch, log_probs.shape[2])  # (N, S)
    losses = -_log_likelihood(log_probs, _with_blanks(labels, target_lengths, blank), input_lengths, target_lengths)
    if zero_infinity:
        losses = where(losses == math.inf, 0, losses)
    if reduction == "mean":
        losses = losses / astype(clip(reshape(target_lengths, shape=(-1,)), 1), dtype=losses.dtype)
    return reshape(losses, shape=()) if single and reduction == "none" else reduce(losses, reduction)


def _with_blanks(labels: Any, target_lengths: Any, blank: int) -> Any:
    """A blank before, between and behind the labels: (N, S) -> (N, 2·S + 1)."""
    pairs = reshape(stack([labels * 0 + blank, labels], axis=2), shape=(labels.shape[0], 2 * labels.shape[1]))
    return concatenate([pairs, target_lengths * 0 + blank], axis=1)


def _log_likelihood(log_probs: Any, states: Any, input_lengths: Any, target_lengths: Any) -> Any:
    """The forward recursion: alpha[t, s] sums all beginnings of an alignment that are in state s at time t. -> (N,)"""
    steps, batch, _ = log_probs.shape
    count = states.shape[1]
    everywhere = broadcast_to(expand_dims(states, axis=0), shape=(steps, batch, count))
    emitted = take_along_axis(log_probs, indices=everywhere, axis=2)  # (T, N, 2·S + 1)
    may_skip = pad(states[:, 2:] != states[:, :-2], pad_width=((0, 0), (min(2, count), 0)))
    alpha = pad(emitted[0, :, :2], pad_width=((0, 0), (0, max(count - 2, 0))), constant_values=-math.inf)
    for t in range(1, steps):
        stay, step = alpha, _shifted(alpha, 1)
        skip = where(may_skip, _shifted(alpha, 2), -math.inf)
        alpha = where(t < input_lengths, logsumexp(stack([stay, step, skip]), axis=0) + emitted[t], alpha)
    last = take_along_axis(alpha, indices=2 * target_lengths, axis=1)
    before = take_along_axis(alpha, indices=clip(2 * target_lengths - 1, 0), axis=1)
    ends = concatenate([last, where(target_lengths > 0, before, -math.inf)], axis=1)
    nothing = where(target_lengths > 0, -math.inf, astype(target_lengths * 0, dtype=alpha.dtype))
    found = where(input_lengths > 0, logsumexp(ends, axis=1, keepdims=True), nothing)
    return reshape(found, shape=(-1,))  # where the input is empty, only no labels align with it


def _shifted(alpha: Any, by: int) -> Any:
    """The states, each in the place of one further on."""
    return pad(alpha, pad_width=((0, 0), (by, 0)), constant_values=-math.inf)[:, : alpha.shape[1]]


def _check(log_probs: Any, input_lengths: Any, target_lengths: Any, blank: int, batch: int) -> None:
    if log_probs.ndim != 3 or not log_probs.shape[0]:
        raise ShapeError("ctc_loss: the log-probabilities do not fit", "(T, N, C) or (T, C)", log_probs.shape)
    steps, _, classes = log_probs.shape
    for name, lengths in {"input_lengths": input_lengths, "target_lengths": target_lengths}.items():
        if lengths.dtype.kind not in "iu" or lengths.shape != (batch, 1):
            expected = f"{batch} whole numbers"
            raise ShapeError(f"ctc_loss: {name} does not fit", expected, f"{lengths.size} of {lengths.dtype}")
    if not 0 <= blank < classes:
        raise IndexingError("ctc_loss: the blank is no class", f"0 to {classes - 1}", blank)
    if not is_compiling() and ((input_lengths < 0) | (input_lengths > steps)).any():
        raise ArgumentError("ctc_loss: an input length is out of range", f"0 to {steps}", input_lengths.tolist())


def _padded(targets: Any, lengths: Any, batch: int, classes: int) -> Any:
    """The labels as (N, S); those in a row are cut by their lengths. What is behind an example's labels has no influence."""
    if targets.dtype.kind not in "iu":
        fix = "targets.astype('int64')"
        raise DtypeError("ctc_loss: labels must be whole numbers", "an integer dtype", describe(targets), fix)
    if targets.ndim == 1:
        counts = [int(n) for n in lengths[:, 0]]
        if min(counts, default=0) < 0 or sum(counts) != targets.size:
            raise ShapeError("ctc_loss: the labels do not fit", f"{sum(counts)}, the sum of all lengths", targets.shape)
        starts = np.cumsum([0, *counts[:-1]])[:, None]
        places = starts + np.arange(max(counts))
        targets = targets[np.minimum(places, max(targets.size - 1, 0))] if targets.size else targets[None]
    if targets.ndim != 2 or targets.shape[0] != batch:
        raise ShapeError("ctc_loss: the labels do not fit", f"({batch}, S), or all in a row", targets.shape)
    if not is_compiling():
        if ((lengths < 0) | (lengths > targets.shape[1])).any():
            raise ArgumentError(
                "ctc_loss: a target length is out of range", f"0 to {targets.shape[1]}", lengths.tolist()
            )
        wrong = ((targets < 0) | (targets >= classes)) & (constant_like(np.arange(targets.shape[1]), targets) < lengths)
        if wrong.any():
            raise IndexingError("ctc_loss: a label is out of range", f"0 to {classes - 1}", int(targets[wrong][0]))
    return clip(astype(targets, dtype="int64"), 0, classes - 1)  # padding may be anything
