"""A weight and a low-rank matrix beside it, which `F.linear` takes in the place of a weight."""

from __future__ import annotations

from typing import Any

from ... import kernels
from ...engine.tensor import Tensor, wrap
from ...kernels import Packed

__all__ = ["LowRank"]


class LowRank:
    """`base + scale · b @ a`: (out, in), (r, in), (out, r). The base may be packed."""

    ndim = 2

    def __init__(self, base: Any, a: Tensor, b: Tensor, scale: float):
        self.base, self.a, self.b, self.scale = base, a, b, scale

    @property
    def shape(self) -> tuple[int, ...]:
        """(out, in)."""
        return tuple(self.base.shape)

    @property
    def dtype(self) -> Any:
        """What it computes in."""
        return self.a.dtype

    @property
    def device(self) -> str:
        """Where it lies."""
        return self.a.device

    def __getitem__(self, rows: slice) -> LowRank:
        """Some of its rows."""
        return LowRank(self.base[rows], self.a, self.b[rows], self.scale)

    def linear(self, input: Tensor, bias: Tensor | None) -> Tensor:
        """(…, in) -> (…, out), without ever making the sum of the matrices."""
        small = kernels.linear(kernels.linear(input, self.a, None), self.b, None)  # (…, in) -> (…, r) -> (…, out)
        if isinstance(self.base, Packed):
            whole = kernels.packed_linear(input, self.base.tensor, bias, format=self.base.format)
        else:
            whole = kernels.linear(input, self.base, bias)
        return whole + small * self.scale

    def merged(self) -> Tensor:
        """The sum of the matrices, (out, in)."""
        base = wrap(self.base.dequantized()) if isinstance(self.base, Packed) else self.base
        return base + self.scale * (self.b @ self.a)
