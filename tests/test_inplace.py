"""Writing in place: differentiable where it is recorded, and refused wherever a gradient would come out wrong."""

import operator

import numpy as np
import pytest
from support.samples import SAMPLES

import minigrad as mg
from minigrad.engine.graph import sweep
from minigrad.engine.op import OPS
from minigrad.engine.tensor import Tensor
from minigrad.engine.writes import writes
from minigrad.errors import GradientError, MinigradError

INDICES = {
    "int": 1,
    "negative": -1,
    "slice": slice(1, 3),
    "step": slice(None, None, -2),
    "ellipsis": (..., 1),
    "newaxis": (slice(None), None, 2),
    "pair": (2, 3),
    "all": slice(None),
    "empty slice": slice(3, 1),
    "list": [2, 0],
    "array": np.array([[0, 2], [1, 1]]),
    "repeated": [1, 1, 0],
    "two arrays": ([0, 2], [3, 1]),
    "array and slice": (slice(None), [0, 3]),
    "separated arrays": ([0, 2], slice(0, 1), [1, 1]),
    "mask": np.arange(12).reshape(3, 4) % 3 == 0,
    "row mask": np.array([True, False, True]),
    "mask and int": (np.array([True, False, True]), 2),
    "nothing": np.zeros((3, 4), bool),
    "tensor": mg.tensor([0, 2]),
    "mask tensor": mg.tensor([False, True, True]),
}
OPERATORS = {"+=": "add", "-=": "sub", "*=": "mul", "/=": "truediv", "**=": "pow", "%=": "mod", "//=": "floordiv"}


def leaf(*shape, seed=0):
    return mg.tensor(np.random.default_rng(seed).uniform(0.5, 2.0, shape), requires_grad=True)


def raw(index):
    return index.numpy() if isinstance(index, Tensor) else index


def expected_gradients(shape, index, value_shape, weights):
    """By counting: each place of the result holds either its old element or the last value written there."""
    owner = np.full(shape, -1)
    target = owner[index].shape
    owner[index] = np.arange(int(np.prod(target))).reshape(target)
    of_values = np.zeros(int(np.prod(target)))
    np.add.at(of_values, owner[owner >= 0], weights[owner >= 0])
    of_values = of_values.reshape(target)
    extra = of_values.ndim - len(value_shape)
    of_values = of_values.sum(axis=tuple(range(extra)))
    stretched = tuple(i for i, n in enumerate(value_shape) if n == 1 and of_values.shape[i] != 1)
    return np.where(owner >= 0, 0, weights), of_values.sum(axis=stretched, keepdims=True)


@pytest.mark.parametrize("kind", INDICES)
@pytest.mark.parametrize("form", ["whole", "row of ones", "number"])
def test_writing_is_differentiable_with_every_kind_of_index(kind, form):
    index = INDICES[kind]
    shape = (3, 4, 2) if kind == "separated arrays" else (3, 4)
    target = np.empty(shape)[raw(index)].shape
    value_shape = {"whole": target, "row of ones": (1,) * (len(target) > 0) + target[1:], "number": ()}[form]
    x, value, weights = leaf(*shape), leaf(*value_shape, seed=1), np.random.default_rng(2).normal(size=shape)
    y = x.clone()
    y[index] = value
    by_hand = x.numpy().copy()
    by_hand[raw(index)] = value.numpy()
    np.testing.assert_array_equal(y.numpy(), by_hand)
    (y * weights).sum().backward()
    of_x, of_value = expected_gradients(shape, raw(index), value_shape, weights)
    np.testing.assert_allclose(x.grad.numpy(), of_x, rtol=1e-12)
    np.testing.assert_allclose(value.grad.numpy(), of_value, rtol=1e-12, atol=1e-14)


