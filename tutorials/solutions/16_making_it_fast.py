# %% [markdown]
# # Solutions to 16. Making it fast

# %%
import numpy as np

import minigrad as mg

# %% [markdown]
# ## 1. Batches of unequal size
#
# Divide each sum by 6, the number of *all* examples, and let the gradients add up. Dividing each by its own count makes the
# example that is alone count three times as much as one of three.

# %%
rng = np.random.default_rng(0)
x, y = rng.normal(size=(6, 4)), rng.normal(size=6)
batches = [slice(0, 3), slice(3, 4), slice(4, 6)]


def gradient_of(loss):
    w = mg.tensor(np.ones(4), requires_grad=True)
    loss(w)
    return w.grad.numpy()


def squares(w, rows):
    return ((mg.tensor(x[rows]) @ w - mg.tensor(y[rows])) ** 2).sum()


def accumulate(w):
    for rows in batches:
        (squares(w, rows) / 6).backward()  # adds to w.grad


def mean_of_means(w):
    for rows in batches:
        (squares(w, rows) / (rows.stop - rows.start) / 3).backward()


whole = gradient_of(lambda w: (squares(w, slice(0, 6)) / 6).backward())
print("one batch of six:", whole)
print("accumulated:     ", gradient_of(accumulate))
print("mean of means:   ", gradient_of(mean_of_means))
assert np.allclose(gradient_of(accumulate), whole, rtol=1e-12)
assert not np.allclose(gradient_of(mean_of_means), whole, rtol=0.01)

# %% [markdown]
# ## 2. How large a scale
#
# Two right digits: the error is less than half of a hundredth. We try powers of two, and ask that all larger ones do, too. A
# gradient of 3 overflows where 3 S is above 65504.

# %%
powers = range(25)
errors = [abs(float(np.float16(1e-9 * 2.0**k)) / (1e-9 * 2.0**k) - 1) for k in powers]
smallest = min(k for k in powers if max(errors[k:]) < 0.005)
with np.errstate(over="ignore"):
    too_large = min(k for k in powers if np.isinf(np.float32(3 * 2.0**k).astype(np.float16)))
print(
    f"for 1e-9 the scale must be at least 2^{smallest} = {2**smallest:,}, and for 3 it must be below 2^{too_large} = {2**too_large:,}"
)
assert (smallest, too_large) == (12, 15)
assert errors[smallest - 1] >= 0.005
assert np.isfinite(np.float16(3 * 2.0 ** (too_large - 1)))

# %% [markdown]
# From 2^12 to 2^14 both fit. That is narrow: where gradients differ by much more than these two, one scale cannot help all.
#
# ## 3. All-reduce in a ring
#
# Two rounds of the ring. In the first, a running sum of number $j$ travels around and is complete after three sends. In the
# second, the complete sums travel once more, so that all get them. All ranks send at the same time, each a different
# number. Each sends $2 (n - 1)$ numbers of $n$, here 6: fewer than two arrays' worth, however many ranks there are. If each sent
# its whole array to everybody, it would be $n (n - 1) = 12$, and that grows with the ranks.

# %%
ranks = 4
arrays = np.random.default_rng(1).integers(0, 100, (ranks, ranks))  # a row is what a rank has
wanted = arrays.sum(axis=0)
sent = np.zeros(ranks, int)
for turn in range(2 * (ranks - 1)):
    adding = turn < ranks - 1
    places = [(rank - turn) % ranks if adding else (rank + 1 - (turn - ranks + 1)) % ranks for rank in range(ranks)]
    letters = [arrays[rank, place] for rank, place in enumerate(places)]  # all are written before any is read
    for rank, (place, letter) in enumerate(zip(places, letters)):
        neighbour = (rank + 1) % ranks
        arrays[neighbour, place] = arrays[neighbour, place] + letter if adding else letter
        sent[rank] += 1
print(arrays)
print("each rank has sent", sent)
assert (arrays == wanted).all()
assert (sent == 2 * (ranks - 1)).all() and sent[0] < ranks * (ranks - 1)
