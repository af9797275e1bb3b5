"""seq2seq: the translator's counterpart before transformers, an encoder-decoder of recurrent layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from minigrad.errors import ArgumentError
from minigrad.zoo import Config, Data, ModelSpec, option

from .. import translator

CORPORA = ("phrasebook", "pairs", "reverse", "multi30k", "tatoeba")


@dataclass(frozen=True)
class Seq2SeqConfig(Config):
    """Which recurrence, what it learns from, its sizes, and how it is trained; what is none is chosen by the amount of data."""

    cell: str = option("lstm", "what a step computes", choices=("rnn", "gru", "lstm"))
    attention: bool = option(False, "let each step of the decoder look at all of the source (Bahdanau)")
    teacher_forcing: float = option(1.0, "how often the decoder is fed the true token, not its own choice", least=0)
    corpus: str = option("phrasebook", "what to learn from, unless --data says it", choices=CORPORA)
    pairs: int = option(80_000, "how many examples are made, where they are made", least=1, most=10_000_000)
    form: str = option("", "form of the text: as it is, lower case, or the phrasebook's", choices=("", "plain", "lower", "phrasebook"))  # fmt: skip
    vocabulary: str = option("", "words, or byte pairs, which have no unknown words", choices=("", "word", "bpe"))
    vocab: int | None = option(None, "how many tokens at most, five special ones included", least=6)
    dim: int | None = option(None, "how many numbers stand for a token", least=1)
    hidden: int | None = option(None, "how many numbers the decoder's state has, even; each direction of the encoder has half", least=2)  # fmt: skip
    layers: int = option(1, "how many recurrent layers in the encoder, and in the decoder", least=1, most=1000)
    dropout: float | None = option(None, "dropout probability", least=0)
    smoothing: float = option(0.0, "label smoothing", least=0)
    max_length: int = option(100, "longer sentences, in tokens, are left out", least=2)
    epochs: float | None = option(None, "how often to go through the data, where steps is 0", least=0)
    steps: int = option(0, "how many steps to train; 0 for as many as the epochs have", least=0)
    batch: int | None = option(None, "how many tokens in a batch on each side, padding included")
    lr: float = option(4e-3, "learning rate, at its highest", least=0)
    warmup: int = option(100, "over how many steps the rate rises", least=1)
    valid_every: int = option(0, "steps between validations; 0 for one an epoch, but four to twenty", least=0)
    save_every: int = option(0, "steps between checkpoints; 0 for one at each validation", least=0)
    beams: int = option(5, "beams that a translation is searched with; 1 is greedy", least=1, most=1000)
    alpha: float = option(1.0, "length penalty of the search: the more, the longer", least=0)
    bleu: str = option("13a", "how BLEU cuts texts into words", choices=("13a", "intl", "char", "none"))
    evaluated: int = option(1000, "how many test sentences are translated in an evaluation, at most", least=1)

    # What the readers of the translator's pairs ask for, and is never otherwise here.
    init: ClassVar[None] = None
    prefix: ClassVar[str] = ""
    special: ClassVar[dict[str, Any]] = {}
    masked: ClassVar[float] = 0.0
    span: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        if self.hidden is not None and self.hidden % 2:
            raise ArgumentError(f"seq2seq: hidden={self.hidden} cannot be halved", "an even number")
        if self.teacher_forcing > 1:
            raise ArgumentError(f"seq2seq: teacher_forcing={self.teacher_forcing:g} is more than always", "up to 1")
        for name in ("dropout", "smoothing"):
            if (getattr(self, name) or 0) >= 1:
                raise ArgumentError(f"seq2seq: {name}={getattr(self, name):g} would leave nothing", "less than 1")
        if self.alpha > 10:
            raise ArgumentError(f"seq2seq: alpha={self.alpha:g} is no length penalty to search with", "up to 10")


def data(config: Seq2SeqConfig, path: str | None) -> Data:
    """The translator's pairs: from the shipped phrasebook and grammar, from a task, or from anybody's files."""
    from dataclasses import replace

    from ..translator.preparation import learned_from, sized, vocabulary_of, with_corpus

    config, corpus = with_corpus(config, path)
    fit = sized(config, len(corpus.train))
    tokenizer = vocabulary_of(config, corpus, fit.vocab)
    fit = replace(fit, vocabulary=tokenizer.kind, vocab=tokenizer.vocab_size)
    looks = "with attention" if fit.attention else "without attention"
    layers = f"{fit.layers} layer{'s' * (fit.layers > 1)} of {fit.cell.upper()}"
    return learned_from(
        fit, corpus, tokenizer, f"{layers}, {looks}, width {fit.dim}, state {fit.hidden}, dropout {fit.dropout:g}"
    )


def build(config: Seq2SeqConfig) -> Any:
    from ..translator.preparation import sized
    from .model import Seq2Seq

    c = sized(config)
    return Seq2Seq(
        c.cell, c.vocab, c.dim, c.hidden, c.layers, attention=c.attention, teacher_forcing=c.teacher_forcing,
        dropout=c.dropout, smoothing=c.smoothing,
    )  # fmt: skip


def loss(model: Any, batch: Any) -> dict[str, Any]:
    """The cross-entropy of each next token, summed."""
    from .model import seq2seq_loss

    return seq2seq_loss(model, batch)


def schedule(optimizer: Any, config: Seq2SeqConfig) -> Any:
    """A short warm-up, then half a cosine."""
    from minigrad.optim import Cosine

    return Cosine(optimizer, config.steps, min(config.warmup, config.steps // 2))


def attention(loaded: Any, text: str, **options: Any) -> Any:
    """Where each step of the decoder looked while a text was translated: a minigrad.viz Attention."""
    from .evaluation import attention

    return attention(loaded, text, **options)


def after(loaded: Any, folder: Any) -> str:
    """How to ask it, with a sentence of its test set."""
    return translator.after(loaded, folder)


spec = ModelSpec(
    name="seq2seq",
    task="translation",
    summary="a recurrent encoder-decoder (RNN, GRU or LSTM) that translates, with or without attention",
    most_files=2,
    config=Seq2SeqConfig,
    data=data,
    build=build,
    loss=loss,
    example=translator.example,
    predict=translator.predict,
    evaluate=translator.evaluate,
    schedule=schedule,
    metric="accuracy",
    maximize=True,
    presets={
        "rnn": {"cell": "rnn", "lr": 2e-3},
        "gru": {"cell": "gru"},
        "lstm": {"cell": "lstm"},
        "attention": {"cell": "lstm", "attention": True},
        "own": {"cell": "lstm", "teacher_forcing": 0.5},
    },
    tiny={
        "corpus": "reverse", "pairs": 60, "vocabulary": "word", "dim": 8, "hidden": 12, "attention": True,
        "teacher_forcing": 0.5, "dropout": 0.1, "epochs": 4, "batch": 200, "lr": 1e-2, "beams": 2,
    },
    verbs={"translate": translator.translate, "exposure": translator.exposure, "attention": attention},
    samples=translator.samples,
    after=after,
    example_inputs=translator.example_inputs,
    page=translator.page,
)  # fmt: skip
