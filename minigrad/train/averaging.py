"""Checkpoint averaging: the mean weights of the last checkpoints are usually a little better than the last ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..errors import ArgumentError, CheckpointError
from .checkpoint import read_checkpoint, read_state
from .run import checkpoints_of

__all__ = ["average_checkpoints"]


def average_checkpoints(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], last: int = 3
) -> dict[str, np.ndarray]:
    """The mean of the model's weights over the `last` checkpoints of a run directory, or over the given files.

    The run must have kept that many (`Trainer(…, keep=10)`); an older best checkpoint is not counted. Values that are not
    floating, such as counts, are those of the last checkpoint. The result goes to `model.load_state_dict`.
    """
    if last < 1:
        raise ArgumentError("average_checkpoints: nothing to average", "last of at least 1", last)
    paths = _newest(source, last) if isinstance(source, (str, os.PathLike)) else [Path(path) for path in source]
    if not paths:
        raise CheckpointError(
            "average_checkpoints: there is no checkpoint", "the directory of a run, or files", got=repr(source)
        )
    sums: dict[str, np.ndarray] = {}
    weights: dict[str, np.ndarray] = {}
    for path in paths:
        weights = read_checkpoint(path).model
        shapes = {name: value.shape for name, value in weights.items()}
        if sums and shapes != {name: value.shape for name, value in sums.items()}:
            raise CheckpointError(
                f"average_checkpoints: {path.name!r} is of another model", fix="give those of one run"
            )
        for name, value in weights.items():
            wide = np.complex128 if value.dtype.kind == "c" else np.float64
            sums[name] = sums[name] + value if name in sums else value.astype(wide)
    return {
        name: (sums[name] / len(paths)).astype(value.dtype) if value.dtype.kind in "fc" else value.copy()
        for name, value in weights.items()
    }


def _newest(folder: str | os.PathLike[str], last: int) -> list[Path]:
    """The last checkpoints of a run, oldest first, without a best one that is older and was kept for that."""
    paths = checkpoints_of(folder)
    if not paths:
        return []
    settings = read_state(paths[-1]).get("training")
    keep = settings.get("keep") if isinstance(settings, dict) else None
    if type(keep) is int and keep > 0:
        paths = paths[-keep:]
    if len(paths) < last:
        raise CheckpointError(
            f"average_checkpoints: {os.fspath(folder)!r} has fewer checkpoints in a row than that",
            f"at least {last}",
            len(paths),
            f"give last={len(paths)}, or train with keep={last}",
        )
    return paths[-last:]
