# %% [markdown]
# # 7. Optimisers
#
# A gradient says in which direction to go. An *optimiser* decides how far, and what to remember of the way so far. This
# tutorial walks down a valley with each of those that people use, and draws the paths. Then come three more things that decide
# whether a network learns: how its steps shrink, how its weights start, and how to keep it from learning by heart.
#
# At the end you will have
#
# - SGD, momentum, RMSprop and Adam, each with its formula and its path, and AdamW, which also shrinks weights;
# - learning-rate schedules, and a measurement of why steps should shrink;
# - Xavier and He initialisation, with measured sizes through twenty layers;
# - dropout, and a measurement of what it does for a network that has seen too little.
#
# Reading takes about thirty minutes, running about ten seconds.

# %%
import numpy as np
from showing import show

import minigrad as mg
from minigrad.nn import functional as F
from minigrad.optim import SGD, Adam, AdamW, RMSprop
from minigrad.viz.drawing.axes import Scale, frame
from minigrad.viz.drawing.colors import SERIES, resolve, sequential
from minigrad.viz.drawing.scene import Ellipse, Image, Line, Scene, Text

# %% [markdown]
# ## A valley
#
# A real loss depends on millions of weights, and nobody can draw that. So here is one that depends on two, $x$ and $y$:
#
# $$L(x, y) = \tfrac{1}{2} (x^2 + 50 y^2), \qquad \text{gradient} = (x,\; 50 y)$$
#
# It is a valley. Along $x$ it is almost flat, along $y$ it is steep, fifty times as steep. The bottom is at $(0, 0)$. Real losses
# are like this: some weights matter much more than others. We start at $(-4, 1)$, where the gradient is $(-4, 50)$. Note where
# it points: almost straight across the valley, hardly along it. That is the difficulty.
#
# `walk` takes steps with any optimiser and keeps all places; `draw` shows paths on the surface, dark where the loss is large.


# %%
def valley(p):
    return (p[0] ** 2 + 50 * p[1] ** 2) / 2


def walk(optimiser, steps=100, loss=valley, start=(-4.0, 1.0), **options):
    """All places (steps + 1, 2) that an optimiser comes through."""
    p = mg.tensor(start, dtype="float64", requires_grad=True)
    walker, path = optimiser([p], **options), [start]
    for _ in range(steps):
        walker.zero_grad()
        loss(p).backward()
        walker.step()
        path.append(tuple(p.tolist()))
    return np.array(path)


# %%
def draw(title, paths, loss=valley, x=(-4.6, 1.2), y=(-1.3, 1.3), goal=(0, 0)):
    """Paths, by their names, on the surface of a loss."""
    across, up = Scale(*x, 50, 550), Scale(*y, 290, 30)
    grid = np.meshgrid(np.linspace(*x, 125), np.linspace(*y[::-1], 65))
    height = np.sqrt(loss(np.stack(grid)))  # the root, so that the bottom of the valley can be seen, too
    shapes = [*frame(across, up), Image(50, 30, 500, 260, sequential(height, 2.5 * height.max()))]
    shapes += [
        Text(50, 20, title, 12, bold=True),
        Text(float(across(goal[0])) - 4, float(up(goal[1])) + 4, "+", 13, "#1c2530"),
    ]
    for number, (color, (name, path)) in enumerate(zip(("ink", *SERIES[1:]), paths.items())):
        inside = [(a, b) for a, b in path if x[0] <= a <= x[1] and y[0] <= b <= y[1]]
        dots = [(float(across(a)), float(up(b))) for a, b in inside]
        shapes += [Line(dots, resolve(color), 1.4), *[Ellipse(a, b, 3.5, 3.5, resolve(color), None) for a, b in dots]]
        shapes.append(Text(562, 44 + 18 * number, name, 11, color))
    return Scene(690, 315, shapes, title)


# %% [markdown]
# ## SGD
#
# The plain step is the one you know. With a learning rate of 0.02 the first step goes from $(-4, 1)$ to
# $(-4 + 0.02 \cdot 4,\; 1 - 0.02 \cdot 50) = (-3.92, 0)$: all the way down the steep wall, and 0.08 along the valley.
#
# $$p \leftarrow p - \eta \, g$$
#
# In words: the new place $p$ is the old one, minus the learning rate $\eta$ times the gradient $g$. It is called SGD,
# *stochastic gradient descent*. Stochastic, because in practice $g$ is computed on a few random examples at a time, a
# *batch*.
#
# Try three rates. With a rate of 0.038 every step overshoots the bottom of the valley and lands on the opposite wall. With
# 0.0405 it lands higher than before, and so on until it leaves the picture. The steepness decides where the limit is: each step
# multiplies $y$ by $1 - 50 \eta$, and beyond $\eta = 2/50 = 0.04$ that is below −1.

