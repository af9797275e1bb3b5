"""Pictures of tokens, vectors and searches: the numbers are those of the formulas, and nothing that is drawn covers or breaks another."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import numpy as np
import pytest

import minigrad as mg
from minigrad.decode import Branch, beam_search
from minigrad.errors import ArgumentError, ShapeError
from minigrad.viz.attention.tokens import alignment, next_tokens, probabilities
from minigrad.viz.drawing.beam import beam_tree
from minigrad.viz.drawing.embeddings import embedding_map, positional_map, principal_components
from minigrad.viz.drawing.heatmap import colored, heatmap, token_text
from minigrad.viz.drawing.scene import Ellipse, Group, Image, Line, Rect, Scene, Text, text_width

HOSTILE = [
    "</text><script>alert(1)</script>",
    '"&quot;<g onload="x">',
    "two\nlines",
    "\u202eright",
    "x" * 10_000,
    "\ud800",
    "\x00",
]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def flat(shapes: Any) -> list[Any]:
    """All shapes, those of groups too."""
    return [part for shape in shapes for part in (flat(shape.shapes) if isinstance(shape, Group) else [shape])]


def texts(scene: Scene) -> list[str]:
    return [shape.text for shape in flat(scene.shapes) if isinstance(shape, Text)]


def tags(scene: Scene) -> set[str]:
    return {node.tag.rpartition("}")[2] for node in ElementTree.fromstring(scene.svg()).iter()}


def inside(scene: Scene) -> bool:
    """Whether every text lies within the picture, as far as its width can be told."""
    for shape in flat(scene.shapes):
        if isinstance(shape, Text):
            size = text_width(shape.text, shape.size)
            start = shape.x - {"start": 0, "middle": size / 2, "end": size}[shape.anchor]
            across = (0, 0) if shape.turned else (start, start + size)
            top = shape.y - size if shape.turned else shape.y - shape.size
            if across[0] < -0.5 or across[1] > scene.width + 0.5 or top < -1 or shape.y > scene.height:
                return False
    return True


# What may come next.


@pytest.mark.parametrize("temperature", [0.2, 1.0, 3.0])
def test_bars_are_as_long_as_the_probabilities_after_temperature(temperature: float) -> None:
    logits = normal(30) * 3
    powers = np.exp(logits / temperature)
    expected = np.sort(powers / powers.sum())[::-1][:5]
    scene = next_tokens(logits, [f"w{i}" for i in range(30)], temperature, top=5)
    bars = [shape for shape in flat(scene.shapes) if isinstance(shape, Rect) and shape.fill == "series-1"]
    tracks = [shape for shape in flat(scene.shapes) if isinstance(shape, Rect) and shape.fill == "grid"]
    np.testing.assert_allclose([bar.width / track.width for bar, track in zip(bars, tracks)], expected, rtol=1e-12)
    assert [text for text in texts(scene) if text.startswith("w")] == [f"w{i}" for i in np.argsort(-logits)[:5]]
    assert [float(text) for text in texts(scene) if text.startswith("0.")] == pytest.approx(expected, abs=5e-5)
    assert inside(scene)


def test_logits_may_be_as_large_as_they_like() -> None:
    np.testing.assert_allclose(probabilities([1e308, 1e308, -1e308]), [0.5, 0.5, 0])
    np.testing.assert_array_equal(probabilities([np.inf, 0, np.inf]), [0.5, 0, 0.5])
    np.testing.assert_array_equal(probabilities([-np.inf, -np.inf]), [0, 0])
    np.testing.assert_array_equal(probabilities(mg.tensor([0.0, 0.0])), [0.5, 0.5])
    with np.errstate(all="ignore"):
        assert "nan" in "".join(texts(next_tokens([np.nan, 1.0], ["a", "b"])))


@pytest.mark.parametrize("temperature", [0, -1, float("nan"), float("inf")])
def test_a_temperature_is_positive(temperature: float) -> None:
    with pytest.raises(ArgumentError, match="temperature"):
        next_tokens([1.0], ["a"], temperature)


def test_names_must_fit_the_numbers() -> None:
    for wrong in (
        lambda: next_tokens([1.0, 2.0], ["a"]),
        lambda: alignment(np.ones((2, 3)), ["a", "b"], ["c", "d", "e"]),
        lambda: embedding_map(np.ones((2, 3)), ["a"]),
        lambda: positional_map(np.ones(3)),
        lambda: heatmap(np.ones((2, 2)), ["a"], ["b", "c"]),
    ):
        with pytest.raises(ShapeError, match="expected"):
            wrong()


# Matrices.


def test_an_alignment_has_the_source_across_and_the_target_down() -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(4), 3)
    scene = alignment(weights, ["Vielen", "Dank", "auch", "!"], ["Thanks", "a", "lot"])
    turned = [shape for shape in flat(scene.shapes) if isinstance(shape, Text) and shape.turned]
    assert [shape.text for shape in turned] == ["Vielen", "Dank", "auch", "!"]
    assert turned[0].x < turned[3].x and inside(scene)
    numbers = [text for text in texts(scene) if re.fullmatch(r"\d\.\d\d", text)]
    seen = [f"{w:.2f}" for w in weights.ravel() if w >= 0.005]  # less is left to the colour of its cell
    assert len(seen) == 10 and numbers[:10] == seen
    (picture,) = [shape for shape in flat(scene.shapes) if isinstance(shape, Image) and shape.pixels.shape[0] == 3]
    dark = picture.pixels.sum(axis=-1)
    assert (dark.argmin(axis=1) == weights.argmax(axis=1)).all()


def test_names_that_fit_above_their_columns_stand_upright() -> None:
    scene = heatmap(np.eye(3), list("abc"), list(">;!"))
    names = [shape for shape in flat(scene.shapes) if isinstance(shape, Text) and shape.text in ">;!"]
    assert [(shape.text, shape.turned, shape.anchor) for shape in names] == [(n, False, "middle") for n in ">;!"]
    assert len({shape.y for shape in names}) == 1 and names[0].x < names[1].x < names[2].x and inside(scene)


def test_forbidden_and_missing_cells_have_colours_of_their_own() -> None:
    pixels = colored(np.array([[0.0, 1.0, -np.inf, np.nan]]), most=1.0)
    assert len({tuple(pixel) for pixel in pixels[0]}) == 4
    relative = colored(np.array([[0.1, 0.2], [0.5, 1.0], [0, 0]]), by_row=True)
    np.testing.assert_array_equal(relative[0], relative[1])


@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (3, 0), (1, 300), (700, 2)])
def test_matrices_of_any_size_can_be_drawn(shape: tuple[int, int]) -> None:
    for stretched in (False, True):
        scene = heatmap(normal(*shape), range(shape[0]), range(shape[1]), title="t", signed=True, stretched=stretched)
        assert "svg" in tags(scene) and inside(scene)
        assert scene.width < 1500 and scene.height < 1500


def test_a_positional_map_shows_the_encoding() -> None:
    encoding = mg.nn.SinusoidalPositions(6)(mg.zeros(40, 6))
    scene = positional_map(encoding)
    (picture,) = [shape for shape in flat(scene.shapes) if isinstance(shape, Image) and shape.pixels.shape[1] == 6]
    angles = np.arange(40)[:, None] / 10000 ** (np.arange(0, 6, 2) / 6)
    expected = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(40, 6)
    warm = picture.pixels[..., 0].astype(int) > picture.pixels[..., 2]  # more red than blue
    clear = np.abs(expected) > 0.05
    np.testing.assert_array_equal(warm[clear], expected[clear] > 0)


# Embeddings.


def test_the_map_of_embeddings_is_by_the_two_directions_of_most_variance() -> None:
    vectors = normal(50, 8) @ np.diag([5, 4, 3, 2, 1, 1, 1, 1]) @ normal(8, 8, seed=1)
    points, shares = principal_components(vectors)
    covariance = np.cov(vectors.T)
    sizes, directions = np.linalg.eigh(covariance)
    np.testing.assert_allclose(shares, sizes[::-1][:2] / sizes.sum(), rtol=1e-9)
    centred = vectors - vectors.mean(axis=0)
    for axis in range(2):
        direction = directions[:, -1 - axis]
        direction = direction * np.sign(np.arange(50) @ (centred @ direction))  # later rows are on the positive side
        np.testing.assert_allclose(points[:, axis], centred @ direction, rtol=1e-8, atol=1e-9)
    shown = texts(embedding_map(vectors, range(50)))
    assert f"→ first component, {sizes[-1] / sizes.sum():.1%} of the variance" in " ".join(shown)


def test_dots_are_where_the_components_are_and_names_do_not_cover_each_other() -> None:
    vectors = normal(200, 5)
    points, _ = principal_components(vectors)
    scene = embedding_map(vectors, [f"name{i}" for i in range(200)], mark=["name7"])
    groups = [shape.shapes for shape in scene.shapes if isinstance(shape, Group)]
    dots = np.array([(dot.x, dot.y) for dot, *_ in groups])
    assert len(dots) == 200 and [len(parts) for parts in groups] == [2 if i == 7 else 1 for i in range(200)]  # a ring
    scale = np.polyfit(points[:, 0], dots[:, 0], 1)[0]
    np.testing.assert_allclose(dots[:, 0] - dots[0, 0], (points[:, 0] - points[0, 0]) * scale, atol=1e-6)
    np.testing.assert_allclose(dots[:, 1] - dots[0, 1], (points[0, 1] - points[:, 1]) * scale, atol=1e-6)
    names = [shape for shape in flat(scene.shapes) if isinstance(shape, Text) and shape.text.startswith("name")]
    assert 30 < len(names) < 200 and names[0].text == "name7"
    boxes = np.array([(s.x, s.y - 9, s.x + text_width(s.text, s.size), s.y + 2) for s in names])
    for place, box in enumerate(boxes):
        others = np.delete(boxes, place, axis=0)
        covers = (box[0] < others[:, 2]) & (others[:, 0] < box[2]) & (box[1] < others[:, 3]) & (others[:, 1] < box[3])
        assert not covers.any()
    tips = [shape.tip for shape in scene.shapes if isinstance(shape, Group)]
    assert tips == [f"name{i}" for i in range(200)]


def test_neighbours_are_the_nearest_by_cosine() -> None:
    vectors = np.array([[1, 0], [5, 0.1], [0, 1], [0.1, 3], [-1, -1.0]])
    scene = embedding_map(vectors, "abcde", neighbours=1)
    dots = [(shape.x, shape.y) for shape in flat(scene.shapes) if isinstance(shape, Ellipse)]
    joined = {
        frozenset(dots.index(point) for point in shape.points) for shape in scene.shapes if isinstance(shape, Line)
    }
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    near = units @ units.T - 2 * np.eye(5)
    assert joined == {frozenset({i, int(j)}) for i, j in enumerate(near.argmax(axis=1))}


def test_kinds_have_a_colour_and_a_form_each_and_are_named_below() -> None:
    vectors = np.concatenate([np.tile([5.0, 0, 0], (4, 1)), np.tile([0, 5.0, 0], (4, 1))]) + np.eye(8, 3) * 0.1
    words = [*"abcd", *"efgh"]
    scene = embedding_map(vectors, words, {"one": words[:4], "two": words[4:7]})
    marks = [shape.shapes[0] for shape in scene.shapes if isinstance(shape, Group)]
    assert [type(mark).__name__ for mark in marks] == ["Ellipse"] * 4 + ["Rect"] * 3 + ["Ellipse"]
    assert [mark.fill for mark in marks] == ["series-1"] * 4 + ["series-2"] * 3 + ["line"]
    left, right = [mark.x for mark in marks[:4]], [mark.x for mark in marks[4:]]
    assert max(left) + 300 < min(right)  # the later rows are on the right
    legend = {shape.text: shape for shape in scene.shapes if isinstance(shape, Text)}
    assert legend["one"].color == "series-1" and legend["two"].color == "series-2"
    assert legend["one"].y == legend["two"].y > max(mark.y for mark in marks)
    many = embedding_map(vectors, words, {f"a kind with a long name {i}": words[i : i + 1] for i in range(8)})
    assert inside(many)


def test_the_map_does_not_turn_over_while_vectors_move_a_little() -> None:
    vectors = normal(40, 6) @ np.diag([5, 3, 1, 1, 1, 1])
    vectors[:, :2] += np.linspace(-3, 3, 40)[:, None]
    before, _ = principal_components(vectors)
    for seed in range(1, 20):
        after, _ = principal_components(vectors + 0.05 * normal(40, 6, seed=seed))
        assert (np.sum(before * after, axis=0) > 0).all()


@pytest.mark.parametrize(
    "vectors",
    [
        np.zeros((0, 3)), np.ones((4, 3)), normal(1, 3), normal(3, 1), np.zeros((2, 0)), 1e300 * normal(5, 3),
        1e-300 * normal(5, 3), np.full((2, 1), np.nan),
    ],
)  # fmt: skip
def test_few_or_equal_vectors_are_drawn_all_the_same(vectors: np.ndarray) -> None:
    scene = embedding_map(vectors, range(len(vectors)))
    assert "svg" in tags(scene) and inside(scene)


def test_equal_vectors_are_said_to_be_so() -> None:
    assert "all vectors are equal" in texts(embedding_map(np.full((3, 4), 0.1), "abc"))
    assert "all vectors are equal" not in texts(embedding_map(normal(3, 4), "abc"))


def test_only_what_is_there_can_be_marked() -> None:
    with pytest.raises(ArgumentError, match=r"no 'dog' to mark(.|\n)*did you mean 'dogs'"):
        embedding_map(normal(3, 4), ["cats", "dogs", "you"], mark=["cats", "dog"])
    with pytest.raises(ArgumentError) as refused:
        embedding_map(normal(500, 4), [f"name{i}" for i in range(500)], mark=["?"])
    assert len(str(refused.value)) < 400


def test_names_keep_away_from_the_frame() -> None:
    scene = embedding_map(normal(300, 5), [f"name{i}" for i in range(300)])
    frame = next(shape for shape in scene.shapes if isinstance(shape, Rect))
    for name in [shape for shape in scene.shapes if isinstance(shape, Text) and shape.text.startswith("name")]:
        assert frame.x + 3 < name.x < frame.x + frame.width - text_width(name.text, name.size) - 3
        assert frame.y + name.size < name.y < frame.y + frame.height - 3


def test_vectors_that_are_not_finite_are_left_out_and_counted() -> None:
    vectors = normal(10, 4)
    vectors[3, 1], vectors[7, 0] = np.nan, np.inf
    scene = embedding_map(vectors, [f"n{i}" for i in range(10)])
    assert "left out: 2 that are not finite" in texts(scene)
    joined = embedding_map(vectors, range(10), neighbours=9).shapes  # eight are left, each with seven others
    assert len([shape for shape in joined if isinstance(shape, Line)]) == 8 * 7 // 2
    assert len([shape for shape in flat(scene.shapes) if isinstance(shape, Ellipse)]) == 8


# Beam search.


def node(token: str, score: float, *children: Any, **more: Any) -> dict[str, Any]:
    return {"token": token, "score": score, "children": list(children), **more}


SEARCH = node(
    "<s>", 0.0,
    node("You", -0.5, node("are", -0.9, node("</s>", -1.0, final=True)), node("were", -2.0, kept=False)),
    node("Thou", -1.5, node("art", -1.8, node("</s>", -1.9, final=True))),
)  # fmt: skip


def boxes(scene: Scene) -> dict[str, list[Any]]:
    """The parts of each node's box, by token and score."""
    groups = [shape for shape in scene.shapes if isinstance(shape, Group)]
    return {f"{group.shapes[1].text} {group.shapes[2].text}": list(group.shapes) for group in groups}


