# %% [markdown]
# # 10. Attention by hand: "You are welcome"
#
# A word alone says little. "Welcome" greets somebody at a door, and answers somebody who said thanks. Which one it is, the
# words around it tell. *Attention* is how each word asks the others, in a *transformer*: the kind of network that translators
# and chatbots are made of today. At the end you have computed it with a handful of multiplications, and every matrix that
# the source document prints for "You are welcome" has come out, digit by digit. The same numbers then come out of one call
# of minigrad.
#
# It takes about 35 minutes to read and 2 seconds to run.

# %%
import numpy as np
from showing import compare, show

import minigrad as mg
from minigrad import nn
from minigrad.nn import functional as F

WORDS = ["You", "are", "welcome"]


def matrix(rows):
    return mg.tensor(rows, dtype="float64")  # 16 digits, so that all 8 that are printed can be compared


# %% [markdown]
# ## What goes in
#
# Each word has a vector of four numbers (tutorial 8). The three rows together are the matrix $X$. To each row we add the code
# of its position (tutorial 9).
#
# The document's codes are not the right ones, as tutorial 9 shows. Here we use them all the same, so that everything that
# follows can be compared with what it prints. Exercise 3 does it with the right ones.

# %%
X = matrix([[0.1, 0.2, -0.1, 0.4], [-0.3, 0.5, 0.1, -0.2], [0.4, -0.3, 0.2, 0.1]])
positions = matrix([[0, 1, 0, 1], [0.8415, 0.99995, 0.0001, 1], [0.9093, 0.9998, 0.0002, 1]])
x = X + positions  # (3 words, 4 numbers)
compare("X plus positions", x, [[0.1, 1.2, -0.1, 1.4], [0.5415, 1.49995, 0.1001, 0.8], [1.3093, 0.6998, 0.2002, 1.1]])

# %% [markdown]
# ## A question, a label, a content
#
# Think of three people at a party, each with a *question* in mind: what would I like to hear about? Each also wears a *label*
# that says what they can talk about, and each has something to *tell*. You compare your question with all the labels. The
# better a label fits, the longer you listen to that person. What you take home is a mixture of what everybody told, most of
# it from those whose labels fitted best.
#
# In attention each word has all three, as vectors: its *query* is the question, its *key* the label, its *value* what it
# tells. They are made from the word's row by three matrices, which a trained network has learned. Here they are the
# document's, of zeros and ones. $x$ is our matrix of words with positions:
#
# $Q = x \, W_Q \qquad K = x \, W_K \qquad V = x \, W_V$

