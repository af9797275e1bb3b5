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
# - a combination that was never shown, and what a model says of it;
# - a vowel made of pulses and a filter, and words spoken by voices that are a few numbers each;
# - a sound as a picture of its frequencies, each step of it an op;
# - letters for a sound of which nobody said when each is heard, by CTC and by a decoder;
# - voices that were never heard, and voices whose like was never heard.
#
# Reading takes about 45 minutes, running about 15 seconds.

# %%
import numpy as np
from minigrad_models.caption.evaluation import shown_to
from minigrad_models.caption.model import described
from minigrad_models.caption.scenes import HELD_OUT, SIZE, from_words, pictures, worded
from minigrad_models.digits.images import images
from minigrad_models.speech.evaluation import edits, heard, picture_of
from minigrad_models.speech.model import HOP, WINDOW, collapsed, mel_bands
from minigrad_models.speech.voices import FREQUENCIES, RATE, STEP, Voice, filtered, say
from minigrad_models.speech.words import BLANK, LETTERS, recordings, spoken
from minigrad_models.speech.words import worded as as_letters
from minigrad_models.vit.batches import warped
from minigrad_models.vit.model import patches_of
from minigrad_models.vit.pictures import over, tiles
from showing import run_folder, show

import minigrad as mg
from minigrad import nn
from minigrad.nn import functional as F

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
    none = np.zeros(len(digits))
    away = warped(digits, down=none + far, right=none, turn=none, stretch=none + 1)
    print(f"moved by {far} pixels: {(read(away) == labels).mean():.1%} right")

# %% [markdown]
# One pixel is what it was trained for, and does no harm. With two it begins to fail, and with four most digits are lost,
# though each of them is as whole as before. With many millions of pictures a transformer learns these things by itself;
# with ten thousand small ones it has to be helped. A convolution is moved along, as far as the picture reaches.
#
# ## From a picture to a sentence
#
# The translator of tutorial 12 has an encoder that reads a sentence, and a decoder that writes one, and looks at what
# the encoder made. Nothing in the decoder says that it was a sentence. So let the encoder read patches. (Before they are cut, a
# small convolution looks for edges, which are the same wherever they are: what we have just seen is cheaper to build in.)

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
# to say "blue" is the shortest way to a smaller loss. The words of a shape look at it, and those of the other shape at the other.
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
# It can, nearly always. That was not to be expected: a small red thing was never a square, so a decoder can learn that after
# "small red" there comes another word, whatever it sees. It is a cheap way to a smaller loss, and wrong here. So half of the words
# were hidden from it in training, each time others (`forget=0.5`), and what is not told has to be looked up in the picture. Without
# that, of 1,000 such scenes, 94.7 % were described exactly, with it 96.7 %. What a model was never shown in combination is
# where to look for its mistakes.

# %% [markdown]
# ## A voice is pulses and a filter
#
# Sound is pressure, measured 8,000 times a second. To have some, we need no microphone. A throat gives a pulse about a
# hundred times a second. The mouth lets some frequencies pass, the *formants*, and damps the others. Which ones says
# what vowel it is. One formant at $F$, as wide as $B$, lets pass
#
# $$|H(f)| = \frac{F^2}{\sqrt{(F^2 - f^2)^2 + B^2 f^2}}$$
#
# and three of them, multiplied, make an "ee" or an "aa":


