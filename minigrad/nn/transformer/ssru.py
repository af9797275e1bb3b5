"""The simpler simple recurrent unit (SSRU): what Marian's small translators have in their decoders in the place of self-attention."""

from __future__ import annotations

from typing import Any

from ... import kernels
from ...engine.tensor import Tensor
from ...errors import ShapeError
from ...ops.creation import zeros
from .. import functional as F
from ..functional.declaration import as_tensor
from ..layers.linear import Linear
from ..module import Module
from .caches import StateCache

__all__ = ["SSRU"]


class SSRU(Module):
    """`relu(c_t)` of the state `c_t = f_t · c_(t-1) + (1 - f_t) · W x_t` with `f_t = sigmoid(W_f x_t + b_f)`: (B, L, C) -> (B, L, C).

    `candidate` is W, which has no bias, and `forget` is W_f and b_f. The state starts as zeros. A position sees only
    itself and those before it, at a cost that does not grow with their number.

    >>> import minigrad as mg
    >>> mg.nn.SSRU(8)(mg.randn(4, 5, 8)).shape
    (4, 5, 8)
    """

    def __init__(self, dim: int, dtype: Any = None, device: str | None = None):
        self.dim = dim
        self.candidate = Linear(dim, dim, False, dtype, device)
        self.forget = Linear(dim, dim, True, dtype, device)

    def new_cache(self, room: int = 0) -> StateCache:
        """An empty cache for generating position by position; a state needs no room."""
        return StateCache()

    def forward(self, x: Any, cache: StateCache | None = None) -> Tensor:
        """With a cache, x holds only the positions that it has not seen."""
        x = as_tensor(x)
        if x.ndim != 3 or x.shape[-1] != self.dim or not x.shape[1]:
            raise ShapeError("SSRU: the input does not fit", f"(batch, length, {self.dim}), length 1 or more", x.shape)
        candidates, gates = self.candidate(x), F.sigmoid(self.forget(x))  # each (B, L, C)
        state = None if cache is None else cache.state
        if state is None:
            state = zeros(x.shape[0], self.dim, dtype=candidates.dtype, device=x.device)
        elif len(state) != len(x):
            raise ShapeError("SSRU: the cache is of another batch", f"({len(state)}, length, {self.dim})", x.shape)
        states = kernels.gated_scan(candidates, gates, state)  # (B, L, C)
        if cache is not None:
            cache.advance(states[:, -1], x.shape[1])
        return F.relu(states)

    def extra_repr(self) -> str:
        return f"{self.dim}"
