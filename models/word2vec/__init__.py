"""word2vec: vectors of words, learned from which words stand beside which."""

from __future__ import annotations

import dataclasses
from typing import Any

from minigrad.zoo import Config, Data, ModelSpec, Page, option

SHOWN = ("dog", "red", "ana", "soup", "painter")  # whose neighbours are shown when training ends
DRAWN = ("animal", "voice", "colour", "job", "girl", "weather")  # kinds of words on the map
DRAWN_WORDS = 80  # on the map of a text of your own
HELD_OUT = 20  # one line in so many is never learned from


@dataclasses.dataclass(frozen=True)
class Word2vecConfig(Config):
    """Skip-gram with negative sampling."""

    size: int = option(48, "how many numbers in a vector", least=1)
    window: int = option(2, "how far apart two words may be, at most", least=1)
    negatives: int = option(5, "how many words drawn at random for each true one", least=1)
    thin: float = option(1e-3, "words of a greater share of the text are thinned out; 0 for none", least=0)
    min_count: int = option(5, "rarer words are left out", least=1)
    vocab: int = option(10_000, "how many words, five special ones included, at most")
    stories: int = option(3000, "how many generated stories to learn from, where no text is given", least=1)
    steps: int = option(2000, "how many steps to train")
    batch: int = option(512, "how many pairs of words in a batch")
    lr: float = option(0.01, "learning rate")
    valid_every: int = option(500, "steps between validations")


def lines_of(config: Word2vecConfig, path: str | None) -> list[str]:
    """The lines of a text file, or a generated story each."""
    from minigrad.data import read_text

    from ..corpora import stories

    if path is None:
        return [story.text for story in stories(config.stories)]
    return [line for line in read_text(path)[0].splitlines() if line.strip()]


def split(lines: list[str]) -> tuple[list[str], list[str]]:
    """The lines to learn from, and those held out: none of a text of few lines."""
    if len(lines) < 2 * HELD_OUT:
        return lines, []
    return [line for i, line in enumerate(lines) if i % HELD_OUT], lines[::HELD_OUT]


def pairs_of(config: Word2vecConfig, lines: list[str], tokenizer: Any, seed: int = 0) -> Any:
    """A sampler of the pairs of some lines."""
    from .pairs import WordPairs, encoded

    return WordPairs(
        encoded(lines, tokenizer),
        tokenizer.vocab_size,
        config.batch,
        config.window,
        config.negatives,
        config.thin,
        seed=seed,
    )


def data(config: Word2vecConfig, path: str | None) -> Data:
    """Pairs of words; the words themselves are found in the lines that are learned from."""
    import minigrad as mg

    from .pairs import vocabulary

    learned, held = split(lines_of(config, path))
    tokenizer = vocabulary(learned, config.vocab, config.min_count)
    seed = int(mg.randint(0, 2**31, (1,)).item())
    return Data(
        pairs_of(config, learned, tokenizer, seed),
        valid=pairs_of(config, held, tokenizer) if held else None,
        config=dataclasses.replace(config, vocab=tokenizer.vocab_size),
        tokenizer=tokenizer,
    )


def build(config: Word2vecConfig) -> Any:
    from .model import SkipGram

    return SkipGram(config.vocab, config.size)


def loss(model: Any, batch: Any) -> dict[str, Any]:
    """The binary cross-entropy of telling the word that stood there from those drawn at random, summed over them."""
    import minigrad as mg
    from minigrad.nn import functional as F

    middle, others = (mg.tensor(part, device=model.words.weight.device) for part in batch)
    logits = model(middle, others)  # (B, 1 + negatives)
    stood_there = mg.zeros_like(logits)
    stood_there[:, 0] = 1
    return {"loss": (F.binary_cross_entropy_with_logits(logits, stood_there, reduction="sum"), len(middle))}


def example(config: Word2vecConfig) -> Any:
    import numpy as np

    draw = np.random.default_rng(0)
    return draw.integers(5, config.vocab, 4), draw.integers(5, config.vocab, (4, 1 + config.negatives))


def word_space(loaded: Any) -> Any:
    """The words of a trained model as points, without the tokenizer's special ones."""
    from minigrad.data import SPECIALS

    from .space import WordSpace

    first = len(SPECIALS)
    return WordSpace(loaded.tokenizer.tokens[first:], loaded.model.words.weight.numpy()[first:])


