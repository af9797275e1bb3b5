"""A residual stream with one MLP block that holds facts: set by hand, or learned, and read as a memory."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np

import minigrad as mg
from minigrad import nn
from minigrad.nn import functional as F

FACTS = {
    "Michael Jordan": "basketball",
    "Michael Phelps": "swimming",
    "Michael Johnson": "athletics",
    "Magic Johnson": "basketball",
    "Serena Williams": "tennis",
    "Venus Williams": "tennis",
    "Roger Federer": "tennis",
    "Lionel Messi": "football",
    "Simone Biles": "gymnastics",
    "Usain Bolt": "athletics",
}
NOBODY = "-"  # the place of a name that is missing
FIRST = [NOBODY, *dict.fromkeys(name.split()[0] for name in FACTS)]
LAST = [NOBODY, *dict.fromkeys(name.split()[1] for name in FACTS)]
SPORTS = list(dict.fromkeys(FACTS.values()))
ANSWERS = [*SPORTS, "no fact"]
DIM = 32  # of the stream: more than there are names and sports, so that their directions can be perpendicular
SHARPNESS = 10.0  # from readings to logits
THRESHOLD = 0.5  # how much of a sport must be read from the stream before it is believed
FAINT = 0.1  # of a neuron's activation for its fact: what is less is as good as silent


def directions() -> np.ndarray:
    """A direction of length 1 for each first name, last name and sport, all perpendicular: (names + sports, DIM)."""
    drawn = np.random.default_rng(0).standard_normal((DIM, DIM))
    return np.linalg.qr(drawn)[0][: len(FIRST) + len(LAST) - 2 + len(SPORTS)].astype("float32")


class FactBlock(nn.Module):
    """Indices of first and last names (N,), (N,) -> logits of ANSWERS (N, sports + 1). Only the MLP block learns.

    stream = first + last;  stream += down(relu(up(stream)));  a sport is read by its direction.
    """

    first: mg.Tensor  # (first names + 1, DIM): row 0, for a name that is missing, is 0
    last: mg.Tensor
    sports: mg.Tensor  # (sports, DIM)

    def __init__(self, hidden: int, activation: str = "relu", sparsity: float = 0.0):
        found, nothing = directions(), np.zeros((1, DIM), "float32")
        firsts, lasts, sports = np.split(found, [len(FIRST) - 1, len(FIRST) + len(LAST) - 2])
        self.register_buffer("first", mg.tensor(np.concatenate([nothing, firsts])))
        self.register_buffer("last", mg.tensor(np.concatenate([nothing, lasts])))
        self.register_buffer("sports", mg.tensor(sports))
        self.up, self.down = nn.Linear(DIM, hidden), nn.Linear(hidden, DIM)
        self.activation, self.sparsity = activation, sparsity

    def stream(self, first: Any, last: Any) -> mg.Tensor:
        """What flows into the block: both names, brought to one place as attention would."""
        return self.first[first] + self.last[last]  # (N,), (N,) -> (N, DIM)

    def neurons(self, stream: Any) -> mg.Tensor:
        """How much each neuron fires: (N, DIM) -> (N, hidden)."""
        questions = self.up(stream)
        return F.relu(questions) if self.activation == "relu" else questions

    def forward(self, first: Any, last: Any) -> mg.Tensor:
        stream = self.stream(first, last)
        stream = stream + self.down(self.neurons(stream))  # (N, DIM) -> (N, hidden) -> (N, DIM)
        readings = stream @ self.sports.mT  # (N, DIM) -> (N, sports)
        threshold = mg.full_like(readings[:, :1], THRESHOLD)
        return SHARPNESS * mg.concatenate([readings, threshold], axis=1)


def by_hand() -> FactBlock:
    """A block that nobody trained: neuron k asks "first name + last name - 1", and answers with a sport's direction.

    Of two directions that are both there, the sum is 2, and 1 is left; one alone leaves 0. That is an AND gate.
    """
    block = FactBlock(len(FACTS))
    with mg.no_grad():
        for bias, value in ((block.up.bias, -1.0), (block.down.bias, 0.0)):
            assert bias is not None
            nn.init.constant_(bias, value)
        for k, (name, sport) in enumerate(FACTS.items()):
            first, last = indices(name)
            block.up.weight[k] = block.first[first] + block.last[last]
            block.down.weight[:, k] = block.sports[SPORTS.index(sport)]
    return block


def indices(name: str) -> tuple[int, int]:
    """ "Michael Jordan" -> his places in FIRST and LAST."""
    first, last = name.split()
    return FIRST.index(first), LAST.index(last)


def everybody() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every combination of names, one or both of which may be missing: firsts, lasts and answers, each (81,)."""
    pairs = list(product(range(len(FIRST)), range(len(LAST))))
    answers = [ANSWERS.index(FACTS.get(f"{FIRST[f]} {LAST[g]}", "no fact")) for f, g in pairs]
    first, last = np.array(pairs).T
    return first, last, np.array(answers)


