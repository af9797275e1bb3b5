"""The ops as functions, `mg.exp`, `mg.sum` …; `functions.pyi` beside this file has their signatures for type checkers."""

from .ops import FUNCTIONS

globals().update(FUNCTIONS)
__all__ = sorted(FUNCTIONS)
