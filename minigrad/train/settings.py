"""What a Trainer is told: refused before any time is spent on it where it cannot work."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import TYPE_CHECKING, Any

from ..engine.errors import ArgumentError
from ..optim import Plateau
from .lists import ListBatches

if TYPE_CHECKING:
    from .trainer import Trainer

__all__ = ["as_sampler", "check_settings", "plain_config", "settings_of"]

_COUNTS = ("accumulate", "log_every", "max_steps", "valid_every", "save_every", "keep", "patience")
_KINDS = ("model", "optimizer", "schedule", "data")
_OTHERS = ("seed", "max_minutes", "clip_norm", "metric", "maximize")


def settings_of(trainer: Trainer) -> dict[str, Any]:
    """The settings, as config.json has them."""
    values = {name: getattr(trainer, name) for name in (*_COUNTS, *_OTHERS)}
    return {**values, **{name: type(getattr(trainer, name)).__name__ for name in _KINDS}}


def check_settings(trainer: Trainer) -> None:
    """Refuse what cannot work."""
    for name in _COUNTS:
        value = getattr(trainer, name)
        absent = value is None and name != "accumulate"
        if not absent and (type(value) is not int or value < 1):
            raise ArgumentError(f"Trainer: {name} cannot be used", "a whole number from 1", repr(value))
    for name in ("max_minutes", "clip_norm"):
        value = getattr(trainer, name)
        if value is not None and not (isinstance(value, (int, float)) and 0 < value < math.inf):
            raise ArgumentError(f"Trainer: {name} cannot be used", "a number above 0", repr(value))
    if trainer.max_steps is None and trainer.max_minutes is None and trainer.patience is None:
        raise ArgumentError("Trainer: when is it enough?", "max_steps, max_minutes or patience", "none of them")
    if trainer.valid is None:
        plateau = isinstance(trainer.schedule, Plateau)
        asked = {"patience": trainer.patience, "valid_every": trainer.valid_every, "samples": trainer.samples}
        for name, value in {**asked, "schedule": plateau or None}.items():
            if value is not None:
                raise ArgumentError(f"Trainer: {name} needs validation", "valid=…", "none", "pass validation data")
    elif trainer.valid_every is None and (trainer.max_steps is None or trainer.patience is not None):
        raise ArgumentError("Trainer: how often is it validated?", "valid_every=…", "none")
    if trainer.schedule is not None and trainer.schedule.optimizer is not trainer.optimizer:
        raise ArgumentError("Trainer: the schedule is of another optimiser", fix="make it with this one")
    if trainer.scaler is not None and trainer.scaler.optimizer is not trainer.optimizer:
        raise ArgumentError("Trainer: the scaler is of another optimiser", fix="pass the optimiser it was made with")


def plain_config(config: Any) -> dict[str, Any]:
    """The config as a checkpoint gives it back, in which a tuple is a list, so that the two can be compared."""
    values = dataclasses.asdict(config) if dataclasses.is_dataclass(config) else dict(config or {})  # type: ignore[arg-type]
    try:
        return dict(json.loads(json.dumps(values)))
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(
            "Trainer: config cannot be kept in a checkpoint", "numbers, strings, lists and dicts", str(error)
        ) from None


def as_sampler(name: str, data: Any, seed: int) -> Any:
    """Data whose position can be saved."""
    if all(hasattr(data, method) for method in ("state_dict", "load_state_dict", "__iter__")):
        return data
    if isinstance(data, (list, tuple)):
        return ListBatches(data, seed=seed)
    raise ArgumentError(
        f"Trainer: the position in {name} could not be saved",
        "a sampler with state_dict() and load_state_dict(), or a list of batches",
        type(data).__name__,
        "for arrays: minigrad.train.ArrayBatches((x, y), batch_size=32)",
    )
