"""Graphs: what is drawn is what was computed. Structure, and numbers against hand calculation, NumPy, PyTorch and `backward()`."""

import json

import numpy as np
import pytest
from support.graph_cases import GPT, boxes, edges, gpt_graph, leaf, the

import minigrad as mg
from minigrad.errors import ArgumentError, GradientError, ShapeError
from minigrad.nn import functional as F
from minigrad.viz.drawing.arrays import array_text, brief, number, statistics
from minigrad.viz.graph.labels import Look, rows
from minigrad.viz.graph.tree import Group
from minigrad.viz.graph.view import Port

# Structure


def test_each_op_input_parameter_and_output_is_a_box_with_its_inputs_by_name():
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    loss = (x * w).sum()
    graph = mg.viz.graph(loss)
    assert [(b.kind, b.label) for b in graph.boxes] == [
        ("input", "x"),
        ("input", "w"),
        ("op", "multiply"),
        ("op", "loss"),
    ]
    assert edges(graph) == {("x", "multiply", "a"), ("w", "multiply", "b"), ("multiply", "loss", "a")}
    assert the(graph, is_output=True).op == "sum"
    assert the(graph, name="x").is_kept and the(graph, name="w").is_kept and not the(graph, op="multiply").is_kept
    assert (the(graph, op="multiply").shape, the(graph, op="multiply").dtype) == ((2,), "float64")


def test_what_is_printed_of_a_box_does_not_grow_with_the_graph():
    x = leaf([1.0, 2.0])
    for _ in range(30):
        x = x + x
    last = mg.viz.graph(x).boxes[-1]
    assert last.op == "add" and len(repr(last)) < 1500


def test_a_model_is_drawn_inside_its_modules_and_its_parameters_are_named_by_path():
    model = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.Tanh(), mg.nn.Linear(3, 1))
    graph = mg.viz.graph(model, np.ones((4, 2), "float32"))
    groups = [item for item in graph.tree.root.children if isinstance(item, Group)]
    assert [(g.name, g.title) for g in groups] == [("0", "Linear"), ("1", "Tanh"), ("2", "Linear")]
    assert {b.label for b in boxes(graph, kind="parameter")} == {"0.weight", "0.bias", "2.weight", "2.bias"}
    assert graph.tree.parents[the(graph, name="0.bias")].name == "0"
    assert the(graph, kind="input").label == "x"


def test_what_needs_no_gradient_is_drawn_too_so_that_the_input_is_always_connected():
    images = mg.tensor(np.random.default_rng(0).normal(size=(2, 1, 6, 6)).astype("float32"))
    graph = mg.viz.graph(mg.nn.Conv2d(1, 2, 3, padding=1), images)
    given = the(graph, kind="input")
    users = [b for b in graph.boxes if any(e.source is given for e in b.inputs)]
    assert users and all(b.gradient is None for b in users)
    np.testing.assert_array_equal(given.value, images.numpy())


def test_a_comparison_is_connected_to_what_it_compares_and_nothing_comes_back_through_it():
    graph = mg.viz.graph(lambda x: mg.where(x > 2, x, 0.0).sum(), leaf([1.0, 2.0, 3.0]), direction="both")
    assert ("x", "greater", "a") in edges(graph)
    assert ("greater", "where") in {(source, user) for source, user, _ in edges(graph)}
    assert the(graph, op="greater").gradient is None
    names = {graph.view.keys[item]: item.op for item in graph.view.items}
    back = {(names[a], names[b]) for a, b in graph.view.backs}
    assert ("", "greater") not in back and ("", "where") in back
    np.testing.assert_array_equal(the(graph, kind="input").gradient, [0, 0, 1])


def test_frozen_models_are_drawn_without_gradients():
    layer = mg.nn.Linear(2, 2)
    for parameter in layer.parameters():
        parameter.requires_grad = False
    graph = mg.viz.graph(layer, np.ones((1, 2), "float32"))
    assert all(b.gradient is None for b in graph.boxes) and graph.steps == []
    assert {b.label for b in boxes(graph, kind="parameter")} == {"weight", "bias"}


def test_an_input_that_is_detached_is_a_constant_beside_itself():
    graph = mg.viz.graph(lambda x: x.detach() * x, leaf([1.0, 2.0]))
    assert [b.kind for b in graph.boxes] == ["constant", "input", "op"]
    np.testing.assert_array_equal(the(graph, kind="input").gradient, [1, 2])


