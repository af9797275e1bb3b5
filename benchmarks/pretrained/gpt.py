"""GPT *baby*, trained for a while on Shakespeare: tokens a second in float32 and packed, beside PyTorch, and what packing costs."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..twins.gpt import CONFIGS
from .reading import READING, reading
from .runs import trained

STEPS = 240
PROMPT = "ROMEO:"
WRITTEN = 128  # tokens of a round
WHOLE = "minigrad, float32"
BITS = {WHOLE: 32, "minigrad, int8": 8, "minigrad, int4": 4}
TORCH = [f"PyTorch, {cache}, {threads}" for cache in ("allocated", "joined") for threads in ("1 thread", "all threads")]
READINGS = {f"{READING}, {name.partition(', ')[2]}": name for name in BITS}
TO_REACH = {WHOLE: 1.0, "minigrad, int8": 2.0}
WORSE = {"minigrad, int8": 0.1}  # per cent of perplexity, at most


def run(runs: Path) -> Path:
    """The directory of the trained model."""
    return trained("gpt:baby", runs, STEPS, data="tinyshakespeare.txt")


def packed(loaded: Any, name: str) -> Any:
    """The model, with its weights in so many bits."""
    from minigrad import nn

    return loaded.model if BITS[name] == 32 else nn.quantized(loaded.model, BITS[name], embeddings=True)


def perplexities(runs: Path) -> dict[str, dict[str, float]]:
    """Of each of ours, on the text that was held out, and its bytes."""
    from minigrad import zoo
    from minigrad.nn.summary import memory

    loaded = zoo.load(run(runs))
    found = {}
    for name in BITS:
        small = dataclasses.replace(loaded, model=packed(loaded, name))
        found[name] = {"perplexity": small.evaluate()["perplexity"], "bytes": memory(small.model)}
    return found


def peer(name: str, runs: Path) -> Callable[[], Any]:
    """A worker's step: the next token of a text that is written again and again until the context is full; or a reading."""
    from minigrad import zoo
    from minigrad.nn.summary import memory

    loaded = zoo.load(run(runs))
    if name in READINGS:
        return reading(memory(packed(loaded, READINGS[name])))
    ids = loaded.tokenizer.encode(PROMPT)
    length = loaded.model.context - len(ids) + 1
    if name in BITS:
        return _ours(packed(loaded, name), ids, length)
    from ..twins.generation_torch import torch_tokens

    _, cache, threads = name.split(", ")
    config = dataclasses.replace(CONFIGS["baby"], vocabulary=loaded.config.vocab)
    weights = {key: value.numpy() for key, value in loaded.model.state_dict().items()}
    return torch_tokens(config, weights, ids, length, cache, 1 if threads == "1 thread" else os.cpu_count() or 1)


def _ours(model: Any, ids: list[int], length: int) -> Callable[[], Any]:
    from minigrad.decode import LanguageModel, Sampling, generate

    def written() -> Iterator[np.ndarray]:
        while True:
            yield from generate(LanguageModel(model), np.array([ids]), length=length, sampling=Sampling(0))

    return written().__next__
