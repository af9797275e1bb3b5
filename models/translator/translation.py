"""How the translator prepares a text: in the form that its config names, in sentences for the phrasebook, with gaps to denoise."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from minigrad import decode
from minigrad.decode import Translation

from .corpus import form_of, written
from .preparation import source_ids


def translate(
    loaded: Any,
    texts: Sequence[str],
    beams: int | None = None,
    alpha: float | None = None,
    cached: bool = True,
    shortlist: bool = True,
) -> list[Translation]:
    """Translate texts, all in one batch; `beams` and `alpha` are those of its config unless given.

    A model that came with a lexical shortlist uses it, unless told otherwise.
    """
    config = loaded.config
    return decode.translate(
        loaded.model,
        loaded.tokenizer,
        texts,
        beams=config.beams if beams is None else beams,
        alpha=config.alpha if alpha is None else alpha,
        cached=cached,
        shortlist=shortlist,
        **reading(loaded),
    )


def reading(loaded: Any) -> dict[str, Any]:
    """How a text becomes the model's input. The phrasebook and its grammar have one sentence at a time."""
    form = form_of(loaded.config)
    return {
        "max_length": loaded.config.max_length,
        "prepare": partial(written, form=form, is_source=True),
        "encode": partial(source_ids, loaded.config, loaded.tokenizer),
        "by_sentence": form == "phrasebook",
    }