# %%
W_Q = matrix([[1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
W_K = matrix([[0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
W_V = matrix([[1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 1, 0], [1, 0, 0, 1]])

# %% [markdown]
# ## One number of Q by hand
#
# A product of matrices is made of many small sums. The number in row 1 and column 3 of $Q$ takes row 1 of $x$ and column 3 of
# $W_Q$, multiplies them number by number, and adds up:
#
# $Q_{1,3} = 0.1 \cdot 0 + 1.2 \cdot 1 + (-0.1) \cdot 0 + 1.4 \cdot 1 = 2.6$
#
# The document writes down the same sum but then loses its last term, and says 1.2. Its own program, further down, prints 2.6.

# %%
first_word = [0.1, 1.2, -0.1, 1.4]
third_column, fourth_column = [0, 1, 0, 1], [1, 0, 1, 0]
Q_13 = sum(a * b for a, b in zip(first_word, third_column))
Q_14 = sum(a * b for a, b in zip(first_word, fourth_column))
compare("Q[1,3] and Q[1,4] by hand", [Q_13, Q_14], [1.2, 0], "1.2 + 1.4 is 2.6; the document forgets the 1.4")

# %% [markdown]
# `@` does all twelve sums at once.

# %%
Q, K, V = x @ W_Q, x @ W_K, x @ W_V
compare("Q of X", Q, [[1.5, 1.1, 2.6, 0], [1.3415, 1.60005, 2.29995, 0.6416], [2.4093, 0.9, 1.7998, 1.5095]])

# %% [markdown]
# The document has $Q$ twice. Here it goes on from the rounded codes above, in which $\sin(1 / 10000^2)$ is 0.0001. In its text and in
# a first program it takes the sines and cosines with all their digits, and there the same number is 0.00000001. So 1.60005 in
# one place is 1.59995 in the other. This one comes out as well:

# %%
position = mg.arange(3, dtype="float64")
waves = [mg.sin(position), mg.cos(position / 10000**0.5), mg.sin(position / 10000**2), mg.cos(position / 10000**2.5)]
printed = [
    [1.5, 1.1, 2.6, 0],
    [1.34147098, 1.59995001, 2.29995, 0.64147099],
    [2.40929743, 0.89980003, 1.79980001, 1.50929745],
]
compare("Q of X with all digits", (X + mg.stack(waves, axis=1)) @ W_Q, printed)

# %% [markdown]
# Next come the keys. In its text the document shows $W_Q$ and $Q$ a second time under the heading of $K$. Its program has
# the real ones:

# %%
compare("K of X", K, [[1.1, 1.5, 0, 2.6], [1.60005, 1.3415, 0.6416, 2.29995], [0.9, 2.4093, 1.5095, 1.7998]])
compare("V of X", V, [[1.5, 0, 1.1, 2.6], [1.3415, 0.6416, 1.60005, 2.29995], [2.4093, 1.5095, 0.9, 1.7998]])

# %% [markdown]
# $W_V$ is printed twice in the document, and the second time it is another matrix: the same columns in another order. The $V$
# it prints below follows the first. The second would give the same columns in that other order:

# %%
second_W_V = matrix([[0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
printed_V = [[1.5, 0, 1.1, 2.6], [1.3415, 0.6416, 1.6001, 2.3], [2.4093, 1.5095, 0.9, 1.7998]]
compare("V by the second W_V", x @ second_W_V, printed_V, "the V printed there follows the first W_V")

# %% [markdown]
# ## Scores: does the label fit the question?
#
# How well does key $k$ fit query $q$? By their dot product $q \cdot k$, which is large where both point the same way (tutorial
# 8). All nine at once are one product of matrices. $K^T$ is $K$ with rows and columns exchanged, so that keys become columns:
#
# $\text{scores} = Q \, K^T \qquad \text{scores}_{i,j} = q_i \cdot k_j$
#
# Row $i$ belongs to the word that asks, column $j$ to the word that is asked.

# %%
scores = Q @ K.T  # (3, 4) x (4, 3) -> (3, 3)
print(scores)
print("'You' asks 'welcome':", sum(q * k for q, k in zip(Q[0].tolist(), K[2].tolist())))

# %% [markdown]
# Then each score is divided by $\sqrt{d_k}$, where $d_k$ is how many numbers a key has: here 4, so by 2. Why? A dot product of
# two random vectors has as many terms as they have numbers, and the more terms, the larger the sum gets, up or down. It grows
# like $\sqrt{d_k}$:

# %%
mg.manual_seed(10)
for size in (4, 64, 1024):
    products = (mg.randn(2000, size) * mg.randn(2000, size)).sum(1)
    spread = products.std().item()
    print(f"{size:4} numbers: products spread by {spread:5.1f}; divided by √{size}: {spread / size**0.5:.2f}")

# %% [markdown]
# The next step is a softmax, and for one that gets scores like 30 and -30 everything is settled: one weight is 1, all others
# are 0, and so are all slopes. Nothing could be learned any more. After the division the scores are of ordinary size,
# however long the vectors.
#
# ## Weights: how long to listen
#
# The softmax of tutorial 6 turns the scores of each row into shares that add up to 1, the *attention weights*:
#
# $\text{weights} = \text{softmax}\left(\frac{Q K^T}{\sqrt{d_k}}\right)$

# %%
weights = F.softmax(scores / 4**0.5, axis=-1)
printed = [
    [0.07057112, 0.21671075, 0.71271813],
    [0.08861574, 0.2073653, 0.70401897],
    [0.16858447, 0.40724309, 0.42417243],
]
compare("attention weights", weights, printed)
print("each row adds up to", weights.sum(-1))

# %% [markdown]
# Read it by rows: "You" listens to "welcome" for 71 percent of its time. In the picture, whoever asks is on the left, and whoever
# is asked on top.

# %%
seen = mg.viz.Attention.of_heads(Q[None], K[None], V[None], tokens=WORDS)  # (1, 3, 4): there can be several sets
show(seen.scene(), "10_weights")

# %% [markdown]
# ## The output: a mixture of what was told
#
# Each word takes home the values of all words, each times its weight. For the first number of "You":
#
# $0.0706 \cdot 1.5 + 0.2167 \cdot 1.3415 + 0.7127 \cdot 2.4093 = 2.1137$
#
# And for all of them it is a product once more:
#
# $\text{output} = \text{weights} \cdot V$

# %%
output = weights @ V  # (3, 3) x (3, 4) -> (3, 4)
print("by hand:", sum(w * v for w, v in zip(weights[0].tolist(), V[:, 0].tolist())))
printed = [
    [2.11372594, 1.21488963, 1.06582258, 1.96465889],
    [2.10729705, 1.1957622, 1.06288922, 1.97442407],
    [1.82115196, 0.90157546, 1.21880742, 2.13838393],
]
compare("attention output", output, printed)

# %% [markdown]
# That is all of it. In one line:
#
# $\text{Attention}(Q, K, V) = \text{softmax}\left(\frac{Q K^T}{\sqrt{d_k}}\right) V$
#
# The shape that went in has come out: three words, four numbers each. But each row now knows something of the whole
# sentence. And no word had to wait for another: all rows were computed at the same time.
#
# ## The same in one call
#
# `F.scaled_dot_product_attention` is this line as one fast op. `nn.MultiHeadAttention` is the layer around it, with the
# three matrices inside. We put ours in. It keeps them stacked, and each transposed, as PyTorch does. After attention it has
# one more matrix, for many heads, which is the subject of tutorial 11; here it changes nothing.

# %%
layer = nn.MultiHeadAttention(4, heads=1, bias=False, dtype="float64")
with mg.no_grad():
    layer.in_proj_weight[...] = mg.concatenate([W_Q.T, W_K.T, W_V.T])  # (12, 4)
    layer.out_proj.weight[...] = mg.eye(4, dtype="float64")
    by_layer = layer(x[None])[0]  # the layer takes several sentences at once, so one more axis in front
one_call = F.scaled_dot_product_attention(Q[None, None], K[None, None], V[None, None])[0, 0]  # (sentences, heads, 3, 4)
print(by_layer)
assert np.allclose(one_call, output) and np.allclose(by_layer, output)

# %% [markdown]
# On this page you can point at any cell and see the sum behind it, stage by stage:

# %%
show(mg.viz.attention(layer, x[None], tokens=WORDS), "10_attention.html")

# %% [markdown]
# ## The other sentence
#
# A translator also reads what it has written so far. The document's target is "de nada", with a token in front that says "start".
# It computes $Q$, $K$ and $V$ for it with the same three matrices:

# %%
Y = matrix([[0, 0, 0, 0], [-0.2, 0.4, 0.3, 0.1], [0.5, -0.1, -0.4, 0.3]])
y = Y + positions
compare("Y plus positions", y, [[0, 1, 0, 1], [0.6415, 1.39995, 0.3001, 1.1], [1.4093, 0.8998, -0.3998, 1.3]])
compare("Q of Y", y @ W_Q, [[1, 1, 2, 0], [1.7415, 1.70005, 2.49995, 0.9416], [2.7093, 0.5, 2.1998, 1.0095]])
compare("K of Y", y @ W_K, [[1, 1, 0, 2], [1.70005, 1.7415, 0.9416, 2.49995], [0.5, 2.7093, 1.0095, 2.1998]])
compare("V of Y", y @ W_V, [[1, 0, 1, 2], [1.7415, 0.9416, 1.70005, 2.49995], [2.7093, 1.0095, 0.5, 2.1998]])

# %% [markdown]
# [Tutorial 12](12_translator.py) goes on from there.
#
# ## Where the three matrices come from
#
# Nobody writes $W_Q$, $W_K$ and $W_V$ by hand. They start at random, and the slope of the loss says how to change each number:
# everything above is made of products, sums and a softmax, so it has derivatives. As a toy, we ask that "welcome" listen to
# "You", which now gets only 17 percent of its time. The loss is the cross-entropy of that weight, $-\log(\text{weight})$.

# %%
queries, keys = (nn.Parameter(part.numpy().copy()) for part in (W_Q, W_K))
optimizer = mg.optim.SGD([queries, keys], lr=0.05)
for step in range(41):
    attention = F.softmax((x @ queries) @ (x @ keys).T / 2, axis=-1)
    loss = -mg.log(attention[2, 0])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step:2}: 'welcome' listens to", {w: round(a, 2) for w, a in zip(WORDS, attention[2].tolist())})

# %%
show(mg.viz.heatmap(attention.detach().numpy(), WORDS, WORDS, title="after 40 steps", most=1), "10_trained")

# %% [markdown]
# The other rows have changed as well, since all words share the matrices. A real network has one set of matrices for every
# sentence of a language, and has to find one that serves them all.
#
# ## Exercises
#
# 1. Attention alone does not know order. Take $X$ without positions, compute the output, then do it again with the words in the
#    order "welcome", "You", "are". How do the two outputs relate? What changes if the positions are added first?
# 2. Divide the scores by 0.01 and by 200, in place of 2. What do the weights become, and what is the output then?
# 3. Use the right positions, `nn.SinusoidalPositions(4)`, in place of the document's. By how much does the largest of the
#    weights change? Does each word still listen most to the same word as before?
#
# More to do, a file with holes that marks itself: `minigrad learn start 10`, then `minigrad learn check`.
#
# Solutions: [solutions/10_attention_by_hand.py](solutions/10_attention_by_hand.py)
#
# ## Read next
#
# - [minigrad/nn/transformer/attention.py](../minigrad/nn/transformer/attention.py): `MultiHeadAttention`, whose `forward` is what you have just done.
# - [minigrad/kernels/definitions.py](../minigrad/kernels/definitions.py): the attention that fast kernels are tested against.
# - [errata.py](errata.py): all slips of the document on one page.
# - Next: [11. Inside a block](11_inside_a_block.py): many heads, masks, normalizing, and the MLP.
