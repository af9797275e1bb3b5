"""mg.compile: the same values and gradients as without it, whatever changes between calls, or a refusal that says why."""

import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile import TraceError, trace

F = mg.nn.functional


def normal(*shape, seed=0, dtype="float64"):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def leaf(*shape, seed=0, dtype="float64"):
    return mg.tensor(normal(*shape, seed=seed, dtype=dtype), requires_grad=True)


def gradients(function, *arrays):
    """The value of a function, and the gradients of its sum."""
    tensors = [mg.tensor(a, requires_grad=True) for a in arrays]
    out = function(*tensors)
    out.sum().backward()
    return [out.detach().numpy(), *[None if t.grad is None else t.grad.numpy() for t in tensors]]


def assert_same(ours, expected, tolerance=1e-12):
    for mine, theirs in zip(ours, expected, strict=True):
        if theirs is None:
            assert mine is None
            continue
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)


def norm_gelu(x, weight):
    return F.gelu(F.layer_norm(x, [x.shape[-1]]), approximate="tanh") * weight


def masked(x, y):
    return F.softmax(mg.where(y > 0, x, -1e9), axis=-1) * x.mean(axis=0)


def mlp(x, weight):
    return (x @ weight.T).tanh().sum(axis=0) ** 2 + x[0, 1] - weight[:, 0].exp()


FUNCTIONS = [norm_gelu, masked]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_values_and_gradients_are_those_of_the_function(function):
    compiled = mg.compile(function)
    for seed in range(3):  # the first call traces, the second plans, the third only runs
        arrays = normal(5, 7, seed=seed), normal(5, 7, seed=seed + 10)
        assert_same(gradients(compiled, *arrays), gradients(function, *arrays))
    assert len(compiled.traces) == 1


@pytest.mark.parametrize("function", [mg.prod, mg.cumprod], ids=["prod", "cumprod"])
def test_products_of_numbers_have_their_gradients_whether_zeros_come_or_not(function):
    compiled = mg.compile(lambda x: function(x, axis=-1) * 2)
    for zeros in (0, 1, 2, 0):
        array = normal(3, 5, seed=zeros)
        array[:2, :zeros] = 0
        assert_same(gradients(compiled, array), gradients(lambda x: function(x, axis=-1) * 2, array))
    assert len(compiled.traces) == 1


def test_products_and_indices_are_parts_of_the_plan():
    compiled = mg.compile(mlp)
    for seed in range(3):
        arrays = normal(4, 3, seed=seed), normal(6, 3, seed=seed + 10)
        assert_same(gradients(compiled, *arrays), gradients(mlp, *arrays))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_second_derivatives_are_compiled_when_first_asked_for(function):
    compiled = mg.compile(function)

    def second(f):
        return mg.grad(lambda x, y: (mg.grad(lambda a: f(a, y).sum())(x) ** 2).sum(), argnums=(0, 1))

    for seed in range(3):
        x, y = mg.tensor(normal(3, 4, seed=seed)), mg.tensor(normal(3, 4, seed=seed + 5))
        ours, expected = second(compiled)(x, y), second(function)(x, y)
        assert_same([g.numpy() for g in ours], [g.numpy() for g in expected], 1e-10)


def test_another_shape_dtype_or_mode_is_traced_anew():
    compiled = mg.compile(lambda x: x * 2 + 1)
    for array in (normal(3), normal(4), normal(3, dtype="float32"), normal(2, 2)):
        np.testing.assert_array_equal(compiled(mg.tensor(array)).numpy(), array * 2 + 1)
    assert len(compiled.traces) == 4
    x = leaf(3)
    assert compiled(x).requires_grad
    with mg.no_grad():
        assert not compiled(x).requires_grad


