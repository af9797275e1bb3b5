"""`minigrad show`: a model's settings and presets, or what a trained or imported model is and where it came from."""

from __future__ import annotations

import os
from argparse import Namespace
from math import prod
from typing import TYPE_CHECKING, Any

from .console import as_command, as_json, printable, table
from .models import as_word, commands_of, configured, described_settings, looked_up, settings_table
from .parser import Command, Parser, flag_json

if TYPE_CHECKING:
    from ..zoo import Loaded, ModelSpec

__all__ = ["SHOW", "described"]

# Settings of an imported model that say how it is built.
SIZES = (
    "vocab", "context", "layers", "depth", "decoder_depth", "heads", "dim", "hidden", "positions", "norm", "activation",
    "tied", "rotary", "block", "pool",
)  # fmt: skip


def _methods_of(spec: ModelSpec) -> list[str]:
    """The verbs of a model that are no commands, but methods of what `mg.zoo.load` returns."""
    from ..zoo.tasks import verbs_of

    own = {"draw": spec.draw, **verbs_of(spec)}
    return [name for name, function in own.items() if function is not None and name not in commands_of(spec)]


def _show_arguments(parser: Parser) -> None:
    parser.add_argument(
        "model",
        metavar="NAME[:PRESET]",
        help="a model of `minigrad list`, or the folder of one that was trained or imported",
    )
    flag_json(parser)


def _show(options: Namespace) -> int:
    from ..zoo.registry import entries

    if os.path.exists(options.model):
        return _show_trained(options)
    spec, preset = looked_up(options.model)
    config, _ = configured(spec, preset, [])
    package = next(entry.package for entry in entries() if entry.name == spec.name)
    methods = _methods_of(spec)
    if options.json:
        settings = described_settings(spec, config)
        presets = {name: dict(changes) for name, changes in spec.presets.items()}
        print(
            as_json(
                {
                    "name": spec.name,
                    "preset": preset,
                    "task": spec.task,
                    "summary": spec.summary,
                    "package": package,
                    "commands": commands_of(spec),
                    "methods": methods,
                    "settings": settings,
                    "presets": presets,
                }  # fmt: skip
            )
        )
        return 0
    facts = {"task": spec.task, "package": package, "commands": ", ".join(commands_of(spec))}
    if methods:
        facts["in Python"] = ", ".join(f"loaded.{name}" for name in methods) + ", after loaded = mg.zoo.load(DIR)"
    print(printable(f"{spec.name}: {spec.summary}\n\n{table(facts.items())}"))
    print(
        f"\nsettings{f' of the preset {preset}' if preset else ''}, with their values:\n{settings_table(spec, config)}"
    )
    if spec.presets:
        rows = [
            (f"  {spec.name}:{name}", " ".join(as_word(key, value) for key, value in changes.items()))
            for name, changes in spec.presets.items()
        ]
        print(f"\npresets:\n{table(rows)}")
    print(f"\ntrain it:\n  {as_command('train', options.model)}")
    return 0


def _show_trained(options: Namespace) -> int:
    """What is in the folder of a trained or imported model."""
    from ..zoo import load

    loaded = load(options.model)
    if options.json:
        print(as_json({**_facts(loaded), "settings": vars(loaded.config)}))
    else:
        print(printable(described(loaded)))
    return 0


def described(loaded: Loaded) -> str:
    """What a loaded model is, how large, where it came from, which commands take it, and its sizes."""
    built = {name: value for name, value in vars(loaded.config).items() if name in SIZES and value not in (None, {})}
    return (
        f"{table(_facts(loaded).items())}\n\nsettings:\n{table((f'  {name}', value) for name, value in built.items())}"
    )


def _facts(loaded: Loaded) -> dict[str, Any]:
    spec, origin = loaded.spec, loaded.arguments.get("origin", {})
    tensors = {id(tensor.data): tensor for tensor in loaded.model.state_dict().values()}.values()  # a tied one once
    megabytes = sum(tensor.data.nbytes for tensor in tensors) / 1e6
    facts: dict[str, Any] = {
        "model": f"{spec.name}: {spec.summary}",
        "task": spec.task,
        "weights": f"{sum(prod(tensor.shape) for tensor in tensors):,} numbers in {megabytes:,.1f} MB",
    }
    if origin:
        facts["from"] = f"{origin['source']} ({origin['family']})"
        first = next(iter(origin["licence"].strip().splitlines()), "")
        facts["licence"] = first.strip() or "none lay beside it: see where it came from"
    if loaded.tokenizer is not None:
        facts["tokenizer"] = f"{loaded.tokenizer.kind}, {loaded.tokenizer.vocab_size:,} tokens"
    facts["commands"] = ", ".join(commands_of(spec))
    return facts


SHOW = Command(
    "show a model's settings, their defaults, and its presets; or what is in the folder of a trained model",
    "minigrad show xor:bare",
    _show_arguments,
    _show,
)
