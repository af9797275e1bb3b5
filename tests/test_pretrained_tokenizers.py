"""Tokenizers of pretrained models give the ids and texts that Hugging Face's `tokenizers` gives."""

import itertools
import json

import pytest

from minigrad.data import DataError
from minigrad.decode import TextStream
from minigrad.tokenizers import PretrainedTokenizer
from minigrad.tokenizers.characters import pairs
from minigrad.tokenizers.patterns import KNOWN, matcher
from tests.support.scripts import SENTENCES, random_bytes, random_texts
from tests.support.unicode_oracle import classes

hf = pytest.importorskip("tokenizers")

TEXTS = [*SENTENCES, *random_texts(600), *random_bytes(100), "", " ", "\n", "a" * 300, "▁", "[MASK] [CLS]"]
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
SPECIALS = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]"]


def trained(model, trainer, **parts) -> dict:
    """The description of a tokenizer that `tokenizers` has trained, with some of its parts given."""
    description = json.loads(hf.Tokenizer(model).to_str())
    description.update(parts)
    tokenizer = hf.Tokenizer.from_str(json.dumps(description))
    tokenizer.train_from_iterator(SENTENCES * 3, trainer)
    return json.loads(tokenizer.to_str())


def original(description: dict):
    return hf.Tokenizer.from_str(json.dumps(description))


def byte_level_bpe(**parts) -> dict:
    trainer = hf.trainers.BpeTrainer(
        vocab_size=600,
        initial_alphabet=hf.pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|end|>"],
        show_progress=False,
    )
    given = {"pre_tokenizer": BYTE_LEVEL, "decoder": BYTE_LEVEL, "post_processor": BYTE_LEVEL, **parts}
    return trained(hf.models.BPE(), trainer, **given)


def wordpiece(**parts) -> dict:
    trainer = hf.trainers.WordPieceTrainer(vocab_size=500, special_tokens=SPECIALS, show_progress=False)
    given = {
        "normalizer": bert_normalizer(), "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True}, **parts,
    }  # fmt: skip
    return trained(hf.models.WordPiece(unk_token="[UNK]"), trainer, **given)


def bert_normalizer(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True) -> dict:
    return {"type": "BertNormalizer", **locals()}


def unigram(**parts) -> dict:
    trainer = hf.trainers.UnigramTrainer(
        vocab_size=400, special_tokens=SPECIALS, unk_token="[UNK]", show_progress=False
    )
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    return trained(hf.models.Unigram(), trainer, **{"pre_tokenizer": metaspace, "decoder": metaspace, **parts})


