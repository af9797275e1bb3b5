"""The conformance suite: `check(spec)` tests a plugin, on the model that the spec's `tiny` settings give.

A check is a function of a Subject that returns what it saw, raises Failed with what is wrong, or NotApplicable with
the reason. The table CHECKS, at the end, says which there are, and in what order.
"""

from __future__ import annotations

import dataclasses
import json
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ...check import gradcheck
from ...engine.tensor import Tensor
from ...nn import Module
from ...nn.init import skip
from ...random import random_state, restore_random_state, seed_everything
from ...train import Trainer, find_checkpoint, read_checkpoint
from ...train.evaluation import evaluation_mode
from ...train.loss_terms import Totals, checked_terms
from ...train.samplers import as_sampler
from ...train.train_step import TrainStep
from ..checkpoints import load_as
from ..config import configure
from ..data import data_of
from ..loaded import Loaded
from ..spec import ModelSpec
from ..training import adamw, trainer_of
from .calls import (
    Call,
    Failed,
    NotApplicable,
    first_call,
    in_float64,
    step_by_step,
    unchanged,
    unequal,
    unlike_rows,
)
from .imports import import_lightly

__all__ = ["CHECKS", "Verdict", "check"]

OVERFIT_STEPS, OVERFIT_SHARE = 500, 0.2  # within this many steps the loss falls to this share of its start
BEFORE, AFTER = 3, 4  # steps before and after the interruption


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What one check came to: `ok` is None where it does not apply, and `detail` says what was seen, or why not."""

    name: str
    ok: bool | None
    detail: str
    seconds: float


def check(spec: ModelSpec, device: str = "cpu", preset: str | None = None) -> Iterator[Verdict]:
    """Run every check lazily; the random state afterwards is as before."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        subject = Subject(spec, device, Path(folder), preset)
        for name, function in CHECKS.items():
            state, start = random_state(), time.perf_counter()
            seed_everything(0)
            try:
                ok, detail = _outcome(function, subject)
            finally:
                restore_random_state(state)
            yield Verdict(name, ok, detail, time.perf_counter() - start)


def _outcome(function: Callable[[Subject], str], subject: Subject) -> tuple[bool | None, str]:
    try:
        with np.errstate(all="ignore"):  # the checks look for what is not finite
            return True, function(subject)
    except NotApplicable as reason:
        return None, str(reason)
    except Failed as problem:
        return False, str(problem)
    except Exception as error:  # whatever a stranger's model may raise
        return False, f"{type(error).__name__}: {'; '.join(line.strip() for line in str(error).splitlines())}"


class Subject:
    """A spec with its tiny config and what several checks need, made once."""

    def __init__(self, spec: ModelSpec, device: str, folder: Path, preset: str | None = None):
        self.spec, self.device, self.folder, self.preset = spec, device, folder, preset

    @cached_property
    def asked(self) -> Any:
        """The tiny config."""
        return configure(self.spec, self.preset, self.spec.tiny)

    @cached_property
    def config(self) -> Any:
        """The tiny config with the settings that follow from the data."""
        config = data_of(self.spec, self.asked, None).config
        return self.asked if config is None else config

    @cached_property
    def example(self) -> Any:
        return self.spec.example(self.config)

    def model(self, dtype: str | None = None) -> Any:
        """A new tiny model, always the same."""
        config = self.config  # before the seed, since making data may draw random numbers
        seed_everything(0)
        made = _built(self.spec, config)
        made = made if dtype is None else made.to(dtype=dtype)
        return made if self.device == "cpu" else made.to(self.device)

    @cached_property
    def call(self) -> tuple[Any, Call]:
        """A model in float64 and in evaluation mode, and how the loss calls it for the example."""
        model = self.model("float64").eval()
        return model, first_call(model, self.spec.loss, in_float64(self.example))

    def trainer(self, name: str, again: bool = False) -> Trainer:
        """A trainer of the tiny model for a few steps, in a directory of its own."""
        out, steps = self.folder / name, BEFORE + AFTER
        return trainer_of(self.spec, self.asked, out, max_steps=steps, device=self.device, progress=False, again=again)

    @cached_property
    def trained(self) -> tuple[Trainer, Loaded]:
        """A run of a few steps, in memory and loaded from its directory."""
        if self.folder.joinpath("whole").exists():
            raise Failed("it cannot be trained: see above")
        trainer = self.trainer("whole")
        trainer.train()
        return trainer, load_as(self.spec, self.folder / "whole", "latest")


def _built(spec: ModelSpec, config: Any) -> Any:
    model = spec.build(config)
    if not isinstance(model, Module):
        raise Failed(f"build returned {type(model).__name__}, which is no minigrad.nn.Module")
    return model