def test_a_constant_that_receives_a_value_joins_the_graph():
    buffer, value = mg.zeros(4, dtype="float64"), leaf(2)
    buffer[1:3] = value
    assert buffer.requires_grad
    (buffer * mg.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    np.testing.assert_array_equal(value.grad.numpy(), [2, 3])


def test_writes_follow_one_another():
    x = leaf(3)
    y = x * 2
    for i in range(3):
        y[i] = y[i - 1].clone() * x[i]
    y.sum().backward()
    a, b, c = x.numpy()  # the sum is 2ac + 2abc + 2abc²
    expected = [2 * c + 2 * b * c + 2 * b * c * c, 2 * a * c + 2 * a * c * c, 2 * a + 2 * a * b + 4 * a * b * c]
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-12)


def test_writing_part_of_itself_uses_the_old_values():
    x = leaf(4)
    y = x * 1
    y[1:] = y[:-1]
    np.testing.assert_array_equal(y.numpy(), x.numpy()[[0, 0, 1, 2]])
    (y * np.arange(4.0)).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0 + 1, 2, 3, 0])


@pytest.mark.parametrize("symbol", OPERATORS)
@pytest.mark.parametrize("other", ["tensor", "row", "number", "array"])
def test_operators_in_place_equal_the_plain_ones(symbol, other):
    value = {"tensor": leaf(2, 3, seed=1), "row": leaf(3, seed=1), "number": 1.5, "array": np.full((2, 3), 1.25)}[other]
    x, twin = leaf(2, 3), leaf(2, 3)
    y = x * 3
    changed = getattr(operator, "i" + OPERATORS[symbol])(y, value)
    plain = getattr(operator, OPERATORS[symbol])(twin * 3, value)
    assert changed is y
    np.testing.assert_array_equal(y.numpy(), plain.numpy())
    (y * y).sum().backward()
    if not plain.requires_grad:
        assert symbol == "//="
        np.testing.assert_array_equal(x.grad.numpy(), np.zeros((2, 3)))
        return
    of_value = value.grad if isinstance(value, Tensor) else None
    if of_value is not None:
        value.grad = None
    (plain * plain).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), twin.grad.numpy(), rtol=1e-12)
    if of_value is not None:
        np.testing.assert_allclose(of_value.numpy(), value.grad.numpy(), rtol=1e-12)


def test_a_value_times_itself_and_a_matrix_product_work_in_place():
    x = leaf(3)
    y = x * 1
    y *= y
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.numpy(), rtol=1e-12)
    z = x.reshape(1, 3) * 1
    z @= mg.eye(3, dtype="float64") * 5
    z.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.numpy() + 5, rtol=1e-12)


def node_of(result):
    node = (result[0] if isinstance(result, tuple) else result).node
    return node.parents[0] if node.plan.output_index is not None else node


def recorded_call(name):
    """One recorded call of an op on its first differentiable sample: its arguments, which are results themselves, and its results."""
    sample = next((s for s in SAMPLES.get(name, ()) if s.gradient and s.leaves), None)
    if sample is None or not OPS[name].mask:
        return None
    inputs = [mg.tensor(np.asarray(a, "float64"), requires_grad=True) * 1 for a in sample.leaves]
    arguments = []

    def call(*args, **kwargs):
        arguments.extend(args[0] if OPS[name].signature.variadic else args)
        return OPS[name](*args, **kwargs)

    result = sample.call(call, inputs)
    results = result if isinstance(result, tuple) else (result,)
    return (arguments, results) if any(r.requires_grad for r in results) else None


def saved_tensors(name, arguments, results):
    """The Tensors whose memory the op keeps for its backward, by the name that its rules use."""
    op, found = OPS[name], []
    node = node_of(results)
    for saved, kept in zip(node.plan.names, node.saved):
        if kept is None:
            continue  # a kernel that computes it again
        if saved == "out":
            found += [("out", r) for r in results]
        elif saved in op.signature.inputs:
            some = arguments if op.signature.variadic else [arguments[op.signature.inputs.index(saved)]]
            found += [(saved, a) for a in some if isinstance(a, Tensor)]
    return found


