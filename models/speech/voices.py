"""Words spoken by our own code: a source (pulses of a throat, or noise), and a filter whose resonances are a mouth's, its formants.

No sound was recorded for it. A voice is a few numbers: its pitch, the size of its mouth, its tempo, its breath. A sound of
a word is a target: where three formants lie, how loud throat and noise are, and for how long. Between targets everything glides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

RATE = 8000  # samples a second, as a telephone's
STEP = 40  # samples between two settings of the filter
WINDOW = 4 * STEP  # what is filtered at once
FREQUENCIES = np.fft.rfftfreq(2 * WINDOW, 1 / RATE)  # (161,)
BANDWIDTHS = (80.0, 100.0, 150.0)  # of the formants, in Hz
GLIDE, FADE = 9, 5  # how many settings a formant takes from target to target, and a loudness


class Sound(NamedTuple):
    """A target: seconds, the loudness of throat and noise, three formants, and the middle and width of the noise, in Hz."""

    seconds: float
    throat: float
    noise: float
    formants: tuple[float, float, float]
    middle: float = 2000.0
    width: float = 4000.0


def _vowel(seconds: float, *formants: float) -> Sound:
    return Sound(seconds, 1.0, 0.0, formants)  # type: ignore[arg-type]


def _stop(*burst: float) -> tuple[Sound, ...]:
    """Silence while the mouth is shut, and a burst of noise."""
    closed = (400.0, 1500.0, 2500.0)
    return Sound(0.05, 0.0, 0.0, closed), Sound(0.025, 0.0, 0.5, closed, *burst)


SOUNDS: dict[str, tuple[Sound, ...]] = {
    "iy": (_vowel(0.13, 290, 2250, 2950),),
    "ih": (_vowel(0.09, 400, 1950, 2550),),
    "eh": (_vowel(0.11, 560, 1800, 2500),),
    "ah": (_vowel(0.09, 640, 1200, 2400),),
    "aa": (_vowel(0.13, 740, 1120, 2450),),
    "ao": (_vowel(0.12, 560, 850, 2420),),
    "uw": (_vowel(0.14, 310, 900, 2250),),
    "ay": (_vowel(0.10, 740, 1150, 2450), _vowel(0.08, 390, 1950, 2550)),
    "aw": (_vowel(0.10, 740, 1150, 2450), _vowel(0.08, 380, 850, 2300)),
    "ey": (_vowel(0.09, 500, 1850, 2500), _vowel(0.08, 330, 2200, 2700)),
    "ow": (_vowel(0.09, 520, 950, 2400), _vowel(0.08, 350, 800, 2300)),
    "r": (Sound(0.06, 0.6, 0.0, (330, 1100, 1550)),),
    "l": (Sound(0.06, 0.6, 0.0, (360, 1050, 2800)),),
    "w": (Sound(0.06, 0.6, 0.0, (300, 650, 2200)),),
    "y": (Sound(0.06, 0.6, 0.0, (270, 2250, 3000)),),
    "n": (Sound(0.07, 0.35, 0.0, (270, 1650, 2500)),),
    "v": (Sound(0.06, 0.3, 0.05, (260, 1150, 2350), 3000, 4000),),
    "z": (Sound(0.08, 0.3, 0.25, (270, 1600, 2500), 3700, 900),),
    "f": (Sound(0.09, 0.0, 0.12, (400, 1150, 2350), 2600, 4000),),
    "th": (Sound(0.09, 0.0, 0.08, (400, 1450, 2550), 1700, 2200),),
    "s": (Sound(0.10, 0.0, 0.40, (400, 1600, 2500), 3700, 900),),
    "p": _stop(700, 900),
    "t": _stop(3500, 1200),
    "k": _stop(1900, 700),
    "d": (Sound(0.04, 0.12, 0.0, (250, 1600, 2550)), Sound(0.02, 0.3, 0.3, (300, 1700, 2600), 3400, 1200)),
    "g": (Sound(0.04, 0.12, 0.0, (250, 1700, 2200)), Sound(0.02, 0.3, 0.3, (300, 1700, 2200), 1800, 700)),
}


class Voice(NamedTuple):
    """A speaker: Hz of the throat, how much shorter the mouth is than a man's, tempo, breath, tilt, and an accent for each formant."""

    pitch: float
    mouth: float
    tempo: float
    breath: float
    tilt: float
    accent: tuple[float, float, float]


KINDS = {"low": (85, 150, 0.95, 1.08), "high": (155, 250, 1.05, 1.22), "child": (260, 360, 1.24, 1.36)}


