# %% [markdown]
# # 14. GPT: learning from text alone
#
# The translator of tutorial 12 needed pairs: somebody had to write every Spanish sentence beside its English one. There
# is far more text in the world than text with answers beside it. GPT learns from text alone, by guessing the next word
# of everything it reads. You will have
#
# - the next-token loss, and the document's example "I love AI", computed and corrected;
# - a GPT in ten lines that learns to put words in order in five seconds, and a larger one that tells small stories;
# - the ways to draw a next word: temperature, top-k and top-p;
# - a cache that makes writing faster and changes nothing;
# - the cost of length, counted, measured and fitted: where $n^2$ is, and how much of it matters in GPT-3;
# - a model that is told what to do by two examples.
#
# Reading takes about 45 minutes, running about 15 seconds.

# %%
import time

import numpy as np
from minigrad_models import corpora
from showing import compare, run_folder, show

import minigrad as mg
from minigrad import nn
from minigrad.decode import Sampling
from minigrad.learn.sketches import growing_cache, text_under_a_hand
from minigrad.nn import functional as F
from minigrad.runtime.threads import single_threaded_blas

# %% [markdown]
# ## Text is its own teacher
#
# Take any text. Cover it with your hand, and move the hand to the right, word by word. Each time, guess the word that
# appears next. You need no teacher: the text itself gives the answer a moment later. "Unlabelled text" means just that:
# text, and nothing beside it.

# %%
text = corpora.story_text(40_000)
words = text.split()[:7]
for place in range(1, len(words)):
    print(f"{' '.join(words[:place]):40} -> {words[place]}")
show(text_under_a_hand(), "14_text_under_a_hand")

# %% [markdown]
# One sentence of seven words gives six questions. The loss is that of tutorial 6, averaged over all questions:
#
# $$L = -\frac{1}{T} \sum_{t} \log P(u_t \mid u_{t-k}, \ldots, u_{t-1})$$
#
# $u_t$ is token number $t$ of the text, and | is read "given". $k$ is how many tokens the model can see at once, the
# *context window*. (A *token* is what the model takes for one word. It may be a character, or a piece of a word:
# tutorial 8.) The document has $k = 2$ in its example: given "I love", the model should say "AI".
#
# ## "I love AI"
#
# GPT is the decoder of tutorial 12 without the part that looks at a source. There is no source. What is left is a stack
# of blocks with causal attention, where each word looks at itself and what came before. The document shows one step of
# it, with two numbers for each word. First, words plus positions:

# %%
U = mg.tensor([[0.12, 0.87], [0.56, 0.32], [0.74, 0.51]], dtype="float64")  # "I", "love", "AI"
W_p = mg.tensor([[0.02, 0.04], [0.03, 0.07], [0.05, 0.09]], dtype="float64")
h0 = U + W_p
compare("h0 of I, love and AI", h0, [[0.14, 0.91], [0.59, 0.39], [0.79, 0.60]])

# %% [markdown]
# Then attention. The weights are made up: "love" listens to "I" for a tenth of its time and to itself for the rest.
# "AI" comes later, and so has the weight 0. Its own row and that of "I" we make up, too, so that the matrix is whole.
# Look at the zeros: they are the causal mask.

# %%
weights = mg.tensor([[1.0, 0.0, 0.0], [0.1, 0.9, 0.0], [0.2, 0.3, 0.5]], dtype="float64")
h1 = weights @ h0  # (3, 3) x (3, 2) -> (3, 2)
compare("h1 of love", h1[1], [0.155, 0.458], "0.1 · 0.14 + 0.9 · 0.59 is 0.545")

# %% [markdown]
# A mixture lies between the things that are mixed. 0.155 cannot be right: nine tenths of it are 0.59. The last step of
# the document stands for the whole MLP and is a single matrix:

# %%
W = mg.tensor([[0.2, 0.3], [0.4, 0.5]], dtype="float64")
compare("h2 of love", h1[1] @ W, [0.1753, 0.309], "not even the document's own h1 gives that")
print("from the document's h1:", (mg.tensor([0.155, 0.458], dtype="float64") @ W))

# %% [markdown]
# ## A GPT in ten lines
#
# `nn.Encoder` with `causal=True` is the stack. In front of it are two tables, one of tokens and one of positions. After
# it, the table of tokens serves once more: a token is likely if its vector points the same way as what comes out of the
# stack.


# %%
class SmallGPT(nn.Module):
    def __init__(self, vocabulary, context=24, dim=32):
        self.tokens = nn.Embedding(vocabulary, dim)
        self.positions = nn.LearnedPositions(context, dim)
        self.blocks = nn.Encoder(2, dim, heads=2, causal=True)
        nn.init.normal_(self.tokens.weight, std=0.02)  # so small that at first all tokens are about equally likely

    def forward(self, tokens):
        x = self.blocks(self.positions(self.tokens(tokens)))  # (B, T) -> (B, T, dim)
        return F.linear(x, self.tokens.weight)  # (B, T, dim) -> (B, T, vocabulary)


# %% [markdown]
# Our tokens are words and marks, and the text is some 140 stories that minigrad makes up. A batch is 16 pieces of 24
# tokens, from anywhere. What is wanted is what was fed, moved by one place.

# %%
tokenizer = mg.data.WordTokenizer.train(text)
ids = np.array(tokenizer.encode(text))
mg.manual_seed(0)
rng = np.random.default_rng(0)
small = SmallGPT(tokenizer.vocab_size)
optimizer = mg.optim.AdamW(small.parameters(), lr=5e-3)


def batch():
    rows = np.stack([ids[start : start + 25] for start in rng.integers(0, len(ids) - 25, 16)])
    return rows[:, :-1], mg.tensor(rows[:, 1:].reshape(-1))


fed, wanted = batch()
print("fed:   ", tokenizer.decode(fed[0].tolist()))
print("wanted:", tokenizer.decode(wanted.tolist()[:24]))

