# %% [markdown]
# # 15. BERT: filling blanks, next sentence, fine-tuning
#
# GPT learns by guessing the next word, so it must not see what comes after. That is right for writing. For reading it
# is a pity: you, too, sometimes understand a word only when you have read on. BERT reads the whole sentence at once. It
# cannot guess the next word then, since it sees it. So some words are hidden, anywhere, and it guesses those. You will
# have
#
# - the two masks, that of GPT and none, drawn;
# - words hidden by the rule of 80, 10 and 10 percent, and the reason for it;
# - the loss of a model that comes with this tutorial, computed by hand;
# - blanks filled, with probabilities, and words on the right that change the answer;
# - two sentences with the same words and two answers, which no bag of words can give;
# - a task with twenty labelled sentences, learned from what BERT knows, and from nothing.
#
# Reading takes about 35 minutes, running about 12 seconds.

# %%
import numpy as np
from minigrad_models import corpora
from minigrad_models.bert.batches import IGNORED, MaskedBatch, mask_tokens
from minigrad_models.bert.model import Bert
from minigrad_models.bert.tokens import encoded, joined, segments_of
from showing import run_folder, show

import minigrad as mg
from minigrad import nn
from minigrad.data import MASK, SPECIALS, Padded
from minigrad.nn import functional as F

# %% [markdown]
# ## Both ways
#
# "Carl hid ___ the bed." You said "under". "Carl hid ___ the door." Now it is "behind". What decides stands on the
# *right* of the blank. Let us ask the GPT of tutorial 14, which has read the same kind of stories, what comes after
# "Carl hid":

# %%
gpt = mg.zoo.load(run_folder("gpt"))
with mg.no_grad():
    chances = F.softmax(gpt.model(np.array([gpt.tokenizer.encode("Carl hid")]))[0, -1], axis=-1).numpy()
for token in np.argsort(-chances)[:4]:
    print(f"{gpt.tokenizer.token(token):8} {chances[token]:.3f}")

# %% [markdown]
# Whatever we put after it, bed or door, the answer is the same: it has not got there yet. The reason is the mask of
# tutorial 11. Word $i$ looks at word $j$ with the weight
#
# $$A_{ij} = \frac{e^{S_{ij}}}{\sum_{k \le i} e^{S_{ik}}} \quad \text{in a GPT, for } j \le i, \qquad
# A_{ij} = \frac{e^{S_{ij}}}{\sum_{k} e^{S_{ik}}} \quad \text{in BERT, for all } j$$
#
# $S_{ij}$ is the score of the two words: query times key (tutorial 10). Only the sum below the line differs. If all
# scores were equal, the weights would be these:

# %%
words = ["Carl", "hid", "?", "the", "bed", "."]
later = np.triu(np.ones((6, 6), dtype=bool), k=1)  # column j is after row i
causal = np.where(later, 0.0, 1.0)
causal /= causal.sum(axis=1, keepdims=True)
both = np.full((6, 6), 1 / 6)
show(
    mg.viz.heatmap(causal, words, words, title="GPT: each word, and what it sees", most=1, hidden=later), "15_gpt_mask"
)
show(mg.viz.heatmap(both, words, words, title="BERT: each word sees all", most=1), "15_bert_mask")

# %% [markdown]
# Grey is what may not be seen. In the row of the blank, which is "?", GPT has grey at "bed", and BERT has not. That is
# the whole difference between the two kinds of blocks: `causal=True` or not.
#
# ## Hiding words
#
# If every word sees every word, there is nothing left to guess, unless we take something away. Of each text 15 percent
# of the words are *chosen*, at random, other ones each time the text is read. Of the chosen ones
#
# - 80 percent become `<mask>`,
# - 10 percent become any other word,
# - 10 percent stay as they are.
#
# The model has to name the word that stood there, in all three cases. For a word of the text the chances are
#
# $$P(\text{mask}) = 0.15 \cdot 0.8 = 0.12, \qquad P(\text{another}) = P(\text{chosen, but stays}) = 0.15 \cdot 0.1 =
# 0.015$$
#
# Here is a story, and what BERT gets to see of it. The model and its tokenizer come with this tutorial; 528 words are
# all that it knows.

