"""English-Spanish pairs composed by a grammar: as many as are wanted, every one with its agreement right, some kept back for testing.

Spanish here says tú to one and ustedes to several, leaves out yo, tú and nosotros and keeps él, ella, ellos and ustedes; a
speaker of unknown gender is masculine. Targets are written as in the phrasebook: small letters but for names, ¿? and no full stop.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

from minigrad.errors import ArgumentError, nearest

from .clauses import FORMS, Clause, Key
from .constructions import FAMILIES, Block

__all__ = ["FAMILIES", "Example", "grammar_examples", "grammar_pairs", "grammar_size", "is_held_out"]

Split = Literal["train", "heldout"]

# One in so many combinations of each kind is kept out of training.
_ONE_IN = {
    "doing": 9,  # a third person, a verb and a tense, such as Ana + comer + past
    "doing so": 9,  # the same for I, you and we, together with statement, negation or question
    "object": 8,  # a verb and its object, such as eat + apple
    "adjective": 8,  # a noun and its adjective, such as car + red
    "spot": 8,  # a preposition and a place
    "there": 8,  # a thing and the place where there is one
    "owner": 8,  # an owner and a thing
    "than": 8,  # a comparative and what is compared with
}
# Kinds of sentences that hold more verbs than the others are drawn more often.
_WEIGHTS = {"action": 5, "activity": 2, "feeling": 0.5, "motion": 2, "person": 2, "question": 2, "wish": 2}
# With this salt no sentence of the phrasebook is held out.
_SALT = b"25"


class Example(NamedTuple):
    """A pair, the kind of sentence it is, and the combinations of words that it brings together."""

    source: str
    target: str
    family: str
    combinations: tuple[Key, ...]


@cache
def is_held_out(combination: Key) -> bool:
    """Whether this combination of words is kept out of training. It depends on nothing but the words.

    >>> is_held_out(("object", "eat", "apple")), is_held_out(("object", "eat", "sandwich"))
    (False, True)
    """
    kind, *words = combination
    chosen = 0
    if kind == "doing so":
        # At most one form of the three is withheld, so that training always shows the form of the verb.
        chosen = FORMS.index(words.pop())
    digest = hashlib.blake2b(" ".join([kind, *words]).encode(), digest_size=8, salt=_SALT).digest()
    return int.from_bytes(digest, "big") % _ONE_IN[kind] == chosen


def grammar_pairs(
    split: Split = "train", n: int = 50_000, seed: int = 0, families: Sequence[str] | None = None
) -> list[tuple[str, str]]:
    """`n` different pairs (English, Spanish) of a split, drawn from all kinds of sentences, or from some, and shuffled.

    The sentences of "heldout" each hold a combination (such as a verb and its object, a noun and its adjective, or a subject,
    a verb and a tense) that no sentence of "train" has, although all its words occur there.

    >>> grammar_pairs("train", 2, seed=1) == grammar_pairs("train", 2, seed=1)
    True
    """
    return [(example.source, example.target) for example in grammar_examples(split, n, seed, families)]


def grammar_examples(
    split: Split = "train", n: int = 50_000, seed: int = 0, families: Sequence[str] | None = None
) -> list[Example]:
    """As `grammar_pairs`, with the kind of each sentence and the combinations it brings together."""
    sizes = {family: grammar_size(split, [family]) for family in _known(families)}
    if not 0 <= n <= sum(sizes.values()):
        most = f"0 to {sum(sizes.values()):,}"
        raise ArgumentError("The grammar cannot give that many pairs.", most, f"{n:,}", "ask for fewer pairs")
    draw = random.Random(seed)
    found = []
    for family, share in zip(sizes, _shares(n, list(sizes.values()), [_WEIGHTS.get(family, 1) for family in sizes])):
        tables = _tables(family)
        for table, count in zip(tables, _shares(share, [t.size(split) for t in tables], [1] * len(tables))):
            for index in draw.sample(range(table.size(split)), count):
                found.append(table.example(family, split, index))
    draw.shuffle(found)
    return found


def grammar_size(split: Split | None = None, families: Sequence[str] | None = None) -> int:
    """The exact number of pairs of a split, or of both, in some kinds of sentences or in all.

    >>> grammar_size() == grammar_size("train") + grammar_size("heldout") > 50_000
    True
    """
    if split not in (None, "train", "heldout"):
        fix = nearest(str(split), ("train", "heldout"))
        raise ArgumentError("The grammar has no such split.", "'train' or 'heldout'", repr(split), fix)
    splits: Sequence[Split] = ("train", "heldout") if split is None else (split,)
    return sum(table.size(s) for family in _known(families) for table in _tables(family) for s in splits)


def _known(families: Sequence[str] | None) -> list[str]:
    """The families asked for in the order of the grammar, each once; all when none are named."""
    if isinstance(families, str):
        families = [families]
    for family in families or ():
        if family not in FAMILIES:
            expected = ", ".join(FAMILIES)
            raise ArgumentError("The grammar has no such family.", expected, repr(family), nearest(family, FAMILIES))
    return [family for family in FAMILIES if families is None or family in families]


class _Table:
    """A block with its heads and tails sorted into those that training may see and those it may not.

    What may be seen is a rectangle, and the rest two more, so that the pairs of each split can be counted and numbered.
    """

    def __init__(self, block: Block):
        self.render = block.render
        self.heads, self.seen_heads = _sorted(block.heads)
        self.tails, self.seen_tails = _sorted(block.tails)

    def size(self, split: Split) -> int:
        seen = self.seen_heads * self.seen_tails
        return seen if split == "train" else len(self.heads) * len(self.tails) - seen

    def example(self, family: str, split: Split, index: int) -> Example:
        below = (len(self.heads) - self.seen_heads) * len(self.tails)
        if split == "train":
            row, column = divmod(index, self.seen_tails)
        elif index < below:
            row, column = divmod(index, len(self.tails))
            row += self.seen_heads
        else:
            row, column = divmod(index - below, len(self.tails) - self.seen_tails)
            column += self.seen_tails
        head, tail = self.heads[row], self.tails[column]
        return Example(*self.render(head, tail), family, (*head.keys, *tail.keys))


def _sorted(parts: Sequence[Any]) -> tuple[list[Any], int]:
    """The parts, those that training may see first, and how many these are."""
    seen = [part for part in parts if not any(map(is_held_out, part.keys))]
    unseen = [part for part in parts if any(map(is_held_out, part.keys))]
    return seen + unseen, len(seen)


@cache
def _tables(family: str) -> list[_Table]:
    return [_Table(part) for block in FAMILIES[family]() for part in _by_person(block)]


def _by_person(block: Block) -> Iterator[Block]:
    """The block in pieces, one for each person of the verb, so that "I" is drawn as often as all the third persons together."""
    pieces: dict[str, list[Any]] = {}
    for head in block.heads:
        pieces.setdefault(head.subject.person if isinstance(head, Clause) else "", []).append(head)
    return (block._replace(heads=heads) for heads in pieces.values())


def _shares(n: int, sizes: Sequence[int], weights: Sequence[float]) -> list[int]:
    """How many of `n` each of several sources gives: in proportion to the weights, except that small ones give all they have."""
    shares = [0] * len(sizes)
    weight_left = sum(weights)
    for i in sorted(range(len(sizes)), key=lambda i: sizes[i] / weights[i]):
        shares[i] = min(sizes[i], round(n * weights[i] / weight_left))
        n -= shares[i]
        weight_left -= weights[i]
    return shares
