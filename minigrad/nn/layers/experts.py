"""A mixture of experts: several MLPs, of which each position uses a few."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...engine.backend import to_numpy
from ...engine.tensor import Tensor
from ...errors import ArgumentError, ShapeError, describe
from ...ops import FUNCTIONS
from ...ops.creation import constant
from .. import functional as F
from ..functional.declaration import as_tensor
from ..module import Module
from .containers import ModuleList
from .linear import Linear
from .mlp import MLP

__all__ = ["MixtureOfExperts", "imbalances"]

argsort, concatenate, split, topk = (FUNCTIONS[name] for name in ("argsort", "concatenate", "split", "topk"))


class _Collecting(threading.local):
    found: list[Tensor] | None = None


_collecting = _Collecting()


@contextmanager
def imbalances() -> Iterator[list[Tensor]]:
    """Inside, each mixture of experts adds its `imbalance` of each row, (B,), to the list: a term of the loss.

    >>> import minigrad as mg
    >>> with mg.nn.imbalances() as found:
    ...     y = mg.nn.MixtureOfExperts(4, 8)(mg.randn(3, 5, 4))
    >>> [one.shape for one in found]
    [(3,)]
    """
    outer, _collecting.found = _collecting.found, []
    try:
        yield _collecting.found
    finally:
        _collecting.found = outer


def collected() -> list[Tensor] | None:
    """The list of the innermost `imbalances`; None outside."""
    return _collecting.found


class MixtureOfExperts(Module):
    """A router gives each position to the `active` best of several MLPs, and adds what they make, weighted: (…, T, C) -> (…, T, C).

    The weights are the router's softmax over all experts, divided by their sum over the chosen ones, as Mixtral's. No expert has a
    capacity, so that no position is dropped: what becomes of a position does not depend on the others, however a
    batch is divided among threads and ranks. There is no dropout inside.

    >>> import minigrad as mg
    >>> mixture = mg.nn.MixtureOfExperts(8, 32, experts=4, active=2, activation="swiglu")
    >>> mixture(mg.randn(2, 5, 8)).shape, len(mixture.experts)
    ((2, 5, 8), 4)
    """

    def __init__(
        self,
        dim: int,
        hidden: int,
        experts: int = 8,
        active: int = 2,
        activation: str = "gelu",
        bias: bool = True,
        dtype: Any = None,
        device: str | None = None,
    ):
        if not 1 <= active <= experts:
            raise ArgumentError(
                "MixtureOfExperts: a position cannot use so many experts", f"active from 1 to {experts}", active
            )
        self.active = active
        self.router = Linear(dim, experts, False, dtype, device)
        self.experts = ModuleList(
            MLP(dim, hidden, activation, bias, dtype=dtype, device=device) for _ in range(experts)
        )

    def forward(self, x: Any) -> Tensor:
        x = as_tensor(x)
        if x.ndim < 2:
            raise ShapeError("MixtureOfExperts: there are no positions", "(…, T, C)", describe(x))
        shares = F.softmax(self.router(x), axis=-1)  # (…, T, E)
        weights, chosen = topk(shares, self.active)  # (…, T, k)
        weights = weights / weights.sum(axis=-1, keepdims=True)
        if (found := collected()) is not None and self.training:
            found.append(self.imbalance(shares, chosen))
        flat, experts = x.reshape(-1, x.shape[-1]), chosen.reshape(-1)  # (N, C), (N·k,)
        order = argsort(experts)  # positions of the first expert, of the second, and so on
        counts = np.bincount(to_numpy(constant(experts, "MixtureOfExperts")), minlength=len(self.experts)).tolist()
        made = self.computed(F.embedding(order // self.active, flat), counts)  # (N·k, C)
        made = F.embedding(argsort(order), made).reshape(*chosen.shape, x.shape[-1])  # as they were: (…, T, k, C)
        return (weights.reshape(*chosen.shape, 1) * made).sum(axis=-2)

    def computed(self, rows: Tensor, counts: Sequence[int]) -> Tensor:
        """What the experts make of rows, of which the first `counts[0]` are for the first one, and so on: (R, C) -> (R, C)."""
        parts = split(rows, np.cumsum(counts[:-1]).tolist())
        return concatenate([expert(part) for expert, part in zip(self.experts, parts)])

    def imbalance(self, shares: Tensor, chosen: Tensor) -> Tensor:
        """How unevenly a row uses the experts, E · Σ f · p, 1 if evenly and up to E: (…, T, E), (…, T, k) -> (…).

        f is the share of a row's positions that an expert is given, p the mean of what the router gives it, which has the gradient.
        Of each row by itself, so that it does not depend on how a batch is divided.
        """
        given = F.one_hot(chosen, len(self.experts)).sum(axis=-2).astype(shares.dtype) / self.active  # (…, T, E)
        f, p = self.over_positions(given), self.over_positions(shares)  # (…, E)
        return len(self.experts) * (f * p).sum(axis=-1)

    def over_positions(self, x: Tensor) -> Tensor:
        """The mean over positions: (…, T, E) -> (…, E)."""
        return x.mean(axis=-2)

    def extra_repr(self) -> str:
        return f"{self.active} of {len(self.experts)} active"