# %%
bert = mg.zoo.load(run_folder("bert"))
tokenizer, size = bert.tokenizer, bert.tokenizer.vocab_size
story = corpora.stories(3, seed=1)[2].text  # seed 1: it has learned from other stories
ids = np.array([joined(encoded(tokenizer, story), None, bert.config.context)])  # (1, T)
seen, wanted = mask_tokens(ids, size, 0.15, np.random.default_rng(7))
print(tokenizer.decode(ids[0, 1:-1].tolist()), end="\n\n")
for place in np.flatnonzero(wanted[0] != IGNORED):
    before = " ".join(tokenizer.token(token) for token in ids[0, place - 3 : place])
    print(f"{before:>22} [{tokenizer.token(ids[0, place])}] is fed as {tokenizer.token(seen[0, place])}")

# %% [markdown]
# Why not `<mask>` always? Then the model would have to say something sensible at `<mask>` only, and the vectors of all
# other words might be anything. But these are what we want in the end: whoever uses BERT shows it sentences without any
# `<mask>`. Since one word in some seventy is wrong, and one that it sees may be asked for, it cannot leave any word
# unread. Here are the first words of the story in eight readings:

# %%
readings = np.repeat(ids[:, 1:15], 8, axis=0)  # (8, 14)
fed, asked = mask_tokens(readings, size, 0.15, np.random.default_rng(1))
kind = np.select([asked == IGNORED, fed == MASK, fed != readings], [0.0, 3.0, 2.0], 1.0)
note = "3: <mask>, 2: another word, 1: chosen, but stays, 0: not chosen"
columns = [tokenizer.token(token) for token in readings[0]]
show(mg.viz.heatmap(kind, range(1, 9), columns, title="what becomes of each word", note=note), "15_hidden")

many = np.repeat(ids, 2000, axis=0)
fed, asked = mask_tokens(many, size, 0.15, np.random.default_rng(0))
chosen, total = asked != IGNORED, (many >= len(SPECIALS)).sum()
print(f"{chosen[0].sum()} of {total // 2000} words are chosen in each reading")
for name, which in {"<mask>": fed == MASK, "another": (fed != MASK) & (fed != many), "stays": fed == many}.items():
    print(f"{name:8} {(chosen & which).sum() / total:.4f} of all words")

# %% [markdown]
# (A whole number of words is chosen, so it is not 15 percent to the last digit. And one "other" word in 500 is, by
# chance, the word itself.)
#
# ## The loss, by hand
#
# The model gives a vector for every place. At a chosen place $i$ the vector is compared with that of each word of the
# vocabulary, which gives 528 logits, and a softmax makes probabilities of them. The loss is the cross-entropy of
# tutorial 6, over the set $M$ of the chosen places:
#
# $$L = -\frac{1}{|M|} \sum_{i \in M} \log P(w_i \mid \text{the text as it is fed})$$
#
# $|M|$ is how many there are. All other places say nothing: to repeat a word that is plainly there would teach nothing.
#
# The model was made like this, in some minutes on one core:
#
# ```sh
# minigrad train bert --out runs/bert
# minigrad export runs/bert tutorials/runs/bert
# ```

# %%
model = bert.model
print(f"{sum(parameter.size for parameter in model.parameters()):,} weights,", bert.config.layers, "blocks")


def guesses(texts):
    """Logits of all words at all places: (B, T) -> (B, T, V)."""
    with mg.no_grad():
        vectors = model(texts)  # (B, T, 64)
        logits = model.head.words(vectors.reshape(-1, vectors.shape[-1]), model)
    return logits.numpy().reshape(*texts.shape, size)


logits = guesses(seen)[0].astype("float64")  # (T, V)
likely = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
places = np.flatnonzero(wanted[0] != IGNORED)
surprises = -np.log(likely[places, wanted[0, places]])
for place, surprise in zip(places, surprises):
    word, shown = tokenizer.token(wanted[0, place]), tokenizer.token(seen[0, place])
    guess = tokenizer.token(int(likely[place].argmax()))
    print(f"{word:8} fed as {shown:8} guessed {guess:8} {surprise:.3f}")