def _settings(subject: Subject) -> str:
    """Every setting explains itself, and its default can be given as text."""
    spec = subject.spec
    fields = dataclasses.fields(spec.config)
    default = configure(spec)
    for field in fields:
        if not str(field.metadata.get("help", "")).strip():
            raise Failed(f"the setting {field.name!r} has no help: declare it with minigrad.zoo.option(default, help)")
        value = getattr(default, field.name)
        text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
        if getattr(configure(spec, None, {field.name: text}), field.name) != value:
            raise Failed(f"the setting {field.name!r} is not {value!r} when {field.name}={text} is given")
    for preset in spec.presets:
        configure(spec, preset)
    return f"{len(fields)} settings, {len(spec.presets)} presets, all with help"


def _builds(subject: Subject) -> str:
    """The tiny model, the default one and every preset; the same seed gives the same weights."""
    spec = subject.spec
    first, second = (subject.model().state_dict() for _ in range(2))
    if not first:
        raise Failed("the model has no parameters")
    if name := unequal(first, second):
        raise Failed(f"{name} differs between two models of the same seed: use minigrad's random numbers")
    sizes = [f"tiny {sum(tensor.size for tensor in first.values()):,}"]
    for preset in ("default", *spec.presets):
        try:
            with skip():  # a large one takes neither time nor memory
                made = _built(spec, configure(spec, preset))
            sizes.append(f"{preset} {sum(p.size for p in made.parameters()):,}")
        except MemoryError:
            sizes.append(f"{preset} more than this machine's memory holds")
        except Exception as error:
            raise Failed(f"preset {preset!r}: {type(error).__name__}: {error}") from error
    return f"{', '.join(sizes)} parameters"


def _data(subject: Subject) -> str:
    """The first batch can be learned from."""
    given = data_of(subject.spec, subject.asked, None)
    batch = next(iter(as_sampler("data", given.train, 0)), None)
    if batch is None:
        raise Failed("the data gives no batches")
    value = _loss(subject.model(), subject.spec, batch)
    return f"{len(given.train) if hasattr(given.train, '__len__') else 'some'} batches, the loss of the first is {value:.4g}"


def _loss(model: Any, spec: ModelSpec, batch: Any) -> float:
    """The mean loss of a batch, metrics left out; Failed if it is not finite."""
    terms = checked_terms(spec.loss(model, batch), batch)
    totals = Totals(metrics=[name for name, (amount, _) in terms.items() if not amount.requires_grad])
    totals.add(terms)
    totals.check_units()
    value = float(totals.means()["loss"])
    if not np.isfinite(value):
        raise Failed(f"the loss is {value}")
    return value


class _ExampleLoss:
    """The loss of the example as a function of the parameters, for gradcheck; with the same random numbers each time."""

    def __init__(self, subject: Subject):
        self.model, self.spec = subject.model("float64"), subject.spec
        self.batch = in_float64(subject.example)
        self.names = [name for name, p in self.model.named_parameters() if p.requires_grad]

    def parameters(self) -> list[Any]:
        return [p for p in self.model.parameters() if p.requires_grad]

    def __call__(self) -> Tensor:
        seed_everything(0)
        terms = checked_terms(self.spec.loss(self.model, self.batch), self.batch)
        parts = [amount / max(units, 1) for name, (amount, units) in terms.items() if name not in self.metrics]
        return sum(parts[1:], parts[0])

    @cached_property
    def metrics(self) -> list[str]:
        terms = checked_terms(self.spec.loss(self.model, self.batch), self.batch)
        return [name for name, (amount, _) in terms.items() if not amount.requires_grad]


def _gradients(subject: Subject) -> str:
    """Backward computes the derivatives of the loss, in float64, against finite differences."""
    if subject.spec.estimates_gradients:
        raise NotApplicable(f"its gradients are estimates: {subject.spec.estimates_gradients}")
    function = _ExampleLoss(subject)
    if not function.names or len(function.metrics) == len(
        checked_terms(subject.spec.loss(function.model, function.batch), function.batch)
    ):
        raise Failed("the loss depends on no parameter")
    found = gradcheck(function, [], order=1, allow_kinks=True, raise_exception=False)
    if not found:
        text = re.sub(r"parameter (\d+)", lambda m: function.names[int(m.group(1))], found.problem)
        raise Failed("; ".join(line.strip() for line in text.splitlines()).removeprefix("gradcheck: "))
    if not found.compared:
        raise Failed("the loss bends or jumps wherever it was tried: no derivative could be compared")
    bends = f", {found.kinks} at kinks left out" if found.kinks else ""
    return f"{found.compared} derivatives of {len(function.names)} parameters agree with finite differences{bends}"


