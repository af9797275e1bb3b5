"""The page of a language model: it reads a prompt, then goes on token by token with the cache of the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...decode.text_stream import beginning
from ...engine.modes import no_grad
from ...errors import ArgumentError
from ...ops.creation import tensor
from ...web.cached import traced_steps
from ...web.program import Programs
from ..page import Page
from .content import Content, tokenizer_form

__all__ = ["continuation"]

TOKENS, TEMPERATURE = 100, 0.8
LONGEST = 1024  # tokens that a page sees at once, whatever the model could


def continuation(loaded: Any, said: Page) -> Content:
    """Programs `start(tokens)` and `step(token, *cache)`; tokens are drawn in the page."""
    model, tokenizer = loaded.model, loaded.tokenizer
    if not hasattr(model, "new_cache") or not hasattr(model, "context"):
        raise ArgumentError(f"{loaded.spec.name} has no page", "`context` and `new_cache()` in its model", "none")
    form = tokenizer_form(loaded)

    def call(cache: Any, tokens: Any) -> Any:
        if hasattr(model, "next_logits"):
            return model.next_logits(tokens, cache=cache)
        return model(tokens, cache=cache)[:, -1]  # (B, n, V) -> (B, V)

    def tokens(rows: int, length: int) -> np.ndarray:
        return np.full((rows, length), tokenizer.vocab_size - 1)

    context = min(model.context, LONGEST)
    with no_grad():  # tables of positions grow to the greatest length that may come
        model(tensor(tokens(1, context)))
    short, long = (1, 2) if context < 6 else (2, min(context // 2, 11))
    if context < 3:
        raise ArgumentError(f"{loaded.spec.name} has no page", "a context of 3 tokens or more", context)
    starts = [[tokens(1, length)] for length in (short, long)]
    primes = [[tokens(2, short)], [tokens(3, long)]]
    start, step, rows = traced_steps(model, call, starts, primes)
    programs = Programs()
    programs.add("start", start)
    programs.add("step", step)
    settings = {
        "temperature": TEMPERATURE, "tokens": TOKENS, **said.settings, "context": context, "rows": rows,
        "beginning": beginning(tokenizer), "never": [int(token) for token in tokenizer.unwritten],
        "end": tokenizer.eos_id, "unknown": tokenizer.unk_id,
    }  # fmt: skip
    return Content("continuation", "continuation", programs, settings, {"examples": list(said.examples)}, form)
