# %% [markdown]
# # 12. The whole translator
#
# Tutorials 8 to 11 made the parts: words as vectors, positions, attention, blocks. Here they are put together, and at
# the end "You are welcome" goes in and "de nada" comes out. You will have
#
# - the decoder half of our source document's example, as it is printed there and as it should be;
# - a whole translator in twelve lines, trained on four sentences in two seconds;
# - a real one, small but complete; how it is trained, which is called *teacher forcing*, and what that costs;
# - a picture of which Spanish word looked at which English one.
#
# Reading takes about 40 minutes, running about 15 seconds.

# %%
import numpy as np
from minigrad_models import corpora
from showing import compare, run_folder, show

import minigrad as mg
from minigrad import nn
from minigrad.nn import functional as F


def matrix(rows):
    return mg.tensor(rows, dtype="float64")  # 16 digits: the document prints 8


# %% [markdown]
# ## Two halves
#
# A translator has two stacks of blocks. The *encoder* reads the sentence that is given, the *source*: "You are
# welcome". What it makes, one vector for each word, is called the *memory*. The *decoder* writes the translation, the
# *target*: "de nada". It writes one word at a time. Each time it looks at what it has written so far, and at the
# memory, and says which word should come next.
#
# What has it written when it begins? Nothing, and a stack of blocks needs at least one word. So there is a word that
# means "begin", `<s>`, and another that means "that was all", `</s>`. The decoder is fed `<s>` and should say "de". Fed
# `<s> de`, it should say "nada". Fed `<s> de nada`, it should say `</s>`.
#
# A block of the decoder has three parts where one of the encoder has two:
#
# 1. *self-attention*: words of the target look at words of the target;
# 2. *cross-attention*: words of the target look at the memory;
# 3. the MLP of tutorial 11.
#
# We go through them with the document's numbers.
#
# ## The decoder looks at itself
#
# Here is the target with its positions, from tutorial 10: a row each for `<s>`, "de" and "nada". The document draws the
# weights of this attention at random, with the seed 42. So can we, and get the same ones.

# %%
y = matrix([[0.0, 1.0, 0.0, 1.0], [0.6415, 1.39995, 0.3001, 1.1], [1.4093, 0.8998, -0.3998, 1.3]])
draw = np.random.RandomState(42)
W_q, W_k, W_v, W_o = (matrix(draw.rand(4, 4)) for _ in range(4))
Q, K, V = y @ W_q, y @ W_k, y @ W_v  # each (3, 4)

# %% [markdown]
# First we do what the document's program does: a softmax of the plain scores, with nothing hidden from anybody.
#
# $$\text{softmax}(Q K^T) \, V \, W_O$$

# %%
everything = F.softmax(Q @ K.T, axis=-1)
attended = everything @ V @ W_o
printed = [
    [2.82896639, 2.49151229, 3.27935978, 3.36785616],
    [2.93697775, 2.57919015, 3.42996786, 3.49210994],
    [2.95810782, 2.60399936, 3.43836135, 3.51718943],
]
compare("decoder self-attention as in the document", attended, printed)
print("who listens to whom:", everything.numpy().round(3), sep="\n")

# %% [markdown]
# All digits are there. But two things are missing, though the document's text has both. One is the division by
# $\sqrt{d_k}$, which keeps the scores of ordinary size (tutorial 10).
#
# The other is the mask, and that is worse. In training we know the whole target and feed all of it at once. The row of
# `<s>` is to find out that "de" comes next. Look at its weights: it spends 57 percent of its time on "de", the very
# word it should guess. It would learn to peek, and nothing else; and in use, when the rest is not written yet, there is
# nothing to peek at. (Exercise 1 lets you see that happen.) So each word may look at itself and at what came before, as
# in tutorial 11: $M$ is 0 there and $-\infty$ elsewhere.
#
# $$\text{softmax}\left(\frac{Q K^T}{\sqrt{d_k}} + M\right) V \, W_O$$
#
# This is what our real layer computes, if it is told `is_causal=True`:

# %%
layer = nn.MultiHeadAttention(4, heads=1, bias=False, dtype="float64")
with mg.no_grad():
    layer.in_proj_weight[...] = mg.concatenate([W_q.T, W_k.T, W_v.T])  # the layer keeps its matrices transposed
    layer.out_proj.weight[...] = W_o.T
