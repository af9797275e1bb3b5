"""Files of torch.save: both layouts are read without running them, and a pickle that asks for anything but tensors is refused by name."""

import collections
import os
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from support.pretrained import folder
from support.weight_files import pickled_tensor, torch_archive, torch_stream

import minigrad as mg
from minigrad.errors import CheckpointError
from minigrad.formats import open_weights

LAYOUTS = {"zip": True, "stream": False}
DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64"]


def saved(path, value, layout="zip"):
    import torch

    torch.save(value, path, _use_new_zipfile_serialization=LAYOUTS[layout])
    return path


def opened(folder, content):
    (folder / "w").write_bytes(content)
    return open_weights(folder / "w")


@pytest.mark.torch
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_read(tmp_path, layout, dtype):
    import torch

    value = (torch.randn(3, 4, generator=torch.Generator().manual_seed(0)) * 9).to(getattr(torch, dtype))
    weights = open_weights(saved(tmp_path / "w", {"w": value, "scalar": value[0, 0].clone()}, layout))
    wide = value.float() if dtype in ("float16", "bfloat16") else value
    np.testing.assert_array_equal(weights["w"].array(), wide.numpy())
    assert weights["scalar"].shape == () and weights.format == "pytorch"
    assert weights["w"].array().flags.aligned


@pytest.mark.torch
@pytest.mark.parametrize("layout", LAYOUTS)
def test_views_and_shared_storages_are_read(tmp_path, layout):
    import torch

    whole = torch.arange(24.0).reshape(4, 6)
    parts = {
        "whole": whole,
        "columns": whole[:, 1:3],
        "turned": whole.T,
        "row": whole[2],
        "none": whole[:0],
        "tied": whole,
    }
    weights = open_weights(saved(tmp_path / "w", parts, layout))
    for name, part in parts.items():
        np.testing.assert_array_equal(weights[name].array(), part.numpy())
    assert np.shares_memory(weights["tied"].data, weights["whole"].data)


@pytest.mark.torch
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_state_dict_and_what_stands_around_it_are_read_by_names_with_dots(tmp_path, layout):
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    parameter = torch.nn.Parameter(torch.ones(2))
    value = {
        "model": model.state_dict(),
        "epoch": 3,
        "loss": 0.5,
        "name": "é",
        "on": True,
        "none": None,
        "big": -(2**40),
    }
    value |= {"dtype": torch.float16, "size": torch.Size([2, 3]), "list": [parameter, "b"], "empty": {}}
    weights = open_weights(saved(tmp_path / "w", value, layout))
    expected = {f"model.{name}": part.numpy() for name, part in model.state_dict().items()}
    assert weights.keys() == expected.keys() | {"list.0"}
    for name, part in expected.items():
        np.testing.assert_array_equal(weights[name].array(), part)
    plain = {"epoch": 3, "loss": 0.5, "name": "é", "on": True, "none": None, "big": -(2**40), "dtype": "torch.float16"}
    assert weights.metadata == plain | {"size.0": 2, "size.1": 3, "list.1": "b"}


@pytest.mark.torch
def test_newer_protocols_of_pickle_are_read(tmp_path):
    import torch

    torch.save({"w": torch.arange(3)}, tmp_path / "w", pickle_protocol=4)
    assert open_weights(tmp_path / "w")["w"].array().tolist() == [0, 1, 2]


@pytest.mark.torch
@pytest.mark.parametrize("layout", LAYOUTS)
def test_load_gives_tensors_of_a_pytorch_file(tmp_path, layout):
    import torch

    loaded = mg.load(saved(tmp_path / "w.bin", {"b": torch.ones(2), "a": torch.ones(3).half()}, layout))
    assert list(loaded) == ["a", "b"] and loaded["a"].dtype == "float16" and loaded["b"].tolist() == [1, 1]


@pytest.mark.torch
def test_shards_of_pytorch_files_are_read(tmp_path):
    import json

    import torch

    for name in "ab":
        torch.save({name: torch.ones(2)}, tmp_path / f"{name}.bin")
    index = {"weight_map": {"a": "a.bin", "b": "b.bin"}}
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    assert list(open_weights(tmp_path)) == ["a", "b"]


