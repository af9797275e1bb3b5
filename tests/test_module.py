"""Modules: they know their parts, can be saved, frozen, moved, copied and watched, and say where an error happened."""

from __future__ import annotations

import copy
import gc
import weakref

import numpy as np
import pytest
from support.module_examples import STATE, Model, Tied, assert_same, values

import minigrad as mg
from minigrad import nn
from minigrad.check import gradcheck
from minigrad.errors import ArgumentError, CallError, DtypeError, NonFiniteError, ShapeError


def test_parts_are_found_by_path():
    model = Model()
    assert list(model.state_dict()) == STATE
    assert [name for name, _ in model.named_parameters()] == [
        name for name in STATE if "running" not in name and "num" not in name
    ]
    assert [name for name, _ in model.named_buffers()][0] == "seen"
    assert [name for name, _ in model.named_buffers()][1:] == [
        name for name in STATE if "running" in name or "num" in name
    ]
    assert [name for name, _ in model.named_children()] == ["blocks", "head"]
    paths = [
        "",
        "blocks",
        "blocks.0",
        "blocks.0.fc",
        "blocks.0.norm",
        "blocks.1",
        "blocks.1.fc",
        "blocks.1.norm",
        "head",
    ]
    assert [name for name, _ in model.named_modules()] == paths
    assert [type(m).__name__ for m in model.modules()][:3] == ["Model", "ModuleList", "Block"]
    assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in model.parameters())


def test_a_parameter_that_replaces_a_buffer_is_no_longer_one():
    model = Model()
    model.seen = nn.Parameter(mg.zeros(1))
    assert "seen" in dict(model.named_parameters()) and "seen" not in dict(model.named_buffers())
    assert "seen" in model.state_dict()


def test_train_and_eval_reach_every_part():
    model = Model()
    assert model.training and model.eval() is model
    assert not any(m.training for m in model.modules())
    assert all(m.training for m in model.train().modules())


def test_freezing_stops_training_of_a_part():
    model = Model()
    assert model.freeze() is model and not any(p.requires_grad for p in model.parameters())
    model.head.unfreeze()
    model(mg.randn(4, 3)).sum().backward()
    assert {name for name, p in model.named_parameters() if p.grad is not None} == {"head.weight", "head.bias"}
    model.zero_grad()
    assert model.head.weight.grad is None


def test_hooks_see_and_may_change_what_goes_in_and_out():
    layer, x = nn.Linear(2, 2), mg.ones(1, 2)
    plain, seen = layer(x), []
    watch = layer.register_forward_hook(lambda module, args, out: seen.append((module, args, out.shape)))
    assert seen == [] and layer(x).shape == (1, 2)
    (module, args, shape), *rest = seen
    assert module is layer and args[0] is x and shape == (1, 2) and rest == []
    double = layer.register_forward_pre_hook(lambda module, args: args[0] * 2)
    both = layer.register_forward_hook(lambda module, args, out: out + 1)
    np.testing.assert_allclose(layer(x).numpy(), 2 * plain.numpy() - layer.bias.numpy() + 1, rtol=1e-6)
    for handle in (watch, double, both, both):
        handle.remove()
    np.testing.assert_array_equal(layer(x).numpy(), plain.numpy())
    assert len(seen) == 2


def test_a_hook_may_remove_itself():
    layer, calls = nn.Identity(), []

    def once(module, args, out):
        calls.append("once")
        handle.remove()

    handle = layer.register_forward_hook(once)
    layer.register_forward_hook(lambda module, args, out: calls.append("always"))
    layer(1)
    layer(1)
    assert calls == ["once", "always", "always"]


def test_a_copy_has_its_own_weights_ties_and_frozen_parts():
    model = nn.Sequential(Tied(), Model())
    model[1].head.freeze()
    twin = copy.deepcopy(model)
    assert_same(values(model), values(twin))
    assert twin[0].out.weight is twin[0].table.weight is not model[0].table.weight
    assert isinstance(twin[0].table.weight, nn.Parameter)
    assert not twin[1].head.weight.requires_grad and twin[1].scale.requires_grad
    with mg.no_grad():
        twin[0].table.weight += 1
        twin[1].blocks[0].norm.running_mean += 1
    assert (model[0].table.weight.numpy() != twin[0].table.weight.numpy()).all()
    np.testing.assert_array_equal(model[1].blocks[0].norm.running_mean.numpy(), 0)


