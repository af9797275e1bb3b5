"""Which public names of NumPy, PyTorch and JAX minigrad has, under which name, and why the rest is missing.

python -m docs.coverage              # checks, and prints how many there are
python -m docs.coverage --json       # and prints the counts as JSON, last
python -m docs.coverage --write      # writes docs/coverage.md too
python -m docs.coverage --refresh    # reads the names anew from the libraries that are installed, into docs/coverage.json

It fails if a name is neither here nor given a name or a reason in minigrad/foreign_names.py, or if one that is here is.
"""

from __future__ import annotations

import argparse
import json
import sys
import types
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from minigrad.foreign_names import ARRAYS, CALLED, FUNCTIONS, LAYERS, OPTIMISERS, REFUSED, refused
from minigrad.saving import write_atomically

HERE = Path(__file__).resolve().parent
NAMES, PAGE = HERE / "coverage.json", HERE / "coverage.md"
# (library, version that the names are of, kind of names, where minigrad has them)
LIBRARIES = (
    ("numpy", "2.4.6", ARRAYS, ("minigrad", "minigrad.linalg", "minigrad.Tensor", "minigrad.nn.functional")),
    ("torch", "2.13.0", ARRAYS, ("minigrad", "minigrad.linalg", "minigrad.Tensor", "minigrad.nn.functional")),
    ("torch.nn.functional", "2.13.0", FUNCTIONS, ("minigrad.nn.functional", "minigrad")),
    ("torch.nn", "2.13.0", LAYERS, ("minigrad.nn",)),
    ("torch.optim", "2.13.0", OPTIMISERS, ("minigrad.optim",)),
    ("torch.optim.lr_scheduler", "2.13.0", OPTIMISERS, ("minigrad.optim.lr_scheduler", "minigrad.optim")),
    ("jax.numpy", "0.10.2", ARRAYS, ("minigrad", "minigrad.linalg", "minigrad.Tensor", "minigrad.nn.functional")),
)
FOREIGN = ("typing", "collections.abc", "importlib", "enum")  # modules whose names others import


class Row(NamedTuple):
    """A public name of a library: where it is here, what it is called here, or the group of those that are not."""

    name: str
    here: str = ""
    called: str = ""
    group: str = ""


def public_names(library: str) -> list[str]:
    """The public names of an installed library: no modules, and nothing that it has from Python's own."""
    module = import_module(library)
    listed = getattr(module, "__all__", None) if library in ("torch", "torch.optim.lr_scheduler") else None
    found = {name: getattr(module, name) for name in listed or dir(module) if not name.startswith("_")}
    own = {n for n, x in found.items() if not isinstance(x, types.ModuleType) and _home(x) not in FOREIGN}
    if library.startswith("torch."):
        own = {n for n in own if callable(found[n])}
    return sorted(own)


def _home(value: Any) -> str:
    return getattr(value, "__module__", None) or ""


def rows(names: Iterable[str], kind: str, places: Iterable[str]) -> list[Row]:
    """What there is to say of each name."""
    return [_row(name, kind, places) for name in names]


def _row(name: str, kind: str, places: Iterable[str]) -> Row:
    called = CALLED[kind].get(name, "")
    here = next((f"{place}.{name}" for place in places if _has(place, name)), "")
    return Row(name, here, called, "" if here or called else refused(name) or "")


def _has(place: str, name: str) -> bool:
    """Whether a public module, or the class Tensor, has a name of its own."""
    owner, _, last = place.rpartition(".")
    if last == "Tensor":
        from minigrad import Tensor
        from minigrad.interop import is_hint

        return hasattr(Tensor, name) and not is_hint(name)
    try:
        module = import_module(place)
    except ModuleNotFoundError:
        return False
    return name in dir(module)


def problems(library: str, table: Iterable[Row]) -> list[str]:
    """What is wrong with the table of a library."""
    lost = [row.name for row in table if not (row.here or row.called or row.group)]
    doubled = [row.name for row in table if row.here and row.called]
    found = [f"{library}: in no group: {' '.join(lost)}"] if lost else []
    return found + ([f"{library}: called otherwise, and here: {' '.join(doubled)}"] if doubled else [])


class Counts(NamedTuple):
    """How many public names a library has, and what became of them."""

    names: int
    here: int
    called_otherwise: int
    not_here: int


def counts(table: list[Row]) -> Counts:
    """The counts of a table."""
    here, called = sum(bool(r.here) for r in table), sum(bool(r.called) and not r.here for r in table)
    return Counts(len(table), here, called, len(table) - here - called)


def summary(tables: dict[str, list[Row]]) -> str:
    """A line for each library."""
    lines = []
    for (library, version, *_), table in zip(LIBRARIES, tables.values()):
        lines.append(f"| {library} {version} | {' | '.join(map(str, counts(table)))} |")
    head = "| library | public names | here | called otherwise | not here |\n|---|---|---|---|---|\n"
    return head + "\n".join(lines)


def page(tables: dict[str, list[Row]]) -> str:
    """docs/coverage.md."""
    parts = [
        "# What NumPy, PyTorch and JAX have, and minigrad\n",
        "Written by `python -m docs.coverage --write`, which fails if a public name of these libraries is in no list. An error for a",
        "missing name says what stands here.\n",
        summary(tables),
    ]
    for library, table in tables.items():
        parts.append(f"\n## {library}\n")
        here = [
            row.name if row.here.count(".") == 1 else row.here.removeprefix("minigrad.") for row in table if row.here
        ]
        parts.append(f"**Here:** {' '.join(f'`{name}`' for name in here)}\n")
        if other := [f"`{row.name}`: {_code(row.called)}" for row in table if row.called]:
            parts.append(f"**Called otherwise:** {'; '.join(other)}\n")
        for group, (reason, _) in REFUSED.items():
            if left := [row.name for row in table if row.group == group]:
                parts.append(f"**Not here, {group}** ({reason}): {' '.join(left)}\n")
    return "\n".join(parts).rstrip("\n") + "\n"


def _code(text: str) -> str:
    return " or ".join(f"`{part}`" for part in text.split(" or "))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print the counts as JSON, last")
    parser.add_argument("--write", action="store_true", help="write docs/coverage.md")
    parser.add_argument("--refresh", metavar="FOLDER", nargs="?", const="", help="read the names anew; FOLDER has jax")
    options = parser.parse_args()
    if options.refresh is not None:
        sys.path.append(options.refresh or ".")
        found = {library: public_names(library) for library, *_ in LIBRARIES}
        write_atomically(NAMES, json.dumps(found, indent=0).encode())
    names = json.loads(NAMES.read_text(encoding="utf-8"))
    tables = {library: rows(names[library], kind, places) for library, _, kind, places in LIBRARIES}
    print(summary(tables))
    if options.write:
        write_atomically(PAGE, page(tables).encode())
    wrong = [text for library, table in tables.items() for text in problems(library, table)]
    print(*wrong, sep="\n")
    if options.json:
        print(json.dumps({library: counts(table)._asdict() for library, table in tables.items()}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
