# %% [markdown]
# # Solutions to 9. Positions

# %%
import numpy as np

import minigrad as mg
from minigrad import nn
from minigrad.nn import functional as F

mg.manual_seed(9)
random = np.random.default_rng(9)


def waves(length, base=10000.0):
    return nn.SinusoidalPositions(4, base)(mg.zeros(length, 4, dtype="float64")).numpy()


# %% [markdown]
# ## 1. A step is a turn
#
# For an angle $a$ and a step $s$, $\sin(a + s) = \sin a \cos s + \cos a \sin s$ and $\cos(a + s) = \cos a \cos s - \sin a \sin s$. So a row
# $[\sin a, \cos a]$ is multiplied by a matrix in which only $s$ occurs. Each pair has one of these, and they do not mix.

# %%
R = np.zeros((4, 4))
for pair, speed in enumerate((1, 1 / 100)):
    s = 3 * speed
    R[2 * pair : 2 * pair + 2, 2 * pair : 2 * pair + 2] = [[np.cos(s), -np.sin(s)], [np.sin(s), np.cos(s)]]
table = waves(500)
print(R.round(4))
assert np.allclose(table[:-3] @ R, table[3:])
assert np.allclose(R @ R.T, np.eye(4))  # a turn keeps every length

# %% [markdown]
# ## 2. Clocks that all run alike
#
# With base 1 every hand goes around in $2\pi$ positions. After seven rounds that is $14\pi = 43.98$, almost exactly 44: so positions that are
# 44 apart look the same. With base 10000 the slow hand tells them apart. Then the closest
# are 19 apart, three rounds of the fast hand, and they are ten times as far from each other.


# %%
def closest(table):
    distances = np.linalg.norm(table[:, None] - table[None], axis=-1)  # (100, 1, 4) - (1, 100, 4) -> (100, 100)
    np.fill_diagonal(distances, np.inf)
    p, q = np.unravel_index(distances.argmin(), distances.shape)
    return abs(int(p) - int(q)), float(distances.min())


for base in (1.0, 10000.0):
    apart, distance = closest(waves(100, base))
    print(f"base {base:g}: the closest are {apart} positions apart, at a distance of {distance:.3f}")
assert closest(waves(100, 1.0))[0] in (44, 88) and closest(waves(100, 1.0))[1] < 0.03
assert closest(waves(100, 10000.0))[0] == 19 and closest(waves(100, 10000.0))[1] > 9 * closest(waves(100, 1.0))[1]

# %% [markdown]
# ## 3. Sentences turned around
#
# If "cat" was before "mat", it is after it now, so every answer must change. A judge that is nearly always right changes nearly always.

# %%
LENGTH, WIDTH = 8, 16
words, positions = nn.Embedding(12, WIDTH), nn.SinusoidalPositions(WIDTH)
look = nn.Sequential(nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, 1))


def judge(ids):
    return look(positions(words(ids))).sum(1)[:, 0]


def examples(count):
    fillers = random.integers(2, 12, (count, LENGTH - 2))
    ids = random.permuted(np.concatenate([np.tile([0, 1], (count, 1)), fillers], axis=1), axis=1)
    return ids, (ids == 0).argmax(1) < (ids == 1).argmax(1)


# %%
optimizer = mg.optim.Adam([words.weight, *look.parameters()], lr=0.01)
for _ in range(400):
    ids, answers = examples(128)
    loss = F.binary_cross_entropy_with_logits(judge(ids), mg.tensor(answers.astype("float32")))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# %%
ids, answers = examples(2000)
with mg.no_grad():
    before, after = judge(ids).numpy() > 0, judge(ids[:, ::-1].copy()).numpy() > 0
print(f"right: {(before == answers).mean():.1%}, changed: {(before != after).mean():.1%}")
assert (before == answers).mean() > 0.9
assert (before != after).mean() > 0.85
