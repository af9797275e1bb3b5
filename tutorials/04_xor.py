# %% [markdown]
# # 4. XOR: why a line cannot
#
# XOR, "exclusive or", is a question about two bits. A bit is a 0 or a 1, and the question is: is exactly one of the two a 1?
# No single straight line can answer it. Two steps, one after the other, can. That is why neural networks have layers.
#
# At the end you will have
#
# - a proof, four lines long, that a line cannot do it;
# - two networks that can, with weights that you could have found with a pencil;
# - a network that finds its weights by itself, and a film of how it does.
#
# Reading takes about twenty minutes, running a few seconds. You need what a tensor and a gradient are (tutorials 1 to 3).
# `F` below holds the functions that networks are made of.

# %%
import tempfile

from showing import FOLDER, compare, show

import minigrad as mg
from minigrad.nn import functional as F

# %% [markdown]
# ## Four rows
#
# There are only four questions, so we can write all of them down, each with its answer. Such a pair is an *example*; the
# answer that we want is its *target*. On a sheet of paper, $a$ goes to the right and $b$ goes up, and each question is a
# point. A target of 1 is drawn as an orange square, a target of 0 as a blue circle.
#
# $$\mathrm{XOR}(a, b) = 1 \quad\text{exactly when}\quad a \ne b$$

# %%
rows = mg.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], dtype="float64")
targets = mg.tensor([0.0, 1.0, 1.0, 0.0], dtype="float64")
for (a, b), target in zip(rows.tolist(), targets.tolist()):
    print(f"{a:.0f} XOR {b:.0f} = {target:.0f}")


def surface(f, title):
    """A picture of what `f` says at every point of the plane; `f` takes points (N, 2) and gives N numbers from 0 to 1."""
    return mg.viz.decision_surface(lambda points: f(mg.tensor(points)).detach(), rows, targets, title)


show(surface(lambda points: mg.full(len(points), 0.5), "four examples, no opinion yet"), "04_rows")

# %% [markdown]
# ## A line decides
#
# The simplest way to decide: give each input a *weight*, multiply, add up, and add one more number, the *bias*. Call the
# result the *score*. Say 1 if the score is above 0, and say 0 if it is below.
#
# Try the weights 1 and 1 and the bias −0.5. The four scores are −0.5, 0.5, 0.5 and 1.5, so the answers are 0, 1, 1, 1. That
# is OR. As an answer to XOR, three rows of four are right.
#
# $$s = w_1 a + w_2 b + c$$
#
# In words: the score $s$ is the first weight times $a$, plus the second weight times $b$, plus the bias $c$. The points
# where $s$ is exactly 0 lie on a straight line. On one side of it the answer is 1, on the other side 0.
#
# One thing is still in the way. A yes that flips to a no has no slope, and where there is no slope, no gradient can say in
# which direction things get better. So the flip is made soft. The *sigmoid*, written $\sigma$ and pronounced "sigma", turns
# any score into a number between 0 and 1, which we read as "how probable is a 1":
#
# $$\sigma(s) = \frac{1}{1 + e^{-s}}$$
#
# A score of 0 becomes 0.5, undecided. The further the score is from 0, the nearer the result is to 0 or 1.

# %%
for s in (-10.0, -2.0, 0.0, 2.0, 10.0):
    print(f"sigmoid({s:5.1f}) = {F.sigmoid(mg.tensor(s, dtype='float64')).item():.8f}")


def line(points):
    """A line that computes OR. The weights are ten times as large as in the text, so that the edge is sharp."""
    return F.sigmoid(10 * points[:, 0] + 10 * points[:, 1] - 5)


print("a line for OR says", line(rows).numpy().round(2))
show(surface(line, "one line: three of four"), "04_line")

# %% [markdown]
# Colours are probabilities: orange for 1, blue for 0, white for undecided. The black line is where the score is 0. Turn it
# and shift it in your mind: whatever you do, at least one of the four points is on the wrong side.
#
# ## Why no line can
#
# Suppose there were weights and a bias that get all four rows right. Then four things would have to be true, one for each row:
#
# $$\begin{aligned}
# (0, 0) \to 0: &\quad c < 0 \\
# (0, 1) \to 1: &\quad w_2 + c > 0 \\
# (1, 0) \to 1: &\quad w_1 + c > 0 \\
# (1, 1) \to 0: &\quad w_1 + w_2 + c < 0
# \end{aligned}$$
#
# Add the two in the middle: $w_1 + w_2 + 2c > 0$. Add the first and the last: $w_1 + w_2 + 2c < 0$. The same number would be
# above 0 and below 0. So there are no such weights, however long we search.
#
# Here is the search all the same: 25 values for each of the three numbers, 15,625 lines. (`None` in an index puts an axis of
# size 1 there, which broadcasting can stretch.)

