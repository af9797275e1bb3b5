"""The translator: an encoder-decoder transformer that learns from anybody's sentence pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from minigrad.errors import ArgumentError
from minigrad.zoo import Config, Data, Demo, DemoResult, ModelSpec, Page, option

CORPORA = ("phrasebook", "pairs", "reverse", "denoise", "multi30k", "tatoeba")
ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu", "tanh", "swiglu", "geglu", "geglu_tanh", "reglu")


@dataclass(frozen=True)
class TranslatorConfig(Config):
    """What it learns from, its sizes, and how it is trained; sizes that are none are chosen by the amount of data."""

    init: str | None = option(None, "a trained or imported translator whose weights and tokens to begin from")
    lora: int = option(0, "train only adapters of this rank on the weights; 0 for all weights", least=0)
    corpus: str = option("phrasebook", "what to learn from, unless --data says it", choices=CORPORA)
    pairs: int = option(80_000, "how many examples are made, where they are made", least=1, most=10_000_000)
    form: str = option("", "form of the text: as it is, lower case, or the phrasebook's", choices=("", "plain", "lower", "phrasebook"))  # fmt: skip
    vocabulary: str = option(
        "", "words, or byte pairs, which have no unknown words", choices=("", "word", "bpe", "pretrained")
    )
    vocab: int | None = option(None, "how many tokens at most, five special ones included", least=6)
    target_vocab: int | None = option(
        None, "how many tokens the targets have, if they have a vocabulary of their own", least=1
    )
    depth: int | None = option(None, "how many layers in the encoder, and in the decoder", least=1, most=1000)
    decoder_depth: int | None = option(None, "how many layers in the decoder, if not as many", least=1, most=1000)
    dim: int | None = option(None, "the width", least=1)
    heads: int | None = option(None, "how many heads attend", least=1)
    hidden: int | None = option(None, "the width inside the MLPs", least=1)
    activation: str = option("relu", "inside the MLPs", choices=ACTIVATIONS)
    norm_first: bool = option(True, "normalise before each part (pre-norm), not after (post-norm)")
    tied: bool = option(True, "one matrix for the vectors of both languages and for the output")
    separate: str = option("", "which of these has a matrix of its own all the same", choices=("", "head", "source"))
    scaled: bool = option(True, "multiply vectors of tokens by the square root of the width")
    dropout: float | None = option(None, "dropout probability", least=0)
    inner_dropout: float | None = option(None, "dropout of attention weights and inside MLPs, if different", least=0)
    smoothing: float = option(0.1, "label smoothing", least=0)
    sampling: float = option(0.0, "scheduled sampling: how often the decoder is fed its own choice", least=0)
    positions: str = option(
        "sinusoidal", "position encoding", choices=("sinusoidal", "rotary", "learned", "relative", "none")
    )
    position_options: dict[str, Any] = option({}, "further options of it, such as max_length of learned positions")
    embedding_norm: bool = option(False, "normalise the vectors of tokens and positions")
    head_bias: bool = option(False, "add a bias to the logits")
    logit_scale: float = option(1.0, "what the decoder's output is multiplied with before the logits")
    block: dict[str, Any] = option({}, "further options of nn.TransformerBlock, such as norm")
    decoder: dict[str, Any] = option({}, "those options that are others in the decoder, such as recurrence")
    special: dict[str, Any] = option(
        {}, "numbers of special tokens that are not the zoo's: pad, start, end, never, first"
    )
    shortlist: dict[str, Any] = option({}, "sizes of a lexical shortlist inside an imported model: words, count, first")
    prefix: str = option("", "a text before every source, such as the name of a task")
    masked: float = option(0.3, "denoise: which share of a text is masked", least=0)
    span: float = option(3.0, "denoise: how many tokens a mask hides, on average", least=1)
    max_length: int = option(100, "longer sentences, in tokens, are left out", least=2)
    epochs: float | None = option(None, "how often to go through the data, where steps is 0", least=0)
    steps: int = option(0, "how many steps to train; 0 for as many as the epochs have", least=0)
    batch: int | None = option(None, "how many tokens in a batch on each side, padding included")
    lr: float | None = option(None, "learning rate, at its highest", least=0)
    schedule: str = option("cosine", "how the rate falls", choices=("cosine", "inverse-sqrt", "noam"))
    warmup: int = option(100, "over how many steps the rate rises", least=1)
    valid_every: int = option(0, "steps between validations; 0 for one an epoch, but four to twenty", least=0)
    save_every: int = option(0, "steps between checkpoints; 0 for one at each validation", least=0)
    beams: int = option(5, "beams that a translation is searched with; 1 is greedy", least=1, most=1000)
    alpha: float = option(1.0, "length penalty of the search: the more, the longer", least=0)
    bleu: str = option("13a", "how BLEU cuts texts into words", choices=("13a", "intl", "char", "none"))
    evaluated: int = option(
        1000, "how many test sentences are translated in an evaluation, at most", least=1, formerly="judged"
    )

    def __post_init__(self) -> None:
        if self.dim and self.heads and "head_dim" not in self.block:
            per_head = self.dim / self.heads
            _require(
                per_head == int(per_head),
                f"dim={self.dim} cannot be shared by heads={self.heads}",
                "dim a multiple of heads",
            )
            _require(
                self.positions != "rotary" or per_head % 2 == 0,
                f"rotary positions turn pairs, and a head has {per_head:g} numbers",
                "dim / heads even",
            )
        for name in ("dropout", "inner_dropout", "smoothing", "masked"):
            value = getattr(self, name)
            _require(value is None or value < 1, f"{name}={value} would leave nothing", f"{name} less than 1")
        _require(self.sampling <= 1, f"sampling={self.sampling} is more than always", "sampling up to 1")
        # The bound of beam_search, which is not imported here: it would load all of nn to list the models.
        _require(self.alpha <= 10, f"alpha={self.alpha:g} is no length penalty to search with", "alpha up to 10")


def _require(is_met: bool, problem: str, expected: str) -> None:
    if not is_met:
        raise ArgumentError(f"translator: {problem}", expected, fix=f"give {expected}")


def data(config: TranslatorConfig, path: str | None) -> Data:
    """Pairs from the shipped phrasebook and grammar, from a task, or from anybody's files."""
    from .preparation import prepared

    return prepared(config, path)


