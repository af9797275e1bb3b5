"""The parameters that an optimiser is given: refused if they cannot be trained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..engine.tensor import Tensor
from ..errors import ArgumentError, CallError, GradientError, describe
from ..nn.module import Module

__all__ = ["groups_of", "parameters_of", "shown"]


def shown(value: Any) -> str:
    """What was given in the place of a group."""
    return f"a dict with {', '.join(map(str, value))}" if isinstance(value, Mapping) else type(value).__name__


def groups_of(name: str, params: Any) -> list[Any]:
    """The groups that were given, or one group of all the tensors that were given."""
    if isinstance(params, (Tensor, Module, Mapping, str)) or not isinstance(params, Iterable):
        fix = "pass model.parameters()" if isinstance(params, Module) else "put it into a list"
        raise CallError(
            f"{name}: the parameters must come in a list", "Tensors, or dicts of groups", type(params).__name__, fix
        )
    given = list(params)
    if not given:
        raise ArgumentError(
            f"{name}: there are no parameters to train",
            "at least one",
            "an empty list",
            "check that the layers are attributes of the model: list(model.parameters())",
        )
    return given if isinstance(given[0], Mapping) else [{"params": given}]


def parameters_of(name: str, params: Any) -> list[Tensor]:
    """The tensors of one group; each must be a leaf and come once."""
    found = [params] if isinstance(params, Tensor) else list(params)
    for p in found:
        if not isinstance(p, Tensor):
            raise CallError(f"{name}: only Tensors can be trained", "a Parameter or a Tensor", describe(p))
        if not p.is_leaf:
            raise GradientError(
                f"{name}: only leaves can be trained",
                "a Tensor that no recorded operation made",
                repr(p.node),
                "pass the tensor it was computed from, or x.detach().requires_grad_()",
            )
    if len({id(p) for p in found}) != len(found):
        raise ArgumentError(
            f"{name}: a parameter is given twice, and would be changed twice in each step",
            "each parameter once",
            fix="a model's own parameters() gives a tied one once",
        )
    return found
