"""Pages to play with, without any installation: each is one file with traced programs of minigrad, as an exported model is.

The weights of XOR, optimisers that race, attention between vectors that can be dragged, a tokenizer, and the n² of attention.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from ...saving import write_atomically
from ...viz.drawing.colors import DARK, LIGHT
from ...viz.drawing.page import as_data, filled, resource
from ...web.program import RUNTIME, runtime
from .content import PLAYS, Play

__all__ = ["PLAYS", "html_of", "write_pages"]


def write_pages(folder: Path) -> Iterator[Path]:
    """Write all pages and an index of them, and yield each path."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, play in PLAYS.items():
        write_atomically(folder / f"{name}.html", html_of(play).encode(), durable=False)
        yield folder / f"{name}.html"
    links = "".join(
        f'<li><a href="{name}.html">{escape(p.title)}</a>: {escape(p.lead)}</li>' for name, p in PLAYS.items()
    )
    index = _filled(
        "Play",
        "Five pages that run in this browser; nothing leaves them.",
        f'<ul class="list">{links}</ul>',
        {},
        "",
        "",
    )
    write_atomically(folder / "index.html", index.encode(), durable=False)
    yield folder / "index.html"


def html_of(play: Play) -> str:
    """One page: its programs are traced now, and computed in the browser by the runtime of exported pages."""
    programs = play.programs()
    data = {"programs": programs.forms, "tensors": programs.entries, **play.data()}
    code = [runtime(*RUNTIME, *play.parts), resource("common.js"), _script("shared.js"), _script(f"{play.script}.js")]
    weights = base64.b64encode(bytes(programs.content)).decode()
    return _filled(
        play.title, play.lead, _script(f"{play.script}.html"), data, weights, "\n".join(["'use strict';", *code])
    )


@cache
def _script(name: str) -> str:
    return (files(__name__) / "scripts" / name).read_text(encoding="utf-8")


def _filled(title: str, lead: str, body: str, data: dict[str, Any], weights: str, code: str) -> str:
    light, dark = ("".join(f"--{role}:{color};" for role, color in colors.items()) for colors in (LIGHT, DARK))
    style = "\n".join([filled("themes.css", light=light, dark=dark), resource("common.css"), _script("play.css")])
    code = code or "\n".join(["'use strict';", resource("common.js")])
    policy = f"default-src 'none'; script-src '{_digest(code)}'; style-src '{_digest(style)}'; base-uri 'none'; form-action 'none'"
    return Template(_script("page.html")).substitute(
        policy=policy,
        title=escape(title),
        lead=escape(lead),
        style=style,
        body=body,
        data=as_data(data),
        weights=weights,
        code=code,
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
