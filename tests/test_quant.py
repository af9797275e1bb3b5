"""Weights of 8 and 4 bits after training: within half a step of the floats, everything else as it was, and kept in files."""

from __future__ import annotations

import numpy as np
import pytest
from support.module_examples import Model, Tied, assert_same, values

import minigrad as mg
from minigrad import nn
from minigrad.errors import ArgumentError
from minigrad.nn.quant import FORMATS

BITS = sorted(FORMATS)


def layer(weight: np.ndarray) -> nn.Linear:
    made = nn.Linear(weight.shape[1], weight.shape[0])
    with mg.no_grad():
        made.weight[...] = weight
    return made


def uneven(*shape: int) -> np.ndarray:
    """Random weights whose rows differ in size by powers of ten, so that one scale for all of them would fail."""
    rng = np.random.default_rng(0)
    return (rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 3, (shape[0], 1))).astype("float32")


@pytest.mark.parametrize("bits", BITS)
def test_no_weight_is_farther_than_half_a_step_of_its_block_from_its_stand_in(bits):
    weight = uneven(40, 320)
    blocks = weight.reshape(40, 10, 32)
    stand_in = nn.quantized(layer(weight), bits).weight.dequantized().reshape(blocks.shape)
    span = {8: 2 * np.abs(blocks).max(-1), 4: blocks.max(-1) - blocks.min(-1)}[bits]
    steps = span[..., None] / {8: 254, 4: 15}[bits]
    errors = np.abs(blocks - stand_in) / steps
    assert errors.max() <= 0.53  # the scales themselves are rounded to float16
    assert (errors.max(axis=-1) > 0.3).all()  # and in every block some are that far: nothing kept the fractions


@pytest.mark.parametrize("bits", BITS)
def test_the_output_is_that_of_the_stand_in_and_gradients_reach_input_and_bias(bits, device):
    x = np.random.default_rng(1).standard_normal((3, 7)).astype("float32")
    original = layer(uneven(4, 7)).to(device=device)
    small = nn.quantized(original, bits)
    stand_in = mg.Tensor(small.weight.dequantized()).numpy()
    given = mg.tensor(x, device=device, requires_grad=True)
    out = small(given)
    assert out.device == original(given).device
    np.testing.assert_allclose(out.numpy(), x @ stand_in.T + original.bias.numpy(), rtol=1e-4, atol=1e-4)
    out.sum().backward()
    np.testing.assert_allclose(given.grad.numpy(), np.tile(stand_in.sum(axis=0), (3, 1)), rtol=1e-4, atol=1e-4)
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
    assert {name for name, _ in small.named_packed()} == {f"{name}.weight" for name in linears}
    assert linears == {"blocks.0.fc", "blocks.1.fc", "head"}
    assert not small.blocks[0].fc.bias.requires_grad and small.blocks[1].fc.bias.requires_grad
    assert not small.blocks[0].fc.training and small.blocks[1].fc.training


def test_everything_but_the_weights_of_linears_is_copied_bit_for_bit():
    model = Model()
    model(mg.randn(5, 3))  # the norms have seen something
    old, small = values(model), nn.quantized(model, 4)
    replaced = {name for name, _ in small.named_packed()}
    assert replaced == {"blocks.0.fc.weight", "blocks.1.fc.weight", "head.weight"}
    assert_same({k: v for k, v in old.items() if k not in replaced}, plain(small))


def plain(model: nn.Module) -> dict[str, np.ndarray]:
    """The values of what is not packed."""
    return {k: v.numpy().copy() for k, v in model.state_dict().items() if isinstance(v, mg.Tensor)}


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


def test_a_weight_that_a_table_or_a_layer_of_another_class_shares_stays_as_it_is():
    model = Mixed()
    small = nn.quantized(model)
    assert {name for name, _ in small.named_packed()} == {"first.weight", "left.weight"}
    assert small.again is small.first and small.left.weight is small.right.weight
    assert small.words.out.weight is small.words.table.weight and isinstance(small.own.weight, nn.Parameter)
    with mg.no_grad():
        model.first.weight[...] = small.first.weight.dequantized()
        model.left.weight[...] = small.left.weight.dequantized()
    ids = mg.tensor([0, 3])
    np.testing.assert_allclose(small(ids).numpy(), model(ids).numpy(), rtol=0, atol=1e-5)


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
    again = fresh().eval()
    assert (again(x).numpy() != small(x).numpy()).any()
    again.load_state_dict(mg.load(tmp_path / "small.safetensors"))
    assert_same(plain(small), plain(again))
    np.testing.assert_array_equal(again(x).numpy(), small(x).numpy())
    assert (tmp_path / "small.safetensors").stat().st_size < (tmp_path / "float.safetensors").stat().st_size


@pytest.mark.parametrize(("bits", "limit"), [(8, 0.27), (4, 0.16)])
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
    with pytest.raises(ArgumentError, match="single precision"):
        nn.quantized(nn.Linear(2, 2, dtype="float64"))
    broken = Model()
    with mg.no_grad():
        broken.head.weight[0, 0] = np.nan
    with pytest.raises(ArgumentError, match="a number of head.weight is infinite or not a number"):
        nn.quantized(broken)


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
    assert rows["bytes"] == (4 * (64 * 32 + 32), 64 * 32 // 32 * 20 + 4 * 32)
    weights = model[0].weight.numpy(), small[0].weight.dequantized()
    means = [float((x @ weight.T + model[0].bias.numpy()).mean()) for weight in weights]
    assert rows["mean"] == pytest.approx(means, abs=1e-6) and rows["share"] == (0.5, 0.5)
    head, size, mean, share = capsys.readouterr().out.splitlines()
    assert head.split() == ["model", "quantised", "change"]
    assert size.split() == ["bytes", "8,320", "1,408", "-83.1%"]
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
        nn.compare_quantized(model, small, lambda judged: {type(judged.weight).__name__: 1.0})
