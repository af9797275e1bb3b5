"""The task "masked language model": `embed` makes vectors of texts, `logits` says what the head makes of tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from .embedding import EMBED, embed
from .task import Task

__all__ = ["MASKED_LANGUAGE_MODEL"]


def logits(loaded: Any, ids: Any, mask: Any = None, types: Any = None) -> np.ndarray:
    """The logits of the token at each place, as an array: token numbers (B, T) -> (B, T, vocabulary).

    `mask` (B, T) is False for padding, before or after the tokens; `types` (B, T) is 1 for the tokens of a second text.
    Without them all tokens are read, as one text. A model of classes gives the logits of these.
    """
    from ...engine.modes import no_grad

    with no_grad():
        made: np.ndarray = loaded.model.logits(ids, mask, types).numpy()
        return made


MASKED_LANGUAGE_MODEL = Task(
    "masked language model", verbs={"embed": embed, "logits": logits}, commands={"embed": EMBED}
)
