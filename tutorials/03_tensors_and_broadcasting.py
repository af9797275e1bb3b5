# %% [markdown]
# # 3. Tensors and broadcasting
#
# One number at a time is how to understand gradients. It is no way to compute with millions of them. This tutorial
# puts numbers into tables, which are computed with at one stroke, and finds out what becomes of gradients then.
#
# At the end you know what a shape is, why a gradient is sometimes summed, how matrices are multiplied and
# differentiated, and how to check any gradient you do not trust. It takes about 40 minutes, and 2 seconds to run.

# %%
import numpy as np
from showing import show

import minigrad as mg

# %% [markdown]
# ## Many numbers at once
#
# In the first tutorial we guessed what a taxi charges, from one ride. Here are four rides. A list of numbers on which
# one can compute as on a single number is a *tensor*:
#
# $guess = w \cdot x + b$
#
# is now four products and four sums in one line. How wrong the guess is, is one number again: the mean of the four
# squared misses.

# %%
x = mg.tensor([3.0, 8.0, 1.0, 5.0])  # kilometres
y = mg.tensor([10.0, 20.0, 6.0, 14.0])  # what each ride cost
w, b = mg.tensor(2.0, requires_grad=True), mg.tensor(1.0, requires_grad=True)

guess = w * x + b
error = ((guess - y) ** 2).mean()
error.backward()
print("guess:", guess, " error:", error)
print("shape of x:", x.shape, " shape of w:", w.shape, " gradient of w:", w.grad)

# %% [markdown]
# The *shape* of a tensor says how many numbers it has in each direction. `(4,)` is a row of four. `()` is a single
# number. `(2, 3)` is a table, or *matrix*, of two rows and three columns. A direction is called an *axis*, and axes
# are counted from 0: axis 0 of a table runs down, axis 1 runs across. There can be more axes than two: `(10, 2, 3)`
# is ten such tables.
#
# To sum *along* an axis means to add up in that direction, and the axis disappears. With `keepdims=True` it stays,
# with size 1.

# %%
table = mg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
print("all of it:      ", table.sum())
print("down, axis 0:   ", table.sum(axis=0), table.sum(axis=0).shape)
print("across, axis 1: ", table.sum(axis=1), table.sum(axis=1).shape)
print("with keepdims:  ", table.sum(axis=1, keepdims=True).tolist(), table.sum(axis=1, keepdims=True).shape)

# %% [markdown]
# ## Broadcasting
#
# How could `w * x` work? `w` is one number and `x` is four. The one was used four times, as if it were
# `[2, 2, 2, 2]`. To stretch a tensor like this until the shapes fit is called *broadcasting*. The rule is:
#
# 1. Write the shapes below each other, so that they end at the same place on the right.
# 2. Where one is shorter, put 1s in front.
# 3. In each place, the sizes must be equal, or one of them must be 1. A 1 is stretched to the other size.
#
# Say there are three taxi companies. Their prices stand in a column, shape `(3, 1)`, and so do their fees. The rides
# are a row, shape `(4,)`. Then $cost = price \cdot x + fee$ is a whole table:
#
# | | axis 0: companies | axis 1: rides |
# |---|---|---|
# | price | 3 | 1, stretched to 4 |
# | x | 1 put in front, stretched to 3 | 4 |
# | cost | 3 | 4 |

# %%
price = mg.tensor([[2.0], [1.5], [1.0]], requires_grad=True)
fee = mg.tensor([[4.0], [6.0], [8.0]], requires_grad=True)
cost = price * x + fee
print(cost)
rides, companies = [f"{km:g}km" for km in x.tolist()], ["Amber", "Blue", "City"]
show(mg.viz.heatmap(cost.tolist(), companies, rides, title="what each ride costs"), "03_costs")

# %% [markdown]
# If no 1 is there to be stretched, minigrad refuses, and says what it got.

# %%
try:
    mg.ones(3) + mg.ones(4)
except mg.MinigradError as mistake:
    print(mistake)

# %% [markdown]
# ## What was stretched is summed back
#
# Add up the whole table, and ask for gradients. By how much does the total change if Amber's fee grows by 1? It is
# part of four rides, so by 4. Each of the four copies of the fee has the gradient 1, and the copies are one and the
# same number. So what arrives at them is added up: this is the rule for a number that is used several times, once
# more.
#
# The price of Amber is multiplied by 3, 8, 1 and 5 kilometres: its gradient is $3 + 8 + 1 + 5 = 17$. In general,
#
# $\frac{\partial total}{\partial price_i} = \sum_{j} 1 \cdot x_j$
#
# where $i$ counts companies, $j$ counts rides, and $\sum_j$ means "added up over all rides".

# %%
total = cost.sum()
total.backward()
print("gradient of the fees:  ", fee.grad.tolist(), fee.grad.shape)
print("gradient of the prices:", price.grad.tolist(), price.grad.shape)