def sentencepiece_bpe(**options) -> dict:
    """As Llama's: no words, spaces as marks, and bytes for characters that have no token."""
    trainer = hf.trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256))],
        show_progress=False,
    )
    marks = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    description = trained(
        hf.models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True), trainer,
        pre_tokenizer={"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True},
    )  # fmt: skip
    description["pre_tokenizer"] = None
    description["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, marks]}
    description["decoder"] = {
        "type": "Sequence",
        "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        ],
    }  # fmt: skip
    description["model"].update(options)
    return description


def word_level() -> dict:
    trainer = hf.trainers.WordLevelTrainer(special_tokens=SPECIALS, show_progress=False)
    return trained(hf.models.WordLevel(unk_token="[UNK]"), trainer, pre_tokenizer={"type": "Whitespace"})


def suffix_bpe() -> dict:
    """As OpenAI's first GPT: the last letter of a word is marked."""
    trainer = hf.trainers.BpeTrainer(
        vocab_size=500, special_tokens=["<unk>"], end_of_word_suffix="</w>", show_progress=False
    )
    return trained(
        hf.models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"), trainer,
        pre_tokenizer={"type": "BertPreTokenizer"}, decoder={"type": "BPEDecoder", "suffix": "</w>"},
        normalizer={"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}]},
    )  # fmt: skip


def prefix_bpe() -> dict:
    trainer = hf.trainers.BpeTrainer(
        vocab_size=500, special_tokens=["<unk>"], continuing_subword_prefix="##", show_progress=False
    )
    model = hf.models.BPE(unk_token="<unk>", continuing_subword_prefix="##", fuse_unk=True)
    return trained(model, trainer, pre_tokenizer={"type": "Whitespace"})


def template(single: str, pair: str, *tokens: str) -> dict:
    made = hf.processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=[(t, i) for i, t in enumerate(tokens)]
    )
    return json.loads(made.__getstate__())


def changed(description: dict, **parts) -> dict:
    return {**description, **parts}


def split(pattern, behavior="Isolated", invert=False) -> dict:
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def sequence(kind: str, *parts) -> dict:
    return {"type": "Sequence", kind: list(parts)}


def assert_same(description: dict, texts=TEXTS) -> None:
    ours, theirs = PretrainedTokenizer.from_json(description), original(description)
    assert ours.vocab_size >= theirs.get_vocab_size()
    for text in texts:
        expected = theirs.encode(text).ids
        assert ours.encode(text) == expected, ascii(text)
        assert ours.encode(text, special=False) == theirs.encode(text, add_special_tokens=False).ids, ascii(text)
        assert ours.decode(expected) == theirs.decode(expected), ascii(text)
        assert ours.decode(expected, skip_special=False) == theirs.decode(expected, skip_special_tokens=False), ascii(
            text
        )
    for first, second in itertools.pairwise(texts[:40]):
        expected = theirs.encode(first, second)
        assert ours.encode_pair(first, second) == (expected.ids, expected.type_ids), ascii(first)


KINDS = {
    "byte-level BPE": byte_level_bpe,
    "WordPiece": wordpiece,
    "Unigram": unigram,
    "SentencePiece BPE": sentencepiece_bpe,
    "words": word_level,
    "BPE with a suffix": suffix_bpe,
    "BPE with a prefix": prefix_bpe,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_gives_the_same_ids(kind):
    assert_same(KINDS[kind]())


@pytest.mark.parametrize(
    "options", [{"ignore_merges": True}, {"byte_fallback": False}, {"byte_fallback": False, "fuse_unk": False}]
)
def test_options_of_bpe_give_the_same_ids(options):
    assert_same(sentencepiece_bpe(**options))


def test_random_merges_are_done_in_the_same_order():
    letters = "abcd"
    tokens = list(letters) + ["".join(p) for n in (2, 3, 4) for p in itertools.product(letters, repeat=n)]
    texts = ["".join(p) for p in itertools.product(letters[:3], repeat=6)]
    import random

    for seed in range(5):
        draw = random.Random(seed)
        pairs_ = [(a, b) for a in tokens for b in tokens if len(a + b) <= 4]
        merges = draw.sample(pairs_, 60)
        model = {"type": "BPE", "vocab": {t: i for i, t in enumerate(tokens)}, "merges": [list(m) for m in merges]}
        description = changed(json.loads(hf.Tokenizer(hf.models.BPE()).to_str()), model=model)
        assert_same(description, texts)


NORMALIZERS = [
    *({"type": form} for form in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt")),
    sequence("normalizers", {"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}),
    {"type": "Prepend", "prepend": "▁"},
    *({"type": "Strip", "strip_left": left, "strip_right": right} for left, right in itertools.product((True, False), repeat=2)),
    {"type": "Replace", "pattern": {"String": "a"}, "content": "bc"},
    {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "},
    {"type": "Replace", "pattern": {"Regex": "(?:x|[^a-z])"}, "content": "-"},
    {"type": "ByteLevel"},
    *(bert_normalizer(*options) for options in itertools.product((True, False), (True, False), (True, False, None), (True, False))),
]  # fmt: skip


@pytest.mark.parametrize("given", NORMALIZERS, ids=json.dumps)
def test_normalizers_give_the_same_text(given):
    blank = json.loads(hf.Tokenizer(hf.models.BPE()).to_str())
    description = changed(blank, normalizer=given, model={"type": "WordLevel", "vocab": {"x": 0}, "unk_token": "x"})
    ours, theirs = PretrainedTokenizer.from_json(description), original(description)
    for text in TEXTS:
        assert ours.normalize(text) == theirs.normalizer.normalize_str(text), ascii(text)


PRE_TOKENIZERS = [
    *({"type": kind} for kind in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer")),
    *({**BYTE_LEVEL, "add_prefix_space": prefix, "use_regex": regex} for prefix, regex in itertools.product((True, False), repeat=2)),
    *(
        {"type": "Metaspace", "replacement": mark, "prepend_scheme": scheme, "split": cut}
        for mark, scheme, cut in itertools.product("▁_", ("always", "first", "never"), (True, False))
    ),
    *({"type": "Punctuation", "behavior": b} for b in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")),
    *({"type": "Digits", "individual_digits": single} for single in (True, False)),
    {"type": "CharDelimiterSplit", "delimiter": "e"},
    *(
        split(pattern, behavior, invert)
        for pattern in ({"String": "e"}, {"String": "  "}, {"Regex": r"\s+"}, {"Regex": "[aeiou]x?"})
        for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
        for invert in (True, False)
    ),
    sequence("pretokenizers", {"type": "WhitespaceSplit"}, {"type": "Digits", "individual_digits": True}, BYTE_LEVEL),
    sequence("pretokenizers", {"type": "Whitespace"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}),
    sequence("pretokenizers", {"type": "Digits", "individual_digits": True}, BYTE_LEVEL),
]  # fmt: skip


@pytest.mark.parametrize("given", PRE_TOKENIZERS, ids=lambda given: json.dumps(given, ensure_ascii=True))
def test_pre_tokenizers_cut_at_the_same_places(given):
    blank = json.loads(hf.Tokenizer(hf.models.BPE()).to_str())
    description = changed(blank, pre_tokenizer=given)
    ours, theirs = PretrainedTokenizer.from_json(description), original(description)
    for text in filter(None, TEXTS):
        expected = [word for word, _ in theirs.pre_tokenizer.pre_tokenize_str(text)]
        assert ours.pre_tokenize([text], True) == expected, ascii(text)


@pytest.mark.parametrize("name", KNOWN)
def test_patterns_of_known_models_cut_at_the_same_places(name):
    ours = matcher(KNOWN[name])
    theirs = hf.pre_tokenizers.Split(hf.Regex(KNOWN[name]), "isolated")
    assert not ours.limits
    for text in [*TEXTS, *random_texts(1000, seed=1)]:
        assert ours.isolated(text) == [word for word, _ in theirs.pre_tokenize_str(text)], ascii(text)


POST_PROCESSORS = [
    template("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", "[UNK]", "[PAD]", "[CLS]", "[SEP]"),
    template("$A [SEP]", "[CLS]:3 $B:2 [SEP]:1 $A:4", "[UNK]", "[PAD]", "[CLS]", "[SEP]"),
    {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
    {"type": "RobertaProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2], "trim_offsets": True, "add_prefix_space": False},
    sequence("processors", BYTE_LEVEL, template("[CLS] $A", "[CLS] $A $B:1", "[UNK]", "[PAD]", "[CLS]")),
    BYTE_LEVEL,
    None,
]  # fmt: skip


@pytest.mark.parametrize("given", POST_PROCESSORS, ids=json.dumps)
def test_special_tokens_are_put_at_the_same_places(given):
    assert_same(changed(wordpiece(), post_processor=given), TEXTS[:60])


@pytest.mark.parametrize("lstrip", [True, False])
@pytest.mark.parametrize("rstrip", [True, False])
@pytest.mark.parametrize("single_word", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
def test_added_tokens_are_found_at_the_same_places(lstrip, rstrip, single_word, normalized):
    options = {"lstrip": lstrip, "rstrip": rstrip, "single_word": single_word, "normalized": normalized}
    tokens = [("<X>", True), ("<x><y>", False), ("Straße", False), ("é", False), ("fox", False), ("fo", True)]
    description = wordpiece()
    tokenizer = original(description)
    for content, special in tokens:
        token = hf.AddedToken(content, special=special, **options)
        (tokenizer.add_special_tokens if special else tokenizer.add_tokens)([token])
    description = json.loads(tokenizer.to_str())
    texts = [
        "a <X> b",
        "<X><X>  <x><y>",
        "STRASSE Straße straße",
        "e\u0301 é café",
        "foxfox fox, fo fox_",
        " fo ",
        "<X>",
        "x\u3000<X>\u2028y",
    ]
    assert_same(description, [*texts, *TEXTS[:50]])


DECODERS = [
    BYTE_LEVEL,
    {"type": "WordPiece", "prefix": "##", "cleanup": True},
    {"type": "WordPiece", "prefix": "##", "cleanup": False},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": True},
    {"type": "BPEDecoder", "suffix": "</w>"},
    {"type": "ByteFallback"},
    {"type": "Fuse"},
    {"type": "Strip", "content": "a", "start": 2, "stop": 0},
    sequence("decoders", {"type": "Fuse"}, {"type": "Strip", "content": "a", "start": 1, "stop": 0}),
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
    {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True},
    None,
]  # fmt: skip


@pytest.mark.parametrize("given", DECODERS, ids=json.dumps)
def test_decoders_give_the_same_text(given):
    import random

    tokens = ["a", "aa", "▁b", "##c", ".", "'s", "do", "not", "</w>", "x</w>", "<0xE2>", "<0x82>", "<0xAC>", "<0x41>", "<pad>", "|",
              "Ġ", "Ã", "©", "▁▁", "é", "n't", "aba", "<0xZZ>"]  # fmt: skip
    blank = json.loads(hf.Tokenizer(hf.models.BPE()).to_str())
    model = {"type": "WordLevel", "vocab": {token: i for i, token in enumerate(tokens)}, "unk_token": "a"}
    description = changed(blank, decoder=given, model=model)
    ours, theirs = PretrainedTokenizer.from_json(description), original(description)
    draw = random.Random(0)
    for _ in range(500):
        ids = [draw.randrange(len(tokens)) for _ in range(draw.randint(1, 8))]
        assert ours.decode(ids) == theirs.decode(ids)


@pytest.mark.parametrize("name", classes())
def test_classes_of_characters_are_those_of_the_original(name):
    ours = {chr(code) for first, last in pairs(name) for code in range(first, last + 1)}
    assert ours == classes()[name]


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD", "Lowercase"])
def test_every_character_is_normalized_as_by_the_original(form):
    blank = json.loads(hf.Tokenizer(hf.models.BPE()).to_str())
    description = changed(blank, normalizer={"type": form})
    ours, theirs = PretrainedTokenizer.from_json(description), original(description)
    everything = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    differ = [c for c in everything if ours.normalize(c) != theirs.normalizer.normalize_str(c)]
    assert differ == []


def test_a_description_is_written_and_read_again():
    description = wordpiece()
    tokenizer = PretrainedTokenizer.from_json(json.dumps(description))
    again = PretrainedTokenizer.from_json(tokenizer.to_json())
    assert again == tokenizer
    assert json.loads(again.to_json()) == description


def test_special_ids_are_found_by_name():
    tokenizer = PretrainedTokenizer.from_json(wordpiece())
    found = tokenizer.unk_id, tokenizer.pad_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id, tokenizer.bos_id
    assert found == (0, 1, 2, 3, 4, None)
    assert tokenizer.token(2) == "[CLS]"
    assert tokenizer.id("[CLS]") == 2
    assert tokenizer.id("nothing like it") is None


def test_tokens_that_a_description_names_are_special():
    tokenizer = PretrainedTokenizer.from_json(
        changed(wordpiece(), special_tokens={"bos_token": "[CLS]", "eos_token": "[SEP]"})
    )
    assert (tokenizer.bos_id, tokenizer.eos_id, tokenizer.pad_id) == (2, 3, None)
    assert tokenizer.encode("the", bos=True, eos=True) == [2, *tokenizer.encode("the"), 3]


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"model": 3},
        {"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}},
        {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}},
        {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a"]]}},
        {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [], "dropout": 0.5}},
        {"model": {"type": "WordPiece", "vocab": {"a": 0}}},
        {"model": {"type": "Unigram", "vocab": [["a", float("nan")]]}},
        {"model": {"type": "Unigram", "vocab": [["a"]]}},
        {"model": {"type": "Unigram", "vocab": [["a", 0.0]], "unk_id": 7}},
        {"model": {"type": "Nothing"}},
        {"model": {"type": "BPE", "vocab": {"a": 10**12}, "merges": []}},
    ],
    ids=str,
)
def test_a_broken_description_is_refused(broken):
    with pytest.raises(DataError):
        PretrainedTokenizer.from_json(broken)


def test_sequences_inside_sequences_have_a_bound():
    part = {"type": "NFC"}
    for _ in range(500):
        part = {"type": "Sequence", "normalizers": [part]}
    with pytest.raises(DataError, match="nested too deeply"):
        PretrainedTokenizer.from_json(changed(wordpiece(), normalizer=part))


def test_a_pattern_that_takes_for_ever_is_stopped(monkeypatch):
    pytest.importorskip("regex")
    from minigrad.tokenizers import patterns

    monkeypatch.setattr(patterns, "SECONDS", 0.2)
    patterns.matcher.cache_clear()
    tokenizer = PretrainedTokenizer.from_json(
        changed(wordpiece(), normalizer=None, pre_tokenizer=split({"Regex": "(.*?,){20}P"}))
    )
    with pytest.raises(DataError, match="too long"):
        tokenizer.encode(",".join(map(str, range(30))))


@pytest.mark.parametrize("kind", ["byte-level BPE", "SentencePiece BPE", "Unigram", "WordPiece"])
def test_a_stream_shows_whole_characters_and_in_the_end_the_whole_text(kind):
    tokenizer = PretrainedTokenizer.from_json(KINDS[kind]())
    for text in [*SENTENCES, "é👋🏽 日本 ∑ x"]:
        ids = tokenizer.encode(text)
        stream = TextStream(tokenizer)
        pieces = [stream.push(i) for i in ids]
        assert all("\ufffd" not in piece for piece in pieces)
        assert "".join([*pieces, stream.finish()]) == tokenizer.decode(ids)


def test_a_stream_after_a_prompt_keeps_the_space_between_them():
    tokenizer = PretrainedTokenizer.from_json(sentencepiece_bpe())
    prompt, answer = tokenizer.encode("The quick"), tokenizer.encode("brown fox")
    stream = TextStream(tokenizer, prompt)
    assert "".join([*map(stream.push, answer), stream.finish()]) == " brown fox"
