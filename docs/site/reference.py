"""The reference: every public name with its signature and its docstring, as pages of MyST for Sphinx's Python domain.

Ops are made when minigrad is imported, which Sphinx's own autodoc takes for plain values; so the directives are written here.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from minigrad.engine.op import OPS, Op
from minigrad.ops.composite import COMPOSITES, Composite
from minigrad.viz.drawing.scene import clean

__all__ = ["PACKAGES", "Entry", "described", "entries", "known", "pages", "place_of"]

ROOT = Path(__file__).resolve().parents[2]
PARTS = (
    "autograd nn nn.functional nn.init nn.utils optim optim.lr_scheduler optim.swa_utils data train viz zoo decode metrics "
    "check array_api array_api.linalg array_api.fft ir compile tracer kernels parallel runtime saving formats tokenizers "
    "hub learn onnx transforms web serve"
)
PACKAGES = ("minigrad", *[f"minigrad.{part}" for part in PARTS.split()])


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


@cache
def place_of(package: str, name: str) -> tuple[str, int] | None:
    """Where `Linear.forward` of `minigrad.nn` is defined: the file and the line; None where that is not known."""
    thing: Any = import_module(package)
    owner = None
    for part in name.split("."):
        owner, thing = thing, getattr(thing, part)
    return source_of(Entry(package, name, thing, owner if isinstance(owner, type) else None))


@cache
def known() -> frozenset[str]:
    """Every name that has an entry, with its package."""
    found = (entry for package in PACKAGES for entry in entries(package))
    return frozenset(f"{entry.package}.{entry.name}" for entry in found if not inspect.ismodule(entry.thing))


def described(text: str, links: Collection[str], package: str = "minigrad") -> str:
    """A docstring as Markdown: paragraphs, lists, and what is code. A name in backticks leads to its entry."""
    made = []
    for block in re.split(r"\n\s*\n", text):
        words, example, rest = ("", block[:4], block[4:]) if block.startswith(">>> ") else block.partition("\n>>> ")
        if words.startswith("    ") or re.search(r"\S {3,}\S", words):  # a piece of code, or columns
            made.append(f"```text\n{_plain(words)}\n```")
        elif words.startswith("- "):
            items = [_sentence(item, links, package) for item in re.split("^- ", words, flags=re.MULTILINE)[1:]]
            made.append("\n".join(f"- {item.strip()}" for item in items))
        elif words:
            made.append(_sentence(words, links, package))
        if example:
            made.append(f"```pycon\n>>> {_plain(rest)}\n```")
    return "\n\n".join(made)


def _plain(text: str) -> str:
    return "\n".join(clean(line, len(line) + 1) for line in text.split("\n"))


def _sentence(text: str, links: Collection[str], package: str) -> str:
    parts = " ".join(text.split()).split("`")
    return "".join(_code(part, links, package) if i % 2 else _escaped(part) for i, part in enumerate(parts))


def _escaped(text: str) -> str:
    return re.sub(r"([\\*_<>\[\]$|#~{}])", r"\\\1", _plain(text))


def _code(text: str, links: Collection[str], package: str) -> str:
    """Code inside of a sentence, a link where it begins with a name that is known in this package, or in all."""
    begin = re.match(r"(?:(?:minigrad|mg)\.)?([\w.]*)", text)
    name = begin[1] if begin else ""
    target = next((full for full in (f"{package}.{name}", f"minigrad.{name}") if full in links), None)
    if target and not set("<>{}") & set(text):
        return f"{{py:obj}}`{_plain(text)} <{target}>`"
    return f"`{_plain(text)}`"


def _kind(entry: Entry) -> str:
    if entry.owner is not None:
        return "property" if isinstance(entry.thing, property) else "method"
    if isinstance(entry.thing, type):
        return "exception" if issubclass(entry.thing, BaseException) else "class"
    return "function" if callable(entry.thing) else "data"


def _directive(entry: Entry, links: Collection[str], inner: str = "") -> str:
    """An entry, with those of its members inside."""
    bases = [base.__name__ for base in getattr(entry.thing, "__mro__", ())[1:]]
    public = [base for base in bases if f"{entry.package}.{base}" in links or f"minigrad.{base}" in links]
    text = text_of(entry) + (f"\n\nIt has all that `{public[0]}` has." if public else "")
    fence = "`" * (5 if entry.owner is None else 4)
    name = entry.name if entry.owner is None else entry.short
    head = f"{fence}{{py:{_kind(entry)}}} {name}{_plain(signature(entry))}"
    return f"{head}\n{described(text, links, entry.package)}\n{inner}{fence}\n"


def _page(package: str, found: Sequence[Entry], links: Collection[str]) -> str:
    what = described(inspect.cleandoc(import_module(package).__doc__ or ""), links, package)
    own = [entry for entry in found if not inspect.ismodule(entry.thing)]
    names = " ".join(f"{{py:obj}}`{e.name} <{package}.{e.name}>`" for e in own if e.owner is None)
    text = f"# {package}\n\n{what}\n\n{names}\n\n```{{py:module}} {package}\n```\n\n"
    for entry in (e for e in own if e.owner is None):
        members = [
            e for e in own if e.owner is not None and e.owner is entry.thing and e.name.startswith(f"{entry.name}.")
        ]
        text += _directive(entry, links, "".join(_directive(member, links) for member in members)) + "\n"
    return text


def _index(packages: Sequence[str], links: Collection[str]) -> str:
    rows = ""
    for package in packages:
        what = inspect.cleandoc(import_module(package).__doc__ or "").partition("\n\n")[0]
        rows += f"| [{package}]({package}.md) | {_sentence(what, links, package)} |\n"
    head = "# Reference\n\nEvery public name, and where it is defined. {ref}`All in one list <genindex>`.\n\n"
    toctree = "\n".join(["```{toctree}", ":hidden:", ":titlesonly:", *packages, "```"])
    return f"{head}| package | what it has |\n|---|---|\n{rows}\n{toctree}\n"


def pages(packages: Sequence[str] = PACKAGES) -> Iterator[tuple[str, str]]:
    """The pages of packages, each as its path and its text, and before them the page that lists them."""
    links = known()
    yield "reference/index.md", _index(packages, links)
    for package in packages:
        yield f"reference/{package}.md", _page(package, entries(package), links)
