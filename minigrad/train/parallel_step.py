"""One step of a model that is divided among ranks: microbatches in the order of a pipeline's schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..engine.tensor import Tensor
from ..errors import CallError, NonFiniteError
from ..nn.clipping import clip_factor
from ..optim import Optimizer
from ..parallel.distributed_model import DistributedModel, parallelize
from ..parallel.mesh import Mesh
from ..parallel.pipeline import balanced, check_blocks, schedule
from ..parallel.profiling import profile_blocks
from ..parallel.timeline import spent
from ..random import new_seed, shard_of_step
from .accumulation import Divisors, known_units, total_loss
from .data_parallel import row_count, shard_batch, shard_of_rank
from .evaluation import kept_random_states
from .loss_terms import MeanTerms, Terms, Totals, checked_terms, metrics_among
from .train_step import StepResult, TrainStep

if TYPE_CHECKING:
    from .trainer import Trainer

__all__ = ["ParallelStep", "divide"]

MEASURED = 4  # rows of a batch with which the cost of blocks is measured


def divide(trainer: Trainer, mesh: Mesh) -> DistributedModel:
    """Divide the model and the optimiser of a trainer, which are whole and alike on every rank."""
    if mesh.layout.pipeline == 1:
        return parallelize(trainer.model, trainer.optimizer, mesh)
    counts, uses = mesh.world.broadcast(_measured(trainer, mesh) if mesh.world.rank == 0 else None)
    trainer.stages = list(counts)
    return parallelize(trainer.model, trainer.optimizer, mesh, counts, uses)


def _measured(trainer: Trainer, mesh: Mesh) -> tuple[list[int], dict[str, list[int]]]:
    """How many blocks each stage gets, by the time that they take with the first batch, and where parameters are used."""
    check_blocks(trainer.model)
    position = trainer.data.state_dict()
    with kept_random_states():
        batch = shard_batch(next(iter(trainer.data)), 1)[0].batch
        rows = row_count(batch)
        few = shard_batch(batch, max((rows or 1) // MEASURED, 1))[0].batch
        costs, uses = profile_blocks(trainer.model, trainer.loss, few)
    trainer.data.load_state_dict(position)
    known = trainer.stages if trainer.stages is not None and len(trainer.stages) == mesh.layout.pipeline else None
    return list(mesh.layout.stages or known or balanced(costs, mesh.layout.pipeline)), uses


class _Piece(NamedTuple):
    """A microbatch: some rows of a batch, with the seed of that batch."""

    batch: Any
    seed: int
    first: int
    rows: int
    counts: bool


class ParallelStep(TrainStep):
    """One step of the optimiser, in which every rank does its part."""

    def __init__(
        self,
        model: Any,
        loss: Callable[[Any, Any], Any],
        optimizer: Optimizer,
        clip_norm: float | None,
        distributed: DistributedModel,
    ):
        super().__init__(model, distributed.loss(loss), optimizer, None, clip_norm, threads=1)
        self.distributed, self.mesh = distributed, distributed.mesh
        self.group = distributed.mesh.data_group

    def step(self, batches: Sequence[Any], number: int) -> StepResult:
        result = super().step(batches, number)
        with spent("gather"):
            self.distributed.after_step()
        return result

    def _gradients(self, batches: Sequence[Any]) -> tuple[Totals, float, float]:
        self.optimizer.zero_grad()
        self.called.zero_grad()
        with self.distributed.present():
            totals, divisors = self._accumulated(batches)
        with spent("reduce"):
            self.distributed.reduce_gradients()
        totals = self._reduced(totals)
        totals.check_units()
        factor = divisors.remaining(totals)
        norm = self.distributed.grad_norm() * factor
        return totals, norm, factor * clip_factor(norm, self.max_norm)

    def _pieces(self, batches: Sequence[Any]) -> Iterator[_Piece]:
        """As many microbatches on every rank, since ranks wait for each other; one without a row of its own repeats one."""
        most = self.mesh.layout.pieces
        for batch in batches:
            shard, seed = shard_of_rank(batch, self.group), new_seed()
            parts = shard_batch(shard.batch, most)
            count = min(most, max(other.rows for other in shard_batch(batch, self.group.size)))
            for index in range(max(count, len(parts))):
                part = parts[min(index, len(parts) - 1)]
                counts = shard.counts and index < len(parts)
                yield _Piece(part.batch, seed, shard.first + part.first, part.rows, counts)

    def _accumulated(self, batches: Sequence[Any]) -> tuple[Totals, Divisors]:
        """The totals of this rank, and what each term was divided by."""
        pieces, mesh = [*self._pieces(batches)], self.mesh
        known = known_units(self.loss, batches)
        divisors = None if known is None else Divisors(known, promised=True)
        totals = Totals()
        losses: dict[int, Tensor] = {}
        for kind, index in schedule(mesh.layout.schedule, mesh.layout.pipeline, mesh.pipeline, len(pieces)):
            piece = pieces[index]
            with spent(kind, index):
                if kind == "backward":
                    losses.pop(index).backward()
                    continue
                with shard_of_step(piece.seed, piece.first, piece.rows):
                    terms = checked_terms(self.loss(self.called, piece.batch), piece.batch)
                self._check(terms, len(pieces))
                recorded = {name for name, (amount, _) in terms.items() if amount.requires_grad}
                metrics = metrics_among(terms, recorded) if mesh.is_last else frozenset()
                if divisors is None:
                    divisors = self._first(terms, metrics, len(pieces))
                totals.add(terms if piece.counts and mesh.counts_loss else dict.fromkeys(terms, (0.0, 0)), metrics)
                losses[index] = self._loss_of(terms, divisors, metrics, piece.counts)
        assert divisors is not None
        return totals, divisors

    def _check(self, terms: Terms, pieces: int) -> None:
        if isinstance(terms, MeanTerms) and (self.group.size > 1 or pieces > 1):
            raise CallError(
                "the loss is a scalar, and ranks or microbatches divide each batch",
                'named terms, {"loss": (sum, units)}',
                "a scalar",
                'return {"loss": (sum, units)}',
            )

    def _first(self, terms: Terms, metrics: frozenset[str], pieces: int) -> Divisors:
        """The units of the first microbatch on all data-parallel ranks; the last stage knows which terms count."""
        learned = [name for name in terms if name not in metrics]
        if self.mesh.is_last and pieces > 1 and len(learned) > 1:
            raise CallError(
                "a loss with several terms cannot be accumulated: each has its own divisor",
                "a loss with a method units(batch) -> {name: count}",
                ", ".join(learned),
                "add the method, or train with accumulate=1, pipeline=1",
            )
        counts = np.array([units for _, units in terms.values()], np.float64)
        self.group.all_reduce([counts])
        return Divisors({name: int(count) or 1 for name, count in zip(terms, counts)}, promised=False)

    def _loss_of(self, terms: Terms, divisors: Divisors, metrics: frozenset[str], counts: bool) -> Tensor:
        """What this rank's backward begins with: the loss, or on other stages what was sent."""
        if not self.mesh.is_last:
            token: Tensor = self.distributed.pass_state.token
            return token
        total = total_loss(terms, divisors.units, metrics)
        if total is None or not counts:  # other ranks wait for gradients all the same
            parts = [amount for name, (amount, _) in terms.items() if amount.requires_grad]
            total = sum(parts[1:], parts[0]) * 0.0
        return total

    def _reduced(self, totals: Totals) -> Totals:
        """The sum of the totals over all ranks; which terms are metrics, the last stages know."""
        numbers = np.array([[*pair] for pair in totals.values.values()], np.float64)
        votes = np.array([float(name in totals.metrics and self.mesh.counts_loss) for name in totals.values])
        self.mesh.world.all_reduce([numbers, votes])
        values = {name: [float(s), int(n)] for name, (s, n) in zip(totals.values, numbers)}
        return Totals(values, [name for name, vote in zip(values, votes) if vote])

    def _explained(self, batches: Sequence[Any], number: int) -> NonFiniteError:
        return NonFiniteError(
            f"step {number}: the loss or its gradient is not finite; the weights were not changed",
            got="a model that is divided among ranks, where the op is not searched for",
            fix="lower the learning rate, clip gradients, or resume in one process, which names the op",
        )
