# %% [markdown]
# # 8. Words as vectors
#
# A network multiplies and adds. It cannot multiply "dog". So a text has to become numbers first, and good numbers: ones
# that say that a dog is more like a cat than like a pudding. At the end you have cut text into pieces by a method of your
# own, which agrees with minigrad's, and you have learned, in seconds, a vector for each of some 500 words. Nobody says
# what the words mean, and yet "dog" finds other animals, and "red" other colours.
#
# It takes about 35 minutes to read and 10 seconds to run.

# %%
import re
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from minigrad_models import corpora
from showing import show

import minigrad as mg
from minigrad import nn
from minigrad.nn import functional as F

mg.manual_seed(8)
random = np.random.default_rng(8)

# %% [markdown]
# ## From text to whole numbers
#
# The pieces that a text is cut into are called *tokens*. The list of all tokens that are known is the *vocabulary*, and the
# place of a token in that list is its *id*. What cuts a text and looks up the ids is a *tokenizer*.
#
# The plainest choice is one token for each character.

# %%
sentence = "You are welcome"
characters = mg.data.CharTokenizer.train(sentence)
ids = characters.encode(sentence)
print(len(ids), "tokens:", ids)
print("and back:", characters.decode(ids))

# %% [markdown]
# The other plain choice is one token for each word. In minigrad the ids 0 to 4 are taken by tokens that stand for no text:
# the filling `<pad>`, the start `<s>`, the end `</s>`, the unknown `<unk>` and the blank `<mask>`. Words begin at 5.

# %%
whole_words = mg.data.WordTokenizer.train(sentence)
print("the vocabulary:", whole_words.tokens)
print(whole_words.encode(sentence))
print(whole_words.decode(whole_words.encode("You are unwelcome")))

# %% [markdown]
# Both have a price. Characters make long rows of tokens, and each tells little. Words make short rows, but a language has
# hundreds of thousands of them, and one that was not seen before is lost: "unwelcome" became `<unk>`.
#
# ## In between: byte-pair encoding
#
# *Byte-pair encoding*, BPE for short, lets the text decide. Start with characters. Then repeat one step:
#
# 1. count how often each pair of neighbours occurs,
# 2. glue the most frequent pair together, everywhere: it is a new token.
#
# What is frequent grows into long tokens, and what is rare stays in small pieces.
#
# We try it on eight words. A space belongs to the word after it, and no token reaches across words.

# %%
text = "low slow glow lower slower glowing low slow"
pieces = Counter(re.findall(" ?[a-z]+", text))  # each word, and how often it is there
parts = {piece: list(piece) for piece in pieces}  # each word, in tokens; at first these are its characters
for piece in pieces:
    print(pieces[piece], "×", parts[piece])

# %% [markdown]
# Counting: a pair counts as often as the word it stands in. With $n_w$ for how often the word $w$ is there,
#
# $\text{count}(a, b) = \sum_{w} n_w \cdot (\text{how often } a \text{ is followed by } b \text{ in } w)$
#
# The sign $\sum_w$ says: add this up for every word $w$.


# %%
def count_pairs():
    counts = Counter()
    for piece, tokens in parts.items():
        for pair in zip(tokens, tokens[1:]):
            counts[pair] += pieces[piece]
    return counts


print(count_pairs().most_common(5))

# %% [markdown]
# "l" is followed by "o" eight times, and so is "o" by "w". Of equal pairs we take the one whose tokens are older; single
# characters are oldest, in the order of the alphabet. So "l" and "o" come first. Gluing goes from left to right:


# %%
def glue(tokens, pair):
    glued = []
    for token in tokens:
        if glued and (glued[-1], token) == pair:
            glued[-1] += token
        else:
            glued.append(token)
    return glued


print(glue(list(" slow"), ("l", "o")))

# %% [markdown]
# Now the whole method: count, choose, glue, and again.

