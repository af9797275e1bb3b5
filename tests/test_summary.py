"""`summary()`: the numbers of its table are those counted by hand, and the model is left as it was."""

import pytest
from support.module_examples import Model, Tied

import minigrad as mg
from minigrad import nn


def cells(table: str) -> dict[str, list[str]]:
    """The rows of a table by path; columns are separated by two spaces or more."""
    rows = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in table.splitlines()]
    return {row[0]: row[1:] for row in rows if len(row) > 1 and not row[0].startswith("-")}


def test_shapes_and_counts_are_those_counted_by_hand(device):
    model = Model().to(device)
    model.head.freeze()
    table = model.summary(mg.ones(4, 3, device=device))
    block, head = 3 * 3 + 3 + 3 + 3, 3 * 2 + 2
    whole = 3 + 2 * block + head
    assert cells(table) == {
        "path": ["type", "output", "parameters", "trainable"],
        "(whole)": ["Model", "(4, 2)", str(whole), str(whole - head)],
        "blocks": ["ModuleList", "not called", str(2 * block), str(2 * block)],
        "blocks.0": ["Block", "(4, 3)", str(block), str(block)],
        "blocks.0.fc": ["Linear", "(4, 3)", "12", "12"],
        "blocks.0.norm": ["BatchNorm1d", "(4, 3)", "6", "6"],
        "blocks.1": ["Block", "(4, 3)", str(block), str(block)],
        "blocks.1.fc": ["Linear", "(4, 3)", "12", "12"],
        "blocks.1.norm": ["BatchNorm1d", "(4, 3)", "6", "6"],
        "head": ["Linear", "(4, 2)", "8", "0"],
    }
    buffers = 1 + 2 * (3 + 3 + 1)
    size = 4 * whole + 4 * (1 + 2 * 6) + 8 * 2
    assert table.splitlines()[-1] == f"{whole} parameters, {whole - head} trainable; {buffers} in buffers; {size} bytes"


def test_without_inputs_nothing_is_run_and_there_is_no_column_of_shapes():
    class Silent(nn.Linear):
        def forward(self, input):
            raise AssertionError("called")

    assert cells(Silent(2, 3).summary()) == {
        "path": ["type", "parameters", "trainable"],
        "(whole)": ["Silent", "9", "9"],
    }


def test_a_tied_parameter_counts_once():
    table = Tied().summary(mg.tensor([[0, 1]]))
    assert cells(table)["(whole)"] == ["Tied", "(1, 2, 5)", "15", "15"]
    assert cells(table)["out"] == ["Linear", "(1, 2, 5)", "15", "15"]
    assert table.endswith("15 parameters, all trainable; 60 bytes")


def test_all_lines_are_aligned_and_large_numbers_are_grouped():
    lines = nn.Sequential(nn.Linear(1000, 1000), nn.ReLU()).summary(mg.ones(2, 1000)).splitlines()
    assert {len(line) for line in lines[:-1]} == {len(lines[1])}
    assert "1,001,000" in lines[2] and lines[-1].endswith("4.0 MB")


def test_the_model_is_left_as_it_was():
    model = Model()
    model.blocks[0].eval()
    mean = model.blocks[1].norm.running_mean.numpy().copy()
    model.summary(mg.ones(4, 3))
    assert model.training and not model.blocks[0].training and not model.blocks[0].norm.training
    assert (model.blocks[1].norm.running_mean.numpy() == mean).all()
    assert not any(module._hooks for module in model.modules())
    with pytest.raises(ValueError, match="linear"):
        model.summary(mg.ones(4, 7))
    assert model.training and not model.blocks[0].training
    assert not any(module._hooks for module in model.modules())


def test_other_outputs_than_tensors_are_described():
    class Several(nn.Module):
        def forward(self, x):
            return x, {"loss": x.sum(), "steps": 3}

    assert cells(Several().summary(mg.ones(2)))["(whole)"][1] == "(2,), loss (), steps int"
