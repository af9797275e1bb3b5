"""Losses that ask for a margin: between scores, between distances, between classes. Formulas and defaults are PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...engine.tensor import Tensor
from ...errors import ArgumentError, DtypeError, IndexingError, ShapeError, describe
from ...ops.creation import astype
from ...ops.elementwise.activations import _softplus, relu
from ...ops.elementwise.arithmetic import clip, minimum, where
from ...ops.elementwise.unary import rsqrt, square
from ...ops.indexing.along import one_hot, take_along_axis
from ...ops.layout.shape import expand_dims
from ...ops.neural.softmax import _logistic_loss
from ...ops.reductions.cumulative import cumprod
from ...ops.reductions.reduction import any as any_
from ...ops.reductions.reduction import sum as sum_
from ...tracer import is_compiling
from .declaration import TensorLike, function
from .losses import check_class_weights, check_labels, check_pair, check_reduction, reduce
from .norms import pairwise_distance

__all__ = [
    "cosine_embedding_loss",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]


@function
def hinge_embedding_loss(
    input: TensorLike, target: TensorLike, margin: float = 1.0, *, reduction: str = "mean"
) -> Tensor:
    """Of distances: `input` where the target is 1, `max(0, margin - input)` where it is -1."""
    check_reduction("hinge_embedding_loss", reduction)
    target = check_pair("hinge_embedding_loss", input, target)
    near, far = where(target != -1, input, 0), where(target != 1, clip(margin - input, 0), 0)
    return reduce(near + far, reduction)


@function
def soft_margin_loss(input: TensorLike, target: TensorLike, *, reduction: str = "mean") -> Tensor:
    """`log(1 + exp(-target · input))`, for targets 1 and -1."""
    check_reduction("soft_margin_loss", reduction)
    return reduce(_softplus(-check_pair("soft_margin_loss", input, target) * input), reduction)


@function
def margin_ranking_loss(
    input1: TensorLike, input2: TensorLike, target: TensorLike, margin: float = 0.0, *, reduction: str = "mean"
) -> Tensor:
    """`max(0, -target · (input1 - input2) + margin)`: target 1 asks for the first score to be higher, -1 for the second."""
    name = "margin_ranking_loss"
    check_reduction(name, reduction)
    target = check_pair(name, input1, target)
    return reduce(clip(margin - target * (input1 - check_pair(name, input1, input2)), 0), reduction)


@function
def cosine_embedding_loss(
    input1: TensorLike, input2: TensorLike, target: TensorLike, margin: float = 0.0, *, reduction: str = "mean"
) -> Tensor:
    """`1 - cos` where the target is 1, `max(0, cos - margin)` where it is -1: (N, D), (N, D), (N,) or (D,), (D,), ()."""
    name = "cosine_embedding_loss"
    check_reduction(name, reduction)
    input2 = check_pair(name, input1, input2)
    if input1.ndim not in (1, 2) or target.shape != input1.shape[:-1]:
        got = f"{input1.shape}, {input2.shape} and target {target.shape}"
        raise ShapeError(f"{name}: inputs and target do not fit", "(N, D), (N, D) and target (N,)", got)
    squares = (sum_(square(input1), axis=-1) + 1e-12) * (sum_(square(input2), axis=-1) + 1e-12)
    cosine = sum_(input1 * input2, axis=-1) * rsqrt(squares)
    losses = where(target == 1, 1 - cosine, 0) + where(target == -1, clip(cosine - margin, 0), 0)
    return reduce(losses, reduction)


@function
def triplet_margin_loss(
    anchor: TensorLike,
    positive: TensorLike,
    negative: TensorLike,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    *,
    reduction: str = "mean",
) -> Tensor:
    """`max(0, margin + |anchor - positive| - |anchor - negative|)` with the p-norm: (N, D) three times -> (N,), reduced.

    With `swap` the negative's distance is the smaller one of those to the anchor and to the positive.
    """

    def distance(x: Any, y: Any) -> Any:
        return pairwise_distance(x, y, p, eps)

    return _triplet("triplet_margin_loss", anchor, positive, negative, distance, margin, swap, reduction)


@function
def triplet_margin_with_distance_loss(
    anchor: TensorLike,
    positive: TensorLike,
    negative: TensorLike,
    *,
    distance_function: Callable[[Any, Any], Any] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with a distance of your own, `pairwise_distance` unless given."""
    distance = pairwise_distance if distance_function is None else distance_function
    return _triplet("triplet_margin_with_distance_loss", anchor, positive, negative, distance, margin, swap, reduction)


