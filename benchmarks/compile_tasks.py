"""What `python -m benchmarks.compile` lets candidates do: steps of small networks, plain functions, steps of transformers.

Everything is imported in the process of the candidate that needs it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from . import mlp_step, train_step

OURS, PLAIN = "minigrad, compiled", "minigrad, op by op"
TRAINER = "minigrad, the Trainer's step"  # of our layers, which are fused
BEFORE = "minigrad, before"
JAXES = {"jax.jit": False, "jax.jit, in this thread": True}
TORCH, COMPILED_TORCH = "PyTorch", "torch.compile"
NETWORKS = {"xor": "XOR, SGD", "sine": "sine, Adam"}
FUNCTIONS = ("layer_norm_gelu", "masked_softmax", "focal_loss", "lotka_volterra", "rms_norm_gated")
CONFIGS = {"gpt": "nano", "plain-gpt": "nano", "baby": "baby", "translator": "translator", "first-call-gpt": "nano"}
QUICK = "quick"  # marks a worker that is to show that everything works: its transformer is tiny
Step = Callable[[], Any]


@dataclass(frozen=True)
class Task:
    """Something that several candidates do."""

    make: Callable[[str, str, bool], Step]  # (task, candidate, quick) -> one step; ImportError if it is not installed
    candidates: Sequence[str]
    goals: Mapping[str, float]  # how many times as fast as others ours is to be
    steps: int  # in a round
    rounds: int = 9
    unit: str = "milliseconds"
    checks: Sequence[int] = (1, 2)  # steps after which results must agree, each counted from the one before
    ours: Sequence[str] = (OURS,)  # of which the fastest counts
    title: str = field(default="", kw_only=True)


def wrapper(candidate: str) -> Callable[[Any], Any]:
    """`mg.compile`, or for a candidate that does without it a function that changes nothing."""
    import minigrad

    if candidate != OURS:
        return lambda f: f
    wrap = getattr(minigrad, "compile", None)
    if not callable(wrap):
        raise ImportError("minigrad has no compile")
    return wrap


def make_network(task: str, candidate: str, quick: bool) -> Step:
    """One step of a small network's training; it returns the loss."""
    if candidate in JAXES:
        from .twins.mlp_jax import jax_step

        return jax_step(JAXES[candidate])
    if candidate in mlp_step.TORCHES:
        return mlp_step.make_step(NETWORKS[task], candidate)
    from .twins.mlp_minigrad import minigrad_step

    return minigrad_step(NETWORKS[task], wrapper(candidate))


def make_function(task: str, candidate: str, quick: bool) -> Step:
    """One function forward and backward; it returns its results and gradients."""
    if candidate in (TORCH, COMPILED_TORCH):
        from .twins.plain_torch import torch_step

        compiled = candidate == COMPILED_TORCH
        if compiled and not any(map(shutil.which, (os.environ.get("CXX", "g++"), "clang++"))):
            raise ImportError("it needs a C++ compiler")
        return torch_step(task, None, compiled=compiled)
    from .twins.plain_minigrad import minigrad_step

    return minigrad_step(task, wrapper(candidate))


def config_name(task: str, quick: bool) -> str:
    """Which transformer a task is about, or the tiny one of its family."""
    return train_step.CONFIGS[CONFIGS[task]].tiny if quick else CONFIGS[task]


def config_of(task: str, quick: bool) -> train_step.Config:
    """Its sizes."""
    return train_step.CONFIGS[config_name(task, quick)]


def make_transformer(task: str, candidate: str, quick: bool) -> Step:
    """One step of a transformer's training as the Trainer takes it; it returns the loss."""
    config = config_of(task, quick)
    if candidate in train_step.TORCHES:
        return train_step.make_step(candidate, config)
    if task in ("plain-gpt", "first-call-gpt") and candidate != TRAINER:
        from .twins import plain_gpt_minigrad

        return plain_gpt_minigrad.minigrad_step(config, wrapper(candidate))
    twin = train_step.twin(config, "minigrad")
    return twin.minigrad_step(config, wrapper(candidate)) if candidate == OURS else twin.minigrad_step(config)


def make_first_call(task: str, candidate: str, quick: bool) -> Step:
    """A step that nobody has called yet; numba has been imported, with the parts that it imports for its first function."""
    from numba.core.registry import cpu_target

    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()

    if task == "first-call-gpt":
        return make_transformer(task, candidate, quick)
    return make_network("sine", candidate, quick)


_network = partial(Task, make_network, steps=1000, unit="microseconds", checks=(1, mlp_step.SAME - 1))
_function = partial(
    Task, make_function, (OURS, PLAIN, TORCH, COMPILED_TORCH), {TORCH: 2.0, PLAIN: 3.0}, steps=10,
    title="2,048 x 512, forward and backward",
)  # fmt: skip
_transformer = partial(Task, make_transformer)
_against_before = partial(_transformer, (TRAINER, BEFORE), {BEFORE: 1.0}, rounds=10, ours=(TRAINER,))
TASKS: dict[str, Task] = {
    "xor": _network((OURS, PLAIN, *mlp_step.TORCHES, *JAXES), {TORCH: 50.0, "jax.jit": 1.0}, title="2-8-1, SGD"),
    "sine": _network((OURS, PLAIN, *mlp_step.TORCHES), {TORCH: 20.0}, title="1-10-10-1, Adam"),
    **{name: _function() for name in FUNCTIONS},
    "gpt": _transformer(
        (OURS, TRAINER, *train_step.TORCHES), {TORCH: 1.2}, steps=10, ours=(OURS, TRAINER), title="training step"
    ),
    "plain-gpt": _transformer(
        (OURS, PLAIN, TRAINER), {TRAINER: 0.95}, steps=10, title="training step without any fused op"
    ),
    "baby": _against_before(steps=2, title="training step"),
    "translator": _against_before(steps=3, title="training step"),
}


@dataclass(frozen=True)
class FirstCall:
    """A step that is new to its process, and how many seconds it may take with nothing compiled yet, and after that."""

    candidates: Sequence[str]
    seconds: Mapping[str, float]
    rounds: int
    title: str


FIRST_CALLS = {
    "first-call": FirstCall((OURS, PLAIN), {"cold": 5.0, "warm": 0.5}, 3, "1-10-10-1, Adam"),
    "first-call-gpt": FirstCall((OURS,), {"cold": 20.0, "warm": 0.5}, 3, "training step, nano, without any fused op"),
}


def make(task: str, candidate: str, quick: bool) -> Step:
    """The step of a candidate."""
    return (make_first_call if task in FIRST_CALLS else TASKS[task].make)(task, candidate, quick)
