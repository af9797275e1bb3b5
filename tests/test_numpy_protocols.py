"""Tensors among NumPy arrays and numbers: operators from either side, ufuncs, NumPy functions, dtype promotion, aliasing."""

from __future__ import annotations

import itertools
import json
import operator
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import GradientError, MinigradError

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # some operands divide by zero, as NumPy's do
A = np.array([[2.0, 1.0], [0.5, 3.0]])
B = np.array([[1.5, 0.25], [4.0, 2.0]])
V = np.array([1.0, 2.0])
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow]
DIFFERENTIABLE = [operator.add, operator.sub, operator.mul, operator.truediv, operator.mod, operator.pow]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
OTHERS = {
    "int": 2,
    "float": 0.5,
    "bool": True,
    "np.float64": np.float64(1.5),
    "np.float32": np.float32(0.5),
    "np.int64": np.int64(3),
    "np.bool": np.bool_(True),
    "0-d array": np.array(2.0),
    "float64 array": B,
    "float32 array": B.astype(np.float32),
    "int array": np.array([[1, 2], [3, 4]]),
    "bool array": B > 1,
    "row": V,
    "list": [[1.0, 2.0], [3.0, 4.0]],
}
DTYPES = ["float16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool"]


def leaf(array: Any, dtype: Any = None) -> mg.Tensor:
    return mg.tensor(np.asarray(array, dtype), requires_grad=True)


def name_of(value: Any) -> str:
    return getattr(value, "__name__", str(value))


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("compute", ARITHMETIC + COMPARISONS, ids=name_of)
def test_operators_take_numbers_and_arrays_on_either_side_with_numpys_value_and_dtype(
    compute: Any, side: str, other: Any
) -> None:
    t = mg.tensor(A.astype(np.float32))
    mine = compute(t, other) if side == "right" else compute(other, t)
    number = other.item() if isinstance(other, np.generic) else other  # without a dtype of its own, as in PyTorch
    expected = compute(t.numpy(), number) if side == "right" else compute(number, t.numpy())
    assert isinstance(mine, mg.Tensor)
    assert mine.dtype == expected.dtype
    np.testing.assert_array_equal(mine.numpy(), expected)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_numpy_scalar_does_not_widen_a_tensor(dtype: str) -> None:
    x = mg.ones(3, dtype=dtype, requires_grad=True)
    for scalar in (np.sqrt(4), np.float64(2), np.float32(2), np.int64(2)):
        made = [
            x / scalar,
            scalar / x,
            x**scalar,
            mg.maximum(x, scalar),
            mg.where(x > 0, x, scalar),
            mg.clip(x, 0, scalar),
        ]
        assert {y.dtype for y in made} == {np.dtype(dtype)}
    assert (mg.compile(lambda x: x / np.sqrt(4) + np.float64(1))(x)).dtype == dtype
    x = mg.ones(3, dtype=dtype)
    x /= np.sqrt(4)
    assert x.dtype == dtype and x.tolist() == [0.5] * 3
    assert (x * np.array(2.0)).dtype == np.float64  # an array has a dtype, also without axes


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("compute", DIFFERENTIABLE, ids=name_of)
def test_gradients_flow_past_numbers_and_arrays_as_past_a_tensor(compute: Any, side: str, other: Any) -> None:
    beside_other, beside_tensor = leaf(A), leaf(A)
    constant = mg.tensor(np.asarray(other, np.float64))
    if side == "right":
        compute(beside_other, other).sum().backward()
        compute(beside_tensor, constant).sum().backward()
    else:
        compute(other, beside_other).sum().backward()
        compute(constant, beside_tensor).sum().backward()
    assert beside_other.grad.dtype == np.float64
    np.testing.assert_allclose(beside_other.grad.numpy(), beside_tensor.grad.numpy(), rtol=1e-14)


@pytest.mark.parametrize("side", ["left", "right"])
def test_matmul_takes_arrays_on_either_side(side: str) -> None:
    t = leaf(A)
    product = t @ B if side == "right" else B @ t
    assert isinstance(product, mg.Tensor)
    product.sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), np.ones((2, 2)) @ B.T if side == "right" else B.T @ np.ones((2, 2)))


