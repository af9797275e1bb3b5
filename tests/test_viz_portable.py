"""Every SVG looks as meant in programs that know no CSS variables and no media queries, and dark in a browser that asks for it."""

import io
import shutil
import subprocess
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad.viz.drawing.colors import DARK, LIGHT
from minigrad.viz.drawing.scene import Group, Scene, Text, clean, text_width

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
ROOT = PICTURES.parent.parent


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape)


def graph() -> Scene:
    w = mg.tensor([0.5, -1.0], requires_grad=True)
    return mg.viz.graph(lambda x: ((x * w).sum() - 2) ** 2, mg.tensor([1.0, 2.0]), direction="both").scene


def coloured_graph() -> Scene:
    return mg.viz.graph(mg.nn.Linear(8, 8), np.ones((2, 8), "float32"), color="flops").scene


def attention() -> mg.viz.Attention:
    model = mg.nn.Encoder(2, dim=8, heads=2, causal=True)
    return mg.viz.attention(model, mg.tensor(normal(1, 4, 8).astype("float32")), tokens=["You", " are", "wel", "come"])


def curves() -> Scene:
    steps = range(1, 50)
    table = {"loss": [(i, 3 / i) for i in steps], "valid_loss": [(i, 3.5 / i) for i in steps], "lr": [(9, 0.1)]}
    return mg.viz.curves(table)


def lines() -> Scene:
    table = {"twice": ([1, 2, 3], [2, 4, 6]), "square": ([1, 2, 3], [1, float("nan"), 9])}
    return mg.viz.lines(table, "growth", x="x", y="value", points=True)


def beam() -> Scene:
    children = [{"token": "you", "score": -0.2, "final": True}, {"token": "thou", "score": -2.5, "kept": False}]
    return mg.viz.beam_tree({"token": "<s>", "score": 0.0, "children": children})


def embeddings() -> Scene:
    kinds = {"vowels": "aei", "labials": "bfm", "dentals": "dt", "velars": "cgk"}
    return mg.viz.embedding_map(normal(12, 5), "abcdefghikmt", kinds, neighbours=1, mark=["a"])


def surface() -> Scene:
    return mg.viz.decision_surface(lambda p: 1 / (1 + np.exp(p[:, 1] - p[:, 0])), [[0, 0], [1, 0]], [0, 1], "halves")


def architecture() -> Scene:
    import sys

    sys.path.append(str(ROOT))
    from docs.architecture import picture

    return picture()


SCENES: dict[str, Callable[[], Scene]] = {
    "graph": graph,
    "coloured graph": coloured_graph,
    "all heads": lambda: attention().overview(),
    "one head": lambda: attention().scene(1, 1),
    "curves": curves,
    "lines": lines,
    "beam tree": beam,
    "embeddings": embeddings,
    "positions": lambda: mg.viz.positional_map(normal(9, 6)),
    "surface": surface,
    "fit": lambda: mg.viz.fit([0, 1, 2], [0, 1, 4], lambda x: x**2, "squares"),
    "directions": lambda: mg.viz.directions([[1.0, 0.2], [0.0, 1.0]], "two features"),
    "products": lambda: mg.viz.directions(normal(5, 3), "five features"),
    "next tokens": lambda: mg.viz.next_tokens([2.0, 1.0, 0.0], ["yes", "no", "per  haps"]),
    "alignment": lambda: mg.viz.alignment([[0.9, 0.1], [0.2, 0.8]], ["Danke", "sehr"], ["Thank", "you"]),
    "architecture": architecture,
}
LAID_OUT = {"graph", "coloured graph", "architecture"}
KINDS = [pytest.param(name, marks=pytest.mark.graphviz) if name in LAID_OUT else name for name in SCENES]
KEPT = sorted(path.name for path in PICTURES.glob("*.svg"))


@cache
def scene_of(kind: str) -> Scene:
    return SCENES[kind]()


def pixels_of(file: bytes) -> np.ndarray:
    """The colours of a PNG: (rows, columns, 3); what is transparent is seen on red, so that no background goes unnoticed."""
    image = pytest.importorskip("PIL.Image")
    found = image.open(io.BytesIO(file)).convert("RGBA")
    red = image.new("RGBA", found.size, (255, 0, 0, 255))
    return np.asarray(image.alpha_composite(red, found).convert("RGB"), int)


