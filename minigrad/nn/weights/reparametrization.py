"""Weights that are computed from others: weight normalisation and spectral normalisation of a layer.

The layer gets a class of its own, in which the weight is a property: it is computed whenever the layer reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ...engine.modes import no_grad
from ...engine.tensor import Tensor
from ...errors import ArgumentError, axis_problem
from ...functions import matmul, maximum, moveaxis, reshape, sqrt
from ...functions import sum as sum_
from ...ops.random import randn
from ..module import Module, Parameter

__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]

Layer = TypeVar("Layer", bound=Module)


def weight_norm(module: Layer, name: str = "weight", dim: int | None = 0) -> Layer:
    """Learn length and direction of a weight apart: `weight_g * weight_v / |weight_v|`, as PyTorch's.

    There is a length for each index along `dim`, (…, 1, n, 1, …), or one for all if `dim` is None. Changes the layer, and
    returns it.

    >>> import minigrad as mg
    >>> layer = mg.nn.utils.weight_norm(mg.nn.Linear(3, 2))
    >>> {name: p.shape for name, p in layer.named_parameters()}
    {'bias': (2,), 'weight_g': (2, 1), 'weight_v': (2, 3)}
    """
    weight = _taken("weight_norm", module, name, dim)
    axes = tuple(i for i in range(weight.ndim) if dim is None or i != dim % weight.ndim)
    length, direction = f"{name}_g", f"{name}_v"

    def computed(module: Module) -> Tensor:
        g, v = getattr(module, length), getattr(module, direction)
        result: Tensor = v * (g / sqrt(sum_(v * v, axis=axes, keepdims=dim is not None)))
        return result

    with no_grad():
        norm = sqrt(sum_(weight * weight, axis=axes, keepdims=dim is not None))
    setattr(module, length, Parameter(norm))
    setattr(module, direction, Parameter(weight.detach()))
    return _computing(module, name, "weight_norm", computed, (length, direction))


def spectral_norm(
    module: Layer, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Layer:
    """Divide a weight by its largest singular value, as PyTorch's: the layer then stretches no input.

    The weight counts as a matrix whose rows lie along `dim`: by default 0, and 1 for transposed convolutions. Its singular
    vectors, the buffers `weight_u` and `weight_v`, are followed by `n_power_iterations` steps whenever the layer computes in
    training. Changes the layer, and returns it.

    >>> import minigrad as mg
    >>> layer = mg.nn.utils.spectral_norm(mg.nn.Linear(3, 2))
    >>> {name: tensor.shape for name, tensor in layer.state_dict().items()}
    {'bias': (2,), 'weight_orig': (2, 3), 'weight_u': (2,), 'weight_v': (3,)}
    """
    along = dim if dim is not None else int("Transpose" in type(module).__name__)
    weight = _taken("spectral_norm", module, name, along)
    if n_power_iterations < 1 or eps <= 0:
        got = f"n_power_iterations={n_power_iterations}, eps={eps}"
        raise ArgumentError("spectral_norm: options out of range", "at least one iteration, and a positive eps", got)
    original, left, right = f"{name}_orig", f"{name}_u", f"{name}_v"

    def computed(module: Module) -> Tensor:
        w, u, v = getattr(module, original), getattr(module, left), getattr(module, right)
        matrix = reshape(moveaxis(w, source=along, destination=0), shape=(u.size, v.size))
        if module.training:
            _iterate(matrix, u, v, n_power_iterations, eps)
        result: Tensor = w / matmul(u.clone(), matmul(matrix, v.clone()))
        return result

    rows, columns = weight.shape[along], weight.size // weight.shape[along]
    setattr(module, original, Parameter(weight.detach()))
    for vector, size in ((left, rows), (right, columns)):
        module.register_buffer(vector, _unit(randn(size, dtype=weight.dtype, device=weight.device), eps))
    with no_grad():
        matrix = reshape(moveaxis(weight, source=along, destination=0), shape=(rows, columns))
        _iterate(matrix, getattr(module, left), getattr(module, right), 15, eps)
    return _computing(module, name, "spectral_norm", computed, (original, left, right), couples_batch=True)


def remove_weight_norm(module: Layer, name: str = "weight") -> Layer:
    """Make the weight a parameter of its own again, with the value that it has."""
    return _removed("weight_norm", module, name)


def remove_spectral_norm(module: Layer, name: str = "weight") -> Layer:
    """Make the weight a parameter of its own again, with the value that it has."""
    return _removed("spectral_norm", module, name)


def _unit(x: Tensor, eps: float) -> Tensor:
    unit: Tensor = x / maximum(sqrt(sum_(x * x)), eps)
    return unit


def _iterate(matrix: Tensor, u: Tensor, v: Tensor, times: int, eps: float) -> None:
    """Turn `u` and `v`, in place, towards the singular vectors of the largest singular value."""
    with no_grad():
        for _ in range(times):
            u[...] = _unit(matmul(matrix, v), eps)
            v[...] = _unit(matmul(u, matrix), eps)


def _taken(what: str, module: Module, name: str, dim: int | None) -> Parameter:
    """The parameter of this name, which the layer no longer has."""
    weight = vars(module).get(name) if isinstance(module, Module) else None
    if not isinstance(weight, Parameter):
        own = [key for key, value in vars(module).items() if isinstance(value, Parameter)]
        raise ArgumentError(f"{what}: the layer has no parameter {name!r}", f"one of {own}", type(module).__name__)
    if dim is not None and (problem := axis_problem(what, dim, weight.ndim, weight.shape)):
        raise problem
    delattr(module, name)
    return weight


def _computing(
    module: Layer, name: str, what: str, computed: Callable[[Any], Tensor], parts: tuple[str, ...], **members: Any
) -> Layer:
    """The layer, with a class in which `name` is computed from its other `parts`."""
    plain = type(module)
    members |= {name: property(computed), "reparametrized": (what, name, parts)}
    members["extra_repr"] = lambda self: f"{plain.extra_repr(self)}, {what}={name!r}"
    module.__class__ = type(plain.__name__, (plain,), {"__module__": plain.__module__, **members})
    return module


def _removed(what: str, module: Layer, name: str) -> Layer:
    found = getattr(type(module), "reparametrized", (None, None, ()))
    if found[:2] != (what, name):
        expected = f"a layer after {what}(layer, {name!r})"
        got = "a layer without" if found[0] is None else f"{found[0]} of {found[1]!r}, which comes first"
        raise ArgumentError(f"remove_{what}: this layer does not have it", expected, got)
    training = module.training
    weight = Parameter(getattr(module.eval(), name).detach())
    module.train(training)
    module.__class__ = type(module).__base__  # type: ignore[assignment]
    for part in found[2]:
        module._buffers.pop(part, None)
        delattr(module, part)
    setattr(module, name, weight)
    return module
