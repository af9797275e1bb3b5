"""What a document holds that can be tried: blocks of code, commands and links."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from inspect import cleandoc
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("benchmarks", "docs", "minigrad", "models", "tests", "tutorials")
PAGES = sorted([*ROOT.glob("*.md"), *[page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md")]])
LANGUAGES = {"python", "text", "ini", "cuda", "sh", "shell", "bat"}
ALONE = {"mypy", "ruff"}  # programs that may be called by one word; of any other, one word is a name
PROGRAMS = {"git", "jupytext", "minigrad", "mpiexec", "pip", "pytest", "python", "python3", *ALONE}
FENCED = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)


class Unknown(Exception):
    """Something in a document that nothing here can try."""


class Piece(NamedTuple):
    """A block by its language, a line of "shell", or a "command" inside of prose; `gap` is the prose since the last block."""

    kind: str
    text: str
    line: int
    gap: str = ""


def pieces(text: str) -> Iterator[Piece]:
    """The blocks and commands of a page of Markdown, from its beginning to its end."""
    gap: list[str] = []
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        fence = re.fullmatch(r"( *)```(.*)", line)
        if fence is None:
            if re.match(r"[\s>*-]*(```|~~~)", line):
                raise Unknown(f"line {number}: a block begins with ``` and its language, alone on a line")
            gap.append(line)
            continue
        prose = "\n".join(gap)
        yield from _commands_of(prose, number - len(gap))
        body = []
        for _, inside in lines:
            if inside.strip() == "```":
                break
            body.append(inside.removeprefix(fence[1]))
        else:
            raise Unknown(f"line {number}: the block has no end")
        if fence[2] not in LANGUAGES:
            raise Unknown(f"line {number}: nothing here can try a block of {fence[2]!r}")
        if fence[2] in ("sh", "shell"):
            yield from (Piece("shell", one, number + 1 + i) for i, one in enumerate(body) if one.strip())
        else:
            yield Piece(fence[2], "\n".join(body) + "\n", number + 1, prose.strip())
        gap = []
    yield from _commands_of("\n".join(gap), len(text.splitlines()) + 1 - len(gap))


def _commands_of(prose: str, first: int) -> Iterator[Piece]:
    """Commands in backticks, on indented lines that are no rows of a table, and of Python on any line of their own."""
    for found in re.finditer(r"^(?: {4,}|(?=python3? -m ))((?!.*\S {2,}\S)\S.*)$|`([^`]+)`", prose, re.MULTILINE):
        text = " ".join((found[1] or found[2]).split())
        if is_command(text):
            yield Piece("command", text, first + prose.count("\n", 0, found.start()))


def is_command(text: str) -> bool:
    """Whether it calls a program: `minigrad list` and `.venv/bin/mypy` do, `minigrad` is only a name."""
    words = [word for word in text.split() if not re.match(r"[A-Z_]+=", word)]
    program = words[0].removeprefix(".venv/bin/") if words else ""
    return program in ALONE or (program in PROGRAMS and len(words) > 1)


def unfenced(text: str) -> list[str]:
    """The indented blocks of a page that are Python, which is run only if it stands in a fence."""
    blocks = re.findall(r"(?<=\n\n)(?:(?: {4}|\t).*\n?)+", FENCED.sub("", text))
    return [block for block in blocks if _is_python(block)]


def _is_python(block: str) -> bool:
    try:
        ast.parse(cleandoc(f"\n{block}"))
    except SyntaxError:
        return False
    return True


@cache
def docstrings() -> list[tuple[Path, str, str]]:
    """(file, name, text) of every docstring of the benchmarks, documents, minigrad and its models."""
    return [
        (path, name, text)
        for path in sorted(path for folder in FOLDERS[:4] for path in (ROOT / folder).rglob("*.py"))
        for name, node in _named(ast.parse(path.read_text(encoding="utf-8")), "")
        if (text := ast.get_docstring(node))
    ]


def _named(node: ast.AST, name: str) -> Iterator[tuple[str, ast.Module | ast.ClassDef | ast.FunctionDef]]:
    """What may have a docstring, with its dotted name."""
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
        yield name, node
    for inner in ast.iter_child_nodes(node):
        own = getattr(inner, "name", None)
        yield from _named(inner, f"{name}.{own}".lstrip(".") if isinstance(own, str) else name)


def links(text: str) -> list[str]:
    """What the links and pictures of a page lead to, as far as it is no other site."""
    prose = re.sub(r"`[^`\n]*`", "", FENCED.sub("", text))
    found = re.findall(
        r"""\]\(([^)\s]+)|^\[[^\]]+\]:\s*(\S+)|<[^>]*\s(?:href|src|srcset)=["']([^"']+)""", prose, re.MULTILINE
    )
    return [link for link in map("".join, found) if not re.match(r"[a-z]+:", link)]


def anchors(text: str) -> set[str]:
    """The names that GitHub gives to the titles of a page."""
    titles = re.findall(r"^#+ +(.*)$", FENCED.sub("", text), re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower() for title in titles]
    return {re.sub(r"[^\w\- ]", "", title).strip().replace(" ", "-") for title in plain}


def broken_links(page: Path) -> list[str]:
    """The links of a page that lead to no file, or to no title of one."""
    text = page.read_text(encoding="utf-8")
    broken = []
    for link in links(text):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
            broken.append(link)
    return broken
