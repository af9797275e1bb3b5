"""Two names for one memory: whatever is written through either, a gradient is right or refused, never silently wrong."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.samples import SAMPLES

import minigrad as mg
from minigrad import kernels
from minigrad.engine.op import OPS
from minigrad.errors import GradientError, MinigradError

F = mg.nn.functional
Program = Callable[..., mg.Tensor]


def leaf(*shape: int, seed: int = 0, dtype: str = "float64") -> mg.Tensor:
    values = np.random.default_rng(seed).uniform(0.5, 2.0, shape)
    return mg.tensor(values.astype(dtype), requires_grad=True)


def by_differences(program: Program, arrays: list[np.ndarray], step: float = 1e-6) -> list[np.ndarray]:
    """The gradient of a program by central differences. It runs without a graph, so that nothing is refused."""

    def value(changed: list[np.ndarray]) -> float:
        with mg.no_grad():
            return program(*[mg.tensor(a) for a in changed]).item()

    gradients = []
    for i, array in enumerate(arrays):
        gradient = np.zeros_like(array)
        for place in np.ndindex(array.shape):
            ends = []
            for sign in (1, -1):
                changed = [a.copy() for a in arrays]
                changed[i][place] += sign * step
                ends.append(value(changed))
            gradient[place] = (ends[0] - ends[1]) / (2 * step)
        gradients.append(gradient)
    return gradients


def assert_refused(error: GradientError) -> None:
    """That a tensor has no graph is no refusal: the graph was lost silently."""
    assert "no graph" not in str(error), error


def assert_right_or_refused(program: Program, *leaves: mg.Tensor) -> bool:
    """The gradients of a program are those found by differences, or it is refused; says which."""
    arrays = [x.numpy().copy() for x in leaves]
    try:
        program(*leaves).backward()
    except GradientError as error:
        assert_refused(error)
        return False
    for x, expected in zip(leaves, by_differences(program, arrays)):
        got = np.zeros_like(expected) if x.grad is None else x.grad.numpy()
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-7)
    return True


# Programs of a tensor `x` (3, 3) and a value `w` (3,). Each may be refused; none may have a wrong gradient.


def written(y: mg.Tensor, index: Any, value: Any) -> mg.Tensor:
    y[index] = value
    return y


def base_after_view(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    y = x * 1
    written(y[1:], ..., w)
    return (y * y).sum()


def view_after_base(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    y = x * 1
    view = y[0]
    y[:] = w
    view *= 10
    return y.sum() + (view * view).sum()


def only_base_after_old_view(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    y = x * 1
    view = y[0]
    y[:] = w
    view *= 10
    return (y * y).sum()


def only_old_view_after_base(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    y = x * 1
    view = y[0]
    y[:] = w
    view *= 10
    return (view * view).sum()


def constant_base(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    buffer = mg.zeros(3, 3, dtype="float64")
    view = buffer[0]
    view[...] = w
    return (buffer * x).sum()


def constant_base_under_an_old_view(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    buffer = mg.zeros(3, 3, dtype="float64")
    view = buffer[0]
    buffer[...] = x
    view *= w
    return (buffer * buffer).sum()


def constant_base_scaled_through_an_old_view(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    buffer = mg.zeros(3, dtype="float64")
    view = buffer[:2]
    buffer[:] = w
    view *= 10
    return (buffer * x).sum()


def constant_base_set_through_an_old_view(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    buffer = mg.zeros(3, dtype="float64")
    view = buffer[:2]
    buffer[:] = w
    view[0] = 10.0
    return (buffer * x).sum()


def siblings(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    y = x * 1
    first, second = y[:2], y[1:]
    first[...] = w
    second *= 3
    return (first * first).sum() + (second * second).sum()


def view_of_a_view(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    y = x * 1
    inner = y[:2][0]
    y[:2] = w
    inner += 1
    return (y * y).sum()


def split_pieces(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    y = x * 1
    first, second = mg.split(y, [1])
    first[...] = w
    return (first * first).sum() + (second * second).sum()


def rows_in_turn(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    y = x * 1
    for row in y:
        row *= w
    return (y * y).sum()


def transposed(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    y = x * 1
    y.T[0] *= w
    return (y * y).sum()


def plus_its_own_transpose(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    y = x * w
    y += y.T
    return (y * y).sum()


def times_its_own_row(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    y = x * w
    y *= y[0]
    return (y * y).sum()


def shifted_into_itself(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    y = x * w
    y[1:] = y[:-1]
    return (y * y * y).sum()


def reversed_into_itself(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    y = x * w
    y[...] = y[::-1]
    return (y * x).sum()


def rows_exchanged(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    y = x * w
    y[[0, 1]] = y[[1, 0]]
    return (y * x).sum()


def itself_into_itself(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    y = x * w
    y[...] = y
    return (y * y).sum()


def two_views_in_turn(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    y = x * 1
    y[0] += w
    y[1:] *= w
    y[0] *= 2
    return (y * y).sum()


def used_before_and_after(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    y = x * 1
    before = y + 1
    y[0] = w
    return (before * y).sum()


def spread_before_the_write(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    y = w * 1
    wide = mg.broadcast_to(y, (3, 3))
    z = wide * wide * x
    y *= 2
    return z.sum() + y.sum()


def the_value_is_written_afterwards(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    value, y = w * 1, x * 1
    y[0] = value
    value *= 5
    return (y * y).sum() + value.sum()


def the_operand_is_written_afterwards(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    value, y = w * 1, x * 1
    y *= value
    value *= 5
    return (y * y).sum() + value.sum()


def flipped(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    y = x * 1
    turned = mg.flip(y, 0)
    turned[0] = w
    return (y * y).sum() + (turned * x).sum()


def einsum_view(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    y = x * 1
    turned = mg.einsum("ij->ji", y)
    turned *= w
    return (y * y).sum()


def reshaped_through_a_copy(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    y = x * 1
    flat = y.T.reshape(9)
    flat[:3] = w
    return (flat * flat).sum() + (y * y).sum()


def elements(x: mg.Tensor, w: mg.Tensor) -> mg.Tensor:
    y = w * 1
    first = y[0]
    y[0] = y[1] * 2
    return (first * y).sum() + x.sum()


PROGRAMS = [
    base_after_view, view_after_base, only_base_after_old_view, only_old_view_after_base, constant_base,
    constant_base_under_an_old_view, constant_base_scaled_through_an_old_view, constant_base_set_through_an_old_view,
    siblings, view_of_a_view, split_pieces, rows_in_turn, transposed, plus_its_own_transpose,
    times_its_own_row, shifted_into_itself, reversed_into_itself, rows_exchanged, itself_into_itself, two_views_in_turn,
    used_before_and_after, spread_before_the_write, the_value_is_written_afterwards, the_operand_is_written_afterwards, flipped,
    einsum_view, reshaped_through_a_copy, elements,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_program_that_writes_through_aliases_is_right_or_refused(program: Program) -> None:
    assert_right_or_refused(program, leaf(3, 3), leaf(3, seed=1))


USEFUL = [
    plus_its_own_transpose, shifted_into_itself, rows_exchanged, itself_into_itself, two_views_in_turn, used_before_and_after,
]  # fmt: skip


@pytest.mark.parametrize("program", USEFUL, ids=lambda p: p.__name__)
def test_what_a_user_may_well_write_is_right_and_not_refused(program: Program) -> None:
    assert assert_right_or_refused(program, leaf(3, 3), leaf(3, seed=1))


# A tensor without axes.

SELF_WRITES: dict[str, Callable[[mg.Tensor], None]] = {
    "x[()] = x": lambda y: y.__setitem__((), y),
    "x[...] = x": lambda y: y.__setitem__(..., y),
    "x[()] = x * 2": lambda y: y.__setitem__((), y * 2),
    "x[...] = 3": lambda y: y.__setitem__(..., 3.0),
    "x[None] = x": lambda y: y.__setitem__(None, y),
    "x *= x": lambda y: y.__imul__(y),
    "x[...] *= x": lambda y: y.__setitem__(..., y[...].__imul__(y)),
    "x += x.reshape(1)[0]": lambda y: y.__iadd__(y.reshape(1)[0]),
}


@pytest.mark.parametrize("write", SELF_WRITES.values(), ids=SELF_WRITES.keys())
@pytest.mark.parametrize("shape", [(), (1,)], ids=["0-d", "1 element"])
def test_a_tensor_of_one_element_may_be_written_to_itself(write: Callable[[mg.Tensor], None], shape: tuple) -> None:
    def program(x: mg.Tensor) -> mg.Tensor:
        y = x * 3
        write(y)
        return (y * y).sum()

    assert_right_or_refused(program, leaf(*shape))


# Every op of the registry, after its input's memory was written through another tensor.


def calls_of(name: str) -> list[Any]:
    return [s for s in SAMPLES.get(name, ()) if s.gradient and s.leaves][:1]


WALKED = sorted(name for name in OPS if OPS[name].mask and calls_of(name))


def results_of(name: str, inputs: list[mg.Tensor]) -> list[mg.Tensor]:
    result = calls_of(name)[0].call(OPS[name], inputs)
    return [r for r in (result if isinstance(result, tuple) else (result,)) if r.requires_grad]


def total(results: list[mg.Tensor]) -> mg.Tensor:
    weights = np.random.default_rng(0)
    return sum((r * mg.tensor(weights.uniform(0.5, 2, r.shape))).sum() for r in results)


@pytest.mark.parametrize("name", WALKED)
@pytest.mark.parametrize("base", ["in the graph", "a constant"])
def test_an_op_on_memory_that_a_view_has_written_is_refused_or_right(name: str, base: str) -> None:
    arrays = [np.asarray(a, "float64") for a in calls_of(name)[0].leaves]
    right = [mg.tensor(a, requires_grad=True) for a in arrays]
    total(results_of(name, right)).backward()
    values = [mg.tensor(a, requires_grad=True) for a in arrays]
    inputs = []
    for array, value in zip(arrays, values):
        memory = mg.tensor(np.ones_like(array), requires_grad=base == "in the graph")
        memory = memory * 1 if base == "in the graph" else memory
        written(memory[...], ..., value)
        inputs.append(memory)
    try:
        total(results_of(name, inputs)).backward()
    except GradientError as error:
        assert_refused(error)
        return
    for value, expected in zip(values, right):
        np.testing.assert_allclose(
            0 if value.grad is None else value.grad.numpy(), 0 if expected.grad is None else expected.grad.numpy()
        )


@pytest.mark.parametrize("name", WALKED)
@pytest.mark.parametrize("create_graph", [False, True], ids=["backward", "create_graph"])
def test_a_hook_that_overwrites_an_input_or_output_is_refused_or_has_no_effect(name: str, create_graph: bool) -> None:
    def swept(overwritten: int | None) -> list[np.ndarray]:
        leaves = [mg.tensor(np.asarray(a, "float64"), requires_grad=True) for a in calls_of(name)[0].leaves]
        inputs = [x * 1 for x in leaves]
        results = results_of(name, inputs)
        later = [r * 1 for r in results]
        if overwritten is not None:
            victim = [*inputs, *results][overwritten]

            def hook(gradient: mg.Tensor) -> None:
                with mg.no_grad():
                    victim[...] = 0.25

            for r in later:
                r.register_hook(hook)
        grads = mg.autograd.grad(total(later), leaves, create_graph=create_graph, allow_unused=True)
        return [np.zeros(()) if g is None else g.numpy() for g in grads]

    expected = swept(None)
    count = len(calls_of(name)[0].leaves)
    for k in range(count + 1):
        try:
            found = swept(k)
        except MinigradError as error:
            assert isinstance(error, GradientError) or "read-only" in str(error), error
            continue
        for a, b in zip(found, expected):
            np.testing.assert_allclose(a, b)


# Fused operations, by each kind of kernel.

FUSED: dict[str, tuple[Callable[..., mg.Tensor], list[tuple[int, ...]]]] = {
    "softmax": (lambda x: F.softmax(x, -1), [(4, 6)]),
    "log_softmax": (lambda x: F.log_softmax(x, -1), [(4, 6)]),
    "gelu": (F.gelu, [(4, 6)]),
    "gelu by tanh": (lambda x: F.gelu(x, "tanh"), [(4, 6)]),
    "silu": (F.silu, [(4, 6)]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, 6, w, b), [(4, 6), (6,), (6,)]),
    "rms_norm": (lambda x, w: F.rms_norm(x, 6, w), [(4, 6), (6,)]),
    "linear": (F.linear, [(4, 6), (5, 6), (5,)]),
    "linear_gelu": (F.linear_gelu, [(4, 6), (5, 6), (5,)]),
    "swiglu": (kernels.swiglu, [(4, 6)]),
    "dropout": (lambda x: F.dropout(x, 0.5), [(4, 6)]),
    "cross_entropy": (lambda x: F.cross_entropy(x, mg.tensor([0, 5, 2, 1])), [(4, 6)]),
    "embedding": (lambda x: F.embedding(mg.tensor([[0, 3], [1, 1]]), x), [(4, 6)]),
    "attention": (F.scaled_dot_product_attention, [(2, 4, 6), (2, 4, 6), (2, 4, 6)]),
    "causal attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [(2, 4, 6), (2, 4, 6), (2, 4, 6)],
    ),
    "matmul of stacks": (mg.matmul, [(2, 4, 6), (2, 6, 4)]),
    "+=": (lambda x, y: (x * 1).__iadd__(y), [(4, 6), (4, 6)]),
    "*=": (lambda x, y: (x * 1).__imul__(y), [(4, 6), (4, 6)]),
    "setitem": (lambda x, y: written(x * 1, slice(None), y), [(4, 6), (4, 6)]),
    "concatenate": (lambda x, y: mg.concatenate([x, y]), [(4, 6), (4, 6)]),
}
CASES = [(name, i) for name, (_, shapes) in FUSED.items() for i in range(len(shapes))]


@pytest.fixture(params=["numpy", "numba", "definitions"])
def kernel(request: pytest.FixtureRequest) -> Any:
    if request.param == "numba":
        pytest.importorskip("numba", reason="numba is not installed")
    with kernels.use(request.param):
        yield request.param


def scored(y: mg.Tensor) -> mg.Tensor:
    return (y * mg.tensor(np.random.default_rng(3).uniform(0.5, 2, y.shape).astype("float32"))).sum()


def fused_inputs(name: str) -> list[mg.Tensor]:
    return [leaf(*shape, seed=i, dtype="float32") for i, shape in enumerate(FUSED[name][1])]


def gradient_of(name: str) -> list[np.ndarray]:
    mg.manual_seed(0)
    inputs = fused_inputs(name)
    scored(FUSED[name][0](*[x * 1 for x in inputs])).backward()
    return [x.grad.numpy() for x in inputs]


@pytest.mark.parametrize(("name", "which"), CASES)
@pytest.mark.parametrize("base", ["in the graph", "a constant"])
def test_a_fused_op_on_memory_that_a_view_has_written_is_refused_or_right(
    name: str, which: int, base: str, kernel: str
) -> None:
    expected = gradient_of(name)
    mg.manual_seed(0)
    values = fused_inputs(name)
    inputs = [x * 1 for x in values]
    memory = mg.ones(*values[which].shape, dtype="float32")
    memory = memory.requires_grad_() * 1 if base == "in the graph" else memory
    written(memory[...], ..., inputs[which])
    inputs[which] = memory
    try:
        scored(FUSED[name][0](*inputs)).backward()
    except GradientError as error:
        assert_refused(error)
        return
    for x, right in zip(values, expected):
        np.testing.assert_allclose(x.grad.numpy(), right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "which"), CASES)
@pytest.mark.parametrize("how", ["no_grad", "detach", "graph", "hook"])
def test_a_write_into_what_a_fused_op_was_given_is_refused_or_without_effect(
    name: str, which: int, how: str, kernel: str
) -> None:
    expected = gradient_of(name)
    mg.manual_seed(0)
    values = fused_inputs(name)
    inputs = [x * 1 for x in values]
    y = FUSED[name][0](*inputs)
    overwrite(inputs[which], y, how)
    try:
        scored(y).backward()
    except GradientError as error:
        assert_refused(error)
        return
    for x, right in zip(values, expected):
        np.testing.assert_allclose(x.grad.numpy(), right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [n for n in FUSED if n not in ("+=", "*=", "setitem", "cross_entropy")])
def test_a_write_into_what_a_fused_op_gave_is_refused_or_without_effect(name: str, kernel: str) -> None:
    expected = gradient_of(name)
    mg.manual_seed(0)
    values = fused_inputs(name)
    y = FUSED[name][0](*[x * 1 for x in values])
    loss = scored(y + 0)
    with mg.no_grad():
        y *= 3
    try:
        loss.backward()
    except GradientError as error:
        assert_refused(error)
        return
    for x, right in zip(values, expected):
        np.testing.assert_allclose(x.grad.numpy(), right, rtol=1e-4, atol=1e-5)


def overwrite(victim: mg.Tensor, later: mg.Tensor, how: str) -> None:
    """Write 0.25 into a tensor, now or in a hook of a tensor that was made later."""
    if how == "no_grad":
        with mg.no_grad():
            victim[...] = 0.25
    elif how == "detach":
        victim.detach()[...] = 0.25
    elif how == "graph":
        victim[...] = 0.25
    else:
        later.register_hook(lambda g: overwrite(victim, later, "no_grad"))


# Whole numbers and masks that an op keeps.


def labels_case(x: mg.Tensor, k: mg.Tensor) -> mg.Tensor:
    return F.cross_entropy(x, k)


KEPT: dict[str, tuple[Callable[[mg.Tensor, mg.Tensor], mg.Tensor], np.ndarray]] = {
    "labels": (labels_case, np.array([0, 2, 1])),
    "rows of an embedding": (lambda x, k: F.embedding(k, x), np.array([0, 2, 1])),
    "index": (lambda x, k: x[k], np.array([0, 2, 1])),
    "take_along_axis": (lambda x, k: mg.take_along_axis(x, k[:, None], 1), np.array([0, 2, 1])),
    "condition": (lambda x, k: mg.where(k, x * x, x), np.array([True, False, True])),
    "mask": (lambda x, k: mg.masked_fill(x * x, k, 0.0), np.array([True, False, True])),
    "attention mask": (
        lambda x, k: F.scaled_dot_product_attention(x, x, x, mask=k),
        np.array([[True, False, True]] * 3),
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_write_into_whole_numbers_or_masks_that_are_kept_is_refused_or_without_effect(name: str, kernel: str) -> None:
    function, kept = KEPT[name]

    def gradient(write: bool) -> np.ndarray:
        x, k = leaf(3, 3), mg.tensor(kept)
        y = function(x, k)
        if write:
            k[...] = kept.ravel()[0]
        (y * y).sum().backward()
        return x.grad.numpy()

    expected = gradient(False)
    try:
        found = gradient(True)
    except GradientError as error:
        assert_refused(error)
        return
    np.testing.assert_allclose(found, expected)


# Optimisers move parameters into memory of their own.

OPTIMIZERS = {
    "SGD": lambda p: mg.optim.SGD(p, lr=0.1),
    "momentum": lambda p: mg.optim.SGD(p, lr=0.1, momentum=0.9),
    "Adam": lambda p: mg.optim.Adam(p, lr=0.1),
}


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())
def test_a_step_between_forward_and_backward_is_refused(make: Any) -> None:
    model = mg.nn.Linear(3, 2)
    optimizer = make(model.parameters())
    x = mg.ones(4, 3)
    for _ in range(2):
        model(x).square().sum().backward()
        waiting = (model(x).square() * model.weight.sum()).sum()
        optimizer.step()
        with pytest.raises(GradientError, match="overwritten"):
            waiting.backward()
        optimizer.zero_grad()


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())
@pytest.mark.parametrize("when", ["before the optimiser", "before the first step", "after a step"])
def test_a_write_through_an_alias_of_a_parameter_is_seen(make: Any, when: str) -> None:
    weight = mg.nn.Parameter(np.ones((3, 2), "float32"))
    other = mg.nn.Parameter(np.ones(5, "float32"))
    alias = weight.detach() if when == "before the optimiser" else None
    optimizer = make([weight, other])
    alias = weight.detach() if when == "before the first step" else alias
    (weight.square().sum() + other.sum()).backward()
    optimizer.step()
    alias = weight.detach() if when == "after a step" else alias
    np.testing.assert_array_equal(alias.numpy(), weight.numpy())
    waiting = weight.square().sum()
    alias[0] = 7.0
    np.testing.assert_array_equal(weight.numpy()[0], [7.0, 7.0])
    with pytest.raises(GradientError, match="overwritten"):
        waiting.backward()


def test_loading_a_state_between_forward_and_backward_is_refused() -> None:
    model = mg.nn.Linear(3, 2)
    loss = (model(mg.ones(4, 3)) * model.weight.sum()).sum()
    model.load_state_dict({name: mg.zeros(*p.shape) for name, p in model.named_parameters()})
    with pytest.raises(GradientError, match="overwritten"):
        loss.backward()


# Writes by other means.


def test_a_write_in_another_thread_is_seen() -> None:
    x = leaf(3)
    y = x * 1
    loss = (y * y).sum()

    def work() -> None:
        with mg.no_grad():
            y[0] = 9.0

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    with pytest.raises(GradientError, match="overwritten"):
        loss.backward()


def test_a_recorded_write_in_another_thread_is_seen() -> None:
    x, w = leaf(3), leaf(3, seed=1)
    y = x * 1
    thread = threading.Thread(target=lambda: written(y[...], ..., w))
    thread.start()
    thread.join()
    with pytest.raises(GradientError):
        F.softmax(y, -1).sum().backward()


@pytest.mark.parametrize("taken", ["no_grad", "detach"])
def test_a_write_through_a_constant_alias_changes_values_and_not_the_graph(taken: str) -> None:
    x = leaf(3)
    y = x * 1
    if taken == "detach":
        alias = y.detach()[:2]
    else:
        with mg.no_grad():
            alias = y[:2]
    waiting = (y * y).sum()
    alias *= 2
    np.testing.assert_array_equal(y.numpy(), x.numpy() * [2, 2, 1])
    with pytest.raises(GradientError, match="overwritten"):
        waiting.backward()
    (y * y).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * y.numpy())


@pytest.mark.parametrize("taken", ["no_grad", "detach"])
def test_a_constant_alias_that_gets_a_gradient_makes_the_whole_refuse(taken: str) -> None:
    y = leaf(3) * 1
    if taken == "detach":
        alias = y.detach()[:2]
    else:
        with mg.no_grad():
            alias = y[:2]
    alias *= leaf(seed=1)
    with pytest.raises(GradientError, match="clone"):
        y.sum()


def test_recompute_refuses_what_a_hook_overwrote() -> None:
    y = leaf(3) * 1
    z = mg.recompute(lambda v: v.exp() * v)(y) * 1
    z.register_hook(lambda g: overwrite(y, z, "no_grad"))
    with pytest.raises(GradientError, match="overwritten"):
        z.sum().backward()


def test_out_of_a_ufunc_is_a_write() -> None:
    x = leaf(3)
    constant = mg.ones(3, dtype="float64")
    loss = (x * constant).sum()
    np.multiply(constant[:2], 5.0, out=constant[:2])
    with pytest.raises(GradientError, match="overwritten"):
        loss.backward()


def test_out_of_a_ufunc_into_the_graph_is_refused_or_right() -> None:
    def program(x: mg.Tensor) -> mg.Tensor:
        y = x * 2
        np.multiply(y, y, out=y)
        return (y * x).sum()

    x = leaf(3)
    with np.errstate(all="ignore"):
        try:
            assert_right_or_refused(program, x)
        except MinigradError:
            assert x.grad is None


def test_the_array_of_a_tensor_in_the_graph_is_read_only() -> None:
    x = leaf(3)
    for tensor in (x, x * 2, (x * 2)[1:], F.softmax(x, -1)):
        with pytest.raises(ValueError, match="read-only"):
            tensor.numpy()[...] = 0


VIEWS: dict[str, Callable[[mg.Tensor], mg.Tensor]] = {
    "slice": lambda x: x[1:],
    "row": lambda x: x[0],
    "new axis": lambda x: x[None],
    "everything": lambda x: x[...],
    "reshape": lambda x: x.reshape(9),
    "ravel": mg.ravel,
    "flatten": mg.flatten,
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "moveaxis": lambda x: mg.moveaxis(x, 0, 1),
    "permute_dims": lambda x: mg.permute_dims(x, (1, 0)),
    "expand_dims": lambda x: mg.expand_dims(x, 0),
    "squeeze": lambda x: mg.squeeze(x[None], 0),
    "flip": lambda x: mg.flip(x, 0),
    "split": lambda x: mg.split(x, 3)[1],
    "unstack": lambda x: mg.unstack(x)[1],
    "take": lambda x: mg.take(x, 1, 0),
    "einsum": lambda x: mg.einsum("ij->ji", x),
    "dropout of nothing": lambda x: F.dropout(x, 0.0),
    "to": lambda x: x.to("cpu"),
    "iteration": lambda x: next(iter(x)),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
def test_a_view_of_a_leaf_is_not_written_to_while_operations_are_recorded(
    view: Callable[[mg.Tensor], mg.Tensor],
) -> None:
    x = leaf(3, 3)
    before = x.numpy().copy()
    for write in (lambda v: v.__imul__(2.0), lambda v: v.__setitem__(..., 0.0), lambda v: v.__iadd__(leaf(seed=1))):
        with pytest.raises(GradientError, match="leaf"):
            write(view(x))
    np.testing.assert_array_equal(x.numpy(), before)


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
def test_a_write_through_a_view_without_recording_reaches_the_whole_and_is_seen(
    view: Callable[[mg.Tensor], mg.Tensor],
) -> None:
    x = leaf(3, 3)
    loss = (x * x).sum()
    with mg.no_grad():
        view(x)[...] = 7.0
    assert (x.numpy() == 7.0).any()
    with pytest.raises(GradientError, match="overwritten"):
        loss.backward()


COPIES: dict[str, Callable[[mg.Tensor], mg.Tensor]] = {
    "clone": lambda x: x.clone(),
    "astype": lambda x: x.astype("float64"),
    "+x": lambda x: +x,
    "index array": lambda x: x[[0, 1, 2]],
    "mask": lambda x: x[x > -100],
    "tile by 1": lambda x: mg.tile(x, 1),
    "tile of one row": lambda x: mg.tile(x[:1], (2, 1)),
    "tile of a broadcast row": lambda x: mg.tile(mg.broadcast_to(x[0], (2, 3)), (2, 1)),
    "repeat of a broadcast row": lambda x: mg.repeat(mg.broadcast_to(x[0], (2, 3)), 2, 0),
    "tile": lambda x: mg.tile(x, (2, 2)),
    "repeat": lambda x: mg.repeat(x, 2, 1),
    "repeat by 1": lambda x: mg.repeat(x, 1, 0),
    "repeat of one row": lambda x: mg.repeat(x[:1], 2, 0),
    "concatenate": lambda x: mg.concatenate([x]),
    "roll by 0": lambda x: mg.roll(x, 0, 0),
    "pad by 0": lambda x: mg.pad(x, 0),
    "sum over nothing": lambda x: mg.sum(x[None], 0),
    "max of one": lambda x: mg.max(x[None], 0),
    "cumsum of one": lambda x: mg.cumsum(x[None], 0),
    "sort of one": lambda x: mg.sort(x[None], 0),
    "broadcast": lambda x: mg.maximum(x, -100.0),
    "clip": lambda x: mg.clip(x),
    "tril": lambda x: mg.tril(x, 5),
    "round": lambda x: mg.round(x, 12),
}


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES.keys())
def test_what_is_no_view_has_memory_of_its_own(copy: Callable[[mg.Tensor], mg.Tensor]) -> None:
    x = leaf(3, 3)
    y = copy(x)
    values = y.numpy().copy()
    with mg.no_grad():
        x[...] = 50.0
    np.testing.assert_array_equal(y.numpy(), values)
    y += 1.0
    np.testing.assert_array_equal(x.numpy(), np.full((3, 3), 50.0))


# Higher derivatives, and backward more than once.


def second(
    y_of: Callable[[mg.Tensor], mg.Tensor], disturb: Callable[[mg.Tensor, mg.Tensor], None] | None
) -> np.ndarray:
    x = leaf(3)
    y = y_of(x)
    (first,) = mg.autograd.grad((y**3).sum(), x, create_graph=True)
    factor = first.sin()
    if disturb is not None:
        disturb(y, first)
    (result,) = mg.autograd.grad(factor.sum(), x)
    return result.numpy()


DISTURBED: dict[str, Callable[[mg.Tensor, mg.Tensor], None]] = {
    "the value, unrecorded": lambda y, g: mg.no_grad()(lambda: y.__imul__(2.0))(),
    "the value": lambda y, g: y.__setitem__(0, 5.0),
    "the gradient, unrecorded": lambda y, g: mg.no_grad()(lambda: g.__imul__(2.0))(),
    "the gradient": lambda y, g: g.__setitem__(0, 5.0),
    "the detached gradient": lambda y, g: g.detach().__setitem__(0, 5.0),
}
FUNCTIONS = {
    "exp": lambda x: x.exp(),
    "softmax": lambda x: F.softmax(x * 1, -1),
    "layer_norm": lambda x: F.layer_norm(x * 1, 3),
    "product": lambda x: x * x,
}


@pytest.mark.parametrize("disturb", DISTURBED.values(), ids=DISTURBED.keys())
@pytest.mark.parametrize("y_of", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_a_write_before_the_second_derivative_is_refused_or_without_effect(y_of: Any, disturb: Any) -> None:
    expected = second(y_of, None)
    try:
        found = second(y_of, disturb)
    except GradientError as error:
        assert_refused(error)
        return
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("y_of", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_a_write_between_two_backwards_is_refused_or_without_effect(y_of: Any) -> None:
    x = leaf(3)
    y = y_of(x)
    loss = (y * y).sum()
    loss.backward(retain_graph=True)
    once = x.grad.numpy().copy()
    with mg.no_grad():
        y[0] = 7.0
    with pytest.raises(GradientError, match="overwritten"):
        loss.backward()
    np.testing.assert_array_equal(x.grad.numpy(), once)


def test_a_retained_gradient_is_that_of_the_tensor_after_a_write() -> None:
    x = leaf(3)
    y = (x * 2).retain_grad()
    y *= 3
    (y * y).sum().backward()
    np.testing.assert_allclose(y.grad.numpy(), 2 * y.numpy())


def test_a_hook_that_fails_leaves_a_graph_that_is_whole_or_refused() -> None:
    x = leaf(3)
    y = x.exp()

    def fail(gradient: mg.Tensor) -> None:
        raise KeyError("in a hook")

    handle = y.register_hook(fail)
    loss = (y * y).sum()
    with pytest.raises(KeyError):
        loss.backward()
    assert x.grad is None
    handle.remove()
    try:
        loss.backward()
    except GradientError as error:
        assert_refused(error)
        return
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp(2 * x.numpy()))


def test_a_backward_inside_a_hook_of_the_same_graph_is_right_or_refused() -> None:
    x = leaf(3)
    y = x.exp()
    loss = (y * y).sum()

    def again(gradient: mg.Tensor) -> None:
        handle.remove()
        loss.backward()

    handle = y.register_hook(again)
    try:
        loss.backward()
    except GradientError as error:
        assert_refused(error)
        return
    np.testing.assert_allclose(x.grad.numpy(), 4 * np.exp(2 * x.numpy()))


def test_gradients_share_no_memory_with_what_the_graph_keeps() -> None:
    x, w = leaf(3), leaf(3, seed=1)
    loss = (x * w).sum()
    loss.backward(retain_graph=True)
    with mg.no_grad():
        gradient = x.grad
        gradient *= 0
    loss.backward()
    np.testing.assert_allclose(x.grad.numpy(), w.numpy())
    np.testing.assert_allclose(w.grad.numpy(), 2 * x.numpy())


def test_a_live_write_elsewhere_changes_nothing_for_others() -> None:
    buffer, value = mg.zeros(4, dtype="float64"), leaf(2)
    buffer[:2] = value
    x = leaf(3)
    F.softmax(x * x, -1)[0].backward()
    assert x.grad is not None and buffer.requires_grad


def test_a_constant_whose_memory_the_graph_wrote_to_cannot_become_a_leaf():
    w = mg.tensor([3.0, 3.0], requires_grad=True)
    x = mg.zeros(3)
    view = x[:2]
    view[:] = w
    with pytest.raises(mg.MinigradError, match="requires_grad_"):
        x.requires_grad_()


def test_a_tensor_made_by_dlpack_from_a_tensor_is_dated_with_it():
    w, c = mg.tensor([1.0, 1.0], requires_grad=True), mg.ones(2)
    d = mg.from_dlpack(c)
    y = w * c
    d *= 3
    with pytest.raises(mg.MinigradError, match="overwritten"):
        y.sum().backward()


def test_an_array_that_a_kernel_or_a_users_op_keeps_may_change_before_the_backward():
    @mg.op
    def scaled(xp, a, *, by):
        return a * by[0]

    scaled.vjp(a=lambda g, by: g * by[0])
    x = mg.tensor([1.0, 1.0], requires_grad=True)
    for by in ([2.0], (np.array([2.0, 2.0]),), np.array([2.0])):
        out = scaled(x, by=by).sum()
        if isinstance(by, tuple):
            by[0][:] = 9
        else:
            by[0] = 9
        x.grad = None
        out.backward()
        assert x.grad.tolist() == [2.0, 2.0]


# Ops that return an input, or a view of it.


@mg.op
def same(xp, a):
    return a


@mg.op
def same_second(xp, a, b):
    return b


@mg.op
def tail(xp, a):
    return a[1:]


@mg.op(view=True)
def declared_view(xp, a):
    return a


@mg.op(several=True)
def both(xp, a):
    return a, a[1:]


@mg.op(view=True)
def wrong_view(xp, a, b):
    return b


same.vjp(a=lambda g: g)
same_second.vjp(a=lambda g: g * 0, b=lambda g: g)
tail.vjp(a=lambda g: mg.pad(g, ((1, 0),)))
declared_view.vjp(a=lambda g: g)
both.vjp(a=lambda g: g[0] + mg.pad(g[1], ((1, 0),)))
wrong_view.vjp(a=lambda g: g * 0, b=lambda g: g)

SHARING: dict[str, Callable[[mg.Tensor], mg.Tensor]] = {
    "an input": same,
    "the second input": lambda x: same_second(mg.ones(3, dtype="float64"), x),
    "a view": tail,
    "a declared view": declared_view,
    "a view of another input than the first": lambda x: wrong_view(mg.ones(3, dtype="float64"), x),
    "one of several": lambda x: both(x)[0],
    "a view, one of several": lambda x: both(x)[1],
    "what recompute ran": mg.recompute(lambda x: x),
    "a view that recompute ran": mg.recompute(lambda x: x[1:]),
}


@pytest.mark.parametrize("share", SHARING.values(), ids=SHARING.keys())
@pytest.mark.parametrize("kind", ["leaf", "result"])
def test_what_an_op_returned_of_its_input_is_written_to_without_harm_or_refused(share: Any, kind: str) -> None:
    x = leaf(3)
    before = x.numpy().copy()

    def program(x: mg.Tensor) -> mg.Tensor:
        given = x if kind == "leaf" else x * 1
        y = share(given)
        y += 1
        y *= 2
        return (y * y).sum()

    try:
        program(x).backward()
    except GradientError as error:
        assert_refused(error)
    else:
        start = len(before) - share(mg.tensor(before)).size
        wanted = [0.0] * start + [8 * (value + 1) for value in before[start:]]
        np.testing.assert_allclose(x.grad.numpy(), wanted)
    np.testing.assert_array_equal(x.numpy(), before)


# `to_device` is called for another device only.
@pytest.mark.parametrize("name", sorted(name for name in OPS if calls_of(name) and name != "to_device"))
def test_an_op_shares_memory_with_an_input_only_if_it_is_declared_a_view(name: str) -> None:
    op, sample, shared = OPS[name], calls_of(name)[0], []

    def watched(*args: Any, **attrs: Any) -> Any:
        result = op(*args, **attrs)
        outs = result if isinstance(result, tuple) else (result,)
        given = args[0] if op.signature.variadic else args
        inputs = [x.data for x in given if isinstance(x, mg.Tensor)]
        shared.extend(out.data is x for out in outs for x in inputs)
        if not op.view:
            shared.extend(np.shares_memory(out.data, x) for out in outs for x in inputs)
        return result

    sample.call(watched, [mg.tensor(np.array(a, "float64"), requires_grad=True) * 1 for a in sample.leaves])
    assert shared and not any(shared)


ATTRIBUTES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], Callable[[Any], None]]] = {
    "a Tensor": (lambda: mg.tensor([2.0]), lambda by: by.data[0], lambda by: by.__setitem__(0, 9.0)),
    "a dict": (lambda: {"by": 2.0}, lambda by: by["by"], lambda by: by.update(by=9.0)),
    "an array in a dict": (
        lambda: {"by": np.array([2.0])},
        lambda by: by["by"][0],
        lambda by: by["by"].__setitem__(0, 9.0),
    ),
    "a list in a tuple": (lambda: ([2.0],), lambda by: by[0][0], lambda by: by[0].__setitem__(0, 9.0)),
    "a set": (lambda: {2.0}, lambda by: max(by), lambda by: by.add(9.0)),
    "a Tensor in a list": (lambda: [mg.tensor(2.0)], lambda by: by[0].item(), lambda by: by[0].__setitem__((), 9.0)),
}


@pytest.mark.parametrize("make, number, change", ATTRIBUTES.values(), ids=ATTRIBUTES.keys())
def test_an_attribute_of_a_users_op_may_change_before_the_backward(make: Any, number: Any, change: Any) -> None:
    @mg.op
    def scaled(xp, a, *, by):
        return a * number(by)

    scaled.vjp(a=lambda g, by: g * number(by))
    x, by = leaf(2), make()
    y = scaled(x, by=by)
    change(by)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_an_attribute_that_requires_a_gradient_is_refused() -> None:
    @mg.op
    def scaled(xp, a, *, by):
        return a * by.data

    scaled.vjp(a=lambda g, by: g * by)
    with pytest.raises(GradientError, match="scaled: an attribute requires a gradient"):
        scaled(leaf(2), by=leaf(2))
    with pytest.raises(GradientError, match="scaled: an attribute requires a gradient"):
        scaled(mg.ones(2, dtype="float64"), by=leaf(2))
    x = leaf(2)
    scaled(x, by=leaf(2, seed=1).detach()).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), leaf(2, seed=1).numpy())


@pytest.mark.parametrize("create_graph", [False, True], ids=["backward", "create_graph"])
@pytest.mark.parametrize("form", ["a rule each", "one rule", "any number of inputs"])
def test_a_gradient_that_a_users_rule_took_from_what_is_saved_has_memory_of_its_own(
    form: str, create_graph: bool
) -> None:
    if form == "any number of inputs":

        @mg.op
        def dot(xp, *terms):
            return (terms[0] * terms[1]).sum()

        dot.vjp(lambda g, terms: (terms[1], terms[0]))
    else:

        @mg.op
        def dot(xp, a, b):
            return (a * b).sum()

        if form == "one rule":
            dot.vjp(lambda g, a, b: (b, a))
        else:
            dot.vjp(a=lambda g, b: b, b=lambda g, a: a)
    a, b = leaf(3), leaf(3, seed=1)
    kept = b.numpy().copy()
    loss = dot([a, b]) if form == "any number of inputs" else dot(a, b)
    if create_graph:
        gradient, _ = mg.autograd.grad(loss, [a, b], create_graph=True)
        (mixed,) = mg.autograd.grad(gradient.sum(), [b], retain_graph=True)
        np.testing.assert_array_equal(mixed.numpy(), np.ones(3))
    else:
        loss.backward()
        gradient = a.grad
    np.testing.assert_array_equal(gradient.numpy(), kept)
    with mg.no_grad():
        gradient *= 0
    np.testing.assert_array_equal(b.numpy(), kept)
