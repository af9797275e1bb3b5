"""A line and a curve: what hinges can build, and the best line."""

import numpy as np

from ..exercise import exercise

_PLACES = np.array([-1.0, 0.0, 0.03, 0.05, 0.1, 0.4, 1.0, 1.02, 1.07, 1.1, 2.0])


def relu(x):
    """A hinge: 0 for what is negative, and the rest as it is."""
    return np.maximum(x, 0)


@exercise(
    cases=[(_PLACES,), (np.linspace(-0.5, 1.5, 41),)],
    oracle=lambda x: np.interp(x, [0, 0.1, 1, 1.1], [0, 1, 1, 0]),
    hint="a hinge at each of the four places where the slope changes; by how much does it change there?",
)
def pulse(x):
    """0 up to 0, then rising straight to 1 at 0.1, 1 up to 1, falling straight to 0 at 1.1, and 0 from there on.

    Made of four hinges, for an array of any shape.

    >>> pulse(np.array([-1.0, 0.5, 3.0])).round(6).tolist()
    [0.0, 1.0, 0.0]
    """
    return 10 * (relu(x) - relu(x - 0.1) - relu(x - 1) + relu(x - 1.1))


@exercise(
    cases=[(np.linspace(0, 1, 65), times) for times in (1, 2, 3, 5)],
    oracle=lambda x, times: 1 - np.abs(1 - (2**times * x) % 2),
    hint="each time, what came out goes in again; x itself is used only once",
)
def folded(x, times):
    """The hat t(x) = 2 relu(x) - 4 relu(x - 0.5), put into itself: so many hats, one after the other.

    >>> folded(np.array([0.25, 0.5]), 2).tolist()
    [1.0, 0.0]
    """
    for _ in range(times):
        x = 2 * relu(x) - 4 * relu(x - 0.5)
    return x


def _fitted(x, y):
    slope, height = np.polyfit(x, y, 1)
    return slope, height


@exercise(
    cases=[
        (np.linspace(-3, 3, 50), np.sin(np.linspace(-3, 3, 50))),
        (np.array([0.0, 1.0, 2.0, 5.0]), np.array([1.0, 3.0, 2.0, 7.0])),
    ],
    oracle=_fitted,
    hint="at the best line both slopes of the loss are 0, which are two equations; first take the mean off x and off y",
)
def best_line(x, y):
    """The slope and the height at 0 of the line with the smallest mean squared error.

    >>> [round(float(number), 6) for number in best_line(np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0]))]
    [2.0, 1.0]
    """
    apart = x - x.mean()
    slope = (apart * (y - y.mean())).sum() / (apart * apart).sum()
    return slope, y.mean() - slope * x.mean()
