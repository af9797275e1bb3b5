"""The registry of tasks: a model has the verbs of the task that its ModelSpec names, and the command `minigrad` too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..spec import ModelSpec
from .language_model import LANGUAGE_MODEL
from .masked_language_model import MASKED_LANGUAGE_MODEL
from .task import Task, TaskCommand
from .text_to_image import TEXT_TO_IMAGE
from .translation import TRANSLATION

__all__ = ["TASKS", "TaskCommand", "Task", "commands", "tasks_with", "verbs_of"]

TASKS = {task.name: task for task in (LANGUAGE_MODEL, MASKED_LANGUAGE_MODEL, TRANSLATION, TEXT_TO_IMAGE)}


def verbs_of(spec: ModelSpec) -> dict[str, Callable[..., Any]]:
    """The verbs of a model besides those that every model has: its task's, and its own."""
    task = TASKS.get(spec.task)
    return {**(task.verbs if task is not None else {}), **spec.verbs}


def commands() -> dict[str, TaskCommand]:
    """The commands of all tasks, by verb."""
    return {verb: command for task in TASKS.values() for verb, command in task.commands.items()}


def tasks_with(verb: str) -> list[str]:
    """The names of the tasks whose models have a verb."""
    return [name for name, task in TASKS.items() if verb in task.verbs]
