# %% [markdown]
# # 5. A line and a curve
#
# A hundred points lie on a wave, $\sin(x)$ from −10 to 10. First a straight line goes through them, the best there is, and
# says next to nothing. Then a small network does, and follows every turn. Between the two lies a single idea: a line that may
# bend.
#
# At the end you will have
#
# - the best line, found by a formula and found again by gradient descent;
# - a wave made of straight pieces, with every weight set by hand;
# - a network that learns the wave, a look at why it sometimes fails, and the one line of code that mends it.
#
# Reading takes about twenty minutes, running about ten seconds. You need what a weight, a loss and a learning rate are
# (tutorial 4).

# %%
import math

from showing import show

import minigrad as mg
from minigrad.nn import functional as F

x = mg.linspace(-10, 10, 100)[:, None]  # (100, 1): a hundred places
y = mg.sin(x)  # (100, 1): the wave at these places
print("the first three points:", [(round(a, 3), round(b, 3)) for a, b in zip(x[:3, 0].tolist(), y[:3, 0].tolist())])

# %% [markdown]
# ## How wrong is a guess?
#
# Say we guess 0.5 at three points where the wave is 0.2, 0.5 and 0.9. We miss by 0.3, 0 and −0.4. Square the misses, so that
# they do not cancel: 0.09, 0 and 0.16. Their mean is 0.083. This is the *mean squared error*, the usual loss where the answer
# is a number and not a yes or no.
#
# $$L = \frac{1}{n} \sum_i (\hat y_i - y_i)^2$$
#
# In words: the loss is the mean over all $n$ points of the square of guess ($\hat y$, "y hat") minus truth ($y$).
#
# The laziest guess for our wave is 0 everywhere. Whatever we do should be better than that.

# %%
print("three points: ", round(F.mse_loss(mg.tensor([0.5, 0.5, 0.5]), mg.tensor([0.2, 0.5, 0.9])).item(), 4))
print("always 0:     ", round(F.mse_loss(mg.zeros(100, 1), y).item(), 4))

# %% [markdown]
# ## The best line
#
# A line has two numbers, a slope $m$ and an offset $c$, and says $\hat y = m x + c$. For so little there is a formula for the
# best choice, called *least squares*. A bar over something means its mean over all points:
#
# $$m = \frac{\overline{xy} - \bar x \, \bar y}{\overline{x^2} - \bar x^2}, \qquad c = \bar y - m \bar x$$
#
# In words: the slope is how much $x$ and $y$ go up and down together, divided by how much $x$ goes up and down at all.
#
# Gradient descent does not know the formula. It only knows in which direction the loss falls. It arrives at the same line.

# %%
m = ((x * y).mean() - x.mean() * y.mean()) / ((x * x).mean() - x.mean() ** 2)
c = y.mean() - m * x.mean()

mg.manual_seed(0)
line = mg.nn.Linear(1, 1)
optimizer = mg.optim.SGD(line.parameters(), lr=0.01)
for _ in range(1000):
    optimizer.zero_grad()
    F.mse_loss(line(x), y).backward()
    optimizer.step()
print(f"by the formula:      slope {m.item():.5f}, offset {abs(c.item()):.5f}")
print(f"by gradient descent: slope {line.weight.item():.5f}, offset {abs(line.bias.item()):.5f}")
print(f"loss of the line:    {F.mse_loss(line(x), y).item():.4f}")


# %%
def curve_of(model):
    """A model as a function from an array of places to an array of values, to be drawn."""
    return lambda places: model(mg.tensor(places)[:, None]).detach().numpy()


show(mg.viz.fit(x, y, curve_of(line), "the best line"), "05_line")

# %% [markdown]
# The best line is hardly better than always saying 0. It is not badly trained. There is no better line.
#
# ## A line that bends
#
# In tutorial 4 we met ReLU, which keeps what is above 0 and makes the rest 0. As a function of $x$, $\mathrm{ReLU}(x - k)$ is
# flat up to $k$, and from there it rises with slope 1. It is a *hinge*, a line with one bend, at $k$.
#
# Add hinges up, and each adds its bend. With three we can build a hat: up from 0, down from 1, flat again from 2.
#
# $$\mathrm{hat}(x) = \mathrm{ReLU}(x) - 2\,\mathrm{ReLU}(x - 1) + \mathrm{ReLU}(x - 2)$$
#
# Follow the slope from left to right: 0, then $+1$, then $1 - 2 = -1$, then $-1 + 1 = 0$. The number in front of a hinge is by
# how much the slope *changes* there.


