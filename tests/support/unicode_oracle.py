"""What the `tokenizers` package takes for a letter, a space, an accent …, asked for every code point.

python -m tests.support.unicode_oracle    # writes minigrad/tokenizers/unicode_ranges.py anew

Its parts were built with different versions of Unicode, and none is Python's, so the classes are kept as ranges.
"""

from __future__ import annotations

import functools
import textwrap
from pathlib import Path

from minigrad.tokenizers.unicode_ranges import RANGES

# Classes that the package cannot be asked for one by one: parts of grapheme clusters, and what has no normal form there.
KEPT = ("EXTENDER", "PREPEND", "CONTROL", "UNNORMALIZED")

CHARACTERS = [chr(i) for i in range(0x110000) if not 0xD800 <= i < 0xE000]
PATH = Path(__file__).parents[2] / "minigrad" / "tokenizers" / "unicode_ranges.py"

HEADER = '''"""Classes of characters as the `tokenizers` package has them, as ranges; written by tests/support/unicode_oracle.py.

Its regular expressions, its BERT parts and its normal forms come from different versions of Unicode, and Python's own
tables change with its version. A range is two numbers in base 36: how many characters are skipped, how many are in it.
"""

RANGES = {
'''

# Each as a regular expression of Oniguruma, which the `Split` and `Replace` of the package use.
ONIGURUMA = {
    "LETTER": r"\p{L}",
    "UPPERCASE": r"\p{Lu}\p{Lt}",
    "LOWERCASE": r"\p{Ll}",
    "MARK": r"\p{M}",
    "NUMBER": r"\p{N}",
    "DIGIT": r"\p{Nd}",
    "PUNCTUATION": r"\p{P}",
    "SYMBOL": r"\p{S}",
    "SPACE": r"\s",
}


@functools.cache
def classes() -> dict[str, set[str]]:
    """Name of a class -> its characters, all found by asking the package."""
    from tokenizers import Regex, normalizers, pre_tokenizers

    everything = "".join(CHARACTERS)
    found = {
        name: set(normalizers.Replace(Regex(f"[^{pattern}]"), "").normalize_str(everything))
        for name, pattern in ONIGURUMA.items()
    }
    bert = functools.partial(
        normalizers.BertNormalizer,
        clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False,
    )  # fmt: skip
    removed_by = {
        "BERT_CONTROL": bert(clean_text=True),
        "BERT_ACCENT": bert(strip_accents=True),
        "ACCENT": normalizers.StripAccents(),
    }
    for name, normalizer in removed_by.items():
        found[name] = {c for c in CHARACTERS if normalizer.normalize_str(c) == ""}
    punctuation = pre_tokenizers.Punctuation("removed")
    found["BERT_PUNCTUATION"] = {c for c in CHARACTERS if not punctuation.pre_tokenize_str(c)}
    numeric, word = pre_tokenizers.Digits(False), pre_tokenizers.Whitespace()
    found["NUMERIC"] = {c for c in CHARACTERS if len(numeric.pre_tokenize_str("a" + c)) == 2}
    joined = {c for c in CHARACTERS if len(word.pre_tokenize_str("a" + c)) == 1} - found["SPACE"]
    found["WORD_REST"] = joined - found["LETTER"] - found["MARK"] - found["DIGIT"]
    return found


def ranges_text(characters: set[str]) -> str:
    """Characters as the text of ranges that `minigrad.tokenizers.characters` reads."""
    ranges: list[list[int]] = []
    for code in sorted(map(ord, characters)):
        if ranges and ranges[-1][1] == code:
            ranges[-1][1] += 1
        else:
            ranges.append([code, code + 1])
    numbers, end = [], 0
    for first, last in ranges:
        numbers += [first - end, last - first]
        end = last
    return " ".join(map(base36, numbers))


def base36(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    return (base36(number // 36) if number >= 36 else "") + digits[number % 36]


def main() -> None:
    lines = [HEADER.rstrip("\n")]
    texts = {name: ranges_text(characters) for name, characters in classes().items()}
    for name, text in {**texts, **{name: RANGES[name] for name in KEPT}}.items():
        lines.append(f'    "{name}": """')
        lines += textwrap.wrap(" ".join(text.split()), 118)
        lines.append('""",')
    PATH.write_text("\n".join([*lines, "}", ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