@pytest.mark.parametrize("compute", [operator.and_, operator.or_, operator.xor], ids=name_of)
def test_logical_operators_take_arrays_on_either_side(compute: Any) -> None:
    t, other = mg.tensor(A > 1), B > 1
    for mine in (compute(t, other), compute(other, t)):
        assert isinstance(mine, mg.Tensor)
        np.testing.assert_array_equal(mine.numpy(), compute(A > 1, other))


WHOLE = {"bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "invert", "lcm", "left_shift", "right_shift"}
UFUNCS = sorted({f.__name__ for f in vars(np).values() if isinstance(f, np.ufunc) and f.nout == 1} & set(dir(mg)))
UFUNCS.remove("ldexp")  # whose operands are of two kinds


def test_the_ufuncs_that_minigrad_has_are_many() -> None:
    assert len(UFUNCS) > 45 and {"exp", "add", "matmul", "maximum", "less", "logical_not"} <= set(UFUNCS)


@pytest.mark.parametrize("name", UFUNCS)
def test_a_ufunc_on_a_tensor_is_the_minigrad_function_of_that_name(name: str) -> None:
    ufunc = getattr(np, name)
    whole = name in WHOLE
    low, high = ((A > 1).astype(int), (B > 1).astype(int)) if whole else (A / 4, B / 4)
    first = low + 1.25 if name == "arccosh" else low
    tensors = [mg.tensor(first) if whole else leaf(first)]
    mine = ufunc(*tensors) if ufunc.nin == 1 else ufunc(tensors[0], high)
    assert isinstance(mine, mg.Tensor)
    np.testing.assert_allclose(mine.numpy(), ufunc(first) if ufunc.nin == 1 else ufunc(first, high), rtol=1e-14)
    if ufunc.nin == 2:
        reflected = ufunc(high, tensors[0])
        assert isinstance(reflected, mg.Tensor)
        np.testing.assert_allclose(reflected.numpy(), ufunc(high, first), rtol=1e-14)
    if mine.requires_grad:
        direct = leaf(first)
        (getattr(mg, name)(direct) if ufunc.nin == 1 else getattr(mg, name)(direct, high)).sum().backward()
        mine.sum().backward()
        np.testing.assert_array_equal(tensors[0].grad.numpy(), direct.grad.numpy())


FUNCTIONS = {
    "concatenate": lambda x: np.concatenate([x, B]),
    "concatenate, array first": lambda x: np.concatenate((B, x), axis=1),
    "concat": lambda x: np.concat([x, B]),
    "stack": lambda x: np.stack([B, x], axis=1),
    "where": lambda x: np.where(B > 1, x, 0.0),
    "where, array chosen": lambda x: np.where(x > 1, B, x),
    "sum": lambda x: np.sum(x, axis=0),
    "mean": lambda x: np.mean(x, axis=-1, keepdims=True),
    "var": lambda x: np.var(x, axis=1, ddof=1),
    "std": lambda x: np.std(x),
    "prod": lambda x: np.prod(x, axis=0),
    "max": lambda x: np.max(x, axis=1),
    "amin": lambda x: np.amin(x),
    "median": lambda x: np.median(x, axis=0),
    "cumsum": lambda x: np.cumsum(x, axis=0),
    "cumprod": lambda x: np.cumprod(x),
    "sort": lambda x: np.sort(x, axis=0),
    "clip": lambda x: np.clip(x, 0.75, 2.5),
    "round": lambda x: np.round(x, 1),
    "reshape": lambda x: np.reshape(x, (4,)),
    "ravel": lambda x: np.ravel(x),
    "transpose": lambda x: np.transpose(x, (1, 0)),
    "transpose, no axes": lambda x: np.transpose(x),
    "permute_dims": lambda x: np.permute_dims(x, (1, 0)),
    "swapaxes": lambda x: np.swapaxes(x, 0, 1),
    "moveaxis": lambda x: np.moveaxis(x, 0, 1),
    "matrix_transpose": lambda x: np.matrix_transpose(x),
    "expand_dims": lambda x: np.expand_dims(x, 1),
    "squeeze": lambda x: np.squeeze(x[None]),
    "broadcast_to": lambda x: np.broadcast_to(x, (3, 2, 2)),
    "split": lambda x: np.split(x, 2),
    "tile": lambda x: np.tile(x, (2, 1)),
    "repeat": lambda x: np.repeat(x, 2, axis=0),
    "flip": lambda x: np.flip(x, 0),
    "roll": lambda x: np.roll(x, 1, axis=0),
    "pad": lambda x: np.pad(x, ((1, 0), (0, 2)), mode="edge"),
    "tril": lambda x: np.tril(x, -1),
    "triu": lambda x: np.triu(x),
    "diag": lambda x: np.diag(x),
    "diagonal": lambda x: np.diagonal(x, offset=1),
    "meshgrid": lambda x: np.meshgrid(x[0], V),
    "take": lambda x: np.take(x, [1, 0], axis=0),
    "take_along_axis": lambda x: np.take_along_axis(x, np.array([[1], [0]]), axis=1),
    "dot": lambda x: np.dot(B, x),
    "outer": lambda x: np.outer(V, x[0]),
    "tensordot": lambda x: np.tensordot(x, B, axes=1),
    "einsum": lambda x: np.einsum("ij,jk->ik", B, x),
    "trace": lambda x: np.trace(x),
    "linalg.norm": lambda x: np.linalg.norm(x, axis=1),
    "linalg.inv": lambda x: np.linalg.inv(x),
    "linalg.det": lambda x: np.linalg.det(x),
    "linalg.slogdet": lambda x: np.linalg.slogdet(x)[1],
    "linalg.solve": lambda x: np.linalg.solve(B, x),
    "linalg.cholesky": lambda x: np.linalg.cholesky(x @ x.T),
    "linalg.qr": lambda x: np.linalg.qr(x),
    "linalg.svd": lambda x: np.linalg.svd(x, full_matrices=False),
}


@pytest.mark.parametrize("call", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_a_numpy_function_of_a_tensor_gives_tensors_with_numpys_values_and_a_graph(call: Any) -> None:
    t = leaf(A)
    mine, expected = call(t), call(A)
    mine, expected = (r if isinstance(r, (tuple, list)) else (r,) for r in (mine, expected))
    assert len(mine) == len(expected)
    for a, b in zip(mine, expected):
        assert isinstance(a, mg.Tensor)
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-13)
    assert mine[0].requires_grad
    mine[0].sum().backward()
    assert t.grad.shape == t.shape and t.grad.dtype == t.dtype


CONSTANT_FUNCTIONS = {
    "argmax": lambda x: np.argmax(x, axis=1),
    "argsort": lambda x: np.argsort(x, axis=0),
    "any": lambda x: np.any(x > 1, axis=0),
    "all": lambda x: np.all(x > 1),
    "nonzero": lambda x: np.nonzero(x > 1),
    "where, condition alone": lambda x: np.where(x > 1),
}


@pytest.mark.parametrize("call", CONSTANT_FUNCTIONS.values(), ids=CONSTANT_FUNCTIONS.keys())
def test_a_numpy_function_without_a_derivative_gives_constant_tensors(call: Any) -> None:
    mine, expected = call(leaf(A)), call(A)
    for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (mine, expected))):
        assert isinstance(a, mg.Tensor) and not a.requires_grad
        np.testing.assert_array_equal(a.numpy(), b)


