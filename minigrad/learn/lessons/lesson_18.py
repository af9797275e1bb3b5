"""Your own: the rule of an op, a layer, and data for a plugin."""

import math

import numpy as np

import minigrad as mg

from ..exercise import exercise


def _by_complex_step(g, a, bend):
    h = 1e-30
    nudged = a + 1j * h
    return g * ((nudged + np.sqrt(nudged * nudged + bend)) / 2).imag / h


@exercise(
    cases=[
        (np.ones(3), np.array([-3.0, 0.0, 2.0]), 1.0),
        (np.array([2.0, -1.0]), np.array([0.5, -0.5]), 0.01),
        (np.array([0.5]), np.array([1.0]), 4.0),
    ],
    oracle=_by_complex_step,
    hint="the slope of a root is one half over the root, times the slope of what is below it; and g, the slope from above, multiplies all",
)
def squareplus_rule(g, a, bend):
    """The gradient along a of squareplus, (a + √(a² + bend)) / 2, where g is the gradient along its result.

    >>> squareplus_rule(np.array([4.0]), np.array([0.0]), 1.0).tolist()
    [2.0]
    """
    return g * (1 + a / np.sqrt(a * a + bend)) / 2


def _waves_of(answer, x, frequencies, shifts):
    layer = answer(len(frequencies))
    names = {name: parameter.shape for name, parameter in layer.named_parameters()}
    with mg.no_grad():
        layer.frequencies[...] = mg.tensor(frequencies.astype("float32"))
        layer.shifts[...] = mg.tensor(shifts.astype("float32"))
    out = layer(mg.tensor(x.astype("float32"), requires_grad=True))
    out.sum().backward()
    return {"parameters": names, "says": out, "gradient of the shifts": layer.shifts.grad}


def _one_by_one(x, frequencies, shifts):
    says = [[math.sin(f * row[0] + p) for f, p in zip(frequencies, shifts)] for row in x]
    gradient = [sum(math.cos(f * row[0] + p) for row in x) for f, p in zip(frequencies, shifts)]
    names = {"frequencies": (len(frequencies),), "shifts": (len(shifts),)}
    return {"parameters": names, "says": np.array(says), "gradient of the shifts": np.array(gradient)}


@exercise(
    cases=[
        (np.array([[0.5], [-1.0], [2.0]]), np.array([1.0, 3.0]), np.array([0.0, 0.5])),
        (np.array([[0.25]]), np.array([-2.0, 0.5, 4.0]), np.array([1.0, -1.0, 0.1])),
    ],
    oracle=_one_by_one,
    probe=_waves_of,
    tolerance=1e-5,
    hint="what is to be learned is an mg.nn.Parameter; (N, 1) times (count,) is stretched to (N, count) by itself",
)
class Waves(mg.nn.Module):
    """Sine waves, sin(frequency · x + shift), with frequencies and shifts that are learned: (N, 1) -> (N, count).

    >>> Waves(3)(mg.zeros(5, 1)).shape
    (5, 3)
    """

    def __init__(self, count):
        """The parameters `frequencies` and `shifts`, each of shape (count,), begin with random numbers."""
        self.frequencies = mg.nn.Parameter(mg.randn(count))
        self.shifts = mg.nn.Parameter(mg.randn(count))

    def forward(self, x):
        """The waves at x."""
        return mg.sin(x * self.frequencies + self.shifts)


@exercise(
    cases=[
        (np.array([[0.0, 0.0], [0.5, 0.0], [0.0, -0.6], [0.7, 0.7], [0.3, 0.3]]), 0.4, 0.8),
        (np.random.default_rng(0).uniform(-1, 1, (50, 2)), 0.25, 0.75),
        (np.array([[0.5, 0.0], [0.0, 1.0], [-3.0, 4.0], [0.0, -0.75]]), 0.5, 1.0),
    ],
    oracle=lambda points, inner, radius: np.array([[float(inner < math.hypot(*point) < radius)] for point in points]),
    hint="how far is a point from the middle? It is in the ring if that is between both radii; the result stands in a column",
)
def in_ring(points, inner, radius):
    """1.0 for each point between two circles around 0, 0; 0.0 for all others, also on the circles: (N, 2) -> (N, 1).

    >>> in_ring(np.array([[0.5, 0.0], [2.0, 0.0]]), 0.25, 1.0).tolist()
    [[1.0], [0.0]]
    """
    far = np.sqrt((points**2).sum(axis=1, keepdims=True))
    return ((far > inner) & (far < radius)).astype("float32")
