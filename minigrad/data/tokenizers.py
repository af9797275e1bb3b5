"""Tokenizers: text to numbers and back. Here what all have in common, characters, and words; bpe.py has byte pairs."""

from __future__ import annotations

import json
import operator
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, TypeVar

from ..errors import ArgumentError, CallError, IndexingError, nearest
from .errors import DataError

__all__ = ["BOS", "EOS", "MASK", "PAD", "SPECIALS", "UNK", "CharTokenizer", "Tokenizer", "WordTokenizer"]

SPECIALS = ("<pad>", "<s>", "</s>", "<unk>", "<mask>")
PAD, BOS, EOS, UNK, MASK = range(5)

VERSION = 1
MAX_JSON = 4 * 2**20  # characters in the file of a tokenizer
MAX_TOKENS = 2**18
MAX_MARKS = 64  # quotes, commas and brackets in the file of a tokenizer; ours have about twenty

# Every character is in exactly one of four classes, spelt out as ranges instead of \w and \s: those mean different
# characters in other regex engines and, as Unicode grows, in other Pythons, and a saved vocabulary must not notice.
SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
DIGIT = r"0-9"
MARK = (
    r"!-/:-@\[-`{-~\xa1-\xa9\xab-\xb1\xb4\xb6-\xb8\xbb\xbf\xd7\xf7\u2010-\u2027\u2030-\u205e\u20a0-\u20cf"
    r"\u2190-\u2bff\u3001-\u3003\u3008-\u3020\u3030\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
    r"\U0001f000-\U0001faff"
)
LETTER = f"[^{SPACE}{DIGIT}{MARK}]"  # everything else: letters of all scripts, and the accents that combine with them
LETTERS = (
    f"[^{SPACE}{MARK}\\ud800-\\udfff]+"  # in a word, digits count as letters, and half a surrogate pair never does
)

Self = TypeVar("Self", bound="Tokenizer")


class Tokenizer:
    """The base of all tokenizers: five special tokens with the ids 0 to 4, then a vocabulary.

    A subclass sets `kind` and writes `_encode`, `_decode`, `token`, `vocab_size`, `_content` and `_from_content`.
    Special tokens are ids and never text: a text that contains "<s>" is encoded like any other text. Their ids are
    attributes, None where a tokenizer has no such token; `unwritten` are those that a language model never writes.
    `decodes_apart` says that the text of tokens does not depend on those before them.
    """

    kind: ClassVar[str] = ""
    kinds: ClassVar[dict[str, type[Tokenizer]]] = {}
    pad_id: int | None = PAD
    bos_id: int | None = BOS
    eos_id: int | None = EOS
    unk_id: int | None = UNK
    mask_id: int | None = MASK
    cls_id: int | None = BOS
    sep_id: int | None = EOS
    unwritten: Sequence[int] = range(len(SPECIALS))
    decodes_apart: bool = True
    chat_template: str | None = None

    def __init_subclass__(cls) -> None:
        if cls.kind:
            Tokenizer.kinds[cls.kind] = cls

    @property
    def vocab_size(self) -> int:
        """How many ids there are, the five special ones included."""
        raise NotImplementedError

    def encode(self, text: str, bos: bool = False, eos: bool = False) -> list[int]:
        """The ids of a text, with `<s>` before it and `</s>` after it if asked for."""
        ids = self._encode(checked_text(text, "encode"))
        return [BOS] * bool(bos) + ids + [EOS] * bool(eos)

    def decode(self, ids: Any, skip_special: bool = True) -> str:
        """The text of some ids (a list, an array or a Tensor of one dimension).

        `skip_special` leaves out `<pad>`, `<s>`, `</s>` and `<mask>`. `<unk>` is always shown: it stands for text
        that was lost, and hiding it would make a gap look like a sentence.
        """
        numbers = ids.tolist() if hasattr(ids, "tolist") else ids
        if isinstance(numbers, int) or isinstance(numbers, list) and numbers and isinstance(numbers[0], list):
            raise ArgumentError("decode: ids are decoded one sequence at a time", "one dimension", repr(ids)[:80])
        kept = [self._checked(i) for i in numbers]
        return self._decode([i for i in kept if i == UNK or i >= len(SPECIALS)] if skip_special else kept)

    def token(self, id: int) -> str:
        """What one id stands for, as a person would read it."""
        raise NotImplementedError

    def unknown_rate(self, texts: str | Iterable[str]) -> float:
        """The share of tokens of some texts that the vocabulary does not have."""
        counts = Counter(i == self.unk_id for text in as_texts(texts) for i in self.encode(text))
        return counts[True] / max(1, counts.total())

    def to_json(self) -> str:
        """The tokenizer as a JSON text, to be kept inside a checkpoint; `Tokenizer.from_json` reads every kind."""
        entries = [f'"kind": "{self.kind}", "version": {VERSION}']
        for name, value in self._content().items():
            # Commas inside the vocabulary are escaped, so that a reader can count the entries before it parses them.
            entries.append(f'"{name}": ' + json.dumps(value, ensure_ascii=False).replace(",", "\\u002c"))
        return "{" + ", ".join(entries) + "}"

    @classmethod
    def from_json(cls: type[Self], text: str) -> Self:
        """The tokenizer that `to_json` wrote; anything else, however it is made, is refused with a DataError."""
        content = _parsed(text)
        kind, version = content.pop("kind", None), content.pop("version", None)
        made = Tokenizer.kinds.get(kind) if isinstance(kind, str) else None
        if made is None:
            raise DataError(
                "from_json: no such tokenizer", got=repr(kind)[:80], fix=nearest(str(kind)[:80], Tokenizer.kinds)
            )
        if not issubclass(made, cls):
            raise DataError("from_json: this is another tokenizer", cls.kind, kind, f"call {made.__name__}.from_json")
        if type(version) is not int or version != VERSION:
            raise DataError("from_json: this version is not known here", VERSION, repr(version)[:80], "update minigrad")
        return made._from_content(content)

    def _checked(self, id: Any) -> int:
        try:
            number = operator.index(id)
        except TypeError:
            raise IndexingError(
                f"{type(self).__name__}: an id must be a whole number", "an int", repr(id)[:80]
            ) from None
        if not 0 <= number < self.vocab_size:
            raise IndexingError(f"{type(self).__name__}: there is no such id", f"0 to {self.vocab_size - 1}", number)
        return number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokenizer) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        return f"{type(self).__name__}(vocab_size={self.vocab_size})"

    def _encode(self, text: str) -> list[int]:
        raise NotImplementedError

    def _decode(self, ids: list[int]) -> str:
        raise NotImplementedError

    def _content(self) -> dict[str, str]:
        raise NotImplementedError

    @classmethod
    def _from_content(cls: type[Self], content: dict[str, Any]) -> Self:
        raise NotImplementedError


