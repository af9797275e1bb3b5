"""Weight and spectral normalisation: values and gradients as PyTorch's, learning, saving, and taking them off again."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.nn.utils import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm

LAYERS = {
    "Linear": ((3, 4), (5, 3)),
    "Conv2d": ((2, 4, 3), (2, 2, 6, 6)),
    "ConvTranspose1d": ((2, 4, 3), (2, 2, 6)),
    "Embedding": ((5, 3), None),
}
RNG = np.random.default_rng(0)


def given(shape: Any) -> np.ndarray:
    return np.array([0, 3, 1]) if shape is None else RNG.normal(size=shape)


def both(name: str, sizes: tuple[int, ...], ours: Any, theirs: Any, renamed: dict[str, str]) -> tuple[Any, Any]:
    """Our layer and PyTorch's, normalised, with the same state."""
    import torch

    mine = ours(getattr(nn, name)(*sizes, dtype="float64"))
    other = theirs(getattr(torch.nn, name)(*sizes, dtype=torch.float64))
    state = {k: torch.tensor(v.numpy()) for k, v in mine.state_dict().items()}
    other.load_state_dict({renamed.get(k, k): v for k, v in state.items()})
    return mine, other


def compare(mine: Any, other: Any, x: np.ndarray, renamed: dict[str, str]) -> None:
    import torch

    for _ in range(3):
        got, expected = mine(mg.tensor(x)), other(torch.tensor(x))
        np.testing.assert_allclose(got.numpy(), expected.detach().numpy(), rtol=1e-10, atol=1e-12)
    (got**2).sum().backward()
    (expected**2).sum().backward()
    gradients = {name: p.grad.numpy() for name, p in other.named_parameters()}
    for name, p in mine.named_parameters():
        np.testing.assert_allclose(p.grad.numpy(), gradients[renamed.get(name, name)], rtol=1e-9, atol=1e-11)


@pytest.mark.torch
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm_gives_pytorchs_values_and_gradients(name: str, dim: int | None) -> None:
    from torch.nn.utils import parametrizations

    theirs = {"weight_g": "parametrizations.weight.original0", "weight_v": "parametrizations.weight.original1"}
    sizes, shape = LAYERS[name]
    mine, other = both(
        name, sizes, lambda x: weight_norm(x, dim=dim), lambda x: parametrizations.weight_norm(x, dim=dim), theirs
    )
    compare(mine, other, given(shape), theirs)


@pytest.mark.torch
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("steps", [1, 3])
def test_spectral_norm_gives_pytorchs_values_and_gradients_while_its_vectors_turn(name: str, steps: int) -> None:
    from torch.nn.utils import parametrizations

    theirs = {
        "weight_orig": "parametrizations.weight.original",
        "weight_u": "parametrizations.weight.0._u",
        "weight_v": "parametrizations.weight.0._v",
    }
    sizes, shape = LAYERS[name]
    mine, other = both(
        name,
        sizes,
        lambda x: spectral_norm(x, n_power_iterations=steps),
        lambda x: parametrizations.spectral_norm(x, n_power_iterations=steps),
        theirs,
    )
    compare(mine, other, given(shape), theirs)
    compare(mine.eval(), other.eval(), given(shape), theirs)


@pytest.mark.parametrize("dim", [0, None])
def test_weight_norm_changes_no_value_and_lengths_are_those_of_its_parameter(dim: int | None) -> None:
    layer = nn.Linear(4, 3, dtype="float64")
    before = layer.weight.numpy().copy()
    weight_norm(layer, dim=dim)
    np.testing.assert_allclose(layer.weight.numpy(), before, rtol=1e-12)
    with mg.no_grad():
        layer.weight_g[...] = layer.weight_g * 2
    np.testing.assert_allclose(layer.weight.numpy(), 2 * before, rtol=1e-12)


def test_the_largest_singular_value_comes_to_one() -> None:
    layer = spectral_norm(nn.Linear(6, 4, dtype="float64"), n_power_iterations=30)
    layer(mg.zeros(6, dtype="float64"))
    assert np.linalg.svd(layer.weight.numpy())[1][0] == pytest.approx(1, rel=1e-6)


def test_in_evaluation_the_vectors_rest() -> None:
    layer = spectral_norm(nn.Linear(6, 4)).eval()
    before = layer.weight_u.tolist()
    layer(mg.zeros(6))
    assert layer.weight_u.tolist() == before
    layer.train()(mg.zeros(6))
    assert layer.weight_u.tolist() != before


@pytest.mark.parametrize(("put", "take"), [(weight_norm, remove_weight_norm), (spectral_norm, remove_spectral_norm)])
def test_taken_off_the_layer_is_plain_again_and_computes_the_same(put: Any, take: Any) -> None:
    layer = nn.Linear(4, 3)
    names, text, x = list(layer.state_dict()), repr(layer), mg.randn(2, 4)
    put(layer)
    assert put.__name__ in repr(layer)
    expected = layer.eval()(x).tolist()
    assert take(layer) is layer and type(layer) is nn.Linear and repr(layer) == text
    assert sorted(layer.state_dict()) == sorted(names) and isinstance(layer.weight, nn.Parameter)
    np.testing.assert_allclose(layer(x).numpy(), expected, rtol=1e-6)
    with pytest.raises(mg.errors.ArgumentError, match="does not have it"):
        take(layer)


@pytest.mark.parametrize("put", [weight_norm, spectral_norm])
def test_normalised_layers_learn_are_saved_copied_and_compiled(put: Any, tmp_path: Any) -> None:
    mg.manual_seed(0)
    model = nn.Sequential(put(nn.Linear(2, 8)), nn.Tanh(), put(nn.Linear(8, 1)))
    x = mg.randn(32, 2)
    y = x[:, :1] * 0.5
    optimizer = mg.optim.Adam(model.parameters(), 0.02)
    losses = []
    for _ in range(60):
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 4
    model.eval()
    mg.save(model.state_dict(), tmp_path / "model.safetensors")
    twin = nn.Sequential(put(nn.Linear(2, 8)), nn.Tanh(), put(nn.Linear(8, 1))).eval()
    twin.load_state_dict(mg.load(tmp_path / "model.safetensors"))
    for other in (twin, copy.deepcopy(model), mg.compile(model)):
        np.testing.assert_allclose(other(x).numpy(), model(x).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("put", [weight_norm, spectral_norm])
def test_what_does_not_fit_is_refused_and_leaves_the_layer_as_it_was(put: Any) -> None:
    layer = nn.Linear(4, 3)
    with pytest.raises(mg.errors.ArgumentError, match="no parameter 'wieght'"):
        put(layer, "wieght")
    with pytest.raises(mg.errors.AxisError, match="no such axis"):
        put(layer, dim=2)
    assert type(layer) is nn.Linear and isinstance(layer.weight, nn.Parameter)
    with pytest.raises(mg.errors.ArgumentError, match="no parameter 'weight'"):
        put(put(layer))
