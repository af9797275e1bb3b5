"""The plain layers: linear ones, embeddings, and those that only reshape. Arguments, defaults and start values are PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...engine.modes import no_grad
from ...engine.tensor import Tensor
from ...errors import ArgumentError, AxisError, IndexingError, ShapeError, axis_problem
from ...kernels import Packed
from ...ops.creation import tensor, zeros
from .. import functional as F
from .. import init
from ..module import Module, Parameter

__all__ = [
    "Bilinear",
    "CosineSimilarity",
    "Embedding",
    "EmbeddingBag",
    "Flatten",
    "Identity",
    "Linear",
    "PairwiseDistance",
    "Unflatten",
]


def check_sizes(layer: Module, **sizes: Any) -> None:
    """Refuse sizes that are not whole numbers from 1 up."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not hasattr(size, "__index__") or size < 1:
            raise ArgumentError(f"{type(layer).__name__}: {name} is a whole number from 1 up", "such as 8", repr(size))


def new_parameter(shape: tuple[int, ...], dtype: Any, device: str | None) -> Parameter:
    """A parameter of zeros, whose values are still to be set; large ones take no memory until then."""
    made = object.__new__(Parameter)  # Parameter(…) would copy
    made.data, made.node = zeros(shape, dtype=dtype, device=device).data, None
    made.requires_grad_()
    return made


class Linear(Module):
    """`x @ weight.T + bias`: (…, in_features) -> (…, out_features), with weight (out, in) and bias (out,).

    >>> import minigrad as mg
    >>> layer = mg.nn.Linear(3, 2)
    >>> layer(mg.ones(5, 3)).shape
    (5, 2)
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, dtype: Any = None, device: str | None = None
    ):
        check_sizes(self, in_features=in_features, out_features=out_features)
        self.in_features, self.out_features = in_features, out_features
        self.weight: Any = new_parameter((out_features, in_features), dtype, device)
        self.bias = new_parameter((out_features,), dtype, device) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew, evenly from ±1 / sqrt(in_features)."""
        bound = 1 / math.sqrt(self.in_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Any) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        packed = f", {self.weight.format}" if isinstance(self.weight, Packed) else ""
        return f"{self.in_features}, {self.out_features}{packed}" + (", bias=False" if self.bias is None else "")


class Bilinear(Module):
    """`x1ᵀ · weight[o] · x2 + bias[o]` for each output o: (…, in1_features), (…, in2_features) -> (…, out_features)."""

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        dtype: Any = None,
        device: str | None = None,
    ):
        check_sizes(self, in1_features=in1_features, in2_features=in2_features, out_features=out_features)
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = new_parameter((out_features, in1_features, in2_features), dtype, device)
        self.bias = new_parameter((out_features,), dtype, device) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew, evenly from ±1 / sqrt(in1_features)."""
        bound = 1 / math.sqrt(self.in1_features)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def forward(self, input1: Any, input2: Any) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        sizes = f"{self.in1_features}, {self.in2_features}, {self.out_features}"
        return sizes + (", bias=False" if self.bias is None else "")


class Embedding(Module):
    """A table of vectors, one for each number: whole numbers (…) -> (…, embedding_dim).

    The row `padding_idx` starts as zeros and gets no gradient.

    >>> import minigrad as mg
    >>> table = mg.nn.Embedding(10, 3, padding_idx=0)
    >>> table(mg.tensor([[0, 7]]))[0, 0].tolist()
    [0.0, 0.0, 0.0]
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        dtype: Any = None,
        device: str | None = None,
    ):
        check_sizes(self, num_embeddings=num_embeddings, embedding_dim=embedding_dim)
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise IndexingError(
                "Embedding: padding_idx is not a row of the table",
                f"{-num_embeddings} to {num_embeddings - 1}",
                padding_idx,
            )
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.weight = new_parameter((num_embeddings, embedding_dim), dtype, device)
        self.reset_parameters()

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, padding_idx: int | None = None) -> Embedding:
        """A table that holds a copy of given vectors (rows, size), such as those of `read_word_vectors`; not trained if `freeze`."""
        given = tensor(embeddings)
        if given.ndim != 2 or not given.size or given.dtype.kind != "f":
            raise ShapeError(
                "Embedding.from_pretrained: the vectors are not a table",
                "floating (rows, size)",
                f"{given.shape} {given.dtype}",
            )
        rows, size = given.shape
        with init.skip():
            made = cls(rows, size, padding_idx=padding_idx, dtype=given.dtype, device=given.device)
        with no_grad():
            made.weight[...] = given
        made.weight.requires_grad_(not freeze)
        return made

    def reset_parameters(self) -> None:
        """Draw the vectors anew, from the normal distribution with variance 1."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0

    def forward(self, input: Any) -> Tensor:
        return F.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class EmbeddingBag(Embedding):
    """The mean, sum or largest of the vectors of each bag: (B, L), or (n,) with offsets (B,) -> (B, embedding_dim).

    >>> import minigrad as mg
    >>> bags = mg.nn.EmbeddingBag(10, 3, mode="sum")
    >>> bags(mg.tensor([1, 2, 4, 5, 4]), offsets=mg.tensor([0, 2])).shape
    (2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        *,
        mode: str = "mean",
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        dtype: Any = None,
        device: str | None = None,
    ):
        super().__init__(num_embeddings, embedding_dim, padding_idx, dtype, device)
        self.mode, self.include_last_offset = mode, include_last_offset

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            mode=self.mode,
            per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset,
            padding_idx=self.padding_idx,
        )

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, mode={self.mode!r}"


