"""Dropout: of elements, of whole channels, and the forms that keep mean and variance for SELU."""

from __future__ import annotations

import math
from typing import Any

from ... import kernels
from ...engine.tensor import Tensor
from ...errors import ArgumentError, DtypeError, ShapeError
from ...kernels.definitions import _dropout_factors
from ...ops.elementwise.arithmetic import where
from ...random import Strided, next_key
from .declaration import TensorLike, function

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]

_SATURATED = -1.7580993408473766  # what SELU gives for very negative inputs: -scale · alpha


@function
def dropout(input: TensorLike, p: float = 0.5, training: bool = True) -> Tensor:
    """Each element 0 with probability `p`, the others divided by `1 - p`; the input itself unless `training`."""
    _check("dropout", input, p)
    if not training or not p:
        return input
    key, start = next_key(input.shape)
    if isinstance(start, Strided):  # which no kernel numbers
        return input * _dropout_factors(input, p=p, key=key, start=start)
    return kernels.dropout(input, p=p, key=key, start=start)


@function
def dropout1d(input: TensorLike, p: float = 0.5, training: bool = True) -> Tensor:
    """Each channel 0 with probability `p`, the others divided by `1 - p`: (N, C, L) or (C, L) -> the same."""
    return _channel_dropout("dropout1d", input, p, training, {3: 2, 2: 1})


@function
def dropout2d(input: TensorLike, p: float = 0.5, training: bool = True) -> Tensor:
    """Each channel 0 with probability `p`, the others divided by `1 - p`: (N, C, H, W), or (N, C, L) as PyTorch's -> the same."""
    return _channel_dropout("dropout2d", input, p, training, {4: 2, 3: 2})


@function
def dropout3d(input: TensorLike, p: float = 0.5, training: bool = True) -> Tensor:
    """Each channel 0 with probability `p`, the others divided by `1 - p`: (N, C, D, H, W) or (C, D, H, W) -> the same."""
    return _channel_dropout("dropout3d", input, p, training, {5: 2, 4: 1})


@function
def alpha_dropout(input: TensorLike, p: float = 0.5, training: bool = False) -> Tensor:
    """Each element with probability `p` what SELU saturates at, then all scaled so that mean and variance stay."""
    return _alpha_dropout("alpha_dropout", input, p, training, input.ndim)


@function
def feature_alpha_dropout(input: TensorLike, p: float = 0.5, training: bool = False) -> Tensor:
    """As `alpha_dropout`, of whole channels: (N, C, …) -> the same."""
    return _alpha_dropout("feature_alpha_dropout", input, p, training, 2)


def check_probability(name: str, p: float) -> None:
    """Refuse what is no probability of being dropped."""
    if not 0 <= p <= 1:
        raise ArgumentError(f"{name}: what is dropped is a probability", "0 to 1", p)


def _check(name: str, input: Any, p: float) -> None:
    check_probability(name, p)
    if input.dtype.kind != "f":
        raise DtypeError(
            f"{name}: only floating tensors can be scaled", "a floating dtype", input.dtype, "input.astype('float32')"
        )


def _factors(input: Any, p: float, leading: int) -> Any:
    """0 with probability `p`, else `1 / (1 - p)`, for each place on the leading axes: (N, C, …) -> (N, C, 1, …)."""
    key, start = next_key(input.shape[:leading])
    first = (*[slice(None)] * leading, *[slice(0, 1)] * (input.ndim - leading))
    return _dropout_factors(input[first], p=p, key=key, start=start)


def _channel_dropout(name: str, input: Any, p: float, training: bool, leading: dict[int, int]) -> Any:
    """`leading` has, by the number of axes, how many of them number the channels."""
    _check(name, input, p)
    if input.ndim not in leading:
        expected = " or ".join(f"{n} axes" for n in leading)
        raise ShapeError(f"{name}: the input does not fit", expected, input.shape)
    return input * _factors(input, p, leading[input.ndim]) if training and p else input


def _alpha_dropout(name: str, input: Any, p: float, training: bool, leading: int) -> Any:
    _check(name, input, p)
    if input.ndim < leading:
        raise ShapeError(f"{name}: the input does not fit", "(N, C, …)", input.shape)
    if not training or not p:
        return input
    factors = _factors(input, p, leading)
    if p == 1:
        return input * factors
    scale = 1 / math.sqrt((1 - p) * (1 + p * _SATURATED**2))
    return scale * (where(factors > 0, input, _SATURATED) - p * _SATURATED)
