# %% [markdown]
# # 19. NumPy to CuPy
#
# A graphics card has thousands of small processors and a fast memory of its own. What has to change in a program, so that it
# runs there? Here: nothing but one word. This tutorial shows why, and it is honest about one thing: **no card was at hand when
# minigrad was written.** So the second half is about what can be proven without one, and what cannot.
#
# At the end you will have
#
# - a function, an op and a training that do not know where they run;
# - a training on a card that does not exist, and the mistakes that this card catches;
# - the commands for a card that does, if you have one. This script then uses it.
#
# Reading takes about 25 minutes, running about three seconds.

# %%
import importlib
import inspect
import sys
from pathlib import Path

import numpy as np
from showing import FOLDER, show

import minigrad as mg
from minigrad import nn, optim
from minigrad.compile import trace
from minigrad.compile.cuda import CudaWriter
from minigrad.compile.group import group
from minigrad.compile.loops import describe
from minigrad.compile.simplify import simplify
from minigrad.ops.elementwise.activations import silu
from minigrad.viz.drawing.axes import Scale, frame
from minigrad.viz.drawing.scene import Line, Rect, Scene, Text

# %% [markdown]
# ## One text, two machines
#
# CuPy is NumPy for graphics cards. It has the same names and the same arguments: where NumPy says
# `np.exp(x)`, CuPy says `cupy.exp(x)`. So do not write `np`. Let the caller say which module it is, and call it `xp`. (What an
# array does by itself, such as `x.max()` and `x / y`, needs no module.)
#
# $$\text{softmax}(x)_i = \frac{e^{x_i}}{e^{x_1} + e^{x_2} + \dots}$$


# %%
def softmax(xp, x):
    raised = xp.exp(x - x.max())  # the largest becomes 0, so that nothing overflows
    return raised / raised.sum()


print(softmax(np, np.array([2.0, 1.0, 0.2])))

# %% [markdown]
# `softmax(cupy, cupy.array([2.0, 1.0, 0.2]))` would compute the same on a card. Every op of minigrad is written like this. Here
# is one as it stands in the source, and then the files of the whole package that import CuPy.

# %%
print(inspect.getsource(silu.forward))
package = Path(mg.__file__).parent
files = sorted(package.rglob("*.py"))
knowing = [file for file in files if "import cupy" in file.read_text()]
print(f"{len(knowing)} of {len(files)} files import CuPy:", *[str(file.relative_to(package)) for file in knowing])

# %% [markdown]
# The engine looks at the array it is given, takes the module that fits, and hands it to the op. The rest does not ask. (The
# *host* is the computer that the card sits in.)


# %%
def box(x, y, words, role):
    lines = [Text(x + 80, y + 19 + 15 * n, word, 11, anchor="middle") for n, word in enumerate(words)]
    return [Rect(x, y, 160, 14 + 15 * len(words), role, "line", 4), *lines]


shapes = [
    *box(20, 40, ["your program", 'device="cuda"'], "input"),
    *box(220, 40, ["an op of minigrad", "f(xp, a)"], "group"),
]
shapes += [*box(420, 10, ["xp = numpy", "memory of the host"], "output")]
shapes += [*box(420, 80, ["xp = cupy", "memory of the card"], "parameter")]
for points in ([(180, 62), (218, 62)], [(380, 55), (418, 35)], [(380, 69), (418, 100)]):
    shapes.append(Line(points, "ink", 1.4, arrow=True))
shapes.append(Line([(500, 55), (500, 78)], "gradient", 1.4, arrow=True))
shapes.append(Text(508, 71, "x.to(device)", 10, "gradient"))
show(Scene(600, 140, shapes, "one op, two modules"), "19_one_op")

# %% [markdown]
# ## The one word
#
# A *device* is where an array lives: `"cpu"`, `"cuda"` (the first card), `"cuda:1"` (the second). You say it where data and
# models are made, and nowhere else. Without a card, or without CuPy, an error says so. Let us ask for a card, and take what
# there is:

# %%
try:
    mg.zeros(1, device="cuda")
    device = "cuda"
except mg.MinigradError as problem:
    print(problem)
    device = "cpu"
print("going on with", device)

# %% [markdown]
# From here on the program does not know which one it got.


