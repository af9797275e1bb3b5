"""What is painted: in numbers, as a strip of a film, and judged by what a captioner says of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from minigrad_models.caption.scenes import BOS, EOS, LONGEST, PAD, SIZE, WORDS, pictures, worded

import minigrad as mg
from minigrad.errors import ArgumentError
from minigrad.zoo import Page

SEEDS = 4  # of the noise that a page has
SHOWN = ("a large red circle", "a small blue square above a large yellow triangle")


def summary(image: np.ndarray) -> dict[str, Any]:
    """How much of a picture (3, H, W) is not paper, and its mean colour there."""
    painted_over = np.abs(image - np.median(image, axis=(1, 2), keepdims=True)).max(axis=0) > 0.2
    colour = image[:, painted_over].mean(axis=1) if painted_over.any() else np.median(image, axis=(1, 2))
    return {
        "painted": round(float(painted_over.mean()), 3),
        "colour": "#" + bytes(np.round(255 * colour).astype(np.uint8)).hex(),
    }


def on_a_page(model: Any) -> Page:
    """A stroke of `Painter.paint` for one sentence, and what it begins with."""

    def stroke(picture: mg.Tensor, time: mg.Tensor, share: mg.Tensor, words: mg.Tensor) -> mg.Tensor:
        both = [mg.concatenate([part, part]) for part in (picture, time)]
        goals = model(*both, mg.concatenate([words, words * 0 + PAD]))
        told, untold = goals[:1], goals[1:]
        goal = (untold + (told - untold) * model.guidance).clip(0, 2)
        return picture + (goal - picture) * share

    noise = [np.random.default_rng([seed, 0]).standard_normal((3, SIZE, SIZE), "float32") for seed in range(SEEDS)]
    settings = {
        "words": WORDS, "first": EOS + 1, "frame": [[BOS], [EOS]], "pad": PAD, "longest": LONGEST + 1,
        "strokes": model.strokes, "noise": np.stack(noise),
    }  # fmt: skip
    return Page(kind="painting", function=stroke, settings=settings, examples=SHOWN)


def judged(loaded: Any, captioner: str | None) -> dict[str, Any]:
    """How many sentences are painted so that a captioner, who does not know them, says just these; and how many of unseen kinds."""
    from minigrad_models.caption.model import described

    from minigrad import zoo

    if captioner is None:
        raise ArgumentError(
            "paint: its pictures are judged by a captioner", "--data with the run of one", fix="minigrad train caption"
        )
    judge = zoo.load(captioner)
    if judge.spec.name != "caption":
        raise ArgumentError(f"paint: {captioner!r} holds {judge.spec.name}", "a run of caption")
    config, found = loaded.config, {}
    for part, name in (("test", "exact"), ("unseen", "exact_unseen")):
        _, numbers = pictures(config.held_out, config.scenes_seed, part)
        sentences = [worded(row[1:]) for row in numbers]
        read = [worded(row) for row in described(judge.model, loaded.model.paint(sentences)[-1])]
        found[name] = sum(a == b for a, b in zip(read, sentences)) / len(sentences)
    return {**found, "sentences": config.held_out}


def as_text(found: dict[str, Any]) -> str:
    """The figures in two lines."""
    return (
        f"painted so that the captioner says it, of {found['sentences']} sentences {found['exact']:7.2%}\n"
        f"of {found['sentences']} with a combination never shown                  {found['exact_unseen']:7.2%}"
    )


def film_strip(loaded: Any) -> Any:
    """Two pictures out of their noise, in six moments each."""
    from minigrad_models.vit.pictures import over, tiles

    film = loaded.model.paint(list(SHOWN))
    moments = np.linspace(0, len(film) - 1, 6).round().astype(int)
    plain = np.zeros((1, 1))
    shown = [(f"{m} of {len(film) - 1}", over(film[m, n], plain)) for n in range(len(SHOWN)) for m in moments]
    return tiles(shown, f"out of noise: {'; '.join(SHOWN)}", columns=6, pixel=3.0)
