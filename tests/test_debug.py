"""`mg.debug()` stops at the first NaN or infinity and says where it came from; outside, nothing is checked."""

import gc
import inspect
import re
import warnings
import weakref

import numpy as np
import pytest
from support.scopes import scope

import minigrad as mg
from minigrad import kernels
from minigrad.debug import Recorder
from minigrad.engine.modes import local
from minigrad.errors import GradientError, NonFiniteError
from minigrad.tracer import Tracer, tracing


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def leaf(values):
    return mg.tensor(np.asarray(values, "float64"), requires_grad=True)


def this_line(offset=0):
    frame = inspect.currentframe().f_back
    return rf"{re.escape(frame.f_code.co_filename)}:{frame.f_lineno + offset}\b"


def test_the_first_nan_forward_is_named_with_op_module_and_line():
    x = leaf([1.0, -1.0, 0.5])
    with mg.debug(), scope("encoder.norm"):
        line = this_line(+2)
        with pytest.raises(NonFiniteError) as caught:
            x.sqrt()
    text = str(caught.value)
    assert text.startswith("encoder.norm: sqrt ")
    assert re.search(line, text)
    assert "1 NaN and 0 infinite of 3" in text and "(3,) float64" in text


def test_an_infinity_is_told_from_a_nan():
    with mg.debug(), pytest.raises(NonFiniteError, match="log .*\n.*0 NaN and 2 infinite of 3"):
        leaf([0.0, 1.0, 0.0]).log()


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x / 0.0,
        lambda x: x + np.inf,
        lambda x: np.inf - x,
        lambda x: x @ mg.tensor([np.inf, 1.0]),
        lambda x: mg.log(x * 0),
        lambda x: x.std() / 0,
        lambda x: mg.stack([x, x * np.nan]),
        lambda x: mg.split(x * 1e308 * 1e308, 2)[0],
    ],
    ids=["divide", "add", "reflected", "matmul", "function", "0-d", "stack", "several outputs"],
)
def test_every_way_of_calling_an_op_is_watched(make):
    with mg.debug(), pytest.raises(NonFiniteError, match=re.escape(f"({make.__code__.co_filename}:")):
        make(leaf([1.0, 2.0]))


def test_minus_infinity_that_is_put_in_on_purpose_is_passed_on_and_what_comes_of_it_is_blamed(device):
    scores = mg.tensor([[1.0, 2.0], [3.0, 4.0]], device=device, requires_grad=True)
    with mg.debug():
        masked = mg.where(mg.tensor([[True, False], [False, False]], device=device), scores, -np.inf)
        shifted = masked * 2 - 1
        assert mg.exp(shifted).numpy()[0, 1] == 0
        with pytest.raises(NonFiniteError, match="subtract .*\n.*2 NaN and 1 infinite of 4"):
            _ = shifted - shifted.max(axis=1, keepdims=True)
        with pytest.raises(NonFiniteError, match="negative"):
            _ = -masked


def test_constants_are_watched_too_and_integers_are_left_alone():
    with mg.debug():
        with pytest.raises(NonFiniteError, match="divide"):
            mg.tensor([1.0]) / mg.tensor([0.0])
        assert (mg.tensor([1, 2]) * 3).tolist() == [3, 6]
        assert (mg.tensor([1.0]) > 0).tolist() == [True]


def test_no_grad_does_not_switch_the_watch_off():
    with mg.debug(), mg.no_grad(), pytest.raises(NonFiniteError, match="log"):
        leaf([0.0]).log()


def test_the_first_nan_backward_is_named_with_op_module_and_the_line_of_its_forward():
    x = leaf([0.0, 4.0])
    with mg.debug():
        with scope("head"):
            line = this_line(+1)
            root = x.sqrt()
        loss = (root * 2).sum()
        with pytest.raises(NonFiniteError) as caught:
            loss.backward()
    text = str(caught.value)
    assert text.startswith("head: sqrt ") and "backward" in text
    assert re.search(line, text)
    assert "0 NaN and 1 infinite of 2" in text
    assert x.grad is None


def test_a_nan_that_only_the_backward_makes_is_found():
    x = leaf([0.0, 1.0])
    with mg.debug(), pytest.raises(NonFiniteError, match="norm|sqrt|divide|multiply"):
        (x * x).sqrt().sum().backward()  # 0 / 0 in the derivative at 0


def test_a_second_derivative_is_watched():
    x = leaf([0.0])
    with mg.debug():
        (first,) = mg.autograd.grad((x**1.5).sum(), x, create_graph=True)
        with pytest.raises(NonFiniteError):
            mg.autograd.grad(first.sum(), x)


