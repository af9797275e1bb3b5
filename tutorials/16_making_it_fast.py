# %% [markdown]
# # 16. Making it fast
#
# A model learns the same whether a step takes a second or a millisecond. But speed decides how much you can try in an
# afternoon.
#
# At the end you will have
#
# - counted what a training step must cost, and measured what it does cost;
# - seen what fused kernels, threads, several processes, gradient accumulation, half precision and LAMB are, each first with
#   numbers small enough for a pencil, and each checked: it must not change what is learned.
#
# Reading takes about 40 minutes, running about ten seconds. Times are of the machine that runs this; yours will differ.

# %%
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np
from showing import show

import minigrad as mg
from minigrad import kernels, nn, optim
from minigrad.nn import functional as F
from minigrad.runtime.threads import single_threaded_blas
from minigrad.train import ArrayBatches, Trainer
from minigrad.viz.drawing.axes import Scale, frame
from minigrad.viz.drawing.scene import Line, Scene, Text

# %% [markdown]
# ## What a step costs
#
# A weight $w$ meets a number $x$ in one multiplication and one addition: $\dots + w x$. That is two *operations*, and
# every weight does it once for every token (a token is a word or a piece of one). On the way back there are two such
# products, one for the gradient of $x$ and one for the gradient of $w$: four more operations. So with $N$ weights and $T$
# tokens a training step takes about
#
# $$\text{operations} \approx 6 \, N \, T$$
#
# Here is a small GPT, with 32 sentences of 32 tokens. How near do we come to what the processor can do at its best, which
# is a plain product of large matrices?


# %%
class SmallGPT(nn.Module):
    """ids (B, L) -> logits of the next token (B, L, 50)"""

    def __init__(self):
        self.embedding = nn.Embedding(50, 64)
        self.encoder = nn.Encoder(2, 64, heads=4, causal=True)
        self.head = nn.Linear(64, 50)

    def forward(self, ids):
        return self.head(self.encoder(self.embedding(ids)))


def total_loss(model, ids):
    """The sum of the losses of all next tokens."""
    logits = model(ids[:, :-1])
    return F.cross_entropy(logits.reshape(-1, 50), ids[:, 1:].reshape(-1), reduction="sum")


# %%
def seconds(work, repeats=3):
    """The least time that one core worked on it: what others do at the same time only makes it longer."""
    times = []
    with (
        single_threaded_blas()
    ):  # products of matrices on one core, too: cores that wait for each other would count as work
        for _ in range(repeats):
            start = time.process_time()
            work()
            times.append(time.process_time() - start)
    return min(times)


mg.manual_seed(0)
model = SmallGPT()
ids = np.random.default_rng(0).integers(0, 50, (32, 33))
weights, tokens = sum(p.size for p in model.parameters()), 32 * 32
square = np.ones((512, 512), "float32")
product = 2 * 512**3 / seconds(lambda: square @ square)
step = seconds(lambda: total_loss(model, ids).backward())
print(f"{weights:,} weights x {tokens:,} tokens x 6 = {6 * weights * tokens / 1e6:,.0f} million operations")
print(f"forward and backward take {step * 1000:.0f} ms: {6 * weights * tokens / step / 1e9:.1f} billion a second")
print(f"a product of large matrices reaches {product / 1e9:.1f} billion a second")

# %% [markdown]
# Where is the rest of the time? Let us time one of the simplest operations, $x + x$, on more and more numbers.
#
# $$\text{time} \approx \text{a fixed cost} + \text{count} \cdot \text{a little}$$

