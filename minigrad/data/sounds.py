"""Sounds that people have: files of type WAV, by Python's own reader. Sizes are checked before anything large is allocated."""

from __future__ import annotations

import io
import os
import wave

import numpy as np

from ..errors import ArgumentError
from ..saving import write_atomically
from .errors import DataError
from .unpacking import unpacked

__all__ = ["read_wav", "resampled", "write_wav"]

MAX_BYTES = 2**26
MAX_SAMPLES = 2**24  # at the rate that is asked for: half an hour at 8,000 a second
RATES = (1000, 384_000)
MOST_CHANNELS = 32


def read_wav(
    path: str | os.PathLike[str], rate: int | None = None, max_bytes: int = MAX_BYTES, max_samples: int = MAX_SAMPLES
) -> np.ndarray:
    """The samples of a WAV file as float32 from -1 to 1, the mean of its channels, at a rate: (L,).

    Whole numbers of 8 to 32 bits are read, which is what nearly all programs write.
    """
    content, name = unpacked(path, max_bytes=max_bytes)
    try:
        with wave.open(io.BytesIO(content)) as file:
            channels, width, own_rate, _, kind, _ = file.getparams()
            samples = file.readframes(len(content))
    except (wave.Error, EOFError, ValueError, RuntimeError) as error:
        got = str(error) or "its end comes too early"
        raise DataError(f"read_wav: {name} cannot be read", "a WAV file of whole numbers (PCM)", got[:200]) from None
    if not (RATES[0] <= own_rate <= RATES[1] and channels <= MOST_CHANNELS and width <= 4):
        expected = f"from {RATES[0]:,} to {RATES[1]:,} samples a second, up to {MOST_CHANNELS} channels, 8 to 32 bits"
        got = f"{own_rate:,}, {channels} channels, {8 * width} bits"
        raise DataError(f"read_wav: {name} is no usual sound", expected, got)
    count = len(samples) // (channels * width)
    if not 1 <= count * (1 if rate is None else max(rate / own_rate, 1)) <= max_samples:
        what = "is too long" if count else "has no samples"
        raise DataError(
            f"read_wav: {name} {what}", f"1 to {max_samples:,} samples", f"{count:,} at {own_rate:,} a second"
        )
    numbers = _numbers(samples[: count * channels * width], width)
    mixed = numbers.reshape(-1, channels).mean(axis=1, dtype=np.float32)
    return mixed if rate is None else resampled(mixed, own_rate, rate)


def _numbers(samples: bytes, width: int) -> np.ndarray:
    """Whole numbers of some bytes as float32 from -1 to 1; those of one byte are 128 for silence."""
    if width == 1:
        return (np.frombuffer(samples, np.uint8).astype(np.float32) - 128) / 128
    parts = np.frombuffer(samples, np.uint8).reshape(-1, width)
    filled = np.zeros((len(parts), 4), np.uint8)
    filled[:, 4 - width :] = parts  # the highest bytes of 32 bits, of which the lowest stands first
    return filled.view("<i4")[:, 0].astype(np.float32) / 2**31


def resampled(samples: np.ndarray, rate: int, wanted: int) -> np.ndarray:
    """Samples (L,) at another rate: what is too high for it is left out, and nothing is added, by Fourier's transform."""
    if rate == wanted:
        return samples
    count = max(round(len(samples) * wanted / rate), 1)
    spectrum = np.fft.rfft(samples)[: count // 2 + 1]
    if count < len(samples) and count % 2 == 0:
        spectrum[-1] = 0  # the middle frequency, whose mirror image is gone
    return (np.fft.irfft(spectrum, count) * (count / len(samples))).astype(np.float32)


def write_wav(path: str | os.PathLike[str], samples: np.ndarray, rate: int) -> None:
    """Samples (L,) from -1 to 1 as a WAV file of 16 bits; what is louder is cut off."""
    samples = np.asarray(samples)
    if samples.ndim != 1 or not np.isfinite(samples).all():
        raise ArgumentError("write_wav: this is no sound", "one axis of finite numbers", f"shape {samples.shape}")
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(np.round(np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
    write_atomically(path, content.getvalue())
