# %% [markdown]
# # Errata: where the source document's numbers are wrong
#
# The tutorials follow one document from its first number to its last: a walk through a transformer with every matrix
# written out, from "You are welcome" to "de nada". Nearly all of its numbers are right. This page lists those that are
# not. For each it says what the document has, what is right, and shows it with a few lines of minigrad. At the end it
# computes the rest of the example as the document does, digit by digit. None of it takes anything from the document:
# without so many numbers there would be nothing to check. Tutorials 10 and 12 tell the same story with the right numbers.
#
# It takes about 20 minutes to read and 2 seconds to run.

# %%
import numpy as np
from showing import compare

import minigrad as mg
from minigrad import nn
from minigrad.nn import functional as F


def matrix(rows):
    return mg.tensor(rows, dtype="float64")  # 16 digits: the document prints 8


# %% [markdown]
# ## 1. Positions
#
# *The document:* position 1 is `[0.8415, 0.99995, 0.0001, 1]`. It divides by $10000^0$, $10000^{0.5}$, $10000^2$ and
# $10000^{2.5}$.
#
# *Right:* the columns $2i$ and $2i + 1$ are sine and cosine of one and the same angle, $p / 10000^{2i/d}$. With $d = 4$ that is
# $p / 1$ for the first two and $p / 100$ for the others. (And $\sin(1 / 10000^2)$ would not be 0.0001, but 0.00000001.)
# More in [tutorial 9](09_positions.py).

# %%
positions = nn.SinusoidalPositions(4)(mg.zeros(3, 4, dtype="float64"))
why = "a pair of columns has one angle: p/1, then p/100"
compare("position 1", positions[1], [0.8415, 0.99995, 0.0001, 1], why)
compare("position 2", positions[2], [0.9093, 0.9998, 0.0002, 1], why)

# %% [markdown]
# All further numbers of the document build on its own positions, and so do the comparisons below.
#
# ## 2. Two numbers of Q by hand
#
# *The document:* $Q_{1,3} = 1.2$. It writes down $0 + 1.2 + 0 + 1.4 \cdot 1$, and then drops the last term.
#
# *Right:* 2.6, as its own program prints. $Q_{1,4} = 0$ is right.

