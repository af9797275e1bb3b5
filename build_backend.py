"""Builds minigrad as setuptools does, but for one thing: an editable install is found beside a checkout that is called `minigrad`.

There Python takes the checkout for a package without code, before setuptools' own finder is asked. So an editable wheel
gets a finder that comes first, and steps in where nothing but such a folder was found: a real package on the path still wins.
"""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  (every hook but the one below)

ROOT = Path(__file__).resolve().parent
FINDER = """import sys
from importlib.machinery import PathFinder
from importlib.util import spec_from_file_location

FOLDER = {folder!r}


class CheckoutFinder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "minigrad" or path is not None:
            return None
        found = PathFinder.find_spec(name)
        if found is not None and found.origin is not None:
            return None
        return spec_from_file_location(name, FOLDER + "/__init__.py", submodule_search_locations=[FOLDER])


sys.meta_path.insert(0, CheckoutFinder)
"""


def build_editable(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """setuptools' editable wheel, with the finder."""
    name = build_meta.build_editable(wheel_directory, config_settings, metadata_directory)
    finder = FINDER.format(folder=(ROOT / "minigrad").as_posix())
    _add(
        Path(wheel_directory, name),
        {"_minigrad_checkout.py": finder, "_minigrad_checkout.pth": "import _minigrad_checkout\n"},
    )
    return name


def _add(wheel: Path, files: dict[str, str]) -> None:
    """Add files to a wheel, and to its list of files."""
    with zipfile.ZipFile(wheel) as archive:
        packed = {name: archive.read(name) for name in archive.namelist()}
    record = next(name for name in packed if name.endswith(".dist-info/RECORD"))
    for name, text in files.items():
        packed[name] = text.encode()
        digest = base64.urlsafe_b64encode(hashlib.sha256(packed[name]).digest()).decode().rstrip("=")
        packed[record] += f"{name},sha256={digest},{len(packed[name])}\n".encode()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in packed.items():
            archive.writestr(name, content)
