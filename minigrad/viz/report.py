"""`report.html`: a run in one page that opens anywhere without a network: what was asked for, curves, pictures, samples."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.errors import ArgumentError
from ..saving import check_folder, write_atomically
from .curves import PANELS, Best, is_wide, panel, room_for
from .files import check_run, text_of
from .metrics import Curve, panels_of
from .page import page
from .runs import FRAME, SAMPLE, Shown, read_run
from .scene import clean

__all__ = ["About", "Setting", "contents", "page_of", "report"]

POINTS = 2000  # of a curve that the page can read out
LETTERS = 200  # of a value in a table
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
    shown = read_run(run)
    target = shown.folder / "report.html" if path is None else Path(path)
    if target.suffix.lower() != ".html":
        raise ArgumentError(f"{os.fspath(target)!r} is no page", ".html", target.suffix, "end its name in .html")
    check_folder(target)
    try:
        write_atomically(target, page_of(shown, about or About()).encode())
    except OSError as error:
        raise ArgumentError(
            f"{os.fspath(target)!r} cannot be written: {error.strerror}", fix="check the folder and its permissions"
        ) from None
    return target


def page_of(shown: Shown, about: About, live: int | None = None) -> str:
    """The page of a run; a `live` one, of this version, goes on asking the server that it came from."""
    title = str(shown.part("config").get("model") or shown.name)
    status = '<span id="status" class="faint" role="status">training</span>' if live is not None else ""
    found = contents(shown)
    body = "\n".join(
        [
            f'<header><h1>{_text(title)}</h1><span class="faint">{_text(about.summary)}</span><span class="spacer"></span>'
            f'{status}<button data-switch="theme">light / dark</button></header>',
            f'<dl id="summary">{_pairs(found["summary"])}</dl>',
            f'<p id="problems" class="faint">{_text("; ".join(shown.problems), 1000)}</p>',
            _curves_section(found["panels"]),
            '<section id="frames" hidden><h2>What the model does</h2></section>',
            '<section id="samples" hidden><h2>Samples</h2></section>',
            _graph_section(about),
            _settings_section(shown, about),
            _folded("How it was trained", shown.part("training")),
            _folded("Versions", shown.part("versions")),
        ]
    )
    data = {**found, "panels": [], "live": live is not None, "version": live or 0}
    return page(
        f"{clean(title, 60)}: {clean(shown.name, 100)}", body, data, ["report.js"], ["report.css"], live is not None
    )


def contents(
    shown: Shown, frames: Sequence[int] | None = None, samples: Sequence[int] | None = None, curves: bool = True
) -> dict[str, Any]:
    """What changes while a run trains: the curves, if they are asked for, and of frames and samples all steps and the
    content of those asked for, which are all by default."""
    found = {
        "summary": [[clean(label, 60), clean(value, LETTERS)] for label, value in shown.summary()],
        "problems": shown.problems,
        "frames": _parts(shown.frames, frames, FRAME),
        "samples": _parts(shown.samples, samples, SAMPLE),
    }
    if not curves:
        return found
    panels = dict(list(panels_of(shown.curves).items())[:PANELS])
    room = room_for(panels)
    readable = {column: _readable(curve) for group in panels.values() for column, curve in group.items()}
    return {**found, "curves": readable, "panels": [_drawn(name, panels[name], shown.best, room) for name in panels]}


def _drawn(name: str, group: Mapping[str, Curve], best: Best, room: float) -> dict[str, str]:
    """A panel as it is, and in powers of ten where these tell more."""
    values = np.array([value for curve in group.values() for _, value in curve if math.isfinite(value)])
    plain = panel(name, group, best, False, room).svg(standalone=False)
    log = panel(name, group, best, True, room).svg(standalone=False) if is_wide(values) else ""
    return {"name": clean(name, 60), "plain": plain, "log": log}


def _readable(curve: Curve) -> list[list[float]]:
    """The steps and the values that the page reads out: all, or evenly some."""
    places = np.unique(np.linspace(0, len(curve) - 1, min(len(curve), POINTS)).round().astype(int))
    return [[curve[i][0] for i in places], [curve[i][1] for i in places]]


def _parts(files: Mapping[int, Path], asked: Sequence[int] | None, most: int) -> dict[str, Any]:
    """The steps of files, and the texts of those asked for, as far as they are not too much together."""
    texts: dict[int, str] = {}
    weight = 0
    for step in files if asked is None else [step for step in files if step in set(asked)]:
        text = text_of(files[step], most)
        if text and weight + len(text) < WEIGHT:
            texts[step] = text
            weight += len(text)
    known = texts if asked is None else files
    return {"steps": list(known), "texts": {str(step): text for step, text in texts.items()}}


def _text(value: Any, longest: int = LETTERS) -> str:
    return escape(clean(value, longest))


def _pairs(pairs: Sequence[Sequence[str]]) -> str:
    return "".join(f"<div><dt>{_text(label)}</dt><dd>{_text(value)}</dd></div>" for label, value in pairs)


def _curves_section(panels: Sequence[Mapping[str, str]]) -> str:
    hidden = "" if panels else " hidden"
    figures = "".join(
        f'<figure tabindex="0" data-panel="{escape(p["name"])}"><div class="plain">{p["plain"]}</div>'
        f'<div class="log">{p["log"] or p["plain"]}</div><figcaption class="mono"></figcaption></figure>'
        for p in panels
    )
    return (
        f'<section id="curves"{hidden}><h2>Curves</h2>'
        '<label class="faint"><input type="checkbox" id="log"> powers of ten where values differ much</label>'
        f'<div class="grid">{figures}</div></section>'
    )


def _graph_section(about: About) -> str:
    if not about.graph and not about.no_graph:
        return ""
    inside = (
        f'<div class="scroll">{about.graph}</div>'
        '<p class="faint">open it, to look into its boxes and to step through: <code>minigrad graph DIR -o graph.html</code></p>'
        if about.graph
        else f'<p class="faint">{_text(about.no_graph, 500)}</p>'
    )
    return f'<section id="graph"><h2>The model</h2>{inside}</section>'


def _settings_section(shown: Shown, about: About) -> str:
    """The settings, those that were changed first."""
    story = shown.part("config")
    own = story.get("config")
    settings = list(about.settings) or [
        Setting(name, value) for name, value in (own if isinstance(own, dict) else story).items()
    ]
    if not settings:
        return ""
    rows = [
        f'<tr{" class=changed" if s.changed else ""}><td class="mono">{_text(s.name, 60)}</td><td class="mono">{_text(_value(s.value))}</td>'
        f'<td class="mono faint">{_text("default " + _value(s.default)) if s.changed else ""}</td>'
        f'<td class="faint">{_text(s.help)}</td></tr>'
        for s in sorted(settings, key=lambda s: not s.changed)
    ]
    return f'<section id="settings"><h2>Settings</h2><div class="scroll"><table>{"".join(rows)}</table></div></section>'


def _folded(title: str, values: Mapping[str, Any]) -> str:
    rows = "".join(
        f'<tr><td class="mono">{_text(name, 60)}</td><td class="mono">{_text(_value(value))}</td></tr>'
        for name, value in values.items()
    )
    return f"<details><summary>{_text(title)}</summary><table>{rows}</table></details>" if rows else ""


def _value(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
