"""Attention to look at: every stage is what the formula says, the page shows the same numbers, and no token can do more than be read."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
import xml.etree.ElementTree as ElementTree
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.small_zoo import SPEC, Point, installed

import minigrad as mg
from minigrad import zoo
from minigrad.cli import main
from minigrad.errors import ArgumentError, IndexingError, ShapeError
from minigrad.nn import Decoder, Encoder, KVCache, MultiHeadAttention, RotaryPositions, padding_mask, watch_attention
from minigrad.viz.attention.attention import Attention, attention
from minigrad.viz.attention.heads import Heads
from minigrad.viz.attention.page import packed
from minigrad.viz.drawing.scene import Image, Text

__all__ = ["installed"]  # a fixture

B, L, S, C, H = 2, 5, 7, 8, 2
HOSTILE = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "<!--",
    "line\nbreak\u202eleft",
    "w" * 10_000,
]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def bold(model: Any) -> Any:
    """The same model with larger weights, so that its heads differ, in evaluation mode."""
    for seed, parameter in enumerate(model.parameters()):
        with mg.no_grad():
            parameter[...] = mg.tensor(normal(*parameter.shape, seed=seed).astype(parameter.dtype) / 2)
    return model.eval()


def by_hand(layer: Heads, head: int, allowed: np.ndarray) -> dict[str, np.ndarray]:
    """The stages in loops, by the formula."""
    q, k, v = layer.q[head], layer.k[head], layer.v[head]
    length, size = len(q), len(k)
    made = {name: np.zeros((length, size)) for name in ("scores", "scaled", "masked", "softmax")}
    made["output"] = np.zeros((length, v.shape[1]))
    for i in range(length):
        for j in range(size):
            made["scores"][i, j] = sum(float(a) * float(b) for a, b in zip(q[i], k[j]))
            made["scaled"][i, j] = made["scores"][i, j] / np.sqrt(q.shape[1])
            made["masked"][i, j] = made["scaled"][i, j] if allowed[i, j] else -np.inf
        powers = [np.exp(x) if x > -np.inf else 0.0 for x in made["masked"][i]]
        made["softmax"][i] = [p / sum(powers) if sum(powers) else 0.0 for p in powers]
        made["output"][i] = sum(w * v[j] for j, w in enumerate(made["softmax"][i]))
    return made


CASES = {
    "self": ({}, np.ones((L, L), bool)),
    "causal": ({"is_causal": True}, np.tri(L, dtype=bool)),
    "padding": ({"mask": padding_mask([5, 3])}, np.arange(L)[None] < np.full((L, 1), 3)),
    "both": ({"mask": padding_mask([5, 3]), "is_causal": True}, np.tri(L, dtype=bool) & (np.arange(L) < 3)),
    "nothing": ({"mask": padding_mask([5, 0])}, np.zeros((L, L), bool)),
}


@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_every_stage_is_what_the_formula_says_and_together_they_are_the_models_result(case: str, rotary: bool) -> None:
    options, allowed = CASES[case]
    model = bold(MultiHeadAttention(C, H, rotary=RotaryPositions(C // H) if rotary else None, dtype="float64"))
    x = mg.tensor(normal(B, L, C))
    seen = attention(model, x, row=1, **options)
    (layer,) = seen.layers
    outputs = []
    for head in range(H):
        stages, expected = layer.stages(head), by_hand(layer, head, allowed)
        assert list(stages) == ["scores", "scaled", "masked", "softmax", "output"]
        for name, numbers in stages.items():
            np.testing.assert_allclose(numbers, expected[name], rtol=1e-10, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(layer.weights[head], expected["softmax"], rtol=1e-9, atol=1e-12)
        outputs.append(stages["output"])
    result = np.concatenate(outputs, axis=1) @ model.out_proj.weight.numpy().T + model.out_proj.bias.numpy()
    np.testing.assert_allclose(result, model(x, **options).numpy()[1], rtol=1e-9, atol=1e-10)
    assert layer.kind == ("causal" if "is_causal" in options else "self")


def test_queries_are_the_models_own_projections() -> None:
    model, x = bold(MultiHeadAttention(C, H, dtype="float64")), normal(B, L, C)
    (layer,) = attention(model, mg.tensor(x)).layers
    projected = x[0] @ model.in_proj_weight.numpy().T + model.in_proj_bias.numpy()  # (L, 3·C)
    for part, expected in zip((layer.q, layer.k, layer.v), np.split(projected, 3, axis=1)):
        np.testing.assert_allclose(part, expected.reshape(L, H, C // H).transpose(1, 0, 2), rtol=1e-12)


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["self", "causal", "cross"])
def test_weights_are_pytorchs(kind: str) -> None:
    import torch

    torch.manual_seed(0)
    theirs = torch.nn.MultiheadAttention(C, H, batch_first=True, dtype=torch.float64)
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    ours = MultiHeadAttention(C, H, dtype="float64")
    ours.load_state_dict({name: value.detach().numpy() for name, value in theirs.state_dict().items()})
    x, memory = normal(B, L, C), normal(B, S if kind == "cross" else L, C, seed=1)
    key = torch.tensor(memory if kind == "cross" else x)
    hidden = torch.triu(torch.ones(L, L, dtype=torch.bool), 1) if kind == "causal" else None
    _, expected = theirs(torch.tensor(x), key, key, attn_mask=hidden, average_attn_weights=False)
    inputs = (mg.tensor(x), mg.tensor(memory)) if kind == "cross" else (mg.tensor(x),)
    (layer,) = attention(ours, *inputs, row=1, **({"is_causal": True} if kind == "causal" else {})).layers
    assert layer.kind == kind
    np.testing.assert_allclose(layer.weights, expected[1].detach().numpy(), rtol=1e-9)
    for head in range(H):
        np.testing.assert_allclose(layer.stages(head)["softmax"], expected[1, head].detach().numpy(), rtol=1e-9)


def test_a_cache_is_part_of_what_is_looked_at() -> None:
    model, x = bold(MultiHeadAttention(C, H, dtype="float64")), mg.tensor(normal(1, L, C))
    cache = KVCache()
    with mg.no_grad():
        model(x[:, :3], is_causal=True, cache=cache)
    seen = attention(model, x[:, 3:], is_causal=True, cache=cache, tokens="abcde")
    whole = attention(model, x, is_causal=True, tokens="abcde")
    assert (seen.layers[0].rows, seen.layers[0].columns) == (("d", "e"), tuple("abcde"))
    np.testing.assert_allclose(seen.layers[0].weights, whole.layers[0].weights[:, 3:], rtol=1e-10)
    np.testing.assert_allclose(
        seen.layers[0].stages(1)["output"], whole.layers[0].stages(1)["output"][3:], rtol=1e-10, atol=1e-12
    )


def test_watching_stages_changes_nothing_and_leaves_nothing_behind() -> None:
    model = bold(Encoder(2, C, H, dropout=0.5, causal=True)).train()
    x = mg.tensor(normal(B, L, C).astype("float32"))
    mg.manual_seed(3)
    plain = model(x).numpy()
    mg.manual_seed(3)
    attention(model, x)
    np.testing.assert_array_equal(model(x).numpy(), plain)
    assert all(part.training for part in model.modules())
    with watch_attention(model, stages=True) as seen, watch_attention(model) as weights:
        model(x)
    for path, (call,) in seen.items():
        assert call.queries.shape == call.keys.shape == call.values.shape == (B, H, L, C // H)
        assert not any(part.requires_grad for part in (call.queries, call.keys, call.values, call.weights))
        assert weights[path][0] is call.weights and call.is_causal and call.scale == (C // H) ** -0.5
    assert all(part.watchers == () for part in model.modules() if isinstance(part, MultiHeadAttention))


class Translator(mg.nn.Module):
    """An encoder and a decoder, as a translator has them."""

    def __init__(self) -> None:
        self.encoder, self.decoder = Encoder(1, C, H), Decoder(1, C, H)

    def forward(self, source: Any, target: Any) -> Any:
        return self.decoder(target, self.encoder(source))


@pytest.mark.parametrize("size", [S, L])
def test_the_encoder_reads_the_source_and_the_decoder_looks_at_it(size: int) -> None:
    source, target = [f"s{i}" for i in range(size)], [f"t{i}" for i in range(L)]
    seen = attention(bold(Translator()), mg.randn(1, size, C), mg.randn(1, L, C), tokens=target, keys=source)
    told = [(layer.path, layer.kind, layer.rows[0], layer.columns[0]) for layer in seen.layers]
    assert told == [
        ("encoder.blocks.0.attention", "self", "s0", "s0"),
        ("decoder.blocks.0.attention", "causal", "t0", "t0"),
        ("decoder.blocks.0.cross_attention", "cross", "t0", "s0"),
    ]
    shown = seen.alignment().svg()
    assert all(f">{name}</text>" in shown for name in (*source, *target))


def small(tokens: list[str] | None = None, vocabulary: Any = None, **options: Any) -> Attention:
    mg.manual_seed(0)
    model = mg.nn.Sequential(Encoder(2, C, H, causal=True), mg.nn.Linear(C, 20))
    x = mg.tensor(normal(1, L, C).astype("float32"))
    return attention(bold(model), x, tokens=tokens, vocabulary=vocabulary, **options)


MISTAKES: dict[str, tuple[type, str, Any]] = {
    "too few tokens": (ShapeError, "5 positions", lambda: small(["a", "b"])),
    "no such row": (IndexingError, "no row 3", lambda: small(row=3)),
    "no attention": (ArgumentError, "called no attention", lambda: attention(mg.nn.Linear(3, 3), mg.ones(2, 3))),
    "no such row of one": (IndexingError, "expected: 0\n", lambda: small(row=9)),
    "a vocabulary that does not fit": (ShapeError, "(…, 3)", lambda: small(vocabulary="abc")),
    "no such folder": (ArgumentError, "folder 'none' does not exist", lambda: small().write("none/x.html")),
    "no such folder of a picture": (ArgumentError, "folder 'none' does not exist", lambda: small().scene().write("none/x.svg")),
    "no such layer": (IndexingError, "no layer 9", lambda: small().scene(9)),
    "misspelt layer": (IndexingError, "blocks.1.attention", lambda: small().scene("0.blocks.1.atention")),
    "no such head": (IndexingError, "0 to 1", lambda: small().scene(0, 2)),
    "no such stage": (ArgumentError, "scaled", lambda: small().scene(0, 0, "scald")),
    "no such form": (ArgumentError, ".html", lambda: small().write("x.gif")),
    "no cross-attention": (ArgumentError, "no cross-attention", lambda: small().alignment()),
    "no logits": (ArgumentError, "vocabulary=", lambda: small().next_tokens()),
    "too many numbers": (
        ArgumentError, "seen.only(0, 5)", lambda: Attention.of_weights(np.zeros((1, 5, 1024, 1024), "u1")).write("x.json"),
    ),
    "too much for a page": (
        ArgumentError, "seen.only(0, 5)", lambda: Attention.of_weights([np.zeros((17, 2048, 2048), "u1")]).write("x.html"),
    ),
    "flat weights": (ShapeError, "layers, heads, L, S", lambda: Attention.of_weights(np.ones((2, 3, 3)))),
    "no weights": (ShapeError, "no layer", lambda: Attention.of_weights([])),
    "heads that do not fit": (
        ShapeError, "do not fit", lambda: Attention.of_heads(np.ones((2, 3, 4)), np.ones((2, 3, 5)), np.ones((2, 3, 4))),
    ),
    "a mask that does not fit": (
        ShapeError, "broadcasts to (2, 3, 3)", lambda: Attention.of_heads(*[np.ones((2, 3, 4))] * 3, mask=np.ones((2, 3))),
    ),
    "logits that do not fit": (ShapeError, "vocabulary", lambda: small(vocabulary="abc", logits=np.ones(7))),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_explained(case: str) -> None:
    error, words, call = MISTAKES[case]
    with pytest.raises(error, match=re.escape(words)):
        call()


def test_plain_arrays_do_as_well() -> None:
    q, k, v = normal(2, 3, 4), normal(2, 6, 4, seed=1), normal(2, 6, 5, seed=2)
    may = np.arange(6) < 4
    (layer,) = Attention.of_heads(q, k, v, mask=may, tokens="abc", keys="uvwxyz").layers
    expected = by_hand(layer, 1, np.broadcast_to(may, (3, 6)))
    np.testing.assert_allclose(layer.weights[1], expected["softmax"], rtol=1e-10)
    np.testing.assert_allclose(layer.stages(1)["output"], expected["output"], rtol=1e-10)
    alone = Attention.of_weights(mg.tensor(layer.weights[None]), "abc", "uvwxyz")
    np.testing.assert_array_equal(alone.layers[0].weights, layer.weights)
    assert alone.layers[0].kind == "cross" and list(alone.layers[0].stages(0)) == ["softmax"]


def test_a_picture_has_the_numbers_of_its_stage_and_is_always_the_same() -> None:
    seen = small(["You", " are", " wel", "come", "!"])
    for stage, numbers in seen.layers[1].stages(1).items():
        shown = seen.scene("0.blocks.1.attention", 1, stage).svg()
        texts = [node.text for node in ElementTree.fromstring(shown).iter("{http://www.w3.org/2000/svg}text")]
        for number in numbers[np.isfinite(numbers)]:
            if 0 < abs(number) < 9.99:
                assert f"{number:.2f}" in texts
        assert ("−∞" in texts) == (stage == "masked")
        assert texts.count("–") == (L * (L - 1) // 2 if stage == "softmax" else 0)  # where a causal head may not look
        assert shown == small(["You", " are", " wel", "come", "!"]).scene(1, 1, stage).svg()
    assert seen.overview().svg().count("<image") == 4 + 1  # the heads, and the scale of their colours


def test_a_weight_of_zero_is_not_drawn_like_one_that_is_forbidden() -> None:
    weights = np.array([[[[1.0, 0.0], [0.0, 1.0]]]])
    free = Attention.of_weights(weights, "ab")
    barred = Attention(tuple(dataclasses.replace(layer, kind="causal") for layer in free.layers))
    (open_pixels,), (barred_pixels,) = (
        [shape.pixels for shape in seen.scene().shapes if isinstance(shape, Image) and shape.pixels.shape[0] == 2]
        for seen in (free, barred)
    )
    differs = (open_pixels != barred_pixels).any(axis=-1)
    np.testing.assert_array_equal(differs, [[False, True], [False, False]])


def test_small_heads_say_what_their_colours_mean_and_name_the_tokens_that_fit() -> None:
    def texts(seen: Attention) -> list[str]:
        return [shape.text for shape in seen.overview().shapes if isinstance(shape, Text)]

    told = texts(small(["You", " are", " wel", "come", "!"]))
    assert "each row of weights is relative to its largest" in told and "the largest of its row" in told
    assert (
        told.count("␣wel") == 2 + H
    )  # as a query beside each layer, and as a key above each head, once for both layers
    crossing = texts(
        attention(bold(Translator()), mg.randn(1, S, C), mg.randn(1, L, C), tokens="abcde", keys="stuvwxy")
    )
    assert crossing.count("s") == 1 + 2 * H and crossing.count("a") == 2 + H
    many = texts(Attention.of_weights(np.ones((1, 1, 30, 30)), [f"w{i}" for i in range(30)]))
    assert not [word for word in many if word.startswith("w")]


def test_every_form_is_written_and_the_numbers_are_all_there(tmp_path: Path) -> None:
    seen = small()
    for name in ("x.html", "x.svg", "x.json"):
        assert seen.write(tmp_path / name) == tmp_path / name
    assert seen.write(tmp_path / "one.svg", layer=1, head=1).read_text() == seen.scene(1, 1).svg()
    read = json.loads((tmp_path / "x.json").read_text())
    for layer, written in zip(seen.layers, read["layers"], strict=True):
        for head, stages in enumerate(written["heads"]):
            for name, numbers in layer.stages(head).items():
                np.testing.assert_array_equal(np.array(stages[name], float), numbers)


def test_a_picture_can_be_painted(tmp_path: Path) -> None:
    image = pytest.importorskip("matplotlib.image", reason="needs matplotlib: pip install -e '.[viz]'")
    light, dark = (
        image.imread(small().write(tmp_path / "x.png", head=1, dark=dark))[0, 0, :3].mean() for dark in (False, True)
    )
    assert light > 0.8 and dark < 0.3


def test_hostile_tokens_are_only_text_in_pictures_and_pages() -> None:
    seen = small(HOSTILE, vocabulary=[*HOSTILE, *"abcdefghijklmno"])
    for scene in (seen.scene(0, 0), seen.overview(), seen.next_tokens(), seen.scene(0, 0, "output")):
        tree = ElementTree.fromstring(scene.svg())
        allowed = {"svg", "title", "style", "rect", "text", "image", "g"}
        assert {node.tag.rpartition("}")[2] for node in tree.iter()} <= allowed
        assert scene.width < 1500 and scene.height < 1500
    html = seen.html()
    assert html.count("<script") == 2 and "<img" not in html and "<!--" not in html and len(html) < 200_000


@pytest.mark.parametrize(("name", "part"), [("q", normal(5, 64)), ("weights", np.abs(normal(5, 64)))])
def test_rounded_numbers_are_near(name: str, part: np.ndarray) -> None:
    part[1], part[2, 3], part[3] = 0, np.nan, part[3] * 1e-6
    content = zlib.decompress(base64.b64decode(packed(part, False, name)))
    scales = np.frombuffer(content[:20], "<f4")[:, None]
    whole = np.frombuffer(content[20:], "u1" if name == "weights" else "<i2").reshape(5, 64)
    sound = [0, 1, 3, 4]
    most = np.abs(part[sound]).max(axis=1, keepdims=True)
    assert (np.abs(whole * scales - part)[sound] <= most / (500 if name == "weights" else 65_000)).all()
    assert np.isnan(scales[2]) and np.isfinite(scales[sound]).all()


def test_numbers_that_are_not_finite_are_drawn_all_the_same() -> None:
    q = normal(1, 3, 4)
    q[0, 1] = np.nan
    q[0, 2] = np.inf
    with np.errstate(all="ignore"):
        seen = Attention.of_heads(q, normal(1, 3, 4), normal(1, 3, 4), tokens="abc")
        for stage in ("scores", "softmax", "output"):
            assert "NaN" in seen.scene(0, 0, stage).svg()
    assert "attention" in seen.html()


def test_a_model_on_a_device_shows_the_same(device: str) -> None:
    model, x = bold(MultiHeadAttention(C, H, dtype="float64")), mg.tensor(normal(1, L, C))
    mask = padding_mask([3], size=L)
    (expected,) = attention(model, x, mask=mask).layers
    (layer,) = attention(model.to(device), x.to(device), mask=mask.to(device)).layers
    np.testing.assert_allclose(layer.weights, expected.weights, rtol=1e-12)
    np.testing.assert_array_equal(layer.allowed(1), expected.allowed(1))


# The page, in a browser.


def hover(page: Any, i: int, j: int, rows: int, columns: int) -> None:
    """Rest the mouse on a cell of the matrix."""
    box = page.locator("#picture canvas").bounding_box()
    page.mouse.move(box["x"] + (j + 0.5) * box["width"] / columns, box["y"] + (i + 0.5) * box["height"] / rows)


def number(page: Any, step: str) -> float:
    """The number that a step of the computation ends in."""
    text = page.locator(f"#cell [data-step={step}] b").inner_text().replace("≈", "").split("(")[0].strip()
    return -np.inf if text == "−∞" else float(text)


def shown(page: Any, layer: int, head: int) -> None:
    """Wait until a head is drawn. (A page that runs no strings refuses `wait_for_function`, which asks with one.)"""
    page.wait_for_selector(f"body[data-shown='{layer},{head}']", state="attached")


@pytest.fixture
def written(tmp_path: Path) -> tuple[Attention, Path]:
    seen = small(["You", " are", " wel", "come", "!"], vocabulary=[f"w{i}" for i in range(20)])
    return seen, seen.write(tmp_path / "seen.html")


def test_the_numbers_under_the_mouse_are_those_of_every_stage(written: Any, open_page: Any) -> None:
    seen, path = written
    page = open_page(path)
    shown(page, 0, 0)
    for place, (layer, head) in enumerate([(0, 0), (1, 1)]):
        if place:
            page.select_option("#layer", str(layer))
            page.select_option("#head", str(head))
            shown(page, layer, head)
        stages = by_hand(seen.layers[layer], head, np.tri(L, dtype=bool))
        for i, j in [(0, 0), (3, 1), (4, 4), (1, 3)]:
            hover(page, i, j, L, L)
            assert "→" in page.inner_text("#cell h2") and page.inner_text("#cell h2").startswith(f"{i}: ")
            for step in ("scores", "scaled", "masked", "softmax"):
                assert number(page, step) == pytest.approx(stages[step][i, j], rel=6e-4)
            row = json.loads(page.inner_text("#cell [data-step=output] b"))
            np.testing.assert_allclose(row, stages["output"][i], rtol=6e-4)


def test_stages_and_heads_are_chosen_by_buttons_and_numbers_stand_in_the_cells(written: Any, open_page: Any) -> None:
    seen, path = written
    page = open_page(path, dark=True)
    page.click("[data-place='1,0']")
    shown(page, 1, 0)
    assert page.input_value("#layer") == "1" and page.get_attribute("[data-place='1,0']", "aria-pressed") == "true"
    stages = by_hand(seen.layers[1], 0, np.tri(L, dtype=bool))
    for stage, numbers in stages.items():
        page.click(f"[data-stage={stage}]")
        for i, j in [(0, 0), (2, 3), (4, 1)]:
            text = page.text_content(f"[data-cell='{i},{j}']")
            if stage == "softmax" and j > i:
                assert text == "–"
                continue
            value = -np.inf if text == "−∞" else float(text)
            assert value == pytest.approx(numbers[i, j], abs=0.051 if abs(numbers[i, j]) > 9.99 else 0.0051)
    hover(page, 4, 2, L, C // H)  # of the output, which is shown last
    assert number(page, "output") == pytest.approx(stages["output"][4, 2], rel=6e-4)


@pytest.mark.parametrize("width", [8, 9])
def test_every_term_of_a_score_is_shown_where_they_are_few(width: int, tmp_path: Path, open_page: Any) -> None:
    seen = Attention.of_heads(normal(1, L, width), normal(1, L, width, seed=1), normal(1, L, 2, seed=2))
    page = open_page(seen.write(tmp_path / "x.html"))
    shown(page, 0, 0)
    assert "relative to its largest weight" in page.inner_text("#overview")
    hover(page, 1, 2, L, L)
    terms = page.inner_text("#cell [data-step=scores] .terms").removesuffix(" = ").rstrip(" =").split(" + ")
    if width > 8:
        assert len(terms) == 4 and terms[-1] == "… (9 terms)"
        return
    products = [float(a) * float(b) for a, b in (term.split("·") for term in terms)]
    q, k = seen.layers[0].q[0, 1], seen.layers[0].k[0, 2]
    np.testing.assert_allclose(products, q * k, rtol=2e-3)


def test_a_cell_is_kept_by_a_click_and_moved_by_the_keys(written: Any, open_page: Any) -> None:
    page = open_page(written[1])
    shown(page, 0, 0)
    hover(page, 2, 1, L, L)
    page.mouse.down()
    page.mouse.up()
    hover(page, 4, 4, L, L)
    assert page.inner_text("#cell h2") == "2: ␣wel → 1: ␣are"
    page.locator("#picture canvas").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#cell h2") == "3: come → 0: You"


def test_lines_are_as_strong_as_the_weights(written: Any, open_page: Any) -> None:
    seen, path = written
    page = open_page(path)
    shown(page, 0, 0)
    page.click("[data-view=lines]")
    page.hover("[data-row='4']")
    weights = seen.layers[0].weights[0, 4]
    drawn = page.evaluate(
        "Array.from(document.querySelectorAll('line'), (x) => [x.dataset.pair, Number(x.getAttribute('stroke-opacity'))])"
    )
    assert dict(drawn) == {f"4,{j}": pytest.approx(max(0.06, w), rel=1e-4) for j, w in enumerate(weights) if w >= 0.005}


def test_bars_of_the_next_token_follow_the_temperature(written: Any, open_page: Any) -> None:
    seen, path = written
    page = open_page(path)
    for place, temperature in [(L - 1, 1.0), (L - 1, 0.5), (1, 2.0)]:
        page.select_option("#after", str(place))
        page.fill("#temperature", str(temperature))
        powers = np.exp(seen.logits[place] / temperature)
        expected = powers / powers.sum()
        bars = {
            int(bar.get_attribute("data-token")): bar.locator("b").inner_text() for bar in page.locator(".bar").all()
        }
        assert list(bars) == np.argsort(-expected)[:10].tolist()
        for token, text in bars.items():
            assert float(text) == pytest.approx(expected[token], rel=6e-4)


def test_hostile_tokens_do_nothing_in_a_page(tmp_path: Path, open_page: Any) -> None:
    seen = small(HOSTILE, vocabulary=[*HOSTILE, *"abcdefghijklmno"])
    page = open_page(dataclasses.replace(seen, title=HOSTILE[0]).write(tmp_path / "x.html"))
    shown(page, 0, 0)
    for i in range(L):
        hover(page, i, 0, L, L)
    assert page.inner_text("#cell h2").endswith("→ 0: </script><script>alert(1)</script>")
    page.click("[data-view=lines]")
    page.hover("[data-row='1']")
    assert page.locator("img").count() == 0 and page.locator("script").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_mean_of_the_heads_is_shown_and_what_is_not_finite_too(tmp_path: Path, open_page: Any) -> None:
    q = normal(3, L, 4)
    q[:, 1] = np.nan
    with np.errstate(all="ignore"):
        seen = Attention.of_heads(q, normal(3, S, 4, seed=1), normal(3, S, 4, seed=2))
    page = open_page(seen.write(tmp_path / "x.html", layer=0, head=0))
    shown(page, 0, 0)
    hover(page, 1, 2, L, S)
    assert page.inner_text("#cell [data-step=softmax] b") == "NaN"
    page.select_option("#head", "-1")
    shown(page, 0, -1)
    hover(page, 3, 2, L, S)
    mean = np.mean([by_hand(seen.layers[0], head, np.ones((L, S), bool))["softmax"][3, 2] for head in range(3)])
    assert number(page, "softmax") == pytest.approx(mean, rel=6e-4)


def test_a_sentence_without_tokens_has_a_page_all_the_same(tmp_path: Path, open_page: Any) -> None:
    page = open_page(Attention.of_weights(np.zeros((1, 2, 0, 0))).write(tmp_path / "x.html"))
    shown(page, 0, 0)
    page.click("[data-view=lines]")
    assert "0 × 0" in page.inner_text("#caption")


def test_a_page_of_weights_alone_has_one_stage(tmp_path: Path, open_page: Any) -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(S), (1, 1, L))
    page = open_page(Attention.of_weights(weights, "abcde", "stuvwxy").write(tmp_path / "x.html"))
    shown(page, 0, 0)
    hover(page, 3, 6, L, S)
    assert number(page, "softmax") == pytest.approx(weights[0, 0, 3, 6], rel=6e-4)
    assert page.locator("[data-stage]:enabled").all_inner_texts() == ["softmax"]


@pytest.mark.parametrize("alone", [False, True])
def test_twelve_layers_of_twelve_heads_and_512_tokens_open(alone: bool, tmp_path: Path, open_page: Any) -> None:
    size, width = 512, 16
    q, k, v = (normal(12, size, width, seed=seed).astype("float32") for seed in range(3))
    (layer,) = Attention.of_heads(q, k, v, is_causal=True, tokens=[f"token{i}" for i in range(size)]).layers
    one = dataclasses.replace(layer, q=None, k=None, v=None) if alone else layer
    seen = Attention((one,) * (2 if alone else 12))
    page = open_page(seen.write(tmp_path / "x.html"))
    shown(page, 0, 0)
    assert page.locator(".thumb").count() == 12 * len(seen.layers)
    page.click("[data-place='1,5']")
    shown(page, 1, 5)
    hover(page, 60, 20, size, size)
    expected = layer.stages(5)["softmax"]
    assert "≈" in page.inner_text("#cell [data-step=softmax] b")
    i, j = map(int, re.findall(r"(\d+): ", page.inner_text("#cell h2")))
    assert number(page, "softmax") == pytest.approx(expected[i, j], rel=2e-3, abs=expected[i].max() / 255)


# The command.

WORDS = ["You", "are", "welcome", "thank", "you"]


class Reader(mg.nn.Module):
    def __init__(self) -> None:
        self.words, self.body, self.out = mg.nn.Embedding(5, C), Encoder(1, C, H, causal=True), mg.nn.Linear(C, 5)

    def forward(self, x: Any) -> Any:
        return self.out(self.body(self.words(x)))


def read_loss(model: Any, batch: Any) -> dict[str, Any]:
    ids = np.arange(5)[None]
    return {"loss": (mg.nn.functional.cross_entropy(model(mg.tensor(ids))[0], mg.tensor(ids[0]), reduction="sum"), 5)}


def attend(loaded: Any, text: str) -> dict[str, Any]:
    ids = [WORDS.index(word) for word in text.split()]
    return {"inputs": (mg.tensor([ids]),), "tokens": text.split(), "vocabulary": WORDS}


READER = dataclasses.replace(SPEC, name="reader", build=lambda config: Reader(), loss=read_loss, attend=attend)


@pytest.fixture
def run(installed: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    installed.append(Point("reader", READER))
    for name in ("reader", "line"):
        zoo.train(name, tmp_path / name, max_steps=2, progress=False)
    return tmp_path


def test_the_command_writes_what_a_trained_model_attends_to(run: Path, capsys: Any, open_page: Any) -> None:
    assert main(["attention", "reader", "You are welcome", "--head", "1"]) == 0
    assert capsys.readouterr().out.endswith("wrote attention.html: 1 attention, 2 heads\n")
    page = open_page(run / "attention.html")
    shown(page, 0, 1)
    hover(page, 2, 1, 3, 3)
    loaded = zoo.load(run / "reader")
    expected = attention(loaded.model, mg.tensor([[0, 1, 2]])).layers[0].weights[1, 2, 1]
    assert number(page, "softmax") == pytest.approx(expected, rel=6e-4)
    assert page.inner_text("h1") == "reader: You are welcome: attention" and page.locator(".bar").count() == 5
    assert main(["attention", "reader", "thank you", "-o", "x.svg", "--layer", "0", "--dark"]) == 0
    assert ">thank</text>" in (run / "x.svg").read_text()


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (["line", "x"], 2, "line shows no attention; models that do: reader"),
        (["line", "x"], 2, "mg.viz.attention(model, x, tokens=…) shows it: docs/seeing.md"),
        (["reader", "you", "-o", "none/x.html"], 1, "the folder 'none' does not exist"),
        (["reader", "x", "-o", "x.gif"], 2, "end its name in .html, .svg"),
        (["reader", "unknown"], 1, "'reader' of"),
        (["reader", "you", "--layer", "7"], 1, "no layer 7"),
    ],
)
def test_the_command_says_what_is_wrong(run: Path, words: list[str], code: int, part: str, capsys: Any) -> None:
    capsys.readouterr()
    assert main(["attention", *words]) == code
    assert part in capsys.readouterr().err
    assert not list(run.glob("*.html"))


def test_the_help_says_how_to_see_the_attention_of_a_model_of_ones_own(capsys: Any) -> None:
    with pytest.raises(SystemExit):
        main(["attention", "--help"])
    shown = capsys.readouterr().out
    assert "mg.viz.attention(model, x, tokens=…)" in shown and "docs/seeing.md" in shown and "runs/gpt" not in shown


@pytest.mark.parametrize(
    "given", [None, {"inputs": ()}, {"inputs": 3, "tokens": []}, {"inputs": (), "tokens": [], "kyes": 1}]
)
def test_a_plugin_that_answers_wrongly_is_named(given: Any, run: Path) -> None:
    from minigrad.zoo.attention import attention_of

    loaded = dataclasses.replace(zoo.load(run / "reader"), spec=dataclasses.replace(READER, attend=lambda *_: given))
    with pytest.raises(zoo.PluginError, match=r"'reader' of .*attend\(…\)"):
        attention_of(loaded, "you")


def translated() -> Attention:
    """A decoder that was fed "<s> un libro" and chose "un libro </s>"."""
    return attention(
        bold(Translator()), mg.tensor(normal(1, 3, C)), mg.tensor(normal(1, 3, C, seed=1)), tokens=["<s>", "un", "libro"],
        keys=["a", "book", "</s>"], chosen=["un", "libro", "</s>"], sentences=["A <b>ook", "Un libro"], title="mine",
    )  # fmt: skip


def test_rows_of_a_decoder_are_named_by_the_word_that_is_chosen() -> None:
    seen = translated()
    told = [(layer.title, layer.rows, layer.columns) for layer in seen.layers]
    assert told == [
        ("encoder block 0: self-attention", ("a", "book", "</s>"), ("a", "book", "</s>")),
        ("decoder block 0: causal self-attention", ("un", "libro", "</s>"), ("<s>", "un", "libro")),
        ("decoder block 0: cross-attention", ("un", "libro", "</s>"), ("a", "book", "</s>")),
    ]
    assert "down: the word being chosen" in seen.alignment().svg()
    with pytest.raises(ShapeError, match="3 positions"):
        attention(bold(Translator()), mg.randn(1, 3, C), mg.randn(1, 3, C), chosen=["un"])


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_a_translation_opens_at_its_cross_attention_below_its_sentences(
    width: int, dark: bool, tmp_path: Path, open_page: Any
) -> None:
    page = open_page(translated().write(tmp_path / "x.html"), dark=dark, width=width)
    shown(page, 2, -1)
    assert page.inner_text("#sentences") == "A <b>ook → Un libro"
    assert page.locator("#layer option:checked").inner_text() == "2 decoder block 0: cross-attention"
    caption = page.inner_text("#caption")
    assert "mean of heads" in caption and "down: the word being chosen" in caption
    assert not re.search("white|blue|orange|grey", caption)  # which they are not in the dark
    assert page.locator("#picture svg text").all_text_contents()[:6] == ["un", "libro", "</s>", "a", "book", "</s>"]
    assert page.inner_text("#cell h2").startswith("0: un → ")  # a cell is told from the beginning
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    right = page.evaluate("document.querySelector('#picture .matrix').getBoundingClientRect().right")
    assert right <= width
    above, below = (page.locator(name).bounding_box() for name in ("#sentences", "#picture"))
    assert above["y"] < below["y"] < 800
    assert page.locator("#caption .key").bounding_box()["height"] < 30  # numbers and colours on one line
    assert page.locator("#picture .matrix").bounding_box()["width"] > 200  # three words do not leave the page blank


def test_a_notebook_shows_the_pages_themselves_and_can_be_reached_by_none(tmp_path, browser):
    pytest.importorskip("graphviz", reason="needs Graphviz: pip install -e '.[viz]'")
    seen, graph = (
        small(["You", " are", " wel", "come", "!"]),
        mg.viz.graph(mg.nn.Linear(2, 2), np.ones((1, 2), "float32")),
    )
    frames = [shown._repr_html_() for shown in (seen, graph)]
    (tmp_path / "notebook.html").write_text("<!doctype html><meta charset=utf-8>" + "".join(frames), encoding="utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "notebook.html").as_uri())
    first, second = (page.locator("iframe").nth(i).content_frame for i in (0, 1))
    first.locator("#layer").select_option("1")
    first.locator("#caption", has_text="block 1").wait_for()
    second.locator("#where").wait_for()
    before = second.locator("#where").inner_text()
    second.get_by_text("step ▶").click()
    assert second.locator("#where").inner_text() != before
    for frame in page.frames[1:]:
        with pytest.raises(Exception, match="SecurityError|cross-origin|Blocked"):
            frame.evaluate("window.parent.document.title")
    page.close()
    large = dataclasses.replace(seen, vocabulary=("x" * 60,) * 200_000, logits=np.zeros((1, 200_000)))
    assert large._repr_html_() is None and "<svg" in large._repr_svg_()
