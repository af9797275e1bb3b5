"""What serves pages to a browser."""

from .server import Feed, serve

__all__ = ["Feed", "serve"]
