"""A trained model with packed weights: what `minigrad quantize` writes."""

from __future__ import annotations

import dataclasses

from ..errors import ArgumentError
from ..nn.quant import quantized
from .export import merged
from .loaded import Loaded
from .registry import entries

__all__ = ["quantize"]


def quantize(loaded: Loaded, bits: int = 8) -> Loaded:
    """The same model with its matrices in 8 or 4 bits a number, tables of vectors in 8; adapters are merged first."""
    spec = loaded.spec
    if not spec.quantizable:
        raise ArgumentError(
            f"{spec.name} cannot be quantised: its plugin works with its weights as floats",
            "one of the models whose weights may be packed",
            spec.name,
            f"these can: {', '.join(sorted(entry.name for entry in entries() if entry.spec and entry.spec.quantizable))}",
        )
    whole = merged(loaded)
    return dataclasses.replace(whole, model=quantized(whole.model, bits, embeddings=True).eval())
