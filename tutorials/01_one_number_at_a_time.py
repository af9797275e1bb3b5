# %% [markdown]
# # 1. One number at a time
#
# Everything that learns in this project learns from slopes. This tutorial computes every slope of a small calculation
# three times: by trying it out, by hand, and with minigrad. At the end you use the slopes to make a wrong guess
# right.
#
# You need Python and school algebra. It takes about 25 minutes to read and 2 seconds to run:
# `python tutorials/01_one_number_at_a_time.py` prints the numbers and writes the pictures to `build/tutorials`. To
# read it as a notebook, `jupytext --to ipynb tutorials/01_one_number_at_a_time.py` makes one. Pictures of graphs are
# laid out by Graphviz, which `pip install -e '.[viz]'` brings; without it their numbers are printed as text.
#
# First, what we use: NumPy, which computes with arrays of numbers; minigrad; and a few shapes to draw with.

# %%
import numpy as np
from showing import show

import minigrad as mg
from minigrad.viz.drawing.axes import Scale, frame
from minigrad.viz.drawing.scene import Ellipse, Line, Text

# %% [markdown]
# ## What is a slope?
#
# A *function* takes a number and gives one back. Ours squares it: $f(x) = x^2$, so $f(3) = 9$.
#
# Now nudge the 3 a little and watch the 9. At 3.1 the function gives 9.61. The input grew by 0.1 and the output by
# 0.61, which is 6.1 times as much. That ratio is a *slope*: by how much the output changes, for each unit by which
# the input changes. With $h$ for the size of the nudge, it is
#
# $\text{slope} = \frac{f(x + h) - f(x)}{h}$
#
# It depends on the nudge. So make the nudge smaller, and see where the slope goes.


# %%
def f(x):
    return x * x


for h in (1, 0.1, 0.01, 0.001):
    print(f"nudge 3 by {h:<5}: slope {(f(3 + h) - f(3)) / h:.3f}")

# %% [markdown]
# 7, 6.1, 6.01, 6.001: it goes to 6. The number that the slope goes to, as the nudge shrinks to nothing, is called the
# *derivative*. It is written $\frac{df}{dx}$, "d f by d x". Algebra finds it for every place at once:
#
# $\frac{(x + h)^2 - x^2}{h} = \frac{2xh + h^2}{h} = 2x + h$
#
# As $h$ shrinks to nothing, $2x$ is left: 6 at 3, and 10 at 5. From now on "slope" means the derivative.
#
# In the picture, the curve is $x^2$. The line of slope 7 cuts it at 3 and at 4, which is one nudge further. The line
# of slope 6 only touches it. Close to 3, curve and line can hardly be told apart.

# %%
across, up = Scale(0, 5, 60, 460), Scale(-12, 25, 300, 20)


def drawn(function, color, word, height):
    places = np.linspace(0, 5, 60)
    return [Line(list(zip(across(places), up(function(places)))), color, 2), Text(72, height, word, 12, color)]


shapes = frame(across, up) + drawn(f, "series-1", "x²", 40)
shapes += drawn(lambda x: 9 + 7 * (x - 3), "series-2", "slope 7: through 3 and 4", 58)
shapes += drawn(lambda x: 9 + 6 * (x - 3), "series-3", "slope 6: the derivative at 3", 76)
shapes += [Ellipse(float(across(x)), float(up(f(x))), 7, 7, "ink", None) for x in (3, 4)]
shapes += [Text(260, 332, "x", 11, "faint", "middle"), Text(20, 160, "f(x)", 11, "faint", "middle", turned=True)]
show(mg.viz.Scene(480, 342, shapes, "x squared and its slope at 3"), "01_slope")

# %% [markdown]
# ## A calculation is a graph
#
# A taxi charges a price $w$ for each kilometre, and on top a fee $b$. We guess $w = 2$ and $b = 1$. Then we ride
# $x = 3$ kilometres and pay $y = 10$. How wrong was our guess? One operation at a time:
#
# $product = w \cdot x \qquad guess = product + b \qquad miss = guess - y \qquad error = miss^2$
#
# The square makes the error positive, whether we guessed too much or too little, and makes a large miss count more.

# %%
start = 2.0, 1.0, 3.0, 10.0  # w, b, x, y


def error_of(w, b, x, y):
    product = w * x
    guess = product + b
    miss = guess - y
    return miss**2


print("the error is", error_of(*start))

# %% [markdown]
# Draw each operation (for short: *op*) as a box, with arrows for "is used by", and you have a *graph*. minigrad can
# watch a function while it runs and draw what it saw. Following the arrows from what is given to the result, as we
# just did, is the *forward pass*. (`float32` is how the computer stores a number: with about seven digits.)

# %%
show(mg.viz.graph(error_of, *start), "01_forward")

