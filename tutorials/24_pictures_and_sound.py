# %% [markdown]
# # 24. Pictures and sound
#
# A transformer knows nothing of words. It gets a row of vectors, and lets them look at each other. So whatever can be
# made a row of vectors can be read: a picture, cut into squares, and a sound, cut into moments. You will have
#
# - a picture cut into patches and put together again, by hand;
# - a picture whose patches are shuffled, and a transformer that does not notice, until each patch says where it was;
# - digits read by a vision transformer, and where it looks, drawn over them;
# - what happens to it when a digit is moved, and what a convolution knows about that without having learned it;
# - sentences about pictures, word by word, and the place that each word was taken from;
# - a combination that was never shown, and what a model says of it.
#
# Reading takes about 30 minutes, running about 10 seconds.

# %%
import numpy as np
from minigrad_models.caption.evaluation import shown_to
from minigrad_models.caption.model import described
from minigrad_models.caption.scenes import HELD_OUT, SIZE, from_words, pictures, worded
from minigrad_models.digits.images import images
from minigrad_models.vit.batches import moved
from minigrad_models.vit.model import patches_of
from minigrad_models.vit.pictures import over, tiles
from showing import run_folder, show

import minigrad as mg
from minigrad import nn

# %% [markdown]
# ## A picture is a row of patches
#
# Here are four of the digits that [models/digits](../models/digits/README.md) draws: 16 × 16 numbers each, 0 for paper
# and 1 for ink, and noise. One number a token would make 256 tokens, and each would say next to nothing. So we cut the
# picture into squares of 4 × 4. Each of these *patches* is a token: a row of 16 numbers. There are as many as
#
# $$P = \frac{H}{p} \cdot \frac{W}{p} = \frac{16}{4} \cdot \frac{16}{4} = 16$$
#
# To cut is to split both axes in two, (rows of patches, rows in a patch, columns of patches, columns in a patch), and
# to bring the two that count patches together:

# %%
digits, labels = images(200, 5, "test")  # (200, 1, 16, 16)
picture = digits[0, 0]  # (16, 16)
patches = picture.reshape(4, 4, 4, 4).transpose(0, 2, 1, 3).reshape(16, 16)  # (P, p · p)
together = patches.reshape(4, 4, 4, 4).transpose(0, 2, 1, 3).reshape(16, 16)
print(f"a {labels[0]} as {len(patches)} tokens of {patches.shape[1]} numbers")
print("equal to the model's own:", np.array_equal(patches, patches_of(mg.tensor(digits[:1]), 4).numpy()[0]))
print("put together again:", np.array_equal(together, picture))


def seen(image):
    """(1, 16, 16) as pixels of three colours."""
    return over(image, np.zeros((1, 1)))


show(tiles([(str(labels[i]), seen(digits[i])) for i in range(5)], "what it is shown"), "24_digits")
show(
    mg.viz.heatmap(
        patches, [f"{i // 4 + 1}.{i % 4 + 1}" for i in range(16)], range(16), title="one picture: a row for each patch"
    ),
    "24_patches",
)

# %% [markdown]
# A matrix makes a vector of each patch, just as an embedding makes one of each word:
#
# $$x_i = W p_i + b + e_i$$
#
# $p_i$ are the 16 numbers of patch $i$. And $e_i$? That is a learned vector for its place (tutorial 9). What happens
# without it? Attention is a sum over all positions, and a sum does not care about order. Let us shuffle the patches of
# a picture, and look at the mean of all that comes out of a block:

# %%
mg.manual_seed(0)
embedding, block = nn.Linear(16, 32), nn.Encoder(1, 32, 4)
places = mg.randn(16, 32) * 0.3
order = np.random.default_rng(0).permutation(16)
with mg.no_grad():
    for name, added in (("no places", 0.0), ("with places", places)):
        plain, shuffled = (
            block((embedding(mg.tensor(p)) + added)[None]).mean(axis=1) for p in (patches, patches[order])
        )
        print(f"{name:12} the shuffled picture gives something else by {abs(plain - shuffled).max().item():.6f}")

# %% [markdown]
# Without places a 6 would be the same as the 6 with its pieces thrown on the floor. With them it is not.
#
# ## A vision transformer
#
# One more token is put in front of the patches, which belongs to none of them: a learned vector, the same for every
# picture. It looks at all patches, block after block, and what becomes of it answers for the whole. The rest is the
# encoder of tutorial 12, and a matrix from the width to ten logits. The page of code is
# [models/vit/model.py](../models/vit/model.py). The model that comes with this tutorial was made by
#
# ```sh
# minigrad train vit --out runs/vit
# minigrad export runs/vit tutorials/runs/vit
# ```

# %%
vit = mg.zoo.load(run_folder("vit"))
print(f"{sum(p.size for p in vit.model.parameters()):,} weights, {vit.config.layers} blocks")


def read(shown):
    """The digit that it sees in each picture: (N, 1, 16, 16) -> (N,)."""
    with mg.no_grad():
        return vit.model(shown).numpy().argmax(axis=1)


print(f"right: {(read(digits) == labels).mean():.1%} of {len(digits)} pictures that it has never seen")

# %% [markdown]
# Where does it look? The first row of the weights $A$ of the last block says how much the token for the whole takes
# from each patch:
#
# $$A_{0j} = \frac{e^{q_0 \cdot k_j / \sqrt{d}}}{\sum_m e^{q_0 \cdot k_m / \sqrt{d}}}$$
#
# We take the mean over the heads, and tint each patch by its weight:

# %%
shown = []
for i in range(5):
    attention = mg.viz.attention(vit.model, digits[i : i + 1])
    weights = attention.layers[-1].weights.mean(axis=0)[0, 1:]  # (P,): what the whole takes from each patch
    shown.append((f"{labels[i]}, read as {read(digits[i : i + 1])[0]}", over(digits[i], weights.reshape(4, 4))))
show(tiles(shown, "where the token for the whole looks"), "24_where_it_looks")

# %% [markdown]
# It does not look at ink only. An empty patch where a stroke could have been tells as much: that is how a 6 is not an
# 8. (Do not read too much into such pictures. A weight says what is taken, not what is done with it.)
#
# ## What a convolution knows without having learned it
#
# A convolution uses the same weights at every place. So if a picture moves by a pixel, so does all that comes out, and
# pooling forgets the rest. A transformer has a vector for each place, and a stroke in patch 2.3 is for it nothing like
# the same stroke in 2.4. It has to see both. That is why its pictures were moved by one pixel, at random, whenever they
# came. How far can we move them?

# %%
for far in range(5):
    down = np.full(len(digits), far)
    away = moved(digits, down + 4, np.full(len(digits), 4), 4)
    print(f"moved by {far} pixels: {(read(away) == labels).mean():.1%} right")

# %% [markdown]
# One pixel is what it was trained for, and does no harm. With two it begins to fail, and with four most digits are lost,
# though each of them is as whole as before. With many millions of pictures a transformer learns these things by itself;
# with ten thousand small ones it has to be helped. A convolution is moved along, as far as the picture reaches.
#
# ## From a picture to a sentence
#
# The translator of tutorial 12 has an encoder that reads a sentence, and a decoder that writes one, and looks at what
# the encoder made. Nothing in the decoder says that it was a sentence. So let the encoder read patches:

# %%
captioner = mg.zoo.load(run_folder("caption"))
scenes = []
for number in ("1", "2", "3", "4"):
    image, sentence = from_words(number)
    scenes.append((number, over(image, np.zeros((1, 1)))))
    print(f"{number}: {captioner.predict(number)[0]['text']}\n   {sentence}, as it was drawn")
show(tiles(scenes, "four scenes", columns=4, pixel=3.5), "24_scenes")

# %% [markdown]
# Each word is chosen like the next token in tutorial 14: a softmax over the 16 words there are, given the picture and
# the words so far. A sentence has up to ten words, so one that is right by luck is not to be expected. Here are 200
# new scenes:

# %%
new, sentences = pictures(200, 123, "test")
written = described(captioner.model, new)
right = [worded(a) == worded(b[1:]) for a, b in zip(written, sentences)]
print(f"{np.mean(right):.1%} of the sentences are right in every word")

# %% [markdown]
# Which part of the picture did each word come from? That is cross-attention: the queries are those of the words, the
# keys and values those of the patches.

# %%
image, fed, chosen = shown_to(captioner.model, "2")
attention = mg.viz.attention(captioner.model, image, fed)
cross = [layer for layer in attention.layers if layer.kind == "cross"][-1].weights.mean(axis=0)  # (words, patches)
side = SIZE // captioner.config.patch
light = [(word, over(image[0], row.reshape(side, side))) for word, row in zip(chosen, cross)]
show(tiles(light, "where each word looks", columns=6, pixel=3.5), "24_words")

# %% [markdown]
# Nobody told it which word belongs to which shape. It has only seen pictures with sentences. That it must look *there*
# to say "blue" is the shortest way to a smaller loss. For a colour it looks at the inside, for a shape at an edge, which
# is where a square and a circle differ.
#
# ## What was never shown
#
# The captioner has seen small shapes, red ones and squares. It has never seen a small red square, nor three other kinds
# that were held out. If it has learned what the words mean one by one, it can say that, too:

# %%
print("held out:", ", ".join(map(str, HELD_OUT)))
new, sentences = pictures(200, 123, "unseen")
written = described(captioner.model, new)
pairs = [(worded(a).split(), worded(b[1:]).split()) for a, b in zip(written, sentences)]
print(f"{np.mean([a == b for a, b in pairs]):.1%} of the sentences are right in every word")
for place, what in enumerate(("size", "color", "shape"), 1):
    print(
        f"  {what:5} of the first shape: {np.mean([a[place : place + 1] == b[place : place + 1] for a, b in pairs]):.1%}"
    )

# %% [markdown]
# That is a good deal less, and the mistakes are of one kind. A small red thing was never a square, so the decoder has
# learned that after "small red" there comes another word, whatever it sees. It knows too well what is usually said.
# What a model was never shown in combination is where to look for its mistakes.

# %% [markdown]
# ## Exercises
#
# 1. Write `patches_of` for pictures with three colours, (N, 3, H, W) -> (N, P, 3 · p · p), and its way back. Check that
#    nothing is lost.
# 2. Cover one patch of a digit after the other with 0, and note how much the probability of the right digit falls.
#    Draw that over the picture, beside the attention. Are the two alike?
# 3. Turn pictures of scenes upside down. What should become of "above" and "left of", and what does the captioner say?
#
# More to do, a file with holes that marks itself: `minigrad learn start 24`, then `minigrad learn check`.
#
# Solutions: [solutions/24_pictures_and_sound.py](solutions/24_pictures_and_sound.py)
#
# ## Read next
#
# - [models/vit/model.py](../models/vit/model.py): the vision transformer, on one page.
# - [models/caption/model.py](../models/caption/model.py): the captioner.
# - [models/caption/scenes.py](../models/caption/scenes.py): how scenes and sentences are made.
# - [minigrad/nn/transformer/blocks.py](../minigrad/nn/transformer/blocks.py): the blocks that all of them are made of.
