"""`with mg.viz.on_error():` draws the graph that led to an error, the op that failed in red, and lets the error go on its way."""

import json

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import ArgumentError, GradientError, NonFiniteError, ShapeError


def leaf(values):
    return mg.tensor(np.asarray(values, "float64"), requires_grad=True)


def failed(path):
    """The boxes of a .json, and the one that failed."""
    data = json.loads(path.read_text())
    (box,) = [box for box in data["boxes"].values() if box["failed"]]
    return data, box


def test_shapes_that_do_not_fit_are_drawn_with_the_op_that_got_them(tmp_path, capsys):
    path = tmp_path / "error.json"
    with pytest.raises(ShapeError, match="matmul"), mg.viz.on_error(path):
        x, w = leaf(np.ones((2, 3))), leaf(np.ones((4, 5)))
        hidden = x * 2
        hidden @ w
    data, box = failed(path)
    assert box["label"] == "matmul" and box["settings"] == {"a": "(2, 3) float64", "b": "(4, 5) float64"}
    sources = [data["boxes"][entry["from"]] for entry in box["inputs"]]
    assert [source["label"] for source in sources] == ["hidden", "w"] and sources[0]["op"] == "multiply"
    assert "expected" in box["error"] and "matmul" in data["note"]
    assert str(path) in capsys.readouterr().err


def test_a_mistake_inside_a_model_is_drawn_inside_the_module(tmp_path):
    model = mg.nn.Sequential(mg.nn.Linear(3, 4), mg.nn.Linear(5, 2))
    path = tmp_path / "error.json"
    with (
        pytest.raises(ShapeError, match="make the input's last axis 5, or the layer for 4 inputs"),
        mg.viz.on_error(path),
    ):
        model(mg.tensor(np.ones((2, 3), "float32")))
    data, box = failed(path)
    assert data["groups"][box["group"]]["title"] == "Linear" and data["groups"][box["group"]]["name"] == "1"
    assert {b["label"] for b in data["boxes"].values() if b["kind"] == "parameter"} >= {
        "0.weight",
        "1.weight",
        "1.bias",
    }


@pytest.mark.parametrize(
    ("make", "op"),
    [
        (lambda: mg.concatenate([leaf(np.ones((2, 3))), leaf(np.ones((3, 2)))], axis=0), "concatenate"),
        (lambda: leaf([1.0, 2.0]) + mg.tensor([1.0, 2.0, 3.0]), "add"),
        (lambda: mg.nn.Embedding(4, 2)(mg.tensor([7])), "embedding"),
        (lambda: mg.nn.functional.cross_entropy(leaf(np.ones((3, 4))), mg.tensor([1, 2])), "cross_entropy"),
        (lambda: mg.nn.functional.layer_norm(leaf(np.ones((3, 4))), (5,)), "layer_norm"),
        (lambda: leaf(np.ones((2, 3))).reshape(4, 4), "reshape"),
    ],
)
def test_the_op_that_was_called_is_named(make, op, tmp_path):
    path = tmp_path / "error.json"
    with pytest.raises(Exception, match=f"(?i){op}"), mg.viz.on_error(path):
        make()
    assert failed(path)[1]["label"] == op


def test_the_first_nan_is_drawn(tmp_path):
    path = tmp_path / "error.json"
    with pytest.raises(NonFiniteError), mg.viz.on_error(path), mg.debug():
        x = leaf([1.0, 0.0])
        shifted = x - 1
        shifted.sqrt()
    data, box = failed(path)
    assert box["label"] == "sqrt" and any(b["label"] == "shifted" for b in data["boxes"].values())


def test_a_nan_on_the_way_back_is_drawn_in_the_whole_graph(tmp_path):
    path = tmp_path / "error.json"
    with pytest.raises(NonFiniteError), mg.viz.on_error(path), mg.debug():
        x = leaf([0.0, 4.0])
        root = x.sqrt()
        (root * 2).sum().backward()
    data, box = failed(path)
    assert box["label"] == "root" and box["op"] == "sqrt" and "backward" in box["error"]
    assert box["gradient"]["text"] == "[2, 2]"
    assert [b["op"] for b in data["boxes"].values() if b["output"]] == ["sum"]


