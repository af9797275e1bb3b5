"""Answers to texts from the command line: words for blanks, a class, tags, an answer, or likeness."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import minigrad as mg
from minigrad.errors import ArgumentError
from minigrad.zoo import Page

from .batches import PAIRED
from .tokens import BLANK, PIECE, Frame, Specials, encoded, encoded_for, encoded_words, joined, texts_of

SHOWN = 5  # words for a blank


class Asked(NamedTuple):
    """What a task is asked: in words, in how many texts, and some instances."""

    wanted: str
    texts: tuple[int, int]
    instances: tuple[str, ...]


_BLANKS = Asked("a text with <mask> in it, or two with | between them", (1, 2), (
    "The <mask> was hungry.", "Ana lost her kite in the park. | <mask> was very sad.",
))  # fmt: skip
_PAIRS = Asked("two texts with | between them", (2, 2), (
    "She was very sad. | She cried.", "She was very sad. | Ben found the kite in the park.",
))  # fmt: skip
ASKED = {
    "pretrain": _BLANKS,
    "fill": _BLANKS,
    "embed": _PAIRS,
    "classify": Asked("a text, or two with | between them", (1, 2), (
        "Ana had a red kite. One day, Ana lost it in the park. She was very sad. Then Ben helped her.",
        "Then Ben helped her. One day, Ana lost it in the park. She was very sad. Ana had a red kite.",
    )),
    "tag": Asked("a text", (1, 1), ("One day, Ana lost her red kite in the park.",)),
    "answer": Asked("a question and a text with | between them", (2, 2), (
        "Who lost the kite? | Ana had a red kite. One day, Ana lost it in the park. Then Ben helped her.",
    )),
    "similar": _PAIRS,
}  # fmt: skip


class Reading(NamedTuple):
    """One or two texts as the model reads them, each in a row of its own if the task compares them; and notes on it."""

    texts: list[str]
    rows: list[np.ndarray]  # each (1, T)
    notes: list[str]


def read(loaded: Any, text: str) -> Reading:
    """The tokens of an input; words that are unknown, and what is cut since it is too long, are noted."""
    task, tokenizer = loaded.config.task, loaded.tokenizer
    least, most = ASKED[task].texts
    texts = texts_of(text)
    if not least <= len(texts) <= most or not all(texts):
        raise _refused(
            task, f"bert cannot answer {text[:60]!r}", f"{len(texts)} texts" if all(texts) else "an empty text"
        )
    words = dict.fromkeys(word for part in texts for word in PIECE.findall(part))
    unknown = [word for word in words if loaded.tokenizer.unk_id in encoded(tokenizer, word)]
    notes = [f"unknown: {' '.join(unknown)[:200]}"] if unknown else []
    given = [[part] for part in texts] if task in PAIRED else [texts]
    return Reading(texts, [_row(loaded, parts, notes) for parts in given], notes)


def _refused(task: str, problem: str, got: str) -> ArgumentError:
    asked = ASKED[task]
    return ArgumentError(problem, asked.wanted, got, f'for instance "{asked.instances[0]}"')


def _row(loaded: Any, texts: list[str], notes: list[str]) -> np.ndarray:
    context, tokenizer = loaded.config.context, loaded.tokenizer
    frame = Frame.of(tokenizer)
    first, *seconds = (encoded_for(loaded.config.task, tokenizer, text) for text in texts)
    whole = len(joined(first, seconds[0] if seconds else None, 2**62, frame))
    if whole > context:
        notes.append(f"only {context} of {whole} tokens are read")
        if not seconds and tokenizer.mask_id in first:  # the words around the first blank say most
            room = context - len(frame.before) - len(frame.after)
            start = min(first.index(tokenizer.mask_id) - context // 2, len(first) - room)
            first = first[max(start, 0) :]
    return np.array([joined(first, seconds[0] if seconds else None, context, frame)])


def answer(loaded: Any, text: str) -> dict[str, Any]:
    """What the model says to a text."""
    reading = read(loaded, text)
    with mg.no_grad():
        found = ANSWERS[loaded.config.task](loaded, reading)
    return {"input": text, **found, **({"note": "; ".join(reading.notes)} if reading.notes else {})}


def fill(loaded: Any, reading: Reading) -> dict[str, Any]:
    """The likeliest words for each blank, with their probabilities; of two texts also whether the second follows."""
    (ids,), model, specials = reading.rows, loaded.model, Specials.of(loaded.tokenizer)
    asked = [len(BLANK.findall(text)) for text in reading.texts]
    places = np.flatnonzero(ids[0] == specials.mask)
    if sum(asked) == 0 and len(asked) == 1:
        raise _refused(loaded.config.task, f"bert: {reading.texts[0][:60]!r} has nothing to fill in", "none")
    if len(places) < sum(asked):
        reading.notes.append(f"{sum(asked) - len(places)} of {sum(asked)} blanks are not read")
    # Of two texts the first may have lost its beginning, and with it the first blanks.
    before = asked[0] - int((places < ids[0].tolist().index(specials.sep)).sum()) if len(asked) == 2 else 0
    hidden, blank = model(ids), loaded.tokenizer.token(specials.mask)
    found: dict[str, Any] = {}
    for number, place in enumerate(places.tolist(), before + 1):
        chances = model.head.words(hidden[0, place : place + 1], model).softmax(axis=1).numpy()[0]
        best = [i for i in np.argsort(-chances, kind="stable")[: 2 * SHOWN + 5].tolist() if i not in specials][:SHOWN]
        name = blank if sum(asked) == 1 else f"{blank} {number}"
        found[name] = {loaded.tokenizer.token(i): round(float(chances[i]), 4) for i in best}
    if len(reading.texts) == 2 and "follows" in model.head.answers:
        found["follows"] = round(model.head.follows(hidden, ids).softmax(axis=1)[0, 1].item(), 4)
    return found


def classify(loaded: Any, reading: Reading) -> dict[str, Any]:
    """The likeliest class, and the probabilities of all."""
    (ids,) = reading.rows
    chances = loaded.model.head(loaded.model(ids), ids).softmax(axis=1)[0].tolist()
    ranked = sorted(zip(loaded.config.classes, chances), key=lambda pair: -pair[1])
    return {"class": ranked[0][0], "probabilities": {name: round(chance, 4) for name, chance in ranked}}


def tag(loaded: Any, reading: Reading) -> dict[str, Any]:
    """Every word with its tag, as `kite/thing`, which is that of its first token; words of no kind stand alone."""
    (ids,), (plain, *_), (text,) = reading.rows, loaded.config.classes, reading.texts
    chosen = loaded.model.head(loaded.model(ids), ids).argmax(axis=2)[0].tolist()
    sizes = [len(word) for word in encoded_words(loaded.tokenizer, text)]
    places = (np.cumsum([0, *sizes[:-1]]) + len(Frame.of(loaded.tokenizer).before)).tolist()
    last = ids.shape[1] - len(Frame.of(loaded.tokenizer).after)
    pairs = [(word, loaded.config.classes[chosen[i]]) for word, i in zip(PIECE.findall(text), places) if i < last]
    return {"tags": " ".join(word if name == plain else f"{word}/{name}" for word, name in pairs)}


def locate(loaded: Any, reading: Reading) -> dict[str, Any]:
    """The part of the text that answers the question, as it stands there, and how probable it is."""
    (ids,), head, (_, text) = reading.rows, loaded.model.head, reading.texts
    logits = head(loaded.model(ids), ids)
    (begin, end), chances = head.spans(logits)[0].tolist(), logits.softmax(axis=1).numpy()[0]
    frame = Frame.of(loaded.tokenizer)
    start = ids[0].tolist().index(frame.between[0]) + len(frame.between)
    # Which word each token of the text belongs to.
    words = [number for number, word in enumerate(encoded_words(loaded.tokenizer, text)) for _ in word]
    pieces = [*PIECE.finditer(text)]
    said = text[pieces[words[begin - start]].start() : pieces[words[end - start]].end()]
    return {"answer": said, "probability": round(float(chances[begin, 0] * chances[end, 1]), 4)}


def compare(loaded: Any, reading: Reading) -> dict[str, Any]:
    """The cosine of two texts, and if that was learned, how probable it is that they say the same."""
    head = loaded.model.head
    first, second = (head(loaded.model(ids), ids) for ids in reading.rows)
    cosine = (first * second).sum(axis=1)
    same = {"same": round(head.same(cosine).sigmoid().item(), 4)} if hasattr(head, "same") else {}
    return {"cosine": round(cosine.item(), 4), **same}


ANSWERS: dict[str, Any] = {
    "pretrain": fill, "fill": fill, "embed": compare, "classify": classify, "tag": tag, "answer": locate,
    "similar": compare,
}  # fmt: skip


def page(loaded: Any) -> Page:
    """What the exported page computes and shows."""
    model, task = loaded.model, loaded.config.task
    specials = Specials.of(loaded.tokenizer)
    settings = {
        "frame": [list(part) for part in Frame.of(loaded.tokenizer)],
        "mask": specials.mask,
        "specials": list(specials),
    }
    given: dict[str, Any] = {
        "answers": loaded.config.classes,
        "examples": ASKED[task].instances,
        "settings": settings,
    }

    def scored(ids: Any) -> Any:
        return model.head(model(ids), ids)

    def compared(first: Any, second: Any) -> Any:
        cosine = (scored(first) * scored(second)).sum(axis=1)
        return [cosine, model.head.same(cosine)] if hasattr(model.head, "same") else cosine

    def blanks(ids: Any) -> Any:
        hidden = model(ids)
        words = model.head.words(hidden, model)
        return [words, model.head.follows(hidden, ids)] if "follows" in model.head.answers else words

    kinds: dict[Any, tuple[str, Any]] = {
        fill: ("blanks", blanks), classify: ("classes", scored), tag: ("tags", scored), locate: ("span", scored),
        compare: ("alike", compared),
    }  # fmt: skip
    kind, function = kinds[ANSWERS[task]]
    return Page(kind=kind, function=function, **given)


def attend(loaded: Any, text: str) -> dict[str, Any]:
    """What the model is called with to see how it reads one text, or two with | between them; the first, if each is read alone."""
    is_alone = loaded.config.task in PAIRED and len(texts_of(text)) == 1
    ids = read(loaded, f"{text} | {text}" if is_alone else text).rows[0]
    return {"inputs": (ids,), "tokens": [loaded.tokenizer.token(token) for token in ids[0].tolist()]}


def samples(loaded: Any) -> str:
    """Answers to the instances of the task, a line for each."""
    answers = [answer(loaded, text) for text in ASKED[loaded.config.task].instances]
    return "\n".join("  ".join(f"{name}: {value}" for name, value in found.items()) for found in answers)
