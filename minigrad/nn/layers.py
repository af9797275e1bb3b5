"""The plain layers: Linear, Embedding, Dropout, Flatten, Identity. Arguments, defaults and start values are PyTorch's."""

from __future__ import annotations

import math
from typing import Any

from ..engine.modes import no_grad
from ..engine.tensor import Tensor
from ..errors import ArgumentError, AxisError, IndexingError, ShapeError, axis_problem
from ..ops.creation import tensor, zeros
from . import functional as F
from . import init
from .module import Module, Parameter

__all__ = ["Dropout", "Embedding", "Flatten", "Identity", "Linear"]


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
        self.weight = new_parameter((out_features, in_features), dtype, device)
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
        return f"{self.in_features}, {self.out_features}" + (", bias=False" if self.bias is None else "")


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


class Dropout(Module):
    """In training, each element becomes 0 with probability `p` and the others are divided by `1 - p`; else nothing happens."""

    def __init__(self, p: float = 0.5):
        if not 0 <= p <= 1:
            raise ArgumentError("Dropout: p is a probability", "0 to 1", p)
        self.p = p

    def forward(self, input: Any) -> Tensor:
        return F.dropout(input, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"


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
