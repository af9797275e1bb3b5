# %% [markdown]
# # 9. Positions: which word came first
#
# "The cat sat on the mat" and "the mat sat on the cat" have the same words. A model that only looks up word vectors
# cannot tell them apart. At the end you have three ways to tell it where each word stands: waves, which need no learning; a
# table that is learned; and turning. You will also have corrected the first numbers of the source document.
#
# It takes about 25 minutes to read and 5 seconds to run.

# %%
import numpy as np
from showing import compare, show

import minigrad as mg
from minigrad import nn
from minigrad.nn import functional as F

mg.manual_seed(9)
random = np.random.default_rng(9)

# %% [markdown]
# ## The problem
#
# Give each word a vector, as in tutorial 8, and add up the vectors of a sentence. Adding does not care about order:
# $a + b = b + a$. So both sentences end up as the same numbers.

# %%
vocabulary = ["the", "cat", "sat", "on", "mat"]
table = nn.Embedding(len(vocabulary), 4)


def looked_up(sentence):
    return table(mg.tensor([vocabulary.index(word) for word in sentence.split()]))  # (words, 4)


print("cat on mat:", looked_up("the cat sat on the mat").sum(0).numpy().round(3))
print("mat on cat:", looked_up("the mat sat on the cat").sum(0).numpy().round(3))

# %% [markdown]
# Attention, which comes next, looks at all words at once and has the same blind spot. The remedy: change each word's vector
# a little, depending on its *position*: 0 for the first word, 1 for the second, and so on.
#
# ## Three ideas that nearly work
#
# **Add the position itself.** Then the word at position 500 gets 500 added to numbers that are mostly between -1 and 1. What
# the word meant has drowned.
#
# **Add the position divided by the length of the sentence.** Now it stays below 1. But the step from one word to the next
# is a third in a short sentence and a fiftieth in a long one. "The word before this one" is never the same distance away.
#
# **Write the position in binary digits.** Every number is 0 or 1, and no two positions are the same:

# %%
for position in range(8):
    print(position, "→", *f"{position:03b}")

# %% [markdown]
# Look down the columns. The last one changes at every step, the one before it at every second, the first at every fourth: a
# fast column, a slower one, a slow one. That is a good idea. What is not good is that they jump: from 3 to 4 all three
# digits change, though the positions are neighbours.
#
# ## Waves
#
# So replace the jumps by something smooth that also goes up and down, at several speeds: waves. A *sine* is such a wave. It
# swings between -1 and 1, and is back where it was when its angle has grown by $2\pi \approx 6.28$. A *cosine* is the same
# wave, a quarter earlier.
#
# The vector has $d$ columns, which we take in pairs: pair $i = 0$ is the columns 0 and 1, pair $i = 1$ the columns 2 and 3.
# For the word at position $p$, each pair has one angle, and holds its sine and its cosine:
#
# $\text{angle} = \frac{p}{10000^{2i/d}} \qquad PE_{p,\,2i} = \sin(\text{angle}) \qquad PE_{p,\,2i+1} = \cos(\text{angle})$
#
# $PE$ stands for *positional encoding*. With $d = 4$ there are two pairs. The first divides by $10000^0 = 1$, the second by
# $10000^{2/4} = 100$. So position 1 is $[\sin 1, \cos 1, \sin 0.01, \cos 0.01]$: the second wave is a hundred times slower.


