"""The gradient of one step, exact however ragged its batches are.

A loss gives named terms, each a sum and the number of units (tokens, sentences, rows) it was summed over. The loss of a
step is Σ over terms of (all sums / all units), so ten batches give what one batch of all their examples would.
A term that no parameter has a part in, such as a count of right answers, is a metric: it is averaged and shown, not added.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine.backend import backend_of, on_device_of
from ..engine.errors import CallError, GradientError, describe
from ..engine.modes import no_grad
from ..engine.tensor import Tensor, wrap
from ..engine.writes import writes
from .parallel import backward_shares, forward_all, of_rank, on_every_core
from .world import World

__all__ = ["Divisors", "Totals", "add_up_ranks", "backward_all", "checked_terms", "scale_gradients"]

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
    world: World | None = None,
) -> tuple[Totals, Divisors]:
    """Add up the gradients of all batches of a step, of this rank's rows; returns its totals, and what they were divided by.

    A loss with several terms (metrics not counted) must know the units of a batch beforehand (`loss.units(batch)`), since
    each term has its own divisor. For a single term the right divisor is known in the end, and `Divisors.remaining` says
    what the gradients must still be multiplied by.
    """
    world = world or World()
    totals = Totals()
    divisors = _known_units(loss, batches, world)
    learned: set[str] = set()
    for batch in batches:
        share = of_rank(batch, world)
        shares = on_every_core(model, loss, share, threads)
        with nullcontext() if share.counts else no_grad():
            parts = forward_all(lambda piece: checked_terms(loss(model, piece)), shares)
        terms = _together(parts) if share.counts else dict.fromkeys(parts[0], (0.0, 0))
        recorded = {name for part in parts for name, (amount, _) in part.items() if amount.requires_grad}
        metrics, learned = _metrics(terms, recorded), learned | recorded
        if divisors is None:
            divisors = _first_units(terms, metrics, batches, world)
        if divisors.units.keys() - metrics != terms.keys() - metrics:
            raise CallError(
                "the loss's terms changed", ", ".join(divisors.units), ", ".join(terms), "give every term each time"
            )
        totals.add(terms)
        if share.counts:
            _backward_parts(parts, divisors.units, metrics, backward)
    totals.metrics = _metrics(totals.values, learned)
    assert divisors is not None
    return totals, divisors


def _backward_parts(
    parts: Sequence[Terms], units: Mapping[str, int], metrics: frozenset[str], backward: Callable[[Tensor], None]
) -> None:
    losses = [total for part in parts if (total := _total(part, units, metrics)) is not None]
    if len(losses) > 1:
        backward_shares(losses)
    elif losses:
        backward(losses[0])


@dataclass(frozen=True)
class Divisors:
    """What the sums of a step's terms were divided by before it was known how many units it has; or, `promised`, knowing it."""

    units: dict[str, int]
    promised: bool

    def remaining(self, totals: Totals) -> float:
        """What is left to multiply the gradients by, given the totals of the whole step."""
        counted = {name: n for name, (_, n) in totals.values.items() if name not in totals.metrics}
        if self.promised:
            counted |= {name: n for name, (_, n) in totals.values.items() if name in self.units}
            if counted != self.units:
                raise CallError("the loss's units(batch) is not what its terms then say", counted, dict(self.units))
            return 1.0
        (first, units), *others = counted.items()
        return 1.0 if others or not units else self.units[first] / units


def _first_units(
    terms: Mapping[str, Sequence[Any]], metrics: frozenset[str], batches: Sequence[Any], world: World
) -> Divisors:
    """The units of the first batch, of all ranks together."""
    if len(batches) > 1 and len(terms.keys() - metrics) > 1:
        raise CallError(
            "a loss with several terms cannot be accumulated: each has its own divisor",
            "a loss with a method units(batch) -> {name: count}",
            ", ".join(terms),
            "add the method, or train with accumulate=1",
        )
    counts = np.array([units for _, units in terms.values()], np.float64)
    world.add_up([counts])
    return Divisors({name: int(count) or 1 for name, count in zip(terms, counts)}, promised=False)


def _known_units(loss: Any, batches: Sequence[Any], world: World) -> Divisors | None:
    units = getattr(loss, "units", None)
    if units is None or len(batches) == 1 == world.size:
        return None
    known: dict[str, int] = {}
    for batch in batches:
        for name, count in units(batch).items():
            known[name] = known.get(name, 0) + _count(name, count)
    return Divisors(known, promised=True)


def add_up_ranks(world: World, params: Iterable[Tensor], totals: Totals) -> None:
    """Let the gradients and the totals of this rank become those of all ranks.

    A parameter that no rank has a gradient for is left without, so that the optimiser leaves it alone.
    """
    if world.size == 1:
        return
    tensors = list({id(p.node): p for p in params if p.node is not None}.values())
    has = [float(p.node.grad is not None) for p in tensors]  # type: ignore[union-attr]
    terms = list(totals.values.values())
    is_metric = [float(name in totals.metrics) for name in totals.values]
    numbers = np.array([*(amount for amount, _ in terms), *(units for _, units in terms), *is_metric, *has], np.float64)
    gradients = [_gradient(p) for p in tensors]
    world.add_up([numbers, *gradients])
    amounts, units, votes, counts = np.split(numbers, [len(terms), 2 * len(terms), 3 * len(terms)])
    totals.metrics = frozenset(name for name, vote in zip(totals.values, votes) if vote)
    totals.values = {name: [float(s), int(n)] for name, s, n in zip(totals.values, amounts, units)}
    for p, g, count in zip(tensors, gradients, counts):
        if count:
            p.node.grad = g  # type: ignore[union-attr]
            writes.mark(g)


def _gradient(p: Tensor) -> Any:
    """The gradient to be added up: zeros where this rank has none."""
    g = None if p.node is None else p.node.grad
    if g is not None:
        return g
    with on_device_of(p.data):
        return backend_of(p.data).xp.zeros(p.shape, p.dtype)


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
