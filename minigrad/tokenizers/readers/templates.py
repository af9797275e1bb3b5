"""Parts of a description that several readers write: added tokens, and templates of special tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["added_token", "template"]

Token = tuple[str, int]


def added_token(content: str, id: int, *, special: bool, **options: bool) -> dict[str, Any]:
    """An entry of `added_tokens`."""
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": id, "content": content, **plain, "special": special, **options}


def template(before: Sequence[Token], after: Sequence[Token]) -> dict[str, Any] | None:
    """A post-processor that puts some tokens before a text, or before the first of two, and some after each; or None."""
    if not before and not after:
        return None
    first = [{"SpecialToken": {"id": token, "type_id": 0}} for token, _ in before]
    first.append({"Sequence": {"id": "A", "type_id": 0}})
    first += [{"SpecialToken": {"id": token, "type_id": 0}} for token, _ in after]
    second = [{"Sequence": {"id": "B", "type_id": 1}}]
    second += [{"SpecialToken": {"id": token, "type_id": 1}} for token, _ in after]
    tokens = {token: {"id": token, "ids": [i], "tokens": [token]} for token, i in (*before, *after)}
    return {"type": "TemplateProcessing", "single": first, "pair": first + second, "special_tokens": tokens}