def test_the_tree_marks_what_was_dropped_finished_and_best() -> None:
    scene = beam_tree(SEARCH)
    drawn = boxes(scene)
    assert len(drawn) == 8
    assert [name for name, parts in drawn.items() if parts[0].dashed] == ["were -2.000"]
    assert [name for name, parts in drawn.items() if parts[0].thick > 1] == ["</s> -1.000", "</s> -1.900"]
    assert [name for name, parts in drawn.items() if any(p.text == "★ best" for p in parts[1:])] == ["</s> -1.000"]
    thick = [shape for shape in scene.shapes if isinstance(shape, Line) and shape.thick > 1]
    assert len(thick) == 3  # <s> - You - are - </s>
    assert drawn["You -0.500"][0].x < drawn["are -0.900"][0].x and drawn["You -0.500"][0].y < drawn["Thou -1.500"][0].y
    assert inside(scene)


def test_nodes_may_be_objects_with_numbers_for_tokens_and_the_search_says_which_is_best() -> None:
    long, short = (Branch(token, score, is_kept=True, is_final=True) for token, score in ((1, -1.2), (2, -1.0)))
    root = Branch(0, 0.0, None, [long, short, Branch(1, -3.0)], is_kept=True)
    for names in (["start", "long", "short"], {0: "start", 1: "long", 2: "short"}.get):
        drawn = boxes(beam_tree(root, names, best=long))
        assert list(drawn) == ["start 0.000", "long -1.200", "short -1.000", "long -3.000"]
        assert [name for name, parts in drawn.items() if any(p.text == "★ best" for p in parts[1:])] == ["long -1.200"]
        assert drawn["long -3.000"][0].dashed
    with pytest.raises(ArgumentError, match="not in the tree"):
        beam_tree(root, best=Branch(1, -1.2))
    with pytest.raises(ArgumentError, match="names has none for token 2"):
        beam_tree(root, ["start", "long"])


