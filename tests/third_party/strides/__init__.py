"""Counting in strides, 2 5 8 1 4 … modulo ten: a small causal transformer learns to go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from minigrad.zoo import Config, Data, ModelSpec, option


@dataclass(frozen=True)
class StridesConfig(Config):
    """A causal transformer over digits."""

    width: int = option(16, "size of the vectors")
    depth: int = option(1, "how many blocks")
    length: int = option(8, "how many digits in a row")
    steps: int = option(300, "how many steps to train")
    batch: int = option(50, "how many rows in a batch")


def rows(length: int) -> Any:
    """All hundred of them: (100, length + 1)."""
    import numpy as np

    first, stride = np.divmod(np.arange(100)[:, None], 10)
    return (first + stride * np.arange(length + 1)) % 10


def data(config: StridesConfig, path: str | None) -> Data:
    import numpy as np

    from minigrad.train import ArrayBatches

    known = rows(config.length) if path is None else np.loadtxt(path, dtype=int, ndmin=2)
    return Data(ArrayBatches((known,), config.batch), ArrayBatches((known,), 100, shuffle=False))


def build(config: StridesConfig) -> Any:
    from .model import Counter

    return Counter(config.width, config.depth, config.length)


def loss(model: Any, batch: Any) -> dict[str, Any]:
    import minigrad as mg
    from minigrad.nn import functional as F

    (known,) = batch
    logits = model(mg.tensor(known[:, :-1]))  # (B, L) -> (B, L, 10)
    target = mg.tensor(known[:, 1:])
    right = int((logits.argmax(axis=-1) == target)[:, 1:].sum())  # two digits tell the stride
    return {
        "loss": (F.cross_entropy(logits.reshape(-1, 10), target.reshape(-1), reduction="sum"), target.size),
        "accuracy": (right, target[:, 1:].size),
    }


def example(config: StridesConfig) -> Any:
    return (rows(config.length)[[12, 34, 57]],)


def predict(loaded: Any, inputs: list[str]) -> list[Any]:
    return [{"input": text, "next": next_digit(loaded, text)} for text in inputs]


def next_digit(loaded: Any, text: str) -> int:
    """The digit that follows digits such as "2 5 8"."""
    import minigrad as mg

    digits = [int(word) for word in text.split()]
    return int(loaded.model(mg.tensor([digits]))[0, -1].argmax().item())


def attend(loaded: Any, text: str) -> dict[str, Any]:
    """The digits, and what follows each of them."""
    import minigrad as mg

    digits = text.split()
    return {"inputs": (mg.tensor([list(map(int, digits))]),), "tokens": digits, "vocabulary": range(10)}


def samples(loaded: Any) -> str:
    """What is thought to follow."""
    return "\n".join(f"{text} -> {next_digit(loaded, text)}" for text in spec.example_inputs)


def draw(loaded: Any) -> Any:
    """Where the digits lie."""
    from minigrad.viz import embedding_map

    return embedding_map(loaded.model.digits.weight, range(10), title="digits")


spec = ModelSpec(
    name="strides",
    task="lm",
    summary="counts in strides",
    config=StridesConfig,
    data=data,
    build=build,
    loss=loss,
    example=example,
    predict=predict,
    presets={"deep": {"depth": 2}},
    tiny={"width": 8, "length": 4},
    verbs={"next_digit": next_digit},
    example_inputs=["2 5 8", "7 7"],
    draw=draw,
    samples=samples,
    attend=attend,
)
