"""Tokenizers: what all kinds promise, characters, words, and that the file of a stranger is refused and never believed."""

import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minigrad as mg
from minigrad.data import (
    BOS,
    EOS,
    MASK,
    PAD,
    SPECIALS,
    UNK,
    BPETokenizer,
    CharTokenizer,
    DataError,
    Tokenizer,
    WordTokenizer,
)
from minigrad.data.tokenizers import MAX_JSON
from minigrad.errors import MinigradError

TEXT = 'The cat, 1,000 years old, said: "Where is <pad>?" ¿Dónde está el café? [It\'s well-known] {really} 3.5\\4'
TOKENIZERS = [CharTokenizer.train(TEXT), WordTokenizer.train(TEXT), BPETokenizer.train(TEXT * 3, 300)]
every_kind = pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=lambda t: t.kind)


@every_kind
def test_special_tokens_have_the_first_five_ids(tokenizer):
    assert (PAD, BOS, EOS, UNK, MASK) == (0, 1, 2, 3, 4)
    assert [tokenizer.token(i) for i in range(5)] == list(SPECIALS) == ["<pad>", "<s>", "</s>", "<unk>", "<mask>"]


@every_kind
def test_the_text_of_a_special_token_is_only_text(tokenizer):
    ids = tokenizer.encode("<pad> <s> </s> <mask>")
    assert not {PAD, BOS, EOS, MASK} & set(ids)


@every_kind
def test_begin_and_end_are_added_if_asked_for_and_skipped_in_decoding(tokenizer):
    plain = tokenizer.encode("cat")
    assert tokenizer.encode("cat", bos=True, eos=True) == [BOS, *plain, EOS]
    assert tokenizer.decode([BOS, PAD, *plain, MASK, EOS, PAD]) == "cat"
    assert tokenizer.decode([*plain, EOS], skip_special=False).replace(" ", "") == "cat</s>"


@every_kind
def test_unknown_text_stays_visible_in_decoding(tokenizer):
    assert "<unk>" in tokenizer.decode([UNK])


@every_kind
def test_ids_are_decoded_from_lists_arrays_and_tensors(tokenizer, device):
    ids = tokenizer.encode("cat")
    for form in (tuple(ids), np.array(ids, dtype=np.int32), mg.tensor(ids, device=device)):
        assert tokenizer.decode(form) == "cat"


@every_kind
@pytest.mark.parametrize("ids", [[-1], [10**6], [1.5], ["a"], [[1, 2]], np.zeros((2, 2), int), np.int64(3)], ids=repr)
def test_what_is_not_an_id_is_refused(tokenizer, ids):
    with pytest.raises(MinigradError, match=r"id"):
        tokenizer.decode(ids)


@every_kind
@pytest.mark.parametrize("text", ["half \ud83d a pair", b"bytes", None, 3], ids=ascii)
def test_what_is_not_a_valid_text_is_refused(tokenizer, text):
    with pytest.raises(
        MinigradError, match="encode: (this is not a text|the text has half a surrogate pair at position 5)"
    ):
        tokenizer.encode(text)


@every_kind
def test_every_id_has_a_token_and_encoding_stays_inside_the_vocabulary(tokenizer):
    assert all(isinstance(tokenizer.token(i), str) for i in range(tokenizer.vocab_size))
    assert max(tokenizer.encode(TEXT)) < tokenizer.vocab_size
    assert tokenizer.unknown_rate(TEXT) == 0


@every_kind
def test_json_brings_back_the_same_tokenizer(tokenizer):
    back = Tokenizer.from_json(tokenizer.to_json())
    assert type(back) is type(tokenizer)
    assert back == tokenizer and back.to_json() == tokenizer.to_json()
    assert back.encode(TEXT) == tokenizer.encode(TEXT)
    assert json.loads(tokenizer.to_json())["kind"] == tokenizer.kind


def test_one_kind_does_not_read_the_file_of_another():
    with pytest.raises(DataError, match=r"another tokenizer(.|\n)*WordTokenizer.from_json"):
        CharTokenizer.from_json(WordTokenizer.train(TEXT).to_json())


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_characters_are_reversible_and_survive_json(text):
    tokenizer = CharTokenizer.train(text)
    assert CharTokenizer.from_json(tokenizer.to_json()) == tokenizer
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.vocab_size == 5 + len(set(text))


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_words_survive_json_and_cover_all_that_is_not_space(text):
    tokenizer = WordTokenizer.train(text)
    assert WordTokenizer.from_json(tokenizer.to_json()) == tokenizer
    assert "".join(map(tokenizer.token, tokenizer.encode(text))) == "".join(
        c for c in text if not c.isspace() or c in "\x1c\x1d\x1e\x1f"
    )


