"""Ops as if a module of a given path were running."""

from collections.abc import Iterator
from contextlib import contextmanager

from minigrad.engine.modes import local


@contextmanager
def scope(path: str) -> Iterator[None]:
    """Inside, nodes and errors tell of the module `path`."""
    mode = local.mode
    outer, mode.scope = mode.scope, path
    try:
        yield
    finally:
        mode.scope = outer
