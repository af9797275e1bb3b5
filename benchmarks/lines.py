"""Counts lines of code and all lines of Python by package: the project's measure of size.

    python -m benchmarks.lines [--root FOLDER] [--files PACKAGE]

A line of code is not blank, not a comment and not part of a docstring. `messages` are the lines of code inside of
`raise XError(…)` statements, which count as code too. `--root` adds the columns of another checkout, side by side;
`--files minigrad/engine` lists the files of a package.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from .measure import ROOT, table

FOLDERS = ("minigrad", "models", "tests", "benchmarks", "docs", "tutorials")
NOT_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
NAMED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Count(NamedTuple):
    """Lines of some files."""

    code: int = 0
    messages: int = 0
    all: int = 0


def count(path: Path) -> Count:
    """The lines of one file."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    code = _lines_with_code(path)
    for node in ast.walk(tree):
        if isinstance(node, NAMED) and ast.get_docstring(node, clean=False) is not None:
            code -= _span(node.body[0])
    raised = [_span(node) for node in ast.walk(tree) if isinstance(node, ast.Raise) and _is_error(node)]
    return Count(len(code), len(code & set().union(*raised)), len(text.splitlines()))


def _lines_with_code(path: Path) -> set[int]:
    with open(path, "rb") as file:
        tokens = [token for token in tokenize.tokenize(file.readline) if token.type not in NOT_CODE]
    return {
        line for token in tokens[1:] for line in range(token.start[0], token.end[0] + 1)
    }  # the first is the encoding


def _span(node: ast.stmt) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def _is_error(node: ast.Raise) -> bool:
    """Whether it is `raise XError(…)`, whatever module XError is from, or passes one on: `raise reported(…, XError(…))`."""
    calls = [ast.unparse(part.func) for part in ast.walk(node) if isinstance(part, ast.Call)]
    return any(name.endswith("Error") for name in calls)


def packages(root: Path) -> dict[str, list[Path]]:
    """The Python files of a checkout by package: minigrad's packages one by one, every other folder whole."""
    found: dict[str, list[Path]] = {}
    for folder in FOLDERS:
        for path in sorted(
            (root / folder).rglob("*.py"), key=lambda path: (len(path.parts) > len(root.parts) + 2, path)
        ):
            inside = path.relative_to(root).parts
            name = "/".join(inside[:2]) if folder == "minigrad" and len(inside) > 2 else folder
            found.setdefault(name, []).append(path)
    return found


def add(counts: Iterable[Count]) -> Count:
    """Several counts together."""
    return Count(*map(sum, zip(Count(), *counts)))


def rows(root: Path, package: str | None = None) -> dict[str, Count]:
    """The counts of a checkout by package, or of one package by file."""
    known = packages(root)
    if package is None:
        return {name: add(map(count, paths)) for name, paths in known.items()}
    return {str(path.relative_to(root)): count(path) for path in known.get(package, [])}


def lines(counts: list[dict[str, Count]]) -> Iterator[list[str]]:
    """The rows of the table, with sums below: (code, messages, all) of each checkout."""
    names = list(dict.fromkeys(name for found in counts for name in found))
    for name in names:
        yield [name, *(f"{number:,}" for found in counts for number in found.get(name, Count()))]
    for label, folder in (("all of minigrad", "minigrad"), ("all", "")):
        chosen = [[found[name] for name in found if name.startswith(folder)] for found in counts]
        yield [label, *(f"{number:,}" for found in chosen for number in add(found))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, help="another checkout, to be counted beside this one")
    parser.add_argument("--files", metavar="PACKAGE", help="count the files of this package: minigrad/engine, tests")
    options = parser.parse_args()
    if options.root is not None and not packages(options.root):
        parser.error(
            f"{str(options.root)!r} is no checkout: expected a folder with {', '.join(FOLDERS[:-1])} or {FOLDERS[-1]}"
        )
    roots = [ROOT] if options.root is None else [options.root, ROOT]
    counts = [rows(root, options.files) for root in roots]
    if not any(counts):
        parser.error(f"there is no package {options.files!r}; there are {', '.join(packages(ROOT))}")
    labels = [""] if options.root is None else [" there", " here"]
    print(table(["", *(f"{name}{label}" for label in labels for name in Count._fields)], lines(counts)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
