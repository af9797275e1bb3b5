"""Word vectors: both text formats are read, and whatever is wrong with a file is told by line."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import minigrad as mg
from minigrad import nn
from minigrad.errors import ArgumentError
from minigrad.nn.weights import word_vectors

GLOVE = "the 0.1 -0.2 3e-1\nhouse 1 2 3\n. . . 4 5 6\n42 7 8 9\nniño 0.5 0.5 0.5\n"
WORDS = ["the", "house", ". . .", "42", "niño"]


def read(tmp_path: Path, content: str | bytes, name: str = "vectors.txt", **options: Any) -> nn.WordVectors:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return nn.read_word_vectors(path, **options)


@pytest.mark.parametrize(
    "content",
    [
        GLOVE,
        "5 3\n" + GLOVE,
        "5 3\n" + GLOVE.replace("\n", " \n"),
        GLOVE.replace("\n", "\r\n"),
        GLOVE.rstrip("\n"),
        "\ufeff" + GLOVE,
        GLOVE + "\n\n",
        "5 3\n" + GLOVE.replace("house ", "house\t"),
    ],
    ids=[
        "glove",
        "word2vec",
        "trailing spaces",
        "windows",
        "no last newline",
        "byte order mark",
        "blank lines",
        "tabs",
    ],
)
def test_both_formats_are_read_without_a_warning(content, tmp_path, recwarn):
    found = read(tmp_path, content)
    assert found.words == WORDS and len(found) == 5 and found.problems == [] and found.bad == 0
    expected = [[0.1, -0.2, 0.3], [1, 2, 3], [4, 5, 6], [7, 8, 9], [0.5, 0.5, 0.5]]
    assert found.vectors.dtype == np.float32
    np.testing.assert_allclose(found.vectors, expected, rtol=1e-6)
    assert len(recwarn) == 0


def test_compressed_files_vocabularies_limits_and_dtypes(tmp_path):
    packed = gzip.compress(GLOVE.encode())
    assert read(tmp_path, packed, "vectors.txt.gz").words == WORDS
    assert read(tmp_path, packed, "vectors.gz", only={"house", "niño", "absent"}).words == ["house", "niño"]
    assert read(tmp_path, GLOVE + "other 1 two 3\n", only={"the"}).problems == []
    assert read(tmp_path, "999 3\n" + GLOVE, limit=2).words == ["the", "house"]
    assert read(tmp_path, GLOVE, dtype="float64").vectors[0, 0] == 0.1
    assert read(tmp_path, GLOVE, only=[]).vectors.shape == (0, 3)
    with pytest.raises(ArgumentError, match="limit"):
        read(tmp_path, GLOVE, limit=0)
    with pytest.raises(ArgumentError, match="dtype"):
        read(tmp_path, GLOVE, dtype="int64")
    with pytest.raises(FileNotFoundError):
        nn.read_word_vectors(tmp_path / "absent.txt")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"short 1 2", "2 numbers instead of 3"),
        (b"long 1 2 3 4", "4 numbers instead of 3"),
        (b"alone", "0 numbers instead of 3"),
        (b"word 1 two 3", "'two' is not a number"),
        (b"nan 1 nan 3", "a number is not finite, or too large for float32"),
        (b"large 1 1e39 3", "a number is not finite, or too large for float32"),
        (b"caf\xe9 1 2 3", "not UTF-8"),
        (b"house 9 9 9", "the word 'house' for the second time"),
        (b"x" * (word_vectors.LONGEST_LINE + 5) + b" 1 2 3", "longer than 1,048,576 bytes"),
        (b"x" * (3 * word_vectors.LONGEST_LINE), "longer than 1,048,576 bytes"),
    ],
)
@pytest.mark.parametrize("header", [b"", b"6 3\n"], ids=["glove", "word2vec"])
def test_a_bad_line_is_left_out_and_told_with_its_number(line, problem, header, tmp_path):
    content = header + GLOVE.encode().replace(b"42 ", line + b"\n42 ")
    number = 4 + bool(header)
    with pytest.warns(UserWarning, match=f"vectors.txt: 1 lines were left out: line {number}: {problem}$"):
        found = read(tmp_path, content)
    assert found.words == WORDS and found.bad == 1 and found.problems == [f"line {number}: {problem}"]


def test_a_header_that_announces_other_than_there_is_is_told(tmp_path):
    with pytest.warns(UserWarning, match="line 1: announces 7 words, but there are 5"):
        found = read(tmp_path, "7 3\n" + GLOVE)
    assert found.words == WORDS


def test_many_bad_lines_are_counted_and_the_first_are_listed(tmp_path):
    with pytest.warns(UserWarning, match="3,000 lines were left out: line 6: .*; line 10: .*; …"):
        found = read(tmp_path, GLOVE + "bad\n" * 3000)
    assert found.bad == 3000 and len(found.problems) == word_vectors.LISTED


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        (b"", "a.txt", "an empty file"),
        (b"\n\n", "a.txt", "an empty file"),
        (b"3 300\n", "a.txt", "no line of this file is a word vector"),
        (b"999999999999999999 999999999999999999\nthe 1 2\n", "a.txt", "2 numbers instead of 999999999999999999"),
        (b"5 0\nthe\n", "a.txt", "no line"),
        (b"2 3\nthe \x00\xff\x80\x3f\xfe\x00", "a.bin", "not UTF-8\n.*binary file"),
        (b"not a gzip file", "a.gz", "the file is damaged"),
        (gzip.compress(GLOVE.encode() * 100)[:60], "a.gz", "the file is damaged"),
        (gzip.compress(GLOVE.encode())[:20] + b"\xff" * 40, "a.gz", "the file is damaged"),
    ],
)
def test_a_file_that_is_none_is_refused_with_words(content, name, words, tmp_path):
    with pytest.raises(nn.WordVectorsError, match=words):
        read(tmp_path, content, name)


def test_neither_a_long_line_nor_a_large_header_takes_memory(tmp_path):
    line = b"x" * (64 * word_vectors.LONGEST_LINE)
    (tmp_path / "huge.gz").write_bytes(gzip.compress(b"999999999 300\n" + line, compresslevel=1))
    tracemalloc.start()
    with pytest.raises(nn.WordVectorsError):
        nn.read_word_vectors(tmp_path / "huge.gz")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < len(line) / 8


@settings(max_examples=200, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=200) | st.text(alphabet="ab 01.e-\n\t\r\u00a0", max_size=200).map(str.encode))
def test_any_bytes_are_read_or_refused(tmp_path_factory, content):
    import warnings

    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            found = nn.read_word_vectors(path)
        except nn.WordVectorsError:
            return
    assert len(found.words) == len(set(found.words)) == len(found.vectors) >= 1
    assert np.isfinite(found.vectors).all() and found.vectors.ndim == 2 and found.vectors.shape[1] >= 1


def test_a_table_for_a_vocabulary_takes_known_words_and_draws_the_others(tmp_path):
    found = read(tmp_path, GLOVE)
    mg.manual_seed(0)
    table, missing = found.table(["<pad>", "house", "unknown", "the"])
    assert missing == ["<pad>", "unknown"] and table.shape == (4, 3) and table.dtype == np.float32
    np.testing.assert_allclose(table.numpy()[[1, 3]], [[1, 2, 3], [0.1, -0.2, 0.3]], rtol=1e-6)
    assert (table.numpy()[0] != table.numpy()[2]).all()
    layer = nn.Embedding.from_pretrained(table, freeze=False, padding_idx=0)
    np.testing.assert_array_equal(layer(mg.tensor([1])).numpy(), [[1, 2, 3]])
    layer(mg.tensor([0, 1])).sum().backward()
    np.testing.assert_array_equal(layer.weight.grad.numpy().sum(axis=1), [0, 3, 0, 0])
    with pytest.raises(nn.WordVectorsError, match="there are no vectors"):
        read(tmp_path, GLOVE, only=[]).table(["a"])
