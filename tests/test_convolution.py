"""Convolution: PyTorch's numbers for every stride, padding, dilation and grouping, and refusals that name the shapes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.functional_oracle import assert_as_torch, normal

import minigrad as mg
from minigrad.errors import ArgumentError, ShapeError
from minigrad.ops.layout.windows import _fold, _unfold

pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
F = mg.nn.functional


@pytest.mark.torch
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2},
        {"padding": 2},
        {"dilation": 2},
        {"stride": (3,), "padding": (1,), "dilation": 2},
        {"padding": "same"},
        {"padding": "same", "dilation": 3},
        {"padding": "valid", "stride": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("kernel", [1, 2, 3])
def test_conv1d_agrees_with_pytorch(kernel, groups, options):
    assert_as_torch(
        "conv1d", normal(2, 4, 9), normal(8, 4 // groups, kernel, seed=1), normal(8, seed=2), groups=groups, **options
    )


@pytest.mark.torch
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2},
        {"stride": (2, 1), "padding": (0, 2)},
        {"dilation": (1, 2)},
        {"stride": 3, "padding": 1, "dilation": 2},
        {"padding": "same"},
        {"padding": "same", "dilation": (2, 3)},
        {"padding": "valid"},
    ],
    ids=str,
)
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("kernel", [(1, 1), (3, 3), (2, 3)], ids=str)
def test_conv2d_agrees_with_pytorch(kernel, groups, options):
    assert_as_torch(
        "conv2d",
        normal(2, 4, 6, 7),
        normal(6, 4 // groups, *kernel, seed=1),
        normal(6, seed=2),
        groups=groups,
        **options,
    )


@pytest.mark.torch
def test_an_image_without_a_batch_agrees_with_pytorch():
    assert_as_torch("conv1d", normal(3, 6), normal(2, 3, 2, seed=1))
    assert_as_torch("conv2d", normal(3, 5, 6), normal(2, 3, 2, 3, seed=1), normal(2, seed=2), padding=1)


@pytest.mark.torch
@pytest.mark.parametrize(
    "options", [{}, {"stride": 2, "padding": 1}, {"dilation": (1, 2, 1), "groups": 2, "padding": "same"}], ids=str
)
def test_conv3d_agrees_with_pytorch(options):
    groups = options.get("groups", 1)
    weight = normal(2, 2 // groups, 2, 3, 1, seed=1)
    assert_as_torch("conv3d", normal(2, 2, 4, 5, 3), weight, normal(2, seed=2), **options)


@pytest.mark.torch
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2},
        {"stride": 3, "padding": 1, "output_padding": 2},
        {"dilation": 2, "padding": (2, 1, 0)},
        {"stride": 2, "dilation": 3, "output_padding": 2, "groups": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_transposed_convolutions_agree_with_pytorch(axes, options):
    options = {key: value[:axes] if isinstance(value, tuple) else value for key, value in options.items()}
    groups = options.get("groups", 1)
    weight = normal(4, 6 // groups, *(3, 2, 1)[:axes], seed=1)
    name = f"conv_transpose{axes}d"
    assert_as_torch(name, normal(2, 4, *(4, 3, 2)[:axes]), weight, normal(6, seed=2), **options)
    assert_as_torch(name, normal(4, *(4, 3, 2)[:axes]), weight, **options)


@pytest.mark.torch
@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 2},
        {"kernel_size": (2, 3), "stride": (2, 1), "padding": (0, 1)},
        {"kernel_size": 2, "dilation": (2, 3), "padding": 1},
    ],
    ids=str,
)
def test_windows_as_columns_and_back_agree_with_pytorch(options):
    assert_as_torch("unfold", normal(2, 3, 5, 6), **options)
    assert_as_torch("unfold", normal(3, 5, 6), **options)
    columns = F.unfold(mg.zeros(2, 3, 5, 6), **options).shape
    assert_as_torch("fold", normal(*columns), output_size=(5, 6), **options)


def test_the_gradient_of_a_convolution_is_the_transposed_convolution():
    x, weight = mg.tensor(normal(2, 4, 9), requires_grad=True), mg.tensor(normal(6, 2, 3, seed=1))
    options = {"stride": 2, "padding": 1, "groups": 2}
    out = F.conv1d(x, weight, **options)
    g = mg.tensor(normal(*out.shape, seed=2))
    out.backward(g)
    np.testing.assert_allclose(x.grad.numpy(), F.conv_transpose1d(g, weight, **options).numpy(), rtol=1e-12)


@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "dilation"),
    [
        ((2, 9), (3,), (2,), (1,)),
        ((2, 3, 7, 8), (2, 3), (1, 2), (2, 1)),
        ((2, 5, 5), (5, 5), (1, 1), (1, 1)),
    ],
    ids=str,
)
def test_fold_is_the_adjoint_of_unfold(shape, kernel, stride, dilation):
    x = normal(*shape)
    windows = _unfold(x, kernel=kernel, stride=stride, dilation=dilation)
    weights = normal(*windows.shape, seed=1)
    back = _fold(weights, sizes=shape[-len(kernel) :], stride=stride, dilation=dilation)
    assert math.isclose((windows * weights).sum(), (x * back).sum(), rel_tol=1e-12)


def test_the_windows_are_those_of_sliding_window_view():
    x = normal(3, 2, 7, 8)
    expected = np.lib.stride_tricks.sliding_window_view(x, (2, 3), axis=(2, 3))[:, :, ::2]  # (A, B, out, out, k, k)
    np.testing.assert_array_equal(
        _unfold(x, kernel=(2, 3), stride=(2, 1), dilation=(1, 1)), expected.transpose(0, 4, 5, 1, 2, 3)
    )


def test_a_write_into_the_input_after_a_convolution_is_noticed_or_harmless():
    x = mg.tensor(normal(1, 1, 3, 3))
    weight = mg.tensor(normal(1, 1, 1, 1, seed=1), requires_grad=True)
    before = x.numpy().sum()
    out = F.conv2d(x, weight).sum()
    x[...] = 0
    out.backward()
    assert math.isclose(weight.grad.item(), before, rel_tol=1e-12)


def test_convolution_on_a_device_stays_there_in_float32(device):
    x = mg.tensor(normal(2, 3, 5, 5), dtype="float32", device=device, requires_grad=True)
    weight = mg.tensor(normal(4, 3, 3, 3), dtype="float32", device=device, requires_grad=True)
    for y in (
        F.conv2d(x, weight, padding="same"),
        F.max_pool2d(x, 3, 2, 1),
        F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    ):
        y.sum().backward()
        assert (y.device, y.dtype, x.grad.device, x.grad.dtype) == (device, np.float32, device, np.float32)


@pytest.mark.parametrize(
    ("x", "weight", "options", "expected"),
    [
        ((2, 3, 8), (4, 5, 3), {}, r"5 channels(?s:.*)3 in input \(2, 3, 8\)"),
        ((2, 4, 8), (4, 4, 3), {"groups": 2}, r"8 channels(?s:.*)4 in input"),
        ((2, 3, 8, 8), (4, 3, 3), {}, r"\(batch, channels, length\)(?s:.*)\(2, 3, 8, 8\)"),
        ((2, 3, 8), (4, 3), {}, r"weight(?s:.*)\(4, 3\)"),
        ((2, 3, 2), (4, 3, 3), {}, r"kernel is larger(?s:.*)\(3,\)(?s:.*)\(2,\)"),
        ((2, 3, 4), (4, 3, 3), {"dilation": 2}, r"kernel is larger(?s:.*)\(5,\)"),
    ],
)
def test_shapes_that_do_not_fit_are_named(x, weight, options, expected):
    with pytest.raises(ShapeError, match="conv1d(?s:.*)" + expected):
        F.conv1d(mg.zeros(*x), mg.zeros(*weight), **options)


def test_a_bias_that_does_not_fit_is_refused():
    with pytest.raises(ShapeError, match=r"bias(?s:.*)\(4,\)(?s:.*)\(3,\)"):
        F.conv2d(mg.zeros(1, 3, 5, 5), mg.zeros(4, 3, 3, 3), mg.zeros(3))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"padding": "sane"}, "did you mean 'same'"),
        ({"padding": "same", "stride": 2}, "needs stride 1"),
        ({"groups": 2}, "groups=2"),
        ({"groups": 0}, "groups=0"),
        ({"stride": 0}, "stride"),
        ({"stride": (1, 1, 1)}, "stride"),
        ({"padding": -1}, "padding"),
        ({"dilation": 1.5}, "dilation"),
    ],
)
def test_bad_options_are_refused_by_name(options, expected):
    with pytest.raises(ArgumentError, match="conv2d(?s:.*)" + expected):
        F.conv2d(mg.zeros(1, 3, 5, 5), mg.zeros(4, 3, 3, 3), **options)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x, w: F.conv_transpose1d(x, w, output_padding=1), ArgumentError, "output_padding is too large"),
        (lambda x, w: F.conv_transpose1d(x, w, padding=4), ShapeError, "leaves nothing"),
        (lambda x, w: F.conv_transpose1d(x[:, :2], w), ShapeError, r"3 channels(?s:.*)2 in input"),
        (lambda x, w: F.conv_transpose1d(x, w, mg.zeros(3)), ShapeError, r"bias(?s:.*)\(4,\)(?s:.*)\(3,\)"),
        (lambda x, w: F.conv_transpose1d(x, w, padding="same"), ArgumentError, "padding"),
        (lambda x, w: F.unfold(x[0, 0], 2), ShapeError, "number of axes"),
        (lambda x, w: F.fold(x, 3, 2), ShapeError, r"\(batch, channels \* 4, 4\)(?s:.*)\(2, 3, 5\)"),
    ],
)
def test_transposed_convolutions_and_windows_refuse_what_does_not_fit(call, error, words):
    with pytest.raises(error, match=words):
        call(mg.zeros(2, 3, 5), mg.zeros(3, 4, 3))


@pytest.mark.torch
def test_a_transposed_convolution_gives_the_size_that_is_asked_for():
    import torch

    ours, theirs = mg.nn.ConvTranspose2d(1, 1, 3, stride=2, padding=1), torch.nn.ConvTranspose2d(1, 1, 3, 2, 1)
    for size in ((5, 6), (2, 1, 6, 5)):
        assert ours(mg.ones(2, 1, 3, 3), output_size=size).shape == theirs(torch.ones(2, 1, 3, 3), size).shape
    with pytest.raises(ArgumentError, match=r"ConvTranspose2d: output_size(?s:.*)\[5, 5\] to \[6, 6\]"):
        ours(mg.ones(2, 1, 3, 3), output_size=(5, 7))
