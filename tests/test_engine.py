"""What the engine promises: whose gradient goes where, when it is kept, and that depth and order do not matter."""

import inspect

import numpy as np
import pytest
from support.scopes import scope

import minigrad as mg
from minigrad.errors import ArgumentError, DtypeError, GradientError, ShapeError


def leaf(values, dtype="float64"):
    return mg.tensor(np.asarray(values, dtype), requires_grad=True)


def assert_grad(x, expected):
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-12, atol=0)


def test_leaves_get_gradients_and_results_do_not_keep_theirs():
    x = leaf([1.0, 2.0])
    y = x * 3
    y.sum().backward()
    assert x.is_leaf and not y.is_leaf
    assert_grad(x, [3, 3])
    assert y.grad is None


def test_constants_stay_out_of_the_graph():
    x, c = leaf([1.0, 2.0]), mg.tensor([5.0, 7.0])
    (x * c).sum().backward()
    assert c.grad is None and not c.requires_grad and c.is_leaf
    assert not (c * 2).requires_grad


def test_backward_adds_to_what_grad_holds():
    x = leaf([1.0, 2.0])
    (x * 2).sum().backward()
    (x * 5).sum().backward()
    assert_grad(x, [7, 7])
    x.grad = None
    (x * x).sum().backward()
    assert_grad(x, [2, 4])


def test_a_value_used_many_times_sums_its_gradients():
    x = leaf([2.0, -3.0])
    (x * x + x * x * x + x).sum().backward()
    assert_grad(x, 2 * x.numpy() + 3 * x.numpy() ** 2 + 1)


def test_the_same_tensor_on_both_sides_counts_twice():
    x = leaf([2.0, -3.0])
    (x * x).sum().backward()
    assert_grad(x, [4, -6])
    y = leaf(np.arange(9.0).reshape(3, 3))
    (y @ y).sum().backward()
    ones = np.ones((3, 3))
    assert_grad(y, ones @ y.numpy().T + y.numpy().T @ ones)


def test_a_shared_subgraph_is_swept_once():
    calls = []

    @mg.op
    def counted(xp, a):
        return a * 2

    counted.vjp(a=lambda g: (calls.append(1), g * 2)[1])
    x = leaf([1.0])
    shared = counted(x)
    (shared * shared + shared + shared.exp()).sum().backward()
    assert len(calls) == 1
    assert_grad(x, [2 * (2 * 2 + 1 + np.exp(2.0))])


def test_doubling_sixty_times_takes_sixty_steps_not_two_to_the_sixtieth():
    x = leaf(1.0)
    y = x
    for _ in range(60):
        y = y + y
    y.backward()
    assert x.grad.item() == 2.0**60


def test_the_sweep_waits_for_every_user_of_a_value():
    x = leaf(3.0)
    early = x * 2
    late = early
    for _ in range(5):
        late = late * 1
    (early + late * early).backward()
    assert_grad(x, 2 + 8 * 3.0)


def test_gradients_have_the_dtype_and_shape_of_their_tensor():
    for dtype in ("float16", "float32", "float64"):
        x, b = leaf(np.ones((4, 3)), dtype), leaf(np.ones((1, 3)), "float64")
        (x * b + x.sum(axis=1, keepdims=True)).sum().backward()
        assert x.grad.dtype == dtype and x.grad.shape == (4, 3)
        assert b.grad.dtype == "float64" and b.grad.shape == (1, 3)


def test_python_numbers_do_not_widen():
    x = leaf([1.0, 2.0], "float32")
    y = 1.5 * x / 3 + 2.0**0.5 - x**2.0
    assert y.dtype == "float32"
    y.sum().backward()
    assert x.grad.dtype == "float32"


def test_an_integer_result_carries_no_graph():
    x = leaf([1.0, 5.0, 3.0])
    assert not x.argmax().requires_grad
    assert not (x > 2).requires_grad
    assert not x.astype("int32").requires_grad


def test_no_gradient_shares_memory_with_another_or_with_the_seed():
    a, b = leaf(np.ones(3)), leaf(np.ones(3))
    total = (a + b).retain_grad()
    seed = mg.tensor(np.array([1.0, 2.0, 3.0]))
    total.backward(seed)
    arrays = [a.grad.numpy(), b.grad.numpy(), total.grad.numpy(), seed.numpy()]
    for i, one in enumerate(arrays):
        assert not any(np.shares_memory(one, other) for other in arrays[:i])
    a.grad += 100
    assert_grad(b, [1, 2, 3])
    assert_grad(total, [1, 2, 3])
    np.testing.assert_array_equal(seed.numpy(), [1, 2, 3])


