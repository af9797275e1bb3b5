"""Tokenizers of BERT and RoBERTa over a few words, saved beside small models as transformers saves them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

transformers = pytest.importorskip("transformers", reason="transformers is not installed: pip install transformers")
tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed: pip install tokenizers")

TEXTS = [
    "Ana lost her red kite in the park.", "She was very sad, and she cried.", "Then Ben helped her to find it!",
    "Who won the race? Ana and Ben ran to the river.", "The mouse ate a piece of cheese behind the door.",
]  # fmt: skip


def wordpiece(folder: Path) -> Any:
    """BERT's: `[CLS] a [SEP] b [SEP]`."""
    made = tokenizers.BertWordPieceTokenizer(lowercase=True)
    made.train_from_iterator(TEXTS, vocab_size=120, show_progress=False)
    return _saved(folder, "BertTokenizerFast", made._tokenizer)


def byte_level(folder: Path) -> Any:
    """RoBERTa's: `<s>a</s></s>b</s>`, in which a space is a part of the word after it."""
    made = tokenizers.ByteLevelBPETokenizer()
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    made.train_from_iterator(TEXTS, vocab_size=330, show_progress=False, special_tokens=specials)
    made._tokenizer.post_processor = tokenizers.processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return _saved(folder, "RobertaTokenizerFast", made._tokenizer)


def _saved(folder: Path, kind: str, made: Any) -> Any:
    tokenizer = getattr(transformers, kind)(tokenizer_object=made)
    tokenizer.save_pretrained(folder)
    return tokenizer
