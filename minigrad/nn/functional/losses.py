"""Loss functions: how far a prediction is from its target. Formulas, defaults and results are PyTorch's."""

from __future__ import annotations

import math
from typing import Any

from ... import kernels
from ...engine.tensor import Tensor
from ...errors import ArgumentError, DtypeError, IndexingError, ShapeError, describe, nearest
from ...ops.creation import astype
from ...ops.elementwise.activations import _softplus
from ...ops.elementwise.arithmetic import abs_, clip, where
from ...ops.elementwise.unary import exp, log, square
from ...ops.indexing.along import take_along_axis
from ...ops.layout.shape import expand_dims, moveaxis, reshape, squeeze
from ...ops.neural.softmax import _logistic_loss, log_softmax
from ...ops.reductions.reduction import mean
from ...ops.reductions.reduction import sum as sum_
from ...tracer import is_compiling
from .declaration import TensorLike, function

__all__ = [
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "nll_loss",
    "smooth_l1_loss",
]

REDUCTIONS = ("mean", "sum", "none")
NO_LABEL = 2**62  # a compiled function refuses it, as it refuses every index that is out of range


def check_reduction(name: str, reduction: str, known: tuple[str, ...] = REDUCTIONS) -> None:
    """Refuse a reduction that is not offered."""
    if reduction not in known:
        raise ArgumentError(
            f"{name}: unknown reduction {reduction!r}", " or ".join(map(repr, known)), fix=nearest(reduction, known)
        )


def reduce(losses: Any, reduction: str) -> Any:
    """The losses as they are, their mean or their sum."""
    return losses if reduction == "none" else mean(losses) if reduction == "mean" else sum_(losses)


def check_pair(name: str, input: Any, target: Any) -> Any:
    """The target of a loss that compares element by element, floating; a shape that would only broadcast is refused."""
    if input.shape != target.shape:
        alike = math.prod(input.shape) == math.prod(target.shape)
        raise ShapeError(
            f"{name}: input and target have different shapes",
            "equal shapes, since broadcasting would compare each element with others than its own",
            f"input {input.shape} and target {target.shape}",
            f"target.reshape({input.shape}), or squeeze the axis of size 1 away"
            if alike
            else "check which axes the model's output has",
        )
    return (
        target
        if target.dtype.kind == "f"
        else astype(target, dtype=input.dtype if input.dtype.kind == "f" else "float64")
    )


@function
def mse_loss(
    input: TensorLike, target: TensorLike, *, reduction: str = "mean", weight: TensorLike | None = None
) -> Tensor:
    """The squared error, `(input - target)²`; with `weight`, of the input's shape, the mean is a weighted one.

    >>> import minigrad as mg
    >>> mg.nn.functional.mse_loss(mg.tensor([1.0, 2.0]), mg.tensor([1.0, 4.0])).item()
    2.0
    """
    check_reduction("mse_loss", reduction)
    return _weighted("mse_loss", square(input - check_pair("mse_loss", input, target)), weight, reduction)


@function
def l1_loss(
    input: TensorLike, target: TensorLike, *, reduction: str = "mean", weight: TensorLike | None = None
) -> Tensor:
    """The absolute error, `|input - target|`; with `weight`, of the input's shape, the mean is a weighted one."""
    check_reduction("l1_loss", reduction)
    return _weighted("l1_loss", abs_(input - check_pair("l1_loss", input, target)), weight, reduction)


@function
def huber_loss(
    input: TensorLike,
    target: TensorLike,
    reduction: str = "mean",
    delta: float = 1.0,
    *,
    weight: TensorLike | None = None,
) -> Tensor:
    """With `d = input - target`: `d² / 2` where `|d| <= delta`, beyond that the straight line `delta (|d| - delta / 2)`.

    `weight`, of the input's shape, scales the losses; their mean is a plain one, as PyTorch's.
    """
    check_reduction("huber_loss", reduction)
    if not delta > 0:
        raise ArgumentError("huber_loss: delta must be positive", "a number above 0", delta)
    losses = _huber(input - check_pair("huber_loss", input, target), delta)
    return reduce(losses if weight is None else losses * check_pair("huber_loss", input, weight), reduction)


