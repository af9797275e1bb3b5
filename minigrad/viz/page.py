"""One-file pages: our own style and script, data as JSON that cannot end its element, and a policy that lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from .colors import DARK, LIGHT
from .scene import clean, role_classes, style_of

__all__ = ["as_data", "page", "resource"]


@cache
def resource(name: str) -> str:
    """The text of a file of minigrad/viz/pages."""
    return (files("minigrad.viz") / "pages" / name).read_text(encoding="utf-8")


def as_data(value: Any) -> str:
    """JSON for a <script> element: without any character that could end it or begin another; NaN and infinities as strings."""
    text = json.dumps(_finite(value), ensure_ascii=True, separators=(",", ":"), sort_keys=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _finite(value: Any) -> Any:
    """The same, with numbers that JSON lacks as words."""
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)  # nan, inf, -inf
    if isinstance(value, dict):
        return {str(key): _finite(part) for key, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, (list, tuple)) else value


def page(
    title: str, body: str, data: Any, scripts: Sequence[str], styles: Sequence[str] = (), live: bool = False
) -> str:
    """A page that needs no network: `body` is HTML that was escaped by who made it; `scripts` and `styles` name resources.

    The scripts find `data` parsed as `DATA`. Only they may run: the policy names their hashes. A `live` page may also
    ask the server it came from.
    """
    code = "\n".join([f"'use strict';\n{resource('common.js')}", *[resource(name) for name in scripts]])
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    connect = " connect-src 'self';" if live else ""
    allowed = f"script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:;{connect}"
    policy = f"default-src 'none'; {allowed} base-uri 'none'; form-action 'none'"
    style = "\n".join([_colors(), role_classes(), resource("common.css"), *[resource(name) for name in styles]])
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(clean(title))}</title>\n<style>\n{style}\n</style></head>\n<body>\n{body}\n"
        f'<script type="application/json" id="data">{as_data(data)}</script>\n<script>{code}</script>\n</body></html>\n'
    )


def _colors() -> str:
    """Light or dark as the system is, unless the page's own switch says otherwise."""
    dark = style_of(DARK)
    return (
        f":root{{{style_of(LIGHT)}color-scheme:light}}\n"
        f"@media (prefers-color-scheme:dark){{:root:not(.light){{{dark}color-scheme:dark}}}}\n"
        f":root.dark{{{dark}color-scheme:dark}}"
    )
