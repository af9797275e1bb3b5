"""The network of bits: its rounding and straight-through gradient, its packed files, and what it learns beside its float twin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from minigrad_models import bitmlp
from minigrad_models.bitmlp import packing
from minigrad_models.bitmlp.model import BitLinear, BitMLP, levels, rounded
from minigrad_models.digits.images import images

import minigrad as mg
from minigrad import zoo
from minigrad.errors import ArgumentError, CheckpointError
from minigrad.nn import functional as F
from minigrad.zoo import trainer_of

ROUNDED = ("binary", "ternary")
SHORT = {"steps": 250, "images": 4000, "held_out": 600, "hidden": (128,), "valid_every": 125}


def formula(weight: np.ndarray, kind: str) -> list[list[float]]:
    """γ times the level of each weight, one by one in plain Python."""
    rows = weight.tolist()
    mean = sum(abs(w) for row in rows for w in row) / weight.size
    if kind == "binary":
        return [[math.copysign(mean, w) for w in row] for row in rows]
    return [[mean * max(-1, min(1, round(w / mean))) for w in row] for row in rows]


@pytest.mark.parametrize("kind", ROUNDED)
def test_weights_are_rounded_as_the_formula_says(kind, device):
    weight = np.random.default_rng(0).standard_normal((20, 30))
    made = rounded(mg.tensor(weight, device=device), kind=kind)
    np.testing.assert_allclose(made.numpy(), formula(weight, kind), rtol=1e-12)
    assert len(np.unique(made.numpy())) == {"binary": 2, "ternary": 3}[kind]


@pytest.mark.parametrize("kind", ROUNDED)
def test_a_weight_of_zeros_stays_finite(kind):
    assert not rounded(mg.zeros(3, 4), kind=kind).numpy().any()


@pytest.mark.parametrize("kind", ROUNDED)
def test_the_gradient_goes_straight_through(kind):
    """What the loss asks of the rounded weight is what the weight with its fractions gets, bit for bit."""
    mg.manual_seed(0)
    layer, x = BitLinear(7, 5, kind), mg.randn(4, 7)
    layer(x).square().sum().backward()
    plain = mg.tensor(rounded(layer.weight, kind=kind).numpy(), requires_grad=True)
    F.linear(F.rms_norm(x, 7), plain).square().sum().backward()
    np.testing.assert_array_equal(layer.weight.grad.numpy(), plain.grad.numpy())
    assert np.abs(plain.grad.numpy()).min() > 0


@settings(max_examples=60, deadline=None)
@given(rows=st.integers(1, 7), columns=st.integers(1, 13), seed=st.integers(0, 999), kind=st.sampled_from(ROUNDED))
def test_levels_are_packed_tightly_and_come_back(rows, columns, seed, kind):
    rng = np.random.default_rng(seed)
    values = rng.choice([-1.0, 1.0] if kind == "binary" else [-1.0, 0.0, 1.0], (rows, columns)).astype("float32")
    packed = packing.pack(values, kind)
    assert packed.dtype == np.uint8 and len(packed) == math.ceil(values.size / (8 if kind == "binary" else 5))
    back = packing.unpack(packed, values.shape, kind)
    np.testing.assert_array_equal(back, values)
    assert back.dtype == np.float32


def test_bytes_hold_what_is_documented():
    assert packing.pack(np.array([1, -1, -1, 1, 1, 1, 1, 1, -1]), "binary").tolist() == [0b10011111, 0]
    assert packing.pack(np.array([-1, 0, 1, 1, 0, 1]), "ternary").tolist() == [0 + 3 + 2 * 9 + 2 * 27 + 81, 2]


@pytest.mark.parametrize("kind", ROUNDED)
def test_bytes_that_cannot_be_levels_are_refused(kind):
    good = packing.pack(np.ones(40), kind)
    for bad in (good[:-1], good.astype("int16"), *([np.full_like(good, 243)] if kind == "ternary" else [])):
        with pytest.raises(CheckpointError, match=f"no {kind} levels"):
            packing.unpack(bad, (5, 8), kind)


@pytest.fixture(scope="module", params=[0, 1], ids="seed {}".format)
def runs(request, tmp_path_factory):
    """A run of each kind, shortened, with one seed."""
    folder, seed = tmp_path_factory.mktemp("bits"), request.param
    for kind in BitMLP.KINDS:
        config = zoo.configure(bitmlp.spec, None, {**SHORT, "kind": kind, "images_seed": seed})
        trainer_of(bitmlp.spec, config, folder / kind, seed=seed, progress=False).train()
    return {kind: zoo.load(folder / kind) for kind in BitMLP.KINDS}


def test_weights_of_few_values_read_digits_almost_as_well_as_floats(runs):
    """Chance is 10 %, and 600 images leave a standard deviation of about one point."""
    right = {kind: run.evaluate()["accuracy"] for kind, run in runs.items()}
    assert right["float"] > 0.93
    assert right["ternary"] > right["float"] - 0.04 and right["binary"] > right["float"] - 0.06
    for kind in ROUNDED:
        used = [np.unique(rounded(layer.weight, kind=kind).numpy()).size for layer in runs[kind].model.layers]
        assert used == [{"binary": 2, "ternary": 3}[kind]] * 2


def test_training_through_the_rounding_beats_rounding_afterwards(runs):
    """The same float weights, rounded when training is over, have lost what the network of bits has kept."""
    shown, labels = images(600, runs["float"].config.images_seed, "test")
    state = runs["float"].model.state_dict()
    for kind in ROUNDED:
        late = BitMLP(runs["float"].model.sizes, kind)
        late.load_state_dict(state)
        right = float((late(mg.tensor(shown)).argmax(axis=1).numpy() == labels).mean())
        assert runs[kind].evaluate()["accuracy"] > right + 0.02


@pytest.mark.parametrize(("kind", "least"), [("binary", 27), ("ternary", 18)])
def test_a_packed_file_is_many_times_smaller_and_predicts_the_same_bits(runs, kind, least, tmp_path):
    run = runs[kind]
    said = run.pack(tmp_path / "small.safetensors")
    floats = run.unpack(tmp_path / "small.safetensors", tmp_path / "large.safetensors")
    small, large = (tmp_path / name for name in ("small.safetensors", "large.safetensors"))
    assert said["bytes"] == small.stat().st_size and floats["bytes"] == large.stat().st_size
    assert large.stat().st_size > 4 * 128 * (256 + 10)
    assert (
        said["times_smaller"] == round(said["float_bytes"] / said["bytes"], 1)
        and 16 <= least < said["times_smaller"] < 32
    )
    shown = mg.tensor(images(600, 0, "test")[0])
    expected = run.model(shown).numpy()
    for path in (small, large):
        np.testing.assert_array_equal(packing.read(path).forward(shown).numpy(), expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["large.safetensors", "small.safetensors"]


def test_what_cannot_be_packed_or_unpacked_is_refused(runs, tmp_path):
    with pytest.raises(ArgumentError, match="not packed"):
        runs["float"].pack(tmp_path / "x")
    mg.save({"w": mg.ones(2)}, tmp_path / "other")
    with pytest.raises(CheckpointError, match="not packed by bitmlp"):
        packing.read(tmp_path / "other")
    (tmp_path / "torn").write_bytes(b"half a file")
    with pytest.raises(CheckpointError, match="no safetensors file"):
        packing.read(tmp_path / "torn")
    described = {"model": "bitmlp", "kind": "binary", "sizes": "256,8,10"}
    mg.save({"w": mg.ones(2000)}, tmp_path / "parts", metadata=described)
    with pytest.raises(CheckpointError, match=r"lacks a part of layers\.0\.weight"):
        packing.read(tmp_path / "parts")
    for sizes in ("256,0", "256", "", "256,²", "256,999999999,10"):  # the last asks for more than the file can hold
        mg.save({"w": mg.ones(2)}, tmp_path / "sizes", metadata={**described, "sizes": sizes})
        with pytest.raises(CheckpointError, match="not packed by bitmlp"):
            packing.read(tmp_path / "sizes")
    runs["binary"].pack(tmp_path / "small")
    tensors = mg.load(tmp_path / "small")
    changed = {**tensors, "layers.0.weight.scale": mg.ones(256)}
    mg.save(changed, tmp_path / "scales", metadata={**described, "sizes": "256,128,10"})
    with pytest.raises(CheckpointError, match=r"lacks a part of layers\.0\.weight"):
        packing.read(tmp_path / "scales")


def test_a_failed_write_leaves_the_old_file_whole(runs, tmp_path, monkeypatch):
    path = tmp_path / "small.safetensors"
    runs["binary"].pack(path)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(CheckpointError, match="No space left"):
        runs["ternary"].pack(path)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == [path.name]


def test_the_table_shows_all_three_as_they_are_read_back_from_their_files(runs, tmp_path):
    run = runs["ternary"]
    head, *rows, last = bitmlp.after(run, tmp_path).splitlines()
    assert head.split()[0] == "weights" and last == "kept in ternary.safetensors of the run"
    table = {row.split()[0]: row.split()[1:] for row in rows}
    assert list(table) == ["float", "ternary", "binary"]
    for kind, (right, size, _, times, _) in table.items():
        assert right == f"{runs[kind].evaluate()['accuracy']:.2%}"  # a twin with the same seed is the same run
        assert times == f"{int(table['float'][1].replace(',', '')) / int(size.replace(',', '')):.1f}"
    assert int(table["ternary"][1].replace(",", "")) == (tmp_path / "ternary.safetensors").stat().st_size


def test_scale_and_levels_make_the_rounded_weight_bit_for_bit():
    weight = np.random.default_rng(0).standard_normal((9, 11)).astype("float32")
    for kind in ROUNDED:
        scale, values = levels(np, weight, kind)
        np.testing.assert_array_equal(np.float32(scale) * values, rounded(mg.tensor(weight), kind=kind).numpy())
