"""All that a run is made of, as tensors and plain values, and back: what is not here is not resumed."""

from __future__ import annotations

import os
import platform
import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import __version__
from ..engine.backend import random_state, restore_random_state
from ..engine.errors import ArgumentError, CheckpointError
from ..engine.graph import nonfinite
from ..engine.tensor import Tensor
from .checkpoint import Checkpoint
from .gradients import Totals
from .settings import settings_of
from .world import world

if TYPE_CHECKING:
    from ..optim import Optimizer
    from .trainer import Trainer

__all__ = ["collect", "differences", "not_finite", "restore", "restore_unchecked", "versions"]

_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def versions() -> dict[str, Any]:
    """What must be the same for a resumed run to repeat every bit."""
    return {
        "minigrad": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": f"{platform.system()} {platform.machine()}",
        "threads": _thread_count(),
        "ranks": world().size,
    }


def _thread_count() -> int:
    """How many threads matrix products are computed with, unless a library was told otherwise by calls."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = [int(text) for name in _THREADS if (text := os.environ.get(name, "")).isdecimal() and int(text) > 0]
    return min([cores, *asked[:1]])


def differences(saved: Any) -> str:
    """In which versions this process differs from the one that saved, as words; "" if in none."""
    now = versions()
    known = {"ranks": 1, **(saved if isinstance(saved, Mapping) else {})}
    return ", ".join(f"{name} was {known.get(name)}, is {now[name]}" for name in now if known.get(name) != now[name])


def collect(trainer: Trainer) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tensors and the state of a checkpoint."""
    keeper = trainer.scaler or trainer.optimizer
    kept = keeper.state_dict()
    python_version, python_words, python_gauss = random.getstate()
    _, numpy_words, numpy_place, has_gauss, gauss = np.random.get_state()  # noqa: NPY002  (the user's own draws may be from it)
    tensors: dict[str, Any] = {f"model.{name}": value for name, value in _model_tensors(trainer.model).items()}
    tensors |= {f"optimizer.{name}": value for name, value in kept["arrays"].items()}
    tensors["random.python"] = np.array(python_words, np.uint32)
    tensors["random.numpy"] = np.array(numpy_words, np.uint32)
    if trainer.tokenizer is not None:
        tensors["tokenizer"] = np.frombuffer(trainer.tokenizer.to_json().encode(), np.uint8)
    state = {
        "step": trainer.step,
        "optimizer": kept["values"],
        "schedule": None if trainer.schedule is None else trainer.schedule.state_dict(),
        "data": trainer.data.state_dict(),
        "random": {
            "minigrad": random_state(),
            "python": [python_version, python_gauss],
            "numpy": [int(numpy_place), int(has_gauss), float(gauss)],
        },
        "config": trainer.config,
        "training": settings_of(trainer),
        "versions": versions(),
        "best": trainer.best,
        "best_step": trainer.best_step,
        "waited": trainer.waited,
        "window": trainer.window.values,
        "seconds": trainer.seconds,
    }
    return tensors, state


def _model_tensors(model: Any) -> dict[str, Tensor]:
    """The state dict of a model, in which a tied tensor comes once."""
    seen: set[int] = set()
    found = {}
    for name, value in model.state_dict().items():
        if id(value.data) not in seen:
            seen.add(id(value.data))
            found[name] = value
    return found


def not_finite(tensors: Mapping[str, Any]) -> list[str]:
    """The names of tensors that hold NaN or infinity."""
    arrays = {name: value.data if isinstance(value, Tensor) else value for name, value in tensors.items()}
    return [name for name, array in arrays.items() if nonfinite(array)]


def restore(trainer: Trainer, checkpoint: Checkpoint, say: Callable[[str], None]) -> None:
    """Put a trainer where the one stood that `collect` was called on."""
    try:
        restore_unchecked(trainer, checkpoint, say)
    except Exception as error:
        fix = "build the model, the optimiser and the data as they were when it was saved"
        explained = f"\n  {'fix:':9} " in str(error)
        raise CheckpointError(
            f"the checkpoint does not fit this run: {error}", fix=None if explained else fix
        ) from error


