"""Ops that move, repeat, join or cut elements, against PyTorch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.torch_oracle import (
    Case,
    arrays,
    axes_of,
    axis_of,
    broadcastable,
    compare,
    compare_case,
    examples,
    numbers,
    seeds,
    shapes,
    torch,
)

import minigrad as mg

pytestmark = pytest.mark.torch
F = torch.nn.functional
some_axes = shapes(min_axes=1)


@st.composite
def drawn(draw: Any, shape: Any = None, **attrs: Any) -> Any:
    """An array, and attributes each drawn by a function of that array."""
    a = draw(arrays(shape))
    return [a], {name: draw(choose(a)) for name, choose in attrs.items()}


def any_axis(a: np.ndarray) -> Any:
    return axis_of(a.ndim)


@st.composite
def reshapes(draw: Any) -> Any:
    """The sizes in another order, neighbours joined, an axis of size 1 here and there, one size left to be found."""
    a = draw(arrays())
    sizes = list(draw(st.permutations(a.shape)))
    while len(sizes) > 1 and draw(st.booleans()):
        sizes = [sizes[0] * sizes[1], *sizes[2:]]
    sizes.insert(draw(st.integers(0, len(sizes))), 1)
    if a.size and draw(st.booleans()):
        sizes[draw(st.integers(0, len(sizes) - 1))] = -1
    return [a], {"shape": tuple(sizes)}


@st.composite
def flattened(draw: Any) -> Any:
    a = draw(arrays(some_axes))
    start = draw(st.integers(0, a.ndim - 1))
    end = draw(st.integers(start, a.ndim - 1))
    return [a], {
        "start_axis": start - draw(st.sampled_from([0, a.ndim])),
        "end_axis": end - draw(st.sampled_from([0, a.ndim])),
    }


@st.composite
def permuted(draw: Any) -> Any:
    a = draw(arrays())
    return [a], {"axes": tuple(i - a.ndim if draw(st.booleans()) else i for i in draw(st.permutations(range(a.ndim))))}


@st.composite
def moved(draw: Any) -> Any:
    a = draw(arrays(some_axes))
    count = draw(st.integers(1, a.ndim))
    source, destination = draw(st.permutations(range(a.ndim)))[:count], draw(st.permutations(range(-a.ndim, 0)))[:count]
    return [a], {
        "source": tuple(source) if count > 1 else source[0],
        "destination": tuple(destination) if count > 1 else destination[0],
    }


@st.composite
def squeezed(draw: Any) -> Any:
    a = draw(arrays(shapes(max_size=2)))
    ones = [i for i, n in enumerate(a.shape) if n == 1]
    axis = draw(st.lists(st.sampled_from(ones), unique=True)) if ones else []
    return [a], {
        "axis": None if not axis or draw(st.booleans()) else tuple(axis) if len(axis) > 1 else axis[0] - a.ndim
    }


@st.composite
def stretched(draw: Any) -> Any:
    whole, part = draw(broadcastable(2, whole_first=True))
    return [numbers(draw(seeds), part)], {"shape": whole}


@st.composite
def joined(draw: Any) -> Any:
    """One to three arrays that differ in size along one axis."""
    shape = draw(some_axes)
    axis = draw(axis_of(len(shape)))
    lengths = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    position = axis % len(shape)
    return [numbers(draw(seeds), (*shape[:position], n, *shape[position + 1 :])) for n in lengths], {"axis": axis}


@st.composite
def stacked(draw: Any) -> Any:
    shape = draw(shapes(max_axes=3))
    count = draw(st.integers(1, 3))
    return [numbers(draw(seeds), shape) for _ in range(count)], {"axis": draw(st.integers(-len(shape) - 1, len(shape)))}


@st.composite
def cut(draw: Any) -> Any:
    a = draw(arrays(some_axes))
    axis = draw(axis_of(a.ndim))
    size = a.shape[axis]
    places = draw(st.lists(st.integers(0, size), max_size=3).map(sorted))
    equal = draw(st.sampled_from([n for n in (1, 2, 3, 4) if size % n == 0]))
    return [a], {"axis": axis, "indices_or_sections": draw(st.sampled_from([places, equal]))}


@st.composite
def repeated(draw: Any) -> Any:
    a = draw(arrays(some_axes))
    axis = draw(axis_of(a.ndim))
    counts = draw(st.lists(st.integers(0, 3), min_size=a.shape[axis], max_size=a.shape[axis]))
    return [a], {"axis": axis, "repeats": counts if counts and draw(st.booleans()) else draw(st.integers(0, 3))}


@st.composite
def rolled(draw: Any) -> Any:
    a = draw(arrays(shapes(min_axes=1, min_size=1)))
    axis = draw(axes_of(a.ndim))
    shift = tuple(draw(st.integers(-5, 5)) for _ in axis) if isinstance(axis, tuple) else draw(st.integers(-5, 5))
    return [a], {"axis": axis, "shift": shift}


@st.composite
def padded(draw: Any, mode: str = "constant") -> Any:
    """Any widths for a constant frame; PyTorch has the other modes for the last one or two axes only, and no wider than the axis."""
    a = draw(arrays(shapes(min_axes=1) if mode == "constant" else shapes(min_axes=3, max_axes=4, min_size=3)))
    widest = 3 if mode == "constant" else 2
    free = 0 if mode == "constant" else 2
    widths = [
        (0, 0) if i < free else (draw(st.integers(0, widest)), draw(st.integers(0, widest))) for i in range(a.ndim)
    ]
    return [a], {
        "pad_width": widths,
        **({"constant_values": draw(st.sampled_from([0.0, 1.5]))} if mode == "constant" else {"mode": mode}),
    }


@st.composite
def grids(draw: Any) -> Any:
    count = draw(st.integers(1, 3))
    return [draw(arrays(shapes(min_axes=1, max_axes=1))) for _ in range(count)], {
        "indexing": draw(st.sampled_from(["xy", "ij"]))
    }


def planes(smallest: int = 2) -> Any:
    return shapes(min_axes=smallest)


@st.composite
def diagonals(draw: Any) -> Any:
    a = draw(arrays(planes()))
    axis1, axis2 = draw(st.permutations(range(a.ndim)))[:2]
    return [a], {"offset": draw(st.integers(-5, 5)), "axis1": axis1, "axis2": axis2 - a.ndim}


def torch_repeat(a: Any, axis: int, repeats: Any) -> Any:
    return torch.repeat_interleave(a, torch.tensor(repeats) if isinstance(repeats, list) else repeats, dim=axis)


def torch_flip(a: Any, axis: Any) -> Any:
    return torch.flip(a, tuple(range(a.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,))


def torch_unsqueeze(a: Any, axis: Any) -> Any:
    """Several new axes are counted in the result, so they are added from the front."""
    axes = (axis,) if isinstance(axis, int) else axis
    for i in sorted(i % (a.ndim + len(axes)) for i in axes):
        a = a.unsqueeze(i)
    return a


def torch_pad(a: Any, pad_width: Any, mode: str = "constant", constant_values: float = 0) -> Any:
    last_first = [n for pair in reversed(pad_width[0 if mode == "constant" else 2 :]) for n in pair]
    names = {"edge": "replicate", "wrap": "circular"}
    if mode == "constant":
        return F.pad(a, last_first, value=constant_values)
    return F.pad(a, last_first, mode=names.get(mode, mode))


def torch_split(a: Any, axis: int, indices_or_sections: Any) -> Any:
    return torch.tensor_split(a, indices_or_sections, dim=axis)


def torch_diagonal(a: Any, offset: int, axis1: int, axis2: int) -> Any:
    """PyTorch refuses an offset beyond the corner, where NumPy gives nothing."""
    if not -a.shape[axis1] <= offset <= a.shape[axis2]:
        return torch.diagonal(a, 0, axis1, axis2)[..., :0]
    return torch.diagonal(a, offset, axis1, axis2)


def of_list(name: str) -> Any:
    return lambda *tensors, **attrs: getattr(mg, name)(list(tensors), **attrs)


offsets = st.integers(-4, 4)
CASES = {
    "reshape": Case(torch.reshape, reshapes()),
    "ravel": Case(torch.ravel, drawn()),
    "flatten": Case(lambda a, start_axis, end_axis: torch.flatten(a, start_axis, end_axis), flattened()),
    "transpose": Case(lambda a, axes: a.permute(axes), permuted()),
    "transpose: reversed": Case(lambda a: a.permute(tuple(range(a.ndim))[::-1]), drawn()),
    "permute_dims": Case(lambda a, axes: torch.permute(a, axes), permuted()),
    "swapaxes": Case(
        lambda a, axis1, axis2: torch.swapaxes(a, axis1, axis2), drawn(some_axes, axis1=any_axis, axis2=any_axis)
    ),
    "moveaxis": Case(torch.moveaxis, moved()),
    "expand_dims": Case(
        torch_unsqueeze, drawn(axis=lambda a: st.integers(-a.ndim - 1, a.ndim) | st.just((0, -1)) | st.just((1, 0)))
    ),
    "squeeze": Case(lambda a, axis: a.squeeze() if axis is None else a.squeeze(axis), squeezed()),
    "broadcast_to": Case(lambda a, shape: torch.broadcast_to(a, shape), stretched()),
    "concatenate": Case(lambda *a, axis: torch.cat(a, dim=axis), joined(), ours=of_list("concatenate")),
    "stack": Case(lambda *a, axis: torch.stack(a, dim=axis), stacked(), ours=of_list("stack")),
    "split": Case(torch_split, cut()),
    "unstack": Case(lambda a, axis: torch.unbind(a, axis), drawn(shapes(min_axes=1, min_size=1), axis=any_axis)),
    "tile": Case(
        lambda a, reps: torch.tile(a, reps),
        drawn(reps=lambda a: st.lists(st.integers(0, 3), min_size=1, max_size=5).map(tuple)),
    ),
    "repeat": Case(torch_repeat, repeated()),
    "flip": Case(torch_flip, drawn(axis=lambda a: axes_of(a.ndim))),
    "roll": Case(lambda a, shift, axis: torch.roll(a, shift, axis), rolled()),
    "pad": Case(torch_pad, padded()),
    "pad: edge": Case(torch_pad, padded("edge")),
    "pad: reflect": Case(torch_pad, padded("reflect")),
    "pad: wrap": Case(torch_pad, padded("wrap")),
    "tril": Case(lambda a, k: torch.tril(a, k), drawn(planes(), k=lambda a: offsets)),
    "triu": Case(lambda a, k: torch.triu(a, k), drawn(planes(), k=lambda a: offsets)),
    "diag": Case(lambda a, k: torch.diag(a, k), drawn(shapes(min_axes=1, max_axes=1), k=lambda a: offsets)),
    "diag: of a matrix": Case(
        lambda a, k: torch_diagonal(a, k, 0, 1), drawn(shapes(min_axes=2, max_axes=2), k=lambda a: offsets)
    ),
    "diagonal": Case(torch_diagonal, diagonals()),
    "meshgrid": Case(lambda *a, indexing: torch.meshgrid(*a, indexing=indexing), grids()),
}


@pytest.mark.parametrize("label", CASES)
@examples
@given(data=st.data())
def test_values_and_derivatives_equal_pytorchs(label: str, data: st.DataObject) -> None:
    compare_case(label.partition(":")[0], CASES[label], data)


def test_concatenate_without_an_axis_joins_raveled_tensors() -> None:
    pieces = [numbers(1, (2, 3)), numbers(2, ()), numbers(3, (4,))]
    compare(lambda *a: mg.concatenate(list(a), axis=None), lambda *a: torch.cat([x.ravel() for x in a]), pieces, {}, 2)


@pytest.mark.parametrize("cuts", [[3, 1], [-1, 1, 9], [2, 2, 0]], ids=str)
def test_pieces_of_a_split_may_overlap(cuts: list[int]) -> None:
    attrs = {"axis": 1, "indices_or_sections": cuts}
    compare(mg.split, torch_split, [numbers(1, (2, 4))], attrs, 2)


def test_repeat_without_an_axis_repeats_the_raveled_tensor() -> None:
    compare(lambda a: mg.repeat(a, 2), lambda a: torch.repeat_interleave(a, 2), [numbers(1, (2, 3))], {}, 2)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
def test_every_mode_of_pad_has_numpys_values_and_sends_each_copy_of_an_element_back_to_it(mode: str) -> None:
    a = numbers(5, (3, 4))
    widths = ((1, 2), (3, 0))
    x = mg.tensor(a, requires_grad=True)
    padded_x = mg.pad(x, widths, mode=mode)
    np.testing.assert_array_equal(padded_x.numpy(), np.pad(a, widths, mode=mode))
    origin = np.pad(np.arange(a.size).reshape(a.shape) + 1, widths, mode=mode) - 1
    weights = numbers(6, padded_x.shape)
    padded_x.backward(weights)
    expected = [math.fsum(weights[origin == i]) for i in range(a.size)]
    np.testing.assert_allclose(x.grad.numpy().ravel(), expected, rtol=1e-12)