# %%
vocabulary = sorted(set(text))  # from old to new
for step in range(1, 7):
    counts = count_pairs()
    pair = min(counts, key=lambda pair: (-counts[pair], *map(vocabulary.index, pair)))
    vocabulary.append("".join(pair))
    parts = {piece: glue(tokens, pair) for piece, tokens in parts.items()}
    print(f"{step}. {pair} occurs {counts[pair]} times; now 'slower' is {parts[' slower']}")

# %% [markdown]
# After six steps " low" and " slow" are tokens, without anybody having said where a word has its stem.
#
# minigrad does the same on *bytes*, the 256 numbers that every file is made of. A letter such as "l" is one byte, "ñ" is
# two, and an emoji is four. So its vocabulary starts with five special tokens and 256 bytes, and then come the glued ones.
# Any text is made of bytes, so nothing is ever unknown.

# %%
ours = vocabulary[-6:]
theirs = mg.data.BPETokenizer.train(text, vocab_size=5 + 256 + 6)
learned = [theirs.token(id) for id in range(5 + 256, theirs.vocab_size)]
print("ours:    ", ours)
print("minigrad:", learned)
assert learned == ours

# %% [markdown]
# On a real text, more steps pay. Here it learns from 300 short stories, which minigrad makes up by itself: people, animals,
# colours, dishes. Then it cuts a story that it has not seen, once with all its merges, and for the picture with none of
# them, with the first 25, the first 50, and so on. The row of tokens gets shorter, fast at first and then slowly.

# %%
known, new = corpora.stories(300), corpora.stories(301)[-1].text
bpe = mg.data.BPETokenizer.train([story.text for story in known], vocab_size=1000)
print([bpe.token(id) for id in bpe.encode(new)][:22])
print([bpe.token(id) for id in bpe.encode("unwelcome ñ")])
lengths = []
for merges in range(0, len(bpe.merges) + 1, 25):
    lengths.append((merges, len(mg.data.BPETokenizer(bpe.merges[:merges]).encode(new))))
show(mg.viz.curves({"tokens of one story (a step is a merge)": lengths}), "08_merges")

# %% [markdown]
# ## From whole numbers to vectors
#
# An id is only a name. That "dog" is 17 and "cat" is 23 does not make a dog smaller than a cat. So each id gets a
# *vector* instead: a row of numbers, which can be changed until they serve. The vectors of all words are the rows of one
# table, and a lookup in it is called an *embedding*. The source document takes four numbers for each word:
#
# $\text{You} = [0.1, 0.2, -0.1, 0.4] \qquad \text{are} = [-0.3, 0.5, 0.1, -0.2] \qquad \text{welcome} = [0.4, -0.3, 0.2, 0.1]$
#
# We will meet these again in the next two tutorials.

# %%
table = mg.tensor([[0.1, 0.2, -0.1, 0.4], [-0.3, 0.5, 0.1, -0.2], [0.4, -0.3, 0.2, 0.1]])
embedding = nn.Embedding.from_pretrained(table, freeze=False)
looked_up = embedding(mg.tensor([2, 0]))  # "welcome", then "You"
print(looked_up)

# %% [markdown]
# A lookup is a multiplication in disguise. Write the id as a row that is 0 everywhere but 1 at its own place, a *one-hot*
# row $e$. Then with the table $W$
#
# $e \, W = \text{the row of } W \text{ where } e \text{ has its } 1$
#
# That is why it has a derivative like everything else. And since all other rows were multiplied by 0, only the rows that
# were looked up get a gradient:

