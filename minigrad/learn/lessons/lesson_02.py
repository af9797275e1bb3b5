"""Build your own engine: an op with its slope, the order of the walk back, and the engine itself."""

import math

from ..exercise import exercise


def _sigmoid_and_slope(a):
    value = (1 + math.tanh(a / 2)) / 2
    return value, (1 - math.tanh(a / 2) ** 2) / 4


@exercise(
    cases=[(0.0,), (2.0,), (-3.5,), (0.25,)],
    oracle=_sigmoid_and_slope,
    hint="the slope needs the value only, not a: with the value called out, it is largest where out is a half",
)
def sigmoid(a):
    """The value of 1 / (1 + e^-a), and its slope along a: two numbers.

    >>> sigmoid(0.0)
    (0.5, 0.25)
    """
    out = 1 / (1 + math.exp(-a))
    return out, out * (1 - out)


def _is_order(answer, last, made_from):
    found = answer(last, made_from)
    places = {name: place for place, name in enumerate(found)}
    late = [name for name in found for parent in made_from[name] if places.get(parent, -1) > places[name]]
    return {"how many": len(found), "all of them": sorted(places), "before what they are made from": late}


def _reached(last, made_from):
    found, size = {last}, 0
    while size < len(found):
        size = len(found)
        found |= {parent for name in found for parent in made_from[name]}
    return {"how many": len(found), "all of them": sorted(found), "before what they are made from": []}


_CHAIN = {f"v{i:04}": [f"v{i - 1:04}"] if i else [] for i in range(3000)}


@exercise(
    cases=[
        ("d", {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}),
        ("e", {"a": [], "b": ["a"], "c": ["b", "a"], "d": ["a", "c"], "e": ["d", "b", "a"], "unused": ["e"]}),
        ("c", {"a": [], "b": ["a", "a"], "c": ["b", "b"]}),
        ("v0300", _CHAIN),
    ],
    oracle=_reached,
    probe=_is_order,
    tolerance=0,
    hint="put a name into the list only when everything that it is made from is in it already, and never twice",
)
def history(last, made_from):
    """The names that `last` is made from, and itself, each once, and each behind everything that it is made from.

    `made_from` says of each name what it is made from directly.

    >>> history("c", {"a": [], "b": ["a"], "c": ["b", "a"]})
    ['a', 'b', 'c']
    """
    order, seen = [], set()

    def visit(name):
        if name not in seen:
            seen.add(name)
            for parent in made_from[name]:
                visit(parent)
            order.append(name)

    visit(last)
    return order


_FORMULAS = {
    "x + y": (lambda x, y: x + y, lambda x, y: (1, 1)),
    "x * y": (lambda x, y: x * y, lambda x, y: (y, x)),
    "x * x": (lambda x, y: x * x, lambda x, y: (2 * x, 0)),
    "(x + y) * x": (lambda x, y: (x + y) * x, lambda x, y: (2 * x + y, x)),
    "z * z + z with z = x * y": (
        lambda x, y: (z := x * y) * z + z,
        lambda x, y: (2 * x * y * y + y, 2 * x * x * y + x),
    ),
    "u * v with u = x + y, v = u * u": (lambda x, y: (u := x + y) * (u * u), lambda x, y: (3 * (x + y) ** 2,) * 2),
}


def _by_engine(answer, formula, x, y):
    a, b = answer(x), answer(y)
    out = _FORMULAS[formula][0](a, b)
    out.backward()
    return {"value": out.data, "slope along x": a.grad, "slope along y": b.grad}


def _by_formula(formula, x, y):
    value, slopes = _FORMULAS[formula]
    along_x, along_y = slopes(x, y)
    return {"value": value(x, y), "slope along x": along_x, "slope along y": along_y}


@exercise(
    cases=[(formula, 3.0, -2.0) for formula in _FORMULAS] + [("z * z + z with z = x * y", 0.5, 1.5)],
    oracle=_by_formula,
    probe=_by_engine,
    hint="a value that is used twice gets a slope from each use; walk back only when all uses of it have had their turn",
)
class Value:
    """A number that remembers what it was made from.

    >>> x = Value(3.0)
    >>> y = x * x + x
    >>> y.backward()
    >>> y.data, x.grad
    (12.0, 7.0)
    """

    def __init__(self, data, parents=(), slopes=()):
        """A number, the Values that it was made from, and its slope along each of them; `grad` is 0.0 at first."""
        self.data, self.parents, self.slopes, self.grad = data, parents, slopes, 0.0

    def __add__(self, other):
        """The sum of two Values, as a Value."""
        return Value(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other):
        """The product of two Values, as a Value."""
        return Value(self.data * other.data, (self, other), (other.data, self.data))

    def backward(self):
        """Put into `grad` of every Value that this one is made from its slope along that Value."""
        order, seen = [], set()

        def visit(value):
            if value not in seen:
                seen.add(value)
                for parent in value.parents:
                    visit(parent)
                order.append(value)

        visit(self)
        self.grad = 1.0
        for value in reversed(order):
            for parent, slope in zip(value.parents, value.slopes):
                parent.grad += slope * value.grad
