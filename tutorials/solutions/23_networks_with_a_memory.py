# %% [markdown]
# # Solutions to 23. Networks with a memory

# %%
import numpy as np

import minigrad as mg
from minigrad import nn
from minigrad.nn import functional as F

mg.manual_seed(23)
random = np.random.default_rng(23)

# %% [markdown]
# ## 1. A GRU by hand

# %%
size = 5
layer = nn.GRU(3, size)
x, h = mg.randn(7, 2, 3), mg.zeros(2, size)
for step in range(7):
    new_r, new_z, new_n = mg.split(x[step] @ layer.weight_ih_l0.T + layer.bias_ih_l0, 3, axis=-1)
    old_r, old_z, old_n = mg.split(h @ layer.weight_hh_l0.T + layer.bias_hh_l0, 3, axis=-1)
    r, z = mg.sigmoid(new_r + old_r), mg.sigmoid(new_z + old_z)
    n = mg.tanh(new_n + r * old_n)
    h = (1 - z) * n + z * h
_, last = layer(x)
print("differs by", np.abs(h.numpy() - last.numpy()[0]).max())
assert np.allclose(h.numpy(), last.numpy()[0], atol=1e-6)

# %% [markdown]
# $r$ stands inside of the parenthesis, behind $U_n h + c_n$: so the bias $c_n$ is gated as well, and the two biases of $n$ cannot
# be added up beforehand, as those of the other gates can.
#
# ## 2. Truncated back-propagation

# %%
layer = nn.RNN(4, 6)
row = random.standard_normal((40, 1, 4)).astype(np.float32)
whole, end = layer(mg.tensor(row))
x, state, outs = mg.tensor(row, requires_grad=True), None, []
for start in range(0, 40, 10):
    out, state = layer(x[start : start + 10], None if state is None else state.detach())
    outs.append(out)
(state**2).sum().backward()
reached = np.flatnonzero(np.abs(x.grad.numpy()).sum(axis=(1, 2)))
print("a gradient have the inputs", reached[0] + 1, "to", reached[-1] + 1)
assert reached.tolist() == list(range(30, 40))
assert np.allclose(np.concatenate([out.numpy() for out in outs]), whole.numpy(), atol=1e-6)

# %% [markdown]
# Only the last piece has one. The states are the same as before: `detach` cuts the graph, and no value. So a text of any
# length can be learned from with the memory of ten steps; what is farther back can still be remembered, but nothing is
# learned about remembering it.
#
# ## 3. An LSTM that counts

# %%
length, hidden = 12, 8
layer, head = nn.LSTM(1, hidden), nn.Linear(hidden, 1)
params = [*layer.parameters(), *head.parameters()]
optimizer = mg.optim.AdamW(params, lr=0.02)
for _ in range(400):
    bits = random.integers(0, 2, (length, 64, 1)).astype(np.float32)
    loss = F.mse_loss(head(layer(mg.tensor(bits))[0]), mg.tensor(bits.cumsum(axis=0)))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(params, 1.0)
    optimizer.step()

bits = random.integers(0, 2, (length, 200, 1)).astype(np.float32)
counts, cells, state = bits.cumsum(axis=0)[..., 0], [], None
with mg.no_grad():
    said = head(layer(mg.tensor(bits))[0]).numpy()[..., 0]
    for step in range(length):
        _, state = layer(mg.tensor(bits[step : step + 1]), state)
        cells.append(state[1].numpy()[0])
cells = np.stack(cells)  # (length, 200, hidden)
agreement = [np.corrcoef(cells[..., unit].ravel(), counts.ravel())[0, 1] for unit in range(hidden)]
best = int(np.argmax(np.abs(agreement)))
print(
    f"off by {np.abs(said - counts).mean():.2f} on average; number {best} of the cell goes with the count: {agreement[best]:.3f}"
)
one = np.ravel([cells[counts == count, best].mean() for count in range(1, 9)])
print("its mean for 1, 2, … ones:", one.round(2))
assert np.abs(said - counts).mean() < 0.5
assert abs(agreement[best]) > 0.9

# %% [markdown]
# The cell is the only thing in a recurrent network that can be added to without end: a tanh ends at 1. So that is where
# an LSTM counts, up or down.