def restore_unchecked(trainer: Trainer, checkpoint: Checkpoint, say: Callable[[str], None]) -> None:
    """As `restore`, with whatever error says what does not fit."""
    state, tensors = checkpoint.state, checkpoint.tensors
    mixed = "scaler" in state["optimizer"]
    if mixed != (trainer.scaler is not None):
        raise ArgumentError(
            f"the run was {'' if mixed else 'not '}trained in mixed precision",
            "scaler=MixedPrecision(model, optimizer)" if mixed else "no scaler",
            "no scaler" if mixed else "a scaler",
            f"{'pass' if mixed else 'leave out'} scaler=",
        )
    given = _options(trainer.optimizer)
    trainer.model.load_state_dict(_part(tensors, "model."))
    keeper = trainer.scaler or trainer.optimizer
    keeper.load_state_dict({"arrays": _part(tensors, "optimizer."), "values": state["optimizer"]})
    _tell_changes(trainer, given, state.get("training"), say)
    if trainer.schedule is not None:
        trainer.schedule.load_state_dict(state["schedule"])
    elif state["schedule"] is not None:
        say("resume: the run had a schedule, and now has none")
    trainer.data.load_state_dict(state["data"])
    trainer.step, trainer.waited = _count(state["step"]), _count(state["waited"])
    trainer.best = None if state["best"] is None else float(state["best"])
    trainer.best_step = None if state["best_step"] is None else _count(state["best_step"])
    trainer.window = Totals(state["window"])
    trainer.seconds = float(state["seconds"])
    _restore_random(state["random"], tensors, say)
    saved = tensors["tokenizer"].tobytes() if "tokenizer" in tensors else None
    if saved != (None if trainer.tokenizer is None else trainer.tokenizer.to_json().encode()):
        raise ValueError("it was trained with another tokenizer, or one of the two has none")


def _options(optimizer: Optimizer) -> list[dict[str, Any]]:
    """The options of each group, with the rate that it was given, whatever a schedule has made of it."""
    return [
        {
            **{k: v for k, v in group.items() if k not in ("params", "initial_lr")},
            "lr": group.get("initial_lr", group["lr"]),
        }
        for group in optimizer.param_groups
    ]


def _tell_changes(trainer: Trainer, given: list[dict[str, Any]], saved: Any, say: Callable[[str], None]) -> None:
    """Say which settings differ from those the run was saved with, and which of the two count."""
    kept = [
        f"{name} {now[name]} (given {old.get(name)})"
        for old, now in zip(given, _options(trainer.optimizer))
        for name in now
        if old.get(name) != now[name]
    ]
    if kept:
        say(f"resume: the optimiser goes on as it was saved, with {', '.join(dict.fromkeys(kept))}")
    known = saved if isinstance(saved, Mapping) else {}
    new = [
        f"{name} {value} (was {known[name]})"
        for name, value in settings_of(trainer).items()
        if known.get(name, value) != value
    ]
    if new:
        say(f"resume: what is given now counts: {', '.join(new)}")


def _restore_random(saved: Mapping[str, Any], tensors: Mapping[str, np.ndarray], say: Callable[[str], None]) -> None:
    known = random_state().keys()
    if saved["minigrad"].keys() != known:
        say(f"resume: random numbers were drawn on {', '.join(saved['minigrad'])}, and now are on {', '.join(known)}")
    restore_random_state({name: value for name, value in saved["minigrad"].items() if name in known})
    version, gauss = saved["python"]
    random.setstate((version, tuple(map(int, tensors["random.python"])), gauss))
    np.random.set_state(("MT19937", tensors["random.numpy"], *saved["numpy"]))  # noqa: NPY002


def _part(tensors: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a count")
    return value
