# %% [markdown]
# # Solutions to 5. A line and a curve
#
# The tutorial is [05_line_and_curve.py](../05_line_and_curve.py).

# %%
import numpy as np

import minigrad as mg
from minigrad.nn import functional as F

# %% [markdown]
# ## 1. A pulse by hand
#
# From 0 to 0.1 it rises by 1, so the slope there is 10. At 0 the slope changes from 0 to 10, at 0.1 back to 0, at 1 to −10, and
# at 1.1 back to 0. The changes are 10, −10, −10, 10.


# %%
def pulse(x):
    return 10 * (F.relu(x) - F.relu(x - 0.1) - F.relu(x - 1) + F.relu(x - 1.1))


x = mg.tensor([-5.0, 0.0, 0.05, 0.1, 0.5, 1.0, 1.05, 1.1, 5.0], dtype="float64")
print("pulse:", abs(pulse(x)).numpy().round(6))
assert np.allclose(pulse(x).numpy(), [0, 0, 0.5, 1, 1, 1, 0.5, 0, 0])

# %% [markdown]
# ## 2. Folding
#
# $t$ goes up from 0 to 1 and down again: two pieces. Put into itself, the way up passes the hat once, and so does the way
# down: two hats, four pieces. Each time the number doubles: $2^n$ pieces, made by $2n$ units. Side by side, $2n$ hinges make no
# more than $2n + 1$ pieces. This is what depth is good for.
#
# To count pieces, ask minigrad for the slope at many places, and count how often it changes.


# %%
def fold(x, times):
    for _ in range(times):
        x = 2 * F.relu(x) - 4 * F.relu(x - 0.5)
    return x


places = (mg.arange(4096, dtype="float64") + 0.5) / 4096  # between the places where a piece can end
for times in range(1, 9):
    slopes = mg.grad(lambda x, times=times: fold(x, times).sum())(places).numpy()
    pieces = 1 + int((slopes[1:] != slopes[:-1]).sum())
    print(f"folded {times} times: {pieces:3} pieces, {2 * times:2} units")
    assert pieces == 2**times

# %% [markdown]
# ## 3. No bends
#
# Lines of lines are lines. Gradient descent on the flat network finds the best of them, and so its loss is that of least
# squares, which NumPy computes for us.

# %%
x = mg.linspace(-10, 10, 100)[:, None]
y = mg.sin(x)
mg.manual_seed(0)
flat = mg.nn.Sequential(mg.nn.Linear(1, 10), mg.nn.Linear(10, 10), mg.nn.Linear(10, 1))
optimizer = mg.optim.Adam(flat.parameters(), lr=0.01)
schedule = mg.optim.Cosine(optimizer, total=1000)
for _ in range(1000):
    optimizer.zero_grad()
    loss = F.mse_loss(flat(x), y)
    loss.backward()
    optimizer.step()
    schedule.step()
slope, offset = np.polyfit(x.numpy()[:, 0], y.numpy()[:, 0], 1)
best = float(((slope * x.numpy() + offset - y.numpy()) ** 2).mean())
print(f"three layers without bends: loss {loss.item():.5f}, the best line {best:.5f}")
assert abs(loss.item() - best) < 1e-3