def build(config: TranslatorConfig) -> Any:
    from .model import Translator
    from .preparation import sized

    c = sized(config)
    model = Translator(
        c.vocab, c.dim, c.heads, c.hidden, c.depth, decoder_depth=c.decoder_depth, target_vocab=c.target_vocab,
        dropout=c.dropout, inner_dropout=c.inner_dropout, norm_first=c.norm_first, activation=c.activation, tied=c.tied,
        separate=c.separate, scaled=c.scaled, smoothing=c.smoothing, sampling=c.sampling, positions=c.positions,
        position_options=c.position_options, embedding_norm=c.embedding_norm, head_bias=c.head_bias,
        logit_scale=c.logit_scale, special=c.special, block=c.block, decoder=c.decoder, shortlist=c.shortlist,
    )  # fmt: skip
    if not c.lora:
        return model
    from minigrad.nn import add_lora

    return add_lora(model, c.lora)


def loss(model: Any, batch: Any) -> dict[str, Any]:
    from .model import translation_loss

    return translation_loss(model, batch)


def example(config: TranslatorConfig) -> Any:
    """Three pairs of unequal lengths."""
    from minigrad.data import Padded, PairBatch
    from minigrad.decode import SpecialIds

    tokens, special = range(5, config.vocab or 12), SpecialIds(**config.special)
    start, end = special.prompt, special.end
    sources = [[*tokens[:4], end], [*tokens[2:4], end], [*tokens[3:6], end]]
    targets = [[*start, *tokens[1:3], end], [*start, *tokens[3:5], tokens[0], end], [*start, tokens[5], end]]
    return PairBatch(Padded.of(sources, special.pad), Padded.of(targets, special.pad))


def optimizer(model: Any, config: TranslatorConfig) -> Any:
    """AdamW. It is called for training only, so weights to begin from are loaded here."""
    from minigrad.optim import AdamW
    from minigrad.zoo.initial import begin_from, opened

    from .preparation import sized

    if config.init is not None:
        begin_from(model, opened("translator", config.init))
    return AdamW(model.parameters(), lr=sized(config).lr, betas=(0.9, 0.98), eps=1e-9, weight_decay=config.weight_decay)


