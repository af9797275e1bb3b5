# %% [markdown]
# # 6. Softmax, cross-entropy and P − y
#
# Which word comes next: "The cat sat on the …"? A language model answers with a probability for every word it knows. This
# tutorial is about the last few steps of every such model: how scores become probabilities, how wrong these are, and in
# which direction to change the scores. The last turns out to be the shortest formula of this whole course: $P - y$.
#
# At the end you will have
#
# - softmax and cross-entropy, worked with a pencil and by minigrad, with the numbers of the source document;
# - $P - y$, derived, then found again by two other ways;
# - 2,000 steps of learning, watched as probabilities and as scores, and the difference between the two.
#
# Reading takes about twenty minutes, running about two seconds.

# %%
import numpy as np
from showing import compare, show

import minigrad as mg
from minigrad.nn import functional as F
from minigrad.viz.drawing.axes import Scale, frame
from minigrad.viz.drawing.scene import Ellipse, Line, Scene, Text


def exact(*numbers):
    """A tensor of 64-bit numbers, which keep sixteen digits."""
    return mg.tensor(numbers, dtype="float64")


# %% [markdown]
# ## Scores become probabilities
#
# Somebody judges three things, A, B and C, and gives them the scores 2, 1 and 0.2. Scores can be anything: negative, large,
# small. *Probabilities* are stricter. None is below 0, and together they are 1. How do we get from the first to the second?
#
# Make every score positive: take $e$ to its power. ($e$ is the number 2.718…) That gives 7.389, 2.718 and 1.221, together
# 11.329. Then divide each by the sum: 0.652, 0.240, 0.108. Done. This is *softmax*, and the scores that go into it are
# called *logits*.
#
# $$P_i = \frac{e^{Z_i}}{\sum_k e^{Z_k}}$$
#
# In words: the probability $P_i$ of thing number $i$ is $e$ to its logit $Z_i$, divided by the sum ($\sum$, "sigma") of the
# same for all things.

# %%
scores = exact(2.0, 1.0, 0.2)
powers = mg.exp(scores)
print("powers:", powers.numpy().round(3), "sum:", round(powers.sum().item(), 3))
by_hand = powers / powers.sum()
assert np.allclose(by_hand, F.softmax(scores, axis=-1))  # minigrad has it ready
compare("softmax of 2, 1, 0.2", by_hand, [0.65, 0.24, 0.11])
show(mg.viz.next_tokens(scores, ["A", "B", "C"]), "06_softmax")

# %% [markdown]
# Three things are worth knowing about softmax.
#
# *Only differences count.* Add 100 to every score: each power grows by the factor $e^{100}$, and so does the sum, and the
# factor falls out of the fraction. That is also how softmax is computed in practice. $e^{1000}$ is more than a computer can
# hold, so the largest score is taken off all of them first, and nothing changes but that it works.
#
# *Steps become ratios.* A score that is higher by 1 makes a thing $e \approx 2.72$ times as probable: 0.652 is 2.72 times 0.240.
#
# *A temperature makes it sure or unsure.* Divide all scores by a number $T$ before softmax. A small $T$ makes the differences
# larger and the winner surer; a large $T$ makes all things nearly equal. Models that write text are tuned with it.

# %%
print("plus 100:   ", F.softmax(scores + 100, axis=-1).numpy().round(3))
print("plus 1000:  ", F.softmax(scores + 1000, axis=-1).numpy().round(3))
print("ratio A to B:", (by_hand[0] / by_hand[1]).item())
for temperature in (0.3, 1.0, 3.0):
    print(f"temperature {temperature}:", F.softmax(scores / temperature, axis=-1).numpy().round(3))
show(mg.viz.next_tokens(scores, ["A", "B", "C"], temperature=0.3), "06_cold")
show(mg.viz.next_tokens(scores, ["A", "B", "C"], temperature=3.0), "06_warm")