def by_cairosvg(svg: str) -> np.ndarray:
    try:
        import cairosvg
    except (ImportError, OSError) as error:  # the package is there, but the library cairo is not
        pytest.skip(f"CairoSVG cannot be loaded: {error}")
    return pixels_of(cairosvg.svg2png(bytestring=svg.encode()))


def by_librsvg(svg: str) -> np.ndarray:
    if shutil.which("rsvg-convert") is None:
        pytest.skip("rsvg-convert is not installed: apt-get install librsvg2-bin")
    done = subprocess.run(["rsvg-convert"], input=svg.encode(), capture_output=True, check=True, timeout=60)
    return pixels_of(done.stdout)


RENDERERS = {"cairosvg": by_cairosvg, "librsvg": by_librsvg}


def by_browser(browser, svg: str, scheme: str, size: tuple[int, int]) -> np.ndarray:
    """A screenshot of an SVG as an image of a page, as a README shows it; rows and columns are those of the image."""
    import base64

    page = browser.new_page(color_scheme=scheme, viewport={"width": size[1] + 10, "height": size[0] + 10})
    source = base64.b64encode(svg.encode()).decode()
    page.set_content(f'<body style="margin:0"><img style="display:block" src="data:image/svg+xml;base64,{source}">')
    page.wait_for_function("document.images[0].complete")
    shot = page.screenshot(clip={"x": 0, "y": 0, "width": size[1], "height": size[0]})
    page.close()
    return pixels_of(shot)


def rgb(color: str) -> np.ndarray:
    return np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)])


def distance(pixels: np.ndarray, color: str) -> np.ndarray:
    """The largest difference of a channel from a colour: (rows, columns)."""
    return np.abs(pixels - rgb(color)).max(axis=-1)


def check_colors(pixels: np.ndarray, colors: dict[str, str], other: dict[str, str]) -> None:
    """The background is paper, text has the colour of ink, and neither is that of the other theme."""
    paper = distance(pixels, colors["paper"]) <= 2
    corners = [paper[0, 0], paper[0, -2], paper[-2, 0], paper[-2, -2]]
    assert all(corners) and paper.mean() > 0.08
    assert (distance(pixels, colors["ink"]) < 40).any()
    assert (distance(pixels, other["paper"]) <= 2).mean() < 0.5
    assert (pixels.max(axis=-1) < 10).mean() < 0.02  # black is no colour of ours


def texts_of(shapes) -> Iterator[Text]:
    for shape in shapes:
        if isinstance(shape, Group):
            yield from texts_of(shape.shapes)
        elif isinstance(shape, Text) and shape.text.strip():
            yield shape


def without_texts(shapes) -> list:
    return [
        replace(shape, shapes=without_texts(shape.shapes)) if isinstance(shape, Group) else shape
        for shape in shapes
        if not isinstance(shape, Text)
    ]


def box_of(text: Text) -> tuple[slice, slice]:
    """The points that a text covers, about."""
    size = text_width(text.text, text.size)
    start = {"start": 0, "middle": size / 2, "end": size}[text.anchor]
    x, y, w, h = text.x - start, text.y - text.size, size, 1.3 * text.size
    if text.turned:
        x, y, w, h = text.x - text.size, text.y + start - size, 1.3 * text.size, size
    left, top = max(int(x), 0), max(int(y), 0)
    return slice(top, int(y + h) + 1), slice(left, int(x + w) + 1)


def check_against_browser(browser, svg: str, pixels: np.ndarray) -> None:
    """The same picture as in a browser, but for the edges of letters and lines, which are smoothed otherwise."""
    apart = np.abs(pixels - by_browser(browser, svg, "light", pixels.shape[:2]))[:-1, :-1].max(axis=-1)
    assert apart.mean() < 8 and (apart > 100).mean() < 0.03


