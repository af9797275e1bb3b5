# %% [markdown]
# # Solutions to 17. Making it small

# %%
import numpy as np
from minigrad_models.digits.images import images

import minigrad as mg
from minigrad import nn, optim
from minigrad.nn import functional as F


def quantised(weight, bits):
    """Whole numbers of so many bits, and a scale for each row: (out, in) -> (out, in), (out, 1)."""
    largest = 2 ** (bits - 1) - 1  # 127 for 8 bits, 7 for 4, 1 for 2
    scales = np.abs(weight).max(axis=1, keepdims=True) / largest
    return np.rint(weight / scales).astype("int8"), scales


# %% [markdown]
# ## 1. From eight bits to two
#
# First the network of the tutorial, then its weights in fewer and fewer bits.


# %%
def build():
    norms = [nn.RMSNorm(size, elementwise_affine=False) for size in (256, 128)]
    layers = nn.Linear(256, 128, bias=False), nn.Linear(128, 10, bias=False)
    return nn.Sequential(norms[0], layers[0], nn.ReLU(), norms[1], layers[1])


def accuracy(model):
    return float((model(mg.tensor(test_pixels)).numpy().argmax(axis=1) == test_labels).mean())


pixels, labels = images(2000, 0, "train")
test_pixels, test_labels = images(1000, 0, "test")
pixels, test_pixels = pixels.reshape(-1, 256), test_pixels.reshape(-1, 256)
mg.manual_seed(0)
network, rng = build(), np.random.default_rng(0)
optimizer = optim.AdamW(network.parameters(), lr=3e-3)
schedule = optim.Cosine(optimizer, total=400)
for _ in range(400):
    rows = rng.integers(0, len(pixels), 64)
    loss = F.cross_entropy(network(mg.tensor(pixels[rows])), labels[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()

# %%
scores = {}
for bits in range(8, 1, -1):
    state = {}
    for name, weight in network.state_dict().items():
        whole, scales = quantised(weight.numpy(), bits)
        assert np.abs(whole).max() <= 2 ** (bits - 1) - 1
        assert np.abs(weight.numpy() - scales * whole).max() <= 0.5001 * scales.max()
        state[name] = (scales * whole).astype("float32")
    small = build()
    small.load_state_dict(state)
    scores[bits] = accuracy(small)
    print(f"{bits} bits: {scores[bits]:.1%}   (as trained {accuracy(network):.1%})")
assert all(abs(scores[bits] - accuracy(network)) < 0.01 for bits in (8, 7, 6, 5))
assert scores[2] < accuracy(network) - 0.1

# %% [markdown]
# Down to four bits nothing happens, with three a little, and with two it breaks. Then a weight must be larger than half of the largest
# of its row to count at all, and few are. (γ, the mean size, is a better scale there than the largest.)
#
# ## 2. One weight that spoils it for all
#
# With one scale for everything, the large weight decides how coarse all others become. With one for each row it spoils its
# own row only.

# %%
weight = np.random.default_rng(1).normal(size=(64, 64))
weight[3, 5] = 50 * np.abs(weight).max()
scale = np.abs(weight).max() / 127
one = np.abs(weight - scale * np.rint(weight / scale)).mean()
whole, scales = quantised(weight, 8)
each = np.abs(weight - scales * whole)
print(f"mean error: one scale {one:.4f}, a scale for each row {each.mean():.4f}")
print(f"in the row of the large weight {each[3].mean():.4f}, in the others {np.delete(each, 3, axis=0).mean():.4f}")
assert each.mean() < one / 10
assert each[3].mean() > 10 * np.delete(each, 3, axis=0).mean()

# %% [markdown]
# ## 3. A product in whole numbers
#
# $w \cdot x \approx (s_w q_w) \cdot (s_x q_x) = s_w s_x \, (q_w \cdot q_x)$: the product of the whole numbers first, the two scales
# at the end. One product may be 127 · 127 = 16,129 and does not fit into 8 bits; a sum of 256 of them may be four million and
# does not fit into 16. In 32 bits there is room for 130,000 of them.

# %%
rng = np.random.default_rng(2)
weight, x = rng.normal(size=(32, 256)), rng.normal(size=(10, 256))
(w_whole, w_scales), (x_whole, x_scales) = quantised(weight, 8), quantised(x, 8)
sums = x_whole.astype("int32") @ w_whole.astype("int32").T  # (10, 256) @ (256, 32) -> (10, 32)
result, exact = x_scales * sums * w_scales.T, x @ weight.T
error = np.abs(result - exact).mean() / np.abs(exact).mean()
print(f"{sums.dtype}: off by {error:.2%} of the mean result")
assert error < 0.02
assert (sums == x_whole.astype(object) @ w_whole.astype(object).T).all()  # Python's numbers never overflow
assert (2**31 - 1) // 127**2 > 130_000

narrow = x_whole @ w_whole.T  # int8, and so are the sums
assert narrow.dtype == np.int8 and (narrow != sums).mean() > 0.9
print(f"{narrow.dtype}: {(narrow != sums).mean():.0%} of the sums are wrong")