# %%
rates = {f"rate {rate}": walk(SGD, lr=rate) for rate in (0.02, 0.038, 0.0405)}
for name, path in rates.items():
    print(f"{name:11}: first step to {path[1].round(3)}, after 100 steps at {path[-1].round(3)}")
show(draw("SGD, 100 steps", rates), "07_sgd")

# %% [markdown]
# So the steep direction sets the speed limit, and the flat direction has to live with it.
#
# ## Momentum
#
# A ball that rolls does not forget its speed with every metre. Let the step be a *velocity* $v$ that keeps 80 percent of itself
# and has the new gradient added:
#
# $$v \leftarrow 0.8\, v + g, \qquad p \leftarrow p - \eta\, v$$
#
# Across the valley the gradients point now to one side, now to the other, and cancel. Along it they all point the same
# way and add up: after many steps $v$ is $1 + 0.8 + 0.64 + \dots = 5$ times a single gradient. Five times as fast, for the price
# of one number to remember for each weight.

# %%
both = {"SGD": walk(SGD, lr=0.02), "momentum": walk(SGD, lr=0.02, momentum=0.8)}
for name, path in both.items():
    print(f"{name:8}: distance to the bottom after 20, 40 and 100 steps:", np.hypot(*path[[20, 40, 100]].T).round(4))
show(draw("with and without momentum", both), "07_momentum")

# %% [markdown]
# ## RMSprop
#
# Another idea: give each weight a step size of its own. Keep a running mean $s$ of the *squared* gradient, and divide by its
# root. ("RMS" is "root mean square".)
#
# $$s \leftarrow 0.9\, s + 0.1\, g^2, \qquad p \leftarrow p - \eta \, \frac{g}{\sqrt{s} + \epsilon}$$
#
# The $\epsilon$, "epsilon", is a tiny number that keeps us from dividing by 0. At the first step $s$ is $0.1 g^2$, so
# $g / \sqrt{s}$ is $\pm 3.16$, whether the gradient was −4 or 50. Steep and flat count the same: RMSprop sets out along the diagonal.
# And it does not care about units. Make the walls of the valley a hundred times steeper, and the path stays the same.

# %%
path = walk(RMSprop, lr=0.1, alpha=0.9)
steeper = walk(RMSprop, lr=0.1, alpha=0.9, loss=lambda p: (p[0] ** 2 + 5000 * p[1] ** 2) / 2)
print("first step:", (path[1] - path[0]).round(4))
print("largest difference in the steeper valley:", abs(path - steeper).max().round(8))
print("distance after 20, 40 and 100 steps:", np.hypot(*path[[20, 40, 100]].T).round(4))

# %% [markdown]
# ## Adam
#
# Adam does both. It keeps a running mean $m$ of the gradient, which is momentum, and a running mean $v$ of its square, as
# RMSprop does. (By custom its letter is $v$. It is the $s$ of RMSprop, and no velocity.)
#
# $$m \leftarrow 0.9\, m + 0.1\, g, \qquad v \leftarrow 0.999\, v + 0.001\, g^2, \qquad
# p \leftarrow p - \eta \, \frac{\hat m}{\sqrt{\hat v} + \epsilon}$$
#
# The hats repair the beginning. Both means start at 0, and at first they are too small: after one step $m$ is only $0.1\, g$.
# So divide by how much of a full mean it is: $\hat m = m / (1 - 0.9^n)$ and $\hat v = v / (1 - 0.999^n)$ after $n$ steps. After
# the first, $\hat m = g$ and $\hat v = g^2$, and the step is $\eta$ exactly, in each direction. With that, a learning rate has a
# plain meaning: about how far a weight moves in one step.

# %%
p, m, v = np.array([-4.0, 1.0]), 0.0, 0.0
for n in range(1, 101):
    g = p * [1, 50]
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
    p = p - 0.3 * (m / (1 - 0.9**n)) / (np.sqrt(v / (1 - 0.999**n)) + 1e-8)
path = walk(Adam, lr=0.3)
print("Adam's first step:", (path[1] - path[0]).round(6))
print("after 100 steps, by hand:", p.round(8), "by minigrad:", path[-1].round(8))
assert np.allclose(p, path[-1])

