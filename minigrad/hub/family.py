"""A family of models: which of our models it is, by which settings, and what its tensors are called in its files.

A family is a table. The keys of `tensors` are our names, `{i}` stands for the number of a layer; a key that names a module
stands for its weight and its bias. The values are the names in the file, in which `{n}` counts layers from 1; `joined` puts
them on top of each other, `transposed` turns them, and `either` takes the first that is there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from ..errors import MinigradError

__all__ = ["Family", "From", "HubError", "ModelConfig", "either", "joined", "transposed"]

SHOWN = 5  # names in an error
OLD_NAMES = {"Norm.gamma": "Norm.weight", "Norm.beta": "Norm.bias"}  # in files from before 2019


class HubError(MinigradError, ValueError):
    """A pretrained model cannot be loaded."""


@dataclass(frozen=True)
class From:
    """Where a tensor comes from: the rows of one tensor of a file, or of several, one after the other.

    A matrix may be stored as (in, out); `skip` rows at the beginning are left out, `extra` rows of zeros follow at the end;
    `order(rows, config)` says in which order they are taken; a vector may be stored as a matrix of one row. Some files have
    the tensor under one of `others`, or as its numbers less `plus`.
    """

    names: tuple[str, ...]
    is_transposed: bool = False
    skip: int = 0
    extra: int = 0
    others: tuple[str, ...] = ()
    plus: float = 0.0
    is_row: bool = False
    order: Callable[[int, ModelConfig], np.ndarray] | None = None


def joined(*names: str, **options: Any) -> From:
    """The rows of several tensors, one after the other."""
    return From(names, **options)


def transposed(name: str) -> From:
    """A matrix that is stored as (in, out)."""
    return From((name,), is_transposed=True)


def either(name: str, *others: str, **options: Any) -> From:
    """A tensor that has one of these names."""
    return From((name,), others=others, **options)


class ModelConfig(dict[str, Any]):
    """The config.json of a model; a key that is missing is an error that names it.

    Beside it are the `names` of the tensors, the `tokenizer`, and `options` that other files say.
    """

    names: Collection[str] = ()
    tokenizer: Any = None
    options: Mapping[str, Any] = MappingProxyType({})

    def __missing__(self, key: str) -> Any:
        raise HubError(f"the config of this model has no {key!r}", fix="take a config.json that fits the weights")

    def first(self, *keys: str, default: Any = None) -> Any:
        """The value of the first key that is there and not null."""
        return next((self[key] for key in keys if self.get(key) is not None), default)

    def refuse(self, **usual: Any) -> None:
        """Refuse values of options that are not offered here: each is named with the only value it may have."""
        for key, value in usual.items():
            if self.get(key, value) != value:
                raise HubError(f"{key} of this model is not offered", f"{key}={value}", repr(self[key]))


@dataclass(frozen=True)
class Family:
    """A family of models.

    `names` are its model_type in config.json, or `general.architecture` of a GGUF with "gguf:" before it. `model` is the
    plugin that it is a configuration of, and `settings(config)` are the settings of that. `prefixes` stand before the
    names in some files. Tensors that match `ignored` hold nothing that is needed, those that match `optional` need not be
    used. `tokens` is the setting that says that the tokenizer came with the model.

    The reverse, for writing: `configs(own, model)` are the configs that may describe a model of ours with these settings,
    whose sizes the model itself tells. Tensors whose names begin with one of `heads` have no prefix; `written(own)` has the
    names that ours are written under, where these are not the first ones.
    """

    names: Sequence[str]
    model: str
    settings: Callable[[ModelConfig], dict[str, Any]]
    tensors: Mapping[str, str | From]
    prefixes: Sequence[str] = ()
    ignored: Sequence[str] = ()
    optional: Sequence[str] = ()
    tokens: Mapping[str, Any] = field(default_factory=lambda: {"tokenizer": "pretrained"})
    configs: Callable[[Mapping[str, Any], Any], Iterable[dict[str, Any]]] | None = None
    heads: Sequence[str] = ()
    written: Callable[[Mapping[str, Any]], Mapping[str, str]] = lambda own: {}

    def sources(self, name: str) -> From | None:
        """Where our tensor of this name comes from; None if the table does not say."""
        numbers = re.findall(r"\.(\d+)\.", name)
        number = numbers[0] if numbers else ""
        pattern = name.replace(f".{number}.", ".{i}.", 1) if numbers else name
        found, leaf = self.tensors.get(pattern), ""
        if found is None:
            module, _, leaf = pattern.replace("in_proj_", "in_proj.").rpartition(".")
            found = self.tensors.get(module)
        if found is None:
            return None
        source = From((found,)) if isinstance(found, str) else found
        following = str(int(number) + 1) if number else ""

        def spelt(names: tuple[str, ...]) -> tuple[str, ...]:
            numbered = (part.replace("{i}", number).replace("{n}", following) for part in names)
            return tuple(part + (f".{leaf}" if leaf else "") for part in numbered)

        is_transposed = source.is_transposed and leaf != "bias"  # a vector has nothing to turn
        return replace(source, names=spelt(source.names), others=spelt(source.others), is_transposed=is_transposed)

    def renamed(self, names: Iterator[str]) -> dict[str, str]:
        """The names in a file without their prefix -> as they are there; what is ignored is left out."""
        kept = {}
        for name in names:
            short = next((name.removeprefix(prefix) for prefix in self.prefixes if name.startswith(prefix)), name)
            for old, new in OLD_NAMES.items():
                short = f"{short.removesuffix(old)}{new}" if short.endswith(old) else short
            if not any(re.search(pattern, short) for pattern in self.ignored):
                kept[short] = name
        return kept

    def matched(self, wanted: Sequence[str], names: Iterator[str], copies: Sequence[str] = ()) -> dict[str, From]:
        """For each tensor that a model wants, where it comes from in a file with these names; all of both must fit.

        The `copies` are other names of wanted tensors: the file may have them once more.
        """
        there = self.renamed(names)
        found: dict[str, From] = {}
        missing: list[str] = []
        used = set() if "head.weight" in wanted else {f"{self.tensors.get('head')}.weight"}  # a copy of the embedding
        for name in wanted:
            source = self.sources(name)
            if source is None:
                missing.append(name)
                continue
            others = tuple([other for other in source.others if other in there][:1])
            parts = others if others and source.names[0] not in there else source.names
            missing += [part for part in parts if part not in there]
            used |= {*parts, *source.others}
            found[name] = replace(source, names=tuple(there.get(part, part) for part in parts))
        for source in filter(None, map(self.sources, copies)):
            used |= {*source.names, *source.others}
        left = [
            name
            for short, name in there.items()
            if short not in used and not any(re.search(pattern, short) for pattern in self.optional)
        ]
        if missing or left:
            raise HubError(
                f"the tensors of this file do not fit the family {self.names[0]!r}",
                "each tensor of the model in the file, and nothing else",
                "; ".join(
                    _listed(label, names) for label, names in (("missing", missing), ("left over", left)) if names
                ),
                "check that config.json belongs to these weights",
            )
        return found


def _listed(label: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{label}: {', '.join(names[:SHOWN])}{more}"
