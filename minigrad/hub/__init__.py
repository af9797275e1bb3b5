"""The world's models: `minigrad.hub.load(SOURCE)` opens one in our own modules, with its tokenizer."""

from .family import HubError
from .loading import import_model, load

__all__ = ["HubError", "import_model", "load"]
