"""Plugins that are not installed: the spec in a file, or in a folder that is a package or holds one."""

from __future__ import annotations

import configparser
import importlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .registry import GROUP, PluginError, told
from .spec import ModelSpec

__all__ = ["spec_at"]


def spec_at(path: str | Path) -> ModelSpec:
    """The spec of a plugin that is not installed: a file, or a folder that is a package or holds one."""
    folder = Path(path).absolute()
    if declared := _declared(folder):
        module, _, attribute = declared.partition(":")
        spec = getattr(_module_of(folder, module.strip()), attribute.strip(), None)
        if isinstance(spec, ModelSpec):
            return spec
        raise PluginError(
            f"{str(path)!r}: its setup.cfg names {declared!r}, which is no ModelSpec", got=type(spec).__name__
        )
    for source in _candidates(folder):
        spec = getattr(_imported(source), "spec", None)
        if isinstance(spec, ModelSpec):
            return spec
    raise PluginError(f"{str(path)!r} is no plugin", "a module or package with a ModelSpec called `spec`", str(path))


def _declared(folder: Path) -> str | None:
    """The first model that the setup.cfg of a plugin's folder names, as "module:attribute"."""
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(folder / "setup.cfg", encoding="utf-8")
        lines = parser.get("options.entry_points", GROUP, fallback="").strip().splitlines()
    except (configparser.Error, UnicodeDecodeError) as error:
        raise PluginError(f"{str(folder / 'setup.cfg')!r} cannot be read: {told(error)}") from error
    return lines[0].partition("=")[2].strip() if lines else None


def _module_of(folder: Path, name: str) -> Any:
    """A module of a plugin that lies in its folder, or in its src; the package around it is imported first."""
    package = name.partition(".")[0]
    for root in (folder / "src", folder):
        for source in (root / package / "__init__.py", root / f"{package}.py"):
            if source.is_file():
                found = _imported(source)
                return found if package == name else importlib.import_module(name)
    raise PluginError(
        f"{str(folder)!r}: its setup.cfg names the module {name!r}, which is not there",
        f"{package}.py, or a folder {package} with __init__.py, in it or in its src",
    )


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
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, KeyboardInterrupt):
            raise
        raise PluginError(f"{str(source)!r} cannot be imported: {told(error)}") from error
    return module