def test_gradients_through_views_do_not_share_memory():
    x, y = leaf(np.ones((2, 3))), leaf(np.ones(6))
    joined = (x.reshape(6) + y).retain_grad()
    joined.backward(np.arange(6.0))
    x.grad *= 0
    assert_grad(y, np.arange(6.0))
    assert_grad(joined, np.arange(6.0))


def test_a_gradient_can_be_changed_in_place_and_added_to_again():
    x = leaf([1.0, 2.0])
    (x * 2).sum().backward()
    x.grad *= 10
    (x * 2).sum().backward()
    assert_grad(x, [22, 22])


def test_retain_grad_keeps_the_gradient_of_a_result():
    x = leaf([1.0, 2.0])
    y = (x * 3).retain_grad()
    (y * y).sum().backward()
    assert_grad(y, 2 * 3 * x.numpy())
    assert_grad(x, 18 * x.numpy())


def test_detach_cuts_the_graph_and_keeps_the_values():
    x = leaf([2.0, 3.0])
    constant = (x * x).detach()
    assert not constant.requires_grad
    (constant * x).sum().backward()
    assert_grad(x, x.numpy() ** 2)


def test_requires_grad_can_be_switched_on_and_off_for_a_leaf():
    x = mg.tensor([1.0, 2.0])
    assert x.requires_grad_() is x and x.requires_grad
    x.requires_grad = False
    assert not (x * 2).requires_grad
    with pytest.raises(GradientError, match="detach"):
        (leaf([1.0]) * 2).requires_grad_(False)


def test_backward_twice_needs_retain_graph():
    x = leaf([1.0, 2.0])
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert_grad(x, 4 * x.numpy())
    with pytest.raises(GradientError, match="retain_graph=True"):
        y.backward()
    assert_grad(x, 4 * x.numpy())


def test_hooks_on_a_leaf_and_inside_replace_the_gradient():
    x = leaf([1.0, 2.0])
    y = x * 2
    y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g + 1)
    (y * 3).sum().backward()
    assert_grad(x, [61, 61])


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_hook_that_writes_into_its_gradient_changes_no_other(create_graph):
    x = leaf([2.0])
    a, b = x * 1, x * 3

    def hook(g):
        g *= 10

    b.register_hook(hook)
    (gradient,) = mg.autograd.grad((a + b).sum(), x, create_graph=create_graph)
    np.testing.assert_array_equal(gradient.numpy(), [31])


def test_hooks_run_once_on_the_whole_gradient_in_the_order_given():
    x = leaf([1.0])
    seen = []
    x.register_hook(lambda g: seen.append(("first", g.item())))
    x.register_hook(lambda g: seen.append(("second", g.item())))
    (x * 2 + x * 3).sum().backward()
    assert seen == [("first", 5.0), ("second", 5.0)]


def test_a_removed_hook_is_silent_and_removing_twice_is_harmless():
    x = leaf([1.0])
    handle = x.register_hook(lambda g: g * 100)
    kept = x.register_hook(lambda g: g + 1)
    handle.remove()
    handle.remove()
    (x * 2).sum().backward()
    assert_grad(x, [3])
    kept.remove()
    (x * 2).sum().backward()
    assert_grad(x, [5])


def test_a_hook_that_returns_another_shape_is_refused():
    x = leaf([1.0, 2.0])
    x.register_hook(lambda g: g.sum())
    with pytest.raises(GradientError, match="hook"):
        (x * 2).sum().backward()
    assert x.grad is None


def test_hooks_see_the_retained_gradient_they_made():
    x = leaf([1.0])
    y = (x * 2).retain_grad()
    y.register_hook(lambda g: g * 7)
    y.sum().backward()
    assert_grad(y, [7])


