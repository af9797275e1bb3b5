"""XOR: networks by hand, and what a network without a bend is."""

import numpy as np

from ..exercise import exercise

_ROWS = [(0, 0), (0, 1), (1, 0), (1, 1)]


def sigmoid(s):
    """From any number to one between 0 and 1."""
    return 1 / (1 + np.exp(-s))


def hidden(a, b):
    """The two hidden units of the tutorial: about 1 if any bit is 1, and about 1 unless both are."""
    return sigmoid(20 * a + 20 * b - 10), sigmoid(-20 * a - 20 * b + 30)


def _sure(answer, a, b):
    said = float(answer(a, b))
    return "nearly 1" if 0.9 < said < 1.0001 else "nearly 0" if -0.0001 < said < 0.1 else f"{said:.3f}"


@exercise(
    cases=_ROWS,
    oracle=lambda a, b: "nearly 1" if a == b else "nearly 0",
    probe=_sure,
    hint="h1 and h2 are both about 1 just where XOR is 1: when should the output unit stay silent?",
)
def xnor(a, b):
    """Nearly 1 if both bits are equal, and nearly 0 if not: the sigmoid of a weighted sum of the hidden units and a bias.

    >>> round(float(xnor(1, 1)))
    1
    """
    h1, h2 = hidden(a, b)
    return sigmoid(-20 * h1 - 20 * h2 + 30)


@exercise(
    cases=_ROWS,
    oracle=lambda a, b: (a + b) % 2,
    hint="h1 grows by 1 with each bit; a second hinge, which opens later, has to take back what is too much",
)
def relu_xor(a, b):
    """Exactly 0, 1, 1, 0 for the bits 00, 01, 10, 11: a weighted sum of two units max(0, …), the first of them of a + b.

    >>> relu_xor(1, 0)
    1
    """
    return max(0, a + b) - 2 * max(0, a + b - 1)


def _probed(W1, b1, W2, b2):
    def network(x):
        return (x @ W1.T + b1) @ W2.T + b2

    inputs = W1.shape[1]
    bias = network(np.zeros(inputs))
    return np.stack([network(row) - bias for row in np.eye(inputs)], axis=1), bias


@exercise(
    cases=[
        tuple(np.random.default_rng(seed).normal(size=shape) for shape in ((8, 2), (8,), (1, 8), (1,)))
        for seed in (0, 1)
    ]
    + [tuple(np.random.default_rng(2).normal(size=shape) for shape in ((3, 4), (3,), (2, 3), (2,)))],
    oracle=_probed,
    hint="put the first line into the second, multiply out, and see what stands with x and what stands alone",
)
def collapsed(W1, b1, W2, b2):
    """The weight and the bias of the one layer that says what two layers say without a bend between them.

    A layer says x @ W.T + b. The shapes are (H, I), (H,), (O, H) and (O,); the result has (O, I) and (O,).

    >>> W, b = collapsed(np.array([[2.0]]), np.array([1.0]), np.array([[3.0]]), np.array([4.0]))
    >>> W.tolist(), b.tolist()
    ([[6.0]], [7.0])
    """
    return W2 @ W1, W2 @ b1 + b2
