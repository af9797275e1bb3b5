"""Pairs of texts to learn from: those of the shipped stories, or of any text, cut into sentences."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from minigrad.data import read_text
from minigrad.errors import ArgumentError

from ..corpora import sentence_pairs, stories
from .batches import IGNORED
from .tasks import Example

LEARNED, HELD_OUT = 0, 1  # seeds of what is generated
EVALUATED = 1000  # generated examples that are held out, at most
HELD = 20  # of a text of one's own, one paragraph or line in so many is held out
ALONE = 5  # one text in so many is no pair, but one or two sentences from anywhere, as people type them
LONGEST = 12  # sentences of a document; a longer one is several
# After a full stop or the like, and the quotes and brackets that close behind it.
_END = re.compile(r"""(?:(?<=[.!?…])|(?<=[.!?…]["'”’»)]))\s+""")


class Examples(NamedTuple):
    """Training examples, held-out examples, which share no text with them, and a message about both."""

    learned: list[Example]
    held: list[Example]
    summary: str = ""


def pretraining_pairs(count: int, path: str | None) -> Examples:
    """Pairs to learn from, with some texts that stand alone, and pairs held out: none of a short text."""
    if path is None:
        alone = fragments(list(story.sentences) for story in stories(count // ALONE, LEARNED))
        learned = [*map(_as_example, sentence_pairs(count - len(alone), LEARNED)), *alone]
        evaluated = min(count, EVALUATED)
        return Examples(learned, unseen(map(_as_example, sentence_pairs(2 * evaluated, HELD_OUT)), learned)[:evaluated])
    text, report = read_text(path)
    found = documents(text)
    if not any(len(document) > 1 for document in found):
        raise ArgumentError(
            "bert: there is too little text to learn from",
            "at least two sentences that follow each other",
            f"{sum(map(len, found))} sentences in {len(found)} paragraphs",
            "give more text; a sentence ends with . ! ? or …, a paragraph with an empty line",
        )
    learned_documents, held_documents = parted(found, tuple)
    pairs = pairs_of(learned_documents)
    alone = fragments(learned_documents * (len(pairs) // (ALONE * len(learned_documents)) + 1))
    return own_examples(pairs + alone, pairs_of(held_documents), report)


def own_examples(learned: list[Example], held: list[Example], report: Any) -> Examples:
    """Those of somebody's file, with what was read of it and how much is held out."""
    new = unseen(held, learned)
    last = f"{len(new):,} examples are held out" if new else "none is held out: there are too few different texts"
    return Examples(learned, new, f"{report}\n{last}")


def unseen(found: Iterable[Example], learned: list[Example]) -> list[Example]:
    """The examples whose texts are not learned from, in whichever order: short ones are easily told twice."""
    known = {frozenset(example[:2]) for example in learned}
    return [example for example in found if frozenset(example[:2]) not in known]


def _as_example(pair: tuple[str, str, bool]) -> Example:
    first, second, follows = pair
    return Example(first, second, int(follows))


def parted(found: list[Any], text_of: Callable[[Any], Any]) -> tuple[list[Any], list[Any]]:
    """What to learn from and what is held out of somebody's data, no text in both; none of it if there is little."""
    texts = list(dict.fromkeys(map(text_of, found)))
    held = set(texts[::HELD]) if len(texts) >= 2 * HELD else set()
    return [one for one in found if text_of(one) not in held], [one for one in found if text_of(one) in held]


def documents(text: str) -> list[list[str]]:
    """The paragraphs of a text as lists of sentences; where all are single sentences, they are taken for one paragraph."""
    found = [sentences_of(paragraph) for paragraph in re.split(r"\n\s*\n", text) if paragraph.strip()]
    if all(len(sentences) < 2 for sentences in found):
        found = [[sentence for sentences in found for sentence in sentences]]
    return [sentences[start : start + LONGEST] for sentences in found for start in range(0, len(sentences), LONGEST)]


def sentences_of(paragraph: str) -> list[str]:
    """Sentences, which may go over several lines; lines, where nothing says where a sentence ends."""
    sentences = [part for part in _END.split(" ".join(paragraph.split())) if part]
    return sentences if len(sentences) > 1 else [line.strip() for line in paragraph.splitlines() if line.strip()]


def pairs_of(found: Iterable[list[str]]) -> list[Example]:
    """Each sentence after what was told before it, or in half of the cases another sentence of the text."""
    listed = list(found)
    everything = [sentence for document in listed for sentence in document]
    draw = random.Random("pairs of a text")
    pairs = []
    for document in listed:
        for cut in range(1, len(document)):
            second = draw.choice((document[cut], draw.choice(everything)))
            pairs.append(Example(" ".join(document[:cut]), second, int(second == document[cut])))
    return pairs


def fragments(found: Iterable[list[str]]) -> list[Example]:
    """One or two sentences of each document, with nothing to follow."""
    draw = random.Random("fragments")
    texts = []
    for document in found:
        start = draw.randrange(len(document))
        texts.append(Example(" ".join(document[start : start + draw.choice((1, 2))]), None, IGNORED))
    return texts
