# %% [markdown]
# # Solutions to 14. GPT: learning from text alone

# %%
from pathlib import Path

import numpy as np

import minigrad as mg
from minigrad import nn
from minigrad.decode import Sampling
from minigrad.nn import functional as F

HERE = Path(__file__).parent if "__file__" in globals() else Path.cwd()  # a notebook has no __file__

# %% [markdown]
# ## 1. One pass or many

# %%
gpt = mg.zoo.load(HERE.parent / "runs" / "gpt")
tokens = np.array(gpt.tokenizer.encode("One day, Ana met a young dog."))
with mg.no_grad():
    at_once = F.cross_entropy(gpt.model(tokens[None, :-1])[0], mg.tensor(tokens[1:])).item()

surprises, rows = [], 0
for place in range(1, len(tokens)):
    with mg.no_grad():
        logits = gpt.model(tokens[None, :place])[0, -1]  # what comes after the first `place` tokens
    surprises.append(-F.log_softmax(logits, axis=-1)[int(tokens[place])].item())
    rows += place
print(f"in one pass: {at_once:.5f} with {len(tokens) - 1} rows; in many: {np.mean(surprises):.5f} with {rows} rows")
assert np.isclose(at_once, np.mean(surprises), atol=1e-4)
assert rows == len(tokens) * (len(tokens) - 1) // 2

# %% [markdown]
# They are the same, since no place sees what comes after it. Without the mask training would cost as much as the second
# way: for a text of 1,000 tokens that is 500 times the rows.
#
# ## 2. Top-p by hand
#
# Sort the probabilities, the largest first, and add them up. A token is kept if those *before* it are together below
# $p$: then the sum has not reached $p$ yet, and one more is needed.


# %%
def nucleus(logits, p):
    likely = np.exp(logits - logits.max())
    likely /= likely.sum()
    kept, total = np.zeros_like(likely), 0.0
    for token in np.argsort(-likely):
        if total >= p:
            break
        kept[token] = likely[token]
        total += likely[token]
    return kept / kept.sum()


random = np.random.default_rng(0)
rows = 3 * random.normal(size=(100, 20))
for p in (0.1, 0.5, 0.9, 1.0):
    ours = np.stack([nucleus(row, p) for row in rows])
    assert np.allclose(ours, Sampling(top_p=p).probabilities(rows))
    print(f"p = {p}: {np.mean((ours > 0).sum(axis=1)):.1f} of 20 tokens are kept on average")

# %% [markdown]
# In the ratio of two probabilities the sum below the fraction falls out. What is left is
#
# $$\frac{P_i}{P_j} = \frac{e^{Z_i / \tau}}{e^{Z_j / \tau}} = \left(\frac{e^{Z_i}}{e^{Z_j}}\right)^{1/\tau}$$
#
# So at $\tau = 2$ a token that was 100 times as likely is only 10 times as likely.

# %%
plain = Sampling().probabilities(rows)
for temperature in (0.5, 2.0, 3.0):
    warm = Sampling(temperature).probabilities(rows)
    assert np.allclose(warm[:, 1] / warm[:, 0], (plain[:, 1] / plain[:, 0]) ** (1 / temperature))

# %% [markdown]
# ## 3. Where the square catches up
#
# $4 d n^2 = 24 d^2 n$. Divide by $4dn$: $n = 6d$. For $d = 16$ that is 96 words.
#
# To check it, the count has to be divided into its two parts. Twice the words have four times the squares, and twice
# the rest. So in $\text{cost}(2n) - 2 \, \text{cost}(n)$ the rest falls out, and twice the squares remain.


# %%
def operations(words, dim=16):
    block = nn.TransformerBlock(dim, heads=2, causal=True)
    boxes = mg.viz.graph(block, mg.zeros(1, words, dim)).boxes
    return sum(box.flops for box in boxes if box.label.startswith("matmul"))


def square_part(words):
    return (operations(2 * words) - 2 * operations(words)) // 2


for words in (48, 96, 192):
    square, everything = square_part(words), operations(words)
    print(f"{words:3} words: {square:9,} operations for n², {everything - square:9,} for the rest")
assert square_part(96) == operations(96) - square_part(96) == 24 * 16**2 * 96