def test_a_tied_parameter_is_one_box_outside_of_both_who_use_it():
    graph = gpt_graph()
    box = the(graph, name="tokens.weight")
    assert graph.tree.parents[box] is graph.tree.root
    assert len([1 for b in graph.boxes for e in b.inputs if e.source is box]) == 2


def test_a_module_that_is_called_twice_is_two_calls_that_look_the_same():
    class Twice(mg.nn.Module):
        def __init__(self):
            self.layer = mg.nn.Linear(2, 2)

        def forward(self, x):
            return self.layer(self.layer(x))

    model, x = Twice(), mg.tensor(np.ones((1, 2), "float32"))
    graph = mg.viz.graph(model, x)
    (group,) = [item for item in graph.tree.root.children if isinstance(item, Group)]
    assert len(group.copies) == 2
    model(x).sum().backward()
    np.testing.assert_allclose(the(graph, name="layer.weight").gradient, model.layer.weight.grad.numpy(), rtol=1e-6)


def test_what_goes_into_and_out_of_an_open_block_that_is_repeated_is_connected_and_nothing_goes_in_circles():
    class Pair(mg.nn.Module):
        def __init__(self):
            self.parts = mg.nn.ModuleList([mg.nn.Linear(2, 2) for _ in range(2)])

        def forward(self, x):
            return self.parts[1](self.parts[0](x)).tanh()

    class Tower(mg.nn.Module):
        def __init__(self):
            self.blocks = mg.nn.ModuleList([Pair() for _ in range(3)])

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return x.sum()

    view = mg.viz.graph(Tower(), np.ones((1, 2), "float32"), depth=3).view
    labels = {key: item.label for item, key in view.keys.items()}
    assert sorted((labels[a], labels[b]) for a, b in view.edges) == sorted(
        [
            ("x", "matmul"),
            ("blocks.0.parts.0.weight", "transpose"),
            ("transpose", "matmul"),
            ("matmul", "add"),
            ("blocks.0.parts.0.bias", "add"),
            ("add", "tanh"),
            ("tanh", "sum"),
        ]
    )
    assert set(view.edges.values()) == {1}


def test_integers_that_choose_rows_are_drawn_as_an_input():
    table = mg.nn.Embedding(5, 3)
    graph = mg.viz.graph(table, mg.tensor([[0, 1, 1]]))
    box = the(graph, kind="input")
    assert box.dtype == "int64" and box.gradient is None and any(e.source is box for e in the(graph, kind="op").inputs)
    np.testing.assert_array_equal(the(graph, name="weight").gradient, np.array([1, 2, 0, 0, 0])[:, None] * np.ones(3))


def test_several_outputs_are_boxes_of_their_own_inside_the_same_module():
    class Gate(mg.nn.Module):
        def forward(self, x):
            a, b = mg.split(x, 2)
            return a * b

    x = leaf([1.0, 2.0, 3.0, 4.0])
    graph = mg.viz.graph(lambda x: Gate()(x).sum(), x)
    parts = boxes(graph, op="output")
    assert [b.value.tolist() for b in parts] == [[1, 2], [3, 4]]
    assert the(graph, op="_split").has_parts and the(graph, op="_split").value is None
    homes = {graph.tree.parents[b].title for b in (*parts, the(graph, op="_split"), the(graph, op="multiply"))}
    assert homes == {"Gate"} and len([g for g in graph.tree.groups() if g.title == "Gate"]) == 1
    np.testing.assert_array_equal(the(graph, kind="input").gradient, [3, 4, 1, 2])


def test_an_uneven_split_that_nobody_watched_and_an_output_that_nobody_uses():
    x = leaf(np.arange(5.0))
    first, second = mg.split(x, [2])
    graph = mg.viz.graph((second * 2).sum())
    assert the(graph, name="second").value.tolist() == [2, 3, 4]
    np.testing.assert_array_equal(the(graph, name="x").gradient, [0, 0, 2, 2, 2])
    assert first.shape == (2,)


# Numbers


@pytest.mark.parametrize("watch", [False, True])
def test_values_and_gradients_are_those_of_numpy_and_of_backward(watch):
    rng = np.random.default_rng(0)
    x, w, b = leaf(rng.normal(size=(4, 3))), leaf(rng.normal(size=(3, 2))), leaf(rng.normal(size=2))

    def run():
        return ((x @ w + b).tanh() ** 2).mean()

    if watch:
        with mg.debug():
            loss = run()
    else:
        loss = run()
    graph = mg.viz.graph(loss)
    hidden = np.tanh(x.numpy() @ w.numpy() + b.numpy())
    np.testing.assert_allclose(the(graph, op="tanh").value, hidden)
    np.testing.assert_allclose(the(graph, name="loss").value, (hidden**2).mean())
    np.testing.assert_allclose(the(graph, op="tanh").gradient, 2 * hidden / hidden.size)
    loss.backward()
    for name, tensor in (("x", x), ("w", w), ("b", b)):
        np.testing.assert_allclose(the(graph, name=name).gradient, tensor.grad.numpy())


