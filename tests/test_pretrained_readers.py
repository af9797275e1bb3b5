"""Other files of tokenizers: models of SentencePiece, plain vocabularies, GGUF's metadata, folders as on the Hugging Face hub."""

import contextlib
import io
import json
import struct

import pytest

from minigrad.data import BPETokenizer, CharTokenizer, DataError, WordTokenizer
from minigrad.tokenizers import (
    PretrainedTokenizer,
    from_file,
    from_folder,
    from_gguf,
    from_json,
    from_marian,
    from_sentencepiece,
)
from minigrad.tokenizers.readers.protobuf import fields_of
from minigrad.tokenizers.readers.sentencepiece import read_model
from tests.support.scripts import SENTENCES, random_bytes, random_texts
from tests.test_pretrained_tokenizers import byte_level_bpe, wordpiece

spm = pytest.importorskip("sentencepiece")

TEXTS = [
    *SENTENCES, *random_texts(500, seed=3), *random_bytes(80, seed=3), "", " ", "  ", "\t", "▁", " ▁ a ▁", "a" * 300,
    "x<sym>y <sym> <SYM>", "<sym><sym>", "①<sym>ﬁ",
]  # fmt: skip
CORPUS = [line for text in SENTENCES for line in text.splitlines() if line] * 20


def trained(**options) -> bytes:
    """A model of SentencePiece, trained on a few sentences."""
    model = io.BytesIO()
    given = {"vocab_size": 420, "character_coverage": 0.98, "hard_vocab_limit": False, "minloglevel": 3, **options}
    spm.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=model, **given)
    return model.getvalue()


