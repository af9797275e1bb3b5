"""The traced graph: printed, with sizes as symbols, replayed for other sizes, and written to a file that nobody need trust."""

import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import minigrad as mg
from minigrad.compile import load_graph, save_graph, trace
from minigrad.errors import CheckpointError, ShapeError

F = mg.nn.functional


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


@pytest.fixture(scope="module")
def block():
    mg.manual_seed(0)
    return mg.nn.TransformerBlock(16, 2, causal=True).eval()


def joined(x, w):
    rows = x.reshape(x.shape[0] * x.shape[1], 3) @ w
    return F.softmax(rows, axis=-1).reshape(*x.shape[:2], 4)[:, 1:]


def test_sizes_that_vary_become_symbols():
    w = mg.tensor(normal(3, 4))
    graph = trace(joined, mg.ones(2, 5, 3), w, other=(mg.ones(6, 7, 3), w))
    text = str(graph)
    assert "float32[n0, n1, 3]" in text and "float32[n0*n1, 4]" in text and "float32[n0, n1-1, 4]" in text
    x = normal(4, 9, 3)
    (ours,) = graph.replay([x, w.numpy()])
    np.testing.assert_allclose(ours, joined(mg.tensor(x), w).numpy(), rtol=1e-5)


def test_a_transformer_block_is_traced_for_every_batch_and_length(block):
    graph = trace(block, mg.tensor(normal(2, 5, 16)), other=(mg.tensor(normal(3, 7, 16)),))
    x = normal(4, 11, 16, seed=3)
    tensors = [t.numpy() for t in block.parameters()]
    sizes = {v.shape for v in graph.inputs}
    assert any("n0" in str(shape) for shape in sizes)
    by_shape = {t.shape: t for t in tensors}
    assert len(by_shape) <= len(tensors)
    expected = block(mg.tensor(x)).detach().numpy()
    compiled = mg.compile(block)
    compiled(mg.tensor(x))
    np.testing.assert_allclose(compiled(mg.tensor(x)).detach().numpy(), expected, rtol=2e-5, atol=2e-6)


def test_a_number_that_cannot_be_told_from_the_sizes_is_refused():
    with pytest.raises(ShapeError, match="cannot be told|something else"):
        trace(lambda x: x * 1.0 if x.shape[0] < 4 else (x * 1.0)[: x.shape[0] // 2], mg.ones(2), other=(mg.ones(9),))


def test_a_graph_is_saved_and_loaded(tmp_path):
    constant = mg.tensor([1.0, 2.0, 3.0, 4.0])
    graph = trace(lambda x, w: joined(x, w) * mg.tensor([1.0, 2.0, 3.0, 4.0]), mg.ones(2, 5, 3), mg.ones(3, 4))
    save_graph(graph, tmp_path / "g.safetensors")
    again = load_graph(tmp_path / "g.safetensors")
    assert str(again).count("\n") == str(graph).count("\n")
    x, w = normal(2, 5, 3), normal(3, 4, seed=1)
    np.testing.assert_array_equal(again.replay([x, w])[0], graph.replay([x, w])[0])
    np.testing.assert_allclose(
        again.replay([x, w])[0], (joined(mg.tensor(x), mg.tensor(w)) * constant).numpy(), rtol=1e-6
    )


@pytest.mark.parametrize(
    "damage",
    [
        lambda g: g["steps"][0].update(op="__import__"),
        lambda g: g["steps"][0].update(op="eval"),
        lambda g: g["steps"][0]["attrs"].update(shape={"code": "print(1)"}),
        lambda g: g["values"][g["inputs"][0]].update(dtype="object"),
        lambda g: g["steps"][0].update(inputs=[{"value": "nobody"}]),
        lambda g: g.pop("outputs"),
        lambda g: g["steps"][0].update(attrs=3),
    ],
)
def test_a_file_from_a_stranger_runs_nothing(tmp_path, damage):
    graph = trace(joined, mg.ones(2, 5, 3), mg.ones(3, 4))
    path = tmp_path / "g.safetensors"
    save_graph(graph, path)
    with safe_open(path, framework="np") as file:
        metadata = file.metadata()
    form = json.loads(metadata["graph"])
    damage(form)
    save_file({"nothing": np.zeros(0, "float32")}, path, {**metadata, "graph": json.dumps(form)})
    with pytest.raises(CheckpointError):
        load_graph(path)


def test_a_file_without_a_graph_is_refused(tmp_path):
    mg.save({"w": mg.ones(2)}, tmp_path / "w.safetensors")
    with pytest.raises(CheckpointError, match="holds no graph"):
        load_graph(tmp_path / "w.safetensors")


def test_a_graph_that_draws_cannot_be_written(tmp_path):
    graph = trace(lambda x: F.dropout(x, 0.5), mg.ones(4))
    with pytest.raises(mg.MinigradError, match="eval"):
        save_graph(graph, tmp_path / "g.safetensors")