with mg.no_grad():
    summed, count = model.head.terms(model, MaskedBatch(seen, wanted, np.array([IGNORED])))["words"]
print(f"by hand {surprises.mean():.5f}, by the model {summed.item() / count:.5f}, of {count} words")
names = [tokenizer.token(word) for word in wanted[0, places]]
show(mg.viz.heatmap(surprises[None], ["surprise"], names, title="-log P of each hidden word"), "15_surprise")

# %% [markdown]
# Most words are no surprise at all, and a few make up nearly the whole loss. Which ones? Let us ask for more of them,
# in a hundred stories that it has not read. How many are guessed, of all words, and of the names of people?

# %%
PEOPLE = (
    "Ana Emma Lucy Mia Nora Rosa Sara Zoe Clara Julia Laura Alice Eva Ruth Grace Lena "
    "Ben Carl David Felix Hugo Jack Leo Max Noah Oscar Paul Tom Simon Peter Adam Henry"
)
people = [tokenizer.encode(name)[0] for name in PEOPLE.split()]
texts = [joined(encoded(tokenizer, told.text), None, bert.config.context) for told in corpora.stories(100, seed=1)]
fed, asked = mask_tokens(Padded.of(texts).ids, size, 0.15, np.random.default_rng(0), (1.0, 0.0))  # all behind <mask>
right = guesses(fed).argmax(axis=-1) == asked
for name, which in {"all words": asked != IGNORED, "names": np.isin(asked, people)}.items():
    print(f"{name:9}: {right[which].mean():.1%} of {which.sum()} hidden ones are guessed")

# %% [markdown]
# It knows well how these stories are told. It does not know at all who is who: there are 32 names, so one in 32, or 3
# percent, would be luck. It knows that a name is missing, but it has not learned to look for it in the sentences
# around. (The GPT of tutorial 14 mixes up names as well.)
#
# ## Filling blanks
#
# A blank is a `<mask>` that we write ourselves. Its probabilities are
#
# $$P(w) = \frac{e^{Z_w}}{\sum_v e^{Z_v}}$$
#
# with the 528 logits $Z$ at that place.


# %%
def at_blank(text):
    """Logits of all words for the first blank of a text."""
    row = np.array([joined(encoded(tokenizer, text), None, bert.config.context)])
    return guesses(row)[0, row[0].tolist().index(MASK)]


def chances_of(choices, *texts):
    """How probable each choice is for the blank of each text: (texts, choices)."""
    chosen = [tokenizer.encode(word)[0] for word in choices]
    return np.stack([F.softmax(mg.tensor(at_blank(text)), axis=-1).numpy()[chosen] for text in texts])


RECIPES = {
    "soup": "carrots and potatoes", "cake": "eggs and flour", "salad": "tomatoes and beans",
    "pie": "apples and sugar", "pudding": "milk and plums", "stew": "meat and peas",
}  # fmt: skip
texts = [f"Ana wanted to make a <mask>. She needed {needed}." for needed in RECIPES.values()]
found = chances_of(RECIPES, *texts)
for text, row in zip(texts, found):
    print(f"{text:64} all six dishes together {row.sum():.2f}")
rows = [needed.replace(" and ", "+") for needed in RECIPES.values()]
show(mg.viz.heatmap(found, rows, list(RECIPES), title="Ana wanted to make a <mask>", most=1), "15_blanks")

# %% [markdown]
# The recipes are those of the stories, so a perfect reader would have 1 on the diagonal and 0 elsewhere. The model
# knows that something to cook is missing. It is sure of the cake, has a notion of some other dishes, and is wrong about
# the rest. What it goes by stands *after* the blank, in another sentence. Now to Carl. The words on the left are the
# same in each row:

