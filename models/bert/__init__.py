"""BERT: a transformer that reads both ways; it learns from hidden words, and is then fine-tuned for a task."""

from __future__ import annotations

import dataclasses
from typing import Any

from minigrad.errors import ArgumentError
from minigrad.zoo import Config, Data, ModelSpec, Page, option

TASKS = ("pretrain", "fill", "embed", "classify", "tag", "answer", "similar")
TUNED = ("classify", "tag", "answer", "similar")
ACTIVATIONS = ("gelu", "gelu_tanh", "relu", "silu", "tanh")


@dataclasses.dataclass(frozen=True)
class BertConfig(Config):
    """An encoder, how it is pretrained, and what it is fine-tuned for."""

    task: str = option("pretrain", "what is learned", choices=TASKS)
    init: str | None = option(None, "a pretrained run, or an imported encoder, whose weights and tokens to begin from")
    lora: int = option(0, "train only the head, and adapters of this rank on the weights; 0 for all weights", least=0)
    layers: int = option(3, "how many blocks", least=1, most=1000)
    dim: int = option(64, "width of the vectors", least=1)
    heads: int = option(4, "heads of each attention", least=1)
    hidden: int = option(128, "width inside of the MLPs", least=1)
    dropout: float = option(0.0, "share of values dropped while training", least=0)
    norm: str = option("pre", "whether blocks normalise before or after", choices=("pre", "post"))
    eps: float = option(1e-5, "what norms add to the variance", least=0)
    activation: str = option("gelu", "activation inside of the MLPs", choices=ACTIVATIONS)
    word_activation: str | None = option(None, "of the head that names words; that of the MLPs unless given")
    block: dict[str, Any] = option({}, "further options of nn.TransformerBlock")
    positions: str = option("rotary", "position encoding", choices=("learned", "rotary"))
    rotary: dict[str, Any] = option({}, "further options of nn.RotaryPositions")
    counted: bool = option(False, "whether learned positions count tokens only, and not padding")
    types: int = option(2, "how many kinds of texts there are: first and second; 0 for no difference", least=0)
    pool: str = option(
        "max", "what stands for a text: <s>, the greatest of all tokens, or the mean", choices=("first", "max", "mean")
    )
    pool_activation: str = option("tanh", "activation of the layer after that, where there is one", choices=ACTIVATIONS)
    normalize: bool = option(False, "whether vectors of texts have length 1")
    context: int = option(128, "how many tokens are read at once, at most", least=8)
    mask: float = option(0.15, "share of the words to guess", least=0)
    tokenizer: str = option("word", "what a token is", choices=("word", "pretrained"))
    specials: tuple[int, int, int, int, int] = option(
        (0, 1, 2, 3, 4), "the tokens for padding, beginning, end, unknown and hidden; -1 for none", least=-1
    )
    vocab: int = option(10_000, "how many words, five special ones included, at most", least=7)
    examples: int = option(20_000, "how many generated examples to learn from, where no text is given", least=40)
    classes: tuple[str, ...] = option((), "names of the classes or tags; read from the data")
    steps: int = option(3000, "how many steps to train")
    batch: int = option(1536, "how many tokens in a batch, padding included", least=1)
    lr: float | None = option(
        None, "greatest learning rate; none for 3e-3, or 1e-3 with labels, 1e-4 with an imported encoder", least=0
    )
    warmup: int = option(100, "steps until the learning rate is greatest; fewer in a short run", least=0)
    weight_decay: float = option(0.01, "how much weights shrink, times the learning rate")
    valid_every: int = option(500, "steps between validations")

    def __post_init__(self) -> None:
        _require(
            self.dim % self.heads == 0,
            f"dim={self.dim} cannot be shared by heads={self.heads}",
            "dim a multiple of heads",
        )
        _require(
            self.positions != "rotary" or self.dim // self.heads % 2 == 0,
            f"rotary positions turn pairs, and a head has {self.dim // self.heads} numbers",
            "dim / heads even",
        )
        _require(self.dropout < 1, f"dropout={self.dropout} would drop everything", "dropout less than 1")
        _require(self.mask < 1, f"mask={self.mask} would hide everything", "mask less than 1")


def _require(is_met: bool, problem: str, expected: str) -> None:
    if not is_met:
        raise ArgumentError(f"bert: {problem}", expected, fix=f"give {expected}")


def data(config: BertConfig, path: str | None) -> Data:
    """Masked pairs of texts, or labelled examples; with `init`, in the words that the pretrained run knows."""
    from .examples import data_of

    return data_of(config, path)


