"""The steps of optimisers in one pass over flat float32 arrays.

They are compiled without liberties in floating-point arithmetic, so an element's result does not depend on where in the
array it lies: a run that is resumed with other neighbours in memory gives the same bits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from ..steps import register_step
from .compiling import KEPT_IN

_exact = njit(nogil=True, cache=KEPT_IN is not None, error_model="numpy")


@_exact
def _adam(p, g, mean, square, largest, lr, beta1, beta2, eps, decay, decoupled, amsgrad, young1, root2, scale):
    one = np.float32(1)
    shrink = one - lr * decay
    for i in range(p.size):
        gradient, weight = g[i] * scale, p[i]
        if decoupled:
            weight *= shrink
        else:
            gradient += decay * weight
        m = mean[i] + (one - beta1) * (gradient - mean[i])
        v = square[i] * beta2 + (one - beta2) * gradient * gradient
        mean[i], square[i] = m, v
        if amsgrad:
            v = max(v, largest[i])
            largest[i] = v
        p[i] = weight - (lr / young1) * (m / (np.float32(math.sqrt(v)) / root2 + eps))


def adam(optimizer: Any, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any], scale: float) -> None:
    """Adam, AdamW and AMSGrad."""
    f = np.float32
    (beta1, beta2), step = group["betas"], state["step"]
    mean, square = state["exp_avg"], state["exp_avg_sq"]
    largest = state["max_exp_avg_sq"] if group["amsgrad"] else square
    young1, root2 = 1 - beta1**step, math.sqrt(1 - beta2**step)
    options = f(group["lr"]), f(beta1), f(beta2), f(group["eps"]), f(group["weight_decay"])
    _adam(p, g, mean, square, largest, *options, optimizer.decoupled, group["amsgrad"], f(young1), f(root2), f(scale))


@_exact
def _sgd(p, g, velocity, lr, momentum, share, decay, nesterov, first, scale):
    for i in range(p.size):
        gradient = g[i] * scale + decay * p[i]
        if momentum != 0:
            v = gradient if first else velocity[i] * momentum + share * gradient
            velocity[i] = v
            gradient = gradient + momentum * v if nesterov else v
        p[i] -= lr * gradient


def sgd(optimizer: Any, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any], scale: float) -> None:
    """Gradient descent with momentum, Nesterov's and weight decay."""
    f = np.float32
    velocity = state["momentum_buffer"] if group["momentum"] else g
    options = f(group["lr"]), f(group["momentum"]), f(1 - group["dampening"]), f(group["weight_decay"])
    _sgd(p, g, velocity, *options, group["nesterov"], state["step"] == 1, f(scale))


@_exact
def _rmsprop(p, g, square, mean, velocity, lr, alpha, eps, decay, momentum, centered, scale):
    one = np.float32(1)
    for i in range(p.size):
        gradient = g[i] * scale + decay * p[i]
        v = square[i] * alpha + (one - alpha) * gradient * gradient
        square[i] = v
        if centered:
            m = mean[i] + (one - alpha) * (gradient - mean[i])
            mean[i] = m
            v -= m * m
        step = gradient / (np.float32(math.sqrt(v)) + eps)
        if momentum != 0:
            step += velocity[i] * momentum
            velocity[i] = step
        p[i] -= lr * step


def rmsprop(optimizer: Any, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any], scale: float) -> None:
    """RMSprop, centred or not, with momentum or without."""
    f = np.float32
    square = state["square_avg"]
    mean = state["grad_avg"] if group["centered"] else square
    velocity = state["momentum_buffer"] if group["momentum"] else square
    options = f(group["lr"]), f(group["alpha"]), f(group["eps"]), f(group["weight_decay"]), f(group["momentum"])
    _rmsprop(p, g, square, mean, velocity, *options, group["centered"], f(scale))


for _rule, _step in (("adam", adam), ("rmsprop", rmsprop), ("sgd", sgd)):
    register_step(_rule, "numba", _step)