def test_nothing_is_reported_outside():
    x = leaf([0.0, -1.0])
    y = x.log()
    y.sum().backward()
    assert np.isneginf(y.numpy()[0]) and np.isnan(y.numpy()[1])
    assert np.isinf(x.grad.numpy()[0])
    assert y.node.note is None


def test_the_watch_ends_with_the_block_also_after_an_error():
    with pytest.raises(NonFiniteError), mg.debug():
        leaf([0.0]).log()
    assert np.isneginf(leaf([0.0]).log().numpy()).all()


def test_debug_decorates_a_function():
    @mg.debug()
    def logarithm(x):
        return x.log()

    assert logarithm(leaf([1.0])).item() == 0.0
    with pytest.raises(NonFiniteError, match=r"log \(.*test_debug\.py"):
        logarithm(leaf([0.0]))


def test_results_are_the_same_with_and_without():
    def run():
        x = leaf([[0.5, 1.0], [2.0, 3.0]])
        a, b = mg.split(x @ x.T, 2)
        loss = (a.exp() / b.exp()).sum() + x[0, 1] * x.std()
        loss.backward()
        return loss.item(), x.grad.numpy()

    value, grad = run()
    with mg.debug():
        watched, watched_grad = run()
    assert value == watched
    np.testing.assert_array_equal(grad, watched_grad)


def test_an_overwritten_value_is_reported_with_the_line_that_needs_it():
    x = leaf([1.0, 2.0])
    with mg.debug():
        with scope("block"):
            line = this_line(+1)
            y = x.exp()
        with mg.no_grad():
            y[0] = 5.0
        with pytest.raises(GradientError) as caught:
            y.sum().backward()
    text = str(caught.value)
    assert text.startswith("block: exp ") and "overwritten" in text
    assert re.search(line, text)


def test_a_freed_graph_is_reported_with_its_line():
    x = leaf([1.0])
    with mg.debug():
        line = this_line(+1)
        y = x.exp()
        y.sum().backward()
    with pytest.raises(GradientError) as caught:
        (y * 2).sum().backward()
    assert "exp" in str(caught.value) and "freed" in str(caught.value)
    assert re.search(line, str(caught.value))


# What is kept for who draws the graph


def test_nothing_is_kept_when_nobody_watches():
    y = leaf([1.0, 2.0]).exp() * 2
    model = mg.nn.Linear(2, 2)
    out = model(mg.tensor(np.ones((1, 2), "float32")))
    assert y.node.note is None and out.node.note is None
    assert local.mode.tracers == ()


def test_watching_keeps_inputs_result_time_line_and_calls():
    class Net(mg.nn.Module):
        def __init__(self):
            self.layer = mg.nn.Linear(2, 2)

        def forward(self, x):
            return self.layer(x).exp()

    with tracing(Recorder()):
        out = Net()(mg.tensor(np.ones((1, 2), "float32")))
    seen = out.node.note
    np.testing.assert_array_equal(seen.outputs[0], out.numpy())
    np.testing.assert_array_equal(np.exp(seen.inputs[0]), out.numpy())
    assert seen.seconds > 0 and __file__ in seen.line
    assert [(call.name, call.kind) for call in seen.calls] == [("Net", "Net")]
    inner = out.node.parents[0].note.calls
    assert [call.kind for call in inner][:2] == ["Net", "Linear"] and inner[0] is seen.calls[0]


def test_two_calls_of_a_module_are_told_apart_and_functions_are_calls_too():
    layer = mg.nn.Linear(2, 2)
    with tracing(Recorder()), kernels.use("definitions"):
        first = layer(mg.tensor(np.ones((1, 2), "float32")))
        second = layer(first)
        normed = mg.nn.functional.layer_norm(second, (2,))
    assert first.node.note.calls[0] is not second.node.note.calls[0]
    assert normed.node.note.calls[-1].name == "layer_norm" and normed.node.note.calls[-1].kind == ""


def test_watching_does_not_stop_at_a_nan_and_debug_does_also_inside():
    with tracing(Recorder()):
        bad = leaf([-1.0]).log()
        assert np.isnan(bad.node.note.outputs[0]).all()
        with mg.debug(), pytest.raises(NonFiniteError):
            leaf([-1.0]).log()
    with mg.debug(), tracing(Recorder()), pytest.raises(NonFiniteError):
        leaf([-1.0]).log()