def test_nested_arguments_and_results_keep_their_form():
    @mg.compile
    def both(parts, scale, *, shift):
        return {"sum": parts["a"] + parts["b"][0], "rest": [parts["a"] * scale + shift, "name"]}

    for k in range(3):
        a, b = mg.tensor([1.0 + k, 2.0]), mg.tensor([3.0, 4.0])
        result = both({"a": a, "b": (b,)}, 3, shift=0.5)
        assert result["sum"].tolist() == [4.0 + k, 6.0] and result["rest"][1] == "name"
        assert result["rest"][0].tolist() == [3.0 * (1 + k) + 0.5, 6.5]
    assert both({"a": a, "b": (b,)}, 4, shift=0.5)["rest"][0].tolist() == [12.5, 8.5]


SCALE = 2.0


def test_the_same_tensors_in_another_nesting_are_another_call():
    compiled = mg.compile(lambda a, b: a[0] + b if isinstance(a, tuple) else a * b[0])
    two, three = mg.tensor(2.0), mg.tensor(3.0)
    for _ in range(3):
        assert compiled((two,), three).item() == 5
        assert compiled(two, (three,)).item() == 6


def test_a_module_that_is_an_argument_may_change_between_calls():
    compiled = mg.compile(lambda net, batch: net(batch[0]) * batch[1])
    net = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.Dropout(0.5))
    x, scale = mg.ones(4, 2), mg.tensor(2.0)

    def expect(weight):
        for _ in range(3):
            assert np.allclose(compiled(net, (x, scale)).numpy(), 2 * (weight.sum(axis=1) + net[0].bias.numpy()))

    net.eval()
    expect(net[0].weight.numpy())
    net[0].weight = mg.nn.Parameter(mg.ones(3, 2))
    expect(np.ones((3, 2)))
    net[0].weight.data = np.full((3, 2), 3, "f4")
    expect(np.full((3, 2), 3))
    net.train()
    assert any((compiled(net, (x, scale)).numpy() == 0).any() for _ in range(20))


class TimesScale(mg.nn.Module):
    def forward(self, x):
        return x * SCALE


SCALE = 2.0


def test_a_changed_global_of_a_module_or_function_that_is_an_argument_is_seen(monkeypatch):
    compiled = mg.compile(lambda net, function, x: net(function(x)))
    shift = [1.0]
    net, add = TimesScale(), lambda x: x + shift[0]
    for scale in (2.0, 3.0):
        monkeypatch.setitem(globals(), "SCALE", scale)
        for shift[0] in (1.0, 5.0):
            for _ in range(3):
                assert compiled(net, add, mg.tensor(1.0)).item() == scale * (1 + shift[0])


def test_a_changed_closure_global_or_default_is_seen(monkeypatch):
    factor, settings = 3.0, {"shift": 1.0}

    @mg.compile
    def scaled(x):
        return x * factor * SCALE + settings["shift"]

    x = mg.tensor([1.0])
    assert [scaled(x).item() for _ in range(3)] == [7.0, 7.0, 7.0]
    factor = 5.0
    assert [scaled(x).item() for _ in range(2)] == [11.0, 11.0]
    monkeypatch.setitem(globals(), "SCALE", 1.0)
    assert scaled(x).item() == 6.0
    settings["shift"] = 0.0
    assert scaled(x).item() == 5.0
    factor = 3.0
    assert scaled(x).item() == 3.0


def test_a_changed_helper_of_the_function_is_seen():
    def helper(x):
        return x * rate

    rate = 2.0
    compiled = mg.compile(lambda x: helper(x) + 1)
    assert compiled(mg.tensor(1.0)).item() == compiled(mg.tensor(1.0)).item() == 3.0
    rate = 4.0
    assert compiled(mg.tensor(1.0)).item() == 5.0


