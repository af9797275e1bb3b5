"""Processes that are killed while they train or save, and what must be true afterwards: for the tests, and for the long soak."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from minigrad.train import Run, find_checkpoint, read_checkpoint
from minigrad.train.run import checkpoints_of, step_of

from . import killable_training as training

SCRIPT = Path(training.__file__)
Mixture = tuple[str, str, str]


def start(folder: Path, mixture: Mixture, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(SCRIPT), str(folder), *mixture, *options]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def start_training(folder: Path, mixture: Mixture, *options: str, until: str = "training") -> subprocess.Popen[str]:
    """A process that is about to train, or that has said something else."""
    process = start(folder, mixture, *options)
    assert process.stdout is not None
    assert any(line.startswith(until) for line in iter(process.stdout.readline, "")), process.communicate()[1]
    return process


def kill(folder: Path, mixture: Mixture, after: float) -> None:
    """Train, or go on training, and be killed so many seconds later."""
    process = start_training(folder, mixture, "--slow", "--doomed")
    time.sleep(after)
    process.kill()
    errors = process.communicate()[1]
    assert process.returncode == -signal.SIGKILL, errors


def finish(folder: Path, mixture: Mixture, *options: str) -> None:
    process = start(folder, mixture, *options)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors


def outcome(folder: Path) -> dict[str, object]:
    """All of a run that should repeat: tensors and state of the last checkpoint, metrics and samples."""
    checkpoint = read_checkpoint(find_checkpoint(folder))
    state = {name: value for name, value in checkpoint.state.items() if name != "seconds"}
    state["random"]["minigrad"].pop("fake", None)  # a device that only the tests' own process knows
    return {
        "tensors": {name: (a.dtype, a.shape, a.tobytes()) for name, a in checkpoint.tensors.items()},
        "state": state,
        "metrics": (folder / "metrics.csv").read_bytes(),
        "samples": {path.name: path.read_bytes() for path in (folder / "samples").iterdir()},
        "names": [path.name for path in checkpoints_of(folder)],
        "pointers": {name: (folder / name).read_bytes() for name in ("latest", "best")},
    }


def save_until_killed(folder: Path, tell: int) -> None:
    """Save without end, telling after each save which step is safe."""
    run = Run(folder)
    last = max(map(step_of, checkpoints_of(folder)), default=0)
    for step in range(last + 1, last + 10_000):
        run.save(step, {"w": np.full(30_000, step, np.float32)}, {"step": step}, best=step % 3 == 0, keep=2)
        os.write(tell, f"{step:08d}".encode())


def kill_while_saving(folder: Path) -> None:
    """Kill a process that saves again and again; every checkpoint must be whole, and none that was promised lost."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            save_until_killed(folder, tell)
        finally:
            os._exit(1)
    os.close(tell)
    acknowledged = int(os.read(told, 8))
    time.sleep(random.uniform(0, 0.02))
    os.kill(child, signal.SIGKILL)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    while chunk := os.read(told, 8):
        acknowledged = int(chunk)
    os.close(told)
    steps = {}
    for path in checkpoints_of(folder):
        found = read_checkpoint(path)
        steps[path.name] = found.state["step"]
        assert (found.tensors["w"] == found.state["step"]).all()
    assert steps[find_checkpoint(folder).name] >= acknowledged
    assert len(steps) >= min(2, acknowledged)
    if acknowledged >= 4:
        assert steps[find_checkpoint(folder, "best").name] % 3 == 0
