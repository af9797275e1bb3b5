"""What Sphinx lacks for the site: formulas as MathML, which browsers draw by themselves, and pages of the source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx.addnodes import pending_xref

from .reference import known

ROOT = Path(__file__).resolve().parents[2]
LARGEST = 300_000  # bytes of a file that is shown
LEFT_OUT = {"__pycache__", "build", "dist", "runs"}
FORMAT = HtmlFormatter(linespans="L", linenos="inline", nowrap=False)


def mathml(latex: str, block: bool) -> str:
    """A formula; `\\dots` is not known to docutils."""
    return tex2mathml(re.sub(r"\\dots(?![a-z])", r"\\ldots", latex), as_block=block)


def visit_math(writer: Any, node: nodes.math) -> None:
    writer.body.append(mathml(node.astext(), block=False))
    raise nodes.SkipNode


def visit_math_block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(mathml(node.astext(), block=True))
    raise nodes.SkipNode


def settle_annotations(app: Any, tree: nodes.document) -> None:
    """Let types in signatures lead to public names of their package or of minigrad, and never to one that is only called alike."""
    for name in [*tree.findall(pending_xref)]:
        if name.hasattr("refspecific"):
            options = (f"{name.get('py:module')}.{name['reftarget']}", f"minigrad.{name['reftarget']}")
            full = next((option for option in options if option in known()), None)
            if full is None:
                name.replace_self(name.children)
            else:
                name["reftarget"] = full
                del name["refspecific"]


def page_of(path: str) -> str:
    """The page of a file or folder of the checkout: `source/minigrad/engine/op.py`, `source/minigrad/engine/index`."""
    return f"source/{path}/index" if (ROOT / path).is_dir() else f"source/{path}"


def lead_to_source(app: Any, tree: nodes.document, page: str) -> None:
    """Make links to source:PATH lead to its page, which will be written."""
    for link in tree.findall(nodes.reference):
        if link.get("refuri", "").startswith("source:"):
            path, _, anchor = link["refuri"].removeprefix("source:").partition("#")
            app.source_paths.add(path)
            link["refuri"] = app.builder.get_relative_uri(page, page_of(path)) + (f"#{anchor}" if anchor else "")
            link["internal"] = True
            link["classes"] = [name for name in link["classes"] if name != "external"]


def source_pages(app: Any) -> Iterator[tuple[str, dict[str, Any], str]]:
    """The pages of all files and folders that something links to."""
    seen: set[str] = set()
    todo = sorted(app.source_paths)
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        if (ROOT / path).is_dir():
            inside = listed(ROOT / path)
            if app.config.all_sources:
                todo += [child.relative_to(ROOT).as_posix() for child in inside]
            body = f"<ul>{''.join(_item(app, path, child) for child in inside)}</ul>"
        else:
            body = f'<div class="source highlight">{_colored(ROOT / path)}</div>'
        yield page_of(path), {"title": path, "body": f"<h1>{escape(path)}</h1>{body}"}, "page.html"


def listed(folder: Path) -> list[Path]:
    """What a page of a folder lists: files that can be read, and folders of such."""
    found = [path for path in sorted(folder.iterdir()) if path.name not in LEFT_OUT and not path.name.startswith(".")]
    return [path for path in found if (listed(path) if path.is_dir() else _is_text(path))]


def _is_text(path: Path) -> bool:
    if path.stat().st_size > LARGEST:
        return False
    try:
        path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _item(app: Any, page: str, child: Path) -> str:
    """A line of a page of a folder: the name of a file or folder, and the first line of its docstring."""
    path = child.relative_to(ROOT).as_posix()
    source = child / "__init__.py" if child.is_dir() else child
    told = None
    if source.suffix == ".py" and source.is_file():
        told = re.match(r'r?"""(.+?)(?:"""|\n)', source.read_text(encoding="utf-8"))
    shown = f"<code>{escape(child.name)}</code>"
    if app.config.all_sources:
        shown = f'<a href="{escape(app.builder.get_relative_uri(page_of(page), page_of(path)))}">{shown}</a>'
    return f"<li>{shown} {escape(told[1] if told else '')}</li>"


def _colored(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    try:
        lexer = get_lexer_for_filename(path.name)
    except ClassNotFound:
        lexer = TextLexer()
    return highlight(text, lexer, FORMAT)


def _begin(app: Any) -> None:
    app.source_paths = set()


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    app.add_config_value("all_sources", True, "html")  # False: pages of folders only name what is in them
    app.connect("builder-inited", _begin)
    app.connect("doctree-read", settle_annotations)
    app.connect("doctree-resolved", lead_to_source)
    app.connect("html-collect-pages", source_pages)
    return {"parallel_read_safe": False, "parallel_write_safe": False}