# %%
x = matrix([[0.1, 1.2, -0.1, 1.4], [0.5415, 1.49995, 0.1001, 0.8], [1.3093, 0.6998, 0.2002, 1.1]])
W_Q = matrix([[1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
compare("Q[1,3] and Q[1,4] by hand", (x @ W_Q)[0, 2:], [1.2, 0], "1.2 + 1.4 is 2.6")

# %% [markdown]
# ## 3. The section on K
#
# *The document:* under the heading of $K$ it shows $W_Q$ and $Q$ once more.
#
# *Right:* $K = x\,W_K$. Its own program further down prints it. More on keys in [tutorial 10](10_attention_by_hand.py).

# %%
W_K = matrix([[0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
repeated_Q = [[1.5, 1.1, 2.6, 0], [1.3415, 1.6, 2.3, 0.6415], [2.4093, 0.8998, 1.7998, 1.5093]]
compare("K of X", x @ W_K, repeated_Q, "what stands there is Q")

# %% [markdown]
# ## 4. The second printing of W_V
#
# *The document:* gives $W_V$ twice, with different rows, and one $V$.
#
# *Right:* that $V$ follows the first $W_V$. The second has the same columns in another order, and so would its $V$.

# %%
W_V = matrix([[1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 1, 0], [1, 0, 0, 1]])
second_W_V = matrix([[0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
printed_V = [[1.5, 0, 1.1, 2.6], [1.3415, 0.6416, 1.6001, 2.3], [2.4093, 1.5095, 0.9, 1.7998]]
compare("V of X", x @ W_V, printed_V, "only in rounding: 1.60005 and 2.29995 have five digits")
compare("V by the second W_V", x @ second_W_V, printed_V, "the document's V is that of the first W_V")

# %% [markdown]
# ## 5. The final output of two heads
#
# *The document:* announces the product with $W_O$, and then prints the two heads side by side again, a matrix of 3 × 8.
#
# *Right:* the product is 3 × 4. The document does have it, as the input of its next step. More in
# [tutorial 11](11_inside_a_block.py).

# %%
head_1 = F.scaled_dot_product_attention(*[(x @ W)[None, None] for W in (W_Q, W_K, W_V)])[0, 0]
head_1 = matrix(head_1.numpy().round(8))  # the document goes on with what it has printed
head_2 = matrix([[1.5, 0.8, 1.2, 2.0], [1.6, 0.9, 1.1, 2.1], [1.4, 0.7, 1.3, 1.9]])
heads = mg.concatenate([head_1, head_2], axis=1)  # (3, 8)
W_O = matrix(
    [[0.37738326, 0.83274845, 0.37280978, 0.14584743], [0.28706851, 0.29072609, 0.69116998, 0.20106682],
     [0.26764653, 0.12058646, 0.82634382, 0.60818759], [0.44329703, 0.4425581, 0.89811744, 0.24551412],
     [0.9186323, 0.40029736, 0.17636762, 0.06896409], [0.41921272, 0.0495383, 0.77792527, 0.4354529],
     [0.14791365, 0.66822966, 0.48313699, 0.94127396], [0.11604641, 0.51794357, 0.62942357, 0.76420883]]
)  # fmt: skip
compare("heads times W_O", heads @ W_O, heads.numpy(), "the document shows what goes into the product")

# %% [markdown]
# ## 6. "500 words or 1000, at the same speed"
#
# *The document:* attention does not depend on the length of the input.
#
# *Right:* each word is compared with each other word, so twice as many words need four times as many scores. The document's
# own section on cost says so: it grows with $n^2$. [Tutorial 14](14_gpt.py) measures it.


# %%
def scores(words):
    queries = keys = mg.zeros(words, 4)
    return (queries @ keys.T).size


compare("scores of 1,000 words over those of 500", scores(1000) / scores(500), 1, "n words have n × n scores")

# %% [markdown]
# ## 7. The first layer norm
#
# *The document:* its program divides by $\sqrt{\text{variance} + \epsilon}$ with $\epsilon = 0.000001$. But what it prints was
# divided by $\text{deviation} + \epsilon$, where the deviation is $\sqrt{\text{variance}}$. The difference shows from the seventh digit on.
#
# *Right:* what its program says. Both are here:

# %%
M = matrix((heads @ W_O).numpy().round(8))
centred = M - M.mean(-1, keepdims=True)
printed = [
    [-1.03927142, 0.13949668, 1.56694829, -0.66717355],
    [-0.97825977, 0.09190721, 1.59246789, -0.70611533],
    [-1.10306273, 0.02854757, 1.58729045, -0.51277529],
]
assert np.allclose(centred / (M.std(-1, keepdims=True) + 1e-6), printed, atol=5e-9)
norm = nn.LayerNorm(4, eps=1e-6, dtype="float64")
compare("layer norm after attention", norm(M), printed, "ε is added to the variance, before the root")

# %% [markdown]
# ## 8. Attention in the decoder
#
# *The document:* says that the decoder is masked, so that no word sees those after it. Its program has no mask, and does not divide
# the scores by $\sqrt{d_k}$ either.
#
# *Right:* scaled, and *causal*, which means that word $i$ looks at the words up to $i$ only. Out of our real layer, with the document's
# random weights, which come from the seed 42; more on the mask in [tutorial 12](12_translator.py).

# %%
y = matrix([[0.0, 1.0, 0.0, 1.0], [0.6415, 1.39995, 0.3001, 1.1], [1.4093, 0.8998, -0.3998, 1.3]])
draw = np.random.RandomState(42)
W_q, W_k, W_v, W_o = (matrix(draw.rand(4, 4)) for _ in range(4))
layer = nn.MultiHeadAttention(4, heads=1, bias=False, dtype="float64")
with mg.no_grad():
    layer.in_proj_weight[...] = mg.concatenate([W_q.T, W_k.T, W_v.T])  # the layer keeps its matrices transposed
    layer.out_proj.weight[...] = W_o.T
printed = [
    [2.82896639, 2.49151229, 3.27935978, 3.36785616],
    [2.93697775, 2.57919015, 3.42996786, 3.49210994],
    [2.95810782, 2.60399936, 3.43836135, 3.51718943],
]
attended = F.softmax((y @ W_q) @ (y @ W_k).T, -1) @ (y @ W_v) @ W_o
compare("decoder self-attention as in the document", attended, printed)
why = "the document's program forgets the mask and the scale"
compare("decoder self-attention, scaled and causal", layer(y[None], is_causal=True)[0], printed, why)

# %% [markdown]
# ## 9. Layer norm in the decoder
#
# *The document:* divides by $(\text{deviation} + \epsilon)$, here also in its program.
#
# *Right:* $\sqrt{\text{variance} + \epsilon}$, as its formula has it. We take the attention it has printed, right or not, so that the norm
# is the only difference.

# %%
printed_norm = [
    [-0.46049196, -1.4140849, 0.81224991, 1.06232694],
    [-0.46121408, -1.41736871, 0.85625689, 1.02232591],
    [-0.46146504, -1.41536061, 0.83223948, 1.04458616],
]
compare("decoder layer norm", norm(matrix(printed)), printed_norm, "ε is added to the variance, before the root")
followed = (attended - attended.mean(axis=1, keepdims=True)) / (attended.std(axis=1, keepdims=True) + 1e-6)
compare("decoder layer norm as in the document", followed, printed_norm)

# %% [markdown]
# ## 10. Attention from decoder to encoder
#
# *The document:* its text divides by $\sqrt{4}$, but its program by $\sqrt 3$, and it multiplies by the transposed matrices.
# The result is `[-1.7888543, 1.7888543, 0, 0]` in every row.
#
# *Right:* $\sqrt{d_k} = \sqrt 4$, and $x\,W$ as everywhere else. The three words of the encoder are almost equal, so it hardly matters
# whom one listens to: every row is the same. (No word of the source has to be hidden here either, though the text says so: the
# sentence that is being translated is known from its first word to its last.)

# %%
encoder = matrix(
    [[-1.34164072, -0.44721357, 0.44721357, 1.34164072], [-1.34164071, -0.44721357, 0.44721357, 1.34164071],
     [-1.34164075, -0.44721358, 0.44721358, 1.34164075]]
)  # fmt: skip
asking, printed = matrix(printed_norm), [[-1.7888543, 1.7888543, 0, 0]] * 3
followed = F.softmax((asking @ W_Q.T) @ (encoder @ W_K.T).T / 3**0.5, axis=-1)
compare("encoder-decoder weights as in the document", followed, [[0.33333333, 0.33333333, 0.33333334]] * 3)
compare("encoder-decoder attention as in the document", followed @ (encoder @ W_V.T), printed)
with mg.no_grad():
    layer.in_proj_weight[...] = mg.concatenate([W_Q.T, W_K.T, W_V.T])
    layer.out_proj.weight[...] = mg.eye(4, dtype="float64")
crossed = layer(asking[None], encoder[None])[0]
compare("encoder-decoder attention", crossed, printed, "x @ W, not x @ Wᵀ, and √4")

# %% [markdown]
# ## 11. "Backpropagation through time"
#
# *The document:* transformers process sequences, so gradients must be followed back from step to step.
#
# *Right:* that is what *recurrent* networks need, which read one word after the other. A transformer computes all positions at once. We
# count: how many operations come one after the other, from the input to the output? In a transformer block it is the same for 3
# words as for 30. In a recurrent network it grows with every word.


# %%
def longest_chain(function, x):
    depth = {}
    for box in mg.viz.graph(function, x).boxes:  # in the order in which they were computed
        before = [depth[entry.source.id] for entry in box.inputs if entry.source]
        depth[box.id] = (box.kind == "op") + max(before, default=0)
    return max(depth.values())


def recurrent(x):
    state = mg.zeros(1, 4)
    for word in range(x.shape[1]):
        state = mg.tanh(x[:, word] + state)
    return state


# %%
block = nn.TransformerBlock(4, heads=1)
short, long = mg.randn(1, 3, 4), mg.randn(1, 30, 4)
print("recurrent:  ", longest_chain(recurrent, short), "and", longest_chain(recurrent, long), "operations in a row")
print("transformer:", longest_chain(block, short), "and", longest_chain(block, long))
ratio = longest_chain(block, long) / longest_chain(block, short)
compare("longest chain of ops, 30 words over 3", ratio, "it grows with every word", "all words are computed at once")

# %% [markdown]
# ## 12. One step of gradient descent
#
# *The document:* subtracts 0.1 times the gradient from the probabilities: 0.19, 0.09, 0.09, 0.63.
#
# *Right:* the gradient $P - y$ belongs to the *logits* $Z$, the numbers before the softmax. So these take the step, and a softmax makes
# probabilities of them again. They add up to 1, and the step is much smaller. More in [tutorial 6](06_softmax_and_cross_entropy.py).

# %%
P = matrix([0.1, 0.1, 0.1, 0.7])
Z = mg.log(P).requires_grad_()
F.cross_entropy(Z[None], mg.tensor([0])).backward()
stepped = F.softmax(Z.detach() - 0.1 * Z.grad, axis=-1)
compare("one step on the logits", stepped, [0.19, 0.09, 0.09, 0.63], "the step is taken by the logits")

# %% [markdown]
# ## 13. and 14. "I love AI"
#
# *The document:* $h_1(\text{love}) = 0.1 \cdot h_0(\text{I}) + 0.9 \cdot h_0(\text{love}) = [0.155, 0.458]$, and from it
# $h_2(\text{love}) = [0.1753, 0.309]$.
#
# *Right:* the first sum is $[0.545, 0.442]$. A mixture must lie between what is mixed, here between 0.14 and 0.59, and most of
# it is the second. With $W$ as two rows of two, $h_2 = h_1 W$ is $[0.2858, 0.3845]$. (The document's own $h_1$ would give
# $[0.2142, 0.2755]$.) More in [tutorial 14](14_gpt.py).

# %%
h0 = matrix([[0.14, 0.91], [0.59, 0.39]])  # "I" and "love"
h1 = matrix([0.1, 0.9]) @ h0
compare("h1 of love", h1, [0.155, 0.458], "0.1 · 0.14 + 0.9 · 0.59 is 0.545")
compare("h2 of love", h1 @ matrix([[0.2, 0.3], [0.4, 0.5]]), [0.1753, 0.309], "not even the wrong h1 gives that")

# %% [markdown]
# ## 15. The size of GPT-3
#
# *The document:* GPT-3 has 175 layers, and $d$ is often about 1024.
#
# *Right:* it has 96 layers with $d = 12288$. 175 is its parameters, in billions. We can check that by counting. A block
# has $12 d^2 + 13 d$ parameters: four matrices of $d \times d$ in attention, two of $d \times 4d$ in the MLP, and then biases and norms.
# To the blocks comes the table of its 50,257 tokens and that of its 2,048 positions.

# %%
small = nn.TransformerBlock(64, heads=4)
assert sum(parameter.size for parameter in small.parameters()) == 12 * 64**2 + 13 * 64


def billions(layers, d):
    return (layers * (12 * d**2 + 13 * d) + (50257 + 2048) * d) / 1e9


print(f"175 layers of 1024 would have {billions(175, 1024):.1f} billion parameters")
compare("GPT-3, billions of parameters", billions(96, 12288), "175 layers", "175 is billions of parameters")

# %% [markdown]
# ## 16. The size of the first GPT
#
# *The document:* cites a thesis that gives the first GPT 150 million parameters.
#
# *Right:* 117 million. It has 12 layers with $d = 768$, 40,478 tokens and 512 positions, and the same count goes for it.

# %%
millions = (12 * (12 * 768**2 + 13 * 768) + (40478 + 512) * 768) / 1e6
compare("the first GPT, millions of parameters", millions, 150, "counted, as above")

# %% [markdown]
# ## What follows from its positions
#
# The document goes on from its own positions, right or not. From these, all that it prints of attention comes out. $Q$ it has
# twice: first from the rounded codes, in which $\sin(1 / 10000^2)$ is 0.0001, then from sines and cosines with all
# their digits, where the same number is 0.00000001. So 1.60005 in one place is 1.59995 in the other.

# %%
X = matrix([[0.1, 0.2, -0.1, 0.4], [-0.3, 0.5, 0.1, -0.2], [0.4, -0.3, 0.2, 0.1]])
Y = matrix([[0, 0, 0, 0], [-0.2, 0.4, 0.3, 0.1], [0.5, -0.1, -0.4, 0.3]])
its_positions = matrix([[0, 1, 0, 1], [0.8415, 0.99995, 0.0001, 1], [0.9093, 0.9998, 0.0002, 1]])
x, y = X + its_positions, Y + its_positions
compare("X plus positions", x, [[0.1, 1.2, -0.1, 1.4], [0.5415, 1.49995, 0.1001, 0.8], [1.3093, 0.6998, 0.2002, 1.1]])
compare("Y plus positions", y, [[0, 1, 0, 1], [0.6415, 1.39995, 0.3001, 1.1], [1.4093, 0.8998, -0.3998, 1.3]])
Q, K, V = x @ W_Q, x @ W_K, x @ W_V
compare("Q of X", Q, [[1.5, 1.1, 2.6, 0], [1.3415, 1.60005, 2.29995, 0.6416], [2.4093, 0.9, 1.7998, 1.5095]])
place = mg.arange(3, dtype="float64")
waves = [mg.sin(place), mg.cos(place / 10000**0.5), mg.sin(place / 10000**2), mg.cos(place / 10000**2.5)]
printed = [
    [1.5, 1.1, 2.6, 0],
    [1.34147098, 1.59995001, 2.29995, 0.64147099],
    [2.40929743, 0.89980003, 1.79980001, 1.50929745],
]
compare("Q of X with all digits", (X + mg.stack(waves, axis=1)) @ W_Q, printed)
printed = [[1.1, 1.5, 0, 2.6], [1.60005, 1.3415, 0.6416, 2.29995], [0.9, 2.4093, 1.5095, 1.7998]]
compare("K of X in its program", K, printed)
printed = [[1.5, 0, 1.1, 2.6], [1.3415, 0.6416, 1.60005, 2.29995], [2.4093, 1.5095, 0.9, 1.7998]]
compare("V of X in its program", V, printed)
compare("Q of Y", y @ W_Q, [[1, 1, 2, 0], [1.7415, 1.70005, 2.49995, 0.9416], [2.7093, 0.5, 2.1998, 1.0095]])
compare("K of Y", y @ W_K, [[1, 1, 0, 2], [1.70005, 1.7415, 0.9416, 2.49995], [0.5, 2.7093, 1.0095, 2.1998]])
compare("V of Y", y @ W_V, [[1, 0, 1, 2], [1.7415, 0.9416, 1.70005, 2.49995], [2.7093, 1.0095, 0.5, 2.1998]])

# %% [markdown]
# And the weights and the output of attention, to every digit:

# %%
weights = F.softmax(Q @ K.T / 4**0.5, axis=-1)
printed = [
    [0.07057112, 0.21671075, 0.71271813],
    [0.08861574, 0.2073653, 0.70401897],
    [0.16858447, 0.40724309, 0.42417243],
]
compare("attention weights", weights, printed)
printed = [
    [2.11372594, 1.21488963, 1.06582258, 1.96465889],
    [2.10729705, 1.1957622, 1.06288922, 1.97442407],
    [1.82115196, 0.90157546, 1.21880742, 2.13838393],
]
compare("attention output", weights @ V, printed)

# %% [markdown]
# ## Read next
#
# - [minigrad/nn/transformer/attention.py](../minigrad/nn/transformer/attention.py),
#   [minigrad/nn/layers/normalization.py](../minigrad/nn/layers/normalization.py) and
#   [minigrad/nn/transformer/positions.py](../minigrad/nn/transformer/positions.py): the layers that the right numbers come out of.
# - [tests/support/source_numbers.py](../tests/support/source_numbers.py): every number of the document that the tutorials compute, as a table.