# %%
losses = []
for step in range(301):
    fed, wanted = batch()
    loss = F.cross_entropy(small(fed).reshape(-1, tokenizer.vocab_size), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append((step, loss.item()))
    if step % 100 == 0:
        print(f"step {step}: loss {loss.item():.2f}")
size = tokenizer.vocab_size
print(f"{size} tokens, all equally likely, would have a loss of log {size} = {np.log(size):.2f}")
show(mg.viz.curves({"loss": losses}), "14_loss")

# %% [markdown]
# It begins near $\log V$, the loss of somebody who knows nothing: each of $V$ tokens has the probability $1/V$. Then it
# falls. What has it learned in 300 steps? Let it write. It is fed a beginning, draws a token by its probabilities, and
# is fed that as well:

# %%
written = tokenizer.encode("One day,")
while len(written) < 60:
    with mg.no_grad():
        logits = small(np.array([written[-24:]]))[0, -1]  # what comes after the last token
    likely = F.softmax(logits, axis=-1).numpy().astype("float64")
    written.append(int(rng.choice(len(likely), p=likely / likely.sum())))
print(tokenizer.decode(written))

# %% [markdown]
# It makes no sense. But verbs stand where verbs stand, "the" is followed by a thing, and sentences end with a full
# stop. Nobody has told it what a verb is.
#
# ## The mask, once more
#
# All 24 places were trained in one pass. That is allowed because no place can see what comes after it. Here is the
# proof: change the last word, and see which of the places say something else.

# %%
piece = np.array([tokenizer.encode("He looked for it in the garden")])
other = np.array([tokenizer.encode("He looked for it in the park")])
with mg.no_grad():
    change = (small(piece) - small(other)).abs().max(axis=-1)[0]
print("largest change at each place:", change.numpy().round(3))

# %% [markdown]
# ## A larger one
#
# The next model comes with this tutorial. It has the same parts: 2 blocks, 64 numbers for each token, 1,000 tokens,
# which are pieces of words (BPE, tutorial 8), and a context of 96. It has read half a million characters of generated
# stories:
#
# ```sh
# minigrad train gpt layers=2 dim=64 context=96 positions=rotary steps=1400 lr=0.004 --out runs/gpt
# minigrad export runs/gpt tutorials/runs/gpt
# ```
#
# That took a bit more than a minute on one core. (`rotary` is another way to tell positions; tutorial 9 has it.)

# %%
gpt = mg.zoo.load(run_folder("gpt"))
print(f"{sum(parameter.size for parameter in gpt.model.parameters()):,} weights")
prompt = "One day, Ana"
tokens = np.array([gpt.tokenizer.encode(prompt)])
print("it sees:", [gpt.tokenizer.token(token) for token in tokens[0]])
with mg.no_grad():
    logits = gpt.model(tokens)[0, -1].numpy()  # (vocabulary,)
names = [gpt.tokenizer.token(token) for token in range(gpt.tokenizer.vocab_size)]
show(mg.viz.next_tokens(logits, names, top=8), "14_next")

# %% [markdown]
# ## Ways to draw
#
# To take the likeliest token each time is safe, and dull: the same beginning gives the same text for ever, and often it
# goes round in circles. So one draws lots. A *temperature* $\tau$ ("tau") says how bold to be. Every logit is divided
# by it before the softmax:
#
# $$P_i = \frac{e^{Z_i / \tau}}{\sum_j e^{Z_j / \tau}}$$
#
# At $\tau = 1$ nothing changes. Below, what is likely becomes likelier. Above, everything becomes more even.

# %%
few = np.array([[3.0, 2.0, 1.0, -1.0]])  # four logits
for temperature in (0.5, 1.0, 2.0):
    print(f"temperature {temperature}:", Sampling(temperature).probabilities(few)[0].round(3))

# %% [markdown]
# Even at 1 there is a danger. Each of a thousand unlikely tokens is unlikely, but one of them comes up now and then,
# and a single odd word can spoil the rest. So the tail is cut off. *Top-k* keeps the $k$ likeliest. *Top-p* keeps the
# fewest that are together at least as likely as $p$: few where the model is sure, many where it is not. What is left is
# scaled up so that it adds up to 1 again.

# %%
print("as it is:   ", Sampling().probabilities(few)[0].round(3))
print("top-k 2:    ", Sampling(top_k=2).probabilities(few)[0].round(3))
print("top-p 0.9:  ", Sampling(top_p=0.9).probabilities(few)[0].round(3))
e = np.exp(few[0])
print("by hand:    ", (e[:2] / e[:2].sum()).round(3), "and", (e[:3] / e[:3].sum()).round(3))

# %% [markdown]
# Now with the model. The first way draws no lots at all; the others do.

# %%
ways = {
    "greedy": Sampling(temperature=0), "temperature 0.5": Sampling(0.5), "temperature 1": Sampling(1.0),
    "temperature 2": Sampling(2.0), "top-k 5": Sampling(top_k=5), "top-p 0.9": Sampling(top_p=0.9),
}  # fmt: skip
for name, sampling in ways.items():
    print(f"{name}: {prompt}" + "".join(gpt.sample(prompt, tokens=50, sampling=sampling, seed=1)), end="\n\n")

# %% [markdown]
# At 2 it babbles. Else it is English, but for a slip here and there, and a story: a hungry animal is fed, and comes
# back. A dog stays a dog to the end, and barks. But whoever is called Ana at the start has another name two sentences
# later. To keep track of who is who is harder than grammar, and for that the model is too small, and has read too
# little.
#
# ## A cache
#
# Writing has a problem. For every new token the whole text goes through the model again, although nothing of what is
# there has changed. And because of the mask nothing *could* change: no place sees what is new. What a new token needs
# of the old ones are their keys and values, in each block. So these are kept, in a *KV cache*, and only the new token
# is computed.

# %%
show(growing_cache(), "14_growing_cache")

# %%
with mg.no_grad():
    all_at_once = gpt.model(tokens).numpy()
    cache = gpt.model.new_cache()
    one_by_one = [gpt.model(tokens[:, place : place + 1], cache=cache).numpy() for place in range(tokens.shape[1])]
print("they differ by", f"{np.abs(np.concatenate(one_by_one, axis=1) - all_at_once).max():.0e}")
print("the cache holds", cache.blocks[0].own.keys.shape, "keys in its first block: (texts, heads, tokens, numbers)")

# %% [markdown]
# Same logits, up to the last bits. Written out, $n$ tokens without a cache cost $1 + 2 + \ldots + n = n(n+1)/2$ rows
# through the model. With it they cost $n$. For 90 tokens: 4,095 and 90.

# %%
seconds = {}
for cached in (True, False, True, False):
    start = time.perf_counter()
    continuation = "".join(gpt.sample(prompt, tokens=90, seed=1, cached=cached))
    seconds.setdefault(cached, []).append(time.perf_counter() - start)
    seconds[f"text {cached}"] = continuation
print("the same text:", seconds["text True"] == seconds["text False"])
print(f"{min(seconds[True]):.2f} s with a cache, {min(seconds[False]):.2f} s without")

# %% [markdown]
# A computer does many rows at once nearly as fast as one, so with so small a model the cache saves less than the count
# says. For large models and long texts it saves nearly all of it.
#
# ## What length costs
#
# The document says in one place that attention is as fast for 1,000 words as for 500, and in another that its cost
# grows with $n^2$. The second is right: every word is compared with every other. Let us count. minigrad writes down the
# graph of a block, and how many additions and multiplications each product of matrices in it takes.


# %%
def operations(words, dim=16):
    block = nn.TransformerBlock(dim, heads=2, causal=True)
    boxes = mg.viz.graph(block, mg.zeros(1, words, dim)).boxes
    return sum(box.flops for box in boxes if box.label.startswith("matmul"))


lengths = np.array([16, 32, 64, 128, 256])
counted = np.array([operations(words) for words in lengths])
for words, count in zip(lengths, counted):
    print(f"{words:4} words: {count:10,} operations, {count / words:8,.0f} for each word")

# %% [markdown]
# Twice the words, more than twice the work. But it is not four times as much either. So we *fit* a curve: we look for
# $a$, $b$ and $c$ such that
#
# $$\text{cost}(n) = a + b \, n + c \, n^2$$
#
# is as close as can be to what was counted. `np.polyfit` finds them, the one of the highest power first.

# %%
c, b, a = np.polyfit(lengths, counted, 2)
print(f"cost(n) = {abs(a):.2f} + {b:.2f} n + {c:.2f} n²")

# %% [markdown]
# It fits exactly, $a$ is 0, and the other two can be explained, with $d = 16$ numbers for each word. A product of
# $(n \times d)$ and $(d \times m)$ takes $2ndm$ operations, a multiplication and an addition for each term.
#
# - $c = 4d = 64$. Queries times keys is $(n \times d)(d \times n)$: $2dn^2$. Weights times values: $2dn^2$ again.
# - $b = 24d^2 = 6144$. Each weight of a block is used once for each word, and tutorial 11 counted $12d^2$ of them.
#
# $$\text{cost}(n) = 24 d^2 \, n + 4 d \, n^2$$
#
# With $l$ blocks it is $l$ times as much. The document's $O(l \cdot n^2 \cdot d)$ ("of the order of") is the second
# half of it: the part that wins when $n$ is large.
#
# And by the clock? We time attention alone, without the MLP, on more and more words, and fit again, now with three
# numbers:
#
# $$\text{time}(n) = a + b \, n + c \, n^2$$
#
# $a$ is what a call costs whatever it is given, $b \, n$ is for the matrices $W_Q$ to $W_O$, and $c \, n^2$ for every
# word with every other. Other programs are running, too. So we ask how long the processor worked for us
# (`process_time`), on one core only (`single_threaded_blas`), give each length several turns, and take the shortest time.

# %%
layer = nn.MultiHeadAttention(64, heads=4)
lengths = np.array([32, 64, 128, 192, 256, 384, 512, 768, 1024])
inputs = [mg.randn(1, words, 64) for words in lengths]
measured = np.full(len(lengths), np.inf)  # milliseconds
for _ in range(7):
    for place, x in enumerate(inputs):
        start = time.process_time()
        with mg.no_grad(), single_threaded_blas():
            layer(x, is_causal=True)
        measured[place] = min(measured[place], 1000 * (time.process_time() - start))

# %% [markdown]
# A miss of a tenth of a millisecond is nothing at 1,024 words, and a lot at 32. So each length is weighed by 1 / time
# (`w`): what counts is by which share the fit is off.

# %%
c, b, a = np.polyfit(lengths, measured, 2, w=1 / measured)
fitted = a + b * lengths + c * lengths**2
print(f"time(n) = {a:.3f} {b:+.6f} n {c:+.8f} n² milliseconds")
for words, took, guess in zip(lengths, measured, fitted):
    print(f"{words:5} words: {took:7.3f} ms, by the fit {guess:7.3f} ms, of which n² {c * words**2 / guess:4.0%}")
curves = {
    "measured": (lengths, measured),
    "a + b n + c n²": (lengths, fitted),
    "c n² of it": (lengths, c * lengths**2),
}
show(mg.viz.lines(curves, "attention alone", x="words", y="milliseconds", points=True), "14_cost")

# %% [markdown]
# A curve that bends upwards, and the more words there are, the more of it is the square. "As fast for 1,000 as for 500"
# it is not: these are your machine's own times. (The numbers change a little from run to run. The fit is not exact, as
# it was for the count: where large matrices no longer fit into the fast part of the memory, each operation takes
# longer.)
#
# ## The size of GPT-3
#
# The document gives it 175 layers of $d = 1024$. In fact it has 96 layers of $d = 12288$, and 175 is its number of
# weights, in billions. Each block has $12 d^2 + 13 d$ weights (the $13 d$ are biases and norms), and then there are the
# tables of tokens and positions:


# %%
def weights_of(layers, d, vocabulary, context):
    return layers * (12 * d**2 + 13 * d) + (vocabulary + context) * d


SIZES = {
    "GPT (2018)": (12, 768, 40_478, 512), "GPT-2, small": (12, 768, 50_257, 1024),
    "GPT-2, largest": (48, 1600, 50_257, 1024), "GPT-3": (96, 12_288, 50_257, 2048),
    "as the document has it": (175, 1024, 50_257, 2048),
}  # fmt: skip
for name, size in SIZES.items():
    layers, d, _, context = size
    share = context / (context + 6 * d)
    millions = weights_of(*size) / 1e6
    print(f"{name:22} {layers:3} × {d:6,}: {millions:10,.0f} million weights; n² is {share:5.1%} of the cost")

# %% [markdown]
# (The document cites 150 million for the first GPT. Counted, it is 117.)
#
# The last column is a surprise. It is the share of the $n^2$ part when the context is full: $4dn^2$ of
# $4dn^2 + 24d^2n$, which is $n / (n + 6d)$. For GPT-3 it is three percent. The square is always there, but as long as a text is
# much shorter than $6d$, here 74,000 words, most of the work is elsewhere. It matters for models that read whole books.
#
# ## Examples are enough
#
# A model that continues text can be told what to do without any training: begin the text in such a way that the right
# continuation *is* the answer. "thank you = gracias; good night = buenas noches; welcome =". That is called *few-shot
# prompting*, after the few examples ("shots") in front of the question. The large models do it unasked. Ours is too
# small for that. But a tiny GPT can learn to learn: it has read texts like `abc>cba;fed>def;`, in which one of four
# rules holds throughout, and nothing says which.
#
# ```sh
# minigrad train gpt:few-shot dim=32 heads=2 steps=800 --out runs/few_shot
# minigrad export runs/few_shot tutorials/runs/few_shot
# ```

# %%
pupil = mg.zoo.load(run_folder("few_shot"))
prompts = ["abc>cba;fed>def;hag>", "abc>ABC;fed>FED;hag>", "abc>aaa;fed>fff;hag>", "abc>abc;fed>fed;hag>"]
for answer in pupil.predict(*prompts):
    print(f"{answer['input']}  {answer['answer']}")

# %% [markdown]
# The same weights, the same question "hag", four answers. What to do stands in the prompt alone. And it can do so with
# words that it has never read:

# %%
judged = pupil.evaluate()
shares = [judged[f"right_after_{examples}"] for examples in range(5)]
for examples, share in enumerate(shares):
    print(f"examples in front: {examples}, right: {share:.1%} of {judged['asked']}")

# %% [markdown]
# Without an example it can only guess one rule of four. One example settles it. (There are four rules; a harder task
# would need more.)
#
# How does it do that? Attention tells a part of it. Here is where the last ">" looks, in the two heads of the first
# block, for each of the four prompts. The letters after the first two ">" differ, so they are shown as dots.

# %%
with mg.nn.watch_attention(pupil.model) as seen, mg.no_grad():
    pupil.model(np.array([pupil.tokenizer.encode(prompt) for prompt in prompts]))
first_block = seen["encoder.blocks.0.attention"][0].numpy()  # (prompts, heads, places, places)
columns = list("abc>···;fed>···;hag>")
for head in (0, 1):
    title = f"first block, head {head}: where the last > looks"
    picture = mg.viz.heatmap(first_block[:, head, -1], ["cba", "ABC", "aaa", "abc"], columns, title=title)
    show(picture, f"14_head_{head}")

# %% [markdown]
# Head 1 looks at "h", the first letter of the question, whatever the rule. Head 0 looks for *capitals*. If there are
# any in the prompt, it finds all of them. If not, it rests on ";". Nobody planned this division of labour; the loss
# did. The other three rules are told apart in the second block.

# %% [markdown]
# ## Exercises
#
# 1. Compute the loss of "One day, Ana met a young dog." under the shipped model twice: in one pass, and with a separate
#    call for each beginning. Are they the same? How many rows did each take?
# 2. Write top-p yourself, `nucleus(logits, p)`, and compare it with `Sampling(top_p=p).probabilities` on 100 random
#    rows. Then show that a temperature $\tau$ takes the ratio of two probabilities to the power $1/\tau$.
# 3. At which length does the $n^2$ part of a block cost as much as all the rest? Work it out, and check it by counting,
#    for $d = 16$.
#
# More to do, a file with holes that marks itself: `minigrad learn start 14`, then `minigrad learn check`.
#
# Solutions: [solutions/14_gpt.py](solutions/14_gpt.py)
#
# ## Read next
#
# - [models/gpt/model.py](../models/gpt/model.py): the real GPT, which is the ten lines of above and how its weights
#   begin.
# - [minigrad/decode/sampling.py](../minigrad/decode/sampling.py): all ways to draw; `probabilities` is what you did by
#   hand.
# - [minigrad/nn/transformer/attention.py](../minigrad/nn/transformer/attention.py): `KVCache`, which doubles its room when it is full.
# - [models/gpt](../models/gpt/README.md): how to train one on a text of your own.
# - Next: [15. BERT](15_bert.py), which looks both ways.
