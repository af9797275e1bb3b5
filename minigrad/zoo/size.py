"""The memory that training a model takes at least, from its config alone: nothing is made for it."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from ..errors import ArgumentError
from ..nn.init import skip
from .spec import ModelSpec

__all__ = ["check_size"]

COPIES = 4  # weights, gradients and the two moments of Adam


def check_size(spec: ModelSpec, config: Any) -> None:
    """Refuse a model that this machine has no memory to train; the error names the setting that asks for most of it."""
    there, needed = _memory(), _bytes(spec, config)
    if there is None or needed is None or needed <= there:
        return
    default = spec.config()
    smaller = {}
    for field in dataclasses.fields(config):
        usual = getattr(default, field.name)
        if getattr(config, field.name) != usual:
            without = _bytes(spec, dataclasses.replace(config, **{field.name: usual}))
            smaller[field.name] = needed if without is None else without
    guilty = min(smaller, key=smaller.__getitem__, default=None)
    named = f"with {guilty}={getattr(config, guilty)} it" if guilty is not None else "it"
    raise ArgumentError(
        f"{spec.name} is too large for this machine: {named} takes {_shown(needed)} to train at least",
        f"at most {_shown(there)}",
        _shown(needed),
        f"give a smaller {guilty}" if guilty is not None else "choose a smaller preset",
    )


def _bytes(spec: ModelSpec, config: Any) -> float | None:
    """What training a model takes at least; None if that is unknown."""
    try:
        with skip():  # weights that are not drawn take no memory
            model = spec.build(config)
    except MemoryError as error:  # NumPy's, which knows what it was asked for
        return COPIES * float(getattr(error, "_total_size", "inf"))
    except Exception:  # as of settings that follow from the data; building the model in earnest says more
        return None
    return COPIES * float(sum(parameter.data.nbytes for parameter in model.parameters()))


def _memory() -> float | None:
    """The bytes of this machine's memory, where it tells."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _shown(size: float) -> str:
    return f"{size / 2**30:,.1f} GiB" if size < float("inf") else "more memory than there is anywhere"