# %%
def hinges(x):
    """Three hinges, at 0, 1 and 2: (N,) -> (N, 3)."""
    return F.relu(x[:, None] - mg.tensor([0.0, 1.0, 2.0]))


factors = mg.tensor([1.0, -2.0, 1.0])
few = mg.tensor([-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0])
for place, parts in zip(few.tolist(), hinges(few)):
    print(f"at {place:4}: hinges {parts.tolist()}, hat {(parts * factors).sum().item()}")

# %%
places = mg.linspace(-1, 3, 201)
parts = dict(zip(["ReLU(x)", "-2 ReLU(x-1)", "ReLU(x-2)"], (hinges(places) * factors).mT))  # .mT: (201, 3) -> (3, 201)
parts["their sum"] = hinges(places) @ factors
hat = {name: (places, part) for name, part in parts.items()}
show(mg.viz.lines(hat, "a hat of three hinges", x="x", y="value"), "05_hat")

# %% [markdown]
# ## The wave, by hand
#
# Now we know how to draw anything. Choose places, here the whole numbers from −10 to 10. Connect the values of the wave at
# these places by straight pieces. Each piece has a slope $s_k$, and the hinge at the start of a piece gets the change of slope:
#
# $$f(x) = y_0 + \sum_k (s_k - s_{k-1}) \, \mathrm{ReLU}(x - k)$$
#
# In words: start at the first value $y_0$, and at every place $k$ let the slope change to that of the next piece. Before the
# first piece the slope is 0.
#
# Look at what this is: each place is subtracted from the input, ReLU bends, the results are weighted and added up. That is a
# network with one hidden layer of twenty units. A network with a hidden layer or more is called an *MLP*, a "multilayer
# perceptron".

# %%
places = mg.arange(-10.0, 11.0)  # (21,)
heights = mg.sin(places)
slopes = heights[1:] - heights[:-1]  # (20,): the places are 1 apart
changes = mg.concatenate([slopes[:1], slopes[1:] - slopes[:-1]])  # (20,)


def by_hand(x):
    hidden = F.relu(x - places[:-1])  # (N, 1) - (20,) -> (N, 20): a unit for each hinge
    return heights[0] + hidden @ changes[:, None]  # (N, 20) @ (20, 1) -> (N, 1)


print("the first changes of slope:", changes[:4].numpy().round(3))
print(f"loss of the wave by hand: {F.mse_loss(by_hand(x), y).item():.5f}")
show(mg.viz.fit(x, y, curve_of(by_hand), "twenty hinges, set by hand"), "05_by_hand")

# %% [markdown]
# A hundred times better than the line. It is still made of straight lines, but there are twenty of them.
#
# ## The wave, learned
#
# We knew the wave, so we could set the weights. The point of learning is that we need not know it. The source document trains
# a network with two hidden layers of ten units each. Its second layer bends what the first has bent already, so a few units
# make many pieces:
#
# $$\hat y = W_3 \, \mathrm{ReLU}(W_2 \, \mathrm{ReLU}(W_1 x + b_1) + b_2) + b_3$$
#
# In words: weights and biases, bend; weights and biases, bend; weights and a bias. We take steps with Adam, a refined gradient
# descent, and let the steps get smaller toward the end. Tutorial 7 explains both; here they only save time.


# %%
def network(seed):
    mg.manual_seed(seed)
    layers = [mg.nn.Linear(1, 10), mg.nn.ReLU(), mg.nn.Linear(10, 10), mg.nn.ReLU(), mg.nn.Linear(10, 1)]
    return mg.nn.Sequential(*layers)


# %%
def train(model, steps=2000, watch=()):
    """Train on all points, draw at the steps to `watch`, and give the last loss."""
    optimizer = mg.optim.Adam(model.parameters(), lr=0.01)
    schedule = mg.optim.Cosine(optimizer, total=steps)
    for step in range(steps + 1):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        if step in watch:
            show(mg.viz.fit(x, y, curve_of(model), f"step {step}: loss {loss.item():.4f}"), f"05_step_{step:04}")
        loss.backward()
        optimizer.step()
        schedule.step()
    return loss.item()


