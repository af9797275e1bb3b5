"""Tensors in files: every kind comes back as it was, a failed write harms nothing, and a bad file is refused without running anything."""

import json
import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from safetensors.numpy import load_file, save_file

import minigrad as mg
from minigrad import saving
from minigrad.errors import CheckpointError, MinigradError

DTYPES = (
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
    "complex64",
)


def round_trip(path, value):
    mg.save({"value": value}, path)
    return mg.load(path)["value"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tensors.safetensors"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3, 4)], ids=str)
def test_every_dtype_and_shape_comes_back(path, dtype, shape):
    array = (np.random.default_rng(0).uniform(0, 100, shape)).astype(dtype)
    back = round_trip(path, mg.tensor(array))
    assert back.dtype == dtype and back.shape == shape
    np.testing.assert_array_equal(back.numpy(), array)


def test_a_dtype_that_the_format_lacks_is_refused_by_name(path):
    with pytest.raises(MinigradError, match="value(.|\n)*complex128"):
        mg.save({"value": mg.tensor(np.ones(2, "complex128"))}, path)
    assert not path.exists()


@pytest.mark.parametrize(
    "layout", ["transposed", "fortran", "strided", "reversed", "broadcast", "read-only", "big-endian"]
)
def test_every_layout_comes_back(path, layout):
    base = np.arange(24.0).reshape(4, 6)
    array = {
        "transposed": base.T,
        "fortran": np.asfortranarray(base),
        "strided": base[::2, 1::3],
        "reversed": base[::-1, ::-1],
        "broadcast": np.broadcast_to(base[0], (3, 6)),
        "read-only": base.copy(),
        "big-endian": base.astype(">f8"),
    }[layout]
    if layout == "read-only":
        array.flags.writeable = False
    back = round_trip(path, array)
    np.testing.assert_array_equal(back.numpy(), base if layout in ("read-only", "big-endian", "fortran") else array)
    np.testing.assert_array_equal(load_file(path)["value"], array)


def test_only_contiguous_arrays_reach_the_library(path, monkeypatch):
    real, seen = safetensors.numpy.save, []

    def watched(arrays, metadata=None):
        seen.extend(a.flags.c_contiguous for a in arrays.values())
        return real(arrays, metadata=metadata)

    monkeypatch.setattr(safetensors.numpy, "save", watched)
    mg.save({"t": mg.ones(2, 3).T, "s": mg.arange(9)[::2], "b": mg.broadcast_to(mg.ones(3), (2, 3))}, path)
    assert seen == [True, True, True]


def test_a_view_of_a_tensor_saves_only_what_it_shows(path):
    x = mg.arange(1000.0)
    np.testing.assert_array_equal(round_trip(path, x[10:20:3]).numpy(), [10, 13, 16, 19])
    assert path.stat().st_size < 500


def test_special_numbers_come_back_bit_by_bit(path):
    array = np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, 5e-324, 1.7976931348623157e308])
    assert round_trip(path, array).numpy().tobytes() == array.tobytes()


def test_names_and_their_order_are_free(path):
    tensors = {"z.weight": mg.ones(2), "a": mg.zeros(3), "имя 名前": mg.ones(1), "a b/c": mg.arange(4)}
    mg.save(tensors, path)
    back = mg.load(path)
    assert set(back) == set(tensors)
    for name, value in tensors.items():
        np.testing.assert_array_equal(back[name].numpy(), value.numpy())


def test_nothing_is_a_file_too(path):
    mg.save({}, path)
    assert mg.load(path) == {}


def test_what_is_loaded_is_a_fresh_constant_in_memory_of_its_own(path):
    x = mg.ones(3, requires_grad=True)
    mg.save({"x": x * 2, "again": x}, path)
    back = mg.load(path)
    assert not back["x"].requires_grad and back["x"].is_leaf
    back["x"][0] = 7.0
    back["x"].requires_grad_()
    np.testing.assert_array_equal(mg.load(path)["x"].numpy(), [2, 2, 2])


def test_the_file_is_ordinary_safetensors_in_both_directions(path):
    mg.save({"w": mg.tensor([[1.5, 2.0]])}, path, metadata={"made": "here"})
    np.testing.assert_array_equal(load_file(path)["w"], np.array([[1.5, 2.0]], "float32"))
    header = json.loads(path.read_bytes()[8 : 8 + struct.unpack("<Q", path.read_bytes()[:8])[0]])
    assert header["__metadata__"] == {"made": "here"}
    save_file({"theirs": np.arange(3)}, path)
    assert mg.load(path)["theirs"].tolist() == [0, 1, 2]


def test_text_and_pathlike_paths_are_taken(tmp_path):
    mg.save({"x": mg.ones(2)}, str(tmp_path / "a"))
    assert mg.load(os.fspath(tmp_path / "a"))["x"].tolist() == [1, 1]


