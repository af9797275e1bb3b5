# %% [markdown]
# # Solutions to 8. Words as vectors

# %%
import numpy as np
from minigrad_models import corpora

import minigrad as mg
from minigrad import nn

# %% [markdown]
# ## 1. Cut words that were not seen
#
# The merges are applied in the order in which they were learned: the first one everywhere, then the second, and so on.

# %%
merges = [("l", "o"), ("lo", "w"), (" ", "s"), (" s", "low"), (" ", "g"), (" ", "low")]


def encode(word, merges):
    tokens = list(word)
    for pair in merges:
        glued = []
        for token in tokens:
            if glued and (glued[-1], token) == pair:
                glued[-1] += token
            else:
                glued.append(token)
        tokens = glued
    return tokens


bpe = mg.data.BPETokenizer.train("low slow glow lower slower glowing low slow", vocab_size=5 + 256 + 6)
for word in (" slowing", " blower"):
    print(word, "→", encode(word, merges))
    assert encode(word, merges) == [bpe.token(id) for id in bpe.encode(word)]
assert encode(" slowing", merges) == [" slow", "i", "n", "g"]
assert encode(" blower", merges) == [" ", "b", "low", "e", "r"]

# %% [markdown]
# ## 2. The gradient of a table
#
# Each lookup passes the gradient, which is 1 for every number of a sum, back to the row it came from. A row that was used three times gets
# three of them, and they add up. A row that was not used gets nothing.

# %%
table = nn.Embedding(3, 4)
table(mg.tensor([1, 1, 0, 1])).sum().backward()
print(table.weight.grad)
assert table.weight.grad.tolist() == [[1] * 4, [3] * 4, [0] * 4]

# %% [markdown]
# ## 3. Counting instead of learning
#
# It works well. But a vector now is as long as there are words, almost 500 in place of 48, and in a real language
# it would be hundreds of thousands.

# %%
stories = [story.text.lower() for story in corpora.stories(2000)]
words = mg.data.WordTokenizer.train(stories, min_count=5)
together = np.zeros((words.vocab_size, words.vocab_size))
for story in stories:
    ids = np.array([id for id in words.encode(story) if words.token(id).isalpha()])
    for distance in (1, 2):
        np.add.at(together, (ids[distance:], ids[:-distance]), 1)
        np.add.at(together, (ids[:-distance], ids[distance:]), 1)

vectors = np.log1p(together)
directions = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


# %%
def nearest(word, n=5):
    cosines = directions @ directions[words.ids[word]]
    return [words.token(int(i)) for i in np.argsort(-cosines)[1 : n + 1]]  # the nearest of all is the word itself


animals = ["bear", "cat", "duck", "goat", "horse", "monkey", "mouse", "rabbit", "squirrel"]
colours = ["black", "blue", "brown", "golden", "green", "purple", "silver", "white", "yellow"]
print("dog:", nearest("dog"), " red:", nearest("red"))
print("numbers in a vector:", vectors.shape[1])
assert set(nearest("dog")) <= set(animals)
assert set(nearest("red")) <= set(colours)
assert vectors.shape[1] > 10 * 48
