"""A page as text: one file with a policy that lets nothing in, in which only our own style and script may run."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from ... import __version__
from ...viz.drawing.colors import DARK, LIGHT
from ...viz.drawing.page import as_data, resource
from ...viz.drawing.page import filled as filled_style
from ...viz.drawing.scene import clean
from ...web.program import RUNTIME, runtime
from .content import Content

__all__ = ["html_of", "weight_scripts"]

TOKENIZERS = ("text", "tokenizers", "pretrained", "subwords")
WORKER = (*RUNTIME, *TOKENIZERS, "decoding", "tasks", "chat", "painting", "described", "worker")
PART = 6 * 2**20  # bytes of weights in a script beside a page; base64 wants a multiple of three
NAMES = {"int8": "8 bits each", "float32": "32 bits each", "packed": "packed as they came"}


@cache
def _part(name: str) -> str:
    """The text of a file of minigrad/web/pages."""
    return (files("minigrad.web") / "pages" / name).read_text(encoding="utf-8")


def html_of(loaded: Any, content: Content, weights: str | None = None, parts: int = 0) -> str:
    """The whole page of a loaded model whose weights are kept so; None for one that asks the server that it came from.

    With `parts`, the weights are not inside, but in so many scripts of `weight_scripts` beside it.
    """
    bytes_inside = bytes(content.programs.content)
    page = {
        "kind": content.kind, "settings": content.settings, "tokenizer": content.tokenizer,
        "programs": content.programs.forms, "tensors": content.programs.entries, "bytes": len(bytes_inside), "parts": parts,
    }  # fmt: skip
    where = ["remote.js"] if weights is None else ["beside.js" if parts else "inside.js", "local.js"]
    scripts = [resource("common.js"), *map(_part, ("link.js", *where, "rows.js", f"{content.view}.js"))]
    code = "\n".join(["'use strict';", *scripts])
    light, dark = ("".join(f"--{role}:{color};" for role, color in colors.items()) for colors in (LIGHT, DARK))
    style = "\n".join([filled_style("themes.css", light=light, dark=dark), resource("common.css"), _part("page.css")])
    reaches = "connect-src 'self'" if weights is None else "worker-src blob:"
    trusted = f"'{_digest(code)}'" + (" 'strict-dynamic'" if parts else "")  # what our own script loads
    policy = (
        f"default-src 'none'; script-src {trusted}; style-src '{_digest(style)}'; {reaches}; "
        "base-uri 'none'; form-action 'none'"
    )
    labels = {name: escape(clean(text)) for name, text in content.labels.items()}
    return Template(_part("page.html")).substitute(
        policy=policy,
        title=escape(clean(loaded.spec.name)),
        summary=escape(clean(loaded.spec.summary)),
        style=style,
        body=Template(_part(f"{content.view}.html")).substitute(**labels),
        facts=escape(_facts(loaded, weights)),
        data=as_data({"page": page, "shown": content.shown}),
        weights="" if parts else base64.b64encode(bytes_inside).decode(),
        worker="" if weights is None else "'use strict';\n" + runtime(*WORKER),
        code=code,
    )


def weight_scripts(content: Content) -> list[str]:
    """The weights as scripts, which a page may load from its own folder."""
    whole = memoryview(bytes(content.programs.content))
    parts = [whole[start : start + PART] for start in range(0, len(whole), PART)]
    return [f"weights('{base64.b64encode(part).decode()}');\n" for part in parts]


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _facts(loaded: Any, weights: str | None) -> str:
    state = loaded.model.state_dict().values()
    count = sum({id(weight.data): weight.size for weight in state}.values())  # a tied one once
    if weights is None:
        name = clean(loaded.spec.name)
        return f"{name}: {count:,} weights, on the server that this page came from. Made by minigrad {__version__}: minigrad serve RUN"
    return (
        f"{clean(loaded.spec.name)}: {count:,} weights, {NAMES[weights]}, after {loaded.step:,} steps of training. This page "
        f"needs no network and sends nothing anywhere. Made by minigrad {__version__}: minigrad export RUN page.html"
    )
