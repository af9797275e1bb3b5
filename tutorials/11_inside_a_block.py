# %% [markdown]
# # 11. Inside a block
#
# A transformer is one *block*, repeated. Attention, which tutorial 10 computed by hand, is half of it. Here is the rest:
# several heads, masks, layer norm, residuals and the MLP. Then we look for a fact in it.
#
# At the end you will have
#
# - every number of the first block in our source document, computed anew;
# - a whole block in three lines, which agrees with `nn.TransformerBlock`;
# - "Michael Jordan plays basketball", first built by hand out of one neuron, then learned;
# - sixteen features stored in six numbers, and a small network that finds all sixteen again.
#
# Reading takes about 45 minutes, running about five seconds.

# %%
import numpy as np
from showing import compare, show

import minigrad as mg
from minigrad import nn, optim
from minigrad.nn import functional as F

# %% [markdown]
# ## Many heads
#
# Attention ends with a matrix: one row for each word of "You are welcome", four numbers in a row. One set of weights
# $W_Q$, $W_K$, $W_V$ made it. Such a set, with its own attention, is called a *head*. One head has one way to look. It
# may look for the verb, and then it cannot look for the name as well. So a layer has several heads, side by side.
#
# Each head gives its own row for each word. The rows are laid end to end, 4 + 4 = 8 numbers, and one more matrix, $W_O$
# ("O" for output), mixes them back down to 4. Laying end to end is called *concatenation*.
#
# $$\text{MultiHead} = [\,\text{head}_1 \;\; \text{head}_2\,] \cdot W_O \qquad (3 \times 8) \cdot (8 \times 4) = (3 \times 4)$$
#
# The numbers of two heads and a $W_O$ are those of the source document's example. The layer that multiplies by a matrix is `nn.Linear`. It keeps
# its weights the other way round, (out, in), so they are transposed on the way in.

# %%
head_1 = [
    [2.11372594, 1.21488963, 1.06582258, 1.96465889],
    [2.10729705, 1.1957622, 1.06288922, 1.97442407],
    [1.82115196, 0.90157546, 1.21880742, 2.13838393],
]
head_2 = [[1.5, 0.8, 1.2, 2.0], [1.6, 0.9, 1.1, 2.1], [1.4, 0.7, 1.3, 1.9]]
W_O = [
    [0.37738326, 0.83274845, 0.37280978, 0.14584743], [0.28706851, 0.29072609, 0.69116998, 0.20106682],
    [0.26764653, 0.12058646, 0.82634382, 0.60818759], [0.44329703, 0.4425581, 0.89811744, 0.24551412],
    [0.9186323, 0.40029736, 0.17636762, 0.06896409], [0.41921272, 0.0495383, 0.77792527, 0.4354529],
    [0.14791365, 0.66822966, 0.48313699, 0.94127396], [0.11604641, 0.51794357, 0.62942357, 0.76420883],
]  # fmt: skip


# %%
def linear(weight, bias=None):
    """A Linear layer with these weights (in, out), in numbers of 16 digits."""
    layer = nn.Linear(*np.shape(weight), bias=bias is not None, dtype="float64")
    layer.load_state_dict({"weight": np.transpose(weight), **({} if bias is None else {"bias": np.array(bias)})})
    return layer


heads = mg.concatenate([mg.tensor(np.array(head_1)), mg.tensor(np.array(head_2))], axis=1)  # (3, 4), (3, 4) -> (3, 8)
attended = linear(W_O)(heads)  # (3, 8) -> (3, 4)
printed = [[4.42554033, 5.589241, 6.99844643, 4.79288192], [4.55176485, 5.6122494, 7.09923364, 4.82144704],
           [4.21254506, 5.31988824, 6.84520426, 4.79017392]]  # fmt: skip
compare("heads times W_O", attended, printed)

# %% [markdown]
# (In its text the document prints the 3 × 8 concatenation a second time and calls it the final output. Its code prints
# the 3 × 4 matrix above, which is the one.)
#
# In a real layer more heads cost nothing extra: the width is *divided* among them. With 8 numbers a word and 2 heads,
# each head gets 4 columns of Q, K and V. Let us do that by hand, beside the layer.