def test_no_grad_and_enable_grad_nest_and_come_back_after_an_error():
    x = leaf([1.0])
    with mg.no_grad():
        assert not (x * 2).requires_grad
        with mg.enable_grad():
            assert (x * 2).requires_grad
        assert not mg.is_grad_enabled()
    assert mg.is_grad_enabled()
    with pytest.raises(KeyError), mg.no_grad():
        raise KeyError
    assert mg.is_grad_enabled()


def test_one_no_grad_object_may_be_entered_inside_itself():
    quiet = mg.no_grad()
    with mg.enable_grad():
        with quiet:
            with quiet:
                assert not mg.is_grad_enabled()
            assert not mg.is_grad_enabled()
        assert mg.is_grad_enabled()


def test_the_modes_decorate_functions_also_recursive_ones():
    @mg.no_grad()
    def depth(n):
        """How deep."""
        return [mg.is_grad_enabled(), *(depth(n - 1) if n else [])]

    @mg.enable_grad()
    def recording():
        return mg.is_grad_enabled()

    assert depth(2) == [False] * 3
    assert depth.__name__ == "depth" and depth.__doc__ == "How deep."
    assert mg.is_grad_enabled()
    with mg.no_grad():
        assert recording()


def test_the_modes_decorate_generators_but_not_who_uses_them():
    @mg.no_grad()
    def counting(start):
        total = start
        while total < 4:
            assert not mg.is_grad_enabled()
            total += yield total
        return total

    steps = counting(1)
    assert next(steps) == 1 and mg.is_grad_enabled()
    assert steps.send(2) == 3 and mg.is_grad_enabled()
    with pytest.raises(StopIteration) as end:
        steps.send(5)
    assert end.value.value == 8 and mg.is_grad_enabled()


def test_a_decorated_generator_ends_with_its_user():
    ended = []

    @mg.no_grad
    def steps():
        try:
            yield 1
        finally:
            ended.append(mg.is_grad_enabled())

    for _ in steps():
        break
    assert ended == [False] and mg.is_grad_enabled()


def test_nodes_remember_the_module_that_was_running():
    x = leaf([1.0])
    with scope("encoder"):
        outer = x * 2
        with scope("encoder.norm"):
            inner = outer.exp()
        after = inner + 1
    assert [t.node.scope for t in (outer, inner, after, after * 2)] == ["encoder", "encoder.norm", "encoder", ""]


def test_unused_outputs_of_an_op_count_as_zero():
    x = leaf(np.arange(6.0))
    first, _, third = mg.split(x, 3)
    (first * 2 + third * 5).sum().backward()
    assert_grad(x, [2, 2, 0, 0, 5, 5])


def test_each_output_may_be_used_many_times_or_be_the_root():
    x = leaf(np.arange(1.0, 5.0))
    a, b = mg.split(x, 2)
    (a * a + a).sum().backward(retain_graph=True)
    assert_grad(x, [3, 5, 0, 0])
    b.backward(np.array([10.0, 20.0]))
    assert_grad(x, [3, 5, 10, 20])


def test_outputs_that_are_not_floating_have_no_gradient():
    values, positions = mg.topk(leaf([3.0, 1.0, 2.0]), 2)
    assert values.requires_grad and not positions.requires_grad


def test_five_derivatives_of_the_fifth_power():
    x = leaf([1.5, -2.0])
    y, factor = x**5, 1.0
    for order in range(1, 6):
        (y,) = mg.autograd.grad(y.sum(), x, create_graph=True)
        factor *= 6 - order
        np.testing.assert_allclose(y.numpy(), factor * x.numpy() ** (5 - order), rtol=1e-12)


def test_eight_derivatives_of_the_sine():
    x = leaf([0.3, 2.0, -1.0])
    y = x.sin()
    for order in range(1, 9):
        (y,) = mg.autograd.grad(y.sum(), x, create_graph=True)
        np.testing.assert_allclose(y.numpy(), np.sin(x.numpy() + order * np.pi / 2), rtol=1e-12)


@pytest.mark.parametrize(
    "name, second",
    [
        ("exp", lambda v: np.exp(v)),
        ("tanh", lambda v: -2 * np.tanh(v) / np.cosh(v) ** 2),
        ("sqrt", lambda v: -0.25 * v**-1.5),
        ("reciprocal", lambda v: 2 / v**3),
        ("tan", lambda v: 2 * np.tan(v) / np.cos(v) ** 2),
    ],
)
def test_second_derivatives_flow_through_a_saved_output(name, second):
    x = leaf([0.3, 0.7, 1.1])
    (first,) = mg.autograd.grad(getattr(x, name)().sum(), x, create_graph=True)
    first.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), second(x.numpy()), rtol=1e-12)


