"""The part of YAML that Marian writes its options in: one name and value a line, values that are lists, nothing nested."""

from __future__ import annotations

import json
import re
from typing import Any

from .mapped_file import MappedFile

__all__ = ["flat_yaml"]

_LIMIT = 1_000_000
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_NUMBER = re.compile(r"[-+]?(\d{1,18}|\d{1,18}\.\d*(e[-+]?\d{1,3})?|\d{1,18}e[-+]?\d{1,3})", re.ASCII | re.IGNORECASE)


def flat_yaml(file: MappedFile, text: bytes) -> dict[str, Any]:
    """The options by name: texts, numbers, truth values, None, and lists of them."""
    options: dict[str, Any] = {}
    name = None  # of an option whose value may be a list that follows
    if len(text) > _LIMIT:
        raise file.error("has options that are too long", f"at most {_LIMIT:,} bytes", f"{len(text):,}")
    for line in text.decode("utf-8", "replace").splitlines():
        bare = line.strip()
        if bare.startswith("- ") and name is not None:
            options[name] = options[name] or []
            options[name].append(_value(bare[2:].strip()))
        elif bare and not bare.startswith("#"):
            found = re.fullmatch(r"([\w.-]+):(?: +(.*))?", line.rstrip())
            if not found or found[1] in options:
                raise file.error("has options that cannot be read", "lines of `name: value` or `- value`", repr(line))
            options[found[1]] = _value((found[2] or "").strip())
            name = None if found[2] else found[1]
    return options


def _value(text: str) -> Any:
    """What a text stands for; a list in one line has no lists and no commas within quotes."""
    if text in _WORDS:
        return _WORDS[text]
    if text.startswith("[") and text.endswith("]"):
        return [_value(part.strip()) for part in text[1:-1].replace("[", "").split(",") if part.strip()]
    if text.startswith("'") and text.endswith("'") and len(text) > 1:
        return text[1:-1].replace("''", "'")
    if text.startswith('"'):
        try:
            return json.loads(text)
        except ValueError:
            return text
    if _NUMBER.fullmatch(text):
        return int(text) if text.lstrip("+-").isdigit() else float(text)
    return text
