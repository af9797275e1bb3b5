"""The gradient of one step, accumulated over its batches, threads and ranks; exact however ragged the batches are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..engine.backend import backend_of, on_device_of
from ..engine.modes import no_grad
from ..engine.tensor import Tensor
from ..engine.writes import writes
from ..errors import CallError, GradientError
from ..runtime.process_group import ProcessGroup
from .data_parallel import backward_shards, forward_shards, shard_of_rank, thread_shards
from .loss_terms import MeanTerms, Terms, Totals, as_count, checked_terms, metrics_among, sum_terms

__all__ = [
    "Divisors", "WholeBatchNeeded", "accumulate_gradients", "all_reduce_gradients", "known_units", "total_loss",
]  # fmt: skip


def accumulate_gradients(
    loss: Callable[[Any, Any], Any],
    model: Any,
    batches: Sequence[Any],
    backward: Callable[[Tensor], None],
    threads: int | None = 1,
    group: ProcessGroup | None = None,
    compiled: Callable[[Any], Any] | None = None,
) -> tuple[Totals, Divisors]:
    """Accumulate the gradients of all batches of a step, for the rows of this rank; returns the totals and the divisors.

    Each term is divided by its units in the whole step. A loss with several terms (metrics not counted) must know the units
    of a batch beforehand, by `loss.units(batch)`. With a single term the divisor may be wrong until the last batch is done;
    `Divisors.remaining` is the factor that corrects the gradients then. `compiled(batch)` is called in the place of
    `loss(model, batch)`, if given.
    """
    terms_of = compiled or partial(loss, model)
    group = group or ProcessGroup()
    totals = Totals()
    known = None if len(batches) == 1 == group.size else known_units(loss, batches)
    divisors = None if known is None else Divisors(known, promised=True)
    learned: set[str] = set()
    for batch in batches:
        shard = shard_of_rank(batch, group)
        shards = thread_shards(model, loss, shard, threads)
        with nullcontext() if shard.counts else no_grad():
            parts = forward_shards(lambda piece: checked_terms(terms_of(piece), piece), shards)
        if isinstance(parts[0], MeanTerms):
            _check_whole(len(shards), group.size)
            totals.is_mean = True
        terms = sum_terms(parts) if shard.counts else dict.fromkeys(parts[0], (0.0, 0))
        recorded = {name for part in parts for name, (amount, _) in part.items() if amount.requires_grad}
        metrics, learned = metrics_among(terms, recorded), learned | recorded
        if divisors is None:
            divisors = _first_units(terms, metrics, batches, group)
        promised = {name for name, units in divisors.units.items() if units or name in terms}
        given = {name for name, (_, units) in terms.items() if units or name in divisors.units}
        if promised - metrics != given - metrics:
            raise CallError(
                "the loss's terms changed", ", ".join(divisors.units), ", ".join(terms), "give every term each time"
            )
        totals.add(terms)
        if shard.counts:
            losses = [total_loss(part, divisors.units, metrics) for part in parts]
            backward_shards([total for total in losses if total is not None], backward)
    totals.metrics = metrics_among(totals.values, learned)
    assert divisors is not None
    return totals, divisors


class WholeBatchNeeded(Exception):
    """The loss gave a scalar for a shard: it is to be computed again, for the whole batch."""


def _check_whole(shards: int, ranks: int) -> None:
    """A scalar is the loss of a whole batch; what it would be of a shard is not known."""
    if ranks > 1:
        raise CallError(
            f"the loss is a scalar, and {ranks} ranks divide each batch",
            'named terms, {"loss": (sum, units)}',
            "a scalar",
            'return {"loss": (sum, units)}',
        )
    if shards > 1:
        raise WholeBatchNeeded


@dataclass(frozen=True)
class Divisors:
    """The units that each term was divided by: `promised` by the loss for the whole step, or those of the first batch."""

    units: dict[str, int]
    promised: bool

    def remaining(self, totals: Totals) -> float:
        """The factor that the gradients still need, given the totals of the whole step."""
        counted = {name: n for name, (_, n) in totals.values.items() if name not in totals.metrics}
        if self.promised:
            counted |= {name: n for name, (_, n) in totals.values.items() if name in self.units}
            if {k: n for k, n in counted.items() if n} != {k: n for k, n in self.units.items() if n}:
                raise CallError("the loss's units(batch) is not what its terms then say", counted, dict(self.units))
            return 1.0
        (first, units), *others = counted.items()
        return 1.0 if others or not units else self.units[first] / units


def _first_units(
    terms: Mapping[str, Sequence[Any]], metrics: frozenset[str], batches: Sequence[Any], group: ProcessGroup
) -> Divisors:
    """The units of the first batch, summed over all ranks."""
    if len(batches) > 1 and len(terms.keys() - metrics) > 1:
        raise CallError(
            "a loss with several terms cannot be accumulated: each has its own divisor",
            "a loss with a method units(batch) -> {name: count}",
            ", ".join(terms),
            "add the method, or train with accumulate=1",
        )
    counts = np.array([units for _, units in terms.values()], np.float64)
    group.all_reduce([counts])
    return Divisors({name: int(count) or 1 for name, count in zip(terms, counts)}, promised=False)


def known_units(loss: Any, batches: Sequence[Any]) -> dict[str, int] | None:
    """The units of each term in all batches, if the loss tells them beforehand: `loss.units(batch)`, None for a batch of which it cannot."""
    units = getattr(loss, "units", None)
    counts = [] if units is None else [units(batch) for batch in batches]
    if units is None or None in counts:
        return None
    known: dict[str, int] = {}
    for count in counts:
        for name, number in count.items():
            known[name] = known.get(name, 0) + as_count(name, number)
    return known


def all_reduce_gradients(group: ProcessGroup, params: Iterable[Tensor], totals: Totals) -> None:
    """Sum the gradients and the totals over all ranks.

    A parameter that has no gradient on any rank keeps none, so that the optimiser does not change it.
    """
    if group.size == 1:
        return
    tensors = list({id(p.node): p for p in params if p.node is not None}.values())
    has = [float(p.node.grad is not None) for p in tensors]  # type: ignore[union-attr]
    terms = list(totals.values.values())
    is_metric = [float(name in totals.metrics) for name in totals.values]
    numbers = np.array([*(amount for amount, _ in terms), *(units for _, units in terms), *is_metric, *has], np.float64)
    gradients = [_gradient(p) for p in tensors]
    group.all_reduce([numbers, *gradients])
    amounts, units, votes, counts = np.split(numbers, [len(terms), 2 * len(terms), 3 * len(terms)])
    totals.metrics = frozenset(name for name, vote in zip(totals.values, votes) if vote)
    totals.values = {name: [float(s), int(n)] for name, s, n in zip(totals.values, amounts, units)}
    for p, g, count in zip(tensors, gradients, counts):
        if count:
            p.node.grad = g  # type: ignore[union-attr]
            writes.mark(g)


def _gradient(p: Tensor) -> Any:
    """The gradient on this rank: zeros where it has none."""
    g = None if p.node is None else p.node.grad
    if g is not None:
        return g
    with on_device_of(p.data):
        return backend_of(p.data).xp.zeros(p.shape, p.dtype)


def total_loss(terms: Terms, divisors: Mapping[str, int], metrics: frozenset[str]) -> Tensor | None:
    """The loss of one shard; None if none of its terms has units."""
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