# %%
models = [network(seed) for seed in range(3)]
for seed, model in enumerate(models):
    print(f"seed {seed}: loss {train(model):.4f}")
show(mg.viz.fit(x, y, curve_of(models[1]), "seed 1: waves are left out"), "05_stuck")

# %% [markdown]
# A *seed* fixes the random numbers, and with them the weights at the start. From one start the network learns the wave, from
# the next it leaves out whole turns and goes straight through. The network is the same; only its luck differs.
#
# ## Why it fails, and one line that helps
#
# Think in hinges. A unit of the first layer computes $\mathrm{ReLU}(w x + b)$. It bends where $w x + b = 0$, which is at
# $x = -b / w$. At the start, $w$ and $b$ are random numbers between −1 and 1. So most bends lie near 0:


# %%
def bends(model):
    """Where the units of the first layer bend, from left to right."""
    first = model[0]
    return sorted(round(place, 1) for place in (-first.bias / first.weight[:, 0]).tolist())


print("bends of seed 1:", bends(network(1)))

# %% [markdown]
# The waves lie between −10 and 10. Where no unit bends, the network is a straight line, and there is no small step that
# brings a bend over from far away. So let us spread the bends evenly before we train. A bend is to lie at $k$, so
#
# $$b = -w k$$


# %%
def spread(model):
    """Set the biases of the first layer, so that its bends are evenly spread from -10 to 10."""
    first = model[0]
    with mg.no_grad():  # setting weights is no part of any gradient
        first.bias[...] = -first.weight[:, 0] * mg.linspace(-10, 10, 10)
    return model


print("bends now:", bends(spread(network(1))))
for seed in range(2):
    print(f"seed {seed}, bends spread: loss {train(spread(network(seed))):.4f}")
model = spread(network(2))
print(f"seed 2, bends spread: loss {train(model, watch=(0, 100, 500, 2000)):.4f}")

# %% [markdown]
# Every seed learns it now. The four pictures show one of them. It starts as a tired line with a few bends. At step 100 most
# turns are there, too flat, and the last one is missing. At step 500 they all are, and what is left is polish.
#
# How a network starts matters. Tutorial 7 comes back to this, with the recipes that everybody uses.
#
# ## Beyond the points
#
# The network has seen the wave from −10 to 10. What does it say at 15?

# %%
for place in (1.5, 9.5, 12.0, 15.0):
    said = model(mg.tensor([[place]])).item()
    print(f"at {place:4}: the network {said:7.3f}, the wave {math.sin(place):6.3f}")
show(mg.viz.fit(x, y, curve_of(model), "beyond the points", beyond=0.4), "05_beyond")

# %% [markdown]
# After the last bend the last straight piece goes on and on. The network has not learned what a wave is. It has learned what
# the wave does *there*. Keep that in mind when a network is asked about something unlike everything it has seen.
#
# ## Exercises
#
# 1. *A pulse by hand.* With four hinges, build a function that is 0 up to 0, rises to 1 at 0.1, stays there up to 1, and is back
#    at 0 from 1.1 on.
# 2. *Folding.* Take $t(x) = 2\,\mathrm{ReLU}(x) - 4\,\mathrm{ReLU}(x - 0.5)$, a hat over 0 to 1, and put it into itself: $t(t(x))$,
#    $t(t(t(x)))$ and so on. How many straight pieces are there from 0 to 1 after $n$ times, made by how many units?
# 3. *No bends.* Train the network of this tutorial without its two ReLUs. Show that it ends at the loss of the best line.
#
# More to do, a file with holes that marks itself: `minigrad learn start 5`, then `minigrad learn check`.
#
# Solutions: [solutions/05_line_and_curve.py](solutions/05_line_and_curve.py)
#
# ## Read next
#
# - [models/regression/model.py](../models/regression/model.py): this network as a model of minigrad; its
#   [README](../models/regression/README.md) measures ten seeds.
# - [minigrad/nn/layers/mlp.py](../minigrad/nn/layers/mlp.py): the MLP that stands in every transformer.
# - [minigrad/nn/layers/activations.py](../minigrad/nn/layers/activations.py): other ways to bend.
# - Tutorial 6: [softmax and cross-entropy](06_softmax_and_cross_entropy.py).
