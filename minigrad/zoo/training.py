"""Training a model of the zoo: a Trainer from its spec and config, a run from the start, and a run resumed."""

from __future__ import annotations

import dataclasses
import os
import shlex
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import ArgumentError
from ..optim import AdamW
from ..parallel import Layout
from ..parallel.settings import fitting, layout_from
from ..random import seed_everything
from ..runtime.process_group import process_group, single_process
from ..train import RunError, Trainer, TrainResult
from ..train.run import foreign_files, holds_a_run
from .checkpoints import load_as
from .config import configure
from .data import check_paths, data_of, paths_of, with_batches_on
from .initial import origin_of
from .loaded import Loaded
from .registry import blamed, find, package_of
from .run_arguments import arguments_of, config_of, spec_of
from .size import check_size
from .spec import ModelSpec

__all__ = ["adamw", "check_out", "create", "named", "resume", "train", "trainer_of"]

SHOWN = 5  # names of foreign files in an error


def named(name: str) -> tuple[ModelSpec, str | None]:
    """ "gpt:nano" -> the spec of gpt, and "nano"."""
    model, _, preset = name.partition(":")
    return find(model), preset or None


def create(name: str, **overrides: Any) -> Any:
    """A model that has not been trained: `create("gpt:nano", n_layer=2)`."""
    spec, preset = named(name)
    config = configure(spec, preset, overrides)
    with blamed(spec, "building the model"):
        return spec.build(config)


def train(
    name: str,
    out: str | os.PathLike[str] | None = None,
    *,
    data: str | None = None,
    seed: int = 0,
    max_steps: int | None = None,
    device: str = "cpu",
    compile: str = "auto",
    progress: bool = True,
    live: bool = False,
    parallel: Layout | None = None,
    **overrides: Any,
) -> TrainResult:
    """Train a model into a run directory: `train("xor", "runs/xor", seed=1, lr=0.1)`; `live` serves a page that follows it.

    Under `mpiexec`, `parallel` says how ranks divide the model.
    """
    spec, preset = named(name)
    config = configure(spec, preset, overrides)
    trainer = trainer_of(
        spec, config, out, data=data, seed=seed, max_steps=max_steps, device=device, compile=compile, progress=progress,
        preset=preset, parallel=parallel,
    )  # fmt: skip
    return _finished(trainer, spec, live)


def resume(
    out: str | os.PathLike[str],
    *,
    max_steps: int | None = None,
    progress: bool = True,
    live: bool = False,
    parallel: Layout | None = None,
) -> TrainResult:
    """Go on with a run where it stopped; `live` serves a page that follows it.

    Ranks divide the model as before if they can, or as `parallel` says.
    """
    arguments = arguments_of(out)
    if parallel is None:
        parallel = fitting(layout_from(arguments.get("parallel") or {}) or Layout(), process_group().size)
    spec = spec_of(arguments, out)
    check_paths(spec, arguments["data"], "put it back: a run goes on with what it began with")
    trainer = trainer_of(
        spec,
        config_of(spec, arguments),
        out,
        data=arguments["data"],
        seed=arguments["seed"],
        max_steps=arguments["max_steps"] if max_steps is None else max_steps,
        device=arguments["device"],
        compile=arguments.get("compile", "auto"),
        preset=arguments["preset"],
        progress=progress,
        again=True,
        parallel=parallel,
    )
    if trainer.step > (trainer.max_steps or 0):
        raise ArgumentError(
            f"{os.fspath(out)!r} is already further than that", f"max_steps above {trainer.step}", trainer.max_steps
        )
    if trainer.step == trainer.max_steps:
        trainer.progress.say(f"it is at its last step, {trainer.step:,}, already: --max-steps N goes on")
    return _finished(trainer, spec, live)


def _finished(trainer: Trainer, spec: ModelSpec, live: bool) -> TrainResult:
    if not live:
        return _trained(trainer, spec)
    from .report import followed  # which loads all that draws

    with followed(trainer, spec, config_of(spec, trainer.config)):
        return _trained(trainer, spec)


def _trained(trainer: Trainer, spec: ModelSpec) -> TrainResult:
    out = trainer.out
    saved = None if out is None else f"mend the plugin, and go on with: minigrad resume {os.fspath(out)}"
    with blamed(spec, "training", saved):
        result = trainer.train()
    if spec.after is not None and out is not None and result.reason != "interrupted" and trainer.group.rank == 0:
        lost = f"nothing is lost: the trained model is in {os.fspath(out)!r}"
        with single_process(), blamed(spec, "showing what it learned", lost):  # the other ranks have left
            shown = spec.after(load_as(spec, out), Path(out))
        if shown:
            trainer.progress.say(shown)
    return result


