# %% [markdown]
# # Solutions to 6. Softmax, cross-entropy and P − y
#
# The tutorial is [06_softmax_and_cross_entropy.py](../06_softmax_and_cross_entropy.py).

# %%
import numpy as np

import minigrad as mg
from minigrad.nn import functional as F

# %% [markdown]
# ## 1. Sigmoid is softmax of two
#
# The first entry of softmax of $[s, 0]$ is $e^s / (e^s + e^0)$. Divide above and below by $e^s$: $1 / (1 + e^{-s})$, the sigmoid.
# The gradient along the first logit is $P - y$ as ever, and the second logit is always 0.

# %%
s = mg.linspace(-5, 5, 11, dtype="float64").requires_grad_()
pairs = mg.stack([s, mg.zeros_like(s)], axis=1)  # (11, 2)
by_softmax = F.softmax(pairs, axis=-1)[:, 0]
print("by softmax:", by_softmax.detach().numpy().round(4))
assert np.allclose(by_softmax.detach().numpy(), 1 / (1 + np.exp(-s.detach().numpy())))

truth = mg.tensor([0.0, 1.0] * 5 + [0.0], dtype="float64")
F.binary_cross_entropy_with_logits(s, truth, reduction="sum").backward()
assert np.allclose(s.grad.numpy(), (by_softmax - truth).detach().numpy())

# %% [markdown]
# ## 2. A truth that is not sure
#
# In the derivation, $-Z_\text{mat}$ becomes $-\sum_i y_i Z_i$, whose derivative is again $-y_i$; the second part stays, since the
# $y_i$ add up to 1. So it is still $P - y$, which is 0 only where $P = y$. There the loss is $-2 \cdot 0.5 \log 0.5 = \log 2 = 0.693$,
# and nobody can do better: half of the time the next word is the other one. What is left is the *entropy* of the truth.

# %%
y = mg.tensor([0.5, 0.5, 0.0, 0.0], dtype="float64")
Z = mg.tensor([0.1, 0.1, 0.1, 0.7], dtype="float64", requires_grad=True)
F.cross_entropy(Z, y).backward()
assert np.allclose(Z.grad.numpy(), (F.softmax(Z.detach(), axis=-1) - y).numpy())

optimizer = mg.optim.SGD([Z], lr=1.0)
for _ in range(5000):
    optimizer.zero_grad()
    loss = F.cross_entropy(Z, y)
    loss.backward()
    optimizer.step()
P = F.softmax(Z.detach(), axis=-1)
print("P:", P.numpy().round(3), "loss:", round(loss.item(), 4))
assert np.allclose(P.numpy(), y.numpy(), atol=1e-3)
assert abs(loss.item() - np.log(2)) < 1e-3

# %% [markdown]
# ## 3. One layer further back
#
# $Z_i = \sum_j x_j W_{ji}$, so $Z_i$ grows by $x_j$ when $W_{ji}$ grows by 1, and no other logit is touched. The chain rule:
#
# $$\frac{\partial L}{\partial W_{ji}} = x_j \, (P_i - y_i)$$
#
# In words: the weight from input $j$ to word $i$ changes with what the input was, times how wrong the word was. As arrays: a
# column $x$ times a row $P - y$, which gives a table of (3, 4).

# %%
mg.manual_seed(0)
x = mg.tensor([1.0, -2.0, 0.5], dtype="float64")
W = mg.randn(3, 4, dtype="float64").requires_grad_()
logits = x @ W  # (3,) @ (3, 4) -> (4,)
F.cross_entropy(logits, 0).backward()
by_pencil = x[:, None] * (F.softmax(logits, axis=-1) - mg.tensor([1.0, 0.0, 0.0, 0.0]))[None, :]  # (3, 1) * (1, 4)
print("by backward:\n", W.grad.numpy().round(4))
assert np.allclose(W.grad.numpy(), by_pencil.detach().numpy())
