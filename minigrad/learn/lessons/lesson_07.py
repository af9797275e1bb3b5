"""Optimisers: how fast one may go, and one of your own."""

import numpy as np

import minigrad as mg

from ..exercise import exercise


def _largest_rate(steepness, momentum):
    low, high = 0.0, 100.0
    for _ in range(80):
        rate = (low + high) / 2
        step = np.array([[1 + momentum - rate * steepness, -momentum], [1, 0]])  # from the last two places to the next
        grows = np.abs(np.linalg.eigvals(step)).max() > 1
        low, high = (low, rate) if grows else (rate, high)
    return low


@exercise(
    cases=[(50.0, 0.8), (50.0, 0.0), (2.0, 0.5), (10.0, 0.9)],
    oracle=_largest_rate,
    hint="without momentum a step too far is one that lands as high on the other side; momentum allows for more",
)
def speed_limit(steepness, momentum):
    """The largest learning rate at which SGD with momentum still comes down a valley, steepness · x² / 2.

    >>> speed_limit(4.0, 0.5)
    0.75
    """
    return 2 * (1 + momentum) / steepness


def _walked(answer, start, gradients, lr):
    weight = mg.tensor(start, requires_grad=True)
    optimizer = answer([weight], lr=lr)
    for gradient in gradients:
        optimizer.zero_grad()
        (weight * mg.tensor(gradient)).sum().backward()
        optimizer.step()
    return weight.detach().numpy()


def _signs(start, gradients, lr):
    return start - lr * sum(np.where(g > 0, 1.0, np.where(g < 0, -1.0, 0.0)) for g in gradients)


@exercise(
    cases=[
        (np.array([1.0, -2.0, 0.5]), [np.array([0.3, -7.0, 0.0])], 0.1),
        (np.array([0.0, 4.0]), [np.array([1e-4, 5.0]), np.array([-2.0, 1.0]), np.array([-3.0, 1.0])], 0.25),
    ],
    oracle=_signs,
    probe=_walked,
    hint="`update` changes the array p in place: p -= …; and xp.sign is the sign of each number",
)
class SignDescent(mg.optim.Optimizer):
    """Moves each weight by `lr` against the sign of its gradient, and not at all where that is 0.

    >>> weight = mg.tensor([1.0, 1.0], requires_grad=True)
    >>> optimizer = SignDescent([weight], lr=0.5)
    >>> (weight * mg.tensor([3.0, -0.1])).sum().backward()
    >>> optimizer.step()
    >>> weight.tolist()
    [0.5, 1.5]
    """

    def __init__(self, params, lr):
        """Hand the parameters and the settings on: super().__init__(params, {"lr": lr}, {})."""
        super().__init__(params, {"lr": lr}, {})

    def buffers(self, group):
        """The names of what is kept for each weight between steps: here none, an empty tuple."""
        return ()

    def update(self, xp, p, g, state, group):
        """Change the array p in place, by its gradient g and the settings in `group`; xp is NumPy, or CuPy."""
        p -= group["lr"] * xp.sign(g)


@exercise(
    cases=[(step, 50, 10, 0.5) for step in (0, 3, 9, 10, 11, 30, 49, 50, 70)] + [(6, 20, 5, 2.0)],
    oracle=lambda step, total, warmup, base: np.interp(step, [0, warmup, total], [0, base, 0]),
    hint="two straight lines that meet at step `warmup`, where the rate is `base`; and after the end it stays 0",
)
def rate(step, total, warmup, base):
    """The learning rate of a step: straight up from 0 to `base` at step `warmup`, straight down to 0 at `total`, then 0.

    >>> [rate(step, 30, 10, 1.0) for step in (0, 5, 10, 20, 30, 40)]
    [0.0, 0.5, 1.0, 0.5, 0.0, 0.0]
    """
    if step < warmup:
        return base * step / warmup
    return base * max(total - step, 0) / (total - warmup)
