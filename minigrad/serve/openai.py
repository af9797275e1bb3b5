"""OpenAI's interface to language models: `/v1/models`, `/v1/completions` and `/v1/chat/completions`, whole or streamed.

What a request asks for and this server cannot do is refused by name, since a client would take silence for consent.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..decode import Sampling
from ..decode.text_stream import beginning
from ..errors import MinigradError
from .fields import Fields
from .http import Refusal, Response, as_json
from .inbox import Events, check_room
from .text import Chance, End, Piece, Text
from .worker import Worker

__all__ = ["OpenAI"]

ROLES = ("system", "developer", "user", "assistant")
MOST_MESSAGES = 1000
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "presence_penalty": (0,), "frequency_penalty": (0,), "logit_bias": ({},), "best_of": (1,), "suffix": ("",),
    "tools": ([],), "tool_choice": ("none", "auto"), "functions": ([],), "response_format": ({"type": "text"},),
    "modalities": (["text"],),
}  # fmt: skip
IGNORED = ("user", "metadata", "store", "service_tier", "safety_identifier", "parallel_tool_calls", "prompt_cache_key")


@dataclass
class Choice:
    """One answer so far: its text, how it ended, and the chances of its tokens."""

    text: list[str] = field(default_factory=list)
    chances: list[Chance] = field(default_factory=list)
    end: End | None = None


@dataclass(frozen=True)
class Wanted:
    """What a request asks for: prompts as tokens, how often each is continued, and how."""

    prompts: list[list[int]]
    count: int
    tokens: int
    sampling: Sampling
    stop: list[str]
    seed: int | None
    likeliest: int | None
    is_stream: bool
    has_usage: bool
    is_echo: bool = False

    @property
    def read(self) -> int:
        return sum(map(len, self.prompts))


class OpenAI:
    """Answers requests for the loaded model `name`, at most so many `tokens` each."""

    def __init__(self, loaded: Any, worker: Worker, name: str, tokens: int):
        self.loaded, self.worker, self.name, self.tokens = loaded, worker, name, tokens
        self.created = int(time.time())
        self.has_chat = bool(getattr(loaded.tokenizer, "chat_template", None))

    def models(self) -> dict[str, Any]:
        """The list of the one model."""
        return {"object": "list", "data": [self.model()]}

    def model(self) -> dict[str, Any]:
        """The model as OpenAI describes one."""
        return {"id": self.name, "object": "model", "created": self.created, "owned_by": "minigrad"}

    async def complete(self, given: dict[str, Any]) -> Response:
        """`POST /v1/completions`: texts continued."""
        fields = Fields(given)
        self._check_model(fields)
        given_prompts = _prompts(fields)
        check_room(self.worker)
        prompts = await asyncio.to_thread(lambda: [self._ids(one) for one in given_prompts])  # a long one takes a while
        likeliest = fields.whole("logprobs", None, 0, 20)
        is_echo = fields.flag("echo")
        if is_echo and likeliest is not None:
            raise Refusal(400, "logprobs are not told of a prompt that is echoed", "echo", "unsupported")
        tokens = fields.whole("max_tokens", 16, 1, self.tokens)
        wanted = self._wanted(fields, prompts, tokens, likeliest, is_echo=is_echo)
        return await self._answered(wanted, _Completion(self, f"cmpl-{secrets.token_hex(12)}"))

    async def chat(self, given: dict[str, Any]) -> Response:
        """`POST /v1/chat/completions`: a conversation continued, by the chat template of the model."""
        fields = Fields(given)
        self._check_model(fields)
        if not self.has_chat:
            raise Refusal(400, f"{self.name} has no chat template: it continues texts, by /v1/completions", "messages")
        messages = _messages(fields)
        check_room(self.worker)
        try:  # the template runs in a process of its own
            ids = await asyncio.to_thread(_chat_ids, self.loaded.tokenizer, messages)
        except MinigradError as error:
            raise Refusal(400, str(error).splitlines()[0], "messages") from None
        likeliest = fields.whole("top_logprobs", None, 0, 20)
        if not fields.flag("logprobs"):
            if likeliest is not None:
                raise Refusal(400, "top_logprobs needs logprobs to be true", "top_logprobs")
        else:
            likeliest = likeliest or 0
        room = max(min(self.tokens, self.loaded.model.context - len(ids)), 1)
        old = fields.whole("max_tokens", None, 1, self.tokens)
        tokens = fields.whole("max_completion_tokens", old or room, 1, self.tokens)
        wanted = self._wanted(fields, [ids], tokens, likeliest)
        return await self._answered(wanted, _Chat(self, f"chatcmpl-{secrets.token_hex(12)}"))

    def _check_model(self, fields: Fields) -> None:
        if fields.text("model", self.name) != self.name:
            raise Refusal(404, f"there is one model here, {self.name!r}", "model", "model_not_found")

    def _ids(self, prompt: str | list[int]) -> list[int]:
        """The tokens of a prompt; those of an empty one are what texts of this model begin with."""
        tokenizer = self.loaded.tokenizer
        ids = tokenizer.encode(prompt) if isinstance(prompt, str) else prompt
        if not all(0 <= i < tokenizer.vocab_size for i in ids):
            raise Refusal(400, f"a token is a number below {tokenizer.vocab_size:,}", "prompt")
        unknown = tokenizer.unk_id
        return [i for i in ids if i != unknown] or beginning(tokenizer)

    def _wanted(
        self, fields: Fields, prompts: list[list[int]], tokens: int, likeliest: int | None, **more: Any
    ) -> Wanted:
        longest, context = max(map(len, prompts)), self.loaded.model.context
        if longest + tokens > context and longest + 1 > context:
            raise Refusal(
                400, f"the model sees {context:,} tokens, and the prompt has {longest:,}", "prompt",
                "context_length_exceeded",
            )  # fmt: skip
        sampling = Sampling(
            fields.number("temperature", 1.0, 0, 2),
            fields.whole("top_k", None, 1, 1_000_000),
            fields.number("top_p", 1.0, 1e-6, 1) if fields.get("top_p") not in (None, 1, 1.0) else None,
            fields.number("repetition_penalty", 1.0, 1, 10),
        )
        options = fields.get("stream_options", {})
        if not isinstance(options, dict):
            raise fields.refuse("stream_options", "an object")
        count = fields.whole("n", 1, 1, self.worker.places)
        if count * len(prompts) > self.worker.places:
            raise Refusal(400, f"at most {self.worker.places} texts are written for a request", "n")
        for name, neutral in NEUTRAL.items():
            fields.only(name, neutral)
        fields.ignore(*IGNORED)
        wanted = Wanted(
            prompts, count, min(tokens, context - longest + 1), sampling, fields.stops(),
            fields.whole("seed", None, -(2**63), 2**64), likeliest, fields.flag("stream"),
            bool(options.get("include_usage")), **more,
        )  # fmt: skip
        fields.close()
        return wanted

    async def _answered(self, wanted: Wanted, form: _Form) -> Response:
        tokenizer = self.loaded.tokenizer
        never = () if isinstance(form, _Chat) else tokenizer.unwritten

        def make(tell: Callable[[Any], None], number: int) -> Text:
            which, again = divmod(number, wanted.count)
            seed = None if wanted.seed is None else (abs(wanted.seed) + again)
            return Text(
                self.loaded, wanted.prompts[which], tell, tokens=wanted.tokens, sampling=wanted.sampling.without(never),
                stop=wanted.stop, seed=seed, end=frozenset([tokenizer.eos_id]), likeliest=wanted.likeliest,
            )  # fmt: skip

        events = Events(self.worker, make, len(wanted.prompts) * wanted.count)
        if wanted.is_stream:
            return Response(kind="text/event-stream", stream=_streamed(events, wanted, form), close=events.close)
        choices = [form.begun(wanted, number) for number in range(len(wanted.prompts) * wanted.count)]
        try:
            async for number, event in events:
                _add(choices[number], event)
        finally:
            events.close()
        found = [form.choice(number, one) for number, one in enumerate(choices)]
        return Response(body=as_json(form.whole(found, _usage(wanted, choices))))


class _Form:
    """How answers are written: the parts that completions and chats have in common."""

    kind = part_kind = ""

    def __init__(self, openai: OpenAI, name: str):
        self.openai, self.name, self.created = openai, name, int(time.time())
        self.tokenizer = openai.loaded.tokenizer

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.name, "object": kind, "created": self.created, "model": self.openai.name}

    def whole(self, choices: list[dict[str, Any]], usage: dict[str, int]) -> dict[str, Any]:
        return {**self._head(self.kind), "choices": choices, "usage": usage}

    def part(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        return b"data: " + as_json({**self._head(self.part_kind), "choices": choices, **more}) + b"\n\n"

    def begun(self, wanted: Wanted, number: int) -> Choice:
        """An answer before its first token: empty, or the prompt that is echoed."""
        prompt = wanted.prompts[number // wanted.count]
        return Choice([self.tokenizer.decode(prompt)] if wanted.is_echo else [])

    def first(self, number: int) -> dict[str, Any] | None:
        """What a stream begins with."""
        return None

    def choice(self, number: int, choice: Choice) -> dict[str, Any]:
        raise NotImplementedError

    def delta(self, number: int, choice: Choice) -> dict[str, Any]:
        raise NotImplementedError

    def _token(self, token: int) -> str:
        return str(self.tokenizer.decode([token]))


class _Completion(_Form):
    kind = part_kind = "text_completion"

    def choice(self, number: int, choice: Choice) -> dict[str, Any]:
        return {
            "index": number, "text": "".join(choice.text), "logprobs": self._logprobs(choice),
            "finish_reason": None if choice.end is None else choice.end.reason,
        }  # fmt: skip

    delta = choice

    def _logprobs(self, choice: Choice) -> dict[str, Any] | None:
        if not choice.chances:
            return None
        tokens = [self._token(one.token) for one in choice.chances]
        return {
            "tokens": tokens, "token_logprobs": [one.logarithm for one in choice.chances],
            "top_logprobs": [{self._token(i): value for i, value in one.likeliest} for one in choice.chances],
            "text_offset": [sum(map(len, tokens[:i])) for i in range(len(tokens))],
        }  # fmt: skip


class _Chat(_Form):
    kind, part_kind = "chat.completion", "chat.completion.chunk"

    def choice(self, number: int, choice: Choice) -> dict[str, Any]:
        message = {"role": "assistant", "content": "".join(choice.text), "refusal": None}
        return {**self._ended(number, choice), "message": message}

    def delta(self, number: int, choice: Choice) -> dict[str, Any]:
        return {**self._ended(number, choice), "delta": {"content": "".join(choice.text)} if choice.text else {}}

    def first(self, number: int) -> dict[str, Any] | None:
        delta = {"role": "assistant", "content": ""}
        return {"index": number, "delta": delta, "logprobs": None, "finish_reason": None}

    def _ended(self, number: int, choice: Choice) -> dict[str, Any]:
        content = [self._entry(one.token, one.logarithm, one.likeliest) for one in choice.chances]
        return {
            "index": number, "logprobs": {"content": content, "refusal": None} if content else None,
            "finish_reason": None if choice.end is None else choice.end.reason,
        }  # fmt: skip

    def _entry(
        self, token: int, logarithm: float, likeliest: Sequence[tuple[int, float]] | None = None
    ) -> dict[str, Any]:
        text = self._token(token)
        entry = {"token": text, "logprob": logarithm, "bytes": list(text.encode())}
        return entry if likeliest is None else {**entry, "top_logprobs": [self._entry(*one) for one in likeliest]}


def _add(choice: Choice, event: Any) -> None:
    if isinstance(event, End):
        choice.end = event
    elif isinstance(event, Piece):
        choice.text.append(event.text)
        if event.chance is not None:
            choice.chances.append(event.chance)


async def _streamed(events: Events, wanted: Wanted, form: _Form) -> AsyncIterator[bytes]:
    choices = [Choice() for _ in range(len(wanted.prompts) * wanted.count)]
    more = {"usage": None} if wanted.has_usage else {}
    try:
        for number in range(len(choices)):
            if (first := form.first(number)) is not None:
                yield form.part([first], **more)
            elif wanted.is_echo:
                yield form.part([form.delta(number, form.begun(wanted, number))], **more)
        async for number, event in events:
            new = Choice()
            _add(new, event)
            choices[number].end = new.end
            yield form.part([form.delta(number, new)], **more)
        if wanted.has_usage:
            yield form.part([], usage=_usage(wanted, choices))
        yield b"data: [DONE]\n\n"
    except Refusal as refusal:  # the head has been sent
        yield b"data: " + as_json(refusal.body) + b"\n\n"


def _usage(wanted: Wanted, choices: list[Choice]) -> dict[str, int]:
    written = sum(choice.end.written for choice in choices if choice.end is not None)
    read = wanted.read
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _prompts(fields: Fields) -> list[str | list[int]]:
    """A prompt may be a text, a list of texts, a list of tokens, or a list of such lists."""
    given = fields.get("prompt", "")
    if isinstance(given, str):
        return [fields.text("prompt", "")]
    if isinstance(given, list) and given:
        if all(isinstance(one, str) for one in given):
            return [*fields.texts("prompt", 1000)]
        if _are_tokens(given):
            return [given]
        if all(isinstance(one, list) and _are_tokens(one) for one in given):
            return given
    raise fields.refuse("prompt", "a text, a list of texts, or tokens")


def _are_tokens(given: list[Any]) -> bool:
    return all(isinstance(one, int) and not isinstance(one, bool) for one in given)


def _messages(fields: Fields) -> list[dict[str, str]]:
    given = fields.get("messages")
    if not isinstance(given, list) or not 0 < len(given) <= MOST_MESSAGES:
        raise fields.refuse("messages", f"a list of 1 to {MOST_MESSAGES} messages")
    found = []
    for number, one in enumerate(given):
        place = f"messages[{number}]"
        if not isinstance(one, dict) or one.get("role") not in ROLES:
            raise Refusal(400, f"{place} needs a role: {', '.join(ROLES)}", place)
        role = "system" if one["role"] == "developer" else one["role"]
        found.append({"role": role, "content": _content(one.get("content"), place)})
    return found


def _content(given: Any, place: str) -> str:
    """The text of a message, which may come in parts."""
    parts = given if isinstance(given, list) else [{"type": "text", "text": given}]
    for part in parts:
        if not isinstance(part, dict) or part.get("type") != "text" or not isinstance(part.get("text"), str):
            raise Refusal(400, f"{place} needs a content of text", place)
    return Fields({place: "".join(part["text"] for part in parts)}).text(place)


def _chat_ids(tokenizer: Any, messages: list[dict[str, str]]) -> list[int]:
    from ..tokenizers.chat import chat_ids

    return chat_ids(tokenizer, messages)