def unseen(count: int) -> np.ndarray:
    """The places in `everybody` of some combinations of two names without a fact, which are kept out of training."""
    first, last, answers = everybody()
    wrong = np.flatnonzero((first > 0) & (last > 0) & (answers == len(SPORTS)))
    return np.sort(np.random.default_rng(0).permutation(wrong)[:count])


class Gate(NamedTuple):
    """The neuron that does most for a fact, and how much it fires for neither name, the first, the last, and both."""

    fact: str
    neuron: int
    activations: tuple[float, float, float, float]
    others: int  # other combinations that it fires for

    @property
    def is_and(self) -> bool:
        """Whether it fires for both names, and for none of the other three as much as a tenth of that."""
        *fewer, both = self.activations
        return both > 0 and max(map(abs, fewer)) <= FAINT * both


def gates(block: FactBlock) -> list[Gate]:
    """For each fact the neuron that writes most of its sport into the stream."""
    first, last, _ = everybody()
    with mg.no_grad():
        fires = block.neurons(block.stream(first, last)).numpy().reshape(len(FIRST), len(LAST), -1)
        writes = (block.sports @ block.down.weight).numpy()  # (sports, hidden)
    found = []
    for name, sport in FACTS.items():
        f, g = indices(name)
        neuron = int((fires[f, g] * writes[SPORTS.index(sport)]).argmax())
        grid = fires[..., neuron]
        four = (float(grid[0, 0]), float(grid[f, 0]), float(grid[0, g]), float(grid[f, g]))
        found.append(Gate(name, neuron, four, int((grid > FAINT * grid[f, g]).sum()) - 1))
    return found


class Entry(NamedTuple):
    """A neuron as an entry of a memory: the names its key asks for, its bias, and the sports its value writes."""

    neuron: int
    key: list[tuple[str, float]]
    bias: float
    value: list[tuple[str, float]]


def memory(block: FactBlock, count: int = 3) -> list[Entry]:
    """Rows of `up` as keys with the nearest names, columns of `down` as values with the nearest sports.

    Only of neurons that fire for anything. Nearness is the dot product, which is what a key, or a reader, sees.
    """
    names = [*FIRST[1:], *LAST[1:]]
    first, last, _ = everybody()
    with mg.no_grad():
        keys = (block.up.weight @ mg.concatenate([block.first[1:], block.last[1:]]).mT).numpy()  # (hidden, names)
        values = (block.sports @ block.down.weight).mT.numpy()  # (hidden, sports)
        fires = block.neurons(block.stream(first, last)).numpy().max(axis=0)  # (81, hidden) -> (hidden,)
        biases = block.up(mg.zeros(DIM)).tolist()

    def nearest(words: list[str], sizes: np.ndarray, most: int) -> list[tuple[str, float]]:
        return [(words[i], float(sizes[i])) for i in np.argsort(-sizes)[:most]]

    return [
        Entry(k, nearest(names, keys[k], count), biases[k], nearest(SPORTS, values[k], 1))
        for k in np.flatnonzero(fires > FAINT * fires.max()).tolist()
    ]
