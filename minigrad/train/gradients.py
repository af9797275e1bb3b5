"""The gradient of one step, exact however ragged its batches are.

A loss gives named terms, each a sum and the number of units (tokens, sentences, rows) it was summed over. The loss of a
step is Σ over terms of (all sums / all units), so ten batches give what one batch of all their examples would.
A term that no parameter has a part in, such as a count of right answers, is a metric: it is averaged and shown, not added.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from ..engine.backend import on_device_of
from ..engine.errors import CallError, GradientError, describe
from ..engine.tensor import Tensor, wrap
from ..engine.writes import writes
from .parallel import backward_shares, forward_all, on_every_core

__all__ = ["Totals", "backward_all", "checked_terms", "scale_gradients"]

Terms = dict[str, tuple[Tensor, int]]
TAKEN = ("loss", "lr", "grad_norm", "step")  # columns of metrics.csv, which no metric can have


class Totals:
    """Sums and units of named terms, added up over batches or steps; `metrics` are those that the loss does not consist of."""

    def __init__(self, values: Mapping[str, Sequence[Any]] | None = None, metrics: Iterable[str] = ()):
        self.metrics = frozenset(metrics)
        self.values: dict[str, list[Any]] = {name: [float(s), int(n)] for name, (s, n) in (values or {}).items()}

    def add(self, terms: Mapping[str, Sequence[Any]], metrics: Iterable[str] = ()) -> None:
        """Add the terms of one more batch, or step."""
        self.metrics = self.metrics.union(metrics)
        for name, (amount, units) in terms.items():
            mine = self.values.setdefault(name, [0.0, 0])
            mine[0] += amount.item() if isinstance(amount, Tensor) else amount
            mine[1] += units

    def means(self) -> dict[str, float]:
        """`loss`, the sum of the terms' means, where there are several terms each as `loss_NAME`, and the metrics."""
        each = {name: _mean(amount, units) for name, (amount, units) in self.values.items()}
        metrics = {name: each.pop(name) for name in self.values if name in self.metrics}
        parts = {f"loss_{name}": value for name, value in each.items()} if len(each) > 1 else {}
        return {"loss": sum(each.values()), **parts, **metrics}

    def check_units(self) -> None:
        """Refuse a loss of nothing, whose mean would be shown as 0, and be the best there ever was."""
        if not any(units for name, (_, units) in self.values.items() if name not in self.metrics):
            raise CallError(
                "the loss has no units: there was nothing to learn from, or to judge by",
                "at least one unit in each step, and in each validation",
                ", ".join(f"{name}: 0" for name in self.values if name not in self.metrics),
                "count the tokens or rows that each sum goes over, and leave out batches that have none",
            )

    @property
    def units(self) -> int:
        """The units of the first term, which speed is measured in."""
        return int(next(iter(self.values.values()))[1]) if self.values else 0


def _mean(amount: float, units: int) -> float:
    """A term without units, such as a batch without a masked word, has nothing to say."""
    return amount / units if units else 0.0


def checked_terms(terms: Any) -> Terms:
    """What a loss function returned, or an error that says what it should have."""
    expected = '{"name": (sum, units)}: a Tensor with one element, and the number of tokens or rows it sums over'
    if not isinstance(terms, Mapping) or not terms:
        raise CallError("the loss returned no named terms", expected, describe(terms), 'return {"loss": (sum, units)}')
    checked: Terms = {}
    for name, term in terms.items():
        if (
            not isinstance(name, str)
            or not isinstance(term, (tuple, list))
            or len(term) != 2
            or not isinstance(amount := _as_amount(term[0]), Tensor)
            or amount.size != 1
        ):
            raise CallError(f"the loss's term {name!r} is not a sum with its units", expected, describe(term))
        checked[name] = (amount.reshape(()), _count(name, term[1]))
    return checked


def _as_amount(value: Any) -> Any:
    """A metric may be a plain number."""
    return wrap(np.asarray(value)) if isinstance(value, (int, float, np.number)) else value


def _count(name: str, units: Any) -> int:
    try:
        count = operator.index(units)
    except TypeError:
        count = -1
    if count < 0:
        raise CallError(
            f"the loss's term {name!r} has impossible units", "a whole number from 0", repr(units), "int(n)"
        )
    return count


