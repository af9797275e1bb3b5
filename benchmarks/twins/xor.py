"""One step of gradient descent on XOR in every library: 2-8-1 network, batch 4, tanh, sigmoid, mean squared error, float32.

Each function makes a step in its library's own idiom. All start from the same weights, so all must reach the same loss.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

Step = Callable[[], Any]
RATE = 0.5
X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
Y = np.array([[0], [1], [1], [0]], np.float32)


def weights() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [
        rng.standard_normal((2, 8), np.float32),
        np.zeros(8, np.float32),
        rng.standard_normal((8, 1), np.float32),
        np.zeros(1, np.float32),
    ]


def tensor_step(library: Any) -> Step:
    """The step in minigrad and in PyTorch, which are written alike."""
    x, y = library.tensor(X), library.tensor(Y)
    params = w1, b1, w2, b2 = [library.tensor(w, requires_grad=True) for w in weights()]

    def step() -> Any:
        hidden = (x @ w1 + b1).tanh()
        error = (hidden @ w2 + b2).sigmoid() - y
        loss = (error * error).mean()
        loss.backward()
        with library.no_grad():
            for p in params:
                p -= RATE * p.grad
                p.grad = None
        return loss

    return step


def minigrad_step() -> Step:
    import minigrad

    return tensor_step(minigrad)


def torch_step(threads: int | None = None) -> Step:
    import torch

    if threads is not None:
        torch.set_num_threads(threads)
    return tensor_step(torch)


def mygrad_step() -> Step:
    import mygrad
    from mygrad.nnet.activations import sigmoid

    params: list[Any] = [mygrad.tensor(w) for w in weights()]
    w1, b1, w2, b2 = params

    def step() -> Any:
        hidden = mygrad.tanh(X @ w1 + b1)
        error = sigmoid(hidden @ w2 + b2) - Y
        loss = (error * error).mean()
        loss.backward()
        for p in params:
            p.data -= RATE * p.grad
        return loss

    return step


def autograd_step() -> Step:
    import autograd.numpy as anp  # type: ignore[import-untyped]
    from autograd import value_and_grad

    params = weights()

    def loss_of(params: list[Any]) -> Any:
        w1, b1, w2, b2 = params
        hidden = anp.tanh(X @ w1 + b1)
        error = 1 / (1 + anp.exp(-(hidden @ w2 + b2))) - Y
        return anp.mean(error * error)

    gradient = value_and_grad(loss_of)

    def step() -> Any:
        loss, grads = gradient(params)
        for p, g in zip(params, grads):
            p -= RATE * g
        return loss

    return step


def numpy_step() -> Step:
    w1, b1, w2, b2 = weights()

    def step() -> Any:
        nonlocal w1, b1, w2, b2
        hidden = np.tanh(X @ w1 + b1)
        out = 1 / (1 + np.exp(-(hidden @ w2 + b2)))
        error = out - Y
        loss = (error * error).mean()
        g_out = error * (2 / error.size) * out * (1 - out)
        g_hidden = g_out @ w2.T * (1 - hidden * hidden)
        w1 -= RATE * (X.T @ g_hidden)
        b1 -= RATE * g_hidden.sum(0)
        w2 -= RATE * (hidden.T @ g_out)
        b2 -= RATE * g_out.sum(0)
        return loss

    return step


PEERS: dict[str, Callable[[], Step]] = {
    "minigrad": minigrad_step,
    "NumPy by hand": numpy_step,
    "PyTorch": torch_step,
    "PyTorch, 1 thread": partial(torch_step, threads=1),
    "MyGrad": mygrad_step,
    "HIPS autograd": autograd_step,
}