def predict(loaded: Any, inputs: list[str]) -> list[Any]:
    """For a word, the nearest ones; for three, "dog barked cat", what is to the third as the second is to the first."""
    from minigrad.errors import ArgumentError

    points = word_space(loaded)
    answers = []
    for text in inputs:
        words = [word for word in text.split() if word.strip(":")]
        if len(words) not in (1, 3):
            raise ArgumentError(
                f"{text!r} cannot be asked",
                "one word, or three for an analogy",
                f"{len(words)} words",
                'for instance "dog", or "dog : barked :: cat"',
            )
        found = points.neighbours(*words) if len(words) == 1 else points.analogy(*words)
        answers.append({"input": text, "nearest": dict(found)})
    return answers


def evaluate(loaded: Any, path: str | None) -> dict[str, Any]:
    """The loss on lines held out; for the stories, how near words of a kind are, and how often analogies are right.

    `…_by_chance` is what random vectors reach, `…_by_counting` what co-occurrence counts of the same pairs do without
    any learning, and `…_by_svd` those compressed to as many numbers as the model has.
    """
    import math

    from minigrad.train.evaluation import evaluate as mean_loss

    learned, held = split(lines_of(loaded.config, path))
    evaluated = pairs_of(loaded.config, held or learned, loaded.tokenizer)
    points = word_space(loaded)
    found = {
        "words": len(points.words),
        "loss": mean_loss(loaded.model, loss, evaluated)["loss"],
        "loss_knowing_nothing": (1 + loaded.config.negatives) * math.log(2),
    }
    if path is not None:
        return found
    from .evaluation import compared

    return {**found, **compared(points, pairs_of(loaded.config, learned, loaded.tokenizer).pairs(0))}


def neighbours(loaded: Any) -> str:
    """The neighbours of a few words: of some that the stories have, or else of the most frequent long ones."""
    points = word_space(loaded)
    known = [word for word in SHOWN if word in points.place]
    asked = known or sorted(points.words[:100], key=len, reverse=True)[: len(SHOWN)]
    rows = [f"  {word:12} {', '.join(near for near, _ in points.neighbours(word))}" for word in asked]
    return "\n".join(["nearest words:", *rows])


def after(loaded: Any, folder: Any) -> str:
    """The neighbours, unless the last validation has shown them."""
    return "" if (folder / "samples").is_dir() else neighbours(loaded)


def draw(loaded: Any) -> Any:
    """A map of words: of some kinds that the stories have, or else of the most frequent ones."""
    from minigrad.viz.drawing.embeddings import embedding_map

    from .evaluation import kinds

    points = word_space(loaded)
    known = {kind: sorted(word for word in kinds()[kind] if word in points.place) for kind in DRAWN}
    own = loaded.arguments["data"] is None and sum(map(len, known.values())) > len(DRAWN)
    words = [word for group in known.values() for word in group] if own else points.words[:DRAWN_WORDS]
    places = [points.place[word] for word in words]
    return embedding_map(points.directions[places], words, known if own else None, title="words")


def page(loaded: Any) -> Page:
    """The cosines of a word with all words but the tokenizer's special ones."""
    import minigrad as mg
    from minigrad.data import SPECIALS

    first, points = len(SPECIALS), word_space(loaded)
    directions = mg.tensor(points.directions.astype("float32"))

    def cosines(word: Any) -> Any:
        return directions[word - first] @ directions.T  # (1,) -> (1, words)

    known = [word for word in SHOWN if word in points.place] or points.words[: len(SHOWN)]
    return Page(kind="words", function=cosines, settings={"first": first}, examples=known)


spec = ModelSpec(
    name="word2vec",
    task="embedding",
    summary="vectors of words, by skip-gram with negative sampling; neighbours and analogies",
    most_files=1,
    config=Word2vecConfig,
    data=data,
    build=build,
    loss=loss,
    example=example,
    example_inputs=("the", "the a and"),
    predict=predict,
    evaluate=evaluate,
    presets={
        "small": {"size": 16, "stories": 800, "steps": 600},
        "topics": {"window": 8},
    },
    tiny={"size": 4, "stories": 60, "min_count": 2, "vocab": 60, "batch": 16, "steps": 20, "valid_every": 10},
    verbs={
        "neighbours": lambda loaded, word, n=5: word_space(loaded).neighbours(word, n),
        "analogy": lambda loaded, a, b, c, n=5: word_space(loaded).analogy(a, b, c, n),
        "write": lambda loaded, path: word_space(loaded).write(path),
        "space": word_space,
    },
    after=after,
    samples=neighbours,
    draw=draw,
    page=page,
)