class Chances:
    """A continuation whose next token depends on the last one alone."""

    def __init__(self, table: np.ndarray):
        self.table = np.log(table)

    def __call__(self, new: np.ndarray) -> np.ndarray:
        return self.table[new[:, -1]]

    def select(self, rows: np.ndarray) -> None:
        """Nothing is remembered."""


def test_the_tree_of_a_real_search_has_all_that_it_looked_at_and_stars_what_it_found() -> None:
    names = ["<s>", "</s>", "you", "are", "welcome"]
    table = (
        np.array([[1, 1, 60, 28, 10], [1, 96, 1, 1, 1], [1, 5, 4, 60, 30], [1, 10, 4, 5, 80], [1, 90, 3, 3, 3]]) / 100
    )
    ((first, *others),) = beam_search(Chances(table), np.array([[0]]), beams=2, length=5, end=1, alpha=2.0)
    assert [names[token] for token in first.tokens] == ["you", "are", "welcome"] and others
    drawn = boxes(beam_tree(first, names))
    likely = np.log(0.6 * 0.6 * 0.8 * 0.9)  # <s> you are welcome </s>
    assert [name for name, parts in drawn.items() if any(p.text == "★ best" for p in parts[1:])] == [
        f"</s> {likely:.3f}"
    ]
    assert drawn[f"</s> {likely:.3f}"][0].thick > 1 and drawn["<s> 0.000"][0].x < drawn[f"you {np.log(0.6):.3f}"][0].x
    assert drawn[f"are {np.log(0.28):.3f}"][0].dashed is False  # two live on
    assert drawn[f"welcome {np.log(0.1):.3f}"][0].dashed is True  # the third was dropped
    nodes, waiting = 0, [first.branch]
    while waiting[0].parent is not None:
        waiting = [waiting[0].parent]
    while waiting:
        nodes += 1
        waiting += waiting.pop().children
    assert len([shape for shape in beam_tree(first, names).shapes if isinstance(shape, Group)]) == nodes


