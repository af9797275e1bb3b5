"""State dicts: what fits is copied, what does not is listed in full, and then nothing is changed."""

from __future__ import annotations

import numpy as np
import pytest
from support.module_examples import Model, Tied, assert_same, values

import minigrad as mg
from minigrad import nn


def test_a_state_dict_shares_memory_and_loading_copies(device: str):
    first, second = Model().to(device), Model()
    second.load_state_dict(first.state_dict())
    assert_same(values(first), values(second))
    with mg.no_grad():
        second.scale += 1
    np.testing.assert_array_equal(first.scale.numpy(), 1)
    assert first.state_dict()["scale"].device == device and second.scale.device == "cpu"
    with mg.no_grad():
        first.state_dict()["scale"][...] = 7
    np.testing.assert_array_equal(first.scale.numpy(), 7)


def test_loading_keeps_the_tensors_dtypes_and_training(device: str):
    model = Model().to("float64").to(device)
    before = dict(model.named_parameters())
    model.head.freeze()
    model.load_state_dict({name: value.astype("float32") for name, value in values(Model()).items() if value.ndim} | {
        f"blocks.{i}.norm.num_batches_tracked": 3 for i in (0, 1)
    })  # fmt: skip
    assert all(before[name] is p and p.dtype == np.float64 for name, p in model.named_parameters())
    assert not model.head.weight.requires_grad and model.scale.requires_grad
    assert model.blocks[0].norm.num_batches_tracked.item() == 3


def test_a_state_that_does_not_fit_is_refused_with_everything_that_is_wrong_and_changes_nothing():
    model, state = Model(), values(Model())
    del state["scale"], state["blocks.1.fc.bias"]
    state |= {"extra.weight": np.ones(2), "head.weight": np.ones((3, 2)), "head.bias": np.ones(2, "complex64")}
    state["blocks.0.norm.num_batches_tracked"] = np.array(1.5)
    state["blocks.0.fc.bias"] = "text"
    before = values(model)
    with pytest.raises(nn.StateError) as caught:
        model.load_state_dict(state)
    text = str(caught.value)
    assert text.startswith("Model: the state does not fit the model\n")
    assert "missing: scale, blocks.1.fc.bias;" in text
    assert "unexpected: extra.weight;" in text
    assert "of another shape: head.weight (model (2, 3), state (3, 2));" in text
    assert "blocks.0.fc.bias (model float32, state no numbers)" in text
    assert "blocks.0.norm.num_batches_tracked (model int64, state float64)" in text
    assert "head.bias (model float32, state complex64)" in text
    assert_same(before, values(model))


def test_without_strict_other_names_are_passed_over_and_told_but_shapes_must_fit():
    model, state = Model(), values(Model())
    kept = model.scale.numpy().copy()
    del state["scale"]
    passed_over = model.load_state_dict({**state, "extra": np.ones(1)}, strict=False)
    assert passed_over == (["scale"], ["extra"]) and passed_over.missing_keys == ["scale"]
    np.testing.assert_array_equal(model.scale.numpy(), kept)
    np.testing.assert_array_equal(model.head.weight.numpy(), state["head.weight"])
    with pytest.raises(nn.StateError, match=r"of another shape: head.bias \(model \(2,\), state \(9,\)\)\n") as caught:
        model.load_state_dict({"head.bias": np.ones(9), "extra": np.ones(1)}, strict=False)
    assert "extra" not in str(caught.value)


def test_what_is_no_state_dict_is_refused():
    for wrong in (None, [("scale", 1.0)], Model()):
        with pytest.raises(nn.StateError, match=f"Model: this is not a state dict\n.*\n.*{type(wrong).__name__}"):
            Model().load_state_dict(wrong)


def test_a_prefix_on_all_names_is_recognised():
    with pytest.raises(nn.StateError, match=r"fix: +take the prefix 'model\.' off the names"):
        Model().load_state_dict({f"model.{name}": value for name, value in values(Model()).items()})


def test_a_whole_checkpoint_is_recognised():
    state = {f"model.{name}": value for name, value in values(Model()).items()}
    with pytest.raises(nn.StateError, match=r"fix: +this is a whole checkpoint: minigrad\.train\.load_model"):
        Model().load_state_dict({**state, "optimizer.0.exp_avg": np.ones(1), "random.python": np.ones(1)})


def test_a_state_of_which_no_name_fits_is_refused_even_without_strict():
    for strict in (True, False):
        with pytest.raises(nn.StateError, match="unexpected: theirs.weight") as caught:
            Model().load_state_dict({"theirs.weight": np.ones(1)}, strict=strict)
        assert "strict=False" not in str(caught.value)


def test_a_head_of_another_size_is_told_how_to_fine_tune():
    with pytest.raises(nn.StateError, match="to fine-tune with a new head.*strict=False"):
        Model().load_state_dict({**values(Model()), "head.bias": np.ones(9)})


def test_a_backward_that_needs_overwritten_weights_is_refused():
    layer = nn.Linear(2, 2)
    loss = layer(mg.ones(1, 2, requires_grad=True)).sum()
    layer.load_state_dict(layer.state_dict())
    with pytest.raises(mg.MinigradError, match="overwritten"):
        loss.backward()


def test_a_tied_parameter_is_one_parameter_under_two_names(device: str):
    model = Tied().to(device)
    assert model.out.weight is model.table.weight
    assert [name for name, _ in model.named_parameters()] == ["table.weight"]
    assert list(model.state_dict()) == ["table.weight", "out.weight"]
    model(mg.tensor([0, 1], device=device)).sum().backward()
    assert model.table.weight.grad is not None and (model.table.weight.grad.numpy()[2:] != 0).any()
    state = values(Tied())
    model.load_state_dict({"table.weight": state["table.weight"]})
    np.testing.assert_array_equal(model.out.weight.numpy(), state["table.weight"])
    before = values(model)
    with pytest.raises(nn.StateError, match=r"tied in the model, but not in the state: table.weight = out.weight"):
        model.load_state_dict({**state, "out.weight": state["out.weight"] + 1})
    assert_same(before, values(model))
