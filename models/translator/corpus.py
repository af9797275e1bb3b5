"""Where sentence pairs come from: the shipped phrasebook and grammar, tasks that are made, known collections, and anybody's files."""

from __future__ import annotations

import os
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

Pair = tuple[str, str]

HELD_OUT = 1000  # sentences that are kept for each of validation and test, at most
SHARE = 0.1  # of the unique sources, where there are few
FEW = 500  # unique sources: with fewer, all are wanted for training
BOOK_SHARE = 0.25  # of the training examples that are from the phrasebook, which is small beside the grammar
REVERSED = 50  # whole numbers from 0
LONGEST, LONGEST_TEST = 25, 30  # of what is to be reversed


@dataclass(frozen=True)
class Corpus:
    """Pairs to learn from, to validate by, and to test on; several tests have names."""

    train: list[Pair]
    valid: list[Pair]
    tests: dict[str, list[Pair]]
    summary: str  # where they are from, and how many there are
    parts: int = 1  # into so many equal parts, one after the other, the training pairs fall

    @property
    def test(self) -> list[Pair]:
        """The pairs of the first test."""
        return next(iter(self.tests.values()))


def form_of(config: Any) -> str:
    """How text is written before it becomes tokens."""
    return config.form or ("phrasebook" if config.corpus == "phrasebook" else "plain")


def written(text: str, form: str, is_source: bool) -> str:
    """A text in one of the forms: single spaces and composed accents in each."""
    from minigrad.data import normalise

    text = " ".join(unicodedata.normalize("NFC", text).split())
    if form == "phrasebook" and is_source:
        return normalise(text)
    return text.lower() if form == "lower" else text


def corpus_of(config: Any, path: str | None) -> Corpus:
    """The corpus that a config names, or that of the user's files; the last one is kept, since every validation asks for it."""
    from minigrad.zoo.data import paths_of

    files = [os.stat(part) for part in paths_of(path or "") if os.path.exists(part)]
    stamp = (os.environ.get("MINIGRAD_DATA"), *((file.st_mtime_ns, file.st_size) for file in files))
    return _made(Wanted(*(getattr(config, name) for name in Wanted._fields)), path, stamp)


class Wanted(NamedTuple):
    """The settings that a corpus depends on."""

    corpus: str
    form: str
    pairs: int
    masked: float
    span: float


@lru_cache(maxsize=1)
def _made(config: Wanted, path: str | None, stamp: tuple[Any, ...]) -> Corpus:
    found = _from_files(config, path) if path is not None else _MAKERS[config.corpus](config)
    form = form_of(config)
    tests = {name: _written(pairs, form) for name, pairs in found.tests.items()}
    return Corpus(_written(found.train, form), _written(found.valid, form), tests, found.summary, found.parts)


def _written(pairs: list[Pair], form: str) -> list[Pair]:
    both = [(written(source, form, True), written(target, form, False)) for source, target in pairs]
    return [pair for pair in both if all(pair)]