# %%
mg.manual_seed(0)
attention = nn.MultiHeadAttention(8, heads=2, bias=False)
words = mg.randn(1, 3, 8)  # one sentence, three words, eight numbers each
Q, K, V = mg.split(words @ attention.in_proj_weight.T, 3, axis=-1)  # each (1, 3, 8)
found = []
for columns in (slice(0, 4), slice(4, 8)):
    scores = Q[..., columns] @ K[..., columns].mT / 4**0.5  # (1, 3, 4) @ (1, 4, 3) -> (1, 3, 3)
    found.append(F.softmax(scores, axis=-1) @ V[..., columns])  # (1, 3, 3) @ (1, 3, 4) -> (1, 3, 4)
by_hand = mg.concatenate(found, axis=-1) @ attention.out_proj.weight.T
print("two heads by hand and the layer differ by", f"{(by_hand - attention(words)).abs().max().item():.0e}")

# %% [markdown]
# ## Masks: who may look at whom
#
# A model that writes must not peek. When it learns to guess word 2 from word 1, word 2 must be out of sight. And where
# short sentences are filled up with padding, nobody should look at the padding. Both are done by a *mask*: a table of
# True ("may look") and False.
#
# The trick sits before the softmax. A forbidden score becomes minus infinity, $-\infty$. Softmax raises $e$ to each score,
# and $e^{-\infty}$ is 0. So a forbidden word gets the weight 0, and the others still add up to 1.
#
# $$\text{weights} = \text{softmax}(\text{scores} + M) \qquad M = 0 \text{ where True}, \; -\infty \text{ where False}$$
#
# Here are its queries and keys with a *causal* mask: each word sees itself and what came before.

# %%
Q = mg.tensor([[1.5, 1.1, 2.6, 0.0], [1.3415, 1.60005, 2.29995, 0.6416], [2.4093, 0.9, 1.7998, 1.5095]])
K = mg.tensor([[1.1, 1.5, 0.0, 2.6], [1.60005, 1.3415, 0.6416, 2.29995], [0.9, 2.4093, 1.5095, 1.7998]])
may_look = nn.causal_mask(3)
scores = mg.where(may_look, Q @ K.mT / 4**0.5, -np.inf)
print(scores)
print(F.softmax(scores, axis=-1))

# %% [markdown]
# The first word can look at nothing but itself, so its weight is 1. A layer does it when told `is_causal=True`, and for
# padding there is `nn.padding_mask`. The picture shows a random layer with two heads, which look differently already.

# %%
block = nn.TransformerBlock(8, heads=2, causal=True)
show(mg.viz.attention(block, words, tokens=["You", "are", "welcome"]), "11_causal_heads")

# %% [markdown]
# ## Layer norm: the same size for everyone
#
# Look at the first row of what attention made: 4.43, 5.59, 7.00, 4.79. Its mean is 5.45. After a few more layers it could
# be around 500, or 0.005, and weights that fit the one would not fit the other. *Layer norm* brings every row to mean 0
# and spread 1: subtract the mean, then divide by the standard deviation, which is the root of the variance, which is
# the mean of the squared distances from the mean.
#
# $$\text{LN}(x) = \gamma \cdot \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta$$
#
# In words: $\mu$ ("mu") is the mean of the row and $\sigma^2$ ("sigma squared") its variance. $\epsilon$ ("epsilon") is a
# tiny number, so that nothing is divided by 0. $\gamma$ and $\beta$ ("gamma", "beta") are learned. They begin as 1 and 0.

# %%
attended = mg.tensor(np.array(printed))  # the document goes on with its printed digits, and so do we
row = attended[0]
mean, variance = row.mean(), ((row - row.mean()) ** 2).mean()
print(f"mean {mean.item():.4f}, variance {variance.item():.4f}")
print("first row:     ", (row - mean) / (variance + 1e-6) ** 0.5)
norm = nn.LayerNorm(4, eps=1e-6, dtype="float64")
print("by the layer:  ", norm(attended)[0])

