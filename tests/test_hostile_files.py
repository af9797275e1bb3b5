"""Spoilt files of weights and tokenizers: each is read or refused, and nothing else; `python -m benchmarks.fuzz_formats` tries more."""

import pytest
import safetensors
from support import hostile_files as hostile

from minigrad.errors import CheckpointError
from minigrad.formats import open_weights

CASES = 300  # of each kind


@pytest.mark.parametrize("kind", hostile.KINDS)
def test_the_file_that_is_spoilt_is_a_good_one(tmp_path, kind):
    path = hostile.place_for(kind, tmp_path)
    path.write_bytes(hostile.KINDS[kind][0])
    assert hostile.outcome(kind, path) == "read"


@pytest.mark.parametrize("kind", hostile.KINDS)
def test_spoilt_files_are_read_or_refused(tmp_path, kind):
    path = hostile.place_for(kind, tmp_path)
    first = list(hostile.KINDS).index(kind)
    found = set()
    for seed in range(first, CASES * len(hostile.KINDS), len(hostile.KINDS)):
        made, content = hostile.case(seed)
        assert made == kind
        path.write_bytes(content)
        found.add(hostile.outcome(kind, path))
    assert "refused" in found


def test_a_spoilt_safetensors_file_is_read_exactly_if_the_package_reads_it(tmp_path):
    for seed in range(0, 1500 * len(hostile.KINDS), len(hostile.KINDS)):
        kind, content = hostile.case(seed)
        try:
            safetensors.deserialize(content)
            theirs = "read"
        except safetensors.SafetensorError:
            theirs = "refused"
        (tmp_path / "w").write_bytes(content)
        assert (kind, hostile.outcome(kind, tmp_path / "w")) == ("safetensors", theirs), seed


@pytest.mark.parametrize(
    "content", [b"", b"\0", b"{", b"PK", b"GGUF", b"\x80", b"\x01" + bytes(7), b"\x93NUMPY", b"\xff" * 99]
)
def test_a_few_bytes_are_refused(tmp_path, content):
    (tmp_path / "w").write_bytes(content)
    with pytest.raises(CheckpointError):
        open_weights(tmp_path / "w")


def test_a_path_that_is_no_file_is_told(tmp_path):
    with pytest.raises(CheckpointError, match="cannot be read"):
        open_weights(tmp_path / "missing")
