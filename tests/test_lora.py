"""Low-rank adapters: what is trained, what it computes, and that it merges."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.errors import ArgumentError


def block() -> nn.Module:
    mg.manual_seed(0)
    return nn.TransformerBlock(16, heads=4, causal=True, activation="swiglu")


def filled(model: nn.Module) -> nn.Module:
    """With adapters that say something: b begins at 0."""
    for name, parameter in model.named_parameters():
        if name.endswith(".b"):
            nn.init.normal_(parameter, std=0.1)
    return model


def test_at_first_nothing_changes():
    x, plain = mg.randn(2, 5, 16), block()
    before = plain(x).numpy()
    assert np.array_equal(nn.add_lora(plain, 4)(x).numpy(), before)


def test_only_adapters_are_trained_and_the_base_stays():
    model = nn.add_lora(block(), 4)
    assert {name.rpartition(".")[2] for name, _ in model.named_parameters()} == {"a", "b"}
    base = {name: value.numpy().copy() for name, value in model.named_buffers()}
    optimizer = mg.optim.AdamW(model.parameters(), lr=0.01)
    x = mg.randn(4, 5, 16)
    first = None
    for _ in range(30):
        optimizer.zero_grad()
        loss = ((model(x) - 1) ** 2).mean()
        loss.backward()
        optimizer.step()
        first = loss.item() if first is None else first
    assert loss.item() < 0.8 * first
    assert all(np.array_equal(value.numpy(), base[name]) for name, value in model.named_buffers())


def test_the_adapted_weight_is_the_sum_of_base_and_product():
    x, model = (
        mg.randn(3, 16, dtype="float64"),
        nn.add_lora(nn.Sequential(nn.Linear(16, 6, dtype="float64")), 3, alpha=5),
    )
    lora = filled(model)[0].weight
    whole = lora.base.numpy() + 5 / 3 * lora.b.numpy() @ lora.a.numpy()
    np.testing.assert_allclose(model(x).numpy(), x.numpy() @ whole.T + model[0].bias.numpy(), atol=1e-13)


def test_merging_gives_the_model_as_it_was_built():
    x, names = mg.randn(2, 5, 16), set(block().state_dict())
    model = filled(nn.add_lora(block(), 4))
    expected = model(x).numpy()
    merged = nn.merge_lora(model)
    np.testing.assert_allclose(merged(x).numpy(), expected, atol=1e-5)
    assert set(merged.state_dict()) == names


def test_a_packed_base_stays_packed():
    small = nn.quantized(block(), bits=8)
    x = mg.randn(2, 5, 16)
    before = small(x).numpy()
    model = nn.add_lora(small, 2)
    np.testing.assert_allclose(model(x).numpy(), before, atol=1e-6)
    filled(model)(x).sum().backward()
    assert all(np.abs(parameter.grad.numpy()).max() > 0 for parameter in model.parameters())
    assert model.mlp.up.weight.base.format == small.mlp.up.weight.base.format


def test_gradients_of_adapters_are_right():
    model = filled(nn.add_lora(nn.MultiHeadAttention(6, heads=2, dtype="float64"), 2))
    x = mg.randn(2, 3, 6, dtype="float64")
    lora = model.in_proj_weight
    model(x, x + 1).sum().backward()
    for name in ("a", "b"):
        value, slope = getattr(lora, name), getattr(lora, name).grad.numpy()
        direction, start = np.random.default_rng(0).normal(size=value.shape), value.numpy().copy()
        ends = []
        for step in (1e-6, -1e-6):
            value.data[...] = start + step * direction
            ends.append(model(x, x + 1).sum().item())
        value.data[...] = start
        assert abs((ends[0] - ends[1]) / 2e-6 - (slope * direction).sum()) < 1e-6


def test_what_cannot_be_adapted_is_refused():
    with pytest.raises(ArgumentError, match="the rank is a whole number"):
        nn.add_lora(block(), 0)
    with pytest.raises(ArgumentError, match="nothing to adapt"):
        nn.add_lora(nn.LayerNorm(3), 2)
