"""Weight decay, as most rules have it."""

from __future__ import annotations

from ...engine.backend import Array
from ..optimizer import Group

__all__ = ["decayed"]


def decayed(p: Array, g: Array, group: Group) -> Array:
    """The gradient g + weight_decay · p; with `decoupled_weight_decay` g itself, and p is made smaller in place."""
    decay = group["weight_decay"]
    if not decay:
        return g
    if group.get("decoupled_weight_decay"):
        p *= 1 - group["lr"] * decay
        return g
    return g + decay * p
