"""A lesson as a file for the learner: what is given, and the exercises with holes, each with an example to try."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from ..errors import ArgumentError
from .lessons import TITLES, exercises, lesson

__all__ = ["lesson_of", "sheet", "solution"]

HOLE = 'raise NotImplementedError("write this")'
HEAD = '''"""Lesson {number}: {title}.

The tutorial explains what is used here. Write each {what} in the place of its `raise NotImplementedError`, then let
them be marked, as often as you like:

    minigrad learn check {name}

The examples below the titles can be tried by themselves, too: python -m doctest {name}
"""
'''


def sheet(number: int) -> str:
    """The exercises of a lesson as a file with holes.

    >>> print(sheet(1).splitlines()[0].strip('"'))
    Lesson 1: One number at a time.
    """
    module = lesson(number)
    source = inspect.getsource(module)
    tree, lines = ast.parse(source), source.splitlines()
    names = [one.name for one in exercises(number)]
    has_class = any(isinstance(one.solution, type) for one in exercises(number))
    what = "function and class" if has_class else "function"
    parts = [HEAD.format(number=number, title=TITLES[number], what=what, name=f"lesson_{number:02}.py").rstrip("\n")]
    used = _names_in(node for node in tree.body if _is_shown(node))
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom)) and _is_used(node, used)]
    parts += ["\n".join(_source(node, lines) for node in imports)] if imports else []
    parts.append(f"LESSON = {number}")
    for node in filter(_is_shown, tree.body):
        name = str(getattr(node, "name", ""))
        is_exercise = name in names
        text = _with_holes(node, lines) if is_exercise else _source(node, lines)
        parts.append(f"\n# Exercise {names.index(name) + 1}\n{text}" if is_exercise else f"\n{text}")
    return "\n\n".join(parts) + "\n"


def solution(number: int, name: str) -> str:
    """The solution of one exercise."""
    source = inspect.getsource(lesson(number))
    (node,) = (node for node in ast.parse(source).body if getattr(node, "name", None) == name)
    return _source(node, source.splitlines())


def lesson_of(path: Path) -> int:
    """The number of the lesson whose exercises a file holds; the file is not run for it."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ArgumentError(f"{str(path)!r} cannot be read: {reason}", fix="minigrad learn start 1") from None
    found = re.search(r"^LESSON = (\d{1,3})$", text, re.MULTILINE)
    if found is None or int(found[1]) not in TITLES:
        raise ArgumentError(
            f"{str(path)!r} holds no lesson",
            expected="a file that `minigrad learn start` wrote, with its line LESSON = …",
            fix="minigrad learn start 1",
        )
    return int(found[1])


def _is_shown(node: ast.stmt) -> bool:
    """Exercises, and what is given for them: whatever has a public name."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return not node.name.startswith("_")
    return isinstance(node, ast.Assign) and not ast.unparse(node.targets[0]).startswith("_")


def _is_used(node: ast.Import | ast.ImportFrom, used: set[str]) -> bool:
    outside = isinstance(node, ast.Import) or node.level == 0
    return outside and any((name.asname or name.name).partition(".")[0] in used for name in node.names)


def _names_in(nodes: Iterator[ast.stmt]) -> set[str]:
    """All names that the code and its examples use; decorators are no part of it."""
    found: set[str] = set()
    for node in nodes:
        bare: list[ast.AST] = [node]
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            bare = [*node.body, *_heads(node)]
            found |= set(re.findall(r"\b(np|mg|math)\.", ast.get_docstring(node) or ""))
        found |= {inner.id for part in bare for inner in ast.walk(part) if isinstance(inner, ast.Name)}
    return found


def _heads(node: ast.stmt) -> list[ast.AST]:
    return (
        list(node.bases) if isinstance(node, ast.ClassDef) else [node.args] if isinstance(node, ast.FunctionDef) else []
    )


def _source(node: ast.stmt, lines: list[str]) -> str:
    """The source of a statement, without its decorators."""
    return "\n".join(lines[node.lineno - 1 : node.end_lineno])


def _with_holes(node: ast.stmt, lines: list[str]) -> str:
    """A function with its head and docstring, or a class with those of its methods."""
    if isinstance(node, ast.ClassDef):
        first = node.body[0]
        parts = ["\n".join(lines[node.lineno - 1 : first.end_lineno])]
        parts += [_with_holes(inner, lines) for inner in node.body[1:]]
        return "\n\n".join(parts)
    if not isinstance(node, ast.FunctionDef):
        return _source(node, lines)
    described = ast.get_docstring(node) is not None
    last = node.body[0].end_lineno if described else node.body[0].lineno - 1
    return "\n".join([*lines[node.lineno - 1 : last], " " * (node.col_offset + 4) + HOLE])
