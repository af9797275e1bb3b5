"""The families that can be loaded, by the model_type of their config.json or the architecture of their GGUF file."""

from __future__ import annotations

from collections.abc import Collection

from ...errors import nearest
from ..family import Family, HubError
from .decoders import GEMMA, GEMMA2, GPT2, GPT2_GGUF, LLAMA, LLAMA_GGUF, NEOX
from .encoder_decoders import BART, MARIAN, PEGASUS, T5
from .encoders import BERT, DISTILBERT, ESM, ROBERTA
from .marian import MARIAN_NATIVE

__all__ = ["FAMILIES", "family_of", "guessed_family"]

# Names that only one family has.
TELLING = {"embeddings.token_type_embeddings.weight": "bert", "h.0.attn.c_attn.weight": "gpt2"}

DECODERS = (GPT2, GPT2_GGUF, LLAMA, LLAMA_GGUF, NEOX, GEMMA, GEMMA2)
ENCODERS = (BERT, ROBERTA, DISTILBERT, ESM)
ENCODER_DECODERS = (BART, MARIAN, PEGASUS, MARIAN_NATIVE, T5)
FAMILIES: dict[str, Family] = {
    name: family for family in (*DECODERS, *ENCODERS, *ENCODER_DECODERS) for name in family.names
}


def guessed_family(names: Collection[str]) -> str | None:
    """The family that tensors of these names are of, for old files whose config does not say it."""
    return next((name for end, name in TELLING.items() if any(given.endswith(end) for given in names)), None)


def family_of(name: str) -> Family:
    """The family of a model_type; one that is not known gets an error that lists those that are."""
    if name not in FAMILIES:
        raise HubError(f"the architecture {name!r} is not known here", ", ".join(FAMILIES), fix=nearest(name, FAMILIES))
    return FAMILIES[name]
