"""`minigrad train` and `minigrad resume`."""

from __future__ import annotations

import argparse
import math
import os
import shlex
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..metrics import spelled
from .console import as_command, printable
from .models import configured, layout_among, looked_up, setting_hint, settings_table
from .parser import (
    Command,
    Parser,
    Usage,
    check_environment,
    count,
    flag_device,
    flag_threads,
    usage_errors,
    use_threads,
    whole_number,
)

if TYPE_CHECKING:
    from ..train import TrainResult
    from ..zoo import ModelSpec

UNKNOWN = "INPUT"  # stands for an input where no example is known

__all__ = ["RESUME", "TRAIN", "free_directory", "reported"]


def _train_arguments(parser: Parser) -> None:
    parser.hint = setting_hint
    parser.add_argument(
        "-h", "--help", action="store_true", help="show this help, and with a NAME the settings of the model"
    )
    parser.add_argument("model", nargs="?", metavar="NAME[:PRESET]", help="a model of `minigrad list`")
    parser.add_argument("settings", nargs="*", metavar="key=value", help="settings; `minigrad show NAME` lists them")
    parser.add_argument("--data", metavar="PATH", help="train on this file or folder")
    parser.add_argument("--out", metavar="DIR", help="the run's directory (default: runs/NAME-PRESET)")
    parser.add_argument("--seed", type=whole_number, default=0, metavar="N", help="random seed (default: 0)")
    parser.add_argument("--max-steps", type=count, metavar="N", help="stop after N steps")
    parser.add_argument(
        "--max-minutes", type=_minutes, metavar="M", help="train for as many steps as fit into M minutes here"
    )
    parser.add_argument(
        "--fit-model", action="store_true", help="with --max-minutes: choose the size of the model to the time, too"
    )
    flag_device(parser)
    parser.add_argument(
        "--compile",
        default="auto",
        choices=("auto", "on", "off"),
        help="compile the loss (default: auto, where it pays)",
    )
    _flag_pages(parser)
    flag_threads(parser)


def _minutes(text: str) -> float:
    """A number of minutes above 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number of minutes above 0, got {text!r}")
    return number


def _flag_pages(parser: Parser) -> None:
    parser.add_argument(
        "--live", action="store_true", help="serve a page that follows the training, to this machine only"
    )
    parser.add_argument("--no-report", action="store_true", help="write no report.html at the end")


def _train(options: Namespace) -> int:
    from .. import zoo
    from ..engine.backend import backend_named
    from ..zoo.data import check_paths
    from ..zoo.training import check_out

    if options.help:
        return _help(options)
    if options.model is None:
        options.parser.error("which model? `minigrad list` shows them")
    spec, preset = looked_up(options.model)
    for word in options.settings:
        if "=" not in word and os.path.exists(word):
            raise Usage(
                printable(f"{word!r} is no setting but a path: to train on it, write --data {shlex.quote(word)}")
            )
    _, settings = configured(spec, preset, options.settings, layouts=True)
    layout = layout_among(spec, options.settings)
    with usage_errors():
        backend_named(options.device)
    use_threads(options.threads)
    check_environment()
    if options.max_minutes is not None and (options.max_steps is not None or "steps" in settings):
        raise Usage("--max-minutes says how many steps there are: leave out --max-steps and steps=")
    if options.fit_model and options.max_minutes is None:
        raise Usage("--fit-model needs a time: --max-minutes M")
    out = free_directory(options.out, options.model)
    check_out(out, options.model)
    check_paths(spec, options.data)
    _say(f"training {options.model} into {out} (seed {options.seed})")
    options.trained = out
    given = {"data": options.data, "seed": options.seed, "device": options.device, "compile": options.compile}
    if options.max_minutes is not None:
        settings = _settings_in_time(options, settings, given)
    limits = {"max_steps": options.max_steps, "live": options.live, "parallel": layout}
    result = zoo.train(options.model, out, **limits, **given, **settings)
    return _ended(result, out, spec, options)


def _settings_in_time(options: Namespace, settings: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The settings with as many steps as fit into the minutes; what rank 0 measured holds for all."""
    from ..runtime.process_group import process_group, single_process
    from ..zoo.budget import plan_for

    ranks, plan = process_group(), None
    with ranks.abort_on_error():
        if ranks.rank == 0:
            with single_process():
                plan = plan_for(options.model, options.max_minutes, settings, choose_size=options.fit_model, **given)
            _say(f"in {options.max_minutes:g} minutes, {plan}")
        chosen: dict[str, Any] = ranks.broadcast(None if plan is None else dict(plan.settings))
    return chosen


