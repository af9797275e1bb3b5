"""A conversation with a language model: turns in the form of its chat template, answers in pieces as they come."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..tokenizers.chat import chat_ids
from .continuation import LanguageModel
from .sampling import Sampling, generate
from .text_stream import TextStream

__all__ = ["Chat"]


class Chat:
    """A conversation: `say` answers a text, and `messages` has all turns as {"role": …, "content": …}.

    The model is called `model(tokens, cache=cache)`, has `new_cache()` and `context`; its tokenizer has a `chat_template`.
    What an earlier turn computed stays in the key-value cache. When the context is full, the oldest turns are dropped,
    which is said to `notice`.
    """

    def __init__(
        self, model: Any, tokenizer: Any, system: str | None = None, notice: Callable[[str], object] = warnings.warn
    ):
        if not getattr(tokenizer, "chat_template", None):
            raise ArgumentError(
                "this model has no chat template: it was not made for conversations",
                "a model whose tokenizer has a chat_template, such as SmolLM2-135M-Instruct",
                fix="let it continue a text: minigrad sample",
            )
        self.model, self.tokenizer, self.notice = model, tokenizer, notice
        self.messages: list[dict[str, str]] = [{"role": "system", "content": system}] if system else []
        self._continuation = LanguageModel(model)
        self._seen: list[int] = []  # what the cache holds

    def say(self, text: str, *, tokens: int = 512, sampling: Sampling | None = None, seed: int = 0) -> Iterator[str]:
        """The answer to a text, in pieces as they come, of at most so many tokens.

        An answer that the caller stops reading counts as far as it came.
        """
        self.messages.append({"role": "user", "content": text})
        prompt = self._prompt(tokens)
        answer: list[str] = []
        try:
            for piece in self._pieces(prompt, tokens, sampling, seed):
                answer.append(piece)
                yield piece
        finally:
            self.messages.append({"role": "assistant", "content": "".join(answer)})

    def _prompt(self, tokens: int) -> list[int]:
        """The tokens of the conversation; the oldest turns are dropped until an answer has room."""
        room = self.model.context - min(tokens, self.model.context // 4)
        dropped = 0
        while True:
            ids = chat_ids(self.tokenizer, self.messages)
            first = next((i for i, turn in enumerate(self.messages) if turn["role"] != "system"), 0)
            if len(ids) <= room or len(self.messages) - first <= 1:
                break
            later = [i for i in range(first + 1, len(self.messages)) if self.messages[i]["role"] == "user"]
            del self.messages[first : later[0]]
            dropped += 1
        if dropped:
            self.notice(f"the conversation is longer than the model's {self.model.context:,} tokens: "
                        f"its {'oldest turn is' if dropped == 1 else f'{dropped} oldest turns are'} forgotten")  # fmt: skip
        if len(ids) > room:
            self.notice(
                f"the text has {len(ids):,} tokens and the model sees {self.model.context:,}: only its end counts"
            )
            ids = ids[-room:]
        return ids

    def _pieces(self, prompt: list[int], tokens: int, sampling: Sampling | None, seed: int) -> Iterator[str]:
        known = len(self._seen)
        if not known or prompt[:known] != self._seen or len(prompt) == known:
            self._continuation, self._seen, known = LanguageModel(self.model), [], 0
        stream, end = TextStream(self.tokenizer, prompt), {self.tokenizer.eos_id}
        self._seen = list(prompt)
        drawn = generate(
            self._continuation, np.array([prompt[known:]]), length=tokens, sampling=sampling, seed=seed, end=end
        )
        previous: int | None = None
        for (token,) in drawn:
            if previous is not None:
                self._seen.append(previous)
            if int(token) in end:
                break
            previous = int(token)
            if piece := stream.push(previous):
                yield piece
        if rest := stream.finish():
            yield rest
