# %% [markdown]
# # 2. Build your own engine
#
# An *autograd engine* is a program that computes derivatives by itself. ("Auto" for automatic, "grad" for gradient.)
# In this tutorial you write one. At the end it has about 50 lines, agrees with minigrad on whatever you throw at it,
# and has trained a small neural network. Network and training included, it stays under 100.
#
# It takes about 40 minutes, and 5 seconds to run. You should know from
# [the first tutorial](01_one_number_at_a_time.py) what a graph, a local slope and a gradient are.

# %%
import itertools
import math
import random
from types import SimpleNamespace

from showing import show

import minigrad as mg

# %% [markdown]
# ## A number that remembers
#
# We need to walk back from a result to all that it was made from. So each number keeps a list: which numbers it was
# made from, and with which local slope. For $6 = 2 \cdot 3$ that is: from the 2, with slope 3; and from the 3, with
# slope 2.
#
# A number that was made from nothing is where a walk ends. We call it a *leaf*, and it gets a place for its gradient.
# Last, every number takes a ticket with the time at which it was made. You will soon see what for.

# %%
clock = itertools.count()


class Value:
    """A number, and how it was made."""

    def __init__(self, number, made_from=()):
        self.number = number
        self.made_from = made_from  # pairs: another Value, and the local slope for it
        self.grad = 0.0
        self.time = next(clock)

    def __repr__(self):
        return f"Value({self.number:g})"


print(Value(2.0))

# %% [markdown]
# ## One way to declare an op
#
# An op is a little calculation on plain numbers, with a local slope for each of its inputs. If we have both, then
# what happens at a call is always the same: take the plain numbers out, compute, note down who was used with which
# slope. So we write that once. `op` takes the calculation and the slopes, and gives back a function that works on
# Values.
#
# A slope may depend on the inputs and on the result. The slope of $e^a$, for instance, is $e^a$ itself. (That is what
# is special about the number $e = 2.718\dots$) So a slope is handed the result as well, as `out`. An input that is a
# plain number, like the 2 in $a^2$, is a constant. Nobody asks for its slope.


# %%
def op(calculation, *slopes):
    """A function of Values, from a function of numbers and one slope for each input."""

    def apply(*inputs):
        numbers = [x.number if isinstance(x, Value) else x for x in inputs]
        out = calculation(*numbers)
        used = [(x, slope(out, *numbers)) for x, slope in zip(inputs, slopes) if isinstance(x, Value)]
        return Value(out, used)

    return apply


# %% [markdown]
# Now ops are one line each. These are the school rules for derivatives. If they are new to you, try them out: a nudge,
# as in the first tutorial, gives the same slopes. ($\ln a$ is the logarithm that undoes $e^a$: it asks which power of
# $e$ gives $a$. Python calls it `log`.)
#
# | op | slope for $a$ | slope for $b$ |
# |---|---|---|
# | $a + b$ | $1$ | $1$ |
# | $a - b$ | $1$ | $-1$ |
# | $a \cdot b$ | $b$ | $a$ |
# | $a / b$ | $1 / b$ | $-a / b^2$, which is $-out / b$ |
# | $a^b$ | $b \cdot a^{b - 1}$ | $out \cdot \ln a$ |

# %%
add = op(lambda a, b: a + b, lambda out, a, b: 1.0, lambda out, a, b: 1.0)
subtract = op(lambda a, b: a - b, lambda out, a, b: 1.0, lambda out, a, b: -1.0)
multiply = op(lambda a, b: a * b, lambda out, a, b: b, lambda out, a, b: a)
divide = op(lambda a, b: a / b, lambda out, a, b: 1 / b, lambda out, a, b: -out / b)
power = op(lambda a, b: a**b, lambda out, a, b: b * a ** (b - 1), lambda out, a, b: out * math.log(a))

product = multiply(Value(2.0), Value(3.0))
print(product, "was made from", product.made_from)

# %% [markdown]
# To write `w * x` in place of `multiply(w, x)`, tell Python. It calls `__mul__` for `value * 3`, and `__rmul__` for
# `3 * value`, where the plain number stands first. (`function=function` keeps the function of this round of the loop;
# without it, all five would call the last one.)

# %%
operators = {"add": add, "sub": subtract, "mul": multiply, "truediv": divide, "pow": power}
for name, function in operators.items():
    setattr(Value, f"__{name}__", function)
    setattr(Value, f"__r{name}__", lambda b, a, function=function: function(a, b))

