"""The command `minigrad`: a file for each group of commands, and here the main function.

Exit codes: 0 success, 1 failure, 2 wrong arguments, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

from .. import __version__
from ..errors import nearest
from ..runtime.process_group import end_job
from . import (
    attention,
    completion,
    curves,
    demo,
    doctor,
    evaluation,
    graph,
    hub,
    learn,
    models,
    planning,
    plugins,
    report,
    serve,
    show,
    training,
)  # fmt: skip
from .console import explained, printable, styled, table
from .parser import Parser, Usage
from .verbs import task_commands

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "list": models.LIST,
    "show": show.SHOW,
    "new": plugins.NEW,
    "train": training.TRAIN,
    "resume": training.RESUME,
    "eval": evaluation.EVAL,
    "predict": evaluation.PREDICT,
    **task_commands(),
    "plot": curves.PLOT,
    "report": report.REPORT,
    "graph": graph.GRAPH,
    "attention": attention.ATTENTION,
    "serve": serve.SERVE,
    "average": evaluation.AVERAGE,
    "export": evaluation.EXPORT,
    "quantize": evaluation.QUANTIZE,
    "import": hub.IMPORT,
    "check": plugins.CHECK,
    "doctor": doctor.DOCTOR,
    "plan": planning.PLAN,
    "demo": demo.DEMO,
    "learn": learn.LEARN,
    "completion": completion.COMPLETION,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a character is no reason to fail
    options = argparse.Namespace()
    try:
        options = _parsed(given)
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            code: int = options.run(options)
        sys.stdout.flush()
        return code
    except Usage as error:
        return _complain(printable(error), 2)
    except KeyboardInterrupt:
        return _complain("interrupted", 130)
    except BrokenPipeError:
        # The reader, such as `head`, closed the pipe; Python must not flush into it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if getattr(options, "debug", False) or os.environ.get("MINIGRAD_DEBUG", "") not in ("", "0"):
            traceback.print_exc()
        return _complain(explained(error, getattr(options, "trained", None)), 1)


def _warn(message: Warning | str, *place: Any, **more: Any) -> None:
    """Print a warning in the form of all other messages, without file and line."""
    print(printable(f"minigrad: warning: {message}"), file=sys.stderr, flush=True)


def _complain(text: str, code: int) -> int:
    label = f"minigrad: {styled('error:', 'bad', sys.stderr)}" if code != 130 else "minigrad:"
    if code != 130:
        end_job(f"{label} {text}\n")  # returns unless mpiexec started other ranks, which would wait for this one
    print(f"{label} {text}", file=sys.stderr)
    return code


def _parsed(given: list[str]) -> argparse.Namespace:
    """The options of the command, which is the first word that is no option."""
    if given[:1] == ["help"]:  # `minigrad help train` is `minigrad train --help`
        given = [*given[1:2], "--help"] if len(given) > 1 else []
    place = next((index for index, word in enumerate(given) if not word.startswith("-")), None)
    if place is None:
        overview = _overview()
        overview.parse(given)
        return argparse.Namespace(run=_show_help, parser=overview)
    name = given.pop(place)
    if name not in COMMANDS:
        raise Usage(f"there is no command {name!r}: {nearest(name, COMMANDS)} (see minigrad --help)")
    parser = COMMANDS[name].parser(name)
    options = parser.parse(given)
    options.run, options.parser, options.commands = COMMANDS[name].run, parser, COMMANDS
    return options


def _show_help(options: argparse.Namespace) -> int:
    options.parser.print_help()
    return 0


def _overview() -> Parser:
    commands = table([(f"  {name}", command.summary) for name, command in COMMANDS.items()], wrapped=True)
    parser = Parser(
        prog="minigrad",
        usage="minigrad COMMAND [options]",
        description=f"An autograd framework on NumPy and CuPy.\n\ncommands:\n{commands}",
        epilog="example:\n  minigrad train xor --out runs/first\n  minigrad predict runs/first '1 0'\n\n"
        "minigrad COMMAND --help shows its options.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"minigrad {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error (MINIGRAD_DEBUG=1 too)")
    return parser
