"""The captioner: an encoder reads the patches of a picture, and a decoder writes the sentence, looking at them."""

from __future__ import annotations

from typing import Any

import numpy as np
from minigrad_models.vit.model import PatchEncoder

import minigrad as mg
from minigrad import nn
from minigrad.nn import functional as F

from .scenes import BOS, EOS, LONGEST, SIZE, WORDS


class Captioner(nn.Module):
    """Pictures (N, 3, 32, 32) and the words so far (N, T) -> logits of the next words (N, T, V)."""

    def __init__(self, config: Any):
        dim, heads, options = config.dim, config.heads, {"dropout": config.dropout}
        self.edges = nn.Conv2d(3, 12, 3, padding=1)
        self.patches = PatchEncoder(SIZE, 12, config.patch, dim)
        self.encoder = nn.Encoder(config.layers, dim, heads, 2 * dim, **options)
        self.words = nn.Embedding(len(WORDS), dim)
        self.forget = nn.Dropout1d(config.forget)
        self.places = nn.LearnedPositions(LONGEST, dim)
        self.decoder = nn.Decoder(config.layers, dim, heads, 2 * dim, **options)
        self.head = nn.Linear(dim, len(WORDS))
        nn.init.gpt2_(self.words.weight)

    def encode(self, images: Any) -> mg.Tensor:
        """What was seen of each patch: (N, 3, 32, 32) -> (N, P, D)."""
        ink = 2 - 2 * mg.tensor(images)  # of paper there is none
        return self.encoder(self.patches(F.gelu(self.edges(ink))))

    def decode(self, words: Any, memory: mg.Tensor, cache: nn.StackCache | None = None) -> mg.Tensor:
        """The logits after each word, or after those that the cache has not seen: (N, T), (N, P, D) -> (N, T, V)."""
        x = self.places(self.forget(self.words(words)), 0 if cache is None else cache.length)
        return self.head(self.decoder(x, memory, cache=cache))

    def forward(self, images: Any, words: Any) -> mg.Tensor:
        return self.decode(words, self.encode(images))


def described(model: Captioner, images: np.ndarray) -> np.ndarray:
    """The most likely word after each, for pictures (N, 3, 32, 32): numbers (N, T), each row up to </s>."""
    where = model.head.weight.device
    with mg.no_grad():
        memory, cache = model.encode(mg.tensor(images, device=where)), model.decoder.new_cache()
        words = [np.full((len(images), 1), BOS)]
        while len(words) <= LONGEST and not (np.concatenate(words, 1) == EOS).any(axis=1).all():
            logits = model.decode(mg.tensor(words[-1], device=where), memory, cache)  # (N, 1, V)
            words.append(logits.numpy().argmax(axis=-1))
    return np.concatenate(words[1:], axis=1)
