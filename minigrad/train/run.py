"""A run is a directory that explains itself, that one process at a time trains into, and that no crash leaves in disorder.

config.json      what was asked for, and with which versions
metrics.csv      what repeats exactly when the run is repeated: losses, rates, norms
timing.csv       what does not: seconds, speed
checkpoints/     step-00000100.safetensors, …
latest, best     each the name of a checkpoint
samples/         what the model produced at each validation
frames/          pictures of what it did as it learned
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from ..engine.errors import ArgumentError, CheckpointError, MinigradError, nearest
from ..saving import write_atomically
from .checkpoint import Checkpoint, read_checkpoint, sync_folder, write_checkpoint
from .table import Table

__all__ = [
    "Run", "RunError", "checkpoints_of", "files_of_steps", "find_checkpoint", "holds_a_run", "load_model", "step_of",
]  # fmt: skip

_CHECKPOINT = re.compile(r"step-(\d{8,18})\.safetensors")
_SMALL = re.compile(r"step-(\d{8,18})\.(?:svg|txt)")
_BY_STEP = ("samples", "frames")
_POINTER_LIMIT = 256  # bytes: a pointer is one file name
_LOCKED_BYTE = 1 << 20  # past what is written: on Windows a locked byte cannot be read


class RunError(MinigradError, RuntimeError):
    """A run directory is in use, taken, or cannot be used."""


@contextlib.contextmanager
def _explained(problem: str) -> Iterator[None]:
    """Inside, what the system refuses is a RunError."""
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
    """The step that a checkpoint was taken at, as its name says."""
    match = _CHECKPOINT.fullmatch(path.name)
    assert match is not None
    return int(match.group(1))


def files_of_steps(folder: str | os.PathLike[str]) -> dict[int, Path]:
    """The samples or frames in a folder, by the step they are of; none where it cannot be read."""
    with contextlib.suppress(OSError):
        named = {path: _SMALL.fullmatch(path.name) for path in Path(folder).iterdir()}
        return dict(sorted((int(match.group(1)), path) for path, match in named.items() if match is not None))
    return {}


def holds_a_run(folder: str | os.PathLike[str]) -> bool:
    """Whether anything was trained into this directory."""
    return bool(checkpoints_of(folder)) or os.path.exists(Path(folder) / "metrics.csv")


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
    if target is None and not os.path.exists(folder):
        raise CheckpointError(
            f"{os.fspath(path)!r} does not exist",
            "a checkpoint file, or the directory of a run",
            fix="check the path, or train a model first",
        )
    if target is None:
        raise CheckpointError(
            f"{os.fspath(path)!r} has no {which} checkpoint",
            "a checkpoint file, or the directory of a run",
            fix='a run has a best checkpoint once it was validated; any run has a "latest"'
            if which == "best" and checkpoints_of(folder)
            else "check the path",
        )
    return target


def load_model(model: Any, path: str | os.PathLike[str], which: str = "best") -> Checkpoint:
    """Put the weights of a run's `best` or `latest` checkpoint, or of a checkpoint file, into a model of the same build.

    Returns the checkpoint, which may have a `tokenizer`, and in `state["config"]` the configuration of the run.
    """
    checkpoint = read_checkpoint(find_checkpoint(path, which))
    model.load_state_dict(checkpoint.model)
    return checkpoint


def _pointed(folder: Path, which: str) -> Path | None:
    """Where a pointer leads, if it is whole and leads to a checkpoint of the same run."""
    try:
        with open(folder / which, "rb") as file:
            name = file.read(_POINTER_LIMIT).decode("ascii", "replace").strip()
    except OSError:
        return None
    target = folder / "checkpoints" / name
    return target if _CHECKPOINT.fullmatch(name) and os.path.isfile(target) else None


class Run:
    """A run directory that this process holds the lock of, from `Run(folder)` to `close()` or its death."""

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder).absolute()  # the user's code may change the working directory
        with _explained(f"{os.fspath(folder)!r} cannot be a run directory"):
            (self.folder / "checkpoints").mkdir(parents=True, exist_ok=True)
            self._lock: IO[bytes] | None = _locked(self.folder)
        self._sweep()
        self.metrics = Table(self.folder / "metrics.csv")
        self.timing = Table(self.folder / "timing.csv")

    def close(self) -> None:
        """Let others train here."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _sweep(self) -> None:
        """Remove what a killed process was in the middle of writing."""
        for place in ("", "checkpoints", *_BY_STEP):
            for path in (self.folder / place).glob(".*.tmp"):
                with contextlib.suppress(OSError):
                    path.unlink()

    def save(
        self, step: int, tensors: Mapping[str, Any], state: Mapping[str, Any], best: bool = False, keep: int | None = 3
    ) -> Path:
        """Write a checkpoint, then let `latest` (and `best`) point to it, then remove all but the `keep` newest ones.

        In this order whatever a pointer names is whole at every moment. Those that `latest` and `best` name stay.
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
        """Checkpoints of later steps are of a past that was gone back from; they are overwritten in time."""
        pointed = {_pointed(self.folder, which) for which in ("latest", "best")}
        done = [path for path in checkpoints_of(self.folder) if step_of(path) <= step]
        for path in done[:-keep]:
            if path not in pointed:
                with contextlib.suppress(OSError):
                    path.unlink()

    def read_latest(self, say: Callable[[str], None]) -> Checkpoint | None:
        """The latest checkpoint that can be read, None if there never was one; says so if a newer one is damaged."""
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

    def go_back(self, step: int, best_step: int | None = None) -> None:
        """Undo what was written after `step`, which the run goes on from, so that it is not there twice."""
        best = self.folder / "checkpoints" / f"step-{best_step or 0:08d}.safetensors"
        with _explained(f"{os.fspath(self.folder)!r}  has tables that cannot be written"):
            for table in (self.metrics, self.timing):
                table.go_back(step)
            if best_step is not None and best.is_file() and _pointed(self.folder, "best") != best:
                self.point("best", best)
        for place in _BY_STEP:
            for at, path in files_of_steps(self.folder / place).items():
                if at > step:
                    with contextlib.suppress(OSError):
                        path.unlink()

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Put down what was asked for."""
        self.write_text("config.json", json.dumps(config, indent=2, sort_keys=True, default=repr) + "\n")

    def write_text(self, name: str, text: str, durable: bool = True) -> None:
        """Write a small file of the run whole, or not at all; one that is not `durable` may not outlive a power cut."""
        path = self.folder / name
        with _explained(f"{os.fspath(path)!r} cannot be written"):
            path.parent.mkdir(exist_ok=True)
            write_atomically(path, text.encode(errors="backslashreplace"), durable)


def _locked(folder: Path) -> IO[bytes]:
    """The open lock file; closing it, or dying, lets go of the lock."""
    file = open(folder / "lock", "a+b", buffering=0)  # noqa: SIM115  (it stays open as long as the lock is held)
    try:
        _lock(file)
    except OSError as error:
        file.seek(0)
        holder = file.read(64).decode("ascii", "replace").strip()
        file.close()
        if isinstance(error, (BlockingIOError, PermissionError)):
            raise RunError(
                f"{os.fspath(folder)!r}: another process is training into this directory",
                got=holder or None,
                fix="wait for it, stop it, or choose another directory",
            ) from None
        raise RunError(f"{os.fspath(folder)!r} cannot be locked: {error.strerror}", fix="use a local disk") from None
    with contextlib.suppress(OSError):  # a full disk can still be locked, only without telling by whom
        file.truncate(0)
        file.write(f"process {os.getpid()}\n".encode())
    return file


def _lock(file: IO[bytes]) -> None:
    if os.name == "nt":
        import msvcrt

        file.seek(_LOCKED_BYTE)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