def test_what_is_kept_dies_with_the_graph_without_the_garbage_collector():
    gc.collect()
    gc.disable()
    try:
        with tracing(Recorder()):
            out = mg.nn.Linear(2, 2)(leaf(np.ones((1, 2)))) * 2
        node = weakref.ref(out.node)
        del out
        assert node() is None
    finally:
        gc.enable()


def test_what_needs_no_gradient_is_recorded_too():
    x, plain = leaf([1.0, 3.0]), mg.tensor([1.0, 2.0, 3.0, 4.0])
    recorder = Recorder()
    _ = plain * 2
    with tracing(recorder):
        _ = x > 2
        mg.split(plain, 2)
        with mg.no_grad():
            _ = x * 5
        y = x * 7  # needs one
    _ = plain * 3
    records = [record for record, node in recorder.records if node is None]
    assert [record.op.name for record in records] == ["greater", "_split", "multiply"]
    assert [o.tolist() for o in records[1].outputs] == [[1, 2], [3, 4]]
    np.testing.assert_array_equal(records[2].outputs[0], [5, 15])
    assert [node for _, node in recorder.records][-1] is y.node


def test_a_tracer_is_told_what_failed_and_the_outermost_function_comes_last():
    recorder = Recorder()
    with tracing(recorder), pytest.raises(mg.MinigradError) as caught:
        mg.nn.functional.layer_norm(leaf(np.ones((2, 3))), (4,))
    assert recorder.failure.op.name == "layer_norm" and recorder.failure.error is caught.value
    with tracing(recorder), pytest.raises(mg.MinigradError) as caught:
        leaf([1.0, 2.0]) + leaf([1.0, 2.0, 3.0])
    assert recorder.failure.op.name == "add" and recorder.failure.node is None


def test_a_tracer_is_told_how_each_gradient_came_about():
    class Pulls(Tracer):
        def __init__(self):
            self.seen = []

        def pulled(self, node, gradient, parts):
            self.seen.append((node.name, [(i, raw.shape, part.shape) for i, raw, part in parts]))

    tracer = Pulls()
    x, w = leaf(np.ones((2, 3))), leaf(np.ones(3))
    loss = (x * w).sum()
    with tracing(tracer):
        loss.backward()
    assert tracer.seen == [("sum", [(0, (2, 3), (2, 3))]), ("multiply", [(0, (2, 3), (2, 3)), (1, (2, 3), (3,))])]


def test_results_are_the_same_while_somebody_watches(device):
    def run():
        x = mg.tensor([[0.5, 1.0], [2.0, 3.0]], device=device, requires_grad=True)
        loss = mg.nn.functional.gelu(x @ x).sum() + mg.where(x > 1, x, 0.0).sum()
        loss.backward()
        return loss.item(), x.grad.numpy()

    value, grad = run()
    with tracing(Recorder()):
        watched, watched_grad = run()
    assert value == watched
    np.testing.assert_array_equal(grad, watched_grad)


def test_the_line_of_an_op_in_a_second_derivative_is_the_users():
    with mg.debug():
        x = leaf(2.0)
        line = this_line(+1)
        (slope,) = mg.autograd.grad(x**3, x, create_graph=True)
    assert re.search(line, slope.node.note.line)


def test_a_tracer_is_told_of_writes_in_place():
    x = leaf([1.0, 2.0]) * 1
    recorder = Recorder()
    with tracing(recorder):
        x[0] = 5.0
        x += 1
        b = mg.ones(2)
        b += 1
        b[0] = 3.0
    assert [record.op.name for record, _ in recorder.records] == ["setitem", "add", "add", "setitem"]
    assert [node is not None for _, node in recorder.records] == [True, True, False, False]
    assert __file__ in x.node.parents[0].note.line


@pytest.mark.parametrize("write", ["x[0] = np.nan", "x /= 0.0"])
def test_a_nan_that_is_written_is_found(write):
    x = mg.ones(2)
    with mg.debug(), pytest.raises(NonFiniteError, match="setitem|divide"):
        if write.startswith("x["):
            x[0] = np.nan
        else:
            x /= 0.0


def test_a_write_that_fails_is_told():
    recorder = Recorder()
    x = leaf([1.0, 2.0]) * 1
    with tracing(recorder), pytest.raises(mg.MinigradError) as caught:
        x[5] = 1.0
    assert recorder.failure.op.name == "setitem" and recorder.failure.error is caught.value
    with tracing(recorder), pytest.raises(mg.MinigradError):
        x += mg.ones(3)
    assert recorder.failure.op.name == "add"
    recorder.failure = None