class ListTokenizer(Tokenizer):
    """A tokenizer whose vocabulary is a list of strings, each with its own id; what is not in it becomes `<unk>`."""

    def __init__(self, tokens: Iterable[str]):
        self.tokens = (*SPECIALS, *tokens)
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        if len(self.ids) != len(self.tokens):
            twice = next(token for token, count in Counter(self.tokens).items() if count > 1)
            raise ArgumentError(f"{type(self).__name__}: a token is there twice", "each token once", repr(twice)[:80])
        if len(self.tokens) > MAX_TOKENS:
            raise ArgumentError(f"{type(self).__name__}: too many tokens", f"at most {MAX_TOKENS}", len(self.tokens))

    @property
    def vocab_size(self) -> int:
        return len(self.tokens)

    def token(self, id: int) -> str:
        return self.tokens[self._checked(id)]


class CharTokenizer(ListTokenizer):
    """One token for each character.

    >>> tokenizer = CharTokenizer.train("hello")
    >>> tokenizer.encode("hole", eos=True)
    [6, 8, 7, 5, 2]
    >>> tokenizer.decode(tokenizer.encode("help"))
    'hel<unk>'
    """

    kind = "char"

    def __init__(self, characters: Iterable[str]):
        super().__init__(characters)
        if any(len(c) != 1 or "\ud800" <= c <= "\udfff" for c in self.tokens[len(SPECIALS) :]):
            raise ArgumentError("CharTokenizer: every token must be one character", "for instance 'abc'")

    @classmethod
    def train(cls, texts: str | Iterable[str], vocab_size: int | None = None) -> CharTokenizer:
        """The characters of some texts in the order of Unicode; given `vocab_size`, only the most frequent ones."""
        counts: Counter[str] = Counter()
        for text in as_texts(texts):
            counts.update(checked_text(text, "CharTokenizer.train"))
        return cls(sorted(most_frequent(counts, vocab_size)))

    def _encode(self, text: str) -> list[int]:
        ids = self.ids
        return [ids.get(character, UNK) for character in text]

    def _decode(self, ids: list[int]) -> str:
        return "".join(self.tokens[i] for i in ids)

    def _content(self) -> dict[str, str]:
        return {"characters": "".join(self.tokens[len(SPECIALS) :])}

    @classmethod
    def _from_content(cls, content: dict[str, Any]) -> CharTokenizer:
        characters = only_string(content, "characters")
        if len(characters) > MAX_TOKENS:  # before each of them becomes a string of its own
            raise DataError("from_json: too many characters", f"at most {MAX_TOKENS}", len(characters))
        return made_from(cls, characters)