# %% [markdown]
# The document prints −1.03927142 where we have −1.03927194. They part in the seventh digit after the point, and it is easy to
# find out why: its digits come out if $\epsilon$ is added *after* the root, to the standard deviation: $\sigma + \epsilon$. Its
# formula and its code both say $\sqrt{\sigma^2 + \epsilon}$, so it seems that the digits are of another version. To follow it,
# we divide as it did.

# %%
normal = (attended - attended.mean(axis=1, keepdims=True)) / (attended.std(axis=1, keepdims=True) + 1e-6)
printed = [[-1.03927142, 0.13949668, 1.56694829, -0.66717355], [-0.97825977, 0.09190721, 1.59246789, -0.70611533],
           [-1.10306273, 0.02854757, 1.58729045, -0.51277529]]  # fmt: skip
compare("layer norm after attention", normal, printed)

# %% [markdown]
# ## The MLP: a thought for each word by itself
#
# Attention moves things between words. The second half of a block works on each word alone, all words by the same
# weights: a step up to more numbers, a bend, a step back down. (A bend, because two straight steps in a row would be one
# straight step. Tutorial 4 shows why that is not enough.) It is a *multi-layer perceptron*, MLP for short, and also goes
# by the name feed-forward network, FFN.
#
# $$\text{MLP}(x) = \max(0,\; x W_1 + b_1) \, W_2 + b_2$$
#
# The document goes from 4 numbers to 6 and back. (GPT goes to four times as many.) Its weights are the numbers from 0.1 to
# 2.4 in steps of 0.1, row by row; $W_2$ has the same ones, column by column.

# %%
W_1 = np.arange(1, 25).reshape(4, 6) / 10
W_2 = W_1.T
b_1, b_2 = np.arange(1, 7) / 100, np.arange(1, 5) / 100
mlp = nn.MLP(4, 6, activation="relu", dtype="float64")
mlp.up, mlp.down = linear(W_1, b_1), linear(W_2, b_2)
normal = mg.tensor(np.array(printed))  # from printed digits again
made = mlp(normal)  # (3, 4) -> (3, 6) -> (3, 4)
printed = [[1.70355949, 4.58680433, 7.47004916, 10.353294], [1.56070622, 4.19905974, 6.83741326, 9.47576678],
           [2.19865128, 5.93062489, 9.66259851, 13.39457212]]  # fmt: skip
compare("FFN output", made, printed)
print("the second word alone:", mlp(normal[1]))

# %% [markdown]
# A word alone gives the same row as in company: rows are never mixed here. In the picture, a box with a thick left side is a
# part whose inside is not shown, and $\nabla$ marks the gradient.

# %%
show(mg.viz.graph(mlp, normal), "11_mlp")

# %% [markdown]
# The document ends its block with another layer norm:

# %%
printed = [[-1.34164072, -0.44721357, 0.44721357, 1.34164072], [-1.34164071, -0.44721357, 0.44721357, 1.34164071],
           [-1.34164075, -0.44721358, 0.44721358, 1.34164075]]  # fmt: skip
compare("layer norm after the FFN", norm(made), printed)

# %% [markdown]
# Three words, and yet three rows that are all but equal? It is the made-up weights. Each column of $W_2$ is the one before it plus 0.6, so
# every row that comes out is evenly spaced, and layer norm makes the same of all evenly spaced rows. The first exercise
# asks you to show it. With learned weights this does not happen.
#
# ### Three bends
#
# The bend has changed over the years. *ReLU* cuts off what is negative. *GELU* does so gently: it multiplies $x$ by
# $\Phi(x)$ ("phi of x"), the chance that a random number from the bell curve is below $x$. GPT and BERT use it. *SwiGLU*, in
# many newer models, makes two numbers in the place of one and lets the first decide how much of the second gets through.
#
# $$\text{ReLU}(x) = \max(0, x) \qquad \text{GELU}(x) = x \, \Phi(x) \qquad
# \text{SwiGLU}(g, u) = g \cdot \text{sigmoid}(g) \cdot u$$

