"""One line saves a model, its optimiser and what else a loop needs, one line loads them; and NumPy's files are NumPy's."""

import io
import json
import pickle
import struct
import zipfile

import numpy as np
import pytest
from safetensors.numpy import load_file

import minigrad as mg
from minigrad import nn, optim
from minigrad.errors import ArgumentError, CallError, CheckpointError, MinigradError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.safetensors"


def plain(value):
    """Tensors as dtypes and lists, so that nested values can be compared."""
    if isinstance(value, mg.Tensor):
        return str(value.dtype), value.tolist()
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return type(value)(map(plain, value)) if isinstance(value, (list, tuple)) else value


class Loop:
    """A loop as users write it."""

    def __init__(self, seed, kind):
        mg.manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        self.optimizer = kind(self.model.parameters(), lr=0.05)
        self.schedule = optim.Cosine(self.optimizer, total=20)
        x = mg.tensor(np.random.default_rng(0).normal(size=(12, 3)).astype("float32"))
        self.data = mg.data.DataLoader(mg.data.TensorDataset(x, x.sum(axis=1, keepdims=True)), 4, shuffle=True)

    @property
    def parts(self):
        return {"model": self.model, "optimizer": self.optimizer, "schedule": self.schedule, "data": self.data}

    def train(self, batches):
        for x, y in batches:
            self.optimizer.zero_grad()
            ((self.model(x) - y) ** 2).mean().backward()
            self.optimizer.step()
            self.schedule.step()


@pytest.mark.parametrize("kind", [optim.AdamW, optim.SGD, optim.RMSprop])
def test_a_loop_that_is_saved_and_loaded_goes_on_bit_for_bit(path, kind):
    first, second = Loop(0, kind), Loop(1, kind)
    batches = iter(first.data)
    first.train(next(batches) for _ in range(2))
    mg.save({**first.parts, "epoch": 1, "note": "half way"}, path)
    found = mg.load(path, into=second.parts)
    assert (found["epoch"], found["note"]) == (1, "half way")
    first.train(batches)
    second.train(second.data)
    first.train(first.data)
    second.train(second.data)
    for ours, theirs in zip(first.model.parameters(), second.model.parameters()):
        assert ours.numpy().tobytes() == theirs.numpy().tobytes()


def test_the_state_of_an_optimiser_is_saved_as_it_is(path):
    loop = Loop(0, optim.Adam)
    loop.train(loop.data)
    mg.save(loop.optimizer.state_dict(), path)
    assert plain(mg.load(path)) == plain(loop.optimizer.state_dict())
    Loop(1, optim.Adam).optimizer.load_state_dict(mg.load(path))


def test_nested_values_come_back_as_they_were(path):
    value = {
        "list": [1, 2.5, None, True, "text", [mg.arange(2), ()]],
        "tuple": (mg.ones(1), {"deep": {"deeper": -0.0}}),
        7: {0: "numbers may be names"},
        "numpy": {"scalar": np.float32(0.5), "array": np.zeros((0, 2))},
        "special": [float("inf"), 2**80, "tensor", {"tensor": "x"}],
        "empty": {},
    }
    mg.save(value, path, metadata={"made": "here"})
    back = mg.load(path)
    assert plain(back["numpy"].pop("array")) == ("float64", [])
    del value["numpy"]["array"]
    assert plain(back) == plain(value) and list(back) == list(value)
    assert set(load_file(path)) == {"list.5.0", "tuple.0", "numpy.array"}


def test_a_model_is_saved_as_plain_weights(path):
    model, other = nn.Linear(2, 3), nn.Linear(2, 3)
    mg.save(model, path)
    assert set(load_file(path)) == {"weight", "bias"}
    mg.load(path, into=other)
    np.testing.assert_array_equal(other.weight.numpy(), model.weight.numpy())


def test_names_that_would_meet_are_refused(path):
    with pytest.raises(ArgumentError, match=r"two tensors would have the name 'a\.b'"):
        mg.save({"a.b": mg.ones(1), "a": {"b": mg.ones(1)}}, path)


def test_what_cannot_be_loaded_into_is_told_before_anything_is_changed(path):
    model, optimizer = nn.Linear(2, 1), None
    mg.save({"model": model}, path)
    before = model.weight.numpy().copy()
    model.weight.data[...] = 5
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(CheckpointError, match="holds no 'optimizer'(.|\n)*model"):
        mg.load(path, into={"model": model, "optimizer": optimizer})
    with pytest.raises(CallError, match="'model'(.|\n)*load_state_dict"):
        mg.load(path, into={"model": [1]})
    assert (model.weight.numpy() == 5).all()
    mg.load(path, into={"model": model})
    np.testing.assert_array_equal(model.weight.numpy(), before)


