# %% [markdown]
# # 13. Beam search, as a tree
#
# A translator does not give us a sentence. It gives a probability for each next word, and somebody has to choose.
# Tutorial 12 took the likeliest word each time. That is quick, and sometimes it walks past the best sentence. *Beam
# search* keeps several beginnings alive at once.
#
# You will have
#
# - a sentence that the greedy way misses, found with pencil and paper;
# - the same search by minigrad, with the tree of everything that was looked at;
# - the length penalty, and what it is good for;
# - both ways of choosing, compared on a real translator: what is gained, what it costs, and where it harms.
#
# Reading takes about 25 minutes, running about 8 seconds.

# %%
import math

import numpy as np
from minigrad_models import corpora
from showing import run_folder, show

import minigrad as mg

# %% [markdown]
# ## Two ways to say it
#
# "You are welcome" is "de nada" in Spanish, or, a little more formal, "no hay de qué". Imagine a translator that
# hesitates between the two. Below is all that it thinks, made up by us: for each beginning, the probability of every
# next word. `</s>` is the word that ends a sentence.

# %%
NEXT = {
    "": {"no": 0.55, "de": 0.40, "nada": 0.05},
    "no": {"hay": 0.50, "nada": 0.30, "</s>": 0.20},
    "de": {"nada": 0.90, "qué": 0.10},
    "no hay": {"de": 0.60, "nada": 0.40},
    "de nada": {"</s>": 0.95, "qué": 0.05},
    "no hay de": {"qué": 0.90, "nada": 0.10},
}  # after any other beginning, the sentence ends


def next_words(beginning):
    return NEXT.get(beginning, {"</s>": 1.0})


# %% [markdown]
# ## The greedy way
#
# Take the likeliest word, then the likeliest after that, and so on. How probable is the sentence that comes out? The
# chance that two things happen is the product of the chance of the first and the chance of the second *given the
# first*. So we multiply:
#
# $$P(w_1 w_2 \ldots w_n) = P(w_1) \cdot P(w_2 \mid w_1) \cdots P(w_n \mid w_1 \ldots w_{n-1})$$
#
# $w_i$ is word number $i$, and | is read "given".

# %%
beginning, probability = "", 1.0
while not beginning.endswith("</s>"):
    words = next_words(beginning)
    word = max(words, key=words.get)
    beginning, probability = f"{beginning} {word}".strip(), probability * words[word]
    print(f"{probability:.4f}  {beginning}")

# %% [markdown]
# "No hay de qué", with a probability of about 0.15. Is that the best there is? There are so few sentences here that we
# can try them all.


# %%
def every_sentence(beginning="", probability=1.0):
    for word, chance in next_words(beginning).items():
        if word == "</s>":
            yield probability * chance, beginning
        else:
            yield from every_sentence(f"{beginning} {word}".strip(), probability * chance)


for probability, sentence in sorted(every_sentence(), reverse=True):
    print(f"{probability:.4f}  {sentence}")

# %% [markdown]
# No. "De nada" is more than twice as probable, 0.4 · 0.9 · 0.95 = 0.342. Even "no nada", which nobody would say, beats
# what we found. The greedy way was lost at its first step. "No" was the likeliest *word*, but what comes after it is
# divided among many sentences, and the probability with them.
#
# Then why not always try all? Our translator of tutorial 12 has 2,520 words. Sentences of five words: $2520^5$, which
# is about $10^{17}$. A computer that tries a million each second would need 3,000 years.
#
# ## A beam of two
#
# So we do something in between. Keep not one beginning but the best *two*. This is the *beam*, and 2 its *width*. At
# each step, let both grow by every possible word, and keep the best two of all the results. If one of these two has
# ended, it is put aside, and the next best beginning takes its place.


# %%
def grown(beam):
    """Every way to go on by one word, the most probable first."""
    longer = [
        (probability * chance, f"{beginning} {word}".strip())
        for probability, beginning in beam
        for word, chance in next_words(beginning).items()
    ]
    return sorted(longer, reverse=True)


# %%
beam, finished = [(1.0, "")], []
for step in range(1, 6):
    longer = grown(beam)
    print(f"step {step}:", ", ".join(f"{text} {probability:.4f}" for probability, text in longer))
    finished += [item for item in longer[:2] if item[1].endswith("</s>")]
    beam = [item for item in longer if not item[1].endswith("</s>")][:2]
print("finished:", ", ".join(f"{text} {probability:.4f}" for probability, text in finished))