# %%
one_hot = mg.tensor([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
print(one_hot @ table)
(looked_up**2).sum().backward()
print("gradient of the table:\n", embedding.weight.grad)

# %% [markdown]
# ## Where good vectors come from
#
# Read this: "the *blip* barked at the mailman." You have never met a blip, but you know it is probably a dog. The words
# around it told you. So here is the plan, known as *word2vec*: give each word a vector, and make it good at telling which
# words stand nearby. Words with the same company then get similar vectors, since they must answer alike.
#
# The text: 2,000 generated stories. Words that are there fewer than five times, and punctuation, are left out.

# %%
stories = [story.text.lower() for story in corpora.stories(2000)]
words = mg.data.WordTokenizer.train(stories, min_count=5)
texts = [[id for id in words.encode(story) if words.token(id).isalpha()] for story in stories]
counts = np.bincount(np.concatenate(texts), minlength=words.vocab_size)
print(stories[0])
print(
    f"{counts.sum():,} words, {np.count_nonzero(counts)} different ones; 'the' makes up {counts[words.ids['the']] / counts.sum():.0%}"
)

# %% [markdown]
# Which words are "nearby"? Those at most two places away. Each word $w$ with each of its neighbours $c$, its *context*,
# is one example to learn from.
#
# "the" is next to everything and tells nothing. So a very frequent word is skipped now and then: a word with the share $s$
# of the text is kept with the probability $\sqrt{0.001 / s}$, and always if $s$ is below 0.001.

# %%
share = np.maximum(counts, 1) / counts.sum()
keep = np.sqrt(0.001 / share)
pairs = []
for ids in texts:
    kept = [id for id in ids if random.random() < keep[id]]
    for distance in (1, 2):
        pairs += zip(kept, kept[distance:])
        pairs += zip(kept[distance:], kept)
pairs = np.array(pairs)  # (pairs, 2)
print(
    f"{len(pairs):,} pairs, such as", *[" → ".join(map(words.token, pair)) for pair in pairs[:4].tolist()], sep="\n  "
)

# %% [markdown]
# How does a vector tell? Each word has two, of 48 numbers each: $w$, for when it is in the middle, and $c$, for when it is
# somebody's context. The score of a pair is their *dot product*: multiply number by number, and add up,
#
# $w \cdot c = w_1 c_1 + w_2 c_2 + \dots + w_{48} c_{48}$
#
# It is large where both vectors point the same way. The sigmoid of tutorial 4 turns it into a probability that the two
# really stood side by side. A true pair should get 1. But if there were only true pairs, "always 1" would be perfect. So
# each true pair comes with five false ones, whose context is drawn at random: they should get 0. The loss of one example
# is the cross-entropy of these six answers, where $\sigma$ is the sigmoid:
#
# $\text{loss} = -\log \sigma(w \cdot c) - \sum_{k=1}^{5} \log \left(1 - \sigma(w \cdot r_k)\right)$
#
# and $r_1, \dots, r_5$ are the vectors of the random words. Frequent words are drawn more often, by their count to the
# power 0.75, which is the custom.

# %%
SIZE, BATCH, FALSE = 48, 512, 5
middles, contexts = nn.Embedding(words.vocab_size, SIZE), nn.Embedding(words.vocab_size, SIZE)
for part in (middles, contexts):
    nn.init.uniform_(part.weight, -0.5 / SIZE, 0.5 / SIZE)
chance = counts**0.75 / (counts**0.75).sum()
answers = mg.zeros(BATCH, 1 + FALSE)
answers[:, 0] = 1  # the first context is the true one


def example_loss(true_pairs):
    middle, context = true_pairs.T
    drawn = random.choice(words.vocab_size, (BATCH, FALSE), p=chance)
    others = np.concatenate([context[:, None], drawn], axis=1)  # (B, 6)
    scores = (middles(middle)[:, None] * contexts(others)).sum(-1)  # (B, 1, 48) * (B, 6, 48) -> (B, 6)
    return F.binary_cross_entropy_with_logits(scores, answers, reduction="sum") / BATCH


# %% [markdown]
# At first all vectors are close to zero, every answer is "one half", and the loss is $6 \cdot \log 2 = 4.16$. From there it
# falls. It cannot reach 0: no vector can know which of many fitting words really came.

# %%
optimizer = mg.optim.Adam([middles.weight, contexts.weight], lr=0.01)
curve = []
for step in range(1200):
    loss = example_loss(pairs[random.integers(0, len(pairs), BATCH)])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        curve.append((step, loss.item()))
print(f"loss at the start {curve[0][1]:.2f}, at the end {curve[-1][1]:.2f}")
show(mg.viz.curves({"loss": curve}), "08_loss")

# %% [markdown]
# ## Neighbours
#
# How alike are two vectors $a$ and $b$? Their dot product again, but divided by their lengths $|a|$ and $|b|$, so that only
# the direction counts. (A length is the root of the sum of the squares, by Pythagoras.) That is the *cosine* of the angle
# between them: 1 for the same direction, 0 for a right angle.
#
# $\cos(a, b) = \frac{a \cdot b}{|a| \, |b|}$

# %%
names = [words.token(id) for id in range(words.vocab_size) if counts[id]]
vectors = middles.weight.numpy()[counts > 0]
directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)  # each of length 1


def vector(word):
    return directions[names.index(word)]


def nearest(point, without, n=5):
    cosines = directions @ (point / np.linalg.norm(point))
    order = [i for i in np.argsort(-cosines) if names[i] not in without]
    return [f"{names[i]} {cosines[i]:.2f}" for i in order[:n]]


for word in ("dog", "red", "soup", "painter", "garden"):
    print(f"{word:8}", ", ".join(nearest(vector(word), {word})))

# %% [markdown]
# The document looks up "airplane" in vectors made from all of Wikipedia and finds "aeroplane", "aircraft" and "plane". Ours
# have read only stories, but it is the same thing.
#
# A picture of 48 dimensions does not fit on a page. This one shows the two directions in which the vectors differ most.
# Each word is joined to its nearest neighbour, measured in all 48.

# %%
kinds = {
    "animals": ["bear", "cat", "dog", "duck", "goat", "horse", "monkey", "mouse", "rabbit", "squirrel"],
    "colours": ["black", "blue", "brown", "golden", "green", "purple", "red", "silver", "white", "yellow"],
    "jobs": ["baker", "clown", "dancer", "doctor", "farmer", "gardener", "painter", "pilot", "sailor", "teacher"],
    "dishes": ["cake", "omelette", "pie", "pudding", "salad", "soup", "stew"],
}
shown = [word for kind in kinds.values() for word in kind]
picture = mg.viz.embedding_map(
    [vector(word) for word in shown], shown, kinds, neighbours=1, title="words of four kinds"
)
show(picture, "08_words")

# %% [markdown]
# ## Analogies
#
# Dog is to "barked" as cat is to what? If the step from an animal to its voice is about the same for all animals, it can
# be taken from the dog and added to the cat:
#
# $\text{answer} \approx \text{barked} - \text{dog} + \text{cat}$
#
# We look for the word that is nearest to that point, and leave out the three that were given.


# %%
def analogy(a, b, c):
    return nearest(vector(b) - vector(a) + vector(c), {a, b, c}, 3)


print("dog : barked :: cat   :", *analogy("dog", "barked", "cat"))
print("dog : barked :: duck  :", *analogy("dog", "barked", "duck"))
print("dog : barked :: horse :", *analogy("dog", "barked", "horse"))

# %% [markdown]
# The right answers are purred, quacked and neighed. They are near the top, but not always at the top. And three examples prove
# little, since one can pick them. So ask all of them. Ten animals have a word of their own in the stories; a few have no voice,
# and there the squirrel danced and the rabbit jumped. That makes 90 questions. A guess at random would be right once in 500
# times.

# %%
did = ["growled", "purred", "barked", "quacked", "bleated", "neighed", "laughed", "squeaked", "jumped", "danced"]
voices = dict(zip(kinds["animals"], did))
questions = [(a, voices[a], b) for a in voices for b in voices if a != b]
right = [analogy(*question)[0].split()[0] == voices[question[2]] for question in questions]
print(f"{sum(right)} of {len(right)} right")

# %% [markdown]
# Far from all, and far better than chance. More text and more steps help: `minigrad train word2vec` does the same with more
# of both, and [its page](../models/word2vec/README.md) has the measurements.
#
# ## Vectors that somebody else has trained
#
# Good vectors are useful for other tasks, above all where examples are few. So people share them: as a text file with a
# word and its numbers on each line. These are called *pretrained*. We write ours to such a file, and read it back as
# a stranger would.

# %%
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "vectors.txt"
    lines = [f"{name} {' '.join(f'{x:.6g}' for x in row)}" for name, row in zip(names, directions)]
    path.write_text("\n".join(lines), encoding="utf-8")
    pretrained = nn.read_word_vectors(path)
print(len(pretrained), "words of", pretrained.vectors.shape[1], "numbers each")
vocabulary = [*shown, "airplane"]
table, missing = pretrained.table(vocabulary)
print("a table of", table.shape, "and no vector for", missing)

# %% [markdown]
# The new task: is a word an animal, a colour, a job or a dish? We tell only three words of each kind, and ask for the rest.
# The network is one `Linear` layer on top of the looked-up vector. `freeze=True` keeps the vectors as they are. With
# `freeze=False` they would be trained on, which is called *fine-tuning*.

# %%
answer = {word: number for number, kind in enumerate(kinds.values()) for word in kind}
told = [word for kind in kinds.values() for word in kind[:3]]
asked = [word for word in shown if word not in told]


def train_and_ask(embedding):
    def scores(some):  # (words,) -> (words, 4)
        return layer(embedding(np.array([vocabulary.index(word) for word in some])))

    layer = nn.Linear(SIZE, len(kinds))
    optimizer = mg.optim.Adam([p for p in [*layer.parameters(), embedding.weight] if p.requires_grad], lr=0.05)
    for _ in range(100):
        loss = F.cross_entropy(scores(told), mg.tensor([answer[word] for word in told]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(np.mean(scores(asked).numpy().argmax(-1) == [answer[word] for word in asked]))


# %% [markdown]
# Against it run vectors that start at random. They may be trained, and still cannot help: what is learned about "dog" says
# nothing about the random numbers of "goat".

# %%
print(f"pretrained, frozen:  {train_and_ask(nn.Embedding.from_pretrained(table)):.0%} of {len(asked)} words right")
print(f"random, and trained: {train_and_ask(nn.Embedding(len(vocabulary), SIZE)):.0%}")

# %% [markdown]
# That is what "pretrained" buys. The large models of today are the same idea taken further: nearly all they know was learned
# from which words stand near which.
#
# ## Exercises
#
# 1. Write `encode(word, merges)`, which cuts a word that BPE has not seen: start with characters, and apply the merges in
#    the order in which they were learned. Cut " slowing" and " blower" with the six merges of above. Does minigrad agree?
# 2. Look up the row 1 three times and row 0 once, take the sum of all numbers that come out, and call `backward()`. What is
#    the gradient of the table, and why?
# 3. Do without learning: for each word, count how often each other word stands within two places of it. Use the row
#    of counts as the word's vector (take $\log(1 + \text{count})$, so that large counts do not drown the rest). Which words
#    are nearest to "dog" and to "red" now? How long are these vectors, compared with 48?
#
# More to do, a file with holes that marks itself: `minigrad learn start 8`, then `minigrad learn check`.
#
# Solutions: [solutions/08_words_as_vectors.py](solutions/08_words_as_vectors.py)
#
# ## Read next
#
# - [minigrad/data/tokenizers.py](../minigrad/data/tokenizers.py) and [minigrad/data/bpe.py](../minigrad/data/bpe.py):
#   the tokenizers; `_Chain` in the second glues pairs without looking at the whole text each time.
# - [minigrad/nn/layers/linear.py](../minigrad/nn/layers/linear.py): `Embedding`, and
#   [minigrad/nn/weights/word_vectors.py](../minigrad/nn/weights/word_vectors.py), which reads files of vectors and forgives what is broken in them.
# - [models/word2vec](../models/word2vec): the same model with everything around it.
# - Next: [9. Positions](09_positions.py). A table of words does not know which came first.
