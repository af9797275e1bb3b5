"""Lines in one box: where they pass, what is written around them, and what cannot be drawn."""

import math
import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import ArgumentError
from minigrad.viz.drawing.scene import Ellipse, Line, Text

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u202e\x1b[2J"


def flat(shapes):
    for shape in shapes:
        yield from flat(shape.shapes) if hasattr(shape, "shapes") else [shape]


def drawn(scene, kind, color):
    return [s for s in flat(scene.shapes) if isinstance(s, kind) and color in (s.stroke, getattr(s, "fill", None))]


def written(scene):
    return {shape.text: shape for shape in flat(scene.shapes) if isinstance(shape, Text)}


def test_lines_pass_through_their_points_and_end_at_their_names():
    scene = mg.viz.lines({"up": ([0, 50, 100], [0, 3, 4]), "down": ([0, 100], [2, 1])}, "both", x="time", y="size")
    (up,), (down,) = drawn(scene, Line, "series-1"), drawn(scene, Line, "series-2")
    (x0, y0), (x1, y1), (x2, y2) = up.points
    assert x1 - x0 == pytest.approx(x2 - x1) and y2 < y0  # the greatest value is above
    assert (y1 - y0) / (y2 - y0) == pytest.approx(0.75)
    assert [x for x, _ in down.points] == pytest.approx([x0, x2])
    assert [(y - y0) / (y2 - y0) for _, y in down.points] == pytest.approx([0.5, 0.25])
    words = written(scene)
    assert words["both"].bold and words["size"].turned and words["time"].y > max(y0, y2)
    for name, line in (("up", up), ("down", down)):
        assert words[name].x > x2 and words[name].y - 4 == pytest.approx(line.points[-1][1])
        assert words[name].color == line.stroke
    assert not drawn(scene, Ellipse, "series-1")


def test_points_are_marked_where_asked_for():
    scene = mg.viz.lines({"a": ([1, 2, 4], [5, 7, 6])}, points=True)
    dots = [(dot.x, dot.y) for dot in drawn(scene, Ellipse, "series-1")]
    assert dots == drawn(scene, Line, "series-1")[0].points


@pytest.mark.parametrize("log", ["x", "y", "both"])
def test_powers_of_ten_are_equally_far_apart_on_the_axis_that_was_named(log):
    powers = [1e-3, 1e-1, 1e1, 1e3]
    (line,) = drawn(mg.viz.lines({"a": (powers, powers)}, log=log), Line, "series-1")
    for axis, name in enumerate("xy"):
        steps = [abs(b[axis] - a[axis]) for a, b in pairwise(line.points)]
        assert (steps == pytest.approx([steps[0]] * 3)) == (log in (name, "both"))


def test_numbers_without_a_place_are_gaps():
    ys = [1.0, 2.0, math.nan, 2.0, 0.0, 1.0, -math.inf, 3.0, 4.0]
    scene = mg.viz.lines({"a": (range(9), ys)}, x="time", log="y")
    assert [len(line.points) for line in drawn(scene, Line, "series-1")] == [2, 2]
    assert len(drawn(scene, Ellipse, "series-1")) == 2  # alone between gaps
    assert len(drawn(scene, Line, "error")) == 6  # two arms for each cross
    assert all(word in scene.svg() for word in ("nan at time 2", "0.0 at time 4", "-inf at time 6"))
    gap = mg.viz.lines({"a": ([1, 2, math.nan, 4, 0, 6, 7], [1, 2, 3, 4, 5, 6, 7])}, log="x")
    assert [len(line.points) for line in drawn(gap, Line, "series-1")] == [2, 2] and not drawn(gap, Line, "error")


@pytest.mark.parametrize(
    "table",
    [
        {},
        {"a": ([], [])},
        {"a": ([5], [1.0]), "b": ([], [])},
        {"a": ([1, 2], [math.nan, math.inf])},
        {"a": ([math.nan], [math.nan])},
        {"a": (range(9), [0.0] * 9)},
        {"a": ([3, 3, 3], [1, 2, 3])},
        {"a": ([-1e308, 1e308], [1e308, -1e308])},
        {"a": ([5e-324, 1], [5e-324, 0.0])},
        {"a": ([1e15, 1e15 + 1], [1e15, 1e15 + 1])},
        {f"line {i}": ([1, 2], [1, 2]) for i in range(100)},
        {HOSTILE: ([1, 2], [1, 3]), "x" * 10_000: ([1], [2]), 7: ([1, 2], [2, 2])},
    ],
)
@pytest.mark.parametrize("log", [False, "x", "y", "both"])
def test_whatever_is_drawn_the_picture_is_whole_and_nothing_leaves_it(table, log):
    scene = mg.viz.lines(table, HOSTILE, HOSTILE, HOSTILE, log=log, points=True)
    svg = scene.svg()
    root = ElementTree.fromstring(svg)
    assert not [e for e in root.iter() if e.tag.rpartition("}")[2] in ("script", "img", "foreignObject")]
    assert len(svg) < 400_000 and "nan," not in svg and "\u202e" not in svg
    for path in root.iter("{http://www.w3.org/2000/svg}path"):
        places = [float(n) for n in re.findall(r"-?[\d.]+", path.get("d"))]
        assert all(0 <= a <= scene.width for a in places[::2]) and all(0 <= b <= scene.height for b in places[1::2])
    heights = [t.y for t in flat(scene.shapes) if isinstance(t, Text)]
    assert all(0 < height <= scene.height for height in heights)
    assert svg == mg.viz.lines(table, HOSTILE, HOSTILE, HOSTILE, log=log, points=True).svg()


def test_names_of_many_lines_do_not_lie_on_each_other():
    scene = mg.viz.lines({f"line {i}": ([0, 1], [0, 1]) for i in range(40)})
    heights = sorted(word.y for name, word in written(scene).items() if name.startswith("line "))
    assert len(heights) == 40 and min(b - a for a, b in pairwise(heights)) > 13


def test_tensors_and_arrays_are_drawn_as_lists_are():
    xs, ys = [0.0, 1.0, 2.0], [1.0, 4.0, 9.0]
    listed = mg.viz.lines({"a": (xs, ys)}).svg()
    assert mg.viz.lines({"a": (mg.tensor(xs), mg.tensor(ys, requires_grad=True).detach())}).svg() == listed
    assert mg.viz.lines({"a": np.array([xs, ys], np.float32)}).svg() == listed


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ([([1], [2])], "a dict"),
        ({"loss": [1, 2, 3]}, "'loss' cannot be drawn"),
        ({"loss": 7}, "a pair"),
        ({"loss": ([1, 2], [1, 2, 3])}, "(2,) and (3,)"),
        ({"loss": ([[1]], [[2]])}, "one length"),
        ({"loss": ([[1], [2, 3]], [1, 2])}, "a pair"),
        ({"loss": (["1"], ["2"])}, "real numbers"),
        ({"loss": ([1], [2j])}, "real numbers"),
        ({"loss": ([1], [None])}, "real numbers"),
    ],
)
def test_what_is_no_line_is_told(table, said):
    with pytest.raises(ArgumentError) as caught:
        mg.viz.lines(table)
    assert said in str(caught.value)


@pytest.mark.parametrize("log", [True, "z", None, 1, 0, np.array([1, 2])])
def test_an_unknown_axis_is_told(log):
    with pytest.raises(ArgumentError, match="powers of ten"):
        mg.viz.lines({"a": ([1], [1])}, log=log)
