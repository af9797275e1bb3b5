"""Positions: the paper's formulas, any start, and for rotary ones that only distance counts."""

from __future__ import annotations

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.check import gradcheck
from minigrad.errors import ArgumentError, IndexingError, ShapeError
from minigrad.nn.transformer import positions


def encoding(position: int, dim: int, base: float = 10000.0) -> list[float]:
    """The formula of "Attention is all you need", one number at a time."""
    angles = [position / base ** (2 * (i // 2) / dim) for i in range(dim)]
    return [math.cos(a) if i % 2 else math.sin(a) for i, a in enumerate(angles)]


def test_the_first_positions_of_width_four():
    table = nn.SinusoidalPositions(4)(mg.zeros(3, 4)).numpy()
    np.testing.assert_allclose(table[0], [0, 1, 0, 1])
    np.testing.assert_allclose(table[1], [0.84147, 0.54030, 0.01000, 0.99995], atol=5e-6)
    np.testing.assert_allclose(table[2], [0.90930, -0.41615, 0.02000, 0.99980], atol=5e-6)


@pytest.mark.parametrize("dim", [1, 2, 5, 8])
@pytest.mark.parametrize("start", [0, 3, 100, positions.KEPT - 2, 10**9])
def test_sinusoids_follow_the_formula_from_any_start(dim: int, start: int, device: str):
    x = np.random.default_rng(0).standard_normal((2, 4, dim))
    out = nn.SinusoidalPositions(dim, base=100.0)(mg.tensor(x, device=device), start=start)
    assert out.device == device and out.dtype == np.float64
    expected = x + np.array([encoding(start + i, dim, 100.0) for i in range(4)])
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("make", [nn.SinusoidalPositions, nn.RotaryPositions])
def test_the_table_follows_the_input_in_length_dtype_and_device(make):
    layer = make(4)

    def run(length: int, dtype: str, device: str, start: int = 0) -> np.ndarray:
        x = mg.ones(length, 4, dtype=dtype, device=device)
        out = layer(x, start=start) if isinstance(layer, nn.SinusoidalPositions) else layer(x, x, start=start)[0]
        assert out.dtype == dtype and out.device == device and out.shape == (length, 4)
        return out.numpy()

    long = run(300, "float64", "cpu")
    np.testing.assert_array_equal(run(2, "float64", "cpu"), long[:2])
    np.testing.assert_allclose(run(5, "float32", "cpu", start=200), long[200:205], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(run(300, "float64", "fake"), long, rtol=1e-12)
    np.testing.assert_allclose(run(400, "float16", "fake")[:300], long, rtol=2e-3, atol=2e-3)
    np.testing.assert_array_equal(run(300, "float64", "cpu"), long)
    assert list(layer.state_dict()) == [] and list(layer.buffers()) == []


def test_learned_positions_are_added_and_trained(device: str):
    layer = nn.LearnedPositions(6, 3, dtype="float64", device=device)
    x = np.random.default_rng(0).standard_normal((2, 4, 3))
    out = layer(mg.tensor(x, device=device), start=2)
    np.testing.assert_allclose(out.numpy(), x + layer.weight.numpy()[2:], rtol=1e-12)
    out.sum().backward()
    assert layer.weight.grad is not None
    np.testing.assert_array_equal(layer.weight.grad.numpy(), np.repeat([0, 2], [2, 4])[:, None] * np.ones(3))
    mg.manual_seed(0)
    assert abs(nn.LearnedPositions(1000, 50).weight.numpy().std() - 0.02) < 2e-4


def test_too_long_a_sequence_for_learned_positions_is_refused():
    layer = nn.LearnedPositions(6, 3)
    with pytest.raises(IndexingError, match=r"LearnedPositions: .*\n.*0 to 5\n.*4 to 6\n.*max_length"):
        layer(mg.ones(3, 3), start=4)
    with pytest.raises(IndexingError, match=r"0 to 5\n.*-1 to 1"):
        layer(mg.ones(3, 3), start=-1)


def rotated(x: np.ndarray, start: int = 0) -> np.ndarray:
    """Each pair of columns as a complex number, multiplied by exp(i · angle)."""
    pairs = x[..., 0::2] + 1j * x[..., 1::2]
    angles = (start + np.arange(x.shape[-2]))[:, None] / 10000.0 ** (np.arange(pairs.shape[-1]) * 2 / x.shape[-1])
    pairs = pairs * np.exp(1j * angles)
    return np.stack([pairs.real, pairs.imag], axis=-1).reshape(x.shape)


@pytest.mark.parametrize("start", [0, 7])
def test_rotary_positions_rotate_pairs_of_columns_as_complex_numbers(start: int, device: str):
    rng = np.random.default_rng(0)
    query, key = rng.standard_normal((2, 3, 5, 6)), rng.standard_normal((2, 1, 4, 6))
    q, k = nn.RotaryPositions(6)(mg.tensor(query, device=device), mg.tensor(key, device=device), start=start)
    assert q.device == k.device == device
    np.testing.assert_allclose(q.numpy(), rotated(query, start), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(k.numpy(), rotated(key, start), rtol=1e-12, atol=1e-12)


def test_products_of_rotated_queries_and_keys_depend_on_distance_only():
    rng = np.random.default_rng(1)
    query, key = (np.broadcast_to(rng.standard_normal(8), (10, 8)) for _ in range(2))
    q, k = nn.RotaryPositions(8)(mg.tensor(query), mg.tensor(key))
    scores = (q @ k.T).numpy()  # (T, T)
    for distance in range(-9, 10):
        diagonal = np.diagonal(scores, distance)
        np.testing.assert_allclose(diagonal, diagonal[0], rtol=1e-9, atol=1e-12)
    assert len(np.unique(scores.round(9))) == 19


def test_rotating_one_token_at_a_time_equals_rotating_all_at_once():
    x = mg.randn(5, 4, dtype="float64")
    rotary = nn.RotaryPositions(4)
    together, _ = rotary(x, x)
    alone = mg.concatenate([rotary(x[i : i + 1], x[i : i + 1], start=i)[0] for i in range(5)])
    np.testing.assert_array_equal(together.numpy(), alone.numpy())


def test_rotary_positions_pass_gradcheck():
    rotary = nn.RotaryPositions(4, base=50.0)
    rng = np.random.default_rng(2)
    inputs = [mg.tensor(rng.standard_normal((2, 3, 4))) for _ in range(2)]
    assert gradcheck(lambda q, k: rotary(q, k, start=1), inputs)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: nn.RotaryPositions(5), ArgumentError, "RotaryPositions: .*\n.*even dim\n.*5"),
        (lambda: nn.RotaryPositions(4, base=0.0), ArgumentError, "RotaryPositions: base"),
        (lambda: nn.SinusoidalPositions(0), ArgumentError, "SinusoidalPositions: dim"),
        (lambda: nn.LearnedPositions(4, -1), ArgumentError, "LearnedPositions: dim"),
        (lambda: nn.SinusoidalPositions(4)(mg.ones(2, 5)), ShapeError, r"Sinus.*\n.*\(…, T, 4\)\n.*\(2, 5\) float32"),
        (lambda: nn.SinusoidalPositions(4)(mg.ones(4)), ShapeError, r"\(…, T, 4\)\n.*\(4,\)"),
        (lambda: nn.LearnedPositions(9, 2)(mg.tensor([[1, 2]])), ShapeError, r"floating .*\n.*int64"),
        (lambda: nn.RotaryPositions(4)(mg.ones(2, 4), mg.ones(2, 6)), ShapeError, r"Rotary.*\n.*4\)\n.*\(2, 6\)"),
        (lambda: nn.SinusoidalPositions(4)(mg.ones(2, 4), start=-1), IndexingError, "start .*\n.*\n.*-1"),
        (lambda: nn.SinusoidalPositions(4)(mg.ones(2, 4), start=0.5), IndexingError, "start .*\n.*\n.*0.5"),
    ],
)
def test_what_does_not_fit_is_refused_with_words(call, kind, words):
    with pytest.raises(kind, match=words):
        call()
