"""Models that are trained for a while to be measured, once: their weights and lengths are those of real ones."""

from __future__ import annotations

from pathlib import Path

from ..measure import progress


def trained(name: str, runs: Path, steps: int, data: str | None = None, **settings: object) -> Path:
    """The directory of a run of so many steps; it is trained to its end now if it was not before."""
    from minigrad import zoo
    from minigrad.data import fetch
    from minigrad.train import find_checkpoint, read_state
    from minigrad.train.run import holds_a_run

    out = runs / name.replace(":", "-")
    if not holds_a_run(out):
        progress(f"training {name} for {steps:,} steps")
        zoo.train(name, out, data=None if data is None else str(fetch(data)), steps=steps, progress=False, **settings)
    elif read_state(find_checkpoint(out, "latest"))["step"] < steps:
        zoo.resume(out)
    return out
