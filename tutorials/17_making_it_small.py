# %% [markdown]
# # 17. Making it small
#
# A weight takes 32 bits. Does it need them? We take away bit after bit, down to a single one, and see what is left of what
# the model knows.
#
# At the end you will have
#
# - the bits of a number, and what each of them says;
# - a trained network in 8 bits and in 4 bits a weight, and in about 1.6 bits and in one, each with its bytes and its score;
# - an op through which a network learns although it is rounded.
#
# Reading takes about 30 minutes, running about five seconds.

# %%
import os
import tempfile

import numpy as np
from minigrad_models.digits.images import images
from showing import show

import minigrad as mg
from minigrad import nn, optim
from minigrad.nn import functional as F
from minigrad.viz.drawing.axes import Scale, frame
from minigrad.viz.drawing.colors import diverging
from minigrad.viz.drawing.scene import Ellipse, Image, Rect, Scene, Text

# %% [markdown]
# ## What the bytes are
#
# A *bit* is a 0 or a 1, a *byte* is eight of them. A float32 has four bytes, and they are used like the notation
# $-1.25 \cdot 10^{-3}$ in school, only with powers of two: one bit for the sign, eight for the power (the *exponent*), and 23
# for the digits after the point (the *fraction*).
#
# $$\text{number} = \pm \; 1.\text{fraction} \cdot 2^{\,\text{exponent} - 127}$$
#
# Take $0.15625 = 1.25 \cdot 2^{-3}$. The exponent is stored as 124, since 124 − 127 = −3. The fraction is 0.25, a quarter,
# which is `01` in binary digits after the point: no half, one quarter.


# %%
def bits(number):
    """The 32 bits of a float32, as a text."""
    return f"{np.float32(number).view(np.uint32):032b}"


for number in (0.15625, -0.15625, 0.1):
    text = bits(number)
    power, fraction = int(text[1:9], 2), int(text[9:], 2) / 2**23
    print(f"{number:8}: {text[0]} {text[1:9]} {text[9:]}  {1 + fraction:.7f} x 2^{power - 127}")

# %%
shapes = []
for place, bit in enumerate(bits(0.15625)):
    role = "gradient-fill" if place == 0 else "input" if place < 9 else "output"
    shapes += [Rect(20 + 17 * place, 30, 17, 24, role), Text(28.5 + 17 * place, 46, bit, 11, anchor="middle")]
for place, word in ((0, "sign"), (3, "exponent: 124"), (15, "fraction: 0.25")):
    shapes.append(Text(20 + 17 * place, 72, word, 11, "faint"))
shapes.append(Text(20, 20, "0.15625 in 32 bits", 12, bold=True))
show(Scene(584, 88, shapes, "the bits of a number"), "17_bits")

# %% [markdown]
# Seven digits for every weight. Training needs them: it adds many small steps. But when it is over, does anybody need to know
# that a weight is 0.1316725 and not 0.13?
#
# ## Eight bits, by hand
#
# Let a row of weights be 0.6, −1.27, 0.25, 0.004. In eight bits there is room for the whole numbers from −127 to 127. So choose
# a *scale*, such that the largest weight becomes 127: 1.27 / 127 = 0.01. Divide by it and round: 60, −127, 25, 0. We keep
# these, one byte each, and the scale, once for the row. To use them, multiply again: 0.60, −1.27, 0.25, 0.00.
#
# $$s = \frac{\max |w|}{127} \qquad q = \text{round}(w / s) \qquad w \approx s \cdot q$$
#
# Nothing is off by more than half a scale, 0.005. It is called *quantisation*.


# %%
def quantised(row, largest):
    """A row of weights as whole numbers from -largest to largest, and their scale."""
    scale = np.abs(row).max() / largest
    return np.rint(row / scale).astype("int8"), scale


row = np.array([0.6, -1.27, 0.25, 0.004])
for largest, name in ((127, "8 bits"), (7, "4 bits")):
    whole, scale = quantised(row, largest)
    off = np.abs(row - scale * whole).max()
    print(f"{name}: {whole} times {scale:.4f} is {(scale * whole).round(4)}, off by {off:.4f} at most")