# %%
hiding_places = ["bed", "table", "door", "curtain", "cupboard", "chest"]
hiding = [f"Carl hid <mask> the {where}." for where in hiding_places]
choices = ["under", "behind", "in", "on", "at"]
picture = mg.viz.heatmap(chances_of(choices, *hiding), hiding_places, choices, title="Carl hid <mask> the …", most=1)
show(picture, "15_right_side")

# %% [markdown]
# The same can be had with one call, `predict`, or from the command line with `minigrad predict`. It gives the five
# likeliest:

# %%
for answer in bert.predict("So Nora stayed dry, and Mia got <mask>.", "Ana lost it in the park. <mask> was very sad."):
    print(answer["input"], answer["<mask>"])

# %% [markdown]
# "Wet" is right, though it thought of "cold" as well. "She" or "He" depends on Ana, and to this model it is a toss:
# it knows that a pronoun is missing, but not which names go with which.
#
# ## Where the blank looks
#
# How does "bed" come into the answer? By attention: nothing else in a block carries anything from word to word. We look
# at the row of the blank in all 12 heads, 4 in each of 3 blocks, and search for the largest
#
# $$A_{ij} \quad \text{with } i \text{ the blank and } j \text{ the bed}$$

# %%
row = np.array([joined(encoded(tokenizer, hiding[0]), None, bert.config.context)])
pieces = [tokenizer.token(token) for token in row[0]]
attention = mg.viz.attention(model, row, tokens=pieces)
blank, bed = pieces.index("<mask>"), pieces.index("bed")
weights = np.stack([layer.weights[:, blank, bed] for layer in attention.layers])  # (3 blocks, 4 heads)
print(weights.round(2))
block, head = (int(place) for place in np.unravel_index(weights.argmax(), weights.shape))
show(attention.scene(block, head), "15_attention")

# %% [markdown]
# Read the row of `<mask>`: nearly all of it is at "bed". Other words look there, too; the head has learned to look for
# the thing of a sentence, we may guess. In a GPT everything above the diagonal would be grey, and there could be no
# such head.
#
# ## The next sentence
#
# BERT learns a second thing at the same time: are these two texts one after the other in a story, or are they from two
# stories? Both are put in one row, `<s> first </s> second </s>`. So that the model can tell them apart, each token gets
# besides its own vector $E$ one of its *segment*, of which there are two:
#
# $$x_i = E_{\text{token } i} + G_{\text{segment } i}$$
#
# (The original adds a vector of the position, too. Ours turns queries and keys instead: tutorial 9.) From all vectors
# together the head makes two logits, $z_0$ for no and $z_1$ for yes, and
#
# $$P(\text{follows}) = \frac{e^{z_1}}{e^{z_0} + e^{z_1}}$$

# %%
pair = joined(encoded(tokenizer, "Carl hid under the bed."), encoded(tokenizer, "Rosa looked in the chest."), 128)
print([tokenizer.token(token) for token in pair])
print("segments:", segments_of(mg.tensor([pair])).numpy()[0])

# %% [markdown]
# We take five stories of five kinds, cut each after its second sentence, and offer to each beginning each of the five
# third sentences.

# %%
told = {}
for one in corpora.stories(30, seed=1):
    told.setdefault(one.plot, one.sentences)
cut = list(told.items())[:5]
asked = [f"{' '.join(first[:2])} | {second[2]}" for _, first in cut for _, second in cut]
follows = np.array([answer["follows"] for answer in bert.predict(*asked)]).reshape(5, 5)
for plot, sentences in cut:
    print(f"{plot}: {' '.join(sentences[:2])} | {sentences[2]}")
plots = [plot.split()[0] for plot, _ in cut]
picture = mg.viz.heatmap(follows, plots, plots, title="does it follow?", note="rows begin, columns go on", most=1)
show(picture, "15_follows")

# %%
pairs = corpora.sentence_pairs(100, seed=1)
answers = bert.predict(*(f"{first} | {second}" for first, second, _ in pairs))
hits = [(answer["follows"] > 0.5) == is_next for answer, (_, _, is_next) in zip(answers, pairs)]
print(f"{np.mean(hits):.0%} of {len(hits)} pairs that it has not seen are told rightly")
for second in ("She needed meat and peas.", "She needed milk and plums.", "They pulled and pulled, until it was free."):
    print(second, bert.predict(f"Mia wanted to make a stew for Nora. | {second}")[0]["follows"])

