"""A snapshot of a training run as tensors and JSON values: what a checkpoint holds, and what all ranks start from."""

from __future__ import annotations

import os
import platform
import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import __version__
from ..debug import nonfinite
from ..engine.tensor import Tensor
from ..errors import ArgumentError, CheckpointError
from ..random import random_state, restore_random_state
from ..runtime.process_group import ProcessGroup, process_group
from ..runtime.threads import available_cores
from .arguments import arguments_of
from .callbacks import callback_states, load_callback_states
from .checkpoint import Checkpoint
from .loss_terms import Totals
from .samplers import on_host

if TYPE_CHECKING:
    from ..optim import Optimizer
    from .trainer import Trainer

__all__ = ["broadcast_state", "capture", "differences", "not_finite", "restore", "versions"]

COMPUTING = ("minigrad", "python", "numpy")  # of the versions: those that all ranks have to share
_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def versions() -> dict[str, Any]:
    """The versions and counts that must be the same for a resumed run to repeat every bit."""
    return {
        "minigrad": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": f"{platform.system()} {platform.machine()}",
        "threads": _thread_count(),
        "ranks": process_group().size,
    }


def _thread_count() -> int:
    """The threads of matrix products, as the environment sets them; a library may have been set otherwise by calls."""
    asked = [int(text) for name in _THREADS if (text := os.environ.get(name, "")).isdecimal() and int(text) > 0]
    return min([len(available_cores()), *asked[:1]])


def differences(saved: Any) -> str:
    """The versions that differ from the saved ones, in words; "" if none do."""
    now = versions()
    known = {"ranks": 1, **(saved if isinstance(saved, Mapping) else {})}
    return ", ".join(f"{name} was {known.get(name)}, is {now[name]}" for name in now if known.get(name) != now[name])