T3 = np.arange(18.0).reshape(2, 3, 3) ** 2
SAME_NAME_ELSEWHERE = {
    "linalg.trace": lambda x: np.linalg.trace(x),
    "linalg.diagonal": lambda x: np.linalg.diagonal(x),
    "linalg.matrix_norm": lambda x: np.linalg.matrix_norm(x),
    "linalg.vector_norm": lambda x: np.linalg.vector_norm(x[0], ord=2),
    "linalg.vector_norm over axes": lambda x: np.linalg.vector_norm(x, axis=(0, 1)),
    "linalg.svd, full": lambda x: np.linalg.svd(x[:, :2], full_matrices=True)[2],
    "linalg.svd, full by default": lambda x: np.linalg.svd(x[:, :2])[2],
    "emath.sqrt": lambda x: np.emath.sqrt(-x),
    "put_along_axis": lambda x: [y := x * 1, np.put_along_axis(y, np.zeros((2, 3, 1), int), 9.0, -1)][0],
}


@pytest.mark.parametrize("call", SAME_NAME_ELSEWHERE.values(), ids=SAME_NAME_ELSEWHERE.keys())
def test_a_numpy_function_whose_namesake_in_minigrad_means_another_thing_gives_numpys_values_or_is_refused(
    call: Any,
) -> None:
    try:
        mine = call(leaf(T3))
    except MinigradError:
        return
    assert isinstance(mine, mg.Tensor)
    np.testing.assert_allclose(mine.numpy(), call(T3), rtol=1e-12)


