"""Where a decoder with attention looked, word by word."""

from __future__ import annotations

from typing import Any

from minigrad.decode.translation import attention_inputs
from minigrad.errors import ArgumentError
from minigrad.viz.attention.attention import Attention

from ..translator import translate
from .model import alignment


def attention(loaded: Any, text: str, **options: Any) -> Attention:
    """The weights of each step of the decoder while a text, or its first piece, was translated."""
    if loaded.model.attention is None:
        raise ArgumentError(
            "seq2seq: this model has no attention to show",
            "one that was trained with attention=True",
            fix="train one: minigrad train seq2seq:attention",
        )
    given = attention_inputs(loaded.tokenizer, translate(loaded, text, **options)[0], loaded.model.vocab)
    weights = alignment(loaded.model, *given["inputs"])  # (1, T, S)
    return Attention.of_weights([weights], given["chosen"], given["keys"])
