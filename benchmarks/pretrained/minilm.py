"""MiniLM: the vectors of a thousand sentences, ours and transformers'; how far apart, and how fast."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .packages import minilm, sentences

COUNT, BATCH = 1000, 32
AGREE, TO_REACH = 1e-5, 1.1


def transformers_vectors(texts: list[str]) -> Callable[[], np.ndarray]:
    """As its users compute them: batches of texts of similar length, the masked mean, divided by its length."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm())
    model = transformers.AutoModel.from_pretrained(minilm()).eval()
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))

    def vectors() -> np.ndarray:
        found = np.empty((len(texts), model.config.hidden_size), np.float32)
        with torch.inference_mode():
            for start in range(0, len(order), BATCH):
                places = order[start : start + BATCH]
                given = tokenizer([texts[i] for i in places], padding=True, return_tensors="pt")
                mask = given["attention_mask"][:, :, None]
                mean = (model(**given).last_hidden_state * mask).sum(1) / mask.sum(1)
                found[places] = torch.nn.functional.normalize(mean, dim=1).numpy()
        return found

    return vectors


def our_vectors(texts: list[str]) -> Callable[[], np.ndarray]:
    """By `embed` of what the hub loads."""
    import minigrad as mg

    loaded = mg.hub.load(minilm())
    return lambda: loaded.embed(texts)


def peer(name: str, runs: Path) -> Callable[[], Any]:
    """A worker's step: all vectors once."""
    make = our_vectors if name == "minigrad" else transformers_vectors
    vectors = make(sentences(COUNT))
    return lambda: vectors().sum()


def agreement() -> float:
    """The largest difference of any number of the vectors."""
    texts = sentences(COUNT)
    return float(np.abs(our_vectors(texts)() - transformers_vectors(texts)()).max())