# %% [markdown]
# ## How wrong is it?
#
# Back to the cat. Our model knows four words: mat, hat, bat, rat. The text goes on with "mat". We write this answer down as
# probabilities, too: all of it on mat, nothing on the others. A list with one 1 and else 0s is called *one-hot*.
#
# $$y = [1, 0, 0, 0]$$
#
# One model says $[0.7, 0.1, 0.1, 0.1]$: good. Another says $[0.1, 0.1, 0.1, 0.7]$: it believes in the rat. We want a number
# that is small for the first and large for the second. It is the *cross-entropy*:
#
# $$L = -\sum_i y_i \log P_i$$
#
# In words: for each word, the true probability times the logarithm of the predicted one; add up, and turn the sign. Since $y$
# is 0 everywhere but at mat, only one term is left: $L = -\log P_\text{mat}$. For the first model that is
# $-\log 0.7 = 0.357$, for the second $-\log 0.1 = 2.303$. (Log is the natural logarithm, the opposite of $e$ to a power.)

# %%
words = ["mat", "hat", "bat", "rat"]
y = exact(1, 0, 0, 0)
good, poor = exact(0.7, 0.1, 0.1, 0.1), exact(0.1, 0.1, 0.1, 0.7)


def cross_entropy(P):
    return -(y * mg.log(P)).sum()


compare("cross-entropy of 0.7", cross_entropy(good), 0.357)
compare("cross-entropy of 0.1", cross_entropy(poor), 2.303)

# %% [markdown]
# Why a logarithm? Because it is merciless to those who are sure and wrong. At $P_\text{mat} = 1$ the loss is 0. Halve the
# probability, and the loss grows by 0.693, always by the same. Say 0, and the loss is infinite: nobody who called the truth
# impossible can be forgiven.

# %%
across, up = Scale(0, 1, 60, 460), Scale(0, 5, 240, 30)  # from numbers to places on the picture
p = np.linspace(0.0067, 1, 300)
shapes = [*frame(across, up), Line(list(zip(across(p), up(-np.log(p)))), "series-1", 2)]
for chance in (0.7, 0.1):
    x, height = float(across(chance)), float(up(-np.log(chance)))
    shapes += [Ellipse(x, height, 9, 9, "series-2"), Text(x + 10, height - 6, f"{chance}: {-np.log(chance):.3f}", 11)]
shapes.append(Text(60, 20, "cross-entropy, by the probability of the right word", 12, bold=True))
show(Scene(480, 270, shapes, "cross-entropy"), "06_minus_log")

# %% [markdown]
# ## In which direction? P − y
#
# The poor model must change. What it can change are its logits, the scores before softmax. So we ask for the gradient: how
# much does the loss grow when one logit $Z_i$ grows a little? The answer takes three lines. Put softmax into the loss, and use
# that the logarithm of a fraction is a difference:
#
# $$L = -\log P_\text{mat} = -\log \frac{e^{Z_\text{mat}}}{\sum_k e^{Z_k}} = -Z_\text{mat} + \log \sum_k e^{Z_k}$$
#
# The first part, $-Z_\text{mat}$, changes by −1 with the logit of mat and not at all with the others. That is $-y_i$. The
# second part is the logarithm of a sum $S$. Its derivative is $1/S$ times that of the sum, which is $e^{Z_i}$. But
# $e^{Z_i} / S$ is softmax: $P_i$. Together:
#
# $$\frac{\partial L}{\partial Z_i} = P_i - y_i$$
#
# In words: *what it said, minus what is true*. For the poor model: $[0.1 - 1,\; 0.1 - 0,\; 0.1 - 0,\; 0.7 - 0]$, which is
# $[-0.9, 0.1, 0.1, 0.7]$. The logit of mat has to go up, hard; that of rat down, nearly as hard; the other two down a little.
#
# Two checks. One: let minigrad carry the gradient back through logarithm and softmax. Two: nudge each logit by a millionth
# and look at how far the loss moves. As logits we take $\log P$, since softmax gives $P$ back for them.

