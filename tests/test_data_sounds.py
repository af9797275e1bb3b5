"""Sounds of people: what is read is what was written, and what is hostile or damaged is refused before anything large is allocated."""

from __future__ import annotations

import contextlib
import io
import struct
import tracemalloc
import wave

import numpy as np
import pytest

from minigrad.data import DataError
from minigrad.data.sounds import read_wav, resampled, write_wav
from minigrad.errors import ArgumentError

rng = np.random.default_rng(0)


def wav(samples: bytes, width: int = 2, channels: int = 1, rate: int = 8000) -> bytes:
    made = io.BytesIO()
    with wave.open(made, "wb") as file:
        file.setparams((channels, width, rate, 0, "NONE", ""))
        file.writeframes(samples)
    return made.getvalue()


def test_a_sound_comes_back_as_it_was_written(tmp_path):
    samples = rng.uniform(-1, 1, 999)
    write_wav(tmp_path / "a.wav", samples, 8000)
    found = read_wav(tmp_path / "a.wav", 8000)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, samples, atol=1.6 / 32768 + 1 / 32768)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_whole_numbers_of_every_width_are_read_and_channels_are_averaged(tmp_path, width):
    numbers = rng.integers(-100, 100, (50, 2)) * 2 ** (8 * width - 8)
    parts = [(int(n) + 128 * (width == 1)).to_bytes(width, "little", signed=width > 1) for n in numbers.ravel()]
    (tmp_path / "a.wav").write_bytes(wav(b"".join(parts), width, 2))
    expected = numbers.mean(axis=1) / 2 ** (8 * width - 1)
    np.testing.assert_allclose(read_wav(tmp_path / "a.wav"), expected, atol=1e-6)


@pytest.mark.parametrize("rate", [4000, 11_025, 16_000, 44_100])
def test_a_tone_stays_the_same_tone_at_another_rate(tmp_path, rate):
    def tone(rate, hz):
        return np.sin(2 * np.pi * hz * np.arange(rate) / rate)  # one second

    (tmp_path / "a.wav").write_bytes(wav((tone(rate, 440) * 20000).astype("<i2").tobytes(), rate=rate))
    np.testing.assert_allclose(read_wav(tmp_path / "a.wav", 8000), tone(8000, 440) * 20000 / 32768, atol=1e-4)
    if rate > 10_000:  # 5 kHz cannot be told at this rate, and must not come back as another tone
        assert np.abs(resampled(tone(rate, 5000), rate, 8000)).max() < 1e-3


def test_samples_that_are_no_sound_are_not_written(tmp_path):
    for samples in (np.zeros((2, 3)), np.array([0.0, np.nan])):
        with pytest.raises(ArgumentError, match="no sound"):
            write_wav(tmp_path / "a.wav", samples, 8000)
    assert not list(tmp_path.iterdir())


GOOD = wav(bytes(200))
HUGE = GOOD[:40] + struct.pack("<I", 2**32 - 10) + GOOD[44:]  # claims 4 GB of samples
FLOATS = GOOD[:20] + struct.pack("<H", 3) + GOOD[22:]
FAST = GOOD[:24] + struct.pack("<I", 2**31) + GOOD[28:]
CROWDED = GOOD[:22] + struct.pack("<H", 65_535) + GOOD[24:]


@pytest.mark.parametrize(
    "content",
    [b"", b"RIFF", b"not a sound", GOOD[:20], GOOD[:43], wav(b""), FLOATS, FAST, CROWDED, b"\x89PNG" + bytes(99)],
    ids=range(10),
)
def test_what_is_no_sound_is_refused_by_name(tmp_path, content):
    (tmp_path / "a.wav").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.wav"):
        read_wav(tmp_path / "a.wav")


def test_a_sound_that_claims_to_be_huge_takes_no_more_memory_than_it_has(tmp_path):
    (tmp_path / "a.wav").write_bytes(HUGE)
    tracemalloc.start()
    with contextlib.suppress(DataError):
        read_wav(tmp_path / "a.wav", max_bytes=100_000)
    assert tracemalloc.get_traced_memory()[1] < 1e6
    tracemalloc.stop()
    (tmp_path / "a.wav").write_bytes(wav(bytes(4000)))
    with pytest.raises(DataError, match="too large"):
        read_wav(tmp_path / "a.wav", max_bytes=1000)
    with pytest.raises(DataError, match="too long"):
        read_wav(tmp_path / "a.wav", 384_000, max_samples=10_000)
    with pytest.raises(DataError, match="cannot be read"):
        read_wav(tmp_path / "none.wav")


def test_spoilt_sounds_are_read_or_refused(tmp_path):
    good = wav(rng.integers(0, 256, 400).astype("u1").tobytes())
    found = set()
    for _ in range(300):
        content = bytearray(good[: rng.integers(20, len(good))] if rng.random() < 0.3 else good)
        for place in rng.integers(0, min(60, len(content)), 3):
            content[place] = rng.integers(256)
        (tmp_path / "a.wav").write_bytes(content)
        try:
            samples = read_wav(tmp_path / "a.wav", 8000)
            assert samples.ndim == 1 and np.isfinite(samples).all()
            found.add("read")
        except DataError:
            found.add("refused")
    assert found == {"read", "refused"}