def test_gradients_of_a_transformer_are_those_of_backward_and_of_finite_differences():
    model = GPT(layers=2)
    tokens = mg.tensor(np.arange(6).reshape(1, 6))
    graph = mg.viz.graph(model, tokens)
    model(tokens).sum().backward()
    for path, parameter in model.named_parameters():
        np.testing.assert_allclose(the(graph, name=path).gradient, parameter.grad.numpy(), rtol=2e-3, atol=2e-3)
    weight = model.positions.weight
    with mg.no_grad():
        totals = []
        for step in (1e-2, -2e-2):
            weight[0, 0] = weight[0, 0] + step
            totals.append(model(tokens).sum().item())
    slope = (totals[0] - totals[1]) / 2e-2
    assert slope == pytest.approx(the(graph, name="positions.weight").gradient[0, 0], rel=0.05, abs=0.05)


@pytest.mark.torch
def test_gradients_are_those_of_torch():
    torch = pytest.importorskip("torch")
    a, b = np.random.default_rng(1).normal(size=(2, 3, 3))
    graph = mg.viz.graph(lambda a, b: (F.softmax(a @ b, axis=-1) * b).sum(), leaf(a), leaf(b))
    ta, tb = torch.tensor(a, requires_grad=True), torch.tensor(b, requires_grad=True)
    (torch.softmax(ta @ tb, -1) * tb).sum().backward()
    np.testing.assert_allclose(the(graph, name="a").gradient, ta.grad.numpy(), rtol=1e-6)
    np.testing.assert_allclose(the(graph, name="b").gradient, tb.grad.numpy(), rtol=1e-6)


def test_the_replay_tells_fan_out_and_broadcasting_as_sums_by_hand():
    x, w, b = leaf([1.0, 2.0, 3.0]), leaf(2.0), leaf([[1.0], [2.0]])

    def f(x, w, b):
        h = x * w + b  # [[3, 5, 7], [4, 6, 8]]
        return (h * h).sum()

    graph = mg.viz.graph(f, x, w, b)
    total, square, plus, times = graph.steps
    assert [step.box.op for step in graph.steps] == ["sum", "multiply", "add", "multiply"]
    assert total.upstream == 1 and total.contributions[0].formula
    h = np.array([[3.0, 5, 7], [4, 6, 8]])
    first, second = square.contributions
    np.testing.assert_array_equal(first.local, h)
    assert first.before is None
    np.testing.assert_array_equal(second.before, h)  # it is used twice: the two contributions are added
    np.testing.assert_array_equal(plus.upstream, 2 * h)
    to_product, to_b = plus.contributions
    assert to_product.is_summed and to_b.is_summed
    np.testing.assert_array_equal(to_product.raw, 2 * h)
    np.testing.assert_array_equal(to_product.part, [14, 22, 30])
    np.testing.assert_array_equal(to_b.part, [[30], [36]])
    to_x, to_w = times.contributions
    np.testing.assert_array_equal(to_x.part, [28, 44, 60])
    np.testing.assert_array_equal(to_x.local, [2, 2, 2])
    np.testing.assert_array_equal(to_w.raw, [14, 44, 90])
    assert to_w.part == 148 and to_w.is_summed
    assert the(graph, name="w").gradient == 148


def test_a_local_derivative_is_told_where_what_arrives_is_not_finite():
    (step,) = mg.viz.graph(leaf([1.0, 2.0]) * 3, seed=[np.nan, 1.0]).steps
    np.testing.assert_array_equal(step.contributions[0].local, [3, 3])


def test_nothing_is_stored_or_freed_by_drawing():
    x = leaf([1.0, 2.0])
    loss = (x * x).sum()
    mg.viz.graph(loss)
    assert x.grad is None
    loss.backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2, 4])