def _overfits(subject: Subject) -> str:
    """A model that cannot learn one batch by heart has something cut off."""
    spec, config = subject.spec, subject.config
    model = subject.model().train()
    stepper = TrainStep(
        model, spec.loss, (spec.optimizer or adamw)(model, config), None, config.clip or None, threads=1
    )
    start = value = _loss(model, spec, subject.example)
    goal = start - (1 - OVERFIT_SHARE) * abs(start)
    steps = 0
    while value > goal and steps < OVERFIT_STEPS:
        steps += 1
        value = stepper.step([subject.example], steps).totals.means()["loss"]
    if value > goal:
        raise Failed(
            f"the loss of the example falls only from {start:.4g} to {value:.4g} in {steps} steps, not to {goal:.4g}"
        )
    return f"the loss of the example falls from {start:.4g} to {value:.4g} in {steps} steps"


def _resumes(subject: Subject) -> str:
    """Stopped and resumed is bit for bit what was not stopped, and what is loaded computes the same."""
    whole, loaded = subject.trained
    begun = subject.trainer("parts")  # for as many steps, by which a schedule may go
    begun.on("step", lambda trainer, info: trainer.stop() if info["step"] == BEFORE else None)
    begun.train()
    subject.trainer("parts", again=True).train()
    first, second = (read_checkpoint(find_checkpoint(subject.folder / name)) for name in ("whole", "parts"))
    if name := unequal(first.tensors, second.tensors):
        raise Failed(
            f"{name} differs between {BEFORE}+{AFTER} steps with a resume in between and {BEFORE + AFTER} at once"
        )
    losses = []
    for model in (whole.model, loaded.model):
        with evaluation_mode(model):
            seed_everything(0)
            terms = checked_terms(subject.spec.loss(model, subject.example), subject.example)
            losses.append({name: amount.item() for name, (amount, _) in terms.items()})
    if losses[0] != losses[1]:
        raise Failed(
            f"the loaded model computes {losses[1]}, the trained one {losses[0]}: what is missing in state_dict()?"
        )
    return f"{BEFORE}+{AFTER} steps are bit for bit {BEFORE + AFTER}; the loaded model computes the same"


def _predicts(subject: Subject) -> str:
    """One printable answer to each input, the same for the same seed, and the model stays as it was."""
    spec = subject.spec
    if spec.predict is None:
        raise NotApplicable("it has no predict")
    loaded = subject.trained[1]
    inputs = spec.inputs_for(loaded.config)
    if not inputs:
        raise NotApplicable("not tried: it has predict, but no example_inputs to try it on")
    answers = []
    with unchanged(loaded.model, "predicting"):
        for _ in range(2):
            seed_everything(0)
            answers.append(loaded.predict(*inputs))
    if not isinstance(answers[0], list) or len(answers[0]) != len(inputs):
        raise Failed(f"{len(inputs)} inputs were not answered by a list of as many: {str(answers[0])[:200]}")
    try:
        texts = [json.dumps(answer, ensure_ascii=False, allow_nan=False) for answer in answers]
    except (TypeError, ValueError) as error:
        raise Failed(f"an answer is not JSON: {error}") from error
    if texts[0] != texts[1]:
        raise Failed(f"the same seed gives two answers: {texts[0][:100]} and {texts[1][:100]}")
    return f"{inputs[0]!r} -> {json.dumps(answers[0][0], ensure_ascii=False)[:100]}"


def _decodes(subject: Subject) -> str:
    """Where there is a cache, decoding with it equals decoding without."""
    return step_by_step(*subject.call)


def _rows(subject: Subject) -> str:
    """What a row gives does not depend on the others, unless the model says so."""
    model, call = subject.call
    coupled = [type(module).__name__ for module in model.modules() if module.couples_batch]
    if coupled:
        raise NotApplicable(f"{coupled[0]} couples the rows of a batch, as it says")
    return unlike_rows(model, call)


def _draws(subject: Subject) -> str:
    """The graph of its loss has the parameters in it, and can be written down."""
    from ..graph import graph_of

    graph = graph_of(subject.spec, subject.config)
    names = {box.name for box in graph.boxes if box.kind == "parameter"}
    graph.text()  # which needs no extra
    return f"{sum(box.kind == 'op' for box in graph.boxes)} ops, {len(names)} parameters"


def _shows(subject: Subject) -> str:
    """What its spec says can be seen of it can be seen."""
    from .displays import SHOWN, shows

    if all(getattr(subject.spec, name) is None for name in SHOWN):
        raise NotApplicable(f"it has none of {', '.join(SHOWN)}")
    return shows(subject.trained[1])


CHECKS: dict[str, Callable[[Subject], str]] = {
    "settings": _settings,
    "light to import": lambda subject: import_lightly(subject.spec),
    "builds": _builds,
    "data": _data,
    "gradients": _gradients,
    "overfits one batch": _overfits,
    "saves, loads, resumes": _resumes,
    "predicts": _predicts,
    "cached decoding": _decodes,
    "rows are independent": _rows,
    "draws its graph": _draws,
    "draws, samples, attends": _shows,
}
