# %% [markdown]
# # Solutions to 25. Larger than one machine

# %%
import math

import numpy as np

from minigrad.parallel.pipeline import balanced, schedule
from minigrad.parallel.planning import simulated

# %% [markdown]
# ## 1. The other way round
#
# Cut by columns, each rank has a term of what goes *into* the GELU. A GELU of a term is no term of the GELU, so the sum has to
# come first. And cut by rows, the second matrix gives each rank only its part of the result, which has to be gathered.

# %%
random = np.random.default_rng(0)
x, up, down = random.normal(size=(5, 8)), random.normal(size=(32, 8)), random.normal(size=(8, 32))


def gelu(z):
    return 0.5 * z * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))


halves = (slice(0, 4), slice(4, 8))
inner = sum(x[:, half] @ up[:, half].T for half in halves)  # an all-reduce of (5, 32), four times as large as x
parts = [gelu(inner) @ down[half].T for half in halves]
result = np.concatenate(parts, axis=1)  # and an all-gather
assert np.allclose(result, gelu(x @ up.T) @ down.T)
wrong = sum(gelu(x[:, half] @ up[:, half].T) for half in halves)
assert not np.allclose(wrong, gelu(x @ up.T))
print("two collectives in the place of one, and the first moves four times as much")

# %% [markdown]
# ## 2. Microbatches for a small bubble
#
# (P - 1) / (M + P - 1) < 0.05 with P = 4 asks for M > 3 / 0.05 - 3 = 57.

# %%


def bubble(stages, pieces):
    """The share of a step in which a stage waits."""
    order = [schedule("1f1b", stages, stage, pieces) for stage in range(stages)]
    spans = simulated([(1.0, 2.0)] * stages, order, hop=0)
    return 1 - 3 * pieces / max(own[-1][3] for own in spans)


enough = next(pieces for pieces in range(1, 100) if bubble(4, pieces) < 0.05)
print(f"{enough} microbatches: {bubble(4, enough):.2%}")
assert enough == 58
assert math.isclose(bubble(4, 57), 0.05)

# %% [markdown]
# ## 3. Stages that cost unlike amounts
#
# The last block alone costs as much as three others, so its stage gets fewer blocks.

# %%
costs = [1.0] * 6 + [3.0]
counts = balanced(costs, 3)
print(counts)
assert counts == (3, 3, 1)
edges = [0, 3, 6, 7]
assert [sum(costs[a:b]) for a, b in zip(edges, edges[1:])] == [3.0, 3.0, 3.0]