@pytest.mark.parametrize(
    "structure",
    ["[", "[1]", '{"tensor": "missing"}', '{"dict": 3}', '{"dict": [[[], 1]]}', '{"such": []}', "{}", '{"list": 1}']
    + ['{"list": [' * 5000],
)
def test_a_damaged_description_is_refused(path, structure):
    entries = {"__metadata__": {"minigrad.structure": structure}}
    text = json.dumps(entries).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)
    with pytest.raises(CheckpointError, match="load"):
        mg.load(path)


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".bin", ".pkl", ".PT"])
def test_the_name_of_a_pickle_is_refused(tmp_path, suffix):
    with pytest.raises(ArgumentError, match=r"(?i)\.(pt|pth|bin|pkl) is the name of a pickle(.|\n)*\.safetensors"):
        mg.save({"x": mg.ones(2)}, tmp_path / f"weights{suffix}")
    assert list(tmp_path.iterdir()) == []


def test_npz_is_numpys_in_both_directions(tmp_path):
    path = tmp_path / "t.npz"
    arrays = {"file": np.arange(3), "a/b": np.ones((2, 2), "float16").T, "z": np.array(1 + 2j), "big": np.arange(3.0)}
    mg.save({name: mg.tensor(array) for name, array in arrays.items()}, path)
    with np.load(path) as found:
        assert set(found.files) == set(arrays)
        for name, array in arrays.items():
            assert found[name].dtype == array.dtype
            np.testing.assert_array_equal(found[name], array)
    np.savez_compressed(path, x=np.arange(4), big=np.arange(3.0).astype(">f8"))
    back = mg.load(path, device="fake")
    assert back["x"].tolist() == [0, 1, 2, 3] and back["big"].tolist() == [0, 1, 2] and back["x"].device == "fake"


def test_npy_is_numpys_in_both_directions(tmp_path):
    path = tmp_path / "x.npy"
    mg.save(mg.arange(6.0).reshape(2, 3).T, path)
    np.testing.assert_array_equal(np.load(path), np.arange(6.0).reshape(2, 3).T)
    np.save(path, np.asfortranarray(np.eye(3)[:, :2]))
    np.testing.assert_array_equal(mg.load(path).numpy(), np.eye(3)[:, :2])
    with pytest.raises(ArgumentError, match=r"\.npy holds one tensor(.|\n)*\.npz"):
        mg.save({"x": mg.ones(2)}, path)


def test_npz_refuses_what_it_cannot_hold(tmp_path):
    for value in ({"a": {"b": mg.ones(1)}}, {"a": 1}):
        with pytest.raises(ArgumentError, match=r"\.npz holds named tensors(.|\n)*\.safetensors"):
            mg.save(value, tmp_path / "t.npz")


class Malicious:
    """Unpickling this would create a file."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return open, (self.marker, "w")


@pytest.mark.parametrize("kind", ["npy", "npz", "pytorch", "pytorch of old"])
def test_objects_are_never_unpickled(tmp_path, kind):
    path, marker = tmp_path / "file", tmp_path / "opened"
    array = np.array([Malicious(str(marker))], dtype=object)
    if kind == "npy":
        with open(path, "wb") as file:
            np.save(file, array)
    elif kind == "npz":
        with open(path, "wb") as file:
            np.savez(file, x=array)
    elif kind == "pytorch":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("archive/data.pkl", pickle.dumps(array))
    else:
        path.write_bytes(pickle.dumps(array))
    with pytest.raises(CheckpointError, match="may run code"):
        mg.load(path)
    assert not marker.exists()


@pytest.mark.parametrize(
    "write", [lambda f: np.save(f, np.arange(9)), lambda f: np.savez_compressed(f, x=np.arange(9))]
)
def test_a_file_of_numpys_cut_anywhere_is_refused(tmp_path, write):
    buffer = io.BytesIO()
    write(buffer)
    whole = buffer.getvalue()
    for length in range(8, len(whole), 5):
        (tmp_path / "cut").write_bytes(whole[:length])
        with pytest.raises(MinigradError, match="load"):
            mg.load(tmp_path / "cut")


def test_a_zip_of_something_else_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(CheckpointError, match="'readme.txt' in it is no .npy file"):
        mg.load(tmp_path / "x.npz")