# %% [markdown]
# With four bits there are the whole numbers from −7 to 7, and the steps get coarse. In the picture: what becomes of a weight.

# %%
places = np.linspace(-1.27, 1.27, 400)
steps = np.rint(places / (1.27 / 7)) * (1.27 / 7)
staircase = {"the weight itself": (places, places), "what 4 bits make of it": (places, steps)}
show(mg.viz.lines(staircase, "a staircase", x="a weight", y="what is kept"), "17_staircase")

# %% [markdown]
# Two such numbers fit into one byte. Add 8, so that they are from 1 to 15, and put one into the lower half of the byte and
# the other, times 16, into the upper half. For 3 and −7 that is 11 + 16 · 1 = 27.

# %%
low, high = 3, -7
byte = (low + 8) + 16 * (high + 8)
print(f"{low} and {high} are the byte {byte} = {byte:08b}; back: {byte % 16 - 8} and {byte // 16 - 8}")

# %% [markdown]
# ## A network in eight and in four bits
#
# Now a real one. It reads drawn digits of 16 × 16 pixels; the test images are others than those it learns from. It has two
# layers of weights. In front of each, an RMSNorm brings every row of numbers to the same size: it divides by the root of the
# mean of their squares. That helps a lot when weights get coarse. There are no biases.

# %%
pixels, labels = images(2000, 0, "train")
test_pixels, test_labels = images(1000, 0, "test")
pixels, test_pixels = pixels.reshape(-1, 256), test_pixels.reshape(-1, 256)
print(pixels.shape, "of which the first is a", labels[0])