@pytest.mark.parametrize("renderer", RENDERERS)
@pytest.mark.parametrize("kind", KINDS)
def test_colours_and_texts_are_there_without_css(kind, renderer):
    scene, render = scene_of(kind), RENDERERS[renderer]
    pixels = render(scene.svg())
    assert np.allclose(pixels.shape[:2], (scene.height, scene.width), atol=1)
    check_colors(pixels, LIGHT, DARK)
    bare = render(replace(scene, shapes=without_texts(scene.shapes)).svg())
    written = np.abs(pixels - bare).max(axis=-1) > 60
    texts = list(texts_of(scene.shapes))
    assert texts and [text.text for text in texts if not written[box_of(text)].any()] == []


@pytest.mark.parametrize("renderer", RENDERERS)
@pytest.mark.parametrize("kind", KINDS)
def test_other_programs_show_what_a_browser_shows(kind, renderer, browser):
    svg = scene_of(kind).svg()
    check_against_browser(browser, svg, RENDERERS[renderer](svg))


@pytest.mark.parametrize("kind", KINDS)
def test_a_browser_that_asks_for_dark_colours_gets_them(kind, browser):
    scene = scene_of(kind)
    size = int(scene.height), int(scene.width)
    check_colors(by_browser(browser, scene.svg(), "light", size), LIGHT, DARK)
    check_colors(by_browser(browser, scene.svg(), "dark", size), DARK, LIGHT)


@pytest.mark.parametrize("renderer", RENDERERS)
@pytest.mark.parametrize("name", KEPT)
def test_the_pictures_of_the_documents_are_portable(name, renderer, browser):
    svg = (PICTURES / name).read_text(encoding="utf-8")
    assert "var(" not in svg
    pixels = RENDERERS[renderer](svg)
    check_colors(pixels, LIGHT, DARK)
    check_against_browser(browser, svg, pixels)


@pytest.mark.parametrize("renderer", RENDERERS)
def test_a_picture_whose_colours_are_css_variables_would_be_found_out(renderer):
    """What SVGs of 0.1.0 looked like: black boxes."""
    style = "<style>svg{--paper:#ffffff;--ink:#1c2530}.f-paper{fill:var(--paper)}.f-ink{fill:var(--ink)}</style>"
    body = '<rect width="90" height="50" class="f-paper"/><text x="9" y="30" class="f-ink">loss</text>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="90" height="50">{style}{body}</svg>'
    with pytest.raises(AssertionError):
        check_colors(RENDERERS[renderer](svg), LIGHT, DARK)


WRITINGS = {"CJK": "你好", "Arabic": "مرحبا", "Devanagari": "नमस्ते", "Hebrew": "שלום"}
JOINED = "क्ष"  # ka, a mark, and ssa, which Devanagari writes as one sign: in the font of these tests as nothing
RULES = "languagesystem DFLT dflt; languagesystem dev2 dflt; feature akhn { sub u0915 u094D u0937 by nothing; } akhn;"


@pytest.fixture
def squares(tmp_path):
    """A font made here that has a square for each letter of these writings, known to matplotlib while a test runs."""
    figure = pytest.importorskip("minigrad.viz.drawing.figure", reason="needs matplotlib: pip install -e '.[viz]'")
    from fontTools.feaLib.builder import addOpenTypeFeaturesFromString
    from fontTools.fontBuilder import FontBuilder
    from fontTools.pens.ttGlyphPen import TTGlyphPen

    letters = sorted(set("".join(WRITINGS.values()) + JOINED))
    pen = TTGlyphPen(None)
    for step, place in enumerate([(0, 0), (0, 700), (500, 700), (500, 0)]):
        (pen.lineTo if step else pen.moveTo)(place)
    pen.closePath()
    names = [".notdef", *(f"u{ord(letter):04X}" for letter in letters), "nothing"]
    made = FontBuilder(1000, isTTF=True)
    made.setupGlyphOrder(names)
    made.setupCharacterMap(dict(zip(map(ord, letters), names[1:])))
    made.setupGlyf({**dict.fromkeys(names, pen.glyph()), "nothing": TTGlyphPen(None).glyph()})
    made.setupHorizontalMetrics(dict.fromkeys(names, (600, 0)))
    made.setupHorizontalHeader(ascent=800, descent=-200)
    made.setupNameTable({"familyName": "Squares Of A Test", "styleName": "Regular"})
    made.setupOS2()
    made.setupPost()
    addOpenTypeFeaturesFromString(made.font, RULES)
    made.save(tmp_path / "squares.ttf")
    manager = figure.font_manager.fontManager
    before = list(manager.ttflist)
    yield lambda: manager.addfont(tmp_path / "squares.ttf")
    manager.ttflist[:] = before


