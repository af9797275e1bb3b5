"""Answers to texts from the command line: words for blanks, a class, tags, an answer, or likeness."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import minigrad as mg
from minigrad.data import MASK, SPECIALS, UNK
from minigrad.engine.errors import ArgumentError

from .batches import encoded, joined
from .tasks import words_of

SHOWN = 5  # words for a blank


class Asked(NamedTuple):
    """What a task is asked: in words, in how many texts, and some instances."""

    wanted: str
    texts: tuple[int, int]
    instances: tuple[str, ...]


ASKED = {
    "pretrain": Asked("a text with <mask> in it, or two with | between them", (1, 2), (
        "The <mask> was hungry.", "Ana lost her kite in the park. | <mask> was very sad.",
    )),
    "classify": Asked("a text, or two with | between them", (1, 2), (
        "Ana had a red kite. One day, Ana lost it in the park. She was very sad. Then Ben helped her.",
        "Then Ben helped her. One day, Ana lost it in the park. She was very sad. Ana had a red kite.",
    )),
    "tag": Asked("a text", (1, 1), ("One day, Ana lost her red kite in the park.",)),
    "answer": Asked("a question and a text with | between them", (2, 2), (
        "Who lost the kite? | Ana had a red kite. One day, Ana lost it in the park. Then Ben helped her.",
    )),
    "similar": Asked("two texts with | between them", (2, 2), (
        "She was very sad. | She cried.", "She was very sad. | Ben found the kite in the park.",
    )),
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
    texts = [part.strip() for part in text.split("|")]
    if not least <= len(texts) <= most or not all(texts):
        raise _refused(
            task, f"bert cannot answer {text[:60]!r}", f"{len(texts)} texts" if all(texts) else "an empty text"
        )
    words = words_of(text.replace("<mask>", " ").replace("|", " "))
    unknown = dict.fromkeys(word for word in words if UNK in tokenizer.encode(word))
    notes = [f"unknown: {' '.join(unknown)[:200]}"] if unknown else []
    given = [[part] for part in texts] if task == "similar" else [texts]
    return Reading(texts, [_row(loaded, parts, notes) for parts in given], notes)


def _refused(task: str, problem: str, got: str) -> ArgumentError:
    asked = ASKED[task]
    return ArgumentError(problem, asked.wanted, got, f'for instance "{asked.instances[0]}"')


def _row(loaded: Any, texts: list[str], notes: list[str]) -> np.ndarray:
    context = loaded.config.context
    first, *seconds = (encoded(loaded.tokenizer, text) for text in texts)
    whole = len(joined(first, seconds[0] if seconds else None, 2**62))
    if whole > context:
        notes.append(f"only {context} of {whole} tokens are read")
        if not seconds and MASK in first[context // 2 :]:
            first = first[max(first.index(MASK) - context // 2, 0) :]  # the words around the first blank say most
    return np.array([joined(first, seconds[0] if seconds else None, context)])


def answer(loaded: Any, text: str) -> dict[str, Any]:
    """What the model says to a text."""
    reading = read(loaded, text)
    with mg.no_grad():
        found = ANSWERS[loaded.config.task](loaded, reading)
    return {"input": text, **found, **({"note": "; ".join(reading.notes)} if reading.notes else {})}


def fill(loaded: Any, reading: Reading) -> dict[str, Any]:
    """The likeliest words for each `<mask>`, with their probabilities; of two texts also whether the second follows."""
    (ids,), model = reading.rows, loaded.model
    hidden, places = model(ids), np.flatnonzero(ids[0] == MASK)
    if not len(places) and len(reading.texts) == 1:
        raise _refused("pretrain", f"bert: {reading.texts[0][:60]!r} has nothing to fill in", "none")
    found: dict[str, Any] = {}
    for number, place in enumerate(places.tolist(), 1):
        chances = model.head.words(hidden[0, place : place + 1], model.tokens.weight).softmax(axis=1).numpy()[0]
        best = [i for i in np.argsort(-chances, kind="stable").tolist() if i >= len(SPECIALS)][:SHOWN]
        name = "<mask>" if len(places) == 1 else f"<mask> {number}"
        found[name] = {loaded.tokenizer.token(i): round(float(chances[i]), 4) for i in best}
    if len(reading.texts) == 2:
        found["follows"] = round(model.head.follows(hidden, ids).softmax(axis=1)[0, 1].item(), 4)
    return found


def classify(loaded: Any, reading: Reading) -> dict[str, Any]:
    """The likeliest class, and the probabilities of all."""
    (ids,) = reading.rows
    chances = loaded.model.head(loaded.model(ids), ids).softmax(axis=1)[0].tolist()
    ranked = sorted(zip(loaded.config.classes, chances), key=lambda pair: -pair[1])
    return {"class": ranked[0][0], "probabilities": {name: round(chance, 4) for name, chance in ranked}}


def tag(loaded: Any, reading: Reading) -> dict[str, Any]:
    """Every word with its tag, as `kite/thing`; words of no kind stand alone."""
    (ids,), (plain, *_) = reading.rows, loaded.config.classes
    tags = [loaded.config.classes[i] for i in loaded.model.head(loaded.model(ids), ids).argmax(axis=2)[0].tolist()]
    pairs = zip(words_of(reading.texts[0]), tags[1:-1])
    return {"tags": " ".join(word if name == plain else f"{word}/{name}" for word, name in pairs)}


def locate(loaded: Any, reading: Reading) -> dict[str, Any]:
    """The words of the text that answer the question, and how probable they are."""
    (ids,), head = reading.rows, loaded.model.head
    logits = head(loaded.model(ids), ids)
    (begin, end), chances = head.spans(logits)[0].tolist(), logits.softmax(axis=1).numpy()[0]
    probability = round(float(chances[begin, 0] * chances[end, 1]), 4)
    return {"answer": loaded.tokenizer.decode(ids[0, begin : end + 1]), "probability": probability}


def compare(loaded: Any, reading: Reading) -> dict[str, Any]:
    """The cosine of two texts, and how probable it is that they say the same."""
    head = loaded.model.head
    first, second = (head(loaded.model(ids), ids) for ids in reading.rows)
    cosine = (first * second).sum(axis=1)
    return {"cosine": round(cosine.item(), 4), "same": round(head.logits(cosine).sigmoid().item(), 4)}


ANSWERS: dict[str, Any] = {
    "pretrain": fill, "classify": classify, "tag": tag, "answer": locate, "similar": compare,
}  # fmt: skip


def attend(loaded: Any, text: str) -> dict[str, Any]:
    """What the model is called with to see how it reads one text, or two with | between them."""
    ids = read(loaded, text).rows[0]
    return {"inputs": (ids,), "tokens": [loaded.tokenizer.token(token) for token in ids[0].tolist()]}


def samples(loaded: Any) -> str:
    """Answers to the instances of the task, a line for each."""
    answers = [answer(loaded, text) for text in ASKED[loaded.config.task].instances]
    return "\n".join("  ".join(f"{name}: {value}" for name, value in found.items()) for found in answers)
