"""What a user does on a GPU, on the fake one: nothing slips back to NumPy, and what cannot work says why."""

from __future__ import annotations

import copy
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.fake_array import FakeArray

import minigrad as mg
from minigrad.errors import DeviceError, GradientError, IndexingError

DEVICES = ["fake", "fake:1"]


@pytest.fixture(params=DEVICES)
def gpu(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def check(tensor: mg.Tensor, device: str, expected: Any) -> None:
    """The tensor lies on the device, and holds what is expected."""
    assert type(tensor.data) is FakeArray
    assert tensor.device == device
    np.testing.assert_allclose(tensor.numpy(), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda d: mg.tensor([[1.0, 2.0]], device=d), [[1, 2]]),
        (lambda d: mg.tensor(3.0, device=d), 3),
        (lambda d: mg.tensor(np.arange(3), device=d), [0, 1, 2]),
        (lambda d: mg.tensor(mg.ones(2), device=d), [1, 1]),
        (lambda d: mg.zeros(2, 3, device=d), np.zeros((2, 3))),
        (lambda d: mg.ones(2, device=d), [1, 1]),
        (lambda d: mg.full((2,), 7, device=d), [7, 7]),
        (lambda d: mg.arange(1, 7, 2, device=d), [1, 3, 5]),
        (lambda d: mg.linspace(0, 1, 3, device=d), [0, 0.5, 1]),
        (lambda d: mg.eye(2, 3, device=d), np.eye(2, 3)),
        (lambda d: mg.zeros_like(mg.ones(2, device=d)), [0, 0]),
        (lambda d: mg.full_like(mg.ones(2, device=d), 4), [4, 4]),
    ],
)
def test_tensors_are_made_on_the_device(gpu: str, make: Any, expected: Any) -> None:
    check(make(gpu), gpu, expected)


def test_empty_tensors_are_made_on_the_device(gpu: str) -> None:
    made = mg.empty(2, 3, device=gpu)
    assert type(made.data) is FakeArray and made.device == gpu and made.shape == (2, 3)


@pytest.mark.parametrize(
    "draw",
    [
        lambda d: mg.rand(50, device=d),
        lambda d: mg.randn(50, dtype="float64", device=d),
        lambda d: mg.randn(50, dtype="float16", device=d),
        lambda d: mg.randint(0, 100, (50,), device=d),
        lambda d: mg.randperm(50, device=d),
    ],
)
def test_random_draws_repeat_with_their_seed(gpu: str, draw: Any) -> None:
    mg.manual_seed(3)
    first, second = draw(gpu), draw(gpu)
    mg.manual_seed(3)
    again = draw(gpu)
    check(again, gpu, first.numpy())
    assert (first.numpy() != second.numpy()).any()


def test_a_tensor_copies_the_array_it_is_made_from(gpu: str) -> None:
    x = mg.ones(2, device=gpu)
    y = mg.tensor(x.data)
    y += 1
    check(x, gpu, [1, 1])
    check(y, gpu, [2, 2])


def test_arithmetic_takes_numbers_and_numpy_scalars_on_either_side(gpu: str) -> None:
    x = mg.tensor([1.0, 2.0], device=gpu)
    check(2 * x + 1 - x / 2, gpu, [2.5, 4])
    check(np.float32(2) * x, gpu, [2, 4])
    check(x ** np.float32(2), gpu, [1, 4])
    check(-x @ x, gpu, -5)
    check(mg.maximum(1.5, x), gpu, [1.5, 2])
    check(mg.where(True, x, 0), gpu, [1, 2])
    check(mg.clip(1.5, x, 1.75), gpu, [1.5, 1.75])
    assert (np.float32(2) * x).dtype == np.float32
    assert 2.0 in x and 3.0 not in x
    assert bool((x == x).all()) and int(x.sum()) == 3 and f"{x.sum():.1f}" == "3.0"


def test_numpy_functions_and_device_arrays_meet_tensors_on_the_device(gpu: str) -> None:
    x = mg.tensor([1.0, 2.0], device=gpu)
    check(np.exp(x), gpu, np.exp([1, 2]))
    check(np.concatenate([x, x]), gpu, [1, 2, 1, 2])
    check(x + x.data, gpu, [2, 4])
    check(x.data + x, gpu, [2, 4])


