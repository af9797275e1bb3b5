"""The functions of neural networks: PyTorch's numbers, safe edges, and refusals that say what is wrong."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
from support.functional_oracle import TORCH_NAMES, assert_as_torch, normal, uniform

import minigrad as mg
from minigrad.check import gradcheck
from minigrad.errors import ArgumentError, AxisError, CallError, DtypeError, IndexingError, ShapeError
from minigrad.ops.composite import COMPOSITES

F = mg.nn.functional


@pytest.mark.torch
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_agrees_with_pytorch(name, axis):
    assert_as_torch(name, 3 * normal(2, 3, 4), axis=axis)


def test_softmax_neither_overflows_nor_loses_small_logarithms():
    x = mg.tensor([1000.0, 0.0, -1000.0])
    np.testing.assert_array_equal(F.softmax(x).numpy(), [1, 0, 0])
    np.testing.assert_array_equal(F.log_softmax(x).numpy(), [0, -1000, -2000])


@pytest.mark.torch
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("axis", [0, 1])
def test_the_softmax_of_no_elements_is_empty(name, axis):
    assert_as_torch(name, normal(3, 0), axis=axis)


def test_a_forbidden_element_has_probability_zero_and_no_gradient():
    x = mg.tensor([0.0, -math.inf, 0.0], requires_grad=True)
    F.softmax(x)[0].backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0.25, 0.0, -0.25])


@pytest.mark.torch
@pytest.mark.parametrize("sizes", [(4,), (3, 4)], ids=str)
@pytest.mark.parametrize("eps", [1e-5, 0.1])
def test_layer_norm_agrees_with_pytorch(sizes, eps):
    assert_as_torch("layer_norm", normal(2, 3, 4), normalized_shape=sizes, eps=eps)
    if len(sizes) == 1:
        weight, bias = normal(4, seed=1), normal(4, seed=2)
        assert_as_torch(
            "layer_norm",
            normal(2, 3, 4),
            constants=["weight", "bias"],
            normalized_shape=sizes,
            weight=weight,
            bias=bias,
            eps=eps,
        )


@pytest.mark.torch
@pytest.mark.parametrize("eps", [None, 0.1])
def test_rms_norm_agrees_with_pytorch(eps):
    assert_as_torch("rms_norm", normal(2, 3, 4), normalized_shape=(3, 4), eps=eps)
    assert_as_torch(
        "rms_norm", normal(2, 3, 4), constants=["weight"], normalized_shape=(4,), weight=normal(4, seed=1), eps=eps
    )


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.layer_norm(x, 4),
        lambda x: F.rms_norm(x, 4),
        lambda x: F.batch_norm(x, None, None, training=True),
        lambda x: F.cosine_similarity(x, x[::-1]),
    ],
    ids=["layer_norm", "rms_norm", "batch_norm", "cosine_similarity"],
)
def test_whole_numbers_are_normalized_as_the_same_floats(function):
    whole = np.arange(12).reshape(3, 4) ** 2
    result = function(mg.tensor(whole))
    np.testing.assert_array_equal(result.numpy(), function(mg.tensor(whole.astype("float64"))).numpy())
    assert result.dtype == "float64"


def test_norms_take_weight_and_bias_by_position_as_pytorch():
    x, weight, bias = mg.tensor(normal(2, 4)), mg.tensor(normal(4, seed=1)), mg.tensor(normal(4, seed=2))
    expected = (F.layer_norm(x, 4).numpy() * weight.numpy()) + bias.numpy()
    np.testing.assert_allclose(F.layer_norm(x, (4,), weight, bias, 1e-5).numpy(), expected)


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 5), (2, 3, 4, 5)], ids=str)
@pytest.mark.parametrize("momentum", [0.1, 0.7])
def test_batch_norm_in_training_agrees_with_pytorch_also_in_its_running_statistics(shape, momentum):
    import torch

    x, weight, bias = normal(*shape), normal(3, seed=1), normal(3, seed=2)
    start = [normal(3, seed=3), uniform(3, seed=4)]
    ours, theirs = [mg.tensor(a) for a in start], [torch.tensor(a) for a in start]
    result = F.batch_norm(mg.tensor(x), *ours, mg.tensor(weight), mg.tensor(bias), True, momentum)
    expected = torch.nn.functional.batch_norm(
        torch.tensor(x), *theirs, torch.tensor(weight), torch.tensor(bias), True, momentum
    )
    for a, b in zip([result, *ours], [expected, *theirs]):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-10)
    assert_as_torch(
        "batch_norm",
        x,
        constants=["weight", "bias"],
        running_mean=None,
        running_var=None,
        training=True,
        weight=weight,
        bias=bias,
    )


@pytest.mark.torch
def test_batch_norm_outside_training_agrees_with_pytorch():
    statistics = {"running_mean": normal(3, seed=3), "running_var": uniform(3, seed=4)}
    assert_as_torch("batch_norm", normal(4, 3, 5), constants=list(statistics), **statistics)
    weights = {"weight": normal(3, seed=1), "bias": normal(3, seed=2)}
    assert_as_torch("batch_norm", normal(4, 3, 5), constants=[*statistics, *weights], **statistics, **weights, eps=0.1)


def test_batch_norm_outside_training_leaves_the_running_statistics_alone(device):
    running = [mg.zeros(3, device=device), mg.ones(3, device=device)]
    F.batch_norm(mg.tensor(normal(4, 3), dtype="float32", device=device), *running)
    assert running[0].tolist() == [0, 0, 0] and running[1].tolist() == [1, 1, 1]


def test_batch_norm_moves_its_running_statistics_on_the_device(device):
    running = [mg.zeros(2, device=device), mg.ones(2, device=device)]
    x = mg.tensor([[1.0, 2.0], [3.0, 2.0]], device=device, requires_grad=True)
    F.batch_norm(x, *running, training=True, momentum=0.5).sum().backward()
    assert running[0].tolist() == [1, 1] and running[1].tolist() == [1.5, 0.5]
    assert not running[0].requires_grad and x.grad.device == device


def test_a_pending_backward_is_not_disturbed_when_training_moves_the_statistics():
    gradients = []
    for train_in_between in (False, True):
        running = [mg.zeros(3, dtype="float64"), mg.ones(3, dtype="float64")]
        x, weight = mg.tensor(normal(4, 3), requires_grad=True), mg.tensor(normal(3, seed=1), requires_grad=True)
        pending = F.batch_norm(x, *running, weight).sum()
        if train_in_between:
            F.batch_norm(x, *running, training=True)
        pending.backward()
        gradients.append([x.grad.tolist(), weight.grad.tolist()])
    assert gradients[0] == gradients[1]


def test_batch_norm_refuses_what_cannot_be_normalized():
    with pytest.raises(ShapeError, match=r"several values(?s:.*)\(1, 3\)"):
        F.batch_norm(mg.zeros(1, 3), None, None, training=True)
    with pytest.raises(ArgumentError, match="running mean and variance are needed"):
        F.batch_norm(mg.zeros(2, 3), None, None)
    with pytest.raises(ShapeError, match=r"running_var(?s:.*)\(3,\)(?s:.*)\(2,\)"):
        F.batch_norm(mg.zeros(2, 3), mg.zeros(3), mg.ones(2))
    with pytest.raises(ShapeError, match=r"\(batch, channels, …\)(?s:.*)\(3,\)"):
        F.batch_norm(mg.zeros(3), None, None, training=True)


def test_a_refused_batch_norm_changes_no_statistics():
    running_mean = mg.zeros(3)
    with pytest.raises(ShapeError):
        F.batch_norm(mg.ones(4, 3), running_mean, mg.ones(3), mg.ones(2), training=True)
    assert running_mean.tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_norms_refuse_shapes_that_do_not_fit(name):
    norm = getattr(F, name)
    with pytest.raises(ShapeError, match=rf"{name}(?s:.*)\(…, 3\)(?s:.*)\(2, 4\)"):
        norm(mg.zeros(2, 4), 3)
    with pytest.raises(ShapeError, match=rf"{name}(?s:.*)weight(?s:.*)\(4,\)(?s:.*)\(2,\)"):
        norm(mg.zeros(2, 4), (4,), weight=mg.zeros(2))


def test_dropout_zeroes_about_a_share_p_and_scales_the_rest(device):
    mg.manual_seed(0)
    out = F.dropout(mg.ones(100, 100, device=device), 0.3).numpy()
    np.testing.assert_allclose(np.unique(out), [0, 1 / 0.7], rtol=1e-6)
    assert abs((out == 0).mean() - 0.3) < 0.02


def test_dropout_passes_gradients_only_where_it_passed_values(device):
    x = mg.ones(50, device=device, requires_grad=True)
    out = F.dropout(x, 0.5)
    out.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), out.numpy())
    assert set(x.grad.tolist()) == {0.0, 2.0}


def test_dropout_repeats_itself_after_the_same_seed_in_any_dtype():
    patterns = []
    for dtype in ("float32", "float64"):
        mg.manual_seed(7)
        patterns.append(F.dropout(mg.ones(40, dtype=dtype), 0.5).numpy() == 0)
    np.testing.assert_array_equal(*patterns)
    assert not np.array_equal(patterns[0], F.dropout(mg.ones(40), 0.5).numpy() == 0)


def test_dropout_does_nothing_outside_training_or_with_p_zero():
    x = mg.tensor(normal(5))
    np.testing.assert_array_equal(F.dropout(x, 0.5, training=False).numpy(), x.numpy())
    np.testing.assert_array_equal(F.dropout(x, 0.0).numpy(), x.numpy())


def test_dropout_of_a_scalar_is_a_scalar_tensor():
    out = F.dropout(mg.tensor(1.0), 0.5)
    assert out.shape == () and out.item() in (0.0, 2.0) and isinstance(out.data, np.ndarray)


def test_dropping_everything_gives_zeros_and_a_zero_gradient():
    x = mg.ones(4, requires_grad=True)
    out = F.dropout(x, 1.0)
    out.sum().backward()
    assert out.tolist() == [0, 0, 0, 0] and x.grad.tolist() == [0, 0, 0, 0]


def test_dropout_refuses_what_is_not_a_probability_or_not_floating():
    for p in (-0.1, 1.1, math.nan):
        with pytest.raises(ArgumentError, match="probability"):
            F.dropout(mg.ones(3), p)
    with pytest.raises(DtypeError, match="floating"):
        F.dropout(mg.tensor([1, 2]))


@pytest.mark.torch
@pytest.mark.parametrize("padding_idx", [None, 1, -1])
def test_embedding_agrees_with_pytorch(padding_idx):
    assert_as_torch("embedding", np.array([[0, 1, 1], [4, 2, 1]]), normal(5, 3), padding_idx=padding_idx)


def test_embedding_adds_up_the_gradients_of_a_repeated_row_and_skips_the_padding(device):
    weight = mg.ones(4, 2, device=device, requires_grad=True)
    F.embedding(mg.tensor([1, 1, 3, 0], device=device), weight, padding_idx=3).sum().backward()
    assert weight.grad.tolist() == [[1, 1], [2, 2], [0, 0], [0, 0]]


@pytest.mark.parametrize("index", [4, -1])
def test_embedding_refuses_a_row_that_does_not_exist(index, device):
    with pytest.raises(IndexingError, match=f"embedding(?s:.*)0 to 3(?s:.*){index}"):
        F.embedding(mg.tensor([0, index], device=device), mg.zeros(4, 2, device=device))


def test_embedding_refuses_bad_tables_indices_and_padding():
    with pytest.raises(DtypeError, match="whole numbers"):
        F.embedding(mg.zeros(2), mg.zeros(4, 2))
    with pytest.raises(ShapeError, match=r"\(rows, size\)(?s:.*)\(4,\)"):
        F.embedding(mg.tensor([0]), mg.zeros(4))
    with pytest.raises(IndexingError, match="padding_idx"):
        F.embedding(mg.tensor([0]), mg.zeros(4, 2), padding_idx=4)


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 4, 3)], ids=str)
def test_linear_agrees_with_pytorch(shape):
    assert_as_torch("linear", normal(*shape), normal(5, 3, seed=1), normal(5, seed=2))
    assert_as_torch("linear", normal(*shape), normal(5, 3, seed=1))


def test_linear_names_both_shapes_and_notices_a_transposed_weight():
    with pytest.raises(ShapeError, match=r"\(2, 3\) and \(3, 5\)(?s:.*)transpose"):
        F.linear(mg.zeros(2, 3), mg.zeros(3, 5))
    with pytest.raises(ShapeError, match=r"bias(?s:.*)\(5,\)(?s:.*)\(1,\)"):
        F.linear(mg.zeros(2, 3), mg.zeros(5, 3), mg.zeros(1))


def attention_inputs(*batch: int) -> list[np.ndarray]:
    """Query (…, 3, 4), key (…, 5, 4) and value (…, 5, 2)."""
    return [normal(*batch, 3, 4), normal(*batch, 5, 4, seed=1), normal(*batch, 5, 2, seed=2)]


@pytest.mark.torch
@pytest.mark.parametrize(
    "options", [{}, {"scale": 0.3}, {"is_causal": True}, {"is_causal": True, "scale": 2.0}], ids=str
)
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)], ids=str)
def test_attention_agrees_with_pytorch(batch, options):
    assert_as_torch("scaled_dot_product_attention", *attention_inputs(*batch), **options)


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(3, 5), (2, 1, 3, 5), (1, 5)], ids=str)
def test_masked_attention_agrees_with_pytorch(shape):
    allowed = np.random.default_rng(0).random(shape) < 0.6
    allowed[..., 0] = True
    for mask in (allowed, np.where(allowed, normal(*shape), -np.inf)):
        assert_as_torch("scaled_dot_product_attention", *attention_inputs(2, 3), constants=["mask"], mask=mask)
    assert_as_torch("scaled_dot_product_attention", *attention_inputs(2, 3), normal(*shape, seed=3))


def empty_row_masks() -> list[np.ndarray]:
    """A boolean and a floating mask whose middle row forbids everything."""
    allowed = np.ones((3, 5), bool)
    allowed[1], allowed[2, 3] = False, False
    return [allowed, np.where(allowed, 0.0, -np.inf)]


@pytest.mark.parametrize("mask", empty_row_masks(), ids=["boolean", "floating"])
def test_a_fully_masked_row_gives_zeros_and_right_derivatives(mask):
    inputs = [mg.tensor(x) for x in attention_inputs(2)]
    out = F.scaled_dot_product_attention(*inputs, mg.tensor(mask)).numpy()
    assert (out[:, 1] == 0).all() and (abs(out[:, [0, 2]]) > 0).all()
    assert gradcheck(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, mg.tensor(mask)), inputs, order=2)


@pytest.mark.parametrize("masked", [False, True])
def test_attention_without_keys_gives_zeros_and_a_zero_gradient(masked):
    q = mg.tensor(normal(2, 3, 4), requires_grad=True)
    nothing = mg.zeros(2, 0, 4, dtype="float64", requires_grad=True)
    mask = mg.ones(3, 0, dtype="bool") if masked else None
    out = F.scaled_dot_product_attention(q, nothing, nothing, mask)
    np.testing.assert_array_equal(out.numpy(), np.zeros((2, 3, 4)))
    to_q, to_nothing = mg.autograd.grad(out.sum(), [q, nothing])
    assert (to_q.numpy() == 0).all() and to_nothing.shape == (2, 0, 4)


@pytest.mark.parametrize("mask", empty_row_masks(), ids=["boolean", "floating"])
def test_no_gradient_of_a_fully_masked_row_is_nan(mask, device):
    q, k, v = (mg.tensor(x, device=device, requires_grad=True) for x in attention_inputs())
    first = mg.autograd.grad(
        F.scaled_dot_product_attention(q, k, v, mg.tensor(mask, device=device)).sum(), [q, k, v], create_graph=True
    )
    second = mg.autograd.grad(sum((g * g).sum() for g in first), [q, k, v])
    assert all(np.isfinite(g.numpy()).all() for g in (*first, *second))
    assert (first[0].numpy()[1] == 0).all() and (second[0].numpy()[1] == 0).all()


def test_masked_and_causal_attention_is_not_stopped_by_debug():
    q, k, v = (mg.tensor(x, requires_grad=True) for x in attention_inputs())
    with mg.debug():
        F.scaled_dot_product_attention(q, k, v, mg.tensor(empty_row_masks()[0]), is_causal=True).sum().backward()
    assert np.isfinite(q.grad.numpy()).all()


def test_mask_and_causality_hold_together():
    q, k, v = attention_inputs()
    allowed = np.random.default_rng(1).random((3, 5)) < 0.7
    both = F.scaled_dot_product_attention(q, k, v, allowed, is_causal=True)
    np.testing.assert_array_equal(
        both.numpy(), F.scaled_dot_product_attention(q, k, v, allowed & np.tri(3, 5, dtype=bool)).numpy()
    )


def test_what_is_masked_has_no_influence():
    q, k, v = attention_inputs()
    mask = np.array([True, True, False, True, False])
    expected = F.scaled_dot_product_attention(q, k[mask], v[mask]).numpy()
    np.testing.assert_allclose(F.scaled_dot_product_attention(q, k, v, mask[None]).numpy(), expected, rtol=1e-12)


def test_a_nan_in_the_scores_is_not_hidden_by_the_mask():
    q, k, v = attention_inputs()
    q[1] = math.nan
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True).numpy()
    assert np.isnan(out[1]).all() and np.isfinite(out[[0, 2]]).all()


def test_attention_dropout_drops_whole_weights():
    mg.manual_seed(0)
    weights = F.scaled_dot_product_attention(mg.zeros(50, 4), mg.zeros(20, 4), mg.eye(20), dropout_p=0.5).numpy()
    np.testing.assert_allclose(np.unique(weights), [0, 0.1], rtol=1e-6)


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (((3, 4), (5, 3), (5, 2)), r"query and key(?s:.*)query \(3, 4\), key \(5, 3\)"),
        (((3, 4), (5, 4), (6, 2)), r"value for each key(?s:.*)key \(5, 4\), value \(6, 2\)"),
        (((4,), (5, 4), (5, 2)), "two axes"),
        (((2, 3, 4), (3, 5, 4), (3, 5, 2)), "broadcast"),
        (((3, 4), (5, 4), (5, 2), (3, 4)), r"mask(?s:.*)\(3, 5\)(?s:.*)\(3, 4\)"),
        (((3, 4), (5, 4), (5, 2), (2, 3, 5)), r"mask(?s:.*)\(3, 5\)(?s:.*)\(2, 3, 5\)"),
    ],
)
def test_attention_names_the_shapes_that_do_not_fit(shapes, expected):
    with pytest.raises(ShapeError, match="scaled_dot_product_attention(?s:.*)" + expected):
        F.scaled_dot_product_attention(*[mg.zeros(s) for s in shapes])


def test_attention_refuses_a_whole_number_mask_and_a_bad_probability():
    q, k, v = attention_inputs()
    with pytest.raises(DtypeError, match="boolean"):
        F.scaled_dot_product_attention(q, k, v, np.ones((3, 5), int))
    with pytest.raises(ArgumentError, match="probability"):
        F.scaled_dot_product_attention(q, k, v, dropout_p=1.5)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("shape", "other", "axis"),
    [
        ((3, 4), (3, 4), 1),
        ((3, 4), (3, 4), 0),
        ((2, 3, 4), (3, 4), -1),
        ((2, 1, 4), (2, 3, 4), 1),
    ],
    ids=str,
)
def test_cosine_similarity_agrees_with_pytorch(shape, other, axis):
    assert_as_torch("cosine_similarity", normal(*shape), normal(*other, seed=1), axis=axis)


def test_cosine_similarity_with_a_zero_vector_is_zero_with_finite_derivatives():
    x, y = mg.zeros(1, 3, requires_grad=True), mg.ones(1, 3, requires_grad=True)
    similarity = F.cosine_similarity(x, y)
    first = mg.autograd.grad(similarity.sum(), [x, y], create_graph=True)
    second = mg.autograd.grad(sum((g * g).sum() for g in first), [x, y])
    assert similarity.tolist() == [0] and all(np.isfinite(g.numpy()).all() for g in (*first, *second))


def test_cosine_similarity_refuses_shapes_and_axes_that_do_not_fit():
    with pytest.raises(ShapeError, match="cosine_similarity"):
        F.cosine_similarity(mg.zeros(2, 3), mg.zeros(2, 4))
    with pytest.raises(AxisError, match="cosine_similarity"):
        F.cosine_similarity(mg.zeros(3), mg.zeros(3))


def test_arrays_and_lists_are_taken_and_a_tensor_comes_back():
    results = [
        F.linear([[1.0, 2.0]], np.ones((3, 2))),
        F.relu([-1.0]),
        F.mse_loss([1.0], [2.0]),
        F.softmax(np.zeros(3)),
        F.one_hot([1, 0]),
    ]
    for result in results:
        assert isinstance(result, mg.Tensor)


def test_in_the_registry_arrays_give_arrays_and_inputs_come_first():
    normed = COMPOSITES["layer_norm"]
    assert normed.signature.inputs == ["input", "weight", "bias"] and list(normed.signature.defaults) == [
        "normalized_shape",
        "eps",
    ]
    assert isinstance(normed(normal(2, 4), np.ones(4), normalized_shape=4), np.ndarray)
    assert isinstance(COMPOSITES["dropout"](normal(2, 4), p=0.5), np.ndarray)


def test_an_unknown_argument_gets_the_nearest_and_dim_is_called_axis():
    with pytest.raises(CallError, match="use reduction="):
        F.mse_loss([1.0], [2.0], reduce="sum")
    with pytest.raises(CallError, match="write axis= instead"):
        F.cosine_similarity(normal(2, 3), normal(2, 3), dim=1)


def test_a_call_with_too_many_too_few_or_doubled_arguments_shows_the_signature():
    with pytest.raises(CallError, match=r"linear: too many(.|\n)*linear\(input, weight, bias\)"):
        F.linear(1, 2, 3, 4)
    with pytest.raises(
        CallError, match=r"mse_loss: missing .*'target'(.|\n)*mse_loss\(input, target, reduction, weight\)"
    ):
        F.mse_loss([1.0])
    with pytest.raises(CallError, match=r"mse_loss: multiple values .*'target'"):
        F.mse_loss([1.0], [2.0], target=[3.0])
    with pytest.raises(CallError, match=r"mse_loss: too many positional"):
        F.mse_loss([1.0], [2.0], "sum")


@pytest.mark.torch
def test_names_order_and_defaults_of_arguments_are_those_of_pytorch():
    import torch

    compared = 0
    for name in F.__all__:
        ours, theirs = getattr(F, name), getattr(torch.nn.functional, name, None)
        if not ours.__module__.startswith("minigrad.nn") or not inspect.isfunction(
            theirs
        ):  # what PyTorch has in C++ has no signature
            continue
        named = {TORCH_NAMES.get(key, key): p for key, p in inspect.signature(ours).parameters.items()}
        known = inspect.signature(theirs).parameters
        if "args" in known:  # max_pool2d chooses between two functions
            continue
        defaults = {key: -1 if (name, key) == ("softmin", "dim") else known[key].default for key in named}
        assert {key: p.default for key, p in named.items()} == defaults, name
        positional = [key for key, p in named.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
        assert positional == list(known)[: len(positional)], name
        compared += 1
    assert compared >= 40
