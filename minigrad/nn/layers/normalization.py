"""Normalisation: over the last axes, over the batch, over groups of channels, over each channel of an example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...engine.modes import no_grad
from ...engine.tensor import Tensor
from ...errors import ArgumentError, ShapeError
from ...ops.creation import ones, tensor, zeros
from .. import functional as F
from ..module import Module, Parameter
from .linear import check_sizes

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LocalResponseNorm",
    "RMSNorm",
]


def _sizes(layer: Module, normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    sizes = (normalized_shape,) if hasattr(normalized_shape, "__index__") else tuple(normalized_shape)
    if not sizes:
        raise ArgumentError(f"{type(layer).__name__}: normalized_shape is empty", "at least one size", "()")
    for size in sizes:
        check_sizes(layer, normalized_shape=size)
    return sizes  # type: ignore[return-value]


class LayerNorm(Module):
    """`(x - mean) / sqrt(var + eps) * weight + bias` over the last axes, those of `normalized_shape`.

    >>> import minigrad as mg
    >>> mg.nn.LayerNorm(2)(mg.tensor([[1.0, 3.0]])).tolist()
    [[-0.9999949932098389, 0.9999949932098389]]
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: Any = None,
        device: str | None = None,
    ):
        self.normalized_shape, self.eps = _sizes(self, normalized_shape), eps
        affine = elementwise_affine
        self.weight = Parameter(ones(self.normalized_shape, dtype=dtype, device=device)) if affine else None
        self.bias = Parameter(zeros(self.normalized_shape, dtype=dtype, device=device)) if affine and bias else None

    def forward(self, input: Any) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}"


class RMSNorm(Module):
    """`x / sqrt(mean(x²) + eps) * weight` over the last axes; eps is the dtype's rounding unit unless given."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        dtype: Any = None,
        device: str | None = None,
    ):
        self.normalized_shape, self.eps = _sizes(self, normalized_shape), eps
        self.weight = Parameter(ones(self.normalized_shape, dtype=dtype, device=device)) if elementwise_affine else None

    def forward(self, input: Any) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}"


class GroupNorm(Module):
    """`(x - mean) / sqrt(var + eps) * weight + bias` over each group of channels of an example: (N, C, …) -> the same."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        dtype: Any = None,
        device: str | None = None,
        bias: bool = True,
    ):
        check_sizes(self, num_groups=num_groups, num_channels=num_channels)
        if num_channels % num_groups:
            got = f"{num_channels} in {num_groups} groups"
            raise ArgumentError("GroupNorm: the channels do not divide into groups", "a multiple of num_groups", got)
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = Parameter(ones(num_channels, dtype=dtype, device=device)) if affine else None
        self.bias = Parameter(zeros(num_channels, dtype=dtype, device=device)) if affine and bias else None

    def forward(self, input: Any) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}"


class LocalResponseNorm(Module):
    """`x / (k + alpha · mean(x²))^beta`, with the mean over `size` channels around each: (N, C, …) -> the same."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
        check_sizes(self, size=size)
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Any) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class _BatchNorm(Module):
    """What the batch norms share; they differ in the number of axes they take."""

    couples_batch = True
    axes: dict[int, str]  # number of axes -> the shape as an error shows it

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        dtype: Any = None,
        device: str | None = None,
    ):
        check_sizes(self, num_features=num_features)
        if momentum is not None and not 0 <= momentum <= 1:
            raise ArgumentError(
                f"{type(self).__name__}: momentum is a share", "0 to 1, or None for a plain mean", momentum
            )
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.weight = Parameter(ones(num_features, dtype=dtype, device=device)) if affine else None
        self.bias = Parameter(zeros(num_features, dtype=dtype, device=device)) if affine else None
        tracked = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, dtype=dtype, device=device) if tracked else None)
        self.register_buffer("running_var", ones(num_features, dtype=dtype, device=device) if tracked else None)
        self.register_buffer("num_batches_tracked", zeros(dtype="int64", device=device) if tracked else None)

    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def forward(self, input: Any) -> Tensor:
        x = self._checked(input)
        own = self.training or self.running_mean is None  # normalise with the batch's own statistics
        result = F.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, own, self._share(), self.eps
        )
        if self.training and self.num_batches_tracked is not None:
            with no_grad():
                self.num_batches_tracked += 1
        return result

    def _checked(self, input: Any) -> Tensor:
        """The input as a Tensor; one with other axes or channels is refused."""
        x = input if isinstance(input, Tensor) else tensor(input)
        shape = self.axes.get(x.ndim, "")
        if not shape or x.shape[0 if shape.startswith("(C") else 1] != self.num_features:
            expected = " or ".join(shape.replace("C", str(self.num_features)) for shape in self.axes.values())
            raise ShapeError(f"{type(self).__name__}: the input does not fit", expected, x.shape)
        return x

    def _share(self) -> float:
        """How far the running statistics move towards the batch's: `momentum`, or so that they are a plain mean."""
        if self.momentum is not None:
            return self.momentum
        return 0.0 if self.num_batches_tracked is None else 1 / (self.num_batches_tracked.item() + 1)

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"


class BatchNorm1d(_BatchNorm):
    """`(x - mean) / sqrt(var + eps) * weight + bias` for each feature over the batch: (N, C) or (N, C, L) -> the same.

    In training, mean and variance are the batch's own and the running ones learn from them; in eval mode the running
    ones are used. With `momentum=None` the running ones are plain means over all batches.
    """

    axes = {2: "(N, C)", 3: "(N, C, L)"}


class BatchNorm2d(_BatchNorm):
    """The same for pictures: (N, C, H, W) -> the same."""

    axes = {4: "(N, C, H, W)"}


class BatchNorm3d(_BatchNorm):
    """The same for volumes: (N, C, D, H, W) -> the same."""

    axes = {5: "(N, C, D, H, W)"}


class _InstanceNorm(_BatchNorm):
    """What the instance norms share: the axes with a batch, and those without."""

    couples_batch = False

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        dtype: Any = None,
        device: str | None = None,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype, device)

    def forward(self, input: Any) -> Tensor:
        x = self._checked(input)
        single = self.axes[x.ndim].startswith("(C")
        own = self.training or self.running_mean is None
        share = 0.0 if self.momentum is None else self.momentum
        result = F.instance_norm(
            x[None] if single else x, self.running_mean, self.running_var, self.weight, self.bias, own, share, self.eps
        )
        return result[0] if single else result


class InstanceNorm1d(_InstanceNorm):
    """`(x - mean) / sqrt(var + eps)` for each channel of each example: (N, C, L) or (C, L) -> the same.

    With `affine` it is scaled and shifted by weight and bias; with `track_running_stats` running statistics learn from
    those of the examples, and are used in eval mode.
    """

    axes = {3: "(N, C, L)", 2: "(C, L)"}


class InstanceNorm2d(_InstanceNorm):
    """The same for pictures: (N, C, H, W) or (C, H, W) -> the same."""

    axes = {4: "(N, C, H, W)", 3: "(C, H, W)"}


class InstanceNorm3d(_InstanceNorm):
    """The same for volumes: (N, C, D, H, W) or (C, D, H, W) -> the same."""

    axes = {5: "(N, C, D, H, W)", 4: "(C, D, H, W)"}