def _triplet(
    name: str, anchor: Any, positive: Any, negative: Any, distance: Any, margin: float, swap: bool, reduction: str
) -> Any:
    check_reduction(name, reduction)
    if not margin > 0:
        raise ArgumentError(f"{name}: the margin must be positive", "a number above 0", margin)
    positive, negative = check_pair(name, anchor, positive), check_pair(name, anchor, negative)
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return reduce(clip(margin + near - far, 0), reduction)


@function
def multi_margin_loss(
    input: TensorLike,
    target: TensorLike,
    p: int = 1,
    margin: float = 1.0,
    weight: TensorLike | None = None,
    *,
    reduction: str = "mean",
) -> Tensor:
    """`Σ max(0, margin - input[label] + input[j])^p / C` over the other classes j: (N, C), (N,) or (C,), () -> (N,), reduced."""
    name = "multi_margin_loss"
    check_reduction(name, reduction)
    if p not in (1, 2):
        raise ArgumentError(f"{name}: this power is not offered", "p=1 or p=2", p)
    if input.ndim not in (1, 2):
        raise ShapeError(f"{name}: the input does not fit", "(N, C) or (C,)", input.shape)
    classes = input.shape[-1]
    check_class_weights(name, weight, classes)
    labels, _ = check_labels(name, input, target, input.ndim - 1)
    own = expand_dims(labels, axis=-1)
    short = relu(margin - take_along_axis(input, indices=own, axis=-1) + input)  # (N, C)
    is_own = one_hot(labels, num_classes=classes, dtype="bool")
    losses = where(is_own, 0, short if p == 1 else square(short))
    losses = losses if weight is None else losses * expand_dims(weight[labels], axis=-1)
    return reduce(sum_(losses, axis=-1) / classes, reduction)


@function
def multilabel_margin_loss(input: TensorLike, target: TensorLike, *, reduction: str = "mean") -> Tensor:
    """`Σ max(0, 1 - input[label] + input[j]) / C` over the labels and the classes j that are none: (N, C) or (C,) -> (N,), reduced.

    `target` has the shape of the input: the labels of an example, then -1 and whatever.
    """
    name = "multilabel_margin_loss"
    check_reduction(name, reduction)
    labels, is_label = _label_lists(name, input, target)
    classes = input.shape[-1]
    chosen = one_hot(labels, num_classes=classes, dtype="bool") & expand_dims(is_label, axis=-1)
    is_other = ~any_(chosen, axis=-2, keepdims=True)  # (…, 1, C)
    scores = expand_dims(take_along_axis(input, indices=labels, axis=-1), axis=-1)  # (…, C, 1)
    short = relu(1 - scores + expand_dims(input, axis=-2))  # (…, C labels, C classes)
    losses = where(is_other & expand_dims(is_label, axis=-1), short, 0)
    return reduce(sum_(losses, axis=(-2, -1)) / classes, reduction)


def _label_lists(name: str, input: Any, target: Any) -> tuple[Any, Any]:
    """The labels, 0 behind the first -1 of an example, and which ones count."""
    if input.ndim not in (1, 2) or target.shape != input.shape:
        got = f"input {input.shape} and target {target.shape}"
        raise ShapeError(f"{name}: input and target do not fit", "equal shapes, (N, C) or (C,)", got)
    if target.dtype.kind not in "iu":
        fix = "target.astype('int64')"
        raise DtypeError(f"{name}: labels must be whole numbers", "an integer dtype", describe(target), fix)
    classes = input.shape[-1]
    if not is_compiling() and (wrong := (target < -1) | (target >= classes)).any():
        raise IndexingError(f"{name}: a label is out of range", f"-1 to {classes - 1}", int(target[wrong][0]))
    is_label = cumprod(astype(target >= 0, dtype="int64"), axis=-1) > 0
    return where(is_label, target, 0), is_label


@function
def multilabel_soft_margin_loss(
    input: TensorLike, target: TensorLike, weight: TensorLike | None = None, *, reduction: str = "mean"
) -> Tensor:
    """The binary cross entropy of logits, averaged over the classes on the last axis: (…, C) -> (…), reduced."""
    name = "multilabel_soft_margin_loss"
    check_reduction(name, reduction)
    losses = _logistic_loss(input, check_pair(name, input, target))
    losses = losses if weight is None else losses * weight
    return reduce(sum_(losses, axis=-1) / input.shape[-1], reduction)
