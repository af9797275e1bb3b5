"""Regular expressions of Python as those of JavaScript."""

from __future__ import annotations

import re

__all__ = ["script_pattern"]

LETTER = r"[\p{L}\p{N}_]"  # what \w is in Python


def script_pattern(pattern: str) -> str:
    """A regular expression of Python as one of JavaScript with the flag u, which knows letters of all scripts.

    >>> script_pattern("[\\\\U0001f000-\\\\U0001faff]")
    '[\\\\u{1f000}-\\\\u{1faff}]'
    """
    pattern = re.sub(r"\\U([0-9a-f]{8})", lambda found: f"\\u{{{int(found[1], 16):x}}}", pattern)
    pattern = pattern.replace(r"\b", rf"(?:(?<={LETTER})(?!{LETTER})|(?<!{LETTER})(?={LETTER}))")
    return pattern.replace(r"\w", LETTER)
