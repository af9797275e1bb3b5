"""WordPiece and whole words: the longest token that a word begins with, then the longest that follows."""

from __future__ import annotations

from .fields import Fields
from .memo import Memo
from .vocabulary import Vocabulary

__all__ = ["WordLevel", "WordPiece"]


class WordPiece:
    """The model of a `tokenizer.json` of type WordPiece: a word that cannot be made of tokens is unknown as a whole."""

    kind = "wordpiece"

    def __init__(self, fields: Fields):
        self.vocabulary = Vocabulary.of_mapping(fields)
        self.prefix = fields.text("continuing_subword_prefix", "##")
        self.longest_word = fields.number("max_input_chars_per_word", 100)
        unknown = fields.text("unk_token", "[UNK]")
        if unknown not in self.vocabulary.ids:
            fields.refuse("unk_token", "a token of the vocabulary", unknown)
        self.unk_id: int | None = self.vocabulary.ids[unknown]
        self.longest_token = max((len(token) for token in self.vocabulary.ids), default=0)
        self.ids = Memo(self._encode).__getitem__

    def _encode(self, word: str) -> list[int]:
        assert self.unk_id is not None
        if len(word) > self.longest_word:
            return [self.unk_id]
        ids, found, start = self.vocabulary.ids, list[int](), 0
        while start < len(word):
            prefix = self.prefix if start else ""
            for end in range(min(len(word), start + self.longest_token), start, -1):
                token = ids.get(prefix + word[start:end])
                if token is not None:
                    found.append(token)
                    start = end
                    break
            else:
                return [self.unk_id]
        return found


class WordLevel:
    """The model of a `tokenizer.json` of type WordLevel: each word is a token, or unknown."""

    kind = "wordlevel"

    def __init__(self, fields: Fields):
        self.vocabulary = Vocabulary.of_mapping(fields)
        self.unk_id = self.vocabulary.ids.get(fields.text("unk_token", "<unk>"))

    def ids(self, word: str) -> list[int]:
        """The id of a word, if there is one for it."""
        found = self.vocabulary.ids.get(word, self.unk_id)
        return [] if found is None else [found]
