"""`minigrad new` and `minigrad check`: for authors of plugins."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from .console import as_command, as_json, printable, styled
from .models import is_path, looked_up
from .parser import Command, Parser, flag_device, flag_json, usage_errors

if TYPE_CHECKING:
    from ..zoo import ModelSpec

__all__ = ["CHECK", "NEW"]


def _new_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="of the model and of its package, such as my_model")
    parser.add_argument("--out", metavar="FOLDER", help="where to write it (default: ./NAME)")


def _new(options: Namespace) -> int:
    from ..zoo.skeleton import check_name, write_skeleton

    with usage_errors():
        check_name(options.name)
    folder = Path(options.name if options.out is None else options.out)
    written = write_skeleton(options.name, folder)
    print(printable("\n".join(f"wrote {path}" for path in written)))
    print(printable(f"\ncheck it:    {as_command('check', folder)}"))
    print(printable(f"install it:  pip install -e {folder}"))
    print(printable(f"train it:    {as_command('train', options.name)}"))
    return 0


def _check_arguments(parser: Parser) -> None:
    parser.add_argument(
        "model", metavar="NAME[:PRESET]|PATH", help="a model of `minigrad list`, or a plugin's folder or file"
    )
    flag_device(parser)
    flag_json(parser)


def _check(options: Namespace) -> int:
    """Print each verdict as soon as it is known."""
    from ..engine.backend import backend_named
    from ..zoo.conformance import check

    spec, preset = _meant(options.model)
    with usage_errors():
        backend_named(options.device)
    verdicts = []
    for verdict in check(spec, options.device, preset):
        verdicts.append(verdict)
        if not options.json:
            word, style = {True: ("ok", "good"), False: ("FAILED", "bad"), None: ("n/a", "faint")}[verdict.ok]
            rest = printable(f"{verdict.name:23}  {verdict.seconds:4.1f} s  {verdict.detail}".rstrip())
            print(f"{styled(f'{word:6}', style)}  {rest}", flush=True)
    failed = [verdict.name for verdict in verdicts if verdict.ok is False]
    if options.json:
        shown = [{"name": v.name, "ok": v.ok, "detail": v.detail, "seconds": v.seconds} for v in verdicts]
        print(as_json({"model": spec.name, "ok": not failed, "verdicts": shown}))
    else:
        passed = sum(verdict.ok is True for verdict in verdicts)
        print(
            printable(
                f"\n{spec.name}{f':{preset}' if preset else ''}: {passed} passed, {len(failed)} failed{': ' + ', '.join(failed) if failed else ''}"
            )
        )
    return 1 if failed else 0


def _meant(text: str) -> tuple[ModelSpec, str | None]:
    """The installed model of this name, with its preset, or the plugin at this path."""
    from ..zoo.plugin_files import spec_at
    from ..zoo.registry import entries

    named = is_path(text) or text.endswith(".py") or text in (os.curdir, os.pardir)
    installed = text.partition(":")[0] in {entry.name for entry in entries()}
    return (spec_at(text), None) if named or not installed and os.path.exists(text) else looked_up(text)


NEW = Command(
    "write the skeleton of a model of your own, ready to train", "minigrad new my_model", _new_arguments, _new
)
CHECK = Command("run the conformance suite on a model", "minigrad check path/to/my_model", _check_arguments, _check)
