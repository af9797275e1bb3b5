"""The JSON interface of minigrad itself: what is served, and its verbs `predict`, `translate`, `embed` and `sample`."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from typing import Any

from ..decode import Sampling
from ..decode.text_stream import beginning, known_ids
from .fields import Fields
from .http import Refusal, Response, as_json
from .inbox import Events, answers_of, check_room
from .openai import OpenAI
from .text import End, Text
from .worker import Worker

__all__ = ["Api"]

MOST_INPUTS = 64
MOST_BEAMS = 16
SHOWN = 8  # tokens that might have come instead, of each


class Api:
    """Answers requests for a loaded model, at most so many `tokens` each."""

    def __init__(self, loaded: Any, worker: Worker, openai: OpenAI | None, tokens: int):
        self.loaded, self.worker, self.openai, self.tokens = loaded, worker, openai, tokens

    def described(self) -> dict[str, Any]:
        """`GET /api`: what is served, and what a request may ask for."""
        spec = self.loaded.spec
        paths = [f"/api/{verb}" for verb in self.worker.verbs if verb != "page"]
        if self.openai is not None:
            chat = ["/v1/chat/completions"] if self.openai.has_chat else []
            paths += ["/api/sample", "/v1/models", "/v1/completions", *chat]
        limits = {"inputs": MOST_INPUTS, "beams": MOST_BEAMS, "tokens": self.tokens, "texts": self.worker.places}
        return {
            "model": spec.name, "task": spec.task, "summary": spec.summary, "paths": paths, "limits": limits,
            "examples": spec.inputs_for(self.loaded.config),
        }  # fmt: skip

    async def predict(self, given: dict[str, Any]) -> Response:
        """`POST /api/predict`: {"inputs": […]} -> {"answers": […]}."""
        fields = Fields(given)
        inputs = fields.get("inputs")
        inputs = [inputs] if isinstance(inputs, (str, dict)) else inputs
        if not isinstance(inputs, list) or len(inputs) > MOST_INPUTS:
            raise fields.refuse("inputs", f"a list of at most {MOST_INPUTS} inputs")
        for one in inputs:
            if isinstance(one, dict) and all(isinstance(value, str) for value in one.values()):
                continue
            if not isinstance(one, str):
                raise fields.refuse("inputs", 'of texts, or of files as {"base64": …, "suffix": ".png"}')
            Fields({"inputs": one}).text("inputs")
        fields.close()
        return Response(body=as_json({"answers": await answers_of(self.worker, "predict", inputs)}))

    async def embed(self, given: dict[str, Any]) -> Response:
        """`POST /api/embed`: {"texts": […]} -> {"vectors": [[…]]}."""
        fields = Fields(given)
        texts = fields.texts("texts", MOST_INPUTS)
        fields.close()
        return Response(body=as_json({"vectors": await answers_of(self.worker, "embed", texts)}))

    async def translate(self, given: dict[str, Any]) -> Response:
        """`POST /api/translate`: {"texts": […], "beams": 5, "alpha": 1.0} -> {"translations": [{"text": …, …}]}."""
        fields = Fields(given)
        texts = fields.texts("texts", MOST_INPUTS)
        options: dict[str, Any] = {}
        if fields.get("beams") is not None:
            options["beams"] = fields.whole("beams", None, 1, MOST_BEAMS)
        if fields.get("alpha") is not None:
            options["alpha"] = fields.number("alpha", 0, 0, 10)
        if fields.flag("details"):
            options["details"] = True
        fields.close()
        found = await answers_of(self.worker, "translate", texts, **options)
        return Response(body=as_json({"translations": found}))

    async def sample(self, given: dict[str, Any]) -> Response:
        """`POST /api/sample`: {"prompt": "…", "tokens": 200, …} -> {"text": …, "reason": …, "tokens": n}, or its parts."""
        assert self.openai is not None
        fields = Fields(given)
        notes: list[str] = []
        prompt = fields.text("prompt", "")
        sampling = Sampling(
            fields.number("temperature", 0.8, 0, 100),
            fields.whole("top_k", None, 1, 1_000_000),
            None if fields.get("top_p") is None else fields.number("top_p", 1, 1e-6, 1),
            fields.number("repetition_penalty", 1.0, 1, 100),
        )
        tokens, stop, seed = (
            fields.whole("tokens", 200, 1, self.tokens),
            fields.stops(),
            fields.whole("seed", None, 0, 2**63),
        )
        is_stream, shown = fields.flag("stream"), fields.flag("chances")
        fields.close()
        check_room(self.worker)
        tokenizer = self.loaded.tokenizer
        ids = await asyncio.to_thread(known_ids, tokenizer, prompt, notes.append)  # a long one takes a while

        def make(tell: Callable[[Any], None], number: int) -> Text:
            return Text(
                self.loaded, ids or beginning(tokenizer), tell, tokens=tokens,
                sampling=sampling.without(tokenizer.unwritten), stop=stop, seed=seed,
                end=frozenset([tokenizer.eos_id]), likeliest=SHOWN if shown else None,
                temperature=sampling.temperature or 1.0,
            )  # fmt: skip

        events = Events(self.worker, make)
        if is_stream:
            return Response(kind="text/event-stream", stream=self._parts(events, notes), close=events.close)
        try:
            parts = [self._part(event) async for _, event in events]
        finally:
            events.close()
        whole = {"text": "".join(part.get("text", "") for part in parts), **parts[-1], "notes": notes}
        if shown:
            whole["chances"] = [part["chance"] for part in parts if "chance" in part]
        return Response(body=as_json(whole))

    async def _parts(self, events: Events, notes: list[str]) -> AsyncIterator[bytes]:
        try:
            async for _, event in events:
                more = {"notes": notes} if isinstance(event, End) else {}
                yield b"data: " + as_json({**self._part(event), **more}) + b"\n\n"
        except Refusal as refusal:  # the head has been sent
            yield b"data: " + as_json(refusal.body) + b"\n\n"

    def _part(self, event: Any) -> dict[str, Any]:
        if isinstance(event, End):
            return {"reason": event.reason, "tokens": event.written}
        if event.chance is None:
            return {"text": event.text}
        likeliest = [{"token": self._token(i), "chance": math.exp(value)} for i, value in event.chance.likeliest]
        return {"text": event.text, "chance": {"token": self._token(event.chance.token), "next": likeliest}}

    def _token(self, token: int) -> str:
        return str(self.loaded.tokenizer.decode([token]))
