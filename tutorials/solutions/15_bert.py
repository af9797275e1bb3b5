# %% [markdown]
# # Solutions to 15. BERT: filling blanks, next sentence, fine-tuning

# %%
from pathlib import Path

import numpy as np
from minigrad_models import corpora
from minigrad_models.bert.batches import IGNORED
from minigrad_models.bert.model import Bert
from minigrad_models.bert.tokens import encoded, joined

import minigrad as mg
from minigrad import nn
from minigrad.data import MASK, SPECIALS, Padded
from minigrad.nn import functional as F

HERE = Path(__file__).parent if "__file__" in globals() else Path.cwd()  # a notebook has no __file__
bert = mg.zoo.load(HERE.parent / "runs" / "bert")
model, tokenizer, size = bert.model, bert.tokenizer, bert.tokenizer.vocab_size

# %% [markdown]
# ## 1. Hiding words


# %%
def hide(row, rng):
    """What is fed, and what is wanted: IGNORED where a word is not chosen."""
    fed, wanted = list(row), [IGNORED] * len(row)
    for place, token in enumerate(row):
        if token < len(SPECIALS) or rng.random() >= 0.15:
            continue
        wanted[place] = token
        way = rng.random()
        if way < 0.8:
            fed[place] = MASK
        elif way < 0.9:
            fed[place] = int(rng.integers(len(SPECIALS), size))
    return fed, wanted


rng = np.random.default_rng(0)
words = rng.integers(len(SPECIALS), size, 100_000).tolist()
fed, wanted = (np.array(made) for made in hide(words, rng))
chosen = wanted != IGNORED
shares = {
    "<mask>": (chosen & (fed == MASK)).mean(),
    "another": (chosen & (fed != MASK) & (fed != words)).mean(),
    "stays": (chosen & (fed == words)).mean(),
}
print({name: round(float(share), 4) for name, share in shares.items()})
assert np.allclose(list(shares.values()), [0.12, 0.015, 0.015], atol=0.003)
assert (fed[~chosen] == np.array(words)[~chosen]).all()
specials = list(range(len(SPECIALS))) * 50
assert hide(specials, rng) == (specials, [IGNORED] * len(specials))

# %% [markdown]
# `mask_tokens` does not toss for each word, but chooses the same number of words in each text, at least one, so that no
# text is read in vain.
#
# ## 2. Two blanks


# %%
def chances(text):
    """Probabilities of all words for each blank of a text: (blanks, V)."""
    row = np.array([joined(encoded(tokenizer, text), None, bert.config.context)])
    with mg.no_grad():
        vectors = model(row)[0, mg.tensor(np.flatnonzero(row[0] == MASK))]
        return F.softmax(model.head.words(vectors, model), axis=-1).numpy()


first, second = chances("Carl hid <mask> the <mask>.")
after = {}  # by word in the first blank, the probabilities of the second
for word in np.argsort(-first)[:5]:
    after[int(word)] = chances(f"Carl hid {tokenizer.token(int(word))} the <mask>.")[0]


def joint(a, b):
    return float(first[a] * after[a][b])


alone = int(first.argmax()), int(second.argmax())
together = max(((a, int(after[a].argmax())) for a in after), key=lambda pair: joint(*pair))
for name, pair in {"each for itself": alone, "one after the other": together}.items():
    print(f"{name}: {' the '.join(tokenizer.token(word) for word in pair)}, P = {joint(*pair):.4f}")
assert joint(*together) >= joint(*alone)

# %% [markdown]
# The second way looks for the largest product, so it cannot be worse. In the first way the second blank does not know
# what is in the first. Here is what it thinks of places that do not go with "in", and what becomes of that when "in" is
# there:

# %%
preposition = tokenizer.encode("in")[0]
for place in ("sofa", "curtain", "door", "bed"):
    word = tokenizer.encode(place)[0]
    print(f"{place:8} {second[word]:.4f} for itself, {after[preposition][word]:.4f} after in")
wrong = [tokenizer.encode(place)[0] for place in ("sofa", "curtain", "door", "bed")]
assert after[preposition][wrong].sum() < second[wrong].sum() / 4

# %% [markdown]
# So whoever draws both words from one pass gets "in the sofa" now and then. That is why BERT is not used for writing.
#
# ## 3. The head alone

# %%
KINDS = {
    "person": "Ana Emma Lucy Mia Nora Rosa Sara Zoe Clara Julia Laura Alice Eva Ruth Grace Lena "
    "Ben Carl David Felix Hugo Jack Leo Max Noah Oscar Paul Tom Simon Peter Adam Henry",
    "animal": "dog cat rabbit horse monkey mouse bear duck squirrel goat",
    "thing": "kite ball robot puzzle drum flute guitar whistle hat scarf coat book map pencil lamp basket boat clock",
    "place": "park forest garden market school library station field beach bridge hill museum",
}
kind_of = np.zeros(size, dtype=int)
for number, listed in enumerate(KINDS.values(), 1):
    kind_of[[tokenizer.encode(word)[0] for word in listed.split()]] = number


def labelled(count, seed):
    draw = np.random.default_rng(seed)
    sentences = [draw.choice(told.sentences) for told in corpora.stories(count, seed)]
    ids = Padded.of([joined(encoded(tokenizer, sentence), None, 128) for sentence in sentences]).ids
    return ids, np.where(ids >= len(SPECIALS), kind_of[ids], IGNORED)


def head_alone(encoder, steps=300):
    """The share of new words of the four kinds that a head on fixed vectors gets right."""
    (known, known_kinds), (new, new_kinds) = labelled(20, seed=8), labelled(200, seed=9)
    with mg.no_grad():
        known_vectors, new_vectors = encoder(known), encoder(new)
    is_word, matters = known_kinds != IGNORED, new_kinds > 0
    x, y = known_vectors[mg.tensor(is_word)], mg.tensor(known_kinds[is_word])
    head = nn.Linear(64, 1 + len(KINDS))
    optimizer = mg.optim.AdamW(head.parameters(), lr=1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(head(x), y).backward()
        optimizer.step()
    with mg.no_grad():
        said = head(new_vectors).argmax(axis=-1).numpy()
    return float((said == new_kinds)[matters].mean())


mg.manual_seed(0)
from_bert, from_nothing = head_alone(model), head_alone(Bert(bert.config))
print(f"the head alone: {from_bert:.1%} on the vectors of BERT, {from_nothing:.1%} on those of random weights")
assert from_bert > from_nothing + 0.2

# %% [markdown]
# The vectors of BERT are good as they are: words of a kind lie close together, and a matrix of 64 × 5 finds the
# borders. Here it even does better than fine-tuning everything for 40 steps, which got 84 percent. Perhaps twenty
# sentences are too little to change 140,000 weights by; we have not looked into it. On random vectors it gets about as
# many right as there are words that had a label.
