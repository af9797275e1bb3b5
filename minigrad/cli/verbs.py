"""The commands of tasks, such as `minigrad sample` and `minigrad translate`: for any model whose task has the verb."""

from __future__ import annotations

import sys
from argparse import Namespace
from functools import partial
from typing import TYPE_CHECKING

from ..zoo.tasks import TASKS, TaskCommand, commands, tasks_with
from .console import as_command, printable
from .models import commands_of
from .parser import Command, Parser, Usage, flag_threads, usage_errors, use_threads

if TYPE_CHECKING:
    from ..zoo import Loaded

__all__ = ["task_commands"]


def task_commands() -> dict[str, Command]:
    """The commands of all tasks, by verb."""
    return {verb: _as_command(verb, command) for verb, command in commands().items()}


def _as_command(verb: str, command: TaskCommand) -> Command:
    def arguments(parser: Parser) -> None:
        command.arguments(parser)
        parser.hint = partial(_run_hint, parser)
        flag_threads(parser)

    def run(options: Namespace) -> int:
        with usage_errors():
            command.check(options)
        use_threads(options.threads)
        command.run(_loaded(verb, options.run_directory), options)
        return 0

    return Command(command.summary, command.example, arguments, run)


def _run_hint(parser: Parser, options: Namespace, flag: str, value: str | None) -> str | None:
    """Where the run stands in a command that takes it as its first word, and has no --run."""
    name, _, given = flag.partition("=")
    if name != "--run":
        return None
    words = [
        f"[{a.metavar}]" if a.nargs in ("?", "*") else str(a.metavar) for a in parser._actions if not a.option_strings
    ]
    run = given or value or words[0]
    return f"{parser.prog} has no --run, the run comes first: {' '.join([parser.prog, printable(run), *words[1:]])}"


def _loaded(verb: str, run: str | None) -> Loaded:
    from ..zoo import load, newest_run

    if run is None:
        run = str(newest_run(tasks_with(verb), fix="or say where it is: --run DIR"))
        print(printable(f"minigrad: {run} answers, the newest run; --run DIR asks another"), file=sys.stderr)
    loaded = load(run)
    if verb not in loaded.verbs:
        spec = loaded.spec
        task = TASKS.get(spec.task)
        use = None if task is None or task.first_use is None else as_command(*task.first_use(run, "TEXT"))
        raise Usage(
            f"{run!r} holds {spec.name}, a model for {spec.task}, which cannot {verb}: "
            f"{f'use {use}; ' if use else ''}its commands are {', '.join(commands_of(spec))}"
        )
    return loaded
