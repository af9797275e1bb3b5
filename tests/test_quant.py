"""Weights of 8 and 4 bits after training: within half a scale of the floats, everything else as it was, and kept in files."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.module_examples import Model, Tied, assert_same, values

import minigrad as mg
from minigrad import nn
from minigrad.errors import ArgumentError
from minigrad.nn.quant import LARGEST, QuantizedLinear, packed_nibbles, to_integers, unpacked_nibbles

BITS = sorted(LARGEST)


def uneven(shape: tuple[int, int], dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """Random weights whose rows differ in size by powers of ten, so that one scale for all of them would fail."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 3, (shape[0], 1))).astype(dtype)


def layer(weight: np.ndarray, bias: bool = True) -> nn.Linear:
    made = nn.Linear(weight.shape[1], weight.shape[0], bias=bias, dtype=weight.dtype)
    with mg.no_grad():
        made.weight[...] = weight
    return made


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("bits", BITS)
def test_no_weight_is_farther_than_half_a_scale_from_its_stand_in(bits, dtype):
    weight = uneven((40, 301), dtype)
    small = nn.quantized(layer(weight), bits)
    scales = small.scales.numpy().astype("float64")
    exact = np.abs(weight.astype("float64")).max(axis=1, keepdims=True) / {8: 127, 4: 7}[bits]
    assert (np.abs(scales - exact) <= np.spacing(small.scales.numpy())).all()  # the next number of this dtype
    rounding = np.finfo(dtype).eps * LARGEST[bits]  # of the product of a whole number and a scale
    errors = np.abs(weight.astype("float64") - small.weight.numpy()) / scales
    assert errors.max() <= 0.5 + rounding
    assert (errors.max(axis=1) > 0.4).all()  # and in every row some are that far: nothing kept the fractions


@pytest.mark.parametrize("bits", BITS)
def test_the_integers_are_those_of_the_formula(bits):
    weight = uneven((9, 33), "float64")
    integers, scales = to_integers(weight, bits)
    largest = 2 ** (bits - 1) - 1
    exact = np.array([[round(w / (max(map(abs, row)) / largest)) for w in row] for row in weight.tolist()])
    assert (integers == exact).all() and integers.dtype == np.int8
    assert (np.abs(integers).max(axis=1) == largest).all()


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("size", [0.0, 1e-7, 1e-38, 6e4])
def test_rows_of_zeros_of_almost_nothing_and_of_the_largest_numbers_stay_finite(size, bits, dtype):
    weight = np.linspace(-size, size, 12, dtype="float64").reshape(2, 6).astype(dtype)
    small = nn.quantized(layer(weight), bits)
    scale = small.scales.numpy().astype("float64")
    error = np.abs(weight.astype("float64") - small.weight.numpy())
    assert (scale > 0).all() and (error <= scale * (0.5 + np.finfo(dtype).eps * LARGEST[bits])).all()
    if size == 0:
        assert not small.weight.numpy().any()


def test_a_scale_that_float16_would_round_down_is_rounded_up_so_that_the_largest_weight_fits():
    smallest = 2.0**-24  # of float16: the scale is 1.4 of them, and has to become 2, not 1
    integers, scales = to_integers((np.array([[178, -178, 3, 100]]) * smallest).astype("float16"), 8)
    assert (scales / smallest).tolist() == [[2]] and integers.tolist() == [[89, -89, 2, 50]]


