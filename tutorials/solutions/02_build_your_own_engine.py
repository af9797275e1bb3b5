# %% [markdown]
# # Solutions to 2. Build your own engine
#
# First the engine of the tutorial, as far as it is needed here.

# %%
import itertools
import math

import minigrad as mg

clock = itertools.count()


class Value:
    """A number, and how it was made."""

    def __init__(self, number, made_from=()):
        self.number, self.made_from, self.grad, self.time = number, made_from, 0.0, next(clock)


def op(calculation, *slopes):
    """A function of Values, from a function of numbers and one slope for each input."""

    def apply(*inputs):
        numbers = [x.number if isinstance(x, Value) else x for x in inputs]
        out = calculation(*numbers)
        return Value(out, [(x, slope(out, *numbers)) for x, slope in zip(inputs, slopes) if isinstance(x, Value)])

    return apply


# %%
Value.__add__ = op(lambda a, b: a + b, lambda out, a, b: 1.0, lambda out, a, b: 1.0)
Value.__mul__ = op(lambda a, b: a * b, lambda out, a, b: b, lambda out, a, b: a)


def history(result):
    """All that a result was made from, itself included, the newest first."""
    found, waiting = {result}, [result]
    while waiting:
        for parent, _ in waiting.pop().made_from:
            if parent not in found:
                found.add(parent)
                waiting.append(parent)
    return sorted(found, key=lambda value: value.time, reverse=True)


# %%
def backward(result, history=history):
    """Add to `.grad` of every leaf the derivative of the result."""
    arrived = {result: 1.0}
    for value in history(result):
        gradient = arrived.pop(value)
        if not value.made_from:
            value.grad += gradient
        for parent, slope in value.made_from:
            arrived[parent] = arrived.get(parent, 0.0) + gradient * slope


# %% [markdown]
# ## 1. Two more ops
#
# Of `maximum(a, b)`, only the larger input can move the result: its slope is 1, the other's is 0. If both are equal,
# there is a choice. minigrad gives each a half.

# %%
sigmoid = op(lambda a: 1 / (1 + math.exp(-a)), lambda out, a: out * (1 - out))
maximum = op(
    max,
    lambda out, a, b: 0.5 if a == b else float(a > b),
    lambda out, a, b: 0.5 if a == b else float(b > a),
)

for first, second in ((1.5, -0.5), (-2.0, 0.3), (0.7, 0.7)):
    a, b = Value(first), Value(second)
    backward(sigmoid(a) * b + maximum(a, b))
    ta, tb = (mg.tensor(number, dtype="float64", requires_grad=True) for number in (first, second))
    (mg.sigmoid(ta) * tb + mg.maximum(ta, tb)).backward()
    print(f"ours {a.grad:.12f} {b.grad:.12f}, minigrad {ta.grad.item():.12f} {tb.grad.item():.12f}")
    assert math.isclose(a.grad, ta.grad.item(), rel_tol=1e-12) and math.isclose(b.grad, tb.grad.item(), rel_tol=1e-12)

# %% [markdown]
# ## 2. An order by recursion
#
# Parents are put into the list before the value itself. So the list ends with the result, and read from its end it is
# a safe order too: whoever uses a number stands behind it.


# %%
def recursive(result):
    order, seen = [], set()

    def visit(value):
        if value not in seen:
            seen.add(value)
            for parent, _ in value.made_from:
                visit(parent)
            order.append(value)

    visit(result)
    return order[::-1]


x = Value(3.0)
y = x * x
backward(y * y + y, recursive)
print("with recursion:", x.grad)
assert x.grad == 4 * 3**3 + 2 * 3

# %% [markdown]
# It breaks on a long chain: each link is a call inside a call, and Python allows about a thousand of those. A list of
# what is waiting has no such limit, which is why neither our engine nor minigrad's calls itself.

# %%
x = Value(0.0)
total = x
for _ in range(5000):
    total = total + 1.0

try:
    backward(total, recursive)
    broke = False
except RecursionError as error:
    broke = True
    print("with recursion:", error)
backward(total)
print("with the clock: ", x.grad)
assert broke and x.grad == 1

# %% [markdown]
# ## 3. Slopes of slopes
#
# The slopes of the tutorial are formulas such as `1 - out * out`. Python does not care whether `out` is a number or a
# Value! If we run the formula on Values, during the walk, the gradient is a Value itself, and remembers how it was
# made. So we keep the formula and its inputs, and nothing else changes. The rules of minigrad are used in the same
# two ways: on plain arrays, which is fast, or on Tensors, if a higher derivative is wanted.


# %%
def op_again(calculation, *slopes):
    def apply(*inputs):
        out = Value(calculation(*[x.number if isinstance(x, Value) else x for x in inputs]))
        # The walk hands each formula its `out`; a value that kept itself would never be freed by counting.
        out.made_from = [(x, (slope, inputs)) for x, slope in zip(inputs, slopes) if isinstance(x, Value)]
        return out

    return apply


def gradient(result, leaf):
    """The derivative of a result with respect to a leaf, as a Value."""
    arrived = {result: Value(1.0)}
    for value in history(result):
        so_far = arrived.pop(value)
        if value is leaf:
            return so_far
        for parent, (slope, inputs) in value.made_from:
            part = so_far * slope(value, *inputs)
            arrived[parent] = arrived[parent] + part if parent in arrived else part
    return Value(0.0)


# %%
Value.__add__ = Value.__radd__ = op_again(lambda a, b: a + b, lambda out, a, b: 1.0, lambda out, a, b: 1.0)
Value.__mul__ = Value.__rmul__ = op_again(lambda a, b: a * b, lambda out, a, b: b, lambda out, a, b: a)
Value.__pow__ = op_again(lambda a, n: a**n, lambda out, a, n: n * a ** (n - 1))
tanh = op_again(math.tanh, lambda out, a: 1 + -1 * (out * out))

x = Value(2.0)
first = gradient(x**4, x)
second = gradient(first, x)
third = gradient(second, x)
print("x⁴ at 2 and its derivatives:", 2**4, first.number, second.number, third.number)
assert (first.number, second.number, third.number) == (32, 48, 48)

x = Value(0.3)
curvature = gradient(gradient(tanh(x) * x, x), x).number
theirs = mg.grad(mg.grad(lambda t: mg.tanh(t) * t))(mg.tensor(0.3, dtype="float64")).item()
print("tanh(x) · x, second derivative at 0.3:", curvature, "and minigrad's", theirs)
assert math.isclose(curvature, theirs, rel_tol=1e-12)