# %% [markdown]
# ## All slopes, by trying
#
# Which way should we change $w$ and $b$ to make the error smaller? The slopes tell. Nudge one input, leave the others
# alone, and see what the error does. A slope with respect to one of several inputs is written with round letters,
# $\frac{\partial error}{\partial w}$, and means just that.

# %%
h = 0.0001
for i, name in enumerate("wbxy"):
    nudged = list(start)
    nudged[i] += h
    print(f"slope of the error for {name}: {(error_of(*nudged) - error_of(*start)) / h:8.3f}")

# %% [markdown]
# Very nearly −18, −6, −12 and 6. If $w$ grows by 0.01, the error falls by about 0.18. So a higher price per kilometre
# is the way to go.
#
# This always works, but it is slow: one whole calculation for each input. A language model has a million numbers to
# learn, or a billion. And it is never quite exact. There is a better way.
#
# ## The chain rule
#
# Look at one op at a time, and forget the rest. Each has slopes that are easy to find, its *local* slopes:
#
# | op | local slopes | here |
# |---|---|---|
# | $product = w \cdot x$ | for $w$ it is $x$; for $x$ it is $w$ | 3 and 2 |
# | $guess = product + b$ | 1 for both | 1 and 1 |
# | $miss = guess - y$ | 1 for $guess$; −1 for $y$ | 1 and −1 |
# | $error = miss^2$ | $2 \cdot miss$ | −6 |
#
# Now think of gears. If $w$ turns by 1, $product$ turns by 3. $guess$ and $miss$ turn along. And for each 1 that
# $miss$ turns, $error$ turns by −6. Together that is $3 \cdot 1 \cdot 1 \cdot (-6) = -18$. Slopes along a chain
# multiply:
#
# $\frac{\partial error}{\partial w} = \frac{\partial error}{\partial miss} \cdot
# \frac{\partial miss}{\partial guess} \cdot \frac{\partial guess}{\partial product} \cdot
# \frac{\partial product}{\partial w}$
#
# This is the *chain rule*. The one trick of this whole project is to multiply from the end. The slope of the final
# result with respect to some number is that number's *gradient*. The result's own gradient is 1. Then go back, op by
# op: the gradient of an input is the gradient of the op's result, times the local slope.

# %%
grad_error = 1.0
grad_miss = grad_error * 2 * -3  # error = miss², and miss is -3
grad_guess, grad_y = grad_miss * 1, grad_miss * -1  # miss = guess - y
grad_product, grad_b = grad_guess * 1, grad_guess * 1  # guess = product + b
grad_w, grad_x = grad_product * 3, grad_product * 2  # product = w · x
print("w", grad_w, "  b", grad_b, "  x", grad_x, "  y", grad_y)

# %% [markdown]
# −18, −6, −12 and 6: exact, and all four in one walk back through the graph. This is the *backward pass*, or
# *backpropagation*. It costs as much as a few forward passes, however many inputs there are. That is why a model with
# a billion numbers can learn at all.
#
# ## The same with minigrad
#
# `mg.tensor(2.0)` wraps a number. With `requires_grad=True` we say that we will ask for its slope, and from then on
# every op on it leaves a note: what was done, and to which numbers. Inside `with mg.debug():` every number in between
# is kept too, so that we can look at it.

# %%
w, b, x, y = (mg.tensor(number, requires_grad=True) for number in start)
with mg.debug():
    product = w * x
    guess = product + b
    miss = guess - y
    error = miss**2
print(error)

# %% [markdown]
# In the picture the dashed arrows go back, and the number after ∇ (said "nabla", the sign for a gradient) is the
# gradient of each box. A small blue mark means that a number is kept because some local slope needs it: a product
# needs both of its factors, a sum needs nothing.

# %%
graph = mg.viz.graph(error, direction="both")
show(graph, "01_backward")

# %% [markdown]
# And here is the walk, one op after the other, as minigrad makes it. The same walk as a page, on which the arrow keys
# step forward and back: open `build/tutorials/01_backward.html` in a browser.

# %%
for step in graph.steps:
    for part in step.contributions:
        print(
            f"{step.box.label:8} has {step.upstream:3g}, times its local slope {part.local:3g}:"
            f"  {part.target.label} gets {part.part:g}"
        )
show(graph, "01_backward.html")

# %% [markdown]
# Without all the looking it is short: `backward()` walks back, and `.grad` holds what arrived.

# %%
error.backward()
for name, tensor in zip("wbxy", (w, b, x, y)):
    print(name, tensor.grad)

