"""Packed weights: the same numbers as other readers make of the bytes, products and gradients of them, in modules and files."""

from __future__ import annotations

import copy
import importlib.util
import json
import mmap
import threading
from typing import Any

import numpy as np
import pytest
from support.block_formats import floats_of, random_bytes

import minigrad as mg
from minigrad import kernels, nn
from minigrad.errors import ArgumentError, CheckpointError, DtypeError, ShapeError
from minigrad.maths.packing import FORMATS, row_bytes
from minigrad.nn import functional as F
from minigrad.runtime import threads

NUMBA = pytest.param("numba", marks=pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs numba"))
IMPLEMENTATIONS = ["definitions", "numpy", NUMBA]
GGUF = pytest.mark.skipif(importlib.util.find_spec("gguf") is None, reason="needs gguf: pip install gguf")


def packed(format: str, rows: int, columns: int, seed: int = 0) -> nn.Packed:
    return nn.Packed(random_bytes(format, rows, columns, seed), format, (rows, columns))


def normal(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


@pytest.mark.parametrize("columns", [1, 31, 32, 33, 96, 100])
@pytest.mark.parametrize("format", FORMATS)
def test_bytes_stand_for_the_numbers_of_the_format(format, columns):
    weight = packed(format, 5, columns)
    np.testing.assert_allclose(weight.dequantized(), floats_of(weight.data, format, columns), rtol=1e-6, atol=1e-7)
    assert weight.dequantized().dtype == weight.dtype == "float32" and weight.shape == (5, columns)


@GGUF
@pytest.mark.parametrize("format", [name for name in FORMATS if name != "i8"])
def test_bytes_stand_for_what_gguf_reads_and_ours_are_as_near_to_the_floats_as_gguf_s(format):
    import gguf

    kind = gguf.GGMLQuantizationType[format.upper()]
    x = normal(7, 96) / 10
    theirs = np.ascontiguousarray(gguf.quants.quantize(x, kind)).view(np.uint8)
    read = gguf.quants.dequantize(theirs, kind)
    np.testing.assert_array_equal(nn.Packed(theirs, format, x.shape).dequantized(), read)
    ours = nn.Packed.from_floats(mg.tensor(x), format)
    np.testing.assert_array_equal(ours.dequantized(), gguf.quants.dequantize(ours.data, kind))
    assert np.abs(ours.dequantized() - x).mean() <= 1.001 * np.abs(read - x).mean()


@pytest.mark.parametrize("format", FORMATS)
def test_zeros_and_numbers_of_any_size_stay_finite(format):
    for size in (0.0, 1e-30, 1e-7, 6e4):
        x = np.linspace(-size, size, 70, dtype="float32").reshape(2, 35)
        floats = nn.Packed.from_floats(x, format).dequantized()
        assert np.isfinite(floats).all() and np.abs(floats - x).max() <= max(
            size * 0.13, 2e-7
        )  # float16 has steps of 6e-8 there


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize(
    "rows, out, columns", [(1, 1, 1), (1, 300, 77), (3, 65, 96), (16, 9, 33), (40, 65, 100), (70, 130, 64)]
)
@pytest.mark.parametrize("format", FORMATS)
def test_a_product_is_that_of_the_floats(format, rows, out, columns, implementation):
    weight, x, bias = packed(format, out, columns), normal(rows, columns), normal(out)
    wanted = x.astype("float64") @ floats_of(weight.data, format, columns).T + bias
    with kernels.use(implementation):
        got = F.linear(x, weight, bias)
        without = F.linear(x, weight)
    scale = np.abs(wanted).max() + 1
    np.testing.assert_allclose(got.numpy(), wanted, rtol=0, atol=2e-6 * scale)
    np.testing.assert_allclose(without.numpy(), wanted - bias, rtol=0, atol=2e-6 * scale)
    assert got.dtype == "float32"


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_inputs_of_any_layout_and_of_no_rows_are_taken(implementation):
    weight = packed("q4_1", 33, 40)
    floats = weight.dequantized().astype("float64")
    with kernels.use(implementation):
        for x in (normal(2, 3, 80)[..., ::2], normal(40, 5).T, normal(40), normal(2, 1, 40)[:, :, ::-1]):
            np.testing.assert_allclose(F.linear(mg.tensor(x), weight).numpy(), x @ floats.T, rtol=0, atol=1e-4)
        assert F.linear(mg.zeros(0, 40), weight).shape == (0, 33)
        assert F.linear(mg.zeros(2, 0, 40), weight).shape == (2, 0, 33)
        double = F.linear(mg.tensor(normal(3, 40).astype("float64")), weight)
    assert double.dtype == "float64"


@pytest.mark.parametrize(
    "rows, out, columns", [(1, 400, 96), (1, 1001, 77), (2, 300, 128), (7, 515, 65), (32, 257, 130)]
)
def test_a_few_rows_with_a_weight_of_floats_are_multiplied_by_the_same_kernel(rows, out, columns):
    pytest.importorskip("numba")
    weight, x, bias = normal(out, columns, seed=2), normal(rows, columns), normal(out)
    with kernels.use("numba"):
        assert kernels.linear.kernels.choose([x, weight, bias], {}) is kernels.linear.kernels["few rows"]
        got = F.linear(x, weight, bias).numpy()
        given = [mg.tensor(a, requires_grad=True) for a in (x, weight, bias)]
        F.linear(*given).sum().backward()
    np.testing.assert_allclose(got, x.astype("float64") @ weight.T + bias, rtol=0, atol=1e-4)
    wanted = np.tile(weight.sum(axis=0), (rows, 1)), np.tile(x.sum(axis=0), (out, 1)), np.full(out, float(rows))
    for one, gradient in zip(given, wanted):
        np.testing.assert_allclose(one.grad.numpy(), gradient, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("columns", [128, 130])
def test_more_rows_are_so_too_where_nothing_is_recorded(columns):
    pytest.importorskip("numba")
    weight, x, bias = normal(300, columns, seed=2), normal(203, columns), normal(300)
    with kernels.use("numba"):
        assert kernels.linear.kernels.choose([x, weight, bias], {}) is not kernels.linear.kernels["few rows"]
        with mg.no_grad():
            assert kernels.linear.kernels.choose([x, weight, bias], {}) is kernels.linear.kernels["few rows"]
            got = F.linear(x, weight, bias).numpy()
    np.testing.assert_allclose(got, x.astype("float64") @ weight.T + bias, rtol=0, atol=1e-4)


def test_the_result_is_the_same_to_the_bit_whoever_computes_it():
    pytest.importorskip("numba")
    weights = [packed(format, 900, 96) for format in ("q4_0", "f16", "i8")]
    x = mg.tensor(normal(3, 96))

    def results():
        with kernels.use("numba"):
            return [F.linear(x[:n], weight).numpy() for weight in weights for n in (1, 3)]

    with threads.single_threaded_blas():
        alone = results()
    wrong, start = [], threading.Barrier(5)

    def many():
        start.wait()
        for i in range(60):
            wrong.extend(i for got, want in zip(results(), alone) if not np.array_equal(got, want))

    several = [threading.Thread(target=many) for _ in range(5)]
    for thread in several:
        thread.start()
    for thread in several:
        thread.join()
    assert not wrong


def test_nothing_behind_the_bytes_is_read():
    pytest.importorskip("numba")
    for format in FORMATS:
        weight = packed(format, 5, 37)
        room = mmap.mmap(-1, 2 * mmap.PAGESIZE)  # a page that ends with the weight, and one of NaN behind it
        page = np.frombuffer(room, np.uint8)
        page[mmap.PAGESIZE :] = 0xFF
        start = mmap.PAGESIZE - weight.nbytes
        page[start : mmap.PAGESIZE] = weight.data.reshape(-1)
        moved = nn.Packed(page[start : mmap.PAGESIZE].reshape(weight.data.shape), format, weight.shape)
        with kernels.use("numba"):
            for n in (1, 3, 40, 80):
                x = mg.tensor(normal(n, 37))
                np.testing.assert_array_equal(F.linear(x, moved).numpy(), F.linear(x, weight).numpy())


@pytest.mark.torch
@pytest.mark.parametrize("format", ["q8_0", "f16"])
def test_values_and_gradients_are_pytorchs(format):
    import torch

    weight, x = packed(format, 9, 45), normal(4, 45)
    there = torch.tensor(x, requires_grad=True)
    torch.nn.functional.gelu(torch.nn.functional.linear(there, torch.tensor(weight.dequantized()))).sum().backward()
    here = mg.tensor(x, requires_grad=True)
    F.linear_gelu(here, weight).sum().backward()
    np.testing.assert_allclose(here.grad.numpy(), there.grad.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_gradients_reach_input_and_bias_to_the_second_order(implementation):
    weight = packed("q5_1", 6, 37)
    with kernels.use(implementation):
        x = mg.tensor(normal(3, 37), requires_grad=True)
        bias = mg.tensor(normal(6), requires_grad=True)
        F.linear(x, weight, bias).sum().backward()
        double = [normal(3, 37).astype("float64"), normal(6).astype("float64")]
        assert mg.check.gradcheck(lambda a, b: F.linear(a, weight, b) ** 2, double)
    np.testing.assert_allclose(x.grad.numpy(), np.tile(weight.dequantized().sum(axis=0), (3, 1)), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(bias.grad.numpy(), np.full(6, 3.0))


@pytest.mark.parametrize("format", FORMATS)
def test_a_device_without_kernels_computes_by_ops(format):
    weight, x = packed(format, 7, 40), normal(2, 40)
    there = weight.to("fake")
    assert there.device == "fake" and weight.device == "cpu"
    out = F.linear(mg.tensor(x, device="fake"), there)
    assert out.device == "fake"
    np.testing.assert_allclose(out.numpy(), x @ weight.dequantized().T, rtol=1e-4, atol=1e-4)
    rows = F.embedding(mg.tensor([[3, 0]], device="fake"), there)
    np.testing.assert_array_equal(rows.numpy(), weight.dequantized()[[[3, 0]]])


@pytest.mark.parametrize("format", FORMATS)
def test_an_embedding_gives_rows_and_refuses_numbers_out_of_range(format):
    weight = packed(format, 11, 35)
    np.testing.assert_array_equal(
        F.embedding(mg.tensor([[1, 10], [0, 1]]), weight).numpy(), weight.dequantized()[[[1, 10], [0, 1]]]
    )
    with pytest.raises(mg.errors.IndexingError, match="0 to 10"):
        F.embedding(mg.tensor([11]), weight)


def test_rows_can_be_taken_out_and_joined_again():
    weight = packed("q4_0", 12, 70)
    parts = weight[:5], weight[5:6], weight[6:]
    assert np.shares_memory(parts[0].data, weight.data) and parts[1].shape == (1, 70)
    together = nn.Packed.concatenate(parts)
    np.testing.assert_array_equal(together.data, weight.data)
    np.testing.assert_array_equal(weight[[3, 3]].dequantized(), weight.dequantized()[[3, 3]])
    with pytest.raises(ShapeError, match="one format and width"):
        nn.Packed.concatenate([weight, packed("q4_1", 2, 70)])
    with pytest.raises(ArgumentError, match="rows"):
        weight[3]


@pytest.mark.parametrize(
    "data, format, shape, error",
    [
        (np.zeros((2, 34), np.uint8), "q9_9", (2, 32), ArgumentError),
        (np.zeros((2, 34), np.int8), "q8_0", (2, 32), DtypeError),
        (np.zeros((2, 33), np.uint8), "q8_0", (2, 32), ShapeError),
        (np.zeros((2, 34), np.uint8), "q8_0", (2, 33), ShapeError),
        (np.zeros((2, 34), np.uint8), "q8_0", (2, 0), ShapeError),
        (np.zeros((2, 34), np.uint8), "q8_0", (2, -1), ShapeError),
        (np.zeros((2, 34), np.uint8), "q8_0", (2, 32.0), ShapeError),
        (np.zeros((2, 34), np.uint8), "q8_0", (2, 32, 1), ShapeError),
        ("text", "q8_0", (2, 32), DtypeError),
    ],
)
def test_bytes_that_do_not_fit_are_refused(data, format, shape, error):
    with pytest.raises(error, match="Packed"):
        nn.Packed(data, format, shape)


def test_other_ops_refuse_it_and_say_what_to_do():
    with pytest.raises(DtypeError, match="dequantized"):
        mg.ones(2, 3) @ packed("q8_0", 3, 3)
    with pytest.raises(ShapeError, match="linear: input and weight do not fit"):
        F.linear(mg.ones(2, 3), packed("q8_0", 3, 4))


def attention_model() -> Any:
    mg.manual_seed(0)
    return nn.Encoder(2, 32, heads=4, causal=True).eval()


def packed_state(model: Any, format: str = "q8_0") -> dict[str, Any]:
    return {k: nn.Packed.from_floats(v, format) if v.ndim == 2 else v for k, v in model.state_dict().items()}


def test_a_packed_state_takes_the_places_of_the_parameters():
    model, fresh = attention_model(), attention_model()
    state = packed_state(model)
    x = mg.randn(2, 5, 32)
    fresh.load_state_dict(state)
    assert fresh.blocks[0].mlp.up.weight is state["blocks.0.mlp.up.weight"]
    names = {name for name, _ in fresh.named_parameters()}
    assert not names & {name for name, _ in fresh.named_packed()}
    assert names | {name for name, _ in fresh.named_packed()} == set(model.state_dict()) == set(fresh.state_dict())
    floats = {k: v.dequantized() if isinstance(v, nn.Packed) else v for k, v in state.items()}
    model.load_state_dict(floats)
    np.testing.assert_allclose(fresh(x).numpy(), model(x).numpy(), rtol=0, atol=1e-5)
    cache = fresh.new_cache()
    with mg.no_grad():
        steps = [fresh(x[:, i : i + 1], cache=cache).numpy() for i in range(5)]
    np.testing.assert_allclose(np.concatenate(steps, axis=1), fresh(x).numpy(), rtol=0, atol=1e-5)


def test_copies_share_the_bytes_and_counts_and_summaries_know_them():
    model = attention_model()
    small = nn.quantized(model)
    twin = copy.deepcopy(small)
    assert twin.blocks[0].mlp.up.weight is small.blocks[0].mlp.up.weight
    assert twin.blocks[0].mlp.up.bias is not small.blocks[0].mlp.up.bias
    count = sum(p.size for p in model.parameters())
    kept = sum(p.size for p in small.parameters())
    assert f"{count:,} parameters, {kept:,} trainable" in small.summary()
    twin.load_state_dict(small.state_dict())
    small.freeze()
    assert [p for p in small.parameters() if p.requires_grad] == []


def test_states_that_do_not_fit_are_refused_and_nothing_is_changed():
    model = attention_model()
    small = nn.quantized(model)
    with pytest.raises(nn.StateError, match=r"mlp\.up\.weight \(model packed q8_0, state float32\)"):
        small.load_state_dict(model.state_dict())
    wrong = {**packed_state(model), "blocks.0.mlp.up.weight": packed("q8_0", 3, 32)}
    with pytest.raises(nn.StateError, match="of another shape"):
        model.load_state_dict(wrong)
    assert not list(model.named_packed())
    with pytest.raises(DtypeError, match="float32 only"):
        small.to("float64")


def test_a_model_moves_to_another_device_and_back():
    small = nn.quantized(attention_model())
    x = mg.randn(1, 3, 32)
    before = small(x).numpy()
    small.to(device="fake")
    assert {weight.device for _, weight in small.named_packed()} == {"fake"}
    np.testing.assert_allclose(small(x.to("fake")).numpy(), before, atol=1e-5)
    np.testing.assert_allclose(small.to(device="cpu")(x).numpy(), before, atol=1e-6)


def test_tied_weights_stay_tied():
    class Tied(nn.Module):
        def __init__(self):
            self.table = nn.Embedding(20, 32)
            self.head = nn.Linear(32, 20, bias=False)
            self.head.weight = self.table.weight

        def forward(self, ids):
            return self.head(self.table(ids))

    model, fresh = Tied(), Tied()
    small = nn.quantized(model, embeddings=True)
    assert small.head.weight is small.table.weight
    with pytest.raises(ArgumentError, match="nothing to make smaller"):
        nn.quantized(model)
    fresh.load_state_dict(small.state_dict())
    assert fresh.head.weight is fresh.table.weight and isinstance(fresh.head.weight, nn.Packed)
    other = {**small.state_dict(), "head.weight": packed("q8_0", 20, 32)}
    with pytest.raises(nn.StateError, match="tied in the model"):
        Tied().load_state_dict(other)


def test_a_compiled_function_takes_packed_weights():
    small = nn.quantized(attention_model())
    x = mg.randn(2, 5, 32)
    compiled = mg.compile(lambda a: small(a))
    with mg.no_grad():
        for _ in range(2):
            np.testing.assert_allclose(compiled(x).numpy(), small(x).numpy(), atol=1e-5)


def is_mapped(array: Any) -> bool:
    """Whether the memory of an array is that of a file."""
    while isinstance(array, (np.ndarray, memoryview)):
        array = array.base if isinstance(array, np.ndarray) else array.obj
    return isinstance(array, mmap.mmap)


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_keeps_it_packed_and_gives_it_back_in_the_memory_of_the_file(format, tmp_path):
    path = tmp_path / "weights.safetensors"
    weight = packed(format, 40, 70)
    mg.save({"w": weight, "b": mg.ones(3)}, path)
    assert path.stat().st_size < 40 * row_bytes(format, 70) + 1000
    again = mg.load(path)
    assert again["w"].format == format and again["w"].shape == (40, 70) and is_mapped(again["w"].data)
    assert not is_mapped(again["b"].data)
    np.testing.assert_array_equal(again["w"].data, weight.data)
    x = normal(2, 70)
    np.testing.assert_array_equal(F.linear(x, again["w"]).numpy(), F.linear(x, weight).numpy())


def test_a_model_in_a_nested_file_comes_back_packed(tmp_path):
    path = tmp_path / "all.safetensors"
    small = nn.quantized(attention_model(), 4)
    mg.save({"model": small, "epoch": 3}, path)
    fresh = attention_model()
    assert mg.load(path, into={"model": fresh})["epoch"] == 3
    x = mg.randn(1, 4, 32)
    np.testing.assert_array_equal(fresh(x).numpy(), small(x).numpy())
    with pytest.raises(ArgumentError, match="npz"):
        mg.save(small.state_dict(), tmp_path / "all.npz")


@pytest.mark.parametrize(
    "note",
    [
        "[]",
        "not json",
        '{"w": 3}',
        '{"w": {"format": "q8_0"}}',
        '{"w": {"format": "q8_0", "shape": [40, 33]}}',
        '{"w": {"format": "q8_0", "shape": [99999999999999999999, 32]}}',
        '{"w": {"format": "q8_0", "shape": "text"}}',
        '{"w": {"format": "no such", "shape": [40, 32]}}',
        '{"w": {"format": ["q8_0"], "shape": [40, 32]}}',
        '{"elsewhere": {"format": "q8_0", "shape": [40, 32]}}',
        '{"b": {"format": "q8_0", "shape": [1, 32]}}',
        "[" * 100_000,
    ],
)
def test_hostile_metadata_are_refused(note, tmp_path):
    path = tmp_path / "hostile.safetensors"
    mg.save({"w": mg.zeros(40, 34, dtype="uint8"), "b": mg.ones(34)}, path, {"minigrad.packed": note})
    with pytest.raises(CheckpointError, match="packed weights that do not fit"):
        mg.load(path)
    good = json.dumps({"w": {"format": "q8_0", "shape": [40, 32]}})
    mg.save({"w": mg.zeros(40, 34, dtype="uint8")}, path, {"minigrad.packed": good})
    assert isinstance(mg.load(path)["w"], nn.Packed)
