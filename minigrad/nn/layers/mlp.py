"""The feed-forward network of a transformer block, gated or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import kernels
from ...engine.tensor import Tensor
from ...errors import ArgumentError, nearest
from ...ops import FUNCTIONS
from .. import functional as F
from ..module import Module
from .dropout import Dropout
from .linear import Linear

__all__ = ["MLP"]

split = FUNCTIONS["split"]


def _gelu_tanh(x: Any) -> Tensor:
    return F.gelu(x, approximate="tanh")


UNGATED: dict[str, Callable[[Any], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": _gelu_tanh,  # GPT-2's
    "silu": F.silu,
    "tanh": F.tanh,
}
GELU = {"gelu": "none", "gelu_tanh": "tanh"}  # computed by one kernel with `up`, unless somebody listens to `up`
GATED: dict[str, Callable[[Any], Tensor]] = {
    "swiglu": F.silu,
    "geglu": F.gelu,
    "geglu_tanh": _gelu_tanh,
    "reglu": F.relu,
}


class MLP(Module):
    """`down(activation(up(x)))`, for each position by itself: (…, dim) -> (…, hidden) -> (…, dim).

    With "swiglu", "geglu", "geglu_tanh" or "reglu" half of what `up` makes is a gate: `down(silu(gate) * up)`. Gate and up are rows
    of one matrix (2·hidden, dim), gate first, so that they are one product.

    >>> import minigrad as mg
    >>> mlp = mg.nn.MLP(8, 32, activation="swiglu")
    >>> mlp.up.weight.shape, mlp(mg.ones(2, 5, 8)).shape
    ((64, 8), (2, 5, 8))
    """

    def __init__(
        self,
        dim: int,
        hidden: int,
        activation: str = "gelu",
        bias: bool = True,
        dropout: float = 0.0,
        dtype: Any = None,
        device: str | None = None,
    ):
        known = {**UNGATED, **GATED}
        if activation not in known:
            raise ArgumentError(
                f"MLP: unknown activation {activation!r}", ", ".join(known), fix=nearest(activation, known)
            )
        self.activation, self.is_gated = activation, activation in GATED
        self.up = Linear(dim, 2 * hidden if self.is_gated else hidden, bias, dtype, device)
        self.down = Linear(hidden, dim, bias, dtype, device)
        self.dropout = Dropout(dropout)

    def forward(self, x: Any) -> Tensor:
        return self.down(self.dropout(self._activated(x)))  # (…, hidden) -> (…, dim)

    def _activated(self, x: Any) -> Tensor:
        """(…, dim) -> (…, hidden)"""
        if self.activation in GELU and type(self.up) is Linear and not self.up.has_hooks():
            return F.linear_gelu(x, self.up.weight, self.up.bias, approximate=GELU[self.activation])
        inner = self.up(x)  # (…, dim) -> (…, hidden), or (…, 2·hidden)
        if self.activation == "swiglu":
            return kernels.swiglu(inner)
        if self.is_gated:
            gate, inner = split(inner, 2, axis=-1)  # each (…, hidden)
            return GATED[self.activation](gate) * inner
        return UNGATED[self.activation](inner)

    def extra_repr(self) -> str:
        return self.activation