# %%
places = mg.linspace(-4, 4, 100)
bends = {"ReLU": F.relu, "GELU": F.gelu, "SwiGLU, u = 1": F.silu}
for name, bend in bends.items():
    print(f"{name:14}", *[f"{value:7.3f}" for value in bend(mg.tensor([-2.0, -0.5, 0.5, 2.0])).tolist()])
bent = {name: (places, bend(places)) for name, bend in bends.items()}
show(mg.viz.lines(bent, "three bends", x="x", y="what comes out"), "11_bends")

# %%
for kind in ("relu", "gelu", "swiglu"):
    print(f"{kind:6}  W_1 is {nn.MLP(4, 16, activation=kind).up.weight.shape}")

# %% [markdown]
# ## Residuals: add, do not replace
#
# The document hands the result of each part on to the next. A real block does one thing more, and it is the reason why
# models can be deep: what a part makes is *added* to what it was given. The sum that flows through all blocks is called the
# *residual stream*. Each part reads from it and writes into it, and nothing is lost on the way.
#
# $$x \leftarrow x + \text{part}(x)$$
#
# It matters most on the way back. The slope of $x + \text{part}(x)$ is 1 plus something. A product of many slopes like
# 0.5 is soon nothing, and the first layers learn nothing; with a 1 in every factor, it is not. Here are 24 layers, and how
# much gradient arrives at each of them, with and without.


# %%
def arriving(residual):
    """The size of the gradient at each of 24 layers, the first one first."""
    mg.manual_seed(0)
    stream = [mg.randn(16, 32).requires_grad_()]
    for _ in range(24):
        made = nn.Linear(32, 32)(stream[-1]).tanh()
        stream.append(stream[-1] + made if residual else made)
    goal = (stream[-1] * mg.randn(16, 32)).sum()
    return [np.log10(g.norm().item()) for g in mg.autograd.grad(goal, stream[:-1])]


sizes = np.array([arriving(False), arriving(True)])
for name, row in zip(("without", "with   "), 10**sizes):
    print(f"{name} residuals: {row[-1]:.0f} at the last layer, {row[0]:.5f} at the first")
title = "gradient at each layer, powers of ten"
show(mg.viz.heatmap(sizes, ["without", "with"], range(1, 25), title=title, signed=True), "11_residuals")

# %% [markdown]
# Without, the first layer hears about a millionth of what the last one does. With, it even hears more.
#
# ## The whole block
#
# Now all parts are there. Where should the norm go? The first transformers had it after each sum (*post-norm*). Today it
# is mostly in front of each part (*pre-norm*), so that the stream itself is never squeezed:
#
# $$x \leftarrow x + \text{attention}(\text{norm}(x)) \qquad x \leftarrow x + \text{MLP}(\text{norm}(x))$$
#
# In the picture the two long arrows are the residuals.

# %%
x = words
x = x + block.attention(block.attention_norm(x), is_causal=True)
x = x + block.mlp(block.mlp_norm(x))
print("by hand and nn.TransformerBlock differ by", f"{(x - block(words)).abs().max().item():.0e}")
print(block.summary(words))
show(mg.viz.graph(block, words), "11_block")

# %% [markdown]
# Count the weights, with $d$ numbers a word. Attention has $W_Q, W_K, W_V, W_O$: $4 d^2$. The MLP goes to $4d$ and back:
# $8 d^2$, twice as many. (One of our sources says that the MLP has fewer weights than attention. It is the other way
# round.) Biases and norms add $13 d$: for our block that makes $12 \cdot 8^2 + 13 \cdot 8 = 872$, as in the table above.
# GPT-3 has $d = 12288$ and 96 blocks, so its MLPs hold $96 \cdot 8 d^2$, about 116 billion of its 175 billion weights.
# What is in there?
#
# ## A fact, by hand
#
# Ask a language model for the sport of Michael Jordan, and it says basketball. Let us build an MLP that knows this, and
# only this. Let *Michael*, *Jordan* and *basketball* be three directions in the stream: vectors of length 1, perpendicular
# to each other. To *read* a direction is to take the dot product with it: Michael · (Michael + Jordan) = 1 + 0 = 1.
# We assume that attention has brought both names to one place, so that the stream there is Michael + Jordan.
#
# One neuron is enough. Its weights are Michael + Jordan, its bias is −1:
#
# $$n = \max(0,\; \text{Michael} \cdot x + \text{Jordan} \cdot x - 1) \qquad x \leftarrow x + n \cdot \text{basketball}$$
#
# With both names the sum is 2 − 1 = 1. With one of them it is 1 − 1 = 0, and without, −1, which ReLU makes 0. The neuron
# fires if there is a Michael AND a Jordan: an *AND gate*. Without bias and bend, Michael Phelps would be half a Michael Jordan.
# With the bias alone, somebody with neither name would be minus one basketball player.

