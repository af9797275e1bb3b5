"""The reference: every public name with its signature, its docstring and a link to its source, as pages to read offline.

python -m docs.reference                  # writes build/reference; open index.html there
python -m docs.reference -o folder
"""

from __future__ import annotations

import argparse
import inspect
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

from minigrad.engine.op import OPS, Op
from minigrad.ops.composite import COMPOSITES, Composite
from minigrad.saving import write_atomically
from minigrad.viz.drawing.page import page
from minigrad.viz.drawing.scene import clean

__all__ = ["PACKAGES", "Entry", "described", "entries", "main", "pages"]

ROOT = Path(__file__).resolve().parent.parent
PARTS = (
    "autograd nn nn.functional nn.init nn.utils optim optim.lr_scheduler optim.swa_utils data train viz zoo decode metrics "
    "check array_api array_api.linalg array_api.fft ir compile tracer kernels parallel runtime saving formats tokenizers "
    "hub learn onnx transforms web serve"
)
PACKAGES = ("minigrad", *[f"minigrad.{part}" for part in PARTS.split()])
STYLE = """<style>
body { max-width: 1000px } a { color: var(--accent); text-decoration: none } a:hover { text-decoration: underline }
nav { margin: 8px 0; line-height: 1.7 } nav a { margin-right: 14px; white-space: nowrap } :target { background: var(--input) }
section { border-top: 1px solid var(--grid); padding: 12px 0; overflow-wrap: anywhere } .part { margin-left: 28px }
h2, h3 { font: 14px/1.5 'DejaVu Sans Mono', Menlo, Consolas, monospace; margin: 0 0 6px }
.source { float: right; margin-left: 14px; font-size: 12px; color: var(--faint) }
p, li { margin: 6px 0 } .text pre { background: var(--surface); padding: 8px; margin: 8px 0 }
</style>"""


class Bare(str):
    """A text whose repr is itself, for what a signature shows."""

    __repr__ = str.__str__