# %%
counts = [10**power for power in range(7)]
each = []
for count in counts:
    x = mg.ones(count)
    again = max(1, 20_000 // count)
    took = seconds(lambda x=x, again=again: [x + x for _ in range(again)]) / again
    each.append(1e9 * took / count)
    print(f"{count:9,} numbers: {took * 1e6:9.2f} µs, {each[-1]:8.2f} ns a number")
print(f"in the product of matrices an operation took {1e9 / product:.3f} ns")
picture = mg.viz.lines({"x + x": (counts, each)}, x="numbers", y="ns a number", log="both", points=True)
show(picture, "16_cost_of_an_op")

# %% [markdown]
# One number costs as much as a thousand: most of it is Python, NumPy and the graph being written down. For a million, the
# fixed cost is nothing. And still an addition takes many times as long as an operation in the product of matrices. There,
# every number that comes from memory is used hundreds of times. Here it is fetched for one addition, and the result is
# brought back. The processor waits for its memory.
#
# ## Fused kernels
#
# Layer norm, written as tutorial 11 has it, is a chain of small ops, and each reads all the numbers and writes all of them
# again. A *fused kernel* is one op that does the whole chain while the numbers are at hand.
#
# $$\text{LN}(x) = \gamma \, \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta \qquad \text{nine ops, or one}$$
#
# In minigrad each fused op has a *definition*, made of ordinary ops, and kernels that must agree with it. Those for NumPy are
# written by hand. Where numba is installed, a compiler (tutorial 20) writes a loop from the definition, and numba makes
# machine code of it.

# %%
norm, x = nn.LayerNorm(64), mg.randn(4, 64)
print(mg.viz.graph(norm, x), "\n")
print(mg.viz.graph(norm, x, fused=True))

# %%
kinds = ["definitions", "numpy"] + (["numba"] if kernels.implementation() == "numba" else [])
gradients, times = {}, {}
for kind in kinds:
    with kernels.use(kind):
        model.zero_grad()
        total_loss(model, ids).backward()
        gradients[kind] = model.head.weight.grad.numpy().copy()
        times[kind] = seconds(lambda: total_loss(model, ids).backward())
for kind in kinds:
    apart = np.abs(gradients[kind] - gradients["definitions"]).max() / np.abs(gradients["definitions"]).max()
    print(f"{kind:11}  {times[kind] * 1000:6.1f} ms   gradients differ by {apart:.0e}")
if "numba" not in kinds:
    print("numba's compiled kernels would be here as well: `pip install -e '.[fast]'`, without MINIGRAD_KERNELS=numpy")

# %% [markdown]
# The gradients are the same, but for rounding. NumPy's kernels save a little: their parts are still calls of NumPy,
# each of which goes through all the numbers. Those that numba compiles save most of the time.
#
# ## Threads: half a batch each
#
# A loss is a sum over examples, and the gradient of a sum is the sum of the gradients. So two workers can take half of the
# batch each, with the same weights, and add up what they found:
#
# $$\nabla \sum_{i=1}^{8} L_i = \nabla \sum_{i=1}^{4} L_i + \nabla \sum_{i=5}^{8} L_i$$
#
# $\nabla$ ("nabla") is short for "the gradient of". With a pencil: let $L_i = (w x_i)^2$ with $w = 1$ and $x = 1, 2, 3, 4$.
# The gradient is $2 w x_i^2$: 2, 8, 18, 32, together 60. One worker gets 2 + 8 = 10, the other 18 + 32 = 50.

# %%
w, x = mg.tensor(1.0), mg.tensor([1.0, 2.0, 3.0, 4.0])
gradient = mg.grad(lambda w, x: ((w * x) ** 2).sum())
print("together", gradient(w, x).item(), "  apart", gradient(w, x[:2]).item(), "+", gradient(w, x[2:]).item())

# %% [markdown]
# The `Trainer` does this on its own: one thread for each core, where the work is large enough to be worth it. A loss
# function hands it a sum and how many rows it is a sum of, so that it can put parts together without knowing what they are.

# %%
rng = np.random.default_rng(0)
inputs = rng.normal(size=(512, 128)).astype("float32")
targets = np.sin(inputs[:, :10] * 2)


def squares(model, batch):
    x, y = batch
    return {"loss": (((model(mg.tensor(x)) - mg.tensor(y)) ** 2).sum(), len(x))}


# %%
def losses_of(steps=10, batch=256, **settings):
    """Train a small network, and return the loss of each step."""
    mg.manual_seed(0)
    model = nn.Sequential(nn.Linear(128, 256), nn.GELU(), nn.Linear(256, 10))
    data = ArrayBatches((inputs, targets), batch_size=batch, shuffle=False)
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    trainer = Trainer(model, squares, data, optimizer, max_steps=steps, progress=False, **settings)
    losses = []
    trainer.on("step", lambda _, info: losses.append(info["loss"]))
    trainer.train()
    return np.array(losses)


# %%
found = {}
losses_of(steps=1)  # numba compiles when a kernel is first called; that shall not count for either
before = os.environ.get("MINIGRAD_THREADS", "")
for threads in (1, 2):
    os.environ["MINIGRAD_THREADS"] = str(threads)
    start = time.perf_counter()
    with single_threaded_blas():
        found[threads] = losses_of()
    print(f"{threads} thread(s): {time.perf_counter() - start:.2f} s, last loss {found[threads][-1]:.7f}")
os.environ["MINIGRAD_THREADS"] = before
print(f"the losses differ by at most {np.abs(found[1] - found[2]).max():.0e}")

# %% [markdown]
# The last digits may differ: $(a + b) + c$ and $a + (b + c)$ are rounded differently. Everything else is the same. (If the
# machine is busy with something else, two threads are no faster than one.)
#
# ## Gradient accumulation: a large batch in a small memory
#
# The same sum helps where a batch does not fit into memory. Take it in four pieces, one after the other, let the gradients
# add up, and take one step at the end. Memory is needed for one piece at a time: what the backward pass must remember of
# it. (`backward()` always adds to `.grad`; that is why `zero_grad()` exists.)
#
# One trap. Let a batch of three have the losses 1, 2, 3 and a batch of one the loss 10. The mean over all is 16 / 4 = 4. The
# mean of the two means is (2 + 10) / 2 = 6, and it is wrong: the lonely example counts three times as much as another.
#
# $$\text{mean} = \frac{\text{sum of all sums}}{\text{sum of all counts}}$$
#
# That is why a loss gives its sum and its count, and not its mean.


# %%
def peak(pieces):
    """Megabytes at the worst moment of a step on 32 sentences taken in so many pieces, and the gradient."""
    model.zero_grad()
    tracemalloc.start()
    for piece in np.split(ids, pieces):
        (total_loss(model, piece) / (32 * 32)).backward()
    most = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return most, model.head.weight.grad.numpy().copy()


whole, gradient = peak(1)
for pieces in (1, 2, 4, 8):
    most, again = peak(pieces)
    print(f"{pieces} piece(s): {most:5.1f} MB, gradients differ by {np.abs(again - gradient).max():.0e}")

# %%
one = losses_of(steps=5, batch=256)
four = losses_of(steps=5, batch=64, accumulate=4)
print("Trainer, one batch of 256:", one.round(6))
print("and accumulate=4 of 64:   ", four.round(6))

# %% [markdown]
# (`mg.recompute(f)` saves memory another way: it forgets what happens inside `f`, and computes it again when the backward
# pass needs it. It costs time, where accumulation costs none.)
#
# ## Mixed precision: half the bytes
#
# A number is usually stored in 32 bits (*float32*, seven digits). Half of that, *float16*, has three digits, takes half the
# memory, and graphics cards compute with it several times as fast. But it has three limits, and each needs an answer:

# %%
half = np.float16
with np.errstate(over="ignore"):
    print("the largest is 65504:  70000 becomes", np.float32(70000).astype(half))
print("the smallest is 6e-8:  1e-8 becomes", half(1e-8))
print("three digits:          1 + 0.0004 becomes", half(1) + half(0.0004))

# %% [markdown]
# The third one would stop all learning: a step that is small beside its weight vanishes. So the optimiser keeps *masters*,
# the weights in float32, and the model has copies of them in float16. Hence *mixed* precision.
#
# The second one is about gradients. A loss is a mean, perhaps over a million tokens, and then each token's gradient is
# divided by a million. In float16 it is 0. The cure is *loss scaling*: multiply the loss by a large number $S$, so that all
# gradients become $S$ times as large, and divide them by $S$ when they have safely arrived in float32.
#
# $$\nabla L = \frac{1}{S} \nabla (S \cdot L)$$

# %%
tiny, S = 3e-9, 65536
print("in float16:", half(tiny), "  scaled, and back in float32:", np.float32(half(tiny * S)) / S)

# %% [markdown]
# And the first one decides how large $S$ may be. Nobody knows beforehand, so `LossScaler` tries: when a gradient overflows
# to infinity, that step is skipped and $S$ is halved; after many good steps it is doubled again.
#
# Let us fit a sine with gradients as small as in a large model: we divide the loss by 100,000. (Adam does not mind. It only
# looks at how gradients compare with earlier ones.) Three times: in float32; in float16 with a scale of 1, which is none;
# and in float16 with a large scale.

# %%
places = mg.linspace(-2, 2, 256).reshape(-1, 1)
waves = (3 * places).sin()


# %%
def fitted(scaler=None, divisor=1.0):
    """Fit the sine, in float16 if there is a scaler: the errors, the scales, and which share of the gradients was 0."""
    mg.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = optim.Adam(model.parameters(), lr=0.01, eps=1e-20)
    mixed = optim.MixedPrecision(model, optimizer, scaler) if scaler else None
    errors, scales = [], []
    for _ in range(300):
        error = (((mixed or model)(places) - waves) ** 2).mean()
        backward = mixed.backward if mixed else mg.Tensor.backward
        backward(error / divisor)
        zeros = np.concatenate([p.grad.numpy().ravel() for p in model.parameters()]) == 0
        (mixed or optimizer).step()
        (mixed or optimizer).zero_grad()
        errors.append(error.item())
        scales.append(scaler.scale if scaler else 1.0)
    return errors, scales, zeros.mean()


# %%
runs = {
    "float32": fitted(divisor=1e5),
    "float16, scale 1": fitted(optim.LossScaler(init=1.0, growth=1.0), 1e5),
    "float16, scale 16,777,216": fitted(optim.LossScaler(init=2.0**24), 1e5),
}
across, up = Scale(0, 300, 50, 420), Scale(0.01, 1, 230, 30, log=True)
shapes = [*frame(across, up), Text(50, 20, "error, by step: float32 (wide), and float16 (narrow)", 11)]
for number, (name, (errors, _, zeros)) in enumerate(runs.items()):
    print(f"{name:25}  error {errors[-1]:.4f}   gradients that are 0: {zeros:.0%}")
    color = f"series-{number + 1}"
    shapes += [Line(list(zip(across(range(300)), up(errors))), color, 6 if name == "float32" else 1.6)]
    shapes += [Text(200, 50 + 17 * number, name, 11, color)]
show(Scene(440, 255, shapes, "mixed precision"), "16_mixed_precision")

# %% [markdown]
# Unscaled, more than half of the gradients are gone, and it learns badly. Scaled, it is as good as float32 (the one
# curve lies on the other). Now without the division: there the scale is too large at first, and the scaler finds its way.

# %%
errors, scales, _ = fitted(optim.LossScaler(init=2.0**24, interval=100))
for step, (before, after) in enumerate(zip([2.0**24, *scales], scales)):
    if after != before:
        print(f"step {step:3}: the scale goes from {before:>12,.0f} to {after:>12,.0f}")
print(f"error {errors[-1]:.4f}")

# %% [markdown]
# `Trainer(…, scaler=optim.MixedPrecision(model, optimizer))` is all it takes. Without a graphics card it saves memory and costs
# time: a CPU computes in float32 anyway, and converts on the way.
#
# ## Many processes: data parallel
#
# Threads share one machine. With *MPI* (Message Passing Interface) the same idea runs on many: `mpiexec -n 4 python train.py`
# starts the script four times. Each copy is a *rank*. All have the same weights and read the same data, but each computes
# only its share of the rows. Then they add up their gradients, so that every rank has the sum of all. This is called
# *all-reduce*, and it is the only thing they say to each other in a step:
#
# $$g = g_1 + g_2 + g_3 + g_4 \qquad \text{the same on every rank, so all take the same step}$$
#
# The script needs no changes. This one is trained by one process and then, where MPI is installed, by two.

# %%
SCRIPT = """
import numpy as np
import minigrad as mg
from minigrad import nn, optim
from minigrad.train import ArrayBatches, Trainer
from minigrad.runtime.process_group import process_group

def loss(model, batch):
    x, y = batch
    return {"loss": (((model(mg.tensor(x)) - mg.tensor(y)) ** 2).sum(), len(x))}

mg.manual_seed(0)
x = np.linspace(-2, 2, 64)[:, None]
model = nn.Sequential(nn.Linear(1, 16, dtype="float64"), nn.Tanh(), nn.Linear(16, 1, dtype="float64"))
data = ArrayBatches((x, np.sin(3 * x)), batch_size=16)
Trainer(model, loss, data, optim.Adam(model.parameters(), lr=0.01), max_steps=50, progress=False).train()
size = sum(float((p**2).sum().item()) for p in model.parameters()) ** 0.5
print(f"rank {process_group().rank} of {process_group().size}: the weights are {size:.12f} long")
"""


# %%
def run(*launcher):
    """Run the script; what its processes printed, or None if they could not be started."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "train.py"
        script.write_text(SCRIPT)
        done = subprocess.run([*launcher, sys.executable, script], capture_output=True, text=True, timeout=120)
    return sorted(done.stdout.splitlines()) if done.returncode == 0 else None


mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
has_mpi = mpiexec is not None and importlib.util.find_spec("mpi4py") is not None
print(*run(), sep="\n")
told = run(mpiexec, "-n", "2") if has_mpi else None
print(
    *(told or ["no working MPI here: `pip install -e '.[mpi]'` brings it, and two ranks print the same length"]),
    sep="\n",
)

# %% [markdown]
# However many ranks there are, they agree to ten digits or more. Where a model is too large for one machine its *weights* are
# divided, not the batch: *model parallel*. minigrad does not do this, but the idea is one line. Give one half of the columns
# of $W$ to each:
#
# $$x \, [\,W_1 \;\; W_2\,] = [\,x W_1 \;\; x W_2\,]$$

# %%
x, W = mg.randn(4, 6), mg.randn(6, 8)
halves = mg.concatenate([x @ W[:, :4], x @ W[:, 4:]], axis=1)
print("two halves and the whole differ by", f"{(halves - x @ W).abs().max().item():.0e}")

# %% [markdown]
# ## LAMB: steps for very large batches
#
# With a thousand workers the batch is huge and the steps are few, so each must be long. How long is too long? It depends on
# the layer. Adam moves every weight by about the learning rate. For weights around 1 a step of 0.01 is small. For
# weights around 0.01 it turns everything upside down.
#
# *LAMB* takes Adam's direction $u$ and makes the step of each layer as long as the layer itself is, times the learning rate
# $\eta$ ("eta"). The bars $\lVert w \rVert$ mean the length of a vector: the root of the sum of its squares.
#
# $$w \leftarrow w - \eta \, \frac{\lVert w \rVert}{\lVert u \rVert} \, u$$
#
# With a pencil: $w = (3, 4)$ is 5 long. At the first step Adam's direction is only signs, say $u = (1, 1)$, which is 1.414
# long. With $\eta = 0.1$ the step is 0.1 · 5 / 1.414 = 0.3536 for each weight.

# %%
w = nn.Parameter(mg.tensor([3.0, 4.0]))
lamb = optim.LAMB([w], lr=0.1, weight_decay=0.0)
(w * mg.tensor([0.2, 7.0])).sum().backward()  # the gradient is (0.2, 7)
lamb.step()
print("LAMB:", w.numpy(), "  by hand:", np.array([3.0, 4.0]) - 0.1 * 5 / 2**0.5)

# %%
sizes = (10.0, 1.0, 0.1, 0.01)
moved = []
for optimizer_type in (optim.Adam, optim.LAMB):
    mg.manual_seed(0)
    layers = [nn.Parameter(size * mg.randn(100)) for size in sizes]
    before = [layer.numpy().copy() for layer in layers]
    optimizer = optimizer_type(layers, lr=0.01)
    sum((layer * mg.randn(100)).sum() for layer in layers).backward()
    optimizer.step()
    moved.append([np.linalg.norm(p.numpy() - old) / np.linalg.norm(old) for p, old in zip(layers, before)])
for name, row in zip(("Adam", "LAMB"), moved):
    print(name, *[f"{share:8.2%} of weights around {size:g}" for share, size in zip(row, sizes)], sep=",  ")
columns = [f"±{size:g}" for size in sizes]
title, note = "the first step of four layers", "as a share of the length of their weights, by the size of these"
show(mg.viz.heatmap(np.array(moved), ["Adam", "LAMB"], columns, title=title, note=note, most=1.0), "16_lamb")

# %% [markdown]
# Adam moves the first layer by a thousandth and the last by about its whole length. LAMB moves each by a hundredth, which
# is the learning rate. The longer steps have to be, the more that matters. On small batches AdamW is as good.
#
# ## In which order
#
# Measure first. Then fewer and larger operations: batches and fused kernels. Then all cores. Then memory: accumulation, and
# half precision on a card. Then more machines, and LAMB if the batch gets very large. Up to the last, each gives the same
# steps as before, but for rounding; and that is worth a check each time, as we did here.
#
# ## Exercises
#
# 1. Three batches have 3, 1 and 2 examples. Accumulate the gradient of the mean over all six, and show that it is that of one
#    batch of six, and that the mean of the three means has another gradient.
# 2. What is the smallest power of two by which a loss must be scaled, so that a gradient of $10^{-9}$ keeps at least two
#    right digits in float16? And by which is it too large for a gradient of 3?
# 3. Four ranks in a ring each have an array of four numbers. Write an all-reduce in which every rank sends one number at a
#    time, and only to its neighbour. How many numbers does each send? Compare with sending everything to everybody.
#
# More to do, a file with holes that marks itself: `minigrad learn start 16`, then `minigrad learn check`.
#
# Solutions: [solutions/16_making_it_fast.py](solutions/16_making_it_fast.py)
#
# ## Read next
#
# - [minigrad/kernels/definitions.py](../minigrad/kernels/definitions.py): the fused ops, and
#   [minigrad/kernels/numpy_rows.py](../minigrad/kernels/numpy_rows.py): some of their kernels for NumPy. The others come from
#   [minigrad/compile/fused.py](../minigrad/compile/fused.py).
# - [minigrad/train/data_parallel.py](../minigrad/train/data_parallel.py) divides a batch among threads and ranks, and
#   [minigrad/runtime/process_group.py](../minigrad/runtime/process_group.py) is all that ranks say to each other.
# - [minigrad/optim/mixed_precision.py](../minigrad/optim/mixed_precision.py) and [minigrad/optim/rules/lamb.py](../minigrad/optim/rules/lamb.py).
# - [benchmarks/RESULTS.md](../benchmarks/RESULTS.md): how fast it is beside PyTorch, with the commands that measured it.
# - [17_making_it_small.py](17_making_it_small.py): fewer bytes for each weight.
