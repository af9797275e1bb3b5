"""Attention in plain ops becomes the fused op, with the same values and derivatives; what only looks like it does not."""

import math

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile import trace
from minigrad.compile.recognize import recognize

F = mg.nn.functional
LENGTH, WIDTH = 8, 4


def causal(rows=LENGTH, columns=LENGTH):
    return mg.tril(mg.ones(rows, columns)) > 0


def softmax(x):
    e = mg.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def scaled_scores(q, k, v):
    return softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v


def scaled_queries(q, k, v):
    return F.softmax((q * 0.3) @ k.mT) @ v


def scaled_keys(q, k, v):
    return F.softmax(q @ (0.5 * k).swapaxes(-1, -2), axis=q.ndim - 1) @ v


def scaled_turned_keys(q, k, v):
    return F.softmax(q @ (k.mT * 0.5)) @ v


def unscaled(q, k, v):
    return softmax(q @ k.mT) @ v


def masked_by_where(q, k, v):
    return softmax(mg.where(causal(), q @ k.mT * 0.5, -math.inf)) @ v


def filled_where_forbidden(q, k, v):
    return softmax(mg.where(~causal(), -1e9, q @ k.mT * 0.5)) @ v


def scaled_after_the_mask(q, k, v):
    return softmax(mg.where(causal(), q @ k.mT, -1e9) / 8) @ v


def mask_added(q, k, v):
    return F.softmax(q @ k.mT + (1 - mg.tril(mg.ones(LENGTH, LENGTH)).astype(q.dtype)) * -1e9) @ v


def other_mask(q, k, v):
    near = mg.tril(mg.ones(LENGTH, LENGTH), 1) * mg.triu(mg.ones(LENGTH, LENGTH), -1) > 0
    return softmax(mg.where(near, q @ k.mT, -math.inf)) @ v


def detached_top(q, k, v):
    scores = q @ k.mT
    e = mg.exp(scores - scores.detach().max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v


def axes_put_back(q, k, v):
    scores = q @ k.mT
    e = mg.exp(scores - scores.max(axis=-1)[..., None])
    return e / mg.expand_dims(e.sum(axis=-1), axis=-1) @ v


WAYS = [
    scaled_scores, scaled_queries, scaled_keys, scaled_turned_keys, unscaled, masked_by_where, filled_where_forbidden,
    scaled_after_the_mask, mask_added, other_mask, detached_top, axes_put_back,
]  # fmt: skip


def triple(*lead, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    return [mg.tensor(rng.normal(size=(*lead, LENGTH, WIDTH)).astype(dtype)) for _ in range(3)]


def ops_of(function, *tensors):
    graph, notes = recognize(trace(function, *tensors))
    names = [step.op.name for step in graph.steps]
    assert len(notes) == sum("attention" in name for name in names)
    return names


def derivatives(function, tensors):
    """The value, the gradients, and those of the sum of their squares."""

    def first(*given):
        return mg.grad(lambda *xs: (function(*xs) ** 2).sum(), argnums=(0, 1, 2))(*given)

    second = mg.grad(lambda *xs: sum((g**2).sum() for g in first(*xs)), argnums=(0, 1, 2))
    return [function(*tensors), *first(*tensors), *second(*tensors)]


@pytest.mark.parametrize("function", WAYS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("lead", [(2, 3), (2,), ()], ids=str)
def test_attention_is_recognised_however_it_is_written(function, lead):
    names = ops_of(function, *triple(*lead))
    assert "attention" in names and "exp" not in names and "softmax" not in names
    assert names.count("matmul") == 0


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 2e-4)])
@pytest.mark.parametrize("function", WAYS, ids=lambda f: f.__name__)
def test_values_and_derivatives_are_those_of_the_plain_ops(function, dtype, tolerance):
    compiled = mg.compile(function)
    for seed in range(2):
        tensors = triple(2, 3, dtype=dtype, seed=seed)
        for ours, expected in zip(derivatives(compiled, tensors), derivatives(function, tensors), strict=True):
            scale = max(abs(expected.numpy()).max(), 1)
            np.testing.assert_allclose(ours.numpy(), expected.numpy(), rtol=0, atol=tolerance * scale)


def test_a_causal_mask_becomes_the_option_and_another_stays_a_mask():
    attrs = {}
    for function in (masked_by_where, mask_added, other_mask):
        graph, _ = recognize(trace(function, *triple(2, 3)))
        (step,) = [s for s in graph.steps if s.op.name == "attention"]
        attrs[function] = step.attrs["causal"], step.inputs[3] is None
    assert attrs == {masked_by_where: (True, True), mask_added: (True, True), other_mask: (False, False)}


def packed_by_reshape(x):
    heads = x.reshape(2, LENGTH, 3, 3, WIDTH).transpose(2, 0, 3, 1, 4)
    return masked_by_where(heads[0], heads[1], heads[2])


def packed_by_split(x):
    q, k, v = (part.reshape(2, LENGTH, 3, WIDTH).transpose(0, 2, 1, 3) for part in mg.split(x, 3, axis=-1))
    return masked_by_where(q, k, v)


def packed_by_unstack(x):
    q, k, v = mg.unstack(x.reshape(2, LENGTH, 3, 3, WIDTH).transpose(2, 0, 3, 1, 4))
    return masked_by_where(q, k, v)


