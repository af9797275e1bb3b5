"""The arguments of a Trainer: checked before any time is spent on training."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
from typing import TYPE_CHECKING, Any

from ..data.batching import BatchReport
from ..errors import ArgumentError, CallError, describe
from ..nn import Module
from ..optim import LBFGS, MixedPrecision, Optimizer, Plateau
from ..optim.swa_utils import AveragedModel
from ..parallel import Layout

if TYPE_CHECKING:
    from .trainer import Trainer

CHOICES = ("auto", "on", "off")  # of compile

__all__ = ["CHOICES", "check_arguments", "plain_config", "reports", "arguments_of"]

_COUNTS = ("accumulate", "log_every", "epochs", "max_steps", "valid_every", "save_every", "keep", "patience")
_KINDS = ("model", "optimizer", "schedule", "data")
_OTHERS = ("seed", "max_minutes", "clip_norm", "metric", "maximize", "compile", "compiled", "compile_reason")


def arguments_of(trainer: Trainer) -> dict[str, Any]:
    """The arguments, as config.json and checkpoints hold them."""
    values = {name: getattr(trainer, name) for name in (*_COUNTS, *_OTHERS)}
    values |= {name: type(getattr(trainer, name)).__name__ for name in _KINDS}
    values["parallel"] = dataclasses.asdict(trainer.parallel)
    if trainer.schedule is not None:
        values |= {f"schedule.{name}": value for name, value in trainer.schedule.settings().items()}
    return dict(json.loads(json.dumps(values, default=repr)))


def reports(trainer: Trainer) -> list[str]:
    """The reports of the samplers on their data, such as padding and unknown words; and that compile="auto" compiles."""
    names = ["data"] if trainer.valid is trainer.data else ["data", "valid"]
    found = {name: getattr(getattr(trainer, name), "report", None) for name in names}
    told = [f"{name}: {report}" for name, report in found.items() if isinstance(report, BatchReport)]
    if trainer.compile == "auto" and trainer.compiled:
        told.append(f"the loss is compiled: {trainer.compile_reason}")
    return told


def check_arguments(trainer: Trainer) -> None:
    """Refuse arguments that cannot work."""
    _check_parts(trainer)
    for name in _COUNTS:
        value = getattr(trainer, name)
        absent = value is None and name != "accumulate"
        if not absent and (type(value) is not int or value < 1):
            raise ArgumentError(f"Trainer: {name} cannot be used", "a whole number from 1", repr(value))
    for name in ("max_minutes", "clip_norm"):
        value = getattr(trainer, name)
        if value is not None and not (isinstance(value, (int, float)) and 0 < value < math.inf):
            raise ArgumentError(f"Trainer: {name} cannot be used", "a number above 0", repr(value))
    if trainer.compile not in CHOICES:
        expected = " or ".join(map(repr, CHOICES))
        raise ArgumentError("Trainer: compile cannot be used", expected, repr(trainer.compile))
    if trainer.compile == "on" and trainer.scaler is not None:
        raise ArgumentError(
            'Trainer: compile="on" does not go with mixed precision', fix='leave out scaler=, or pass compile="auto"'
        )
    _check_parallel(trainer)
    limits = ("epochs", "max_steps", "max_minutes", "patience")
    if all(getattr(trainer, name) is None for name in limits):
        raise ArgumentError("Trainer: when is it enough?", " or ".join(limits), "none of them")
    if trainer.save_every is not None and trainer.out is None:
        raise ArgumentError(
            "Trainer: save_every needs a directory to save into", 'out="runs/first"', "none", "pass out=…"
        )
    if trainer.valid is None:
        plateau = isinstance(trainer.schedule, Plateau)
        asked = {"patience": trainer.patience, "valid_every": trainer.valid_every, "samples": trainer.samples}
        for name, value in {**asked, "schedule": plateau or None}.items():
            if value is not None:
                raise ArgumentError(f"Trainer: {name} needs validation", "valid=…", "none", "pass validation data")
    elif trainer.valid_every is trainer.epochs is None and (trainer.max_steps is None or trainer.patience is not None):
        raise ArgumentError("Trainer: how often is it validated?", "valid_every=…", "none")
    if trainer.schedule is not None and trainer.schedule.optimizer is not trainer.optimizer:
        raise ArgumentError("Trainer: the schedule is of another optimiser", fix="make it with this one")


def _check_parallel(trainer: Trainer) -> None:
    """Refuse what does not go with a model that is divided."""
    if not isinstance(trainer.parallel, Layout):
        expected = "minigrad.parallel.Layout(tensor=2, pipeline=2)"
        raise CallError("Trainer: this is no parallel layout", expected, describe(trainer.parallel))
    if trainer.parallel.is_plain:
        return
    unfit = {
        "scaler": trainer.scaler,
        'compile="on"': trainer.compile == "on" or None,
        "a callback that averages weights": next((c for c in trainer.callbacks if isinstance(c, AveragedModel)), None),
    }
    for name, value in unfit.items():
        if value is not None:
            raise ArgumentError(
                f"Trainer: {name} does not go with a model that is divided among ranks", fix="leave one of them out"
            )


def _check_parts(trainer: Trainer) -> None:
    """Refuse a model, an optimiser, a scaler or a function that cannot be trained with."""
    for name, kind in (("model", Module), ("optimizer", Optimizer), ("scaler", MixedPrecision)):
        value = getattr(trainer, name)
        if not isinstance(value, kind) and not (name == "scaler" and value is None):
            fix = "pass the model itself, and this as scaler=" if isinstance(value, MixedPrecision) else None
            fix = "MixedPrecision(model, optimizer, LossScaler())" if name == "scaler" else fix
            if isinstance(value, type):
                fix = f"make one: {value.__name__}({'model.parameters(), lr=1e-3' if name == 'optimizer' else '…'})"
            article = "an" if name == "optimizer" else "a"
            raise CallError(f"Trainer: this is no {name}", f"{article} {kind.__name__}", describe(value), fix)
    if isinstance(trainer.optimizer, LBFGS):
        raise ArgumentError(
            "Trainer: LBFGS computes the loss several times in a step, and cannot be used here",
            "an optimiser whose step takes one gradient",
            "LBFGS",
            "call optimizer.step(closure) in a loop of your own",
        )
    _check_function("loss", trainer.loss, "model", "batch")
    if callable(trainer.valid):
        _check_function("valid", trainer.valid, "model")
    for name in ("samples", "draw"):
        if getattr(trainer, name) is not None:
            _check_function(name, getattr(trainer, name), "model")
    scaler = trainer.scaler
    if scaler is not None and (scaler.optimizer is not trainer.optimizer or scaler.model is not trainer.model):
        other = "optimiser" if scaler.optimizer is not trainer.optimizer else "model"
        raise ArgumentError(f"Trainer: the scaler is of another {other}", fix="pass the ones it was made with")
    if scaler is None:
        _check_parameters(trainer.model, trainer.optimizer)


def _check_function(name: str, function: Any, *takes: str) -> None:
    """Refuse a function that does not take these arguments, and losses of minigrad.nn, which take tensors."""
    shown = f"{name}({', '.join(takes)})"
    if str(getattr(function, "__module__", "")).startswith("minigrad.nn"):
        raise CallError(
            f"Trainer: {name} is given the model and a batch, not tensors",
            f"a function {shown}",
            getattr(function, "__name__", type(function).__name__),
            'def loss(model, batch): x, y = batch; return {"loss": (F.cross_entropy(model(x), y, reduction="sum"), len(y))}',
        )
    try:
        inspect.signature(function).bind(*takes)
    except (TypeError, ValueError) as error:
        if callable(function) and isinstance(error, ValueError):  # some functions of C have no signature
            return
        raise CallError(f"Trainer: {name} cannot be called as it will be: {error}", shown, describe(function)) from None


def _check_parameters(model: Module, optimizer: Optimizer) -> None:
    """Refuse an optimiser of other parameters than the model's: those would be neither used nor saved."""
    own = list(model.parameters())
    known = {id(p) for p in own}
    trained = [p for group in optimizer.param_groups for p in group["params"]]
    others = sum(id(p) not in known for p in trained)
    if others:
        halved = any(p.dtype == "float16" for p in own)
        raise ArgumentError(
            "Trainer: the optimiser changes parameters that are not the model's, and would not be saved",
            "parameters of this model",
            f"{others} of {len(trained)} are of something else",
            "pass scaler=, the MixedPrecision that the optimiser was given to"
            if halved
            else "make the optimiser with model.parameters(), and what else is learned a part of the model",
        )


def plain_config(config: Any) -> dict[str, Any]:
    """The config as it is read back from a checkpoint, where a tuple has become a list."""
    try:
        values = dataclasses.asdict(config) if dataclasses.is_dataclass(config) else dict(config or {})  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ArgumentError(
            "Trainer: this is no config", "a dict or a dataclass of plain values", type(config).__name__
        ) from None
    try:
        return dict(json.loads(json.dumps(values)))
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(
            "Trainer: config cannot be kept in a checkpoint", "numbers, strings, lists and dicts", str(error)
        ) from None