def trainer_of(
    spec: ModelSpec,
    config: Any,
    out: str | os.PathLike[str] | None,
    *,
    data: str | None = None,
    seed: int = 0,
    max_steps: int | None = None,
    device: str = "cpu",
    compile: str = "auto",
    preset: str | None = None,
    progress: bool = True,
    again: bool = False,
    parallel: Layout | None = None,
) -> Trainer:
    """A Trainer for a model of the zoo; with `again`, one that goes on with the run in `out`."""
    if out is not None and not again:
        check_out(out, spec.name)
    seed_everything(seed)
    check_size(spec, config)
    given = data_of(spec, config, data)
    config = given.config if given.config is not None else config
    seed_everything(seed)
    with blamed(spec, "building the model"):
        model = spec.build(config)
        model = model if device == "cpu" else model.to(device)
        optimizer = (spec.optimizer or adamw)(model, config)
        steps = config.steps if max_steps is None else max_steps
        planned = dataclasses.replace(config, steps=steps)  # a schedule ends where training ends
        schedule = None if spec.schedule is None else spec.schedule(optimizer, planned)
    arguments = {
        "model": spec.name,
        "package": package_of(spec),
        "preset": preset,
        "config": dataclasses.asdict(config),
        "data": None if data is None else ",".join(os.path.abspath(part) for part in paths_of(data)),
        "seed": seed,
        "device": device,
    }
    if parallel is not None and not parallel.is_plain:
        arguments["parallel"] = dataclasses.asdict(parallel)
    if getattr(config, "init", None) and (origin := origin_of(config.init)):
        arguments["origin"] = origin
    trainer = (Trainer.resume if again else Trainer)(
        model,
        spec.loss if device == "cpu" else with_batches_on(device, spec.loss),
        given.train,
        optimizer,
        out=out,
        schedule=schedule,
        valid=given.valid,
        tokenizer=given.tokenizer,
        config=arguments,
        seed=seed,
        max_steps=steps,
        clip_norm=config.clip or None,
        valid_every=None if given.valid is None else config.valid_every,
        save_every=config.save_every or None if out else None,
        keep=config.keep,
        metric=spec.metric,
        maximize=spec.maximize,
        compile=compile,
        progress=progress,
        parallel=parallel,
    )
    if steps < config.steps and not again:
        trainer.progress.say(
            f"stops after {steps:,} of {config.steps:,} steps, as asked: {100 * steps / config.steps:.3g} % of the plan"
        )
    trainer.resume_hint = f"minigrad resume {shlex.quote(os.fspath(out or ''))}"
    _connect_displays(
        trainer, Loaded(spec, config, model, given.tokenizer, {**arguments, "max_steps": steps}, 0, Path(out or ""))
    )
    return trainer


def _connect_displays(trainer: Trainer, loaded: Loaded) -> None:
    """Connect `samples` and `draw` of the spec to the trainer."""
    itself, spec = weakref.ref(trainer), loaded.spec

    def now(show: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda model: show(dataclasses.replace(loaded, step=getattr(itself(), "step", 0)))

    if spec.samples is not None and trainer.valid is not None:
        trainer.samples = now(spec.samples)
    if spec.draw is not None:
        trainer.draw = now(spec.draw)


def adamw(model: Any, config: Any) -> Any:
    """The optimiser of a model whose spec has none of its own."""
    return AdamW(model.parameters(), lr=config.lr, weight_decay=config.weight_decay)


def check_out(out: str | os.PathLike[str], name: str) -> None:
    """Refuse a directory in which no run of the model `name` can begin, before its data is prepared."""
    ranks = process_group()
    with ranks.abort_on_error():
        problem = ranks.broadcast(_unfit(Path(out), name) if ranks.rank == 0 else None)
        if problem is not None:
            raise RunError(**problem)


def _unfit(out: Path, name: str) -> dict[str, Any] | None:
    """What is wrong with a place for a run, as the arguments of an error: one has to be new, empty, and writable."""
    folder, other = os.fspath(out), "choose another --out"
    if holds_a_run(out):
        return {
            "problem": f"{folder!r} already holds a run",
            "fix": f"go on with it: minigrad resume {folder}; or {other}",
        }
    if foreign := foreign_files(out):
        inside = out / name.replace(":", "-")
        return {
            "problem": f"{folder!r} cannot be a run directory: it holds other files",
            "expected": "a directory that is new, or empty",
            "got": ", ".join(foreign[:SHOWN]) + (f" and {len(foreign) - SHOWN} more" if len(foreign) > SHOWN else ""),
            "fix": other if inside.exists() else f"{other}, such as --out {shlex.quote(os.fspath(inside))}",
        }
    place = out.absolute()
    there = next(path for path in (place, *place.parents) if os.path.exists(path))
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        return None
    problem = "may not be written to" if there.is_dir() else "is a file"
    return {"problem": f"{folder!r} cannot be a run directory: {os.fspath(there)!r} {problem}", "fix": other}
