# %% [markdown]
# # Solutions to 13. Beam search, as a tree

# %%
import itertools
import math

import numpy as np

import minigrad as mg

TOKENS = ["<s>", "</s>", "no", "de", "nada", "hay", "qué"]
NEXT = {
    "": {"no": 0.55, "de": 0.40, "nada": 0.05},
    "no": {"hay": 0.50, "nada": 0.30, "</s>": 0.20},
    "de": {"nada": 0.90, "qué": 0.10},
    "no hay": {"de": 0.60, "nada": 0.40},
    "de nada": {"</s>": 0.95, "qué": 0.05},
    "no hay de": {"qué": 0.90, "nada": 0.10},
}


class Table:
    """A table of next words as something that can be searched."""

    def __init__(self, table):
        self.table, self.beginnings = table, None

    def __call__(self, new):
        before = self.beginnings or [""] * len(new)
        self.beginnings = [f"{text} {TOKENS[t]}".replace("<s>", "").strip() for text, t in zip(before, new[:, -1])]
        scores = np.full((len(new), len(TOKENS)), -np.inf)
        for row, beginning in zip(scores, self.beginnings):
            for word, chance in self.table.get(beginning, {"</s>": 1.0}).items():
                row[TOKENS.index(word)] = math.log(chance)
        return scores

    def select(self, rows):
        self.beginnings = [self.beginnings[row] for row in rows]


def search(beams, alpha=0.0, table=NEXT):
    """The words of the best sentence that was found, and its score."""
    (found,) = mg.decode.beam_search(Table(table), np.array([[0]]), beams=beams, length=6, end=1, alpha=alpha)
    return " ".join(TOKENS[token] for token in found[0].tokens), found[0].score


def every_sentence(table, beginning="", probability=1.0):
    for word, chance in table.get(beginning, {"</s>": 1.0}).items():
        if word == "</s>":
            yield probability * chance, beginning
        else:
            yield from every_sentence(table, f"{beginning} {word}".strip(), probability * chance)


# %% [markdown]
# ## 1. Too narrow by one
#
# Put two words in front of "de", and let what follows them be divided among many. "No" does that already. Let "hay"
# do it, too.

# %%
changed = NEXT | {"": {"no": 0.40, "hay": 0.32, "de": 0.28}, "hay": {"qué": 0.4, "de": 0.3, "nada": 0.3}}
best, sentence = max(every_sentence(changed))
print(f"the best of all: {sentence} ({best:.3f})")
for beams in (2, 3):
    text, score = search(beams, table=changed)
    print(f"width {beams}: {text} ({math.exp(score):.3f})")
assert search(2, table=changed)[0] != sentence == search(3, table=changed)[0]

# %% [markdown]
# ## 2. How much alpha?
#
# The longer one is worth more if
#
# $$\frac{\log 0.1485}{(10/6)^\alpha} > \frac{\log 0.342}{(8/6)^\alpha}$$
#
# Both logarithms are negative. Multiply by $(10/6)^\alpha$ and divide by $\log 0.342$, which turns the sign round:
# $\frac{\log 0.1485}{\log 0.342} < (10/8)^\alpha$. The logarithm of both sides gives $\alpha$.

# %%
limit = math.log(math.log(0.1485) / math.log(0.342)) / math.log(10 / 8)
print(f"from alpha = {limit:.3f} on")
assert search(10, limit - 0.01)[0] == "de nada"
assert search(10, limit + 0.01)[0] == "no hay de qué"
assert search(3, limit + 0.01)[0] == "de nada"

# %% [markdown]
# A beam of 3 stops too early. It compares what is finished with what is alive *as it is now*. "No hay de qué" without
# its end has only four words and is not forgiven so much yet. With a length penalty a score can become better by
# going on, and the rule for stopping is only a good guess. For the usual $\alpha$ of up to 1 that does not matter
# much.
#
# ## 3. Two hundred tables
#
# Every beginning has five ways to go on, and there are 1 + 4 + 16 + 64 beginnings of up to three words. After the
# fourth word the sentence ends.

# %%
WORDS = TOKENS[2:6]
beginnings = [" ".join(words) for length in range(4) for words in itertools.product(WORDS, repeat=length)]
random = np.random.default_rng(0)
hits = dict.fromkeys((1, 2, 4, 8, 256), 0)
for _ in range(200):
    chances = random.dirichlet(np.full(5, 0.5), size=len(beginnings))  # rows of positive numbers that add up to 1
    table = {text: dict(zip([*WORDS, "</s>"], row)) for text, row in zip(beginnings, chances.clip(1e-9).tolist())}
    best, _ = max(every_sentence(table))
    for beams in hits:
        hits[beams] += math.isclose(math.exp(search(beams, table=table)[1]), best)
print({beams: f"{count / 200:.0%}" for beams, count in hits.items()})
assert hits[1] < hits[2] < hits[4] <= hits[8] <= hits[256] == 200

# %% [markdown]
# A beam of 2 repairs most of what the greedy way misses. Only a beam that never has to drop anything is sure: there
# are $4^4 = 256$ beginnings of four words.