right = layer(y[None], is_causal=True)[0]
why = "the document's program forgets the mask and the scale"
compare("decoder self-attention, scaled and causal", right, printed, why)
target = ["<s>", "de", "nada"]
seen = mg.viz.Attention.of_heads(Q[None], K[None], V[None], is_causal=True, tokens=target)
show(seen.scene(), "12_masked")

# %% [markdown]
# Two things tell that the mask works. The first row is `<s>` looking at itself alone. And if you change the last word,
# the rows before it must not notice:

# %%
other = mg.concatenate([y[:2], matrix([[9.0, -9.0, 9.0, -9.0]])])  # the same, with another third word
print("rows that change:", (layer(other[None], is_causal=True)[0] - right).abs().max(axis=1).numpy().round(2))

# %% [markdown]
# ## The decoder looks at the memory
#
# First comes a layer norm (tutorial 11). The document takes what its program printed, without mask and scale, and adds
# $\epsilon$ to the deviation and not to the variance; to follow it we do the same.

# %%
deviation = attended.std(axis=1, keepdims=True)
asking = (attended - attended.mean(axis=1, keepdims=True)) / (deviation + 1e-6)
printed = [
    [-0.46049196, -1.4140849, 0.81224991, 1.06232694],
    [-0.46121408, -1.41736871, 0.85625689, 1.02232591],
    [-0.46146504, -1.41536061, 0.83223948, 1.04458616],
]
compare("decoder layer norm as in the document", asking, printed)
asking = matrix(printed)  # it goes on with the printed digits

# %% [markdown]
# Now the rows of the decoder ask questions, and this time they ask the *encoder*. The queries are made from the
# decoder's rows, the keys and values from the encoder's. Apart from that nothing changes:
#
# $$Q = y\,W_Q \qquad K = m\,W_K \qquad V = m\,W_V \qquad \text{softmax}\left(\frac{Q K^T}{\sqrt{d_k}}\right) V$$
#
# where $m$ is the memory. There is one weight for each word of the target and each of the source: 3 × 3 here, but 3 ×
# 20 if the source had 20 words. And there is no mask. The source is known from its first word to its last, so every
# word of the target may look at all of it. (The document says that future words are hidden here, too; its program
# rightly does not do that.)

