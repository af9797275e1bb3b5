"""Run directories. One process at a time trains into one, and no crash leaves it inconsistent.

config.json      the arguments of the run, and the versions of libraries
metrics.csv      losses, rates, norms: the same whenever the run is repeated
timing.csv       seconds, speed
checkpoints/     step-00000100.safetensors, …
latest, best     each the name of a checkpoint
scores.json      the last evaluation of what was trained
samples/         the model's samples at each validation
frames/          pictures of the model as it learned
lock             held by the process that trains
report.html      the run as a page
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from ..errors import ArgumentError, CheckpointError, MinigradError, nearest
from ..runtime.file_lock import lock_file
from ..saving import sync_folder, write_atomically
from .checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from .csv_log import CSVLog

__all__ = [
    "Run", "RunError", "checkpoints_of", "files_of_steps", "find_checkpoint", "foreign_files", "holds_a_run", "load_model", "runs_in",
    "step_of",
]  # fmt: skip

_CHECKPOINT = re.compile(r"step-(\d{8,18})\.safetensors")
_SMALL = re.compile(r"step-(\d{8,18})\.(?:svg|txt)")
_BY_STEP = ("samples", "frames")
_OWN = {
    "config.json",
    "metrics.csv",
    "timing.csv",
    "checkpoints",
    "latest",
    "best",
    "lock",
    "report.html",
    "scores.json",
    *_BY_STEP,
}
_POINTER_LIMIT = 256  # bytes: a pointer is one file name


class RunError(MinigradError, RuntimeError):
    """A run directory is in use, taken, or cannot be used."""


@contextlib.contextmanager
def _explained(problem: str) -> Iterator[None]:
    """Inside, an OSError becomes a RunError."""
    try:
        yield
    except OSError as error:
        raise RunError(
            f"{problem}: {error.strerror}", fix="see to the disk and to its permissions, or choose another directory"
        ) from error


def checkpoints_of(folder: str | os.PathLike[str]) -> list[Path]:
    """The checkpoints of a run, oldest first."""
    inside = Path(folder) / "checkpoints"
    with _explained(f"{os.fspath(inside)!r} cannot be read"):
        names = [path for path in inside.iterdir() if _CHECKPOINT.fullmatch(path.name)] if inside.is_dir() else []
    return sorted(names, key=step_of)


def step_of(path: Path) -> int:
    """The step of a checkpoint, from its name."""
    match = _CHECKPOINT.fullmatch(path.name)
    assert match is not None
    return int(match.group(1))


def files_of_steps(folder: str | os.PathLike[str]) -> dict[int, Path]:
    """The samples or frames in a folder, by step; none where it cannot be read."""
    with contextlib.suppress(OSError):
        named = {path: _SMALL.fullmatch(path.name) for path in Path(folder).iterdir()}
        return dict(sorted((int(match.group(1)), path) for path, match in named.items() if match is not None))
    return {}


def holds_a_run(folder: str | os.PathLike[str]) -> bool:
    """Whether anything was trained into this directory: a run that failed before its first step can be begun again."""
    return any(map(step_of, checkpoints_of(folder))) or os.path.exists(Path(folder) / "metrics.csv")


def foreign_files(folder: str | os.PathLike[str]) -> list[str]:
    """The names in a directory that are not of a run's own files, sorted; none if there is no such directory."""
    place = Path(folder)
    with _explained(f"{os.fspath(folder)!r} cannot be read"):
        names = [path.name for path in place.iterdir()] if place.is_dir() else []
    return sorted(name for name in names if name not in _OWN and not (name.startswith(".") and name.endswith(".tmp")))


def runs_in(folder: str | os.PathLike[str]) -> list[Path]:
    """The run directories that lie in a directory, sorted by name."""
    place = Path(folder)
    with contextlib.suppress(OSError):
        return sorted(path for path in place.iterdir() if path.is_dir() and holds_a_run(path)) if place.is_dir() else []
    return []


def find_checkpoint(path: str | os.PathLike[str], which: str = "latest") -> Path:
    """The file to read: `path` itself if it is one, or the `latest` or `best` checkpoint of a run directory."""
    folder = Path(path)
    if which not in ("latest", "best"):
        raise ArgumentError(f"find_checkpoint: there is no {which!r}", fix=nearest(str(which), ("latest", "best")))
    if os.path.isfile(folder):
        return folder
    target = _pointed(folder, which)
    if target is None and which == "latest":
        target = next(reversed(checkpoints_of(folder)), None)
    if target is not None:
        return target
    problem, fix = f"has no {which} checkpoint", "check the path"
    if not os.path.exists(folder):
        problem, fix = "does not exist", "check the path, or train a model first"
        if os.path.isdir(in_runs := os.path.join("runs", folder)):
            fix = f"the run of that name is {in_runs}"
    elif which == "best" and checkpoints_of(folder):
        fix = 'a run has a best checkpoint once it was validated; any run has a "latest"'
    raise CheckpointError(f"{os.fspath(path)!r} {problem}", "a checkpoint file, or the directory of a run", fix=fix)


def load_model(model: Any, path: str | os.PathLike[str], which: str = "best") -> Checkpoint:
    """Put the weights of a run's `best` or `latest` checkpoint, or of a checkpoint file, into a model of the same build.

    Returns the checkpoint, which may have a `tokenizer`, and in `state["config"]` the configuration of the run.
    """
    checkpoint = read_checkpoint(find_checkpoint(path, which))
    model.load_state_dict(checkpoint.model)
    return checkpoint


