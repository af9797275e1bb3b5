"""Which models there are: those of every installed package that has an entry point in the group `minigrad.models`."""

from __future__ import annotations

import contextlib
import dataclasses
import fnmatch
import importlib.metadata
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, MinigradError, nearest
from .spec import ModelSpec

__all__ = ["Entry", "PluginError", "blamed", "entries", "find", "list_models", "package_of", "told"]

GROUP = "minigrad.models"


class PluginError(MinigradError, RuntimeError):
    """A plugin that cannot be used: it cannot be imported, is no ModelSpec, has another's name, or raises an error."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """One plugin: its name, the package it came with, and its spec, or the error that it is broken by."""

    name: str
    package: str
    spec: ModelSpec | None
    error: str | None = None
    cause: BaseException | None = dataclasses.field(default=None, repr=False, compare=False)


def _points() -> dict[str, dict[str, Any]]:
    """The entry points by model and package, sorted; a package that is on the path twice counts once."""
    found: dict[str, dict[str, Any]] = {}
    for point in importlib.metadata.entry_points(group=GROUP):
        package = f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unknown package"
        found.setdefault(point.name, {}).setdefault(package, point)
    return dict(sorted(found.items()))


def entries() -> list[Entry]:
    """Every plugin that is installed, sorted by name; broken ones too."""
    return [_entry(name, points) for name, points in _points().items()]


def _entry(name: str, points: dict[str, Any]) -> Entry:
    package = " and ".join(sorted(points))
    if len(points) > 1:
        return Entry(name, package, None, f"the name {name!r} is taken twice, by {package}: uninstall one of them")
    (point,) = points.values()
    try:
        spec = point.load()
    except KeyboardInterrupt:
        raise
    except (
        BaseException
    ) as error:  # whatever a stranger's module may raise: SystemExit and pytest's Skipped are no Exception
        return Entry(name, package, None, f"importing {point.value!r} failed: {told(error)}", error)
    if not isinstance(spec, ModelSpec):
        return Entry(name, package, None, f"{point.value!r} is no ModelSpec but {type(spec).__name__}")
    if spec.name != name:
        return Entry(name, package, None, f"its entry point is called {name!r} but its spec {spec.name!r}")
    return Entry(name, package, spec)


def list_models(pattern: str = "*", task: str | None = None) -> list[Entry]:
    """The plugins whose name fits a pattern such as "gpt*", of one task if it is given; `mg.zoo.list(…)`."""
    return [
        entry
        for entry in entries()
        if fnmatch.fnmatchcase(entry.name, pattern)
        and (task is None or entry.spec is not None and entry.spec.task == task)
    ]


def find(name: str) -> ModelSpec:
    """The spec of a model, by its name; an unknown name gets the nearest three. No other plugin is imported."""
    points = _points()
    if name not in points:
        raise ArgumentError(
            f"there is no model {name!r}",
            ", ".join(points) or "an installed plugin",
            repr(name),
            _how_to_get(name, list(points)),
        )
    entry = _entry(name, points[name])
    if entry.spec is None:
        raise PluginError(f"the model {name!r} of {entry.package} is broken: {entry.error}") from entry.cause
    return entry.spec


def _how_to_get(name: str, known: list[str]) -> str:
    """What helps somebody who asked for a model that is not installed."""
    if any((Path(name) / file).is_file() for file in ("setup.cfg", "pyproject.toml", "setup.py")):
        return f"the plugin in the folder {name!r} is not installed: pip install -e {shlex.quote(name)}"
    return nearest(name, known) if known else "install minigrad, or a package with models"


def package_of(spec: ModelSpec) -> str:
    """The package that a spec came with, such as "minigrad 0.2.0", or else the file that it is from."""
    for package, point in _points().get(spec.name, {}).items():
        with contextlib.suppress(Exception):  # a broken plugin is not the one that is asked for
            if point.load() is spec:
                return package
    module = sys.modules.get(getattr(spec.data, "__module__", ""))
    return str(getattr(module, "__file__", None) or "an unknown package")


@contextlib.contextmanager
def blamed(spec: ModelSpec, doing: str, fix: str | None = None) -> Iterator[None]:
    """Inside, what a plugin raises is a PluginError that names it; minigrad's own errors say enough, and pass."""
    try:
        yield
    except MinigradError:
        raise
    except Exception as error:
        raise PluginError(
            f"{spec.name!r} of {package_of(spec)} failed while {doing}: {told(error)}", fix=fix
        ) from error


def told(error: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
