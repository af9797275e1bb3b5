# %% [markdown]
# # 23. Networks with a memory
#
# Before there were transformers, a sentence was read as we read it: one word after the other, with a state in mind that
# each word changes. Such networks are *recurrent*. They are still in use where memory is dear, and they are where
# attention comes from. You will have
#
# - a recurrent network by hand, equal to `nn.RNN` in every number;
# - its graph through time, and a gradient that vanishes on the way back through it, or explodes;
# - gates, and an LSTM by hand, whose gradient arrives;
# - an encoder and a decoder, and the one vector between them that is too small;
# - attention, invented to get around that vector, and what it looks at;
# - what happens to a decoder that has only ever been fed the truth;
# - the reason why transformers came next.
#
# Reading takes about 30 minutes, running about 20 seconds.

# %%
import numpy as np
from minigrad_models.seq2seq.model import Seq2Seq, alignment
from showing import show

import minigrad as mg
from minigrad import nn
from minigrad.data import BOS, EOS
from minigrad.decode import greedy_all
from minigrad.nn import functional as F

mg.manual_seed(23)
random = np.random.default_rng(23)

# %% [markdown]
# ## A state that each step changes
#
# A row of inputs $x_1, x_2, \dots$ comes in, and a state $h$ goes along. At first it is 0. Each step makes a new one:
#
# $$h_t = \tanh(W x_t + U h_{t-1} + b)$$
#
# The same $W$, $U$ and $b$ serve every step. So the row may be of any length, and what is learned at one place is known at all
# of them.

# %%
inputs, size, steps = 3, 4, 6
layer = nn.RNN(inputs, size)
W, U = layer.weight_ih_l0, layer.weight_hh_l0
b = layer.bias_ih_l0 + layer.bias_hh_l0  # PyTorch has two, and so have we; only their sum counts
x = mg.randn(steps, 1, inputs)  # (steps, batch, inputs)

h, states = mg.zeros(1, size), []
for t in range(steps):
    h = mg.tanh(x[t] @ W.T + h @ U.T + b)
    states.append(h)
whole, last = layer(x)
print("by hand, the last state:", h.numpy()[0].round(4))
print("nn.RNN, the last state: ", last.numpy()[0, 0].round(4))
print("all states are equal:   ", np.allclose(mg.stack(states).numpy(), whole.numpy(), atol=1e-6))

# %% [markdown]
# Does it remember? Change the first input, and see how much each later state changes:

# %%
other = x.numpy().copy()
other[0] += 1
changed = np.abs(layer(mg.tensor(other))[0].numpy() - whole.numpy()).max(axis=(1, 2))
print("change of the state after step 1, 2, …:", changed.round(4))

# %% [markdown]
# It does, and less with every step. That will be the trouble.
#
# ## Backward through time
#
# Written out, a recurrent network is a network of many layers that share their weights. Here are two steps of one with a
# single number for a state. Follow the arrow from the loss back to the first input: it passes every step in between.

# %%
w, u = mg.tensor(0.8, requires_grad=True), mg.tensor(0.9, requires_grad=True)
first, second = mg.tensor(1.0, requires_grad=True), mg.tensor(-0.5, requires_grad=True)
with mg.debug():  # which keeps every number, for the picture
    h1 = mg.tanh(w * first)
    h2 = mg.tanh(w * second + u * h1)
    loss = h2**2
loss.backward()
show(mg.viz.graph(loss, direction="both"), "23_two_steps")
print(f"gradient of x2: {second.grad.item():.4f}, of x1, one step farther away: {first.grad.item():.4f}")

# %% [markdown]
# By the chain rule (tutorial 1) each step back multiplies by the derivative of one state by the one before it:
#
# $$\frac{\partial h_T}{\partial h_t} = \prod_{k=t+1}^{T} \mathrm{diag}(1 - h_k^2) \, U$$
#
# A product of many factors does one of two things. If they are smaller than 1, it vanishes; if they are larger, it explodes.
# Take a row of 40 steps, a loss at its end, and the size of the gradient of each input. $U$ is turned into one that keeps
# lengths (an orthogonal matrix), times 0.5, 1 or 1.5:


# %%
def gradients(layer, length=40, width=16):
    """The size of the gradient of each input of a row, for a loss at the end: (length,)."""
    x = mg.tensor(0.1 * random.standard_normal((length, 1, width)).astype(np.float32), requires_grad=True)
    (layer(x)[0][-1] ** 2).sum().backward()
    return np.linalg.norm(x.grad.numpy(), axis=(1, 2)) + 1e-30


orthogonal = np.linalg.qr(random.standard_normal((16, 16)))[0].astype(np.float32)
rows, names = [], []
for scale in (0.5, 1.0, 1.5):
    layer = nn.RNN(16, 16)
    with mg.no_grad():
        layer.weight_hh_l0[...] = scale * orthogonal
    found = gradients(layer)
    rows.append(np.log10(found[-1] / found))
    names.append(f"RNN,U×{scale}")
    print(f"{names[-1]}: the first input counts {found[0] / found[-1]:.1e} times as much as the last")

# %% [markdown]
# With 0.5 the first input might as well not be there: its gradient is the last one's divided by more than a million
# million, and no learning rate gets anything out of that. With 1 the tanh alone takes most of it: $1 - h^2$ is below 1. With
# 1.5 it grows on the way back, and would do so far more if the tanh let it. (Clipping the norm of the gradient, as the
# trainer here does, is how one lives with that.) Something in between would do, but weights that learn do not stay where
# they were put.
#
# ## Gates
#
# The product is the problem, so let there be a way back that has no product with a matrix in it. An LSTM has a second state
# beside $h$, the *cell* $c$, which is changed by adding to it:
#
# $$c_t = f \odot c_{t-1} + i \odot g, \qquad h_t = o \odot \tanh(c_t)$$
#
# $g = \tanh(\dots)$ is what could be written down. The *gates* $i$, $f$ and $o$ are numbers from 0 to 1, each
# $\sigma(W x_t + U h_{t-1} + b)$ with weights of its own: how much of $g$ is written, how much of $c$ is kept, how much of it
# is shown. By hand:

# %%
lstm = nn.LSTM(inputs, size)
W, U, b = lstm.weight_ih_l0, lstm.weight_hh_l0, lstm.bias_ih_l0 + lstm.bias_hh_l0
h, c = mg.zeros(1, size), mg.zeros(1, size)
for t in range(steps):
    gates = x[t] @ W.T + h @ U.T + b  # (1, 4 · size): all four by one product
    i, f, g, o = mg.split(gates, 4, axis=-1)
    c = mg.sigmoid(f) * c + mg.sigmoid(i) * mg.tanh(g)
    h = mg.sigmoid(o) * mg.tanh(c)
whole, (last, cell) = lstm(x)
print(
    "the same as nn.LSTM:",
    np.allclose(h.numpy(), last.numpy()[0], atol=1e-6),
    np.allclose(c.numpy(), cell.numpy()[0], atol=1e-6),
)

# %% [markdown]
# On the way back along the cell each step multiplies by $f$, and by nothing else: $\partial c_t / \partial c_{t-1} = f$ (where the
# gates themselves look at $h$, there are other ways, which we leave aside). If $f$ is near 1, the gradient arrives. Whether it
# is can be learned, and where it starts is up to us: a bias of 3 on the forget gate makes it $\sigma(3) = 0.95$.

# %%
for bias in (0.0, 3.0):
    layer = nn.LSTM(16, 16)
    with mg.no_grad():
        layer.bias_hh_l0[16:32] = bias  # the rows of i, f, g and o lie one below the other
    found = gradients(layer)
    rows.append(np.log10(found[-1] / found))
    names.append(f"LSTM,f+{bias:g}")
    print(f"{names[-1]}: the first input counts {found[0] / found[-1]:.1e} times as much as the last")
every = slice(0, None, 3)
show(
    mg.viz.heatmap(
        np.array(rows)[:, every],
        names,
        range(1, 41)[every],
        title="by how many powers of ten the gradient has shrunk at the input of each step",
    ),
    "23_gradients",
)

# %% [markdown]
# A GRU (`nn.GRU`) makes the same idea cheaper: two gates, and no cell. Its $z$ says how much of the old state stays.
#
# Does it matter for learning? Here is a task that needs nothing but memory: the first of 30 numbers is to be said at the
# end.