@pytest.mark.parametrize("shape", [(4, 8), (300, 700)], ids=str)
def test_the_greatest_gets_its_gradient_though_it_is_made_of_cheap_steps(shape):
    def greatest(x, y):
        z = mg.nn.functional.softmax(x, axis=-1) * mg.exp(y)
        return ((z - z.mean(axis=-1, keepdims=True)) * 1.7 + y).max(axis=-1).sum()

    given = [normal(*shape, dtype="float32") for _ in range(2)]
    own, wanted = [mg.grad(f, argnums=(0, 1))(*map(mg.tensor, given)) for f in (mg.compile(greatest), greatest)]
    for a, b in zip(own, wanted):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)


FACTOR = 1.0


def test_what_an_object_finds_in_its_class_may_change_between_calls(monkeypatch):
    class Base:
        scale = 2.0

        @property
        def doubled(self):
            return self.scale * 2

    class Scaled(mg.nn.Module):
        scale = 3.0

        def forward(self, x):
            return self.helped(x) * self.scale

        def helped(self, x):
            return x * FACTOR

    thing, module = type("Thing", (Base,), {})(), Scaled()
    function, x = mg.compile(lambda x: (x * thing.doubled, module(x))), mg.ones(3)
    assert [y[0].item() for _ in range(2) for y in function(x)] == [4.0, 3.0] * 2
    Base.scale, Scaled.scale = 5.0, 7.0
    assert [y[0].item() for y in function(x)] == [10.0, 7.0]
    monkeypatch.setitem(globals(), "FACTOR", 2.0)
    assert [y[0].item() for y in function(x)] == [10.0, 14.0]


def test_new_memory_that_is_written_to_is_new_at_each_call():
    def spread(x, places):
        out = mg.zeros(5, 3)
        out[places] = x
        return out * 2

    compiled = mg.compile(spread)
    for seed in range(3):
        places = np.array([seed, seed + 2])
        first, second = (mg.tensor(normal(3), requires_grad=True) for _ in range(2))
        ours, theirs = compiled(first, places), spread(second, places)
        ours.sum().backward()
        theirs.sum().backward()
        assert_same([ours.detach().numpy(), first.grad.numpy()], [theirs.detach().numpy(), second.grad.numpy()])


def test_another_op_under_the_same_name_is_seen():
    function = mg.abs
    compiled = mg.compile(lambda x: function(x))
    assert [compiled(mg.tensor(-4.0)).item() for _ in range(3)] == [4.0, 4.0, 4.0]
    function = mg.square
    assert [compiled(mg.tensor(-4.0)).item() for _ in range(3)] == [16.0, 16.0, 16.0]


def test_two_helpers_made_by_one_function_are_told_apart():
    def times(factor):
        return (lambda x: x * factor[0]), factor

    (double, _), (triple, factor) = times([2.0]), times([3.0])
    compiled = mg.compile(lambda x: double(x) + triple(x))
    assert [compiled(mg.tensor(1.0)).item() for _ in range(3)] == [5.0, 5.0, 5.0]
    factor[0] = 4.0
    assert [compiled(mg.tensor(1.0)).item() for _ in range(3)] == [6.0, 6.0, 6.0]


def test_modules_may_change_between_calls():
    net = mg.nn.Sequential(mg.nn.Linear(3, 4), mg.nn.Dropout(0.5), mg.nn.Linear(4, 2))
    compiled = mg.compile(lambda x: net(x))
    x = mg.tensor(normal(5, 3, dtype="float32"))
    net.eval()
    for _ in range(3):
        np.testing.assert_allclose(compiled(x).detach().numpy(), net(x).detach().numpy(), rtol=1e-6)
    with mg.no_grad():
        net[0].weight[...] = 0
    np.testing.assert_allclose(compiled(x).detach().numpy(), net(x).detach().numpy(), rtol=1e-6)
    net[2].weight = mg.nn.Parameter(np.ones((2, 4), "float32"))
    np.testing.assert_allclose(compiled(x).detach().numpy(), net(x).detach().numpy(), rtol=1e-6)
    net.train()
    assert any((compiled(x).detach().numpy() != compiled(x).detach().numpy()).any() for _ in range(3))
    net.eval()
    net.to("float64")
    np.testing.assert_allclose(compiled(x).detach().numpy(), net(x).detach().numpy(), rtol=1e-6)