def test_reductions_give_tensors_without_axes(gpu: str) -> None:
    x = mg.tensor([[1.0, 2.0], [3.0, 4.0]], device=gpu)
    cases = [
        (x.sum(), 10),
        (x.mean(), 2.5),
        (x.max(), 4),
        (x.prod(), 24),
        (x.argmax(), 3),
        (x.var(), 1.25),
        (x.median(), 2.5),
    ]
    for result, expected in cases:
        assert result.shape == ()
        check(result, gpu, expected)


MASK = np.array([True, False, True])
INDICES = [
    0,
    -1,
    slice(1, None),
    slice(None, None, -1),
    (..., 0),
    (None, 1),
    np.array([2, 0, 2]),
    [[0, 1], [2, -1]],
    [],
    (slice(None), [0, 2, 0]),
    ([0, 1], [1, 1]),
    (np.array([0, 2]), slice(None)),
    (0, [1, 1]),
    ([0, 1], None, [1, 1]),
    MASK,
    np.arange(9).reshape(3, 3) > 3,
    (MASK, [0, 1]),
    (MASK, np.array([True, True, False])),
    True,
]


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_every_kind_of_index_reads_writes_and_differentiates(gpu: str, index: Any) -> None:
    host = np.arange(9.0).reshape(3, 3)
    x = mg.tensor(host, device=gpu, requires_grad=True)
    picked = x[index]
    check(picked, gpu, host[index])
    (picked * picked).sum().backward()
    expected = np.zeros((3, 3))
    np.add.at(expected, index, 2 * host[index])
    check(x.grad, gpu, expected)

    values = np.arange(1.0, 1.0 + host[index].size).reshape(host[index].shape)
    target, value = mg.zeros(3, 3, dtype="float64", device=gpu), mg.tensor(values, device=gpu, requires_grad=True)
    target[index] = value
    expected = np.zeros((3, 3))
    expected[index] = values
    check(target, gpu, expected)
    (target * mg.tensor(host, device=gpu)).sum().backward()
    lasts = np.full((3, 3), -1)
    lasts[index] = np.arange(values.size).reshape(values.shape)
    check(value.grad, gpu, np.where(lasts[index] == np.arange(values.size).reshape(values.shape), host[index], 0))


def test_index_tensors_may_be_on_the_device_or_on_the_host(gpu: str) -> None:
    x = mg.arange(3, device=gpu) * 10
    check(x[mg.tensor([2, 0], device=gpu)], gpu, [20, 0])
    check(x[mg.tensor([2, 0])], gpu, [20, 0])
    check(mg.take_along_axis(x, mg.tensor([1], device=gpu), 0), gpu, [10])


@pytest.mark.parametrize(("data", "index"), [("cpu", "fake"), ("fake", "fake:1"), ("fake:1", "fake")])
def test_an_index_on_another_device_is_refused_by_name(data: str, index: str) -> None:
    x, i = mg.zeros(3, device=data), mg.tensor([0, 1], device=index)
    for use in (lambda: x[i], lambda: x[::2, i], lambda: x.__setitem__(i, 1.0)):
        with pytest.raises(DeviceError) as caught:
            use()
        assert data in str(caught.value) and index in str(caught.value)


@pytest.mark.parametrize("index", [[3], [-4], ([0], [3]), (slice(None), [1, 5]), (..., [7])], ids=repr)
def test_an_index_array_out_of_range_is_refused_although_cupy_would_wrap_it(device: str, index: Any) -> None:
    x = mg.zeros(3, 3, device=device)
    with pytest.raises(IndexingError, match="index|range"):
        x[index]
    with pytest.raises(IndexingError, match="index|range"):
        x[index] = 1.0
    np.testing.assert_array_equal(x.numpy(), 0)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, i: mg.take(x, i, 0),
        lambda x, i: mg.take_along_axis(x, i, 0),
        lambda x, i: mg.scatter_add(x, i, 1.0, 0),
        lambda x, i: mg.put_along_axis(x, i, 1.0, 0),
        lambda x, i: mg.one_hot(i, num_classes=3),
    ],
)
def test_functions_refuse_labels_out_of_range(device: str, call: Any) -> None:
    with pytest.raises(IndexingError):
        call(mg.zeros(3, device=device), mg.tensor([0, 3], device=device))


