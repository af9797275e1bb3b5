"""Pictures of what the engine and the models do: graphs, attention, training. Everything is drawn from the numbers themselves."""

from .scene import Scene

__all__ = ["Scene"]