def test_moving_keeps_parameters_gradients_hooks_and_whole_numbers(device: str):
    model = Tied()
    model.register_buffer("count", mg.tensor([2**53 + 1]))
    model.table.weight.register_hook(lambda gradient: gradient * 0 + 5)
    parameter = model.table.weight
    model(mg.tensor([0])).sum().backward()
    assert model.to(dtype="float64", device=device) is model
    assert model.table.weight is parameter is model.out.weight and parameter.requires_grad and parameter.is_leaf
    assert parameter.dtype == np.float64 and parameter.device == device
    assert parameter.grad is not None and parameter.grad.dtype == np.float64 and parameter.grad.device == device
    np.testing.assert_array_equal(parameter.grad.numpy(), 5)
    assert model.count.dtype == np.int64 and model.count.item() == 2**53 + 1 and model.count.device == device
    model.zero_grad()
    model(mg.tensor([0], device=device)).sum().backward()
    np.testing.assert_array_equal(parameter.grad.numpy(), 5)


def test_moving_to_where_it_is_changes_nothing_and_whole_numbers_are_refused():
    layer = nn.Linear(2, 2)
    node, data = layer.weight.node, layer.weight.data
    layer.to("cpu").to("float32").to(mg.ones(1))
    assert layer.weight.node is node and layer.weight.data is data
    with pytest.raises(DtypeError, match="parameters must stay floating\n.*\n.*int64"):
        layer.to("int64")
    assert layer.weight.data is data


@pytest.mark.parametrize(
    "hide",
    [
        lambda: [nn.Linear(1, 1)],
        lambda: (nn.Linear(1, 1),),
        lambda: {"a": nn.Linear(1, 1)},
        lambda: {nn.Linear(1, 1)},
        lambda: [None, nn.Parameter(1.0)],
        lambda: [[nn.Linear(1, 1)]],
    ],
)
def test_modules_in_plain_containers_are_refused(hide):
    model = Model()
    with pytest.raises(ArgumentError, match=r"Model.layers: .* would be overlooked\n.*ModuleList"):
        model.layers = hide()
    assert not hasattr(model, "layers")


def test_modules_added_to_a_plain_list_later_are_found_when_parameters_are_asked_for():
    model = Model()
    model.layers = []
    model.layers.append(nn.Linear(1, 1))
    for ask in (model.parameters, model.state_dict, model.train):
        with pytest.raises(ArgumentError, match=r"Model.layers: modules and parameters in a plain list"):
            list(ask())


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda m: setattr(m, "scale", mg.ones(3)), "Model.scale: a Tensor in the place of a parameter"),
        (lambda m: setattr(m, "train", nn.Linear(1, 1)), "Model.train: every module has something of this name"),
        (lambda m: setattr(m, "self", m), "Model.self: a module cannot contain itself"),
        (lambda m: setattr(m.blocks[0].fc, "up", m), "Linear.up: a module cannot contain itself"),
        (lambda m: m.blocks.append(mg.tanh), "ModuleList: only modules can be in it\n.*\n.*tanh"),
        (lambda m: nn.Sequential(nn.Linear(1, 1), mg.relu), "Sequential: only modules can be in it\n.*\n.*relu"),
        (lambda m: m.register_buffer("head", mg.ones(1)), "Model: a buffer cannot have this name\n.*\n.*'head'"),
        (lambda m: m.register_buffer("a.b", mg.ones(1)), "a buffer cannot have this name"),
        (lambda m: m.register_buffer("mean", np.ones(1)), "Model.mean: this cannot be a buffer\n.*\n.*ndarray"),
    ],
)
def test_mistakes_in_building_a_model_are_told_at_once(spoil, words):
    model = Model()
    with pytest.raises(ArgumentError, match=words):
        spoil(model)
    assert list(model.state_dict()) == STATE