class CosineSimilarity(Module):
    """`x1 · x2 / (|x1| |x2|)` along an axis: `cosine_similarity` as a module."""

    def __init__(self, axis: int = 1, eps: float = 1e-8):
        self.axis, self.eps = axis, eps

    def forward(self, x1: Any, x2: Any) -> Tensor:
        return F.cosine_similarity(x1, x2, self.axis, self.eps)


class PairwiseDistance(Module):
    """`|x1 - x2|` with the p-norm along the last axis: `pairwise_distance` as a module."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdims: bool = False):
        self.p, self.eps, self.keepdims = p, eps, keepdims

    def forward(self, x1: Any, x2: Any) -> Tensor:
        return F.pairwise_distance(x1, x2, self.p, self.eps, self.keepdims)


class Unflatten(Module):
    """One axis cut into several, the reverse of Flatten: with `Unflatten(1, (3, 4))`, (N, 12) -> (N, 3, 4)."""

    def __init__(self, axis: int, unflattened_size: Sequence[int]):
        self.axis, self.unflattened_size = axis, tuple(unflattened_size)

    def forward(self, input: Any) -> Tensor:
        x = input if isinstance(input, Tensor) else tensor(input)
        if wrong := axis_problem("Unflatten", self.axis, x.ndim, x.shape):
            raise wrong
        axis = self.axis % x.ndim
        return x.reshape(*x.shape[:axis], *self.unflattened_size, *x.shape[axis + 1 :])

    def extra_repr(self) -> str:
        return f"axis={self.axis}, unflattened_size={self.unflattened_size}"


class Flatten(Module):
    """The axes from `start_axis` to `end_axis` joined into one: (N, C, H, W) -> (N, C·H·W)."""

    def __init__(self, start_axis: int = 1, end_axis: int = -1):
        self.start_axis, self.end_axis = start_axis, end_axis

    def forward(self, input: Any) -> Tensor:
        x = input if isinstance(input, Tensor) else tensor(input)
        for axis in (self.start_axis, self.end_axis):
            if wrong := axis_problem("Flatten", axis, x.ndim, x.shape):
                raise wrong
        start, end = self.start_axis % x.ndim, self.end_axis % x.ndim
        if start > end:
            raise AxisError(
                "Flatten: the first axis comes after the last", "start_axis <= end_axis", f"{start} and {end}"
            )
        return x.reshape(*x.shape[:start], math.prod(x.shape[start : end + 1]), *x.shape[end + 1 :])

    def extra_repr(self) -> str:
        return f"start_axis={self.start_axis}, end_axis={self.end_axis}"


class Identity(Module):
    """What comes in goes out: the stand-in for a layer that is left out, whose arguments it takes and ignores."""

    def __init__(self, *args: Any, **kwargs: Any):
        pass

    def forward(self, input: Any) -> Any:
        return input
