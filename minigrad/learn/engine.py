"""A learner's engine of lesson 2 in the place of minigrad's: what lessons 3 to 6 compute, number by number, with `Value`."""

from __future__ import annotations

from typing import Any

import numpy as np

import minigrad as mg

from .exercise import Exercise

__all__ = ["ENGINE"]

_DRAW = np.random.default_rng(0)
_TABLE = [_DRAW.normal(size=shape) for shape in ((4, 3), (3, 2), (2,))]
_LINE = (np.array([0.0, 1.0, 2.0, 5.0]), np.array([1.0, 3.0, 2.0, 7.0]))
_XOR = (np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([0.0, 1.0, 1.0, 0.0]))
_START = [_DRAW.normal(size=shape) / 2 for shape in ((2, 3), (3,), (3,), ())]
_SCORES = (np.array([2.0, 1.0, 0.2]), 1)


def _values(engine: Any, array: np.ndarray) -> Any:
    """The numbers of an array as Values, in an array of objects of its shape."""
    made = np.empty(array.shape, dtype=object)
    for index in np.ndindex(array.shape):
        made[index] = engine(float(array[index]))
    return made


def _slopes(values: Any) -> Any:
    return np.array([value.grad for value in values.reshape(-1)]).reshape(values.shape)


def _total(terms: Any) -> Any:
    first, *rest = list(terms)
    for term in rest:
        first = first + term
    return first


def _table_by(engine: Any, X: Any, W: Any, b: Any) -> Any:
    x, w, c = (_values(engine, part) for part in (X, W, b))
    squares = []
    for row in x:
        for column, bias in zip(w.T, c):
            out = _total(p * q for p, q in zip(row, column)) + bias
            squares.append(out * out)
    (_total(squares) * engine(1 / len(squares))).backward()
    return [_slopes(part) for part in (x, w, c)]


def _table(X: Any, W: Any, b: Any) -> Any:
    slopes = mg.grad(lambda X, W, b: ((X @ W + b) ** 2).mean(), argnums=(0, 1, 2))
    return [part.numpy() for part in slopes(*map(mg.tensor, (X, W, b)))]


def _bent_by(engine: Any, X: Any, wanted: Any, steps: int) -> Any:
    weights = [part.copy() for part in _START]
    for _ in range(steps):
        W, b, v, c = made = [_values(engine, part) for part in weights]
        errors = []
        for row, target in zip(X, wanted):
            inner = [_total(engine(float(x)) * w for x, w in zip(row, column)) + bias for column, bias in zip(W.T, b)]
            out = _total(h * h * q for h, q in zip(inner, v)) + c[()] + engine(-float(target))
            errors.append(out * out)
        _total(errors).backward()
        weights = [part - 0.02 * _slopes(values) for part, values in zip(weights, made)]
    return weights


def _bent(X: Any, wanted: Any, steps: int) -> Any:
    weights = [mg.tensor(part, requires_grad=True) for part in _START]
    optimizer = mg.optim.SGD(weights, lr=0.02)
    for _ in range(steps):
        W, b, v, c = weights
        optimizer.zero_grad()
        ((((mg.tensor(X) @ W + b) ** 2 * v).sum(axis=1) + c - mg.tensor(wanted)) ** 2).sum().backward()
        optimizer.step()
    return [part.detach().numpy() for part in weights]


def _line_by(engine: Any, x: Any, y: Any, steps: int) -> Any:
    w = b = 0.0
    for _ in range(steps):
        slope, height = engine(w), engine(b)
        errors = [slope * engine(float(p)) + height + engine(-float(q)) for p, q in zip(x, y)]
        (_total(error * error for error in errors) * engine(1 / len(errors))).backward()
        w, b = w - 0.05 * slope.grad, b - 0.05 * height.grad
    return [w, b]


def _line(x: Any, y: Any, steps: int) -> Any:
    w, b = (mg.tensor(0.0, dtype="float64", requires_grad=True) for _ in range(2))
    optimizer = mg.optim.SGD([w, b], lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        ((w * mg.tensor(x) + b - mg.tensor(y)) ** 2).mean().backward()
        optimizer.step()
    return [w.item(), b.item()]


def _pull_by(engine: Any, scores: Any, label: int) -> Any:
    if not (hasattr(engine, "exp") and hasattr(engine, "log")):
        raise NotImplementedError
    z = _values(engine, scores)
    loss = _total(score.exp() for score in z).log() + z[label] * engine(-1.0)
    loss.backward()
    return _slopes(z)


def _pull(scores: Any, label: int) -> Any:
    return mg.grad(lambda z: mg.nn.functional.cross_entropy(z[None], mg.tensor([label])))(mg.tensor(scores)).numpy()


def _use(name: str, case: tuple[Any, ...], ours: Any, by_engine: Any, hint: str) -> Exercise:
    return Exercise(name, by_engine, [case], ours, hint, by_engine, 1e-6, answer="Value")


ENGINE = [
    _use("gradients of a table, lesson 3", (*_TABLE,), _table, _table_by, "a number is used in several products: add up what comes from all"),
    _use("XOR with squares as bends, lesson 4", (*_XOR, 60), _bent, _bent_by, "the same Value twice in a product gets a slope from each side"),
    _use("a line, lesson 5", (*_LINE, 80), _line, _line_by, "a new graph each step: nothing of the one before may be left in it"),
    _use("P - y, lesson 6", _SCORES, _pull, _pull_by, "give Value the methods exp() and log(), each with its slope"),
]  # fmt: skip