WALKED = sorted(name for name in OPS if OPS[name].mask and recorded_call(name))


def test_the_walk_covers_the_registry():
    missing = {name for name in OPS if OPS[name].mask} - set(WALKED)
    assert missing <= {"_recompute", "_custom", "to_device"}, f"no sample for {missing}"


@pytest.mark.parametrize("name", WALKED)
def test_overwriting_a_saved_value_makes_the_backward_refuse_by_name(name):
    count = len(saved_tensors(name, *recorded_call(name)))
    for k in range(count):
        arguments, results = recorded_call(name)
        saved, victim = saved_tensors(name, arguments, results)[k]
        seeds = [(r, np.ones(r.shape)) for r in results if r.requires_grad]
        with mg.no_grad():
            victim[...] = 0
        for result, seed in seeds:
            with pytest.raises(GradientError, match=rf"{name}.*{saved}.*overwritten(.|\n)*clone"):
                result.backward(seed)


def unneeded_inputs(name, arguments, results):
    """The arguments whose memory no rule will look at."""
    needed = [t.data for _, t in saved_tensors(name, arguments, results)]
    return [
        t
        for t in arguments
        if isinstance(t, Tensor) and t.requires_grad and not any(np.shares_memory(t.data, s) for s in needed)
    ]


def test_a_quotient_may_be_overwritten_before_the_backward():
    a, b = leaf(3), leaf(3, seed=1)
    y = a / b
    y *= 2
    y.sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), 2 / b.numpy())
    np.testing.assert_allclose(b.grad.numpy(), -2 * a.numpy() / b.numpy() ** 2)


@pytest.mark.parametrize("name", [name for name in WALKED if unneeded_inputs(name, *recorded_call(name))])
def test_overwriting_what_no_rule_needs_leaves_the_gradients_alone(name):
    arguments, results = recorded_call(name)
    inputs = [t.node for t in arguments if isinstance(t, Tensor) and t.requires_grad]
    seeds = [(r, np.random.default_rng(0).normal(size=r.shape)) for r in results if r.requires_grad]
    wanted = gradients(inputs, seeds)
    with mg.no_grad():
        for t in unneeded_inputs(name, arguments, results):
            t[...] = 0
    for ours, theirs in zip(gradients(inputs, seeds), wanted):
        np.testing.assert_array_equal(ours, theirs)


def gradients(nodes, seeds):
    swept = sweep([(r.node, s) for r, s in seeds], targets=set(nodes), retain_graph=True)
    return [np.array(swept[n]) for n in nodes if n in swept]


def test_a_recorded_write_into_a_saved_value_is_refused_too():
    x = leaf(3)
    y = x * 1
    z = (y * y).sum()
    y[0] = 5.0
    with pytest.raises(GradientError, match="multiply.*overwritten"):
        z.backward()
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0, 1, 1])


def test_a_refused_backward_changes_nothing():
    x = leaf(3)
    y = x * 1
    first, second = (y.exp() * x).sum(), (y + x).sum()
    with mg.no_grad():
        x[0] = 7.0
    with pytest.raises(GradientError, match="overwritten"):
        first.backward()
    assert x.grad is None
    second.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 2, 2])


def test_writes_through_a_view_are_seen_by_the_whole():
    x = leaf(2, 3)
    y = x * 1
    z = (y * y).sum()
    with mg.no_grad():
        y[0][1] = 9.0
    with pytest.raises(GradientError, match="overwritten"):
        z.backward()


@pytest.mark.parametrize(
    "view",
    [
        lambda y: y[0],
        lambda y: y.reshape(6),
        lambda y: y.T,
        lambda y: y[:, 1:],
        lambda y: mg.split(y, 2)[1],
        lambda y: mg.unstack(y)[0],
    ],
)
def test_a_tensor_whose_view_was_written_with_a_gradient_refuses_to_be_used(view):
    x, value = leaf(2, 3), leaf(1, seed=1)
    y = x * 1
    part = view(y)
    part[...] = value
    part.sum().backward()
    assert value.grad.item() == part.size
    for use in (lambda: y * 2, lambda: y.sum(), lambda: mg.concatenate([y, y]), lambda: y[0] + 1, lambda: y.clone()):
        with pytest.raises(GradientError, match="clone"):
            use()


