"""Checkpoints come back as they were; a file that is not exactly one of ours is refused, without code and without much memory."""

import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from support import hostile_checkpoints as hostile
from support.folders import in_memory

import minigrad as mg
from minigrad.cli import main
from minigrad.errors import CheckpointError, DtypeError
from minigrad.train import checkpoint as module
from minigrad.train import read_checkpoint, read_state, write_checkpoint

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
MEGABYTE = 2**20


@pytest.fixture
def path():
    with in_memory() as folder:
        yield folder / "one.safetensors"


def refusal(path: Path, content: bytes) -> str:
    """The error that reading these bytes ends in; anything but a CheckpointError is a failure of the test."""
    path.write_bytes(content)
    with pytest.raises(CheckpointError) as caught:
        read_checkpoint(path)
    return str(caught.value)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3, 4)], ids=str)
def test_every_dtype_and_shape_comes_back(path, dtype, shape):
    array = np.random.default_rng(0).uniform(0, 100, shape).astype(dtype)
    write_checkpoint(path, {"a": array, "b": array.T}, {})
    found = read_checkpoint(path).tensors
    assert found["a"].dtype == dtype and found["a"].shape == shape and found["b"].shape == shape[::-1]
    np.testing.assert_array_equal(found["a"], array)
    np.testing.assert_array_equal(found["b"], array.T)


def test_the_state_comes_back_to_the_last_bit(path):
    state = {
        "big": 2**200,
        "tiny": 5e-324,
        "third": 1 / 3,
        "text": "“de nada” \ud800 \x00",
        "nested": [{"a": [None, True]}],
        "inf": float("inf"),
    }
    write_checkpoint(path, {}, state)
    assert read_checkpoint(path).state == state


def test_the_order_of_the_state_is_kept(path):
    write_checkpoint(path, {}, {"b": {"z": 1, "a": 2}, "a": 3})
    state = read_checkpoint(path).state
    assert list(state) == ["b", "a"] and list(state["b"]) == ["z", "a"]


def test_safetensors_itself_can_read_the_file(path):
    tensors = {
        "w": np.arange(6.0).reshape(2, 3).T,
        "i": np.array(3),
        "b": np.array([True, False]),
        "h": np.ones(3, "float16"),
    }
    write_checkpoint(path, tensors, {"step": 1})
    found = safetensors.numpy.load_file(path)
    assert found.keys() == tensors.keys()
    for name, value in tensors.items():
        assert found[name].dtype == value.dtype
        np.testing.assert_array_equal(found[name], value)
    with safetensors.safe_open(path, "np") as file:
        assert json.loads(file.metadata()["state"]) == {"step": 1}


def test_tensors_of_a_device_come_back(path, device):
    write_checkpoint(path, {"w": mg.arange(4, device=device)}, {})
    np.testing.assert_array_equal(read_checkpoint(path).tensors["w"], np.arange(4))


def test_layouts_and_byte_orders_do_not_matter(path):
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    layouts = {
        "fortran": np.asfortranarray(base),
        "strided": base[::2, ::-3],
        "swapped": base.astype(">f4"),
        "broadcast": np.broadcast_to(base[0], (3, 6)),
    }
    write_checkpoint(path, layouts, {})
    for name, value in read_checkpoint(path).tensors.items():
        np.testing.assert_array_equal(value, layouts[name])


def test_the_same_content_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        write_checkpoint(tmp_path / name, {"x": np.ones(2), "y": np.ones(3, "float32")}, {"p": 1, "q": 2})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("name", ["", "../w", "a/b", "a\\b", "a..b", "w\n", "__metadata__", "w" * 600, 3])
def test_a_name_that_could_not_be_read_again_is_not_written(path, name):
    with pytest.raises(DtypeError):
        write_checkpoint(path, {name: np.ones(2)}, {})
    assert not path.exists()


@pytest.mark.parametrize("value", [np.ones(2, "complex128"), np.array(["a"]), np.array([object()]), [1.0], None])
def test_what_is_no_tensor_is_not_written(path, value):
    with pytest.raises(DtypeError):
        write_checkpoint(path, {"w": value}, {})
    assert not path.exists()


def test_a_state_that_is_not_plain_is_not_written(path):
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    for bad in (object(), {1, 2}, deep, np.float32(1)):
        with pytest.raises(DtypeError, match="plain values"):
            write_checkpoint(path, {}, {"a": bad})
    assert not path.exists()


def test_a_state_too_large_for_the_header_says_what_to_do(path):
    with pytest.raises(CheckpointError, match="uint8 tensors"):
        write_checkpoint(path, {}, {"a": "x" * module.HEADER_LIMIT})
    assert not path.exists()


def test_a_file_cut_at_any_byte_is_refused(path):
    content = hostile.small_checkpoint(path)
    for size in range(len(content)):
        assert "damaged" in refusal(path, content[:size])


def test_a_file_with_any_one_bit_flipped_is_refused(path):
    content = hostile.small_checkpoint(path)
    for place in range(len(content)):
        for bit in range(8):
            flipped = bytearray(content)
            flipped[place] ^= 1 << bit
            assert "damaged" in refusal(path, bytes(flipped))