OPTIONS = {
    "unigram": {},
    "unigram with bytes": {"byte_fallback": True, "vocab_size": 600},
    "unigram, identity": {"normalization_rule_name": "identity"},
    "unigram, case folded": {"normalization_rule_name": "nfkc_cf"},
    "unigram, spaces kept": {"remove_extra_whitespaces": False, "normalization_rule_name": "identity"},
    "unigram, no prefix": {"add_dummy_prefix": False},
    "unigram across words": {"split_by_whitespace": False},
    "unigram, own symbols": {"user_defined_symbols": ["<sym>", "日本"], "control_symbols": ["<ctl>"]},
    "bpe": {"model_type": "bpe"},
    "bpe with bytes": {"model_type": "bpe", "byte_fallback": True, "vocab_size": 700},
    "bpe as Llama's": {
        "model_type": "bpe", "byte_fallback": True, "vocab_size": 700, "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False, "split_digits": True, "allow_whitespace_only_pieces": True,
    },
    "bpe across words": {"model_type": "bpe", "split_by_whitespace": False},
    "bpe, own symbols": {"model_type": "bpe", "user_defined_symbols": ["<sym>", "日本"], "byte_fallback": True, "vocab_size": 700},
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_models_of_sentencepiece_give_the_same_ids(name):
    data = trained(**OPTIONS[name])
    theirs, ours = spm.SentencePieceProcessor(model_proto=data), from_sentencepiece(data)
    assert ours.vocab_size == theirs.get_piece_size()
    for text in TEXTS:
        assert ours.encode(text) == theirs.encode(text), ascii(text)


def test_a_model_of_sentencepiece_is_written_as_json_and_read_again():
    ours = from_sentencepiece(trained(**OPTIONS["bpe, own symbols"]))
    again = from_json(ours.to_json())
    assert [again.encode(text) for text in TEXTS] == [ours.encode(text) for text in TEXTS]


def test_texts_of_sentencepiece_are_decoded():
    data = trained(**OPTIONS["bpe as Llama's"])
    theirs, ours = spm.SentencePieceProcessor(model_proto=data), from_sentencepiece(data)
    for text in TEXTS:
        assert ours.decode(theirs.encode(text)) == theirs.decode(theirs.encode(text)), ascii(text)


@pytest.mark.parametrize("kind", ["unigram", "bpe with bytes"])
def test_marian_ends_a_text_and_numbers_pieces_by_its_vocabulary(kind):
    data = trained(**OPTIONS[kind])
    theirs = spm.SentencePieceProcessor(model_proto=data)
    plain = from_marian(data)
    assert plain.encode("The quick fox") == [*theirs.encode("The quick fox"), theirs.eos_id()]
    pieces = [theirs.id_to_piece(i) for i in range(theirs.get_piece_size())]
    missing = {"▁the", "▁The", "o"} & {*pieces}
    ids = {
        piece: i
        for i, piece in enumerate(["</s>", "<unk>", *(p for p in reversed(pieces[3:]) if p not in missing), "<pad>"])
    }
    if kind == "unigram":
        ours = from_marian(data, ids)
        for text in TEXTS:
            expected = [ids.get(piece, ids["<unk>"]) for piece in theirs.encode(text, out_type=str)]
            assert ours.encode(text) == [*expected, ids["</s>"]], ascii(text)


def fields(*parts: tuple[int, bytes]) -> bytes:
    """A message of fields of bytes."""
    return b"".join(bytes([number << 3 | 2, len(value)]) + value for number, value in parts)


def test_numbers_and_texts_of_a_protocol_buffer_are_read():
    piece = fields((1, b"ab")) + b"\x15" + struct.pack("<f", -2.5) + b"\x18\x04"
    (found,) = read_model(fields((1, piece))).pieces
    assert (found.text, found.score, found.type) == ("ab", -2.5, 4)


@pytest.mark.parametrize(
    "data", [b"", b"\x0a\xff", b"\x80" * 11, b"\x0f", b"\x08\x01", b"\x0a\x05\x0a\x03\xff\xfe\xfd"]
)
def test_a_broken_model_of_sentencepiece_is_refused(data):
    with pytest.raises(DataError):
        from_sentencepiece(data)


def test_changed_bytes_of_a_model_give_a_tokenizer_or_a_clear_error():
    import random

    draw, data = random.Random(0), trained(**OPTIONS["unigram, own symbols"])
    for _ in range(200):
        changed = bytearray(data[: draw.randint(1, len(data))] if draw.random() < 0.3 else data)
        for _ in range(draw.randint(1, 8)):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        with contextlib.suppress(DataError):
            from_sentencepiece(bytes(changed)).encode(TEXTS[0])


def test_an_endless_number_of_fields_is_read_one_by_one():
    assert list(fields_of(b"\x08\x01" * 3, "here")) == [(1, 1)] * 3


def gguf_of(description: dict, pre: str) -> dict:
    """The metadata that a GGUF file of a byte-level tokenizer has."""
    tokens = sorted(description["model"]["vocab"], key=description["model"]["vocab"].get)
    special = {token["id"] for token in description["added_tokens"]}
    return {
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": pre, "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.merges": [" ".join(merge) for merge in description["model"]["merges"]],
        "tokenizer.ggml.token_type": [3 if i in special else 1 for i in range(len(tokens))],
        "tokenizer.ggml.bos_token_id": 0, "tokenizer.ggml.eos_token_id": 0, "tokenizer.chat_template": "{{ messages }}",
    }  # fmt: skip


def test_gguf_of_byte_level_bpe_gives_the_ids_of_its_tokenizer_json():
    description = byte_level_bpe()
    expected = PretrainedTokenizer.from_json(description)
    ours = from_gguf(gguf_of(description, "gpt-2"))
    assert (ours.bos_id, ours.eos_id, ours.chat_template) == (0, 0, "{{ messages }}")
    assert [ours.encode(text) for text in TEXTS] == [expected.encode(text) for text in TEXTS]


def test_gguf_of_smollm_cuts_digits_apart():
    description = byte_level_bpe()
    digits = {"type": "Digits", "individual_digits": True}
    description["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [digits, description["pre_tokenizer"]]}
    expected, ours = PretrainedTokenizer.from_json(description), from_gguf(gguf_of(description, "smollm"))
    assert [ours.encode(text) for text in SENTENCES] == [expected.encode(text) for text in SENTENCES]


def test_gguf_of_llama_gives_the_ids_of_sentencepiece_after_a_start():
    data = trained(**OPTIONS["bpe as Llama's"])
    theirs = spm.SentencePieceProcessor(model_proto=data)
    pieces = read_model(data).pieces
    ours = from_gguf(
        {
            "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": [piece.text for piece in pieces],
            "tokenizer.ggml.scores": [piece.score for piece in pieces],
            "tokenizer.ggml.token_type": [piece.type for piece in pieces],
            "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2,
        }
    )  # fmt: skip
    for text in TEXTS:
        assert ours.encode(text) == [1, *theirs.encode(text)], ascii(text)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"tokenizer.ggml.model": "none"},
        {"tokenizer.ggml.model": "gpt2"},
        {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": [1]},
    ],
    ids=str,
)
def test_gguf_without_a_tokenizer_is_refused(wrong):
    with pytest.raises(DataError):
        from_gguf(wrong)


