"""The namespace of the array API standard: names and signatures, promotion, DLPack, and what differs from `mg`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.array_api_standard import ATTRIBUTES, CONSTANTS, DTYPES, FFT, FUNCTIONS, LINALG, METHODS, promotions

import minigrad as mg
from minigrad import array_api as xp
from minigrad.check import gradcheck
from minigrad.errors import ArgumentError, GradientError, MinigradError

SIGNATURES = [
    (module, name, signature)
    for module, table in ((xp, FUNCTIONS), (xp.linalg, LINALG), (xp.fft, FFT))
    for signature, names in table.items()
    for name in names.split()
]


def test_a_tensor_gives_the_namespace_of_the_versions_that_are_offered():
    x = mg.ones(2)
    assert x.__array_namespace__() is xp is x.__array_namespace__(api_version="2024.12")
    assert xp.__array_api_version__ == "2024.12"
    with pytest.raises(ArgumentError, match="2024.12"):
        x.__array_namespace__(api_version="2019.01")


@pytest.mark.parametrize(("module", "name", "signature"), SIGNATURES, ids=lambda v: v if isinstance(v, str) else "")
def test_a_function_has_the_parameters_of_the_standard(module: Any, name: str, signature: str) -> None:
    function = getattr(module, name)
    found = inspect.signature(function)
    bare = [p.replace(annotation=p.empty) for p in found.parameters.values()]
    assert str(found.replace(parameters=bare, return_annotation=found.empty)) == signature
    assert function.__doc__ and name in module.__all__


def test_the_namespace_has_the_constants_and_dtypes_and_a_tensor_the_attributes_of_the_standard():
    assert [name for name in f"{CONSTANTS} {DTYPES}".split() if not hasattr(xp, name)] == []
    assert [name for name in f"{ATTRIBUTES} {METHODS}".split() if not hasattr(mg.Tensor, name)] == []
    assert xp.newaxis is None and (xp.e, xp.pi) == (np.e, np.pi) and xp.inf == np.inf and xp.nan != xp.nan


@pytest.mark.parametrize(("left", "right", "result"), promotions())
def test_dtypes_are_promoted_as_the_standard_says(left: str, right: str, result: str) -> None:
    a, b = (xp.ones(2, dtype=getattr(xp, name)) for name in (left, right))
    assert xp.result_type(a, b) == xp.result_type(a.dtype, b.dtype) == result
    assert (a + b).dtype == xp.multiply(a, b).dtype == xp.where(a == b, a, b).dtype == xp.concat([a, b]).dtype == result


def test_a_python_number_follows_the_dtype_beside_it():
    small, single = xp.ones(2, dtype=xp.int8), xp.ones(2, dtype=xp.float32)
    assert (small + 1).dtype == xp.add(1, small).dtype == xp.result_type(small, 1) == xp.int8
    assert (single * 2.5).dtype == xp.maximum(single, 2).dtype == xp.where(single > 0, single, 0.5).dtype == xp.float32
    assert (single * 1j).dtype == xp.complex64


def test_python_numbers_get_the_default_dtypes_which_the_namespace_names():
    defaults = mg.__array_namespace_info__().default_dtypes()
    given = {"real floating": [1.5], "complex floating": 1j, "integral": 3}
    assert {kind: xp.asarray(value).dtype for kind, value in given.items()} == {k: defaults[k] for k in given}
    assert xp.full(2, 1j).dtype == xp.linspace(0, 1j, 3).dtype == xp.complex64 and xp.zeros(2).dtype == xp.float32


def test_the_namespace_tells_its_dtypes_devices_and_capabilities():
    info = xp.__array_namespace_info__()
    assert set(info.dtypes()) == set(DTYPES.split())
    assert set(info.dtypes(kind=("bool", "unsigned integer"))) == {"bool", "uint8", "uint16", "uint32", "uint64"}
    assert info.default_device() == "cpu" and "cpu" in info.devices()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
    with pytest.raises(ArgumentError, match="'real floating'|real floating"):
        info.dtypes(kind="floating")


def test_asarray_copies_only_where_it_must():
    array = np.zeros(2, np.float32)
    shared = xp.asarray(array)
    array[0] = 5
    assert shared.tolist() == [5, 0] and xp.asarray(shared) is shared
    apart = xp.asarray(shared, copy=True)
    apart[1] = 7
    assert shared.tolist() == [5, 0]
    for source, dtype in ((shared, xp.float64), ([1.0], None)):
        with pytest.raises(ValueError, match="needs a copy"):
            xp.asarray(source, dtype=dtype, copy=False)
    assert xp.asarray(memoryview(np.arange(3.0))).dtype == xp.float64
    with pytest.raises(MinigradError):
        xp.asarray(np.array(["text"]))


def test_reshape_and_astype_say_whether_they_copy():
    x = xp.reshape(xp.arange(6), (2, 3))
    assert xp.astype(x, x.dtype, copy=False) is x is not xp.astype(x, x.dtype)
    view, apart = xp.reshape(x, (6,), copy=False), xp.reshape(x, (6,), copy=True)
    view[0] = 9
    assert x[0, 0].item() == 9 and apart[0].item() == 0
    with pytest.raises(ValueError, match="needs a copy"):
        xp.reshape(x.T, (6,), copy=False)


def test_whole_numbers_are_summed_in_the_widest_dtype_of_their_kind_unless_one_is_given():
    assert xp.sum(xp.ones(3, dtype=xp.int8)).dtype == xp.int64
    assert xp.prod(xp.ones(3, dtype=xp.uint8)).dtype == xp.uint64
    assert xp.cumulative_sum(xp.ones(3, dtype=xp.int16)).dtype == xp.int64
    assert xp.cumulative_prod(xp.ones(3), dtype=xp.int8).dtype == mg.cumsum(mg.ones(3), dtype="int8").dtype == xp.int8
    assert xp.sum(xp.ones(3, dtype=xp.float32), dtype=xp.float64).dtype == xp.float64
    assert xp.sum(xp.full(2, 100, dtype=xp.int8), dtype=xp.int16).item() == 200
    assert xp.vecdot(xp.ones(3, dtype=xp.int8), xp.ones(3, dtype=xp.int8)).dtype == xp.int8


def test_functions_of_the_namespace_give_what_numpy_gives():
    x, y = np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 5.0]]), np.array([0.5, -2.0, 4.0])
    a, b = xp.asarray(x), xp.asarray(y)
    pairs: list[tuple[Any, Any]] = [
        (xp.var(a, axis=1, correction=1), np.var(x, axis=1, correction=1)),
        (xp.count_nonzero(a > 1, axis=0), np.count_nonzero(x > 1, axis=0)),
        (xp.copysign(a, b), np.copysign(x, y)),
        (xp.copysign(2.0, b), np.copysign(2.0, y)),
        (xp.nextafter(b, 0.0), np.nextafter(y, 0.0)),
        (xp.diff(a, n=2, prepend=a[:, :1]), np.diff(x, n=2, prepend=x[:, :1])),
        (xp.cumulative_prod(b, include_initial=True), np.cumulative_prod(y, include_initial=True)),
        (xp.searchsorted(b, a, sorter=xp.argsort(b)), np.searchsorted(y, x, sorter=np.argsort(y))),
        (xp.linalg.vector_norm(a, axis=(0, 1), ord=3, keepdims=True), np.linalg.vector_norm(x, ord=3, keepdims=True)),
        (xp.linalg.matrix_power(a[:, :2], -3), np.linalg.matrix_power(x[:, :2], -3)),
        (xp.linalg.pinv(a), np.linalg.pinv(x)),
        (xp.linalg.pinv(a, rtol=xp.asarray(0.5)), np.linalg.pinv(x, rtol=0.5)),
        (xp.linalg.matrix_rank(a), np.linalg.matrix_rank(x)),
        (xp.linalg.matrix_rank(xp.stack([a, a]), rtol=xp.asarray([0.0, 0.5])), [2, 1]),
        (xp.linalg.matrix_rank(xp.asarray([[1, 0], [0, 1e-9]], dtype=xp.complex64)), 1),
        (xp.linalg.cross(a, b), np.cross(x, y)),
        (xp.linalg.trace(a[:, :2], offset=1), np.trace(x[:, :2], offset=1)),
        (xp.fft.fftshift(a), np.fft.fftshift(x)),
        (xp.fft.irfft(xp.fft.rfft(b), n=3), y),
        (xp.vecdot(a * 1j, b), np.vecdot(x * 1j, y)),
        (xp.linalg.matrix_norm(a * 1j), np.linalg.norm(x)),
    ]
    for ours, numpys in pairs:
        np.testing.assert_allclose(ours.numpy(), numpys, rtol=1e-12)


def test_decompositions_and_distinct_elements_come_with_the_names_of_the_standard():
    x = xp.asarray([[2.0, 1.0], [1.0, 2.0]])
    assert xp.linalg.svd(x)._fields == ("U", "S", "Vh") and xp.linalg.qr(x)._fields == ("Q", "R")
    assert xp.linalg.eigh(x)._fields == ("eigenvalues", "eigenvectors")
    assert xp.linalg.slogdet(x)._fields == ("sign", "logabsdet")
    found = xp.unique_all(x)
    assert found._fields == ("values", "indices", "inverse_indices", "counts")
    assert (found.values.tolist(), found.counts.tolist()) == ([1, 2], [2, 2])
    assert found.inverse_indices.tolist() == [[1, 0], [0, 1]]
    assert xp.unique_values(xp.asarray([xp.nan, 1.0, xp.nan])).shape == (3,)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: xp.diff(x, axis=0, prepend=x[:1]),
        lambda x: xp.cumulative_prod(x, axis=1, include_initial=True),
        lambda x: xp.std(x, correction=1, axis=0),
        lambda x: xp.vecdot(x, x * x),
        lambda x: xp.linalg.matrix_power(x[:, :2], -2),
        lambda x: xp.linalg.vector_norm(x, axis=(0, 1), ord=3),
        lambda x: xp.linalg.cross(x[0], x[1]),
        lambda x: xp.copysign(x, -x * x),
        lambda x: xp.unique_values(x),
        lambda x: xp.clip(x, 0.0, xp.max(x) / 2),
        lambda x: xp.fft.ifftshift(x) * x,
        lambda x: xp.abs(xp.fft.rfft(x)) + xp.imag(xp.conj(xp.fft.rfft(x * x))) - xp.real(xp.fft.ihfft(x)),
        lambda x: xp.linalg.cholesky(x @ x.mT + xp.eye(2, dtype=x.dtype), upper=True),
        lambda x: xp.astype(xp.reshape(x, (3, 2), copy=True), xp.float64, copy=True) ** 2,
    ],
)
def test_derivatives_flow_through_the_functions_of_the_namespace(function: Callable[..., Any]) -> None:
    x = mg.tensor([[0.3, -1.2, 2.0], [1.7, 0.9, -0.4]], dtype="float64", requires_grad=True)
    gradcheck(function, x, order=2)


@pytest.mark.parametrize("function", [xp.exp, xp.max, xp.std, lambda x: xp.linalg.vector_norm(x, keepdims=True)])
def test_a_result_can_be_written_to_before_the_backward(function: Callable[..., Any]) -> None:
    def overwritten(x: Any) -> Any:
        y = function(x)
        y[...] = y + x[0, 0]
        return y

    gradcheck(overwritten, mg.tensor([[0.3, -1.2], [1.7, 0.9]], dtype="float64", requires_grad=True))


def test_complex_tensors_have_values_and_say_that_they_have_no_derivative():
    z = xp.asarray([3 + 4j])
    assert (xp.abs(z).item(), xp.real(z).item(), xp.imag(z).item(), xp.conj(z).item()) == (5, 3, 4, 3 - 4j)
    assert complex(z[0]) == 3 + 4j
    x = mg.ones(4, requires_grad=True)
    with pytest.raises(GradientError, match="no derivative"):
        x * 1j
    xp.fft.irfft(xp.fft.rfft(x) * 2).sum().backward()  # but real signals have one
    assert x.grad.tolist() == [2.0] * 4


def test_functions_without_a_derivative_compute_on_the_device(device: str) -> None:
    x = mg.tensor([[3.0, 1.0], [1.0, 2.0]], dtype="float64", device=device)
    vector = x.reshape(-1)
    made = [
        *xp.unique_all(x),
        xp.signbit(x),
        xp.nextafter(x, x + 1),
        xp.searchsorted(xp.sort(vector), vector, side="right"),
        *xp.linalg.eigh(x),
        xp.linalg.eigvalsh(x),
        xp.linalg.pinv(x),
        *xp.linalg.svd(x[:, :1]),
        *xp.linalg.qr(x[:, :1], mode="complete"),
        xp.fft.rfft(vector),
        xp.fft.fftn(x),
        xp.zeros_like(x),
        xp.empty_like(x),
        xp.conj(xp.fft.fft(x)),
    ]
    assert {y.device for y in made} == {device} == {x.to_device("cpu").to_device(device).device}


@pytest.mark.parametrize("dtype", DTYPES.split())
def test_dlpack_shares_memory_with_numpy_both_ways(dtype: str) -> None:
    theirs = np.ones(3, dtype)
    ours = xp.from_dlpack(theirs)
    theirs[0] = 0
    assert ours.dtype == dtype and not ours[0].item()
    back = np.from_dlpack(ours)
    assert np.shares_memory(back, theirs) and back.dtype == dtype
    assert not np.shares_memory(np.from_dlpack(ours, copy=True), theirs)
    assert ours.__dlpack_device__() == (1, 0)


@pytest.mark.torch
def test_dlpack_shares_memory_with_pytorch_both_ways():
    import torch

    theirs = torch.arange(6, dtype=torch.float64).reshape(2, 3).T
    ours = xp.from_dlpack(theirs)
    theirs[0, 0] = 7
    assert ours.tolist() == theirs.tolist()
    back = torch.from_dlpack(ours)
    ours[1, 1] = 9
    assert back[1, 1].item() == 9 == theirs[1, 1].item()
    assert xp.asarray(theirs).dtype == xp.float64


def test_from_dlpack_copies_when_asked_and_refuses_what_would_need_a_copy():
    source = np.ones(2)
    apart = xp.from_dlpack(source, copy=True)
    source[0] = 5
    assert apart.tolist() == [1, 1] and xp.from_dlpack(source, device="cpu", copy=False).tolist() == [5, 1]
    with pytest.raises(ArgumentError, match="another device needs a copy"):
        xp.from_dlpack(source, device="fake", copy=False)
    assert xp.from_dlpack(source, device="fake").device == "fake"
    with pytest.raises(GradientError, match="silently cut"):
        mg.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises(ArgumentError, match="streams"):
        mg.ones(2).to_device("cpu", stream=1)


def test_limits_are_python_numbers():
    single, signed = xp.finfo(xp.complex64), xp.iinfo(xp.ones(1, dtype=xp.int16))
    assert (single.bits, single.dtype, type(single.eps)) == (32, xp.float32, float)
    assert single.eps == 2.0**-23 and single.smallest_normal == 2.0**-126 and single.max == -single.min
    assert (signed.bits, signed.min, signed.max, signed.dtype) == (16, -(2**15), 2**15 - 1, xp.int16)
    assert xp.isdtype(xp.uint8, ("unsigned integer", "bool")) and not xp.isdtype(np.dtype("bool"), "numeric")
    assert xp.can_cast(xp.int8, xp.int16) and not xp.can_cast(xp.ones(1), xp.int64)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: xp.finfo(xp.int8), "finfo: int8 has no such limits"),
        (lambda: xp.iinfo(mg.ones(1)), "an integer dtype"),
        (lambda: xp.isdtype(xp.int8, "floating"), "unknown kind 'floating'"),
        (lambda: xp.result_type(), "at least one tensor or dtype"),
        (lambda: xp.broadcast_arrays(mg.ones(3), mg.ones(4)), "broadcast_arrays"),
        (lambda: xp.vecdot(mg.ones(3), mg.ones(4)), "vecdot: the axis has two sizes"),
        (lambda: xp.cumulative_sum(mg.ones(2, 2)), "which axis"),
    ],
)
def test_a_wrong_argument_is_answered_with_what_was_expected(call: Callable[[], Any], told: str) -> None:
    with pytest.raises(MinigradError, match=told):
        call()
