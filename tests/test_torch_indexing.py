"""Reading and writing some of the elements, against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import basic_indices, integer_array_indices
from support.torch_oracle import Case, arrays, axis_of, compare, compare_case, examples, numbers, seeds, shapes, torch

import minigrad as mg

pytestmark = pytest.mark.torch
F = torch.nn.functional
some_axes, filled = shapes(min_axes=1), shapes(min_axes=1, min_size=1)


def flat_positions(shape: tuple[int, ...], index: Any) -> Any:
    """Where NumPy's `a[index]` finds each element in the raveled array: PyTorch has no negative steps of its own."""
    return torch.from_numpy(np.array(np.arange(np.prod(shape, dtype=int)).reshape(shape)[index]))


@st.composite
def read_basic(draw: Any) -> Any:
    a = draw(arrays(some_axes))
    return [a], {"index": draw(basic_indices(a.shape, allow_newaxis=True, allow_ellipsis=True))}


@st.composite
def read_by_arrays(draw: Any) -> Any:
    """Integer arrays for some of the axes, slices for the others, and an axis read by one number between them."""
    a = draw(arrays(filled))
    count = draw(st.integers(1, a.ndim))
    index = list(
        draw(integer_array_indices(a.shape[:count], result_shape=st.just(draw(shapes(max_axes=2, max_size=3)))))
    )
    for axis in range(count):
        kind = draw(st.sampled_from(["array", "array", "slice", "one"]))
        if kind == "slice":
            index[axis] = slice(None, None, draw(st.sampled_from([1, 2, -1])))
        elif kind == "one":
            index[axis] = draw(st.integers(-a.shape[axis], a.shape[axis] - 1))
    return [a], {"index": tuple(index)}


@st.composite
def read_by_mask(draw: Any) -> Any:
    """A mask over the first axes, then perhaps a slice."""
    a = draw(arrays(some_axes))
    axes = draw(st.integers(1, a.ndim))
    mask = numbers(draw(seeds), a.shape[:axes]) > 0
    return [a], {"index": (mask, slice(None, None, 2)) if axes < a.ndim and draw(st.booleans()) else mask}


@st.composite
def written(draw: Any, read: Any) -> Any:
    """What is read, and a value for it, perhaps one that broadcasts. No place is named twice."""
    (a,), attrs = draw(read)
    target = np.arange(a.size).reshape(a.shape)[attrs["index"]]
    if np.unique(target).size != target.size:
        attrs = {"index": (Ellipsis,)}
        target = a
    shape = tuple(1 if draw(st.booleans()) and draw(st.booleans()) else n for n in np.shape(target))
    return [a, numbers(draw(seeds), shape[draw(st.integers(0, len(shape))) :])], attrs


@st.composite
def along_axis(draw: Any, valued: bool = False, distinct: bool = False) -> Any:
    """Indices along one axis with the tensor's own sizes elsewhere."""
    a = draw(arrays(filled))
    axis = draw(axis_of(a.ndim))
    rng = np.random.default_rng(draw(seeds))
    shape = list(a.shape)
    shape[axis] = draw(st.integers(0, a.shape[axis] if distinct else 5))
    if distinct:
        indices = np.take(np.argsort(rng.random(a.shape), axis=axis), np.arange(shape[axis]), axis=axis)
    else:
        indices = rng.integers(0, a.shape[axis], shape)
    values = [rng.uniform(-2, 2, shape)] if valued else []
    return [a, *values, indices], {"axis": axis}


@st.composite
def broadcast_along_axis(draw: Any) -> Any:
    """As NumPy's take_along_axis, indices of size 1 are broadcast on the other axes."""
    (a, indices), attrs = draw(along_axis())
    position = attrs["axis"] % a.ndim
    keep = tuple(slice(0, 1) if i != position and draw(st.booleans()) else slice(None) for i in range(a.ndim))
    return [a, indices[keep]], attrs


@st.composite
def taken(draw: Any) -> Any:
    a = draw(arrays(filled))
    axis = draw(st.none() | axis_of(a.ndim))
    size = a.size if axis is None else a.shape[axis]
    indices = np.random.default_rng(draw(seeds)).integers(-size, size, draw(shapes(max_axes=2)))
    return [a, indices], {"axis": axis}


@st.composite
def labels(draw: Any) -> Any:
    classes = np.random.default_rng(draw(seeds)).integers(0, 4, draw(shapes(max_axes=3, min_size=1)))
    return [classes], {"num_classes": draw(st.sampled_from([4, 6, -1]))}


def torch_read(a: Any, index: Any) -> Any:
    return a.ravel()[flat_positions(tuple(a.shape), index)]


def torch_write(a: Any, value: Any, index: Any) -> Any:
    places = flat_positions(tuple(a.shape), index)
    return a.ravel().index_put((places.ravel(),), value.expand(places.shape).ravel()).reshape(a.shape)


def write(a: Any, value: Any, index: Any) -> Any:
    result = a.clone()
    result[index] = value
    return result


def torch_take(a: Any, indices: Any, axis: int | None) -> Any:
    size = a.numel() if axis is None else a.shape[axis]
    flat = (indices % size).ravel()
    if axis is None:
        return a.ravel()[flat].reshape(indices.shape)
    axis %= a.ndim
    return a.index_select(axis, flat).reshape((*a.shape[:axis], *indices.shape, *a.shape[axis + 1 :]))