def _help(options: Namespace) -> int:
    options.parser.print_help()
    if options.model is not None:
        spec, preset = looked_up(options.model)
        config, _ = configured(spec, preset, options.settings)
        print(f"\nsettings of {options.model}, with their values:\n{settings_table(spec, config)}")
    return 0


def free_directory(asked: str | None, model: str) -> Path:
    """The run directory: the one that was asked for, or a new one under runs; all ranks use that of rank 0."""
    from ..runtime.process_group import process_group

    if asked is not None:
        return Path(asked)
    base = Path("runs") / model.replace(":", "-")
    free, number = base, 1
    while free.exists():
        number += 1
        free = base.with_name(f"{base.name}-{number}")
    return Path(process_group().broadcast(str(free)))


def _resume_arguments(parser: Parser) -> None:
    parser.add_argument("run_directory", metavar="DIR", help="the directory of a run")
    parser.add_argument(
        "settings", nargs="*", metavar="key=value", help="another parallel layout: tensor=2 pipeline=2 shard=1"
    )
    parser.add_argument("--max-steps", type=count, metavar="N", help="stop after N steps in all")
    _flag_pages(parser)
    flag_threads(parser)


def _resume(options: Namespace) -> int:
    from .. import zoo
    from ..zoo.run_arguments import arguments_of, spec_of

    out = Path(options.run_directory)
    spec = spec_of(arguments_of(out), out)
    use_threads(options.threads)
    check_environment()
    options.trained = out
    layout = layout_among(None, options.settings)
    result = zoo.resume(out, max_steps=options.max_steps, live=options.live, parallel=layout)
    return _ended(result, out, spec, options)


def _ended(result: TrainResult, out: Path, spec: ModelSpec, options: Namespace) -> int:
    """Write the report of the run, and print what to do next."""
    page = None if options.no_report else reported(out)
    if result.reason == "interrupted":
        return 130
    if page is not None:
        _say(f"see it: {page}")
    first, last = result.first_loss, result.last_loss
    if first is not None and last is not None and not last <= 1.5 * abs(first):
        _say(f"the loss grew, from {first:.4g} to {last:.4g}: a smaller learning rate may help, as in lr=0.001")
    if result.best is not None:
        _say(f"the best validation: {spec.metric} {spelled(spec.metric, result.best)}, at step {result.best_step:,}")
    command = _first_use(spec, out)
    if UNKNOWN not in command or spec.after is None:  # else the model itself has said how it is asked
        _say(f"use it: {as_command(*command)}")
    return 0


def _first_use(spec: ModelSpec, out: Path) -> list[str]:
    """What one would type first: the command of its task, such as `translate`, or else `predict`, with an example input."""
    from ..zoo.run_arguments import arguments_of, config_of
    from ..zoo.tasks import TASKS

    (example,) = spec.inputs_for(config_of(spec, arguments_of(out)))[:1] or [UNKNOWN]
    task = TASKS.get(spec.task)
    if task is not None and task.first_use is not None:
        return task.first_use(str(out), example)
    return ["predict", str(out), example] if spec.predict else ["eval", str(out)]


def reported(out: Path) -> Path | None:
    """Write the report of the run; print the reason if it cannot be written."""
    from ..runtime.process_group import process_group, single_process

    if process_group().rank != 0:
        return None
    try:
        from ..zoo.report import report

        with single_process():
            return report(out)
    except Exception as error:
        _say(f"report.html could not be written ({type(error).__name__}: {' '.join(str(error).split())})")
        return None


def _say(text: str) -> None:
    """Print on rank 0."""
    from ..runtime.process_group import process_group

    if process_group().rank == 0:
        print(printable(text), flush=True)


TRAIN = Command(
    "train a model of the zoo",
    "minigrad train xor:bare lr=0.1 hidden=3 --out runs/bare --seed 1",
    _train_arguments,
    _train,
    help=False,
)
RESUME = Command("resume a run where it stopped", "minigrad resume runs/bare", _resume_arguments, _resume)
