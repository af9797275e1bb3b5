# %% [markdown]
# # Solutions to 7. Optimisers
#
# The tutorial is [07_optimisers.py](../07_optimisers.py).

# %%
import numpy as np

import minigrad as mg
from minigrad.optim import SGD, Adam, Optimizer, Schedule


def walk(make, steps):
    """Where an optimiser ends in the valley (x² + 50 y²) / 2, from (-4, 1)."""
    p = mg.tensor([-4.0, 1.0], dtype="float64", requires_grad=True)
    optimizer = make([p])
    for _ in range(steps):
        optimizer.zero_grad()
        ((p[0] ** 2 + 50 * p[1] ** 2) / 2).backward()
        optimizer.step()
    return p.detach().numpy()


# %% [markdown]
# ## 1. The speed limit
#
# Below the limit $y$ has shrunk after many steps, above it has grown. Halve the interval in which the limit must lie, again
# and again. Momentum nearly doubles the limit of plain SGD, which is $2 / 50 = 0.04$.

# %%
low, high = 0.02, 0.1
for _ in range(12):
    middle = (low + high) / 2
    _, y = walk(lambda weights, rate=middle: SGD(weights, lr=rate, momentum=0.8), 200)
    low, high = (middle, high) if abs(y) < 1 else (low, middle)
limit = 2 * (1 + 0.8) / 50
print(f"found {low:.4f}, by the theory {limit:.4f}")
assert abs(low - limit) < 0.001

# %% [markdown]
# ## 2. An optimiser of your own
#
# An optimiser says which options it has, which arrays it keeps for each weight (here none), and how it changes a weight `p`,
# given its gradient `g`. It must write into `p`, not make a new array. With both betas at 0, Adam's means are just the last
# gradient and its square, and $g / \sqrt{g^2}$ is the sign.


# %%
class Sign(Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr}, {})

    def buffers(self, group):
        return ()

    def update(self, xp, p, g, state, group):
        p -= group["lr"] * xp.sign(g)


for steps in (1, 5, 50):
    own, adam = walk(lambda w: Sign(w, lr=0.03), steps), walk(lambda w: Adam(w, lr=0.03, betas=(0.0, 0.0)), steps)
    print(f"after {steps:2} steps: own {own.round(6)}, Adam {adam.round(6)}")
    assert np.allclose(own, adam, atol=1e-6)
assert np.allclose(walk(lambda w: Sign(w, lr=0.03), 1), [-3.97, 0.97])

# %% [markdown]
# ## 3. A schedule of your own
#
# A schedule gives the rate at a step, from the rate `base` that the optimiser was given. It is asked for the rate of step 0 at
# once, so its own numbers have to be there before `super().__init__`.


# %%
class Triangle(Schedule):
    def __init__(self, optimizer, total, warmup):
        self.total, self.warmup = total, warmup
        super().__init__(optimizer)

    def at(self, step, base):
        if step < self.warmup:
            return base * step / self.warmup
        return base * max(self.total - step, 0) / (self.total - self.warmup)


optimizer = SGD([mg.zeros(1, requires_grad=True)], lr=0.5)
schedule = Triangle(optimizer, total=50, warmup=10)
rates = []
for _ in range(60):
    rates.append(optimizer.param_groups[0]["lr"])
    schedule.step()
print("rates at steps 0, 5, 10, 30, 50, 59:", [rates[step] for step in (0, 5, 10, 30, 50, 59)])
assert np.allclose([rates[step] for step in (0, 5, 10, 30, 50, 59)], [0, 0.25, 0.5, 0.25, 0, 0])
assert np.argmax(rates) == 10