def learn(model, steps=400):
    """Train it on the images, with a learning rate that falls to 0."""
    rng = np.random.default_rng(0)
    optimizer = optim.AdamW(model.parameters(), lr=3e-3)
    schedule = optim.Cosine(optimizer, total=steps)
    for _ in range(steps):
        rows = rng.integers(0, len(pixels), 64)
        loss = F.cross_entropy(model(mg.tensor(pixels[rows])), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model


# %%
def accuracy(model):
    """The share of test images that it reads rightly."""
    return float((model(mg.tensor(test_pixels)).numpy().argmax(axis=1) == test_labels).mean())


def build(layer, **options):
    """256 pixels -> 128 neurons -> 10 digits"""
    norms = [nn.RMSNorm(size, elementwise_affine=False) for size in (256, 128)]
    first, second = layer(256, 128, bias=False, **options), layer(128, 10, bias=False, **options)
    return nn.Sequential(norms[0], first, nn.ReLU(), norms[1], second)


# %%
mg.manual_seed(0)
network = learn(build(nn.Linear))
results = {}  # name: (bytes of the weights, accuracy)
for bit_count in (8, 4):
    small = nn.quantized(network, bits=bit_count)
    print(small)
    told = nn.compare_quantized(network, small, accuracy)
    results["float32"], results[f"int{bit_count}"] = zip(*told.values())

# %% [markdown]
# A quarter of the bytes for nothing, an eighth for next to nothing. `nn.quantized` gives each *block* of 32 weights a scale
# of its own, and that matters: one weight that is much larger than the others makes the scale coarse for all that share it.
#
# ## Too far
#
# Why not go on? With *ternary* weights there are three values, −γ, 0 and γ ("gamma"), with *binary* ones two, −γ and γ. Both
# take for γ the mean size of the weights of the layer.
#
# $$\text{ternary:} \quad \gamma \cdot \text{clip}(\text{round}(w / \gamma), -1, 1) \qquad\qquad
# \text{binary:} \quad \gamma \cdot \text{sign}(w)$$
#
# "Clip" means: what is below −1 becomes −1, and what is above 1 becomes 1. (In the code `xp` is the module that computes with
# arrays, NumPy here. [Tutorial 19](19_numpy_to_cupy.py) says why it has another name.)


# %%
def levels(xp, w, kind):
    """The scale, and the levels: -1 and 1, or -1, 0 and 1."""
    scale = xp.mean(xp.abs(w))
    if kind == "binary":
        return scale, xp.where(w < 0, -1, 1).astype(w.dtype)
    return scale, xp.clip(xp.rint(w / scale), -1, 1)


def rounded_after(kind):
    """The trained network, its weights rounded when it is too late to learn."""
    state = {}
    for name, weight in network.state_dict().items():
        scale, values = levels(np, weight.numpy(), kind)
        state[name] = scale * values
    copy = build(nn.Linear)
    copy.load_state_dict(state)
    return copy


# %%
print(f"as trained {accuracy(network):.1%}")
for kind in ("ternary", "binary"):
    print(f"rounded to {kind} {accuracy(rounded_after(kind)):.1%}")

# %% [markdown]
# That hurts. The network was never told that it would be rounded. So tell it.
#
# ## Quantisation-aware training
#
# Round in every forward pass, while it learns. There is one obstacle: rounding is a staircase. Its slope is 0 on every step,
# so the gradient is 0, and nothing is learned. The way out is a white lie, the *straight-through estimator*: forward we
# round, backward we pretend that we had not.
#
# $$\text{forward:} \quad \text{round}(w) \qquad\qquad \text{backward:} \quad \text{slope} = 1$$
#
# Why does that work? The weight that is trained keeps its fractions, and collects small steps until it tips over an edge.
# Let $w = 0.4$, and let 1 be the value that would be right. The loss is $(\text{round}(w) - 1)^2$, its slope
# $2 \cdot (0 - 1) = -2$. At a learning rate of 0.02, $w$ grows by 0.04 a step. Above 0.5 it is rounded to 1, and rests.

# %%
w = 0.4
for _ in range(5):
    slope = 2 * (round(w) - 1)
    print(f"w = {w:.2f}, rounded {round(w)}, slope {slope}")
    w -= 0.02 * slope

# %% [markdown]
# As an op of our own (tutorial 18 has more of them): the forward rounds, and the rule for the gradient hands it on as it is.


# %%
@mg.op
def rounded(xp, w, *, kind):
    """The weights with only a few values."""
    scale, values = levels(xp, w, kind)
    return scale * values


rounded.vjp(w=lambda g: g)  # straight through


class BitLinear(nn.Linear):
    """A Linear whose weights are rounded each time they are used."""

    def __init__(self, inputs, outputs, bias, kind):
        super().__init__(inputs, outputs, bias)
        self.kind = kind

    def forward(self, x):
        return F.linear(x, rounded(self.weight, kind=self.kind))


# %%
trained = {}
for kind in ("ternary", "binary"):
    mg.manual_seed(0)
    trained[kind] = learn(build(BitLinear, kind=kind))
    late, early = accuracy(rounded_after(kind)), accuracy(trained[kind])
    print(f"{kind}: {late:.1%} if rounded after training, {early:.1%} if trained so")

# %% [markdown]
# Most of what was lost is back. (There are 1000 test images, so half a percent more or less is chance.) Below is what one
# neuron of each network looks for in an image: orange where it wants ink, blue where it wants none.

# %%
neurons = {"float": network[1].weight.numpy()[5]}
neurons |= {kind: levels(np, trained[kind][1].weight.numpy(), kind)[1][5] for kind in trained}
shapes = []
for number, (name, neuron) in enumerate(neurons.items()):
    image = diverging(neuron.reshape(16, 16))  # (16, 16) -> (16, 16, 3), colours
    shapes += [Image(20 + 180 * number, 40, 160, 160, image), Text(20 + 180 * number, 30, name, 12)]
show(Scene(560, 220, shapes, "what one neuron looks for"), "17_neurons")

# %% [markdown]
# ## Into bytes
#
# A rounded weight still lies in memory as a float. To save anything it must be *packed*. Eight binary weights make a byte. A
# ternary weight has $\log_2 3 \approx 1.585$ bits of news. As digits of base 3, five of them make a number from 0 to
# $3^5 - 1 = 242$, which fits into a byte: 1.6 bits each.
#
# $$\text{byte} = d_0 + 3 d_1 + 9 d_2 + 27 d_3 + 81 d_4 \qquad d = \text{level} + 1$$

# %%
POWERS = np.array([1, 3, 9, 27, 81])


def packed(values, kind):
    """Levels of any shape -> bytes."""
    flat = values.ravel()
    if kind == "binary":
        return np.packbits(flat > 0)
    digits = np.pad(flat + 1, (0, -len(flat) % 5)).reshape(-1, 5)
    return (digits @ POWERS).astype("uint8")


def unpacked(stored, count, kind):
    """What was packed."""
    if kind == "binary":
        return np.unpackbits(stored, count=count) * 2.0 - 1
    return (stored[:, None] // POWERS % 3).ravel()[:count] - 1.0


five = np.array([-1, 0, 1, 1, 0])
print(five, "->", packed(five, "ternary"), "->", unpacked(packed(five, "ternary"), 5, "ternary"))

# %%
for kind in ("ternary", "binary"):
    contents = {}
    for name, weight in trained[kind].state_dict().items():
        scale, values = levels(np, weight.numpy(), kind)
        stored = packed(values, kind)
        assert (unpacked(stored, values.size, kind) == values.ravel()).all()
        contents |= {name: stored, f"{name}.scale": np.array([scale])}
    size = sum(array.nbytes for array in contents.values())
    results[kind] = size, accuracy(trained[kind])
    with tempfile.TemporaryDirectory() as folder:
        mg.save(contents, os.path.join(folder, "small.safetensors"))
        print(f"{kind}: {size:,} bytes, as a file {os.path.getsize(os.path.join(folder, 'small.safetensors')):,}")

# %%
across, up = Scale(2000, 200_000, 60, 460, log=True), Scale(0.8, 1, 250, 30)
shapes = [*frame(across, up), Text(60, 20, "share of digits read rightly, by bytes", 11)]
late = {f"{kind}, too late": (results[kind][0], accuracy(rounded_after(kind))) for kind in trained}
for name, (size, score) in {**results, **late}.items():
    print(f"{name:17} {size:8,} bytes, {results['float32'][0] / size:5.1f} times smaller, {score:.1%} right")
    x, y, color = float(across(size)), float(up(score)), "series-2" if name in late else "series-1"
    below = 18 if name == "binary" else -8
    shapes += [Ellipse(x, y, 8, 8, color, None), Text(x, y + below, name, 11, color, "middle")]
show(Scene(480, 280, shapes, "bytes and accuracy"), "17_bytes")

# %% [markdown]
# ## What is saved, and what is not
#
# Here the packed weights are made floats again before they are used, so this saves memory and disk, not time. A machine that
# is built for it saves time as well: with weights of −1, 0 and 1 a product needs no multiplication at all, only sums.

# %%
x, level = np.array([0.5, -2.0, 3.0, 1.5]), np.array([1, -1, 0, 1])
print("with multiplications:", x @ level, "  with sums:", x[level == 1].sum() - x[level == -1].sum())

# %% [markdown]
# ## Exercises
#
# 1. Write `quantised` for any number of bits from 2 to 8, with a scale for each row, and put the weights of the trained network
#    through it. At how many bits does the score break down?
# 2. Make one weight of a matrix 50 times as large as the others. Compare the mean error of 8 bits with one scale for the whole
#    matrix, and with one for each row.
# 3. Quantise the input of a layer to 8 bits too, and compute the product in whole numbers only. Which type must the sums have, so
#    that nothing overflows? How far off is the result?
#
# More to do, a file with holes that marks itself: `minigrad learn start 17`, then `minigrad learn check`.
#
# Solutions: [solutions/17_making_it_small.py](solutions/17_making_it_small.py)
#
# ## Read next
#
# - [minigrad/nn/quant.py](../minigrad/nn/quant.py): 8 and 4 bits for any model with Linear layers.
# - [models/bitmlp](../models/bitmlp/README.md): the ternary and the binary network as a model of the zoo, with packed files:
#   `minigrad train bitmlp`.
# - [18_your_own.py](18_your_own.py): ops, layers and plugins of your own.
