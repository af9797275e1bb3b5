# %% [markdown]
# # 25. Larger than one machine
#
# A model can be too large for one machine, or one machine too slow for it. Then several processes hold it together. How do
# you cut a network so that nothing it computes changes? There are three ways, and each fits in a few lines. You will have
#
# - a matrix product on two ranks, by columns and by rows, and the one sum that it costs;
# - a picture of who holds which slice of a GPT;
# - a pipeline, its bubbles, and the two schedules that everybody uses;
# - the weights, gradients and states of an optimiser, divided until each rank has its share (ZeRO);
# - a real run of two processes, its loss equal to that of one, and its time line, as measured;
# - the forecast for a model of 1.5 billion weights on eight machines that you do not have.
#
# Reading takes about forty minutes, running about 15 seconds. MPI (`pip install 'minigrad[mpi]'`) is needed for the real run
# only; without it the tutorial says so.

# %%
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from showing import show

import minigrad as mg
from minigrad.parallel import Layout, Mesh
from minigrad.parallel.cost_model import memory
from minigrad.parallel.pipeline import balanced, schedule
from minigrad.parallel.placement import placements
from minigrad.parallel.planning import Cluster, simulated
from minigrad.zoo.planning import plan

# %% [markdown]
# ## Cutting a matrix
#
# The MLP of a block is two products with a GELU in between. Take two ranks, and give each half of the neurons: half of the
# rows of the first matrix, and the columns of the second that go with them. GELU looks at each neuron by itself, so nobody has to
# know the other half. What each rank has at the end is one of two terms of a sum.

# %%
random = np.random.default_rng(0)
x = random.normal(size=(5, 8))  # five tokens of width 8
up, down = random.normal(size=(32, 8)), random.normal(size=(8, 32))


def gelu(z):
    return 0.5 * z * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))


whole = gelu(x @ up.T) @ down.T  # (5, 8) -> (5, 32) -> (5, 8)
terms = [gelu(x @ up[half].T) @ down[:, half].T for half in (slice(0, 16), slice(16, 32))]  # one for each rank
print("largest difference:", abs(sum(terms) - whole).max())

# %% [markdown]
# The sum is an *all-reduce*: every rank gives its term, and gets the sum. In the backward pass the same happens at the
# other end. Each rank knows what its own neurons say about the gradient of x, and the sum of both is the gradient. So an MLP costs
# one all-reduce forward and one backward, whatever its size. Attention is cut likewise, by heads: they do not look at
# each other until the projection after them.
#
# In minigrad both are ops with a gradient
# ([minigrad/parallel/collectives.py](../minigrad/parallel/collectives.py)), and a plan puts them into a model that knows
# nothing of ranks ([minigrad/parallel/tensor.py](../minigrad/parallel/tensor.py)). Here is what the plan makes of a small
# GPT for `tensor=2 pipeline=2`:

# %%
model = mg.zoo.create("gpt:nano", layers=3, dim=16, heads=4, context=16, vocab=300)
layout = Layout(tensor=2, pipeline=2)
blocks_of_stages = balanced([1.0, 1.0, 1.0], 2)
uses = {"tokens.weight": [0, 3], "positions.weight": [0]}  # after how many blocks these are used
held = placements(model, Mesh.imagined(layout, 4, 0), blocks_of_stages, uses)
print("blocks of each stage:", blocks_of_stages)
show(mg.viz.holders(held, layout), "25_holders")

# %% [markdown]
# Rows of the matrix of queries, keys and values, columns of the projection, rows and columns of the MLP. The table of tokens is
# cut by words, and both stages have it: the first embeds with it, the last one scores with it.
#
# ## A pipeline
#
# The other cut is between blocks. The first stage has the first blocks, the next one those after them. While the second one
# works, the first one would wait: so a batch is cut into microbatches. Let each forward take one unit of time, and each backward two.

# %%
stages, pieces = 3, 6
for kind in ("gpipe", "1f1b"):
    order = [schedule(kind, stages, stage, pieces) for stage in range(stages)]
    spans = simulated([(0.01, 0.02)] * stages, order, hop=0)
    end = max(own[-1][3] for own in spans)
    ahead = [max(sum(1 if k == "forward" else -1 for k, _ in own[: i + 1]) for i in range(len(own))) for own in order]
    print(
        f"{kind}: {end * 1000:.0f} ms, of which the bubble is {1 - pieces * 0.03 / end:.0%}; microbatches held: {ahead}"
    )
    show(mg.viz.pipeline_schedule([[(*span, 0.0) for span in own] for own in spans]), f"25_{kind}")

# %% [markdown]
# The bubble is the same: (stages - 1) / (microbatches + stages - 1). But GPipe holds the activations of all microbatches, and 1F1B those of
# as many as there are stages after it. How does a stage wait? A send is an op whose gradient is a receive. The backward of the
# first stage begins with it, and a schedule is no more than an order of forwards and backwards.
#
# ## Dividing what is held alike
#
# What is left of the ranks divide the batch: each has its rows, and the gradients are summed. But they all hold the same
# weights, the same gradients after the sum, and the same two averages of Adam. ZeRO divides these, step by step.

