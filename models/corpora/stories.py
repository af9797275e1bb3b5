"""Short English stories to train GPT and BERT on: who did what, where, with which thing, and an ending that follows from the beginning."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from minigrad.errors import ArgumentError

from .plots import PLOTS, cast

__all__ = ["Story", "sentence_pairs", "stories", "story_text"]


class Story(NamedTuple):
    """A story by sentences. Its last word is `answer`, which whoever has read the other sentences can tell."""

    plot: str
    sentences: tuple[str, ...]
    answer: str

    @property
    def text(self) -> str:
        """The whole story in one line."""
        return " ".join(self.sentences)


def stories(n: int, seed: int = 0) -> list[Story]:
    """The first `n` stories of a seed; more of them begin with the same ones.

    >>> stories(3, seed=1) == stories(5, seed=1)[:3]
    True
    >>> story = stories(1)[0]
    >>> story.text.endswith(story.answer + ".")
    True
    """
    if n < 0:
        raise ArgumentError("There is no such number of stories.", "0 or more", n)
    return list(islice(_tell(seed), n))


def story_text(characters: int, seed: int = 0) -> str:
    """Exactly so many characters of stories, a blank line between two; the last one may be cut.

    >>> len(story_text(10_000)), story_text(100) == story_text(10_000)[:100]
    (10000, True)
    """
    if characters < 0:
        raise ArgumentError("There is no text of such a length.", "0 or more characters", characters)
    parts: list[str] = []
    length = 0
    told = _tell(seed)
    while length < characters:
        parts.append(next(told).text + "\n\n")
        length += len(parts[-1])
    return "".join(parts)[:characters]


def sentence_pairs(n: int, seed: int = 0) -> list[tuple[str, str, bool]]:
    """`n` triples (first, second, whether the second follows the first in a story), half of them true in the long run.

    A false second sentence comes from another story, from any place but its beginning, just as the true ones do. A first
    part is everything told so far, so that names, things and places decide.
    """
    if n < 0:
        raise ArgumentError("There is no such number of pairs.", "0 or more", n)
    draw = random.Random(f"pairs {seed}")
    told = _tell(seed)
    found = []
    for _ in range(n):
        story, other = next(told), next(told)
        cut = draw.randrange(1, len(story.sentences))
        follows = draw.random() < 0.5
        second = story.sentences[cut] if follows else draw.choice(other.sentences[1:])
        follows = follows or second == story.sentences[cut]
        found.append((" ".join(story.sentences[:cut]), second, follows))
    return found


def _tell(seed: int) -> Iterator[Story]:
    draw = random.Random(f"stories {seed}")
    names = sorted(PLOTS)
    while True:
        plot = draw.choice(names)
        slots = cast(draw)
        lines = [draw.choice(ways) for ways in PLOTS[plot].lines]
        sentences = tuple(line.format(**slots) for line in lines)
        yield Story(plot, sentences, PLOTS[plot].answer.format(**slots))
