"""Making it small: weights in few bits, and sums that do not overflow."""

import numpy as np

from ..exercise import exercise


def _draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def _row_by_row(weight, bits):
    largest = 2 ** (bits - 1) - 1
    whole, scales = [], []
    for row in weight.tolist():
        scale = max(map(abs, row)) / largest
        whole.append([round(value / scale) for value in row])
        scales.append([scale])
    return np.array(whole), np.array(scales)


@exercise(
    cases=[
        (_draw(3, 5), 8),
        (_draw(2, 8, seed=1), 4),
        (_draw(4, 3, seed=2), 2),
        (np.array([[1.0, -8.0], [0.5, 0.1]]), 3),
    ],
    oracle=_row_by_row,
    hint="with 8 bits the whole numbers go from -127 to 127; the number of the row that is furthest from 0 becomes one of these ends",
)
def quantised(weight, bits):
    """The weights as whole numbers of so many bits, and a scale for each row: (O, I) -> (O, I), (O, 1).

    >>> whole, scales = quantised(np.array([[0.5, -1.0]]), 3)
    >>> whole.astype(int).tolist(), scales.round(4).tolist()
    ([[2, -3]], [[0.3333]])
    """
    scales = np.abs(weight).max(axis=1, keepdims=True) / (2 ** (bits - 1) - 1)
    return np.rint(weight / scales).astype("int8"), scales


def _both(weight):
    one = max(abs(value) for row in weight.tolist() for value in row) / 127
    errors = [[], []]
    for row in weight.tolist():
        own = max(map(abs, row)) / 127
        errors[0] += [abs(value - one * round(value / one)) for value in row]
        errors[1] += [abs(value - own * round(value / own)) for value in row]
    return [sum(some) / len(some) for some in errors]


_OUTLIER = _draw(6, 16, seed=3)
_OUTLIER[2, 5] = 50.0


@exercise(
    cases=[(_OUTLIER,), (_draw(3, 4, seed=4),)],
    oracle=_both,
    tolerance=1e-9,
    hint="the error is how far a weight is from its whole number times the scale, whichever way; one large weight sets the one scale",
)
def errors(weight):
    """The mean errors of 8 bits: with one scale for the whole matrix, and with one for each row: two numbers.

    >>> [round(float(error), 5) for error in errors(np.array([[1.0, 0.5], [100.0, 0.2]]))]
    [0.175, 0.05098]
    """

    def error(largest):
        step = largest / 127
        return np.abs(weight - step * np.rint(weight / step)).mean()

    return error(np.abs(weight).max()), error(np.abs(weight).max(axis=1, keepdims=True))


def _never_overflows(x, weight):
    return np.array([[sum(a * b for a, b in zip(row, column)) for column in weight.tolist()] for row in x.tolist()])


@exercise(
    cases=[
        (np.full((2, 300), 127, "int8"), np.full((3, 300), -127, "int8")),
        (np.array([[1, -2]], "int8"), np.array([[3, 4], [5, 6]], "int8")),
        (
            np.random.default_rng(5).integers(-127, 128, (4, 64)).astype("int8"),
            np.random.default_rng(6).integers(-127, 128, (5, 64)).astype("int8"),
        ),
    ],
    oracle=_never_overflows,
    probe=lambda answer, x, weight: np.asarray(answer(x, weight)).astype("int64"),
    hint="NumPy keeps the type of what it adds up; the sums need a wider one before the product, not after it",
)
def product(x, weight):
    """The product of whole numbers of eight bits, x @ weight.T, right in every sum: (N, I), (O, I) -> (N, O).

    >>> product(np.array([[100, 100]], "int8"), np.array([[100, 100]], "int8")).tolist()
    [[20000]]
    """
    return x.astype("int32") @ weight.T.astype("int32")