# %%
FACTS = {"Michael Jordan": "basketball", "Michael Phelps": "swimming", "Serena Williams": "tennis",
         "Venus Williams": "tennis", "Lionel Messi": "football"}  # fmt: skip
FIRST = list(dict.fromkeys(name.split()[0] for name in FACTS))
LAST = list(dict.fromkeys(name.split()[1] for name in FACTS))
SPORTS = list(dict.fromkeys(FACTS.values()))
# NumPy makes sixteen directions out of random numbers, each perpendicular to all others.
perpendicular = np.linalg.qr(np.random.default_rng(0).normal(size=(16, 16)))[0].astype("float32")
direction = dict(zip([*FIRST, *LAST, *SPORTS], perpendicular))
direction[""] = np.zeros(16, "float32")  # a name that is missing

# %%
key = direction["Michael"] + direction["Jordan"]
for first, last in (("", ""), ("Michael", ""), ("", "Jordan"), ("Michael", "Phelps"), ("Michael", "Jordan")):
    stream = direction[first] + direction[last]
    fires = max(0.0, key @ stream - 1)
    stream = stream + fires * direction["basketball"]
    print(f"{first:8} {last:7} neuron {fires:.2f}   basketball {abs(direction['basketball'] @ stream):.2f}")

# %% [markdown]
# ## The same fact, learned
#
# Nobody sets weights by hand. So take an MLP with eight neurons and random weights, show it five facts and every other
# combination of the names, and let it learn what to add: the direction of the sport, or nothing. Firing costs a little,
# and weights shrink a little (`weight_decay`); both keep neurons from saying the same thing together.

# %%
pairs = [(first, last) for first in ["", *FIRST] for last in ["", *LAST]]
streams = mg.tensor(np.stack([direction[first] + direction[last] for first, last in pairs]))  # (25, 16)
wanted = mg.tensor(np.stack([direction[FACTS.get(f"{first} {last}", "")] for first, last in pairs]))
mg.manual_seed(0)
memory = nn.MLP(16, 8, activation="relu")
optimizer = optim.AdamW(memory.parameters(), lr=0.01, weight_decay=0.1)