def test_a_seed_weighs_the_output_and_must_fit_it():
    x = leaf([1.0, 2.0])
    np.testing.assert_array_equal(the(mg.viz.graph(x * x, seed=[1.0, 0.5]), name="x").gradient, [2, 2])
    both = mg.viz.graph(lambda x: (x * 2, x.sum()), x, seed=3.0)
    np.testing.assert_array_equal(the(both, kind="input").gradient, [9, 9])
    with pytest.raises(ShapeError, match="seed does not fit the output"):
        mg.viz.graph(x * x, seed=[1.0, 2.0, 3.0])


def test_the_graph_of_a_second_derivative():
    x = leaf(2.0)
    (slope,) = mg.autograd.grad(x**4, x, create_graph=True)
    graph = mg.viz.graph(slope)
    assert the(graph, is_output=True).value == 32 and the(graph, name="x").gradient == 48
    assert len(boxes(graph, kind="op")) >= 2


def test_lines_of_a_second_derivative_are_the_users():
    with mg.debug():
        x = leaf(2.0)
        (slope,) = mg.autograd.grad(x**3, x, create_graph=True)
    lines = {b.line for b in boxes(mg.viz.graph(slope), kind="op")}
    assert len(lines) == 1 and __file__ in lines.pop()


@pytest.mark.parametrize("watch", [False, True])
def test_a_write_in_place_shows_what_was_there_before_and_after(watch):
    x = leaf([0.0, 1.0, 2.0, 3.0])

    def run():
        y = x * 2
        y[1] = x[3]
        return y.sum()

    if watch:
        with mg.debug():
            loss = run()
    else:
        loss = run()
    graph = mg.viz.graph(loss)
    if watch:
        np.testing.assert_array_equal(the(graph, op="multiply").value, [0, 2, 4, 6])
        np.testing.assert_array_equal(the(graph, op="setitem").value, [0, 3, 4, 6])
    np.testing.assert_array_equal(the(graph, name="x").gradient, [2, 0, 2, 3])


def test_values_that_were_overwritten_are_not_shown_as_what_they_were():
    w = leaf([1.0, 2.0])
    h = w.exp()
    loss = (h * w).sum()
    del h
    with mg.no_grad():
        w[...] = 100.0
    graph = mg.viz.graph(loss)
    product = the(graph, op="multiply")
    assert product.value is None  # and not the product of new numbers with old ones
    assert the(graph, name="w").value.tolist() == [100, 100]
    assert the(graph, name="w").gradient is None  # backward() would refuse
    assert "mg.debug()" in str(graph)


def test_an_input_that_nobody_kept_is_unknown_and_nothing_is_computed_from_it():
    x = leaf([1.0, 3.0])
    loss = mg.where(mg.tensor([True, False]), x, 5.0).sum()
    graph = mg.viz.graph(loss)
    assert the(graph, op="where").value is None
    assert "b = ?" in str(graph) and "mg.debug()" in str(graph)
    with mg.debug():
        loss = mg.where(mg.tensor([True, False]), x, 5.0).sum()
    graph = mg.viz.graph(loss)
    assert the(graph, op="where").value.tolist() == [1, 5] and "mg.debug()" not in str(graph)


@pytest.mark.graphviz
def test_after_backward_freed_the_graph_no_gradient_is_shown_rather_than_what_was_added_up():
    x = leaf([1.0, 2.0])
    for _ in range(2):
        loss = (x * x).sum()
        loss.backward()
    graph = mg.viz.graph(loss)
    assert x.grad.tolist() == [4, 8]
    assert the(graph, name="loss").value == 5 and all(b.gradient is None for b in graph.boxes) and graph.steps == []
    said = "backward() has freed this graph: draw it before, or watch a call with graph(f, x)"
    assert all(said in text for text in (graph.text(), graph.scene.svg(), graph.html()))
    with mg.debug():
        loss = (x * x).sum()
        loss.backward()
    graph = mg.viz.graph(loss)
    assert the(graph, op="multiply").value.tolist() == [1, 4] and the(graph, op="multiply").gradient.tolist() == [1, 1]


def test_recomputed_functions_are_one_op_with_the_right_gradients():
    a, b = leaf([1.0, 2.0]), leaf([3.0, 5.0])
    graph = mg.viz.graph(lambda a: mg.recompute(lambda a: (a * b).exp().sin())(a).sum(), a)
    mg.recompute(lambda a: (a * b).exp().sin())(a).sum().backward()
    assert {box.op for box in boxes(graph, kind="op")} == {"_recompute", "output", "sum"}
    for name, tensor in (("a", a), ("b", b)):
        np.testing.assert_allclose(the(graph, name=name).gradient, tensor.grad.numpy())
        np.testing.assert_array_equal(the(graph, name=name).value, tensor.numpy())