# %%
four = {
    "SGD": walk(SGD, lr=0.038),
    "momentum": walk(SGD, lr=0.02, momentum=0.8),
    "RMSprop": walk(RMSprop, lr=0.1, alpha=0.9),
    "Adam": walk(Adam, lr=0.3),
}
show(draw("four ways into the valley", four), "07_four")
losses = {name: (range(len(path)), [valley(place) for place in path]) for name, path in four.items()}
show(mg.viz.lines(losses, x="step", y="loss", log="y"), "07_losses")

# %% [markdown]
# Each has its manner. SGD bounces from wall to wall. Momentum swings, RMSprop goes down first and then along, Adam rolls past
# the bottom and comes back. And look at the loss of RMSprop around step 75: it had all but arrived, and is thrown out again!
# Its gradients had become tiny, so their mean square had, too, and a tiny number divided by a tiny number is not small.
# Steps that are always of about the same size never come to rest by themselves. The section on schedules takes care of that.
#
# Now a valley that turns. Its floor lies along a parabola, and its bottom at $(1, 1)$; such "banana" valleys are a classic test.
#
# $$L(x, y) = (1 - x)^2 + 10 (y - x^2)^2$$
#
# No optimiser wins everywhere. Momentum is hard to beat where the surface is smooth and the rate was chosen well. The strength
# of Adam does not show on two weights. It is that one learning rate fits millions of weights, steep and flat ones, and this is
# why nearly all transformers are trained with it.


# %%
def banana(p):
    return (1 - p[0]) ** 2 + 10 * (p[1] - p[0] ** 2) ** 2


settings = {
    "SGD": (SGD, {"lr": 0.02}), "momentum": (SGD, {"lr": 0.005, "momentum": 0.9}),
    "RMSprop": (RMSprop, {"lr": 0.05, "alpha": 0.9}), "Adam": (Adam, {"lr": 0.1}),
}  # fmt: skip
turning = {name: walk(kind, 200, banana, (-1.5, 1.5), **options) for name, (kind, options) in settings.items()}
for name, path in turning.items():
    print(
        f"{name:8}: distance to (1, 1) after 50, 100 and 200 steps:", np.hypot(*(path[[50, 100, 200]] - 1).T).round(4)
    )
show(draw("a valley that turns", turning, banana, (-1.8, 1.8), (-0.5, 2.1), (1, 1)), "07_banana")

# %% [markdown]
# ## AdamW: weights that shrink
#
# Large weights are often a sign that a network has learned its examples by heart. *Weight decay* pulls every weight a little
# toward 0 at each step. It can be done in two ways. The old one adds $\lambda p$ ("lambda" times the weight) to the gradient. In
# Adam this goes wrong: the pull, too, is divided by $\sqrt{\hat v}$. So weights with large gradients are hardly pulled at all, and
# those with tiny ones far too hard. AdamW keeps the pull apart from the gradient:
#
# $$p \leftarrow (1 - \eta \lambda)\, p \quad\text{and then a step of Adam}$$
#
# Two weights, both 1. The gradients of one are $\pm 100$, those of the other $\pm 0.001$, in turns, so on the whole neither is
# pushed anywhere. With $\eta = 0.01$ and $\lambda = 0.1$, two hundred steps should shrink each to about $0.999^{200} = 0.82$.

# %%
for optimiser in (Adam, AdamW):
    weights = mg.ones(2, dtype="float64", requires_grad=True)
    shrinker = optimiser([weights], lr=0.01, weight_decay=0.1)
    for step in range(200):
        weights.grad = mg.tensor([100.0, 0.001], dtype="float64") * (-1) ** step
        shrinker.step()
    print(f"{optimiser.__name__:5}: {weights.detach().numpy().round(3)}")

# %% [markdown]
# AdamW treats both alike. (A little below 0.82, since the first few steps of Adam do not quite cancel.) Adam has left one
# almost as it was, and all but erased the other.
#
# ## Schedules
#
# At the start large steps are good: the way is long. Near the end they are not. Gradients come from a few random examples
# and are noisy, so a walker with a fixed step never comes to rest, it rattles around the bottom. A *schedule* changes the
# learning rate as training goes on. Often it also rises at first, the *warm-up*, until Adam's means have become reliable.
#
# Some halve the rate every so many steps. The first transformers let it fall like one over the root of the step. The usual one
# for large models rises over $w$ steps and then goes down half a cosine to 0 at step $n$:
#
# $$\eta_t = \eta \, \frac{1 + \cos\left(\pi \frac{t - w}{n - w}\right)}{2} \quad\text{for } t \ge w$$


# %%
def optimiser():
    return SGD([mg.zeros(1, requires_grad=True)], lr=0.05)