def test_boxes_do_not_cover_each_other() -> None:
    rng = np.random.default_rng(0)
    level = [node("start", 0.0)]
    root = level[0]
    for _ in range(5):
        level = [child for parent in level for child in _children(parent, rng)]
    placed = [
        (p[0].x, p[0].y, p[0].width, p[0].height)
        for p in (g.shapes for g in beam_tree(root).shapes if isinstance(g, Group))
    ]
    for place, (x, y, width, height) in enumerate(placed):
        for a, b, w, h in placed[place + 1 :]:
            assert x + width <= a or a + w <= x or y + height <= b or b + h <= y


def _children(parent: dict[str, Any], rng: Any) -> list[Any]:
    made = [node(f"t{rng.integers(1000)}", parent["score"] - float(rng.random())) for _ in range(rng.integers(0, 4))]
    parent["children"] = made
    return made


def test_a_large_tree_is_cut_to_what_matters_and_says_so() -> None:
    wrong = [node(f"w{i}", -5.0 - i, node("x", -9.0 - i, kept=False), kept=False) for i in range(3000)]
    root = node("<s>", 0.0, *wrong[:1500], node("right", -0.1, node("</s>", -0.2, final=True)), *wrong[1500:])
    scene = beam_tree(root, most=50, rows=60)
    drawn = boxes(scene)
    assert len(drawn) == 50 and "right -0.100" in drawn and "</s> -0.200" in drawn and "w0 -5.000" in drawn
    assert "5,953 of 6,003 nodes are left out" in " ".join(texts(scene))
    assert any(re.fullmatch(r"\+2,9\d\d", text) for text in texts(scene))
    assert len(boxes(beam_tree(root, most=2))) == 2
    few = beam_tree(root)
    assert few.height < 800 and len({parts[0].y for parts in boxes(few).values()}) == 16 and inside(few)
    for options in ({"most": 0}, {"rows": 0}):
        with pytest.raises(ArgumentError, match="1 or more"):
            beam_tree(root, **options)


