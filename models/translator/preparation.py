"""Prepares the data and fills in settings that were not given: sizes, vocabulary and length of training, by the amount of data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from minigrad.data import BatchReport, BPETokenizer, PairBatches, WordTokenizer
from minigrad.data.bpe import FIRST_MERGE
from minigrad.data.errors import DataError
from minigrad.decode import SpecialIds
from minigrad.errors import ArgumentError
from minigrad.zoo import Data
from minigrad.zoo.initial import opened, taken_over

from .corpus import FEW, Corpus, corpus_of, form_of
from .denoising import DenoisingBatches, encoded
from .samplers import InTurns

FEW_WORDS = 5000  # with more different words than that, or more rare ones, byte pairs do better
FEWEST, VALIDATIONS = 4, 20  # so many at least, where epochs are long, and at most, where they are short
SPACED = 2  # words to a text, where a language puts spaces between them
RARE = 0.02  # the share of running words that may be there only once


@dataclass(frozen=True)
class Size:
    """Settings that go together, for up to so many pairs."""

    pairs: float
    depth: int
    dim: int
    heads: int
    hidden: int
    dropout: float
    epochs: float
    vocab: int  # of byte pairs
    batch: int
    lr: float = 3e-3


SIZES = (
    Size(1_000, 2, 64, 4, 128, 0.1, 100, 1000, 512),
    Size(10_000, 2, 128, 4, 256, 0.1, 30, 4000, 1024),
    Size(60_000, 4, 128, 4, 256, 0.2, 17, 8000, 1500),
    Size(float("inf"), 3, 256, 8, 512, 0.1, 8, 8000, 2048),
)
# What a translator has in common with the one that it begins from.
SHARED = (
    "vocab", "target_vocab", "vocabulary", "depth", "decoder_depth", "dim", "heads", "hidden", "activation", "norm_first",
    "tied", "separate", "scaled", "positions", "position_options", "embedding_norm", "head_bias", "logit_scale", "block",
    "decoder", "special", "prefix",
)  # fmt: skip
TUNED = 3e-4  # the highest rate for weights that know something already
PHRASEBOOK = Size(float("inf"), 2, 96, 4, 192, 0.0, 1.15, 4000, 768, 4e-3)


def sized(config: Any, pairs: int = 0) -> Any:
    """The config with sizes for so many pairs, where it has none."""
    fit = PHRASEBOOK if config.corpus == "phrasebook" else next(size for size in SIZES if pairs <= size.pairs)
    named = {name: value for name, value in asdict(fit).items() if name != "pairs" and hasattr(config, name)}
    missing = {name: value for name, value in named.items() if getattr(config, name) is None}
    if config.dim is not None and "heads" in missing:
        missing["heads"] = next(heads for heads in (fit.heads, 4, 2, 1) if config.dim % heads == 0)
    if config.dim is not None and "hidden" in missing:
        missing["hidden"] = 2 * config.dim
    return replace(config, **missing)


def vocabulary_of(config: Any, corpus: Corpus, byte_pairs: int) -> Any:
    """A tokenizer of both languages together: words if there are few, each often enough, or else so many byte pairs.

    Few sentences teach nothing about parts of words: with words, one that was never seen is at least known to be unknown.
    """
    texts = [text for pair in corpus.train for text in pair]
    kind = config.vocabulary
    if not kind:
        counts = Counter(word for text in texts for word in WordTokenizer.pattern.findall(text))
        once = sum(count == 1 for count in counts.values())
        is_few, is_spaced = len(corpus.train) < FEW, counts.total() >= SPACED * len(texts)
        is_regular = len(counts) <= FEW_WORDS and once <= RARE * counts.total()
        kind = "word" if is_few and is_spaced or is_regular else "bpe"
    if kind == "word":
        return WordTokenizer.train(texts, config.vocab)
    if byte_pairs < FIRST_MERGE:
        raise ArgumentError(
            f"translator: vocab={byte_pairs} is too small for byte pairs",
            f"vocab={FIRST_MERGE} (all bytes and the special tokens) or more",
            fix="give more, leave it out, or learn words: vocabulary=word",
        )
    return BPETokenizer.train(texts, byte_pairs)


@dataclass(frozen=True)
class DataReport(BatchReport):
    """What was read and chosen, and what became of the examples; it is shown when training begins."""

    choices: str = ""

    def __str__(self) -> str:
        return f"{self.choices}\nbatches: {super().__str__()}"


def prepared(config: Any, path: str | None) -> Data:
    """All that is needed to train: batches, how to validate, the tokenizer, and the config with what was chosen."""
    begun = None if config.init is None else opened("translator", config.init)
    if begun is not None:
        config = taken_over("translator", config, begun, SHARED)
        lr = TUNED if config.lr is None else config.lr
        config = replace(config, form=config.form or form_of(begun.config), lr=lr)
    config, corpus = with_corpus(config, path)
    fit = sized(config, len(corpus.train))
    if begun is None:
        tokenizer = vocabulary_of(config, corpus, fit.vocab)
        fit = replace(fit, vocabulary=tokenizer.kind, vocab=tokenizer.vocab_size)
    else:
        tokenizer = begun.tokenizer  # a pretrained model may have more rows than tokens
    return learned_from(fit, corpus, tokenizer, shape_of(fit))


def with_corpus(config: Any, path: str | None) -> tuple[Any, Corpus]:
    """The pairs to learn from, and the config that says which: those of a file, or those that it names."""
    if path is not None and config.corpus not in ("pairs", "denoise"):
        config = replace(config, form=config.form or "plain", corpus="pairs")
    return config, corpus_of(config, path)


def learned_from(config: Any, corpus: Corpus, tokenizer: Any, shape: str) -> Data:
    """Batches of a corpus, how to validate, and the config with what follows from the amount of data; `shape` is the model's."""
    import minigrad as mg

    from .evaluation import Validation

    seed = int(mg.randint(0, 2**31, (1,)).item())
    train = _sampler(config, corpus, tokenizer, seed)
    steps = config.steps or max(1, round(config.epochs * len(train)))
    valid_every = config.valid_every or max(min(len(train), -(-steps // FEWEST)), steps // VALIDATIONS)
    chosen = replace(
        config, form=form_of(config), steps=steps, valid_every=valid_every, save_every=config.save_every or valid_every,
    )  # fmt: skip
    train.report = DataReport(**asdict(train.report), choices=summary(chosen, corpus, len(train), shape))
    return Data(train, Validation(chosen, tokenizer, corpus), chosen, tokenizer)


def _sampler(config: Any, corpus: Corpus, tokenizer: Any, seed: int) -> Any:
    """Batches of what is to be learned."""
    if config.corpus == "denoise":
        texts = [tokenizer.encode(text) for text, _ in corpus.train]
        _refuse_long_ones_only(config, map(len, texts))
        return DenoisingBatches(texts, config, seed)
    pairs = [
        (source_ids(config, tokenizer, source), target_ids(config, tokenizer, target))
        for source, target in corpus.train
    ]
    _refuse_long_ones_only(config, (max(map(len, pair)) for pair in pairs))
    edges = [part * len(pairs) // corpus.parts for part in range(corpus.parts + 1)]
    parts = [
        PairBatches(
            pairs[start:end], config.batch, config.max_length, seed=seed + number, **padding_of(config, tokenizer)
        )
        for number, (start, end) in enumerate(zip(edges, edges[1:]))
    ]
    return parts[0] if len(parts) == 1 else InTurns(parts, seed)


def _refuse_long_ones_only(config: Any, lengths: Iterable[int]) -> None:
    """Say so if the settings leave out every example."""
    limit, shortest = min(config.max_length, config.batch), min(lengths, default=0)
    if shortest > limit:
        raise DataError(
            "translator: every sentence is too long to learn from",
            f"some of at most {limit} tokens, as max_length={config.max_length} and batch={config.batch} allow",
            f"{shortest} tokens in the shortest",
            f"set both to {shortest} or more, or give shorter sentences",
        )


def shape_of(config: Any) -> str:
    """The sizes of the transformer, in a line."""
    inner = "" if config.inner_dropout is None else f" ({config.inner_dropout:g} inside the parts)"
    layers = f"{config.depth}+{config.decoder_depth or config.depth} layers"
    sizes = f"width {config.dim}, {config.heads} heads, {config.hidden} in the MLPs"
    return f"{layers}, {sizes}, dropout {config.dropout:g}{inner}"


def summary(config: Any, corpus: Corpus, batches: int, shape: str) -> str:
    """The choices, in a few lines."""
    words = {"word": "words", "bpe": "byte pairs"}.get(config.vocabulary, "pretrained tokens")
    return "\n".join(
        [
            corpus.summary,
            f"text: {config.form}; vocabulary: {config.vocab:,} {words} of both languages",
            f"model: {shape}",
            f"plan: {config.steps:,} steps, {config.steps / batches:.1f} epochs, "
            f"batches of up to {config.batch:,} tokens on each side, a rate of up to {config.lr:g}",
        ]
    )


def source_ids(config: Any, tokenizer: Any, text: str) -> list[int]:
    """The tokens of a source in its form, with the end."""
    if config.corpus == "denoise":
        return encoded(text, tokenizer)
    return _ended(config, tokenizer.encode(config.prefix + text))


def target_ids(config: Any, tokenizer: Any, text: str) -> list[int]:
    """The tokens of a target, with the start and the end."""
    special = SpecialIds(**config.special)
    ids = tokenizer.encode(text)
    prompt = special.prompt[:1] if ids[:1] == [special.first] else special.prompt
    return [*prompt, *_ended(config, ids)]


def _ended(config: Any, ids: list[int]) -> list[int]:
    """Tokenizers of some pretrained models add the end themselves."""
    end = SpecialIds(**config.special).end
    return ids if ids[-1:] == [end] else [*ids, end]


def padding_of(config: Any, tokenizer: Any) -> dict[str, int]:
    """The numbers of padding and of unknown tokens, for batches."""
    unknown = tokenizer.unk_id
    return {"pad": SpecialIds(**config.special).pad, "unk": -1 if unknown is None else unknown}
