"""The checker itself: it passes what is right, and bites on every kind of wrong derivative."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad.check import CheckResult, GradcheckError, KinkError, gradcheck
from minigrad.engine.tensor import wrap
from minigrad.errors import ArgumentError, DtypeError, MinigradError, ShapeError

POINT = mg.tensor([[0.3, -1.2, 0.8], [1.7, 0.4, -0.6]], dtype="float64")


def wrong(forward: Any, **rules: Any) -> Any:
    """An op with the given rules."""
    made = mg.op(forward)
    made.vjp(**rules)
    return made


def test_right_derivatives_pass_and_are_counted() -> None:
    result = gradcheck(lambda x: mg.tanh(x) @ x.T, POINT)
    assert result == CheckResult(ok=True, compared=2 * (6 + 3), kinks=0)


def test_several_inputs_and_outputs_and_constants_are_taken() -> None:
    rows = mg.tensor([1, 0, 1])
    assert gradcheck(lambda x, i, y: (x[i] * y, i, mg.exp(y).sum()), [POINT, rows, POINT[0]])


def test_large_inputs_are_checked_along_random_directions() -> None:
    big = mg.tensor(np.random.default_rng(0).standard_normal((30, 40)))
    assert gradcheck(lambda x: mg.log(1 + x * x), big).compared == 6
    with pytest.raises(GradcheckError, match="random direction"):
        gradcheck(wrong(lambda xp, a: a * a * a, a=lambda g, a: 3.001 * g * a * a), big)


def test_parameters_of_a_module_are_checked_too() -> None:
    class Scale:
        def __init__(self) -> None:
            self.weight = mg.tensor([1.5, -0.5, 2.0], dtype="float64", requires_grad=True)

        def parameters(self) -> list[mg.Tensor]:
            return [self.weight]

        def __call__(self, x: mg.Tensor) -> mg.Tensor:
            return product(x, self.weight)

    module = Scale()
    before = module.weight.numpy().copy()
    product: Any = mg.multiply
    assert gradcheck(module, POINT)
    product = wrong(lambda xp, a, b: a * b, a=lambda g, b: g * b, b=lambda g, a: 2 * g * a)
    with pytest.raises(GradcheckError, match="parameter 0, element"):
        gradcheck(module, POINT)
    np.testing.assert_array_equal(module.weight.numpy(), before)
    assert module.weight.grad is None


@pytest.mark.parametrize("factor", [1.0001, -1.0, 0.0, 2.0])
def test_wrong_gradient_is_caught_and_described(factor: float) -> None:
    square = wrong(lambda xp, a: a * a, a=lambda g, a: factor * 2 * g * a)
    with pytest.raises(GradcheckError) as caught:
        gradcheck(square, POINT, order=1)
    text = str(caught.value)
    assert "first derivative is wrong in input 0, element (0, 0)" in text
    for part in ("by finite differences", "by backward", "off by", "within"):
        assert part in text


def test_wrong_gradient_of_one_element_only_is_caught() -> None:
    def lopsided(g: Any, a: Any) -> Any:
        return (
            mg.where(np.array([False, False, True]), g * 3 * a, g * 2 * a)
            if isinstance(g, mg.Tensor)
            else g * np.array([2, 2, 3.0]) * a
        )

    with pytest.raises(GradcheckError, match=r"element \(0, 2\)"):
        gradcheck(wrong(lambda xp, a: a * a, a=lopsided), POINT, order=1)


def test_gradient_that_is_missing_is_caught() -> None:
    with pytest.raises(GradcheckError, match="first derivative is wrong in input 1"):
        gradcheck(lambda x, y: x * y.detach(), [POINT, POINT + 0.1], order=1)


def test_right_gradient_with_a_wrong_second_derivative_is_caught() -> None:
    """The residual is right in value, but the second derivative does not know that it depends on the input."""

    def hides_a_residual(g: Any, a: Any) -> Any:
        residual = 3 * a * a
        return g * (residual.detach() if isinstance(residual, mg.Tensor) else residual)

    cube = wrong(lambda xp, a: a * a * a, a=hides_a_residual)
    assert gradcheck(cube, POINT, order=1)
    with pytest.raises(GradcheckError, match="second derivative is wrong"):
        gradcheck(cube, POINT)


def test_rule_that_treats_the_incoming_gradient_as_a_constant_is_caught() -> None:
    """Right wherever the gradient comes straight from a seed, wrong as soon as it depends on the input."""

    def hides_the_gradient(g: Any, b: Any) -> Any:
        return (g.detach() if isinstance(g, mg.Tensor) else g) * b

    product = wrong(lambda xp, a, b: a * b, a=hides_the_gradient, b=lambda g, a: g * a)
    assert gradcheck(product, [POINT, POINT + 0.1], order=1)
    with pytest.raises(GradcheckError, match="second derivative is wrong"):
        gradcheck(product, [POINT, POINT + 0.1])


def test_gradient_that_differs_under_create_graph_is_caught() -> None:
    square = wrong(lambda xp, a: a * a, a=lambda g, a: g * a * (2.5 if isinstance(g, mg.Tensor) else 2))
    assert gradcheck(square, POINT, order=1)
    with pytest.raises(GradcheckError, match="changes with create_graph"):
        gradcheck(square, POINT)


def test_gradient_of_a_wrong_shape_is_refused() -> None:
    with pytest.raises(ShapeError, match="wrong shape"):
        gradcheck(wrong(lambda xp, a: a.sum(), a=lambda g, a: a[:1]), POINT)


def test_gradient_of_a_wrong_dtype_is_caught() -> None:
    def narrowing(x: mg.Tensor) -> mg.Tensor:
        if x.requires_grad and mg.is_grad_enabled():
            x.register_hook(lambda g: wrap(g.data.astype("float32")))
        return x * x

    with pytest.raises(MinigradError, match="float32"):
        gradcheck(narrowing, POINT)


def test_function_that_is_not_deterministic_is_refused() -> None:
    with pytest.raises(GradcheckError, match="not deterministic"):
        gradcheck(mg.nn.functional.dropout, POINT)


def test_function_that_sets_its_seed_is_deterministic() -> None:
    def dropout(x: mg.Tensor) -> mg.Tensor:
        mg.manual_seed(3)
        return mg.nn.functional.dropout(x, p=0.4)

    assert gradcheck(dropout, POINT)


def test_value_that_changes_when_recorded_is_caught() -> None:
    with pytest.raises(GradcheckError, match="changes when it is recorded"):
        gradcheck(lambda x: x * 2 if mg.is_grad_enabled() else x * 3, POINT)


def test_input_that_is_changed_in_place_is_caught() -> None:
    def overwrite(x: mg.Tensor) -> mg.Tensor:
        with mg.no_grad():
            x[0] = 5.0
        return x * x

    with pytest.raises(GradcheckError, match="changed input 0 in place"):
        gradcheck(overwrite, POINT)


def test_inputs_of_the_caller_are_left_alone() -> None:
    x = mg.tensor([1.0, 2.0], dtype="float64", requires_grad=True)
    gradcheck(lambda x: x * x, x)
    assert x.grad is None and x.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "function", [mg.abs, mg.relu, mg.floor, lambda x: mg.maximum(x, 0.0)], ids=["abs", "relu", "floor", "maximum"]
)
def test_kink_is_reported_as_one(function: Any) -> None:
    point = mg.tensor([0.5, 0.0, -0.5], dtype="float64")
    with pytest.raises(KinkError, match=r"bends or jumps .* element \(1,\)"):
        gradcheck(function, point)
    result = gradcheck(function, point, allow_kinks=True)
    assert result and result.kinks == 1 and result.compared > 0


def test_jump_of_the_gradient_is_a_kink_of_the_second_order() -> None:
    point = mg.tensor([0.5, 0.0], dtype="float64")
    assert gradcheck(lambda x: x * mg.abs(x), point, order=1)
    with pytest.raises(KinkError, match="no second derivative"):
        gradcheck(lambda x: x * mg.abs(x), point)


def test_kink_nearby_is_no_obstacle() -> None:
    assert gradcheck(mg.abs, mg.tensor([1e-4, -1e-4], dtype="float64")).kinks == 0


def test_wrong_gradient_beside_a_kink_is_still_caught() -> None:
    crooked = wrong(lambda xp, a: abs(a), a=lambda g, a: g * 1.01 * mg.sign(mg.tensor(a)).numpy())
    with pytest.raises(GradcheckError, match=r"first derivative is wrong in input 0, element \(0,\)"):
        gradcheck(crooked, mg.tensor([1.5, 0.0], dtype="float64"), order=1, allow_kinks=True)


def test_edge_of_the_domain_is_explained() -> None:
    with pytest.raises(GradcheckError, match="not finite near this point"), np.errstate(all="ignore"):
        gradcheck(mg.log, mg.tensor([0.0], dtype="float64"))


def test_float32_is_refused_with_the_reason_unless_tolerances_are_given() -> None:
    narrow = POINT.astype("float32")
    with pytest.raises(DtypeError, match="float32, in which rounding hides"):
        gradcheck(mg.exp, narrow)
    assert gradcheck(mg.exp, narrow, atol=1e-2, rtol=1e-2)
    with pytest.raises(GradcheckError):
        gradcheck(wrong(lambda xp, a: a * a, a=lambda g, a: 3 * g * a), narrow, atol=1e-2, rtol=1e-2)


def test_arguments_that_cannot_be_checked_are_refused() -> None:
    with pytest.raises(ArgumentError, match="nothing to differentiate"):
        gradcheck(lambda i: i, mg.tensor([1, 2]))
    with pytest.raises(ArgumentError, match="order must be 1 or 2"):
        gradcheck(mg.exp, POINT, order=3)
    with pytest.raises(GradcheckError, match="must return Tensors"):
        gradcheck(lambda x: x.numpy(), POINT)
    with pytest.raises(GradcheckError, match="no floating output"):
        gradcheck(lambda x: x > 0, POINT)


def test_without_exceptions_the_problem_is_returned() -> None:
    result = gradcheck(wrong(lambda xp, a: a * a, a=lambda g, a: g * a), POINT, raise_exception=False)
    assert not result and "first derivative is wrong" in result.problem


def test_the_same_seed_gives_the_same_check() -> None:
    broken = wrong(lambda xp, a: a * a, a=lambda g, a: g * a)
    first, again, other = (gradcheck(broken, POINT, seed=seed, raise_exception=False).problem for seed in (1, 1, 2))
    assert first == again != other


def test_recomputed_functions_have_the_derivatives_of_the_function() -> None:
    assert gradcheck(mg.recompute(lambda x, y: mg.tanh(x @ y.T) * 2), [POINT, POINT + 0.1])


def test_gradcheck_works_on_another_device() -> None:
    assert gradcheck(lambda x: mg.tanh(x) @ x.T, POINT.to("fake"))
