"""The listener: sound becomes pictures of its frequencies, an encoder reads them, a decoder writes letters, and CTC does so beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

import minigrad as mg
from minigrad import nn
from minigrad.nn import functional as F

from .voices import RATE
from .words import BLANK, BOS, EOS, LETTERS, LONGEST

WINDOW, HOP, MELS, FRAMES = 256, 80, 40, 50  # 10 ms from one spectrum to the next, and 40 ms of sound for each vector


class LogMel(nn.Module):
    """Sound (N, SAMPLES) -> the logarithm of its power in each band, (N, 200, MELS), from -1 to 1: every step is an op.

    The bands are as wide as an ear's: `mel = 2595 · log10(1 + f / 700)`. What is 60 dB below the loudest is silence.
    """

    def __init__(self) -> None:
        self.register_buffer("window", mg.tensor(np.hanning(WINDOW + 1)[:-1], dtype="float32"), persistent=False)
        self.register_buffer("bands", mg.tensor(mel_bands(), dtype="float32"), persistent=False)

    def forward(self, waves: Any) -> mg.Tensor:
        spectra = mg.fft.stft(waves, WINDOW, HOP, window=self.window)[:, :, :-1]  # (N, 129, 200)
        return self.heard((spectra.real**2 + spectra.imag**2).mT)

    def heard(self, power: mg.Tensor) -> mg.Tensor:
        """Power at each moment and frequency, (N, 200, 129), in bands as an ear hears it."""
        heard = mg.log10(mg.maximum(power @ self.bands, 1e-8))  # (N, 200, 129) @ (129, MELS)
        loudest = heard.max(axis=(1, 2), keepdims=True)
        return mg.maximum(heard - loudest, -6.0) / 3 + 1


def mel_bands() -> np.ndarray:
    """Triangles over the frequencies, equally far apart in mel: (WINDOW / 2 + 1, MELS)."""
    mels = np.linspace(0, 2595 * np.log10(1 + RATE / 2 / 700), MELS + 2)
    edges = 700 * (10 ** (mels / 2595) - 1)
    frequencies = np.fft.rfftfreq(WINDOW, 1 / RATE)[:, None]
    rising = (frequencies - edges[:-2]) / np.diff(edges)[:-1]
    falling = (edges[2:] - frequencies) / np.diff(edges)[1:]
    return np.maximum(np.minimum(rising, falling), 0)


class Listener(nn.Module):
    """Sound (N, SAMPLES) and the letters so far (N, T) -> logits of the next letters (N, T, V), and of each moment (N, FRAMES, V)."""

    def __init__(self, config: Any):
        dim, heads, options = config.dim, config.heads, {"dropout": config.dropout}
        self.share = config.ctc
        self.mel = LogMel()
        self.first = nn.Conv1d(MELS, dim, 3, stride=2, padding=1)
        self.second = nn.Conv1d(dim, dim, 3, stride=2, padding=1)
        self.moments = nn.LearnedPositions(FRAMES, dim)
        self.encoder = nn.Encoder(config.layers, dim, heads, 2 * dim, **options)
        self.ctc = nn.Linear(dim, len(LETTERS))
        self.letters = nn.Embedding(len(LETTERS), dim)
        self.places = nn.LearnedPositions(LONGEST, dim)
        self.decoder = nn.Decoder(config.layers, dim, heads, 2 * dim, **options)
        self.head = nn.Linear(dim, len(LETTERS))
        nn.init.gpt2_(self.letters.weight)

    def encode(self, waves: Any) -> mg.Tensor:
        """What was heard at each moment: (N, SAMPLES) -> (N, FRAMES, D)."""
        return self.encoded(self.mel(waves))

    def encoded(self, bands: mg.Tensor) -> mg.Tensor:
        """The same of what `mel` makes: (N, 200, MELS) -> (N, FRAMES, D)."""
        x = F.gelu(self.first(bands.mT))  # (N, MELS, 200) -> (N, D, 100)
        return self.encoder(self.moments(F.gelu(self.second(x)).mT))  # (N, FRAMES, D)

    def decode(self, letters: Any, memory: mg.Tensor, cache: nn.StackCache | None = None) -> mg.Tensor:
        """The logits after each letter, or after those that the cache has not seen: (N, T), (N, FRAMES, D) -> (N, T, V)."""
        x = self.places(self.letters(letters), 0 if cache is None else cache.length)
        return self.head(self.decoder(x, memory, cache=cache))

    def forward(self, waves: Any, letters: Any) -> tuple[mg.Tensor, mg.Tensor]:
        memory = self.encode(waves)
        return self.decode(letters, memory), self.ctc(memory)


def written(model: Listener, waves: np.ndarray) -> np.ndarray:
    """What the decoder writes, the most likely letter after each: (N, SAMPLES) -> numbers (N, T), each row up to </s>."""
    where = model.head.weight.device
    with mg.no_grad():
        memory, cache = model.encode(mg.tensor(waves, device=where)), model.decoder.new_cache()
        letters = [np.full((len(waves), 1), BOS)]
        while len(letters) <= LONGEST and not (np.concatenate(letters, 1) == EOS).any(axis=1).all():
            logits = model.decode(mg.tensor(letters[-1], device=where), memory, cache)  # (N, 1, V)
            letters.append(logits.numpy().argmax(axis=-1))
    return np.concatenate(letters[1:], axis=1)


def moments(model: Listener, waves: np.ndarray) -> np.ndarray:
    """How likely each letter is at each moment, to CTC: (N, SAMPLES) -> (N, FRAMES, V)."""
    with mg.no_grad():
        return F.softmax(model.ctc(model.encode(mg.tensor(waves, device=model.head.weight.device)))).numpy()


def collapsed(best: np.ndarray) -> np.ndarray:
    """What CTC says: of the most likely letters of the moments (FRAMES,), repetitions are one, and then blanks are dropped."""
    changes = np.append(True, best[1:] != best[:-1])
    return best[changes & (best != BLANK)]