print(2 * Value(3.0) + 1, 1 / Value(4.0), 2 ** Value(3.0))

# %% [markdown]
# Four functions that neural networks are fond of. `exp` is $e^a$. `tanh` squeezes any number between −1 and 1. `relu`
# leaves a positive number as it is, and makes 0 of a negative one.
#
# | function | slope |
# |---|---|
# | $e^a$ | $out$ |
# | $\ln a$ | $1 / a$ |
# | $\tanh a$ | $1 - out^2$ |
# | $\text{relu}(a)$ | 1 where $a$ is positive, else 0 |

# %%
exp = op(math.exp, lambda out, a: out)
log = op(math.log, lambda out, a: 1 / a)
tanh = op(math.tanh, lambda out, a: 1 - out * out)
relu = op(lambda a: max(a, 0.0), lambda out, a: 1.0 if a > 0 else 0.0)

print(exp(Value(1.0)), log(Value(10.0)), tanh(Value(0.5)), relu(Value(-3.0)))

# %% [markdown]
# ## In which order to walk back
#
# A gradient is a sum over all ways (remember the garden). An op may hand on its gradient only when *all* of it has
# arrived. Take
#
# $y = x \cdot x \qquad z = y \cdot y + y$
#
# Here $y$ is used by the product and by the sum. If $y$ hands on what the sum gave it before the product has had its
# turn, a part arrives too late. What order is safe? Here is the ticket: whatever uses a number is made *later* than
# the number itself. So visit the newest first. By the time a number's turn comes, everyone who used it is done.


# %%
def history(result):
    """All that a result was made from, itself included, the newest first."""
    found, waiting = {result}, [result]
    while waiting:
        for parent, _ in waiting.pop().made_from:
            if parent not in found:
                found.add(parent)
                waiting.append(parent)
    return sorted(found, key=lambda value: value.time, reverse=True)


x = Value(3.0)
y = x * x
z = y * y + y
print(history(z))

# %% [markdown]
# ## The walk back
#
# Now the heart of it. The result's own gradient is 1. Each value hands to each number that it was made from:
#
# $\text{its own gradient} \cdot \text{the local slope}$
#
# and whoever receives something adds it to what it already has. What has arrived lies in a dictionary during the
# walk. Only leaves keep it, in `.grad`.


# %%
def backward(result):
    """Add to `.grad` of every leaf the derivative of the result."""
    arrived = {result: 1.0}
    for value in history(result):
        gradient = arrived.pop(value)
        if not value.made_from:
            value.grad += gradient
        for parent, slope in value.made_from:
            arrived[parent] = arrived.get(parent, 0.0) + gradient * slope


backward(z)
print("slope of z for x:", x.grad, " by the formula 4x³ + 2x:", 4 * 3**3 + 2 * 3)

# %% [markdown]
# That was the engine. It is done. (Written out, $z = x^4 + x^2$, and the school rule for powers gives $4x^3 + 2x$.)
# The picture shows the same calculation in minigrad; compare the ∇ of `x`.

# %%
x = mg.tensor(3.0, requires_grad=True)
with mg.debug():
    y = x * x
    z = y * y + y
show(mg.viz.graph(z, direction="both"), "02_diamond")

# %% [markdown]
# ## Does it agree?
#
# Write expressions so that either engine can compute them: `m` is minigrad, or a namespace with our four functions.
# (We have no op for a minus sign in front, so we write `-1 *`.) Then compare all gradients. minigrad is told to
# compute with 16 digits, as Python does (`float64`).

# %%
mine = SimpleNamespace(exp=exp, log=log, tanh=tanh, relu=relu)
expressions = {
    "a polynomial": lambda m, a, b: 3 * a**3 - 2 * a * b + b**2 / 7,
    "a bell": lambda m, a, b: m.exp(-1 * (a - b) ** 2 / 2) / (2 * math.pi) ** 0.5,
    "a power of powers": lambda m, a, b: (a**b) ** (b / a),
    "a logistic loss": lambda m, a, b: m.log(1 + m.exp(-1 * (a * b - 0.5))),
    "a neuron of neurons": lambda m, a, b: m.tanh(m.tanh(a * 0.3 - b) + m.relu(a - 2 * b) * m.relu(a + b)),
}


