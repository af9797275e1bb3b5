"""Graphs as files: large ones, every format, hostile names, missing extras, costs, and the command line."""

import html.parser
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from support.graph_cases import boxes, gpt_graph, leaf, the

import minigrad as mg
import minigrad.zoo.graph as zoo_graph
from minigrad.errors import MinigradError, MissingExtraError
from minigrad.nn import functional as F
from minigrad.viz.graph import layout
from minigrad.viz.graph.labels import Look, labels_of
from minigrad.viz.graph.tree import BUDGET, Group
from minigrad.viz.graph.view import View

HOSTILE = [
    "</script><script>alert(1)</script>",
    "\"'`<&>",
    'a" [shape=box]; evil -> "b',
    "line\none\r\ttwo",
    "x" * 10_000,
    "\u202eright to left\u2066\u200f",
    "back\\slash\\",
    "\ud800 lone \x00 zero",
    "]]><!--",
    "$\\frac{1}{2}$",
]


# Large graphs


def test_a_gpt_of_twelve_layers_opens_small_and_its_blocks_are_one_picture():
    graph = gpt_graph()
    assert len(graph.view.keys) <= 30
    (blocks,) = [group for group in graph.tree.groups() if len(group.copies) == 12]
    assert blocks.title == "TransformerBlock" and "×12" in graph.text()
    open_ = gpt_graph(depth=2)
    assert "×12" in open_.dot() and len(open_.view.keys) <= 30
    sizes = [len(View(graph.tree, group).items) for group in graph.tree.groups()]
    assert max(sizes) <= 30


def test_the_numbers_of_a_group_count_everything_inside():
    graph = gpt_graph()
    ops = len(boxes(graph, kind="op"))
    inside = [item for item in graph.tree.root.children if isinstance(item, Group)]
    shown = 0
    for line in graph.dot().splitlines():
        if " op" in line and "shape=component" in line:
            words = line.replace("\\n", " ").split()
            shown += int(words[[i for i, w in enumerate(words) if w.startswith("op")][0] - 1].replace(",", ""))
    assert shown == ops and len(inside) == 4


def chain(length):
    y = x = leaf(np.ones(3))
    for _ in range(length):
        y = y * 1.001
    return x, y


@pytest.mark.graphviz
def test_ten_thousand_ops_are_written_in_every_format(tmp_path):
    x, y = chain(10_000)
    graph = mg.viz.graph(y.sum(), name="long")
    np.testing.assert_allclose(the(graph, name="x").gradient, 1.001**10_000)
    for suffix in (".svg", ".png", ".pdf", ".dot", ".json", ".html", ".txt"):
        assert graph.write(tmp_path / f"long{suffix}").stat().st_size > 0
    assert "too many for one picture" in graph.view.note and "too many for one picture" in graph.text()
    assert all(len(View(graph.tree, group).items) <= BUDGET for group in graph.tree.groups())
    assert len(json.loads((tmp_path / "long.json").read_text())["boxes"]) == 10_002
    assert graph.text().count("\n") > 10_000


@pytest.mark.graphviz
def test_a_picture_keeps_within_its_budget_and_says_so():
    class Wide(mg.nn.Module):
        def __init__(self):
            self.parts = mg.nn.ModuleList([mg.nn.Linear(2, 2 + i % 2) for i in range(150)])

        def forward(self, x):
            return sum(part(x).sum() for part in self.parts)

    graph = mg.viz.graph(Wide(), np.ones((1, 2), "float32"), depth=5)
    assert len(graph.view.items) <= BUDGET and "stay closed" in graph.view.note
    assert graph.view.note in graph.scene.svg()


@pytest.mark.graphviz
def test_modules_nested_deeply_are_drawn_without_recursion(tmp_path):
    class Nested(mg.nn.Module):
        def __init__(self, depth):
            self.inner = Nested(depth - 1) if depth else mg.nn.Linear(2, 2)

        def forward(self, x):
            return self.inner(x) * 1.5

    graph = mg.viz.graph(Nested(60), np.ones((1, 2), "float32"), depth=100)
    assert graph.dot().count("subgraph cluster_") == 61
    for suffix in (".svg", ".html", ".json", ".txt"):
        graph.write(tmp_path / f"deep{suffix}")


# Formats