@pytest.mark.parametrize("function", [packed_by_reshape, packed_by_split, packed_by_unstack], ids=lambda f: f.__name__)
def test_queries_keys_and_values_that_lie_side_by_side_are_not_taken_apart(function):
    x = mg.tensor(np.random.default_rng(0).normal(size=(2, LENGTH, 9 * WIDTH)))
    assert "packed_attention" in ops_of(function, x) and "getitem" not in ops_of(function, x)
    compiled = mg.compile(function)
    for _ in range(2):
        ours, expected = (mg.grad(lambda x, f=f: (f(x) ** 2).sum())(x) for f in (compiled, function))
        np.testing.assert_allclose(ours.numpy(), expected.numpy(), rtol=1e-12, atol=1e-12)


def test_keys_before_queries_are_taken_apart():
    def function(x):
        heads = x.reshape(2, LENGTH, 3, 3, WIDTH).transpose(2, 0, 3, 1, 4)
        return unscaled(heads[1], heads[0], heads[2])

    names = ops_of(function, mg.ones(2, LENGTH, 9 * WIDTH))
    assert "attention" in names and "packed_attention" not in names


def scores_returned(q, k, v):
    scores = q @ k.mT
    return softmax(scores) @ v, scores


def weights_returned(q, k, v):
    weights = F.softmax(q @ k.mT)
    return weights @ v, weights


def weights_used_again(q, k, v):
    weights = softmax(q @ k.mT)
    return weights @ v + weights.sum()


def sum_used_again(q, k, v):
    e = mg.exp(q @ k.mT - (q @ k.mT).max(axis=-1, keepdims=True))
    total = e.sum(axis=-1, keepdims=True)
    return e / total @ v + total


def along_the_queries(q, k, v):
    return F.softmax(q @ k.mT, axis=-2) @ v


def summed_along_the_queries(q, k, v):
    scores = q @ k.mT
    e = mg.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-2, keepdims=True) @ v


def lowest_for_top(q, k, v):
    scores = q @ k.mT
    e = mg.exp(scores - scores.min(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v


def a_query_without_keys(q, k, v):
    strictly = mg.tril(mg.ones(LENGTH, LENGTH), -1) > 0
    return softmax(mg.where(strictly, q @ k.mT, -1e9)) @ v


def low_but_not_enough(q, k, v):
    return softmax(mg.where(causal(), q @ k.mT, -20.0)) @ v


def scaled_up_to_little(q, k, v):
    return softmax(mg.where(causal(), q @ k.mT, -1e9) * 1e-6) @ v


def penalty_added(q, k, v):
    return softmax(q @ k.mT + mg.tril(mg.ones(LENGTH, LENGTH)).astype(q.dtype)) @ v


def mask_of_the_scores(q, k, v):
    scores = q @ k.mT
    return softmax(mg.where(scores > 0, scores, -math.inf)) @ v


def negative_scale(q, k, v):
    return softmax(q @ k.mT * -0.5) @ v


def scaled_by_a_vector(q, k, v):
    return softmax(q @ k.mT * mg.arange(LENGTH).astype(q.dtype)) @ v


def divided_by_a_number(q, k, v):
    return mg.exp(1 - q @ k.mT) / 2.0 @ v


def sums_from_elsewhere(q, k, v):
    scores = q @ k.mT
    return mg.exp(scores - v.max(axis=-1, keepdims=True)) / q.sum(axis=-1, keepdims=True) @ v


def taken_from_a_number(q, k, v):
    e = mg.exp(1.0 - q @ k.swapaxes(-1, -2))
    return (e / e.sum(axis=-1, keepdims=True)) @ v


def not_normalised(q, k, v):
    scores = q @ k.swapaxes(-1, -2)
    return (mg.exp(scores - scores.max(axis=-1, keepdims=True)) / 2.0) @ v


def one_sum_for_all(q, k, v):
    scores = q @ k.mT
    e = mg.exp(scores - scores.max())
    return e / e.sum() @ v


def detached_scores(q, k, v):
    return softmax((q @ k.mT).detach()) @ v


def detached_input_of_the_op(q, k, v):
    return F.softmax((q @ k.mT).detach()) @ v


NEARLY = [
    scores_returned, weights_returned, weights_used_again, sum_used_again, along_the_queries, summed_along_the_queries,
    lowest_for_top, a_query_without_keys, low_but_not_enough, scaled_up_to_little, penalty_added, mask_of_the_scores,
    negative_scale, scaled_by_a_vector, divided_by_a_number, sums_from_elsewhere,
    one_sum_for_all, detached_scores, detached_input_of_the_op, taken_from_a_number, not_normalised,
]  # fmt: skip


@pytest.mark.parametrize("function", NEARLY, ids=lambda f: f.__name__)
def test_what_only_looks_like_attention_stays_as_it_is(function):
    tensors = [mg.tensor(t.numpy(), requires_grad=True) for t in triple(2, 3)]
    assert "attention" not in ops_of(function, *tensors)


def test_a_mask_that_may_change_is_none_that_is_known():
    mask = mg.tensor(np.tri(LENGTH) > 0)

    @mg.compile
    def compiled(q, k, v):
        return softmax(mg.where(mask, q @ k.mT, -math.inf)) @ v

    for allowed in (np.tri(LENGTH) > 0, np.tri(LENGTH, k=-1) > 0, np.tri(LENGTH) > 0):
        mask[...] = mg.tensor(allowed)
        tensors = triple(2, 3)
        assert np.isnan(compiled(*tensors).numpy()).any() == (not allowed.any(axis=-1).all())


def test_explain_says_that_attention_was_recognised():
    compiled = mg.compile(masked_by_where)
    for _ in range(2):
        compiled(*triple(2, 3))
    assert "recognised as attention" in compiled.explain() and __file__.rpartition("/")[2] in compiled.explain()
    assert "softmax" not in str(compiled.graph()) and "exp(" in str(compiled.graph())  # which is what was traced