# %%
def vowel(formants, hertz=100):
    """Half a second of a vowel."""
    settings = RATE // 2 // STEP  # the filter is set anew every 5 ms, here always to the same
    pulses = np.zeros((settings + 3) * STEP)
    pulses[:: RATE // hertz] = 1
    passed = np.prod([f**2 / np.hypot(f**2 - FREQUENCIES**2, 100 * FREQUENCIES) for f in formants], axis=0)
    return filtered(pulses, np.tile(passed, (settings, 1)))


ee, aa = vowel((290, 2250, 2950)), vowel((740, 1120, 2450))
for name, wave in (("ee", ee), ("aa", aa)):
    power = np.abs(np.fft.rfft(wave[: RATE // 2])) ** 2  # a number for each 2 Hz
    strongest = 2 * (1 + power[1:].argsort()[::-1][:3])
    print(f"{name}: {len(wave)} samples, most power at {', '.join(map(str, sorted(strongest.tolist())))} Hz")

# %% [markdown]
# All power is at multiples of the pitch, and most of it at those that are nearest to the first formant. For "s" the source is noise,
# for "t" a silence and then a burst. A word is a row of such targets, and between them everything glides. That is all of
# [models/speech/voices.py](../models/speech/voices.py). A *voice* is a pitch, the size of a mouth, a tempo, some breath. Here
# "seven" is said by a man and by a child:

# %%
man = Voice(110, 1.0, 1.0, 0.05, 1.0, (1.0, 1.0, 1.0))
child = man._replace(pitch=300, mouth=1.3)
said = [say("s eh v ah n", speaker, np.random.default_rng(1)) for speaker in (man, child)]
print("seconds:", [round(len(wave) / RATE, 2) for wave in said])

# %% [markdown]
# `minigrad.data.sounds.write_wav("seven.wav", said[0], 8000)` would write it into a file, to be listened to.
#
# ## A sound is a picture of its frequencies
#
# A network could be given the samples. But what tells "ee" from "aa" is which frequencies are there, and when. So we cut
# the sound into pieces that overlap, a new one every 10 ms, let each fade in and out by a window $w$, and transform it:
#
# $$X_{k,t} = \sum_{n} w_n \, x_{t h + n} \, e^{-2\pi i k n / N}$$
#
# An ear tells low tones apart better than high ones. So the powers $|X|^2$ are summed in bands that get wider, equally far apart in
# $2595 \log_{10}(1 + f / 700)$, the *mel*. The logarithm does for loudness what the ear does. By hand, and as ops:

# %%
listener = mg.zoo.load(run_folder("speech"))
wave, sentence = spoken(2)
around = np.pad(wave, WINDOW // 2, mode="reflect")
pieces = np.stack([around[t * HOP : t * HOP + WINDOW] for t in range(len(wave) // HOP)])  # (200, 256)
power = np.abs(np.fft.rfft(pieces * np.hanning(WINDOW + 1)[:-1])) ** 2  # (200, 129)
level = np.log10(np.maximum(power @ mel_bands(), 1e-8))  # (200, 40)
level = np.maximum(level - level.max(), -6) / 3 + 1  # 60 dB below the loudest is silence

sound = mg.tensor(wave[None], requires_grad=True)
bands = listener.model.mel(sound)
print("as ops, the same:", np.allclose(bands.detach().numpy()[0], level, atol=1e-4))
bands.mean().backward()
print(f"and each of the {sound.grad.size:,} samples has a gradient, at most {abs(sound.grad).max().item():.4f}")

# %% [markdown]
# From here on it is a picture, of 200 moments and 40 bands, and we know what to do with pictures. Two convolutions make 50
# vectors of it, one for each 40 ms, and an encoder lets them look at each other. That is how Whisper begins, too.
#
# ## Nobody said when
#
# The sentence says "three", and there are 50 moments. Which of them are the "t"? Nobody knows. CTC asks for a letter at every
# moment, one of which is a blank "_", and reads what comes by a rule: repetitions are one letter, then blanks are dropped.

# %%
for text in ("__thhh_ree_e__", "threee", "t_h_r_e_e"):
    numbers = np.array([BLANK if letter == "_" else LETTERS.index(letter) for letter in text])
    print(f"{text:16} -> {as_letters(collapsed(numbers))}")

# %% [markdown]
# Without the blank no word could have "ee". The probability of a sentence is the sum over *all* rows of letters that are
# read as it:
#
# $$p(y) = \sum_{a \,:\, \text{read}(a) = y} \; \prod_t p_t(a_t)$$
#
# For 4 moments and 3 letters we can try all $3^4$ of them. `F.ctc_loss` gives the same without trying, moment by
# moment, and so in time to be differentiated:

# %%
chances = F.softmax(mg.tensor(np.random.default_rng(4).normal(size=(4, 3))), axis=1)  # (moments, letters)
total = 0.0
for row in np.ndindex(3, 3, 3, 3):
    if collapsed(np.array(row)).tolist() == [1, 2]:
        total += np.prod(chances.numpy()[np.arange(4), row])
print(f"tried one by one: {-np.log(total):.6f}")
print(f"F.ctc_loss:       {F.ctc_loss(mg.log(chances), [1, 2], [4], [2], reduction='sum').item():.6f}")

# %% [markdown]
# ## Listening
#
# The model that comes with this tutorial has both: CTC above the encoder, and a decoder that writes letter by letter and
# looks at the moments, as the captioner looks at patches. It has heard 300 voices, and was made by
#
# ```sh
# minigrad train speech --out runs/speech
# minigrad export runs/speech tutorials/runs/speech
# ```

# %%
for number in ("1", "2", "3"):
    answer = listener.predict(number)[0]
    print(f"{number}: {answer['text']}   (CTC: {answer['ctc']}; spoken: {answer['spoken']})")
show(picture_of(listener, "2"), "24_sound")

# %% [markdown]
# CTC speaks up in short moments, and is silent in between. The decoder has to find its place for each letter, and has learned to go
# from left to right; nobody told it to. What does each get right, of voices that were never heard? And of children,
# who are higher than all voices in training?

# %%
for part in ("test", "child"):
    waves, letters = recordings(100, 20, 321, part)
    wanted = [as_letters(row[1:]).split() for row in letters]
    answers = heard(listener.model, waves)
    for column, how in enumerate(("decoder", "CTC")):
        wrong = sum(len(edits(pair[column].split(), words)) for pair, words in zip(answers, wanted))
        print(f"{part:6} {how:8} {1 - wrong / sum(map(len, wanted)):.1%} of {sum(map(len, wanted))} words")

# %% [markdown]
# A new voice between those that it knows is no matter. A child is: all formants lie higher, and what the model has learned about
# where they lie does not stretch. The decoder holds on better than CTC, since it knows which letters make a word. That is the
# captioner's strength and weakness again: it writes a word that there is, also where it heard none.

# %% [markdown]
# ## Exercises
#
# 1. Cover one patch of a digit after the other with 0, and note how much the probability of the right digit falls.
#    Draw that over the picture, beside the attention. Are the two alike?
# 2. Turn pictures of scenes upside down. What should become of "above" and "left of", and what does the captioner say?
# 3. Compute the loss of CTC without trying all rows: go from moment to moment, and keep the probability of every place in
#    "_t_o_" that a row may have come to. Compare with `F.ctc_loss`.
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
# - [models/speech/model.py](../models/speech/model.py): the listener, from samples to letters.
# - [models/speech/voices.py](../models/speech/voices.py): how words are spoken.
# - [minigrad/nn/functional/ctc.py](../minigrad/nn/functional/ctc.py): the loss of CTC, by ops.
# - [minigrad/nn/transformer/blocks.py](../minigrad/nn/transformer/blocks.py): the blocks that all of them are made of.