# %%
def both(f, numbers):
    """The value and the gradients of f(m, …) by our engine, and the same by minigrad."""
    ours = [Value(number) for number in numbers]
    theirs = [mg.tensor(number, dtype="float64", requires_grad=True) for number in numbers]
    results = f(mine, *ours), f(mg, *theirs)
    backward(results[0])
    results[1].backward()
    return [results[0].number, *(v.grad for v in ours)], [results[1].item(), *(t.grad.item() for t in theirs)]


for name, f in expressions.items():
    a, b = both(f, [1.3, 0.4])
    difference = max(abs(p - q) for p, q in zip(a, b))
    print(f"{name:20} {a[0]:9.6f}, slopes {a[1]:9.6f} {a[2]:9.6f}, largest difference {difference:.0e}")

# %% [markdown]
# Hand-picked expressions prove little: we might have picked those that work. So let chance pick. Start with three
# numbers, and thirty times take two of those that are there, at random, and make a new one from them. What comes out
# depends on the three by a tangle of ways.


# %%
def tangle(m, *inputs, seed=0):
    chance, there = random.Random(seed), list(inputs)
    for _ in range(30):
        a, b = chance.choice(there), chance.choice(there)
        made = [lambda a, b: a + b, lambda a, b: a - b, lambda a, b: m.tanh(a * b), lambda a, b: a / (b * b + 1)]
        there.append(chance.choice(made)(a, b))
    return sum(there[-5:]) + sum(inputs)  # the inputs once more, in case chance left one out


worst = 0.0
for seed in range(100):
    a, b = both(lambda m, *inputs, seed=seed: tangle(m, *inputs, seed=seed), [0.5, -1.2, 2.0])
    worst = max(worst, *(abs(p - q) / max(1, abs(q)) for p, q in zip(a, b)))
print(f"100 tangles, 400 numbers: the largest difference is {worst:.0e}")
assert worst < 1e-12

# %% [markdown]
# The 16th digit differs here and there, as it may when sums are made in another order. The engines agree.
#
# ## A network
#
# A *neuron* takes some numbers, multiplies each by a number of its own, a *weight*, adds one more number of its own,
# the *bias*, and squeezes the sum with tanh:
#
# $out = \tanh(w_1 x_1 + w_2 x_2 + \dots + b)$
#
# A network is neurons that feed neurons. Ours looks at a point of the plane, so it has two inputs. Four neurons look
# at the point, and a fifth looks at the four. That makes $4 \cdot 3 + 5 = 17$ numbers to be learned, and at first
# they are random.


# %%
def neuron(m, inputs, weights):
    *factors, bias = weights
    return m.tanh(sum(w * x for w, x in zip(factors, inputs)) + bias)


def network(m, point, weights):
    *hidden, last = weights
    return neuron(m, [neuron(m, point, row) for row in hidden], last)


chance = random.Random(4)
start = [[chance.uniform(-1, 1) for _ in range(size)] for size in (3, 3, 3, 3, 5)]
weights = [[Value(number) for number in row] for row in start]
print("untrained, at the point (0, 0):", network(mine, (0.0, 0.0), weights))

# %% [markdown]
# What it should learn: four points near the middle are +1, and eight around them are −1. The *loss* says how wrong it
# is. It is the mean, over all points, of the squared difference between what the network says and what is right:
#
# $loss = \frac{1}{12} \sum_{points} (network(point) - target)^2$
#
# The sign $\sum$ means: add this up for all points. Below is one full round: compute the loss, walk back, change
# every weight a little against its gradient, and set the gradients back to 0.

# %%
ring = [(math.cos(angle), math.sin(angle)) for angle in (k * math.pi / 4 for k in range(8))]
points = [(0.2, 0.2), (-0.2, 0.2), (0.2, -0.2), (-0.2, -0.2), *ring]
targets = [1.0] * 4 + [-1.0] * 8


def loss_of(m, weights):
    return sum((network(m, p, weights) - t) ** 2 for p, t in zip(points, targets)) / len(points)


def learn(weights, rate=0.3):
    loss = loss_of(mine, weights)
    backward(loss)
    for weight in itertools.chain(*weights):
        weight.number -= rate * weight.grad
        weight.grad = 0.0
    return loss.number


