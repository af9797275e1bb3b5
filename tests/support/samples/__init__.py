"""Inputs on which every op is tried, each with an independent NumPy reference.

`SAMPLES[name]` lists the samples of the op or composite of that name. Points at which an op bends are avoided
by construction wherever derivatives are checked; what happens exactly there has tests of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

FLOATS = ("float64", "float32")
ALL_FLOATS = ("float64", "float32", "float16")
AS_GIVEN = ("as given",)
SAMPLES: dict[str, list[Sample]] = {}


@dataclass(frozen=True)
class Fixed:
    """A floating array that is not differentiated, such as a running mean."""

    array: np.ndarray


@dataclass(frozen=True)
class Sample:
    """One call of an op. Floating arrays among the arguments are cast, laid out, moved and differentiated by the tests."""

    args: tuple[Any, ...]
    reference: Callable[..., Any]  # on NumPy arrays: the result that is expected
    kwargs: dict[str, Any] = field(default_factory=dict)
    label: str = ""
    dtypes: tuple[str, ...] = FLOATS
    gradient: bool = True  # False at kinks, infinities and for empty results
    dtype_as_reference: bool = True  # False: the result has the dtype of the floating arguments
    via: Callable[..., Any] | None = None  # free numbers -> valid argument, such as a symmetric matrix
    tolerance: float = 1.0  # times the usual one, where the reference itself loses digits

    @property
    def leaves(self) -> list[np.ndarray]:
        """The floating arrays among the arguments, in the order they appear."""
        found: list[np.ndarray] = []
        _walk([*self.args, self.kwargs], lambda array: found.append(array) or array)
        return found

    def call(
        self, function: Callable[..., Any], leaves: list[Any], others: Callable[[np.ndarray], Any] = lambda array: array
    ) -> Any:
        """`function` on the arguments, with `leaves` for the floating arrays; `others` maps the remaining positional arrays."""
        rest: Iterator[Any] = iter(leaves)
        args = _walk(list(self.args), lambda _: next(rest), others)
        kwargs = _walk(self.kwargs, lambda _: next(rest), fixed=others)
        return function(*args, **kwargs)


def _same(array: np.ndarray) -> np.ndarray:
    return array


def _walk(
    value: Any,
    leaf: Callable[[np.ndarray], Any],
    others: Callable[[np.ndarray], Any] = _same,
    fixed: Callable[[np.ndarray], Any] = _same,
) -> Any:
    """`value` with every floating array replaced by `leaf(array)`, every other one by `others(array)`, and what is Fixed by `fixed(array)`."""
    if isinstance(value, Fixed):
        return fixed(value.array)
    if isinstance(value, np.ndarray):
        return leaf(value) if value.dtype.kind == "f" else others(value)
    if type(value) in (list, tuple):
        return type(value)([_walk(item, leaf, others, fixed) for item in value])
    if isinstance(value, dict):
        return {key: _walk(item, leaf, others, fixed) for key, item in value.items()}
    return value


def add(name: str, reference: Callable[..., Any], *args: Any, **options: Any) -> None:
    """Enter one more sample of an op; `options` are fields of Sample."""
    SAMPLES.setdefault(name, []).append(Sample(args, reference, **options))


def spread(*sizes: int, low: float = -2.0, high: float = 2.0, seed: int = 0) -> np.ndarray:
    """Evenly spaced numbers in random order: no two are near each other, and none is near a whole number."""
    count = int(np.prod(sizes))
    line = low + (high - low) * (np.arange(count) + 0.4142) / max(count, 1)
    return np.random.default_rng(seed).permutation(line).reshape(sizes)


def normal(*sizes: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(sizes)


from . import (  # noqa: E402, F401  (they fill the table)
    activation_functions,
    arrangement,
    cumulative,
    elementwise,
    fourier,
    images,
    indexing,
    layers,
    linalg,
    losses,
    matrices,
    neural,
    numbers,
    picture_layers,
    reduction,
    scatter,
    searching,
    sets,
    shape,
    special,
    statistics,
    windows,
)