# %%
values = mg.linspace(-3, 3, 25)
w1, w2, c = values[:, None, None, None], values[:, None, None], values[:, None]
scores = w1 * rows[:, 0] + w2 * rows[:, 1] + c  # (25, 1, 1, 1), (25, 1, 1), (25, 1) and (4,) -> (25, 25, 25, 4)
right = ((scores > 0) == (targets > 0.5)).sum(axis=-1)  # (25, 25, 25): how many of the four rows
for count in range(5):
    print(f"{count} of 4 right: {int((right == count).sum()):6,} lines")

# %% [markdown]
# ## Two steps, by hand
#
# XOR in plain words: *at least one* is 1, and *not both* are. The first half is OR, the second half is called NAND, "not
# and". A line can do OR. A line can do NAND. And a line can do AND, which is what joins the two halves. So let two lines
# look at the inputs, and let a third line look at what these two say.
#
# A line with something bent behind it, such as the sigmoid, is called a *unit*. Units in the middle, which are neither input
# nor output, are *hidden*. All of it together is a *network*. With large weights, so that every unit is nearly sure:
#
# $$\begin{aligned}
# h_1 &= \sigma(20a + 20b - 10) && \text{OR} \\
# h_2 &= \sigma(-20a - 20b + 30) && \text{NAND} \\
# y &= \sigma(20h_1 + 20h_2 - 30) && \text{AND}
# \end{aligned}$$
#
# Check one row with a pencil. For $a = b = 0$: $h_1 = \sigma(-10)$, nearly 0, and $h_2 = \sigma(30)$, nearly 1. So
# $y \approx \sigma(20 - 30) = \sigma(-10) = 0.0000454$. Almost 0, as it should be. (The last digits below are a little
# different, since $h_1$ is not quite 0.)
#
# In the code, the weights of a layer are a table with a row for each input and a column for each unit, so that all rows and
# both units are computed by one product of matrices.
#
# The weights are those of "The Math Behind GPT Models", the document whose numbers these tutorials compute anew. `compare`
# prints what it says, and what comes out here.

# %%
W = mg.tensor([[20.0, -20.0], [20.0, -20.0]], dtype="float64")  # a column for OR, a column for NAND
bias = mg.tensor([-10.0, 30.0], dtype="float64")


def hidden(points):
    return F.sigmoid(points @ W + bias)  # (N, 2) @ (2, 2) -> (N, 2)


def by_sigmoid(points):
    return F.sigmoid(hidden(points) @ mg.tensor([20.0, 20.0], dtype="float64") - 30)  # (N, 2) @ (2,) -> (N,)


for row, (h1, h2), y in zip(rows.tolist(), hidden(rows).tolist(), by_sigmoid(rows).tolist()):
    print(f"{row}  OR {h1:.8f}  NAND {h2:.8f}  AND {y:.8f}")

# %%
stated = "about 0, 1, 1, 0; its weights give 0.00004544, 0.99995452, 0.99995452, 0.00004544"
compare("XOR by hand, sigmoid", by_sigmoid(rows), stated)
show(surface(lambda points: hidden(points)[:, 0], "first hidden unit: OR"), "04_or")
show(surface(lambda points: hidden(points)[:, 1], "second hidden unit: NAND"), "04_nand")
show(surface(by_sigmoid, "the output: both at once"), "04_sigmoid")

# %% [markdown]
# Two lines, and between them a band. Both 1s lie in the band, both 0s outside. No line is a band; two are.
#
# ## The same with ReLU
#
# Most networks of today bend in a simpler way. ReLU, "rectified linear unit", keeps a number that is above 0, and makes
# everything else 0:
#
# $$\mathrm{ReLU}(z) = \max(0, z)$$
#
# Two units: one is $a - b$ where that is positive, the other $b - a$ where that is. Exactly one of them is 1 when the bits
# differ, and both are 0 when the bits are equal. The output takes 0.5 off their sum:
#
# $$h_1 = \mathrm{ReLU}(a - b), \qquad h_2 = \mathrm{ReLU}(b - a), \qquad y = \mathrm{ReLU}(h_1 + h_2 - 0.5)$$
#
# The result is 0 or 0.5, and we read 0.5 as "1".

