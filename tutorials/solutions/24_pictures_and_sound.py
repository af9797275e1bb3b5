# %% [markdown]
# # Solutions to 24. Pictures and sound

# %%
from pathlib import Path

import numpy as np
from minigrad_models.caption.model import described
from minigrad_models.caption.scenes import pictures, worded
from minigrad_models.digits.images import images

import minigrad as mg
from minigrad.nn import functional as F

HERE = Path(__file__).parent if "__file__" in globals() else Path.cwd()  # a notebook has no __file__
vit = mg.zoo.load(HERE.parent / "runs" / "vit")
captioner = mg.zoo.load(HERE.parent / "runs" / "caption")

# %% [markdown]
# ## 1. Covered patches

# %%
digits, labels = images(50, 9, "test")


def chance(model_input, label):
    with mg.no_grad():
        return F.softmax(vit.model(model_input), axis=1).numpy()[:, label]


agreements, falls = [], []
for digit, label in zip(digits, labels):
    covered = np.repeat(digit[None], 16, axis=0)  # (P, 1, 16, 16)
    for i in range(16):
        row, column = 4 * (i // 4), 4 * (i % 4)
        covered[i, 0, row : row + 4, column : column + 4] = 0
    fall = chance(digit[None], label)[0] - chance(covered, label)  # (P,)
    weights = mg.viz.attention(vit.model, digit[None]).layers[-1].weights.mean(axis=0)[0, 1:]
    falls.append(fall.max())
    agreements.append(np.corrcoef(fall, weights)[0, 1])
print(f"the worst patch to lose costs {np.mean(falls):.3f} of the probability, on average")
print(f"correlation of what is lost with what is looked at: {np.mean(agreements):.2f}, on average")
assert min(falls) > -0.01
assert abs(np.mean(agreements)) < 0.9

# %% [markdown]
# They have something in common at most. A patch that is looked at may hold what another one says as well, so that its
# loss costs nothing; and what a patch had to say may have come in a block earlier, by way of another.
#
# ## 2. Upside down

# %%
shown, sentences = pictures(100, 7, "test")
right = {"as drawn": [], "upside down, read as it stands": [], "upside down, shapes exchanged": []}
upright, turned = described(captioner.model, shown), described(captioner.model, shown[:, :, ::-1].copy())
for numbers, other, wanted in zip(upright, turned, sentences):
    sentence = worded(wanted[1:])
    if "triangle" in sentence or "above" not in sentence:
        continue  # a triangle on its head was never shown
    first, second = sentence.split(" above ")
    right["as drawn"].append(worded(numbers) == sentence)
    right["upside down, read as it stands"].append(worded(other) == sentence)
    right["upside down, shapes exchanged"].append(worded(other) == f"{second} above {first}")
for name, found in right.items():
    print(f"{name:32} {np.mean(found):.0%} of {len(found)}")
assert np.mean(right["upside down, shapes exchanged"]) > 0.8
assert np.mean(right["upside down, read as it stands"]) < 0.2

# %% [markdown]
# "Above" exchanges its two shapes, and "left of" stays as it was: the sentence is about the picture, and not about what
# is usually said of it. With triangles it would be another matter, since one on its head is a shape of its own.
#
# ## 3. Places in a row

# %%
rng = np.random.default_rng(0)
chances = rng.dirichlet(np.ones(3), 6)  # (moments, letters): a blank, t and o
row = [0, 1, 0, 2, 0]  # _t_o_


def step(before, now):
    """The probabilities of having come to each place, a moment later."""
    after = np.zeros(len(row))
    for place, letter in enumerate(row):
        came = before[place] + (before[place - 1] if place > 0 else 0)
        if place > 1 and letter != 0 and letter != row[place - 2]:
            came += before[place - 2]  # a blank between two different letters may be left out
        after[place] = came * now[letter]
    return after


places = np.zeros(len(row))
places[:2] = chances[0, row[:2]]
for now in chances[1:]:
    places = step(places, now)
ours = -np.log(places[-1] + places[-2])  # it ends with the last letter, or with the blank behind it
theirs = F.ctc_loss(mg.log(mg.tensor(chances)), [1, 2], [6], [2], reduction="sum").item()
print(f"{ours:.6f}, by F.ctc_loss {theirs:.6f}")
assert abs(ours - theirs) < 1e-6

# %% [markdown]
# The work is the number of moments times the number of places, instead of a power of one to the other.