def test_in_place_operators_write_into_the_tensor(gpu: str) -> None:
    x = mg.tensor([1.0, 2.0], device=gpu)
    memory = x.data
    x += 1
    x *= mg.tensor([2.0, 3.0], device=gpu)
    x[0] = 0
    assert x.data is memory
    check(x, gpu, [0, 9])


def test_gradients_flow_through_an_in_place_operator(gpu: str) -> None:
    x = mg.tensor([1.0, 2.0], device=gpu, requires_grad=True)
    y = x * 1
    y *= mg.tensor([2.0, 3.0], device=gpu)
    y.sum().backward()
    check(x.grad, gpu, [2, 3])


def test_an_overwritten_value_is_noticed_by_backward(gpu: str) -> None:
    x = mg.tensor([1.0, 2.0], device=gpu, requires_grad=True)
    y = x * 1
    z = y * y
    y[0] = 5.0
    with pytest.raises(GradientError, match="overwritten"):
        z.sum().backward()


def test_writing_into_a_stretched_view_is_refused(device: str) -> None:
    wide = mg.ones(1, device=device).broadcast_to((3,))
    with pytest.raises(GradientError, match="read-only"):
        wide[0] = 5
    with pytest.raises(GradientError, match="read-only"):
        wide += 1
    np.testing.assert_array_equal(wide.numpy(), [1, 1, 1])


def test_backward_accumulates_on_the_device(gpu: str) -> None:
    x = mg.tensor([1.0, 2.0], device=gpu, requires_grad=True)
    for times in (1, 2):
        (x * x).sum().backward()
        check(x.grad, gpu, [2 * times, 4 * times])
    (x * x).backward(mg.ones(2, device=gpu))
    check(x.grad, gpu, [6, 12])


def test_second_derivatives_stay_on_the_device(gpu: str) -> None:
    x = mg.tensor([1.0, 2.0], device=gpu, requires_grad=True)
    (first,) = mg.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = mg.autograd.grad(first.sum(), x)
    check(first, gpu, [3, 12])
    check(second, gpu, [6, 12])
    check(mg.hessian(lambda t: (t**3).sum())(x), gpu, [[6, 0], [0, 12]])


def test_hooks_and_retained_gradients_see_the_device(gpu: str) -> None:
    x = mg.tensor([1.0, 2.0], device=gpu, requires_grad=True)
    middle = (x * 3).retain_grad()
    seen = []
    x.register_hook(lambda g: seen.append(g) or g * 2)
    (middle * middle).sum().backward()
    check(seen[0], gpu, [18, 36])
    check(x.grad, gpu, [36, 72])
    check(middle.grad, gpu, [6, 12])


@pytest.mark.parametrize(("start", "end"), list(itertools.permutations(["cpu", *DEVICES], 2)))
def test_gradients_flow_through_a_move(start: str, end: str) -> None:
    x = mg.tensor([1.0, 2.0], device=start, requires_grad=True)
    y = x.to(end)
    assert y.device == end and y.data is not x.data
    ((y * y).sum().to(start) + (x * x).sum()).backward()
    assert x.grad is not None and x.grad.device == start
    np.testing.assert_array_equal(x.grad.numpy(), [4, 8])
    z = x.to(end)
    (first,) = mg.autograd.grad((z**3).sum(), x, create_graph=True)
    (second,) = mg.autograd.grad(first.sum(), x)
    assert second.device == start
    np.testing.assert_array_equal(second.numpy(), [6, 12])


def test_moving_to_where_it_is_changes_nothing(gpu: str) -> None:
    x = mg.ones(2, device=gpu)
    assert x.to(gpu) is x


