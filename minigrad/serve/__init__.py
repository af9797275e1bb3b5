"""`minigrad serve`: a loaded model over HTTP, for browsers, for programs, and for clients of OpenAI's interface."""

from .app import App, run

__all__ = ["App", "run"]