# %% [markdown]
# ## A number that is used twice
#
# A square garden has sides of $s = 3$ metres. A square metre of grass costs 1 and a metre of fence costs 1, so
#
# $cost = s \cdot s + 4 \cdot s$
#
# which is 21. The number $s$ is used three times: twice by the first multiplication, once by the second. A nudge of
# $s$ reaches the cost by three ways, and what arrives by each is added up:
#
# $\frac{\partial cost}{\partial s} = s + s + 4 = 3 + 3 + 4 = 10$
#
# The two 3s come from the grass, and the 4 from the fence. In general, the gradient of a number is the *sum*, over
# all ops that use it, of the op's gradient times the local slope. There is nothing else to backpropagation: multiply
# along a way, add where ways meet.

# %%
s = mg.tensor(3.0, requires_grad=True)
with mg.debug():
    grass = s * s
    fence = 4 * s
    cost = grass + fence
garden = mg.viz.graph(cost, direction="both")
for step in garden.steps:
    print(step.box.label, "gives", [(part.target.label, float(part.part)) for part in step.contributions])
show(garden, "01_garden")

# %% [markdown]
# Adding up has a consequence that everybody trips over once. `.grad` is added to, not replaced. Walk back twice, and
# it is twice as large. So before a new walk, set it back to nothing.

# %%
cost.backward()
print("after the first walk: ", s.grad)
(s * s + 4 * s).backward()
print("after the second walk:", s.grad)
s.grad = None

# %% [markdown]
# ## Learning is walking downhill
#
# Back to the taxi. The slopes for $w$ and $b$ are −18 and −6: raising either makes the error smaller. So change both
# a little *against* their slopes:
#
# $w \leftarrow w - rate \cdot \frac{\partial error}{\partial w} \qquad
# b \leftarrow b - rate \cdot \frac{\partial error}{\partial b}$
#
# The arrow means "becomes". The *learning rate* says how far to go; we take 0.02. Then compute the slopes anew, since
# they have changed, and go on. This is *gradient descent*. ($x$ and $y$ have slopes too, but they are facts. We leave
# them alone.)

# %%
w, b = mg.tensor(2.0, requires_grad=True), mg.tensor(1.0, requires_grad=True)
errors = []
for number in range(16):
    error = error_of(w, b, 3.0, 10.0)
    error.backward()
    errors.append((number, error.item()))
    if number < 4 or number == 15:
        print(f"step {number:2}: w = {w.item():.4f}, b = {b.item():.4f}, error = {error.item():.6f}")
    with mg.no_grad():  # the change itself is no part of the calculation that is remembered
        w -= 0.02 * w.grad
        b -= 0.02 * b.grad
    w.grad = b.grad = None

# %% [markdown]
# In the picture the numbers on the left are powers of ten (`1e-4` is 0.0001). On such a scale, a quantity that
# shrinks by the same share at every step falls in a straight line, and so does our error: each step leaves 36
# percent of it.

# %%
show(mg.viz.curves({"error": errors}, log=True), "01_learning")

# %% [markdown]
# $w$ has come to 2.9 and $b$ to 1.3, but for a trifle: three kilometres cost $2.9 \cdot 3 + 1.3 = 10$, as they
# should. Is that the true price? Nobody can know from one ride: $w = 3$, $b = 1$ explains it as well. Learning finds
# numbers that fit what it was shown. To pin down two unknown numbers it takes a second ride, and that is the third
# exercise.
#
# ## Exercises
#
# 1. Take $f = (a + b) \cdot (b + 1)$ at $a = 2$, $b = 1$. Find both gradients with a pencil, then by nudging, then
#    with minigrad. Mind that $b$ is used twice.
# 2. Nudge to both sides: $\frac{f(x + h) - f(x - h)}{2h}$. Measure the slope of $x^3$ at 2, which is 12, for $h$ =
#    0.1 and 0.01, with the old formula and with this one. By how much does each error shrink?
# 3. A second ride of 8 kilometres costs 20. Add both errors and let $w$ and $b$ learn from the sum. Which are the
#    true prices? You will need a smaller learning rate, and more steps.
#
# More to do, a file with holes that marks itself: `minigrad learn start 1`, then `minigrad learn check`.
#
# Solutions: [solutions/01_one_number_at_a_time.py](solutions/01_one_number_at_a_time.py)
#
# ## Read next
#
# - [minigrad/ops/elementwise/arithmetic.py](../minigrad/ops/elementwise/arithmetic.py): every op with its local slopes, most of them in one
#   line. `multiply.vjp(a=lambda g, b: g * b, …)` says: the gradient of `a` is the result's gradient `g`, times `b`.
# - [minigrad/engine/graph.py](../minigrad/engine/graph.py): the walk back. `sweep` is where it starts.
# - [docs/seeing.md](../docs/seeing.md): all that can be drawn.
# - [02_build_your_own_engine.py](02_build_your_own_engine.py): you write all of this yourself.