def test_hooks_are_told_and_not_run():
    x = leaf([1.0, 2.0])
    called = []
    y = x * 3
    y.register_hook(lambda g: called.append(g))
    graph = mg.viz.graph(y.sum())
    assert called == [] and any(box.get("hooks") == 1 for box in graph.data()["boxes"].values())


def test_a_rule_that_fails_is_marked_and_does_not_stop_the_drawing():
    @mg.op
    def odd(xp, a):
        return a * 2

    odd.vjp(a=lambda g: g[0, 0, 0])
    graph = mg.viz.graph(odd(leaf([1.0])).sum())
    assert the(graph, op="odd").failed and "its backward failed" in graph.dot()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_dtypes(dtype):
    graph = mg.viz.graph((leaf([1.0, 2.0], dtype) * 2).sum())
    assert {b.dtype for b in graph.boxes} == {dtype} and {b.gradient.dtype.name for b in graph.boxes} == {dtype}


def test_the_fake_device(device):
    x = mg.tensor([[1.0, 2.0]], device=device, requires_grad=True)
    w = mg.tensor([[3.0], [4.0]], device=device, requires_grad=True)
    graph = mg.viz.graph(lambda x, w: mg.split((x @ w).exp() * x, 2, axis=1)[0].sum(), x, w)
    value = np.exp(11.0)
    assert the(graph, op="exp").value.item() == pytest.approx(value, rel=1e-5)
    np.testing.assert_allclose(the(graph, name="w").gradient, [[value], [2 * value]], rtol=1e-5)
    assert "matmul" in str(mg.viz.graph((x @ w).sum()))


def test_numbers_of_every_kind_are_shown_shortly():
    assert [number(v) for v in (1.0, -2, 0.5, np.nan, np.inf, -np.inf, True, 1 / 3, 1e30, -0.0)] == [
        "1", "−2", "0.5", "NaN", "∞", "−∞", "True", "0.3333", "1e+30", "0",
    ]  # fmt: skip
    assert brief(np.array([])) == "empty" and brief(np.array([np.nan] * 9)) == "nothing finite"
    assert brief(np.array([1.0, 2, 3, 4, np.nan, np.inf])) == "1 … 4 2 not finite"
    assert brief(np.array([True] * 3 + [False] * 3)) == "3 of 6 True" and brief(np.ones((3, 3))) == "all 1"
    assert array_text(np.array([[1, 2], [3, 4]])) == "[[1, 2], [3, 4]]"
    assert brief(np.full(9, 1 + 1j)) == "all 1.414"
    wide = np.random.default_rng(0).normal(size=100)
    known = statistics(wide)
    assert known["mean"] == pytest.approx(wide.mean()) and known["std"] == pytest.approx(wide.std())


@pytest.mark.parametrize(
    "values",
    [np.nan, np.zeros((0, 3)), [np.nan, np.inf, -np.inf, 1, 2], np.full((30, 40), np.nan), np.zeros((2, 0, 3))],
)
@pytest.mark.graphviz
def test_odd_values_are_drawn_in_every_format(values, tmp_path):
    graph = mg.viz.graph((leaf(values) * 2).sum())
    for suffix in (".svg", ".png", ".dot", ".json", ".html", ".txt"):
        assert graph.write(tmp_path / f"g{suffix}").stat().st_size > 0
    json.loads((tmp_path / "g.json").read_text(), parse_constant=lambda name: pytest.fail(name))


def test_kind_errors():
    with mg.no_grad():
        y = leaf([1.0]) * 2
    with pytest.raises(GradientError, match=r"expected:[\s\S]*outside of no_grad[\s\S]*got:[\s\S]*graph\(f, x\)"):
        mg.viz.graph(y)
    with pytest.raises(ArgumentError, match="no graph"):
        mg.viz.graph(3)
    with pytest.raises(ArgumentError, match="returned no tensor"):
        mg.viz.graph(lambda: 3)
    with pytest.raises(ArgumentError, match="takes no inputs"):
        mg.viz.graph(leaf(1.0) * 2, 3)
    with pytest.raises(ArgumentError, match=r"\.svg"):
        mg.viz.graph(leaf(1.0) * 2).write("graph.gif")
    with pytest.raises(ArgumentError, match="unknown direction"):
        mg.viz.graph(leaf(1.0) * 2, direction="sideways")
    with pytest.raises(ArgumentError, match="unknown color"):
        mg.viz.graph(leaf(1.0) * 2, color="price")
    with pytest.raises(ArgumentError, match="unknown option 'colour'[\\s\\S]*did you mean 'color'"):
        mg.viz.graph(lambda x: x * 2, leaf(1.0), colour="time")
    with pytest.raises(ArgumentError, match="unknown option 'colour'"):
        mg.viz.graph(leaf(1.0) * 2, colour="time")
    with pytest.raises(ArgumentError, match=r"Linear needs an input[\s\S]*graph\(model, x\)"):
        mg.viz.graph(mg.nn.Linear(2, 2))
    for depth in (0, -1, 1.5, True, "2"):
        with pytest.raises(ArgumentError, match="a whole number from 1 on"):
            mg.viz.graph(leaf(1.0) * 2, depth=depth)