# %%
relu_W = mg.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype="float64")


def relu_hidden(points):
    return F.relu(points @ relu_W)  # (N, 2) -> (N, 2)


def by_relu(points):
    return F.relu(relu_hidden(points).sum(axis=1) - 0.5)  # (N, 2) -> (N,)


for row, h, y in zip(rows.tolist(), relu_hidden(rows).tolist(), by_relu(rows).tolist()):
    print(f"{row}  hidden {h}  output {y}")
compare("XOR by hand, ReLU", by_relu(rows), "0, 0.5, 0.5, 0; read with a threshold at 0.5: 0, 1, 1, 0")

# %% [markdown]
# Look at the column "hidden". The rows $(0, 0)$ and $(1, 1)$, opposite corners of the square, have become *the same point*.
# So the hidden layer has moved the four points, and where they are now a single line is enough. This is what layers are for:
# each moves the points until the last one has an easy task.
#
# The picture shows the new places: across is $h_1$, up is $h_2$. Of the four points you see three, since two lie on each other.
# The colour is $h_1 + h_2$, and on the black line it is 0.5.

# %%
moved = mg.viz.decision_surface(
    lambda h: h.sum(axis=1).clip(0, 1), relu_hidden(rows), targets, "seen by the hidden layer, a line is enough"
)
show(moved, "04_moved")

# %% [markdown]
# ## Learned
#
# Nobody sets a million weights with a pencil. Instead we start with random weights and improve them a little, many times.
#
# For that we need one number that says how wrong the network is, the *loss*. Here it is the *binary cross-entropy*. For each
# row, take the probability $p$ that the network gave to the right answer; the loss is $-\log p$, averaged over the rows. (Log
# is the natural logarithm.) Sure and right: $-\log 1 = 0$. Undecided: $-\log 0.5 = 0.693$. Sure and wrong: very large.
# Tutorial 6 is about this loss.
#
# Then every weight $w$ takes a small step against its gradient, which is called *gradient descent*:
#
# $$w \leftarrow w - \eta \, \frac{\partial L}{\partial w}$$
#
# In words: the new weight is the old one, minus a step size times how fast the loss $L$ grows with this weight. The step
# size $\eta$, "eta", is called the *learning rate*.
#
# In the code, `SGD` is gradient descent (tutorial 7 explains its S): `backward` finds all gradients, `step` moves all weights,
# and `zero_grad` forgets the gradients, so that the next ones do not add up with them.

# %%
x, y = rows.astype("float32"), targets.astype("float32")[:, None]  # (4, 2), (4, 1)


def train(network, steps, rate=0.5, watch=()):
    """Gradient descent on the four rows; `watch` says at which steps to draw."""
    optimizer = mg.optim.SGD(network.parameters(), lr=rate)
    for step in range(steps + 1):
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(network(x), y)  # of scores: the sigmoid is inside
        if step in watch:
            print(f"step {step:4}: loss {loss.item():.4f}")
            show(surface(lambda points: F.sigmoid(network(points)), f"step {step}"), f"04_step_{step:03}")
        loss.backward()
        optimizer.step()
    return F.sigmoid(network(x))[:, 0].detach()


# %% [markdown]
# First a line, to see it fail. `mg.nn.Linear(2, 1)` is two weights and a bias, set at random; `manual_seed` makes chance the same
# at every run. Since a line cannot get all four right, it ends where it is least wrong: with no opinion at all, and the loss
# of a coin, 0.693.

# %%
mg.manual_seed(0)
print("the best line says", train(mg.nn.Linear(2, 1), 1000).numpy().round(4))

# %% [markdown]
# Now a hidden layer of eight units; `Sequential` puts layers one behind the other. The units bend with tanh, a sigmoid that
# goes from −1 to 1 instead of from 0 to 1; gradient descent finds its way more easily with it.

