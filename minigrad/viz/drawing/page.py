"""One-file pages: our own style and script, data as JSON that cannot end its element, and a policy that lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from .colors import DARK, LIGHT
from .scene import clean, role_classes

__all__ = ["as_data", "filled", "framed", "page", "resource"]

LARGEST = 1 << 23  # letters of a page inside a notebook


@cache
def resource(name: str) -> str:
    """The text of a file of minigrad/viz/pages."""
    return (files("minigrad.viz") / "pages" / name).read_text(encoding="utf-8")


def as_data(value: Any) -> str:
    """JSON for a <script> element: without any character that could end it or begin another; NaN and infinities as strings."""
    text = json.dumps(_finite(value), ensure_ascii=True, separators=(",", ":"), sort_keys=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)  # nan, inf, -inf
    if isinstance(value, dict):
        return {str(key): _finite(part) for key, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, (list, tuple)) else value


def filled(name: str, /, **parts: str) -> str:
    """The text of a file of minigrad/viz/pages, with the `parts` that it has places for."""
    return Template(resource(name)).substitute(**parts)


def page(title: str, body: str, data: Any = None, name: str = "", live: bool = False) -> str:
    """A page that needs no network: `body` is HTML whose texts are already escaped.

    A page of a `name` has NAME.css, NAME_numbers.js and NAME.js, which find `data` parsed as `DATA`. Only they may run:
    the policy names their hash. A `live` page may also ask the server it came from.
    """
    own = ("_numbers.js", ".js", ".css") if name else ()
    *scripts, sheets = [resource(name + ending) for ending in own] or [""]
    code = "\n".join(["'use strict';", resource("common.js"), *scripts])
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    connect = " connect-src 'self';" if live else ""
    allowed = f"script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:;{connect}"
    policy = f"default-src 'none'; {allowed} base-uri 'none'; form-action 'none'"
    light, dark = ("".join(f"--{role}:{color};" for role, color in colors.items()) for colors in (LIGHT, DARK))
    style = "\n".join([filled("themes.css", light=light, dark=dark), role_classes(), resource("common.css"), sheets])
    title = escape(clean(title))
    return filled("page.html", policy=policy, title=title, style=style, body=body, data=as_data(data), code=code)


def framed(text: str, height: int = 640) -> str | None:
    """A page inside a notebook, in a frame that reaches nothing of the notebook; None for one that would make it too large."""
    look = f'sandbox="allow-scripts" style="width:100%;height:{height}px;border:0"'
    return f'<iframe {look} srcdoc="{escape(text)}"></iframe>' if len(text) < LARGEST else None