# %% [markdown]
# Before training, a map of what the network thinks of each place of the plane. Orange is +1 and blue is −1; on the
# black line it is undecided. The points have the colour that they should get: squares +1, circles −1.
# `decision_surface` wants probabilities from 0 to 1, so −1 … 1 is moved there.


# %%
def opinion(places):
    return [(network(mine, place, weights).number + 1) / 2 for place in places.tolist()]


show(mg.viz.decision_surface(opinion, points, [t > 0 for t in targets], "before"), "02_before")

# %% [markdown]
# It has no idea. Now 300 rounds. Each makes some 450 Values, walks back through all of them, and forgets them again.

# %%
losses = []
for number in range(300):
    losses.append((number, learn(weights)))
    if number in (0, 1, 2, 10, 100, 299):
        print(f"step {number:3}: loss {losses[-1][1]:.6f}")
show(mg.viz.curves({"loss": losses}, log=True), "02_loss")

# %%
show(mg.viz.decision_surface(opinion, points, [t > 0 for t in targets], "after 300 steps"), "02_after")
right = [(network(mine, p, weights).number > 0) == (t > 0) for p, t in zip(points, targets)]
print(f"{sum(right)} of {len(points)} points are on the right side")

# %% [markdown]
# Fewer than a hundred lines of Python have drawn a closed line around four points, and nobody told them how.
#
# ## The same training in minigrad
#
# One last comparison, the hardest: train the same network from the same random start in minigrad. If a single slope
# were off at a single step, the two would drift apart.

# %%
theirs = [[mg.tensor(number, dtype="float64", requires_grad=True) for number in row] for row in start]
for number in range(20):
    loss = loss_of(mg, theirs)
    loss.backward()
    with mg.no_grad():
        for weight in itertools.chain(*theirs):
            weight -= 0.3 * weight.grad
            weight.grad = None
    assert math.isclose(loss.item(), losses[number][1], rel_tol=1e-12)
    if number in (0, 1, 2, 10, 19):
        print(f"step {number:2}: ours {losses[number][1]:.15f}, minigrad {loss.item():.15f}")

# %% [markdown]
# They agree. What, then, are minigrad's other thousands of lines for?
#
# - **Arrays.** We made a Value for every single number. minigrad's are whole tables of numbers, so that one op of a
#   thousand numbers costs one note, not a thousand. That is the [next tutorial](03_tensors_and_broadcasting.py).
# - **Slopes of slopes.** Our slopes are plain numbers, so they cannot be differentiated again. In minigrad they are
#   ops themselves. (See the third exercise: it is a small change.)
# - **Kindness.** Errors that say what went wrong, memory that is freed as early as possible, checks that nothing was
#   overwritten, graphics cards, and all the other ops.
#
# But the heart is the same: ops declared in a line each, tickets from a clock, newest first, multiply and add.
#
# ## Exercises
#
# 1. Add two ops: `sigmoid`, which is $\frac{1}{1 + e^{-a}}$ and has the slope $out \cdot (1 - out)$, and
#    `maximum(a, b)`, the larger of the two. Compare them with `mg.sigmoid` and `mg.maximum`.
# 2. Write `history` in another way, without the clock: a function that calls itself for each parent first, and then
#    puts the value at the end of a list. Show that it gives right gradients. Then find a calculation for which it
#    breaks, and ours does not. (Add 1 a few thousand times.)
# 3. Make the engine differentiate its own gradients. Keep in `made_from` the slope's function and its inputs, and
#    compute the slope *during* the walk, from Values. The third derivative of $x^4$ at 2 is 48.
#
# More to do, a file with holes that marks itself: `minigrad learn start 2`, then `minigrad learn check`.
#
# Solutions: [solutions/02_build_your_own_engine.py](solutions/02_build_your_own_engine.py)
#
# ## Read next
#
# - [minigrad/engine/op.py](../minigrad/engine/op.py): `op`, as it looks when it has to serve everybody. Start at the
#   top, then `Op.record`.
# - [minigrad/engine/graph.py](../minigrad/engine/graph.py): `Node` is our Value without its number, `collect` is our
#   `history`, `sweep` and `_run` are our `backward`.
# - [minigrad/ops/elementwise/unary.py](../minigrad/ops/elementwise/unary.py): more than twenty ops, declared as we declared `exp`.
# - [03_tensors_and_broadcasting.py](03_tensors_and_broadcasting.py): the same with whole tables of numbers.
