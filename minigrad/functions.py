"""The ops as functions, `mg.exp`, `mg.sum` …; `functions.pyi` beside this file tells type checkers their signatures."""

from .ops import FUNCTIONS

globals().update(FUNCTIONS)
__all__ = sorted(FUNCTIONS)
