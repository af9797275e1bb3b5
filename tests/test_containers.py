"""Containers by name and of parameters, calls with other parameters, and helpers for all parameters at once."""

from __future__ import annotations

import numpy as np
import pytest
from support.functional_oracle import normal

import minigrad as mg
from minigrad import nn
from minigrad.errors import ArgumentError, ShapeError


class Model(nn.Module):
    def __init__(self):
        self.heads = nn.ModuleDict({"a": nn.Linear(2, 1), "b": nn.Identity()})
        self.shifts = nn.ParameterList([mg.zeros(1), nn.Parameter([1.0])])
        self.scales = nn.ParameterDict({"one": mg.ones(1)})

    def forward(self, x, head):
        return self.heads[head](x) * self.scales["one"] + self.shifts[1]


def test_the_parts_of_containers_are_trained_saved_and_named():
    model = Model()
    names = ["heads.a.weight", "heads.a.bias", "shifts.0", "shifts.1", "scales.one"]
    assert [name for name, _ in model.named_parameters()] == names == list(model.state_dict())
    model(mg.ones(3, 2), "a").sum().backward()
    assert model.shifts[1].grad.item() == 3 and model.scales["one"].grad is not None
    with pytest.raises(ShapeError, match=r"^Model\.heads\.a: "):
        model(mg.ones(3, 5), "a")


def test_a_module_dict_is_a_dict():
    heads = nn.ModuleDict([("a", nn.Identity())])
    heads["b"] = layer = nn.Linear(1, 1)
    heads.update({"c": nn.Tanh()})
    assert list(heads) == list(heads.keys()) == ["a", "b", "c"] and len(heads) == 3 and "b" in heads
    assert heads.pop("b") is layer and [name for name, _ in heads.items()] == ["a", "c"]
    del heads["a"]
    assert [type(value) for value in heads.values()] == [nn.Tanh]
    for wrong in ("a.b", "items", "", 3):
        with pytest.raises(ArgumentError, match="cannot be a key"):
            heads[wrong] = nn.Tanh()
    with pytest.raises(KeyError):
        heads["gone"]
    with pytest.raises(ArgumentError, match="only modules"):
        heads["x"] = mg.ones(1)


def test_a_parameter_list_is_a_list_of_parameters():
    values = nn.ParameterList([mg.zeros(2)]).append(mg.ones(3))
    values[0] = mg.ones(2)
    assert len(values) == 2 and [p.shape for p in values] == [(2,), (3,)] and values[-1].shape == (3,)
    assert all(isinstance(p, nn.Parameter) for p in values[:])
    with pytest.raises(ArgumentError, match="only parameters"):
        values.append(3.0)


def test_a_functional_call_uses_the_given_values_and_sends_gradients_there():
    layer = nn.Linear(2, 1)
    own = layer.weight
    weight = mg.tensor([[1.0, 2.0]], requires_grad=True)
    out = nn.functional_call(layer, {"weight": weight, "bias": mg.zeros(1)}, mg.tensor([3.0, 4.0]))
    out.sum().backward()
    assert out.item() == 11 and weight.grad.tolist() == [[3, 4]] and own.grad is None and layer.weight is own
    hessian = mg.hessian(lambda w: (nn.functional_call(layer, {"weight": w}, mg.ones(3, 2)) ** 2).sum())(weight)
    np.testing.assert_allclose(hessian.numpy().reshape(2, 2), np.full((2, 2), 6.0))


def test_a_functional_call_replaces_tied_parameters_and_buffers():
    class Tied(nn.Module):
        def __init__(self):
            self.first = nn.Linear(2, 2, bias=False)
            self.second = nn.Linear(2, 2, bias=False)
            self.second.weight = self.first.weight
            self.norm = nn.BatchNorm1d(2)

        def forward(self, x):
            return self.norm(self.second(self.first(x)))

    model, mean = Tied(), mg.zeros(2)
    doubled = mg.tensor([[2.0, 0.0], [0.0, 2.0]])
    x = mg.tensor(normal(4, 2), dtype="float32")
    state = [{"first.weight": doubled}, {"norm.running_mean": mean}]
    nn.functional_call(model, state, x)
    np.testing.assert_allclose(mean.numpy(), 0.1 * 4 * x.numpy().mean(axis=0), rtol=1e-5)
    assert not model.norm.running_mean.numpy().any() and model.second.weight is model.first.weight


def test_a_functional_call_refuses_what_does_not_fit_and_leaves_the_module_as_it_was():
    layer = nn.Linear(2, 1)
    own = layer.weight
    for state, words in (({"wieght": own}, "did you mean 'weight'"), ({"weight": mg.ones(2)}, r"\(1, 2\)")):
        with pytest.raises((ArgumentError, ShapeError), match=words):
            nn.functional_call(layer, state, mg.ones(2))
    with pytest.raises(ArgumentError, match="no bias"):
        nn.functional_call(layer, {"weight": own}, mg.ones(2), strict=True)
    with pytest.raises(ShapeError):
        nn.functional_call(layer, {"weight": mg.ones(1, 2)}, mg.ones(5))
    assert layer.weight is own


def test_parameters_become_a_vector_and_a_vector_parameters():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    vector = nn.utils.parameters_to_vector(model.parameters())
    assert vector.shape == (13,) and vector.requires_grad
    nn.utils.vector_to_parameters(mg.arange(13.0), model.parameters())
    np.testing.assert_array_equal(nn.utils.parameters_to_vector(model.parameters()).numpy(), np.arange(13))
    with pytest.raises(ShapeError, match=r"\(13,\)(.|\n)*\(12,\)"):
        nn.utils.vector_to_parameters(mg.ones(12), model.parameters())
    assert nn.utils.clip_grad_norm_ is mg.optim.clip_grad_norm_
