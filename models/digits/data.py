"""What the models of images learn from: digits that are drawn, or pictures in a folder, in three parts that share no image."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minigrad.data.images import read_labelled_images, resized
from minigrad.errors import ArgumentError

from .images import SIZE, as_ink, images


class Parts(NamedTuple):
    """Images (N, 1, S, S) and labels (N,) of each part, and the names of the classes; none for the ten digits."""

    train: tuple[np.ndarray, np.ndarray]
    valid: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]
    classes: tuple[str, ...] = ()


def size_of(config: Any) -> int:
    """Pixels along a side of the images of a config."""
    return getattr(config, "size", SIZE)


def parts_of(config: Any, path: str | None) -> Parts:
    """Drawn digits, or the pictures of a folder: a tenth of them to validate with and a tenth to test with, at most `held_out`.

    Where the files themselves say what is for testing, all of that is.
    """
    size = size_of(config)
    if path is None:
        drawn = [images(n, config.images_seed, part) for n, part in _sizes(config)]
        return Parts(*((resized(shown, (size, size)), labels) for shown, labels in drawn))
    found = read_labelled_images(path, (size, size))
    order = np.random.default_rng(config.images_seed).permutation(len(found.labels))
    held = min(len(order) // 10, config.held_out)
    if not held:
        raise ArgumentError(f"{path!r} has too few pictures", "at least 10", len(order))
    shown = as_ink(found.images)
    valid, test, train = (
        (shown[rows], found.labels[rows]) for rows in (order[:held], order[held : 2 * held], order[2 * held :])
    )
    if found.test_images is None or found.test_labels is None:
        return Parts(train, valid, test, found.classes)
    train = shown[order[held:]], found.labels[order[held:]]
    return Parts(train, valid, (as_ink(found.test_images), found.test_labels), found.classes)


def _sizes(config: Any) -> list[tuple[int, str]]:
    return [(config.images, "train"), (config.held_out, "valid"), (config.held_out, "test")]
