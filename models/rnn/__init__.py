"""rnn: a recurrent network that reads and writes text, character by character."""

from __future__ import annotations

import dataclasses
from typing import Any

from minigrad.errors import ArgumentError
from minigrad.zoo import Config, Data, ModelSpec, option


@dataclasses.dataclass(frozen=True)
class RNNConfig(Config):
    """Which recurrence, its sizes, and how it is trained."""

    cell: str = option("lstm", "what a step computes", choices=("rnn", "gru", "lstm"))
    dim: int = option(64, "how many numbers stand for a token", least=1)
    hidden: int = option(256, "how many numbers the state has", least=1)
    layers: int = option(1, "how many recurrent layers", least=1, most=1000)
    context: int = option(64, "through how many steps a gradient goes back", least=1)
    dropout: float = option(0.0, "the share of numbers that is dropped while training", least=0)
    tokenizer: str = option("char", "what a token of text is", choices=("char", "word", "bpe"))
    vocab: int = option(1000, "how many tokens there are at most, five special ones included", least=6)
    characters: int = option(500_000, "how much of the shipped stories to learn from, where no text is given", least=1)
    steps: int = option(1000, "how many steps to train", least=1)
    batch: int = option(32, "how many texts in a batch", least=1)
    lr: float = option(4e-3, "learning rate, after the warm-up", least=0)
    valid_every: int = option(250, "steps between validations", least=1)

    def __post_init__(self) -> None:
        if self.dropout >= 1:
            raise ArgumentError(f"rnn: dropout={self.dropout} would drop everything", "less than 1")
        if self.tokenizer == "bpe" and self.vocab < 261:
            raise ArgumentError(f"rnn: vocab={self.vocab} is too small for tokenizer=bpe", "vocab=261 or more")

    @property
    def init(self) -> None:
        """Nothing: it begins with random weights. The readers of gpt's texts ask."""

    length = init


def data(config: RNNConfig, path: str | None) -> Data:
    """Blocks of a text, as gpt's: of the shipped stories unless there is a file."""
    from ..gpt.text import text_data

    return text_data(config, path)


def build(config: RNNConfig) -> Any:
    from .model import RNNLanguageModel

    sizes = (config.vocab, config.dim, config.hidden, config.layers, config.context)
    return RNNLanguageModel(config.cell, *sizes, config.dropout)


def loss(model: Any, batch: Any) -> dict[str, Any]:
    """The cross-entropy of the next tokens, summed."""
    from ..gpt.model import loss

    return loss(model, batch)


loss.unit = "tokens"  # type: ignore[attr-defined]  # what the Trainer counts


def schedule(optimizer: Any, config: RNNConfig) -> Any:
    """A short warm-up, then half a cosine down to a tenth of the learning rate."""
    from minigrad.optim import Cosine

    return Cosine(optimizer, config.steps, min(50, config.steps // 10), config.lr / 10)


def example(config: RNNConfig) -> Any:
    """Two short texts, drawn at random."""
    import numpy as np

    from minigrad.data import BlockBatch

    rows = np.random.default_rng(0).integers(5, config.vocab, (2, min(config.context, 8) + 1))
    return BlockBatch(rows[:, :-1], rows[:, 1:])


def predict(loaded: Any, inputs: list[str]) -> list[Any]:
    """Each input continued."""
    from ..gpt.text import predict_text

    return [predict_text(loaded, text) for text in inputs]


def evaluate(loaded: Any, path: str | None) -> dict[str, Any]:
    """The loss over the whole text that was held out, or over another file."""
    from ..gpt.text import evaluate_text

    return evaluate_text(loaded, path)


def samples(loaded: Any) -> str:
    """What it writes at the moment."""
    from ..gpt.text import show_text

    return show_text(loaded)


def after(loaded: Any, folder: Any) -> str:
    """How to have it write."""
    import shlex

    return f"let it write: {shlex.join(['minigrad', 'sample', str(folder), 'Ana'])}"


spec = ModelSpec(
    name="rnn",
    task="language model",
    summary="a recurrent network (RNN, GRU or LSTM) that continues text, character by character",
    config=RNNConfig,
    data=data,
    build=build,
    loss=loss,
    example=example,
    schedule=schedule,
    predict=predict,
    example_inputs=("Ana", ""),
    evaluate=evaluate,
    presets={"rnn": {"cell": "rnn", "lr": 2e-3}, "gru": {"cell": "gru"}, "lstm": {"cell": "lstm"}},
    tiny={
        "dim": 6, "hidden": 16, "context": 8, "batch": 4, "characters": 4000, "lr": 0.03, "steps": 20, "valid_every": 10,
    },
    samples=samples,
    after=after,
)  # fmt: skip
