"""The tokenizer of a pretrained model as a page reads it: its parts as lists of steps, in the names of runtime/pretrained.js."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...tokenizers import PretrainedTokenizer
from ...tokenizers.bpe import BPE
from ...tokenizers.characters import PLANES, compiled
from ...tokenizers.charsmap import CLUSTER
from ...tokenizers.decoders import CLEANUP
from ...tokenizers.normalizers import CHINESE, LOWERCASE, NMT
from ...tokenizers.patterns import GPT2, KNOWN, translated
from ...tokenizers.unigram import Unigram
from ...tokenizers.vocabulary import MARK
from ...tokenizers.wordpiece import WordLevel, WordPiece
from .scripts import script_pattern

__all__ = ["frame_of", "pretrained_form"]

Step = list[Any]
Steps = Iterator[Step]
# What is written there for letters of either size; one of them has a third form.
CASES = {"s": "sS\u017f"}


class Unknown(Exception):
    """A part that a page has no code for."""


def pretrained_form(tokenizer: PretrainedTokenizer) -> dict[str, Any]:
    """All parts of a tokenizer; the error `Unknown` names one that a page has no code for."""
    said = tokenizer.description
    steps = {
        name: [step for part in [said.get(key)] if part for step in read(part)]
        for name, key, read in (
            ("plain", "normalizer", plain),
            ("cut", "pre_tokenizer", cut),
            ("joined", "decoder", joined),
        )
    }
    vocabulary = tokenizer.model.vocabulary
    return {
        "kind": "pretrained", **steps,
        "tokens": [vocabulary.token(i) for i in range(len(vocabulary.tokens))],
        "model": model_form(tokenizer),
        "added": [
            {"id": i, "content": token.content, "form": tokenizer.added.forms[i], "special": token.special,
             "normalized": token.normalized, "single": token.single_word, "lstrip": token.lstrip, "rstrip": token.rstrip}
            for i, token in tokenizer.added.by_id.items()
        ],
        "frame": frame_of(tokenizer)[::2],
        "blank": None if tokenizer.mask_id is None else tokenizer.token(tokenizer.mask_id),
        "words": script("[{WORD}]"),
    }  # fmt: skip


def frame_of(tokenizer: PretrainedTokenizer) -> list[list[int]]:
    """The special tokens before a text, between two, and at the end, as a text of one word shows."""
    word, one = tokenizer.encode("a", special=False), tokenizer.encode("a")
    two, _ = tokenizer.encode_pair("a", "a")
    start = next(i for i in range(len(one) + 1) if one[i : i + len(word)] == word)
    before, after = one[:start], one[start + len(word) :]
    return [before, two[start + len(word) : len(two) - len(after) - len(word)], after]


def model_form(tokenizer: PretrainedTokenizer) -> dict[str, Any]:
    """What the model makes tokens with, besides its vocabulary."""
    model = tokenizer.model
    form: dict[str, Any] = {"kind": tokenizer.kind, "unknown": model.unk_id}
    spare = getattr(model, "bytes", None)
    form["bytes"] = [spare.get(byte) for byte in range(256)] if spare else None
    form["words"] = f"{MARK}*[^{MARK}]+|{MARK}+" if getattr(model, "_words", None) else None
    if isinstance(model, BPE):
        form |= {
            "merges": [number for pair, rank in model.by_rank() for number in (*pair, rank)], "prefix": model.prefix,
            "suffix": model.suffix, "fused": model.fuse_unk, "whole": model.ignore_merges,
            "frozen": _either_of(map(model.vocabulary.token, tokenizer.description["model"].get("user_defined_ids") or [])),
        }  # fmt: skip
    elif isinstance(model, WordPiece):
        form |= {"prefix": model.prefix, "longest": model.longest_word}
    elif isinstance(model, Unigram):
        ids = model.vocabulary.ids
        scores: list[float | None] = [None] * len(model.vocabulary.tokens)
        pieces = []
        for token, (score, number) in model.scores.items():
            if token in ids and number == ids[token]:
                scores[ids[token]] = score
            else:
                pieces.append([token, score])
        form |= {"scores": scores, "pieces": pieces, "worst": model.unk_score}
    else:
        assert isinstance(model, WordLevel)
    return form


def script(pattern: str) -> str:
    """A pattern of ours in JavaScript, with the same classes of characters as in Python."""
    exact = compiled(pattern).below(PLANES[-1]).pattern
    exact = exact.replace(r"\A", r"(?<![\s\S])").replace(r"\Z", r"(?![\s\S])")
    exact = re.sub(r"(?<!\\)\$$", r"(?=\\n|(?![\\s\\S]))", exact)
    exact = re.sub(r"\(\?i:([^)]*)\)", lambda found: f"(?:{_either(found[1])})", exact)
    return script_pattern(re.sub(r"""\\([ "#&',/:;<=>@`~!%-])""", _plainly, exact))