def test_a_numpy_function_without_a_counterpart_is_refused_by_name() -> None:
    with pytest.raises(MinigradError, match="np.unwrap"):
        np.unwrap(leaf(A))


@pytest.mark.parametrize(
    "call",
    [
        lambda t: np.add.reduce(t),
        lambda t: np.add.accumulate(t),
        lambda t: np.multiply.outer(t, t),
        lambda t: np.add.at(t, [0], 1.0),
        lambda t: np.add.reduceat(t, [0]),
    ],
    ids=["reduce", "accumulate", "outer", "at", "reduceat"],
)
def test_methods_of_ufuncs_are_refused_and_the_message_says_what_to_use(call: Any) -> None:
    with pytest.raises(MinigradError, match="fix:"):
        call(leaf(A))


@pytest.mark.parametrize(
    "extra", [{"where": A > 1}, {"dtype": np.float32}, {"casting": "unsafe"}], ids=["where", "dtype", "casting"]
)
def test_extra_arguments_of_ufuncs_are_refused_and_not_ignored(extra: Any) -> None:
    with pytest.raises(MinigradError):
        np.add(leaf(A), 1.0, **extra)


@pytest.mark.parametrize("compute", [*ARITHMETIC, np.maximum, np.arctan2, np.hypot, np.logaddexp], ids=name_of)
def test_dtypes_of_pairs_are_promoted_as_by_numpy_and_scalars_as_python_numbers(compute: Any) -> None:
    for first, second in itertools.product(DTYPES, DTYPES):
        a, b = np.ones(2, first), np.ones(2, second)
        for operands in ((a, b), (a, b[0]), (a[0], b)):
            expected = outcome(compute, *[x.item() if isinstance(x, np.generic) else x for x in operands])
            tensors = [mg.tensor(x) if isinstance(x, np.ndarray) else x for x in operands]
            assert outcome(compute, *tensors) == expected, (first, second)


@pytest.mark.parametrize("compute", ARITHMETIC, ids=name_of)
@pytest.mark.parametrize("number", [2, 0.5, True], ids=["int", "float", "bool"])
def test_python_numbers_never_widen_a_tensor_beyond_numpys_rule(compute: Any, number: Any) -> None:
    for dtype in DTYPES:
        a = np.ones(2, dtype)
        assert outcome(compute, mg.tensor(a), number) == outcome(compute, a, number), dtype
        assert outcome(compute, number, mg.tensor(a)) == outcome(compute, number, a), dtype


def outcome(compute: Any, *operands: Any) -> Any:
    """The dtype of the result, or None where NumPy (and so minigrad) refuses, as for booleans subtracted."""
    try:
        return compute(*operands).dtype
    except TypeError:
        return None


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("other", ["float16", "float32", "float64", "int64", "bool"])
def test_each_input_gets_a_gradient_of_its_own_dtype(dtype: str, other: str) -> None:
    t = leaf(A, dtype)
    (t * np.ones((2, 2), other) + np.ones(2, other)).sum().backward()
    assert t.grad.dtype == dtype
    assert t.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_asarray_refuses_to_cut_a_graph_and_gives_the_memory_of_a_constant() -> None:
    with pytest.raises(GradientError, match="detach"):
        np.asarray(leaf(A))
    with pytest.raises(GradientError):
        np.array([leaf(1.0), leaf(2.0)])
    constant = mg.tensor(A)
    assert np.shares_memory(np.asarray(constant), constant.numpy())
    assert not np.shares_memory(np.array(constant), constant.numpy())
    assert np.asarray(constant, dtype=np.float32).dtype == np.float32