def _phrasebook(config: Any) -> Corpus:
    """All of the phrasebook, again and again, between sentences of the grammar; held-out combinations are the test."""
    from ..corpora import grammar_pairs, phrasebook

    book = phrasebook()
    grammar = grammar_pairs("train", config.pairs)
    often = max(1, round(BOOK_SHARE * len(grammar) / (1 - BOOK_SHARE) / len(book)))
    train = []
    for part in range(often):
        train += book + grammar[part * len(grammar) // often : (part + 1) * len(grammar) // often]
    held = grammar_pairs("heldout", 2 * HELD_OUT, seed=1)
    summary = f"{len(book)} pairs of the phrasebook, {often} times, and {len(grammar):,} of the grammar"
    tests = {"heldout": held[HELD_OUT:], "phrasebook": book}
    return Corpus(train, held[: HELD_OUT // 2] + book, tests, summary, parts=often)


def _reverse(config: Any) -> Corpus:
    """Whole numbers from 0 to 49, to be said from the last to the first; the test goes on to greater lengths."""
    draw = np.random.default_rng(0)

    def made(count: int, longest: int) -> list[Pair]:
        rows = [draw.integers(0, REVERSED, draw.integers(1, longest + 1)) for _ in range(count)]
        return [(" ".join(map(str, row)), " ".join(map(str, row[::-1]))) for row in rows]

    train, valid = made(config.pairs, LONGEST), made(HELD_OUT // 2, LONGEST)
    summary = f"{len(train):,} rows of up to {LONGEST} numbers to reverse, tested on up to {LONGEST_TEST}"
    return Corpus(train, valid, {"test": made(HELD_OUT, LONGEST_TEST)}, summary)


def _denoise(config: Any) -> Corpus:
    from ..corpora import stories

    lines = list(dict.fromkeys(" ".join(story.sentences[:3]) for story in stories(config.pairs)))
    return _texts(config, lines, "beginnings of generated stories")


def _texts(config: Any, lines: list[str], what: str) -> Corpus:
    """Texts to learn from, and some with gaps for validation; of one or two none is held out."""
    from .denoising import with_gaps

    draw = np.random.default_rng(0)
    kept = min(HELD_OUT, int(SHARE * len(lines)) or 1)
    valid, test, train = lines[:kept], lines[kept : 2 * kept], lines[2 * kept :]
    name, summary = "test", f"{len(train):,} {what}"
    if not train:
        valid = test = train = lines
        name, summary = "trained", f"{len(lines):,} {what}, none of which is held out: scores are of what was learned"
    gaps = [[(with_gaps(text, config, draw), text) for text in part] for part in (valid[: HELD_OUT // 2], test)]
    return Corpus([(text, text) for text in train], gaps[0], {name: gaps[1]}, summary)


def _multi30k(config: Any) -> Corpus:
    from minigrad.data import fetch, read_pairs

    parts = {
        part: read_pairs(fetch(f"multi30k/{part}.en"), fetch(f"multi30k/{part}.de"))[0]
        for part in ("train", "val", "test_2016_flickr")
    }
    train, valid, test = parts.values()
    return Corpus(train, valid, {"test_2016_flickr": test}, f"Multi30k, English to German: {len(train):,} pairs")


def _tatoeba(config: Any) -> Corpus:
    from minigrad.data import local_copy, read_pairs
    from minigrad.data.errors import DataError

    path = local_copy("tatoeba/spa-eng.zip")
    if path is None:
        raise DataError(
            "translator: there is no copy of Tatoeba's pairs here", "tatoeba/spa-eng.zip below $MINIGRAD_DATA",
            fix="set MINIGRAD_DATA; or give the file itself: --data spa-eng.zip",
        )  # fmt: skip
    pairs, report = read_pairs(path, member="spa-eng/spa.txt")
    return _parted(pairs, str(report))


def _pairs(config: Any) -> Corpus:
    from minigrad.errors import ArgumentError

    raise ArgumentError("translator: which pairs?", "a file of sentence pairs", fix="give it: --data pairs.tsv")


def _from_files(config: Any, path: str) -> Corpus:
    """A file of pairs, two aligned files with a comma between them, or, to denoise, a text."""
    from minigrad.data import read_pairs, read_text
    from minigrad.data.errors import DataError
    from minigrad.zoo.data import paths_of

    if config.corpus == "denoise":
        text, report = read_text(path)
        lines = list(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))
        if not lines:
            raise DataError(f"translator: {path!r} has no text", "at least one line of text")
        return _texts(config, lines, f"lines of {path}")
    parts = paths_of(path)
    if len(parts) > 2:
        raise DataError("translator: these are too many files", "one of pairs, or two aligned ones", path)
    pairs, report = read_pairs(*parts)
    return _parted(pairs, str(report))


def _parted(pairs: list[Pair], summary: str) -> Corpus:
    """Split so that no part has a source of another; each pair once. Of few pairs none is held out: all are to be learned."""
    from minigrad.data import split_pairs

    unique = list(dict.fromkeys(pairs))
    if len(unique) < len(pairs):
        summary += f"\n{len(pairs) - len(unique):,} pairs were there before"
    if len({source for source, _ in unique}) < FEW:
        summary += f"\nfewer than {FEW} sentences: none is held out, and scores are of what was learned"
        return Corpus(unique, unique, {"trained": unique}, summary)
    share = min(SHARE, HELD_OUT / len(unique))
    split = split_pairs(unique, valid=share, test=share)
    return Corpus(split.train, split.valid, {"test": split.test}, f"{summary}\nsplit by unique source: {split}")


_MAKERS = {
    "phrasebook": _phrasebook, "pairs": _pairs, "reverse": _reverse, "denoise": _denoise, "multi30k": _multi30k,
    "tatoeba": _tatoeba,
}  # fmt: skip