class Asks:
    """Unpickling this would call a function."""

    def __init__(self, function, *arguments):
        self.reduced = function, arguments

    def __reduce__(self):
        return self.reduced


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("function", "name"),
    [
        (os.system, r"(posix|nt)\.system"),
        (eval, r"(builtins|__builtin__)\.eval"),
        (Path.touch, r"(pathlib|__builtin__\.getattr)"),
        (collections.Counter, r"collections\.Counter"),
    ],
)
def test_what_a_pickle_asks_for_is_refused_by_name_and_not_run(tmp_path, protocol, layout, function, name):
    marker = tmp_path / "ran"
    argument = marker if function is Path.touch else f"touch {marker}"
    evil = pickle.dumps({"w": Asks(function, argument)}, protocol)
    with pytest.raises(CheckpointError, match=f"asks for {name}"):
        opened(tmp_path, torch_archive(evil) if layout == "zip" else torch_stream(evil))
    assert not marker.exists()


@pytest.mark.torch
def test_a_whole_model_is_refused_by_the_name_of_its_class(tmp_path):
    import torch

    with pytest.raises(CheckpointError, match=r"asks for torch\.nn\.modules\.linear\.Linear(.|\n)*state_dict"):
        open_weights(saved(tmp_path / "w", torch.nn.Linear(2, 2)))


