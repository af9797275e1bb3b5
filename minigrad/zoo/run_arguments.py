"""The arguments that a run was trained with: which model, preset, settings, data, seed and device, as its files record them."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, CheckpointError, MinigradError
from ..train import RunError, find_checkpoint, read_state
from ..train.run import holds_a_run, runs_in
from .config import configure
from .registry import entries, find, list_models, package_of
from .spec import ModelSpec

__all__ = [
    "are_arguments", "arguments_in", "arguments_of", "check_is_run", "config_of", "newest_run", "other_version", "spec_of",
]  # fmt: skip

MOST = 10  # runs that an error names

# What a run directory says of the model in it, and of which type each is.
_KINDS: dict[str, Any] = {
    "model": str,
    "preset": (str, type(None)),
    "config": dict,
    "data": (str, type(None)),
    "seed": int,
    "device": str,
    "max_steps": int,
}


def spec_of(arguments: Mapping[str, Any], run: str | os.PathLike[str]) -> ModelSpec:
    """The spec of the model that a run is of."""
    try:
        return find(arguments["model"])
    except ArgumentError as error:
        package = arguments.get("package", "the package that it came with")
        raise ArgumentError(
            f"{str(error).splitlines()[0]}, which {os.fspath(run)!r} was trained with", fix=f"install {package}"
        ) from None


def config_of(spec: ModelSpec, arguments: Mapping[str, Any]) -> Any:
    """The config that a run was trained with; one of another version is refused with what differs."""
    try:
        return configure(spec, None, arguments["config"])
    except ArgumentError as error:
        raise other_version(spec, arguments, error) from error


def other_version(spec: ModelSpec, arguments: Mapping[str, Any], error: MinigradError) -> RunError:
    trained, now = arguments.get("package"), package_of(spec)
    versions = "" if trained in (None, now) else f", with {trained} (installed is {now})"
    problem, *rest = (line.strip() for line in str(error).splitlines())
    return RunError(
        f"this run was trained by another version of {spec.name!r}{versions}: {problem}",
        got="; ".join(rest) or None,
        fix="install the version that it was trained with, or train anew",
    )


def arguments_of(out: str | os.PathLike[str]) -> dict[str, Any]:
    """What was asked for when a run began: from its latest checkpoint, or from config.json if there is none yet."""
    if Path(out).is_file():
        raise RunError(f"{os.fspath(out)!r} is a file", "the directory of a run", fix="give the directory it is from")
    check_is_run(out)
    try:
        state = read_state(find_checkpoint(out, "latest"))
    except CheckpointError:
        if not (Path(out) / "config.json").is_file():
            raise
        return _first_arguments(out)
    return arguments_in(state, out)


def check_is_run(run: str | os.PathLike[str]) -> None:
    """Refuse the name of a model, and a folder of runs, where a run is asked for; name the runs that could be meant."""
    given, expected = os.fspath(run), "the directory of a run"
    if not os.path.exists(run):
        name = given.partition(":")[0]
        if name in {entry.name for entry in entries()}:
            newest = next(_newest_first("runs", lambda folder: _first_arguments(folder)["model"] == name), None)
            fix = f"train it first: minigrad train {given}" if newest is None else f"give a run of it, such as {newest}"
            raise RunError(f"{given!r} is a model, not a run", expected, fix=fix)
    elif not holds_a_run(run) and (inside := runs_in(run)):
        shown = ", ".join(map(os.fspath, inside[:MOST])) + f" and {len(inside) - MOST} more" * (len(inside) > MOST)
        raise RunError(f"{given!r} is a folder of runs, not a run", expected, fix=f"give one of them: {shown}")


def _first_arguments(out: str | os.PathLike[str]) -> dict[str, Any]:
    path = Path(out) / "config.json"
    try:
        return arguments_in(json.loads(path.read_text(encoding="utf-8")), out)
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{os.fspath(path)!r} cannot be read", fix="train anew into another directory") from error


def arguments_in(state: Any, out: str | os.PathLike[str]) -> dict[str, Any]:
    """The arguments from a checkpoint's state or from config.json, with the steps and the `compile` that were last asked for."""
    parts = [state.get(name) if isinstance(state, dict) else None for name in ("config", "training")]
    arguments, training = (dict(part) if isinstance(part, dict) else {} for part in parts)
    arguments |= {name: training[name] for name in ("max_steps", "compile") if name in training}
    if not are_arguments(arguments):
        raise RunError(
            f"{os.fspath(out)!r} is no run of `minigrad train`",
            "the directory that it trained into",
            fix="give the run that an exported folder came from; load a checkpoint of your own Trainer in Python",
        )
    return arguments


def are_arguments(arguments: Mapping[str, Any]) -> bool:
    """Whether all is there that a model is built and used by."""
    return all(key in arguments and isinstance(arguments[key], _KINDS[key]) for key in _KINDS)


def newest_run(
    task: str | Sequence[str] | None = None, root: str | os.PathLike[str] = "runs", fix: str | None = None
) -> Path:
    """The run directory under `root` that was trained last, of models of one task, or of several; `fix` ends the error."""
    tasks = [task] if isinstance(task, str) else task
    for folder in _newest_first(root, lambda run: tasks is None or find(_first_arguments(run)["model"]).task in tasks):
        return folder
    wanted = "run" if tasks is None else f"run of a model for {' or '.join(tasks)}"
    names = [entry.name for name in tasks or () for entry in list_models(task=name)]
    train = f"minigrad train {names[0] if len(names) == 1 else 'NAME'}"
    which = f" ({', '.join(names)})" if len(names) > 1 else ""
    raise RunError(
        f"there is no {wanted} in {os.fspath(root)!r}", fix="; ".join(filter(None, [f"train one{which}: {train}", fix]))
    )


def _newest_first(root: str | os.PathLike[str], is_wanted: Callable[[Path], bool]) -> Iterator[Path]:
    """The wanted runs under `root`, the one that was trained last first; what cannot be read is passed over."""
    folders = [path.parent for path in Path(root).glob("*/config.json")]
    for folder in sorted(folders, key=_last_trained, reverse=True):
        with contextlib.suppress(MinigradError):
            if is_wanted(folder):
                yield folder


def _last_trained(folder: Path) -> float:
    return max(path.stat().st_mtime for name in ("latest", "config.json") if (path := folder / name).is_file())