def test_an_array_given_twice_is_two_inputs():
    compiled = mg.compile(lambda a, b: a * b.sum())
    x, y = mg.tensor([1.0, 2.0]), mg.tensor([3.0, 4.0])
    assert compiled(x, x).tolist() == [3.0, 6.0]
    assert compiled(x, y).tolist() == [7.0, 14.0]
    assert compiled(y, y).tolist() == [21.0, 28.0]


def test_random_numbers_are_new_in_each_call_and_those_of_the_function():
    def noisy(x):
        return F.dropout(x, 0.5) + mg.randn(4)

    compiled, x = mg.compile(noisy), mg.ones(4)
    mg.manual_seed(1)
    expected = [noisy(x).tolist() for _ in range(4)]
    mg.manual_seed(1)
    assert [compiled(x).tolist() for _ in range(4)] == expected
    assert len({tuple(e) for e in expected}) == 4


def test_the_gradient_of_dropout_is_that_of_its_own_draw():
    compiled = mg.compile(lambda x: F.dropout(x, 0.5))
    for _ in range(4):
        x = leaf(50)
        y = compiled(x)
        y.sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), np.where(y.detach().numpy() == 0, 0, 2))


@pytest.mark.parametrize(
    "function, words",
    [
        (lambda x: x * x.sum().item(), "item"),
        (lambda x: x if x.sum() > 0 else -x, "item"),
        (lambda x: x + mg.tensor(x.numpy() * 2), "numpy"),
        (lambda x: [print(x), x][1], "numpy"),
        (lambda x: x[x > 0], "boolean index"),
        (lambda x: x + np.random.default_rng(0).normal(size=3), "comes from nowhere"),
    ],
    ids=["item", "branch", "numpy", "print", "boolean index", "array of NumPy's"],
)
def test_what_depends_on_values_is_refused_with_the_line(function, words):
    with pytest.raises(TraceError, match=words) as info:
        mg.compile(function)(mg.tensor([1.0, 2.0, -3.0]))
    assert "test_compile.py" in str(info.value) and "fix:" in str(info.value)


def test_who_watches_sees_every_op():
    compiled = mg.compile(lambda x: (x - x).log() * 0)
    compiled(mg.ones(2)), compiled(mg.ones(2))
    with mg.debug(), np.errstate(divide="ignore"), pytest.raises(mg.MinigradError, match="log"):
        compiled(mg.ones(2))


def test_a_compiled_function_inside_another_becomes_a_part_of_it():
    inner = mg.compile(lambda x: x * 2)
    outer = mg.compile(lambda x: inner(x) + inner(x + 1))
    for k in range(3):
        assert outer(mg.tensor(float(k))).item() == 4 * k + 2
    assert "multiply" in str(outer.graph())


def test_threads_share_a_compiled_function():
    compiled = mg.compile(norm_gelu)
    wrong = []

    def work(seed):
        for k in range(20):
            arrays = normal(4, 6, seed=seed * 100 + k), normal(6, seed=seed)
            mine, expected = gradients(compiled, *arrays), gradients(norm_gelu, *arrays)
            if not all(np.allclose(a, b, rtol=1e-10) for a, b in zip(mine, expected)):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def training(compiled, optimizer_name, steps=6, **options):
    mg.manual_seed(0)
    net = mg.nn.Sequential(mg.nn.Linear(2, 8), mg.nn.Tanh(), mg.nn.Linear(8, 1)).to("float64")
    optimizer = getattr(mg.optim, optimizer_name)(net.parameters(), lr=0.1, **options)
    x, y = mg.tensor(normal(6, 2)), mg.tensor(normal(6, 1, seed=1))

    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    run, losses = mg.compile(step) if compiled else step, []
    for k in range(steps):
        optimizer.param_groups[0]["lr"] = 0.1 / (k + 1)  # which must not trace anew
        losses.append(run(x, y).item())
    params = [p.detach().numpy().copy() for p in net.parameters()]
    return losses, params, [p.grad.numpy() for p in net.parameters()], optimizer, run