@pytest.mark.graphviz
def test_dot_is_what_graphviz_reads_and_has_the_nodes_edges_and_nesting():
    import pygraphviz

    model = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.Tanh(), mg.nn.Linear(3, 1))
    graph = mg.viz.graph(model, np.ones((4, 2), "float32"), depth=2, direction="both")
    parsed = pygraphviz.AGraph(string=graph.dot())
    assert len(parsed.nodes()) == len(graph.view.keys)
    forward = [e for e in parsed.edges() if e.attr["style"] != "dashed"]
    assert {(e[0], e[1]) for e in forward} == set(graph.view.edges)
    clusters = {sub.graph_attr["label"]: len(sub.nodes()) for sub in parsed.subgraphs()}
    assert clusters == {"0  Linear": 5, "1  Tanh": 1, "2  Linear": 5}
    shapes = {n.attr["shape"] for n in parsed.nodes()}
    assert shapes == {"hexagon", "ellipse", "box", "doubleoctagon"}
    backward = pygraphviz.AGraph(string=mg.viz.graph(leaf(1.0) * 2, direction="backward").dot())
    assert len(backward.edges()) == 1


def test_json_holds_everything():
    x, w = leaf([1.0, 2.0]), leaf(3.0)
    data = mg.viz.graph((x * w).sum()).data()
    by_label = {box["label"]: (key, box) for key, box in data["boxes"].items()}
    key, box = by_label["multiply"]
    assert box["inputs"] == [
        {"name": "a", "from": by_label["x"][0], "word": "first input"},
        {"name": "b", "from": by_label["w"][0], "word": "second input"},
    ]
    assert box["value"]["text"] == "[3, 6]" and by_label["w"][1]["gradient"]["text"] == "3"
    (step,) = [s for s in data["backward"] if s["box"] == key]
    assert step["parts"][1] == {
        "input": "b", "word": "second input", "to": by_label["w"][0], "part": "3", "formula": "", "local": "[1, 2]",
        "raw": "[1, 2]", "raw_shape": [2], "shape": [],
    }  # fmt: skip
    assert set(data["groups"]["g0"]["children"]) == set(data["boxes"])


DETERMINED = """
import hashlib, sys
import numpy as np
import minigrad as mg
rng = np.random.default_rng(0)
class Net(mg.nn.Module):
    def __init__(self):
        self.blocks = mg.nn.ModuleList([mg.nn.Linear(3, 3) for _ in range(4)])
    def forward(self, x):
        for block in self.blocks:
            x = mg.where(block(x) > 0, x, x * 2)
        return x
net = Net()
for parameter in net.parameters():
    with mg.no_grad():
        parameter[...] = rng.normal(size=parameter.shape).astype("float32")
graph = mg.viz.graph(net, rng.normal(size=(2, 3)).astype("float32"), depth=2, direction="both")
graph.write(sys.argv[1] + ".json")
print(hashlib.sha256((graph.dot() + graph.scene.svg() + open(sys.argv[1] + ".json").read()).encode()).hexdigest())
"""


