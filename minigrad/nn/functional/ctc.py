"""Connectionist temporal classification: the loss of a label sequence over all its alignments with a longer input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...engine.tensor import Tensor
from ...errors import ArgumentError, DtypeError, IndexingError, ShapeError, describe
from ...kernels.registry import Kernel, Kernels
from ...ops.composite import Composite
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
    or 0 with `zero_infinity`. The sum is by the forward recursion in logarithms, made of ops: derivatives are exact. On
    NumPy's arrays, the first derivative is by the backward recursion.
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


def _recursion(log_probs, states, input_lengths, target_lengths):
    """The forward recursion: alpha[t, s] sums all beginnings of an alignment that are in state s at time t.

    log_probs (T, N, C), states (N, 2·S + 1), both lengths (N, 1) -> (N,)
    """
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


def _alignments(log_probs: Any, states: Any, input_lengths: Any, target_lengths: Any) -> tuple[Any, Any]:
    """The log-likelihoods (N,) by NumPy, and for the gradient the alphas (T, N, 2·S + 1), what is emitted, and where labels may end."""
    emitted = np.take_along_axis(log_probs, states[None], axis=2)  # (T, N, 2·S + 1)
    alphas = np.full(
        (len(emitted), *states.shape[:1], states.shape[1] + 2), -np.inf, emitted.dtype
    )  # two before the first
    alphas[0, :, 2:4] = emitted[0, :, :2]
    skip = _skips(states, emitted.dtype)
    for t in range(1, len(emitted)):
        before, now = alphas[t - 1], alphas[t, :, 2:]
        np.logaddexp(before[:, 2:], before[:, 1:-1], out=now)
        np.logaddexp(now, before[:, :-2] + skip, out=now)
        now += emitted[t]
        np.copyto(now, before[:, 2:], where=t >= input_lengths)
    places = np.arange(states.shape[1])
    is_end = (places == 2 * target_lengths) | (places == 2 * target_lengths - 1)
    found = np.logaddexp.reduce(np.where(is_end, alphas[-1, :, 2:], -np.inf), axis=1)
    nothing = np.where(target_lengths > 0, -np.inf, 0)[:, 0]
    found = np.where(input_lengths[:, 0] > 0, found, nothing).astype(emitted.dtype)
    return found, (found, alphas[:, :, 2:], emitted, is_end)


def _occupancies(g: Any, kept: Any, needs: Any, log_probs: Any, states: Any, input_lengths: Any, _: Any) -> Any:
    """The gradient: how likely it is that an alignment is in a state at a time, added up for each class."""
    found, alphas, emitted, is_end = kept
    steps, batch, count = alphas.shape
    betas = np.full((batch, count + 2), -np.inf, emitted.dtype)  # of all ends from a state on; two behind the last
    skip = np.pad(_skips(states, emitted.dtype), ((0, 0), (0, 2)), constant_values=-np.inf)[:, 2:]
    to_log_probs, rows = np.zeros_like(log_probs), np.arange(batch)
    weight = np.where(np.isfinite(found), g, 0)[:, None]  # what cannot be aligned has no gradient
    least = np.where(np.isfinite(found), found, 0)[:, None]
    for t in reversed(range(steps)):
        if t + 1 < steps:
            betas[:, :-2] += emitted[t + 1]
            now = np.logaddexp(betas[:, :-2], betas[:, 1:-1])
            np.logaddexp(now, betas[:, 2:] + skip, out=betas[:, :-2])
        np.copyto(betas[:, :-2], np.where(is_end, 0, -np.inf), where=t >= input_lengths - 1)
        likely = np.where(t < input_lengths, np.exp(alphas[t] + betas[:, :-2] - least), 0) * weight  # (N, 2·S + 1)
        np.add.at(to_log_probs[t], (rows[:, None], states), likely)
    return to_log_probs, None, None, None


def _skips(states: Any, dtype: Any) -> Any:
    """0 where the label before may be followed without a blank, -inf elsewhere: (N, 2·S + 1)"""
    allowed = np.pad(states[:, 2:] != states[:, :-2], ((0, 0), (min(2, states.shape[1]), 0)))
    return np.where(allowed, 0, -np.inf).astype(dtype)


def _are_floating(log_probs: Any, *others: Any) -> bool:
    return log_probs.dtype.char in "fd"


_log_likelihood = Composite(_recursion)
_log_likelihood.kernels = Kernels(numpy=Kernel(_alignments, _occupancies, _are_floating))


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
