"""Pictures that people have: files of pictures, folders with a sub-folder for each class, and the idx files of MNIST.

Sizes are checked against limits before anything is allocated. Pillow, the extra `images`, reads files of pictures.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import MissingExtraError, install_hint
from .errors import DataError
from .unpacking import MAX_BYTES, unpacked

__all__ = ["FORMATS", "LabelledImages", "read_idx", "read_image", "read_labelled_images"]

FORMATS = ("PNG", "JPEG", "GIF", "BMP", "PPM", "WEBP")
SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".pgm", ".ppm", ".webp")
MAX_PIXELS = 2**24
MAX_IMAGES = 200_000
MOST_CLASSES = 1000
_DTYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}  # by the third byte of an idx file
_PARTS = {"train": ("train-images", "train-labels"), "test": ("t10k-images", "t10k-labels")}


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Images (N, channels, height, width) of float32 from 0 to 1, their labels (N,), and the names of the classes.

    Where the files say which are for testing, these are `test_images` and `test_labels`.
    """

    images: np.ndarray
    labels: np.ndarray
    classes: tuple[str, ...]
    test_images: np.ndarray | None = None
    test_labels: np.ndarray | None = None


def read_image(
    path: str | os.PathLike[str], size: tuple[int, int] | None = None, color: bool = False, max_pixels: int = MAX_PIXELS
) -> np.ndarray:
    """A file of a picture as float32 from 0 to 1, stretched to a size (height, width): (1, H, W), or (3, H, W) in colour.

    What is transparent is white.
    """
    pillow, name = _pillow(), os.fspath(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pillow.open(path, formats=FORMATS) as picture:
                width, height = picture.size
                _check_pixels(name, width, height, max_pixels)
                picture = picture.convert("RGBA")
    except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise DataError(f"read_image: {name} cannot be read: {reason}", f"a picture: {', '.join(FORMATS)}") from None
    white = pillow.new("RGBA", picture.size, "white")
    picture = pillow.alpha_composite(white, picture).convert("RGB" if color else "L")
    if size is not None and picture.size != size[::-1]:
        picture = picture.resize(
            size[::-1], pillow.Resampling.BOX if _shrinks(picture.size, size) else pillow.Resampling.BILINEAR
        )
    pixels = np.asarray(picture, np.float32) / 255
    return np.ascontiguousarray(np.moveaxis(np.atleast_3d(pixels), -1, 0))  # (H, W, C) -> (C, H, W)


def _shrinks(old: tuple[int, int], new: tuple[int, int]) -> bool:
    return old[0] >= new[1] and old[1] >= new[0]


def _check_pixels(name: str, width: int, height: int, max_pixels: int) -> None:
    if width * height > max_pixels:
        raise DataError(
            f"read_image: {name} is too large",
            f"at most {max_pixels:,} pixels",
            f"{width:,} x {height:,}",
            "make it smaller",
        )


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtraError(
            "pictures are read by Pillow, which is not installed", fix=install_hint("images")
        ) from error
    return Image


def resized(images: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Images stretched to a size, each new pixel the mean of what it covers: (N, C, H, W) -> (N, C, *size)"""
    if images.shape[2:] == size:
        return images
    down, across = (_shares(old, new) for old, new in zip(images.shape[2:], size))  # (height, H), (width, W)
    return (down @ images @ across.T).astype("float32")


def _shares(old: int, new: int) -> np.ndarray:
    """How much of each new pixel each old one covers: (new, old)"""
    edges, pixels = np.arange(old + 1) * (new / old), np.arange(new)[:, None]
    shares = np.clip(np.minimum(edges[1:], pixels + 1) - np.maximum(edges[:-1], pixels), 0, None)
    return shares.astype("float32")


def read_idx(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> np.ndarray:
    """The array of an idx file, as MNIST's are, also in a gzip or zip."""
    content, name = unpacked(path, max_bytes=max_bytes)
    axes = content[3] if len(content) > 3 else 0
    if content[:2] != b"\0\0" or len(content) < 4 or content[2] not in _DTYPES or not 1 <= axes <= 8:
        raise DataError(
            f"read_idx: {name} is no idx file", "two zeros, a dtype and the number of axes", content[:4].hex(" ")
        )
    start = 4 + 4 * axes
    if len(content) < start:
        raise DataError(f"read_idx: {name} ends within its head", f"{start} bytes", f"{len(content)} bytes")
    shape = tuple(int(n) for n in np.frombuffer(content, ">u4", axes, 4))
    dtype = np.dtype(_DTYPES[content[2]])
    if len(content) - start != math.prod(shape) * dtype.itemsize:
        expected = f"{math.prod(shape) * dtype.itemsize:,} bytes after the head, for the shape {shape}"
        raise DataError(
            f"read_idx: the size of {name} is not what its head says", expected, f"{len(content) - start:,} bytes"
        )
    return np.frombuffer(content, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))


def read_labelled_images(
    path: str | os.PathLike[str], size: tuple[int, int], color: bool = False, max_images: int = MAX_IMAGES
) -> LabelledImages:
    """A folder with a sub-folder of pictures for each class, or one with the four idx files of MNIST; stretched to a size."""
    folder = Path(path)
    if not folder.is_dir():
        raise DataError(
            f"read_labelled_images: {folder} is no folder",
            "a folder with a sub-folder of pictures for each class, or idx files",
        )
    names = sorted(entry.name for entry in folder.iterdir())
    if any(name.startswith("train-images") for name in names):
        return _from_idx(folder, names, size)
    classes = [name for name in names if (folder / name).is_dir() and not name.startswith(".")]
    if not 2 <= len(classes) <= MOST_CLASSES:
        raise DataError(
            f"read_labelled_images: {folder} has no classes", f"from 2 to {MOST_CLASSES:,} sub-folders, one for each class",
            f"{len(classes)} sub-folders",
        )  # fmt: skip
    found = [(file, label) for label, name in enumerate(classes) for file in _pictures(folder / name)]
    if len(found) > max_images:
        raise DataError(
            f"read_labelled_images: {folder} has too many pictures", f"at most {max_images:,}", f"{len(found):,}"
        )
    images = np.empty((len(found), 3 if color else 1, *size), np.float32)
    for image, (file, _) in zip(images, found):
        image[...] = read_image(file, size, color)
    return LabelledImages(images, np.array([label for _, label in found]), tuple(classes))


def _pictures(folder: Path) -> list[Path]:
    files = sorted(file for file in folder.iterdir() if file.suffix.lower() in SUFFIXES and file.is_file())
    if not files:
        raise DataError(f"read_labelled_images: {folder} has no pictures", f"files ending in {', '.join(SUFFIXES)}")
    return files


def _from_idx(folder: Path, names: Sequence[str], size: tuple[int, int]) -> LabelledImages:
    parts = {}
    for part, starts in _PARTS.items():
        files = [next((name for name in names if name.startswith(start)), None) for start in starts]
        if None in files:
            raise DataError(f"read_labelled_images: {folder} lacks idx files", ", ".join(starts), ", ".join(names[:8]))
        images, labels = (read_idx(folder / str(file)) for file in files)
        if images.ndim != 3 or labels.shape != images.shape[:1] or images.dtype != np.uint8 or labels.dtype != np.uint8:
            got = f"{images.shape} of {images.dtype}, {labels.shape} of {labels.dtype}"
            raise DataError(
                f"read_labelled_images: images and labels in {folder} do not fit", "(N, H, W) and (N,) of bytes", got
            )
        parts[part] = resized(images[:, None].astype(np.float32) / 255, size), labels.astype(np.int64)
    classes = tuple(str(i) for i in range(int(parts["train"][1].max(initial=0)) + 1))
    if parts["test"][1].max(initial=0) >= len(classes):
        raise DataError(
            f"read_labelled_images: {folder} tests classes that no training image has", f"labels below {len(classes)}"
        )
    return LabelledImages(*parts["train"], classes, *parts["test"])
