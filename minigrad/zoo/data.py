"""The data of a model: checks the paths, and calls the plugin's data function."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from .. import tree
from ..data.batching import Batch
from ..engine.backend import is_array
from ..engine.tensor import Tensor
from ..errors import ArgumentError, MinigradError
from ..ops.creation import tensor
from .registry import blamed
from .spec import Data, ModelSpec

__all__ = ["CHECK_PATH", "check_paths", "data_of", "paths_of", "with_batches_on"]

CHECK_PATH = "check the path given by --data"


def paths_of(data: str) -> list[str]:
    """One path, or several with commas between them."""
    return [data] if os.path.exists(data) else data.split(",")


def check_paths(spec: ModelSpec, data: str | None, fix: str = CHECK_PATH) -> None:
    """Refuse paths that do not exist, and any data for a model that takes none; `fix` ends the error."""
    if data is not None and not spec.takes_data:
        raise ArgumentError(f"{spec.name} makes its own data", "no data", repr(data), "leave out --data")
    parts = [] if data is None else paths_of(data)
    if spec.most_files is not None and len(parts) > spec.most_files:
        few = "one file" if spec.most_files == 1 else f"at most {spec.most_files} files"
        raise ArgumentError(f"{spec.name} reads {few}", few, f"{len(parts)}: {data}", "join them into one, or give one")
    for part in parts:
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


def with_batches_on(device: str, loss: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The loss with batches moved to the device."""

    def placed(part: Any) -> Any:
        if isinstance(part, Batch):
            return part.to(device)
        return tensor(part, device=device) if is_array(part) or isinstance(part, Tensor) else part

    return functools.wraps(loss)(
        lambda model, batch: loss(model, tree.map(placed, batch, is_leaf=lambda part: isinstance(part, Batch)))
    )
