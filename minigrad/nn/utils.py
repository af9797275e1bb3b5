"""Helpers where PyTorch has them: vectors of all parameters, gradient clipping, weight and spectral normalisation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..engine.modes import no_grad
from ..engine.tensor import Tensor
from ..errors import ShapeError, public
from ..ops.layout.joining import concatenate
from ..ops.layout.shape import reshape
from .clipping import clip_grad_norm_, clip_grad_value_
from .weights.reparametrization import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm

__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "remove_spectral_norm", "remove_weight_norm", "spectral_norm",
    "vector_to_parameters", "weight_norm",
]  # fmt: skip


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters in a row, in their order: (n,), with a gradient.

    >>> import minigrad as mg
    >>> mg.nn.utils.parameters_to_vector(mg.nn.Linear(3, 2).parameters()).shape
    (8,)
    """
    joined: Tensor = concatenate([reshape(p, shape=(-1,)) for p in parameters])
    return joined


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write the numbers of a vector (n,) into the parameters, in their order: the reverse of `parameters_to_vector`."""
    targets = list(parameters)
    count = sum(p.size for p in targets)
    if vec.shape != (count,):
        raise ShapeError("vector_to_parameters: the vector does not fit the parameters", (count,), vec.shape)
    start = 0
    with no_grad():
        for p in targets:
            p[...] = vec[start : start + p.size].reshape(p.shape)
            start += p.size


if not TYPE_CHECKING:  # a type checker knows what is here
    __getattr__, __dir__ = public(__name__, __all__, "utilities")