def test_an_unknown_way_to_cut_words_is_refused_by_name():
    with pytest.raises(DataError, match="superbpe"):
        from_gguf(gguf_of(byte_level_bpe(), "superbpe"))


def transformers_ids(folder, texts) -> list[list[int]]:
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder))
    return [tokenizer.encode(text) for text in texts]


def write(folder, **files) -> None:
    for name, content in files.items():
        path = folder / name.replace("__", ".")
        path.write_text(
            content if isinstance(content, str) else json.dumps(content, ensure_ascii=False), encoding="utf-8"
        )


@pytest.mark.parametrize("lower", [True, False])
def test_a_folder_with_vocab_txt_is_read_as_transformers_reads_it(tmp_path, lower):
    vocabulary = wordpiece()["model"]["vocab"]
    write(
        tmp_path, vocab__txt="\n".join(sorted(vocabulary, key=vocabulary.get)) + "\n", config__json={"model_type": "bert"},
        tokenizer_config__json={"do_lower_case": lower, "tokenizer_class": "BertTokenizer", "pad_token": "[PAD]"},
    )  # fmt: skip
    ours = from_folder(tmp_path)
    assert (ours.pad_id, ours.cls_id, ours.sep_id, ours.mask_id) == (1, 2, 3, 4)
    assert [ours.encode(text) for text in TEXTS] == transformers_ids(tmp_path, TEXTS)


@pytest.mark.parametrize("name", ["GPT2Tokenizer", "RobertaTokenizer"])
def test_a_folder_with_vocab_json_and_merges_is_read_as_transformers_reads_it(tmp_path, name):
    model = byte_level_bpe()["model"]
    tokens = ["<|endoftext|>", "<s>", "</s>", "<unk>", "<pad>", "<mask>"]
    ids = {**model["vocab"], **{token: len(model["vocab"]) + i for i, token in enumerate(tokens)}}
    merges = "#version: 0.2\n" + "\n".join(" ".join(merge) for merge in model["merges"]) + "\n"
    kind = {"GPT2Tokenizer": "gpt2", "RobertaTokenizer": "roberta"}[name]
    write(
        tmp_path, vocab__json=ids, merges__txt=merges, config__json={"model_type": kind},
        tokenizer_config__json={"tokenizer_class": name},
        special_tokens_map__json={"mask_token": {"content": "<mask>", "lstrip": True}} if kind == "roberta" else {},
    )  # fmt: skip
    texts = [*TEXTS, "a <mask> b", "x  <mask>  y<s>"]
    ours = from_folder(tmp_path)
    assert [ours.encode(text) for text in texts] == transformers_ids(tmp_path, texts)


def test_a_folder_with_tokenizer_json_takes_special_tokens_and_template_from_its_other_files(tmp_path):
    write(
        tmp_path, tokenizer__json=wordpiece(), special_tokens_map__json={"bos_token": {"content": "[CLS]"}},
        tokenizer_config__json={
            "eos_token": "[SEP]", "chat_template": [{"name": "default", "template": "{{ 1 }}"}],
            "added_tokens_decoder": {"900": {"content": "<new>", "special": True, "normalized": False}},
        },
    )  # fmt: skip
    tokenizer = from_folder(tmp_path)
    assert (tokenizer.bos_id, tokenizer.eos_id, tokenizer.pad_id, tokenizer.chat_template) == (2, 3, None, "{{ 1 }}")
    assert tokenizer.token(tokenizer.encode("the <new>")[-1]) == "<new>"


