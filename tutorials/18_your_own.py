# %% [markdown]
# # 18. Your own op, your own layer, your own plugin
#
# Until now you have used what was there. Now you add to it, in three sizes. At the end you have an op that minigrad
# does not know, with a gradient that you wrote and that is proven right; a layer made of it, with numbers that are
# learned; and a model of your own that `minigrad train`, `predict` and `check` handle like those that came with it.
#
# Nothing of minigrad's own source is changed for any of it. It takes about 40 minutes, and 5 seconds to run.

# %%
import os
import shlex
import sys
import tempfile
from pathlib import Path

import numpy as np
from showing import show

import minigrad as mg
from minigrad.cli import main

mg.manual_seed(0)

# %% [markdown]
# ## An op
#
# Our op is the *bell*. It tells how close a number is to 0: at 0 it is 1, and it falls off to both sides, quickly for
# a small width $w$ and slowly for a large one:
#
# $bell(a, w) = e^{-\frac{1}{2} (a / w)^2}$
#
# At $a = 1$ and $w = 1$ that is $e^{-0.5} \approx 0.61$. An op is a function with `@mg.op` in front. It gets plain
# arrays, and first the module to compute with, `xp`. That is NumPy for arrays in memory and CuPy for arrays on a
# graphics card, so that one line serves both. `elementwise=True` says that the inputs may broadcast.


# %%
@mg.op(elementwise=True)
def bell(xp, a, width):
    """`exp(-(a / width)² / 2)`: how close a is to 0."""
    return xp.exp(-((a / width) ** 2) / 2)


print(bell(mg.tensor([0.0, 1.0, 2.0, 3.0]), 1.0))

# %% [markdown]
# It computes, but it cannot be differentiated yet. minigrad says so, and does not pretend that the slope is 0.

# %%
try:
    bell(mg.tensor(1.0, requires_grad=True), 1.0)
except mg.MinigradError as mistake:
    print(mistake)

# %% [markdown]
# The slopes come from the chain rule. The slope of $e^u$ is $e^u$ itself, which is our result, $out$. The slope of
# $u = -\frac{1}{2} (a / w)^2$ is $-a / w^2$ for $a$, and $a^2 / w^3$ for $w$. So
#
# $\frac{\partial bell}{\partial a} = -out \cdot \frac{a}{w^2} \qquad
# \frac{\partial bell}{\partial w} = out \cdot \frac{a^2}{w^3}$
#
# A *rule* takes the gradient `g` that has arrived at the result, times the slope, and gives the gradient of one
# input. It gets what it names: `g`, then inputs, or `out`. What no rule names is not kept in memory. And no rule
# thinks of shapes: what was stretched, the engine sums back. (`vjp` is short for *vector-Jacobian product*, the
# textbooks' word for such a rule.)

# %%
rules = {
    "a": lambda g, a, width, out: -g * out * a / width**2,
    "width": lambda g, a, width, out: g * out * a**2 / width**3,
}
bell.vjp(**rules)  # the same as bell.vjp(a=…, width=…)

a = mg.tensor([-1.0, 1.0, 2.0, 3.0], requires_grad=True)
bell(a, 1.0).sum().backward()
print("slopes at -1, 1, 2 and 3:", a.grad)

# %% [markdown]
# In the picture: a bell of width 1, one of width 0.5, and the slope of the first. Where the bell climbs, its slope is
# positive; at the top it is 0.

# %%
places = mg.linspace(-4, 4, 161)
curves = {
    "width 1": (places, bell(places, 1.0)),
    "width 0.5": (places, bell(places, 0.5)),
    "slope of width 1": (places, mg.grad(lambda t: bell(t, 1.0).sum())(places)),
}
show(mg.viz.lines(curves, "bells, and a slope", x="x", y="value"), "18_bell")

# %% [markdown]
# ## Proving it
#
# Are the rules right? `gradcheck` measures every slope by nudging, as you did in
# [tutorial 3](03_tensors_and_broadcasting.py), and compares. It wants 16 digits (`float64`). We give it shapes that
# broadcast, `(3, 1)` and `(4,)`, so that the summing back is checked too.

# %%
draw = np.random.default_rng(0)
inputs = [mg.tensor(draw.normal(size=(3, 1))), mg.tensor(draw.uniform(0.5, 2, size=4))]
result = mg.check.gradcheck(bell, inputs)
print("right:", bool(result), "after comparing", result.compared, "derivatives, first and second")

# %% [markdown]
# Second derivatives as well, though we never wrote a rule for them? A rule is made of operators and ops, so minigrad
# can differentiate the rule itself.
#
# A check that never fails is worth nothing. So make a mistake, a likely one: $w^2$ for $w^3$.

# %%
bell.vjp(a=rules["a"], width=lambda g, a, width, out: g * out * a**2 / width**2)
print(mg.check.gradcheck(bell, inputs, raise_exception=False).problem)
bell.vjp(**rules)

