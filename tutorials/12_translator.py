# %% [markdown]
# # 12. The whole translator
#
# The parts of tutorials 8 to 11 are put together: "You are welcome" goes in and "de nada" comes out, first from a translator
# in twelve lines, trained on four sentences in two seconds, then from a real one, small but complete. You will see how it
# is trained, what that costs, and which Spanish word looked at which English one.
#
# Reading takes about 20 minutes, running about 15 seconds.

# %%
import numpy as np
from minigrad_models import corpora
from showing import run_folder, show

import minigrad as mg
from minigrad import nn
from minigrad.learn.sketches import encoder_and_decoder
from minigrad.nn import functional as F

# %% [markdown]
# ## Two halves
#
# The *encoder* reads the *source*, "You are welcome", and makes one vector for each word: the *memory*. The *decoder* writes
# the *target*, "de nada", one word at a time: it looks at what it has written so far, and at the memory, and says which word
# comes next. `<s>` means "begin", `</s>` "that was all".

# %%
show(encoder_and_decoder(), "12_two_halves")

# %% [markdown]
# A block of the decoder has three parts where one of the encoder has two:
#
# 1. *self-attention*, with a mask: a word of the target looks at itself and at what came before. In training the whole
#    target is fed at once; without the mask `<s>` would peek at "de", the very word it should guess (exercise 1). With
#    $M = 0$ where it may look and $-\infty$ elsewhere: $\text{softmax}\left(\frac{Q K^T}{\sqrt{d_k}} + M\right) V$
# 2. *cross-attention*: queries from the decoder's rows $y$, keys and values from the memory $m$: $Q = y\,W_Q$, $K = m\,W_K$,
#    $V = m\,W_V$. There is no mask, since the source is known from its first word to its last.
# 3. the MLP of tutorial 11.
#
# At the end one more matrix makes a score for *every* word of the vocabulary, and softmax probabilities (tutorial 6).
#
# ## A translator in twelve lines
#
# Four sentences are enough. "Welcome" alone is "bienvenido", but in "you are welcome" no word may be translated by itself.

# %%
PAIRS = {"you are welcome": "de nada", "welcome": "bienvenido", "you are": "tú eres", "thank you": "gracias"}
WORDS = ["<pad>", "<s>", "</s>", *dict.fromkeys(" ".join([*PAIRS, *PAIRS.values()]).split())]


def numbers(text, size=0):
    """The number of each word; shorter texts are filled up with <pad>, which is word 0."""
    found = [WORDS.index(word) for word in text.split()]
    return found + [0] * (size - len(found))


sources = np.array([numbers(source, 3) for source in PAIRS])
targets = np.array([numbers(f"<s> {target} </s>", 4) for target in PAIRS.values()])
print(WORDS, sources, targets, sep="\n")


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
# `nn.Encoder` and `nn.Decoder` are the stacks; 1 is how many blocks they have. Larger translators only have larger numbers
# in these lines. Is the mask in place? If the last word that is fed changes, the rows before it must not notice:

# %%
mg.manual_seed(0)
small = SmallTranslator()
fed, other = np.array([numbers("<s> de nada")]), np.array([numbers("<s> de gracias")])
with mg.no_grad():
    moved = (small(sources[:1], fed) - small(sources[:1], other)).abs().max(axis=2)
print("rows that change:", moved.numpy().round(2))

# %% [markdown]
# ## Teacher forcing
#
# We feed the decoder `<s> de nada` and want `de nada </s>`: each place is asked for the word after it. At the second place
# "de" is fed, the *right* word, whatever the model would have said. So all places are computed at once, and each learns.
#
# The loss is the cross-entropy of tutorial 6, averaged over all places that are no padding. $w_t$ is the right word at
# place $t$; the bar | means "given".
#
# $$\text{loss} = -\frac{1}{T} \sum_{t=1}^{T} \log P(w_t \mid w_1 \ldots w_{t-1}, \text{source})$$

# %%
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
# In use there is no teacher. The model is fed `<s>`, and then whatever it has said itself, until it says `</s>`:


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
# ## A real one
#
# A language takes more: the 561 pairs of a phrasebook, and 16,000 sentences of a small grammar, 2,520 words of both
# languages together. The model comes with this tutorial, and was made in a minute on one core by
#
# ```sh
# minigrad train translator:small dim=20 heads=2 pairs=16000 epochs=8 smoothing=0 lr=0.007 --out runs/small
# minigrad export runs/small tutorials/runs/translator
# ```
#
# (`MINIGRAD_THREADS=1` before the first gives the same weights to the last bit.) Texts are brought to one form by
# `mg.data.normalise`, and a source, too, ends with `</s>`. Sentences with words that never met in training are its test.

# %%
translator = mg.zoo.load(run_folder("translator"))
model, tokenizer = translator.model, translator.tokenizer
print(f"{sum(parameter.size for parameter in model.parameters()):,} weights")
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
# ## What teacher forcing costs
#
# In training the model never sees a mistake of its own. In use, once it has said something wrong, it stands before a
# beginning that no lesson ever had. The difference is called *exposure bias*: at each place of new sentences, how often is
# its word the right one, fed the truth, and fed its own words?

# %%
places = [place for place in translator.exposure() if place.count >= 100]
at = [place.position for place in places]
shares = {
    "fed the truth": (at, [place.teacher_forced for place in places]),
    "on its own": (at, [place.free_running for place in places]),
}
for place in places:
    print(f"place {place.position:2}: {place.teacher_forced:6.1%} fed the truth, {place.free_running:6.1%} on its own")
show(mg.viz.lines(shares, x="place in the sentence", y="share of right words", points=True), "12_exposure")

# %% [markdown]
# Fed the truth, it becomes *better* towards the end, since more and more is given away. On its own some sentences have gone
# wrong earlier. One may feed a model its own words now and then in training: `minigrad train translator sampling=0.2`.
#
# ## Who looked at whom
#
# Cross-attention: each row is a word that is chosen, and shows where the model looks to choose it.

# %%
show(translator.attention("You are welcome").alignment(), "12_you_are_welcome")
sentence = "the girl is reading a red book"
print(translator.translate(sentence)[0].text)
show(translator.attention(sentence).alignment(), "12_red_book")
show(translator.attention("You are welcome"), "12_attention.html")  # all heads, with the sums behind every number

# %% [markdown]
# Both words of "de nada" look at "welcome". That "bienvenido" is not meant, the encoder knows: there "welcome" has looked at
# its neighbours. The longer sentence is nearly a diagonal; "la" comes from "the" *and* "girl". For "libro" the model jumps
# over "red" to "book", and comes back one row later. Nobody told it which words belong together. It had only pairs of
# sentences, and the slope of the loss.
#
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