def take_along_axis(a: Any, indices: Any, axis: int) -> Any:
    return mg.take_along_axis(a, indices, axis=axis)


CASES = {
    "getitem: basic": Case(torch_read, read_basic(), ours=lambda a, index: a[index]),
    "getitem: integer arrays": Case(torch_read, read_by_arrays(), ours=lambda a, index: a[index]),
    "getitem: mask": Case(torch_read, read_by_mask(), ours=lambda a, index: a[index]),
    "setitem: basic": Case(torch_write, written(read_basic()), ours=write),
    "setitem: integer arrays": Case(torch_write, written(read_by_arrays()), ours=write),
    "setitem: mask": Case(torch_write, written(read_by_mask()), ours=write),
    "take": Case(torch_take, taken(), ours=lambda a, indices, axis: mg.take(a, indices, axis=axis)),
    "take_along_axis": Case(
        lambda a, indices, axis: torch.gather(a, axis, indices), along_axis(), ours=take_along_axis
    ),
    "take_along_axis: broadcast": Case(
        lambda a, indices, axis: torch.take_along_dim(a, indices, axis), broadcast_along_axis(), ours=take_along_axis
    ),
    "put_along_axis": Case(
        lambda a, values, indices, axis: torch.scatter(a, axis, indices, values),
        along_axis(valued=True, distinct=True),
        ours=lambda a, values, indices, axis: mg.put_along_axis(a, indices, values, axis),
    ),
    "scatter_add": Case(
        lambda a, values, indices, axis: torch.scatter_add(a, axis, indices, values),
        along_axis(valued=True),
        ours=lambda a, values, indices, axis: mg.scatter_add(a, indices, values, axis),
    ),
    "nonzero": Case(
        lambda a: torch.nonzero(a, as_tuple=True),
        arrays(some_axes, special=(0.0, 0.0)).map(lambda a: ([a], {})),
        orders=0,
    ),
    "one_hot": Case(F.one_hot, labels(), orders=0),
}


@pytest.mark.parametrize("label", CASES)
@examples
@given(data=st.data())
def test_values_and_derivatives_equal_pytorchs(label: str, data: st.DataObject) -> None:
    compare_case(label.partition(":")[0], CASES[label], data)


HAND_PICKED = {
    "one number": 1,
    "negative": -1,
    "empty tuple": (),
    "ellipsis": (..., 0),
    "new axes": (None, slice(1, 3), None, 2),
    "steps": (slice(None, None, 2), slice(1, None, 3)),
    "repeated rows": ([0, 0, 2, 0],),
    "list": [2, 0],
    "two arrays": ([0, 2], [1, 1]),
    "broadcast arrays": (np.array([[0], [2]]), np.array([1, 3])),
    "arrays apart": ([0, 1, 1], slice(None), [1, 0, 1]),
    "array after slice": (slice(None), [3, 1, 1]),
    "mask": np.arange(12).reshape(3, 4) % 5 < 2,
    "mask of rows": np.array([True, False, True]),
    "mask and number": (np.array([True, False, True]), 1),
    "nothing": (slice(3, 3),),
    "empty list": [],
}


@pytest.mark.parametrize("index", HAND_PICKED.values(), ids=HAND_PICKED.keys())
def test_every_kind_of_index_reads_as_pytorchs_own(index: Any) -> None:
    def theirs(part: Any) -> Any:
        return (
            torch.from_numpy(part)
            if isinstance(part, np.ndarray)
            else torch.tensor(part, dtype=torch.long)
            if isinstance(part, list)
            else part
        )

    converted = tuple(theirs(part) for part in index) if isinstance(index, tuple) else theirs(index)
    compare(lambda a: a[index] * a[index], lambda a: a[converted] * a[converted], [numbers(7, (3, 4, 2))], {}, 2)


def test_an_index_given_as_tensor_reads_as_an_array_does() -> None:
    rows = np.array([2, 0, 2])
    compare(lambda a: a[mg.tensor(rows)], lambda a: a[torch.tensor(rows)], [numbers(8, (3, 2))], {}, 2)
    compare(lambda a: a[a > 0], lambda a: a[a > 0], [numbers(9, (3, 2))], {}, 2)


@pytest.mark.parametrize(
    "write_twice",
    [
        lambda a, v: write(a, v, [1, 1, 0]),
        lambda a, v: mg.put_along_axis(a, np.array([1, 1, 0]), v, 0),
    ],
    ids=["setitem", "put_along_axis"],
)
def test_where_a_place_is_written_twice_only_the_last_value_gets_a_gradient_unlike_in_pytorch(write_twice: Any) -> None:
    a, v = mg.tensor([1.0, 2.0, 3.0], requires_grad=True), mg.tensor([10.0, 20.0, 30.0], requires_grad=True)
    out = write_twice(a, v)
    assert out.tolist() == [30.0, 20.0, 3.0]
    out.backward(mg.tensor([1.0, 2.0, 4.0]))
    assert v.grad.tolist() == [0.0, 2.0, 1.0] and a.grad.tolist() == [0.0, 0.0, 4.0]


@pytest.mark.parametrize("axis", [None, 0])
def test_take_reads_booleans_as_the_numbers_0_and_1_as_numpy_does(axis: int | None) -> None:
    a, flags = np.array([5.0, 6.0, 7.0]), [True, False, True]
    np.testing.assert_array_equal(mg.take(a, flags, axis=axis).numpy(), np.take(a, flags, axis=axis))