# %% [markdown]
# A gradient always has the shape of what it is the gradient of: `(3, 1)` for a `(3, 1)`. To get there, sum over every
# axis that was stretched. Axes that were put in front disappear; axes of size 1 stay, with size 1. And the other way
# round: a sum makes one number from many, so its gradient is copied to all of them. *Copying and summing are each
# other's backward.*


# %%
def sum_back(gradient, shape):
    """Undo broadcasting: (…) -> shape."""
    while gradient.ndim > len(shape):
        gradient = gradient.sum(axis=0)  # an axis that was put in front
    for axis, size in enumerate(shape):
        if size == 1:
            gradient = gradient.sum(axis=axis, keepdims=True)
    return gradient


for shape in ((), (4,), (1, 4), (3, 1), (3, 4), (5, 3, 4)):
    t = mg.ones(shape, requires_grad=True)
    weights = np.random.default_rng(0).normal(size=(5, 3, 4)).astype("float32")
    (t * weights).sum().backward()  # the gradient that arrives at the stretched t is `weights`
    assert np.allclose(sum_back(weights, shape), t.grad.numpy(), atol=1e-5)
    print(f"{shape!s:10} agrees")

# %% [markdown]
# minigrad does this in one place, for every op; see `unbroadcast` in its engine. A rule for an op, such as "the
# gradient of `a` is `g * b`", never has to think of shapes. In the picture of our total, every box tells its shape.
# `price` and `fee` are used by boxes of shape `(3, 4)` and get gradients of shape `(3, 1)` all the same. The small
# coloured tables in a box are its numbers, and, framed in pink, their gradients.

# %%
with mg.debug():
    total = (price * x + fee).sum()
show(mg.viz.graph(total, direction="both"), "03_total")

# %% [markdown]
# ## Multiplying matrices
#
# Most of the work of a neural network is one operation. Take a row of numbers, multiply each by a weight, add up; and
# do so for many rows and many sets of weights. With the rows in a table $X$ of shape $(N, K)$ and each set of weights
# as a column of a table $W$ of shape $(K, M)$, the result $Y = X W$ has shape $(N, M)$, and its entry in row $i$,
# column $j$ is
#
# $Y_{ij} = X_{i1} W_{1j} + X_{i2} W_{2j} + \dots = \sum_k X_{ik} W_{kj}$
#
# Python writes it `X @ W`. The sizes in the middle, $K$ and $K$, must be equal, and vanish.

# %%
X = mg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)  # (2, 3)
W = mg.tensor([[1.0, 0.0], [0.5, -1.0], [0.0, 2.0]], requires_grad=True)  # (3, 2)
Y = X @ W  # (2, 3) @ (3, 2) -> (2, 2)
print(Y)
print("first row, second column by hand:", 1 * 0 + 2 * -1 + 3 * 2)

# %% [markdown]
# And its gradients? Let $G$ be the gradient that has arrived at $Y$, of its shape $(N, M)$. The number $X_{ik}$ is
# used in each $Y_{ij}$ of its row, with local slope $W_{kj}$. So its gradient is $\sum_j G_{ij} W_{kj}$. That is a
# matrix product again, with $W$ turned so that rows become columns, which is written $W^T$. The same goes for $W$:
#
# $\text{gradient of } X = G\, W^T \qquad \text{gradient of } W = X^T G$
#
# No need to learn it by heart: $X$ is $(N, K)$, and from $G$ $(N, M)$ and $W$ $(K, M)$ there is just one way to
# multiply that ends in $(N, K)$.
#
# In the code, `Y.backward(G)` starts the walk with $G$ where a single number would start with 1. `detach()` hands out
# a tensor's numbers without the way back, as NumPy wants them.

# %%
G = np.array([[1.0, -1.0], [2.0, 0.5]], dtype="float32")  # whatever comes after Y made this
Y.backward(G)
print("gradient of X:", X.grad.tolist())
print("by the formula:", (G @ W.detach().numpy().T).tolist())
print("gradient of W:", W.grad.tolist())
print("by the formula:", (X.detach().numpy().T @ G).tolist())

# %% [markdown]
# ## Trust, but measure
#
# A wrong gradient is a nasty mistake. Nothing crashes; the model just learns badly. But we can always measure. Nudge
# one number up and down, and divide:
#
# $\frac{\partial f}{\partial x_i} \approx \frac{f(x_i + h) - f(x_i - h)}{2h}$
#
# What is measured like this is called the *numeric* gradient. The one that is computed by rules is the *analytic*
# gradient. The function below measures each number of a tensor in turn.


# %%
def numeric(f, x, h=1e-5):
    """The gradient of f at an array x, by nudging each of its numbers to both sides."""
    gradient = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[place] += h
        down[place] -= h
        gradient[place] = (f(mg.tensor(up)).item() - f(mg.tensor(down)).item()) / (2 * h)
    return gradient


# %% [markdown]
# Try it on something with everything in it: a matrix product, broadcasting, tanh, absolute values, a mean.
# `mg.grad(f)` is the function that computes the analytic gradient of `f`.

