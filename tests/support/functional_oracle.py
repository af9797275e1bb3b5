"""mg.nn.functional beside torch.nn.functional: the same call in both, values and derivatives of first and second order compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import minigrad as mg

TORCH_NAMES = {"axis": "dim", "keepdims": "keepdim", "mask": "attn_mask"}


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def uniform(*shape: int, seed: int = 0) -> np.ndarray:
    """Positive numbers, away from 0."""
    return np.random.default_rng(seed).uniform(0.2, 0.9, shape)


def assert_as_torch(
    name: str, *arrays: np.ndarray, orders: int = 2, constants: Sequence[str] = (), **attrs: Any
) -> None:
    """The function called `name` gives the same in both; arrays named in `constants` are not differentiated."""
    import torch

    from .torch_oracle import compare

    def ours(*inputs: Any, **rest: Any) -> Any:
        return getattr(mg.nn.functional, name)(*inputs, **rest, **{key: mg.tensor(attrs[key]) for key in constants})

    def theirs(*inputs: Any, **rest: Any) -> Any:
        rest |= {key: torch.tensor(attrs[key]) for key in constants}
        return getattr(torch.nn.functional, name)(
            *inputs, **{TORCH_NAMES.get(key, key): value for key, value in rest.items()}
        )

    compare(ours, theirs, arrays, {key: value for key, value in attrs.items() if key not in constants}, orders)
