"""Enlarging, warping, framing and rearranging images: PyTorch's numbers for every mode, and refusals that name the mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.functional_oracle import assert_as_torch, normal

import minigrad as mg
from minigrad.errors import ArgumentError, ShapeError

F = mg.nn.functional
SHAPES = {1: (2, 3, 5), 2: (2, 2, 4, 5), 3: (1, 2, 3, 4, 2)}
LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}


@pytest.mark.torch
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "area", "linear"])
@pytest.mark.parametrize("options", [{"size": 7}, {"size": 2}, {"scale_factor": 2}, {"scale_factor": 1.7}], ids=str)
def test_interpolation_agrees_with_pytorch(axes: int, mode: str, options: dict[str, Any]):
    name = LINEAR[axes] if mode == "linear" else mode
    assert_as_torch("interpolate", normal(*SHAPES[axes]), mode=name, orders=1, **options)
    if mode == "linear":
        assert_as_torch("interpolate", normal(*SHAPES[axes]), mode=name, align_corners=True, **options)


@pytest.mark.torch
@pytest.mark.parametrize(
    "options",
    [
        {"size": (7, 3)},
        {"size": (1, 9), "align_corners": True},
        {"scale_factor": (0.6, 2.3)},
        {"scale_factor": (0.6, 2.3), "recompute_scale_factor": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_interpolation_of_images_agrees_with_pytorch(mode: str, options: dict[str, Any]):
    assert_as_torch("interpolate", normal(*SHAPES[2]), mode=mode, **options)


@pytest.mark.torch
def test_the_nearest_element_is_pytorchs_for_many_pairs_of_sizes():
    import torch

    for size in (1, 2, 6, 14, 26, 39):
        line = np.arange(size, dtype="float64")[None, None]
        for out in range(1, 40):
            for mode in ("nearest", "nearest-exact"):
                theirs = torch.nn.functional.interpolate(torch.tensor(line), out, mode=mode)
                np.testing.assert_array_equal(F.interpolate(line, out, mode=mode).numpy(), theirs.numpy())


@pytest.mark.torch
@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_sampling_by_a_grid_agrees_with_pytorch(mode: str, padding_mode: str, align_corners: bool):
    grid = 1.7 * normal(2, 3, 5, 2, seed=1)
    options = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    arrays, constants = ((), {"grid": grid}) if mode == "nearest" else ((grid,), {})
    assert_as_torch(
        "grid_sample", normal(2, 3, 4, 6), *arrays, orders=1, constants=list(constants), **constants, **options
    )


@pytest.mark.torch
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
def test_sampling_of_volumes_agrees_with_pytorch(padding_mode: str):
    grid = 1.2 * normal(2, 2, 3, 1, 3, seed=1)
    assert_as_torch(
        "grid_sample", normal(2, 2, 3, 4, 2), grid, orders=1, padding_mode=padding_mode, align_corners=False
    )


@pytest.mark.torch
def test_sampling_exactly_at_the_edge_has_pytorchs_gradient():
    grid = np.array([[[[-1.0, -1.0], [1.0, 0.3], [0.2, -3.0]]]])
    for padding_mode in ("border", "reflection"):
        options = {"padding_mode": padding_mode, "align_corners": True}
        assert_as_torch("grid_sample", normal(1, 2, 3, 4), grid, orders=1, **options)


def test_a_position_of_nan_gives_nan_and_harms_no_other():
    grid = np.array([[[[np.nan, 0.0], [0.0, 0.0]]]])
    assert np.isnan(F.grid_sample(np.ones((1, 1, 3, 3)), grid, align_corners=True).numpy()).tolist() == [
        [[[True, False]]]
    ]


@pytest.mark.torch
@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.parametrize("size", [(2, 1, 3, 4), (2, 1, 1, 5), (2, 3, 2, 3, 1)], ids=str)
def test_an_affine_grid_agrees_with_pytorch(size: tuple[int, ...], align_corners: bool):
    axes = len(size) - 2
    assert_as_torch("affine_grid", normal(2, axes, axes + 1), size=size, align_corners=align_corners)


def test_the_grid_of_the_identity_reads_the_image_itself(device: str):
    image = mg.tensor(normal(2, 3, 4, 5), device=device)
    unit = mg.tensor(np.tile(np.eye(2, 3), (2, 1, 1)), device=device)
    for align in (True, False):
        read = F.grid_sample(image, F.affine_grid(unit, (2, 3, 4, 5), align), align_corners=align)
        np.testing.assert_allclose(read.numpy(), image.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.torch
@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@pytest.mark.parametrize(
    ("shape", "widths"),
    [((2, 3, 5), (2, 1)), ((2, 3, 5), (-1, 3)), ((2, 2, 4, 5), (1, 2, 3, 0)), ((1, 2, 3, 4, 2), (1, 0, 2, 1, 0, 2))],
    ids=str,
)
def test_padding_agrees_with_pytorch(mode: str, shape: tuple[int, ...], widths: tuple[int, ...]):
    value = {"value": 1.5} if mode == "constant" else {}
    assert_as_torch("pad", normal(*shape), pad=widths, mode=mode, **value)


@pytest.mark.torch
def test_shuffling_of_pixels_and_channels_agrees_with_pytorch():
    assert_as_torch("pixel_shuffle", normal(2, 8, 3, 4), upscale_factor=2)
    assert_as_torch("pixel_shuffle", normal(9, 2, 1), upscale_factor=3)
    assert_as_torch("pixel_unshuffle", normal(2, 2, 4, 6), downscale_factor=2)
    assert_as_torch("channel_shuffle", normal(2, 6, 2, 3), orders=1, groups=3)


def test_images_compile_to_the_same_numbers():
    def loss(x, theta):
        larger = F.interpolate(x, size=(7, 8), mode="bicubic")
        warped = F.grid_sample(larger, F.affine_grid(theta, (2, 3, 4, 5), False), align_corners=False)
        return (F.pad(warped, (1, 1, 2, 0), mode="reflect") ** 2).sum()

    inputs = mg.tensor(normal(2, 3, 4, 5)), mg.tensor(0.5 * normal(2, 2, 3))
    gradient = mg.grad(loss, argnums=(0, 1))
    for compiled, plain in zip(mg.compile(gradient)(*inputs), gradient(*inputs)):
        np.testing.assert_allclose(compiled.numpy(), plain.numpy(), rtol=1e-10, atol=1e-12)


IMAGE = mg.zeros(1, 2, 4, 4)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: F.interpolate(IMAGE), ArgumentError, "either size or scale_factor"),
        (lambda: F.interpolate(IMAGE, 2, 2.0), ArgumentError, "either size or scale_factor"),
        (lambda: F.interpolate(IMAGE[0, 0], 2), ShapeError, r"axes(?s:.*)\(4, 4\)"),
        (lambda: F.interpolate(IMAGE, 2, mode="bilinar"), ArgumentError, "did you mean 'bilinear'"),
        (lambda: F.interpolate(IMAGE, 2, mode="linear"), ArgumentError, "'bilinear' or 'bicubic'"),
        (lambda: F.interpolate(IMAGE, 2, align_corners=True), ArgumentError, "align_corners"),
        (lambda: F.interpolate(IMAGE, 2, mode="bicubic", antialias=True), ArgumentError, "antialias is not offered"),
        (lambda: F.interpolate(IMAGE, scale_factor=(1, 2, 3)), ArgumentError, "scale_factor"),
        (lambda: F.interpolate(IMAGE, scale_factor=0.1), ArgumentError, "new size"),
        (lambda: F.grid_sample(IMAGE, mg.zeros(1, 2, 2, 3)), ShapeError, "input and grid"),
        (lambda: F.grid_sample(IMAGE, mg.zeros(1, 2, 2, 2), "cubic"), ArgumentError, "did you mean 'bicubic'"),
        (lambda: F.affine_grid(mg.zeros(1, 3, 3), (1, 2, 3, 4)), ShapeError, r"\(1, 3, 3\)"),
        (lambda: F.pad(IMAGE, (4, 0), "reflect"), ShapeError, r"at most 3 on axis 3(?s:.*)\(4, 0\)"),
        (lambda: F.pad(IMAGE, (0, 5), "circular"), ShapeError, "at most 4"),
        (lambda: F.pad(IMAGE, (1, 2, 3)), ArgumentError, "pairs"),
        (lambda: F.pad(IMAGE, (-3, -2)), ShapeError, "cut off"),
        (lambda: F.pad(IMAGE, (1, 1), "reflect", 2.0), ArgumentError, "value"),
        (lambda: F.pad(IMAGE, (1, 1), "edge"), ArgumentError, "constant, reflect, replicate, circular"),
        (lambda: F.pixel_shuffle(IMAGE, 2), ShapeError, "multiple of 4"),
        (lambda: F.pixel_unshuffle(IMAGE, 3), ShapeError, "multiples of 3"),
        (lambda: F.channel_shuffle(IMAGE, 3), ArgumentError, "groups=3"),
    ],
)
def test_bad_arguments_are_refused_by_name(call: Any, error: type[Exception], words: str):
    with pytest.raises(error, match=words):
        call()