@pytest.mark.parametrize(
    "name, options",
    [
        ("SGD", {}),
        ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
        ("Adam", {}),
        ("Adam", {"amsgrad": True, "weight_decay": 0.01}),
        ("AdamW", {"weight_decay": 0.1}),
        ("RMSprop", {"momentum": 0.9, "centered": True}),
        ("Adam", {"maximize": True}),
        ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.2}),
        ("Adadelta", {}),
        ("Adamax", {}),
        ("NAdam", {"decoupled_weight_decay": True, "weight_decay": 0.01}),
        ("RAdam", {}),
        ("ASGD", {"t0": 2}),
        ("Rprop", {}),
        ("Lion", {}),
        ("Adafactor", {"weight_decay": 0.01}),
    ],
)
def test_a_whole_training_step_is_one_plan(name, options):
    losses, params, grads, optimizer, run = training(True, name, **options)
    expected = training(False, name, **options)
    np.testing.assert_allclose(losses, expected[0], rtol=1e-10)
    assert_same(params, expected[1], 1e-10)
    assert_same(grads, expected[2], 1e-10)
    ours, theirs = optimizer.state_dict(), expected[3].state_dict()
    assert ours["values"]["steps"] == theirs["values"]["steps"]
    assert_same([a.numpy() for a in ours["arrays"].values()], [a.numpy() for a in theirs["arrays"].values()], 1e-10)
    assert len(run.traces) <= 2


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_steps_with_and_without_the_compiler_may_follow_each_other(name):
    mg.manual_seed(0)
    nets = [mg.nn.Linear(3, 2).to("float64") for _ in range(2)]
    nets[1].load_state_dict(nets[0].state_dict())
    x, y = mg.tensor(normal(4, 3)), mg.tensor(normal(4, 2, seed=1))
    losses = []
    for net, pattern in zip(nets, ("ppcpccpc", "pppppppp")):
        optimizer = getattr(mg.optim, name)(net.parameters(), lr=0.01)

        def step(x, y, net=net, optimizer=optimizer):
            optimizer.zero_grad()
            loss = F.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
            return loss

        compiled = mg.compile(step)
        losses.append([(compiled if kind == "c" else step)(x, y).item() for kind in pattern])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-12)


def test_gradients_are_added_up_where_they_are_not_cleared():
    w = leaf(3)

    @mg.compile
    def accumulate(x):
        loss = (w * x).sum()
        loss.backward()
        return loss

    for k in range(7):
        accumulate(mg.ones(3, dtype="float64"))
        assert w.grad.tolist() == [k + 1.0] * 3
    w.grad = None
    accumulate(mg.ones(3, dtype="float64"))
    assert w.grad.tolist() == [1.0] * 3


def test_a_step_by_hand_is_a_plan_too():
    w = mg.tensor([1.0, 2.0], requires_grad=True)

    @mg.compile
    def descend(x):
        loss = ((w - x) ** 2).sum()
        loss.backward()
        with mg.no_grad():
            w[...] = w - 0.25 * w.grad
        w.grad = None
        return loss

    x = mg.tensor([0.0, 0.0])
    losses = [descend(x).item() for _ in range(4)]
    assert losses == [5.0, 1.25, 0.3125, 0.078125]
    assert w.tolist() == [1 / 16, 2 / 16] and w.grad is None


def test_gradients_kept_from_an_earlier_step_stay_as_they_were():
    losses, params, grads, optimizer, run = training(True, "SGD", steps=3)
    kept = [p.grad for group in optimizer.param_groups for p in group["params"]]
    before = [g.numpy().copy() for g in kept]
    run(mg.tensor(normal(6, 2, seed=5)), mg.tensor(normal(6, 1, seed=6)))
    assert_same([g.numpy() for g in kept], before, 0)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-12)])