@pytest.mark.graphviz
def test_dot_json_and_svg_are_the_same_in_another_process(tmp_path):
    script = tmp_path / "draw.py"
    script.write_text(DETERMINED)
    seen = set()
    for run in range(2):
        environment = {**os.environ, "PYTHONHASHSEED": str(run + 1), "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, str(script), str(tmp_path / "same")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        seen.add(done.stdout)
    assert len(seen) == 1


@pytest.mark.graphviz
def test_nothing_is_printed_by_the_layout(tmp_path):
    """Graphviz would look for fonts if the layout had texts, and complain about the system's settings."""
    model = mg.nn.Sequential(mg.nn.Linear(2, 3))
    view = mg.viz.graph(model, np.ones((1, 2), "float32"), depth=3).view
    source = layout.digraph_of(view, Look(), labels_of(view, Look()), sized=True).source
    assert 'label=""' in source and "Linear" not in source


@pytest.mark.graphviz
def test_pictures_have_no_text_beyond_their_edges_and_boxes_do_not_overlap():
    for depth in (1, 2, 3, 4):
        scene = gpt_graph(depth=depth).scene
        root = ElementTree.fromstring(scene.svg())
        space = "{http://www.w3.org/2000/svg}"
        for text in root.iter(f"{space}text"):
            width = len(text.text or "") * float(text.get("font-size")) * 0.602
            left = float(text.get("x")) - (width / 2 if text.get("text-anchor") == "middle" else 0)
            assert left >= 0 and left + width <= scene.width and 0 < float(text.get("y")) < scene.height
        places = []
        for group in root.iter(f"{space}g"):
            if (group.get("class") or "").startswith("box") and (rect := group.find(f"{space}rect")) is not None:
                places.append([float(rect.get(name)) for name in ("x", "y", "width", "height")])
        for i, (x, y, w, h) in enumerate(places):
            for a, b, c, d in places[:i]:
                assert x + w <= a or a + c <= x or y + h <= b or b + d <= y


@pytest.mark.graphviz
def test_forms_tell_kinds_apart_and_values_that_are_kept_have_a_mark():
    svg = mg.viz.graph(mg.nn.Linear(2, 2), np.ones((1, 2), "float32")).scene.svg()
    assert 'class="box parameter"' in svg and "<polygon" in svg.split('class="box parameter"')[1].split("</g>")[0]
    for word in ("given", "parameter", "op", "output", "kept for the gradient"):
        assert f">{word}</text>" in svg


def test_the_digraph_is_one_of_the_graphviz_package():
    import graphviz

    graph = mg.viz.graph(leaf([1.0]) * 2)
    assert isinstance(graph.digraph, graphviz.Digraph) and graph.digraph.source == graph.dot()
    graph.digraph.node("note", "mine")
    assert "mine" in graph.dot()


def test_without_the_graphviz_package_json_and_text_work_and_the_message_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "graphviz", None)
    graph = mg.viz.graph(leaf([1.0, 7.5]) * 2)
    for suffix in (".json", ".txt"):
        assert graph.write(tmp_path / f"g{suffix}").stat().st_size > 0
    for suffix in (".dot", ".svg", ".html"):
        with pytest.raises(MissingExtraError, match=r"graphviz[\s\S]*pip install[\s\S]*\[viz\]"):
            graph.write(tmp_path / f"g{suffix}")


def test_without_graphviz_dot_json_and_text_work_and_the_message_names_the_extra(monkeypatch, tmp_path):
    layout.lay_out.cache_clear()
    monkeypatch.setattr("shutil.which", lambda *_: None)
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    graph = mg.viz.graph(leaf([1.0, 7.25]) * 2)
    for suffix in (".dot", ".json", ".txt"):
        assert graph.write(tmp_path / f"g{suffix}").stat().st_size > 0
    for suffix in (".svg", ".png", ".pdf", ".html"):
        with pytest.raises(MissingExtraError, match=r"pip install[\s\S]*\[viz\]"):
            graph.write(tmp_path / f"g{suffix}")
    assert graph._repr_svg_() is None and "multiply" in repr(graph) + str(graph)


@pytest.mark.graphviz
def test_without_matplotlib_an_svg_works_and_the_message_names_the_extra(monkeypatch, tmp_path):
    for name in {"matplotlib", *[name for name in sys.modules if name.partition(".")[0] == "matplotlib"]}:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "minigrad.viz.drawing.figure", raising=False)
    graph = mg.viz.graph(leaf([1.0]) * 2)
    assert graph.write(tmp_path / "g.svg").exists()
    with pytest.raises(MissingExtraError, match=r"matplotlib[\s\S]*pip install[\s\S]*\[viz\]"):
        graph.write(tmp_path / "g.png")


def test_a_dot_binary_is_used_where_there_is_one_and_its_failure_is_told(monkeypatch, tmp_path):
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(layout.shutil, "which", lambda name: str(program))
    layout.lay_out.cache_clear()
    with pytest.raises(MinigradError, match="dot failed[\\s\\S]*broken"):
        mg.viz.graph(leaf([1.0, 2.0, 3.5]) * 2).write(tmp_path / "g.svg")


@pytest.mark.graphviz
def test_the_notebook_shows_an_svg():
    graph = mg.viz.graph(leaf(1.0) * 2)
    assert graph._repr_svg_().startswith("<svg ") and repr(graph).startswith("<Graph")


# Hostile names