def test_a_rule_that_fails_is_drawn(tmp_path):
    @mg.op
    def odd(xp, a):
        return a * 2

    odd.vjp(a=lambda g: g[0, 0, 0])
    path = tmp_path / "error.json"
    with pytest.raises(IndexError), mg.viz.on_error(path):
        odd(leaf([1.0]) * 3).sum().backward()
    assert failed(path)[1]["label"] == "odd"


def test_a_graph_that_was_freed_is_drawn(tmp_path):
    path = tmp_path / "error.json"
    with pytest.raises(GradientError, match="freed"), mg.viz.on_error(path):
        y = leaf([1.0]).exp()
        y.sum().backward()
        y.sum().backward()
    assert failed(path)[1]["op"] == "exp"


@pytest.mark.graphviz
def test_every_format_and_a_file_that_cannot_be_written(tmp_path, capsys):
    def fail():
        x = leaf(np.ones((2, 3)))
        x @ x

    for suffix in (".svg", ".png", ".html", ".dot", ".txt"):
        path = tmp_path / f"error{suffix}"
        with pytest.raises(ShapeError), mg.viz.on_error(path):
            fail()
        assert path.stat().st_size > 0
    assert "error-fill" in (tmp_path / "error.svg").read_text()
    (tmp_path / "taken.svg").mkdir()
    with pytest.raises(ShapeError), mg.viz.on_error(tmp_path / "taken.svg"):
        fail()
    told = capsys.readouterr().err
    assert "could not be written" in told and "failed" in told and "(2, 3) float64" in told


def test_a_path_that_cannot_be_written_is_told_at_once(tmp_path):
    for path, said in (
        (tmp_path / "error.gif", "cannot be written like this"),
        (tmp_path / "no" / "e.svg", "no' does not"),
    ):
        with pytest.raises(ArgumentError, match=said), mg.viz.on_error(path):
            pytest.fail("the block was entered")


def test_where_it_failed_and_what_was_said_is_in_the_picture(tmp_path):
    path = tmp_path / "error.json"
    with pytest.raises(ShapeError), mg.viz.on_error(path):
        x = leaf(np.ones((2, 3)))
        x @ x
    data, box = failed(path)
    here = test_where_it_failed_and_what_was_said_is_in_the_picture.__code__
    number = here.co_firstlineno + 4
    assert box["line"] == f"test_viz_on_error.py:{number}" and data["note"].startswith(
        f"test_viz_on_error.py:{number}: matmul"
    )


def test_an_error_before_any_op_says_that_there_is_no_graph(tmp_path, capsys):
    with pytest.raises(ZeroDivisionError), mg.viz.on_error(tmp_path / "error.svg"):
        _nothing_here()
    assert "no graph to draw" in capsys.readouterr().err and not (tmp_path / "error.svg").exists()


def test_an_error_without_tensors_and_a_block_without_an_error_draw_nothing(tmp_path):
    path = tmp_path / "error.json"
    with mg.viz.on_error(path):
        pass
    with pytest.raises(ZeroDivisionError), mg.viz.on_error(path):
        _nothing_here()
    assert json.loads(path.read_text())["backward"] == [] if path.exists() else True
    assert mg.engine.modes.local.mode.tracers == ()


def _nothing_here():
    return 1 / 0


@pytest.mark.graphviz
def test_hostile_messages_and_names_are_only_text(tmp_path):
    class Odd(Exception):
        pass

    Odd.__name__ = "</script><script>alert(1)</script>"

    def fail(**given):
        raise Odd("<img src=x onerror=alert(1)>\n\u202e" + "x" * 20_000)

    path = tmp_path / "error.html"
    with pytest.raises(Odd), mg.viz.on_error(path):
        x = leaf([1.0]) * 2
        fail(**{'"><script>': x})
    text = path.read_text()
    assert text.count("<script") == 2 and "<img" not in text and "\u202e" not in text


def test_the_page_shows_the_failed_op(tmp_path, open_page):
    path = tmp_path / "error.html"
    with pytest.raises(ShapeError), mg.viz.on_error(path):
        mg.nn.Sequential(mg.nn.Linear(3, 4), mg.nn.Linear(5, 2))(mg.tensor(np.ones((2, 3), "float32")))
    page = open_page(path)
    assert "do not fit" in page.locator(".note").inner_text()
    assert "(2, 4)" in page.locator("#details").inner_text()
    assert page.locator(".view:not([hidden]) .box.error").count() == 1
    assert "(2, 5) float32" in page.locator(".view:not([hidden]) .box.error").text_content()