def test_errors_of_ops_and_layers_begin_with_the_path_of_the_module():
    class Wrong(nn.Module):
        def forward(self, x):
            return x @ mg.ones(7, 7)

    model = Model()
    model.blocks[1].fc = Wrong()
    with pytest.raises(ShapeError) as caught:
        model(mg.ones(4, 3))
    assert str(caught.value).startswith("Model.blocks.1.fc: matmul: ")
    with pytest.raises(ShapeError) as caught:
        nn.Sequential(nn.Tanh(), nn.Sequential(nn.Linear(4, 4)))(mg.ones(2, 3))
    assert str(caught.value).startswith("Sequential.1.0: linear: ")
    assert mg.ones(2).requires_grad is False and mg.engine.modes.local.mode.scope == ""


def test_a_list_assigned_before_it_is_filled_names_its_parts_too():
    class Late(nn.Module):
        def __init__(self):
            self.rows = nn.ModuleList()
            self.rows.append(nn.ModuleList([nn.Identity()]))
            self.rows[0].append(nn.Linear(2, 2))

        def forward(self, x):
            return self.rows[0][1](x)

    with pytest.raises(ShapeError, match=r"^Late.rows.0.1: linear: "):
        Late()(mg.ones(3))


def test_debug_names_the_module_of_the_first_nan():
    model = Model()
    with mg.no_grad():
        model.blocks[0].fc.weight[...] = 3e38
    where = r"^Model.blocks.0.fc: linear .*module_examples.py"
    with np.errstate(over="ignore"), mg.debug(), pytest.raises(NonFiniteError, match=where):
        model(mg.ones(4, 3))


def test_lists_and_sequences_are_indexed_sliced_and_changed():
    layers = [nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1)]
    model = nn.Sequential(*layers)
    assert len(model) == 3 and model[-1] is layers[2] and list(model) == layers
    part = model[1:]
    assert isinstance(part, nn.Sequential) and list(part) == layers[1:]
    x = mg.randn(4, 2)
    np.testing.assert_array_equal(model(x).numpy(), part(layers[0](x)).numpy())
    with pytest.raises(ShapeError, match=r"^Sequential.2: "):
        nn.Sequential(nn.Identity(), nn.Identity(), model[2])(mg.ones(3))
    model[-1] = nn.Linear(2, 5)
    assert model(x).shape == (4, 5) and list(dict(model.named_children())) == ["0", "1", "2"]
    several = nn.ModuleList(layers[:1]).extend(layers[1:])
    assert len(several) == 3 and several[:2] == layers[:2]
    with pytest.raises(IndexError):
        model[3] = nn.Tanh()


def test_a_module_without_forward_says_so():
    with pytest.raises(CallError, match="Empty has no forward method"):
        type("Empty", (nn.Module,), {})()()
    with pytest.raises(CallError, match="ModuleList has no forward method"):
        nn.ModuleList()(1)


def test_apply_calls_a_function_on_every_module():
    seen: list[str] = []
    model = Model()
    assert model.apply(lambda module: seen.append(type(module).__name__)) is model
    assert len(seen) == 9 and seen[0] == "Model"


def test_no_layer_gives_a_method_of_every_module_another_meaning():
    common = {name for name in vars(nn.Module) if not name.startswith("_")} - {"forward", "extra_repr", "couples_batch"}
    layers = [thing for name in nn.__all__ if isinstance(thing := getattr(nn, name), type)]
    for layer in layers:
        if issubclass(layer, nn.Module):
            assert all(getattr(layer, name) is getattr(nn.Module, name) for name in common), layer


def test_a_model_passes_gradcheck_with_its_parameters():
    model = Model().to("float64").eval()
    result = gradcheck(model, mg.randn(2, 3, dtype="float64"))
    assert result.compared > sum(p.size for p in model.parameters())


def test_a_model_is_freed_without_the_collector():
    gc.disable()
    try:
        model = Model()
        model(mg.ones(4, 3)).sum().backward()
        gone = weakref.ref(model.blocks[0])
        del model
        assert gone() is None
    finally:
        gc.enable()


def test_repr_shows_the_structure():
    assert repr(nn.Sequential(nn.Linear(2, 3), nn.ModuleList([nn.ReLU()]))) == (
        "Sequential(\n  (0): Linear(2, 3)\n  (1): ModuleList(\n    (0): ReLU()\n  )\n)"
    )
