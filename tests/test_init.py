"""Initialisers: the right spread, in place, repeatable, and clear about what they cannot fill."""

from __future__ import annotations

import math
import mmap
import threading
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import ArgumentError, DtypeError, ShapeError
from minigrad.nn import init

SHAPE = (300, 200)
CONVOLUTION = (60, 50, 4, 5)
EXPECTED = {  # the standard deviation, and whether it is uniform
    "xavier_uniform_": (lambda t: init.xavier_uniform_(t), lambda i, o: math.sqrt(2 / (i + o)), True),
    "xavier_normal_": (lambda t: init.xavier_normal_(t), lambda i, o: math.sqrt(2 / (i + o)), False),
    "xavier with gain": (
        lambda t: init.xavier_uniform_(t, gain=5 / 3),
        lambda i, o: 5 / 3 * math.sqrt(2 / (i + o)),
        True,
    ),
    "he_uniform_": (lambda t: init.he_uniform_(t), lambda i, o: math.sqrt(2 / i), True),
    "he_normal_": (lambda t: init.he_normal_(t), lambda i, o: math.sqrt(2 / i), False),
    "he of outputs": (lambda t: init.he_normal_(t, mode="fan_out"), lambda i, o: math.sqrt(2 / o), False),
    "he for leaky": (
        lambda t: init.he_uniform_(t, nonlinearity="leaky_relu", negative_slope=0.5),
        lambda i, o: math.sqrt(2 / 1.25 / i),
        True,
    ),
    "he for tanh": (lambda t: init.he_normal_(t, nonlinearity="tanh"), lambda i, o: 5 / 3 / math.sqrt(i), False),
    "kaiming_uniform_": (lambda t: init.kaiming_uniform_(t, 0.5), lambda i, o: math.sqrt(2 / 1.25 / i), True),
    "kaiming_normal_": (lambda t: init.kaiming_normal_(t, mode="fan_out"), lambda i, o: math.sqrt(2 / o), False),
    "normal_": (lambda t: init.normal_(t, 0.0, 0.3), lambda i, o: 0.3, False),
    "uniform_": (lambda t: init.uniform_(t, -0.6, 0.6), lambda i, o: 0.6 / math.sqrt(3), True),
    "gpt2_": (lambda t: init.gpt2_(t), lambda i, o: 0.02, False),
    "gpt2_ residual": (lambda t: init.gpt2_(t, layers=8), lambda i, o: 0.02 / 4, False),
}


@pytest.mark.parametrize("shape", [SHAPE, CONVOLUTION], ids=str)
@pytest.mark.parametrize("name", EXPECTED)
def test_the_numbers_have_the_distribution_of_the_formula(name, shape, device):
    fill, deviation, uniform = EXPECTED[name]
    mg.manual_seed(0)
    tensor = mg.nn.Parameter(mg.zeros(shape, device=device))
    assert fill(tensor) is tensor and tensor.requires_grad and tensor.is_leaf and tensor.device == device
    drawn = tensor.numpy()
    field = math.prod(shape[2:])
    expected = deviation(shape[1] * field, shape[0] * field)
    assert abs(drawn.mean()) < 5 * expected / math.sqrt(drawn.size)
    assert abs(drawn.std() / expected - 1) < 0.02
    largest = np.abs(drawn).max() / expected
    assert 0.99 * math.sqrt(3) < largest <= 1.000001 * math.sqrt(3) if uniform else largest > 3.5


@pytest.mark.torch
@pytest.mark.parametrize(
    ("ours", "theirs", "options"),
    [
        ("xavier_uniform_", "xavier_uniform_", {"gain": 2.0}),
        ("xavier_normal_", "xavier_normal_", {}),
        ("he_uniform_", "kaiming_uniform_", {"mode": "fan_out", "nonlinearity": "relu"}),
        ("he_normal_", "kaiming_normal_", {"nonlinearity": "selu"}),
    ],
)
@pytest.mark.parametrize("shape", [SHAPE, CONVOLUTION], ids=str)
def test_the_spread_is_pytorchs(ours, theirs, options, shape):
    import torch

    mg.manual_seed(0)
    mine = getattr(init, ours)(mg.empty(shape), **options).numpy()
    generator = torch.Generator().manual_seed(0)
    other = getattr(torch.nn.init, theirs)(torch.empty(shape), **options, generator=generator).numpy()
    assert abs(mine.std() / other.std() - 1) < 0.02


def test_constants_are_filled_in(device):
    tensor = mg.randn(3, 2, device=device)
    np.testing.assert_array_equal(init.ones_(tensor).numpy(), 1)
    np.testing.assert_array_equal(init.zeros_(tensor).numpy(), 0)
    np.testing.assert_array_equal(init.constant_(tensor, 2.5).numpy(), 2.5)
    assert tensor.tolist() == [[2.5, 2.5]] * 3


