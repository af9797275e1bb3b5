"""A tokenizer of a pretrained model: text → normalised text → words → tokens → ids with special tokens, and back."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..data.errors import DataError
from ..data.tokenizers import Tokenizer, checked_text
from ..errors import ArgumentError
from .added_tokens import AddedTokens
from .bpe import BPE
from .decoders import decoder
from .fields import MAX_TOKENS, Fields, built
from .normalizers import normalizer
from .pre_tokenizers import pre_tokenizer
from .processors import Part, post_processor
from .unigram import Unigram
from .wordpiece import WordLevel, WordPiece

__all__ = ["SPECIAL_NAMES", "PretrainedTokenizer"]

MAX_FILE = 2**26  # bytes
MAX_TEMPLATE = 2**18  # characters of a chat template

Model = BPE | WordPiece | WordLevel | Unigram
MODELS: dict[str, Callable[[Fields], Model]] = {
    "BPE": BPE, "WordPiece": WordPiece, "WordLevel": WordLevel, "Unigram": Unigram,
}  # fmt: skip

# What special tokens are usually called, for files that do not say which is which.
SPECIAL_NAMES: dict[str, tuple[str, ...]] = {
    "pad_token": ("[PAD]", "<pad>", "<|pad|>"),
    "unk_token": ("[UNK]", "<unk>"),
    "bos_token": ("<s>", "[BOS]", "<bos>", "<|begin_of_text|>", "<|startoftext|>"),
    "eos_token": ("</s>", "[EOS]", "<eos>", "<|endoftext|>", "<|end_of_text|>"),
    "mask_token": ("[MASK]", "<mask>"),
    "cls_token": ("[CLS]",),
    "sep_token": ("[SEP]",),
}


class PretrainedTokenizer(Tokenizer):
    """The tokenizer that a `tokenizer.json` of Hugging Face describes, with the same ids as the original.

    Beside the fields of that file, the description may have `special_tokens` (`{"bos_token": "<s>", …}`) and
    `chat_template`, which Hugging Face keeps in files of their own. Padding and truncation are left to the caller.

    >>> tokenizer = PretrainedTokenizer.from_json({
    ...     "pre_tokenizer": {"type": "Whitespace"},
    ...     "model": {"type": "WordPiece", "vocab": {"[UNK]": 0, "un": 1, "##known": 2, "!": 3}},
    ...     "decoder": {"type": "WordPiece"},
    ... })
    >>> tokenizer.encode("unknown!"), tokenizer.decode([1, 2, 3])
    ([1, 2, 3], 'unknown!')
    """

    unwritten: Sequence[int] = ()

    def __init__(self, description: Mapping[str, Any]):
        fields = Fields(description, "tokenizer.json")
        self.description = dict(description)
        self.model: Model = built(self._model_fields(fields), MODELS)
        self.kind = self.model.kind  # type: ignore[misc]
        self.normalize = normalizer(fields.object("normalizer")) if description.get("normalizer") else None
        self.pre_tokenize = pre_tokenizer(fields.object("pre_tokenizer")) if description.get("pre_tokenizer") else None
        self.process = post_processor(fields.object("post_processor")) if description.get("post_processor") else None
        self.decoder = decoder(fields.object("decoder")) if description.get("decoder") else None
        entries = fields.objects("added_tokens", MAX_TOKENS) if description.get("added_tokens") else []
        self.added = AddedTokens(entries, self.model.vocabulary, self.normalize)
        self.chat_template: str | None = fields.text("chat_template", None, MAX_TEMPLATE)
        self._set_special_ids(fields)

    @staticmethod
    def _model_fields(fields: Fields) -> Fields:
        """The model, whose type older files leave out."""
        model = fields.object("model")
        if model.values.get("type") is None:
            kind = (
                "BPE"
                if "merges" in model.values
                else "Unigram"
                if isinstance(model.values.get("vocab"), list)
                else "WordPiece"
            )
            return Fields({**model.values, "type": kind}, model.where)
        return model

    def _set_special_ids(self, fields: Fields) -> None:
        given = fields.object("special_tokens", {})
        names = {name: given.text(name, None) for name in SPECIAL_NAMES}
        if not given.values:
            names = {
                name: next((token for token in usual if self.id(token) is not None), None)
                for name, usual in SPECIAL_NAMES.items()
            }
        ids = {name: None if token is None else self.id(token) for name, token in names.items()}
        self.pad_id, self.bos_id, self.eos_id = ids["pad_token"], ids["bos_token"], ids["eos_token"]
        self.mask_id, self.cls_id, self.sep_id = ids["mask_token"], ids["cls_token"], ids["sep_token"]
        self.unk_id = self.model.unk_id  # None where every text has tokens
        # Decoding a token needs those before it, unless tokens are bytes.
        parts: Any = self.description.get("decoder") or {}
        self.decodes_apart = isinstance(parts, Mapping) and parts.get("type") == "ByteLevel"

    @classmethod
    def from_json(cls, text: Any) -> PretrainedTokenizer:
        """The tokenizer of a `tokenizer.json`, given as its text or as what that text describes."""
        if isinstance(text, Mapping):
            return cls(text)
        if not isinstance(text, (str, bytes)) or len(text) > MAX_FILE:
            got = f"{len(text):,} characters" if isinstance(text, (str, bytes)) else type(text).__name__
            raise DataError(
                "tokenizer: this is not a tokenizer.json", f"a text of at most {MAX_FILE:,} characters", got
            )
        try:
            return cls(json.loads(text))
        except (ValueError, RecursionError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"tokenizer: this is not JSON: {error}"[:200]) from None

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> PretrainedTokenizer:
        """The tokenizer of a file `tokenizer.json`."""
        size = Path(path).stat().st_size
        if size > MAX_FILE:
            raise DataError(f"tokenizer: {path} is too large", f"at most {MAX_FILE:,} bytes", f"{size:,}")
        return cls.from_json(Path(path).read_bytes())

    def to_json(self) -> str:
        """The description as a JSON text, which `from_json` reads again."""
        return json.dumps(self.description, ensure_ascii=False)

    @property
    def vocab_size(self) -> int:
        """How many ids there are: one more than the greatest, that of an added token included."""
        return max(len(self.model.vocabulary.tokens), max(self.added.by_id, default=-1) + 1)

    def id(self, token: str) -> int | None:
        """The id of a token, spelt as in the vocabulary, or None."""
        found = self.added.ids.get(token)
        return self.model.vocabulary.ids.get(token) if found is None else found

    def token(self, id: int) -> str:
        """The token of an id, spelt as in the vocabulary; empty for an id that no token has."""
        number = self._checked(id)
        added = self.added.by_id.get(number)
        return added.content if added else self.model.vocabulary.token(number) or ""

    def encode(self, text: str, bos: bool = False, eos: bool = False, *, special: bool = True) -> list[int]:
        """The ids of a text, with the special tokens that the original puts around it, unless `special` is false.

        `bos` and `eos` make sure that it begins and ends with these tokens, where the original does not add them.
        """
        ids = self._encode(checked_text(text, "encode"))
        if special and self.process:
            ids = [i for part in self.process([Part(ids)], True) for i in part.ids]
        if bos and ids[:1] != [self.bos_id]:
            ids = [self._special_id("bos"), *ids]
        if eos and ids[-1:] != [self.eos_id]:
            ids = [*ids, self._special_id("eos")]
        return ids

    def encode_pair(self, first: str, second: str, *, special: bool = True) -> tuple[list[int], list[int]]:
        """The ids of two texts together, and for each id the type of its token: which text it belongs to."""
        texts = [Part(self._encode(checked_text(text, "encode_pair")), i) for i, text in enumerate((first, second))]
        parts = self.process(texts, special) if self.process else texts
        return [i for part in parts for i in part.ids], [part.type_id for part in parts for _ in part.ids]

    def decode(self, ids: Any, skip_special: bool = True) -> str:
        """The text of some ids; ids that no token has are left out, and special tokens too if `skip_special` is true."""
        numbers = ids.tolist() if hasattr(ids, "tolist") else list(ids)
        if numbers and isinstance(numbers[0], list):
            raise ArgumentError("decode: ids are decoded one sequence at a time", "one dimension", repr(ids)[:80])
        tokens = [token for i in numbers if (token := self._form(i, skip_special)) is not None]
        return "".join(self.decoder(tokens)) if self.decoder else " ".join(tokens)

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = []
        find = self.model.ids
        for piece, added, at_start in self.added.pieces(text, self.normalize):
            if added is not None:
                ids.append(added)
                continue
            words = self.pre_tokenize([piece], at_start) if self.pre_tokenize else [piece]
            for word in words:
                ids += find(word)
        return ids

    def _form(self, id: Any, skip_special: bool) -> str | None:
        """What stands for an id in a text, before decoding."""
        form = self.added.forms.get(id)
        if form is None:
            form = self.model.vocabulary.token(id)
        return None if form is None or skip_special and form in self.added.special else form

    def _special_id(self, name: str) -> int:
        found: int | None = getattr(self, f"{name}_id")
        if found is None:
            raise ArgumentError(f"encode: this tokenizer has no {name} token", fix=f"leave out {name}=True")
        return found

    def __repr__(self) -> str:
        return f"{type(self).__name__}(kind={self.kind!r}, vocab_size={self.vocab_size})"
