"""Which models there are: those of every installed package that has an entry point in the group `minigrad.models`."""

from __future__ import annotations

import contextlib
import dataclasses
import fnmatch
import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, MinigradError, nearest
from .spec import ModelSpec

__all__ = ["Entry", "PluginError", "blamed", "entries", "find", "list_models", "package_of", "spec_at"]

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
    except (Exception, SystemExit) as error:  # whatever a stranger's module may raise
        return Entry(name, package, None, f"importing {point.value!r} failed: {_told(error)}", error)
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
            nearest(name, points) if points else "install minigrad, or a package with models",
        )
    entry = _entry(name, points[name])
    if entry.spec is None:
        raise PluginError(f"the model {name!r} of {entry.package} is broken: {entry.error}") from entry.cause
    return entry.spec


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
            f"{spec.name!r} of {package_of(spec)} failed while {doing}: {_told(error)}", fix=fix
        ) from error


def _told(error: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def spec_at(path: str | Path) -> ModelSpec:
    """The spec of a plugin that is not installed: a file, or a folder that is a package or holds one."""
    folder = Path(path).absolute()
    for source in _candidates(folder):
        spec = getattr(_imported(source), "spec", None)
        if isinstance(spec, ModelSpec):
            return spec
    raise PluginError(f"{str(path)!r} is no plugin", "a module or package with a ModelSpec called `spec`", str(path))


def _candidates(folder: Path) -> Iterable[Path]:
    if folder.is_file():
        return [folder]
    if (folder / "__init__.py").is_file():
        return [folder / "__init__.py"]
    inside = [*folder.glob("*/__init__.py"), *folder.glob("src/*/__init__.py")]
    return [source for source in sorted(inside) if source.parent.name != "tests"]


def _imported(source: Path) -> Any:
    """A module or package from its file, under its own name, so that its parts can import each other."""
    package = source.name == "__init__.py"
    name = source.parent.name if package else source.stem
    before = sys.modules.get(name)
    if before is not None and getattr(before, "__file__", None) != str(source):
        raise PluginError(
            f"{str(source)!r} cannot be imported: there is another module {name!r}",
            got=getattr(before, "__file__", None) or "a part of Python",
            fix="give the plugin another name",
        )
    found = importlib.util.spec_from_file_location(
        name, source, submodule_search_locations=[str(source.parent)] if package else None
    )
    if found is None or found.loader is None:
        raise PluginError(f"{str(source)!r} cannot be imported", "a file that ends in .py", source.name)
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    try:
        found.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise PluginError(f"{str(source)!r} cannot be imported: {_told(error)}") from error
    return module