def hostile_graph(name):
    class Odd(mg.nn.Module):
        def __init__(self):
            self.layer = mg.nn.Linear(2, 2)

        def forward(self, x):
            return self.layer(x)

    Odd.__name__ = name.replace("\x00", "").replace("\ud800", "")
    model = Odd()
    vars(model)[name] = vars(model).pop("layer")
    vars(model)["layer"] = vars(model)[name]
    model.layer._rename(name)
    return mg.viz.graph(model, np.ones((1, 2), "float32"), name=name, depth=2)


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.graphviz
def test_a_hostile_name_is_only_ever_text(name, tmp_path):
    import pygraphviz

    graph = hostile_graph(name)
    for suffix in (".svg", ".png", ".dot", ".json", ".html", ".txt"):
        graph.write(tmp_path / f"g{suffix}")
    plain = mg.viz.graph(mg.nn.Sequential(mg.nn.Linear(2, 2)), np.ones((1, 2), "float32"), depth=2)
    parsed = pygraphviz.AGraph(string=(tmp_path / "g.dot").read_text())
    assert len(parsed.nodes()) == len(graph.view.keys) and len(parsed.edges()) == len(graph.view.edges)
    svg = ElementTree.fromstring((tmp_path / "g.svg").read_text())
    tags = {e.tag.rpartition("}")[2] for e in svg.iter()}
    assert tags <= {"svg", "title", "style", "rect", "g", "path", "polygon", "text", "image"}
    assert graph.scene.width < 4 * plain.scene.width
    assert json.loads((tmp_path / "g.json").read_text())["boxes"]
    scripts = Scripts()
    scripts.feed((tmp_path / "g.html").read_text())
    assert scripts.count == 2 and not scripts.handlers
    assert len((tmp_path / "g.txt").read_text().splitlines()) == len(plain.text().splitlines())
    assert not {"\u202e", "\u2066", "\u200f"} & set((tmp_path / "g.txt").read_text())


class Scripts(html.parser.HTMLParser):
    """Counts scripts, and attributes that would run something."""

    def __init__(self):
        super().__init__()
        self.count, self.handlers = 0, []

    def handle_starttag(self, tag, attrs):
        self.count += tag == "script"
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


# Costs


def test_flops_and_bytes_are_those_of_the_formulas():
    def cost(function, *arrays, op, **options):
        return the(mg.viz.graph(function, *[leaf(a, "float32") for a in arrays], **options), op=op)

    a, b = np.ones((5, 4, 3)), np.ones((3, 7))
    product = cost(lambda a, b: a @ b, a, b, op="matmul")
    assert product.flops == 2 * 5 * 4 * 7 * 3 and product.bytes == 4 * (60 + 21 + 140)
    linear = cost(F.linear, np.ones((6, 3)), np.ones((7, 3)), np.ones(7), op="linear", fused=True)
    assert linear.flops == 2 * 6 * 7 * 3 + 6 * 7
    heads = np.ones((2, 4, 5, 8))
    attention = cost(F.scaled_dot_product_attention, heads, heads, heads, op="attention", fused=True)
    assert attention.flops == 2 * 4 * 5 * 5 * (2 * 8 + 2 * 8 + 5)
    assert cost(lambda a: a.reshape(-1), a, op="reshape").flops == 0
    assert cost(lambda a: a.exp(), a, op="exp").flops == 60
    conv = mg.viz.graph(mg.nn.Conv2d(2, 3, 3), np.ones((1, 2, 6, 6), "float32"))
    assert sum(b.flops for b in boxes(conv, op="matmul")) == 2 * 3 * 2 * 9 * 16


@pytest.mark.graphviz
def test_a_cost_is_told_by_colour_and_number_and_the_ink_on_it_can_be_read():
    from minigrad.viz.drawing.colors import DARK, HEATS, LIGHT

    svg = mg.viz.graph(mg.nn.Linear(8, 8), np.ones((2, 8), "float32"), color="flops").scene.svg()
    assert f"f-heat-{HEATS}" in svg and "256 FLOP" in svg and "up to 256 FLOP" in svg
    timed = mg.viz.graph(mg.nn.Linear(8, 8), np.ones((2, 8), "float32"), color="time")
    assert "µs" in timed.dot() and all(b.seconds > 0 for b in boxes(timed, kind="op"))

    def light(color):
        parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for colors in (LIGHT, DARK):
        for step in range(1, HEATS + 1):
            pair = sorted((light(colors["ink"]), light(colors[f"heat-{step}"])))
            assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 4.5


def test_fused_ops_are_one_box_or_what_they_are_made_of():
    model = mg.nn.Sequential(mg.nn.Linear(2, 3), mg.nn.LayerNorm(3))
    x = np.random.default_rng(0).normal(size=(4, 2)).astype("float32")
    whole, apart = mg.viz.graph(model, x, fused=True), mg.viz.graph(model, x)
    assert {b.op for b in boxes(whole, kind="op")} == {"linear", "layer_norm"}
    assert {"matmul", "rsqrt"} <= {b.op for b in boxes(apart, kind="op")}
    for path, _ in model.named_parameters():
        np.testing.assert_allclose(the(whole, name=path).gradient, the(apart, name=path).gradient, rtol=1e-4, atol=1e-4)


