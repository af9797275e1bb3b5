"""A step of the XOR network of `mlp_step.py` in jax, compiled by `jax.jit`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from ..mlp_step import OPTIMIZERS, examples
from .mlp import weights

Parameters = dict[str, Any]


def loss_of(parameters: Parameters, x: Any, y: Any) -> Any:
    """The mean squared error; inputs (B, 2), targets (B, 1)."""
    hidden = jnp.tanh(x @ parameters["0.weight"].T + parameters["0.bias"])  # (B, 2) -> (B, 8)
    out = jax.nn.sigmoid(hidden @ parameters["2.weight"].T + parameters["2.bias"])  # (B, 8) -> (B, 1)
    return jnp.mean((out - y) ** 2)


@partial(jax.jit, donate_argnums=0)
def update(parameters: Parameters, x: Any, y: Any) -> tuple[Parameters, Any]:
    """The parameters after a step of SGD, which take the place of those before, and the loss before it."""
    loss, gradients = jax.value_and_grad(loss_of)(parameters, x, y)
    return jax.tree.map(lambda p, g: p - OPTIMIZERS["SGD"]["lr"] * g, parameters, gradients), loss


def jax_step(in_this_thread: bool) -> Callable[[], Any]:
    """One step, complete when it returns; computed in another thread, as it comes, or in this one. It returns the loss."""
    jax.config.update("jax_cpu_enable_async_dispatch", not in_this_thread)
    parameters = {name: jnp.array(array) for name, array in weights("XOR").items()}
    x, y = map(jnp.array, examples("XOR"))

    def step() -> Any:
        nonlocal parameters
        parameters, loss = update(parameters, x, y)
        return loss if in_this_thread else loss.block_until_ready()

    return step
