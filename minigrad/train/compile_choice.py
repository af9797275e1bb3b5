"""Whether the loss of a run is compiled: `compile="auto"` decides before the first step, and the run keeps to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import tree
from ..autograd import grad
from ..engine.backend import device_of
from ..engine.tensor import Tensor
from ..kernels.selection import implementation
from ..random import new_seed, shard_of_step
from .compiled_loss import CompiledLoss
from .data_parallel import Shard, shard_of_rank, thread_shards
from .evaluation import kept_random_states
from .loss_terms import checked_terms

if TYPE_CHECKING:
    from .trainer import Trainer

__all__ = ["choose", "compiled_loss"]

PARAMETERS = 20_000  # above, most of the time is spent in products, which compiling does not make faster
STEPS = 1_000  # below, compiling takes longer than it saves
AHEAD, SHAPES = (
    8,
    2,
)  # so many batches are looked at, and so many shapes may be among them: the last batch is a shorter one
MOST = 8  # traces, after which what is still new runs op by op


def choose(trainer: Trainer) -> tuple[bool, str]:
    """What `compile="auto"` means for this run: whether to compile, and why."""
    reason = _obstacle(trainer) or _refusal(trainer)
    count = sum(p.size for p in trainer.model.parameters())
    return reason is None, reason or f"a small model, of {count:,} parameters, that is trained for long"


def compiled_loss(trainer: Trainer) -> CompiledLoss | None:
    """The loss to train with, as a compiled function of a batch; None if it is not to be compiled."""
    if not trainer.compiled:
        return None
    return CompiledLoss(trainer.loss, trainer.model, MOST if trainer.compile == "auto" else None)


def _obstacle(trainer: Trainer) -> str | None:
    """What speaks against compiling before anything is tried."""
    params = list(trainer.model.parameters())
    count = sum(p.size for p in params)
    if trainer.scaler is not None:
        return "mixed precision"
    if any(device_of(p.data) != "cpu" for p in params):
        return "the model is not on the CPU"
    if count > PARAMETERS:
        return f"{count:,} parameters, and it pays up to {PARAMETERS:,}"
    steps = trainer.planned_steps
    if steps is not None and steps < STEPS:
        return f"{steps:,} steps, and it pays from {STEPS:,}"
    return None if implementation() == "numba" else "numba is not installed, or not chosen"


def _refusal(trainer: Trainer) -> str | None:
    """What comes up when the first batch is tried: nothing of the run is changed by it."""
    position = trainer.data.state_dict()
    try:
        with kept_random_states():
            batches = list(islice(trainer.data, AHEAD))
            shapes = {tuple(map(_kind, tree.leaves(batch))) for batch in batches}
            if len(shapes) > SHAPES:
                return f"the first {len(batches)} batches have {len(shapes)} different shapes"
            return _difference(trainer, batches[0])
    except Exception as error:
        return " ".join(str(error).splitlines()[0].split()) if str(error) else type(error).__name__
    finally:
        trainer.data.load_state_dict(position)


def _difference(trainer: Trainer, batch: Any) -> str | None:
    """What a compiled loss would compute otherwise."""
    shard, *_ = thread_shards(trainer.model, trainer.loss, shard_of_rank(batch, trainer.group), None)
    compiled = CompiledLoss(trainer.loss, trainer.model)
    params = [p for p in trainer.model.parameters() if p.requires_grad]
    seed = new_seed()
    plain = _computed(lambda batch: trainer.loss(trainer.model, batch), shard, seed, params)
    for ours, theirs in zip(_computed(compiled, shard, seed, params), plain):
        size = np.abs(theirs).max(initial=0.0) if theirs is not None else 0.0
        if (ours is None) != (theirs is None) or ours is not None and not np.allclose(ours, theirs, 1e-3, 1e-4 * size):
            return "the compiled loss differs by more than rounding"
    return None


def _computed(terms_of: Callable[[Any], Any], shard: Shard, seed: int, params: Sequence[Tensor]) -> list[Any]:
    """The terms of a loss, their units, and the gradients of their sum."""
    with shard_of_step(seed, shard.first, shard.rows):
        terms = checked_terms(terms_of(shard.batch), shard.batch)
    learned = [amount for amount, _ in terms.values() if amount.requires_grad]
    grads = grad(sum(learned[1:], learned[0]), params, allow_unused=True)
    numbers = [np.asarray(x, np.float64) for amount, units in terms.values() for x in (amount.item(), units)]
    return numbers + [None if g is None else g.numpy() for g in grads]


def _kind(leaf: Any) -> Any:
    return (leaf.shape, str(leaf.dtype)) if hasattr(leaf, "shape") else repr(leaf)