def test_the_same_seed_gives_the_same_numbers_in_any_dtype_given():
    for dtype in ("float16", "float32", "float64"):
        tensors = []
        for _ in range(2):
            mg.manual_seed(7)
            tensors.append(init.he_normal_(mg.empty(4, 4, dtype=dtype)))
        assert tensors[0].dtype == dtype
        np.testing.assert_array_equal(tensors[0].numpy(), tensors[1].numpy())


def test_a_backward_that_needs_the_old_values_is_refused():
    weight = mg.ones(2, 2, requires_grad=True)
    loss = (weight * weight).sum()
    init.normal_(weight)
    with pytest.raises(mg.MinigradError, match="overwritten"):
        loss.backward()


def test_signals_keep_their_size_through_fifty_layers_of_he_and_relu():
    mg.manual_seed(0)
    x = mg.randn(64, 256)
    for _ in range(50):
        x = mg.relu(x @ init.he_normal_(mg.empty(256, 256)).T)
    assert 0.1 < float((x * x).mean()) < 10


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: init.xavier_normal_(mg.ones(3)), ShapeError, r"xavier_normal_: .*\n.*\(out, in, …\).*\n.*\(3,\)"),
        (lambda: init.he_normal_(mg.ones(3, 0)), ShapeError, r"he_normal_: .*\n.*not empty\n.*\(3, 0\)"),
        (lambda: init.he_uniform_(np.ones((2, 2))), ShapeError, "he_uniform_: .*\n.*\n.*ndarray"),
        (lambda: init.zeros_([1.0]), DtypeError, "zeros_: .*\n.*a Tensor\n.*list"),
        (lambda: init.normal_([1.0]), DtypeError, "normal_: .*\n.*a Tensor\n.*list"),
        (
            lambda: init.he_normal_(mg.ones(2, 2), mode="fanin"),
            ArgumentError,
            "he_normal_: unknown mode .*\n.*'fan_in'",
        ),
        (lambda: init.he_normal_(mg.ones(2, 2), nonlinearity="rely"), ArgumentError, "nonlinearity 'rely'\n.*'relu'"),
        (
            lambda: init.uniform_(mg.ones(2), 1.0, 0.0),
            ArgumentError,
            "uniform_: .*\n.*low <= high\n.*low=1.0, high=0.0",
        ),
        (lambda: init.normal_(mg.ones(2), std=-1.0), ArgumentError, "normal_: .*\n.*\n.*-1.0"),
        (lambda: init.gpt2_(mg.ones(2), layers=0), ArgumentError, "gpt2_: .*\n.*\n.*0"),
        (lambda: init.normal_(mg.tensor([1, 2])), DtypeError, "normal_: .*\n.*floating.*\n.*int64"),
    ],
)
def test_what_cannot_be_filled_is_refused_with_words(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("layout", ["whole", "transposed", "part"])
def test_numbers_are_drawn_in_place_from_the_same_stream_as_rand_and_randn(dtype, layout):
    whole = mg.zeros(6, 4, dtype=dtype)
    tensor = {"whole": whole, "transposed": whole.T, "part": whole[1:3]}[layout]
    for fill, draw, scale, shift in ((init.normal_, mg.randn, 0.3, 0.1), (init.uniform_, mg.rand, 0.5, -0.2)):
        mg.manual_seed(3)
        expected = draw(*tensor.shape, dtype=dtype) * scale + shift
        mg.manual_seed(3)
        fill(tensor, shift, scale if fill is init.normal_ else shift + scale)
        np.testing.assert_array_equal(tensor.numpy(), expected.numpy())
    changed = {"whole": 24, "transposed": 24, "part": 8}[layout]
    assert np.count_nonzero(whole.numpy()) == changed


def test_a_tensor_that_a_graph_needs_is_known_to_be_overwritten():
    x = mg.ones(3, requires_grad=True)
    y = (x * x).sum()
    with mg.no_grad():
        init.normal_(x)
    with pytest.raises(mg.MinigradError, match="multiply"):
        y.backward()


def test_inside_of_skip_nothing_is_drawn_or_written_but_mistakes_are_told(device):
    before = mg.nn.Linear(3, 2, device=device)
    kept = before.weight.numpy().copy()
    mg.manual_seed(0)
    with init.skip():
        with init.skip():
            made = mg.nn.MultiHeadAttention(4, 2, device=device)
        before.reset_parameters()
        init.ones_(before.bias)
        init.he_normal_(before.weight)
        norm = mg.nn.LayerNorm(2, device=device)
        with pytest.raises(ArgumentError, match="negative"):
            init.normal_(before.weight, std=-1.0)
        with pytest.raises(DtypeError):
            init.uniform_(mg.zeros(2, dtype="int64", device=device))
    assert all(not parameter.numpy().any() for parameter in made.parameters())
    assert norm.weight.numpy().tolist() == [1, 1]  # not drawn, so not left out
    np.testing.assert_array_equal(before.weight.numpy(), kept)
    drawn = mg.randn(3, device=device).numpy()
    mg.manual_seed(0)
    np.testing.assert_array_equal(mg.randn(3, device=device).numpy(), drawn)
    before.reset_parameters()
    assert (before.weight.numpy() != kept).all()


def test_skip_is_for_its_own_thread():
    made = []
    with init.skip():
        thread = threading.Thread(target=lambda: made.append(mg.nn.Linear(3, 2)))
        thread.start()
        thread.join()
    assert made[0].weight.numpy().all()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux tells a process how much memory it uses")
def test_weights_that_are_not_set_take_no_memory():
    def pages():
        return int(Path("/proc/self/statm").read_text().split()[1])

    before = pages()
    with init.skip():
        layer = mg.nn.Linear(1 << 14, 1 << 14)  # 1 GiB
    assert layer.weight.shape == (1 << 14, 1 << 14) and (pages() - before) * mmap.PAGESIZE < 1 << 26


def test_a_truncated_normal_keeps_its_range_and_shape(device):
    mg.manual_seed(0)
    x = init.trunc_normal_(mg.empty(40_000, device=device), 1.0, 2.0, a=-1.0, b=4.0).numpy()
    assert x.min() >= -1 and x.max() <= 4
    # The density over [-1, 1.5] and [1.5, 4], by the normal distribution with mean 1 and deviation 2.
    cdf = [0.5 * (1 + math.erf((bound - 1) / math.sqrt(8))) for bound in (-1, 1.5, 4)]
    assert abs((x < 1.5).mean() - (cdf[1] - cdf[0]) / (cdf[2] - cdf[0])) < 0.01


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5), (4, 3, 2)], ids=str)
def test_orthogonal_rows_or_columns_have_the_length_asked_for(shape, device):
    x = init.orthogonal_(mg.empty(*shape, dtype="float64", device=device), gain=2.0).numpy().reshape(shape[0], -1)
    product = x @ x.T if x.shape[0] <= x.shape[1] else x.T @ x
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-12)