# %%
def trained(device, steps=60):
    """Fit a sine on a device; the losses, and the weights back on the host."""
    mg.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1)).to(device)
    optimizer = optim.AdamW(model.parameters(), lr=0.02)
    x = mg.linspace(-2, 2, 64).reshape(-1, 1).to(device)
    y, losses = (2 * x).sin(), []
    for _ in range(steps):
        loss = ((model(x) - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, {name: weight.numpy() for name, weight in model.state_dict().items()}


losses, _ = trained(device)
print(f"on {device}: the loss goes from {losses[0]:.4f} to {losses[-1]:.4f}")

# %% [markdown]
# Three habits, and that is all there is to it:
#
# - **The model first, with `.to(device)`.** Its parameters stay the same objects, so an optimiser that was made before still
#   knows them.
# - **Then the batches**: `mg.tensor(rows, device=device)`, or `x.to(device)`.
# - **Back only when you need to look.** `x.numpy()` and `x.item()` copy to the host, and wait for the card to finish. It works
#   on its own while Python runs ahead; a `loss.item()` in every step makes the two wait for each other.
#
# A checkpoint holds plain arrays. What was saved from a card can be loaded where there is none, and the other way round.
#
# ## A card that does not exist
#
# How do you test a program for a card without a card? NumPy alone is too kind: it takes lists, other arrays, anything. CuPy is
# strict. Its arrays live elsewhere, so it refuses to mix them with NumPy's, and never converts them without being asked. And
# it does not have everything that NumPy has.
#
# So the tests have a *fake device*. It computes with NumPy, but it plays CuPy: it offers only the names and keywords that CuPy
# has (from a list made by looking at the real one), takes only arrays of its own, and lets nothing out by accident. It lives
# beside the tests. Let us borrow it.

# %%
sys.path.append(str(FOLDER.parent.parent / "tests"))
fake = importlib.import_module("support.fake_device")  # makes the device "fake" known
x = mg.tensor([1.0, 2.0, 3.0], device="fake")
print(x, "is a", type(x.data).__name__)
print("softmax:", softmax(fake.xp, x.data).get())

# %% [markdown]
# Here are four mistakes that NumPy would let pass, or that would crash only on a real card.

# %%
mistakes = {
    "add a tensor of the host": lambda: x + mg.tensor([1.0, 1.0, 1.0]),
    "add a NumPy array": lambda: x.data + np.ones(3),
    "let NumPy have it": lambda: np.asarray(x.data),
    "use what CuPy lacks": lambda: fake.xp.busday_count,
}
for what, mistake in mistakes.items():
    try:
        mistake()
        print(what, "went through!")
    except Exception as error:
        print(f"{what}: {type(error).__name__}: {str(error).splitlines()[0]}")

# %% [markdown]
# Now the same training on it. If any op, rule, layer or optimiser of ours used `np` where it should say `xp`, or a function
# that CuPy does not have, it would stop here. (The tests send every op, layer and optimiser there.)
#
# $$\text{the same losses on both} \quad\Rightarrow\quad \text{nothing in between knew where it was}$$

# %%
here, weights_here = trained("cpu")
there, weights_there = trained("fake")
apart = max(float(np.abs(weights_here[name] - weights_there[name]).max()) for name in weights_here)
print(f"cpu  {here[0]:.6f} … {here[-1]:.6f}")
print(f"fake {there[0]:.6f} … {there[-1]:.6f}   weights differ by {apart:.0e}")
across, up = Scale(0, 60, 50, 430), Scale(0.01, 1, 230, 30, log=True)
shapes = [*frame(across, up), Text(50, 20, "loss by step: cpu (wide), and the fake device (narrow)", 11)]
shapes.append(Line(list(zip(across(range(60)), up(here))), "series-6", 6))
shapes.append(Line(list(zip(across(range(60)), up(there))), "series-2", 1.6))
show(Scene(450, 255, shapes, "the same training on two devices"), "19_same")

# %% [markdown]
# ## Kernels for a card
#
# Tutorial 16 had fused kernels. On a card they are written in CUDA, a dialect of C++. Nobody wrote them: a compiler does,
# from the definition of the op, when the first array on a card comes (tutorial 20 builds a small one). It needs no card for
# that. Here it traces $\text{gelu}(x) = x \, \Phi(x)$, groups the steps into one loop, and writes that:

# %%
graph = simplify(trace(mg.gelu, mg.zeros(4, 64)))
schedule, *_ = group(graph)
loop = describe(schedule[0], set(graph.outputs))
print(CudaWriter(graph.constants).function("gelu", loop))

# %% [markdown]
# Each of thousands of threads takes a few elements: the first $j$ is its own number among all threads, and then it goes on
# by as many as there are threads. `f4` is a number of 4 bytes, and `m::normal_cdf`, our $\Phi$, stands in
# [prelude.cu](../minigrad/compile/prelude.cu).
#
# Nobody has run it on a card. Two things have been done instead. NVIDIA's own compiler, which needs no card, compiles every
# loop for four generations of cards. And g++ compiles the same text for the processor, where the threads take turns, and then
# the results are compared with the definition made of ordinary ops, as for every other kernel.
#
# ## What is proven, and what is not
#
# | | how we know | still open |
# |---|---|---|
# | everything that trains uses only what CuPy has | the fake device; names and signatures of the real CuPy | how it rounds |
# | nothing is copied to the host by accident | the fake device refuses | |
# | the CUDA that is written is valid, and compute the right thing | NVIDIA's compiler; g++ on the CPU | real threads, real memory |
# | several cards | gradients are added up by MPI, tested with processes on CPUs | NCCL, by which cards talk, has never run |
# | how fast it is on a card | not known | everything |
#
# ## When would a card pay?
#
# We have no measurements, but the shape of the answer is known. On a processor an op has a fixed cost of one or two
# microseconds, as tutorial 16 measured. To start anything on a card takes longer. But then a card goes through its memory
# perhaps ten times as fast as a processor does. With $n$ numbers:
#
# $$t_{\text{cpu}} = 2\,\mu s + n \cdot 0.2\,ns \qquad t_{\text{card}} = 10\,\mu s + n \cdot 0.02\,ns$$
#
# These four numbers are guesses of the right size, not results. Both times are equal where $8\,\mu s = n \cdot 0.18\,ns$, at
# about 44,000 numbers. XOR will never be faster on a card. A GPT with a large batch will be.

# %%
counts = np.logspace(1, 8, 50)
on_cpu, on_card = 2e-6 + counts * 0.2e-9, 10e-6 + counts * 0.02e-9
print(f"equal at about {(10e-6 - 2e-6) / (0.2e-9 - 0.02e-9):,.0f} numbers")
guesses = {"processor": (counts, on_cpu), "card": (counts, on_card)}
show(mg.viz.lines(guesses, "when a card pays (a guess)", x="numbers", y="seconds for an op", log="both"), "19_when")

# %% [markdown]
# ## If you have a card
#
# | to | do |
# |---|---|
# | install CuPy | `pip install -e '.[cuda12]'`, or `cuda13`, to match your driver |
# | see whether it is found | `minigrad doctor` |
# | run the tests that need one | `python -m pytest -m gpu` |
# | train a model of the zoo on it | `minigrad train gpt --device cuda` |
# | train your own | `model.to("cuda")`, and batches with `device="cuda"` |
# | use float16, which cards are fast with | `optim.MixedPrecision(model, optimizer)`: see [tutorial 16](16_making_it_fast.py) |
# | use several | `mpiexec -n 2 python train.py`, where each process takes a card of its own: `cuda`, `cuda:1` |
# | measure | finish the work before you stop the clock: `x.numpy()`, or `cupy.cuda.Device().synchronize()` |
#
# Random numbers are drawn where the array lives, by different generators: the same seed gives other numbers on a card. (Here
# the weights were drawn on the host and then moved, so both trainings began alike.)
#
# And if a test fails on your card, or this script does, that is news: please tell us.
#
# ## Exercises
#
# 1. `def normal(x): return (x - np.mean(x)) / np.sqrt(np.var(x) + 1e-5)` runs on NumPy and fails on a card. Give it an `xp`, and
#    show that it gives the same on NumPy and on the fake device.
# 2. Count how often numbers leave the device in 60 steps of `trained("fake")`. Then write down the loss only in every tenth
#    step, and count again. (The ways out are the methods `get`, `item` and `tolist` of `fake_device.FakeArray`.)
# 3. Write an op of your own, $\text{softsquare}(x) = x^2 / (1 + x^2)$, with its slope. Check it with `mg.check.gradcheck`, and
#    show that value and gradient are the same on both devices.
#
# More to do, a file with holes that marks itself: `minigrad learn start 19`, then `minigrad learn check`.
#
# Solutions: [solutions/19_numpy_to_cupy.py](solutions/19_numpy_to_cupy.py)
#
# ## Read next
#
# - [minigrad/engine/backend.py](../minigrad/engine/backend.py): all that is known about devices.
# - [minigrad/compile/cuda.py](../minigrad/compile/cuda.py) writes CUDA, and starts it.
# - [fake_device.py](../tests/support/fake_device.py) and [cupy_names.py](../tests/support/cupy_names.py): the card that does not exist.
# - [tests/support/cuda_on_cpu.py](../tests/support/cuda_on_cpu.py): how CUDA runs without CUDA.
# - [20_a_compiler.py](20_a_compiler.py): a program that writes fused kernels.
