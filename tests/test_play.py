"""The pages to play with, in a real browser: they compute what minigrad computes, fit a phone, and complain of nothing."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.cli import main
from minigrad.data import BPETokenizer, CharTokenizer, WordTokenizer
from minigrad.learn import TITLES, sheet
from minigrad.learn.play import PLAYS
from minigrad.learn.play.content import HOLLOWS, PIECES
from minigrad.nn import functional as F


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The folder with all pages."""
    folder = tmp_path_factory.mktemp("play")
    assert main(["learn", "play", str(folder)]) == 0
    assert {path.name for path in folder.iterdir()} == {"index.html", *(f"{name}.html" for name in PLAYS)}
    return folder


@pytest.mark.parametrize("name", ["index", *PLAYS])
@pytest.mark.parametrize(("dark", "width"), [(False, 390), (True, 1000)])
def test_a_page_opens_without_a_network_and_fits_its_window(name, dark, width, pages, open_page):
    page = open_page(pages / f"{name}.html", dark=dark, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if name != "index":
        assert page.inner_text("h1") == PLAYS[name].title


def test_the_weights_of_xor_give_what_minigrad_gives_and_learn(pages, open_page):
    page = open_page(pages / "xor.html")
    said, loss, *gradients = page.evaluate("run('step', ...parts())")
    weights = [np.reshape(part, shape) for part, shape in zip(page.evaluate("parts()"), ((2, 2), (2,), (2,), ()))]
    W, b, v, c = (mg.tensor(part, dtype="float32", requires_grad=True) for part in weights)
    x, wanted = mg.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]]), mg.tensor([0.0, 1, 1, 0])
    ours = mg.sigmoid((mg.sigmoid(x @ W + b) * v).sum(axis=-1) + c)
    value = ((ours - wanted) ** 2).mean()
    value.backward()
    np.testing.assert_allclose(said, ours.tolist(), atol=1e-6)
    np.testing.assert_allclose(loss, [value.item()], atol=1e-6)
    for theirs, own in zip(gradients, (W, b, v, c)):
        np.testing.assert_allclose(theirs, own.grad.numpy().ravel(), atol=1e-6)
    page.click("#learn")
    page.click("#learn")
    assert page.inner_text("#verdict").startswith("4 of 4 corners right")
    page.locator("#sliders input").first.fill("-30")
    assert page.evaluate("weights[0]") == -30 and "4 of 4" not in page.inner_text("#verdict")
    page.click("#hand")
    assert page.inner_text("#verdict").startswith("4 of 4 corners right, loss 2.0")


MAKE = {
    "SGD": lambda w, rate: mg.optim.SGD(w, lr=rate),
    "momentum": lambda w, rate: mg.optim.SGD(w, lr=rate / 2, momentum=0.9),
    "RMSprop": lambda w, rate: mg.optim.RMSprop(w, lr=rate),
    "Adam": lambda w, rate: mg.optim.Adam(w, lr=2 * rate),
}


def test_the_racers_go_the_way_of_minigrads_optimisers(pages, open_page):
    page = open_page(pages / "race.html")
    for name, (surface, _, start) in HOLLOWS.items():
        ways = page.evaluate(
            f"Object.fromEntries(Object.entries(RACERS).map(([k, r]) => [k, way(r, {name!r}, {list(start)}, 20)]))"
        )
        assert ways.keys() == MAKE.keys()
        for racer, way in ways.items():
            x, y = (mg.tensor(place, dtype="float64", requires_grad=True) for place in start)
            optimizer = MAKE[racer]([x, y], page.evaluate("rate"))
            for place in way["places"]:
                np.testing.assert_allclose(
                    place, [x.item(), y.item()], rtol=1e-3, atol=1e-4, err_msg=f"{name}, {racer}"
                )
                optimizer.zero_grad()
                surface(x, y).backward()
                optimizer.step()
    page.click("#surface", position={"x": 100, "y": 100})
    assert np.allclose(page.evaluate("start"), page.evaluate("ways.SGD.places[0]"))


def test_attention_is_minigrads_and_its_vectors_can_be_edited(pages, open_page):
    page = open_page(pages / "attention.html")
    page.locator("#vectors input").first.fill("2.5")
    q, k, v = (mg.tensor(page.evaluate("vectors")[name])[None, None] for name in "qkv")
    assert q[0, 0, 0, 0].item() == 2.5
    _, weights, output = page.evaluate("run('attend', vectors.q.flat(), vectors.k.flat(), vectors.v.flat())")
    np.testing.assert_allclose(output, F.scaled_dot_product_attention(q, k, v).numpy().ravel(), atol=1e-5)
    np.testing.assert_allclose(np.reshape(weights, (3, 3)).sum(axis=1), 1, atol=1e-5)
    assert page.locator("#weights-table td").first.inner_text() == f"{weights[0]:.2f}"
    before = page.evaluate("JSON.stringify(vectors.v)")
    page.select_option("#kind", "v")
    box = page.locator("#plane").bounding_box()
    page.mouse.move(box["x"] + 270, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 330, box["y"] + 120)
    page.mouse.up()
    assert page.evaluate("JSON.stringify(vectors.v)") != before


def test_the_tokenizers_cut_as_those_of_python(pages, open_page):
    page = open_page(pages / "tokenizer.html")
    text = "The slope of x² says: go down!\n  naïve <b>"
    page.fill("#text", text)
    learned = ["\n".join(sheet(number) for number in TITLES)]
    ours = {
        "byte pairs": BPETokenizer.train(learned, PIECES),
        "words": WordTokenizer.train(learned),
        "characters": CharTokenizer.train(learned),
    }
    for name, tokenizer in ours.items():
        titles = page.locator(f"[data-name='{name}'] span").evaluate_all("spans => spans.map((span) => span.title)")
        assert titles == [f"number {i}" for i in tokenizer.encode(text)]


def test_the_square_counts_the_products_of_a_block(pages, open_page):
    page = open_page(pages / "square.html")
    assert page.evaluate("run('cost', [7], [4])") == [[12 * 7 * 16], [2 * 49 * 4]]
    page.locator("#sliders input").first.fill("20")
    assert "20 words look at 20 words: 400 cells. Twice as many words: 4 times" in page.inner_text("#said")
