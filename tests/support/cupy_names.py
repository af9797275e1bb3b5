"""What CuPy offers: every name, and the parameters of each function.

`NAMES` answers from the installed cupy, which imports without a GPU. Where cupy is not installed it answers from
`cupy_names.json`, a frozen copy of the few names that are in use; `python -m tests.support.cupy_names` writes that file anew.
This needs CuPy, but no GPU.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from minigrad.errors import MinigradError, install_hint

FROZEN = Path(__file__).with_name("cupy_names.json")
Parameters = list[str] | None  # None for what is not a function


class MissingName(MinigradError, AttributeError):
    """CuPy lacks a name, or the frozen list of its names does. As a MinigradError it is not taken for a wrong operand."""


class Kwargs:
    """Keywords that CuPy takes through **kwargs, where neither signature nor first docstring line tells them."""

    einsum = ["dtype", "optimize"]
    pad = ["constant_values", "end_values", "stat_length", "reflect_type"]


class InstalledNames:
    """The names of the installed cupy, by dotted path: "linalg.inv", "add.at", "ndarray.sum"."""

    def __init__(self) -> None:
        import cupy

        self.root = cupy

    def find(self, dotted: str) -> Any:
        found = self.root
        for part in dotted.split("."):
            found = getattr(found, part)
        return found

    def __contains__(self, dotted: str) -> bool:
        try:
            self.find(dotted)
        except AttributeError:
            return False
        return True

    def __getitem__(self, dotted: str) -> Parameters:
        found = self.find(dotted)
        if inspect.ismodule(found) or not callable(found) or dotted.endswith("ndarray"):
            return None
        return parameters_of(found) + getattr(Kwargs, dotted, [])

    def below(self, dotted: str) -> list[str]:
        return [f"{dotted}.{name}" for name in dir(self.find(dotted)) if not name.startswith("_")]


class FrozenNames(dict[str, Parameters]):
    """The names that were in use, and the parameters they had, when the file was last written."""

    def below(self, dotted: str) -> list[str]:
        return [name for name in self if name.rpartition(".")[0] == dotted]


def parameters_of(function: Callable[..., Any]) -> list[str]:
    """The names of the parameters, from the signature or, for compiled functions, from the docstring's first line."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return _documented_parameters(function.__doc__ or "")
    names = [f"*{p.name}" if p.kind is p.VAR_POSITIONAL else p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
    return [name for name in names if name != "self"]


def _documented_parameters(doc: str) -> list[str]:
    """["shape", "axis"] from "ndarray.make(self, shape, int axis=None) -> ndarray"."""
    head = doc.partition("\n")[0].replace("\\", "")
    inside = head.partition("(")[2].rpartition(")")[0]
    names = [part.partition("=")[0].split()[-1] for part in inside.split(",") if part.strip()]
    return [name for name in names if name not in ("self", "/", "*") and not name.startswith("**")]


def misuse(parameters: Parameters, positional: int, keywords: Iterable[str]) -> str | None:
    """What is wrong with a call of so many positional arguments and these keywords; None if nothing is."""
    if parameters is None:
        return None
    if positional > len(parameters) and not any(name.startswith("*") for name in parameters):
        return f"takes {len(parameters)} positional arguments, not {positional}"
    unknown = [key for key in keywords if key not in parameters]
    return f"got an unexpected keyword argument {unknown[0]!r}" if unknown else None


def frozen_names() -> FrozenNames:
    return FrozenNames(json.loads(FROZEN.read_text()))


def freeze(names: Iterable[str]) -> None:
    """Write what the installed cupy says about these names."""
    installed = InstalledNames()
    lines = [f"  {json.dumps(name)}: {json.dumps(installed[name])}" for name in sorted(set(names))]
    FROZEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")


try:
    NAMES: InstalledNames | FrozenNames = InstalledNames()
except ImportError:
    NAMES = frozen_names()
CUPY_IS_INSTALLED = isinstance(NAMES, InstalledNames)


def missing(dotted: str) -> MissingName:
    """The error for a name that the fake device does not have."""
    if CUPY_IS_INSTALLED:
        return MissingName(f"CuPy has no {dotted!r}", fix="compute it with functions that CuPy has")
    return MissingName(
        f"the fake device does not know {dotted!r}: its list of CuPy's names lacks it",
        f"one of the names in {FROZEN.parent.parent.name}/{FROZEN.parent.name}/{FROZEN.name}",
        f"cupy.{dotted}",
        "if CuPy has it, refresh the list: python -m tests.support.cupy_names, with CuPy installed "
        f"({install_hint('test-cuda')}; it needs no GPU)",
    )


def main() -> int:
    """Write the frozen list anew."""
    if not CUPY_IS_INSTALLED:
        print(
            f"The list of CuPy's names is read from CuPy, which is not installed. It needs no GPU:\n  "
            f"{install_hint('test-cuda')}",
            file=sys.stderr,
        )
        return 1
    from .cupy_usage import names_in_use

    freeze(names_in_use())
    return 0


if __name__ == "__main__":
    sys.exit(main())
