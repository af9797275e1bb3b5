"""NumPy to CuPy: code that runs on either, and what leaves the card."""

import statistics

import numpy as np

from ..exercise import exercise


class _OnTheCard:
    """An array that, like one on a graphics card, takes no part in NumPy's functions."""

    __array_ufunc__ = None

    def __init__(self, data):
        self._kept = np.asarray(data, dtype=float)

    def __array__(self, *more, **options):
        raise TypeError("an array on a card cannot become one of NumPy by itself: use the functions of xp")

    def __array_function__(self, *more, **options):
        raise TypeError("NumPy's functions do not work on a card: use those of xp")

    def mean(self):
        return _OnTheCard(self._kept.mean())

    def var(self):
        return _OnTheCard(self._kept.var())

    def std(self):
        return _OnTheCard(self._kept.std())

    def sum(self):
        return _OnTheCard(self._kept.sum())

    @property
    def size(self):
        return self._kept.size

    @property
    def shape(self):
        return self._kept.shape


def _operator(name):
    def combined(self, *other):
        return _OnTheCard(getattr(self._kept, name)(*(getattr(o, "_kept", o) for o in other)))

    return combined


for _name in ["add", "sub", "mul", "truediv", "pow", "radd", "rsub", "rmul", "rtruediv", "neg"]:
    setattr(_OnTheCard, f"__{_name}__", _operator(f"__{_name}__"))


class _Card:
    """The functions of an array module, such as CuPy's."""

    sqrt = staticmethod(lambda x: _OnTheCard(np.sqrt(x._kept)))
    mean = staticmethod(lambda x: x.mean())
    var = staticmethod(lambda x: x.var())
    std = staticmethod(lambda x: x.std())
    sum = staticmethod(lambda x: x.sum())
    square = staticmethod(lambda x: x * x)


def _on_either(answer, device, values):
    if device == "numpy":
        return answer(np, values)
    found = answer(_Card, _OnTheCard(values))
    return found._kept if isinstance(found, _OnTheCard) else found


def _by_statistics(device, values):
    mean, variance = statistics.fmean(values.tolist()), statistics.pvariance(values.tolist())
    return np.array([(value - mean) / (variance + 1e-5) ** 0.5 for value in values.tolist()])


@exercise(
    cases=[
        ("numpy", np.array([4.0, 8.0, 15.0, 16.0, 23.0, 42.0])),
        ("card", np.array([4.0, 8.0, 15.0, 16.0, 23.0, 42.0])),
        ("card", np.array([0.001, 0.002, 0.004])),
    ],
    oracle=_by_statistics,
    probe=_on_either,
    hint="call what is in xp, which is NumPy here and CuPy there, or the methods of the array; nothing that begins with np.",
)
def normal(xp, x):
    """The numbers less their mean, divided by √(their variance + 0.00001), on whatever device x is: xp is its array module.

    >>> normal(np, np.array([1.0, 3.0])).round(4).tolist()
    [-1.0, 1.0]
    """
    return (x - x.mean()) / xp.sqrt(x.var() + 1e-5)


class _Loss:
    """A loss on a card, which counts how often it is taken from there."""

    def __init__(self, value, counter):
        self.value, self.counter = value, counter

    def item(self):
        self.counter.append(self.value)
        return self.value

    __float__ = item


def _counted(answer, values, every):
    counter = []
    found = answer([_Loss(value, counter) for value in values], every)
    return {"written down": found, "taken from the card": len(counter)}


@exercise(
    cases=[
        ([float(i * i) for i in range(60)], 10),
        ([3.0, 2.0, 1.0], 1),
        ([5.0, 4.0, 3.0, 2.0, 1.0], 2),
        ([9.0, 8.0], 7),
    ],
    oracle=lambda values, every: {"written down": values[::every], "taken from the card": len(values[::every])},
    probe=_counted,
    hint="every item() waits for the card; ask only those that you write down",
)
def written(losses, every):
    """The losses of the steps 0, every, 2 · every, … as numbers; `loss.item()` takes one from the card, and only these may be.

    >>> from types import SimpleNamespace
    >>> written([SimpleNamespace(item=lambda: 2.0), None, SimpleNamespace(item=lambda: 1.0)], 2)
    [2.0, 1.0]
    """
    return [loss.item() for step, loss in enumerate(losses) if step % every == 0]


def _by_complex_step(g, a):
    h = 1e-30
    nudged = a + 1j * h
    return g * (nudged * nudged / (1 + nudged * nudged)).imag / h


@exercise(
    cases=[(np.ones(4), np.array([-2.0, 0.0, 0.5, 3.0])), (np.array([3.0, -0.5]), np.array([1.0, -1.0]))],
    oracle=_by_complex_step,
    hint="it is 1 - 1 / (1 + a²); the slope of one over something is minus the slope of that, over its square",
)
def softsquare_rule(g, a):
    """The gradient along a of a² / (1 + a²), where g is the gradient along the result; with operators only, for any device.

    >>> softsquare_rule(np.array([2.0]), np.array([1.0])).tolist()
    [1.0]
    """
    return g * 2 * a / (1 + a * a) ** 2
