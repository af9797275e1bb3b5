"""What BERT is fine-tuned for, with examples from the plots of the shipped stories, which also give the labels."""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from minigrad.data import WordTokenizer

from ..corpora.plots import PLOTS, cast

OTHER = "other"
# What the slots of plots are filled with; a word outside of all slots is none of it, even if it is spelt the same.
_KINDS = {
    "person": "a b c",
    "animal": "animal",
    "thing": "thing other cover",
    "place": "place spot in_place in_elsewhere in_spot in_wrong in_wrong2 thing.shop",
    "quality": "colour colour2 manner safe unsafe",
    "food": "animal.food dish first second",
    "job": "job",
    "time": "time",
    "subject": "a.he b.he a.He b.He",
    "object": "a.him b.him",
    "possessive": "a.his b.his",
}
TAGS = (OTHER, *_KINDS)
_KIND_OF = {slot: kind for kind, slots in _KINDS.items() for slot in slots.split()}
_INSIDE = {
    "a_manner_animal": ("manner", "animal"),
    "a_cover": ("cover",),
    "a_dish": ("dish",),
    "a_food": ("animal.food",),
}
_SMALL = {"a", "an", "the", "in", "on", "at", "of", "under", "behind", "pot", "piece"}
AS_TOLD, EXCHANGED = "as told", "sentences exchanged"

# Questions to each plot, and the words of the story that answer them.
QUESTIONS = {
    "lost and found": {
        "Who lost the {thing}?": "{a}", "Who helped {a}?": "{b}", "Where was the {thing} lost?": "{place}",
        "Which colour did it have?": "{colour}",
    },
    "birthday": {
        "Whose birthday was it?": "{b}", "Who bought a present?": "{a}", "What was the present?": "{colour} {thing}",
        "Where was it bought?": "{thing.shop}",
    },
    "swap": {
        "Who had the {thing} at first?": "{a}", "Who had the {thing} in the end?": "{b}", "Where did they meet?": "{place}",
    },
    "hungry animal": {
        "Who was hungry?": "{animal}", "Who fed the {animal}?": "{a}", "What did the {animal} eat?": "{animal.food}",
    },
    "hide and seek": {"Who hid?": "{a}", "Who looked for {a}?": "{b}", "Where did {a} hide?": "{spot}"},
    "weather": {"Who had the {cover}?": "{a}", "Who got {unsafe}?": "{b}", "How was the weather?": "{weather}"},
    "cooking": {"Who cooked?": "{a}", "Who came to dinner?": "{b}", "What did {a} buy?": "{second}"},
    "dream job": {"What did {a} want to be?": "{job}", "Who did not believe in it?": "{b}"},
    "race": {"Who won?": "{a}", "Who was slower?": "{b}", "Where did they run to?": "{place}", "Who saw it?": "{c}"},
    "rescue": {"Who needed help?": "{animal}", "Whose {animal} was it?": "{a}", "Who had the rope?": "{b}"},
}  # fmt: skip


class Example(NamedTuple):
    """One or two texts, and what is to be said about them: as the task is, a name, names, words, or 1 or 0."""

    first: str
    second: str | None
    label: Any


class Telling(NamedTuple):
    """A story with what its slots are filled with: its lines as the plot has them, and other lines that say the same."""

    plot: str
    slots: dict[str, Any]
    lines: tuple[str, ...]
    others: tuple[str, ...]

    def filled(self, *lines: str) -> str:
        """Lines with their slots filled, as one text."""
        return " ".join(lines).format(**self.slots)

    def tagged(self, line: str) -> list[tuple[str, str]]:
        """The words of a line, each with its tag."""
        found = []
        for literal, slot, _, _ in string.Formatter().parse(line):
            found += [(word, OTHER) for word in words_of(literal)]
            parts = [part for part in _INSIDE.get(slot, (slot,)) if part in _KIND_OF] if slot else []
            tags = {word: _KIND_OF[part] for part in parts for word in words_of(self.filled(f"{{{part}}}"))}
            filling = words_of(self.filled(f"{{{slot}}}")) if slot else []
            found += [(word, OTHER if word in _SMALL else tags.get(word, OTHER)) for word in filling]
        return found


def words_of(text: str) -> list[str]:
    """Words and punctuation marks, as the tokenizer has them."""
    return WordTokenizer.pattern.findall(text)


def tellings(seed: int = 0) -> Iterator[Telling]:
    """Stories without end, other ones for every seed."""
    draw = random.Random(f"tellings {seed}")
    while True:
        plot = draw.choice(sorted(PLOTS))
        lines, others = zip(*(draw.sample(ways, 2) for ways in PLOTS[plot].lines))
        yield Telling(plot, cast(draw), lines, others)


def order(telling: Telling, draw: random.Random) -> Example:
    """A story as it was told, or with two of its sentences in each other's place: the same words in another order."""
    lines, label = list(telling.lines), draw.choice((AS_TOLD, EXCHANGED))
    if label == EXCHANGED:
        one, other = draw.sample(range(len(lines)), 2)
        lines[one], lines[other] = lines[other], lines[one]
    return Example(telling.filled(*lines), None, label)


def tags(telling: Telling, draw: random.Random) -> Example:
    """Two sentences of a story, and what each word stands for."""
    start = draw.randrange(len(telling.lines) - 1)
    words, names = zip(*(pair for line in telling.lines[start : start + 2] for pair in telling.tagged(line)))
    return Example(" ".join(words), None, list(names))


def question(telling: Telling, draw: random.Random) -> Example:
    """A question, a story, and the words that answer it."""
    asked, answer = draw.choice(list(QUESTIONS[telling.plot].items()))
    return Example(telling.filled(asked), telling.filled(*telling.lines), telling.filled(answer))


def retelling(telling: Telling, draw: random.Random) -> Example:
    """Two sentences of a story: one told in two ways, or two that tell of different things, mostly about the same people."""
    place, elsewhere = draw.sample(range(len(telling.lines)), 2)
    is_same = draw.choice((0, 1))
    other = telling.others[place if is_same else elsewhere]
    return Example(telling.filled(telling.lines[place]), telling.filled(other), is_same)


MAKERS: dict[str, Callable[[Telling, random.Random], Example]] = {
    "classify": order, "tag": tags, "answer": question, "similar": retelling,
}  # fmt: skip


def examples(task: str, count: int, seed: int) -> list[Example]:
    """So many labelled examples of a task."""
    draw = random.Random(f"{task} {seed}")
    return [MAKERS[task](telling, draw) for telling in islice(tellings(seed), count)]
