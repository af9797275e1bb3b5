"""Attention drawn over pictures: how much each patch is looked at, as light."""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.viz.drawing.scene import Image, Scene, Text

PIXEL, GAP, TITLE = 5.0, 14.0, 26.0


def over(image: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """A picture (C, H, W) from 0 to 1, tinted where the weights (rows, columns) of its patches are large: (H, W, 3) of uint8."""
    rows, columns = weights.shape
    light = np.repeat(
        np.repeat(weights / max(weights.max(), 1e-9), image.shape[1] // rows, 0), image.shape[2] // columns, 1
    )
    shown = np.broadcast_to(np.clip(image, 0, 1), (3, *image.shape[1:]))
    orange = np.array([0.95, 0.45, 0.05])[:, None, None]
    return (255 * np.moveaxis(shown * (1 - 0.65 * light) + 0.65 * light * orange, 0, -1)).astype(np.uint8)


def tiles(pictures: list[tuple[str, np.ndarray]], title: str, columns: int = 5, pixel: float = PIXEL) -> Scene:
    """Pictures of one size (H, W, 3), each below its name, some in a row."""
    high, wide = (n * pixel for n in pictures[0][1].shape[:2])
    shapes: list[Any] = [Text(GAP, 20, title, 12, bold=True)]
    for number, (name, pixels) in enumerate(pictures):
        x = GAP + number % columns * (wide + GAP)
        y = TITLE + 8 + number // columns * (high + TITLE)
        shapes += [Text(x, y + 10, name, 10), Image(x, y + 15, wide, high, pixels)]
    lines = -(-len(pictures) // columns)
    width = GAP + min(columns, len(pictures)) * (wide + GAP)
    return Scene(max(width, 420), TITLE + 8 + lines * (high + TITLE) + GAP, shapes, title)


def looked_at(loaded: Any) -> Scene:
    """One test picture of each class, at most ten, and what the whole looks at: the mean over the heads of the last block."""
    from minigrad_models.digits.data import parts_of

    from minigrad import viz

    config = loaded.config
    images, labels = parts_of(config, loaded.arguments["data"]).test
    names = config.classes or tuple(map(str, range(10)))
    chosen = [int(np.flatnonzero(labels == label)[0]) for label in range(len(names)) if (labels == label).any()][:10]
    side, shown = config.size // config.patch, []
    for number in chosen:
        seen = viz.attention(loaded.model, images[number][None]).layers[-1].weights.mean(axis=0)  # (1 + P, 1 + P)
        shown.append((names[labels[number]], over(images[number], seen[0, 1:].reshape(side, side))))
    return tiles(shown, "where the whole picture looks, in the last block")
