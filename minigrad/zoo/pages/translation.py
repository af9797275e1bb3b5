"""The page of a translator: it reads the source once, then goes on token by token with the cache of the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...data.normalisation import CONTRACTIONS
from ...decode.encoder_decoder import special_ids
from ...decode.translation import doubted
from ...engine.modes import no_grad
from ...errors import ArgumentError
from ...ir import Graph, Size
from ...ir.graph import names
from ...ops.creation import tensor
from ...web.cached import traced_steps
from ...web.program import Programs
from ..page import Page
from .content import Content, tokenizer_form
from .scripts import script_pattern

__all__ = ["translation"]

FORMS = ("plain", "lower", "phrasebook")
LONGEST = 100  # tokens of a piece, unless the settings of the model say otherwise


def translation(loaded: Any, said: Page) -> Content:
    """Programs `start(source, prompt)` and `step(source, token, *cache)`; the search is made in the page."""
    model, given = loaded.model, dict(said.settings)
    if not hasattr(model, "new_cache"):
        raise ArgumentError(f"{loaded.spec.name} has no page", "`new_cache()` in its model", "none")
    form = tokenizer_form(loaded)
    ids, config = special_ids(model, loaded.tokenizer), loaded.config
    if given.get("form", "plain") not in FORMS:
        raise ArgumentError("page: a text cannot be written in this form", ", ".join(FORMS), given["form"])
    settings = {
        "form": "plain", "by_sentence": False, "prefix": "", "gaps": False, "shortlist": None,
        "longest": getattr(config, "max_length", None) or LONGEST,
        "beams": getattr(config, "beams", None) or 5, "alpha": getattr(config, "alpha", None) or 0.0,
        **given,
        "prompt": ids.prompt, "end": ids.end, "never": [int(token) for token in ids.never],
        "most": getattr(model, "longest", None), "doubted": doubted(loaded.tokenizer),
    }  # fmt: skip
    if settings["form"] == "phrasebook":
        settings["contractions"] = [[script_pattern(a), b.replace("\\", "$")] for a, b in CONTRACTIONS]
    if settings["most"] is not None:  # as many positions were learned
        settings["longest"] = min(settings["longest"], settings["most"])
    start, step, rows = _programs(model, settings, loaded.tokenizer.vocab_size)
    programs = Programs()
    for name, graph in (("start", start), ("step", step)):
        programs.add(name, graph)
        programs.forms[name]["alignment"] = alignment(graph)
    if (shortlist := getattr(model, "shortlist", None)) is not None:
        arrays = {name: programs.tensor(getattr(shortlist, name).numpy()) for name in ("offsets", "targets")}
        settings["shortlist"] = {"first": shortlist.first, **arrays}
    return Content(
        "translation", "translation", programs, {**settings, "rows": rows}, {"examples": list(said.examples)}, form
    )


def _programs(model: Any, settings: dict[str, Any], vocab: int) -> tuple[Graph, Graph, list[int | None]]:
    prompt, longest, most = settings["prompt"], settings["longest"], settings["most"]
    with no_grad():  # tables of positions grow to the greatest length that may come
        target = 2 * longest + 10 if most is None else most
        model(tensor(_tokens(1, longest, vocab)), tensor(_tokens(1, target, vocab)))

    def call(cache: Any, source: Any, tokens: Any) -> Any:
        return model(source, tokens, cache=cache)[:, -1]  # (B, n, V) -> (B, V)

    starts = [[_tokens(1, size, vocab), np.array([prompt])] for size in (7, 20)]
    primes = [[_tokens(rows, size, vocab), _tokens(rows, past, vocab)] for rows, size, past in ((2, 7, 5), (3, 20, 11))]
    return traced_steps(model, call, starts, primes)


def _tokens(rows: int, length: int, vocab: int) -> np.ndarray:
    """Some numbers of tokens that are no special ones, where there are others: (rows, length)."""
    return np.arange(rows * length).reshape(rows, length) % max(vocab - 5, 1) + min(5, vocab - 1)


def alignment(graph: Graph) -> str | None:
    """The name of what the last attention to the source makes: keys of it are as many as the source has tokens."""
    size, found = graph.inputs[0].shape[1], None
    for step in graph.steps:
        keys = step.inputs[1] if step.op.name == "attention" else None
        if keys is not None and isinstance(size, Size) and keys.shape[-2] == size:
            found = names(graph)[step.out]
    return found