@pytest.mark.parametrize("view", [lambda y: y[0], lambda y: y.reshape(6), lambda y: y.T])
def test_a_view_taken_before_a_recorded_write_refuses_to_be_used(view):
    x, value = leaf(2, 3), leaf(2, 3, seed=1)
    y = x * 1
    part = view(y)
    y[...] = value
    with pytest.raises(GradientError, match="clone"):
        part.sum()
    view(y).sum().backward()
    assert value.grad.numpy().sum() == part.size


def test_a_stale_view_refuses_to_be_the_root():
    x = leaf(2)
    y = x * 1
    first = y[:1]
    y[0] = leaf(seed=1)
    with pytest.raises(GradientError, match="written to in place"):
        first.backward(np.ones(1))
    assert x.grad is None


def test_a_stale_view_refuses_to_be_written_from_or_into():
    x = leaf(4)
    y = x * 1
    stale = y[:2]
    y[0] = leaf(seed=1)
    with pytest.raises(GradientError):
        stale[0] = leaf(seed=2)
    other = leaf(2) * 1
    with pytest.raises(GradientError):
        other[...] = stale
    with pytest.raises(GradientError):
        other += stale


def test_a_constant_whose_view_received_a_gradient_refuses_to_be_used():
    buffer, value = mg.zeros(4, dtype="float64"), leaf(2)
    buffer[:2][...] = 1.0
    part = buffer[:2]
    part[...] = value
    with pytest.raises(GradientError, match="clone"):
        buffer.sum()


def test_detach_taken_after_a_recorded_write_is_a_constant_of_its_own():
    x = leaf(3)
    y = x * 1
    y[0] = leaf(seed=1)
    constant = y.detach()
    (constant * x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), constant.numpy())


def test_a_leaf_is_written_inside_no_grad_only():
    w = leaf(3)
    before = w.numpy().copy()
    for write in (
        lambda: operator.setitem(w, 0, 1.0),
        lambda: operator.iadd(w, 1),
        lambda: operator.setitem(w, slice(None), leaf(3, seed=1)),
    ):
        with pytest.raises(GradientError, match=r"leaf(.|\n)*no_grad"):
            write()
    np.testing.assert_array_equal(w.numpy(), before)
    with mg.no_grad():
        w -= 0.5
    np.testing.assert_array_equal(w.numpy(), before - 0.5)
    assert w.is_leaf and w.requires_grad


def test_an_optimiser_writes_between_steps():
    w = leaf(3)
    for _ in range(3):
        before = w.numpy().copy()
        w.grad = None
        (w * w).sum().backward()
        np.testing.assert_array_equal(w.grad.numpy(), 2 * before)
        with mg.no_grad():
            w -= 0.1 * w.grad
        np.testing.assert_array_equal(w.numpy(), before - 0.1 * (2 * before))


def test_numpys_out_argument_counts_as_a_write():
    x = leaf(3)
    y = (x * 1).detach()
    z = (x * y).sum()
    np.add(y, 1.0, out=y)
    with pytest.raises(GradientError, match="overwritten"):
        z.backward()


def test_arrays_beside_tensors_are_copied_and_may_change():
    x, array = leaf(3), np.array([1.0, 2.0, 3.0])
    z = (x * array).sum()
    array[:] = 0
    z.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1, 2, 3])


def test_index_arrays_are_copied_and_may_change():
    x, places = leaf(3), np.array([0, 2])
    z = x[places].sum()
    places[:] = 1
    z.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1, 0, 1])


