"""The skeleton of a plugin: a package that trains, predicts and passes `minigrad check` before anything is changed."""

from __future__ import annotations

import importlib.util
import keyword
import os
from importlib import resources
from pathlib import Path
from string import Template

from ..errors import ArgumentError
from ..saving import write_atomically
from ..train import RunError
from .registry import entries

__all__ = ["check_name", "write_skeleton"]

# Under `src`, since Python run beside the project's folder would take that folder for the package of the same name.
# What is written where, and the template in the folder `skeleton` that it is made of.
FILES = {
    "setup.cfg": "setup.cfg.txt",
    "pyproject.toml": "pyproject.toml.txt",
    "README.md": "README.md.txt",
    "src/{name}/__init__.py": "spec.py.txt",
    "src/{name}/model.py": "model.py.txt",
    "tests/test_{name}.py": "test.py.txt",
}


def check_name(name: str) -> None:
    """Refuse a name that no package can have, or that something else has already."""
    where = f"{name!r} cannot be the name of a plugin"
    if not (name.isascii() and name.isidentifier() and name == name.lower()) or keyword.iskeyword(name):
        fixed = "".join(c if c.isalnum() and c.isascii() else "_" for c in name.lower())
        usable = fixed.isidentifier() and not keyword.iskeyword(fixed)
        fix = f"for instance {fixed if usable else 'my_model'}"
        raise ArgumentError(where, "small letters, digits and _", repr(name), fix)
    taken = next((entry.package for entry in entries() if entry.name == name), None)
    if taken is not None:
        raise ArgumentError(f"there is a model {name!r} already, of {taken}", fix=f"for instance my_{name}")
    if importlib.util.find_spec(name) is not None and not Path(name).is_dir():
        raise ArgumentError(f"{name!r} is the name of another Python package", fix=f"for instance my_{name}")


def write_skeleton(name: str, folder: str | os.PathLike[str]) -> list[Path]:
    """Write a plugin called `name` into a folder that is new or empty; returns the files."""
    check_name(name)
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise RunError(f"{os.fspath(folder)!r} is taken", "a folder that is new, or empty", fix="choose another")
    words = {"name": name, "Class": "".join(part.capitalize() for part in name.split("_")) or "Model"}
    written = []
    for path, template in FILES.items():
        source = resources.files(__package__).joinpath("skeleton", template).read_text(encoding="utf-8")
        place = target / path.format(name=name)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(place, Template(source).substitute(words).encode())
        except OSError as error:
            raise RunError(f"{os.fspath(place)!r} cannot be written: {error.strerror}") from error
        written.append(place)
    return written
