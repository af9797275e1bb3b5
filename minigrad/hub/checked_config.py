"""A config of a stranger becomes a model: sizes are checked before anything is allocated, and values of a wrong kind are named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import MinigradError, is_whole
from ..nn.init import skip
from ..zoo import configure
from .family import Family, HubError
from .source import Source

__all__ = ["build"]

# Settings that decide how much memory a model takes.
SIZES = {
    "vocab", "target_vocab", "layers", "depth", "decoder_depth", "heads", "kv_heads", "head_dim", "dim", "hidden",
    "types", "rotary_dim", "buckets", "words", "count", "first",
}  # fmt: skip
LEARNED = {"context", "max_length"}  # where positions are
LAYERS = {"layers", "depth", "decoder_depth"}
WRONG = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, MemoryError)


def build(spec: Any, family: Family, source: Source) -> tuple[Any, Any]:
    """The config and the model of a source, whose weights are not drawn."""
    try:
        settings = {**family.tokens, **family.settings(source.config)}
        _check(settings, source.weights)
        config = configure(spec, None, settings)
        with skip():
            return config, spec.build(config)
    except MinigradError:
        raise
    except WRONG as error:
        raise HubError(
            f"the config of {source.name!r} describes no model: {error or type(error).__name__}"[:300],
            fix="take a config.json that fits the weights",
        ) from error


def _check(settings: Mapping[str, Any], weights: Mapping[str, Any]) -> None:
    """Refuse sizes that no tensor of the file has, and more layers than tensors."""
    widest = (
        max((max(one.shape, default=1) for one in weights.values()), default=1) + 1
    )  # a row for padding may be added
    named = SIZES | LEARNED if settings.get("positions") == "learned" else SIZES
    for name, value in _sizes(settings, named):
        most = len(weights) if name in LAYERS else widest
        if is_whole(value) and value > most:
            raise HubError(
                f"{name} of this config does not fit the tensors of the file", f"at most {most:,}", f"{value:,}"
            )


def _sizes(settings: Mapping[str, Any], named: set[str]) -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _sizes(value, named)
        elif name in named:
            yield name, value