# %% [markdown]
# Follow it with a pencil. After step 1 the beam holds "no" (0.55) and "de" (0.40). At step 2 they grow, and "de nada"
# with 0.36 comes out *before* "no hay" with 0.275: the likeliest first word is overtaken. At step 3 "de nada" ends,
# with 0.342, and it stays the best.
#
# Beam search promises nothing. Had "de" been third at the first step, a beam of two would have dropped it, and with it
# the best sentence. But it is seldom so bad, and a wider beam is less likely to drop what matters. With a width of 1 it
# *is* the greedy way.
#
# ## Logarithms
#
# Multiply a hundred probabilities, and the product is so small that a computer takes it for 0. So in practice one adds
# logarithms: $\log(a \cdot b) = \log a + \log b$. What is larger stays larger, since the logarithm always grows.
#
# $$\text{score} = \sum_{i=1}^{n} \log P(w_i \mid w_1 \ldots w_{i-1})$$
#
# A logarithm of a probability is 0 for a sure thing, and below 0 for everything else: $\log 0.342 = -1.07$. So scores
# are negative, and the one nearest to 0 is the best.

# %%
for words in ([0.4, 0.9, 0.95], [0.55, 0.5, 0.6, 0.9, 1.0]):
    score = sum(math.log(chance) for chance in words)
    print(f"product {math.prod(words):.4f}   sum of logarithms {score:.4f}   e to that power {math.exp(score):.4f}")

# %% [markdown]
# ## The same by minigrad
#
# `mg.decode.beam_search` asks for two things. One is to be called: it hands over the *new* tokens of all beginnings in
# the beam, and wants a row of scores for each, one score for every token of the vocabulary. The other is `select`:
# after each step some beginnings are dropped, and others are doubled, since they go on in two ways; `select` is told
# which rows go on. Our "translator" has to remember its beginnings and no more.

# %%
TOKENS = ["<s>", "</s>", "no", "de", "nada", "hay", "qué"]


class Hesitating:
    def __call__(self, new):  # (beginnings, 1) -> (beginnings, tokens)
        before = getattr(self, "beginnings", [""] * len(new))
        self.beginnings = [f"{text} {TOKENS[t]}".replace("<s>", "").strip() for text, t in zip(before, new[:, -1])]
        scores = np.full((len(new), len(TOKENS)), -np.inf)  # log 0: what is not in the table cannot come
        for row, beginning in zip(scores, self.beginnings):
            for word, chance in next_words(beginning).items():
                row[TOKENS.index(word)] = math.log(chance)
        return scores

    def select(self, rows):
        self.beginnings = [self.beginnings[row] for row in rows]


# %%
def search(beams, alpha=0.0):
    (found,) = mg.decode.beam_search(Hesitating(), np.array([[0]]), beams=beams, length=6, end=1, alpha=alpha)
    return found  # finished sentences, the best first


for beams in (1, 2, 3):
    for found in search(beams):
        words = " ".join(TOKENS[token] for token in found.tokens)
        print(f"width {beams}: score {found.score:.4f}, probability {math.exp(found.score):.4f}  {words}")

# %% [markdown]
# A search keeps its tree, and `mg.viz.beam_tree` draws it: from left to right, with the score so far in each box, and the
# best sentence in the first row. What was dropped is dashed.

# %%
show(mg.viz.beam_tree(search(1)[0], TOKENS, title="greedy: a beam of 1"), "13_greedy")
show(mg.viz.beam_tree(search(2)[0], TOKENS, title="a beam of 2"), "13_beam_of_two")

# %% [markdown]
# In the second one "no hay de qué" is dashed. When two sentences were finished and nothing that was still alive could
# become better than the best of them, there was no reason to go on: a product of probabilities never grows.

# %% [markdown]
# ## The length penalty
#
# Every further word multiplies by a number below 1. So a longer sentence has a lower score, only because it is longer;
# a search that knows nothing else prefers short ones, and the shortest is to say nothing at all. The usual remedy is to
# divide the score by something that grows with the length:
#
# $$\text{worth} = \frac{\text{score}}{\left(\frac{5 + n}{6}\right)^{\alpha}}$$
#
# $n$ is how many words there are, the end included, and $\alpha$ ("alpha") says how much length is forgiven: at 0 the
# fraction below is 1, and nothing changes. Our two answers have 3 and 5 words:


# %%
def worth(probability, length, alpha):
    return math.log(probability) / ((5 + length) / 6) ** alpha


for alpha in (0, 1, 2, 3):
    print(f"alpha {alpha}: de nada {worth(0.342, 3, alpha):.3f}   no hay de qué {worth(0.1485, 5, alpha):.3f}")