# %%
draw = np.random.default_rng(1)
x, weights, bias = draw.normal(size=(4, 3)), draw.normal(size=(3, 2)), draw.normal(size=(2,))


def f(x):
    hidden = mg.tanh(x @ weights + bias)  # (4, 3) @ (3, 2) + (2,) -> (4, 2)
    return (hidden - hidden.mean(axis=0)).abs().sum() + (x**2).mean()


analytic = mg.grad(f)(mg.tensor(x)).numpy()
print("analytic, first row:", analytic[0])
print("numeric, first row: ", numeric(f, x)[0])
print(f"largest difference:   {abs(numeric(f, x) - analytic).max():.0e}")

# %% [markdown]
# ## How small should a nudge be?
#
# Smaller is better, one would think. Measure it: the slope of $e^x$ at 1 is $e$ itself, so we know how wrong each
# measurement is. `float32` numbers have 7 digits, `float64` numbers 16.


# %%
def wrong(h, dtype):
    """By how much the measured slope of exp at 1 is off."""
    up, down = np.exp(np.array([1 + h, 1 - h], dtype))
    return abs(float(up - down) / (2 * h) - np.e)


nudges = [10.0**-n for n in range(1, 14)]
for h in nudges[::2]:
    print(f"h = {h:.0e}: wrong by {wrong(h, np.float32):.0e} in float32, by {wrong(h, np.float64):.0e} in float64")

# %% [markdown]
# The error first falls and then grows again. A large nudge is bad because the function bends between the two places.
# A tiny one is bad because the two values are almost equal. Their difference is then made of the last few digits, and
# the last digits are rounded. The best nudge lies in between. In `float64` it leaves us some ten good digits; in
# `float32` four. So gradients are measured in `float64`.
#
# In the picture, both axes are powers of ten, and nudges get smaller to the left.

# %%
errors = {f"in {np.dtype(dtype)}": (nudges, [wrong(h, dtype) for h in nudges]) for dtype in (np.float64, np.float32)}
show(mg.viz.lines(errors, "a measured slope", x="size of the nudge", y="error", log="both"), "03_nudges")

# %% [markdown]
# ## gradcheck
#
# minigrad has a careful version of this: `mg.check.gradcheck`. It measures with two sizes of nudges, tries second
# derivatives as well, and for large tensors nudges in a few random directions and not in every one. Every op of
# minigrad is tested with it.
#
# Here it checks a right gradient, and then one that we spoil: `detach()` cuts the way back, so half of the slope of
# $x \cdot x$ is lost.

# %%
x = mg.tensor([[0.5, -1.0], [2.0, 3.0]], dtype="float64")
good = mg.check.gradcheck(lambda x: mg.tanh(x) * x.sum(axis=0), x)
print("right:", bool(good), "after comparing", good.compared, "derivatives")

bad = mg.check.gradcheck(lambda x: x * x.detach(), x, raise_exception=False)
print("right:", bool(bad))
print(bad.problem)

# %% [markdown]
# What came out is half of what it should be, as we knew it would. (The numbers themselves are slopes of a sum of all
# outputs, each times a random weight: one number to differentiate, in which no mistake can hide.)
#
# ## Exercises
#
# 1. Divide each row of a table by the sum of the row, so that every row adds up to 1. Try `t / t.sum(axis=1)` with a
#    table of 2 rows and 3 columns: what does minigrad say? Try it with 3 rows and 3 columns: nothing is said, and yet
#    it is wrong. Why? Mend it.
# 2. Without minigrad, in NumPy alone: compute all three gradients of $loss = \text{mean}((X W + b)^2)$, for $X$ of
#    shape `(5, 3)`, $W$ of shape `(3, 2)` and $b$ of shape `(2,)`. Then compare with minigrad.
# 3. To measure the gradient of a million numbers one by one takes two million calculations. Nudge all of them
#    together, each by $h$ times a random number $v_i$. The measured slope should then be
#    $\sum_i gradient_i \cdot v_i$. Check the gradient of a tensor of shape `(1000, 1000)` with two calculations, and
#    show that a spoiled gradient is found out.
#
# More to do, a file with holes that marks itself: `minigrad learn start 3`, then `minigrad learn check`.
#
# Solutions: [solutions/03_tensors_and_broadcasting.py](solutions/03_tensors_and_broadcasting.py)
#
# ## Read next
#
# - [minigrad/engine/graph.py](../minigrad/engine/graph.py): `unbroadcast`, our `sum_back`, in a dozen lines.
# - [minigrad/ops/linalg/products.py](../minigrad/ops/linalg/products.py): `matmul` and its rules, also for stacks of matrices.
# - [minigrad/ops/reductions/reduction.py](../minigrad/ops/reductions/reduction.py): sums, means, and the largest; how a gradient is handed
#   to those that were summed.
# - [minigrad/check.py](../minigrad/check.py): how gradcheck measures, explained at its top.
# - [04_xor.py](04_xor.py): the first problem that needs more than one layer.
