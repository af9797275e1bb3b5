"""What is learned from: examples, their tokens, labels and batches."""

from __future__ import annotations

import dataclasses
from typing import Any

import minigrad as mg
from minigrad import zoo
from minigrad.data import SPECIALS, BatchReport, WordTokenizer, read_pairs
from minigrad.errors import ArgumentError

from .batches import IGNORED, MASKED, PAIRED, Labelled, MaskedPairs
from .pretrained import taken_over
from .tasks import TAGS, Example, examples
from .text import EVALUATED, HELD_OUT, LEARNED, Examples, own_examples, parted, pretraining_pairs, unseen
from .tokens import Frame, Specials, encoded, encoded_for, encoded_words, joined, texts_of


@dataclasses.dataclass(frozen=True)
class DataReport(BatchReport):
    """What was read, and what became of the examples; it is shown when training begins."""

    read: str = ""

    def __str__(self) -> str:
        return f"{self.read}\nbatches: {super().__str__()}"


def examples_of(config: Any, path: str | None) -> Examples:
    """Examples to learn from, and examples held out."""
    if config.task in MASKED:
        return pretraining_pairs(config.examples, path)
    if path is None:
        kind = "similar" if config.task in PAIRED else config.task
        learned, evaluated = examples(kind, config.examples, LEARNED), min(config.examples, EVALUATED)
        return Examples(learned, unseen(examples(kind, 2 * evaluated, HELD_OUT), learned)[:evaluated])
    if config.task != "classify":
        raise ArgumentError(
            f"bert: task={config.task} makes its own examples", "no --data", repr(path),
            "leave out --data; of your own labels, bert:classify learns lines of text <tab> label",
        )  # fmt: skip
    pairs, report = read_pairs(path)
    learned, held = parted([_labelled(text, label) for text, label in pairs], lambda example: example[:2])
    return own_examples(learned, held, report)


def _labelled(text: str, label: str) -> Example:
    texts = texts_of(text)
    if len(texts) > 2 or not all(texts):
        raise ArgumentError(
            f"bert: {text[:60]!r} is no example",
            "lines `text <tab> label`, or `text | text <tab> label`",
            f"{len(texts)} texts" if all(texts) else "an empty text",
            "write something else than | inside of a text",
        )
    return Example(texts[0], texts[1] if len(texts) == 2 else None, label)


def classes_of(task: str, found: list[Example]) -> tuple[str, ...]:
    """The names of the classes or tags, none if the task has none."""
    if task != "classify":
        return TAGS if task == "tag" else ()
    names = tuple(sorted({example.label for example in found}))
    if len(names) < 2:
        raise ArgumentError(
            "bert: there is nothing to classify", "lines `text <tab> label` with two labels or more", f"only {names}"
        )
    return names


def columns_of(
    config: Any, tokenizer: Any, example: Example, frame: Frame | None = None
) -> tuple[list[int], ...] | None:
    """The tokens of an example, and its labels; None if it is cut so that nothing is left to learn."""
    context, frame = config.context, Frame.of(tokenizer) if frame is None else frame
    if config.task == "tag":
        return _tagged(config, encoded_words(tokenizer, example.first), example.label, frame)
    first, *seconds = (encoded_for(config.task, tokenizer, text) for text in example[:2] if text is not None)
    if config.task in PAIRED:
        return joined(first, None, context, frame), joined(seconds[0], None, context, frame), [example.label]
    ids = joined(first, seconds[0] if seconds else None, context, frame)
    if config.task in MASKED:
        return (ids, [example.label]) if set(ids) - set(config.specials) else None
    if config.task == "classify":
        return ids, [_class(config, example.label)]
    for form in (example.label, f" {example.label}"):  # a space may be a part of a token
        wanted = encoded(tokenizer, form)
        starts = range(ids.index(frame.between[0]) + 1, len(ids) - len(wanted))
        begin = next((start for start in starts if ids[start : start + len(wanted)] == wanted), None)
        if begin is not None:
            return ids, [begin, begin + len(wanted) - 1]
    return None


def _tagged(config: Any, words: list[list[int]], names: list[str], frame: Frame) -> tuple[list[int], list[int]]:
    """The tokens of words, of which the first of each has its tag."""
    tags = [[config.classes.index(name)] + [IGNORED] * (len(word) - 1) for word, name in zip(words, names) if word]
    room = config.context - len(frame.before) - len(frame.after)
    labels = [*[IGNORED] * len(frame.before), *sum(tags, [])[:room], *[IGNORED] * len(frame.after)]
    return joined(sum(words, []), None, config.context, frame), labels


def _class(config: Any, label: str) -> int:
    if label not in config.classes:
        raise ArgumentError(f"bert: the label {label!r} was not learned", ", ".join(config.classes), repr(label))
    return config.classes.index(label)


def batches_of(config: Any, tokenizer: Any, found: list[Example], seed: int = 0, evaluating: bool = False) -> Any:
    """A sampler of examples; for evaluation, always the same batches."""
    frame = Frame.of(tokenizer)
    rows = [columns for example in found if (columns := columns_of(config, tokenizer, example, frame)) is not None]
    tokens, lost, is_masked = max(config.batch, config.context), len(found) - len(rows), config.task in MASKED
    specials = Specials(*config.specials)
    if not rows:
        raise ArgumentError(
            f"bert: of {lost} examples none is left",
            "texts with words that it knows" if is_masked else f"answers among the first {config.context} tokens",
            fix="give other text" if is_masked else "give a larger context",
        )
    if is_masked:
        made: Any = MaskedPairs(rows, tokens, config.vocab, config.mask, seed, blanks=evaluating, specials=specials)
        made.report = dataclasses.replace(made.report, empty=lost)
    else:
        made = Labelled(rows, tokens, seed=seed, shuffle=not evaluating, pad=specials.pad, unk=specials.unk)
        made.report = dataclasses.replace(made.report, too_long=lost, limit=config.context)
    return made


def data_of(config: Any, path: str | None) -> zoo.Data:
    """Batches for training and validation, with the tokenizer and the config that belong to them."""
    learned, held, summary = examples_of(config, path)
    texts = [text for example in learned for text in example[:2] if text]
    if config.init is not None:
        config, tokenizer = taken_over(config, texts)
    elif config.tokenizer != "word":
        raise ArgumentError(
            "bert: tokenizer=pretrained comes with a model", fix="give init=DIR, or leave out tokenizer"
        )
    else:
        tokenizer = WordTokenizer.train(texts, config.vocab)
    if tokenizer.vocab_size < len(SPECIALS) + 2:
        raise ArgumentError("bert: there are too few words to learn from", "two or more different ones", texts[0][:60])
    classes = classes_of(config.task, learned + held)
    config = dataclasses.replace(config, vocab=tokenizer.vocab_size, classes=classes)
    train = batches_of(config, tokenizer, learned, seed=int(mg.randint(0, 2**31, (1,)).item()))
    if summary:
        train.report = DataReport(**dataclasses.asdict(train.report), read=summary)
    return zoo.Data(
        train,
        valid=batches_of(config, tokenizer, held, evaluating=True) if held else None,
        config=config,
        tokenizer=tokenizer,
    )
