"""The argument parser of a command: its options, its help with an example, and one-line usage errors."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

from ..errors import ArgumentError, DeviceError, nearest
from ..zoo.tasks.task import count, utf8_text, whole_number

__all__ = [
    "Command", "Parser", "Usage", "check_environment", "count", "flag_device", "flag_json", "flag_threads", "usage_errors", "use_threads",
    "utf8_text", "whole_number",
]  # fmt: skip


class Usage(Exception):
    """A command was called with wrong arguments; the message is one line."""


class Parser(argparse.ArgumentParser):
    """An argument parser that raises `Usage`, and takes options and other words in any order."""

    # What to say of an option that does not exist and the word behind it; None: the nearest option.
    hint: Callable[[argparse.Namespace, str, str | None], str | None] | None = None

    def error(self, message: str) -> NoReturn:
        raise Usage(f"{message} (see {self.prog} --help)")

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """The parsed options; for an unknown one the error suggests the nearest."""
        options, unknown = self.parse_known_intermixed_args(list(words))
        if unknown:
            known = [name for action in self._actions for name in action.option_strings]
            flag = next((word for word in unknown if word.startswith("-")), None)
            if flag and self.hint is not None and (better := self.hint(options, flag, _behind(flag, words))):
                raise Usage(better)
            hint = f": {nearest(flag.partition('=')[0], known)}" if flag else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return options


def _behind(flag: str, words: Sequence[str]) -> str | None:
    """The word behind an option, unless it is an option, too."""
    following = [*words[words.index(flag) + 1 :], "-"][0]
    return None if following.startswith("-") else following


@dataclass(frozen=True)
class Command:
    """One command: its arguments, and the function that runs it and returns the exit code."""

    summary: str
    example: str
    arguments: Callable[[Parser], object]
    run: Callable[[argparse.Namespace], int]
    help: bool = True  # False: `run` prints the help itself

    def parser(self, name: str) -> Parser:
        """The parser of this command."""
        parser = Parser(
            prog=f"minigrad {name}",
            description=f"{self.summary[0].upper()}{self.summary[1:]}.",
            epilog=f"example:\n  {self.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            add_help=self.help,
            allow_abbrev=False,
        )
        self.arguments(parser)
        parser.add_argument(
            "--debug", action="store_true", help="show the traceback of an error (MINIGRAD_DEBUG=1 too)"
        )
        return parser


def flag_json(parser: Parser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON, for programs to read")


def flag_device(parser: Parser) -> None:
    """Add `--device D`."""
    parser.add_argument("--device", default="cpu", metavar="D", help="cpu, cuda or cuda:1 (default: cpu)")


def flag_threads(parser: Parser) -> None:
    """Add `--threads N`."""
    parser.add_argument("--threads", type=count, metavar="N", help="number of threads (default: all cores)")


def use_threads(count: int | None) -> None:
    """Use so many threads, here and in BLAS; checkpoints record the number."""
    if count is not None:
        from ..runtime.threads import limit_threads

        os.environ["MINIGRAD_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(count)
        limit_threads(count)


def check_environment() -> None:
    """Refuse a wrong `MINIGRAD_THREADS` or `MINIGRAD_KERNELS` before anything is written."""
    from ..kernels import selection
    from ..runtime import threads

    threads.thread_count()
    selection.check_environment()


@contextlib.contextmanager
def usage_errors() -> Iterator[None]:
    """Inside, an ArgumentError or DeviceError becomes a Usage error of one line."""
    try:
        yield
    except (ArgumentError, DeviceError) as error:
        problem, *lines = str(error).splitlines()
        parts = {label: text.strip() for label, _, text in (line.strip().partition(":") for line in lines)}
        hint = parts.get("fix") or ("expected " + parts["expected"] if "expected" in parts else "")
        raise Usage(f"{problem}: {hint}" if hint else problem) from error