# %%
def recall(kind, length=30, count=8, size=32, steps=150):
    """Train a layer to say the first number of a row at its end; how often it is right at last."""
    mg.manual_seed(1)
    draw = np.random.default_rng(1)
    table, layer, head = nn.Embedding(count, 16), kind(16, size), nn.Linear(size, count)
    if kind is nn.LSTM:
        with mg.no_grad():
            layer.bias_hh_l0[size : 2 * size] = 3.0
    params = [*table.parameters(), *layer.parameters(), *head.parameters()]
    optimizer, right = mg.optim.AdamW(params, lr=0.01), []
    for _ in range(steps):
        shown = draw.integers(0, count, (length, 64))
        logits = head(layer(table(mg.tensor(shown)))[0][-1])  # (64, count)
        loss = F.cross_entropy(logits, mg.tensor(shown[0]))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step()
        right.append((logits.numpy().argmax(axis=1) == shown[0]).mean())
    return np.mean(right[-20:])


for kind in (nn.RNN, nn.LSTM):
    print(f"{kind.__name__:4}: {recall(kind):.0%} right after 150 steps (guessing: 12 %)")

# %% [markdown]
# ## Two of them translate
#
# One network reads a sentence, and where its state has come to, another begins, and writes (Sutskever, Vinyals and Le,
# 2014). It writes a word, is fed that word, writes the next, until it writes that this is the end. This is
# [models/seq2seq/model.py](../models/seq2seq/model.py), on one page.
#
# To see it work within seconds, let it say rows of digits backwards. All that the writer knows of the row is in one
# state of 48 numbers:


# %%
def row_of(length, count=64):
    """Rows of digits to read, and backwards to write: (count, length + 1), (count, length + 2)."""
    digits = random.integers(5, 13, (count, length))  # 0 to 4 are special tokens, such as the start and the end
    start, end = np.full((count, 1), BOS), np.full((count, 1), EOS)
    return np.hstack([digits, end]), np.hstack([start, digits[:, ::-1], end])


def taught(attention, steps=360):
    """An encoder and a decoder of GRUs that have seen so many batches of rows of 2 to 8 digits."""
    mg.manual_seed(2)
    model = Seq2Seq("gru", 13, 16, 48, attention=attention)
    optimizer = mg.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(steps):
        source, target = row_of(random.integers(2, 9))
        loss = model(mg.tensor(source), mg.tensor(target[:, :-1]), wanted=mg.tensor(target[:, 1:])) / target[:, 1:].size
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model.eval()


def exact(model, length):
    """How many of 64 rows are written without a mistake."""
    source, target = row_of(length)
    said = greedy_all(model, source.tolist())
    return np.mean([one == row[1:-1].tolist() for one, row in zip(said, target)])


plain = taught(attention=False)
print("without attention:", {length: f"{exact(plain, length):.0%}" for length in (2, 4, 6, 8)})

# %% [markdown]
# Short rows work. The longer they are, the worse: the state has only so many numbers, and the first digit has been read
# over by all that came after it.
#
# ## Where attention comes from
#
# Bahdanau, Cho and Bengio (2014) let the writer look back. The reader's states $m_1, m_2, \dots$ are all kept. Before each
# step the writer's state $s$ is compared with each of them, and it gets their mean, weighted by how well they fit:
#
# $$e_j = v \cdot \tanh(W s + U m_j), \qquad a = \mathrm{softmax}(e), \qquad \mathrm{context} = \sum_j a_j m_j$$
#
# Put queries in the place of $W s$, keys in that of $U m_j$, values in that of $m_j$, and a dot product in that of $v \cdot \tanh(\dots)$: it is
# the cross-attention of tutorial 12.

# %%
looking = taught(attention=True)
print("with attention:   ", {length: f"{exact(looking, length):.0%}" for length in (2, 4, 6, 8)})

source, target = row_of(7, 1)
weights = alignment(looking, source, target[:, :-1])[0]  # (8, 8)
read, written = ([str(n - 5) if n > 4 else "end" for n in ids] for ids in (source[0], target[0, 1:]))
show(
    mg.viz.heatmap(weights.round(2), written, read, title="down: what is written; across: where it looks"),
    "23_attention",
)
print("for each digit that is written, the place that it looks at most:", *(weights.argmax(axis=1) + 1))