def capture(trainer: Trainer) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tensors and the state of a checkpoint."""
    keeper = trainer.scaler or trainer.optimizer
    kept = keeper.state_dict()
    python_version, python_words, python_gauss = random.getstate()
    _, numpy_words, numpy_place, has_gauss, gauss = np.random.get_state()  # noqa: NPY002  (user code may draw from it)
    tensors: dict[str, Any] = {f"model.{name}": value for name, value in _model_tensors(trainer.model).items()}
    tensors |= {f"optimizer.{name}": value for name, value in kept["arrays"].items()}
    tensors["random.python"] = np.array(python_words, np.uint32)
    tensors["random.numpy"] = np.array(numpy_words, np.uint32)
    if trainer.tokenizer is not None:
        tensors["tokenizer"] = np.frombuffer(trainer.tokenizer.to_json().encode(), np.uint8)
    callbacks = callback_states(trainer.callbacks, tensors)
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
        "training": arguments_of(trainer),
        "versions": versions(),
        "best": trainer.best,
        "best_step": trainer.best_step,
        "waited": trainer.waited,
        "window": trainer.window.values,
        "epoch": trainer.epoch,
        "epoch_window": trainer.passed.totals.values,
        "callbacks": callbacks,
        "seconds": trainer.seconds,
        "stages": trainer.stages,
    }
    return tensors, state


def _model_tensors(model: Any) -> dict[str, Tensor]:
    """The state dict of a model, with a tied tensor only once."""
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
    """Restore a trainer from what `capture` returned."""
    try:
        _restore(trainer, checkpoint, say)
    except Exception as error:
        fix = "build the model, the optimiser and the data as they were when it was saved"
        explained = f"\n  {'fix:':9} " in str(error)
        raise CheckpointError(
            f"the checkpoint does not fit this run: {error}", fix=None if explained else fix
        ) from error


def _restore(trainer: Trainer, checkpoint: Checkpoint, say: Callable[[str], None]) -> None:
    """As `restore`, with any error that says what does not fit."""
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
    trainer.model.load_state_dict(checkpoint.model)
    keeper = trainer.scaler or trainer.optimizer
    keeper.load_state_dict({"arrays": checkpoint.part("optimizer."), "values": state["optimizer"]})
    _restore_choice(trainer, state.get("training"))
    _report_changes(trainer, given, state.get("training"), say)
    if trainer.schedule is not None:
        trainer.schedule.load_state_dict(state["schedule"])
    elif state["schedule"] is not None:
        say("resume: the run had a schedule, and now has none")
    trainer.data.load_state_dict(state["data"])
    trainer.step, trainer.waited = _count(state["step"]), _count(state["waited"])
    trainer.best = None if state["best"] is None else float(state["best"])
    trainer.best_step = None if state["best_step"] is None else _count(state["best_step"])
    trainer.window = Totals(state["window"])
    trainer.passed.count, trainer.passed.totals = _count(state.get("epoch", 0)), Totals(state.get("epoch_window"))
    load_callback_states(trainer.callbacks, state.get("callbacks"), tensors, say)
    trainer.seconds = float(state["seconds"])
    trainer.stages = state.get("stages")
    _restore_random(state["random"], tensors, say)
    saved = tensors["tokenizer"].tobytes() if "tokenizer" in tensors else None
    if saved != (None if trainer.tokenizer is None else trainer.tokenizer.to_json().encode()):
        raise ValueError("it was trained with another tokenizer, or one of the two has none")


def broadcast_state(group: ProcessGroup, trainer: Trainer) -> None:
    """Give the trainers of all ranks the state of rank 0: weights, buffers, data positions and random generators.

    So only rank 0 needs a seed and the run directory; and a rank with another model or other data is refused.
    """
    if group.size == 1:
        return
    tensors, state = capture(trainer) if group.rank == 0 else ({}, {})
    held = {name: np.asarray(on_host(value), order="C") for name, value in tensors.items()}
    kinds = {name: (array.dtype.str, array.shape) for name, array in held.items()}
    kinds, state, settings, given = group.broadcast([kinds, state, arguments_of(trainer), _given(trainer)])
    _check_given(group.rank, _given(trainer), given)
    if group.rank:
        held = {name: np.empty(shape, dtype) for name, (dtype, shape) in kinds.items()}
    group.broadcast_arrays(list(held.values()))
    if group.rank == 0:
        return
    try:
        _restore(trainer, Checkpoint(held, state), lambda text: None)
    except Exception as error:
        raise _differs(group.rank, str(error)) from error
    if arguments_of(trainer) != settings:
        own = arguments_of(trainer)
        raise _differs(group.rank, ", ".join(name for name in own if own[name] != settings[name]))


def _given(trainer: Trainer) -> dict[str, Any]:
    """What every rank has to be given alike: what computes, and the config, one level deep."""
    known = {f"version of {name}": value for name, value in versions().items() if name in COMPUTING}
    for name, value in trainer.config.items():
        known |= {f"{name}.{key}": one for key, one in value.items()} if isinstance(value, Mapping) else {name: value}
    return known


def _check_given(rank: int, own: dict[str, Any], first: dict[str, Any]) -> None:
    unlike = [name for name in {**first, **own} if repr(own.get(name)) != repr(first.get(name))]
    if unlike:
        expected, got = (", ".join(f"{name} {each.get(name)!r}" for name in unlike) for each in (first, own))
        raise _differs(rank, got, expected, "start all ranks with the same command, and install the same versions")


def _differs(
    rank: int,
    difference: str,
    expected: str = "the same model, optimiser, data in the same order, and settings on every rank",
    fix: str = "do not let them depend on the rank, on hash() or on the order of a set",
) -> ArgumentError:
    return ArgumentError(f"Trainer: rank {rank} would not train the same as rank 0", expected, difference, fix)


def _restore_choice(trainer: Trainer, saved: Any) -> None:
    """Compile, or do not, as the run did so far; unless it is asked for."""
    known = saved if isinstance(saved, Mapping) else {}
    if trainer.compile == "auto" and known.get("compiled", False) is not None:
        trainer.compiled = known.get("compiled") is True
        trainer.compile_reason = str(known.get("compile_reason", "the run was begun so"))


def _options(optimizer: Optimizer) -> list[dict[str, Any]]:
    """The options of each group, with its initial learning rate instead of the scheduled one."""
    return [
        {
            **{k: v for k, v in group.items() if k not in ("params", "initial_lr")},
            "lr": group.get("initial_lr", group["lr"]),
        }
        for group in optimizer.param_groups
    ]


def _report_changes(trainer: Trainer, given: list[dict[str, Any]], saved: Any, say: Callable[[str], None]) -> None:
    """Say which arguments differ from the saved ones, and which of the two are used."""
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
        for name, value in arguments_of(trainer).items()
        if known.get(name, value) != value
    ]
    if new:
        say(f"resume: the new values are used: {', '.join(new)}")


def _restore_random(saved: Mapping[str, Any], tensors: Mapping[str, np.ndarray], say: Callable[[str], None]) -> None:
    known = random_state().keys()
    if saved["minigrad"].keys() != known:
        say(f"resume: random numbers were drawn on {', '.join(saved['minigrad'])}, and now are on {', '.join(known)}")
    restore_random_state({name: value for name, value in saved["minigrad"].items() if name in known})
    version, gauss = saved["python"]
    random.setstate((version, tuple(map(int, tensors["random.python"])), gauss))
    np.random.set_state(("MT19937", tensors["random.numpy"], *saved["numpy"]))  # noqa: NPY002


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a count")
    return value
