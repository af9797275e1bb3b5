"""`minigrad list`: the installed models; and how other commands look one up, with its settings."""

from __future__ import annotations

import dataclasses
import os
import sys
import typing
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from ..errors import nearest
from .console import as_json, printable, table
from .parser import Command, Parser, Usage, flag_json, usage_errors

if TYPE_CHECKING:
    from ..parallel import Layout
    from ..zoo import Entry, ModelSpec

__all__ = [
    "LIST", "as_word", "commands_of", "configured", "described_settings", "is_path", "looked_up", "setting_hint", "settings_table",
]  # fmt: skip


def is_path(text: str) -> bool:
    """Whether a word is the path of something in a folder, as no name of a model is; Windows takes either slash."""
    return os.sep in text or "/" in text


def _list_arguments(parser: Parser) -> None:
    parser.add_argument("pattern", nargs="?", default="*", metavar="PATTERN", help='such as "gpt*" (default: all)')
    parser.add_argument("--task", metavar="T", help="only models for this task")
    flag_json(parser)


def _list(options: Namespace) -> int:
    from ..zoo.registry import list_models

    tasks = sorted({entry.spec.task for entry in list_models() if entry.spec}) if options.task is not None else []
    if options.task is not None and options.task not in tasks:
        raise Usage(f"no model is for the task {options.task!r}: {nearest(options.task, tasks)}")
    found = list_models(options.pattern, options.task)
    if options.json:
        print(as_json([_entry_as_json(entry) for entry in found]))
    elif found:
        print(table([("name", "task", "what it is"), *(_row(entry) for entry in found)], wrapped=True))
    if not found:
        hint = nearest(options.pattern, [entry.name for entry in list_models()])
        print(printable(f"minigrad: no model fits {options.pattern!r}: {hint}"), file=sys.stderr)
    return 0 if found else 1


def _row(entry: Entry) -> tuple[str, ...]:
    if entry.spec is None:
        return entry.name, "BROKEN", f"{entry.error} ({entry.package})"
    presets = f" (presets: {', '.join(entry.spec.presets)})" if entry.spec.presets else ""
    return entry.name, entry.spec.task, entry.spec.summary + presets


def _entry_as_json(entry: Entry) -> dict[str, Any]:
    spec = entry.spec
    return {
        "name": entry.name,
        "package": entry.package,
        "task": None if spec is None else spec.task,
        "summary": None if spec is None else spec.summary,
        "presets": [] if spec is None else list(spec.presets),
        "error": entry.error,
    }


def looked_up(name: str) -> tuple[ModelSpec, str | None]:
    """ "gpt:nano" -> the spec of gpt, and "nano", which exists."""
    from ..zoo.config import preset_of
    from ..zoo.registry import find

    model, _, preset = name.partition(":")
    with usage_errors():
        spec = find(model)
        preset_of(spec, preset or None)
    return spec, preset or None


def configured(
    spec: ModelSpec, preset: str | None, words: list[str], layouts: bool = False
) -> tuple[Any, dict[str, Any]]:
    """The config with `key=value …` applied, and these settings by name; refuses names that are options of the command.

    With `layouts`, settings of a parallel layout may be among the words, and are left out.
    """
    from ..parallel.settings import KEYS, parted
    from ..zoo.config import configure, parse_overrides

    with usage_errors():
        known = {field.name for field in dataclasses.fields(spec.config)}
        settings, _ = parted(parse_overrides(words), known if layouts else KEYS)
        for key, value in settings.items():
            if key not in known and key in ("seed", "data", "out", "device", "threads", "max_steps", "max-steps"):
                raise Usage(f"{key} is no setting of the model but an option: --{key.replace('_', '-')} {value}")
        return configure(spec, preset, settings), settings


def layout_among(spec: ModelSpec | None, words: list[str]) -> Layout | None:
    """The parallel layout among `key=value …`; without a spec, all of them have to be of it."""
    from ..parallel.settings import KEYS, layout_from, parted
    from ..zoo.config import parse_overrides

    with usage_errors():
        known = () if spec is None else {field.name for field in dataclasses.fields(spec.config)}
        others, ours = parted(parse_overrides(words), known)
        if spec is None and others:
            raise Usage(
                f"{next(iter(others))} cannot be changed in a run: settings of its layout are {', '.join(KEYS)}"
            )
        return layout_from(ours)


def setting_hint(options: Namespace, flag: str, value: str | None) -> str | None:
    """What to write for a setting of the model that was given as an option, `--hidden 3`; None if it is no setting."""
    from ..errors import MinigradError
    from ..zoo.registry import find

    key, _, given = flag.lstrip("-").partition("=")
    key = key.replace("-", "_")
    words = [getattr(options, "model", None), *getattr(options, "settings", []), *getattr(options, "words", [])]
    for word in filter(None, words):
        try:
            spec = find(word.partition(":")[0])
        except MinigradError:
            continue
        if key in {field.name for field in dataclasses.fields(spec.config)}:
            return f"{key} is a setting of {spec.name}: write {key}={given or value or '…'}"
    return None


def commands_of(spec: ModelSpec) -> list[str]:
    """The commands that use a model: those that every model has, and those of its task and of its own."""
    from ..zoo.attention import shows_attention
    from ..zoo.tasks import commands, verbs_of

    parts = {"predict": spec.predict is not None, "attention": shows_attention(spec), "demo": spec.demo is not None}
    own = [name for name, there in parts.items() if there]
    return ["train", "eval", *own, *(verb for verb in verbs_of(spec) if verb in commands()), "graph"]


def described_settings(spec: ModelSpec, config: Any) -> list[dict[str, Any]]:
    """Each field of a config: its name, type, value, choices, least value and help."""
    from ..zoo.config import bound_of

    kinds = typing.get_type_hints(spec.config)
    return [
        {
            "name": field.name,
            "type": kinds[field.name].__name__ if isinstance(kinds[field.name], type) else str(kinds[field.name]),
            "value": getattr(config, field.name),
            "choices": list(field.metadata.get("choices", ())),
            "least": bound_of(field, "least"),
            "most": bound_of(field, "most"),
            "help": field.metadata.get("help", ""),
        }
        for field in dataclasses.fields(spec.config)
    ]


def settings_table(spec: ModelSpec, config: Any) -> str:
    """The settings with their values, as `--help` and `show` print them."""
    rows = []
    for setting in described_settings(spec, config):
        choices = f" ({', '.join(map(str, setting['choices']))})" if setting["choices"] else ""
        rows.append((f"  {as_word(setting['name'], setting['value'])}", setting["type"], f"{setting['help']}{choices}"))
    return table(rows, wrapped=True)


def as_word(key: str, value: Any) -> str:
    """A setting as it can be given: `hidden=8,8`."""
    return f"{key}={','.join(map(str, value)) if isinstance(value, (tuple, list)) else value}"


LIST = Command("list the installed models", "minigrad list 'x*' --json", _list_arguments, _list)