def build(config: BertConfig) -> Any:
    """A BERT with random weights; with adapters, only these and its head are parameters."""
    from minigrad.nn import add_lora

    from .model import Bert

    model = Bert(config)
    if config.lora:
        head, model.head = model.head, None
        add_lora(model, config.lora)
        model.head = head
    return model


def loss(model: Any, batch: Any) -> dict[str, Any]:
    """As the head of the task says; of pretraining, of hidden words and of whether the second text follows."""
    return model.head.terms(model, batch)


def _units(batch: Any) -> dict[str, int] | None:
    """How many words are hidden, and of how many texts it is asked what follows; other tasks do not tell."""
    from .batches import IGNORED, MaskedBatch

    if not isinstance(batch, MaskedBatch):
        return None
    return {"words": int((batch.targets != IGNORED).sum()), "follows": int((batch.follows != IGNORED).sum())}


loss.units = _units  # type: ignore[attr-defined]  # so that it can be accumulated: the two terms have divisors of their own


def optimizer(model: Any, config: BertConfig) -> Any:
    """AdamW. It is called for training only, so the weights of a pretrained run are loaded here."""
    from minigrad.optim import AdamW

    from .pretrained import begin_from

    if config.init is not None:
        begin_from(model, config)
    return AdamW(model.parameters(), lr=_rate(config), weight_decay=config.weight_decay)


def _rate(config: BertConfig) -> float:
    """The learning rate: the more the weights know already, the less they are changed; adapters begin at nothing."""
    if config.lr is not None:
        return config.lr
    is_imported = config.tokenizer == "pretrained" and not config.lora
    return 1e-4 if is_imported else 1e-3 if config.task in TUNED or config.lora else 3e-3


def schedule(optimizer: Any, config: BertConfig) -> Any:
    from minigrad.optim import Cosine

    return Cosine(optimizer, config.steps, warmup=min(config.warmup, config.steps // 5))


def example(config: BertConfig) -> Any:
    """Two pairs of texts of random words."""
    from .batches import tiny_batch

    return tiny_batch(config)


def predict(loaded: Any, inputs: list[str]) -> list[Any]:
    """As the task is: words for blanks, a class, tags, an answer, or likeness; two texts have | between them."""
    from .prediction import answer

    return [answer(loaded, text) for text in inputs]


def evaluate(loaded: Any, path: str | None) -> dict[str, Any]:
    """What is right of texts held out, by BERT and by a bag of words that learned from the same, and the margin."""
    from .evaluation import evaluate

    return evaluate(loaded, path)


def attend(loaded: Any, text: str) -> dict[str, Any]:
    """How the model reads one text, or two with | between them, to see its attention."""
    from .prediction import attend

    return attend(loaded, text)


def samples(loaded: Any) -> Any:
    """What it answers at the moment; a model that learns from somebody's own text need not know these words."""
    from .prediction import samples

    return samples(loaded) if loaded.arguments["data"] is None else None


def example_inputs(config: BertConfig) -> tuple[str, ...]:
    """What can be asked about the stories."""
    from .prediction import ASKED

    return ASKED[config.task].instances


def page(loaded: Any) -> Page:
    """As the task is: words for blanks, a class, tags, an answer, or likeness."""
    from .prediction import page

    return page(loaded)


def after(loaded: Any, folder: Any) -> str | None:
    """How to go on from pretraining; on somebody's own text, with labels of their own."""
    import shlex

    if loaded.config.task != "pretrain":
        return None
    own = [] if loaded.arguments["data"] is None else ["--data", "LABELLED.tsv"]
    return f"fine-tune it: {shlex.join(['minigrad', 'train', 'bert:classify', f'init={folder}', *own])}"


_TUNED = {"examples": 2000, "steps": 300, "warmup": 30, "valid_every": 100}
_COMPARED = {"examples": 8000, "steps": 1000, "valid_every": 250}  # one cosine says little about each example

spec = ModelSpec(
    name="bert",
    task="masked language model",
    summary="a transformer that reads both ways: fills in blanks, and is fine-tuned to classify, tag, answer, compare",
    most_files=1,
    config=BertConfig,
    data=data,
    build=build,
    loss=loss,
    example=example,
    predict=predict,
    example_inputs=example_inputs,
    evaluate=evaluate,
    optimizer=optimizer,
    schedule=schedule,
    quantizable=True,
    presets={task: {"task": task, **_TUNED, **(_COMPARED if task == "similar" else {})} for task in TUNED},
    tiny={
        "layers": 1, "dim": 8, "heads": 2, "hidden": 8, "context": 48, "examples": 60, "vocab": 40, "batch": 256,
        "lr": 1e-2, "warmup": 2, "steps": 20, "valid_every": 10,
    },
    samples=samples,
    attend=attend,
    after=after,
    page=page,
)  # fmt: skip