# %%
mg.manual_seed(0)
network = mg.nn.Sequential(mg.nn.Linear(2, 8), mg.nn.Tanh(), mg.nn.Linear(8, 1))
said = train(network, 400, watch=(0, 50, 100, 400))
print("the network says", said.numpy().round(4))

# %% [markdown]
# Open the four pictures one after the other. At first the plane is pale and has no pattern. At step 50 two corners are cut off,
# one clearly, the other barely. At step 100 both are, and between the two lines there is a band, as in the network by hand.
# From then on it is mostly the colours that get stronger. Nobody told it about OR and NAND.
#
# ## The film
#
# Such a network is one of the models that come with minigrad. Its training writes down a picture every few steps, and
# `mg.viz.report` makes a page of them. Open it in a browser and press play.

# %%
with tempfile.TemporaryDirectory() as folder:
    mg.zoo.train("xor", f"{folder}/run", seed=0, max_steps=200, progress=False)
    film = mg.viz.report(f"{folder}/run", FOLDER / "04_film.html")
    print("picture:", film.relative_to(FOLDER.parent.parent))

# %% [markdown]
# On the command line, `minigrad train xor` does the same, and leaves the page in the folder of its run.
#
# ## Luck
#
# By hand, two hidden units were enough. Does gradient descent find such weights, too? It depends on where it starts. Let us
# train a hundred networks, each from a random start of its own. A network is a slice of the same arrays, so all hundred take
# their steps together: the weights of the hidden layers are (100, 2, units), and broadcasting does the rest. (`requires_grad_()`
# says of a tensor that is there already what `requires_grad=True` says of a new one.)


# %%
def lucky(units, networks=100, steps=1000):
    """How many of so many networks get all four rows right."""
    mg.manual_seed(0)
    shapes = [(networks, 2, units), (networks, 1, units), (networks, units, 1), (networks, 1, 1)]
    w1, b1, w2, b2 = weights = [(2 * mg.rand(*shape) - 1).requires_grad_() for shape in shapes]
    optimizer = mg.optim.SGD(weights, lr=0.5)
    for _ in range(steps):
        optimizer.zero_grad()
        scores = F.tanh(x @ w1 + b1) @ w2 + b2  # (4, 2) -> (networks, 4, units) -> (networks, 4, 1)
        F.binary_cross_entropy_with_logits(scores, y.broadcast_to(scores.shape), reduction="sum").backward()
        optimizer.step()
    return int((((scores > 0) == (y > 0.5)).sum(axis=(1, 2)) == 4).sum())


for units in (1, 2, 3, 4, 8):
    print(f"hidden units: {units}; {lucky(units):3} of 100 networks learn XOR")

# %% [markdown]
# One unit is a line, and cannot. Two can, but only about half of them do: the others end in a place where no small step
# makes things better, and stay there. With more units there is nearly always a way on. This is one reason why networks are
# made larger than they would have to be.
#
# ## Exercises
#
# 1. *XNOR by hand.* It is 1 when both bits are equal. Change only the output unit of the sigmoid network, its two weights and
#    its bias, so that it computes XNOR.
# 2. *Another ReLU network.* Take $h_1 = \mathrm{ReLU}(a + b)$, choose a second unit, and weights for an output without any
#    bending, such that it says exactly 0, 1, 1, 0.
# 3. *Take the bend away.* Build the network of eight hidden units without tanh. Show that at every point it says the same as a
#    single line, whose weights you work out from its own, and that training does not get all four rows right. (`Linear` keeps
#    its `weight` with a row for each output, so it computes `x @ weight.mT + bias`; `.mT` makes columns of rows.)
#
# More to do, a file with holes that marks itself: `minigrad learn start 4`, then `minigrad learn check`.
#
# Solutions: [solutions/04_xor.py](solutions/04_xor.py)
#
# ## Read next
#
# - [models/xor/model.py](../models/xor/model.py): these networks, as a model of minigrad; its
#   [README](../models/xor/README.md) counts how often training gets stuck.
# - [minigrad/nn/layers/linear.py](../minigrad/nn/layers/linear.py): `Linear`, a few lines.
# - [minigrad/viz/drawing/plane.py](../minigrad/viz/drawing/plane.py): how the coloured planes are drawn.
# - Tutorial 5: [a line and a curve](05_line_and_curve.py).
