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
positions = nn.SinusoidalPositions(4)(mg.zeros(3, 4, dtype="float64"))
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
# ## 3. Further back
#
# The words are the same, and so are the distances between them, but not the weights: with matrices of zeros and ones it matters
# where in the text the sentence stands. A trained network can learn matrices that look at distances.

# %%
here, _ = attention(x)
back, _ = attention(nn.SinusoidalPositions(4)(X, start=5))
print("at 0, 1, 2:", here, "at 5, 6, 7:", back, sep="\n")
print("who is listened to most:", here.numpy().argmax(-1), "and", back.numpy().argmax(-1))
assert here.numpy().argmax(-1).tolist() == [2, 1, 0] != back.numpy().argmax(-1).tolist()

# %% [markdown]
# NumPy alone agrees:

# %%
waves = [[np.sin(p), np.cos(p), np.sin(p / 100), np.cos(p / 100)] for p in (5, 6, 7)]
q, k = (X.numpy() + waves) @ W_Q.numpy(), (X.numpy() + waves) @ W_K.numpy()
powers = np.exp(q @ k.T / 2)
assert np.allclose(back, powers / powers.sum(-1, keepdims=True))
