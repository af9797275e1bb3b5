"""The course: its lessons as notebooks."""

from .notebooks import notebook_of, scripts, write_notebooks

__all__ = ["notebook_of", "scripts", "write_notebooks"]