# %%
for _ in range(1000):
    fires = F.relu(memory.up(streams))  # (25, 16) -> (25, 8)
    loss = ((memory.down(fires) - wanted) ** 2).sum(axis=1).mean() + 0.05 * fires.sum(axis=1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
answers = (memory(streams) @ mg.tensor(np.stack([direction[sport] for sport in SPORTS])).mT).numpy()  # (25, sports)
said = ["" if row.max() < 0.5 else SPORTS[row.argmax()] for row in answers]
print(sum(one == FACTS.get(f"{a} {b}", "") for one, (a, b) in zip(said, pairs)), "of", len(pairs), "are right")

# %% [markdown]
# Read the weights as a memory. A row of `up` is a *key*: which names does the neuron listen to? A column of `down` is its
# *value*: which sport does it write? We ask each neuron by dot products with the directions that we know.

# %%
awake = np.flatnonzero(fires.numpy().max(axis=0) > 0.05)
keys = memory.up.weight.numpy()[awake] @ np.stack([direction[name] for name in [*FIRST, *LAST]]).T
values = memory.down.weight.numpy().T[awake] @ np.stack([direction[sport] for sport in SPORTS]).T
bias = memory.up.bias.numpy()[awake, None]
table = np.concatenate([keys, bias, values], axis=1)
columns = [*FIRST, *LAST, "bias", *SPORTS]
title = "what each neuron listens to, and what it writes"
show(mg.viz.heatmap(table, awake, columns, title=title, signed=True), "11_memory")
for number, neuron in zip(awake, table):
    strong = [f"{columns[i]} {neuron[i]:+.2f}" for i in np.argsort(-np.abs(neuron)) if abs(neuron[i]) > 0.3]
    print(f"neuron {number}:", ", ".join(strong))

# %% [markdown]
# Look at the neuron for basketball: it listens to Michael and Jordan alike, and its bias takes one of them away. That is
# our AND gate, times 0.55, with a value that makes up for it. And one neuron found something we had not thought of: Serena
# and Venus and Williams, with one bias. It is (Serena or Venus) AND Williams, two facts in one neuron.
#
# (With another seed one of the five facts may get lost on the way: eight neurons are few. `minigrad train facts` learns
# ten facts with sixteen neurons.)
#
# ## Superposition: more features than numbers
#
# Here every name had a direction of its own. In a space with 16 numbers there are only 16 perpendicular directions. Does a
# model with 12,288 numbers a word know no more than 12,288 things? No: directions need not be perpendicular. Almost is
# enough. How much is almost? The *cosine* of two vectors of length 1 is their dot product: 0 if they are perpendicular, 1
# if they are the same. Take random vectors, and see what angles they make.

# %%
rng = np.random.default_rng(0)
for dims in (2, 100, 10_000):
    vectors = rng.normal(size=(500, dims))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (vectors @ vectors.T)[np.triu_indices(500, 1)]  # every pair once
    angles = np.degrees(np.arccos(cosines.clip(-1, 1)))
    low, high = np.quantile(angles, [0.05, 0.95])
    print(f"{dims:6} numbers: nine of ten angles lie between {low:4.1f} and {high:5.1f} degrees")

# %% [markdown]
# The larger the space, the more nearly perpendicular everything is by chance: in 10,000 dimensions within one degree.
# In 100 dimensions "almost" has to be wider, ten degrees. (One of our sources calls 89 to 91 degrees almost, and says that
# 10,000 random vectors in 100 dimensions are all almost perpendicular. To within a degree few are; but it is right that
# there is room for far more than 100.)
#
# Will a network use that room? Let $x$ have five *features*: numbers from 0 to 1, of which the first matters most. Squeeze
# them through *two* numbers and ask for all five back:
#
# $$h = x W \qquad \hat{x} = \max(0,\; h W^T + b)$$
#
# Row $i$ of $W$ is the direction in which feature $i$ is stored. The loss is the squared error, in which each feature counts
# 0.9 times as much as the one before it. Everything depends on how often features are there.


# %%
def some_features(count, features, density):
    """Rows of features, each there with probability `density` and then anything from 0 to 1."""
    there = rng.random((count, features)) < density
    return (there * rng.random((count, features))).astype("float32")


# %%
def squeezed(features, dims, density, steps=1500):
    """The directions (features, dims) in which a network learns to store features."""
    mg.manual_seed(0)
    W, b = nn.Parameter(0.3 * mg.randn(features, dims)), nn.Parameter(mg.zeros(features))
    matters = mg.tensor(0.9 ** np.arange(features), dtype="float32")
    optimizer = optim.AdamW([W, b], lr=0.01, weight_decay=0.0)
    for _ in range(steps):
        x = mg.tensor(some_features(256, features, density))
        loss = (matters * (x - F.relu(x @ W @ W.T + b)) ** 2).sum() / 256
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return W.numpy()


# %%
for name, density in (("always", 1.0), ("rarely", 0.05)):
    W = squeezed(5, 2, density)
    print(f"features that are {name} there are stored with lengths", np.linalg.norm(W, axis=1).round(2))
    show(mg.viz.directions(W, f"five features, {name} there"), f"11_{name}")

# %% [markdown]
# Features that are always there get in each other's way. So the two that matter most take two perpendicular directions, and the
# others are given up. But features that are rare seldom meet. All five are stored, as a pentagon, and where one disturbs another a
# little, the bias and the ReLU cut it off. That is *superposition*. It is why a single neuron of a large model rarely means
# one thing.
#
# ## A sparse autoencoder finds them again
#
# Somebody hands us only the squeezed numbers $h$. Can we find the directions? An *autoencoder* is a network that is asked
# for its own input. Ours has more room inside than $h$ has, and a price on using it. The cheapest way out is to use few
# inner numbers at a time, each for one feature: *sparse* means few.
#
# $$c = \max(0,\; h E + b) \qquad \text{loss} = |h - c D|^2 + \lambda \sum c$$
#
# $c$ is the inner *code*. Rows of $D$ are directions of length 1, and they are what we are after. $\lambda$ ("lambda") is the
# price. Sixteen features in six numbers this time, and 24 inner numbers.

# %%
W = squeezed(16, 6, 0.05)
size = float(np.sqrt(((some_features(4096, 16, 0.05) @ W) ** 2).sum(axis=1).mean()))  # so that h is about 1 long
mg.manual_seed(1)
D, b = nn.Parameter(mg.randn(24, 6)), nn.Parameter(mg.zeros(24))
E = nn.Parameter((D / D.norm(axis=1, keepdims=True)).detach().T)
optimizer = optim.AdamW([D, E, b], lr=0.01, weight_decay=0.0)
schedule = optim.Cosine(optimizer, total=2000)

# %%
for _ in range(2000):
    h = mg.tensor(some_features(512, 16, 0.05) @ W / size)
    unit = D / D.norm(axis=1, keepdims=True)  # only the directions count
    code = F.relu(h @ E + b)  # (512, 6) -> (512, 24)
    loss = ((h - code @ unit) ** 2).sum() / 512 + 0.4 * code.sum() / 512
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()

# %%
stored = W / np.linalg.norm(W, axis=1, keepdims=True)
used = (code.numpy() > 0).any(axis=0)
likeness = stored @ unit.numpy()[used].T  # cosines: (16, used)
print(f"{(likeness.max(axis=1) > 0.9).sum()} of 16 directions found, by {used.sum()} of 24 inner numbers")
best = likeness.argmax(axis=1)
order = [*dict.fromkeys(best.tolist()), *[i for i in range(used.sum()) if i not in best]]
title = "cosine of each feature with each inner number"
show(mg.viz.heatmap(likeness[:, order], range(16), np.flatnonzero(used)[order], title=title, signed=True), "11_found")

# %% [markdown]
# It never saw a feature, only their shadows in six numbers, and it has all sixteen. Some are found twice, by two inner
# numbers that share the work. The same tool, much larger, is used to look into large language models.
#
# ## Exercises
#
# 1. Show that layer norm makes the same of $x$ and of $3x + 2$ (but for $\epsilon$), and that it makes
#    $(-1.3416, -0.4472, 0.4472, 1.3416)$ of any four evenly spaced, growing numbers. Then explain the document's last matrix.
# 2. Build by hand *one* neuron that fires for Serena Williams and for Venus Williams, and for nobody else, and lets the
#    block add tennis. Then build one for three words: Michael AND Jordan AND retired. What is its bias?
# 3. `nn.Encoder(2, dim=8, heads=2)` is a stack of two blocks. Two sentences of 5 and 3 words go through it, the second filled
#    up with two words of nonsense. Show that with `mask=nn.padding_mask([5, 3])` its three real words come out as if it had
#    been alone, and without the mask they do not.
#
# More to do, a file with holes that marks itself: `minigrad learn start 11`, then `minigrad learn check`.
#
# Solutions: [solutions/11_inside_a_block.py](solutions/11_inside_a_block.py)
#
# ## Read next
#
# - [minigrad/nn/transformer/blocks.py](../minigrad/nn/transformer/blocks.py): the block. `_add` is where norm and residual are.
# - [minigrad/nn/transformer/attention.py](../minigrad/nn/transformer/attention.py) and
#   [minigrad/nn/layers/mlp.py](../minigrad/nn/layers/mlp.py): its two parts.
# - [models/facts](../models/facts/README.md) and [models/superposition](../models/superposition/README.md): both experiments
#   as models that you can train, with results over many seeds.
# - Next: [12. The whole translator](12_translator.py), in which two stacks of such blocks translate.