HUGE = b"\x8a\x08" + struct.pack("<q", 2**62)
BAD = {
    "a shape larger than the storage": (pickled_tensor(shape=b"K\x03\x85"), "larger than its storage: 'w'"),
    "an offset past the storage": (pickled_tensor(offset=b"K\x01"), "larger than its storage: 'w'"),
    "strides past the storage": (pickled_tensor(strides=b"K\x02\x85"), "larger than its storage: 'w'"),
    "huge strides": (pickled_tensor(strides=HUGE + b"\x85"), "larger than its storage: 'w'"),
    "one number for many": (pickled_tensor(shape=HUGE + b"\x85", strides=b"K\x00\x85"), "impossible shape"),
    "a shape without strides": (pickled_tensor(strides=b")"), "larger than its storage: 'w'"),
    "a negative stride": (pickled_tensor(strides=b"J\xff\xff\xff\xff\x85"), "_rebuild_tensor_v2 with unknown arguments"),
    "a shape of truth values": (pickled_tensor(shape=b"\x88\x85"), "_rebuild_tensor_v2 with unknown arguments"),
    "an absurd empty shape": (pickled_tensor(shape=b"K\x00" + HUGE * 2 + b"\x87", strides=b"K\x01K\x01K\x01\x87"), "impossible"),
    "a storage that is too large": (pickled_tensor(count=HUGE), "no storage for the tensor 'w'"),
    "a storage of other numbers": (pickled_tensor(kind=b"Double"), "no storage for the tensor 'w'"),
    "a storage that is missing": (pickled_tensor(key=b"X\x01\x00\x00\x009"), "no storage for the tensor 'w'"),
    "a quantised storage": (pickled_tensor(kind=b"QInt8"), r"asks for torch\.QInt8Storage"),
    "a call of a dtype": (b"\x80\x02ctorch\nfloat32\n)R.", r"calls torch\.float32"),
    "a call of text": (b"\x80\x02X\x01\x00\x00\x00a)R.", "calls str"),
    "an empty stack": (b"\x80\x020.", "opcode"),
    "too few values": (b"\x80\x02K\x01\x86.", "more from its stack"),
    "values before a mark": (b"\x80\x02K\x01(\x85.", "more from its stack"),
    "no mark": (b"\x80\x02t.", "more from its stack"),
    "a memory of nothing": (b"\x80\x02h\x05.", "has not kept"),
    "a list as a dict": (b"\x80\x02]K\x01K\x02s.", "treats list as dict"),
    "a key that is a list": (b"\x80\x02}]K\x02s.", "keys"),
    "a key without value": (b"\x80\x02}(K\x02u.", "keys"),
    "a list in itself": (b"\x80\x02]q\x00h\x00a.", "nested too deeply"),
    "more than can be counted": (b"\x80\x02" + b"]" + b"".join(b"q%c](%se" % (n, b"h%c" % n * 9) for n in range(60)) + b".", "nested too deeply"),
    "a very long number": (b"\x80\x02\x8a\xff" + bytes(255) + b".", "255 bytes"),
    "a very long name": (b"\x80\x02c" + b"a" * 9999 + b"\nb\n.", "too long"),
    "a text past the end": (b"\x80\x02X\xff\xff\xff\xffa.", "ends inside"),
    "a text that is none": (b"\x80\x02X\x02\x00\x00\x00\xff\xfe.", "not text"),
    "no end": (b"\x80\x02]", "ends inside"),
    "an object made by an opcode": (b"\x80\x02c__builtin__\nobject\n)\x81.", r"asks for __builtin__\.object"),
    "an instance of old": (b"(ios\nsystem\n.", "opcode"),
    "an extension": (b"\x80\x02\x82\x01.", "opcode"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_a_pickle_that_lies_is_refused(tmp_path, kind):
    pickled, message = BAD[kind]
    with pytest.raises(CheckpointError, match=message):
        opened(tmp_path, torch_archive(pickled, [("data/0", bytes(8))]))


def test_the_pickle_that_they_are_made_from_is_right(tmp_path):
    numbers = np.array([1.5, -2], "<f4")
    weights = opened(tmp_path, torch_archive(pickled_tensor(), [("data/0", numbers.tobytes())]))
    assert weights["w"].array().tolist() == [1.5, -2]


def test_compressed_archives_are_refused(tmp_path):
    bomb = [("data/0", bytes(10_000_000))]
    with pytest.raises(CheckpointError, match="compressed"):
        opened(tmp_path, torch_archive(pickled_tensor(), bomb, zipfile.ZIP_DEFLATED))


def test_big_endian_numbers_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match="big-endian"):
        opened(tmp_path, torch_archive(pickled_tensor(), [("data/0", bytes(8)), ("byteorder", b"big")]))


def test_an_archive_of_other_things_is_told_apart(tmp_path):
    np.savez(tmp_path / "w.npz", w=np.ones(2))
    with pytest.raises(CheckpointError, match=r"mg\.load"):
        open_weights(tmp_path / "w.npz")


def test_the_directory_of_a_large_archive_is_read(tmp_path):
    with zipfile.ZipFile(tmp_path / "w", "w") as file:
        for name, content in (("archive/data.pkl", pickled_tensor()), ("archive/data/0", np.ones(2, "<f4").tobytes())):
            with file.open(name, "w", force_zip64=True) as member:  # sizes in the field for large ones
                member.write(content)
    assert open_weights(tmp_path / "w")["w"].array().tolist() == [1, 1]


def test_an_archive_cut_anywhere_is_refused(tmp_path):
    whole = torch_archive(pickled_tensor(), [("data/0", bytes(8))])
    for length in range(len(whole)):
        with pytest.raises(CheckpointError):
            opened(tmp_path, whole[:length])


def test_an_old_file_cut_anywhere_is_refused(tmp_path):
    whole = torch_stream(pickled_tensor(view=b"N"), {"0": (2, np.ones(2, "<f4").tobytes())})
    assert opened(tmp_path, whole)["w"].array().tolist() == [1, 1]
    for length in range(len(whole)):
        with pytest.raises(CheckpointError):
            opened(tmp_path, whole[:length])


@pytest.mark.torch
@pytest.mark.pretrained
@pytest.mark.parametrize(
    "place", [("iglm", "trained_models/IgLM"), ("rxnfp", "models/transformers/bert_ft")], ids="/".join
)
def test_real_weights_are_those_that_pytorch_reads(place):
    import torch

    path = folder(place[0]) / place[1] / "pytorch_model.bin"
    weights, theirs = open_weights(path.parent), torch.load(path, "cpu", weights_only=True)
    assert weights.keys() == theirs.keys()
    for name, tensor in theirs.items():
        np.testing.assert_array_equal(weights[name].array(), tensor.numpy())
