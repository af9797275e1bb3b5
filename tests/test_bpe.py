"""Byte-pair encoding: every text comes back, training is what its definition says, and `tokenizers` agrees."""

import importlib.util
import random
import re
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minigrad.data import BPETokenizer
from minigrad.data.bpe import FIRST_BYTE, FIRST_MERGE, MAX_BYTES, PATTERN
from minigrad.errors import MinigradError

CORPUS = (
    "Low, lower, lowest! The newest and widest slow rivers don't flow; they're there. "
    "¿Dónde está la estación? El niño está en la habitación. 12 345 6789\n\n  Größe, süß, 你好世界 你好 👋🏽👋🏽 <pad></s>\r\n"
) * 4
TRAINED = BPETokenizer.train(CORPUS, 420)

# Pieces of every kind of text, put together so that merges are found often, and any other valid text.
PIECES = [
    "low",
    " lowest",
    "don't",
    "’s",
    "está",
    "e\u0301",
    "\u0301",
    "\u200d",
    "👋🏽",
    "👩‍👩‍👧",
    "<s>",
    "<pad>",
    "  ",
    "\n",
    "\t",
    "\x00",
]
texts = st.text() | st.lists(st.sampled_from(PIECES) | st.text(max_size=3)).map("".join)


@settings(max_examples=500, deadline=None)
@given(texts)
def test_every_valid_text_comes_back(text):
    ids = TRAINED.encode(text)
    assert TRAINED.decode(ids) == text
    assert all(FIRST_BYTE <= i < TRAINED.vocab_size for i in ids)


def test_every_character_of_unicode_comes_back():
    for start in range(0, 0x110000, 0x1000):
        text = "".join(chr(c) for c in range(start, start + 0x1000) if not 0xD800 <= c < 0xE000)
        assert TRAINED.decode(TRAINED.encode(text)) == text


@settings(max_examples=500, deadline=None)
@given(texts)
def test_cutting_a_text_into_pieces_loses_nothing(text):
    assert "".join(BPETokenizer.pattern.findall(text)) == text


def test_words_take_the_space_before_them_and_contractions_are_cut_before_the_apostrophe():
    cut = BPETokenizer.pattern.findall
    assert cut("I don't know,  it's ’twas 12345") == [
        "I", " don", "'t", " know", ",", " ", " it", "'s", " ’", "twas", " 123", "45",
    ]  # fmt: skip
    assert cut("a\n\n  b\u00a0c") == ["a", "\n\n ", " b", "\u00a0", "c"]
    assert max(map(len, cut("x" * 5000 + " " * 5000 + "!" * 5000))) <= 33


def reference_merges(text, vocab_size, min_count=2):
    """Byte-pair encoding as its definition says it: count all pairs anew for each merge."""
    words = Counter(re.findall(PATTERN, text))
    split = {word: [bytes([b]) for b in word.encode()] for word in words}
    ids = {bytes([b]): FIRST_BYTE + b for b in range(256)}
    merges = []
    while len(ids) + FIRST_BYTE < vocab_size:
        counts = Counter()
        for word, count in words.items():
            for pair in zip(split[word], split[word][1:]):
                counts[pair] += count
        counts = {p: n for p, n in counts.items() if n >= min_count and len(p[0] + p[1]) <= MAX_BYTES}
        if not counts:
            break
        best = min(counts, key=lambda p: (-counts[p], ids[p[0]], ids[p[1]]))
        if (ids[best[0]], ids[best[1]]) not in merges:
            merges.append((ids[best[0]], ids[best[1]]))
        ids.setdefault(best[0] + best[1], FIRST_BYTE + len(ids))
        for word, parts in split.items():
            i = 0
            while i < len(parts) - 1:
                if (parts[i], parts[i + 1]) == best:
                    parts[i : i + 2] = [best[0] + best[1]]
                i += 1
            split[word] = parts
    return merges


@pytest.mark.parametrize(
    "text",
    [CORPUS, "aaaaaaaa aaa aaaaa a aa" * 3, "abcabcab cabcab bcabca abc" * 5, "na" * 500, "=" * 300, "", "x"],
    ids=lambda text: text[:12],
)
def test_training_merges_what_counting_anew_would_merge(text):
    assert list(BPETokenizer.train(text, 400).merges) == reference_merges(text, 400)


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="ab c", max_size=80))
def test_training_on_few_letters_merges_what_counting_anew_would_merge(text):
    assert list(BPETokenizer.train(text, 290).merges) == reference_merges(text, 290)


