"""One number at a time: slopes by a pencil, by nudging, and what learns from them."""

import math

import numpy as np

from ..exercise import exercise

_NUDGE = 1e-6


def _measured(a, b):
    def f(a, b):
        return (a + b) * (b + 1)

    return (
        (f(a + _NUDGE, b) - f(a - _NUDGE, b)) / (2 * _NUDGE),
        (f(a, b + _NUDGE) - f(a, b - _NUDGE)) / (2 * _NUDGE),
    )


@exercise(
    cases=[(2.0, 1.0), (-3.0, 0.5), (0.0, 0.0), (1.5, -4.0)],
    oracle=_measured,
    hint="b stands in both brackets: nudge it in one while the other holds still, then in the other, and add what you see",
)
def slopes(a, b):
    """The slopes of (a + b) · (b + 1) along a and along b, found with a pencil: two numbers.

    >>> slopes(2.0, 1.0)
    (2.0, 5.0)
    """
    return b + 1, (b + 1) + (a + b)


def _cube(x):
    return x**3


def _exponential(x):
    return math.exp(x)


def _slope_between(f, x, h):
    return 3 * x**2 + h**2 if f is _cube else math.exp(x) * math.sinh(h) / h


@exercise(
    cases=[(_cube, 2.0, 0.1), (_cube, -1.0, 0.01), (_exponential, 0.5, 0.5), (_exponential, -2.0, 0.125)],
    oracle=_slope_between,
    hint="one value on each side of x; how far apart are the two places?",
)
def central(f, x, h):
    """The slope of f at x, measured by a nudge of h to both sides.

    >>> central(lambda x: x * x, 3.0, 0.5)
    6.0
    """
    return (f(x + h) - f(x - h)) / (2 * h)


def _after_steps(rides, rate, steps):
    rows = np.array([[kilometres, 1.0] for kilometres, _ in rides])
    costs = np.array([cost for _, cost in rides])
    best = np.linalg.solve(rows.T @ rows, rows.T @ costs)
    power = np.linalg.matrix_power(np.eye(2) - 2 * rate * rows.T @ rows, steps)
    return best - power @ best


@exercise(
    cases=[
        ([(5.0, 14.0), (8.0, 20.0)], 0.005, 1),
        ([(5.0, 14.0), (8.0, 20.0)], 0.005, 300),
        ([(1.0, 3.0), (2.0, 4.0), (4.0, 9.0)], 0.02, 40),
    ],
    oracle=_after_steps,
    hint="add up both slopes over all rides first, and only then move w and b, both at once",
)
def prices(rides, rate, steps):
    """The price of a kilometre, w, and of getting in, b, learned from rides, pairs of kilometres and cost.

    Both start at 0. Each step goes down the slope of the sum of (w · kilometres + b - cost)² over all rides: w becomes
    w - rate · slope, and so does b.

    >>> w, b = prices([(5.0, 14.0), (8.0, 20.0)], 0.005, 20000)
    >>> print(f"{w:.2f} {b:.2f}")
    2.00 4.00
    """
    w = b = 0.0
    for _ in range(steps):
        errors = [w * kilometres + b - cost for kilometres, cost in rides]
        slope_w = sum(2 * error * kilometres for error, (kilometres, _) in zip(errors, rides))
        slope_b = sum(2 * error for error in errors)
        w, b = w - rate * slope_w, b - rate * slope_b
    return w, b