# %%
memory = matrix(
    [[-1.34164072, -0.44721357, 0.44721357, 1.34164072], [-1.34164071, -0.44721357, 0.44721357, 1.34164071],
     [-1.34164075, -0.44721358, 0.44721358, 1.34164075]]
)  # fmt: skip
W_Q = matrix([[1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
W_K = matrix([[0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
W_V = matrix([[1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 1, 0], [1, 0, 0, 1]])

# %% [markdown]
# Here the document's program differs from its text in two places: it divides by $\sqrt 3$ (three words) and not by
# $\sqrt 4$ (four numbers in a key), and it multiplies by the transposed matrices. As it does it, then as our layer
# does:

# %%
weights = F.softmax((asking @ W_Q.T) @ (memory @ W_K.T).T / 3**0.5, axis=-1)
compare("encoder-decoder weights as in the document", weights, [[0.33333333, 0.33333333, 0.33333334]] * 3)
printed = [[-1.7888543, 1.7888543, 0, 0]] * 3
compare("encoder-decoder attention as in the document", weights @ (memory @ W_V.T), printed)
with mg.no_grad():
    layer.in_proj_weight[...] = mg.concatenate([W_Q.T, W_K.T, W_V.T])
    layer.out_proj.weight[...] = mg.eye(4, dtype="float64")
crossed = layer(asking[None], memory[None])[0]  # queries from the first, keys and values from the second
compare("encoder-decoder attention", crossed, printed, "x @ W, not x @ Wᵀ, and √4")

# %% [markdown]
# Every row is the same, and the weights are a third each. No wonder: the three rows of the memory are equal to seven
# digits. That came from the made-up weights of the MLP, as tutorial 11 explained. If three people tell you the same
# story, it does not matter whom you listen to. With learned weights it does, as you will see.
#
# ## From vectors to words
#
# At the end there are four numbers for each word of the target, and what we want is a word. One more matrix makes a
# score of them for *every* word of the vocabulary, softmax makes probabilities of the scores (tutorial 6), and *argmax*
# takes the place of the largest. With $d$ numbers and a vocabulary of $V$ words:
#
# $$P = \text{softmax}(x \, W) \qquad (3 \times d) \cdot (d \times V) = (3 \times V)$$
#
# $$\text{word}_i = \text{argmax}_j \, P_{ij}$$
#
# The document imagines 10,000 words and stops here, since its matrix would be made up. We take seven, and make one up,
# too.

# %%
vocabulary = ["<s>", "</s>", "de", "nada", "gracias", "hola", "casa"]
mg.manual_seed(2)
output = nn.Linear(4, len(vocabulary), dtype="float64")
P = F.softmax(output(crossed), axis=-1)  # (3, 4) -> (3, 7)
print(P[0].numpy().round(3))
print("it says:", [vocabulary[place] for place in P.numpy().argmax(axis=-1)])

# %% [markdown]
# Nonsense, as was to be expected: nobody has learned anything yet. So let us learn.
#
# ## A translator in twelve lines
#
# Four sentences are enough to see everything. They are chosen with care: "welcome" alone is "bienvenido", but in "you
# are welcome" no word may be translated by itself.

# %%
PAIRS = {"you are welcome": "de nada", "welcome": "bienvenido", "you are": "tú eres", "thank you": "gracias"}
WORDS = ["<pad>", "<s>", "</s>", *dict.fromkeys(" ".join([*PAIRS, *PAIRS.values()]).split())]


def numbers(text, size=0):
    """The number of each word; shorter texts are filled up with <pad>, which is word 0."""
    found = [WORDS.index(word) for word in text.split()]
    return found + [0] * (size - len(found))


print(WORDS)
sources = np.array([numbers(source, 3) for source in PAIRS])
targets = np.array([numbers(f"<s> {target} </s>", 4) for target in PAIRS.values()])
print(sources, targets, sep="\n")


# %%
class SmallTranslator(nn.Module):
    def __init__(self, dim=16, causal=True):
        self.words = nn.Embedding(len(WORDS), dim)
        self.positions = nn.SinusoidalPositions(dim)
        self.encoder = nn.Encoder(1, dim, heads=2)
        self.decoder = nn.Decoder(1, dim, heads=2, causal=causal)
        self.output = nn.Linear(dim, len(WORDS))

    def forward(self, source, target):
        is_word = nn.padding_mask(source, pad=0)
        memory = self.encoder(self.positions(self.words(source)), mask=is_word)  # (B, S) -> (B, S, 16)
        made = self.decoder(self.positions(self.words(target)), memory, memory_mask=is_word)
        return self.output(made)  # (B, T, 16) -> (B, T, words)


# %% [markdown]
# `nn.Encoder` and `nn.Decoder` are the stacks; 1 is how many blocks they have. That is all of it, and larger
# translators only have larger numbers in these lines.
#
# ## Teacher forcing
#
# How is it trained? We feed the decoder `<s> de nada` and want `de nada </s>`: the same words, moved by one place. Each
# place is asked for the word after it:
#
# | fed | `<s>` | de | nada |
# |---|---|---|---|
# | wanted | de | nada | `</s>` |
#
# Note what is fed at the second place: "de", the *right* word, whatever the model would have said at the first. The
# teacher always puts the right beginning in its mouth. That is called *teacher forcing*. It makes training fast. Thanks
# to the mask all places can be computed at once, in one pass, and each of them learns: three lessons from one sentence.
#
# The loss is the cross-entropy of tutorial 6, averaged over all places that are no padding:
#
# $$\text{loss} = -\frac{1}{T} \sum_{t=1}^{T} \log P(w_t \mid w_1 \ldots w_{t-1}, \text{source})$$
#
# $w_t$ is the right word at place $t$, and the bar | means "given": the probability of this word, given those before it
# and the source.

# %%
mg.manual_seed(0)
small = SmallTranslator()
optimizer = mg.optim.Adam(small.parameters(), lr=0.01)
wanted = mg.tensor(targets[:, 1:].reshape(-1))
for step in range(121):
    logits = small(sources, targets[:, :-1])  # (4, 3, words)
    loss = F.cross_entropy(logits.reshape(-1, len(WORDS)), wanted, ignore_index=0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step:3}: loss {loss.item():.4f}")

# %% [markdown]
# ## On its own
#
# In use there is no teacher. The model is fed `<s>`, and then, step by step, whatever it has said itself, until it says
# `</s>`:


# %%
def translate(model, source):
    said = [WORDS.index("<s>")]
    while WORDS[said[-1]] != "</s>" and len(said) < 6:
        with mg.no_grad():
            logits = model(np.array([numbers(source)]), np.array([said]))
        said.append(int(logits[0, -1].argmax()))  # what it says after the last word
    return [WORDS[number] for number in said[1:]]


for source in PAIRS:
    print(f"{source:16} ->", *translate(small, source))

# %% [markdown]
# To take the likeliest word each time is called *greedy*. Tutorial 13 does better.
#
# "You are welcome" has become "de nada", by the same steps that we went through by hand. And the same "welcome", in
# other company, is "bienvenido". What does cross-attention look at now?

# %%
fed = numbers("<s> de nada")
seen = mg.viz.attention(
    small, np.array([numbers("you are welcome")]), np.array([fed]), tokens=target, keys=["you", "are", "welcome"]
)
show(seen.alignment(), "12_small_alignment")

# %% [markdown]
# It looks at "you" and at "welcome". That is enough to tell the four sentences apart, so it has learned no more.
#
# ## A real one
#
# Four sentences are learned by heart. A language takes more: here it is the 561 pairs of a phrasebook, and 16,000
# sentences that a small grammar made, 2,520 words of both languages together. The model comes with this tutorial, and
# was made by
#
# ```sh
# minigrad train translator:small dim=20 heads=2 pairs=16000 epochs=8 smoothing=0 lr=0.007 --out runs/small
# minigrad export runs/small tutorials/runs/translator
# ```
#
# in about a minute on one core. (With `MINIGRAD_THREADS=1` before the first command, sums are made in the same order, and
# the same weights come out to the last bit.) It is `SmallTranslator` with a little around it. Each word has 20 numbers.

# %%
translator = mg.zoo.load(run_folder("translator"))
model, tokenizer = translator.model, translator.tokenizer
count = sum(parameter.size for parameter in model.parameters())
print(f"{count:,} weights, of them {model.embedding.weight.size:,} in the table of words")
for found in translator.translate(["You are welcome", "You're welcome!", "Where is the library?", "I love you"]):
    print(f"{found.source:22} -> {found.text}")

# %% [markdown]
# (Before anything else a text is brought to one form by `mg.data.normalise`: small letters, "you are" for "you're", no
# marks. And a source, too, ends with `</s>` here.)
#
# Does it only know by heart, like ours? The grammar keeps some combinations of words out of the training, certain
# adjectives with certain nouns for instance. Sentences with these are its test. It is to go the greedy way, `beams=1`;
# tutorial 13 tells what more beams are.

# %%
book = dict(corpora.phrasebook())
said = translator.translate(list(book), beams=1)
print(f"phrasebook: {sum(found.text == book[found.source] for found in said)} of {len(book)} word for word")
new = dict(corpora.grammar_pairs("heldout", 300, seed=5))
said = translator.translate(list(new), beams=1)
print(f"never seen: {sum(found.text == new[found.source] for found in said)} of {len(new)} word for word")
for found in said[:4]:
    right = "right" if found.text == new[found.source] else f"wrong, wanted was: {new[found.source]}"
    print(f"  {found.source} -> {found.text}   ({right})")

# %% [markdown]
# What does it say at each place of "de nada", fed the truth? The decoder gives three rows of probabilities at once:

# %%
source = mg.tensor([tokenizer.encode("you are welcome", eos=True)])
fed = mg.tensor([tokenizer.encode("de nada", bos=True)])
with mg.no_grad():
    logits = model(source, fed)[0]  # (1, 3, V) -> (3, V)
names = [tokenizer.token(number) for number in range(tokenizer.vocab_size)]
for word, row in zip(fed[0].tolist(), F.softmax(logits, axis=-1).numpy()):
    print(f"after {names[word]:5}", {names[i]: round(float(row[i]), 4) for i in (-row).argsort()[:3]})
show(mg.viz.next_tokens(logits[0], names, top=6), "12_first_word")

# %% [markdown]
# ## What teacher forcing costs
#
# In training the model never sees a mistake of its own. In use it does: once it has said something wrong, it stands
# before a beginning that no lesson ever had, and what follows is likely to be wrong, too. The difference between the
# two is called *exposure bias*, and can be measured. Take sentences it has not been trained on. At each place, how
# often is its word the right one, when it is fed the truth, and when it is fed its own words?

# %%
places = [place for place in translator.exposure() if place.count >= 100]
for place in places:
    forced, free = place.teacher_forced, place.free_running
    print(f"place {place.position:2}: {forced:6.1%} right if fed the truth, {free:6.1%} on its own")

# %%
at = [place.position for place in places]
shares = {
    "fed the truth": (at, [place.teacher_forced for place in places]),
    "on its own": (at, [place.free_running for place in places]),
}
show(mg.viz.lines(shares, x="place in the sentence", y="share of right words", points=True), "12_exposure")

# %% [markdown]
# At the first place both are the same: nothing has been said yet. Then the curves part. Fed the truth, it becomes
# *better* towards the end, since more and more is given away. On its own it does not, because some sentences have gone
# wrong earlier. (The measure is harsh: where a word is left out, all after it stand at the wrong place.)
#
# Here is one such sentence: what it said, and what it says at each place if it is corrected at once.

# %%
(found,) = translator.translate("will Carlos and I call the old women?", beams=1)
truth = tokenizer.encode("¿llamaremos Carlos y yo a las ancianas?", bos=True, eos=True)
with mg.no_grad():
    logits = model(mg.tensor([found.pieces[0].ids]), mg.tensor([truth[:-1]]))
print("wanted:       ", tokenizer.decode(truth))
print("on its own:   ", found.text)
print("fed the truth:", tokenizer.decode(logits[0].argmax(axis=-1).tolist()))

# %% [markdown]
# Twice the same single mistake, "mi" for "Carlos". Corrected, it finishes the sentence without another one. On its own
# it goes on from "mi", as it must: to "mi tía", my aunt, and the old women are forgotten.
#
# Larger models make fewer mistakes, and so have fewer to go on from. One may also feed a model its own words now and
# then while it is trained, which is called *scheduled sampling*: `minigrad train translator sampling=0.2`.

# %% [markdown]
# ## Who looked at whom
#
# Now the picture that we came for: cross-attention while "You are welcome" is translated. Each row is what was fed, and
# so the place where the *next* word is decided: "de" in the row of `<s>`, "nada" in the row of "de".

# %%
show(translator.attention("You are welcome").alignment(), "12_you_are_welcome")

# %% [markdown]
# Both words of the answer look at "welcome", and hardly at "you are". How does it know, then, that "bienvenido" is not
# meant? From the encoder. There "welcome" has looked at its neighbours, so its row of the memory is not that of a
# "welcome" alone. Only `</s>` is decided by looking elsewhere. A longer sentence shows more:

# %%
sentence = "the girl is reading a red book"
print(translator.translate(sentence)[0].text)
show(translator.attention(sentence).alignment(), "12_red_book")

# %% [markdown]
# It is nearly a diagonal, word for word. At the top, "la" comes from "the" *and* "girl": Spanish has to know who is
# meant before it can say "the". And near the end the order is turned round. English says "red book", Spanish "libro
# rojo". In the row of "un", which decides "libro", the model jumps over "red" to "book", and comes back to "red" one
# row later. Nobody told it which words belong together. It had only pairs of sentences, and the slope of the loss.
#
# All heads of all three kinds of attention are on this page, with the sums behind every number:

# %%
show(translator.attention("You are welcome"), "12_attention.html")

# %% [markdown]
# ## Exercises
#
# 1. Train `SmallTranslator(causal=False)` in the same way, on the four sentences. What becomes of the loss? What does
#    it say on its own, and why?
# 2. Write `greedy(text)` for the real translator yourself: `memory, mask = model.encode(source)` once, where the source is
#    the normalised text with `</s>` at its end, as numbers; then `model.decode(target, memory, mask)` again and again.
#    Show that it says what `translator.translate(text, beams=1)` says, for 20 sentences.
# 3. How much does one wrong word harm? Take the sentences `grammar_pairs("heldout", 300, seed=5)`. Let the model speak
#    on its own, and find the first wrong word of each sentence that goes wrong. How often is the *next* word right, in
#    these, compared with how often a word is right in general?
#
# More to do, a file with holes that marks itself: `minigrad learn start 12`, then `minigrad learn check`.
#
# Solutions: [solutions/12_translator.py](solutions/12_translator.py)
#
# ## Read next
#
# - [minigrad/nn/transformer/blocks.py](../minigrad/nn/transformer/blocks.py): `Encoder` and `Decoder`. One class makes the blocks of
#   both.
# - [models/translator/model.py](../models/translator/model.py): the real translator. `translation_loss` is teacher
#   forcing, `fed` is scheduled sampling.
# - [models/translator](../models/translator/README.md): how to train one on sentence pairs of your own.
# - Next: [13. Beam search](13_beam_search.py).