def test_a_created_graph_mixes_with_further_operations():
    x = leaf([1.0, 2.0])
    y = (x**3).sum()
    (g,) = mg.autograd.grad(y, x, create_graph=True)
    (y + (g * g).sum()).backward()
    v = x.numpy()
    assert_grad(x, 3 * v**2 + 2 * 3 * v**2 * 6 * v)


def test_a_misspelt_name_in_a_rule_fails_where_the_op_is_declared():
    @mg.op
    def scaled(xp, value, *, factor=2.0):
        return value * factor

    with pytest.raises(ArgumentError, match="scaled.*'valu'(.|\n)*did you mean 'value'"):
        scaled.vjp(value=lambda g, valu: g)
    with pytest.raises(ArgumentError, match="no input 'valeu'(.|\n)*did you mean 'value'"):
        scaled.vjp(valeu=lambda g: g)
    with pytest.raises(ArgumentError, match="needs"):
        scaled.vjp(value=lambda g, needs: g)


def test_an_op_with_any_number_of_inputs_takes_one_rule():
    @mg.op
    def total(xp, *terms):
        return sum(terms)

    with pytest.raises(ArgumentError, match="@total.vjp"):
        total.vjp(terms=lambda g: g)


@pytest.mark.parametrize("result, problem", [(None, "not an array"), (0, "not an array"), (np.ones(7), "wrong shape")])
def test_a_rule_that_returns_nonsense_is_named(result, problem):
    @mg.op
    def odd(xp, a):
        return a + 1

    odd.vjp(a=lambda g: result)
    with pytest.raises((GradientError, ShapeError), match=f"rule of odd gave .*{problem}"):
        odd(leaf([1.0, 2.0])).sum().backward()


def test_a_users_op_without_a_rule_refuses_to_cut_the_graph():
    @mg.op
    def opaque(xp, a):
        return a + 1

    with pytest.raises(GradientError, match=r"opaque: there is no rule for the gradient of 'a'(.|\n)*opaque.vjp"):
        opaque(leaf([1.0]))
    assert not opaque(leaf([1.0]).detach()).requires_grad
    with mg.no_grad():
        assert opaque(leaf([1.0])).item() == 2.0


def test_a_users_rule_may_use_public_functions():
    @mg.op
    def sine(xp, a):
        return xp.sin(a)

    sine.vjp(a=lambda g, a: g * mg.cos(a))
    x = leaf([1.0, 2.0])
    sine(x * 2).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.cos([2.0, 4.0]))
    np.testing.assert_allclose(
        mg.hessian(lambda t: sine(t).sum())(x.detach()).numpy(), np.diag(-np.sin([1.0, 2.0])), atol=1e-12
    )


def test_a_forward_must_take_xp_and_return_an_array():
    with pytest.raises(ArgumentError, match="array module first"):
        mg.op(lambda x: x)

    @mg.op
    def pair(xp, a):
        return a, a

    with pytest.raises(ArgumentError, match=r"pair: its forward returned(.|\n)*several=True"):
        pair(mg.ones(2))


def test_a_users_error_inside_a_forward_keeps_its_cause():
    @mg.op
    def buggy(xp, a):
        return a + xp.ones(2) @ xp.ones(3)

    with pytest.raises(ArgumentError, match="^buggy: ") as caught:
        buggy(leaf([1.0]))
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize(
    "forward",
    [
        lambda xp, x, out: x * out,
        lambda xp, x, *, out=1: x * out,
        lambda xp, x, needs: x * needs,
        lambda xp, x, *, needs: x * needs,
        lambda xp, x_shape, x: x * x_shape,
        lambda xp, x, *, x_dtype: x,
        lambda xp, *x, x_ndim: sum(x),
        lambda xp, x, y, y_device: x * y,
    ],
)
def test_a_name_that_rules_use_for_something_else_is_refused_where_the_op_is_declared(forward):
    name = next(n for n in inspect.signature(forward).parameters if n in ("out", "needs") or "_" in n)
    with pytest.raises(ArgumentError, match=f"an input or attribute cannot be called '{name}'"):
        mg.op(forward)


