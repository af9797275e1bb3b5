"""The training loop. It knows nothing about the model, and a run that was interrupted or killed can be resumed."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any

from ..errors import ArgumentError, CheckpointError, NonFiniteError, nearest
from ..metrics import spelled
from ..optim import MixedPrecision, Optimizer, Plateau, Schedule
from ..parallel import Layout, Mesh
from ..parallel.distributed_model import DistributedModel
from ..parallel.mesh import check_alike
from ..random import seed_everything
from ..runtime.process_group import process_group
from ..runtime.signals import StopSignal
from ..signature import Constructed
from .animation import FrameWriter
from .arguments import arguments_of, check_arguments, plain_config, reports
from .callbacks import Events
from .checkpoint import Checkpoint
from .compile_choice import choose, compiled_loss
from .data_parallel import check_shardable
from .epochs import Epochs
from .evaluation import evaluate, evaluation_mode
from .loss_terms import RaggedBatches, Totals
from .parallel_step import ParallelStep, divide
from .progress import Progress, Timer, duration
from .run import Run, RunError, holds_a_run
from .samplers import as_sampler
from .snapshot import broadcast_state, capture, differences, not_finite, restore, versions
from .train_step import StepResult, TrainStep

__all__ = ["Trainer", "TrainResult"]

SAVE_SECONDS = 300.0  # between two checkpoints, without save_every


@dataclasses.dataclass(frozen=True)
class TrainResult:
    """How training ended: after which step, why, the best validation so far, and the loss of the first and the last step.

    The first loss is None for a run that was resumed, the last for one that took no step.
    """

    step: int
    reason: str
    best: float | None
    best_step: int | None
    out: Path | None
    first_loss: float | None = None
    last_loss: float | None = None


class Trainer(Constructed):
    """Train a model: `Trainer(model, loss, data, optimizer, out="runs/first", max_steps=1000).train()`.

    `loss(model, batch)` returns named terms, `{"loss": (sum, units)}`; the loss of a step is Σ sum / units. A term
    that depends on no parameter, `"accuracy": (right, rows)`, is a metric: shown and logged, not added to the loss.
    It may also return a scalar, the mean over the rows of the batch. `data` is a DataLoader or another sampler
    (minigrad.data), or a list of batches; a step takes `accumulate` of them, as if they were one. Training ends after
    `epochs`, `max_steps` or `max_minutes`. `seed` seeds all random generators; without one they keep their state.

    `valid` is data too, or a function `valid(model)` that returns named numbers; either way the model is in evaluation
    mode and nothing is recorded. It is used every `valid_every` steps, or without that after each of the `epochs`, and
    at the end. `metric` among the names, `"loss"` unless said otherwise, decides which checkpoint is
    best, and after `patience` validations without a better one training stops. `samples(model)` returns text that is
    shown at each validation, and `draw(model)` a picture (a minigrad.viz.Scene, or None), for some forty frames of an
    animation. `schedule` is stepped after each step, a Plateau after each validation. With `scaler`, a MixedPrecision
    of model and optimizer, these functions are given it in the place of the model. `callbacks` are objects with some
    of the methods of minigrad.train.Callback.

    `compile` is "on", "off" or "auto", which compiles the loss where that pays (docs/compiling.md).

    With `out`, a run directory, training can be resumed: `Trainer.resume(…)` with the same arguments. A checkpoint,
    with `tokenizer` and `config` (plain values, or a dataclass) inside, is written every `save_every` steps or five
    minutes, and at each best validation; the newest `keep` of them stay (None: all), and the best. Every `log_every`
    steps there is a row in `metrics.csv`. docs/training.md has examples.

    `parallel` is a `minigrad.parallel.Layout`: how a model is divided among several processes (docs/parallel.md).

    The same script trains on several processes or machines: `mpiexec -n 4 python train.py`. Each rank computes its shard
    of every batch; rank 0 validates, writes and prints. Handlers of "save" are called on rank 0, all others on every rank.
    """

    def __init__(
        self,
        model: Any,
        loss: Callable[[Any, Any], Any],
        data: Any,
        optimizer: Optimizer,
        *,
        out: str | os.PathLike[str] | None = None,
        schedule: Schedule | None = None,
        valid: Any = None,
        tokenizer: Any = None,
        config: Any = None,
        seed: int | None = None,
        epochs: int | None = None,
        max_steps: int | None = None,
        max_minutes: float | None = None,
        accumulate: int = 1,
        clip_norm: float | None = None,
        log_every: int = 10,
        valid_every: int | None = None,
        save_every: int | None = None,
        keep: int | None = 3,
        patience: int | None = None,
        metric: str = "loss",
        maximize: bool = False,
        samples: Callable[[Any], Any] | None = None,
        draw: Callable[[Any], Any] | None = None,
        callbacks: Sequence[Any] = (),
        scaler: MixedPrecision | None = None,
        progress: bool = True,
        compile: str = "auto",
        parallel: Layout | None = None,
        _resuming: bool = False,
    ):
        self.model, self.loss, self.optimizer = model, loss, optimizer
        self.data = as_sampler("data", data, seed or 0)
        self.valid = valid if valid is None or callable(valid) else as_sampler("valid", valid, seed or 0)
        self.schedule, self.tokenizer, self.scaler = schedule, tokenizer, scaler
        self.samples, self.draw = samples, draw
        self.config = plain_config(config)
        self.seed, self.epochs, self.max_steps, self.max_minutes = seed, epochs, max_steps, max_minutes
        self.accumulate, self.clip_norm, self.log_every = accumulate, clip_norm, log_every
        self.valid_every, self.save_every, self.keep = valid_every, save_every, keep
        self.patience, self.metric, self.maximize = patience, metric, maximize
        self.out = None if out is None else Path(out)
        self.parallel = Layout() if parallel is None else parallel
        self.compile = compile
        self.compiled: bool | None = None if compile == "auto" else compile == "on"
        self.compile_reason = "as asked"
        self.callbacks = list(callbacks)
        check_arguments(self)

        self.step = 0
        self.passed = Epochs(self.data, epochs)
        self.best: float | None = None
        self.best_step: int | None = None
        self.waited = 0  # validations since the best one
        self.seconds = 0.0  # of training, earlier calls of train() included
        self.window = Totals()  # the loss since the last row of metrics.csv
        self._first_loss: float | None = None
        self._last: Totals | None = None  # of the last step
        self.group = process_group()
        self.stages: list[int] | None = None  # of a pipeline: how many blocks each has
        self.distributed: DistributedModel | None = None  # while a model that is divided is trained
        self.progress = Progress(shown=progress and self.group.rank == 0)
        self._frames = FrameWriter()
        self._handlers = Events(self.callbacks)
        self._ragged = RaggedBatches()
        self._reason: str | None = None
        self._run: Run | None = None
        self._saved_step: int | None = None  # None: the run has not begun
        self._unbounded: list[str] = []  # tensors that held NaN or infinity from the start, as a mask may
        self._lr = 0.0
        self.resume_hint = f"Trainer.resume(…, out={os.fspath(self.out or '')!r}) and the same arguments"
        self._metrics: frozenset[str] = frozenset()  # the terms of the loss that are metrics
        with self.group.abort_on_error():
            self.mesh = None if self.parallel.is_plain else Mesh(self.parallel, self.group)
            if self.mesh is None:
                check_alike(self.parallel, self.group)
        if self.out is not None and not _resuming:
            with self.group.abort_on_error():
                taken = self.group.broadcast(self.group.rank == 0 and holds_a_run(self.out))
            _refuse(self.out, taken)

    @classmethod
    def resume(cls, *args: Any, **kwargs: Any) -> Trainer:
        """A trainer that continues the run in `out`, or begins it if there is none; same arguments as `Trainer`.

        On the same machine, with the same versions and number of threads, the result is bit for bit that of a run without
        the interruption. Where one of them differs, it says so and continues.
        """
        if kwargs.get("out") is None:
            raise ArgumentError("Trainer.resume: which run?", 'out="the run\'s directory"', fix="pass out=…")
        trainer = cls(*args, **kwargs, _resuming=True)
        with trainer.group.abort_on_error():
            if trainer.group.rank == 0:
                trainer._run = Run(trainer.out)  # type: ignore[arg-type]
            try:
                trainer._load()
            except BaseException:
                trainer._close()
                raise
        return trainer

    def on(self, event: str, function: Callable[[Trainer, dict[str, Any]], Any]) -> Callable[..., Any]:
        """Call `function(trainer, info)` at every "step", "epoch", "valid", "save" or "stop"."""
        self._handlers.on(event, function)
        return function

    def stop(self, reason: str = "stopped") -> None:
        """Stop after this step; for handlers of events."""
        self._reason = self._reason or reason

    def train(self) -> TrainResult:
        """Train until `epochs`, `max_steps`, `max_minutes`, `patience`, Ctrl-C or `stop()`.

        It also returns after Ctrl-C; the `reason` of the result is then "interrupted".
        """
        self._reason = None
        try:
            with self.group.abort_on_error():
                check_shardable(self.group, self.model, self.loss)
                if not any(module.training for module in self.model.modules()):
                    self.model.train()
                self._open()
                for report in reports(self):
                    self.progress.say(report)
                with StopSignal(verbose=self.group.rank == 0) as signal:
                    self._loop(signal)
                if self.distributed is not None:
                    self.distributed.join()
        finally:
            self.distributed = None
            self.progress.close()
            self._close()
        self._handlers.emit("stop", self, {"reason": self._reason})
        self._print_end()
        last = None if self._last is None else self._last.means()["loss"]
        return TrainResult(self.step, self._reason or "", self.best, self.best_step, self.out, self._first_loss, last)

    def _loop(self, signal: StopSignal) -> None:
        self._draw()  # before the clock starts
        train_step = self._step_of()
        if self.step == 0:
            self.passed.begin()
        stream = self.passed.batches(lambda: self._end_epoch({}))
        self._timer, self._saved_at = Timer(self.seconds), monotonic()
        if self._saved_step is None:
            self._save()
        while not self._is_over(signal.received):
            outcome = self._advance(train_step, stream)
            if outcome is None:
                continue
            if self.valid is not None and not callable(self.valid):
                self._check_metric(outcome.totals.means())  # a validation will have the same names
            epoch_ended = self.passed.has_ended()
            last = self.step == self.max_steps or self.passed.are_over
            due = self._due(self.valid_every) if self.valid_every else epoch_ended and self.epochs is not None
            validation = self._validate() if self.valid is not None and (last or due) else {}
            better = bool(validation) and self._update_best(validation)
            if validation or last or self._due(self.log_every):
                self._record(outcome, validation)
            if epoch_ended:
                self._end_epoch(validation)
            if better or self._save_is_due():
                self._save(best=better)
            if self._frames.is_due(self.step, self.planned_steps):
                self._draw()
        if self._saved_step != self.step:
            self._save(last=True)
        self._draw()

    def _step_of(self) -> TrainStep:
        """What takes the steps."""
        if self.distributed is not None:
            return ParallelStep(self.model, self.loss, self.optimizer, self.clip_norm, self.distributed)
        return TrainStep(
            self.model, self.loss, self.optimizer, self.scaler, self.clip_norm, compiled=compiled_loss(self)
        )

    def _whole(self, optimizer: bool = False) -> AbstractContextManager[None]:
        """Inside, rank 0 has the whole model."""
        return nullcontext() if self.distributed is None else self.distributed.whole(optimizer)

    def _draw(self) -> None:
        if self.draw is not None:
            with self._whole():
                self._frames.take(self)

    @property
    def epoch(self) -> int:
        """How many epochs are over."""
        return self.passed.count

    @property
    def planned_steps(self) -> int | None:
        """How many steps there will be at most, if that is known: `max_steps`, or what `epochs` come to."""
        return min((n for n in (self.max_steps, self.passed.steps(self.accumulate)) if n is not None), default=None)

    def _end_epoch(self, validation: Mapping[str, float]) -> None:
        means = self.passed.totals.means() if self.passed.totals.values else {}
        valid = {f"valid_{name}": value for name, value in validation.items()}
        self.passed.totals = Totals()
        self._handlers.emit("epoch", self, {"epoch": self.epoch, "step": self.step, **means, **valid})

    def _is_over(self, interrupted: bool) -> bool:
        self.seconds = self._timer.total()
        if self.max_steps is not None and self.step >= self.max_steps:
            self._reason = "max_steps"
        elif self.passed.are_over:
            self._reason = "epochs"
        elif self.patience is not None and self.waited >= self.patience:
            self._reason = "patience"
        elif interrupted:
            self._reason = "interrupted"
        elif self.max_minutes is not None and self.seconds >= 60 * self.max_minutes:
            self._reason = "max_minutes"
        self._reason = next(filter(None, self.group.all_gather(self._reason)), None)
        return self._reason is not None

    def _advance(self, train_step: TrainStep, stream: Iterator[Any]) -> StepResult | None:
        """Take a step; None if the data came to their end instead."""
        batches = list(islice(stream, self.accumulate))
        if not batches:
            return None
        self._lr = float(self.optimizer.param_groups[0]["lr"])
        outcome = train_step.step(batches, self.step + 1)
        if outcome.totals.is_mean:
            self._ragged.check(batches)
        self.step += 1
        self._last = outcome.totals
        if self.step == 1:
            self._first_loss = self._last.means()["loss"]
        self._metrics |= outcome.totals.metrics
        if outcome.taken:
            for window in (self.window, self.passed.totals):
                window.add(outcome.totals.values, self._metrics)
            if self.schedule is not None and not isinstance(self.schedule, Plateau):
                self.schedule.step()
        self._timer.units += outcome.totals.units
        if self._handlers["step"]:
            info = {"step": self.step, **outcome.totals.means(), "lr": self._lr, "grad_norm": outcome.grad_norm}
            self._handlers.emit("step", self, {**info, "taken": outcome.taken})
        self.progress.update(self.step, self.planned_steps, self._shown)
        return outcome

    def _shown(self) -> str:
        unit = getattr(self.loss, "unit", "units")
        loss = f"loss {self.window.means()['loss']:.4f} | " if self.window.values else ""
        remaining = self._timer.remaining(self.step, self.planned_steps, self.max_minutes)
        eta = "" if remaining is None else f" | ETA {duration(remaining)}"
        return f"{loss}{self._timer.speed():,.0f} {unit}/s{eta}"

    def _validate(self) -> dict[str, float]:
        with evaluation_mode(self.model):
            values = evaluate(self.scaler or self.model, self.loss, self.valid, self._metrics, self.distributed)
            shown = None
            if self.samples is not None:
                with self._whole():
                    shown = self.samples(self.scaler or self.model) if self.group.rank == 0 else None
        self._check_metric(values)
        shown_values = ", ".join(f"{name} {spelled(name, value)}" for name, value in values.items())
        self.progress.say(f"step {self.step:,} | valid: {shown_values}")
        if shown is not None:
            self._show(shown if isinstance(shown, str) else "\n".join(map(str, shown)))
        self._handlers.emit("valid", self, {"step": self.step, **values})
        return values

    def _check_metric(self, values: Mapping[str, float]) -> None:
        if self.metric not in values:
            raise ArgumentError(
                f"Trainer: validation has no {self.metric!r}", ", ".join(values), fix=nearest(self.metric, values)
            )

    def _show(self, samples: str) -> None:
        self.progress.say(samples)
        if self._run is None:
            return
        try:
            self._run.write_text(f"samples/step-{self.step:08d}.txt", samples + "\n")
        except RunError as error:
            self.progress.say(f"{error}\n  training goes on without these samples")

    def _update_best(self, validation: Mapping[str, float]) -> bool:
        """Count this validation; returns whether it is the best so far, which a NaN never is."""
        value = validation[self.metric]
        if isinstance(self.schedule, Plateau):
            self.schedule.step(value)
        better = math.isfinite(value) and (
            self.best is None or (value > self.best if self.maximize else value < self.best)
        )
        self.waited = 0 if better else self.waited + 1
        if better:
            self.best, self.best_step = value, self.step
        return better

    def _record(self, outcome: StepResult, validation: Mapping[str, float]) -> None:
        """Write rows of the tables, and begin a new window."""
        loss = self.window.means() if self.window.values else {}
        valid = {f"valid_{name}": value for name, value in validation.items()}
        self.window = Totals()
        if self._run is None:
            return
        self._run.metrics.add({"step": self.step, **loss, "lr": self._lr, "grad_norm": outcome.grad_norm, **valid})
        seconds, speed = self._timer.total(), self._timer.speed()
        self._run.timing.add({"step": self.step, "seconds": seconds, "units_per_second": speed})
        if self._run.metrics.problem is not None:
            self.progress.say(f"metrics.csv cannot be written and waits: {self._run.metrics.problem.strerror}")

    def _due(self, every: int | None) -> bool:
        return every is not None and self.step % every == 0

    def _save_is_due(self) -> bool:
        is_late = self.save_every is None and monotonic() - self._saved_at > SAVE_SECONDS
        if self.distributed is not None:  # all ranks take part, and their clocks differ
            is_late = self.group.broadcast(is_late)
        return self._due(self.save_every) or is_late

    def _save(self, best: bool = False, last: bool = False) -> None:
        """Save. If that fails, say so and continue, since the disk may have room later; the first and last save must succeed."""
        self._saved_at = monotonic()
        with self._whole(optimizer=True) if self.out is not None else nullcontext():
            self._write(best, last)

    def _write(self, best: bool, last: bool) -> None:
        if self._run is None:
            self._saved_step = self.step
            return
        self.seconds = self._timer.total()
        tensors, state = capture(self)
        bad = not_finite(tensors)
        if self._saved_step is None:
            self._unbounded = bad
        bad = [name for name in bad if name not in self._unbounded]
        if bad:
            raise NonFiniteError(
                f"step {self.step}: {bad[0]} is not finite, and was not saved",
                fix=f"lower the learning rate and resume: the checkpoint of step {self._saved_step} is good",
            )
        try:
            path = self._run.save(self.step, tensors, state, best, self.keep)
        except CheckpointError as error:
            if last or self._saved_step is None:
                raise
            self.progress.say(f"{error}\n  the checkpoint of step {self._saved_step} is intact; training goes on")
            return
        self._saved_step = self.step
        self._handlers.emit("save", self, {"step": self.step, "path": path, "best": best})

    def _open(self) -> None:
        """Lock the run directory; at the beginning of a run, seed the random generators and write config.json."""
        if self.out is not None and self._run is None and self.group.rank == 0:
            self._run = Run(self.out)
            _refuse(self.out, self._saved_step is None and holds_a_run(self.out))
            if self._saved_step is not None:
                self._run.rewind(self.step)
        if self._saved_step is None and self.seed is not None:
            seed_everything(self.seed)
        if self.compiled is None and self.group.rank == 0:
            self.compiled, self.compile_reason = choose(self) if self.mesh is None else (False, "it is divided")
        broadcast_state(self.group, self)
        if self.mesh is not None:
            self.distributed = divide(self, self.mesh)
        if self._saved_step is None and self._run is not None:
            self._run.write_config({"config": self.config, "training": arguments_of(self), "versions": versions()})

    def _close(self) -> None:
        if self._run is not None:
            self._run.close()
            self._run = None

    def _load(self) -> None:
        """Restore the latest checkpoint of the run, which rank 0 reads; begin the run if there is none."""
        if self._run is not None:
            checkpoint = self._run.read_latest(self.progress.say)
            if checkpoint is not None:
                self._restore(checkpoint)
            self._run.rewind(-1 if checkpoint is None else self.step, self.best_step)
        broadcast_state(self.group, self)
        self._saved_step = self.group.broadcast(self._saved_step)

    def _restore(self, checkpoint: Checkpoint) -> None:
        restore(self, checkpoint, self.progress.say)
        self._saved_step, self._unbounded = self.step, not_finite(checkpoint.tensors)
        changed = differences(checkpoint.state.get("versions"))
        if changed:
            self.progress.say(f"resume: {changed}; the results may differ in the last digits")
        if checkpoint.state.get("config") != self.config:
            self.progress.say("resume: the config is not the one the run was begun with")
        self.progress.say(f"resume: going on from step {self.step:,} of {os.fspath(self.out or '')!r}")

    def _print_end(self) -> None:
        place = "" if self.out is None else f", saved in {os.fspath(self.out)!r}"
        self.progress.say(f"stopped at step {self.step:,} ({self._reason}){place}")
        if self._reason == "interrupted" and self.out is not None:
            self.progress.say(f"go on with {self.resume_hint}")


def _refuse(folder: Path, taken: bool) -> None:
    if taken:
        fix = "go on with Trainer.resume(…), or choose another directory"
        raise RunError(f"{os.fspath(folder)!r} already holds a run", fix=fix)