@settings(max_examples=50, deadline=None)
@given(rows=st.integers(1, 4), columns=st.integers(1, 9), seed=st.integers(0, 999))
def test_two_numbers_share_a_byte_and_come_apart_again(rows, columns, seed):
    integers = np.random.default_rng(seed).integers(-8, 8, (rows, columns)).astype("int8")
    packed = packed_nibbles(integers)
    assert packed.shape == (rows, -(-columns // 2)) and packed.dtype == np.uint8
    assert (unpacked_nibbles(mg.tensor(packed), columns).numpy() == integers).all()


def test_the_first_number_of_a_byte_is_in_its_lower_half():
    assert packed_nibbles(np.array([[-7, 7, 0]], "int8")).tolist() == [[0x1 | 0xF << 4, 0x8 | 0x8 << 4]]


@pytest.mark.parametrize("bits", BITS)
def test_the_output_is_that_of_the_dequantised_weight_and_gradients_reach_input_and_bias(bits, device):
    weight, x = uneven((4, 7), "float64"), np.random.default_rng(1).standard_normal((3, 7))
    original = layer(weight).to(device=device)
    small = nn.quantized(original, bits)
    scale = np.abs(weight).max(axis=1, keepdims=True) / (2 ** (bits - 1) - 1)
    stand_in = np.rint(weight / scale) * scale
    given = mg.tensor(x, device=device, requires_grad=True)
    out = small(given)
    assert out.device == original(given).device
    np.testing.assert_allclose(out.numpy(), x @ stand_in.T + original.bias.numpy(), rtol=1e-12, atol=1e-12)
    out.sum().backward()
    np.testing.assert_allclose(given.grad.numpy(), np.tile(stand_in.sum(axis=0), (3, 1)), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(small.bias.grad.numpy(), np.full(4, 3.0))
    assert original.bias.grad is None and [name for name, _ in small.named_parameters()] == ["bias"]


def test_the_model_itself_is_left_as_it_was_and_its_copy_shares_nothing_with_it():
    model = Model()
    model.blocks[0].fc.freeze()
    model.blocks[0].eval()
    before = values(model)
    small = nn.quantized(model)
    for parameter in small.parameters():
        with mg.no_grad():
            parameter[...] = 7
    assert_same(before, values(model))
    linears = {name for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    assert {name for name, module in small.named_modules() if isinstance(module, QuantizedLinear)} == linears
    assert linears == {"blocks.0.fc", "blocks.1.fc", "head"}
    assert not small.blocks[0].fc.bias.requires_grad and small.blocks[1].fc.bias.requires_grad
    assert not small.blocks[0].fc.training and small.blocks[1].fc.training


def test_everything_but_the_weights_of_linears_is_copied_bit_for_bit():
    model = Model()
    model(mg.randn(5, 3))  # the norms have seen something
    old, new = values(model), values(nn.quantized(model, 4))
    replaced = {name for name in old if name not in new}
    assert replaced == {"blocks.0.fc.weight", "blocks.1.fc.weight", "head.weight"}
    assert {name for name in new if name not in old} == {
        f"{name.removesuffix('weight')}{part}" for name in replaced for part in ("weight_int4", "scales")
    }
    assert_same({k: v for k, v in old.items() if k in new}, {k: v for k, v in new.items() if k in old})


class Mixed(nn.Module):
    """A tied table, a layer used twice, two layers with one weight, and a Linear of a class of its own."""

    class Doubled(nn.Linear):
        def forward(self, input):
            return 2 * super().forward(input)

    def __init__(self):
        self.words = Tied()
        self.first = nn.Linear(5, 5)
        self.again = self.first
        self.left, self.right = nn.Linear(5, 5), nn.Linear(5, 5)
        self.right.weight = self.left.weight
        self.own = self.Doubled(5, 5)

    def forward(self, x):
        return self.own(self.right(self.left(self.again(self.first(self.words(x))))))


def test_tied_weights_stay_tied_floats_and_a_layer_used_twice_stays_one():
    model = Mixed()
    small = nn.quantized(model)
    assert isinstance(small.first, QuantizedLinear) and small.again is small.first
    assert type(small.words.out) is nn.Linear and small.words.out.weight is small.words.table.weight
    assert type(small.left) is nn.Linear and small.left.weight is small.right.weight
    assert type(small.own) is Mixed.Doubled
    assert sum(isinstance(module, QuantizedLinear) for module in small.modules()) == 1
    with mg.no_grad():
        model.first.weight[...] = small.first.weight
    ids = mg.tensor([0, 3])
    np.testing.assert_array_equal(small(ids).numpy(), model(ids).numpy())


def test_hooks_come_along_and_errors_name_the_place():
    model = Model()
    model.head.register_forward_hook(lambda module, args, output: 0 * output)
    small = nn.quantized(model)
    assert not small(mg.ones(2, 3)).numpy().any()
    with pytest.raises(mg.MinigradError, match=r"^Model\.blocks\.0\.fc: linear"):
        small(mg.ones(2, 4))


@pytest.mark.parametrize("bits", BITS)
def test_a_file_brings_back_the_same_bits_into_a_fresh_model(bits, tmp_path):
    def fresh():
        return nn.Encoder(2, 32, heads=4)

    model = fresh().eval()
    small = nn.quantized(model, bits)
    x = mg.randn(2, 5, 32)
    mg.save(model.state_dict(), tmp_path / "float.safetensors")
    mg.save(small.state_dict(), tmp_path / "small.safetensors")
    again = nn.quantized(fresh(), bits).eval()
    assert (again(x).numpy() != small(x).numpy()).any()
    again.load_state_dict(mg.load(tmp_path / "small.safetensors"))
    assert_same(values(small), values(again))
    np.testing.assert_array_equal(again(x).numpy(), small(x).numpy())
    assert (tmp_path / "small.safetensors").stat().st_size < (tmp_path / "float.safetensors").stat().st_size


def test_a_state_of_floats_or_of_other_bits_is_refused():
    model = nn.Sequential(nn.Linear(1, 4))  # with one input, 8 and 4 bits take as many bytes
    eight, four = nn.quantized(model, 8), nn.quantized(model, 4)
    for state in (model.state_dict(), four.state_dict()):
        with pytest.raises(nn.StateError, match=r"missing: 0\.weight_int8"):
            eight.load_state_dict(state)


@pytest.mark.parametrize(("bits", "limit"), [(8, 0.26), (4, 0.135)])
def test_a_large_layer_takes_a_quarter_or_an_eighth_of_the_bytes(bits, limit, tmp_path):
    model = nn.Linear(512, 256)
    for name, kept in (("float", model), ("small", nn.quantized(model, bits))):
        mg.save(kept.state_dict(), tmp_path / name)
    ratio = (tmp_path / "small").stat().st_size / (tmp_path / "float").stat().st_size
    assert bits / 32 < ratio < limit


@pytest.mark.parametrize("bits", [2, 16, 0, -8, True, 8.0, "8", None])
def test_other_numbers_of_bits_are_refused(bits):
    with pytest.raises(ArgumentError, match="8 or 4"):
        nn.quantized(nn.Linear(2, 2), bits)


def test_what_cannot_be_quantised_is_refused():
    with pytest.raises(ArgumentError, match="no model"):
        nn.quantized(nn.Linear(2, 2).weight)
    with pytest.raises(ArgumentError, match="nothing to make smaller"):
        nn.quantized(nn.Sequential(nn.ReLU()))
    with pytest.raises(ArgumentError, match="nothing to make smaller"):
        nn.quantized(nn.quantized(nn.Linear(2, 2)))
    broken = Model()
    with mg.no_grad():
        broken.head.weight[0, 0] = np.nan
    with pytest.raises(ArgumentError, match="a weight of head is infinite or not a number"):
        nn.quantized(broken)


@pytest.mark.parametrize("bits", BITS)
def test_the_outputs_change_by_no_more_than_the_scales_allow(bits):
    weight, x = uneven((30, 64), "float64"), np.random.default_rng(3).standard_normal((50, 64))
    model = layer(weight)
    change = np.abs(nn.quantized(model, bits)(x).numpy() - model(x).numpy())
    allowed = np.abs(x).sum(axis=1)[:, None] * (np.abs(weight).max(axis=1) / LARGEST[bits] / 2)  # (50, 30)
    assert (change <= allowed * (1 + 1e-9)).all() and (change > allowed / 100).mean() > 0.8


def test_the_comparison_prints_and_returns_bytes_and_measures(capsys):
    model = nn.Sequential(nn.Linear(64, 32), nn.Dropout(0.5))
    small = nn.quantized(model, 4)
    x = np.random.default_rng(0).standard_normal((20, 64)).astype("float32")
    modes = []

    def evaluate(judged):
        modes.append((judged.training, mg.is_grad_enabled()))
        return {"mean": float(judged(x).mean()), "share": 0.5}

    rows = nn.compare_quantized(model, small, evaluate)
    assert modes == [(False, False)] * 2
    assert model.training and small[1].training
    assert rows["bytes"] == (4 * (64 * 32 + 32), 64 * 32 // 2 + 4 * 32 + 4 * 32)
    means = [float((x @ part.weight.numpy().T + part.bias.numpy()).mean()) for part in (model[0], small[0])]
    assert rows["mean"] == pytest.approx(means, abs=1e-6) and rows["share"] == (0.5, 0.5)
    head, size, mean, share = capsys.readouterr().out.splitlines()
    assert head.split() == ["model", "quantised", "change"]
    assert size.split() == ["bytes", "8,320", "1,280", "-84.6%"]
    assert mean.split() == [
        "mean",
        f"{rows['mean'][0]:.5f}",
        f"{rows['mean'][1]:.5f}",
        f"{np.diff(rows['mean'])[0]:+.5f}",
    ]
    assert share.split() == ["share", "0.50000", "0.50000", "+0.00000"]


def test_the_comparison_takes_one_number_and_refuses_two_that_have_no_common_name():
    model = nn.Linear(3, 3)
    small = nn.quantized(model)
    assert nn.compare_quantized(model, small, lambda judged: 2)["result"] == (2.0, 2.0)
    with pytest.raises(ArgumentError, match="different numbers"):
        nn.compare_quantized(model, small, lambda judged: {type(judged).__name__: 1.0})


def test_a_quantised_model_can_be_copied_and_moved_to_another_dtype():
    small = nn.quantized(nn.Linear(6, 4), 4)
    twin = copy.deepcopy(small).to("float64")
    assert twin(mg.ones(1, 6, dtype="float64")).dtype == "float64" and twin.weight_int4.dtype == "uint8"
    np.testing.assert_allclose(twin.weight.numpy(), small.weight.numpy(), rtol=1e-6)
