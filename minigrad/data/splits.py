"""Splits into training, validation and test that share no source sentence, and are the same on every machine."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..errors import ArgumentError
from .normalisation import normalise

__all__ = ["Split", "split_pairs", "split_text"]

Part = TypeVar("Part")


@dataclass(frozen=True)
class Split(Generic[Part]):
    """Three parts of some data; `str()` gives their sizes."""

    train: Part
    valid: Part
    test: Part

    def __str__(self) -> str:
        return ", ".join(f"{name} {len(part):,}" for name, part in vars(self).items())


def split_pairs(
    pairs: Iterable[tuple[str, str]], valid: float = 0.1, test: float = 0.1, seed: int = 0
) -> Split[list[tuple[str, str]]]:
    """Split pairs by their source sentence: all translations of a sentence go to the same part.

    Sentences that differ only in case, spaces, punctuation and English contractions ("Don't go!", "do not go.") count as
    one. The fractions are of unique source sentences; which go where depends on the sentences and the seed, not on their order in the file.

    >>> print(split_pairs([("Go!", "¡Ve!"), ("Run.", "Corre."), ("go.", "Vete."), ("Hi.", "Hola.")], valid=0.25, test=0))
    train 2, valid 2, test 0
    """
    _check_fractions("split_pairs", valid, test)
    groups: dict[str, list[int]] = {}
    listed = list(pairs)
    for place, (source, _) in enumerate(listed):
        groups.setdefault(_sentence(source), []).append(place)
    order = sorted(groups, key=lambda sentence: _draw(seed, sentence))
    sizes = [int(fraction * len(order) + 1e-9) for fraction in (test, valid)]
    for i, fraction in enumerate((test, valid)):  # a part that was asked for is not empty if there is any to spare
        sizes[i] += bool(fraction and not sizes[i] and len(order) - sum(sizes) > 1)
    parts = (order[sum(sizes) :], order[sizes[0] : sum(sizes)], order[: sizes[0]])
    places = [sorted(place for sentence in part for place in groups[sentence]) for part in parts]
    return Split(*([listed[place] for place in chosen] for chosen in places))


def split_text(text: str, valid: float = 0.1, test: float = 0.0) -> Split[str]:
    """Split a running text into its beginning, the part after it, and its end.

    >>> split_text("abcdefghij", valid=0.2, test=0.1)
    Split(train='abcdefg', valid='hi', test='j')
    """
    _check_fractions("split_text", valid, test)
    first, second = int(len(text) * (1 - valid - test) + 1e-9), int(len(text) * (1 - test) + 1e-9)
    return Split(text[:first], text[first:second], text[second:])


def _sentence(text: str) -> str:
    """What is left of a sentence without case, spaces, punctuation and contractions; the text itself if nothing is."""
    plain = normalise(unicodedata.normalize("NFKC", text).casefold()) or text
    return " ".join(re.findall(r"\w+", plain)) or plain.strip()


def _draw(seed: int, sentence: str) -> bytes:
    return hashlib.blake2b(f"{seed}\n{sentence}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _check_fractions(where: str, valid: float, test: float) -> None:
    if not (0 <= valid < 1 and 0 <= test < 1 and valid + test < 1):
        raise ArgumentError(
            f"{where}: nothing is left to train on",
            "fractions of at least 0 that add up to less than 1",
            f"valid={valid}, test={test}",
        )
