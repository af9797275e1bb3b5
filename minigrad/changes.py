"""A counter of changes to modules and optimisers, so that a compiled function knows at once that nothing has changed.

What a compiled function refers to is compared again only when the counter has moved (minigrad.ir.surroundings).
"""

from __future__ import annotations

__all__ = ["changes"]


class _Changes:
    """How often a module or an optimiser was changed, in this process."""

    count = 0

    def note(self) -> None:
        """Something was changed that a compiled function may depend on."""
        self.count += 1


changes = _Changes()
