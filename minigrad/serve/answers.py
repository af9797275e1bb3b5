"""What the verbs of a model answer over the network, as JSON: these functions run in the thread that computes."""

from __future__ import annotations

import base64
import binascii
import math
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..decode.translation import spelt
from ..engine.modes import no_grad
from ..errors import ArgumentError, MinigradError
from ..nn import watch_attention
from ..ops.creation import tensor
from ..tree import jsonable

__all__ = ["verbs_for"]

SUFFIX = re.compile(r"\.[a-z0-9]{1,5}")


def verbs_for(loaded: Any) -> dict[str, Callable[..., list[Any]]]:
    """What a server can call of a loaded model: functions of a list of inputs, by name."""
    found: dict[str, Callable[..., list[Any]]] = {}
    if loaded.spec.predict is not None:
        found["predict"] = lambda inputs: predicted(loaded, inputs)
    if "translate" in loaded.verbs:
        found["translate"] = lambda texts, details=False, **options: translated(loaded, texts, details, options)
    if "embed" in loaded.verbs:
        found["embed"] = lambda texts: jsonable(loaded.embed(texts))
    return found


def predicted(loaded: Any, inputs: list[str | Mapping[str, str]]) -> list[Any]:
    """What `predict` says. Where an input may be a file, a client sends what is in it and never its path.

    For a model whose spec has `plain_inputs`, a text of another form is the content of a text file, and
    {"base64": …, "suffix": ".png"} that of any other.
    """
    plain = loaded.spec.plain_inputs
    with tempfile.TemporaryDirectory(prefix="minigrad-") as folder:
        words = [_word(one, plain, Path(folder) / str(number)) for number, one in enumerate(inputs)]
        try:
            answers = loaded.predict(*words)
        except MinigradError as error:
            if folder not in str(error):
                raise
            text = re.sub(rf"'?{re.escape(folder)}[^\s',]*'?", "the file", str(error))
            raise ArgumentError(text) from None
    for word, given, answer in zip(words, inputs, answers):
        if isinstance(answer, dict) and answer.get("input") == word:
            answer["input"] = given if isinstance(given, str) else "the file"
    return [jsonable(answer) for answer in answers]


def _word(given: str | Mapping[str, str], plain: str | None, place: Path) -> str:
    """An input as `predict` takes it; what is the content of a file is written to one."""
    if plain is None:
        if isinstance(given, str):
            return given
        raise ArgumentError("this model reads no files", "a text")
    if isinstance(given, str):
        if re.fullmatch(plain, given.strip()):
            return given
        place.write_text(given, encoding="utf-8")
        return str(place)
    suffix = given.get("suffix", "")
    try:
        content = base64.b64decode(given["base64"], validate=True)
    except (KeyError, binascii.Error, ValueError):
        raise ArgumentError("this file cannot be read", "its bytes in base64") from None
    if not SUFFIX.fullmatch(suffix):
        raise ArgumentError("a file needs the suffix that says its kind", "such as .png", repr(suffix)[:60])
    place = place.with_suffix(suffix)
    place.write_bytes(content)
    return str(place)


def translated(loaded: Any, texts: list[str], details: bool, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Translations, best first, with their scores; with `details`, where each word looked, for the page."""
    return [_as_json(loaded, one, details) for one in loaded.translate(texts, **options)]


def _as_json(loaded: Any, found: Any, details: bool) -> dict[str, Any]:
    made = {
        "text": found.text, "score": found.score, "confidence": found.confidence, "doubtful": found.is_doubtful,
        "unknown": found.unknown,
        "alternatives": [{"text": text, "score": score} for score, text in found.best],
    }  # fmt: skip
    if details:
        made["pieces"] = [_piece(loaded, piece, found.prompt) for piece in found.pieces]
    return made


def _piece(loaded: Any, piece: Any, prompt: list[int]) -> dict[str, Any]:
    """The tokens of a piece and of its best translation, how sure each was, and where it looked."""
    tokenizer, branch = loaded.tokenizer, piece.hypotheses[0].branch
    tokens, scores = [], []
    while branch.parent is not None:
        tokens.append(branch.token)
        scores.append(branch.score - branch.parent.score)
        branch = branch.parent
    tokens, scores = tokens[::-1], scores[::-1]
    with no_grad(), watch_attention(loaded.model) as seen:
        loaded.model(tensor([piece.ids]), tensor([[*prompt, *tokens[:-1]]]))
    size = len(piece.ids)
    crosses = [w for calls in seen.values() for w in calls if w.shape[-2:] == (len(prompt) + len(tokens) - 1, size)]
    looked = crosses[-1].numpy()[0].mean(axis=0)[len(prompt) - 1 :] if crosses else np.zeros((0, 0))  # (T, S)
    return {
        "source": [spelt(tokenizer, token) for token in piece.ids],
        "target": [spelt(tokenizer, token) for token in tokens],
        "chances": [math.exp(score) for score in scores], "seen": jsonable(looked),
    }  # fmt: skip