@pytest.mark.parametrize("rows, inner, columns", [(1, 1, 2), (3, 5, 1), (4, 1, 17), (2, 7, 33), (5, 16, 16)])
def test_small_products_of_any_layout_are_those_of_numpy(rows, inner, columns, dtype, tolerance):
    a, b = normal(rows, inner, dtype=dtype), normal(inner, columns, seed=1, dtype=dtype)
    expected = (a.astype("float64") @ b) * 2
    forms = {
        (lambda a, b: (a @ b) * 2): (a, b),
        (lambda a, b: (a @ b.T) * 2): (a, b.T.copy()),
        (lambda a, b: (a.T @ b) * 2): (a.T.copy(), b),
        (lambda a, b: (a.T @ b.T) * 2): (a.T.copy(), b.T.copy()),
    }
    for function, arrays in forms.items():
        compiled = mg.compile(function)
        for _ in range(3):
            np.testing.assert_allclose(compiled(*map(mg.tensor, arrays)).numpy(), expected, tolerance, tolerance)
        assert "one compiled function" in compiled.explain()


def replace_arrays(net, optimizer):
    for p in net.parameters():
        p.data = p.data * 2  # the old array is freed, and the next may lie where it was


def replace_by_columns(net, optimizer):
    net[0].weight.data = np.asfortranarray(net[0].weight.data * 2)


def freeze(net, optimizer):
    net[0].requires_grad_(False)


def load_state(net, optimizer):
    state = optimizer.state_dict()
    state["arrays"] = {name: t * 2 for name, t in state["arrays"].items()}
    optimizer.load_state_dict(state)


def forget_state(net, optimizer):
    optimizer.state.clear()


def assign_state(net, optimizer):
    optimizer.state = {}


def replace_buffer(net, optimizer):
    for state in optimizer.state.values():
        state["exp_avg"] = np.zeros_like(state["exp_avg"])


CHANGES = [replace_arrays, replace_by_columns, freeze, load_state, forget_state, assign_state, replace_buffer]


@pytest.mark.parametrize("change", CHANGES)
def test_a_step_that_has_become_quick_sees_what_changes(change):
    losses = []
    for wrap in (mg.compile, lambda f: f):
        _, _, _, optimizer, step = training(False, "Adam", steps=1)
        (net,) = [cell.cell_contents for cell in step.__closure__ if isinstance(cell.cell_contents, mg.nn.Module)]
        x, y = mg.tensor(normal(6, 2)), mg.tensor(normal(6, 1, seed=1))
        run = wrap(step)
        losses.append([])
        for _ in range(3):
            losses[-1] += [run(x, y).item() for _ in range(4)]
            change(net, optimizer)
        losses[-1] += [run(x, y).item() for _ in range(4)]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-9)


def test_a_quick_step_takes_arguments_of_any_layout_and_is_traced_anew_for_other_kinds():
    w = leaf(3, 2)

    @mg.compile
    def step(x):
        w.grad = None
        loss = (w * x).sum()
        loss.backward()
        return loss

    plain = mg.tensor(normal(3, 2))
    for _ in range(4):
        step(plain)
    others = [
        mg.tensor(normal(2, 3)).T,
        mg.tensor(normal(6, 4))[::2, ::2],
        mg.tensor(normal(2)),
        mg.tensor(normal(1, 2)),
        mg.tensor(normal(3, 2)).astype("float32"),
        mg.tensor(np.arange(6).reshape(3, 2)),
        plain,
    ]
    for x in others:
        for _ in range(3):
            assert np.isclose(step(x).item(), (w.numpy() * x.numpy()).sum())
            np.testing.assert_allclose(w.grad.numpy(), np.broadcast_to(x.numpy(), (3, 2)), rtol=1e-6)


