"""Tensors and broadcasting: whole arrays at once, and their gradients."""

import numpy as np

import minigrad as mg

from ..exercise import exercise


def _draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def _row_by_row(t):
    return np.array([[value / sum(row) for value in row] for row in t.tolist()])


@exercise(
    cases=[(np.array([[1.0, 2.0, 5.0], [3.0, 3.0, 2.0]]),), (np.abs(_draw(3, 3)) + 1,), (np.abs(_draw(4, 1)) + 1,)],
    oracle=_row_by_row,
    hint="(N, M) divided by (N,) lines up the last axes; the sums have to stand in a column",
)
def shares(t):
    """Each number of a table as a share of the sum of its row: (N, M) -> (N, M).

    >>> shares(np.array([[1.0, 3.0], [4.0, 1.0]])).tolist()
    [[0.25, 0.75], [0.8, 0.2]]
    """
    return t / t.sum(axis=1, keepdims=True)


def _by_minigrad(X, W, b):
    leaves = [mg.tensor(part, requires_grad=True) for part in (X, W, b)]
    ((leaves[0] @ leaves[1] + leaves[2]) ** 2).mean().backward()
    return [leaf.grad.numpy() for leaf in leaves]


@exercise(
    cases=[(_draw(5, 3), _draw(3, 2, seed=1), _draw(2, seed=2)), (_draw(1, 4), _draw(4, 1, seed=3), _draw(1, seed=4))],
    oracle=_by_minigrad,
    hint="begin with the slope along each number of X @ W + b; what was stretched over the rows is summed over them",
)
def gradients(X, W, b):
    """The gradients of mean((X @ W + b)²) along X, W and b, in NumPy alone: three arrays of their shapes.

    >>> [part.tolist() for part in gradients(np.array([[1.0]]), np.array([[2.0]]), np.array([1.0]))]
    [[[12.0]], [[6.0]], [6.0]]
    """
    out = X @ W + b  # (N, K)
    slope = 2 * out / out.size
    return slope @ W.T, X.T @ slope, slope.sum(axis=0)


def _squares(x):
    return (x * x).sum()


def _cubes(x):
    return (x**3).sum()


def _along(f, x, v, h):
    return 2 * (x * v).sum() if f is _squares else (3 * x**2 * v + h**2 * v**3).sum()


@exercise(
    cases=[(_squares, _draw(4), _draw(4, seed=1), 0.01), (_cubes, _draw(3, 2), _draw(3, 2, seed=2), 0.5)],
    oracle=_along,
    hint="all numbers are nudged together, once up and once down: two calculations, however many numbers there are",
)
def slope_along(f, x, v, h):
    """The slope of f at the array x in the direction v, measured by two values of f, at x + h · v and at x - h · v.

    >>> float(slope_along(lambda x: x.sum(), np.zeros(2), np.array([1.0, 2.0]), 0.5))
    3.0
    """
    return (f(x + h * v) - f(x - h * v)) / (2 * h)
