"""gpt: GPT-2's architecture, for any text, for sorting digits, and for learning from examples in its prompt."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from minigrad.errors import ArgumentError
from minigrad.zoo import Config, Data, ModelSpec, Page, option


@dataclasses.dataclass(frozen=True)
class GPTConfig(Config):
    """Sizes, the parts of a block, and how it is trained."""

    init: str | None = option(None, "a trained gpt, or an imported decoder, whose weights and tokens to begin from")
    lora: int = option(0, "train only adapters of this rank on the weights; 0 for all weights", least=0)
    task: str = option(
        "text", "what to learn: any text, sorting digits, or rules from examples", choices=("text", "sort", "few-shot")
    )
    layers: int = option(4, "how many blocks", least=1, most=1000)
    heads: int = option(4, "how many heads in each attention; they share dim", least=1)
    dim: int = option(128, "how many numbers stand for a token", least=1)
    context: int = option(64, "how many tokens are seen at once", least=1)
    hidden: int | None = option(
        None, "how many neurons in each MLP; none for 4 dim, or as many weights if it is gated", least=1
    )
    positions: str = option("learned", "position encoding", choices=("learned", "sinusoidal", "rotary"))
    norm: str = option("layer", "LayerNorm or RMSNorm", choices=("layer", "rms"))
    activation: str = option(
        "gelu_tanh",
        "of the MLPs; gelu_tanh is GPT-2's",
        choices=("gelu_tanh", "gelu", "relu", "silu", "swiglu", "geglu", "geglu_tanh", "reglu"),
    )
    bias: bool = option(True, "whether linear layers and LayerNorms have biases")
    eps: float | None = option(None, "what norms add to the variance; none for 1e-5, or as RMSNorm does", least=0)
    tied: bool = option(True, "whether the head is the table of tokens again")
    scaled: bool = option(False, "multiply vectors of tokens by the square root of the width")
    logit_softcap: float | None = option(
        None, "c, for logits that become c * tanh(logits / c); none to leave them", least=0
    )
    experts: int = option(0, "how many experts in the place of each MLP; 0 for none", least=0)
    active: int = option(2, "how many of them each token uses", least=1)
    balance: float = option(0.01, "how much their uneven use counts in the loss", least=0)
    rotary: dict[str, Any] = option({}, "further options of nn.RotaryPositions")
    block: dict[str, Any] = option({}, "further options of nn.TransformerBlock, such as kv_heads")
    dropout: float = option(0.0, "the share of numbers that is dropped while training", least=0)
    tokenizer: str = option("bpe", "what a token of text is", choices=("char", "word", "bpe", "pretrained"))
    vocab: int = option(1000, "how many tokens there are at most, five special ones included", least=6)
    characters: int = option(500_000, "how much of the shipped stories to learn from, where no text is given", least=1)
    digits: int = option(6, "how many digits to sort", least=2)
    kinds: int = option(3, "how many different digits there are", least=2)
    steps: int = option(1000, "how many steps to train")
    batch: int = option(16, "how many texts in a batch", most=100_000)
    length: int | None = option(
        None, "tokens of a text to learn from; none for the context, of which a model to begin from gets 256", least=1
    )
    lr: float | None = option(
        None, "learning rate, after the warm-up; none for 2e-3, or 1e-4 with init, or 1e-3 with lora", least=0
    )
    lr_end: float = option(0.1, "the share of it that is left at the end, after half a cosine", least=0)
    warmup: int = option(100, "steps in which the learning rate rises; fewer in a short run", least=0)
    betas: tuple[float, float] = option((0.9, 0.99), "how slowly AdamW forgets gradients and their squares", least=0)
    weight_decay: float = option(0.1, "how much matrices shrink, times the learning rate; nothing else does")
    valid_every: int = option(250, "steps between validations")

    def __post_init__(self) -> None:
        needed = {"text": 1, "sort": 2 * self.digits - 1, "few-shot": 39}[self.task]
        _require(
            "head_dim" in self.block or self.dim % self.heads == 0,
            f"dim={self.dim} cannot be shared by heads={self.heads}",
            "dim a multiple of heads",
        )
        _require(
            self.positions != "rotary" or self.block or self.dim // self.heads % 2 == 0,
            f"rotary positions turn pairs, and a head has {self.dim // self.heads} numbers",
            "dim / heads even",
        )
        _require(self.dropout < 1, f"dropout={self.dropout} would drop everything", "less than 1")
        _require(max(self.betas) < 1, f"betas={self.betas} would never learn anything new", "both less than 1")
        _require(self.kinds <= 10, f"there are no {self.kinds} digits", "kinds up to 10")
        _require(
            self.context >= needed,
            f"context={self.context} is too short for task={self.task}",
            f"context={needed} or more",
        )
        _require(
            self.task != "text" or self.tokenizer != "bpe" or self.vocab >= 261,
            f"vocab={self.vocab} is too small for tokenizer=bpe",
            "vocab=261 (all bytes and the special tokens) or more",
        )
        _require(
            not self.experts or self.active <= self.experts,
            f"active={self.active} is more than there are experts",
            f"active up to experts={self.experts}",
        )
        _require(self.lr_end <= 1, f"lr_end={self.lr_end} is more than all", "lr_end up to 1")


def _require(is_met: bool, problem: str, expected: str) -> None:
    if not is_met:
        raise ArgumentError(f"gpt: {problem}", expected, fix=f"give {expected}")


def _task(config: GPTConfig) -> Any:
    if config.task == "sort":
        from .sorting import TASK
    elif config.task == "few-shot":
        from .few_shot import TASK
    else:
        from .text import TASK
    return TASK


def data(config: GPTConfig, path: str | None) -> Data:
    """The task's own data, or blocks of a text."""
    return _task(config).data(config, path)