@pytest.mark.parametrize(
    "text",
    [
        "¿Dónde está el café?",
        "Well, isn't it well-known (really)?",
        'She said "no" and left: 1,000.50 at 10:30!',
        "«Sí», dijo.",
        "e\u0301te\u0301 नमस्ते",
    ],
)
def test_ordinary_sentences_come_back_from_words_as_they_were(text):
    tokenizer = WordTokenizer.train(text)
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_the_most_frequent_words_are_kept_and_equal_ones_are_ordered():
    assert WordTokenizer.train("b b a a c", vocab_size=7).tokens[5:] == ("a", "b")
    assert WordTokenizer.train(["b b a", "c"], min_count=2).tokens[5:] == ("b",)
    assert CharTokenizer.train("zzyyx", vocab_size=7).tokens[5:] == ("y", "z")
    assert WordTokenizer.train("a b").unknown_rate(["a c", "c b"]) == 0.5
    with pytest.raises(MinigradError, match="too small"):
        WordTokenizer.train("a", vocab_size=5)


def file(**entries):
    return json.dumps({"kind": "char", "version": 1, **entries})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "null",
        "[]",
        "NaN",
        "{}",
        "[" * 100_000,
        '{"kind": "char", "version": 1, "characters": "ab"',
        '{"kind": "char", "kind": "char", "version": 1, "characters": "ab"}',
        file(),
        file(characters="abca"),
        file(characters="a\ud800"),
        file(characters=["a"]),
        file(characters=None),
        file(characters="ab", more=1),
        file(characters="ab", version=2),
        file(characters="ab", version=True),
        file(characters="ab", version=1.0),
        file(characters="ab", kind="chars"),
        file(characters="ab", kind=["char"]),
        file(characters="ab", kind="__class__"),
        file(kind="word", words="a  b"),
        file(kind="word", words="a a"),
        file(kind="word", words="a\tb"),
        file(kind="word", words="a,b"),
        file(kind="word", words="<pad>"),
        file(kind="bpe", merges="5"),
        file(kind="bpe", merges="5 261"),
        file(kind="bpe", merges="4 5"),
        file(kind="bpe", merges="-5 5"),
        file(kind="bpe", merges="5 6 5 6"),
        file(kind="bpe", merges="٥ ٦"),
        file(kind="bpe", merges="1_0 10"),
        file(kind="bpe", merges=" 5 6"),
        file(kind="bpe", merges="5 " + "9" * 5000),
        file(kind="bpe", merges=[[5, 6]]),
        file(kind="bpe", merges="5 6 " + " ".join(f"{i} {i}" for i in range(261, 300))),
        '{"kind": "char", "version": ' + "9" * 5000 + ', "characters": "ab"}',
        '{"a": [' + "[]," * 1000 + "[]]}",
        file(characters="x" * MAX_JSON),
    ],
    ids=lambda text: text[:50],
)
def test_a_file_that_is_not_a_tokenizer_is_refused(text):
    with pytest.raises(DataError, match="from_json"):
        Tokenizer.from_json(text)


def test_every_truncation_and_many_changes_of_a_file_are_refused_or_still_valid():
    for tokenizer in TOKENIZERS:
        whole = tokenizer.to_json()
        for end in range(len(whole)):
            with pytest.raises(DataError):
                Tokenizer.from_json(whole[:end])
        random = np.random.default_rng(0)
        for _ in range(300):
            place, new = int(random.integers(len(whole))), chr(int(random.integers(1, 0x300)))
            try:
                changed = Tokenizer.from_json(whole[:place] + new + whole[place + 1 :])
            except DataError:
                continue
            assert Tokenizer.from_json(changed.to_json()) == changed


@pytest.mark.parametrize(
    "text",
    ['{"a": [' + "[]," * 10**6 + "[]]}", "[" + "257," * 10**6 + "1]", "{" + '"a":1,' * 600_000 + "}"],
    ids=["lists", "numbers", "keys"],
)
def test_a_hostile_file_is_refused_before_it_is_parsed(text):
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="too many entries"):
            Tokenizer.from_json(text)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_a_file_of_too_many_characters_is_refused_before_they_are_taken_apart():
    text = file(characters="x" * (MAX_JSON - 100))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="too many characters"):
            Tokenizer.from_json(text)
        assert tracemalloc.get_traced_memory()[1] < 2 * len(text)
    finally:
        tracemalloc.stop()


def test_half_a_surrogate_pair_is_in_no_vocabulary():
    """It could be given to a model, and then the checkpoint could not be written."""
    for made, entries in ((CharTokenizer, {"characters": "a\ud800"}), (WordTokenizer, {"words": "a b\ud800c"})):
        with pytest.raises(MinigradError, match="CharTokenizer: every token|WordTokenizer: no text gives"):
            made(entries.get("characters") or entries["words"].split())
        with pytest.raises(DataError, match="vocabulary is not valid"):
            Tokenizer.from_json(file(kind=made.kind, **entries))


def test_a_large_honest_vocabulary_is_read_again():
    words = WordTokenizer(f"w{i}" for i in range(100_000))
    numbers = WordTokenizer(f"{i},000" for i in range(1000))
    assert WordTokenizer.from_json(words.to_json()) == words
    assert WordTokenizer.from_json(numbers.to_json()) == numbers
