"""Trained models from files: a run directory, one checkpoint file, or an exported folder."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import MinigradError
from ..train import Checkpoint, find_checkpoint, read_checkpoint
from .export import is_exported, load_exported
from .loaded import Loaded, assembled
from .run_arguments import arguments_in, check_is_run, spec_of
from .spec import ModelSpec

__all__ = ["load", "load_as"]


def load(run: str | os.PathLike[str], which: str = "best") -> Loaded:
    """The model of a run directory, of one checkpoint file, or of an exported folder, ready to be used."""
    if is_exported(run):
        return load_exported(run)
    check_is_run(run)
    checkpoint = read_checkpoint(_best_or_latest(run, which))
    return _loaded(spec_of(arguments_in(checkpoint.state, run), run), checkpoint, run)


def load_as(spec: ModelSpec, run: str | os.PathLike[str], which: str = "best") -> Loaded:
    """As `load`, of a spec that need not be installed."""
    return _loaded(spec, read_checkpoint(_best_or_latest(run, which)), run)


def _loaded(spec: ModelSpec, checkpoint: Checkpoint, run: str | os.PathLike[str]) -> Loaded:
    arguments, step = arguments_in(checkpoint.state, run), int(checkpoint.state.get("step", 0))
    return assembled(spec, arguments, checkpoint.model, checkpoint.tokenizer, step, Path(run))


def _best_or_latest(run: str | os.PathLike[str], which: str) -> Path:
    """A run without validation has no best checkpoint; its latest is as good."""
    try:
        return find_checkpoint(run, which)
    except MinigradError:
        return find_checkpoint(run, "latest")
