"""Ranks that train one model are copies of the first: they begin in its state, and what would part them is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..engine.backend import is_array, to_numpy
from ..engine.errors import ArgumentError
from ..engine.tensor import Tensor
from .checkpoint import Checkpoint
from .parallel import couples
from .settings import settings_of
from .state import collect, restore_unchecked
from .world import World

if TYPE_CHECKING:
    from .trainer import Trainer

__all__ = ["become_copies", "check_divisible"]


def become_copies(world: World, trainer: Trainer) -> None:
    """Put the trainers of all ranks where the first one's is: weights, buffers, positions, and every random generator.

    So nobody needs a seed, or the run's directory, but the first; and a rank that was given another model or
    other data says so instead of training something else.
    """
    if world.size == 1:
        return
    tensors, state = collect(trainer) if world.rank == 0 else ({}, {})
    held = {name: _on_host(value) for name, value in tensors.items()}
    kinds = {name: (array.dtype.str, array.shape) for name, array in held.items()}
    kinds, state, settings = world.from_first([kinds, state, settings_of(trainer)])
    if world.rank:
        held = {name: np.empty(shape, dtype) for name, (dtype, shape) in kinds.items()}
    world.copy_first(list(held.values()))
    if world.rank == 0:
        return
    try:
        restore_unchecked(trainer, Checkpoint(held, state), lambda text: None)
    except Exception as error:
        raise _parted(world, str(error)) from error
    if settings_of(trainer) != settings:
        own = settings_of(trainer)
        raise _parted(world, ", ".join(name for name in own if own[name] != settings[name]))


def _on_host(value: object) -> np.ndarray:
    array = value.data if isinstance(value, Tensor) else value
    return np.asarray(to_numpy(array) if is_array(array) else array, order="C")


def _parted(world: World, difference: str) -> ArgumentError:
    return ArgumentError(
        f"Trainer: rank {world.rank} would train something else than the first",
        "the same model, optimiser, data in the same order, and settings on every rank",
        difference,
        "do not let them depend on the rank, on hash() or on the order of a set",
    )


def check_divisible(world: World, trainer: Trainer) -> None:
    """Refuse what would compute something else on a part of a batch than on all of it."""
    reason = couples(trainer.model, trainer.loss) if world.size > 1 else None
    if reason is not None:
        raise ArgumentError(
            f"Trainer: {reason} needs whole batches, and {world.size} ranks would divide them",
            "a model and a loss that treat each example by itself",
            fix="use LayerNorm instead of BatchNorm, or train without mpiexec, on all cores of one machine",
        )