# %% [markdown]
# It is good at that, but see how. In the picture two stories about a goat are taken for one, although one has Jack in
# it and the other Oscar. And nobody makes a stew of milk and plums. The model goes by what a sentence is about, and for
# pairs from two stories that is nearly always enough. Later models left this task out, or made it harder, for that
# reason.
#
# ## What a bag cannot know
#
# Is all this more than counting words? A *bag of words* says how often each word is in a text, and forgets the order:
#
# $$c_w = \text{how often word } w \text{ is in the text}, \qquad \text{answer} = f(c)$$
#
# Two texts with the same counts get the same answer, whatever $f$ is. So here are two with the same words:

# %%
one, two = "Carl hid <mask> the bed and looked at the door.", "Carl hid <mask> the door and looked at the bed."
print("the same words:", sorted(encoded(tokenizer, one)) == sorted(encoded(tokenizer, two)))
note = "rows: what stands after the blank"
picture = mg.viz.heatmap(
    chances_of(choices, one, two), ["bed", "door"], choices, title="the same bag, two answers", note=note, most=1
)
show(picture, "15_bag")

# %% [markdown]
# One answer for one bag would be wrong in at least one of the two. BERT takes into account where the bed stands: right
# after the blank, or at the end.
#
# ## Fine-tuning
#
# Filling blanks is not what people want. They want to sort letters, to find names, to answer questions, and for that
# they have few examples with labels, because labels are work. The idea of BERT: learn the language first, from text
# that costs nothing, and the task afterwards, from a few examples. The encoder is kept. The head that names words is
# taken off, and a new one is put on, a single matrix and a bias:
#
# $$\text{logits}_i = W h_i + b$$
#
# $h_i$ is the vector of word $i$. Then everything is trained a little more, encoder and head. That is *fine-tuning*.
#
# Our task: tell of each word whether it is a person, an animal, a thing, a place, or something else. Twenty sentences
# have labels. (We make them from lists. Think of somebody with a red pencil.)

# %%
KINDS = {
    "person": PEOPLE,
    "animal": "dog cat rabbit horse monkey mouse bear duck squirrel goat",
    "thing": "kite ball robot puzzle drum flute guitar whistle hat scarf coat book map pencil lamp basket boat clock",
    "place": "park forest garden market school library station field beach bridge hill museum",
}
kind_of = np.zeros(size, dtype=int)  # 0 is "other"
for number, listed in enumerate(KINDS.values(), 1):
    kind_of[[tokenizer.encode(word)[0] for word in listed.split()]] = number


def labelled(count, seed):
    """So many sentences, one of each story, and the kinds of their words: two arrays (count, T)."""
    draw = np.random.default_rng(seed)
    sentences = [draw.choice(told.sentences) for told in corpora.stories(count, seed)]
    ids = Padded.of([joined(encoded(tokenizer, sentence), None, 128) for sentence in sentences]).ids
    return ids, np.where(ids >= len(SPECIALS), kind_of[ids], IGNORED)


known, known_kinds = labelled(20, seed=8)
new, new_kinds = labelled(200, seed=9)
matters = new_kinds > 0  # nearly all words are "other": to count those would flatter everybody
kinds = ["other", *KINDS]
print([(tokenizer.token(token), kinds[kind]) for token, kind in zip(known[0], known_kinds[0]) if kind != IGNORED])
print((known_kinds > 0).sum(), "words of the four kinds have labels;", matters.sum(), "new ones are to be told")
met = np.isin(new[matters], known[known_kinds > 0]).mean()
print(f"{met:.1%} of these are words that had a label")


# %%
class Tagger(nn.Module):
    def __init__(self, encoder):
        self.encoder = encoder
        self.head = nn.Linear(64, len(kinds))

    def forward(self, ids):
        return self.head(self.encoder(ids))  # (B, T) -> (B, T, 64) -> (B, T, 5)


