"""Training on the fake device: a step gives what it gives on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.fake_array import FakeArray

import minigrad as mg
from minigrad.nn import functional as F

RANDOM = np.random.default_rng(0)
INPUTS, LABELS = RANDOM.standard_normal((8, 4)), RANDOM.integers(0, 3, 8)
WEIGHTS = [RANDOM.standard_normal(shape) / 2 for shape in ((4, 16), (16,), (16, 3), (3,))]
TOKENS, TABLE, PROJECTIONS = (
    RANDOM.integers(0, 5, (2, 6)),
    RANDOM.standard_normal((5, 8)),
    RANDOM.standard_normal((3, 8, 8)) / 3,
)


def train_perceptron(device: str) -> tuple[list[float], list[mg.Tensor]]:
    """Three steps of gradient descent on a network of two layers."""
    inputs, labels = mg.tensor(INPUTS, device=device), mg.tensor(LABELS, device=device)
    weights = [mg.tensor(w, device=device, requires_grad=True) for w in WEIGHTS]
    losses = []
    for _ in range(3):
        w1, b1, w2, b2 = weights
        loss = F.cross_entropy(mg.tanh(inputs @ w1 + b1) @ w2 + b2, labels)
        for w in weights:
            w.grad = None
        loss.backward()
        with mg.no_grad():
            for w in weights:
                w -= 0.5 * w.grad
        losses.append(loss.item())
    return losses, weights


def train_attention(device: str) -> tuple[list[float], list[mg.Tensor]]:
    """One step through embedding, causal attention, normalisation and the loss of the next token."""
    table, projections = (mg.tensor(a, device=device, requires_grad=True) for a in (TABLE, PROJECTIONS))
    tokens = mg.tensor(TOKENS, device=device)
    x = F.embedding(tokens, table)  # (B, T) -> (B, T, C)
    query, key, value = (x @ projections[i] for i in range(3))
    x = F.layer_norm(x + F.scaled_dot_product_attention(query, key, value, is_causal=True), (8,))
    logits = F.linear(mg.gelu(x), table)  # (B, T, C) -> (B, T, V)
    loss = F.cross_entropy(logits[:, :-1].reshape(-1, 5), tokens[:, 1:].reshape(-1))
    loss.backward()
    return [loss.item()], [table.grad, projections.grad]


@pytest.mark.parametrize("device", ["fake", "fake:1"])
@pytest.mark.parametrize("train", [train_perceptron, train_attention])
def test_training_on_the_device_equals_training_on_the_cpu(device: str, train: Any) -> None:
    (expected_losses, expected), (losses, got) = train("cpu"), train(device)
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-12)
    for ours, theirs in zip(got, expected):
        assert type(ours.data) is FakeArray and ours.device == device
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("device", ["fake", "fake:1"])
def test_dropout_draws_on_the_device_and_repeats_with_its_seed(device: str) -> None:
    x = mg.ones(1000, device=device, requires_grad=True)
    mg.manual_seed(1)
    first = F.dropout(x, 0.25)
    mg.manual_seed(1)
    second = F.dropout(x, 0.25)
    assert type(first.data) is FakeArray and first.device == device
    np.testing.assert_array_equal(first.numpy(), second.numpy())
    assert set(np.unique(first.numpy()).tolist()) == {0.0, float(np.float32(4 / 3))}
    assert abs(float(first.mean()) - 1) < 0.1
    first.sum().backward()
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), first.numpy())


def test_labels_out_of_range_are_refused_by_the_loss(device: str) -> None:
    with pytest.raises(IndexError, match="label|target|class|range"):
        F.cross_entropy(mg.zeros(2, 3, device=device), mg.tensor([0, 3], device=device))
    with pytest.raises(IndexError, match="range|index"):
        F.embedding(mg.tensor([0, 3], device=device), mg.zeros(3, 2, device=device))