def test_a_refused_write_leaves_data_and_graph_as_they_were():
    x = leaf(2, 3)
    y = x * 2
    before, node = y.numpy().copy(), y.node
    for write in (
        lambda: operator.setitem(y, 5, 1.0),
        lambda: operator.setitem(y, 0, np.ones(4)),
        lambda: operator.setitem(y, [0, 9], 1.0),
        lambda: operator.setitem(y, 0, "text"),
        lambda: operator.iadd(y, np.ones((2, 2, 3))),
        lambda: operator.iadd(y, np.ones(4)),
        lambda: operator.iadd(y, 1j),
    ):
        with pytest.raises(MinigradError):
            write()
        np.testing.assert_array_equal(y.numpy(), before)
        assert y.node is node
    (y * y).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 8 * x.numpy(), rtol=1e-12)


def test_read_only_memory_is_not_written():
    y = mg.broadcast_to(leaf(3) * 1, (2, 3))
    with pytest.raises(GradientError, match=r"read-only(.|\n)*clone"):
        y[0] = 1.0
    with pytest.raises(GradientError, match=r"read-only(.|\n)*clone"):
        y += 1.0


def test_a_slice_may_be_changed_by_an_operator():
    x = leaf(3)
    y = x * 2
    y[:2] += 1
    y[1:] *= x[1:]
    first, rest = x.numpy()[:1], x.numpy()[1:]
    y.sum().backward()
    expected = np.concatenate([np.full_like(first, 2.0), [4 * rest[0] + 1, 4 * rest[1]]])  # of 2x+1, (2x+1)x, 2x·x
    np.testing.assert_allclose(x.grad.numpy(), expected)


def test_a_slice_of_a_constant_may_take_a_value_in_the_graph():
    x, buffer = leaf(3), mg.zeros(3, dtype="float64")
    buffer[:2] += x[:2]
    (buffer * buffer).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [*(2 * x.numpy()[:2]), 0.0])


def test_a_view_of_a_leaf_is_refused_before_anything_is_written():
    x = leaf(3)
    before = x.numpy().copy()
    for view in (x[:2], x.reshape(3, 1), x.reshape(1, 3)[0].T):
        with pytest.raises(GradientError, match="leaf"):
            view += 1
        with pytest.raises(GradientError, match="leaf"):
            view[...] = 0
    np.testing.assert_array_equal(x.numpy(), before)


@pytest.mark.parametrize("index", [[0, 1], (slice(None), [0, 2]), (slice(None), [True, False, True]), (..., [1])])
def test_what_an_array_picks_from_a_leaf_is_a_copy_that_may_be_written_to(index):
    x = leaf(2, 3)
    before, wanted = x.numpy().copy(), np.zeros((2, 3))
    wanted[index] = 3
    picked = x[index]
    picked *= 3
    picked.sum().backward()
    np.testing.assert_array_equal(x.numpy(), before)
    np.testing.assert_array_equal(x.grad.numpy(), wanted)


def test_the_array_of_a_tensor_in_the_graph_cannot_be_written_to():
    x = leaf(3)
    with pytest.raises(ValueError, match="read-only"):
        (x * 2).numpy()[0] = 1
    mg.zeros(3).numpy()[0] = 1


def test_the_record_of_writes_dies_with_the_memory():
    entries, recorded = len(writes._by_owner), len(writes._recorded)
    x = leaf(3)
    kept = [x * i for i in range(20)]
    for y in kept:
        y[0] = 1.0
        with mg.no_grad():
            y[1] = 2.0
    assert len(writes._by_owner) == entries + 20 and len(writes._recorded) == recorded + 20
    del kept, y
    assert len(writes._by_owner) == entries and len(writes._recorded) == recorded


def floor_divided_then_its_view(w):
    x = w * 2
    view = x[0:1]
    x //= 1.0
    return (view * 3).sum()


def floor_divided_through_a_view(w):
    x = w * 2
    x[0:1] //= 1.0
    return (x * x).sum()