def test_a_users_op_of_any_number_of_inputs_without_a_rule_refuses_to_cut_the_graph():
    @mg.op
    def total(xp, *terms):
        return sum(terms)

    for needy in (0, 1, 2):
        terms = [leaf([1.0]) if i == needy else mg.ones(1) for i in range(3)]
        with pytest.raises(
            GradientError, match=r"total: there is no rule for the gradient of 'terms'(.|\n)*@total.vjp"
        ):
            total(terms)
    assert total([mg.ones(1), mg.ones(1)]).item() == 2.0


def test_a_complex_output_is_refused_also_if_it_is_one_of_several():
    @mg.op(several=True)
    def halves(xp, a):
        return a, a * 1j

    @mg.op
    def turned(xp, a):
        return a * 1j

    halves.vjp(a=lambda g: g[0])
    turned.vjp(a=lambda g: g)
    for op in (halves, turned):
        with pytest.raises(GradientError, match=f"{op.name}: complex results have no derivative"):
            op(leaf([1.0, 2.0]))
    assert [part.requires_grad for part in halves(mg.ones(2))] == [False, False]


def test_only_hooks_on_the_way_to_an_input_run():
    x, other, seen = leaf([1.0, 2.0]), leaf([3.0]), []
    first, second = (x * 2).sum(), (other * 3).sum()
    second.register_hook(lambda g: seen.append("second"))
    other.register_hook(lambda g: seen.append("other"))
    first.register_hook(lambda g: seen.append("first"))
    (gradient,) = mg.autograd.grad([first, second, other.sum()], [x])
    assert gradient.tolist() == [2.0, 2.0] and seen == ["first"]
    mg.autograd.grad([(x * 2).sum(), other], [x], [mg.ones(()), mg.ones(1)])
    assert seen == ["first"]


@pytest.mark.parametrize(
    "compute", [lambda: 2.0 @ mg.ones(3), lambda: mg.matmul(2.0, mg.ones(3)), lambda: mg.ones(3) @ 2]
)
def test_a_matrix_product_with_a_number_is_refused_in_our_words(compute):
    with pytest.raises(DtypeError, match=r"matmul(.|\n)*vectors or matrices(.|\n)*with \*"):
        compute()


def test_a_with_inside_a_decorated_generator_neither_leaks_nor_is_lost():
    @mg.no_grad
    def modes():
        yield mg.is_grad_enabled()
        with mg.enable_grad():
            yield mg.is_grad_enabled()
            yield mg.is_grad_enabled()
            with mg.no_grad():
                yield mg.is_grad_enabled()
        yield mg.is_grad_enabled()

    inside, outside = [], []
    for mode in modes():
        inside.append(mode)
        outside.append(mg.is_grad_enabled())
    assert inside == [False, True, True, False, False] and outside == [True] * 5
    with mg.no_grad():
        steps = modes()
        assert [next(steps), next(steps)] == [False, True] and not mg.is_grad_enabled()
    assert next(steps) and mg.is_grad_enabled()


def test_generators_that_hold_a_mode_may_end_in_any_order():
    def holding(mode):
        with mode():
            yield

    first, second = holding(mg.no_grad), holding(mg.enable_grad)
    next(first)
    next(second)
    assert mg.is_grad_enabled()
    first.close()
    assert mg.is_grad_enabled()
    second.close()
    assert mg.is_grad_enabled()
    first, second = holding(mg.enable_grad), holding(mg.no_grad)
    next(first)
    next(second)
    first.close()
    assert not mg.is_grad_enabled()
    second.close()
    assert mg.is_grad_enabled()


def test_an_error_thrown_into_a_decorated_generator_reaches_it():
    caught = []

    @mg.no_grad
    def steps():
        for number in range(3):
            try:
                yield number
            except KeyError as error:
                caught.append((error.args, mg.is_grad_enabled()))
        return "end"

    running = steps()
    assert next(running) == 0
    assert running.throw(KeyError("here")) == 1 and mg.is_grad_enabled()
    assert caught == [(("here",), False)]
    with pytest.raises(ValueError, match="unknown"):
        running.throw(ValueError("unknown"))
    assert mg.is_grad_enabled()
    with pytest.raises(StopIteration):
        next(running)