# %% [markdown]
# (Negative scores are divided by more, and so come nearer to 0.) At 3 the longer one wins. In practice $\alpha$ lies
# between 0.6 and 1: it is there to make up for the length, not to reward it.
#
# ## A real search
#
# The small translator of tutorial 12, where the command that made it stands, comes along again. This is how it searches
# for a sentence with a beam of 3:

# %%
translator = mg.zoo.load(run_folder("translator"))
sentence = "Ana will not be sad"
for beams in (1, 3):
    (found,) = translator.translate(sentence, beams=beams, alpha=0.0)
    print(f"width {beams}: {found.text}   (probability {math.exp(found.score):.3f})")
show(mg.viz.beam_tree(translator.tree(found), title=f"{sentence}, a beam of 3"), "13_ana")

# %% [markdown]
# It is the same story. The greedy way says "serán", they will be, since that word is a little ahead at its place; then
# it has to go on from there, and no word fits well. The beam keeps "estará" as well, and one word later it is in front.
#
# A beam is good for one more thing, *n-best lists*: other answers, in the order of their worth.

# %%
for score, text in translator.translate("Where is the library?", beams=5)[0].best:
    print(f"{score:7.3f}  {text}")

# %% [markdown]
# ## What is gained, and what it costs
#
# Now 300 sentences that it was not trained on. How often is the translation right word for word? How probable is what
# was found? And how often has the model been asked, counted in rows: one row is one beginning that is continued by one
# word?

# %%
pairs = dict(corpora.grammar_pairs("heldout", 300, seed=5))
answers = {}
for beams in (1, 2, 5):
    answers[beams] = translator.translate(list(pairs), beams=beams)
    best = [found.pieces[0].hypotheses[0].branch for found in answers[beams]]
    right = sum(found.text == pairs[found.source] for found in answers[beams])
    score = np.mean([branch.score for branch in best])
    rows = sum(1 + (branch.depth - 1) * beams for branch in best)  # at least: it may have gone on a little
    print(f"width {beams}: {right} of 300 right, mean score {score:.4f}, {rows:,} rows")

# %% [markdown]
# A wider beam finds sentences that the model finds more probable, and costs as many times more as it is wide. What it
# gains is a little, and most of that with a width of 2. The better a model is, the less there is to gain: where it is
# sure, all widths agree. Let us see where they do not.

# %%
for greedy, beam in zip(answers[1], answers[5]):
    if greedy.text != beam.text and pairs[greedy.source] in (greedy.text, beam.text):
        winner = "beam" if beam.text == pairs[beam.source] else "greedy"
        print(f"{greedy.source}\n   greedy: {greedy.text}\n   beam:   {beam.text}\n   right:  {winner}")

# %% [markdown]
# Mostly the beam is right, but not always. "Estaremos solos", we will be alone, was the right answer, and the greedy
# way had it. The model just finds another sentence likelier, and the beam found that one. So what has failed there is
# not the search. It is the model: *likely* and *right* are two things, and a perfect search only finds what the model
# believes.
#
# That is also why very wide beams can make translations worse, with models that believe in very short sentences.
#
# ## Exercises
#
# 1. Change two rows of `NEXT` so that a beam of two misses the best sentence and a beam of three finds it.
# 2. From which $\alpha$ on is "no hay de qué" worth more than "de nada"? Find it by algebra (take the logarithm of both
#    sides), and check with `search(10, alpha)` just below and just above. Why is a beam of 3 not enough for that?
# 3. Make 200 random tables in which every beginning of up to three words can go on by four words or end. How often does
#    a beam of 1, 2, 4 and 8 find the best of all sentences? How wide must it be to find it for sure?
#
# More to do, a file with holes that marks itself: `minigrad learn start 13`, then `minigrad learn check`.
#
# Solutions: [solutions/13_beam_search.py](solutions/13_beam_search.py)
#
# ## Read next
#
# - [minigrad/decode/beam.py](../minigrad/decode/beam.py): the search. `_grown` is one step of it, `_is_done` says when
#   to stop.
# - [minigrad/decode/encoder_decoder.py](../minigrad/decode/encoder_decoder.py): `EncoderDecoder` is to the real model what
#   `Hesitating` is to our table.
# - [minigrad/viz/drawing/beam.py](../minigrad/viz/drawing/beam.py): how the tree is drawn.
# - Next: [14. GPT](14_gpt.py), where one draws lots for the next word.
