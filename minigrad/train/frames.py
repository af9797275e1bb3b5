"""Pictures of what a model does while it learns, in the folder `frames` of its run: enough for an animation, never too many."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import TYPE_CHECKING

from .run import files_of_steps
from .steps import undisturbed
from .world import alone

if TYPE_CHECKING:
    from .trainer import Trainer

__all__ = ["Frames"]

FRAMES = 40  # in a run, closer together at its beginning, where most is learned
MOST = 60  # that are kept, where a run went on for longer than it was meant to


class Frames:
    """Lets a trainer draw its model, at most once a step; a picture that fails is the last, and said."""

    def __init__(self) -> None:
        self._drawn = -1
        self._failed = False

    def is_due(self, step: int, max_steps: int | None) -> bool:
        """Whether a step is one of the `FRAMES` that are (i / FRAMES)² of the way."""
        way = max_steps or FRAMES**2
        before, now = (math.isqrt(s * FRAMES**2 // way) for s in (max(step - 1, 0), step))
        return now > before

    def take(self, trainer: Trainer) -> None:
        """Write `frames/step-00000100.svg`."""
        run, step = trainer._run, trainer.step
        if trainer.draw is None or run is None or self._failed or step == self._drawn:
            return
        self._drawn = step
        try:
            with alone(), undisturbed(trainer.model):  # the other ranks do not draw
                picture = trainer.draw(trainer.scaler or trainer.model)
            if picture is not None:
                run.write_text(f"frames/step-{step:08d}.svg", picture.svg(), durable=False)
                _thin(run.folder / "frames")
        except Exception as error:  # whatever a picture may fail with, it is not worth a run
            self._failed = True
            told = f"{type(error).__name__}: {' '.join(str(error).split())}"
            trainer.progress.say(f"step {step:,} could not be drawn ({told}); training goes on without pictures")


def _thin(folder: Path) -> None:
    """Remove pictures whose neighbours are nearest to each other, until few enough are left."""
    kept = list(files_of_steps(folder).items())
    while len(kept) > MOST:
        places = [math.sqrt(step) for step, _ in kept]
        least = min(range(1, len(kept) - 1), key=lambda i: places[i + 1] - places[i - 1])
        with contextlib.suppress(OSError):
            kept[least][1].unlink()
        del kept[least]