def test_out_writes_into_a_tensor_or_an_array() -> None:
    target, array = mg.zeros(2, 2, dtype="float64"), np.zeros((2, 2))
    assert np.add(mg.tensor(A), B, out=target) is target
    np.testing.assert_array_equal(target.numpy(), A + B)
    assert np.multiply(mg.tensor(A), 2, out=array) is array
    np.testing.assert_array_equal(array, A * 2)
    array += mg.tensor(A)
    np.testing.assert_array_equal(array, A * 3)


def test_out_refuses_whatever_would_lose_a_gradient() -> None:
    array, t = np.zeros((2, 2)), leaf(A)
    with pytest.raises(GradientError):
        np.add(t, 1.0, out=array)
    with pytest.raises(GradientError):
        array += t
    assert not array.any()
    with pytest.raises(MinigradError):
        np.add(mg.tensor(A), 1.0, out=t)
    with pytest.raises(MinigradError):
        np.add(mg.tensor(A), 1.0, out=t * 2)
    np.testing.assert_array_equal(t.numpy(), A)


def test_out_that_a_pending_backward_needs_makes_that_backward_refuse() -> None:
    t, constant = leaf(A), mg.tensor(B)
    product = t * constant
    np.add(constant, 1.0, out=constant)
    with pytest.raises(GradientError, match="overwritten"):
        product.sum().backward()


WITH_AN_ARRAY = {
    "multiply": lambda t, a: t * a,
    "multiply, array first": lambda t, a: a * t,
    "divide": lambda t, a: t / a,
    "power": lambda t, a: t**a,
    "matmul": lambda t, a: a @ t,
    "maximum": lambda t, a: np.maximum(a, t),
    "where": lambda t, a: mg.where(a > 1, t * a, t),
    "clip": lambda t, a: mg.clip(t, a, None),
    "masked_fill": lambda t, a: mg.masked_fill(t, a > 1, 0.0),
    "einsum": lambda t, a: np.einsum("ij,jk->ik", a, t),
    "solve": lambda t, a: np.linalg.solve(a, t),
}


@pytest.mark.parametrize("compute", WITH_AN_ARRAY.values(), ids=WITH_AN_ARRAY.keys())
def test_a_foreign_array_changed_before_backward_does_not_change_gradients(compute: Any) -> None:
    t, untouched = leaf(A), leaf(A)
    compute(untouched, B.copy()).sum().backward()
    array = B.copy()
    out = compute(t, array)
    array[...] = -7.0
    out.sum().backward()
    np.testing.assert_array_equal(t.grad.numpy(), untouched.grad.numpy())


def test_an_index_or_mask_changed_before_backward_does_not_change_gradients() -> None:
    t, rows, mask, pads = leaf(A), np.array([1, 1]), A > 1, [[1, 0], [0, 0]]
    columns = np.array([[0], [0]])
    picked = (
        t[rows].sum()
        + mg.take(t, rows, axis=0).sum()
        + mg.take_along_axis(t, columns, axis=1).sum() * 10
        + t[mask].sum() * 100
    )
    out = picked + mg.where(mask, t, 0).sum() * 100 + mg.pad(t, pads).sum() * 1000
    rows[:], mask[:], columns[:], pads[0][0] = 0, False, 1, 0
    out.backward()
    np.testing.assert_array_equal(t.grad.numpy(), 1000 + 200 * (A > 1) + np.array([[10, 0], [14, 4]]))


def test_a_tensor_made_from_an_array_does_not_follow_it() -> None:
    array = A.copy()
    t = mg.tensor(array)
    array[...] = 0
    np.testing.assert_array_equal(t.numpy(), A)


def test_a_gradient_handed_to_backward_may_be_reused_by_its_owner() -> None:
    t, seed = leaf(A), B.copy()
    (t + 0).backward(seed)
    seed[...] = 0
    np.testing.assert_array_equal(t.grad.numpy(), B)


