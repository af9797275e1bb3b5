# %% [markdown]
# # Solutions to 11. Inside a block

# %%
import numpy as np

import minigrad as mg
from minigrad import nn

# %% [markdown]
# ## 1. What layer norm forgets
#
# Multiply a row by 3 and add 2: its mean becomes $3\mu + 2$ and its standard deviation $3\sigma$. In $(x - \mu) / \sigma$ the 2
# is subtracted and the 3 cancels. So layer norm forgets where a row lies and how wide it is, and keeps its shape.
# All evenly spaced, growing rows have one shape: each is $a + s \cdot (0, 1, 2, 3)$.

# %%
norm = nn.LayerNorm(4, eps=0.0, dtype="float64")
x = mg.tensor(np.random.default_rng(0).normal(size=(5, 4)))
assert np.allclose(norm(3 * x + 2).numpy(), norm(x).numpy())

evenly = mg.tensor(np.array([[0.0, 1, 2, 3], [7, 7.5, 8, 8.5], [-100, 0, 100, 200]]))
print(norm(evenly))
assert np.allclose(norm(evenly).numpy(), np.array([-3, -1, 1, 3]) / 5**0.5)

# %% [markdown]
# In the document each column of $W_2$ is the one before it plus 0.6, and each bias the one before it plus 0.01. So the result
# of column $j$ is that of column 0, plus $j$ times (0.6 times the sum of the hidden numbers, plus 0.01): evenly spaced,
# whatever the words are. Any input gives the same row.

# %%
W_1 = mg.tensor(np.arange(1, 25).reshape(4, 6) / 10)
hidden = (mg.tensor(np.random.default_rng(1).normal(size=(20, 4))) @ W_1).clip(0, None)  # (20, 4) -> (20, 6)
made = hidden @ W_1.T + mg.tensor(np.arange(1, 5) / 100)  # (20, 6) -> (20, 4)
assert np.allclose(norm(made).numpy(), np.array([-3, -1, 1, 3]) / 5**0.5)
print("twenty random words, one result:", norm(made)[0])

# %% [markdown]
# ## 2. OR and AND in one neuron
#
# Serena and Venus are two directions, and never both there. So the key is Serena + Venus + Williams and the bias −1: a first
# name counts 1, the last name counts 1, and only both together get above 1. For three words that must all be there the sum
# is 3 at most and 2 if one is missing, so the bias is −2.

# %%
names = ["Serena", "Venus", "Williams", "Michael", "Jordan", "retired", "tennis"]
direction = dict(zip(names, np.linalg.qr(np.random.default_rng(0).normal(size=(16, 16)))[0]))


def neuron(key, bias, *words):
    """How much it fires for a stream that holds these words."""
    stream = sum((direction[word] for word in words), np.zeros(16))
    return max(0.0, sum(direction[word] for word in key) @ stream + bias)


sisters = ["Serena", "Venus", "Williams"]
for words, wanted in (
    (("Serena", "Williams"), 1), (("Venus", "Williams"), 1), (("Serena",), 0), (("Williams",), 0), ((), 0),
    (("Serena", "Jordan"), 0), (("Michael", "Williams"), 0), (("Michael", "Jordan"), 0),
):  # fmt: skip
    stream = sum((direction[word] for word in words), np.zeros(16))
    stream = stream + neuron(sisters, -1, *words) * direction["tennis"]
    assert np.isclose(direction["tennis"] @ stream, wanted), words
    print(f"{' '.join(words):16} tennis {abs(direction['tennis'] @ stream):.2f}")

three = ["Michael", "Jordan", "retired"]
assert np.isclose(neuron(three, -2, *three), 1)
for missing in three:
    assert np.isclose(neuron(three, -2, *[word for word in three if word != missing]), 0)

# %% [markdown]
# ## 3. Padding that nobody sees
#
# The masked words get the weight $e^{-\infty} = 0$ in every softmax, so nothing of them reaches the real words, in any layer.
# (They still have rows of their own, which nobody reads.)

# %%
mg.manual_seed(0)
encoder = nn.Encoder(2, dim=8, heads=2).eval()
sentences = mg.randn(2, 5, 8)  # of the second sentence, words 3 and 4 are nonsense
alone = encoder(sentences[1:, :3]).numpy()  # (1, 3, 8)
masked = encoder(sentences, mask=nn.padding_mask([5, 3])).numpy()[1:, :3]
unmasked = encoder(sentences).numpy()[1:, :3]
print("with the mask they differ by   ", f"{np.abs(masked - alone).max():.1e}")
print("without the mask they differ by", f"{np.abs(unmasked - alone).max():.1e}")
assert np.allclose(masked, alone, atol=1e-5)
assert np.abs(unmasked - alone).max() > 0.01
