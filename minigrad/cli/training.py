"""`minigrad train` and `minigrad resume`."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from .catalogue import configured, looked_up, settings_table
from .parsing import Command, Parser, calling, check_environment, counting, flag_threads, use_threads, whole_number
from .telling import as_command, plain

if TYPE_CHECKING:
    from ..train import TrainResult
    from ..zoo import ModelSpec

__all__ = ["RESUME", "TRAIN", "free_directory", "reported"]


def _train_arguments(parser: Parser) -> None:
    parser.add_argument("-h", "--help", action="store_true", help="show this, and with a NAME what can be set")
    parser.add_argument("model", nargs="?", metavar="NAME[:PRESET]", help="a model of `minigrad list`")
    parser.add_argument("settings", nargs="*", metavar="key=value", help="settings; `minigrad show NAME` lists them")
    parser.add_argument("--data", metavar="PATH", help="learn from this file or folder")
    parser.add_argument("--out", metavar="DIR", help="the run's directory (default: runs/NAME-PRESET)")
    parser.add_argument("--seed", type=whole_number, default=0, metavar="N", help="of all random numbers (default: 0)")
    parser.add_argument("--max-steps", type=counting, metavar="N", help="stop after so many steps")
    parser.add_argument("--device", default="cpu", metavar="D", help="cpu, cuda or cuda:1 (default: cpu)")
    _flag_pages(parser)
    flag_threads(parser)


def _flag_pages(parser: Parser) -> None:
    parser.add_argument("--live", action="store_true", help="serve a page to this machine's browser that follows it")
    parser.add_argument("--no-report", action="store_true", help="write no report.html at the end")


def _train(options: Namespace) -> int:
    from .. import zoo
    from ..engine.backend import backend_named

    if options.help:
        return _help(options)
    if options.model is None:
        options.parser.error("which model? `minigrad list` shows them")
    spec, preset = looked_up(options.model)
    _, settings = configured(spec, preset, options.settings)
    with calling():
        backend_named(options.device)
    use_threads(options.threads)
    check_environment()
    out = free_directory(options.out, options.model)
    _say(f"training {options.model} into {out} (seed {options.seed})")
    options.trained = out
    result = zoo.train(
        options.model,
        out,
        data=options.data,
        seed=options.seed,
        max_steps=options.max_steps,
        device=options.device,
        live=options.live,
        **settings,
    )
    return _ended(result, out, spec, options)


def _help(options: Namespace) -> int:
    options.parser.print_help()
    if options.model is not None:
        spec, preset = looked_up(options.model)
        config, _ = configured(spec, preset, options.settings)
        print(f"\nsettings of {options.model}, with their values:\n{settings_table(spec, config)}")
    return 0


def free_directory(asked: str | None, model: str) -> Path:
    """Where to train into: where the user says, or a directory that is not there yet. All ranks take the first's."""
    from ..train.world import world

    if asked is not None:
        return Path(asked)
    base = Path("runs") / model.replace(":", "-")
    free, number = base, 1
    while free.exists():
        number += 1
        free = base.with_name(f"{base.name}-{number}")
    return Path(world().from_first(str(free)))


def _resume_arguments(parser: Parser) -> None:
    parser.add_argument("run_directory", metavar="DIR", help="the directory of a run")
    parser.add_argument("--max-steps", type=counting, metavar="N", help="stop after so many steps in all")
    _flag_pages(parser)
    flag_threads(parser)


def _resume(options: Namespace) -> int:
    from .. import zoo
    from ..zoo.running import spec_of, story_of

    out = Path(options.run_directory)
    spec = spec_of(story_of(out), out)
    use_threads(options.threads)
    check_environment()
    options.trained = out
    result = zoo.resume(out, max_steps=options.max_steps, live=options.live)
    return _ended(result, out, spec, options)


def _ended(result: TrainResult, out: Path, spec: ModelSpec, options: Namespace) -> int:
    """Write the page of the run, and say how to go on, or what can be done now."""
    page = None if options.no_report else reported(out)
    if result.reason == "interrupted":
        return 130
    if page is not None:
        _say(f"see it: {page}")
    if result.best is not None:
        _say(f"the best validation was {result.best:.4g}, at step {result.best_step:,}")
    use = ["predict", out, *_first_input(spec, out)] if spec.predict else ["eval", out]
    _say(f"use it: {as_command(*use)}")
    return 0


def _first_input(spec: ModelSpec, out: Path) -> list[str]:
    """Something that `predict` answers."""
    from ..zoo.running import config_of, story_of

    return spec.inputs_for(config_of(spec, story_of(out)))[:1] or ["INPUT"]


def reported(out: Path) -> Path | None:
    """The page of the run; that it cannot be written is said, and no reason to fail."""
    from ..train.world import alone, world

    if world().rank != 0:
        return None
    try:
        from ..zoo.reporting import report

        with alone():
            return report(out)
    except Exception as error:
        _say(f"report.html could not be written ({type(error).__name__}: {' '.join(str(error).split())})")
        return None


def _say(text: str) -> None:
    """Print, unless another rank does."""
    from ..train.world import world

    if world().rank == 0:
        print(plain(text), flush=True)


TRAIN = Command(
    "train a model of the zoo",
    "minigrad train xor:bare lr=0.1 hidden=3 --out runs/bare --seed 1",
    _train_arguments,
    _train,
    help=False,
)
RESUME = Command("go on with a run where it stopped", "minigrad resume runs/bare", _resume_arguments, _resume)
