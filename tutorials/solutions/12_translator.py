# %% [markdown]
# # Solutions to 12. The whole translator

# %%
from pathlib import Path

import numpy as np
from minigrad_models import corpora

import minigrad as mg
from minigrad import nn
from minigrad.data import BOS, EOS, MASK, PAD, UNK
from minigrad.nn import functional as F

HERE = Path(__file__).parent if "__file__" in globals() else Path.cwd()  # a notebook has no __file__

# %% [markdown]
# ## 1. Without the mask
#
# The small translator of the tutorial, once more:

# %%
PAIRS = {"you are welcome": "de nada", "welcome": "bienvenido", "you are": "tú eres", "thank you": "gracias"}
WORDS = ["<pad>", "<s>", "</s>", *dict.fromkeys(" ".join([*PAIRS, *PAIRS.values()]).split())]


def numbers(text, size=0):
    found = [WORDS.index(word) for word in text.split()]
    return found + [0] * (size - len(found))


class SmallTranslator(nn.Module):
    def __init__(self, dim=16, causal=True):
        self.words = nn.Embedding(len(WORDS), dim)
        self.positions = nn.SinusoidalPositions(dim)
        self.encoder = nn.Encoder(1, dim, heads=2)
        self.decoder = nn.Decoder(1, dim, heads=2, causal=causal)
        self.output = nn.Linear(dim, len(WORDS))

    def forward(self, source, target):
        is_word = nn.padding_mask(source, pad=0)
        memory = self.encoder(self.positions(self.words(source)), mask=is_word)
        return self.output(self.decoder(self.positions(self.words(target)), memory, memory_mask=is_word))


# %%
def trained(causal):
    """A model after 120 steps, and its last loss."""
    mg.manual_seed(0)
    model = SmallTranslator(causal=causal)
    optimizer = mg.optim.Adam(model.parameters(), lr=0.01)
    sources = np.array([numbers(source, 3) for source in PAIRS])
    targets = np.array([numbers(f"<s> {target} </s>", 4) for target in PAIRS.values()])
    for _ in range(121):
        logits = model(sources, targets[:, :-1]).reshape(-1, len(WORDS))
        loss = F.cross_entropy(logits, mg.tensor(targets[:, 1:].reshape(-1)), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model, loss.item()


def translate(model, source):
    said = [1]
    while said[-1] != 2 and len(said) < 6:
        with mg.no_grad():
            said.append(int(model(np.array([numbers(source)]), np.array([said]))[0, -1].argmax()))
    return " ".join(WORDS[number] for number in said[1:])


# %%
right = {}
for causal in (True, False):
    model, loss = trained(causal)
    said = {source: translate(model, source) for source in PAIRS}
    right[causal] = sum(said[source] == f"{target} </s>" for source, target in PAIRS.items())
    print(f"causal={causal}: loss {loss:.4f}, says {said}")
    assert loss < 0.01
assert right[True] == 4 and right[False] < 4

# %% [markdown]
# The loss falls just as well without the mask, but for the wrong reason: every place found its answer at the next
# place of what it was fed. On its own there is no next place. After `<s>` alone most sentences end at once. A low
# loss is worth nothing if the answer was in the question.
#
# ## 2. Greedy, by hand

# %%
translator = mg.zoo.load(HERE.parent / "runs" / "translator")
model, tokenizer = translator.model, translator.tokenizer


def greedy(text):
    """The likeliest word each time; what no translation has (padding, <s>, unknown, mask) is passed over."""
    with mg.no_grad():
        memory, mask = model.encode(mg.tensor([tokenizer.encode(mg.data.normalise(text), eos=True)]))
        said = [BOS]
        while said[-1] != EOS and len(said) < 40:
            logits = model.decode(mg.tensor([said]), memory, mask)[0, -1].numpy().copy()
            logits[[PAD, BOS, UNK, MASK]] = -np.inf
            said.append(int(logits.argmax()))
    return tokenizer.decode(said)


# %%
sentences = [english for english, _ in corpora.phrasebook()[::30]] + ["the girl is reading a red book"]
theirs = [found.text for found in translator.translate(sentences, beams=1)]
for sentence, text in zip(sentences[:5], theirs):
    print(f"{sentence} -> {text}")
assert len(sentences) == 20
assert [greedy(sentence) for sentence in sentences] == theirs

# %% [markdown]
# The encoder runs once for each sentence. The decoder runs once for each word, and each time computes everything
# anew; tutorial 14 shows how a cache saves that.
#
# ## 3. After a mistake

# %%
new = dict(corpora.grammar_pairs("heldout", 300, seed=5))
words, next_words = [], []  # is a word right; is the word after the first wrong one right
for found in translator.translate(list(new), beams=1):
    said = [*found.pieces[0].hypotheses[0].tokens, EOS]
    is_right = [a == b for a, b in zip(said, tokenizer.encode(new[found.source], eos=True))]
    words += is_right
    if False in is_right[:-1]:
        next_words.append(is_right[is_right.index(False) + 1])
usually, after_one = np.mean(words), np.mean(next_words)
print(f"right in general: {usually:.0%}; right after the first mistake of a sentence: {after_one:.0%}")
assert len(next_words) > 30
assert after_one < usually - 0.2

# %% [markdown]
# One mistake makes the next one much likelier. Some of it is that a word is missing, so that the rest is moved by one
# place; some is that the sentence has become another one.