def build(config: GPTConfig) -> Any:
    """A GPT with random weights."""
    from minigrad.nn import add_lora

    from .model import GPT

    hidden = config.hidden
    if hidden is None and config.activation in ("swiglu", "geglu", "geglu_tanh", "reglu"):
        hidden = max(1, 8 * config.dim // 3)  # three matrices then have as many weights as two with 4 dim
    experts = {"experts": config.experts, "active": config.active} if config.experts else {}
    model = GPT(
        config.vocab, config.context, config.layers, config.heads, config.dim, hidden=hidden,
        positions=config.positions, norm=config.norm, activation=config.activation, bias=config.bias,
        dropout=config.dropout, eps=config.eps, tied=config.tied, scaled=config.scaled, logit_softcap=config.logit_softcap,
        rotary=config.rotary, balance=config.balance, **{**experts, **config.block},
    )  # fmt: skip
    return add_lora(model, config.lora) if config.lora else model


def loss(model: Any, batch: Any) -> dict[str, Any]:
    """The cross-entropy of the next tokens, summed over those that count."""
    from .model import loss

    return loss(model, batch)


loss.unit = "tokens"  # type: ignore[attr-defined]  # what the Trainer counts


def optimizer(model: Any, config: GPTConfig) -> Any:
    """AdamW, under which only matrices shrink. It is called for training only, so weights to begin from are loaded here."""
    from minigrad.optim import AdamW
    from minigrad.zoo.initial import begin_from, opened

    from .model import matrices_and_others

    if config.init is not None:
        begin_from(model, opened("gpt", config.init))
    return AdamW(matrices_and_others(model), lr=_rate(config), betas=config.betas, weight_decay=config.weight_decay)


def _rate(config: GPTConfig) -> float:
    """The learning rate: weights that know something already are changed with care, adapters less so."""
    chosen = 2e-3 if config.init is None else 1e-3 if config.lora else 1e-4
    return chosen if config.lr is None else config.lr


def schedule(optimizer: Any, config: GPTConfig) -> Any:
    """A warm-up, then half a cosine down to a share of the learning rate."""
    from minigrad.optim import Cosine

    warmup = min(config.warmup, config.steps // 10)
    return Cosine(optimizer, config.steps, warmup, config.lr_end * _rate(config))


def example(config: GPTConfig) -> Any:
    """Two short texts, drawn at random."""
    import numpy as np

    from minigrad.data import BlockBatch

    rows = np.random.default_rng(0).integers(5, config.vocab, (2, min(config.context, 8) + 1))
    return BlockBatch(rows[:, :-1], rows[:, 1:])


def predict(loaded: Any, inputs: list[str]) -> list[Any]:
    """Each input continued; of a model that sorts, or learns from examples, its answer."""
    return [_task(loaded.config).predict(loaded, text) for text in inputs]


def example_inputs(config: GPTConfig) -> list[str]:
    """Something that a model of the config's task answers, and of one that writes text nothing at all."""
    return [_task(config).prompt(config)] if config.task != "text" else ["Ana", ""]


def evaluate(loaded: Any, path: str | None) -> dict[str, Any]:
    """The loss over the whole text that was held out, or how many answers are right."""
    return _task(loaded.config).evaluate(loaded, path)


def sample(loaded: Any, prompt: str = "", **options: Any) -> Iterator[str]:
    """Write on after a prompt, in pieces as they come; the options are those of `minigrad.decode.continue_text`."""
    return _task(loaded.config).sample(loaded, prompt, **options)


def samples(loaded: Any) -> str:
    """What it writes at the moment."""
    return _task(loaded.config).show(loaded)


def attend(loaded: Any, text: str) -> dict[str, Any]:
    """The tokens of a text, of which the model sees the last ones if there are too many."""
    import numpy as np

    from minigrad.decode.translation import spelt

    tokenizer = loaded.tokenizer
    ids = tokenizer.encode(text)[-loaded.config.context :]
    if not ids:
        raise ArgumentError("gpt: there is no text to look at", "at least one token", repr(text))
    vocabulary = [spelt(tokenizer, i) for i in range(loaded.config.vocab)]
    return {"inputs": (np.array([ids]),), "tokens": [vocabulary[i] for i in ids], "vocabulary": vocabulary}


def page(loaded: Any) -> Page:
    """What the exported page writes at first: of a model that answers, the whole answer, and always the likeliest."""
    config = loaded.config
    answer = {"sort": config.digits, "few-shot": 3}.get(config.task)
    prompt = _task(config).prompt(config) or (example_inputs(config)[0] if loaded.arguments["data"] is None else "")
    return Page(
        settings={} if answer is None else {"tokens": answer, "temperature": 0.0}, examples=[prompt] if prompt else []
    )


def after(loaded: Any, folder: Any) -> str:
    """How to have it write."""
    import shlex

    words = ["minigrad", "sample", str(folder), _task(loaded.config).prompt(loaded.config)]
    return f"let it write: {shlex.join(word for word in words if word)}"


_SHAKESPEARE = {"activation": "gelu", "bias": False}
_NANO = {"layers": 4, "heads": 4, "dim": 128, "context": 64, "batch": 12, "lr": 1e-3, "tokenizer": "char"}
_BABY = {"layers": 6, "heads": 6, "dim": 384, "context": 256, "batch": 8, "lr": 1e-3, "tokenizer": "char"}
_GPT2 = {
    "context": 1024, "tokenizer": "bpe", "vocab": 50_257, "dropout": 0.1, "batch": 8, "warmup": 2000, "betas": (0.9, 0.95),
    "steps": 600_000, "valid_every": 1000,
}  # fmt: skip

spec = ModelSpec(
    name="gpt",
    task="language model",
    summary="GPT-2's architecture: continues text, sorts digits, learns rules from examples in its prompt",
    most_files=1,
    config=GPTConfig,
    data=data,
    build=build,
    loss=loss,
    example=example,
    optimizer=optimizer,
    schedule=schedule,
    predict=predict,
    example_inputs=example_inputs,
    evaluate=evaluate,
    quantizable=True,
    sizes={
        "small": {"layers": 2, "heads": 4, "dim": 64},
        "medium": {"layers": 4, "heads": 4, "dim": 128},
        "large": {"layers": 6, "heads": 6, "dim": 384},
    },
    presets={
        "nano": {**_NANO, "steps": 2000},
        "baby": {**_BABY, "steps": 500},
        "shakespeare-cpu": {**_NANO, **_SHAKESPEARE, "steps": 2000},
        "shakespeare-gpu": {**_BABY, **_SHAKESPEARE, "batch": 64, "dropout": 0.2, "steps": 5000},
        "sort": {
            "task": "sort", "layers": 3, "heads": 3, "dim": 48, "context": 11, "batch": 64, "lr": 5e-4,
            "betas": (0.9, 0.95), "warmup": 0, "steps": 2000,
        },
        "few-shot": {
            "task": "few-shot", "layers": 2, "heads": 4, "dim": 64, "context": 39, "positions": "rotary", "batch": 32, "lr": 4e-3,
            "steps": 1500,
        },
        "gpt2": {**_GPT2, "layers": 12, "heads": 12, "dim": 768, "lr": 6e-4},
        "gpt2-medium": {**_GPT2, "layers": 24, "heads": 16, "dim": 1024, "lr": 3e-4},
        "gpt2-large": {**_GPT2, "layers": 36, "heads": 20, "dim": 1280, "lr": 2.5e-4},
        "gpt2-xl": {**_GPT2, "layers": 48, "heads": 25, "dim": 1600, "lr": 2e-4},
    },
    tiny={
        "layers": 2, "heads": 2, "dim": 8, "context": 8, "batch": 4, "tokenizer": "char",
        "characters": 4000, "lr": 0.03, "steps": 20, "valid_every": 10,
        "warmup": 0,
    },
    verbs={"sample": sample},
    samples=samples,
    attend=attend,
    after=after,
    page=page,
)  # fmt: skip