schedules = {
    "constant": mg.optim.Constant(optimiser()),
    "step": mg.optim.Step(optimiser(), size=50, gamma=0.5),
    "cosine": mg.optim.Cosine(optimiser(), total=200, warmup=20),
    "inverse root": mg.optim.InverseSqrt(optimiser(), warmup=20),
}
steps = range(201)
rates = {name: (steps, [schedule.lr(step) for step in steps]) for name, schedule in schedules.items()}
for name, (_, curve) in rates.items():
    print(f"{name:12}: rate at step 0, 20, 100, 199:", [round(curve[step], 4) for step in (0, 20, 100, 199)])
show(mg.viz.lines(rates, x="step", y="learning rate"), "07_schedules")

# %% [markdown]
# Does it help? The same valley, less steep, with noise added to every gradient, for 200 steps; the mean of twenty walkers. We
# walk them all at once: their places are an array (20, 2). To add noise to a gradient, add noise times place to the loss.


# %%
def noisy(schedule, **options):
    """The steps, and how far twenty walkers are from the bottom after each, on average."""
    rng = np.random.default_rng(0)
    places = mg.tensor(np.tile([-4.0, 1.0], (20, 1)), requires_grad=True)  # (20, 2)
    walker = SGD([places], lr=0.05)
    plan, far = schedule(walker, **options), []
    for _ in range(200):
        walker.zero_grad()
        noise = mg.tensor(rng.normal(0, 2, size=(20, 2)))
        ((places**2 * mg.tensor([0.5, 10.0])).sum() + (places * noise).sum()).backward()
        walker.step()
        plan.step()
        far.append(float(np.hypot(*places.detach().numpy().T).mean()))
    return range(1, 201), far


# %%
distances = {"constant": noisy(mg.optim.Constant), "cosine": noisy(mg.optim.Cosine, total=200, warmup=20)}
for name, (_, far) in distances.items():
    print(f"{name:8}: mean distance at the end {far[-1]:.3f}")
show(mg.viz.lines(distances, x="step", y="distance to the bottom", log="y"), "07_noise")

# %% [markdown]
# It does. With a fixed rate the walkers come no nearer after some sixty steps. With the schedule they start more slowly, and
# end more than twice as near.
#
# ## How weights start
#
# A unit adds up many inputs, each times a weight. When independent numbers with mean 0 are added, their *variances* (their mean
# squares) add, too. With $n$ inputs of mean square $q$, and weights of variance $\sigma^2$ ("sigma squared", which has nothing to
# do with the sigmoid), the sum has the variance
#
# $$n \cdot \sigma^2 \cdot q$$
#
# If $n \sigma^2$ is 2, the variance doubles with each layer, and after twenty layers it is a million times too large. If it is a
# half, the signal dies out. It has to be 1: $\sigma^2 = 1/n$. *Xavier* initialisation takes $2 / (n_\text{in} + n_\text{out})$, a compromise with the
# way back, where gradients add up over the outputs. ReLU throws away half of the signal, and so *He* initialisation makes up for
# it: $\sigma^2 = 2 / n_\text{in}$.

# %%
mg.manual_seed(0)
weight = mg.empty(100, 300)  # 300 inputs, 100 outputs
for name, fill, formula in (("xavier", mg.nn.init.xavier_normal_, 2 / 400), ("he", mg.nn.init.he_normal_, 2 / 300)):
    print(f"{name:6}: variance by the formula {formula:.5f}, measured {fill(weight).var().item():.5f}")


def sizes(fill, bend, layers=20, width=256):
    """The layers, and the mean square of the signal after each."""
    signal, seen = mg.randn(300, width), [1.0]
    for _ in range(layers):
        signal = bend(signal @ fill(mg.empty(width, width)).mT)
        seen.append((signal**2).mean().item())
    return range(layers + 1), seen


# %%
measured = {
    "too large, ReLU": sizes(lambda w: mg.nn.init.normal_(w, std=0.2), F.relu),
    "too small, tanh": sizes(lambda w: mg.nn.init.normal_(w, std=0.03), F.tanh),
    "Xavier, tanh": sizes(mg.nn.init.xavier_normal_, F.tanh),
    "Xavier, ReLU": sizes(mg.nn.init.xavier_normal_, F.relu),
    "He, ReLU": sizes(mg.nn.init.he_normal_, F.relu),
}
for name, (_, seen) in measured.items():
    print(f"{name:15}: mean square after 1, 5 and 20 layers:", *[f"{seen[layer]:.2g}" for layer in (1, 5, 20)])
show(mg.viz.lines(measured, x="layer", y="mean square", log="y", points=True), "07_sizes")