def test_a_folder_with_a_model_of_sentencepiece_gets_the_start_that_its_class_has(tmp_path):
    data = trained(**OPTIONS["bpe as Llama's"])
    (tmp_path / "tokenizer.model").write_bytes(data)
    write(
        tmp_path, tokenizer_config__json={"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>"}
    )
    theirs = spm.SentencePieceProcessor(model_proto=data)
    assert from_folder(tmp_path).encode("a fox") == [1, *theirs.encode("a fox")]
    assert from_file(tmp_path / "tokenizer.model").encode("a fox") == theirs.encode("a fox")


def sentencepiece_folder(folder, name: str, file: str, **options):
    data = trained(**options)
    (folder / file).write_bytes(data)
    write(folder, tokenizer_config__json={"tokenizer_class": name}, config__json={"model_type": name.lower()})
    return spm.SentencePieceProcessor(model_proto=data)


def test_t5_ends_a_text_and_has_tokens_for_gaps(tmp_path):
    theirs = sentencepiece_folder(tmp_path, "T5Tokenizer", "spiece.model", pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    ours, size = from_folder(tmp_path), theirs.get_piece_size()
    assert ours.encode("a fox") == [*theirs.encode("a fox"), 1]
    assert ours.encode("<extra_id_0>")[:-1] == [size + 99]
    assert (ours.pad_id, ours.eos_id, ours.vocab_size) == (0, 1, size + 100)


def test_xlm_roberta_numbers_its_special_tokens_first(tmp_path):
    theirs = sentencepiece_folder(tmp_path, "XLMRobertaTokenizer", "sentencepiece.bpe.model")
    ours = from_folder(tmp_path)
    expected = [i + 1 if i else 3 for i in theirs.encode("a fox \u12d5")]
    assert ours.encode("a fox \u12d5") == [0, *expected, 2]
    assert [ours.token(i) for i in (0, 1, 2, 3, ours.mask_id)] == ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def test_a_family_whose_numbers_are_not_known_is_refused(tmp_path):
    sentencepiece_folder(tmp_path, "PegasusTokenizer", "spiece.model")
    with pytest.raises(DataError, match="PegasusTokenizer is read from its tokenizer.json only"):
        from_folder(tmp_path)


def test_a_vocabulary_of_words_is_read_from_yaml_and_json(tmp_path):
    (tmp_path / "vocab.yml").write_text('</s>: 0\n<unk>: 1\n"a:b": 2\n\'it\'\'s\': 3\n"\\"": 4\n', encoding="utf-8")
    tokenizer = from_file(tmp_path / "vocab.yml")
    assert tokenizer.encode("a:b it's \" new") == [2, 3, 4, 1, 0]
    write(tmp_path, words__json={"</s>": 0, "<unk>": 1, "fox": 2})
    assert from_file(tmp_path / "words.json").encode("fox dog") == [2, 1, 0]


def test_a_folder_without_a_tokenizer_is_refused(tmp_path):
    with pytest.raises(DataError, match="no file of a tokenizer"):
        from_folder(tmp_path)
    with pytest.raises(DataError, match="there is no folder"):
        from_folder(tmp_path / "missing")


@pytest.mark.parametrize("text", ["{", "[]", "3", '"x"', "[" * 100000])
def test_a_tokenizer_json_that_is_none_is_refused(tmp_path, text):
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(DataError):
        from_folder(tmp_path)


@pytest.mark.parametrize("made", [CharTokenizer("ab"), WordTokenizer(["a", "b"]), BPETokenizer([])])
def test_tokenizers_of_minigrad_are_read_by_the_same_function(made):
    assert from_json(made.to_json()) == made


def test_the_special_ids_of_our_own_tokenizers_are_attributes():
    made = CharTokenizer("ab")
    assert [made.pad_id, made.bos_id, made.eos_id, made.unk_id, made.mask_id] == [0, 1, 2, 3, 4]
    assert [made.token(i) for i in made.unwritten] == ["<pad>", "<s>", "</s>", "<unk>", "<mask>"]
