"""Files of pictures and sounds: PNG, folders with a sub-folder for each class, idx files as MNIST's, and WAV."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np

from minigrad.data.sounds import write_wav
from minigrad.viz.drawing.scene import png

rng = np.random.default_rng(0)


def idx(array: np.ndarray, code: int = 8) -> bytes:
    return bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def mnist(folder: Path, size: int = 6, count: int = 40) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for part, number in (("train", count), ("t10k", count // 2)):
        images = rng.integers(0, 256, (number, size, size)).astype("u1")
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(idx((np.arange(number) % 10).astype("u1")))
    return folder


def pictures(folder: Path, classes: tuple[str, ...] = ("cat", "dog"), count: int = 6, size: int = 8) -> Path:
    for label, name in enumerate(classes):
        (folder / name).mkdir(parents=True)
        for i in range(count):
            (folder / name / f"{i}.png").write_bytes(png(np.full((size, size, 3), 40 + 100 * label, np.uint8)))
    return folder


# What commands read that is said to be the reader's own, by name, and how it is made.
READERS_OWN = {
    "five.png": lambda path: path.write_bytes(png(np.zeros((20, 20, 3), np.uint8))),
    "scene.png": lambda path: path.write_bytes(png(np.full((32, 32, 3), 255, np.uint8))),
    "spoken.wav": lambda path: write_wav(path, np.sin(np.arange(4000) / 5), 8000),
    "pictures": lambda path: pictures(path),
    "mnist": lambda path: mnist(path, 28),
}