def test_gradients_that_a_quick_step_leaves_for_later_are_there_when_asked_for_and_nobody_elses():
    kept = []
    for wrap in (mg.compile, lambda f: f):
        w, b = leaf(3, 2), leaf(2)
        optimizer = mg.optim.SGD([w, b], lr=0.1)

        def step(x, w=w, b=b, optimizer=optimizer):
            optimizer.zero_grad()
            loss = ((x @ w + b) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        run, x, seen = wrap(step), mg.tensor(normal(4, 3)), []
        for k in range(5):
            run(x)
            if k % 2:
                seen += [w.grad, b.grad]  # those of other steps are never looked at
        assert w.grad.data is w.grad.data and w.grad.data.base is None
        w.grad.data[...] *= 2  # in memory of its own
        (w * 3.0).sum().backward()  # added to what is there
        seen += [w.grad, b.grad]
        run(x)
        b.grad = None
        seen.append(w.grad)
        (w * b).sum().backward()
        seen += [w.grad, b.grad]
        run(x)
        optimizer.step()  # with what the quick step left
        run(x)
        seen += [w, b, w.grad]
        kept.append([t.numpy().copy() for t in seen])
    for ours, plain in zip(*kept):
        np.testing.assert_allclose(ours, plain, rtol=1e-12)


def test_a_step_with_a_wrong_index_changes_nothing():
    table, w = mg.tensor(normal(3, 5)), leaf(3, 5)
    optimizer = mg.optim.SGD([w], lr=0.1)

    @mg.compile
    def step(index):
        optimizer.zero_grad()
        loss = mg.take_along_axis(table * w, index, 1).sum()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(4):
        step(mg.tensor([[0], [1], [4]]))
    before = w.detach().numpy().copy()
    with pytest.raises(mg.MinigradError):
        step(mg.tensor([[0], [1], [5]]))
    assert (w.detach().numpy() == before).all() and optimizer.state_dict()["values"]["steps"] == {"0": 4}
    assert "one compiled function" in step.explain()


def test_another_default_dtype_is_seen():
    compiled = mg.compile(lambda x: x + mg.ones(2))
    try:
        for dtype in ("float32", "float64", "float32"):
            mg.set_default_dtype(dtype)
            for _ in range(3):
                assert compiled(mg.tensor([1.0, 2.0], dtype="float32")).dtype == dtype
    finally:
        mg.set_default_dtype("float32")


def test_saved_values_that_are_overwritten_are_noticed():
    compiled = mg.compile(lambda x: x.exp() * x)
    for _ in range(3):
        x = leaf(3)
        y = x * 1
        z = compiled(y)
        with mg.no_grad():
            y[...] = 0
        with pytest.raises(mg.MinigradError, match="overwritten"):
            z.sum().backward()


def test_a_graph_prints_its_steps():
    text = str(trace(lambda x, w: x @ w.T, mg.ones(4, 2), mg.ones(8, 2)))
    assert text.splitlines()[-1] == "return v3" and "matmul(v0, v2)" in text


def test_only_functions_can_be_compiled():
    with pytest.raises(mg.MinigradError, match="only functions"):
        mg.compile(3)


@pytest.mark.graphviz
def test_a_picture_shows_which_ops_became_one_loop():
    compiled = mg.compile(lambda x, w: ((x.tanh() + x.exp()) @ w).softmax(axis=-1))
    x, w = mg.ones(4, 8), mg.ones(8, 3)
    compiled(x, w), compiled(x, w)
    text = str(mg.viz.graph(compiled))
    assert "loop 1 over 4 × 8" in text or "loop 1 over 32" in text
    assert "matmul" in text and "loop 2 over 4 × 3" in text


def test_it_says_what_was_fused_and_shows_its_source():
    compiled = mg.compile(norm_gelu)
    for _ in range(2):
        compiled(mg.tensor(normal(3, 4)), mg.tensor(normal(4)))
    assert "one loop over 3 × 4" in compiled.explain() and "op by op" in compiled.explain()
    if mg.kernels.implementation() == "numba":
        assert "def whole(" in compiled.source() and "float64[3, 4]" in compiled.source()


def detached_factor(x, y):
    return x.detach() * y + x * y.detach() ** 2


def without_recording(x, y):
    with mg.no_grad():
        factor = x * y
    return x * factor + (y - factor)


def detached_before_use(x, y):
    top = x.detach().max(axis=-1, keepdims=True)
    return mg.exp(x - top) * y


@pytest.mark.parametrize(
    "function", [detached_factor, without_recording, detached_before_use], ids=lambda f: f.__name__
)
def test_no_gradient_goes_to_what_is_detached(function):
    compiled = mg.compile(function)

    def second(f):
        return mg.grad(lambda x, y: (mg.grad(lambda a: f(a, y).sum())(x) ** 2 * y).sum(), argnums=(0, 1))

    for seed in range(3):
        arrays = normal(3, 4, seed=seed), normal(3, 4, seed=seed + 5)
        assert_same(gradients(compiled, *arrays), gradients(function, *arrays))
        tensors = [mg.tensor(a) for a in arrays]
        assert_same([g.numpy() for g in second(compiled)(*tensors)], [g.numpy() for g in second(function)(*tensors)])


def test_a_result_that_is_detached_stays_a_constant():
    compiled = mg.compile(lambda x: (x * 2, (x * 3).detach(), x.detach()))
    x = leaf(3)
    for _ in range(3):
        assert [out.requires_grad for out in compiled(x)] == [True, False, False]


def test_what_is_made_of_constants_alone_is_no_obstacle_to_gradients():
    def function(x):
        return mg.where(mg.tril(mg.ones(4, 4)) > 0, x, 0.0) * x

    compiled = mg.compile(function)
    for seed in range(3):
        arrays = [normal(4, 4, seed=seed)]
        assert_same(gradients(compiled, *arrays), gradients(function, *arrays))


def test_a_gradient_that_is_a_number_of_numpy_is_taken():
    compiled, x = mg.compile(lambda x: (x * x).sum()), leaf(3)
    for _ in range(3):
        x.grad = None
        (compiled(x) / 3).backward()
        assert_same([x.grad.numpy()], [2 * x.detach().numpy() / 3])


def test_an_array_is_kept_for_the_backward_and_not_a_copy_of_its_transpose():
    pytest.importorskip("numba")
    compiled = mg.compile(lambda x, v, w: (x @ v) @ w)
    given = leaf(64, 32), leaf(32, 48, seed=1), leaf(48, 16, seed=2)
    for _ in range(2):
        compiled(*given).sum().backward()
    names = [step.op.name for step in compiled.traces[-1].program.plans()["forward"].graph.steps]
    assert "clone" not in names


def test_memory_that_a_loop_reads_and_writes_over_has_one_row():
    pytest.importorskip("numba")
    compiled = mg.compile(lambda x, w: (x @ w).exp() + 1)
    with mg.no_grad():
        for _ in range(2):
            compiled(mg.ones(64, 64), mg.ones(64, 64))
    lines = [line.strip().split(" = ") for line in compiled.source().splitlines() if " = row(" in line]
    rows = [memory for name, memory in lines if name.startswith("r")]
    assert rows and len(rows) == len(set(rows))


def test_gradients_of_elements_picked_by_constant_indices_are_compiled():
    x, indices = mg.randn(3, 4, requires_grad=True), mg.tensor([[1, 2], [0, 3], [3, 3]])
    for f in (lambda x: mg.take_along_axis(x, indices=indices, axis=-1).sum(), lambda x: (x[[0, 2]] ** 2).sum()):
        np.testing.assert_allclose(mg.grad(mg.compile(f))(x).numpy(), mg.grad(f)(x).numpy(), rtol=1e-6)
