"""The task "text to image": `paint` paints what a text says, as a picture, or as the film of how it came about."""

from __future__ import annotations

import io
import os
from argparse import ArgumentParser, Namespace
from typing import Any

import numpy as np

from ...errors import ArgumentError, MissingExtraError, install_hint, printable
from ...saving import check_folder, write_atomically
from .task import Task, TaskCommand, utf8_text, whole_number

__all__ = ["TEXT_TO_IMAGE", "paint", "write_film"]

SUFFIXES = (".png", ".gif")
LEAST = 192  # pixels along a side of a file; smaller pictures are enlarged
DURATIONS = (80, 2000)  # ms for which a film shows a frame, and its last one


def paint(loaded: Any, text: str, seed: int = 0) -> np.ndarray:
    """How a picture of a text comes about: (steps + 1, 3, H, W) from 0 to 1, the picture last.

    The model has `paint(texts, seed)`, which makes (steps + 1, N, 3, H, W).
    """
    if not hasattr(loaded.model, "paint"):
        raise ArgumentError(f"{loaded.spec.name} cannot paint", "`paint(texts, seed)` in its model")
    return np.asarray(loaded.model.paint([text], seed))[:, 0]


def write_film(path: str | os.PathLike[str], film: np.ndarray) -> None:
    """The last picture of a film (F, 3, H, W) from 0 to 1 as .png, or all of it as .gif."""
    from ...viz.drawing.scene import png

    target = check_target(path)
    frames = [_pixels(image) for image in (film if target.endswith(".gif") else film[-1:])]
    write_atomically(path, _gif(frames) if target.endswith(".gif") else png(frames[-1]))


def check_target(path: str | os.PathLike[str]) -> str:
    """The name of a file in small letters, if a picture can be written there."""
    target = os.fspath(path).lower()
    if not target.endswith(SUFFIXES):
        raise ArgumentError(f"paint: {os.fspath(path)!r} is no picture", "a name in .png, or in .gif for the film")
    check_folder(path)
    return target


def _pixels(image: np.ndarray) -> np.ndarray:
    """A picture (3, H, W) from 0 to 1 as (H · n, W · n, 3) of uint8."""
    times = max(-(-LEAST // max(image.shape[1:])), 1)
    whole = np.moveaxis(np.round(255 * np.clip(image, 0, 1)), 0, -1).astype(np.uint8)
    return np.ascontiguousarray(whole.repeat(times, axis=0).repeat(times, axis=1))


def _gif(frames: list[np.ndarray]) -> bytes:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtraError(
            "films are written by Pillow, which is not installed", fix=install_hint("images")
        ) from error
    first, *rest = [Image.fromarray(frame) for frame in frames]
    made, (each, last) = io.BytesIO(), DURATIONS
    first.save(made, "GIF", save_all=True, append_images=rest, duration=[each] * len(rest) + [last], loop=0)
    return made.getvalue()


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "run_directory", metavar="DIR", help="a run's directory, a checkpoint file, or an exported folder"
    )
    parser.add_argument("text", type=utf8_text, metavar="TEXT", help="what is to be painted")
    parser.add_argument(
        "-o",
        "--out",
        default="painted.png",
        metavar="FILE",
        help="a .png, or a .gif with the film (default: painted.png)",
    )
    parser.add_argument(
        "--seed", type=whole_number, default=0, metavar="N", help="of the noise it begins with (default: 0)"
    )


def _run(loaded: Any, options: Namespace) -> None:
    write_film(options.out, loaded.paint(options.text, seed=options.seed))
    print(printable(f"wrote {options.out}"))


PAINT = TaskCommand(
    "paint what a text says",
    'minigrad paint runs/paint "a small red circle above a large blue square" -o circle.gif',
    _arguments,
    _run,
    lambda options: check_target(options.out),
)
TEXT_TO_IMAGE = Task(
    "text to image",
    verbs={"paint": paint},
    commands={"paint": PAINT},
    first_use=lambda run, text: ["paint", run, text],
)