@pytest.mark.parametrize(("here", "there"), [("cpu", "fake"), ("fake", "cpu"), ("fake", "fake:1")])
@pytest.mark.parametrize(
    "mix",
    [
        lambda a, b: a + b,
        lambda a, b: a @ b,
        lambda a, b: mg.concatenate([a, b]),
        lambda a, b: mg.where(a > 0, b, 0),
        lambda a, b: a.__iadd__(b),
        lambda a, b: a.__setitem__(0, b[0]),
        lambda a, b: a.requires_grad_().backward(b),
        lambda a, b: mg.nn.functional.mse_loss(a, b),
    ],
    ids=["add", "matmul", "concatenate", "where", "in place", "setitem", "gradient", "loss"],
)
def test_mixed_devices_are_refused_by_name(here: str, there: str, mix: Any) -> None:
    a, b = mg.ones(2, device=here), mg.ones(2, device=there)
    with pytest.raises(DeviceError) as caught:
        mix(a, b)
    text = str(caught.value)
    assert here in text and there in text and ".to(" in text


@pytest.mark.parametrize(
    "mix",
    [
        lambda x: x + np.ones(2),
        lambda x: np.ones(2) * x,
        lambda x: np.add(x, np.ones(2)),
        lambda x: mg.maximum(np.ones(2), x),
    ],
    ids=["right", "left", "ufunc", "function"],
)
def test_host_arrays_do_not_mix_with_device_tensors(mix: Any) -> None:
    with pytest.raises(DeviceError, match="cpu and fake"):
        mix(mg.ones(2, device="fake"))


def test_a_gradient_from_another_device_is_refused() -> None:
    x = mg.ones(2, device="fake", requires_grad=True)
    with pytest.raises(mg.MinigradError, match="fake(.|\n)*cpu"):
        x.grad = mg.ones(2)
    x.register_hook(lambda g: mg.ones(2))
    with pytest.raises(mg.MinigradError, match="device"):
        (x * 2).sum().backward()


def test_leaving_the_device_gives_numpy_arrays_and_numbers(gpu: str) -> None:
    x = mg.tensor([[1.5, 2.5]], device=gpu)
    assert type(x.numpy()) is np.ndarray and type(np.asarray(x)) is np.ndarray
    assert x.tolist() == [[1.5, 2.5]]
    assert x[0, 1].item() == 2.5 and isinstance(x.sum().item(), float)
    assert repr(x) == f"tensor([[1.5, 2.5]], device={gpu!r})"
    back = x.cpu()
    assert back.device == "cpu" and type(back.data) is np.ndarray


def test_detached_cloned_and_deeply_copied_tensors_stay_where_they_are(gpu: str) -> None:
    x = mg.tensor([1.0, 2.0], device=gpu, requires_grad=True)
    (x * x).sum().backward()
    for made in (
        x.detach(),
        x.clone(),
        copy.deepcopy(x),
        copy.deepcopy(x).grad / 2,
        x.astype("float64"),
        x.detach()[::-1][::-1],
    ):
        check(made, gpu, [1, 2])


def test_debug_names_the_op_that_makes_the_first_nan(gpu: str) -> None:
    x = mg.tensor([0.0, 1.0], device=gpu, requires_grad=True)
    with mg.debug():
        (x * x).sum().backward()
        with pytest.raises(ArithmeticError, match="log"):
            mg.log(x)
        with pytest.raises(ArithmeticError, match="sqrt.*backward|backward"):
            mg.sqrt(x).sum().backward()


@pytest.mark.parametrize(
    ("call", "matrix"),
    [
        (mg.inv, [[1.0, 1.0], [1.0, 1.0]]),
        (mg.cholesky, [[1.0, 2.0], [2.0, 1.0]]),
        (lambda a: mg.solve(a, a), [[0.0, 0.0], [0.0, 0.0]]),
    ],
    ids=["inv", "cholesky", "solve"],
)
def test_a_matrix_that_cannot_be_treated_is_refused_although_cupy_would_not_say(
    device: str, call: Any, matrix: Any
) -> None:
    with pytest.raises(mg.MinigradError):
        call(mg.tensor(matrix, device=device))


def test_saved_tensors_come_back_on_the_device(gpu: str, tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    mg.save({"x": mg.tensor([[1.0, 2.0], [3.0, 4.0]], device=gpu).T}, path)
    check(mg.load(path, device=gpu)["x"], gpu, [[1, 3], [2, 4]])
    assert mg.load(path)["x"].device == "cpu"


def test_unknown_devices_are_refused() -> None:
    with pytest.raises(DeviceError, match="fake:2"):
        mg.ones(2, device="fake:2")
    with pytest.raises(DeviceError, match="unknown device"):
        mg.ones(2, device="tpu")
