"""Chats as text: the template that comes with a model writes the messages in the form that it was trained on.

A template is a program of a stranger, in Jinja. It runs in a process of its own (chat_worker.py), in Jinja's sandbox, and
is stopped when it takes too long.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..data.errors import DataError
from ..errors import ArgumentError
from .tokenizer import SPECIAL_NAMES, PretrainedTokenizer

__all__ = ["chat_ids", "chat_text", "render"]

SECONDS = 10.0
WORKER = Path(__file__).with_name("chat_worker.py")

Message = Mapping[str, Any]


def render(
    template: str,
    messages: Sequence[Message],
    add_generation_prompt: bool = False,
    *,
    seconds: float = SECONDS,
    **variables: Any,
) -> str:
    """The text that a chat template makes of messages, `[{"role": "user", "content": "Hello"}, …]`.

    `add_generation_prompt` adds the words after which the model answers. `variables` are other things that a template
    may ask for: `bos_token="<s>"`, `tools=[…]`, …

    >>> render("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}", [{"role": "user", "content": "Hi"}])
    '<user>Hi'
    """
    if importlib.util.find_spec("jinja2") is None:
        raise ArgumentError("chat templates need jinja2, which is not installed", fix="pip install 'minigrad[hub]'")
    variables = {"tools": None, "documents": None, **variables, "add_generation_prompt": add_generation_prompt}
    try:
        task = json.dumps({"template": template, "variables": {**variables, "messages": list(messages)}})
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"render: messages are texts, numbers, lists and dicts: {error}") from None
    command = [sys.executable, "-I", str(WORKER)]
    try:
        done = subprocess.run(command, input=task.encode(), capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise DataError("render: the chat template takes too long", f"at most {seconds:g} s") from None
    try:
        answer: dict[str, str] = json.loads(done.stdout)
    except ValueError:
        raise DataError("render: the chat template asked for too much memory, or broke its process") from None
    if "refused" in answer:
        raise ArgumentError(f"render: the chat template does not take these messages: {answer['refused']}"[:500])
    if "wrong" in answer:
        raise DataError(f"render: the chat template cannot be used: {answer['wrong']}"[:500])
    return answer["text"]


def chat_text(
    tokenizer: PretrainedTokenizer, messages: Sequence[Message], add_generation_prompt: bool = True, **variables: Any
) -> str:
    """The text of a chat, by the template of a tokenizer."""
    if tokenizer.chat_template is None:
        raise ArgumentError("chat_text: this model has no chat template", fix="give a prompt as plain text")
    named = {
        name: tokenizer.token(i)
        for name in SPECIAL_NAMES
        if (i := getattr(tokenizer, name.replace("token", "id"))) is not None
    }
    return render(tokenizer.chat_template, messages, add_generation_prompt, **{**named, **variables})


def chat_ids(
    tokenizer: PretrainedTokenizer, messages: Sequence[Message], add_generation_prompt: bool = True, **variables: Any
) -> list[int]:
    """The ids of a chat; its special tokens are those that the template wrote."""
    return tokenizer.encode(chat_text(tokenizer, messages, add_generation_prompt, **variables), special=False)
