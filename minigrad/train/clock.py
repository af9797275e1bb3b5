"""Time spent training, how fast it goes, and how long it will take."""

from __future__ import annotations

from time import monotonic

__all__ = ["Clock"]


class Clock:
    """Counts from the step and the seconds that earlier parts of the run had come to."""

    def __init__(self, step: int, seconds: float):
        self._first, self._earlier = step, seconds
        self._began = self._saved = monotonic()
        self._units = 0

    def total(self) -> float:
        """The seconds of the whole run."""
        return self._earlier + monotonic() - self._began

    def count(self, units: int) -> None:
        """So many more units are done."""
        self._units += units

    def speed(self) -> float:
        """Units in a second, on average since training began or went on."""
        return self._units / max(monotonic() - self._began, 1e-9)

    def remaining(self, step: int, max_steps: int | None, max_minutes: float | None) -> float | None:
        """The seconds until the first limit is reached, None if there is no limit."""
        each = (monotonic() - self._began) / max(step - self._first, 1)
        limits = [] if max_steps is None else [(max_steps - step) * each]
        if max_minutes is not None:
            limits.append(60 * max_minutes - self.total())
        return max(min(limits), 0.0) if limits else None

    def saved(self) -> None:
        """The run was saved just now."""
        self._saved = monotonic()

    def since_save(self) -> float:
        """The seconds since the run was last saved."""
        return monotonic() - self._saved