def _plainly(found: re.Match[str]) -> str:
    """A sign that needs no escape, as its number: JavaScript refuses escapes that nothing needs."""
    return f"\\u{ord(found[1]):04x}"


def _either(text: str) -> str:
    return re.sub("[a-z]", lambda found: f"[{CASES.get(found[0], found[0] + found[0].upper())}]", text)


def literal(text: str) -> str:
    """A text as a pattern that finds it; an empty one finds nothing."""
    return "".join(f"\\u{{{ord(character):x}}}" for character in text) or "(?!)"


def _either_of(texts: Iterable[str | None]) -> str:
    """A pattern that finds any of some texts, the longest that fits; empty for none."""
    return "|".join(map(literal, sorted(filter(None, texts), key=len, reverse=True)))


def pattern_of(part: dict[str, Any]) -> str:
    """The pattern of a part, a text or one of a known model."""
    given = part["pattern"]
    if "String" in given:
        return literal(given["String"])
    pattern = given["Regex"].replace("\r", r"\r").replace("\n", r"\n")
    if pattern not in KNOWN.values():
        raise Unknown(f"the pattern {pattern[:60]!r}")
    return script(translated(pattern))


def option(part: dict[str, Any], name: str, otherwise: Any) -> Any:
    """An option of a part, which may be missing, or null."""
    return otherwise if part.get(name) is None else part[name]


def of_kind(table: dict[str, Callable[[dict[str, Any]], Steps]], parts: str) -> Callable[[dict[str, Any]], Steps]:
    """Reads a part by its type, and a sequence of them one after the other."""

    def read(part: dict[str, Any]) -> Steps:
        if part["type"] == "Sequence":
            for one in part[parts]:
                yield from read(one)
        elif part["type"] in table:
            yield from table[part["type"]](part)
        else:
            raise Unknown(str(part["type"]))

    return read


def normal(form: str) -> Step:
    return ["normal", form, script("[{UNNORMALIZED}]")]


def _normal_form(form: str) -> Callable[[dict[str, Any]], Steps]:
    return lambda part: iter([normal(form)])


def lower() -> Step:
    return ["lower", [[chr(code), chr(small)] for code, small in LOWERCASE.items()]]


def _bert(part: dict[str, Any]) -> Steps:
    lowers = option(part, "lowercase", True)
    accents = part.get("strip_accents")
    if option(part, "clean_text", True):
        yield ["replaced", script("[{BERT_CONTROL}]+"), ""]
        yield ["replaced", script("[{SPACE}]"), " "]
    if option(part, "handle_chinese_chars", True):
        yield ["spaced", script_pattern(CHINESE.pattern)]
    if lowers if accents is None else accents:
        yield normal("NFD")
        yield ["replaced", script("[{BERT_ACCENT}]+"), ""]
    if lowers:
        yield lower()


def _nmt(part: dict[str, Any]) -> Steps:
    for content in ("", " "):
        codes = [code for code, made in NMT.items() if (made or "") == content]
        yield ["replaced", f"[{''.join(f'{chr(92)}u{code:04x}' for code in codes)}]", content]