@pytest.mark.parametrize("value", [object(), {1, 2}, 1j, b"bytes"], ids=lambda v: type(v).__name__)
def test_what_cannot_be_saved_is_refused_by_name_and_the_old_file_stays(path, value):
    mg.save({"x": mg.ones(2)}, path)
    before = path.read_bytes()
    with pytest.raises(
        MinigradError,
        match=f"save(.|\n)*layer.bias(.|\n)*{(type(value).__name__ if not isinstance(value, complex) else '1j')}",
    ):
        mg.save({"x": mg.zeros(2), "layer.bias": value}, path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("value", [mg.ones(2), [mg.ones(2)], 3.5, None], ids=lambda v: type(v).__name__)
def test_tensors_without_names_are_refused(path, value):
    with pytest.raises(MinigradError, match="the tensors need names"):
        mg.save(value, path)


def test_names_that_are_neither_texts_nor_numbers_are_refused(path):
    with pytest.raises(MinigradError, match=r"save(.|\n)*\(1, 2\)"):
        mg.save({(1, 2): mg.ones(2)}, path)


def test_object_arrays_are_refused(path):
    with pytest.raises(MinigradError, match="x"):
        mg.save({"x": np.array([None, 1], dtype=object)}, path)
    assert not path.exists()


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_no_litter(path, monkeypatch, step):
    mg.save({"x": mg.ones(2)}, path)
    before = path.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(saving.os, step, fail)
    with pytest.raises(CheckpointError, match="No space left on device"):
        mg.save({"x": mg.zeros(1000)}, path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_names_come_back_in_order(path):
    mg.save({name: mg.ones(1) for name in "fbdaec"}, path)
    assert list(mg.load(path)) == list("abcdef")


def test_the_new_file_is_complete_before_it_takes_the_name(path, monkeypatch):
    mg.save({"x": mg.ones(2)}, path)
    real, seen = os.replace, []

    def watched(source, target):
        seen.append((mg.load(source)["x"].tolist(), mg.load(target)["x"].tolist()))
        real(source, target)

    monkeypatch.setattr(saving.os, "replace", watched)
    mg.save({"x": mg.zeros(2)}, path)
    assert seen == [([0, 0], [1, 1])]


def test_a_missing_folder_is_told(tmp_path):
    with pytest.raises((MinigradError, OSError), match="nowhere"):
        mg.save({"x": mg.ones(2)}, tmp_path / "nowhere" / "x.safetensors")


@pytest.mark.parametrize("target", ["missing", "."])
def test_a_file_that_cannot_be_read_is_told(tmp_path, target):
    with pytest.raises(MinigradError, match=r"load(.|\n)*fix"):
        mg.load(tmp_path / target)


def header(entries, body=b""):
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + body


def one(dtype, shape, start, stop, count):
    """A file with one tensor, described as told, and so many bytes after the header."""
    return header({"x": {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}}, b"0" * count)


class Malicious:
    """Unpickling this would create a file."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


OVERLAP = {
    "x": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
    "y": {"dtype": "U8", "shape": [4], "data_offsets": [2, 6]},
}
HOSTILE = {
    "empty": b"",
    "short": b"\x08\x00",
    "text": b"hello, this is not a tensor file",
    "no json": struct.pack("<Q", 4) + b"ab{c",
    "huge header": struct.pack("<Q", 2**63) + b"{}",
    "header beyond the end": struct.pack("<Q", 1000) + b"{}",
    "a list": header([1, 2]),
    "offsets beyond the end": one("F32", [2], 0, 8, 0),
    "negative offsets": one("F32", [2], -8, 0, 8),
    "too few bytes": one("F32", [4], 0, 8, 8),
    "too many bytes": one("F32", [1], 0, 4, 99),
    "unknown dtype": one("OBJECT", [1], 0, 4, 4),
    "overflowing shape": one("F32", [2**62, 8], 0, 8, 8),
    "text shape": one("F32", "2", 0, 8, 8),
    "missing shape": header({"x": {"dtype": "F32", "data_offsets": [0, 8]}}, b"0" * 8),
    "overlap": header(OVERLAP, b"0" * 6),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_gives_a_minigrad_error(path, kind):
    path.write_bytes(HOSTILE[kind])
    with pytest.raises(MinigradError, match="load"):
        mg.load(path)


def test_a_pickle_is_refused_and_never_opened(path, tmp_path):
    marker = tmp_path / "opened"
    path.write_bytes(pickle.dumps(Malicious(marker)))
    with pytest.raises(MinigradError, match="load"):
        mg.load(path)
    assert not marker.exists()


def test_a_file_cut_anywhere_is_refused(path):
    mg.save({"x": mg.arange(6.0), "y": mg.ones(2, 2)}, path)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(MinigradError, match="load"):
            mg.load(path)


def test_tensors_come_to_and_from_another_device(path):
    mg.save({"x": mg.ones(2, device="fake")}, path)
    assert mg.load(path)["x"].device == "cpu"
    assert mg.load(path, device="fake")["x"].device == "fake"