# %% [markdown]
# "Input 1" is the width: they are counted from 0. The mistake is found, and its place.
#
# When is an op of your own worth it? Less often than one thinks. The same bell is one line of ops that exist, and
# that line needs no rule at all. Write an op if the slope is simpler or more exact than what the parts would give, if
# parts would keep too much in memory, or if you *want* another gradient than the true one. Here it serves as a second
# proof: both must agree.

# %%
composed = mg.grad(lambda a, w: mg.exp(-((a / w) ** 2) / 2).sum(), argnums=(0, 1))(*inputs)
ours = mg.grad(lambda a, w: bell(a, w).sum(), argnums=(0, 1))(*inputs)
for name, p, q in zip(("a", "width"), ours, composed):
    print(f"gradient of {name}: shape {p.shape}, largest difference {abs(p - q).max().item():.0e}")

# %% [markdown]
# ## A layer
#
# A *layer* is a part of a model that owns numbers which are learned, its *parameters*. Ours has $K$ places in the
# plane, its centres $c_k$, each with a width $w_k$. For a point $x$ it tells how close the point is to each centre. A
# point has two coordinates; the bell of each, multiplied, is the bell of the distance:
#
# $out_k = bell(x_1 - c_{k1}, w_k) \cdot bell(x_2 - c_{k2}, w_k)$
#
# A layer is a class that extends `mg.nn.Module`. Assign each `Parameter` to a name, and write `forward`. That is all:
# optimisers find the parameters, `save` and `load` know their names, errors tell where they happened. Note the
# shapes, for $N$ points at once.


# %%
class Bells(mg.nn.Module):
    """How close points are to centres that are learned: (N, inputs) -> (N, count)."""

    def __init__(self, inputs, count):
        self.centres = mg.nn.Parameter(mg.rand(count, inputs) * 2 - 1)
        self.widths = mg.nn.Parameter(mg.full((count, 1), 0.5))

    def forward(self, x):
        apart = x[:, None] - self.centres  # (N, 1, inputs) - (count, inputs) -> (N, count, inputs)
        return bell(apart, self.widths).prod(axis=-1)  # -> (N, count)


layer = Bells(2, 3)
print({name: parameter.shape for name, parameter in layer.named_parameters()})
print(layer(mg.tensor([[0.0, 0.0], [0.5, 0.5]])))

# %% [markdown]
# `gradcheck` takes a layer as it takes a function, and checks the gradients of its parameters, too.

# %%
result = mg.check.gradcheck(Bells(2, 3).to("float64"), mg.tensor(draw.normal(size=(4, 2))))
print("right:", bool(result), "after comparing", result.compared, "derivatives")

# %% [markdown]
# It goes together with all other layers. Twelve bells and a `Linear`, which weighs and adds them, should tell whether
# a point lies in a ring: further than 0.4 from the middle, but not further than 0.8. The loss is the one of
# [tutorial 6](06_softmax_and_cross_entropy.py), for two possible answers.

# %%
points = draw.uniform(-1, 1, (400, 2)).astype("float32")
far = np.hypot(points[:, :1], points[:, 1:])
inside = ((far > 0.4) & (far < 0.8)).astype("float32")  # (400, 1)
model = mg.nn.Sequential(Bells(2, 12), mg.nn.Linear(12, 1))
optimizer = mg.optim.Adam(model.parameters(), lr=0.1)
for step in range(301):
    optimizer.zero_grad()
    logits = model(mg.tensor(points))  # (400, 2) -> (400, 1)
    loss = mg.nn.functional.binary_cross_entropy_with_logits(logits, mg.tensor(inside))
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        right = ((logits.numpy() > 0) == (inside > 0.5)).mean()
        print(f"step {step:3}: loss {loss.item():.3f}, right {right:.1%}")

# %% [markdown]
# The surface shows what it answers everywhere, and the graph shows the layer inside of the model, with your op in it.
# Boxes with pointed sides are parameters.


# %%
def probability(rows):
    return model(mg.tensor(rows)).sigmoid().numpy()


show(mg.viz.decision_surface(probability, points[:60], inside[:60], "in the ring?"), "18_ring")
show(mg.viz.graph(model, points[:5], depth=2), "18_model")

# %% [markdown]
# ## A plugin
#
# A model that others shall train by a command is a *plugin*: a package of its own, beside minigrad, with a
# description of how to get data, build the model and compute the loss. `minigrad new` writes one that works at once.
#
# In a terminal you would type `minigrad new bells`. The function below does the same, so that this page can. We work
# in a folder that is thrown away at the end.


# %%
def minigrad(*words):
    """What `minigrad …` does in a terminal."""
    print("$", shlex.join(["minigrad", *words]))
    return main(list(words))


home, folder = os.getcwd(), tempfile.TemporaryDirectory()
os.chdir(folder.name)
minigrad("new", "bells")

# %% [markdown]
# Two files matter. `src/bells/__init__.py` is the description, called the *spec*: settings, data, loss, how to answer
# a question. It is a page long; these are its parts. `src/bells/model.py` is the network.

# %%
description = Path("bells/src/bells/__init__.py").read_text(encoding="utf-8")
print(*[line for line in description.splitlines() if line.startswith(("def ", "class ", "spec"))], sep="\n")
print(Path("bells/src/bells/model.py").read_text(encoding="utf-8"))

