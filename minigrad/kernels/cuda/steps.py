"""Steps of the optimisers on CuPy's arrays, in place, one kernel for each: the arithmetic of minigrad.optim.

`p`, the gradient `g` and the state are arrays of one shape and one dtype, float32 or float64; all but `g` lie without
gaps. `clip` multiplies the gradient first.
"""

from __future__ import annotations

from typing import Any

from ...engine.backend import Array, backend_of, on_device_of
from ...errors import ArgumentError, describe
from ..steps import register_step
from .launching import REALS, each


def sgd_step(
    p: Array,
    g: Array,
    velocity: Array | None,
    *,
    lr: float,
    momentum: float = 0.0,
    dampening: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: bool = False,
    step: int = 1,
    clip: float = 1.0,
) -> None:
    """One step of SGD; `velocity` is None without momentum, and zeros before step 1, whose gradient is not dampened."""
    fresh = 1.0 if step == 1 else 1.0 - dampening
    numbers = (lr, momentum, fresh, weight_decay, nesterov, clip)
    _run("sgd_step", numbers, p, g, velocity)


def rmsprop_step(
    p: Array,
    g: Array,
    square: Array,
    mean: Array | None = None,
    velocity: Array | None = None,
    *,
    lr: float,
    alpha: float = 0.99,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    momentum: float = 0.0,
    clip: float = 1.0,
) -> None:
    """One step of RMSprop; `mean` is None unless it is centred, `velocity` is None without momentum."""
    numbers = (lr, alpha, 1 - alpha, eps, weight_decay, momentum, clip)
    _run("rmsprop_step", numbers, p, g, square, mean, velocity)


def adam_step(
    p: Array,
    g: Array,
    mean: Array,
    square: Array,
    largest: Array | None = None,
    *,
    lr: float,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    decoupled: bool = False,
    step: int,
    clip: float = 1.0,
) -> None:
    """Step number `step`, from 1, of Adam, or of AdamW if `decoupled`; `largest` is None without amsgrad."""
    beta1, beta2 = betas
    decay, shrink = (0.0, 1 - lr * weight_decay) if decoupled else (weight_decay, 1.0)
    young = lr / (1 - beta1**step), (1 - beta2**step) ** 0.5
    numbers = (*young, 1 - beta1, beta2, 1 - beta2, eps, decay, shrink, clip)
    _run("adam_step", numbers, p, g, mean, square, largest)


def _run(name: str, numbers: tuple[float, ...], p: Array, g: Array, *state: Array | None) -> None:
    g = backend_of(g).xp.ascontiguousarray(g)  # which is only read, so that a copy will do
    for a in (p, g, *state):
        if a is not None and not (a.dtype == p.dtype and a.shape == p.shape and a.flags.c_contiguous):
            raise ArgumentError(
                f"{name}: an array does not fit the parameters",
                f"{describe(p)}, without gaps",
                f"{describe(a)}{'' if a.flags.c_contiguous else ', with gaps'}",
            )
    if p.dtype.char not in REALS:
        raise ArgumentError(f"{name}: no kernel for this dtype", "float32 or float64", p.dtype)
    with on_device_of(p):
        each(name, p.size, p, g, *state, *[x if isinstance(x, bool) else float(x) for x in numbers])


def _sgd(optimizer: Any, p: Array, g: Array, state: Any, group: Any, scale: float) -> None:
    velocity = state["momentum_buffer"] if group["momentum"] else None
    names = ("lr", "momentum", "dampening", "weight_decay", "nesterov")
    sgd_step(p, g, velocity, **{k: group[k] for k in names}, step=state["step"], clip=scale)


def _rmsprop(optimizer: Any, p: Array, g: Array, state: Any, group: Any, scale: float) -> None:
    mean = state["grad_avg"] if group["centered"] else None
    velocity = state["momentum_buffer"] if group["momentum"] else None
    names = ("lr", "alpha", "eps", "weight_decay", "momentum")
    rmsprop_step(p, g, state["square_avg"], mean, velocity, **{k: group[k] for k in names}, clip=scale)


def _adam(optimizer: Any, p: Array, g: Array, state: Any, group: Any, scale: float) -> None:
    buffers = (state["exp_avg"], state["exp_avg_sq"], state["max_exp_avg_sq"] if group["amsgrad"] else None)
    options = {k: group[k] for k in ("lr", "betas", "eps", "weight_decay")}
    adam_step(p, g, *buffers, **options, decoupled=optimizer.decoupled, step=state["step"], clip=scale)


for _rule, _step in (("adam", _adam), ("rmsprop", _rmsprop), ("sgd", _sgd)):
    register_step(_rule, "cuda", _step)