def test_the_root_is_at_the_top_left_and_the_best_sentence_on_its_row() -> None:
    worse = node("Thou", -0.1, node("art", -4.0, node("</s>", -4.1, final=True)), node("wert", -5.0, kept=False))
    root = node("<s>", 0.0, worse, node("You", -0.5, node("are", -0.9, node("</s>", -1.0, final=True))))
    scene = beam_tree(root)
    drawn = {name: parts[0] for name, parts in boxes(scene).items()}
    first = drawn.pop("<s> 0.000")
    assert all(box.x > first.x and box.y >= first.y for box in drawn.values())
    assert [name for name, box in drawn.items() if box.y == first.y] == ["You -0.500", "are -0.900", "</s> -1.000"]
    assert "in each box: log-probability of the sentence up to here" in texts(scene)
    assert "in each box: per word" in texts(beam_tree({**root, "note": "per word"}))


def test_a_sentence_of_thousands_of_tokens_needs_no_recursion() -> None:
    root = deepest = node("<s>", 0.0)
    for i in range(5000):
        deepest["children"] = [node(f"t{i}", -float(i))]
        deepest = deepest["children"][0]
    deepest["final"] = True
    assert len(boxes(beam_tree(root))) == 400


@pytest.mark.parametrize("wrong", [None, {}, {"token": "a", "children": 3}, {"token": "a", "children": [{"score": 1}]}])
def test_what_is_no_tree_is_refused(wrong: Any) -> None:
    with pytest.raises(ArgumentError, match="is no node"):
        beam_tree(wrong)