# %%
def waves(length, d):
    positions = mg.arange(length, dtype="float64")[:, None]  # (length, 1)
    pairs = mg.arange(d // 2, dtype="float64")  # (d/2,)
    angles = positions / 10000 ** (2 * pairs / d)  # (length, 1) / (d/2,) -> (length, d/2)
    return mg.stack([mg.sin(angles), mg.cos(angles)], axis=-1).reshape(length, d)  # sine and cosine side by side


print(waves(3, 4))

# %% [markdown]
# Here the source document has slipped. Its formula is the one above, but then it uses another divisor for each column
# instead of for each pair: $10000^0$, $10000^{0.5}$, $10000^2$ and $10000^{2.5}$. And $\sin(1 / 10000^2)$, which it prints as
# 0.0001, would be 0.00000001. The right numbers:

# %%
why = "both columns of a pair have the same angle: 1/1 in the first pair, 1/100 in the second"
compare("position 1", waves(3, 4)[1], [0.8415, 0.99995, 0.0001, 1], why)
compare("position 2", waves(3, 4)[2], [0.9093, 0.9998, 0.0002, 1], why)

# %% [markdown]
# In minigrad this is a layer. It adds the waves to what comes in, so zeros bring out the waves alone:

# %%
layer = nn.SinusoidalPositions(4)
print(layer(mg.zeros(3, 4, dtype="float64")))
assert np.allclose(layer(mg.zeros(3, 4, dtype="float64")), waves(3, 4))

# %% [markdown]
# With more columns one sees how it works. Each row of this picture is a position, each column a wave: blue is -1, orange is
# 1. On the left they are fast, on the right they hardly move within fifty words.

# %%
show(mg.viz.positional_map(waves(50, 32)), "09_waves")

# %% [markdown]
# ## Clocks
#
# Another way to see it: sine and cosine of an angle are the two coordinates of a point on a circle. So each pair is the hand
# of a clock, and each position moves it on. The first hand goes around in 6.28 positions, the others ever more slowly, as
# the hands for seconds, minutes and hours do. One look at all hands tells the time, that is, the position.
#
# Here is the fast hand at the positions 0 to 5. It starts at the top, where the sine is 0 and the cosine 1.

# %%
show(mg.viz.directions(waves(6, 4)[:, :2].numpy(), "the first pair, positions 0 to 5"), "09_clock")

# %% [markdown]
# Clocks have a gift: *how far apart* two times are can be read without knowing the times. Multiply the vectors of the
# positions $p$ and $q$ number by number and add up, the dot product of tutorial 8. School trigonometry says
# $\sin a \sin b + \cos a \cos b = \cos(a - b)$, so with $\omega_i = 1/10000^{2i/d}$
# ("omega") for the speed of pair $i$
#
# $PE_p \cdot PE_q = \sum_i \cos\left((p - q)\, \omega_i\right)$
#
# Only the distance $p - q$ is left. Two words that are two apart get the same product anywhere in the text:

# %%
table_of_waves = waves(64, 8)
for p, q in ((3, 5), (30, 32), (60, 62), (30, 50)):
    print(f"positions {p} and {q}: {(table_of_waves[p] * table_of_waves[q]).sum():.4f}")
products = (table_of_waves[:16] @ table_of_waves[:16].T).numpy()
show(mg.viz.heatmap(products, range(16), range(16), title="products of positions"), "09_products")

# %% [markdown]
# The picture is striped along the diagonal. The middle stripe is each position with itself. The paler ones beside it come from
# the fast hand, which is back every 6.28 positions, and the slower hands make them fade. Attention will use exactly
# such products, and so can learn to look "two words back" without counting.
#
# ## Adding them to words
#
# Now the three words of the document, with the vectors of tutorial 8, get their positions. The shapes are the same, so a
# plain sum does it. The network can tell both parts apart as far as it needs to, because it has learned its word vectors
# with the waves in place.

# %%
you_are_welcome = mg.tensor([[0.1, 0.2, -0.1, 0.4], [-0.3, 0.5, 0.1, -0.2], [0.4, -0.3, 0.2, 0.1]])
print(layer(you_are_welcome))

# %% [markdown]
# And the cat and the mat? Adding up the words alone still gives the same. But each word's vector is now different in the two
# sentences, and a network that looks at each word before adding can use that. Here "looking" is only the ReLU of tutorial 4:

# %%
first, second = (layer(looked_up(f"the {a} sat on the {b}")) for a, b in (("cat", "mat"), ("mat", "cat")))
print("'cat' at position 1:", first[1].numpy().round(3))
print("'cat' at position 5:", second[5].numpy().round(3))
for sentence in (first, second):
    print("looked at, then added:", F.relu(sentence).sum(0).numpy().round(3))

# %% [markdown]
# ## Positions that are learned
#
# There is a simpler way: a second table. Row 0 is added to the first word, row 1 to the second. It starts at random, and
# gradient descent makes of it what the task needs. GPT-2 and BERT do that.
#
# Let us see it happen. The task: each sentence has eight words, drawn from twelve, in any order. Word 0 is "cat", word 1
# is "mat", and both are there, once each. Does "cat" come before "mat"?

# %%
WORDS, LENGTH, WIDTH = 12, 8, 16


def examples(count, length=LENGTH):
    fillers = random.integers(2, WORDS, (count, length - 2))
    ids = np.concatenate([np.tile([0, 1], (count, 1)), fillers], axis=1)
    ids = random.permuted(ids, axis=1)  # (count, length), each row in an order of its own
    return ids, (ids == 0).argmax(1) < (ids == 1).argmax(1)


ids, answers = examples(3)
print(ids, answers, sep="\n")

# %% [markdown]
# The network looks up each word, adds its position, looks at each one by itself with a small MLP (tutorial 5) that gives one
# number, and adds these numbers up. Above 0 means yes. We write it as an `nn.Module`: what `__init__` puts on `self` are its
# parts, whose weights `parameters()` finds, and to call it is to call `forward`.


# %%
class Judge(nn.Module):
    def __init__(self, positions):
        self.words, self.positions = nn.Embedding(WORDS, WIDTH), positions
        self.look = nn.Sequential(nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, ids):
        each = self.look(self.positions(self.words(ids)))  # (B, T) -> (B, T, 16) -> (B, T, 1)
        return each.sum(1)[:, 0]  # (B,)


def share_right(judge, length=LENGTH):
    ids, answers = examples(2000, length)
    with mg.no_grad():
        return float(((judge(ids).numpy() > 0) == answers).mean())


# %% [markdown]
# Three of them are trained alike. `nn.Identity()` gives back what it gets: no positions at all.

# %%
judges = {
    "no positions": Judge(nn.Identity()),
    "waves": Judge(nn.SinusoidalPositions(WIDTH)),
    "learned": Judge(nn.LearnedPositions(LENGTH, WIDTH)),
}
for name, judge in judges.items():
    optimizer = mg.optim.Adam(judge.parameters(), lr=0.01)
    for _ in range(400):
        ids, answers = examples(128)
        loss = F.binary_cross_entropy_with_logits(judge(ids), mg.tensor(answers.astype("float32")))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{name:13} {share_right(judge):.0%} right")

# %% [markdown]
# Without positions it can only guess: half of the answers are right, as with a coin. With either kind it learns.
#
# What did the learned table become? It had eight random rows, and nobody told it that 3 lies between 2 and 4. Here are its
# rows in the plane in which they differ most, each joined to the one most like it:

# %%
learned = judges["learned"].positions.weight
show(mg.viz.embedding_map(learned, range(LENGTH), neighbours=1, title="eight learned positions"), "09_learned")

# %% [markdown]
# They have lined up, from first to last: the task asks for "before" and "after", so that is what the table came to hold.
#
# ## Longer than ever seen
#
# A learned table ends somewhere. Waves go on for ever, since they are computed. But going on is not the same as knowing
# what to do there: the network behind them has never met these angles.

# %%
for length in (8, 10, 16):
    print(f"waves, sentences of {length} words: {share_right(judges['waves'], length):.0%} right")
try:
    share_right(judges["learned"], 10)
except mg.MinigradError as problem:
    print(problem)

# %% [markdown]
# ## Turning instead of adding
#
# Many newer models add nothing. They take the queries and keys of attention, which are the subject of the next tutorial,
# as clock hands themselves, and turn them by the angles above. It is called *rotary*. A product of two turned vectors
# then depends on what they are and on how far apart they stand, and on nothing else:

# %%
rotary = nn.RotaryPositions(4)
query, key = mg.randn(1, 4), mg.randn(1, 4)
for p, q in ((3, 5), (30, 32), (30, 50)):
    turned, _ = rotary(query, key, start=p)
    _, other = rotary(query, key, start=q)
    print(f"positions {p} and {q}: {(turned * other).sum().item():.4f}")

# %% [markdown]
# ## Exercises
#
# 1. A step of 3 positions turns each clock hand by a fixed angle, wherever it stands. Build the matrix $R$ (4 × 4) that does it,
#    so that $PE_p \, R = PE_{p+3}$ for every $p$. In each pair it needs the cosine and sine of $3\,\omega_i$.
# 2. Let all clocks run at the same speed: `nn.SinusoidalPositions(4, base=1.0)`. Which two of the first 100 positions can now
#    hardly be told apart, and why these? How close are the closest two with base 10000?
# 3. Train a judge with waves. Then turn each sentence around, last word first, and ask again. How often must the answer
#    change, and how often does it?
#
# More to do, a file with holes that marks itself: `minigrad learn start 9`, then `minigrad learn check`.
#
# Solutions: [solutions/09_positions.py](solutions/09_positions.py)
#
# ## Read next
#
# - [minigrad/nn/transformer/positions.py](../minigrad/nn/transformer/positions.py): all three kinds, in one short file.
# - [tests/test_positions.py](../tests/test_positions.py): what they must do, checked against the formula.
# - Next: [10. Attention by hand](10_attention_by_hand.py).