# The command line and the zoo


def zoo_names():
    from minigrad.zoo.registry import list_models

    return sorted(entry.name for entry in list_models())


@pytest.mark.parametrize("name", zoo_names())
@pytest.mark.graphviz
def test_minigrad_graph_draws_every_model_of_the_zoo(name, tmp_path, capsys):
    from minigrad.cli import main

    assert main(["graph", name]) == 0
    text = capsys.readouterr().out
    assert "loss" in text and "parameter" in text and "input" in text and "value not kept" not in text
    for suffix in (".svg", ".html", ".dot", ".json"):
        assert main(["graph", name, "-o", str(tmp_path / f"g{suffix}"), "--depth", "3"]) == 0
    data = json.loads((tmp_path / "g.json").read_text())
    assert [box["label"] for box in data["boxes"].values() if box["output"]] == ["loss"]
    used = {entry.get("from") for box in data["boxes"].values() for entry in box["inputs"]}
    assert all(key in used for key, box in data["boxes"].items() if box["kind"] == "parameter")


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf", ".dot", ".json", ".html", ".txt"])
def test_a_folder_that_does_not_exist_is_told_before_anything_is_drawn(suffix, tmp_path, monkeypatch, capsys):
    from minigrad.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(layout, "lay_out", lambda _: pytest.fail("laid out"))
    with pytest.raises(MinigradError, match="the folder 'nope/dir' does not exist[\\s\\S]*make it"):
        mg.viz.graph(leaf([1.0, 2.0]) * 2).write(f"nope/dir/x{suffix}")
    assert main(["graph", "xor", "-o", f"nope/dir/x{suffix}"]) != 0
    told = capsys.readouterr().err
    assert "the folder 'nope/dir' does not exist" in told and "tmp" not in told


@pytest.mark.graphviz
def test_the_legend_has_only_what_is_drawn():

    class Curve(mg.nn.Module):
        def forward(self, x):
            return (x + 1).tanh() + 1

    model = mg.nn.Sequential(Curve(), Curve())
    closed, opened = [mg.viz.graph(model, leaf([1.0, 2.0]), depth=depth).scene.svg() for depth in (1, 2)]
    assert ">opens</text>" in closed and "kept for the gradient" not in closed
    assert ">opens</text>" not in opened and "kept for the gradient" in opened


def test_a_large_model_is_drawn_without_drawing_its_weights_at_random(monkeypatch, capsys):
    from minigrad.cli import main

    monkeypatch.setattr(zoo_graph, "LARGE", 5)
    assert main(["graph", "xor"]) == 0
    text = capsys.readouterr().out
    assert "too many to be drawn at random here: they are 0" in text and "output.bias" in text


def test_gradients_that_are_too_large_to_be_kept_are_still_shown():
    values = np.linspace(-2, 1, 20_000).reshape(100, 200)
    graph = mg.viz.graph(lambda x: (x * x * x + x).sum(), leaf(values))
    box = the(graph, kind="input")
    assert box.gradient is None and "∇ 1 … 13" in graph.text()
    data = graph.data()["boxes"][box.id]["gradient"]["statistics"]
    assert data["mean"] == pytest.approx((3 * values**2 + 1).mean())
    sums = [part["sum_at"] for step in graph.data()["backward"] for part in step["parts"] if "sum_at" in part]
    assert sums[-1]["index"] == "[0, 0]" and sums[-1]["result"] == "13"


def test_minigrad_graph_refuses_an_unknown_suffix(tmp_path, capsys):
    from minigrad.cli import main

    assert main(["graph", "xor", "-o", str(tmp_path / "g.gif")]) != 0
    assert ".svg" in capsys.readouterr().err


def test_minigrad_graph_draws_the_model_of_a_run(tmp_path, capsys):
    from minigrad.cli import main

    run = tmp_path / "run"
    assert main(["train", "xor", "--max-steps", "3", "--no-report", "--out", str(run)]) == 0
    capsys.readouterr()
    assert main(["graph", str(run), "-o", str(tmp_path / "run.json")]) == 0
    data = json.loads((tmp_path / "run.json").read_text())
    (bias,) = [box for box in data["boxes"].values() if box["label"] == "output.bias"]
    from minigrad.viz.drawing.arrays import array_text
    from minigrad.zoo import load

    assert bias["value"]["text"] == array_text(load(run).model.output.bias.numpy())
