"""Lays out what Sphinx builds: the pages of the checkout where they are, executed notebooks for scripts, links that fit."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Collection, Mapping
from fnmatch import fnmatch
from html import escape
from pathlib import Path

import nbformat

from minigrad.learn import write_notebooks
from minigrad.learn.notebooks import scripts
from minigrad.learn.play import PLAYS, write_pages

from . import live, reference

__all__ = ["lay_out"]

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("benchmarks", "docs", "models", "tutorials")  # whose Markdown the site shows
FENCED = re.compile(r"^( *)(```+).*?^\1\2$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?![a-z]+:|#)([^)\s#]+)(#[^)\s]+)?\)")
MENU = {  # the menu: what is written above, and which pages follow, as patterns
    "Learn": ["tutorials/README", "tutorials/[0-9]*", "tutorials/errata", "play", "docs/idioms", "docs/teaching"],
    "Guides": ["docs/*"],
    "Models": ["models/README", "models/*/README"],
    "Reference": ["reference/index"],
    "More": ["benchmarks/*", "CHANGELOG", "CONTRIBUTING", "*", "*/*", "*/*/*"],
}


def lay_out(folder: Path, patterns: Collection[str], say: Callable[[str], None]) -> None:
    """Write the sources of the pages whose names fit one of the patterns, and the front page, into a new folder.

    What links to a page that is left out leads to its source.
    """
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "extra").mkdir(parents=True)
    pages = [*ROOT.glob("*.md"), *(page for name in FOLDERS for page in (ROOT / name).rglob("*.md"))]
    names = {page.relative_to(ROOT).as_posix(): _staged(page) for page in pages}
    names |= {f"tutorials/{script.name}": f"tutorials/{script.stem}.ipynb" for script in scripts(ROOT / "tutorials")}
    names = {source: page for source, page in names.items() if page == "index.md" or _fits(page, patterns)}
    _notebooks(folder, lambda text: linked(text, "tutorials/README.md", names, folder), names, say)
    models = [Path(name).parent.name for name in names if Path(name).match("models/*/README.md")]
    shown = {f"models/{name}/README.md": text for name, text in live.sections(folder, models, say)}
    for name in (name for name in names if name.endswith(".md")):
        text = linked((ROOT / name).read_text(encoding="utf-8"), name, names, folder)
        _write(folder / names[name], _with_section(text, shown.get(name, "")))
    packages = [package for package in reference.PACKAGES if _fits(f"reference/{package}.md", patterns)]
    for name, text in reference.pages(packages) if packages else ():
        _write(folder / name, text)
    if _fits("play.md", patterns):
        _write(folder / "play.md", _play(folder / "extra" / "play"))
    with (folder / "index.md").open("a", encoding="utf-8") as front:
        front.write(_menu(folder))


def _fits(page: str, patterns: Collection[str]) -> bool:
    return any(fnmatch(page, f"{pattern}.*") for pattern in patterns)


def _staged(page: Path) -> str:
    return "index.md" if page == ROOT / "README.md" else page.relative_to(ROOT).as_posix()


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def linked(text: str, page: str, names: Mapping[str, str], folder: Path) -> str:
    """A text of Markdown whose links lead to what is staged of it: a page, a picture, which is copied, or the page of a source."""
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match[0])
        return f"\0{len(kept) - 1}\0"

    def restore(found: str) -> str:
        while "\0" in found:
            found = re.sub("\0(\\d+)\0", lambda match: kept[int(match[1])], found)
        return found

    def lead(link: re.Match[str]) -> str:
        picture, words, path, anchor = link[1], link[2], link[3], link[4] or ""
        if "[" in words:  # a link around a picture
            words = LINK.sub(lead, words)
        target = Path(os.path.normpath(ROOT / Path(page).parent / path))
        name = target.relative_to(ROOT).as_posix()
        if picture:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(target, folder / name)
            return f"![{words}]({path})"
        name = next((one for one in (name, f"{name}/README.md") if one in names), name)
        if name not in names:
            return f"[{words}](source:{name}{anchor})"
        there = os.path.relpath(names[name], Path(names.get(page, page)).parent)
        return f"[{words}]({Path(there).as_posix()}{anchor})"

    return restore(LINK.sub(lead, CODE.sub(keep, FENCED.sub(keep, text))))


def _with_section(text: str, section: str) -> str:
    """A page with something more behind its beginning."""
    head, mark, rest = text.partition("\n## ")
    return f"{head}\n{section}\n{mark}{rest}" if section else text


def _notebooks(folder: Path, lead: Callable[[str], str], names: Mapping[str, str], say: Callable[[str], None]) -> None:
    """The tutorials as notebooks, executed, with links inside of the site."""
    chosen = [Path(page).stem for page in names.values() if page.endswith(".ipynb")]
    out = folder / "tutorials"
    for path in write_notebooks(ROOT / "tutorials", out, only=chosen, lead=lead) if chosen else ():
        _name_pictures(path)
        say(f"executed {path.stem}")
    for path in out.iterdir() if chosen else ():  # what the notebooks needed and made
        if path.is_dir():
            shutil.rmtree(path)
        elif path.suffix != ".ipynb":
            path.unlink()


def _name_pictures(path: Path) -> None:
    """Tell readers who cannot see the pictures of a notebook what each cell shows."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        printed = "".join(o.text for o in cell.get("outputs", ()) if o.output_type == "stream")
        if pictures := re.findall(r"^picture: .*/\d*_?(\w+)[.]\w+$", printed, re.MULTILINE):
            cell.metadata["mystnb"] = {"image": {"alt": "; ".join(name.replace("_", " ") for name in pictures)}}
    nbformat.write(notebook, path)


def _play(folder: Path) -> str:
    """The pages to play with, which are written to the folder, one below the other."""
    text = "# Play\n\nNothing has to be installed for these pages, and nothing leaves them.\n"
    written = {path.stem for path in write_pages(folder)}
    for name, play in ((name, play) for name, play in PLAYS.items() if name in written):
        frame = f'<iframe class="live" loading="lazy" title="{escape(play.title)}" src="play/{name}.html"></iframe>'
        text += f'\n## {play.title}\n\n{play.lead} <a href="play/{name}.html">On a page of its own</a>.\n\n{frame}\n'
    return text


def _menu(folder: Path) -> str:
    """The tables of contents of the front page, each page in the first one that it fits."""
    pages = {p.relative_to(folder).with_suffix("").as_posix() for e in ("md", "ipynb") for p in folder.rglob(f"*.{e}")}
    pages -= {"index", *(page for page in pages if page.startswith("reference/minigrad"))}
    text = ""
    for title, patterns in MENU.items():
        chosen = []
        for pattern in patterns:
            here = sorted(page for page in pages if Path(page).match(pattern) and page.count("/") == pattern.count("/"))
            chosen += here
            pages -= {*here}
        text += f"\n```{{toctree}}\n:hidden:\n:titlesonly:\n:caption: {title}\n" + "\n".join(chosen) + "\n```\n"
    return text