def schedule(optimizer: Any, config: TranslatorConfig) -> Any:
    from minigrad.optim import Cosine, InverseSqrt, Noam

    from .preparation import sized

    if config.schedule == "inverse-sqrt":
        return InverseSqrt(optimizer, config.warmup)
    if config.schedule == "noam":
        return Noam(optimizer, sized(config).dim, config.warmup)
    return Cosine(optimizer, config.steps, min(config.warmup, config.steps // 2))


def predict(loaded: Any, inputs: list[str]) -> list[Any]:
    """The translation of each sentence, and the logarithm of its probability, divided by the length penalty."""
    return [
        {"input": found.source, "translation": found.text, "score": round(found.score, 4)}
        for found in translate(loaded, inputs)
    ]


def example_inputs(config: TranslatorConfig) -> list[str]:
    """Something that a model of the config's corpus answers; of anybody's own pairs nothing is known."""
    known = {"phrasebook": "You are welcome", "reverse": "1 2 3", "denoise": "Ana was <mask>."}
    return [known[config.corpus]] if config.corpus in known else []


def translate(loaded: Any, texts: Any, **options: Any) -> list[Any]:
    """Translations of a text, or of several, as `minigrad.decode.translate` makes them."""
    from .translation import translate

    if not isinstance(texts, str | list | tuple):
        raise ArgumentError("translate: this is no text", "a text, or a list of texts", repr(texts)[:60])
    return translate(loaded, [texts] if isinstance(texts, str) else texts, **options)


def evaluate(loaded: Any, path: str | None) -> dict[str, Any]:
    """BLEU, chrF, perplexity and exact match on test sentences, teacher-forced and free-running accuracy, worst examples."""
    from .evaluation import evaluate

    return evaluate(loaded, path)


def exposure(loaded: Any, path: str | None = None) -> Any:
    """How often each position is right when fed the true tokens before it, and when fed the model's own."""
    from .evaluation import exposure

    return exposure(loaded, path)


def attend(loaded: Any, text: str) -> dict[str, Any]:
    """What the model is called with to see its attention while it translates a text."""
    from minigrad.decode.translation import attention_inputs

    return attention_inputs(loaded.tokenizer, translate(loaded, [text])[0], loaded.model.vocab)


def draw(loaded: Any) -> Any:
    """Which words of a translation look at which of the source, right now: a minigrad.viz.Scene."""
    from .evaluation import shown_pairs

    return loaded.attention(shown_pairs(loaded)[0][0]).alignment()


def samples(loaded: Any) -> str:
    """A few sentences and how they are translated right now."""
    from .evaluation import samples

    return samples(loaded)


def after(loaded: Any, folder: Any) -> str:
    """How to ask it, with a sentence of its test set."""
    import shlex

    from .evaluation import shown_pairs

    asked = shown_pairs(loaded)[0][0]
    verb = (
        ["predict", str(folder), asked]
        if loaded.config.corpus == "denoise"
        else ["translate", asked, "--run", str(folder)]
    )
    return f"ask it: {shlex.join(['minigrad', *verb])}"


def page(loaded: Any) -> Page:
    """How the exported page writes a text before it becomes tokens, as `translate` does."""
    from .corpus import form_of

    config = loaded.config
    form = form_of(config)
    settings = {
        "form": form, "by_sentence": form == "phrasebook", "longest": config.max_length, "prefix": config.prefix,
        "gaps": config.corpus == "denoise",
    }  # fmt: skip
    examples = DEMO_SENTENCES if config.corpus == "phrasebook" else example_inputs(config)
    return Page(settings=settings, examples=examples)


def _demo(loaded: Any, folder: Any) -> DemoResult:
    """How much of the phrasebook, and of sentences that it never saw, is exactly right; success means enough of both."""
    scores = loaded.evaluate()
    said = translate(loaded, DEMO_SENTENCES)
    shown = "\n".join(f"  {one.source} -> {one.text}{' (doubtful)' * one.is_doubtful}" for one in said)
    book, held, count = scores["phrasebook_exact_match"], scores["exact_match"], scores["phrasebook_sentences"]
    is_learned = book == 100 and held >= DEMO_HELD_OUT
    verdict = (
        f"{round(book * count / 100)} of {count} phrases are exact, "
        f"and {held:.1f} % of {scores['sentences']:,} sentences it never saw"
    )
    wanted = "." if is_learned else f" (wanted: all, and {DEMO_HELD_OUT:g} %)."
    commands = {
        "ask it": ["translate", "Where is the station?", "--run", folder],
        "look inside": ["translate", "You are welcome", "--run", folder, "--attention", "seen.html"],
    }
    return DemoResult(is_learned, verdict + wanted, shown, commands, scores)


DEMO_SENTENCES = (
    "You are welcome", "Where is the library?", "How much does it cost?", "I do not look for the blue map",
)  # fmt: skip
DEMO_HELD_OUT = 97.0  # per cent of sentences that training never showed, to be exactly right
DEMO = Demo(
    "A translator learns English to Spanish from nothing",
    "the whole phrasebook, and sentences that it was never shown",
    _demo,
    fixed=["corpus"],
)
_MULTI30K = {
    "corpus": "multi30k", "form": "lower", "vocabulary": "bpe", "vocab": 8000, "depth": 4, "dim": 128, "heads": 4,
    "hidden": 256, "dropout": 0.2, "smoothing": 0.1, "batch": 1500, "lr": 0.003,
    "warmup": 1000, "epochs": 17, "keep": 5, "beams": 5, "bleu": "none",
}  # fmt: skip
_MULTI30K_LONG = {**_MULTI30K, "vocab": 5000, "dropout": 0.3, "inner_dropout": 0.0, "epochs": 80}
_REVERSE = {
    "corpus": "reverse", "pairs": 100_000, "vocabulary": "word", "depth": 2, "dim": 64, "heads": 4, "hidden": 256,
    "positions": "rotary", "dropout": 0.0, "smoothing": 0.0, "batch": 2048, "lr": 0.002, "weight_decay": 0.1, "epochs": 7, "beams": 1, "bleu": "none",
}  # fmt: skip
_DENOISE = {
    "corpus": "denoise", "pairs": 20_000, "vocabulary": "word", "depth": 2, "dim": 128, "heads": 4, "hidden": 256,
    "dropout": 0.1, "epochs": 6,
}  # fmt: skip
_TATOEBA = {
    "corpus": "tatoeba", "vocabulary": "bpe", "vocab": 8000, "depth": 3, "dim": 128, "heads": 4, "hidden": 512,
    "dropout": 0.1, "batch": 2000, "lr": 0.003, "warmup": 400, "epochs": 4, "beams": 5, "max_length": 60,
}  # fmt: skip

spec = ModelSpec(
    name="translator",
    task="translation",
    summary="an encoder-decoder transformer that translates, and learns from any sentence pairs",
    most_files=2,
    config=TranslatorConfig,
    data=data,
    build=build,
    loss=loss,
    example=example,
    predict=predict,
    evaluate=evaluate,
    optimizer=optimizer,
    schedule=schedule,
    metric="accuracy",
    maximize=True,
    quantizable=True,
    sizes={
        "small": {"depth": 2, "dim": 64, "heads": 4, "hidden": 128},
        "medium": {"depth": 2, "dim": 128, "heads": 4, "hidden": 256},
        "large": {"depth": 4, "dim": 128, "heads": 4, "hidden": 256},
        "huge": {"depth": 3, "dim": 256, "heads": 8, "hidden": 512},
    },
    presets={
        "reverse": _REVERSE,
        "denoise": _DENOISE,
        "multi30k": _MULTI30K,
        "multi30k-long": _MULTI30K_LONG,
        "tatoeba": _TATOEBA,
        "small": {"pairs": 4000, "depth": 1, "dim": 64, "heads": 4, "hidden": 128, "epochs": 4},
    },
    tiny={
        "corpus": "reverse",
        "pairs": 60,
        "vocabulary": "word",
        "depth": 1,
        "dim": 8,
        "heads": 2,
        "hidden": 12,
        "dropout": 0.0,
        "epochs": 4,
        "batch": 200,
        "lr": 1e-2,
        "beams": 2,
    },  # fmt: skip
    verbs={"translate": translate, "exposure": exposure},
    samples=samples,
    draw=draw,
    attend=attend,
    after=after,
    demo=DEMO,
    page=page,
    example_inputs=example_inputs,
)
