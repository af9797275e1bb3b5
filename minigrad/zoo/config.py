"""Settings given as text: `lr=0.1 hidden=8,8` become the fields of a config, each of its type."""

from __future__ import annotations

import dataclasses
import json
import math
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import ArgumentError, MinigradError, nearest
from .spec import Config, ModelSpec

__all__ = ["configure", "bound_of", "parse_overrides", "preset_of"]

# What other libraries call a setting -> the names it may have here.
_ELSEWHERE = {
    "learning_rate": ("lr",), "batch_size": ("batch",), "max_steps": ("steps",), "iterations": ("steps",), "max_iters": ("steps",),
    "num_epochs": ("epochs",), "hidden_size": ("hidden", "dim"), "d_model": ("dim",), "n_embd": ("dim",),
    "embed_dim": ("dim",), "n_layer": ("layers", "depth"), "num_layers": ("layers", "depth"), "layers": ("depth",), "depth": ("layers",),
    "n_head": ("heads",), "nhead": ("heads",), "num_heads": ("heads",), "block_size": ("context",), "vocab_size": ("vocab",),
    "seq_len": ("context", "max_length"), "label_smoothing": ("smoothing",), "grad_clip": ("clip",), "num_beams": ("beams",),
    "beam_size": ("beams",),
}  # fmt: skip
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def parse_overrides(words: Iterable[str]) -> dict[str, str]:
    """`["lr=0.1"]` -> `{"lr": "0.1"}`."""
    found = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise ArgumentError(f"{word!r} is not a setting", "key=value", repr(word), "write key=value, as in lr=0.01")
        if key.strip() in found:
            raise ArgumentError(f"{key.strip()} is set twice", "each setting once", repr(word))
        found[key.strip()] = value
    return found


def preset_of(spec: ModelSpec, preset: str | None) -> Mapping[str, Any]:
    """The settings of a preset; none for the default."""
    if preset is None or preset == "default":
        return {}
    if preset not in spec.presets:
        known = ["default", *spec.presets]
        raise ArgumentError(
            f"{spec.name} has no preset {preset!r}", ", ".join(known), repr(preset), nearest(preset, known)
        )
    return spec.presets[preset]


def configure(spec: ModelSpec, preset: str | None = None, overrides: Mapping[str, Any] | None = None) -> Any:
    """The config of a model: its defaults, changed by a preset, changed by overrides, which may be text."""
    fields = {field.name: field for field in dataclasses.fields(spec.config)}
    kinds = typing.get_type_hints(spec.config)
    renamed = {field.metadata["formerly"]: name for name, field in fields.items() if field.metadata.get("formerly")}
    values = {}
    for given, value in {**preset_of(spec, preset), **(overrides or {})}.items():
        key = renamed.get(given, given)
        if key not in fields:
            raise ArgumentError(
                f"{spec.name} has no setting {key!r}", ", ".join(fields), repr(key), _called(key, value, fields)
            )
        values[key] = _converted(f"{spec.name}: {key}", kinds[key], value)
        _refuse_out_of_bounds(f"{spec.name}: {key}", values[key], fields[key])
        choices = fields[key].metadata.get("choices")
        if choices and values[key] not in choices:
            shown = [str(choice) for choice in choices]
            raise ArgumentError(
                f"{spec.name}: {key} cannot be {value!r}", ", ".join(shown), repr(value), nearest(str(value), shown)
            )
    try:
        return spec.config(**values)
    except MinigradError:
        raise
    except Exception as error:  # whatever the config's own __post_init__ refuses them with
        raise ArgumentError(f"{spec.name}: these settings cannot be used: {error}", got=_shown(values)) from error


def _called(key: str, value: Any, fields: Mapping[str, Any]) -> str:
    """What a setting that does not exist may have meant: the name that other libraries give it is known, or else the nearest is."""
    ours = next((name for name in _ELSEWHERE.get(key.casefold(), ()) if name in fields), None)
    return nearest(key, list(fields)) if ours is None else f"it is called {ours} here: {ours}={value}"


def bound_of(field: dataclasses.Field[Any], name: str) -> float | None:
    """The "least" or the "most" that a field may be; one that is declared again keeps that of `Config`."""
    inherited = {known.name: known.metadata.get(name) for known in dataclasses.fields(Config)}
    return field.metadata.get(name, inherited.get(field.name))


def _refuse_out_of_bounds(where: str, value: Any, field: dataclasses.Field[Any]) -> None:
    least, most = bound_of(field, "least"), bound_of(field, "most")
    for part in value if isinstance(value, tuple) else (value,):
        if least is not None and part is not None and part < least:
            raise ArgumentError(f"{where} cannot be {part!r}", f"{least} or more", repr(part), f"give {least} or more")
        if most is not None and part is not None and part > most:
            raise ArgumentError(
                f"{where} cannot be {part!r}", f"{most:,} or less", repr(part), f"give {most:,} or less"
            )


def _shown(values: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in values.items()) or "the defaults"


def _converted(where: str, kind: Any, value: Any) -> Any:
    """A value of the type of its field; text is read, anything else must fit already."""
    if type(None) in typing.get_args(kind):
        if value is None or isinstance(value, str) and value.lower() in ("none", ""):
            return None
        kind = next(k for k in typing.get_args(kind) if k is not type(None))
    try:
        if typing.get_origin(kind) is dict:
            return _options(value)
        return _several(kind, value) if typing.get_origin(kind) is tuple else _plain(kind, value)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{where} cannot be {value!r}", _wanted(kind), repr(value)) from None


def _wanted(kind: Any) -> str:
    kinds = typing.get_args(kind)
    if typing.get_origin(kind) is tuple:
        return f"{_wanted(kinds[0])}, or several with commas" if ... in kinds else ", ".join(map(_wanted, kinds))
    if typing.get_origin(kind) is dict:
        return 'options by name, such as {"window": 64}'
    return {int: "a whole number", float: "a number", bool: "true or false", str: "text"}.get(kind, str(kind))


def _options(value: Any) -> dict[str, Any]:
    """Options by name, or the same as JSON text."""
    made = json.loads(value) if isinstance(value, str) else dict(value)
    if not isinstance(made, dict) or not all(isinstance(name, str) for name in made):
        raise ValueError
    return made


def _several(kind: Any, value: Any) -> tuple[Any, ...]:
    """`tuple[int, ...]` has as many as there are, `tuple[int, float]` one of each."""
    parts = [part for part in value.split(",") if part.strip()] if isinstance(value, str) else list(value)
    kinds = typing.get_args(kind)
    if ... in kinds:
        kinds = kinds[:1] * len(parts)
    return tuple(_plain(k, part) for k, part in zip(kinds, parts, strict=True))


def _plain(kind: Any, value: Any) -> Any:
    text = isinstance(value, str)
    if kind is str and text:
        return value
    if kind is bool and (text or isinstance(value, bool)):
        word = str(value).strip().lower()
        if word in (*_TRUE, *_FALSE):
            return word in _TRUE
    elif kind is int and not isinstance(value, bool) and (text or int(value) == value):
        return int(value)
    elif kind is float and not isinstance(value, bool) and math.isfinite(number := float(value)):
        return number
    raise ValueError
