"""The terms of a loss: each a sum, and the number of units (tokens, sentences, rows) it was summed over.

The loss of a step is Σ over terms of (all sums / all units), so ten batches give what one batch of all their examples would.
A term that depends on no parameter, such as a count of right answers, is a metric: it is averaged and shown, not added.
A loss may be a scalar instead: the mean over the rows of a batch, which is then never divided among threads.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from .. import tree
from ..data.batching import Padded
from ..engine.tensor import Tensor, wrap
from ..errors import CallError, describe
from .data_parallel import row_count

__all__ = [
    "MeanTerms", "RaggedBatches", "Terms", "Totals", "as_count", "checked_terms", "metrics_among", "sum_terms",
]  # fmt: skip

Terms = dict[str, tuple[Tensor, int]]
TAKEN = ("loss", "lr", "grad_norm", "step")  # columns of metrics.csv, which no metric can have


class Totals:
    """Sums and units of named terms over batches or steps; `metrics` are the terms that are no part of the loss."""

    def __init__(self, values: Mapping[str, Sequence[Any]] | None = None, metrics: Iterable[str] = ()):
        self.metrics = frozenset(metrics)
        self.is_mean = False  # whether the loss was a scalar, the mean of a batch
        self.values: dict[str, list[Any]] = {name: [float(s), int(n)] for name, (s, n) in (values or {}).items()}

    def add(self, terms: Mapping[str, Sequence[Any]], metrics: Iterable[str] = ()) -> None:
        """Add the terms of one more batch, or step."""
        self.metrics = self.metrics.union(metrics)
        for name, (amount, units) in terms.items():
            mine = self.values.setdefault(name, [0.0, 0])
            mine[0] += amount.item() if isinstance(amount, Tensor) else amount
            mine[1] += units

    def means(self) -> dict[str, float]:
        """`loss`, the sum of the terms' means; with several terms each mean as `loss_NAME`; and the metrics."""
        each = {name: amount / units if units else 0.0 for name, (amount, units) in self.values.items()}
        metrics = {name: each.pop(name) for name in self.values if name in self.metrics}
        parts = {f"loss_{name}": value for name, value in each.items()} if len(each) > 1 else {}
        return {"loss": sum(each.values()), **parts, **metrics}

    def check_units(self) -> None:
        """Refuse a loss without units: its mean would be 0, and the best ever."""
        if not any(units for name, (_, units) in self.values.items() if name not in self.metrics):
            raise CallError(
                "the loss has no units: there was nothing to learn from, or to evaluate",
                "at least one unit in each step, and in each validation",
                ", ".join(f"{name}: 0" for name in self.values if name not in self.metrics),
                "count the tokens or rows that each sum goes over, and leave out batches that have none",
            )

    @property
    def units(self) -> int:
        """The units of the first term, in which speed is measured."""
        return int(next(iter(self.values.values()))[1]) if self.values else 0


class MeanTerms(Terms):
    """The term of a loss that gave a scalar: the mean over the rows of its batch, so that rows are its units."""


def checked_terms(terms: Any, batch: Any) -> Terms:
    """The terms that a loss function returned for a batch, checked."""
    if isinstance(terms, Tensor) and terms.data.size == 1:
        rows = row_count(batch) or 1
        return MeanTerms(loss=(terms.reshape(()) * rows, rows))
    expected = '{"name": (sum, units)}: a Tensor with one element, and the number of tokens or rows it sums over'
    if not isinstance(terms, Mapping) or not terms:
        fix = 'return {"loss": (sum, units)}, or the mean as a Tensor with one element'
        raise CallError("the loss returned no named terms", expected, describe(terms), fix)
    checked: Terms = {}
    for name, term in terms.items():
        if (
            not isinstance(name, str)
            or not isinstance(term, (tuple, list))
            or len(term) != 2
            or not isinstance(amount := _as_amount(term[0]), Tensor)
            or amount.data.size != 1
        ):
            raise CallError(f"the loss's term {name!r} is not a sum with its units", expected, describe(term))
        checked[name] = (amount.reshape(()) if amount.shape else amount, as_count(name, term[1]))
    return checked


class RaggedBatches:
    """Warns once where the mean of a batch need not be over its rows, so that the mean over several batches is inexact."""

    def __init__(self) -> None:
        self._shapes: Any = None
        self._has_warned = False

    def check(self, batches: Iterable[Any]) -> None:
        """Look at the batches of a step: whether they have rows at all, padding, or rows of other shapes than before."""
        for batch in batches if not self._has_warned else ():
            shapes = [getattr(leaf, "shape", ())[1:] for leaf in tree.leaves(batch)]
            known, self._shapes = self._shapes, shapes
            padded = any(isinstance(part, Padded) for part in tree.leaves(batch, lambda x: isinstance(x, Padded)))
            if row_count(batch) is None or padded or known not in (None, shapes):
                self._has_warned = True
                warnings.warn(
                    "the loss is a scalar and the batches are ragged: each counts by its rows, so a mean over several "
                    'batches may be inexact; return {"loss": (sum, units)} to make it exact',
                    RuntimeWarning,
                    stacklevel=4,
                )
                return


def _as_amount(value: Any) -> Any:
    """A metric may be a number."""
    return wrap(np.asarray(value)) if isinstance(value, (int, float, np.number)) else value


def as_count(name: str, units: Any) -> int:
    """The units of a term as an int; those that are counted by ops are a Tensor."""
    try:
        count = operator.index(units.item() if isinstance(units, Tensor) and units.size == 1 else units)
    except TypeError:
        count = -1
    if count < 0:
        raise CallError(
            f"the loss's term {name!r} has impossible units", "a whole number from 0", repr(units), "int(n)"
        )
    return count


def sum_terms(parts: Sequence[Terms]) -> dict[str, tuple[Any, int]]:
    """The terms of all shards of a batch, summed."""
    if len(parts) == 1:
        return dict(parts[0])
    if any(part.keys() != parts[0].keys() for part in parts):
        raise CallError(
            "the loss's terms differ between parts of a batch", ", ".join(parts[0]), fix="give every term each time"
        )
    return {
        name: (math.fsum(part[name][0].item() for part in parts), sum(part[name][1] for part in parts))
        for name in parts[0]
    }


def metrics_among(terms: Mapping[str, Sequence[Any]], learned: Set[str]) -> frozenset[str]:
    """The terms that have units but depend on no parameter; none if that is true of all, which is a mistake."""
    metrics = frozenset(name for name, (_, units) in terms.items() if units and name not in learned)
    if metrics == terms.keys():
        return frozenset()
    for name in metrics.intersection(TAKEN):
        raise CallError(
            f"the loss's term {name!r} depends on no parameter, and a metric cannot have this name",
            f"another name than {', '.join(TAKEN)}",
            fix="rename it; or, if it is to be learned from, check that it uses the model's output",
        )
    return metrics
