"""RESULTS.md: one section for each benchmark, written by the command that measured it, which leaves the others alone."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from .measure import ROOT, describe

RESULTS = ROOT / "benchmarks" / "RESULTS.md"
HEAD = """# Results

Each section was written by the command that it names, on the machine that it describes. Ratios carry over to other
machines of the kind, times do not. `--write` at the end of a command brings its section up to date.
"""


def add_write_option(parser: argparse.ArgumentParser) -> None:
    """`--write`, or `--write FILE` for another file than RESULTS.md."""
    parser.add_argument(
        "--write",
        nargs="?",
        type=Path,
        const=RESULTS,
        metavar="FILE",
        help="write the figures into their section of benchmarks/RESULTS.md, or of FILE",
    )


def conclude(options: argparse.Namespace, title: str, text: str, result: Mapping[str, Any]) -> None:
    """Print the text, write it into its section if asked to, and print the result as JSON, last, if asked to.

    `result["detail"]["machine"]` describes the machine.
    """
    machine = result["detail"]["machine"]
    print(f"{describe(machine)}\n\n{text}")
    if options.write:
        write_section(options.write, title, section(machine, text, options.quick))
        print(f"\nwritten to {options.write}, section {title!r}")
    if options.json:
        print(json.dumps(result))


def section(machine: Mapping[str, Any], text: str, quick: bool) -> str:
    """What stands below the title: the command, when and where it ran, and the figures."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    command = shlex.join(["python", "-m", spec.name if spec else "benchmarks", *_own_arguments(sys.argv[1:])])
    rough = " Measured quickly: the figures are rough." if quick else ""
    day = datetime.now(timezone.utc).date()
    where = "; ".join(describe(machine).splitlines())
    return f"`{command}`, {day}.{rough}\n\n{where}\n\n{_indented(text)}"


def _own_arguments(arguments: list[str]) -> list[str]:
    """The command as one would type it again: paths of this machine say nothing about the figures."""
    line = ["--write" if word.startswith("--write=") else word for word in arguments]
    after = line.index("--write") + 1 if "--write" in line else len(line)
    if "--write" in arguments and after < len(line) and not line[after].startswith("-"):
        del line[after]
    return ["PATH" if Path(word).is_absolute() else word for word in line]


def _indented(text: str) -> str:
    """A block of code for Markdown, none of whose lines can be taken for a title."""
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())


def write_section(path: Path, title: str, text: str) -> None:
    """Replace the section of this title, or add it at the end; the file is there as a whole at any time."""
    from minigrad.saving import write_atomically  # only here: PyTorch's own process imports this file too

    existing = path.read_text(encoding="utf-8") if path.exists() else HEAD
    head, *sections = re.split(r"(?m)^(?=## )", existing)
    new = f"## {title}\n\n{text}\n"
    titles = [one.partition("\n")[0].removeprefix("## ").strip() for one in sections]
    if title in titles:
        sections[titles.index(title)] = new
    else:
        sections.append(new)
    content = "\n".join(part.rstrip("\n") + "\n" for part in [head, *sections])
    write_atomically(path, content.encode("utf-8"))