# %% [markdown]
# It is better at every length, and long rows gain most. And it goes from the last digit to the first. Nobody told it the
# order: this is how the loss became small. In the picture of a translation such a line goes from the top left to the
# bottom right, with knots where the languages differ in order;
# `minigrad translate "You are welcome" --run RUN --attention seen.svg` draws it for a run of
# [seq2seq](../models/seq2seq/README.md).
#
# ## Fed the truth, fed its own
#
# In training the writer was fed the *true* digits before each one, whatever it would have said itself. That is
# *teacher forcing*: quick, since nothing has to be said first, and kind. But in use it is fed its own words, and after a
# first mistake it is somewhere where it has never been. The difference is *exposure bias*:

# %%
source, target = row_of(8, 256)
with mg.no_grad():
    forced = (plain(mg.tensor(source), mg.tensor(target[:, :-1])).numpy().argmax(axis=-1) == target[:, 1:])[:, :-1]
said = greedy_all(plain, source.tolist())
free = np.array([[a == b for a, b in zip([*one, *[0] * 8], row[1:-1])] for one, row in zip(said, target)])
print("place in the row: ", *(f"{place:5}" for place in range(1, 9)))
print("fed the truth, %: ", *(f"{100 * share:5.1f}" for share in forced.mean(axis=0)))
print("fed its own, %:   ", *(f"{100 * share:5.1f}" for share in free.mean(axis=0)))

# %% [markdown]
# The first digit is the same for both, since nothing was said before it. A remedy is to feed it its own choice now and then
# while it learns: `teacher_forcing=0.5` draws for each word. It costs time, since now each word has to wait for the one before.
#
# ## Why the transformer
#
# With attention the writer sees all that was read, however far away. Then what is the recurrence still for? It has two
# costs. State $t$ cannot be computed before state $t - 1$: a thousand words are a thousand small products, one after the
# other, where a transformer has one large product. And the way from one word to another is as long as the words are far
# apart, where attention has a way of one step. Look at the gradients again, this time of a block of attention (tutorial 11):

# %%
block = nn.Encoder(1, dim=16, heads=4, causal=True)
found = gradients(lambda x: (block(x.swapaxes(0, 1)).swapaxes(0, 1), None))[
    :-1
]  # the last one also goes around the attention
print(
    f"the first input counts {found[0] / found[-1]:.2f} times as much as the last but one; the least of all {found.min() / found[-1]:.2f}"
)

# %% [markdown]
# "Attention is all you need" (2017) left the recurrence out. What it gave up is the small state: a recurrent network needs
# the same memory for the millionth word as for the first, where a transformer keeps keys and values of all of them. That
# is why recurrences come back now and then, as in the little translator of tutorial 22.

# %% [markdown]
# ## Exercises
#
# 1. Write a GRU by hand, $r, z = \sigma(\dots)$, $n = \tanh(W_n x + b_n + r \odot (U_n h + c_n))$, $h' = (1 - z) \odot n + z \odot h$, and
#    compare it with `nn.GRU`.
# 2. *Truncated* back-propagation: read a row of 40 in pieces of 10, and cut the graph between them with `detach()`. Which
#    inputs still have a gradient? Are the states others than before?
# 3. Show how an LSTM counts: train one on rows of 0 and 1 to say how many ones there were, and look at its cell. Is there
#    a number in it that grows with each one?
#
# More to do, a file with holes that marks itself: `minigrad learn start 23`, then `minigrad learn check`.
#
# Solutions: [solutions/23_networks_with_a_memory.py](solutions/23_networks_with_a_memory.py)
#
# ## Read next
#
# - [models/seq2seq/model.py](../models/seq2seq/model.py): the encoder, the decoder and Bahdanau's attention.
# - [models/rnn/model.py](../models/rnn/model.py): a language model with a state in the place of a cache.
# - [minigrad/kernels/recurrent.py](../minigrad/kernels/recurrent.py): RNN, GRU and LSTM as ordinary ops.
# - [minigrad/nn/layers/recurrent.py](../minigrad/nn/layers/recurrent.py): layers, directions, lengths.