def test_a_tree_that_goes_round_is_refused() -> None:
    root = node("a", 0.0)
    root["children"] = [root]
    with pytest.raises(ArgumentError, match="circle"):
        beam_tree(root)


def test_scores_may_be_missing_or_not_finite() -> None:
    scene = beam_tree({"token": "a", "children": [{"token": "b", "score": float("nan"), "final": True}, {"token": ""}]})
    assert {"NaN", "∅", "★ best"} <= set(texts(scene))


# All of them.


@pytest.mark.parametrize(
    "draw",
    [
        lambda: next_tokens(normal(7), HOSTILE),
        lambda: alignment(normal(7, 7), HOSTILE, HOSTILE, title=HOSTILE[0]),
        lambda: embedding_map(normal(7, 3), HOSTILE, {HOSTILE[2]: HOSTILE[:3]}, 2, HOSTILE[4], HOSTILE[:1]),
        lambda: positional_map(normal(7, 3), title=HOSTILE[1]),
        lambda: beam_tree(node(HOSTILE[0], 1.0, *[node(name, -1.0) for name in HOSTILE]), title=HOSTILE[1]),
    ],
)
def test_hostile_names_are_only_text_and_pictures_are_always_the_same(draw: Any) -> None:
    scene = draw()
    assert tags(scene) <= {"svg", "title", "style", "rect", "text", "image", "g", "path", "ellipse"}
    assert scene.svg() == draw().svg()
    assert scene.width < 1200 and scene.height < 1200 and inside(scene)


def test_spaces_and_nothing_can_be_seen() -> None:
    assert [token_text(token) for token in (" a b", "  ", "", "\n", "é")] == ["␣a b", "␣␣", "∅", "⏎", "é"]
    assert len(token_text("x" * 99)) == 18 and token_text(3) == "3"