@dataclass(frozen=True)
class Entry:
    """A public name: `Linear` of minigrad.nn, or `Linear.forward`, whose owner is the class."""

    package: str
    name: str
    thing: Any
    owner: type | None = None

    @property
    def short(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def address(self) -> str:
        if inspect.ismodule(self.thing):
            return f"{self.package}.{self.name}.html"
        return f"{self.package}.html#{self.name}"


def entries(package: str) -> list[Entry]:
    """The names of a package, each class followed by what it defines itself."""
    module = import_module(package)
    found = []
    for name in sorted(module.__all__, key=str.lower):
        thing = getattr(module, name)
        found.append(Entry(package, name, thing))
        if isinstance(thing, type) and not _is_numpys(thing):
            names = [n for n in sorted(vars(thing)) if not n.startswith("_") or n == "__call__"]
            members = [n for n in names if _is_told(n, vars(thing)[n])]
            found += [Entry(package, f"{name}.{member}", getattr(thing, member), thing) for member in members]
    return found


def _is_told(name: str, member: Any) -> bool:
    """Whether a method or property says something that the class it is inherited from does not; `forward` says how to call it."""
    is_member = isinstance(member, property) or inspect.isroutine(member) and not isinstance(member, staticmethod)
    text = member.__doc__ or ""
    return is_member and (name == "forward" or bool(text) and not text.startswith("Not here: "))


def _is_numpys(thing: Any) -> bool:
    return getattr(thing, "__module__", "") == "numpy"


def signature(entry: Entry) -> str:
    """How it is called: without `self`, annotations as they are written, no addresses in memory."""
    if not callable(entry.thing) or _is_numpys(entry.thing) or getattr(entry.thing, "_is_protocol", False):
        return ""
    if isinstance(entry.thing, Op):
        return str(entry.thing.signature)
    if isinstance(entry.thing, type) and entry.thing.__init__ is object.__init__:  # type: ignore[misc]
        return "()"
    try:
        found = inspect.signature(entry.thing)
    except (TypeError, ValueError):
        return "(…)"
    given = [p.replace(annotation=_written(p.annotation), default=_shown(p.default)) for p in found.parameters.values()]
    is_method = entry.owner is not None and inspect.isfunction(inspect.getattr_static(entry.owner, entry.short))
    result = found.empty if isinstance(entry.thing, type) else _written(found.return_annotation)
    return str(found.replace(parameters=given[is_method:], return_annotation=result))


def _written(annotation: Any) -> Any:
    return Bare(annotation) if isinstance(annotation, str) else annotation


def _shown(default: Any) -> Any:
    return default if default is inspect.Parameter.empty else Bare(re.sub(" at 0x[0-9a-f]+", "", repr(default)))


def text_of(entry: Entry) -> str:
    """The docstring; of a plain value, the value."""
    if _is_numpys(entry.thing):
        return f"NumPy's `{entry.thing.__name__}`."
    if callable(entry.thing) or isinstance(entry.thing, property) or inspect.ismodule(entry.thing):
        return inspect.cleandoc(entry.thing.__doc__ or "")
    return f"`{clean(repr(entry.thing))}`"


def source_of(entry: Entry) -> tuple[str, int] | None:
    """The file, seen from the checkout, and the line; None for a plain value, and for what is NumPy's."""
    thing: Any = entry.thing.fget if isinstance(entry.thing, property) else inspect.unwrap(entry.thing)
    if getattr(getattr(thing, "__code__", None), "co_filename", "").endswith(f"{os.sep}attach.py"):
        op: Any = {**COMPOSITES, **OPS}.get(entry.short)  # its own file, not the one where ops become methods
        thing = thing if op is None else inspect.unwrap(op.forward if isinstance(op, Op) else op.function)
    if isinstance(thing, (Op, Composite)):
        thing = thing.forward if isinstance(thing, Op) else thing.function
    try:
        path, line = Path(inspect.getsourcefile(thing) or ""), inspect.getsourcelines(thing)[1]
    except (TypeError, OSError):
        return None
    return (path.relative_to(ROOT).as_posix(), max(line, 1)) if path.is_relative_to(ROOT) else None


def described(text: str, links: Mapping[str, str], package: str = "minigrad") -> str:
    """A docstring as HTML: paragraphs, lists, and what is code. A name in backticks leads to its entry."""
    made = []
    for block in re.split(r"\n\s*\n", text):
        words, example, rest = ("", block[:4], block[4:]) if block.startswith(">>> ") else block.partition("\n>>> ")
        if words.startswith("    ") or re.search(r"\S {3,}\S", words):  # a piece of code, or columns
            made.append(_code_block(words))
        elif words.startswith("- "):
            items = [_sentence(item, links, package) for item in re.split("^- ", words, flags=re.MULTILINE)[1:]]
            made.append("<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>")
        elif words:
            made.append(f"<p>{_sentence(words, links, package)}</p>")
        if example:
            made.append(_code_block(f">>> {rest}"))
    return f'<div class="text">{"".join(made)}</div>'


def _code_block(text: str) -> str:
    return "<pre>" + "\n".join(_plain(line) for line in text.split("\n")) + "</pre>"


def _plain(text: str) -> str:
    return escape(clean(text, len(text) + 1))


def _sentence(text: str, links: Mapping[str, str], package: str) -> str:
    parts = text.replace("\n", " ").split("`")
    return "".join(_code(part, links, package) if i % 2 else _plain(part) for i, part in enumerate(parts))


def _code(text: str, links: Mapping[str, str], package: str) -> str:
    """Code inside of a sentence, a link where it begins with a name that is known in this package, or in all."""
    begin = re.match(r"(?:(?:minigrad|mg)\.)?([\w.]*)", text)
    name = begin[1] if begin else ""
    address = links.get(f"{package}.{name}") or links.get(f"minigrad.{name}")
    shown = f"<code>{_plain(text)}</code>"
    return f'<a href="{escape(address)}">{shown}</a>' if address else shown


def _entry(entry: Entry, links: Mapping[str, str]) -> str:
    level, kind = (2, "name") if entry.owner is None else (3, "part")
    source = source_of(entry)
    link = f'<a class="source" href="source/{_file(source[0])}#L{source[1]}">source</a>' if source else ""
    title = f"<h{level}>{link}<b>{_plain(entry.name)}</b>{_plain(signature(entry))}</h{level}>"
    bases = [base.__name__ for base in getattr(entry.thing, "__mro__", ())[1:]]
    public = [base for base in bases if f"{entry.package}.{base}" in links or f"minigrad.{base}" in links]
    more = f"\n\nIt has all that `{public[0]}` has." if public else ""
    text = described(text_of(entry) + more, links, entry.package)
    return f'<section id="{escape(entry.name)}" class="{kind}">{title}{text}</section>'


def _file(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".") + ".html"


def _source_page(path: str) -> str:
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    shown = "\n".join(f'<span id="L{i}">{_plain(line)}</span>' for i, line in enumerate(lines, 1))
    menu = '<nav><a href="../index.html">index</a></nav>'
    return page(path, f"{STYLE}<h1>{_plain(path)}</h1>{menu}<pre>{shown}</pre>")


def _package_page(package: str, found: Sequence[Entry], links: Mapping[str, str]) -> str:
    module = import_module(package)
    menu = " ".join(f'<a href="{name}.html">{name}</a>' for name in ("index", *PACKAGES))
    own = [Entry(package, package, module), *[entry for entry in found if not inspect.ismodule(entry.thing)]]
    body = "".join(_entry(entry, links) for entry in own)
    return page(package, f"{STYLE}<h1>{package}</h1><nav>{menu}</nav>{body}")


def _index(found: Mapping[str, Sequence[Entry]], links: Mapping[str, str]) -> str:
    body = ""
    for package in PACKAGES:
        names = [f'<a href="{escape(e.address)}">{_plain(e.name)}</a>' for e in found[package] if e.owner is None]
        what = _sentence(inspect.cleandoc(import_module(package).__doc__ or "").partition("\n\n")[0], links, package)
        title = f'<h2><a href="{package}.html"><b>{package}</b></a></h2><p>{what}</p>'
        body += f"<section>{title}<nav>{' '.join(names)}</nav></section>"
    return page("minigrad", f"{STYLE}<h1>minigrad: every public name</h1>{body}")


def pages() -> Iterator[tuple[str, str]]:
    """Every page, as its path and its text."""
    found = {package: entries(package) for package in PACKAGES}
    links = {f"{e.package}.{e.name}": e.address for package in PACKAGES for e in found[package]}
    yield "index.html", _index(found, links)
    for package in PACKAGES:
        yield f"{package}.html", _package_page(package, found[package], links)
    modules = [Entry(package, package, import_module(package)) for package in PACKAGES]
    places = [source_of(entry) for package in PACKAGES for entry in found[package]] + [source_of(m) for m in modules]
    for path in sorted({place[0] for place in places if place}):
        yield f"source/{_file(path)}", _source_page(path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write all pages."""
    parser = argparse.ArgumentParser(prog="python -m docs.reference", description="Write the reference.")
    parser.add_argument(
        "-o", "--out", type=Path, default=ROOT / "build" / "reference", help="the folder (default: %(default)s)"
    )
    folder = parser.parse_args(arguments).out
    (folder / "source").mkdir(parents=True, exist_ok=True)
    for path, text in pages():
        write_atomically(folder / path, text.encode(), durable=False)
    print(f"wrote {folder / 'index.html'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