def floor_divided_with_what_it_was(w):
    x = w * 2
    before = x * w
    x //= w
    return (before + x * w).sum()


@pytest.mark.parametrize(
    "program", [floor_divided_then_its_view, floor_divided_through_a_view, floor_divided_with_what_it_was]
)
def test_a_write_without_a_derivative_is_known_to_the_views(program):
    """`//=` writes what is a constant for the graph: a view that is older than that must not pass a gradient on."""
    w = mg.tensor([1.55, 2.55], requires_grad=True)
    with mg.no_grad():
        plus, minus = (program(mg.tensor([1.55 + e, 2.55])).item() for e in (1e-3, -1e-3))
    try:
        program(w).backward()
    except GradientError as error:
        assert "in place" in str(error)
        return
    assert w.grad[0].item() == pytest.approx((plus - minus) / 2e-3, rel=1e-3)


def stale():
    """A tensor of values [30, 60] that was multiplied by 10 through a view, and a loss made of that view."""
    x = mg.tensor([1.0, 2.0], requires_grad=True) * 3
    view = x[:]
    view *= 10
    return x, (view * view).sum()


@pytest.mark.parametrize(
    "use",
    [
        lambda x, loss: mg.autograd.grad(loss, [x]),
        lambda x, loss: mg.autograd.grad(loss, x, create_graph=True),
        lambda x, loss: x.retain_grad(),
        lambda x, loss: x.register_hook(lambda g: None),
        lambda x, loss: mg.autograd.grad([loss, x], [loss], [mg.ones(()), mg.ones(2)]),
    ],
)
def test_a_stale_tensor_has_no_gradient_to_ask_for(use):
    with pytest.raises(GradientError, match="written to in place"):
        use(*stale())


def test_a_constant_that_the_graph_wrote_to_is_no_output_without_a_gradient():
    w, buffer = leaf(3), mg.zeros(3, dtype="float64")
    written = buffer[:]
    written[:] = w * 2
    with pytest.raises(GradientError, match="written to in place"):
        mg.autograd.grad([buffer, w * 1], [w], [np.ones(3), np.ones(3)])


def test_a_retained_gradient_of_values_that_a_view_has_replaced_is_refused():
    x = (leaf(2) * 3).retain_grad()
    view = x[:]
    view *= 10
    with pytest.raises(GradientError, match="retains its gradient(.|\n)*written to in place"):
        (view * view).sum().backward()
    assert x.grad is None


def test_a_retained_gradient_from_before_a_write_stays_and_one_that_nobody_can_read_stops_nothing():
    w = leaf(2)
    x = (w * 3).retain_grad()
    (x * x).sum().backward(retain_graph=True)
    before = x.grad.numpy().copy()
    view = x[:]
    view *= 10
    np.testing.assert_array_equal(x.grad.numpy(), before)
    (gradient,) = mg.autograd.grad(view.sum(), [w], retain_graph=True)
    np.testing.assert_array_equal(gradient.numpy(), [30.0, 30.0])
    w.grad = None
    del x
    view.sum().backward()
    np.testing.assert_array_equal(w.grad.numpy(), [30.0, 30.0])


def test_a_leaf_that_was_written_through_a_constant_of_its_memory_stays_a_leaf():
    t, u = leaf(3), leaf(2, seed=1)
    view = t.detach()[0:2]
    view += u
    with pytest.raises(GradientError, match="leaf"):
        t[0:2] = view
    assert t.is_leaf and t.requires_grad
    shown = leaf(3)
    whole = shown[...]
    part = whole.detach()[0:2]
    part += u
    with pytest.raises(GradientError, match="leaf"):
        whole[0:2] = part


def test_a_cube_in_place_has_the_bits_of_the_cube():
    x = mg.tensor(np.random.default_rng(0).standard_normal(1000).astype("float32"))
    y = x.clone()
    y **= 3
    np.testing.assert_array_equal(y.numpy(), (x**3).numpy())