def test_an_option_of_the_models_own_goes_to_the_model():
    graph = mg.viz.graph(lambda x, depths=1: x * depths, leaf(2.0), depths=3)
    assert the(graph, is_output=True).value == 6


def test_a_function_that_computes_a_gradient_is_drawn():
    graph = mg.viz.graph(mg.grad(lambda x: (x**3).sum()), mg.tensor([1.0, 2.0]))
    np.testing.assert_array_equal(the(graph, is_output=True).value, [3, 12])
    np.testing.assert_array_equal(the(graph, name="x").gradient, [6, 12])


def test_a_gradient_of_which_a_part_is_lost_is_not_shown():
    w = leaf([1.0, 2.0])
    h = w.exp()
    loss = (h * h).sum() + w.sum()
    with mg.no_grad():
        h[...] = 0.0
    graph = mg.viz.graph(loss)
    assert the(graph, name="w").gradient is None  # and not the ones that came by the other way
    assert the(graph, name="loss").gradient == 1


def test_numbers_in_an_op_are_written_with_its_sign():
    graph = mg.viz.graph(lambda x: (1 - x**2 * 0.5 + 3) / 4, leaf(1.0))
    for words in ("** 2", "× 0.5", "1 −", "+ 3", "/ 4"):
        assert words in graph.dot() and words in graph.text()
    assert "b = 2" not in graph.dot() + graph.text()


@pytest.mark.graphviz
def test_boxes_of_the_same_name_have_numbers_in_pictures_as_in_the_text():
    graph = mg.viz.graph(lambda x: (x * 2) * (x * 3), leaf(1.0))
    assert [b.label for b in boxes(graph, op="multiply")] == ["multiply", "multiply 2", "multiply 3"]
    for text in (graph.dot(), graph.text(), graph.scene.svg()):
        assert "multiply 2" in text and "multiply 3" in text


def test_what_comes_from_a_block_that_is_not_printed_says_from_which():
    text = gpt_graph().text()
    printed = {line.split("  <-")[0].strip().split("  ")[0].split(" = ")[0] for line in text.splitlines()}
    sources = [
        s for line in text.splitlines() if "<- " in line for s in line.split("<- ")[1].split("  ")[0].split(", ")
    ]
    named = [s for s in sources if "=" not in s and not any(sign in s for sign in "×+−/*")]
    assert any("blocks.11: add" in s for s in named)
    assert [s for s in named if s not in printed and ": " not in s] == []


def test_the_output_of_a_closed_module_is_called_output():
    graph = mg.viz.graph(
        lambda x: mg.nn.Sequential(mg.nn.Linear(2, 2), mg.nn.LayerNorm(2))(x), np.ones((1, 2), "float32")
    )
    (port,) = (thing for thing in graph.view.keys if isinstance(thing, Port))
    lines = [row.text for row in rows(port, Look())]
    assert lines[:2] == ["output", port.box.label]


def test_a_constant_that_a_variable_holds_is_an_input_outside_of_modules():
    model = mg.nn.Sequential(mg.nn.Linear(2, 2), mg.nn.Tanh())
    given = mg.tensor(np.ones((1, 2), "float32"))
    with mg.debug():
        out = model(given)
    graph = mg.viz.graph(out)
    box = the(graph, name="given")
    assert box.kind == "input" and graph.tree.parents[box] is graph.tree.root


def test_numbers_are_left_out_and_never_cut():
    long = np.array([[-0.00012181], [-0.00034567], [-0.00098765], [-0.00011111]])
    assert brief(long, 34) == "[[−0.0001218], [−0.0003457], …]" and brief(long[:, 0], 20) == "[−0.0001218, …]"
    assert brief(long.T, 34) == "[[−0.0001218, −0.0003457, …]]" and brief(long) == array_text(long)
