"""How well scenes are described, and where the decoder looks for each word."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from .model import Captioner, described
from .scenes import LONGEST, SIZE, encoded, from_words, pictures, worded


def exactness(loaded: Any) -> dict[str, Any]:
    """The share of held-out scenes, and of unseen combinations, whose every word is right."""
    config, found = loaded.config, {}
    for part, name in (("test", "exact"), ("unseen", "exact_unseen")):
        shown, sentences = pictures(config.held_out, config.scenes_seed, part)
        pairs = [(worded(a), worded(b[1:])) for a, b in zip(_described(loaded.model, shown), sentences)]
        found[name] = sum(a == b for a, b in pairs) / len(pairs)
        found[f"mistakes{name[5:]}"] = _mistakes(pairs)
    return {**found, "scenes": config.held_out}


def _described(model: Captioner, shown: np.ndarray) -> list[np.ndarray]:
    return [row for start in range(0, len(shown), 250) for row in described(model, shown[start : start + 250])]


def _mistakes(pairs: list[tuple[str, str]]) -> str:
    """The words that were taken for others most often."""
    counts: Counter[str] = Counter()
    for got, drawn in pairs:
        if got != drawn:
            words, wanted = got.split(), drawn.split()
            same = len(words) == len(wanted)
            counts.update(
                [f"{b} as {a}" for a, b in zip(words, wanted) if a != b] if same else ["another number of words"]
            )
    return ", ".join(f"{what} {n}" for what, n in counts.most_common(4)) or "none"


def as_text(found: dict[str, Any]) -> str:
    """The figures in two lines."""
    return "\n".join(
        f"{title:<44} {found[name]:7.2%}   mistakes: {found['mistakes' + name[5:]]}"
        for title, name in (
            (f"exactly right, of {found['scenes']} held-out scenes", "exact"),
            (f"of {found['scenes']} with a combination never shown", "exact_unseen"),
        )
    )


def shown_to(model: Captioner, text: str) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """A picture (1, 3, 32, 32), the words that the decoder is fed (1, T), and those that it chooses."""
    images = from_words(text)[0][None]
    chosen = worded(described(model, images)[0])
    return images, np.array([encoded(chosen)[:-1][:LONGEST]]), [*chosen.split(), "</s>"][:LONGEST]


def looked_at(loaded: Any, *texts: str) -> Any:
    """For each word of some sentences, the picture and, as light, what the last cross-attention looked at: the mean of its heads."""
    from minigrad_models.vit.pictures import over, tiles

    from minigrad import viz

    side, shown = SIZE // loaded.config.patch, []
    for text in texts:
        images, fed, chosen = shown_to(loaded.model, text)
        crosses = [layer for layer in viz.attention(loaded.model, images, fed).layers if layer.kind == "cross"]
        weights = crosses[-1].weights.mean(axis=0)  # (T, P)
        shown += [(word, over(images[0], row.reshape(side, side))) for word, row in zip(chosen, weights)]
    return tiles(shown, "where each word looks, in the last block", columns=6, pixel=3.5)
