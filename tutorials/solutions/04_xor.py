# %% [markdown]
# # Solutions to 4. XOR
#
# The tutorial is [04_xor.py](../04_xor.py).

# %%
import numpy as np

import minigrad as mg
from minigrad.nn import functional as F

rows = mg.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], dtype="float64")
xor = mg.tensor([0.0, 1.0, 1.0, 0.0], dtype="float64")

# %% [markdown]
# ## 1. XNOR by hand
#
# The output was $\sigma(20h_1 + 20h_2 - 30)$, the AND of the two hidden units. XNOR is its opposite. Turn the sign of the
# score and every answer turns with it, because $\sigma(-s) = 1 - \sigma(s)$: the weights become −20 and −20, the bias 30.

# %%
hidden = F.sigmoid(rows @ mg.tensor([[20.0, -20.0], [20.0, -20.0]], dtype="float64") + mg.tensor([-10.0, 30.0]))
xnor = F.sigmoid(hidden @ mg.tensor([-20.0, -20.0], dtype="float64") + 30)
print("XNOR by hand:", xnor.numpy().round(4))
assert np.allclose(xnor.numpy(), [1, 0, 0, 1], atol=1e-4)

# %% [markdown]
# ## 2. Another ReLU network
#
# $a + b$ counts the ones: 0, 1, 1, 2. That is right except for the last row, which must lose 2. A second unit that is 1
# in the last row and 0 elsewhere is $h_2 = \mathrm{ReLU}(a + b - 1)$. So $y = h_1 - 2h_2$.

# %%
ones = rows.sum(axis=1)
h1, h2 = F.relu(ones), F.relu(ones - 1)
output = h1 - 2 * h2
print("h1", h1.tolist(), "h2", h2.tolist(), "output", output.tolist())
assert output.tolist() == xor.tolist()

# %% [markdown]
# ## 3. Take the bend away
#
# A line of a line is a line. With weights $W_1$, $W_2$ and biases $b_1$, $b_2$:
#
# $$(x W_1 + b_1) W_2 + b_2 = x (W_1 W_2) + (b_1 W_2 + b_2)$$
#
# So the weights of the one line are $W_1 W_2$, and its bias is $b_1 W_2 + b_2$. `Linear` keeps its weights with a row for each
# *output*, so they appear here transposed.

# %%
mg.manual_seed(0)
first, second = mg.nn.Linear(2, 8), mg.nn.Linear(8, 1)
flat = mg.nn.Sequential(first, second)
weight = first.weight.mT @ second.weight.mT  # (2, 8) @ (8, 1) -> (2, 1)
bias = first.bias @ second.weight.mT + second.bias  # (8,) @ (8, 1) -> (1,)
points = mg.randn(1000, 2)
difference = abs(flat(points) - (points @ weight + bias)).max().item()
print(f"largest difference at 1,000 points: {difference:.1e}")
assert difference < 1e-5

# %%
x, y = rows.astype("float32"), xor.astype("float32")[:, None]
optimizer = mg.optim.SGD(flat.parameters(), lr=0.5)
for _ in range(1000):
    optimizer.zero_grad()
    loss = F.binary_cross_entropy_with_logits(flat(x), y)
    loss.backward()
    optimizer.step()
right = int(((flat(x) > 0) == (y > 0.5)).sum())
print(f"after 1,000 steps: loss {loss.item():.4f}, {right} of 4 right")
assert right < 4
assert abs(loss.item() - 0.6931) < 1e-3  # log 2, the loss of a coin