WITH_WHOLE_NUMBERS = {
    "expand_dims": lambda x, whole: mg.expand_dims(x, whole(1)),
    "squeeze": lambda x, whole: mg.squeeze(x, whole(1)),
    "moveaxis": lambda x, whole: mg.moveaxis(x, whole(0), whole(2)),
    "reshape": lambda x, whole: x.reshape(whole(6)),
    "transpose": lambda x, whole: x.transpose(whole(2), whole(0), whole(1)),
    "tile": lambda x, whole: mg.tile(x, whole(2)),
    "repeat": lambda x, whole: mg.repeat(x, whole(2), axis=whole(0)),
    "roll": lambda x, whole: mg.roll(x, whole(1), axis=whole(2)),
    "split": lambda x, whole: mg.split(x, whole(3), axis=whole(2))[1],
    "topk": lambda x, whole: mg.topk(x, whole(2))[0],
    "tensordot": lambda x, whole: mg.tensordot(x, x, whole(3)),
}


@pytest.mark.parametrize("name", WITH_WHOLE_NUMBERS)
def test_whole_numbers_of_numpy_stand_wherever_those_of_python_do(name):
    found = []
    for whole in (int, np.int64):
        x = mg.tensor(np.arange(6.0).reshape(2, 1, 3), requires_grad=True)
        y = WITH_WHOLE_NUMBERS[name](x, whole)
        (y * y).sum().backward()
        found.append((y.numpy(), x.grad.numpy()))
    (value, gradient), (same_value, same_gradient) = found
    np.testing.assert_array_equal(same_value, value)
    np.testing.assert_array_equal(same_gradient, gradient)


def test_size_is_the_number_of_elements_and_called_the_shape_or_one_axis_of_it() -> None:
    x = mg.zeros(4, 3)
    assert (x.size, repr(x.size), f"{x.size:4}", json.dumps([x.size])) == (12, "12", "  12", "[12]")
    assert isinstance(x.size, int) and {12: "found"}[x.size] == "found" and type(x.size * 2) is int
    assert (x.size(), x.size(0), x.size(-1), x.size(dim=1)) == ((4, 3), 4, 3, 3)
    assert mg.vmap(lambda row: (row + row.size) / row.size(0))(x).tolist() == [[1.0] * 3] * 4
    with pytest.raises(MinigradError, match="size: there is no such axis"):
        x.size(2)
    with pytest.raises(MinigradError, match="an axis must be a whole number"):
        x.size((0, 1))  # type: ignore[arg-type]


@pytest.mark.parametrize("compute", [*ARITHMETIC, *COMPARISONS])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64"])
def test_size_counts_as_a_plain_number_beside_arrays_scalars_and_tensors(compute: Any, dtype: str) -> None:
    size = mg.zeros(3).size
    for other in (np.ones(2, dtype), np.ones((), dtype), np.ones(2, dtype)[0], mg.ones(2, dtype=dtype)):
        for found, expected in ((compute(other, size), compute(other, 3)), (compute(size, other), compute(3, other))):
            assert type(found) is type(expected) and found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


def test_numpys_functions_take_size_as_a_plain_number() -> None:
    size, x = mg.zeros(3).size, np.ones(3, np.float32)
    assert np.where([True, False, True], x, size).dtype == np.clip(x, 0, size).dtype == np.float32
    assert np.result_type(np.float32, size) == np.float32
    assert np.full_like(x, size).tolist() == [3, 3, 3] and np.stack([size, size]).tolist() == [3, 3]
    assert np.zeros(size).shape == np.empty((2, size))[0].shape == x.reshape(size).shape == (3,)
    x /= size
    assert x.dtype == np.float32


def test_item_takes_an_index_as_numpy_does():
    values = np.arange(6.0).reshape(2, 3)
    x = mg.tensor(values)
    assert [x.item(0), x.item(-1), x.item(1, 2), x.item((1, 0)), x[0, 1].item()] == [0.0, 5.0, 5.0, 3.0, 1.0]
    for index in ((6,), (2, 0), (0, 0, 0)):
        with pytest.raises((IndexError, ValueError)):
            values.item(*index)
        with pytest.raises(mg.errors.IndexingError):
            x.item(*index)


def test_python_divmod_is_numpys():
    values = np.array([7.5, -7.5, 3.0])
    x = mg.tensor(values)
    for ours, theirs in ((divmod(x, 2), divmod(values, 2)), (divmod(5, x), divmod(5, values))):
        for part, expected in zip(ours, theirs):
            assert isinstance(part, mg.Tensor)
            np.testing.assert_array_equal(part.numpy(), expected)