def test_training_does_not_depend_on_how_the_texts_come():
    assert BPETokenizer.train([CORPUS]) == BPETokenizer.train(CORPUS) == BPETokenizer.train(iter([CORPUS]))
    lines = CORPUS.splitlines(keepends=True)
    assert BPETokenizer.train(lines, 400) == BPETokenizer.train(lines[::-1], 400)


def test_the_size_of_the_vocabulary_is_what_was_asked_for():
    assert BPETokenizer.train(CORPUS, 300).vocab_size == 300
    assert BPETokenizer.train(CORPUS, FIRST_MERGE).merges == ()
    assert BPETokenizer.train("ab ab", 1000).vocab_size < 270
    for size in (260, 10**9):
        with pytest.raises(MinigradError, match="cannot have this size"):
            BPETokenizer.train(CORPUS, size)


def test_ids_that_are_not_valid_utf8_decode_to_the_replacement_character():
    assert BPETokenizer([]).decode([FIRST_BYTE + 0xC3]) == "\ufffd"
    assert BPETokenizer([]).token(FIRST_BYTE + 0xC3) == "\\xc3"


def made_up_words(rng):
    syllables = ["ka", "lo", "mi", "ter", "est", "in", "gra", "po", "ñu", "sh", "é", "den", "or", "al"]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 5))) for _ in range(30_000)]
    return " ".join(words[int(30_000 * rng.random() ** 3)] for _ in range(130_000))


def letters_of_many_scripts_without_spaces(rng):
    """No piece comes twice, so that nothing is saved by counting pieces."""
    scripts = [(0x61, 0x7A), (0x430, 0x44F), (0x5D0, 0x5EA), (0x905, 0x939), (0x3041, 0x3096), (0x4E00, 0x9FFF)]
    return "".join(chr(rng.randint(*rng.choice(scripts))) for _ in range(440_000))


@pytest.mark.parametrize("made", [made_up_words, letters_of_many_scripts_without_spaces])
def test_training_on_a_megabyte_takes_at_most_ten_seconds(made):
    text = made(random.Random(0))
    assert len(text.encode()) > 1_000_000
    start = time.process_time()
    tokenizer = BPETokenizer.train(text, 8000)
    assert time.process_time() - start <= 10
    assert tokenizer.vocab_size == 8000


def test_a_long_text_without_spaces_is_encoded_in_reasonable_time():
    start = time.process_time()
    assert TRAINED.decode(TRAINED.encode("low" * 100_000 + "你好世" * 50_000)) == "low" * 100_000 + "你好世" * 50_000
    assert time.process_time() - start < 10


def byte_characters():
    """The printable character that stands for each byte in files of byte-level BPE."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [b for b in range(256) if b not in plain]
    return {**{b: chr(b) for b in plain}, **{b: chr(256 + i) for i, b in enumerate(others)}}


def library_tokenizer(ours):
    """The same merges and the same pattern in the `tokenizers` library, whose regex engine has other escapes."""
    import tokenizers

    letters = byte_characters()
    names = ["".join(letters[b] for b in token) for token in ours.bytes]
    vocab = {name: i for i, name in enumerate(names) if i >= FIRST_BYTE}
    merges = [(names[left], names[right]) for left, right in ours.merges]
    pattern = re.sub(r"\\U(.{8})|\\u(.{4})|\\x(..)", lambda m: chr(int(m[1] or m[2] or m[3], 16)), PATTERN)
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocab, merges=merges))
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), behavior="isolated"),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return theirs


needs_tokenizers = pytest.mark.skipif(
    importlib.util.find_spec("tokenizers") is None, reason="the library is not installed: pip install tokenizers"
)
# With (a, bc) and (ab, c) both learned, two merges make one token.
TWO_WAYS = BPETokenizer([(102, 103), (103, 104), (102, 262), (261, 104), (263, 102)])


@needs_tokenizers
@pytest.mark.parametrize("ours", [TRAINED, TWO_WAYS, BPETokenizer([])], ids=["trained", "two ways", "bytes"])
def test_the_tokenizers_library_encodes_the_same(ours):
    theirs = library_tokenizer(ours)

    @settings(max_examples=400, deadline=None)
    @given(texts | st.text(alphabet="abc "))
    def agree(text):
        assert theirs.encode(text).ids == ours.encode(text)

    agree()
    assert theirs.encode(CORPUS).ids == ours.encode(CORPUS)


def test_two_merges_that_make_the_same_bytes_make_one_token():
    assert TWO_WAYS.vocab_size == 261 + 4
    assert [TWO_WAYS.token(i) for i in range(261, 265)] == ["ab", "bc", "abc", "abca"]
    assert BPETokenizer.from_json(TWO_WAYS.to_json()) == TWO_WAYS