# %%
Z = mg.log(poor).requires_grad_()
print("softmax(log P) =", F.softmax(Z, axis=-1).detach().numpy())
cross_entropy(F.softmax(Z, axis=-1)).backward()
nudged = []
for i in range(4):
    nudge = np.eye(4)[i] * 1e-6
    more, less = (cross_entropy(F.softmax(Z.detach() + sign * nudge, axis=-1)).item() for sign in (1, -1))
    nudged.append((more - less) / 2e-6)
print("P - y:   ", (poor - y).numpy())
print("minigrad:", Z.grad.numpy())
print("nudged:  ", np.round(nudged, 6))

# %%
compare("gradients P - y", Z.grad, [-0.9, 0.1, 0.1, 0.7])
table = np.stack([poor.numpy(), y.numpy(), Z.grad.numpy()])
show(mg.viz.heatmap(table, ["P", "y", "P-y"], words, signed=True, title="said, true, gradient"), "06_p_minus_y")

# %% [markdown]
# Notice that the four numbers of $P - y$ add up to 0. What mat wins, the others lose.
#
# ## One step
#
# Now a step of gradient descent with a learning rate of 0.1: every logit loses 0.1 times its gradient. Then softmax again.
#
# $$Z \leftarrow Z - 0.1\,(P - y), \qquad P \leftarrow \mathrm{softmax}(Z)$$
#
# The source document takes the step on the *probabilities* instead: $0.1 + 0.09 = 0.19$ for mat, 0.09, 0.09, and
# $0.7 - 0.07 = 0.63$ for rat. But $P - y$ is the slope along the logits, and so it is the logits that must move. Done there,
# the step is smaller: mat goes from 0.1 to 0.114.


# %%
def one_step(logits, rate):
    """The probabilities after one step on the logits."""
    return F.softmax(logits - rate * (F.softmax(logits, axis=-1) - y), axis=-1)


stepped = one_step(mg.log(poor), 0.1)
compare(
    "one step on the logits",
    stepped,
    [0.19, 0.09, 0.09, 0.63],
    why="the document moves the probabilities, along a slope that belongs to the logits",
)

# %% [markdown]
# You may ask: $[0.19, 0.09, 0.09, 0.63]$ adds up to 1, so what is wrong with it? Take a larger step, with a rate of 2. The
# probabilities become 1.9 and −0.7, which nothing can be. Logits may become whatever they like, since softmax makes
# probabilities of any four numbers. And there is a deeper reason. A network has no knob that is called probability. It has
# weights; from them come the logits; from these come the probabilities. Only what has a knob can be turned.

# %%
bold = poor - 2 * (poor - y)
print("rate 2, on probabilities:", bold.numpy())
print("rate 2, on logits:       ", one_step(mg.log(poor), 2.0).numpy().round(4))
table = np.stack([poor.numpy(), stepped.numpy(), one_step(mg.log(poor), 2.0).numpy(), bold.numpy()])
steps = ["before", "logits, rate 0.1", "logits, rate 2", "probs, rate 2"]
note = "after a step on the logits, or on the probabilities"
show(
    mg.viz.heatmap(table, steps, words, signed=True, title="the probabilities, one step later", note=note),
    "06_one_step",
)

# %% [markdown]
# ## 2,000 steps
#
# One step is not much. The document's own program takes 2,000, each with a rate of 0.01, and this time it does so on the
# logits, as it should be. It starts with the logits 0.1, 0.1, 0.1 and 0.7. Take care: these are scores now, not
# probabilities! Softmax makes 0.207, 0.207, 0.207 and 0.378 of them.
#
# $$Z \leftarrow Z - 0.01 \, \frac{\partial L}{\partial Z}, \qquad 2{,}000 \text{ times}$$
#
# The document prints its logits and probabilities on the way, too. Note that it prints the logits *after* a step and the
# probabilities *before* it.
#
# From here on minigrad does the work. `F.cross_entropy` takes logits and the number of the right word, and computes softmax
# and logarithm in one go. `backward` finds the gradient, and `SGD` takes the step.