def test_the_state_is_read_without_the_tensors(path):
    write_checkpoint(path, {"w": np.ones(1000)}, {"step": 7})
    content = path.read_bytes()
    path.write_bytes(content[:-8] + b"\xff" * 8)
    assert read_state(path) == {"step": 7}
    with pytest.raises(CheckpointError, match="checksum"):
        read_checkpoint(path)


@pytest.mark.parametrize("name", hostile.HOSTILE)
def test_the_state_of_a_hostile_file_is_refused_or_harmless(path, name):
    path.write_bytes(hostile.HOSTILE[name])
    try:
        assert read_state(path) == {}
    except CheckpointError as error:
        assert "damaged or not a checkpoint" in str(error)


def test_a_file_that_is_replaced_between_the_checksum_and_the_tensors_is_refused(path, monkeypatch):
    hostile.small_checkpoint(path)
    real = module._verify

    def replacing(*args):
        real(*args)
        write_checkpoint(path, {"w": np.ones(2)}, {})

    monkeypatch.setattr(module, "_verify", replacing)
    with pytest.raises(CheckpointError, match="replaced"):
        read_checkpoint(path)


def test_training_hashes_a_checkpoint_once_for_each_model_that_is_made_of_it(tmp_path, monkeypatch, capsys):
    """After training, the model is shown, and drawn in the report; all else needs no more than the header."""
    hashed, headers = [], []
    verify, read_header = module._verify, module._read_header
    monkeypatch.setattr(module, "_verify", lambda *args: (hashed.append(args[1].name), verify(*args)))
    monkeypatch.setattr(module, "_read_header", lambda file: (headers.append(file.name), read_header(file))[1])
    assert main(["train", "xor", "steps=20", "--out", str(tmp_path / "run")]) == 0
    assert len(hashed) == 2 and len(headers) == 4


@pytest.mark.parametrize("name", hostile.HOSTILE)
def test_a_hostile_file_is_refused(path, name):
    assert "damaged or not a checkpoint" in refusal(path, hostile.HOSTILE[name])


def test_the_maker_of_hostile_files_can_make_a_good_one(path):
    path.write_bytes(hostile.with_tensors(hostile.entry(), np.arange(2, dtype="<f4").tobytes()))
    np.testing.assert_array_equal(read_checkpoint(path).tensors["w"], [0, 1])


def test_twenty_thousand_spoilt_files_are_refused_or_harmless(path):
    """A file that is spoilt and then signed may by chance be a good one; it must then be no larger than its bytes."""
    content = hostile.small_checkpoint(path)
    good = 0
    with open(path, "r+b", buffering=0) as file:
        for seed in range(20_000):
            spoilt = hostile.spoilt(content, seed)
            file.seek(0)
            file.truncate()
            file.write(spoilt)
            try:
                found = read_checkpoint(path)
            except CheckpointError:
                continue
            good += 1
            assert sum(a.nbytes for a in found.tensors.values()) <= len(spoilt)
    assert 0 < good < 10_000


def test_no_file_makes_reading_take_more_memory_than_itself_and_16_megabytes(tmp_path):
    files = {**hostile.HOSTILE, **hostile.greedy()}
    write_checkpoint(tmp_path / "large", {"w": np.zeros(40 * MEGABYTE, np.uint8)}, {})
    files["large and cut"] = (tmp_path / "large").read_bytes()[:-1]
    for i, content in enumerate(files.values()):
        (tmp_path / f"{i:03d}").write_bytes(content)
    script = """
import sys, tracemalloc, pathlib
import minigrad.train
from minigrad.errors import CheckpointError
worst = 0
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    tracemalloc.start()
    try:
        found = minigrad.train.read_checkpoint(path)
    except CheckpointError:
        found = None
    worst = max(worst, tracemalloc.get_traced_memory()[1] - path.stat().st_size)
    tracemalloc.stop()
print(worst)
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert MEGABYTE < int(done.stdout) < 16 * MEGABYTE


def test_what_is_not_a_file_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "missing", tmp_path / "missing" / "inner"):
        with pytest.raises(CheckpointError):
            read_checkpoint(path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(CheckpointError, match="not a file"):
            read_checkpoint(tmp_path / "pipe")
    if Path("/dev/zero").exists():
        with pytest.raises(CheckpointError, match="not a file"):
            read_checkpoint("/dev/zero")


def test_a_disk_that_cannot_sync_folders_is_written_to_all_the_same(path, monkeypatch):
    real = os.fsync

    def picky(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        real(handle)

    monkeypatch.setattr(os, "fsync", picky)
    write_checkpoint(path, {}, {"step": 1})
    assert read_checkpoint(path).state == {"step": 1}


def test_a_failed_write_leaves_the_old_file_and_nothing_else(path, monkeypatch):
    before = hostile.small_checkpoint(path)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match="No space left(.|\n)*unchanged"):
        write_checkpoint(path, {"w": np.zeros(1000)}, {})
    assert path.read_bytes() == before and os.listdir(path.parent) == [path.name]
