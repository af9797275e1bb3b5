"""Neural networks: `minigrad.nn.functional` holds their functions."""

from . import functional as functional

__all__ = ["functional"]
