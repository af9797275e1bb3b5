"""Are words of one kind near each other? The generator of the stories knows which words it puts in the same place."""

from __future__ import annotations

import itertools
import math
import random
from functools import cache

import numpy as np

from minigrad.data import SPECIALS

from ..corpora.plots import cast
from .space import WordSpace

# A kind of word, and the slot of a story that it fills.
SLOTS = {
    "thing": "{thing}",
    "hiding place": "{spot}",
    "place": "{place}",
    "colour": "{colour}",
    "manner": "{manner}",
    "animal": "{animal}",
    "food": "{animal.food}",
    "voice": "{animal.voice}",
    "weather": "{weather}",
    "cover": "{cover}",
    "dish": "{dish}",
    "ingredient": "{first}",
    "other ingredient": "{second}",
    "job": "{job}",
}
DRAWS = 2000  # so many stories leave out none of the words


@cache
def kinds() -> dict[str, set[str]]:
    """Each kind of word, with its words: whatever the generator of stories may put into a slot. Girls and boys are two kinds."""
    draw = random.Random("kinds of words")
    found: dict[str, set[str]] = {}
    for _ in range(DRAWS):
        slots = cast(draw)
        named = {kind: slot.format(**slots) for kind, slot in SLOTS.items()}
        named["girl" if slots["a"].he == "she" else "boy"] = slots["a"].name.lower()
        for kind, word in named.items():
            if " " not in word:
                found.setdefault(kind, set()).add(word)
    return found


def mean_average_precision(space: WordSpace) -> float:
    """For each word of a kind, all other words by their nearness: how early those of its kind come. 1 is best.

    A word's average precision is the mean, over the words of its kind, of the share of its kind among the words up to there.
    """
    alike = same_kind(space)
    precisions = []
    for place in np.flatnonzero(alike.any(axis=1)):
        cosines = space.directions @ space.directions[place]
        cosines[place] = -np.inf
        hits = alike[place][np.argsort(-cosines, kind="stable")]
        precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
        precisions.append(precision[hits].mean())
    return float(np.mean(precisions)) if precisions else float("nan")


def same_kind(space: WordSpace) -> np.ndarray:
    """Which words share a kind, (words, words); none does with itself."""
    alike = np.zeros((len(space.words), len(space.words)), bool)
    for words in kinds().values():
        places = [space.place[word] for word in words if word in space.place]
        alike[np.ix_(places, places)] = True
    np.fill_diagonal(alike, False)
    return alike


def chance(space: WordSpace, draws: int = 20) -> float:
    """What vectors drawn at random would reach."""
    random = np.random.default_rng(0)
    return float(
        np.mean(
            [
                mean_average_precision(WordSpace(space.words, random.standard_normal(space.vectors.shape)))
                for _ in range(draws)
            ]
        )
    )


def voices() -> dict[str, str]:
    """Each animal of the stories, and how it speaks."""
    draw = random.Random("voices")
    animals = (cast(draw)["animal"] for _ in range(DRAWS))
    return {animal.name: animal.voice for animal in animals}


def analogies_right(space: WordSpace) -> float:
    """How often the first answer to "dog : barked :: cat : ?" is right, of all two animals."""
    spoken = {animal: voice for animal, voice in voices().items() if {animal, voice} <= space.place.keys()}
    right = [space.analogy(a, spoken[a], b, 1)[0][0] == spoken[b] for a, b in itertools.permutations(spoken, 2)]
    return float(np.mean(right)) if right else float("nan")


def compared(space: WordSpace, pairs: np.ndarray) -> dict[str, float]:
    """Both measures of a space, beside chance and beside vectors made by counting the pairs of ids (N, 2).

    What has no value, since too few words are known, is left out.
    """
    counted = by_counting(pairs - len(SPECIALS), space.words)
    smaller = compressed(counted, space.vectors.shape[1])
    measured = {
        "kinds": mean_average_precision(space),
        "kinds_by_chance": chance(space),
        "kinds_by_counting": mean_average_precision(counted),
        "kinds_by_svd": mean_average_precision(smaller),
        "analogies": analogies_right(space),
        "analogies_by_chance": 1 / (len(space.words) - 3),
        "analogies_by_counting": analogies_right(counted),
        "analogies_by_svd": analogies_right(smaller),
    }
    return {name: value for name, value in measured.items() if not math.isnan(value)}


def by_counting(pairs: np.ndarray, words: list[str]) -> WordSpace:
    """Vectors without learning: how much oftener than by chance each word stands beside, log p(a, b) / p(a) p(b), if positive.

    `pairs` (N, 2) are places among the words.
    """
    size = len(words)
    together = (
        np.bincount(pairs[:, 0] * size + pairs[:, 1], minlength=size * size).reshape(size, size).astype(np.float64)
    )
    beside = together.sum(axis=0) ** 0.75  # smoothed as the negatives of skip-gram are
    by_chance = np.outer(together.sum(axis=1), beside / beside.sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.log(together / by_chance)
    return WordSpace(words, np.where(together > 0, np.maximum(information, 0), 0))


def compressed(space: WordSpace, size: int) -> WordSpace:
    """The same in `size` dimensions, by the singular value decomposition, each weighted by √σ."""
    left, strengths, _ = np.linalg.svd(space.vectors, full_matrices=False)
    return WordSpace(space.words, left[:, :size] * np.sqrt(strengths[:size]))
