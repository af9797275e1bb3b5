"""The painter: it is given a picture in noise and a sentence, and says what the picture would be without the noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from minigrad_models.caption.scenes import EOS, LONGEST, PAD, SIZE, WORDS, encoded
from minigrad_models.vit.model import PatchEncoder

import minigrad as mg
from minigrad import nn
from minigrad.errors import ArgumentError, nearest
from minigrad.nn import functional as F

WAVES, EDGES = 16, 16  # by which a time is told, and what is seen around each pixel


class Painter(nn.Module):
    """Pictures in noise (N, 3, 32, 32), times (N,) and words (N, T) -> the pictures without noise, (N, 3, 32, 32).

    At time 0 all is noise, and at time 1 nothing. Colours are from 0, for white, to 2, for black.
    """

    def __init__(self, config: Any):
        dim, heads, self.patch = config.dim, config.heads, config.patch
        self.strokes, self.guidance = config.strokes, config.guidance
        self.words = nn.Embedding(len(WORDS), dim)
        self.places = nn.LearnedPositions(LONGEST + 1, dim)
        self.reader = nn.Encoder(1, dim, heads, 2 * dim)
        self.register_buffer("waves", mg.tensor(2.0 ** np.linspace(0, 7, WAVES), dtype="float32"), persistent=False)
        self.time = nn.Sequential(nn.Linear(2 * WAVES, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.edges = nn.Conv2d(3, EDGES, 3, padding=1)
        self.patches = PatchEncoder(SIZE, EDGES, config.patch, dim)
        self.blocks = nn.ModuleList(nn.TransformerBlock(dim, heads, 2 * dim, cross=True) for _ in range(config.layers))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, EDGES * config.patch**2)
        self.brush = nn.Conv2d(2 * EDGES, EDGES, 3, padding=1)
        self.last = nn.Conv2d(EDGES, 3, 3, padding=1)
        nn.init.gpt2_(self.words.weight)

    def forward(self, noisy: Any, times: Any, words: Any) -> mg.Tensor:
        sentence = self.reader(self.places(self.words(words)))  # (N, T, D)
        seen = F.gelu(self.edges(noisy))  # (N, E, 32, 32)
        x = self.patches(seen) + self.time(waves_of(times, self.waves))[:, None]  # (N, P, D)
        for block in self.blocks:
            x = block(x, sentence)
        planned = joined(self.head(self.norm(x)), self.patch)  # (N, E, 32, 32)
        return self.last(F.gelu(self.brush(mg.concatenate([planned, seen], axis=1))))

    def paint(self, sentences: list[str], seed: int = 0) -> np.ndarray:
        """From noise to pictures in equal steps of time, each towards what it sees: (steps + 1, N, 3, 32, 32), from 0 to 1.

        What a sentence changes in that, beside no sentence, is taken `guidance` times.
        """
        where, count = self.head.weight.device, len(sentences)
        rows = np.full((2 * count, LONGEST + 1), PAD)  # the second half stays without words
        for row, sentence in zip(rows, sentences):
            numbers = checked(sentence)
            row[: len(numbers)] = numbers
        draws = [np.random.default_rng([seed, i]).standard_normal((3, SIZE, SIZE), "float32") for i in range(count)]
        film, words = [np.stack(draws)], mg.tensor(rows, device=where)
        with mg.no_grad():
            for step in range(self.strokes):
                now = mg.tensor(np.concatenate([film[-1], film[-1]]), device=where)
                times = mg.full((2 * count,), step / self.strokes, dtype=now.dtype, device=where)
                goals = self(now, times, words).numpy()
                told, untold = goals[:count], goals[count:]
                goal = np.clip(untold + np.float32(self.guidance) * (told - untold), 0, 2)
                film.append(film[-1] + (goal - film[-1]) * np.float32(1 / (self.strokes - step)))
        return np.clip(1 - np.stack(film) / 2, 0, 1)


def waves_of(times: mg.Tensor, waves: mg.Tensor) -> mg.Tensor:
    """A time from 0 to 1 as sines and cosines, from slow to fast: (N,), (WAVES,) -> (N, 2 · WAVES)"""
    angles = times[:, None] * waves
    return mg.concatenate([mg.sin(angles), mg.cos(angles)], axis=1)


def joined(patches: mg.Tensor, patch: int) -> mg.Tensor:
    """Squares of pixels, row by row, as pictures: (N, P, E · p²) -> (N, E, H, W)"""
    side = SIZE // patch
    apart = patches.reshape(len(patches), side, side, -1, patch, patch)
    return apart.transpose(0, 3, 1, 4, 2, 5).reshape(len(patches), -1, SIZE, SIZE)


def checked(sentence: str) -> list[int]:
    """A sentence in numbers; one that has words of no scene, or too many, is refused."""
    words, known = sentence.split(), WORDS[EOS + 1 :]
    unknown = next((word for word in words if word not in known), None)
    if unknown is not None:
        fix = nearest(unknown, list(known))
        raise ArgumentError(f"paint: {unknown!r} is no word that it knows", ", ".join(known), fix=fix)
    if not 1 <= len(words) < LONGEST:
        raise ArgumentError("paint: this is no sentence of a scene", f"1 to {LONGEST - 1} words", f"{len(words)} words")
    return encoded(" ".join(words))


def error(model: Painter, batch: Any) -> mg.Tensor:
    """How far what the model sees is from the pictures, squared, summed: (noisy, times, words, pictures) -> ()"""
    noisy, times, words, clean = (mg.tensor(part, device=model.head.weight.device) for part in batch)
    return F.mse_loss(model(noisy, times, words), clean, reduction="sum")