@function
def smooth_l1_loss(input: TensorLike, target: TensorLike, *, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """With `d = input - target`: `d² / (2 beta)` where `|d| < beta`, beyond that `|d| - beta / 2`; `beta=0` is `l1_loss`."""
    check_reduction("smooth_l1_loss", reduction)
    if not beta >= 0:
        raise ArgumentError("smooth_l1_loss: beta is a distance", "0 or more", beta)
    distance = input - check_pair("smooth_l1_loss", input, target)
    return reduce(_huber(distance, beta) / beta if beta else abs_(distance), reduction)


def _huber(distance: Any, delta: float) -> Any:
    near = clip(distance, -delta, delta)
    return near * (distance - near / 2)


def _weighted(name: str, losses: Any, weight: Any, reduction: str) -> Any:
    """The losses times their weights, reduced; their mean is a weighted one."""
    if weight is None:
        return reduce(losses, reduction)
    losses = losses * check_pair(name, losses, weight)
    return sum_(losses) / sum_(weight) if reduction == "mean" else reduce(losses, reduction)


@function
def kl_div(input: TensorLike, target: TensorLike, *, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """The divergence `target (log(target) - input)` of log-probabilities `input` from probabilities `target`.

    With `log_target` the target holds log-probabilities too. "mean" averages over all elements, as PyTorch's; the
    divergence of mathematics, summed over classes and averaged over examples, is "batchmean".
    """
    check_reduction("kl_div", reduction, (*REDUCTIONS, "batchmean"))
    target = check_pair("kl_div", input, target)
    if log_target:
        losses = exp(target) * (target - input)
    else:
        losses = target * (log(where(target == 0, 1, target)) - input)
    if reduction == "batchmean":
        return sum_(losses) / input.shape[0] if input.ndim else losses
    return reduce(losses, reduction)


@function
def binary_cross_entropy_with_logits(
    input: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    *,
    reduction: str = "mean",
    pos_weight: TensorLike | None = None,
) -> Tensor:
    """`-target log(s) - (1 - target) log(1 - s)` with `s = sigmoid(input)`, without overflow.

    `weight` scales the losses, `pos_weight` only the part of `target`; both broadcast.

    >>> import minigrad as mg
    >>> round(mg.nn.functional.binary_cross_entropy_with_logits(mg.tensor([0.0]), mg.tensor([1.0])).item(), 4)
    0.6931
    """
    check_reduction("binary_cross_entropy_with_logits", reduction)
    target = check_pair("binary_cross_entropy_with_logits", input, target)
    losses = _logistic_loss(input, target)
    if pos_weight is not None:
        losses = losses + (pos_weight - 1) * target * _softplus(-input)
    return reduce(losses if weight is None else losses * weight, reduction)


def _class_axis(name: str, input: Any) -> int:
    if input.ndim == 0:
        raise ShapeError(
            f"{name}: the input has no axis for the classes",
            "(classes,), (batch, classes) or (batch, classes, …)",
            "shape ()",
        )
    return min(input.ndim - 1, 1)


def check_labels(name: str, input: Any, target: Any, axis: int, ignore_index: int = -100) -> tuple[Any, Any]:
    """The labels, and which ones are not ignored."""
    classes, wanted = input.shape[axis], input.shape[:axis] + input.shape[axis + 1 :]
    if target.shape != wanted:
        expected = f"{wanted}, the shape of input {input.shape} without the classes on axis {axis}"
        raise ShapeError(
            f"{name}: the labels do not fit the input",
            expected,
            describe(target),
            f"target.reshape({wanted})"
            if target.size == math.prod(wanted)
            else "the classes stand on axis 1, or on the only axis",
        )
    if target.dtype.kind not in "iu":
        raise DtypeError(
            f"{name}: class labels must be whole numbers",
            "an integer dtype",
            describe(target),
            "target.astype('int64')",
        )
    labels = astype(target, dtype="int64")
    valid = labels != ignore_index
    if is_compiling():
        return where(valid & (labels < 0), NO_LABEL, labels), valid
    wrong = valid & ((labels < 0) | (labels >= classes))
    if wrong.any():
        expected = f"0 to {classes - 1}, for {classes} classes, or ignore_index={ignore_index}"
        raise IndexingError(f"{name}: a label is out of range", expected, int(labels[wrong][0]))
    return labels, valid


def _count(valid: Any, dtype: Any) -> Any:
    """How many labels count; NaN if none do."""
    return astype(sum_(valid), dtype=dtype) if is_compiling() else int(valid.sum()) or math.nan


def check_class_weights(name: str, weight: Any, classes: int) -> None:
    """Refuse weights that are not one for each class."""
    if weight is not None and weight.shape != (classes,):
        raise ShapeError(f"{name}: one weight for each class is needed", (classes,), weight.shape)


def _along_classes(weight: Any, ndim: int, axis: int) -> Any:
    return reshape(weight, shape=tuple([-1 if i == axis else 1 for i in range(ndim)]))


def _label_losses(
    name: str, scores: Any, target: Any, weight: Any, ignore_index: int, reduction: str, smoothing: float = 0.0
) -> Any:
    """The losses of log-probabilities against labels, reduced; the mean is weighted and leaves the ignored out."""
    axis = _class_axis(name, scores)
    classes = scores.shape[axis]
    labels, valid = check_labels(name, scores, target, axis, ignore_index)
    labels = where(valid, labels, 0)
    losses = -squeeze(take_along_axis(scores, indices=expand_dims(labels, axis=axis), axis=axis), axis=axis)
    weights = None if weight is None else weight[labels]
    losses = losses if weights is None else losses * weights
    if smoothing:
        everywhere = scores if weight is None else scores * _along_classes(weight, scores.ndim, axis)
        losses = (1 - smoothing) * losses - (smoothing / classes) * sum_(everywhere, axis=axis)
    losses = where(valid, losses, 0)
    if reduction != "mean":
        return reduce(losses, reduction)
    if weights is None:
        return sum_(losses) / _count(valid, losses.dtype)
    return sum_(losses) / sum_(where(valid, weights, 0))


@function
def nll_loss(
    input: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """`-input[label]`, the negative log-likelihood of class labels under log-probabilities.

    `input` is (classes,), (batch, classes) or (batch, classes, …); `target` has its shape without the classes.
    Labels equal to `ignore_index` count nothing; `weight` holds one weight for each class.
    """
    check_reduction("nll_loss", reduction)
    check_class_weights("nll_loss", weight, input.shape[_class_axis("nll_loss", input)])
    return _label_losses("nll_loss", input, target, weight, ignore_index, reduction)


@function
def cross_entropy(
    input: TensorLike,
    target: TensorLike,
    weight: TensorLike | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """`-log(softmax(input))` at the target: class labels, or probabilities of the shape of `input`.

    `input` is (classes,), (batch, classes) or (batch, classes, …). The mean over labels is weighted by the class
    weights and leaves ignored labels out; if all are ignored it is NaN, as PyTorch's.

    >>> import minigrad as mg
    >>> round(mg.nn.functional.cross_entropy(mg.tensor([[0.0, 0.0]]), mg.tensor([1])).item(), 4)
    0.6931
    """
    name = "cross_entropy"
    check_reduction(name, reduction)
    axis = _class_axis(name, input)
    classes = input.shape[axis]
    check_class_weights(name, weight, classes)
    if not 0 <= label_smoothing <= 1:
        raise ArgumentError(f"{name}: label_smoothing is a share", "0 to 1", label_smoothing)
    soft = _are_probabilities(input, target)
    if not soft and weight is None:
        return _fused_cross_entropy(input, target, axis, ignore_index, reduction, label_smoothing)
    scores = log_softmax(input, axis=axis)
    if not soft:
        return _label_losses(name, scores, target, weight, ignore_index, reduction, label_smoothing)
    target = target * (1 - label_smoothing) + label_smoothing / classes if label_smoothing else target
    terms = scores * target if weight is None else scores * target * _along_classes(weight, input.ndim, axis)
    return reduce(-sum_(terms, axis=axis), reduction)


def _fused_cross_entropy(
    input: Any, target: Any, axis: int, ignore_index: int, reduction: str, smoothing: float
) -> Any:
    """Of labels, without class weights: straight from the logits, brought into the form (N, classes)."""
    labels, valid = check_labels("cross_entropy", input, target, axis, ignore_index)
    logits = reshape(moveaxis(input, source=axis, destination=-1), shape=(-1, input.shape[axis]))
    labels = reshape(labels, shape=(-1,))
    losses = kernels.cross_entropy(logits, labels, ignore_index=ignore_index, smoothing=smoothing)
    if reduction == "mean":
        return sum_(losses) / _count(valid, losses.dtype)
    return sum_(losses) if reduction == "sum" else reshape(losses, shape=target.shape)


def _are_probabilities(input: Any, target: Any) -> bool:
    """Whether the target of a cross entropy holds probabilities rather than labels; what is neither is refused."""
    same, floating = target.shape == input.shape, target.dtype.kind == "f"
    if same and not floating:
        raise DtypeError(
            "cross_entropy: a target of the input's shape holds probabilities",
            "a floating dtype",
            describe(target),
            "target.astype(input.dtype) if it is one-hot, or give labels without the axis of classes",
        )
    if floating and not same and target.ndim >= input.ndim:
        raise ShapeError(
            "cross_entropy: probabilities need the shape of the input",
            input.shape,
            describe(target),
            "or give whole-number labels",
        )
    return same