def _charsmap(part: dict[str, Any]) -> Steps:
    cluster = None if part.get("longest_match") else script(CLUSTER)
    yield ["charsmap", part.get("precompiled_charsmap") or "", cluster, _either_of(part.get("kept") or [])]


def _strip(part: dict[str, Any]) -> Steps:
    spaces = r"(?:[^\S\ufeff]|\x85)+"
    if part.get("strip_left"):
        yield ["replaced", rf"(?<![\s\S]){spaces}", ""]
    if part.get("strip_right"):
        yield ["replaced", rf"{spaces}(?![\s\S])", ""]


plain = of_kind({
    **{form: _normal_form(form) for form in ("NFC", "NFD", "NFKC", "NFKD")},
    "Lowercase": lambda part: iter([lower()]),
    "StripAccents": lambda part: iter([["replaced", script("[{ACCENT}]+"), ""]]),
    "BertNormalizer": _bert,
    "Replace": lambda part: iter([["replaced", pattern_of(part), part["content"]]]),
    "Prepend": lambda part: iter([["prepended", part["prepend"]]]),
    "Strip": _strip,
    "Nmt": _nmt,
    "Precompiled": _charsmap,
    "ByteLevel": lambda part: iter([["characters"]]),
}, "normalizers")  # fmt: skip


def _byte_level(part: dict[str, Any]) -> Steps:
    if option(part, "add_prefix_space", True):
        yield ["prefixed"]
    if option(part, "use_regex", True):
        yield ["split", script(translated(GPT2)), "Isolated", False]
    yield ["characters"]


def _marked(part: dict[str, Any]) -> Steps:
    mark = option(part, "replacement", MARK)
    scheme = "never" if part.get("add_prefix_space") is False else option(part, "prepend_scheme", "always")
    one = literal(mark)
    yield ["metaspace", mark, scheme, f"{one}?[^{one}]+|{one}" if option(part, "split", True) else ""]


def _matches(pattern: str) -> Callable[[dict[str, Any]], Steps]:
    return lambda part: iter([["matches", script(pattern)]])


cut = of_kind({
    "ByteLevel": _byte_level,
    "Whitespace": _matches("[{WORD}]+|[^{WORD}{SPACE}]+"),
    "WhitespaceSplit": _matches("[^{SPACE}]+"),
    "BertPreTokenizer": _matches("[{BERT_PUNCTUATION}]|[^{SPACE}{BERT_PUNCTUATION}]+"),
    "Metaspace": _marked,
    "Split": lambda part: iter([["split", pattern_of(part), part["behavior"], bool(part.get("invert"))]]),
    "Punctuation": lambda part: iter([["split", script("[{BERT_PUNCTUATION}]"), option(part, "behavior", "Isolated"), False]]),
    "Digits": lambda part: iter([["matches", script(
        "[{NUMERIC}]|[^{NUMERIC}]+" if part.get("individual_digits") else "[{NUMERIC}]+|[^{NUMERIC}]+"
    )]]),
}, "pretokenizers")  # fmt: skip


def _unmarked(part: dict[str, Any]) -> Steps:
    scheme = option(part, "prepend_scheme", "always") != "never" and option(part, "add_prefix_space", True)
    yield ["metaspace", option(part, "replacement", MARK), "" if scheme else " "]


def _wordpiece(part: dict[str, Any]) -> Steps:
    yield ["wordpiece", option(part, "prefix", "##"), list(CLEANUP) if option(part, "cleanup", True) else []]


joined = of_kind({
    "ByteLevel": lambda part: iter([["bytes"]]),
    "WordPiece": _wordpiece,
    "Metaspace": _unmarked,
    "BPEDecoder": lambda part: iter([["suffixed", option(part, "suffix", "</w>")]] if option(part, "suffix", "</w>") else []),
    "ByteFallback": lambda part: iter([["fallback"]]),
    "Fuse": lambda part: iter([["fuse"]]),
    "Replace": lambda part: iter([["replaced", pattern_of(part), part["content"]]]),
    "Strip": lambda part: iter([["strip", part["content"], option(part, "start", 0), option(part, "stop", 0)]]),
}, "decoders")  # fmt: skip