# %%
sizes = {}
for shard in (0, 1, 2, 3):
    mesh = Mesh.imagined(Layout(shard=shard), 4, 0)
    held = placements(model, mesh, (3,), {})
    sizes[shard] = memory(held, mesh)
    print(f"shard={shard}: {sizes[shard]['parameters']:8,} bytes of weights, {sizes[shard]['optimizer']:8,} of Adam's")
print("share of a rank of four:", sum(sizes[3].values()) / sum(sizes[0].values()))

# %% [markdown]
# With `shard=3` nobody has a whole matrix. A block gathers its weights just before it computes, and lets go of them. Its backward
# gathers them again, and the gradient of a gather is a *reduce-scatter*: a sum of which each rank gets its part, which is
# just what its part of the optimiser needs.
#
# ## A real run
#
# Enough of paper. Two processes, two stages; each notes what it does when. The loss is that of one process, dropout included:
# whether an element is dropped depends on its place in the whole batch, not on who computes it.

# %%
PROGRAM = """
import json
import numpy as np
import minigrad as mg
from minigrad import optim
from minigrad.data import BlockBatch
from minigrad.parallel import Layout, timeline
from minigrad.runtime import process_group
from minigrad.train import Trainer

mg.manual_seed(0)
model = mg.zoo.create("gpt:nano", layers=4, dim=64, heads=4, context=32, vocab=300, dropout=0.1)
rows = np.random.default_rng(0).integers(5, 300, (16, 33))
optimizer = optim.AdamW(model.parameters(), lr=1e-3)
ranks = process_group()
layout = Layout(pipeline=ranks.size, stages=(2, 2) if ranks.size == 2 else None)

def loss(model, batch):
    wrong = model(batch.inputs, targets=batch.targets)
    return {"loss": (wrong, batch.targets.size)}

data = [BlockBatch(rows[:, :-1], rows[:, 1:])]
options = {"max_steps": 6, "seed": 1, "progress": False, "compile": "off"}
trainer = Trainer(model, loss, data, optimizer, parallel=layout, **options)
losses, spans = [], []
trainer.on("step", lambda _, info: losses.append(info["loss"]))
trainer.on("step", lambda _, info: (spans.extend(seen) if info["step"] == 6 else None, seen.clear()))
with timeline.recorded() as seen:
    trainer.train()
everyone = ranks.all_gather(spans)
if ranks.rank == 0:
    print(json.dumps([losses, everyone]))
"""


def started(ranks):
    """What so many processes print, or None without MPI."""
    mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
    if ranks > 1 and (mpiexec is None or find_spec("mpi4py") is None):
        return None
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "train.py"
        script.write_text(PROGRAM)
        command = [sys.executable, str(script)]
        command = command if ranks == 1 else [str(mpiexec), "-n", str(ranks), *command]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=dict(os.environ))
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


alone, together = started(1), started(2)
if together is None:
    print("MPI is not installed, so two processes cannot be started: pip install 'minigrad[mpi]'")
else:
    print("one process:   ", [round(loss, 6) for loss in alone[0]])
    print("two processes: ", [round(loss, 6) for loss in together[0]])
    show(mg.viz.pipeline_schedule(together[1], ["stage 0", "stage 1"]), "25_measured")

# %% [markdown]
# The dashed part of a box was spent waiting. On a laptop two processes share the cores, so do not look for a speed-up here:
# look for the shape.
#
# ## Machines that you do not have
#
# Every number above was a formula or a measurement. So is the forecast for GPT-2's largest form, on eight machines of 64 cores
# with 128 GB each: work, bytes and bubbles of each layout, over a network of 10 Gbit/s.

# %%
cluster = Cluster(machines=8, cores=64, memory=128e9, network=1.25e9)
found = plan("gpt:gpt2-xl", cluster, batch=64)
for one in found[:5]:
    shown = f"tensor={one.layout.tensor} pipeline={one.layout.pipeline} shard={one.layout.shard} data={one.data}"
    print(f"{shown}: {one.bytes / 1e9:6.1f} GB a rank, {one.seconds:6.1f} s a step, bubble {one.bubble:.0%}")

# %% [markdown]
# The same from the command line, with the speed of your own cores: `minigrad plan gpt:gpt2-xl --machines 8 --cores 64 --memory 128G`.
#
# ## Exercises
#
# 1. Cut the MLP the other way round: the first matrix by columns, the second by rows. How many sums does it cost now, and
#    why?
# 2. How many microbatches does a pipeline of four stages need for a bubble under 5 %? Compute it, then let `simulated` check.
# 3. Stages need not be equal. Let the last one be twice as slow. What does `balanced` do with seven blocks whose
#    last costs three times as much as each other?
#
# More to do, a file with holes that marks itself: `minigrad learn start 25`, then `minigrad learn check`.
#
# Solutions: [solutions/25_larger_than_one_machine.py](solutions/25_larger_than_one_machine.py)
#
# ## Read next
#
# - [docs/parallel.md](../docs/parallel.md): all settings, formulas, and how a model is cut.
# - [minigrad/parallel/pipeline.py](../minigrad/parallel/pipeline.py): stages and schedules.
# - [minigrad/parallel/sharded.py](../minigrad/parallel/sharded.py): ZeRO in one op.