# %% [markdown]
# As it comes, the plugin learns whether a point lies in a disc, with a hidden layer of tanh. We give it a network of
# bells. Here is the op again, as it belongs into a file:

# %%
op_text = '''"""The network of bells."""

import minigrad as mg
from minigrad import nn


@mg.op(elementwise=True)
def bell(xp, a, width):
    return xp.exp(-((a / width) ** 2) / 2)


bell.vjp(a=lambda g, a, width, out: -g * out * a / width**2, width=lambda g, a, width, out: g * out * a**2 / width**3)
'''

# %% [markdown]
# The layer, and the network, whose name `Net` and argument `hidden` the spec expects:

# %%
net_text = '''

class Net(nn.Module):
    """(N, 2) -> (N, hidden) -> (N, 1): the logit of "inside"."""

    def __init__(self, hidden):
        self.centres = nn.Parameter(mg.rand(hidden, 2) * 2 - 1)
        self.widths, self.output = nn.Parameter(mg.full((hidden, 1), 0.5)), nn.Linear(hidden, 1)

    def forward(self, x):
        close = bell(x[:, None] - self.centres, self.widths).prod(axis=-1)  # (N, 2) -> (N, hidden)
        return self.output(close)  # -> (N, 1)
'''
written = Path("bells/src/bells/model.py").write_text(op_text + net_text, encoding="utf-8")

# %% [markdown]
# `minigrad check` tries all that can be tried without knowing what a model is for. Does it build in every preset? Are
# its gradients right, measured by nudging? Can it learn one batch by heart? If training is interrupted and goes on,
# does it end with the same numbers, bit for bit?

# %%
code = minigrad("check", "bells")
print("exit code:", code)

# %% [markdown]
# To make the model known by its name, install the package once: `pip install -e bells`. What minigrad then looks for
# is a single line, which stands in the plugin's `setup.cfg` under `minigrad.models`:
#
# `bells = bells:spec`
#
# It says: the model "bells" is the object `spec` in the package `bells`. We will not install anything into your
# Python here. The cell does by hand what pip would: it puts the line where Python looks for such lines, and the
# package on the path.

# %%
information = Path("bells/src/bells-0.1.0.dist-info")
information.mkdir()
(information / "METADATA").write_text("Metadata-Version: 2.1\nName: bells\nVersion: 0.1.0\n")
(information / "entry_points.txt").write_text("[minigrad.models]\nbells = bells:spec\n")
sys.path.insert(0, str(Path("bells/src").absolute()))
minigrad("list", "b*")

# %% [markdown]
# There it stands among the others. Now every command works with it, and settings can be changed by `key=value`.

# %%
minigrad("train", "bells", "--out", "runs/bells", "--seed", "1", "hidden=12", "radius=0.6", "steps=300")

# %%
minigrad("predict", "runs/bells", "0.1 0.2", "0.9 0.9")
minigrad("eval", "runs/bells")

# %% [markdown]
# The same from Python: `mg.zoo.load` gives the trained model with all that belongs to it. The curves of its training
# were written down along the way.

# %%
loaded = mg.zoo.load("runs/bells")
print(loaded)
print("centres:", loaded.model.centres.shape, " answer:", loaded.predict("0 0"))
show(mg.viz.curves("runs/bells"), "18_training")

# %% [markdown]
# That was the last of the three. Back home, and tidy up.

# %%
os.chdir(home)
sys.path.pop(0)
folder.cleanup()

# %% [markdown]
# ## Exercises
#
# 1. *Squareplus* is a relu without a corner: $\frac{1}{2} (a + \sqrt{a^2 + bend})$. Write it as an op. `bend` is not
#    differentiated: it is an *attribute*, and stands after a `*`: `def squareplus(xp, a, *, bend=1.0)`. Check it, and
#    show that it comes close to relu as `bend` becomes small.
# 2. Write a layer `Waves(count)` of sine waves, $\sin(f_k x + p_k)$ with frequencies $f_k$ and shifts $p_k$ that are
#    learned. Check it, and let it learn $\sin(3x) + \frac{1}{2} \cos(5x)$ with a `Linear` behind it.
# 3. Make a plugin that learns a ring, not a disc, with an `inner` radius as one more setting. Let it pass
#    `minigrad check`, and get more than 95 of 100 points right.
#
# More to do, a file with holes that marks itself: `minigrad learn start 18`, then `minigrad learn check`.
#
# Solutions: [solutions/18_your_own.py](solutions/18_your_own.py)
#
# ## Read next
#
# - [minigrad/engine/op.py](../minigrad/engine/op.py): what `@mg.op` does; the top explains rules.
# - [minigrad/nn/layers/linear.py](../minigrad/nn/layers/linear.py): the plain layers, none longer than a page.
# - [minigrad/zoo/spec.py](../minigrad/zoo/spec.py): everything that a spec can say.
# - [models/xor](../models/xor), [models/facts](../models/facts): two small plugins that also draw what they learn.
# - [CONTRIBUTING.md](../CONTRIBUTING.md): how an op or a fast kernel gets into minigrad itself.
