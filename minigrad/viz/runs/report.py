"""`report.html`: a run in one page that opens anywhere without a network: what was asked for, curves, pictures, samples."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...saving import check_folder, write_atomically
from ...train.run_data import FRAME, SAMPLE, Best, Curve, RunData, check_run, panels_of, read_run, shown_path, text_of
from ..drawing.page import filled, page
from ..drawing.scene import clean
from .curves import PANELS, label_room, panel

__all__ = ["About", "Setting", "contents", "page_of", "report"]

POINTS = 2000  # of a curve that the page can read out
OPEN = "open it, to look into its boxes and to step through: <code>minigrad graph {} -o graph.html</code>"
WEIGHT = 1 << 24  # bytes of pictures, beyond which a report would be hard to send


@dataclass(frozen=True)
class Setting:
    """One of the settings of a run; where its default is known, it is seen whether it was changed."""

    name: str
    value: Any
    default: Any = None
    help: str = ""
    known: bool = False

    @property
    def changed(self) -> bool:
        """Whether it is another than the default."""
        return self.known and self.value != self.default


@dataclass(frozen=True)
class About:
    """What a run directory does not tell itself: of which model it is, and what its graph looks like."""

    summary: str = ""
    settings: Sequence[Setting] = ()
    graph: str = ""  # an SVG that Scene.svg(standalone=False) made
    no_graph: str = ""  # why there is none


def report(run: str | os.PathLike[str], path: str | os.PathLike[str] | None = None, about: About | None = None) -> Path:
    """Write the page of a run, as `report.html` into its directory unless `path` says otherwise; returns where it is.

    A run that is not finished, or damaged, is shown as far as it goes.
    """
    check_run(run)
    target = Path(run) / "report.html" if path is None else Path(path)
    if target.suffix.lower() != ".html":
        raise ArgumentError(f"{os.fspath(target)!r} is no page", ".html", target.suffix, "end its name in .html")
    check_folder(target)
    try:
        write_atomically(target, page_of(read_run(run), about or About()).encode())
    except OSError as error:
        what = f"{os.fspath(target)!r} cannot be written: {error.strerror}"
        raise ArgumentError(what, fix="check the folder and its permissions") from None
    return target


def page_of(run: RunData, about: About, live: int | None = None) -> str:
    """The page of a run; a `live` one, of this version, goes on asking the server that it came from."""
    title = str(run.part("config").get("model") or run.name)
    found = contents(run)
    own = run.part("config").get("config")
    values = {"settings": own if isinstance(own, dict) else run.part("config"), "training": run.part("training")}
    values["versions"] = run.part("versions")
    tables = {name: _table([Setting(*pair) for pair in part.items()]) for name, part in values.items()}
    if about.settings:
        tables["settings"] = _table(about.settings)
    data = {**found, "tables": tables, "live": live is not None, "version": live or 0}
    graph = f'<div class="scroll">{about.graph}</div>' if about.graph else ""
    how = OPEN.format(escape(clean(shlex.quote(shown_path(run.folder)))))
    texts = {"title": escape(clean(title)), "about": escape(clean(about.summary))}
    body = filled("report.html", graph=graph, caption=how if graph else escape(clean(about.no_graph, 500)), **texts)
    return page(f"{clean(title, 60)}: {clean(run.name, 100)}", body, data, "report", live is not None)


def contents(
    run: RunData, frames: Sequence[int] | None = None, samples: Sequence[int] | None = None, curves: bool = True
) -> dict[str, Any]:
    """What changes while a run trains: the curves, if they are asked for, and of frames and samples all steps and the
    content of those asked for, which are all by default."""
    found = {
        "scores": [[clean(label, 60), clean(value)] for label, value in run.scores()],
        "summary": [[clean(label, 60), clean(value)] for label, value in run.summary()],
        "progress": run.progress(),
        "note": run.note(),
        "problems": run.problems,
        "frames": _parts(run.frames, frames, FRAME),
        "samples": _parts(run.samples, samples, SAMPLE),
    }
    if not curves:
        return found
    panels = dict(list(panels_of(run.curves).items())[:PANELS])
    room = label_room(panels)
    readable = {column: _readable(curve) for group in panels.values() for column, curve in group.items()}
    return {**found, "curves": readable, "panels": [_drawn(name, panels[name], run.best, room) for name in panels]}


def _drawn(name: str, group: Mapping[str, Curve], best: Best, room: float) -> dict[str, str]:
    plain, log = (panel(name, group, best, is_log, room).svg(standalone=False) for is_log in (False, True))
    return {"name": clean(name, 60), "plain": plain, "log": log if log != plain else ""}


def _readable(curve: Curve) -> list[list[float]]:
    places = np.unique(np.linspace(0, len(curve) - 1, min(len(curve), POINTS)).round().astype(int))
    return [[curve[i][0] for i in places], [curve[i][1] for i in places]]


def _parts(files: Mapping[int, Path], asked: Sequence[int] | None, most: int) -> dict[str, Any]:
    """The steps of files, and the texts of those asked for, as far as they are not too much together."""
    texts: dict[int, str] = {}
    for step in files if asked is None else [step for step in files if step in set(asked)]:
        text = text_of(files[step], most)
        if text and sum(map(len, texts.values())) + len(text) < WEIGHT:
            texts[step] = text
    return {"steps": list(texts if asked is None else files), "texts": texts}


def _table(settings: Sequence[Setting]) -> list[list[str]]:
    """Rows, the settings that were changed first: name, value, help, and the default where it is another."""
    order = sorted(settings, key=lambda s: not s.changed)
    return [[clean(s.name, 60), _value(s.value), clean(s.help), *[_value(s.default)] * s.changed] for s in order]


def _value(value: Any) -> str:
    return clean(",".join(map(str, value)) if isinstance(value, (list, tuple)) else value)
