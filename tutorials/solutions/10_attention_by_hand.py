# %% [markdown]
# # Solutions to 10. Attention by hand

# %%
import numpy as np

import minigrad as mg
from minigrad import nn
from minigrad.nn import functional as F


def matrix(rows):
    return mg.tensor(rows, dtype="float64")


X = matrix([[0.1, 0.2, -0.1, 0.4], [-0.3, 0.5, 0.1, -0.2], [0.4, -0.3, 0.2, 0.1]])
positions = matrix([[0, 1, 0, 1], [0.8415, 0.99995, 0.0001, 1], [0.9093, 0.9998, 0.0002, 1]])
W_Q = matrix([[1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
W_K = matrix([[0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
W_V = matrix([[1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 1, 0], [1, 0, 0, 1]])


def attention(x, divisor=2.0):
    weights = F.softmax((x @ W_Q) @ (x @ W_K).T / divisor, axis=-1)
    return weights, weights @ (x @ W_V)


# %% [markdown]
# ## 1. Another order
#
# The outputs are the same rows, in the new order: each word asks the same words as before and gets the same answers. With positions it is not
# so. The same word at another place is another row of numbers.

# %%
order = [2, 0, 1]  # "welcome", "You", "are"
_, output = attention(X)
_, reordered = attention(X[order])
assert np.allclose(reordered, output[order])

_, placed = attention(X + positions)
_, placed_again = attention(X[order] + positions)
print("largest change:", np.abs(placed_again.numpy() - placed[order].numpy()).max())
assert not np.allclose(placed_again, placed[order], atol=0.1)

# %% [markdown]
# ## 2. Too loud and too soft
#
# Divided by 0.01, the scores are so far apart that each word listens to one other alone, and the output is that one's row of $V$. Divided by 200 they
# are nearly equal: everybody listens to everybody, and each row is about the mean of all values.

# %%
x = X + positions
V = x @ W_V
loud, loud_output = attention(x, 0.01)
soft, soft_output = attention(x, 200)
print(loud.numpy().round(3), soft.numpy().round(3), sep="\n")
best = loud.numpy().argmax(-1)
assert np.allclose(loud.max(-1), 1, atol=1e-3) and np.allclose(loud_output, V[best], atol=1e-2)
assert np.allclose(soft, 1 / 3, atol=0.02) and np.allclose(soft_output, V.mean(0).numpy()[None], atol=0.05)

# %% [markdown]
# ## 3. The right positions

# %%
right, _ = attention(nn.SinusoidalPositions(4)(X))
wrong, _ = attention(x)
print("the document's positions:", wrong, "the right ones:", right, sep="\n")
print("who is listened to most:", wrong.numpy().argmax(-1), "and", right.numpy().argmax(-1))
print("the largest weight:", round(wrong.max().item(), 4), "and", round(right.max().item(), 4))

# %% [markdown]
# It matters a lot. With the document's positions all three words listen most to "welcome". With the right ones only "You" does; "are" listens to
# itself, and "welcome" to "You". The largest weight falls from 0.71 to 0.58. NumPy alone agrees:

# %%
waves = [[np.sin(p), np.cos(p), np.sin(p / 100), np.cos(p / 100)] for p in range(3)]
q, k = (X.numpy() + waves) @ W_Q.numpy(), (X.numpy() + waves) @ W_K.numpy()
powers = np.exp(q @ k.T / 2)
assert np.allclose(right, powers / powers.sum(-1, keepdims=True))
assert wrong.numpy().argmax(-1).tolist() == [2, 2, 2] and right.numpy().argmax(-1).tolist() == [2, 1, 0]
assert round(wrong.max().item(), 2) == 0.71 and round(right.max().item(), 2) == 0.58