def backward_all(
    loss: Callable[[Any, Any], Any],
    model: Any,
    batches: Sequence[Any],
    backward: Callable[[Tensor], None],
    threads: int | None = 1,
) -> tuple[Totals, float]:
    """Add up the gradients of all batches of a step; returns the terms' totals and what the gradients must be multiplied by.

    A loss with several terms (metrics not counted) must know the units of a batch beforehand (`loss.units(batch)`), since each
    term has its own divisor. For a single term the right divisor is known in the end, and is what remains to be applied.
    """
    totals = Totals()
    known = _known_units(loss, batches)
    divisors: dict[str, int] | None = known
    learned: set[str] = set()
    for batch in batches:
        shares = on_every_core(model, loss, batch, threads)
        parts = forward_all(lambda piece: checked_terms(loss(model, piece)), shares)
        terms = _together(parts)
        recorded = {name for part in parts for name, (amount, _) in part.items() if amount.requires_grad}
        metrics, learned = _metrics(terms, recorded), learned | recorded
        if divisors is None:
            if len(batches) > 1 and len(terms.keys() - metrics) > 1:
                raise CallError(
                    "a loss with several terms cannot be accumulated: each has its own divisor",
                    "a loss with a method units(batch) -> {name: count}",
                    ", ".join(terms),
                    "add the method, or train with accumulate=1",
                )
            divisors = {name: units or 1 for name, (_, units) in terms.items()}
        if divisors.keys() - metrics != terms.keys() - metrics:
            raise CallError(
                "the loss's terms changed", ", ".join(divisors), ", ".join(terms), "give every term each time"
            )
        totals.add(terms)
        losses = [total for part in parts if (total := _total(part, divisors, metrics)) is not None]
        if len(losses) > 1:
            backward_shares(losses)
        elif losses:
            backward(losses[0])
    totals.metrics = _metrics(totals.values, learned)
    totals.check_units()
    if known is not None:
        _check_promise(known, totals)
        return totals, 1.0
    (first, units), *others = [(name, n) for name, (_, n) in totals.values.items() if name not in totals.metrics]
    assert divisors is not None
    return totals, 1.0 if others or not units else divisors[first] / units


def _known_units(loss: Any, batches: Sequence[Any]) -> dict[str, int] | None:
    units = getattr(loss, "units", None)
    if units is None or len(batches) == 1:
        return None
    known: dict[str, int] = {}
    for batch in batches:
        for name, count in units(batch).items():
            known[name] = known.get(name, 0) + _count(name, count)
    return known


def _check_promise(known: Mapping[str, int], totals: Totals) -> None:
    counted = {name: units for name, (_, units) in totals.values.items() if name in known or name not in totals.metrics}
    if counted != known:
        raise CallError("the loss's units(batch) is not what its terms then say", counted, dict(known))


def _together(parts: Sequence[Terms]) -> dict[str, tuple[Any, int]]:
    """The terms of all shares of a batch, added up."""
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


def _metrics(terms: Mapping[str, Sequence[Any]], learned: Set[str]) -> frozenset[str]:
    """The terms that count something but depend on no parameter, if there are others: a metric alone is a mistake."""
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


def _total(terms: Terms, divisors: Mapping[str, int], metrics: frozenset[str]) -> Tensor | None:
    """The loss that one share of a batch adds; None if nothing in it counts."""
    parts = [amount / divisors[name] for name, (amount, units) in terms.items() if units and name not in metrics]
    if not parts:
        return None
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    if not total.requires_grad:
        raise GradientError(
            "the loss does not depend on any parameter that is trained",
            fix="check that the loss uses the model's output, and that not everything is frozen",
        )
    return total


def scale_gradients(params: Iterable[Tensor], factor: float) -> None:
    """Multiply all gradients in place."""
    if factor == 1.0:
        return
    for p in params:
        g = None if p.node is None else p.node.grad
        if g is not None:
            with on_device_of(g), np.errstate(all="ignore"):
                g *= factor
            writes.mark(g)
