"""How a command is called: its arguments, its help with an example, and one line about a call that is wrong."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

from ..engine.errors import ArgumentError, DeviceError, nearest

__all__ = [
    "Command", "Parser", "Usage", "calling", "check_environment", "counting", "flag_json", "flag_threads", "readable",
    "use_threads", "whole_number",
]  # fmt: skip


class Usage(Exception):
    """The command was wrongly called; the message is one line."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are a `Usage`, and which takes options and other words in any order."""

    def error(self, message: str) -> NoReturn:
        raise Usage(f"{message} (see {self.prog} --help)")

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """The options; an unknown one gets the nearest that there are."""
        options, unknown = self.parse_known_intermixed_args(list(words))
        if unknown:
            known = [name for action in self._actions for name in action.option_strings]
            flag = next((word for word in unknown if word.startswith("-")), None)
            hint = f": {nearest(flag.partition('=')[0], known)}" if flag else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        return options


@dataclass(frozen=True)
class Command:
    """One verb: what it is called with, and what it does; `run` returns the exit code."""

    summary: str
    example: str
    arguments: Callable[[Parser], object]
    run: Callable[[argparse.Namespace], int]
    help: bool = True  # whether --help is answered here, and not by `run`

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


def whole_number(text: str) -> int:
    """A number from 0 up."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 up, got {text!r}")
    return int(text)


def counting(text: str) -> int:
    """A number from 1 up."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 up, got {text!r}")
    return int(text)


def readable(text: str) -> str:
    """What was typed, if it is text: Python hands on bytes that are not UTF-8 as halves of surrogate pairs."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"expected text in UTF-8, got {text!a}") from None
    return text


def flag_json(parser: Parser) -> None:
    """`--json`, for machines."""
    parser.add_argument("--json", action="store_true", help="print JSON, for programs to read")


def flag_threads(parser: Parser) -> None:
    """`--threads N`."""
    parser.add_argument("--threads", type=counting, metavar="N", help="how many cores to use (default: all)")


def use_threads(count: int | None) -> None:
    """Keep to so many cores, here and in BLAS; it also counts as what checkpoints say about the threads of a run."""
    if count is not None:
        from ..kernels.threads import keep_to

        os.environ["MINIGRAD_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(count)
        keep_to(count)


def check_environment() -> None:
    """Say what is wrong with `MINIGRAD_THREADS` or `MINIGRAD_KERNELS` before anything is written."""
    from ..kernels import selection, threads

    threads.cores()
    selection.check_environment()


@contextlib.contextmanager
def calling() -> Iterator[None]:
    """Inside, an argument or device that does not exist means that the command was wrongly called."""
    try:
        yield
    except (ArgumentError, DeviceError) as error:
        problem, *lines = str(error).splitlines()
        parts = {label: text.strip() for label, _, text in (line.strip().partition(":") for line in lines)}
        hint = parts.get("fix") or ("expected " + parts["expected"] if "expected" in parts else "")
        raise Usage(f"{problem}: {hint}" if hint else problem) from error
