"""A task, such as translation, and the verbs that every trained model of it has."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["TaskCommand", "Task", "whole_number", "count", "utf8_text"]


def _accept(options: argparse.Namespace) -> None:
    """Accept all options."""


@dataclasses.dataclass(frozen=True)
class TaskCommand:
    """A verb that is also a command of `minigrad`.

    `arguments(parser)` adds what it is called with to an argparse parser, always with a `run_directory`, which is None
    for the newest run of the task. `check(options)` raises ArgumentError for a wrong call before a model is loaded.
    `run(loaded, options)` prints the answer.
    """

    summary: str
    example: str
    arguments: Callable[[argparse.ArgumentParser], object]
    run: Callable[[Any, argparse.Namespace], object]
    check: Callable[[argparse.Namespace], object] = _accept


@dataclasses.dataclass(frozen=True)
class Task:
    """What a model is for. `verbs` are functions of a loaded model; `commands` are those that can also be typed.

    A ModelSpec that names the task has all of them; a verb of its own takes the place of the task's. `first_use(run, text)`
    gives the words behind `minigrad` that a person types first.
    """

    name: str
    verbs: Mapping[str, Callable[..., Any]]
    commands: Mapping[str, TaskCommand] = dataclasses.field(default_factory=dict)
    first_use: Callable[[str, str], list[str]] | None = None


def whole_number(text: str) -> int:
    """A number from 0 up, as the type of an argument."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 up, got {text!r}")
    return int(text)


def count(text: str) -> int:
    """A number from 1 up, as the type of an argument."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 up, got {text!r}")
    return int(text)


def utf8_text(text: str) -> str:
    """Text in UTF-8, as the type of an argument; Python hands on other bytes as halves of surrogate pairs."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError(f"expected text in UTF-8, got {text!a}") from None
    return text