def share_right(tagger):
    with mg.no_grad():
        said = tagger(new).argmax(axis=-1).numpy()
    return float((said == new_kinds)[matters].mean())


def fine_tuned(tagger, steps=40, every=4):
    """Train on the twenty sentences; the share of new words that are right, before and after every few steps."""
    parts = [{"params": list(tagger.encoder.parameters()), "lr": 5e-4}, {"params": list(tagger.head.parameters())}]
    optimizer = mg.optim.AdamW(parts, lr=1e-2)
    curve = [(0, share_right(tagger))]
    for step in range(1, steps + 1):
        logits = tagger(known).reshape(-1, len(kinds))
        loss = F.cross_entropy(logits, mg.tensor(known_kinds.reshape(-1)), ignore_index=IGNORED)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % every == 0:
            curve.append((step, share_right(tagger)))
    print(f"loss on the twenty sentences {loss.item():.4f}, right of the new words {curve[-1][1]:.1%}")
    return np.array(curve).T


# %% [markdown]
# Two start: one with the encoder that has read stories, and one of the same size whose weights are random. Both get the
# same twenty sentences and the same number of steps. The head is new and takes large steps (a learning rate of 0.01),
# the encoder small ones (0.0005), so as not to forget what it knows. Such rates are chosen on other stories than those
# that are judged here: what was chosen to look well on some examples says little about others.

# %%
mg.manual_seed(0)
curves = {
    "from BERT": fine_tuned(Tagger(mg.zoo.load(run_folder("bert")).model)),
    "from nothing": fine_tuned(Tagger(Bert(bert.config))),
    "words that had a label": ([0, 40], [met, met]),
}
show(mg.viz.lines(curves, "twenty labelled sentences", x="steps", y="share right", points=True), "15_fine_tuning")

# %% [markdown]
# At first both find out that most words are "other", and say so to nearly every word. In the end both know the twenty
# sentences by heart. But who starts from nothing ends close to the third line: it knows the words that had a label, and
# hardly any others. "Max is a person" tells it nothing about Eva. BERT has read both names in the same places many
# times, so their vectors are alike, and a label for one is a label for all. That is what the reading was good for.
#
# To be fair: the new sentences are of the same kind as those that BERT has read, and this is one draw of twenty
# sentences. With a label for every word there is, both would be right. The gain is largest where labels are few.

# %% [markdown]
# ## Exercises
#
# 1. Write the hiding of words yourself, `hide(row, rng)` for one row of tokens, without looking at
#    `mask_tokens`: each word is chosen with a chance of 15 percent, and then 80, 10, 10. Check the three shares on
#    100,000 words.
# 2. `Carl hid <mask> the <mask>.` has two blanks. Find the likeliest pair in two ways: each blank for itself, from
#    one pass; and one after the other, where the second blank is asked again for each word in the first. By
#    $P(a, b) = P(a) \cdot P(b \mid a)$, how probable is each pair? What can go wrong in the first way?
# 3. Leave the encoder as it is and train the head alone, on vectors that are computed once. How good is that, from BERT
#    and from random weights? Compare with fine-tuning everything.
#
# More to do, a file with holes that marks itself: `minigrad learn start 15`, then `minigrad learn check`.
#
# Solutions: [solutions/15_bert.py](solutions/15_bert.py)
#
# ## Read next
#
# - [models/bert/model.py](../models/bert/model.py): the encoder and its heads, for blanks, classes, tags and answers.
# - [models/bert/tokens.py](../models/bert/tokens.py): how two texts become one row.
# - [models/bert/batches.py](../models/bert/batches.py): `mask_tokens`, which hides words.
# - [minigrad/nn/transformer/blocks.py](../minigrad/nn/transformer/blocks.py): `Encoder`, which is GPT's and BERT's, by one switch.
# - [models/bert](../models/bert/README.md): how to train and fine-tune one from the command line, and how good it is.
# - Next: [16. Making it fast](16_making_it_fast.py).