@pytest.mark.parametrize("writing", WRITINGS)
@pytest.mark.parametrize("suffix", [".png", ".pdf"])
def test_other_writings_are_painted_where_a_font_is_there_and_else_it_is_said(
    writing, suffix, squares, tmp_path, monkeypatch
):
    from minigrad.viz.drawing import figure

    monkeypatch.setattr(figure.ft2font, "__libraqm_version__", "any", raising=False)  # an old matplotlib says more
    word, manager = WRITINGS[writing], figure.font_manager.fontManager
    kept = [font for font in manager.ttflist if font.name.startswith("DejaVu")]  # what comes along with matplotlib
    monkeypatch.setattr(manager, "ttflist", kept)
    scene = Scene(120, 30, [Text(10, 20, word, 14)])
    without, drawn = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    has_all = all(any(ord(letter) in figure._letters(font.fname) for font in kept) for letter in word)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        scene.write(without)
    if has_all:
        assert said == []
    else:
        assert len(said) == 1 and f"so the {suffix} shows boxes: install one" in str(said[0].message)
        squares()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            scene.write(drawn)
        assert drawn.read_bytes() != without.read_bytes()


@pytest.fixture
def columns(tmp_path):
    """In which columns of the picture of a word there is ink."""
    figure = pytest.importorskip("minigrad.viz.drawing.figure", reason="needs matplotlib: pip install -e '.[viz]'")
    if not hasattr(figure.ft2font, "__libraqm_version__"):
        pytest.skip("this matplotlib does not join letters: pip install 'matplotlib>=3.11'")

    def drawn(word: str) -> list[bool]:
        Scene(120, 40, [Text(10, 28, word, 20)]).write(tmp_path / "word.png")
        pixels = np.asarray(pytest.importorskip("PIL.Image").open(tmp_path / "word.png").convert("L"))
        return (pixels < 128).any(axis=0).tolist()

    return drawn


def test_signs_of_devanagari_are_joined_as_the_font_says(squares, columns, monkeypatch):
    from minigrad.viz.drawing import figure

    manager = figure.font_manager.fontManager
    monkeypatch.setattr(manager, "ttflist", [font for font in manager.ttflist if font.name.startswith("DejaVu")])
    squares()
    assert any(columns("क")) and any(columns("ष")) and not any(columns(JOINED))
    assert columns("क" + JOINED) == columns("क") and columns("क्क") != columns("क")


def test_letters_of_arabic_run_from_the_right_and_join_unless_they_are_kept_apart(columns):
    def has_gap(ink: list[bool]) -> bool:
        return not all(ink[ink.index(True) : len(ink) - ink[::-1].index(True)])

    alone, word = (
        columns("س"),
        columns("اس"),
    )  # alef, which joins nothing after it, and seen, which so stands at the left
    width = len(alone) - alone[::-1].index(True)
    assert word[:width] == alone[:width] and sum(word) > sum(alone)
    assert not has_gap(columns("بب")) and has_gap(columns("ب\u200cب"))


def test_a_matplotlib_that_joins_no_letters_is_named(tmp_path, monkeypatch):
    figure = pytest.importorskip("minigrad.viz.drawing.figure", reason="needs matplotlib: pip install -e '.[viz]'")
    monkeypatch.delattr(figure.ft2font, "__libraqm_version__", raising=False)
    with pytest.warns(UserWarning, match="has ابحر one by one from the left: install matplotlib 3.11, which joins"):
        Scene(120, 30, [Text(10, 20, "بحرا", 14)]).write(tmp_path / "a.png")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Scene(120, 30, [Text(10, 20, "¿cuánto?", 14)]).write(tmp_path / "b.png")


def test_marks_on_letters_take_no_room_and_joiners_are_kept():
    assert text_width("e\u0301", 10) == text_width("e", 10) and text_width("好", 10) == 2 * text_width("e", 10)
    assert clean("می\u200cخواهم") == "می\u200cخواهم" and clean("a\u202eb\u200bc") == "a�b�c"
