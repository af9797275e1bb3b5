"""Losses, activations, norms and embeddings beside PyTorch's: values and derivatives of both orders, also at kinks and borders."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.functional_oracle import assert_as_torch, normal, uniform

import minigrad as mg
from minigrad import kernels
from minigrad.errors import ArgumentError, DtypeError, IndexingError, ShapeError

F = mg.nn.functional
KINKS = np.array([-8.0, -3.0, -1.5, -0.5, -0.1, 0.0, 0.1, 0.5, 1.5, 3.0, 6.0, 8.0])
SIGNS = np.where(normal(3, 4, seed=9) > 0, 1.0, -1.0)
LABELS = np.array([3, 0, 1])
REDUCTIONS = ("mean", "sum", "none")


def case(name: str, *arrays: np.ndarray, **options: Any) -> Any:
    label = ", ".join(f"{k}={v}" for k, v in options.items() if not isinstance(v, np.ndarray) and k != "constants")
    return pytest.param(name, arrays, options, id=f"{name}({label})")


ACTIVATIONS = [
    case("relu6", KINKS),
    case("softplus", KINKS, beta=0.5, threshold=1.6),
    case("softplus", KINKS, beta=-2.0),
    case("hardswish", KINKS),
    case("celu", KINKS[KINKS != 0], alpha=0.5),
    case("celu", KINKS[KINKS != 0], alpha=-2.0),
    case("threshold", KINKS, threshold=0.5, value=20.0),
    case("prelu", KINKS[KINKS != 0], np.array([0.2])),
    case("prelu", normal(2, 3, 4), uniform(3)),
    case("rrelu", KINKS),
    case("glu", normal(3, 4)),
    case("glu", normal(4, 3), axis=0),
    case("softmin", normal(3, 4), axis=0),
    case("tanhshrink", KINKS),
    case("softshrink", KINKS),
    case("softshrink", KINKS, lambd=0.0),
    case("hardshrink", KINKS),
]
NORMS = [
    case("normalize", normal(3, 4), p=3.0, axis=0),
    case("normalize", np.zeros((2, 3)) + np.eye(2, 3)),
    case("pairwise_distance", normal(3, 4), normal(3, 4, seed=1), p=1.5, keepdims=True),
    case("cosine_similarity", normal(3, 4), normal(3, 4, seed=1)),
    case("group_norm", normal(2, 6, 3), num_groups=3, constants=["weight"], weight=uniform(6)),
    case("group_norm", normal(2, 4), num_groups=2, eps=0.1),
    case("instance_norm", normal(2, 3, 4), constants=["weight", "bias"], weight=uniform(3), bias=normal(3)),
    case("local_response_norm", normal(2, 5, 3), size=2, alpha=0.5),
    case("local_response_norm", normal(2, 5, 3, 2), size=3, alpha=0.5, beta=0.5, k=2.0),
    case("bilinear", normal(2, 3), normal(2, 4, seed=1), normal(5, 3, 4, seed=2), normal(5, seed=3)),
]
BAG, TABLE = np.array([0, 2, 4, 4, 1]), normal(5, 3)
OFFSETS = {"constants": ["offsets"], "offsets": np.array([0, 3, 3])}
EMBEDDINGS = [case("embedding_bag", BAG, TABLE, mode=mode, **OFFSETS) for mode in ("sum", "mean", "max")] + [
    case("embedding_bag", np.array([[0, 2], [4, 1]]), TABLE),
    case("embedding_bag", BAG, TABLE, mode="mean", padding_idx=4, **OFFSETS),
    case("embedding_bag", BAG, TABLE, include_last_offset=True, constants=["offsets"], offsets=np.array([0, 3, 5])),
]


@pytest.mark.torch
@pytest.mark.parametrize(("name", "arrays", "options"), ACTIVATIONS + NORMS)
def test_a_function_agrees_with_pytorch(name, arrays, options):
    assert_as_torch(name, *arrays, **options)


@pytest.mark.torch
@pytest.mark.parametrize(("name", "arrays", "options"), EMBEDDINGS)
def test_bags_agree_with_pytorch(name, arrays, options):
    assert_as_torch(name, *arrays, orders=1, **options)  # PyTorch's has no second derivative


PAIR = normal(3, 4), normal(3, 4, seed=1)
LOSSES = [
    case("mse_loss", *PAIR, constants=["weight"], weight=uniform(3, 4)),
    case("l1_loss", *PAIR, constants=["weight"], weight=uniform(3, 4)),
    case("huber_loss", *PAIR, constants=["weight"], weight=uniform(3, 4)),
    case("smooth_l1_loss", *PAIR, beta=0.7),
    case("smooth_l1_loss", *PAIR, beta=0.0),
    case("binary_cross_entropy", uniform(3, 4), uniform(3, 4, seed=1), constants=["weight"], weight=uniform(4, seed=2)),
    case("gaussian_nll_loss", *PAIR, uniform(3, 4)),
    case("gaussian_nll_loss", *PAIR, uniform(3, 1), full=True, eps=0.5),
    case("gaussian_nll_loss", *PAIR, uniform(3)),
    case("poisson_nll_loss", normal(3, 4), 4 * uniform(3, 4), full=True),
    case("poisson_nll_loss", uniform(3, 4), 4 * uniform(3, 4), log_input=False, eps=0.01),
    case("hinge_embedding_loss", normal(3, 4), constants=["target"], target=SIGNS, margin=0.6),
    case("soft_margin_loss", normal(3, 4), constants=["target"], target=SIGNS),
    case("margin_ranking_loss", *PAIR, constants=["target"], target=SIGNS, margin=0.3),
    case("cosine_embedding_loss", *PAIR, constants=["target"], target=SIGNS[:, 0], margin=-0.2),
    case("cosine_embedding_loss", PAIR[0][0], PAIR[1][0], constants=["target"], target=np.array(-1)),
    case("triplet_margin_loss", *PAIR, normal(3, 4, seed=2), swap=True, p=1.0, margin=3.0),
    case("triplet_margin_with_distance_loss", *PAIR, normal(3, 4, seed=2), margin=2.0),
    case("multi_margin_loss", normal(3, 4), constants=["target", "weight"], target=LABELS, weight=uniform(4), p=2),
    case("multi_margin_loss", normal(4), constants=["target"], target=np.array(2), margin=0.5),
    case("multilabel_margin_loss", normal(2, 3), constants=["target"], target=np.array([[2, 0, -1], [-1, 1, 0]])),
    case("multilabel_margin_loss", normal(3), constants=["target"], target=np.array([1, 1, -1])),
    case("multilabel_soft_margin_loss", normal(3, 4), uniform(3, 4), constants=["weight"], weight=uniform(4, seed=2)),
]
# PyTorch's have no second derivative, or only an approximate one
FIRST_ORDER = {"multi_margin_loss", "multilabel_margin_loss", "binary_cross_entropy"}


@pytest.mark.torch
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("name", "arrays", "options"), LOSSES)
def test_a_loss_agrees_with_pytorch(name, arrays, options, reduction):
    assert_as_torch(name, *arrays, orders=1 if name in FIRST_ORDER else 2, reduction=reduction, **options)


@pytest.mark.torch
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("in_a_row", [False, True])
def test_ctc_loss_behind_log_softmax_agrees_with_pytorch(in_a_row, reduction):
    import torch

    lengths = [3, 0, 2, 3]
    padded = np.random.default_rng(0).integers(1, 5, (4, 3))
    padded[3] = [2, 2, 2]  # which needs a blank between each two
    targets = np.concatenate([row[:n] for row, n in zip(padded, lengths)]) if in_a_row else padded
    options = {"reduction": reduction, "zero_infinity": True}
    ours = mg.tensor(normal(7, 4, 5), requires_grad=True)
    theirs = torch.tensor(ours.numpy().copy(), requires_grad=True)
    inputs = [7, 6, 1, 5]  # the third example is too short for its labels
    loss = F.ctc_loss(F.log_softmax(ours, axis=2), targets, inputs, lengths, **options)
    expected = torch.nn.functional.ctc_loss(
        theirs.log_softmax(2), torch.tensor(targets), torch.tensor(inputs), torch.tensor(lengths), **options
    )
    np.testing.assert_allclose(loss.numpy(), expected.detach().numpy(), rtol=1e-10)
    loss.sum().backward()
    expected.sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_ctc_loss_by_both_recursions_is_that_of_its_definition(seed):
    """The recursion in NumPy, and that made of ops: the same losses and gradients, in impossible and empty examples, too."""
    rng, found = np.random.default_rng(seed), []
    labels, inputs, lengths = rng.integers(1, 4, (8, 5)), rng.integers(0, 12, 8), rng.integers(0, 6, 8)
    values = rng.standard_normal((11, 8, 4))
    for name in ("numpy", "definitions"):
        x = mg.tensor(values, requires_grad=True)
        with kernels.use(name):
            losses = F.ctc_loss(F.log_softmax(x, axis=2), labels, inputs, lengths, reduction="none")
            weighted = mg.where(mg.isfinite(losses), losses, 0) * mg.arange(1, 9)
            found.append((losses.numpy(), mg.autograd.grad(weighted.sum(), x)[0].numpy()))
    assert np.isinf(found[0][0]).any() and np.isfinite(found[0][0]).any()
    for ours, defined in zip(*found):
        np.testing.assert_allclose(ours, defined, rtol=1e-10, atol=1e-13)


def test_labels_that_do_not_fit_into_the_input_have_an_infinite_ctc_loss_and_finite_gradients():
    x = mg.tensor(normal(2, 3), requires_grad=True)
    loss = F.ctc_loss(F.log_softmax(x), [1, 1], [2], [2], reduction="none")
    loss.backward()
    assert loss.shape == () and loss.item() == math.inf and np.isfinite(x.grad.numpy()).all()
    assert F.ctc_loss(F.log_softmax(x), [1, 1], [2], [2], zero_infinity=True).item() == 0


@pytest.mark.torch
@pytest.mark.parametrize("momentum", [0.1, 0.7])
def test_running_statistics_of_instance_norm_are_pytorchs(momentum):
    import torch

    x, start = normal(2, 3, 4), [normal(3, seed=3), uniform(3, seed=4)]
    ours, theirs = [mg.tensor(a) for a in start], [torch.tensor(a) for a in start]
    out = F.instance_norm(mg.tensor(x), *ours, momentum=momentum)
    expected = torch.nn.functional.instance_norm(torch.tensor(x), *theirs, momentum=momentum)
    for a, b in zip([out, *ours], [expected, *theirs]):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-10)


@pytest.mark.torch
def test_binary_cross_entropy_of_certain_predictions_is_pytorchs_with_its_gradient():
    import torch

    given, target = np.array([0.0, 0.0, 1.0, 1.0]), np.array([1.0, 0.0, 1.0, 0.0])
    ours, theirs = mg.tensor(given, requires_grad=True), torch.tensor(given, requires_grad=True)
    loss = F.binary_cross_entropy(ours, target)
    expected = torch.nn.functional.binary_cross_entropy(theirs, torch.tensor(target))
    assert loss.item() == expected.item() == 50
    loss.backward()
    expected.backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-7)  # 1e12 times the share that is wrong


def test_a_random_slope_of_rrelu_is_drawn_for_each_element(device):
    x = -mg.ones(2000, device=device)
    x.requires_grad_()
    out = F.rrelu(x, 0.2, 0.6, training=True)
    slopes = -out.numpy()
    assert slopes.min() >= 0.2 and slopes.max() <= 0.6 and abs(slopes.mean() - 0.4) < 0.02
    out.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), slopes)


def test_gumbel_softmax_draws_classes_by_their_probabilities(device):
    mg.manual_seed(0)
    logits = mg.tensor(np.log([[0.2, 0.5, 0.3]] * 4000), device=device, requires_grad=True)
    drawn = F.gumbel_softmax(logits, tau=0.5, hard=True)
    np.testing.assert_allclose(drawn.numpy().mean(axis=0), [0.2, 0.5, 0.3], atol=0.03)
    np.testing.assert_allclose(np.sort(drawn.numpy())[:, :2], 0, atol=1e-12)
    (drawn * mg.tensor(normal(4000, 3), device=device)).sum().backward()
    assert abs(logits.grad.numpy()).max() > 0  # of the soft sample: a choice itself has none
    soft = F.gumbel_softmax(logits.detach(), axis=0)
    np.testing.assert_allclose(soft.numpy().sum(axis=0), 1)


@pytest.mark.parametrize(
    ("name", "shape", "channels"),
    [
        ("dropout1d", (50, 40, 3), (50, 40)),
        ("dropout1d", (400, 3), (400,)),
        ("dropout2d", (50, 40, 2, 3), (50, 40)),
        ("dropout3d", (50, 40, 2, 1, 3), (50, 40)),
        ("dropout3d", (400, 2, 1, 3), (400,)),
    ],
)
def test_a_channel_is_dropped_as_a_whole_and_the_rest_scaled(name, shape, channels, device):
    mg.manual_seed(0)
    out = getattr(F, name)(mg.ones(*shape, device=device), 0.25).numpy().reshape(*channels, -1)
    assert (out == out[..., :1]).all()
    np.testing.assert_array_equal(np.unique(out), np.array([0, 1 / 0.75], "float32"))
    assert abs((out == 0).mean() - 0.25) < 0.08


@pytest.mark.parametrize("name", ["alpha_dropout", "feature_alpha_dropout"])
def test_alpha_dropout_keeps_mean_and_variance(name, device):
    mg.manual_seed(0)
    out = getattr(F, name)(mg.tensor(normal(200, 200, 1), device=device), 0.3, training=True).numpy()
    assert abs(out.mean()) < 0.03 and abs(out.var() - 1) < 0.05
    scale = 1 / math.sqrt(0.7 * (1 + 0.3 * 1.7580993408473766**2))
    dropped = np.isclose(out, scale * (-1.7580993408473766 + 0.3 * 1.7580993408473766))
    assert abs(dropped.mean() - 0.3) < 0.02


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: F.smooth_l1_loss(mg.ones(3, 1), mg.ones(3)), ShapeError, r"smooth_l1_loss(.|\n)*reshape\(\(3, 1\)\)"),
        (lambda: F.mse_loss(mg.ones(3), mg.ones(3), weight=mg.ones(1)), ShapeError, "mse_loss"),
        (lambda: F.binary_cross_entropy([1.5], [1.0]), ArgumentError, "0 to 1(.|\n)*1.5(.|\n)*with_logits"),
        (lambda: F.gaussian_nll_loss([1.0], [1.0], [-1.0]), ArgumentError, "variance is negative"),
        (lambda: F.gaussian_nll_loss(mg.ones(3, 2), mg.ones(3, 2), mg.ones(2)), ShapeError, "variance does not fit"),
        (lambda: F.margin_ranking_loss(mg.ones(3), mg.ones(3, 1), mg.ones(3)), ShapeError, "margin_ranking_loss"),
        (lambda: F.margin_ranking_loss(mg.ones(3, 1), mg.ones(3, 1), mg.ones(3)), ShapeError, "margin_ranking_loss"),
        (lambda: F.cosine_embedding_loss(mg.ones(3, 2), mg.ones(3, 2), mg.ones(3, 1)), ShapeError, r"target \(N,\)"),
        (lambda: F.triplet_margin_loss(mg.ones(3, 2), mg.ones(2), mg.ones(3, 2)), ShapeError, "triplet_margin_loss"),
        (lambda: F.multi_margin_loss(mg.ones(2, 3), [0, 3]), IndexingError, "0 to 2"),
        (lambda: F.multi_margin_loss(mg.ones(2, 3), [0, 1], p=3), ArgumentError, "p=1 or p=2"),
        (lambda: F.multilabel_margin_loss(mg.ones(3), [0, 3, -1]), IndexingError, "-1 to 2"),
        (lambda: F.multilabel_margin_loss(mg.ones(3), mg.ones(3)), DtypeError, "whole numbers"),
        (lambda: F.hinge_embedding_loss([1.0], [1.0], reduction="meen"), ArgumentError, "did you mean 'mean'"),
        (lambda: F.ctc_loss(mg.ones(4, 2, 3), [[1], [3]], [4, 4], [1, 1]), IndexingError, "0 to 2"),
        (lambda: F.ctc_loss(mg.ones(4, 2, 3), [[1], [1]], [4, 5], [1, 1]), ArgumentError, "input length"),
        (lambda: F.ctc_loss(mg.ones(4, 2, 3), [[1], [1]], [4, 4], [1, 2]), ArgumentError, "target length"),
        (lambda: F.ctc_loss(mg.ones(4, 2, 3), [1, 1, 1], [4, 4], [1, 1]), ShapeError, "sum of all lengths"),
        (lambda: F.ctc_loss(mg.ones(4, 2, 3), [[1], [1]], [4, 4], [1, 1], blank=3), IndexingError, "blank"),
        (lambda: F.group_norm(mg.ones(2, 4, 3), 3), ArgumentError, "divisor of 4"),
        (lambda: F.instance_norm(mg.ones(2, 4)), ShapeError, "instance_norm"),
        (lambda: F.prelu(mg.ones(2, 3), mg.ones(2)), ShapeError, "prelu"),
        (lambda: F.glu(mg.ones(2, 3)), ShapeError, "two halves"),
        (lambda: F.bilinear(mg.ones(2, 3), mg.ones(2, 4), mg.ones(5, 4, 3)), ShapeError, "bilinear"),
        (lambda: F.embedding_bag([0, 1], mg.ones(3, 2)), ShapeError, "offsets"),
        (lambda: F.embedding_bag([0, 1], mg.ones(3, 2), [1]), ArgumentError, "offsets"),
        (lambda: F.embedding_bag([[0, 1]], mg.ones(3, 2), mode="sun"), ArgumentError, "did you mean 'sum'"),
        (lambda: F.embedding_bag([[0]], mg.ones(3, 2), per_sample_weights=[[1.0]]), ArgumentError, "mode='sum'"),
        (lambda: F.dropout2d(mg.ones(2, 3)), ShapeError, "4 axes or 3 axes"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_would(call, kind, words):
    with pytest.raises(kind, match=words):
        call()
