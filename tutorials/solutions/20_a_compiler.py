# %% [markdown]
# # Solutions to 20. A compiler in an afternoon
#
# They need the compiler of the tutorial. So we import it, which runs it once; what it prints is thrown away.

# %%
import contextlib
import importlib
import io
import math
import re
import sys
from pathlib import Path

import numpy as np

import minigrad as mg

HERE = Path(__file__).parent if "__file__" in globals() else Path.cwd()  # a notebook has no __file__
sys.path.insert(0, str(HERE.parent))  # before this folder, which has a file of the same name
with contextlib.redirect_stdout(io.StringIO()):
    c = importlib.import_module("20_a_compiler")
mg.manual_seed(1)
x, g = [mg.randn(c.ROWS, c.COLUMNS) for _ in range(2)]
TABLE = 4 * c.ROWS * c.COLUMNS  # bytes

# %% [markdown]
# ## 1. Softmax
#
# A largest number is found like a sum: it starts with something, and goes on with each number of the row. It starts with
# $-\infty$. The check refuses the new words, until we let them in.


# %%
def softmax(x):
    raised = (x - x.max(axis=1, keepdims=True)).exp()  # (R, C)
    return raised / raised.sum(axis=1, keepdims=True)


c.SUMS["max"] = ("f4(-np.inf)", "max({}, {})")
try:
    c.Fused(softmax, x)
    refused = False
except ValueError as refusal:
    refused = True
    print(refusal)
assert refused
c.OF_NUMPY.add("inf")
c.NAMES = re.compile(f"{c.NAMES.pattern}|max")

# %%
fused = c.Fused(softmax, x)
print(fused.source)
(loop,) = fused.loops
walks = max(c.known_in(loop).values()) + 1
_, moved = c.costs(fused)["fused"]
print(f"\n{walks} walks, {moved / TABLE:g} tables moved; op by op: {c.costs(fused)['traced'][1] / TABLE:.2f}")
assert np.allclose(fused(x.numpy()), softmax(x).numpy(), atol=1e-6)
assert walks == 3 and moved == 2 * TABLE

# %% [markdown]
# Three walks: for the largest, for the sum (where the powers of $e$ are kept), and for the result. $x$ is read once and the
# result is written once. One thing is different from minigrad's `max`. If there is a NaN in a row, `max` of Python may lose
# it.
#
# ## 2. Giving memory back
#
# Walk through the passes. A pass adds what it writes. Then what nobody reads any more can go, except for the
# inputs, which belong to the caller, and the outputs.


# %%
def peak(program, passes, give_back):
    """The bytes in use at the worst moment."""
    last_reader = {v: number for number, (_, reads, _) in enumerate(passes) for v in reads}
    stays = {*program.inputs, *program.outputs}
    alive, most = set(program.inputs), 0
    for number, (_, reads, writes) in enumerate(passes):
        alive |= set(writes)
        most = max(most, sum(4 * math.prod(v.shape) for v in alive))
        if give_back:
            alive -= {v for v in reads if last_reader[v] == number} - stays
    return most


program = c.both.program
alone, together = c.lanes(program, c.both.loops)
kept, given_back, in_loops = peak(program, alone, False), peak(program, alone, True), peak(program, together, True)
for name, most in (("kept to the end", kept), ("given back", given_back), ("fused", in_loops)):
    print(f"{name:16} {most / TABLE:5.2f} tables, {most / 1e6:.3f} MB")
assert in_loops == 4 * TABLE  # x, g, y and the gradient
assert in_loops < given_back < kept / 2

# %% [markdown]
# Giving back helps a lot, and costs nothing. Fused, there is nothing to give back: what lies between the ops never was an
# array. (The rows that a loop keeps are not counted. There are four, and a table has many.)
#
# ## 3. Weights for each column
#
# An array of shape $(1, C)$ fits into a loop as well. It has no rows, so its row is always 0.


# %%
def fits(shape, loop_shape):
    return shape in (loop_shape, (loop_shape[0], 1), (1, loop_shape[1]))


plain_operand = c.operand


def operand(x, loop, known, walk):
    is_weight = isinstance(x, c.Value) and x not in known and x.shape[0] == 1 < loop.shape[0]
    return f"{x.name}[0, col]" if is_weight else plain_operand(x, loop, known, walk)


c.fits, c.operand = fits, operand


# %%
def layer_norm(x, gamma, beta):
    return gamma * c.normalize(x) + beta


def gradient_of_x(x, gamma, beta, g):
    y = layer_norm(x, gamma, beta)
    return y, mg.autograd.grad(y, x, g, create_graph=True)[0]


def all_gradients(x, gamma, beta, g):
    y = layer_norm(x, gamma, beta)
    return y, *mg.autograd.grad(y, (x, gamma, beta), g, create_graph=True)


gamma, beta = [mg.randn(1, c.COLUMNS) for _ in range(2)]
tensors = [t.requires_grad_() for t in (x, gamma, beta)] + [g]
arrays = [t.detach().numpy() for t in tensors]
found = {}
for function in (gradient_of_x, all_gradients):
    fused = found[function] = c.Fused(function, *tensors)
    for ours, wanted in zip(fused(*arrays), function(*tensors)):
        wanted = wanted.detach().numpy()
        assert np.allclose(ours, wanted, rtol=1e-3, atol=1e-4 * np.abs(wanted).max())
    parts = [f"a loop of {len(part.steps)} steps" if part.shape else part.steps[0].op.name for part in fused.loops]
    print(f"{function.__name__}: {', '.join(parts)}; {c.costs(fused)['fused'][1] / TABLE:.2f} tables moved")
assert len(found[gradient_of_x].loops) == 1
assert sorted(part.steps[0].op.name for part in found[all_gradients].loops if not part.shape) == ["sum", "sum"]

# %% [markdown]
# With its gradient for $x$ it is one loop. The gradients of $\gamma$ and $\beta$ are sums *down* the columns,
# $\sum_r g_{rc} \hat{x}_{rc}$ and $\sum_r g_{rc}$. Such a sum is complete only when the last row is done. Nothing in the same loop
# could use it, and we have no line for it. So they stay ops, and $g \hat{x}$ has to be written to memory for one of them.
# `mg.compile` adds them up inside the loop, and uses them after it.