def test_orthogonal_matrices_are_drawn_evenly():
    mg.manual_seed(0)
    drawn = np.stack([init.orthogonal_(mg.empty(2, 2)).numpy() for _ in range(200)])
    assert abs(drawn.mean(axis=0)).max() < 0.2 and 50 < (np.linalg.det(drawn) > 0).sum() < 150


@pytest.mark.torch
def test_what_is_not_random_is_pytorchs():
    import torch

    for name, shape, options in (
        ("eye_", (3, 4), {}),
        ("dirac_", (3, 4, 3), {}),
        ("dirac_", (4, 2, 3, 4), {"groups": 2}),
        ("dirac_", (2, 3, 1, 2, 3), {}),
    ):
        expected = getattr(torch.nn.init, name)(torch.empty(shape), **options).numpy()
        np.testing.assert_array_equal(getattr(init, name)(mg.empty(*shape), **options).numpy(), expected)
    for name, param in (
        ("linear", None),
        ("conv_transpose2d", None),
        ("tanh", None),
        ("leaky_relu", None),
        ("leaky_relu", 0.3),
        ("selu", None),
    ):
        assert init.calculate_gain(name, param) == pytest.approx(torch.nn.init.calculate_gain(name, param))


def test_a_sparse_matrix_has_its_share_of_zeros_in_every_column(device):
    x = init.sparse_(mg.empty(50, 20, device=device), 0.3, std=0.5).numpy()
    assert ((x == 0).sum(axis=0) == 15).all() and abs(x[x != 0].std() - 0.5) < 0.06


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: init.eye_(mg.empty(3)), ShapeError),
        (lambda: init.dirac_(mg.empty(3, 3)), ShapeError),
        (lambda: init.dirac_(mg.empty(3, 3, 3), groups=2), ShapeError),
        (lambda: init.orthogonal_(mg.empty(3)), ShapeError),
        (lambda: init.sparse_(mg.empty(3, 3), 1.5), ArgumentError),
        (lambda: init.trunc_normal_(mg.empty(3), a=2.0, b=1.0), ArgumentError),
        (lambda: init.calculate_gain("rleu"), ArgumentError),
        (lambda: init.trunc_normal_(mg.zeros(3, dtype="int64")), DtypeError),
    ],
)
def test_what_an_initialiser_cannot_do_is_refused(call, kind):
    with pytest.raises(kind):
        call()
