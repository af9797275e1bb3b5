"""How many words are heard right, and pictures of a sound with its letters."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

import minigrad as mg
from minigrad.zoo import Page

from .model import HOP, WINDOW, Listener, collapsed, moments, written
from .voices import RATE
from .words import BLANK, BOS, EOS, LETTERS, LONGEST, SAMPLES, SECONDS, encoded, from_words, recordings, worded

TITLES = {
    "words": "words right, of {voices} voices it never heard",
    "words_child": "of {voices} children, whose like it never heard",
}


def heard(model: Listener, waves: np.ndarray) -> list[tuple[str, str]]:
    """What each recording (N, SAMPLES) says, to the decoder and to CTC."""
    found = []
    for start in range(0, len(waves), 100):
        part = waves[start : start + 100]
        best = moments(model, part).argmax(axis=-1)  # (N, FRAMES)
        found += [(worded(a), worded(collapsed(b))) for a, b in zip(written(model, part), best)]
    return found


def on_a_page(model: Listener) -> Page:
    """What the page of a listener computes: spectra by products with sines and cosines, which are those of the transform."""
    angles = 2 * np.pi / WINDOW * np.outer(np.arange(WINDOW), np.arange(WINDOW // 2 + 1))
    waves = [mg.tensor(part, dtype="float32") for part in (np.cos(angles), np.sin(angles))]
    padded = np.pad(np.arange(SAMPLES), WINDOW // 2, mode="reflect")
    pieces = mg.tensor(padded[np.arange(SAMPLES // HOP)[:, None] * HOP + np.arange(WINDOW)])  # (200, WINDOW)

    def encode(sound: mg.Tensor) -> mg.Tensor:
        cut = mg.take(sound, pieces, axis=1) * model.mel.window  # (N, 200, WINDOW)
        return model.encoded(model.mel.heard(sum((cut @ part) ** 2 for part in waves)))

    samples = [from_words(str(number))[0] for number in range(1, 9)]
    settings = {
        "medium": "sound", "words": LETTERS, "gap": "", "hidden": [BLANK, BOS], "start": BOS, "end": EOS, "most": LONGEST,
        "rate": RATE, "samples": samples,
    }  # fmt: skip
    return Page(kind="described", function=encode, settings=settings)


def word_scores(loaded: Any) -> dict[str, Any]:
    """The share of words that are right, 1 - (words wrong, missing or added) / (words spoken), of unheard voices and of children."""
    config, found = loaded.config, {}
    for part, name in (("test", "words"), ("child", "words_child")):
        waves, letters = recordings(config.held_out, config.other_voices, config.voices_seed, part)
        said = [worded(row[1:]).split() for row in letters]
        answers = heard(loaded.model, waves)
        total = sum(map(len, said))
        for column, how in enumerate(("", "_ctc")):
            wrong = [edits(pair[column].split(), wanted) for pair, wanted in zip(answers, said)]
            found[name + how] = 1 - sum(map(len, wrong)) / total
            if not how:
                counts = Counter(edit for row in wrong for edit in row)
                found[f"mistakes{name[5:]}"] = ", ".join(f"{what} {n}" for what, n in counts.most_common(4)) or "none"
    return {**found, "recordings": config.held_out, "voices": config.other_voices}


def edits(got: list[str], wanted: list[str]) -> list[str]:
    """The fewest changes that make what was spoken of what was written, by Levenshtein: ["five as nine", "no missing"]."""
    rows: list[list[list[str]]] = [[[f"{word} added" for word in got[:j]] for j in range(len(got) + 1)]]
    for word in wanted:
        above, row = rows[-1], [[*rows[-1][0], f"{word} missing"]]
        for j, other in enumerate(got):
            same = above[j] if word == other else [*above[j], f"{word} as {other}"]
            row.append(min(same, [*above[j + 1], f"{word} missing"], [*row[j], f"{other} added"], key=len))
        rows.append(row)
    return rows[-1][-1]


def as_text(found: dict[str, Any]) -> str:
    """The figures in two lines."""
    return "\n".join(
        f"{title.format(**found):<47} {found[name]:7.2%}, by CTC {found[name + '_ctc']:7.2%}   mistakes: {found['mistakes' + name[5:]]}"
        for name, title in TITLES.items()
    )


def listened(model: Listener, text: str) -> tuple[np.ndarray, np.ndarray, list[str], np.ndarray]:
    """A recording (1, SAMPLES), the letters that the decoder is fed (1, T), those that it chooses, and its logits (T, V)."""
    waves = from_words(text)[0][None]
    chosen = worded(written(model, waves)[0])
    fed = np.array([encoded(chosen)[:-1][:LONGEST]])
    with mg.no_grad():
        logits = model(mg.tensor(waves), fed)[0][0].numpy()
    return waves, fed, [*chosen, "</s>"][:LONGEST], logits


def picture_of(loaded: Any, text: str) -> Any:
    """The bands of a sound, below it how likely each letter is at each moment to CTC, and where the decoder listens for each letter."""
    from minigrad import viz
    from minigrad.viz.drawing.heatmap import colored
    from minigrad.viz.drawing.scene import Image, Rect, Scene, Text

    model = loaded.model
    waves, fed, chosen, _ = listened(model, text)
    with mg.no_grad():
        bands = model.mel(waves)[0].numpy()  # (200, MELS)
    likely = moments(model, waves)[0]  # (FRAMES, V)
    shown = sorted({n for n in likely.argmax(axis=1).tolist() if n != BLANK}, key=lambda n: int(likely[:, n].argmax()))
    cross = [layer for layer in viz.attention(model, waves, fed).layers if layer.kind == "cross"][-1].weights.mean(
        axis=0
    )
    parts = [
        ("the sound: low bands below, from silence to loud", np.maximum(bands.T[::-1] + 0.5, 0) / 1.5, [], 120.0),
        (
            "the letter that CTC hears at each moment",
            likely[:, shown].T,
            [LETTERS[n] for n in shown],
            13.0 * len(shown),
        ),
        ("where the decoder listens for each letter", cross, chosen, 13.0 * len(chosen)),
    ]
    left, width, y = 54.0, 620.0, 20.0
    shapes: list[Any] = []
    for title, values, names, high in parts:
        shapes.append(Text(left, y, title, 12, bold=True))
        y += 8
        pixels = colored(np.asarray(values), by_row=bool(names))
        shapes += [Image(left, y, width, high, pixels), Rect(left, y, width, high, None, "line")]
        for i, name in enumerate(names):
            shapes.append(Text(left - 6, y + 13 * i + 10, name.replace(" ", "_"), 10, anchor="end"))
        y += high + 26
    for i in range(5):
        shapes.append(Text(left + width * i / 4, y - 12, f"{SECONDS * i / 4:.1f} s", 10, "faint", "middle"))
    return Scene(left + width + 24, y, shapes, "a sound and its letters")
