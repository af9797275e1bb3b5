"""What is said: one to three of eighteen words, by voices of which those that test are never heard in training."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from minigrad.data import Sampler
from minigrad.data.sounds import read_wav
from minigrad.errors import ArgumentError

from .voices import RATE, say, voice

WORDS = {
    "zero": "z ih r ow", "one": "w ah n", "two": "t uw", "three": "th r iy", "four": "f ao r", "five": "f ay v",
    "six": "s ih k s", "seven": "s eh v ah n", "eight": "ey t", "nine": "n ay n", "yes": "y eh s", "no": "n ow",
    "up": "ah p", "down": "d aw n", "left": "l eh f t", "right": "r ay t", "stop": "s t aa p", "go": "g ow",
}  # fmt: skip
LETTERS = ("<blank>", "<s>", "</s>", " ", *sorted({letter for word in WORDS for letter in word}))
BLANK, BOS, EOS = range(3)  # the blank of CTC is also what rows are filled up with
MOST_WORDS = 3
LONGEST = MOST_WORDS * 6 + 1  # letters of the longest sentence with a space behind each word, and one for its end
SECONDS = 2.0  # of every recording: what is shorter is followed by silence
SAMPLES = int(SECONDS * RATE)
PARTS = {"train": ("low", "high"), "valid": ("low", "high"), "test": ("low", "high"), "child": ("child",)}


@lru_cache(maxsize=4)
def takes(voices: int, seed: int, part: str) -> tuple[tuple[np.ndarray, ...], ...]:
    """Each word, said by each of some voices: no two parts share one."""
    rng = np.random.default_rng([seed, list(PARTS).index(part)])
    kinds = PARTS[part]
    speakers = [voice(rng, kinds[i % len(kinds)]) for i in range(voices)]
    return tuple(tuple(say(sounds, speaker, rng) for sounds in WORDS.values()) for speaker in speakers)


def recorded(words: Sequence[np.ndarray], rng: np.random.Generator) -> tuple[np.ndarray, str]:
    """One to three of a voice's words after each other, louder or softer, in some noise: (SAMPLES,), and what was said."""
    wave, said, end = np.zeros(SAMPLES, "float32"), [], 0
    for _ in range(rng.integers(1, MOST_WORDS + 1)):
        number, start = int(rng.integers(len(words))), end + int(rng.integers(200, 1600))
        end = start + len(words[number])
        if end > SAMPLES - 200:
            break
        wave[start:end] += words[number] * np.float32(rng.uniform(0.6, 1.0))
        said.append(list(WORDS)[number])
    noise = rng.standard_normal(SAMPLES, "float32") * np.float32(10 ** -rng.uniform(1.0, 2.2))
    return (wave + noise) * np.float32(rng.uniform(0.1, 0.5)), " ".join(said)


def rows_of(pairs: Sequence[tuple[np.ndarray, str]]) -> tuple[np.ndarray, np.ndarray]:
    """Recordings (N, SAMPLES), and their sentences (N, LONGEST + 1) in numbers, with <s> and </s> around them."""
    waves, letters = np.stack([wave for wave, _ in pairs]), np.full((len(pairs), LONGEST + 1), BLANK)
    for row, (_, sentence) in zip(letters, pairs):
        numbers = encoded(sentence)
        row[: len(numbers)] = numbers
    return waves, letters


@lru_cache(maxsize=4)
def recordings(count: int, voices: int, seed: int, part: str) -> tuple[np.ndarray, np.ndarray]:
    """So many recordings of a part's voices, always the same ones."""
    rng = np.random.default_rng([seed, 100 + list(PARTS).index(part)])
    heard = takes(voices, seed, part)
    rows = rows_of([recorded(heard[rng.integers(voices)], rng) for _ in range(count)])
    for array in rows:
        array.flags.writeable = False
    return rows


class Recordings(Sampler):
    """Batches of recordings that no epoch repeats: other words, gaps and noise each time, of the same takes."""

    def __init__(self, heard: Sequence[Any], batch_size: int, batches: int, seed: int = 0):
        super().__init__(seed)
        self.heard, self.batch_size, self.batches = heard, batch_size, batches

    def __len__(self) -> int:
        return self.batches

    def batch(self, epoch: int, index: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng([self.seed, epoch, index])
        return rows_of([recorded(self.heard[rng.integers(len(self.heard))], rng) for _ in range(self.batch_size)])

    def _identity(self) -> dict[str, Any]:
        return {"voices": len(self.heard), "batch_size": self.batch_size, "batches": self.batches}


def encoded(sentence: str) -> list[int]:
    """The numbers of the letters, with <s> and </s> around them."""
    return [BOS, *(LETTERS.index(letter) for letter in sentence), EOS]


def worded(numbers: np.ndarray) -> str:
    """The letters of numbers, up to </s>."""
    listed = numbers.tolist()
    return "".join(LETTERS[n] for n in (listed[: listed.index(EOS)] if EOS in listed else listed) if n > EOS)


def spoken(number: int) -> tuple[np.ndarray, str]:
    """The recording of a number: a voice of the kinds that were heard, drawn by it, but never one of them."""
    rng = np.random.default_rng([len(PARTS), number])
    speaker = voice(rng, PARTS["test"][int(rng.integers(2))])
    return recorded([say(sounds, speaker, rng) for sounds in WORDS.values()], rng)


def from_words(text: str) -> tuple[np.ndarray, str | None]:
    """From the command line: a number has words spoken, and tells them; a file such as spoken.wav is read."""
    if re.fullmatch(r"[0-9]{1,9}", text.strip()):
        return spoken(int(text))
    if not text.lower().endswith((".wav", ".wave")):
        raise ArgumentError(
            f"speech: {text!r} is no sound", "a file such as spoken.wav, or a number to have some words spoken"
        )
    wave = read_wav(text, RATE)
    if len(wave) > SAMPLES:
        raise ArgumentError(
            f"speech: {text} is too long", f"at most {SECONDS} seconds", f"{len(wave) / RATE:.2f} seconds", "cut it"
        )
    return np.pad(wave, (0, SAMPLES - len(wave))), None
