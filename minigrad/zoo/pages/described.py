"""The page of a model that says in words what it sees or hears, with the cache of its decoder."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...web.cached import traced_steps
from ...web.program import Programs, traced
from ..page import Page
from .content import Content

__all__ = ["described"]

NEEDED = ("medium", "words", "start", "end", "most", "samples")
LABELS = {
    "picture": {"label": "The number of a picture", "open": "or a picture of yours", "heading": "It sees"},
    "sound": {"label": "The number of a recording", "open": "or a sound of yours", "heading": "It hears"},
}


def described(loaded: Any, said: Page) -> Content:
    """Programs `encode(given)`, `start(memory, token)` and `step(memory, token, *cache)`; the model has `decode` and `decoder`.

    `settings` say whether the `medium` is a "picture" or a "sound", which `words` the numbers stand for, `start`, `end`, how many
    words there are at `most`, what is between them (`gap`), and `samples`, what it can be given: (n, …). `function` is what
    becomes of one of these before it is decoded.
    """
    lacking = [name for name in NEEDED if name not in said.settings]
    if said.function is None or lacking or said.settings["medium"] not in LABELS:
        raise ArgumentError(
            f"{loaded.spec.name} has no page", "a function that encodes, and its settings", ", ".join(lacking)
        )
    model, settings, programs = loaded.model, {"gap": " ", "hidden": [], **said.settings}, Programs()
    samples = np.asarray(settings.pop("samples"), "float32")
    encode = traced(said.function, [samples[:1]], holding=[model])
    programs.add("encode", encode)
    shape = encode.outputs[0].shape[1:]

    def call(cache: Any, memory: Any, tokens: Any) -> Any:
        return model.decode(tokens, memory, cache)[:, -1]  # (B, n, V) -> (B, V)

    def given(rows: int, length: int) -> list[np.ndarray]:
        return [np.zeros((rows, *shape), "float32"), np.full((rows, length), settings["start"])]

    starts, primes = [given(1, 1), given(1, 1)], [given(2, 1), given(3, 4)]
    start, step, rows = traced_steps(model, call, starts, primes, new_cache=model.decoder.new_cache)
    programs.add("start", start)
    programs.add("step", step)
    settings |= {"rows": rows, "never": [], "samples": programs.tensor(samples)}
    shown = {
        "examples": [str(number + 1) for number in range(len(samples))], "medium": settings["medium"],
        "shape": list(samples.shape[1:]), "rate": settings.get("rate"),
    }  # fmt: skip
    return Content("described", "described", programs, settings, shown, labels=LABELS[settings["medium"]])
