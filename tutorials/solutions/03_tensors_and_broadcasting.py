# %% [markdown]
# # Solutions to 3. Tensors and broadcasting

# %%
import numpy as np

import minigrad as mg

# %% [markdown]
# ## 1. Rows that add up to 1
#
# `t.sum(axis=1)` of a `(2, 3)` has shape `(2,)`. Broadcasting lines shapes up at the right, so the 2 meets the 3 of
# the columns, and is refused.

# %%
table = mg.tensor([[1.0, 2.0, 1.0], [3.0, 3.0, 2.0]])
try:
    table / table.sum(axis=1)
    refused = False
except mg.MinigradError as mistake:
    refused = True
    print(mistake)
assert refused

# %% [markdown]
# Of a `(3, 3)` the sums have shape `(3,)`, which fits, but as a *row*: each column is divided by some row's sum. With
# `keepdims=True` the sums stay a column, `(3, 1)`, and each row meets its own.

# %%
square = mg.tensor([[1.0, 2.0, 1.0], [3.0, 3.0, 2.0], [5.0, 4.0, 1.0]])
wrong = square / square.sum(axis=1)
right = square / square.sum(axis=1, keepdims=True)
print("rows add up to", wrong.sum(axis=1), "and to", right.sum(axis=1))
assert not np.allclose(wrong.sum(axis=1).numpy(), 1)
assert np.allclose(right.sum(axis=1).numpy(), 1)

# %% [markdown]
# ## 2. Three gradients in NumPy
#
# Forward: $S = XW$, then $Z = S + b$, then the mean of $Z^2$ over its ten numbers. Backward: a mean over ten hands
# each $1/10$, and the square has slope $2Z$, so $G = 2Z / 10$ arrives at $Z$. The sum hands it on to $S$ as it is,
# and to $b$, which was stretched over five rows, summed over them. Then come the two formulas for a matrix product.

# %%
draw = np.random.default_rng(0)
X, W, b = draw.normal(size=(5, 3)), draw.normal(size=(3, 2)), draw.normal(size=2)
Z = X @ W + b  # (5, 3) @ (3, 2) + (2,) -> (5, 2)
G = 2 * Z / Z.size  # (5, 2)
by_hand = [G @ W.T, X.T @ G, G.sum(axis=0)]  # (5, 3), (3, 2), (2,)

tensors = [mg.tensor(array, requires_grad=True) for array in (X, W, b)]
((tensors[0] @ tensors[1] + tensors[2]) ** 2).mean().backward()
for name, ours, tensor in zip("XWb", by_hand, tensors):
    print(f"{name}: shape {ours.shape}, largest difference {abs(ours - tensor.grad.numpy()).max():.0e}")
    assert ours.shape == tensor.shape and np.allclose(ours, tensor.grad.numpy(), rtol=1e-12, atol=1e-15)

# %% [markdown]
# ## 3. A million numbers, two calculations
#
# If every $x_i$ moves by $h v_i$, then $f$ changes by $\sum_i gradient_i \cdot h v_i$, for a small $h$. A mistake in
# any gradient changes that sum, unless it happens to cancel, and with random $v$ it does not.


# %%
def f(x):
    return (mg.sin(x) * x.mean(axis=0)).sum()


def slope_along(f, x, v, h=1e-5):
    return (f(mg.tensor(x + h * v)).item() - f(mg.tensor(x - h * v)).item()) / (2 * h)


x, v = draw.normal(size=(1000, 1000)), draw.normal(size=(1000, 1000))
gradient = mg.grad(f)(mg.tensor(x)).numpy()
measured, computed = slope_along(f, x, v), float((gradient * v).sum())
print(f"measured {measured:.6f}, computed {computed:.6f}")
assert abs(measured - computed) < 1e-5 * abs(measured)

# %% [markdown]
# A gradient that is spoiled in one row out of a thousand no longer agrees.

# %%
gradient[7] *= 1.1
spoiled = float((gradient * v).sum())
print(f"measured {measured:.6f}, spoiled  {spoiled:.6f}")
assert abs(measured - spoiled) > 1e-4 * abs(measured)
