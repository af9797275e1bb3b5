"""Loss functions: PyTorch's numbers under every option, and refusals that say what is wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.functional_oracle import assert_as_torch, normal, uniform

import minigrad as mg
from minigrad.errors import ArgumentError, DeviceError, DtypeError, IndexingError, ShapeError

pytestmark = pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")
F = mg.nn.functional
REDUCTIONS = ["mean", "sum", "none"]
ELEMENTWISE = ["mse_loss", "l1_loss", "huber_loss", "kl_div", "binary_cross_entropy_with_logits"]
LABELS = {  # the shape of the input -> labels that fit it
    (5,): np.array(3),
    (4, 5): np.array([0, 4, -100, 2]),
    (2, 5, 3): np.array([[0, 4, 1], [2, -100, 0]]),
    (2, 5, 2, 2): np.array([[[0, 4], [1, -100]], [[2, 3], [3, 0]]]),
}


@pytest.mark.torch
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss", "kl_div"])
def test_elementwise_losses_agree_with_pytorch(name, reduction):
    assert_as_torch(name, normal(3, 4), uniform(3, 4, seed=1), reduction=reduction)


@pytest.mark.torch
@pytest.mark.parametrize("delta", [0.3, 1.0, 2.5])
def test_huber_loss_with_delta_agrees_with_pytorch(delta):
    assert_as_torch("huber_loss", normal(3, 4), normal(3, 4, seed=1), delta=delta)


@pytest.mark.torch
@pytest.mark.parametrize("log_target", [False, True])
@pytest.mark.parametrize("reduction", [*REDUCTIONS, "batchmean"])
def test_kl_div_agrees_with_pytorch(reduction, log_target):
    target = uniform(3, 4, seed=1)
    assert_as_torch(
        "kl_div", normal(3, 4), np.log(target) if log_target else target, reduction=reduction, log_target=log_target
    )


def test_kl_div_of_a_zero_probability_is_zero_with_a_finite_gradient():
    target = mg.tensor([0.0, 1.0], requires_grad=True)
    loss = F.kl_div(mg.tensor([-1.0, -2.0]), target, reduction="none")
    loss.sum().backward()
    np.testing.assert_allclose(loss.numpy(), [0.0, 2.0])
    assert np.isfinite(target.grad.numpy()).all()


@pytest.mark.torch
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weights", [(), ("weight",), ("pos_weight",), ("weight", "pos_weight")])
def test_binary_cross_entropy_agrees_with_pytorch(weights, reduction):
    given = {name: uniform(4, seed=i) for i, name in enumerate(weights)}
    assert_as_torch(
        "binary_cross_entropy_with_logits",
        3 * normal(3, 4),
        uniform(3, 4, seed=1),
        reduction=reduction,
        constants=weights,
        **given,
    )


def test_binary_cross_entropy_is_exact_for_large_logits_of_either_sign():
    logits = mg.tensor([20.0, -20.0, 1000.0, -1000.0])
    losses = F.binary_cross_entropy_with_logits(logits, mg.tensor([1.0, 0.0, 0.0, 1.0]), reduction="none").numpy()
    np.testing.assert_allclose(losses, [math.log1p(math.exp(-20)), math.log1p(math.exp(-20)), 1000, 1000], rtol=1e-6)


def test_binary_cross_entropy_at_logit_zero_has_gradient_half_minus_target():
    logits = mg.zeros(2, requires_grad=True)
    F.binary_cross_entropy_with_logits(logits, mg.tensor([1.0, 0.0]), reduction="sum").backward()
    np.testing.assert_array_equal(logits.grad.numpy(), [-0.5, 0.5])


@pytest.mark.torch
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", LABELS, ids=str)
def test_cross_entropy_of_labels_agrees_with_pytorch(shape, weighted, smoothing, reduction):
    constants = {"target": LABELS[shape]} | ({"weight": uniform(5)} if weighted else {})
    assert_as_torch(
        "cross_entropy",
        normal(*shape),
        constants=list(constants),
        **constants,
        label_smoothing=smoothing,
        reduction=reduction,
    )


@pytest.mark.torch
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(5,), (4, 5), (2, 5, 3), (5, 5, 5)], ids=str)
def test_cross_entropy_of_probabilities_agrees_with_pytorch(shape, weighted, smoothing, reduction):
    constants = {"weight": uniform(5)} if weighted else {}
    assert_as_torch(
        "cross_entropy",
        normal(*shape),
        uniform(*shape, seed=1),
        constants=list(constants),
        **constants,
        label_smoothing=smoothing,
        reduction=reduction,
    )


@pytest.mark.torch
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", LABELS, ids=str)
def test_nll_loss_agrees_with_pytorch(shape, weighted, reduction):
    constants = {"target": LABELS[shape]} | ({"weight": uniform(5)} if weighted else {})
    assert_as_torch("nll_loss", normal(*shape), constants=list(constants), **constants, reduction=reduction)


@pytest.mark.torch
def test_another_ignore_index_agrees_with_pytorch():
    target = np.array([0, 4, 2, 2])
    for name in ("cross_entropy", "nll_loss"):
        assert_as_torch(name, normal(4, 5), constants=["target"], target=target, ignore_index=2)


def test_ignored_labels_get_no_gradient(device):
    logits = mg.tensor(normal(4, 5), device=device, requires_grad=True)
    F.cross_entropy(logits, mg.tensor(LABELS[4, 5], device=device)).backward()
    norms = abs(logits.grad.numpy()).sum(axis=1)
    assert norms[2] == 0 and (np.delete(norms, 2) > 0).all()


def test_an_ignored_label_hides_an_infinite_loss():
    scores = mg.tensor([[-math.inf, 0.0], [-1.0, -2.0]])
    assert F.nll_loss(scores, mg.tensor([-100, 0])).item() == 1.0


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
def test_the_mean_over_nothing_but_ignored_labels_is_nan(name):
    assert math.isnan(getattr(F, name)(mg.tensor(normal(2, 3)), mg.tensor([-100, -100])).item())
    assert getattr(F, name)(mg.tensor(normal(2, 3)), mg.tensor([-100, -100]), reduction="sum").item() == 0


def test_cross_entropy_of_huge_logits_is_finite():
    assert F.cross_entropy(mg.tensor([[1e4, -1e4]]), mg.tensor([1])).item() == 2e4


def test_class_weights_can_be_learnt():
    weight = mg.tensor([1.0, 2.0, 3.0], dtype="float64", requires_grad=True)
    scores, labels = -np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 6.0]]), [0, 2]
    F.nll_loss(scores, labels, weight, reduction="sum").backward()
    np.testing.assert_array_equal(weight.grad.numpy(), [1.0, 0.0, 6.0])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_labels_may_have_any_integer_dtype(dtype):
    logits = normal(3, 4)
    expected = F.cross_entropy(logits, np.array([0, 3, 1])).item()
    assert F.cross_entropy(logits, np.array([0, 3, 1], dtype=dtype)).item() == expected


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_float32_losses_stay_float32_also_with_whole_number_targets(name):
    for target in (mg.tensor([1.0, 0.0]), mg.tensor([1, 0]), mg.tensor([True, False])):
        assert getattr(F, name)(mg.tensor([0.5, -0.5]), target).dtype == np.float32


@pytest.mark.parametrize(
    "options", [{}, {"label_smoothing": 0.1}, {"weight": None}], ids=["plain", "smoothed", "weighted"]
)
def test_float32_cross_entropy_stays_float32(options, device):
    options = {key: mg.ones(3, device=device) if key == "weight" else value for key, value in options.items()}
    logits = mg.zeros(2, 3, device=device, requires_grad=True)
    loss = F.cross_entropy(logits, mg.tensor([0, 2], device=device), **options)
    loss.backward()
    assert loss.dtype == np.float32 and logits.grad.dtype == np.float32 and loss.device == device


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize(("shape", "other"), [((3, 1), (3,)), ((3,), (3, 1)), ((2, 3), (3,)), ((3,), ())], ids=str)
def test_a_target_that_would_only_broadcast_is_refused(name, shape, other):
    with pytest.raises(ShapeError, match=name) as error:
        getattr(F, name)(mg.zeros(*shape), mg.zeros(other))
    assert f"input {shape} and target {other}" in str(error.value)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_the_refusal_of_n_1_against_n_says_how_to_mend_it(name):
    with pytest.raises(ShapeError, match=r"target\.reshape\(\(4, 1\)\)"):
        getattr(F, name)(mg.zeros(4, 1), mg.zeros(4))


@pytest.mark.parametrize("name", [*ELEMENTWISE, "cross_entropy", "nll_loss"])
def test_an_unknown_reduction_gets_the_nearest(name):
    with pytest.raises(ArgumentError, match="did you mean 'mean'"):
        getattr(F, name)(mg.zeros(2, 2), mg.zeros(2, 2), reduction="meen")


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
@pytest.mark.parametrize("label", [3, -1, 300])
def test_a_label_out_of_range_is_shown_with_the_number_of_classes(name, label, device):
    with pytest.raises(IndexingError, match=f"{name}(?s:.*)3 classes(?s:.*){label}"):
        getattr(F, name)(mg.zeros(2, 3, device=device), mg.tensor([0, label], device=device))


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
def test_floating_labels_are_refused(name):
    with pytest.raises(DtypeError, match="whole numbers"):
        getattr(F, name)(mg.zeros(2, 3), mg.zeros(2))


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
@pytest.mark.parametrize(
    ("shape", "labels"), [((4, 3), (4, 1)), ((4, 3), (3,)), ((2, 5, 3), (2, 5)), ((3,), (3, 1))], ids=str
)
def test_labels_of_a_wrong_shape_are_refused(name, shape, labels):
    with pytest.raises(ShapeError) as error:
        getattr(F, name)(mg.zeros(*shape), mg.zeros(*labels, dtype="int64"))
    assert name in str(error.value) and str(shape) in str(error.value) and str(labels) in str(error.value)


def test_probabilities_of_a_wrong_shape_are_refused():
    with pytest.raises(ShapeError, match=r"\(4, 3\)(?s:.*)\(4, 2\)"):
        F.cross_entropy(mg.zeros(4, 3), mg.zeros(4, 2))


def test_whole_number_targets_of_the_input_shape_are_refused():
    with pytest.raises(DtypeError, match="one-hot"):
        F.cross_entropy(mg.zeros(2, 3), mg.tensor([[1, 0, 0], [0, 1, 0]]))


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
def test_other_bad_arguments_are_refused_by_name(name):
    loss, logits, labels = getattr(F, name), mg.zeros(2, 3), mg.tensor([0, 1])
    with pytest.raises(ShapeError, match=r"\(3,\)(?s:.*)\(2,\)"):
        loss(logits, labels, weight=mg.ones(2))
    with pytest.raises(ShapeError, match="classes"):
        loss(mg.tensor(1.0), mg.tensor(0))


def test_label_smoothing_and_delta_must_make_sense():
    with pytest.raises(ArgumentError, match="label_smoothing"):
        F.cross_entropy(mg.zeros(2, 3), mg.tensor([0, 1]), label_smoothing=1.5)
    with pytest.raises(ArgumentError, match="delta"):
        F.huber_loss(mg.zeros(2), mg.zeros(2), delta=0)


def test_labels_on_another_device_are_refused():
    with pytest.raises(DeviceError):
        F.cross_entropy(mg.zeros(2, 3, device="fake"), mg.tensor([0, 1]))