def _pointed(folder: Path, which: str) -> Path | None:
    """The checkpoint that `latest` or `best` names, None if there is no such checkpoint in the run."""
    try:
        with open(folder / which, "rb") as file:
            name = file.read(_POINTER_LIMIT).decode("ascii", "replace").strip()
    except OSError:
        return None
    target = folder / "checkpoints" / name
    return target if _CHECKPOINT.fullmatch(name) and os.path.isfile(target) else None


class Run:
    """A run directory. This process holds its lock from `Run(folder)` to `close()`, or until it ends."""

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder).absolute()  # user code may change the working directory
        with _explained(f"{os.fspath(folder)!r} cannot be a run directory"):
            (self.folder / "checkpoints").mkdir(parents=True, exist_ok=True)
            self._lock: IO[bytes] | None = _locked(self.folder)
            (self.folder / "scores.json").unlink(missing_ok=True)  # of weights that are about to change
        self._remove_temporary_files()
        self.metrics = CSVLog(self.folder / "metrics.csv")
        self.timing = CSVLog(self.folder / "timing.csv")

    def close(self) -> None:
        """Let others train here."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _remove_temporary_files(self) -> None:
        """Those of a killed process."""
        for place in ("", "checkpoints", *_BY_STEP):
            for path in (self.folder / place).glob(".*.tmp"):
                with contextlib.suppress(OSError):
                    path.unlink()

    def save(
        self, step: int, tensors: Mapping[str, Any], state: Mapping[str, Any], best: bool = False, keep: int | None = 3
    ) -> Path:
        """Write a checkpoint, then let `latest` (and `best`) name it, then remove all but the `keep` newest ones.

        In this order `latest` and `best` name a complete checkpoint at every moment; these two are never removed.
        """
        path = self.folder / "checkpoints" / f"step-{step:08d}.safetensors"
        self.metrics.sync()
        write_checkpoint(path, tensors, state)
        try:
            if best:
                self.point("best", path)
            self.point("latest", path)
        except OSError as error:
            raise CheckpointError(
                f"{os.fspath(self.folder)!r}: the checkpoint is written, but `latest` cannot be: {error.strerror}",
                fix="make room on the disk; what `latest` names is whole",
            ) from error
        if keep is not None:
            self._prune(step, max(keep, 1))
        return path

    def point(self, which: str, path: Path) -> None:
        """Let `latest` or `best` name a checkpoint."""
        write_atomically(self.folder / which, f"{path.name}\n".encode())
        sync_folder(self.folder)

    def _prune(self, step: int, keep: int) -> None:
        """Remove old checkpoints. Those of later steps were left by a run that was rewound, and will be overwritten."""
        pointed = {_pointed(self.folder, which) for which in ("latest", "best")}
        done = [path for path in checkpoints_of(self.folder) if step_of(path) <= step]
        for path in done[:-keep]:
            if path not in pointed:
                with contextlib.suppress(OSError):
                    path.unlink()

    def read_latest(self, say: Callable[[str], None]) -> Checkpoint | None:
        """The latest checkpoint that can be read, None if there is none at all; says so if a newer one is damaged."""
        problem: CheckpointError | None = None
        for path in self._newest_first():
            try:
                found = read_checkpoint(path)
            except CheckpointError as error:
                say(f"{str(error).splitlines()[0]}; trying the one before it")
                problem = error
            else:
                if problem is not None:
                    say(f"going on from {path.name}")
                return found
        if problem is not None:
            raise problem
        return None

    def _newest_first(self) -> Iterator[Path]:
        first = _pointed(self.folder, "latest")
        if first is not None:
            yield first
        yield from (path for path in reversed(checkpoints_of(self.folder)) if path != first)

    def rewind(self, step: int, best_step: int | None = None) -> None:
        """Remove what was written after `step`, from which the run is resumed."""
        best = self.folder / "checkpoints" / f"step-{best_step or 0:08d}.safetensors"
        with _explained(f"{os.fspath(self.folder)!r} has tables that cannot be written"):
            for table in (self.metrics, self.timing):
                table.rewind(step)
            if best_step is not None and best.is_file() and _pointed(self.folder, "best") != best:
                self.point("best", best)
        for place in _BY_STEP:
            for at, path in files_of_steps(self.folder / place).items():
                if at > step:
                    with contextlib.suppress(OSError):
                        path.unlink()

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Write the arguments of the run."""
        self.write_text("config.json", json.dumps(config, indent=2, sort_keys=True, default=repr) + "\n")

    def write_text(self, name: str, text: str, durable: bool = True) -> None:
        """Write a small file of the run, completely or not at all; if it is not `durable`, a power cut may lose it."""
        path = self.folder / name
        with _explained(f"{os.fspath(path)!r} cannot be written"):
            path.parent.mkdir(exist_ok=True)
            write_atomically(path, text.encode(errors="backslashreplace"), durable)


def _locked(folder: Path) -> IO[bytes]:
    """The lock file of a run directory; closing it, or the end of the process, frees the lock."""
    try:
        return lock_file(folder / "lock")
    except BlockingIOError as error:
        raise RunError(
            f"{os.fspath(folder)!r}: another process is training into this directory",
            got=error.strerror or None,
            fix="wait for it, stop it, or choose another directory",
        ) from None
    except OSError as error:
        raise RunError(f"{os.fspath(folder)!r} cannot be locked: {error.strerror}", fix="use a local disk") from None
