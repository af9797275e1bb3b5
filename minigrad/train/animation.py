"""Frames of an animation of training: pictures of the model in the folder `frames` of its run."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import TYPE_CHECKING

from ..runtime.process_group import single_process
from .evaluation import evaluation_mode
from .run import files_of_steps

if TYPE_CHECKING:
    from .trainer import Trainer

__all__ = ["FrameWriter"]

FRAMES = 40  # in a run, closer together at its beginning, where most is learned
MOST = 60  # frames that are kept when a run is extended


class FrameWriter:
    """Draws a trainer's model, at most once a step; stops with a message at the first picture that fails."""

    def __init__(self) -> None:
        self._drawn = -1
        self._failed = False

    def is_due(self, step: int, max_steps: int | None) -> bool:
        """Whether the step is one of `FRAMES` at (i / FRAMES)² of the steps."""
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
            with single_process(), evaluation_mode(trainer.model):  # other ranks do not draw
                picture = trainer.draw(trainer.scaler or trainer.model)
            if picture is not None:
                run.write_text(f"frames/step-{step:08d}.svg", picture.svg(), durable=False)
                _thin(run.folder / "frames")
        except Exception as error:  # no failed picture may end a run
            self._failed = True
            problem = f"{type(error).__name__}: {' '.join(str(error).split())}"
            trainer.progress.say(f"step {step:,} could not be drawn ({problem}); training goes on without pictures")


def _thin(folder: Path) -> None:
    """Remove the frames whose neighbours are closest to each other, until `MOST` are left."""
    kept = list(files_of_steps(folder).items())
    while len(kept) > MOST:
        places = [math.sqrt(step) for step, _ in kept]
        least = min(range(1, len(kept) - 1), key=lambda i: places[i + 1] - places[i - 1])
        with contextlib.suppress(OSError):
            kept[least][1].unlink()
        del kept[least]
