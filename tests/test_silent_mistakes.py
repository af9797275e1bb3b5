"""Mistakes that would go unnoticed: shared memory, wrapped numbers, values that change before the backward."""

import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import GradientError, MinigradError

F = mg.nn.functional


def leaf(values) -> mg.Tensor:
    return mg.tensor(np.asarray(values, dtype="float64"), requires_grad=True)


def test_the_gradients_of_two_inputs_do_not_share_memory():
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    first, second = mg.autograd.grad((a + b).sum(), [a, b])
    first *= 0.5
    np.testing.assert_array_equal(second.numpy(), [1.0, 1.0])


def test_what_a_hook_returns_stays_the_hooks_own():
    x, constant = leaf([1.0]), mg.tensor([7.0], dtype="float64")
    x.register_hook(lambda g: constant)
    (x * 2).sum().backward()
    with mg.no_grad():
        gradient = x.grad
        gradient *= 0
    assert constant.item() == 7.0


def test_an_infinite_input_that_does_not_matter_has_gradient_zero():
    unused = mg.grad(lambda a, b: a.sum(), (0, 1))(leaf([1.0]), leaf([np.inf]))[1]
    np.testing.assert_array_equal(unused.numpy(), [0.0])


def test_an_earlier_write_through_another_view_is_refused():
    y = leaf([1.0, 2.0, 3.0]) * 1
    outer = y[0:2]
    outer *= 2
    inner = outer[0:1]
    inner += 1
    with pytest.raises(GradientError):
        y[0:1] = inner


def test_recompute_refuses_data_that_changed_meanwhile():
    x, weights = leaf([1.0, 2.0]), mg.tensor([3.0, 4.0], dtype="float64")
    y = mg.recompute(lambda v: (v * weights).exp())(x)
    weights[...] = 0
    with pytest.raises(GradientError, match="recompute"):
        y.sum().backward()


def test_a_list_given_as_an_attribute_may_change_afterwards():
    x, shift = leaf([1.0, 2.0, 3.0]), [1]
    y = mg.roll(x, shift, 0)
    shift[0] = 2
    y.backward([1.0, 0.0, 0.0])
    np.testing.assert_array_equal(x.grad.numpy(), [0.0, 0.0, 1.0])


@pytest.mark.parametrize(
    "function", [F.sigmoid, F.softplus, F.silu, F.softmax, F.log_softmax, F.logsigmoid, mg.logsumexp]
)
def test_unsigned_numbers_do_not_wrap(function):
    small, wide = np.array([5, 7], dtype="uint8"), np.array([5.0, 7.0])
    np.testing.assert_allclose(function(mg.tensor(small)).numpy(), function(mg.tensor(wide)).numpy(), rtol=1e-12)


def test_norms_of_whole_numbers_do_not_overflow():
    assert mg.norm(np.array([50000, 50000], dtype="int32")).item() == pytest.approx(np.hypot(50000.0, 50000.0))


def test_layer_norm_in_half_precision_does_not_overflow():
    x = mg.tensor(np.array([[-300.0, 300.0]], dtype="float16"))
    np.testing.assert_allclose(F.layer_norm(x, 2).numpy(), [[-1.0, 1.0]], rtol=1e-2)


def test_a_complex_result_does_not_cut_the_graph_silently():
    with pytest.raises(MinigradError, match="complex"):
        leaf([1.0]) * 1j


def test_python_numbers_do_not_widen_arrays_in_public_functions():
    assert mg.add(np.ones(2, dtype="float32"), 2).dtype == np.float32
    assert mg.maximum(np.ones(2, dtype="float16"), 0.5).dtype == np.float16


def test_small_index_types_reach_every_row():
    weight = leaf(np.zeros((256, 2)))
    F.embedding(mg.tensor(np.array([255, 0, 255], dtype="uint8")), weight).sum().backward()
    assert weight.grad.numpy()[[0, 255], 0].tolist() == [1.0, 2.0]


def test_two_threads_add_to_one_gradient_without_losing_any():
    shared = leaf(np.zeros(100_000))

    def work() -> None:
        for _ in range(20):
            shared.sum().backward()

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    np.testing.assert_array_equal(shared.grad.numpy(), 40.0)


def test_one_switch_may_be_entered_by_two_threads():
    shared, inside, leave = mg.no_grad(), threading.Event(), threading.Event()
    seen = []

    def other() -> None:
        with shared:
            inside.set()
            leave.wait(10)
        seen.append(mg.is_grad_enabled())

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    with mg.enable_grad():
        with shared:
            leave.set()
            thread.join()
            assert not mg.is_grad_enabled()
        assert mg.is_grad_enabled()
    assert seen == [True]


def test_a_saved_file_has_the_permissions_of_any_new_file(tmp_path):
    ordinary, saved = tmp_path / "ordinary", tmp_path / "saved.safetensors"
    ordinary.write_bytes(b"")
    mg.save({"x": mg.ones(1)}, saved)
    assert saved.stat().st_mode == ordinary.stat().st_mode


def test_random_whole_numbers_do_not_wrap():
    with pytest.raises(MinigradError, match="0 to 999 as uint8"):
        mg.randint(0, 1000, (3,), dtype="uint8")
    assert mg.randint(0, 256, (3,), dtype="uint8").dtype == np.uint8