def voice(rng: np.random.Generator, kind: str) -> Voice:
    """A voice drawn at random, of a kind."""
    lowest, highest, long, short = KINDS[kind]
    return Voice(
        rng.uniform(lowest, highest), rng.uniform(long, short), rng.uniform(0.8, 1.3), rng.uniform(0.0, 0.15),
        rng.uniform(0.7, 1.4), tuple(rng.normal(1.0, 0.03, 3)),
    )  # fmt: skip


def say(sounds: str, speaker: Voice, rng: np.random.Generator) -> np.ndarray:
    """A word as samples of float32, the loudest of them 1: `say("f ay v", …)`; no two takes are the same."""
    targets = [target for name in sounds.split() for target in SOUNDS[name]]
    seconds = np.array([t.seconds for t in targets]) * rng.uniform(0.85, 1.15, len(targets)) / speaker.tempo
    counts = np.maximum(np.round(seconds * RATE / STEP).astype(int), 2)
    settings = [_glided(np.repeat([getattr(t, name) for t in targets], counts, 0), n) for name, n in _GLIDES]
    throat, noise, formants, middle, width = settings
    formants = formants * speaker.mouth * np.array(speaker.accent) * rng.normal(1.0, 0.02, 3)
    voiced = filtered(_pulses(speaker, len(throat), rng), throat * _resonance(formants, speaker))
    breath = noise + speaker.breath * throat
    shape = np.exp(-(((FREQUENCIES - middle) / width) ** 2))
    unvoiced = filtered(rng.normal(0, 0.3, (len(noise) - 1) * STEP + WINDOW), breath * shape)
    wave = voiced + unvoiced
    return (wave / max(np.abs(wave).max(), 1e-6)).astype("float32")


_GLIDES = (("throat", FADE), ("noise", FADE), ("formants", GLIDE), ("middle", FADE), ("width", FADE))


def _glided(steps: np.ndarray, across: int) -> np.ndarray:
    """Steps from target to target as glides: the mean of `across` settings around each. (F,) or (F, 3) -> (F, 1) or (F, 3)"""
    table = steps.reshape(len(steps), -1).astype(float)
    padded = np.pad(table, ((across // 2, across // 2), (0, 0)), mode="edge")
    return np.lib.stride_tricks.sliding_window_view(padded, across, axis=0).mean(axis=-1)


def _pulses(speaker: Voice, settings: int, rng: np.random.Generator) -> np.ndarray:
    """A pulse for each period of the throat, whose pitch falls and trembles a little."""
    count = (settings - 1) * STEP + WINDOW
    falling = np.linspace(1.0 + rng.uniform(0, 0.12), 1.0 - rng.uniform(0, 0.12), count)
    phase = rng.uniform() + np.cumsum(speaker.pitch * falling / RATE)
    at = np.flatnonzero(np.diff(np.floor(phase)))
    pulses = np.zeros(count + 1)
    late = (phase[at + 1] % 1) / (speaker.pitch * falling[at] / RATE)  # how long ago, in samples, from 0 to 1
    pulses[at + 1] += 1 - late
    pulses[at] += late
    return pulses[:count] * np.sqrt(RATE / speaker.pitch)


def _resonance(formants: np.ndarray, speaker: Voice) -> np.ndarray:
    """How much passes a mouth at each frequency: (F, 3) -> (F, frequencies)."""
    passed = (1 + FREQUENCIES / 500) ** -speaker.tilt
    for place, bandwidth in zip(formants.T, BANDWIDTHS):
        square = place[:, None] ** 2
        passed = passed * square / np.hypot(square - FREQUENCIES**2, bandwidth * FREQUENCIES)
    return passed


def filtered(source: np.ndarray, gains: np.ndarray) -> np.ndarray:
    """The source, each piece of it by its own gains (F, frequencies), added where they overlap: ((F - 1) · STEP + WINDOW,)"""
    pieces = np.lib.stride_tricks.sliding_window_view(source, WINDOW)[::STEP]  # (F, WINDOW)
    spectra = np.fft.rfft(pieces * np.hanning(WINDOW + 1)[:-1], 2 * WINDOW)
    heard = np.fft.irfft(spectra * gains)  # (F, 2 · WINDOW), whose ends ring before and after
    heard = np.roll(heard, WINDOW // 2, axis=1)
    out = np.zeros((len(pieces) + 7) * STEP)
    for i in range(8):
        out.reshape(-1, STEP)[i : i + len(pieces)] += heard[:, i * STEP : (i + 1) * STEP]
    return out