# %% [markdown]
# Only two of the five keep a signal: He with ReLU, and Xavier with tanh, which loses less and less of it, because tanh squeezes
# large numbers and leaves small ones nearly as they are. Xavier with ReLU loses half in every layer, exactly what He puts back.
#
# ## Dropout
#
# A network with many weights and few examples can learn the examples by heart, which is called *overfitting*. *Dropout* makes
# that harder: in training each hidden unit is set to 0 with probability $p$, by a coin thrown anew at each step. No unit can
# rely on a particular other one. The units that are left are divided by $1 - p$, so that sums keep their size on average:
#
# $$\mathrm{dropout}(h)_i = \begin{cases} 0 & \text{with probability } p \\ h_i / (1 - p) & \text{otherwise} \end{cases}$$
#
# When the network is used, after training, nothing is dropped: `model.eval()` says so, `model.train()` takes it back.

# %%
mg.manual_seed(0)
drop = mg.nn.Dropout(0.5)
print("training:", drop(mg.ones(10)).tolist())
print("mean of 100,000:", round(drop(mg.ones(100_000)).mean().item(), 3))
drop.eval()
print("in use:  ", drop(mg.ones(10)).tolist())

# %% [markdown]
# A measurement. Each example has 20 numbers, and only the first two matter: is their sum, with a little noise, above 0? There
# are 40 examples to learn from, far too few, and 1,000 to judge by. Five seeds, with and without dropout.


# %%
def judged(p, seed):
    """The shares of right answers on what was learned, and on 1,000 new examples."""
    rng = np.random.default_rng(seed)
    inputs = mg.tensor(rng.normal(size=(1040, 20)).astype("float32"))
    answers = (inputs[:, 0].numpy() + inputs[:, 1].numpy() + rng.normal(0, 0.5, 1040) > 0).astype("int64")
    mg.manual_seed(seed)
    parts = [mg.nn.ReLU(), mg.nn.Dropout(p)]
    model = mg.nn.Sequential(mg.nn.Linear(20, 64), *parts, mg.nn.Linear(64, 64), *parts, mg.nn.Linear(64, 2))
    optimizer = Adam(model.parameters(), lr=0.005)
    for _ in range(200):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs[:40]), answers[:40]).backward()
        optimizer.step()
    right = model.eval()(inputs).argmax(axis=-1).numpy() == answers
    return right[:40].mean(), right[40:].mean()


# %%
for p in (0.0, 0.5):
    learned, new = zip(*[judged(p, seed) for seed in range(5)])
    print(f"dropout {p}: learned {np.mean(learned):.3f}, new {np.mean(new):.3f}, each {np.round(new, 3).tolist()}")

# %% [markdown]
# Without dropout and with it, everything that was seen is known by heart. On new examples dropout is better, by a few percent,
# for every seed. It is no magic: more examples would help much more.
#
# ## Exercises
#
# 1. *The speed limit.* On the valley, find by halving an interval the largest learning rate at which SGD with a momentum of 0.8
#    still comes down. The theory says $2 (1 + 0.8) / 50$.
# 2. *An optimiser of your own.* Write a subclass of `mg.optim.Optimizer` that moves each weight by $\eta$ against the sign of its
#    gradient, and nothing else. What it must have, `__init__`, `buffers` and `update`, you see in
#    [sgd.py](../minigrad/optim/rules/sgd.py). Check it against Adam with `betas=(0, 0)`, which should do the same.
# 3. *A schedule of your own.* Write a subclass of `mg.optim.Schedule` that rises in a straight line over `warmup` steps and
#    falls in a straight line to 0 at step `total`. It says which rate it gives in `at(step, base)`, as those in
#    [schedules.py](../minigrad/optim/schedules.py) do.
#
# More to do, a file with holes that marks itself: `minigrad learn start 7`, then `minigrad learn check`.
#
# Solutions: [solutions/07_optimisers.py](solutions/07_optimisers.py)
#
# ## Read next
#
# - [minigrad/optim/rules/sgd.py](../minigrad/optim/rules/sgd.py), [rmsprop.py](../minigrad/optim/rules/rmsprop.py),
#   [adam.py](../minigrad/optim/rules/adam.py): the formulas of this tutorial, each in a few lines of `update`.
# - [minigrad/optim/schedules.py](../minigrad/optim/schedules.py): all schedules; [minigrad/nn/init.py](../minigrad/nn/init.py):
#   all starts.
# - [docs/training.md](../docs/training.md): the trainer, which brings all of this together.
# - Tutorial 8: [words as vectors](08_words_as_vectors.py).
