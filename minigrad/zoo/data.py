"""The data of a model: checks the paths, and calls the plugin's data function."""

from __future__ import annotations

import os
from typing import Any

from ..errors import ArgumentError, MinigradError
from .registry import blamed
from .spec import Data, ModelSpec

__all__ = ["CHECK_PATH", "check_paths", "data_of", "paths_of"]

CHECK_PATH = "check the path given by --data"


def paths_of(data: str) -> list[str]:
    """One path, or several with commas between them."""
    return [data] if os.path.exists(data) else data.split(",")


def check_paths(spec: ModelSpec, data: str | None, fix: str = CHECK_PATH) -> None:
    """Refuse paths that do not exist, and any data for a model that takes none; `fix` ends the error."""
    if data is not None and not spec.takes_data:
        raise ArgumentError(f"{spec.name} makes its own data", "no data", repr(data), "leave out --data")
    for part in [] if data is None else paths_of(data):
        if not os.path.exists(part):
            raise ArgumentError(f"there is no {part!r} to read", "a file or folder", repr(part), fix)


def data_of(spec: ModelSpec, config: Any, path: str | None) -> Data:
    """The data of a model; an error of reading names the path."""
    check_paths(spec, path)
    with blamed(spec, "making its data" if path is None else f"reading {path!r}"):
        try:
            given = spec.data(config, path)
        except (OSError, UnicodeError) as error:
            if path is None or isinstance(error, MinigradError):
                raise
            reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
            raise ArgumentError(f"{path!r} cannot be read: {reason}", fix=CHECK_PATH) from error
    if not isinstance(given, Data):
        raise ArgumentError(
            f"{spec.name}: its data function returned no Data", "minigrad.zoo.Data(train=…)", type(given).__name__
        )
    return given