class WordTokenizer(ListTokenizer):
    """One token for each word, number or punctuation mark; a word keeps its apostrophes and hyphens.

    Spaces are not kept: decoding puts one between words, and none where punctuation does without.

    >>> tokenizer = WordTokenizer.train(["¿Dónde está?", "Well-known, isn't it?"])
    >>> tokenizer.decode(tokenizer.encode("Well-known,isn't  está?"))
    "Well-known, isn't está?"
    """

    kind = "word"
    decodes_apart = False  # which spaces stand between words depends on all words before
    pattern = re.compile(f"[{DIGIT}]+(?:[.,:][{DIGIT}]+)+|{LETTERS}(?:['’-]{LETTERS})*|[{MARK}]")
    no_space_before = frozenset(".,;:!?)]}%’”»…")
    no_space_after = frozenset("¿¡([{‘“«")

    def __init__(self, words: Iterable[str]):
        super().__init__(words)
        odd = next((w for w in self.tokens[len(SPECIALS) :] if not self.pattern.fullmatch(w)), None)
        if odd is not None:
            raise ArgumentError(
                "WordTokenizer: no text gives this token", "a word or one punctuation mark", repr(odd)[:80]
            )

    @classmethod
    def train(cls, texts: str | Iterable[str], vocab_size: int | None = None, min_count: int = 1) -> WordTokenizer:
        """The words of some texts, the most frequent first; those seen fewer than `min_count` times are left out."""
        counts: Counter[str] = Counter()
        for text in as_texts(texts):
            counts.update(cls.pattern.findall(checked_text(text, "WordTokenizer.train")))
        return cls(most_frequent(Counter({w: n for w, n in counts.items() if n >= min_count}), vocab_size))

    def _encode(self, text: str) -> list[int]:
        ids = self.ids
        return [ids.get(word, UNK) for word in self.pattern.findall(text)]

    def _decode(self, ids: list[int]) -> str:
        parts: list[str] = []
        glued, quoted = True, False
        for word in (self.tokens[i] for i in ids):
            closes = word in self.no_space_before or word == '"' and quoted
            parts.append(word if glued or closes else " " + word)
            glued = word in self.no_space_after or word == '"' and not quoted
            quoted ^= word == '"'
        return "".join(parts)

    def _content(self) -> dict[str, str]:
        return {"words": " ".join(self.tokens[len(SPECIALS) :])}

    @classmethod
    def _from_content(cls, content: dict[str, Any]) -> WordTokenizer:
        words = only_string(content, "words")
        if words.count(" ") > MAX_TOKENS:
            raise DataError("from_json: too many words", f"at most {MAX_TOKENS}", words.count(" "))
        return made_from(cls, words.split(" ") if words else [])


def as_texts(texts: str | Iterable[str]) -> Iterable[str]:
    """One text, or several, as several."""
    return (texts,) if isinstance(texts, str) else texts


def checked_text(text: Any, where: str) -> str:
    """The text itself, if it is valid Unicode: half a surrogate pair has no bytes, so it could not be saved."""
    if not isinstance(text, str):
        raise CallError(f"{where}: this is not a text", "a str", type(text).__name__)
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ArgumentError(
                f"{where}: the text has half a surrogate pair at position {error.start}",
                "valid Unicode",
                ascii(text[error.start]),
                "read the file with errors='replace', or leave the character out",
            ) from None
    return text


def most_frequent(counts: Counter[str], vocab_size: int | None) -> list[str]:
    """Tokens by descending count, equal ones in the order of Unicode, as many as fit beside the special ones."""
    ranked = sorted(counts, key=lambda token: (-counts[token], token))
    if vocab_size is None:
        return ranked
    if vocab_size <= len(SPECIALS):
        raise ArgumentError(
            "train: the vocabulary is too small", f"more than {len(SPECIALS)}, the special tokens", vocab_size
        )
    return ranked[: vocab_size - len(SPECIALS)]


def made_from(cls: type[Self], *content: Any) -> Self:
    """A tokenizer from what a file says, in which a wrong argument is a wrong file."""
    try:
        return cls(*content)
    except ArgumentError as error:
        raise DataError(f"from_json: the vocabulary is not valid: {error}") from None


def only_string(content: dict[str, Any], name: str) -> str:
    """The one entry that the file of a tokenizer has besides its kind and version."""
    value = content.get(name)
    if set(content) != {name} or not isinstance(value, str):
        found = ", ".join(f"{key[:40]!r}: {type(value).__name__}" for key, value in content.items())
        raise DataError("from_json: the entries are not those of a tokenizer", f"{name!r}: str", found or "none")
    return value


def _parsed(text: Any) -> dict[str, Any]:
    """The JSON object in a text from anybody.

    A vocabulary is one string, so a file of ours has few quotes, commas and brackets. Counting them first bounds the
    memory and the depth of what the parser can build, whatever the file holds.
    """
    if not isinstance(text, str):
        raise CallError("from_json: this is not a JSON text", "a str", type(text).__name__)
    if len(text) > MAX_JSON:
        raise DataError("from_json: the file of a tokenizer is too large", f"at most {MAX_JSON} characters", len(text))
    if sum(map(text.count, '",[{')) > MAX_MARKS:
        raise DataError("from_json: this is not the file of a tokenizer: it has too many entries")
    try:
        content = json.loads(text, object_pairs_hook=_without_repetition)
    except (ValueError, RecursionError) as error:
        raise DataError(f"from_json: this is not JSON: {error}"[:200]) from None
    if not isinstance(content, dict):
        raise DataError("from_json: this is not a tokenizer", "a JSON object", type(content).__name__)
    return content


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise DataError("from_json: a key is there twice")
    return content
