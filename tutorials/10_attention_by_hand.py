# %% [markdown]
# # 10. Attention by hand: "You are welcome"
#
# "Welcome" greets somebody at a door, and answers somebody who said thanks. Which one it is, the words around it tell.
# *Attention* is how each word asks the others, in a *transformer*: the kind of network that translators and chatbots are
# made of. You compute it here by a handful of multiplications, then by one call. Reading takes 20 minutes, running 2 seconds.

# %%
import numpy as np
from showing import show

import minigrad as mg
from minigrad import nn
from minigrad.learn.sketches import question_label_content
from minigrad.nn import functional as F

WORDS = ["You", "are", "welcome"]


def matrix(rows):
    return mg.tensor(rows, dtype="float64")


X = matrix([[0.1, 0.2, -0.1, 0.4], [-0.3, 0.5, 0.1, -0.2], [0.4, -0.3, 0.2, 0.1]])  # a vector for each word: tutorial 8
x = nn.SinusoidalPositions(4)(X)  # (3 words, 4 numbers), plus the code of its position: tutorial 9
print(x)

# %% [markdown]
# ## A question, a label, a content
#
# Three people meet at a party. Each has a *question* in mind, wears a *label* that says what they can talk about, and has
# something to *tell*. You compare your question with all the labels. The better one fits, the longer you listen to that
# person. You take home a mixture of what everybody told.

# %%
show(question_label_content(), "10_question_label_content")

# %% [markdown]
# A word's *query* is its question, its *key* the label, its *value* what it tells. Three learned matrices make these vectors
# from its row; ours are of zeros and ones.
#
# $Q = x \, W_Q \qquad K = x \, W_K \qquad V = x \, W_V$
#
# A number of $Q$ is a row of $x$ times a column of $W_Q$, number by number, added up; `@` does all twelve at once.

# %%
W_Q = matrix([[1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
W_K = matrix([[0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
W_V = matrix([[1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 1, 0], [1, 0, 0, 1]])
Q, K, V = x @ W_Q, x @ W_K, x @ W_V
print(Q, "\nfirst row, third column:", round(sum(a * b for a, b in zip(x[0].tolist(), W_Q[:, 2].tolist())), 8))

# %% [markdown]
# ## Scores: does the label fit the question?
#
# How well key $k$ fits query $q$ is their dot product, $\text{scores}_{i,j} = q_i \cdot k_j$. All nine are one product, $Q \, K^T$,
# where $K^T$ is $K$ with rows and columns exchanged. Row $i$ belongs to the word that asks, column $j$ to the one that is asked.
#
# Each score is divided by $\sqrt{d_k}$, where $d_k$ is how many numbers a key has: here 4, so by 2. For dot products of random
# vectors spread like $\sqrt{d_k}$, and from scores like 30 and -30 softmax makes one weight of 1, all others 0, and slopes
# of 0: nothing could be learned any more.

# %%
scores = Q @ K.T  # (3, 4) x (4, 3) -> (3, 3)
print(scores)
mg.manual_seed(10)
for size in (4, 64, 1024):
    spread = (mg.randn(2000, size) * mg.randn(2000, size)).sum(1).std().item()
    print(f"{size:4} numbers: products spread by {spread:5.1f}; divided by √{size}: {spread / size**0.5:.2f}")

# %% [markdown]
# ## Weights and output: how long to listen, and what is heard
#
# Softmax turns the scores of each row into shares that add up to 1, the *attention weights*. By them each word mixes all values:
#
# $\text{Attention}(Q, K, V) = \text{softmax}\left(\frac{Q K^T}{\sqrt{d_k}}\right) V$

# %%
weights = F.softmax(scores / 4**0.5, axis=-1)
output = weights @ V  # (3, 3) x (3, 4) -> (3, 4)
print(weights, output, sep="\n")
seen = mg.viz.Attention.of_heads(Q[None], K[None], V[None], tokens=WORDS)
show(seen.scene(), "10_weights")

# %% [markdown]
# Who asks is on the left, who is asked on top: "You" listens to "welcome" for 53 percent of its time. What comes out has the
# shape of what went in, but each row knows something of the whole sentence, and none had to wait for another.
#
# ## The same in one call
#
# `F.scaled_dot_product_attention` is this formula as one fast op. `nn.MultiHeadAttention` is the layer around it: it keeps the three
# matrices stacked and transposed, as PyTorch does, and one more for many heads (tutorial 11), which here changes nothing.

# %%
layer = nn.MultiHeadAttention(4, heads=1, bias=False, dtype="float64")
with mg.no_grad():
    layer.in_proj_weight[...] = mg.concatenate([W_Q.T, W_K.T, W_V.T])  # (12, 4)
    layer.out_proj.weight[...] = mg.eye(4, dtype="float64")
    by_layer = layer(x[None])[0]  # one more axis, for several sentences
one_call = F.scaled_dot_product_attention(Q[None, None], K[None, None], V[None, None])[0, 0]  # (sentences, heads, 3, 4)
assert np.allclose(one_call, output) and np.allclose(by_layer, output)
show(mg.viz.attention(layer, x[None], tokens=WORDS), "10_attention.html")  # point at any cell: the sum behind it

# %% [markdown]
# ## Where the three matrices come from
#
# They start at random, and the slope of the loss says how to change each number. Let us ask that "welcome" listen to itself,
# which now gets 2 percent of its time: the loss is the cross-entropy of that weight, $-\log(\text{weight})$.

# %%
queries, keys = (nn.Parameter(part.numpy().copy()) for part in (W_Q, W_K))
optimizer = mg.optim.SGD([queries, keys], lr=0.05)
for step in range(41):
    attention = F.softmax((x @ queries) @ (x @ keys).T / 2, axis=-1)
    loss = -mg.log(attention[2, 2])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step:2}: 'welcome' listens to", {w: round(a, 2) for w, a in zip(WORDS, attention[2].tolist())})
show(mg.viz.heatmap(attention.detach().numpy(), WORDS, WORDS, title="after 40 steps", most=1), "10_trained")

# %% [markdown]
# All words share the matrices, so the other rows have changed, too. Those of a real network have to serve a whole language.
#
# ## Exercises
#
# 1. Take $X$ without positions, and compute the output; then again with the words in the order "welcome", "You", "are". How
#    do the two relate? What changes if the positions are added first?
# 2. Divide the scores by 0.01 and by 200, in place of 2. What do the weights become, and the output?
# 3. Let the sentence stand at the positions 5, 6 and 7 of a text. To whom does each word listen most now?
#
# More to do, a file with holes that marks itself: `minigrad learn start 10`, then `minigrad learn check`.
#
# Solutions: [solutions/10_attention_by_hand.py](solutions/10_attention_by_hand.py)
#
# ## Read next
#
# - [minigrad/nn/transformer/attention.py](../minigrad/nn/transformer/attention.py): the `forward` of `MultiHeadAttention` is what you have just done.
# - Next: [11. Inside a block](11_inside_a_block.py): many heads, masks, normalizing, and the MLP.
