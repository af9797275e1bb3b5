"""Few-shot prompting: what to do is never said, only shown. "abc>cba;fed>def;hag>" is to be continued by "gah".

Every text that is learned has examples of one rule, and which rule it is must be found out from them. Nothing is trained
when the model is asked: it goes by what stands in its context.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np

import minigrad as mg
from minigrad.data import BlockBatch, CharTokenizer
from minigrad.decode import LanguageModel, Sampling, continue_text, generate
from minigrad.errors import ArgumentError
from minigrad.zoo import Data

from .model import IGNORED, mean_loss
from .task import MadeBatches, Task, next_tokens, refuse_data

LETTERS = "abcdefghij"
SIZE = 3  # letters of a word and of its answer, no letter twice in a word
RULES: dict[str, Callable[[str], str]] = {
    "copy": lambda word: word,
    "capitals": str.upper,
    "reverse": lambda word: word[::-1],
    "first": lambda word: word[0] * SIZE,
}
PROMPT = "abc>cba;fed>def;hag>"
SHOTS = 5  # examples in a text that is learned
STEP = 2 * SIZE + 2  # characters of one: "abc>ABC;"
EPOCH = 100  # batches that are called an epoch
ASKED = 600  # questions for each number of examples in an evaluation
CONTEXT = SHOTS * STEP - 1  # what the model has to see: a whole text but for the last character


@cache
def words(held_out: bool) -> list[str]:
    """All words of different letters that are held out, one in four, or all the others."""
    every = ("".join(letters) for letters in permutations(LETTERS, SIZE))
    return [word for word in every if (zlib.crc32(word.encode()) % 4 == 0) == held_out]


def some_words(random: np.random.Generator, count: int, held_out: bool) -> list[str]:
    """So many of them, drawn."""
    known = words(held_out)
    return [known[place] for place in random.integers(0, len(known), count)]


def shown(rule: str, given: list[str]) -> str:
    """Words with what a rule makes of them: "abc>ABC;def>DEF;"."""
    return "".join(f"{word}>{RULES[rule](word)};" for word in given)


def text_batch(random: np.random.Generator, count: int, tokenizer: CharTokenizer, held_out: bool) -> BlockBatch:
    """Texts with examples of one rule each; only the answers count."""
    rules = list(RULES)
    texts = [shown(rules[random.integers(len(rules))], some_words(random, SHOTS, held_out)) for _ in range(count)]
    rows = np.array([tokenizer.encode(text) for text in texts])  # (B, SHOTS · STEP)
    places = np.arange(rows.shape[1]) % STEP
    return next_tokens(rows, (places > SIZE) & (places < STEP - 1), IGNORED)


def few_shot_data(config: Any, path: str | None) -> Data:
    """Texts generated as needed; validated on words that are never learned from."""
    refuse_data("few-shot", path)
    tokenizer = CharTokenizer(LETTERS + LETTERS.upper() + ">;")
    seed = int(mg.randint(0, 2**31, (1,)).item())
    evaluated = text_batch(np.random.default_rng(0), 128, tokenizer, held_out=True)

    def valid(model: Any) -> dict[str, float]:
        return {"loss": mean_loss(model, evaluated), "right_after_two": right(model, tokenizer, 2, 120)}

    return Data(
        MadeBatches(
            lambda random: text_batch(random, config.batch, tokenizer, held_out=False),
            EPOCH, seed, rules=list(RULES), batch=config.batch,
        ),
        valid=valid,
        config=dataclasses.replace(config, vocab=tokenizer.vocab_size),
        tokenizer=tokenizer,
    )  # fmt: skip


def right(model: Any, tokenizer: CharTokenizer, examples: int, count: int = ASKED) -> float:
    """The share of questions that are answered right after so many examples; each rule is asked for as often."""
    random = np.random.default_rng(examples)
    prompts, wanted = [], []
    for number in range(count):
        rule = list(RULES)[number % len(RULES)]
        *given, asked = some_words(random, examples + 1, held_out=True)
        prompts.append(tokenizer.encode(shown(rule, given) + asked + ">"))
        wanted.append(tokenizer.encode(RULES[rule](asked)))
    best = Sampling(temperature=0)
    tokens = list(generate(LanguageModel(model), np.array(prompts), length=SIZE, sampling=best))
    return float((np.stack(tokens, axis=1) == np.array(wanted)).all(axis=1).mean())


def evaluate_few_shot(loaded: Any, path: str | None) -> dict[str, Any]:
    """The shares of right answers after no example, one, two and so on: the same model, only another prompt."""
    refuse_data("few-shot", path)
    shares = [right(loaded.model, loaded.tokenizer, examples) for examples in range(SHOTS)]
    return {f"right_after_{examples}": share for examples, share in enumerate(shares)} | {"asked": ASKED}


def checked(text: str) -> str:
    """A prompt that ends in a question, no longer than any that was learned from."""
    is_known = not set(text) - set(LETTERS + LETTERS.upper() + ">;")
    if not is_known or not text.endswith(">") or len(text) > CONTEXT - SIZE:
        raise ArgumentError(
            f"gpt: {text!r} asks nothing that this model could answer",
            f"up to {SHOTS - 1} examples and a question, in letters from {LETTERS[0]} to {LETTERS[-1]}",
            repr(text),
            f"for instance {PROMPT!r}",
        )
    return text


def predict_few_shot(loaded: Any, text: str) -> dict[str, Any]:
    """What follows from the examples."""
    answer = "".join(sample_few_shot(loaded, text, sampling=Sampling(temperature=0)))
    return {"input": text, "answer": answer}


def sample_few_shot(loaded: Any, prompt: str, *, tokens: int = SIZE, **options: Any) -> Iterator[str]:
    """An answer, letter by letter."""
    return continue_text(loaded.model, loaded.tokenizer, checked(prompt), tokens=min(tokens, SIZE), **options)


def show_few_shot(loaded: Any) -> str:
    """A question after two examples of each rule, with the model's answer."""
    random = np.random.default_rng(7)
    lines = []
    for rule in RULES:
        *given, asked = some_words(random, 3, held_out=True)
        prompt = shown(rule, given) + asked + ">"
        lines.append(f"{prompt}{predict_few_shot(loaded, prompt)['answer']}")
    return "\n".join(lines)


TASK = Task(few_shot_data, evaluate_few_shot, predict_few_shot, sample_few_shot, show_few_shot, lambda config: PROMPT)