# %%
Z = exact(0.1, 0.1, 0.1, 0.7).requires_grad_()
optimizer = mg.optim.SGD([Z], lr=0.01)
story = []
for step in range(2001):
    optimizer.zero_grad()
    loss = F.cross_entropy(Z, 0)  # 0 is the number of "mat"
    P = F.softmax(Z.detach(), axis=-1)
    story.append((Z.tolist(), P.tolist(), loss.item()))
    if step in (0, 10, 100, 500, 1000, 2000):
        print(f"step {step:4}: loss {loss.item():.4f}  P {P.numpy().round(4)}")
    loss.backward()
    optimizer.step()
compare("probabilities at the start", story[0][1], [0.20737772, 0.20737772, 0.20737772, 0.37786684])
compare("logits after 1 step", story[1][0], [0.10792622, 0.09792622, 0.09792622, 0.69622133])
compare("probabilities after 1,990 steps", story[1990][1], [0.95742224, 0.0132765, 0.0132765, 0.01602477])
compare("logits after 1,991 steps", story[1991][0], [3.41207767, -0.86673008, -0.86673008, -0.6786175])
compare("probabilities after 2,000 steps", P, [0.95765298, 0.01320591, 0.01320591, 0.0159352])


# %%
def watched(what, number):
    """Four lines over the steps: 0 for the logits of the story, 1 for its probabilities."""
    steps = range(len(story))
    seen = {word: (steps, [moment[number][i] for moment in story]) for i, word in enumerate(words)}
    return mg.viz.lines(seen, x="step", y=what)


show(watched("probability", 1), "06_probabilities")
show(watched("logit", 0), "06_logits")
show(mg.viz.curves({"loss": [(step, seen[2]) for step, seen in enumerate(story)]}), "06_loss")

# %% [markdown]
# Put the first two pictures side by side. The *probability* of mat rises quickly at first and in the end hardly any more: at
# 0.95, $P - y$ is only −0.05, and the steps get small. The *logit* of mat is still climbing at the end, and will go on for
# ever, more and more slowly: to say exactly 1, it would have to be infinite.
#
# Notice, too, how hat and bat (which lie on each other) start below rat, and how rat is pushed down hardest, until all three
# are nearly alike in probability.
#
# A language model with a vocabulary of 50,000 words does just this, with 50,000 logits in the place of four. Only that its
# logits are not free numbers: they come out of a network, and $P - y$ is what backpropagation starts from.
#
# ## Exercises
#
# 1. *Sigmoid is softmax of two.* In tutorial 4 a single score became a probability by $\sigma(s) = 1 / (1 + e^{-s})$. Show that
#    it is the first entry of softmax of $[s, 0]$, and that the gradient of the loss along $s$ is again what was said minus
#    what is true.
# 2. *A truth that is not sure.* In half of all texts the next word is mat, in half hat: $y = [0.5, 0.5, 0, 0]$. Is the gradient
#    still $P - y$? Train as above, with larger steps, until nothing moves. Where does $P$ end, and why is the loss not 0?
# 3. *One layer further back.* Let the logits come from three inputs by a table of weights: $Z = x W$, with $W$ of shape (3, 4).
#    Find the gradient along $W$ with a pencil, by the chain rule, and compare with `backward`.
#
# More to do, a file with holes that marks itself: `minigrad learn start 6`, then `minigrad learn check`.
#
# Solutions: [solutions/06_softmax_and_cross_entropy.py](solutions/06_softmax_and_cross_entropy.py)
#
# ## Read next
#
# - [minigrad/nn/functional/losses.py](../minigrad/nn/functional/losses.py): `cross_entropy`, for many examples at once.
# - [minigrad/kernels/definitions.py](../minigrad/kernels/definitions.py): softmax and cross-entropy as one operation each.
# - [minigrad/viz/attention/tokens.py](../minigrad/viz/attention/tokens.py): the bars of the next word.
# - Tutorial 7: [optimisers](07_optimisers.py), better ways to take a step.
