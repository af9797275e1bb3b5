"""Tokenizers of pretrained models, from every file that they come in, with the ids of the originals.

>>> from minigrad.tokenizers import PretrainedTokenizer
>>> vocabulary = {"[UNK]": 0, "hello": 1, "world": 2}
>>> PretrainedTokenizer.from_json({"model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"}}).encode("hello")
[1]
"""

from typing import Any

from ..data.tokenizers import Tokenizer
from .readers.folder import from_file, from_folder
from .readers.gguf import gguf_json
from .readers.marian import marian_json
from .readers.sentencepiece import read_model, spec_json
from .tokenizer import MAX_FILE, PretrainedTokenizer

__all__ = [
    "PretrainedTokenizer",
    "from_file",
    "from_folder",
    "from_gguf",
    "from_json",
    "from_marian",
    "from_sentencepiece",
]


def from_json(text: str) -> Tokenizer:
    """The tokenizer of a JSON text that `to_json` wrote: one of `minigrad.data`, or of a pretrained model."""
    is_pretrained = '"model":' in text[:MAX_FILE] and '"kind":' not in text[:64]
    return PretrainedTokenizer.from_json(text) if is_pretrained else Tokenizer.from_json(text)


def from_gguf(metadata: dict[str, Any]) -> PretrainedTokenizer:
    """The tokenizer in the metadata of a GGUF file, as `minigrad.formats` reads it."""
    return PretrainedTokenizer(gguf_json(metadata))


def from_sentencepiece(data: bytes) -> PretrainedTokenizer:
    """The tokenizer of a `.model` or `.spm` file, given as its bytes."""
    return PretrainedTokenizer(spec_json(read_model(data)))


def from_marian(data: bytes, ids: dict[str, int] | None = None) -> PretrainedTokenizer:
    """The tokenizer of a Marian model: its `.spm` file as bytes, and the numbers of its `vocab.json` if it has one."""
    return PretrainedTokenizer(marian_json(read_model(data), ids))
