"""The page of a graph in a real browser: from a file, without a network. What it shows are the numbers that were computed."""

import numpy as np
import pytest

import minigrad as mg
from minigrad.viz.drawing.arrays import array_text, brief

pytestmark = pytest.mark.graphviz

HOSTILE = '</script><script>alert(1)</script>" onload="alert(2) <img src=x onerror=alert(3)>\u202e\n' + "x" * 10_000


def leaf(values):
    return mg.tensor(np.asarray(values, "float64"), requires_grad=True)


@pytest.fixture
def teaching(tmp_path):
    """A graph with fan-out and broadcasting, whose numbers are known by hand."""
    x, w, b = leaf([1.0, 2.0, 3.0]), leaf(2.0), leaf([[1.0], [2.0]])

    def f(x, w, b):
        h = x * w + b  # [[3, 5, 7], [4, 6, 8]]
        return (h * h).sum()

    return mg.viz.graph(f, x, w, b).write(tmp_path / "teaching.html")


class Tower(mg.nn.Module):
    def __init__(self, layers=3):
        self.blocks = mg.nn.ModuleList([mg.nn.Linear(2, 2) for _ in range(layers)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x.sum()


@pytest.fixture
def tower(tmp_path):
    model = Tower()
    graph = mg.viz.graph(model, np.array([[1.0, -2.0]], "float32"))
    return graph, model, graph.write(tmp_path / "tower.html")


def box(page, label):
    """The box in the open picture whose first line is this."""
    return page.locator(".view:not([hidden]) .box").filter(has=page.locator("text", has_text=label)).first


def details(page):
    return page.locator("#details").inner_text()


def equations(page):
    return [" ".join(text.split()) for text in page.locator("#details .equation").all_inner_texts()]


def test_the_numbers_in_boxes_and_details_are_those_that_were_computed(teaching, open_page):
    page = open_page(teaching)
    shown = box(page, "sum").locator("text").all_text_contents()
    assert shown == ["sum", "float64", "199", "∇ 1"]
    box(page, "w").hover()
    assert "148" in details(page) and "float64" in details(page)
    box(page, "add").click()
    text = details(page)
    assert "[[3, 5, 7], [4, 6, 8]]" in text and "[[6, 10, 14], [8, 12, 16]]" in text
    assert "found" in box(page, "add").get_attribute("class")


def test_stepping_forward_hides_what_is_not_computed_yet(teaching, open_page):
    page = open_page(teaching)
    page.click("#next")
    assert page.locator("#where").inner_text() == "forward 1 of 4"
    assert details(page).startswith("forward: multiply") and "[2, 4, 6]" in details(page)
    assert box(page, "add").locator("text").nth(2).text_content() == "…"
    assert box(page, "x").locator("text").nth(2).text_content() == "[1, 2, 3]"
    assert box(page, "x").locator("text").nth(3).text_content() == "…"  # no gradient yet
    page.keyboard.press("ArrowRight")
    assert box(page, "add").locator("text").nth(2).text_content() == "3 … 8"


def test_every_backward_step_is_upstream_times_local_and_the_sums_by_hand(teaching, open_page):
    page = open_page(teaching)
    for _ in range(5):
        page.click("#next")
    assert page.locator("#where").inner_text() == "backward 1 of 4"
    assert equations(page)[0] == "1" and equations(page)[-1] == "= contribution [[1, 1, 1], [1, 1, 1]]"
    page.click("#next")
    assert equations(page) == [
        "[[1, 1, 1], [1, 1, 1]]",
        "arrived [[1, 1, 1], [1, 1, 1]] × local [[3, 5, 7], [4, 6, 8]]",
        "= contribution [[3, 5, 7], [4, 6, 8]]",
        "arrived [[1, 1, 1], [1, 1, 1]] × local [[3, 5, 7], [4, 6, 8]]",
        "= contribution [[3, 5, 7], [4, 6, 8]]",
        "add is used more than once: [[3, 5, 7], [4, 6, 8]] + [[3, 5, 7], [4, 6, 8]] = [[6, 10, 14], [8, 12, 16]]",
    ]
    page.click("#next")
    assert "= [[6, 10, 14], [8, 12, 16]]" in equations(page) and "= contribution [14, 22, 30]" in equations(page)
    assert any("was stretched to it" in line and "summed to (3,)" in line for line in equations(page))
    assert equations(page)[-1] == "= contribution [[30], [36]]"
    assert "now behind" in box(page, "add").get_attribute("class")
    page.click("#next")
    assert "= contribution [28, 44, 60]" in equations(page) and equations(page)[-1] == "= contribution 148"
    assert box(page, "w").locator("text").nth(3).text_content() == "∇ 148"
    assert page.locator("#next").is_disabled()


def test_stepping_all_the_way_and_back_leaves_everything_as_it_was(teaching, open_page):
    page = open_page(teaching)
    before = page.locator("#picture text").all_text_contents()
    for _ in range(8):
        page.keyboard.press("ArrowRight")
    assert page.locator("#where").inner_text() == "backward 4 of 4"
    for _ in range(8):
        page.keyboard.press("ArrowLeft")
    assert page.locator("#where").inner_text() == "4 steps forward, 4 back"
    assert page.locator("#picture text").all_text_contents() == before
    page.click("#next")
    page.click("#first")
    assert page.locator("#where").inner_text() == "forward 1 of 4"
    page.click("#leave")
    assert page.locator("#picture text").all_text_contents() == before


def test_play_goes_on_by_itself_and_pauses(teaching, open_page):
    page = open_page(teaching)
    page.click("#play")
    page.locator("#where", has_text="forward 2 of 4").wait_for()
    page.click("#play")
    assert page.locator("#play").inner_text() == "play"


def test_boxes_open_and_are_left_and_blocks_that_look_the_same_share_a_picture(tower, open_page):
    graph, model, path = tower
    page = open_page(path)
    assert "blocks.0 … 2 ×3" in page.locator(".view:not([hidden])").text_content()
    box(page, "blocks.0").click()
    assert page.locator("#trail button").all_inner_texts()[-1] == "blocks.0"
    weights = [b for b in graph.boxes if b.kind == "parameter" and b.label.endswith("weight")]
    for number, weight in enumerate(weights):
        page.select_option("#instance", str(number))
        shown = page.locator(".view:not([hidden]) .box.parameter text").all_text_contents()
        assert weight.label in shown
        np.testing.assert_array_equal(weight.value, model.blocks[number].weight.numpy())
        assert brief(weight.value, 34) in shown
        box(page, weight.label).hover()
        assert array_text(weight.value) in details(page) and array_text(weight.gradient) in details(page)
    page.keyboard.press("Escape")
    assert page.locator("#trail button").count() == 1
    box(page, "blocks.0").focus()
    page.keyboard.press("Enter")
    assert page.locator("#trail button").count() == 2
    page.locator("#trail button").first.click()
    assert page.locator("#trail button").count() == 1


def test_a_port_leads_to_where_it_comes_from(tower, open_page):
    _, _, path = tower
    page = open_page(path)
    box(page, "blocks.0").click()
    page.select_option("#instance", "1")
    box(page, "from add").click()
    assert page.locator("#instance").evaluate("select => select.selectedIndex") == 0
    assert page.locator(".view:not([hidden]) .box.found").count() == 1


def test_stepping_opens_the_module_that_computes(tower, open_page):
    graph, _, path = tower
    page = open_page(path)
    names = []
    for _ in range(len(graph.steps)):
        page.click("#next")
        names.append(page.locator("#trail button").last.inner_text())
        assert page.locator(".view:not([hidden]) .box.now").count() == 1
    assert list(dict.fromkeys(names)) == ["blocks.0", "blocks.1", "blocks.2", "Tower"]


def test_search_finds_by_name_op_shape_and_module_and_shows_it(tower, open_page):
    _, _, path = tower
    page = open_page(path)
    page.fill("#search", "blocks.1 weight")
    assert page.locator("#results").inner_text().startswith("1 found")
    page.locator("#results button").first.click()
    assert details(page).startswith("blocks.1.weight")
    assert page.locator("#trail button").last.inner_text() == "blocks.1"
    page.fill("#search", "matmul")
    assert page.locator("#results").inner_text().startswith("3 found")
    assert [text.split(" › ")[1] for text in page.locator("#results button").all_inner_texts()] == [
        "blocks.0", "blocks.1", "blocks.2",
    ]  # fmt: skip
    page.fill("#search", "no such thing")
    assert page.locator("#results").inner_text().startswith("0 found")
    page.fill("#search", "")
    assert page.locator("#results").is_hidden()


@pytest.mark.parametrize("dark", [False, True])
def test_colours_tell_costs_and_the_light_can_be_changed(tower, open_page, dark):
    _, _, path = tower
    page = open_page(path, dark=dark)
    paper = "rgb(20, 25, 31)" if dark else "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == paper
    box(page, "blocks.0").click()
    fill = "box => getComputedStyle(box.querySelector('rect, polygon')).fill"
    plain = box(page, "matmul").evaluate(fill)
    for color in ("flops", "bytes", "time"):
        page.select_option("#color", color)
        assert box(page, "matmul").evaluate(fill) != plain
    page.select_option("#color", "flops")
    assert box(page, "matmul").evaluate(fill) != box(page, "add").evaluate(fill)
    page.select_option("#color", "")
    assert box(page, "matmul").evaluate(fill) == plain
    page.click("[data-switch=theme]")
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") != paper


def test_arrows_show_forward_backward_or_both(teaching, open_page):
    page = open_page(teaching)
    ahead, back = ".view:not([hidden]) .edge .forward path", ".view:not([hidden]) .edge .backward path"
    assert page.locator(ahead).first.is_visible() and page.locator(back).first.is_visible()
    page.select_option("#direction", "forward")
    assert page.locator(ahead).first.is_visible() and not page.locator(back).first.is_visible()
    page.select_option("#direction", "backward")
    assert not page.locator(ahead).first.is_visible() and page.locator(back).first.is_visible()


def test_a_hostile_name_stays_text(tmp_path, open_page):
    class Odd(mg.nn.Module):
        def __init__(self):
            self.layer = mg.nn.Linear(2, 2)

        def forward(self, x):
            return self.layer(x) * 2

    model = Odd()
    model.layer._rename(HOSTILE)
    vars(model)[HOSTILE] = vars(model).pop("layer")
    vars(model)["layer"] = vars(model)[HOSTILE]
    graph = mg.viz.graph(model, np.ones((1, 2), "float32"), name=HOSTILE)
    page = open_page(graph.write(tmp_path / "hostile.html"))
    page.locator(".view:not([hidden]) .box.module").first.click()
    page.locator(".view:not([hidden]) .box.parameter").first.click()
    page.fill("#search", "script")
    page.locator("#results button").first.click()
    page.click("#next")
    assert page.locator("script").count() == 2 and page.locator("img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_a_large_graph_opens_and_its_parts_open(tmp_path, open_page):
    y = leaf(np.ones(3))
    for _ in range(1000):
        y = y * 1.001
    page = open_page(mg.viz.graph(y.sum()).write(tmp_path / "long.html"))
    assert "too many for one picture" in page.locator(".note").inner_text()
    box(page, "part 2 of 11").click()
    assert page.locator(".view:not([hidden]) .box").count() > 90
    page.click("#next")
    assert page.locator("#trail button").last.inner_text() == "part 1 of 11"


def test_texts_stay_inside_their_boxes(tower, open_page):
    _, _, path = tower
    page = open_page(path)
    box(page, "blocks.0").click()
    beyond = page.evaluate(
        """() => [...document.querySelectorAll('.view:not([hidden]) .box')].flatMap((box) => {
            const outline = box.querySelector('rect, polygon').getBoundingClientRect();
            return [...box.querySelectorAll('text')].filter((text) => {
                const place = text.getBoundingClientRect();
                return place.left < outline.left || place.right > outline.right || place.bottom > outline.bottom + 1;
            }).map((text) => text.textContent);
        })"""
    )
    assert beyond == []


@pytest.fixture
def large(tmp_path):
    """A graph of arrays that are too large to be written out, with fan-out; the gradient is 3·x² + 1."""
    values = np.linspace(-2, 1, 100).reshape(10, 10)
    graph = mg.viz.graph(lambda x: (x * x * x + x).sum(), leaf(values))
    return values, graph.write(tmp_path / "large.html")


def test_steps_of_large_arrays_are_told_by_one_of_their_numbers(large, open_page):
    _, path = large
    page = open_page(path)
    said = []
    while page.locator("#next").is_enabled():
        page.click("#next")
        said += equations(page)
    assert not any("mean" in line and (" + " in line or " × " in line or line.startswith("=")) for line in said)
    sums = [line for line in said if "contributions are added" in line]
    assert "at [0, 0]: " in sums[-1] and sums[-1].endswith("= 13")
    assert any("at [0, 0]: 1 × 4 = 4" in line for line in said)


def test_all_numbers_of_a_large_array_are_shown_when_asked(large, open_page):
    values, path = large
    page = open_page(path)
    box(page, "x").click()
    assert page.locator("table.numbers").count() == 0
    page.locator("button.numbers", has_text="gradient").click()
    shown = page.locator("table.numbers td").all_inner_texts()
    expected = 3 * values.ravel() ** 2 + 1
    np.testing.assert_allclose([float(text.replace("−", "-")) for text in shown], expected, rtol=1e-3)


def test_search_finds_modules_by_class_and_name(tower, open_page):
    page = open_page(tower[2])
    page.fill("#search", "linear")
    assert page.locator("#results").inner_text().startswith("3 found")
    page.locator("#results button").nth(1).click()
    assert page.locator("#trail button").last.inner_text() == "blocks.1" and "Linear" in details(page)


def test_a_cost_has_a_scale_and_its_number_in_every_box(tower, open_page):
    page = open_page(tower[2])
    assert page.locator("#scale").is_hidden()
    box(page, "blocks.0").click()
    page.select_option("#color", "flops")
    assert "8 FLOP" in box(page, "matmul").locator("text").all_text_contents()
    assert page.locator("#most").inner_text() == "up to 8 FLOP"
    page.select_option("#color", "")
    assert "(1, 2) float32" in box(page, "matmul").locator("text").all_text_contents()


def test_steps_call_inputs_by_their_place_and_not_by_a_letter(teaching, open_page):
    page = open_page(teaching)
    page.click("#next")
    assert equations(page)[:2] == ["first input: x = [1, 2, 3]", "second input: w = 2"]
    for _ in range(5):
        page.click("#next")
    assert page.locator("#details h3").all_inner_texts() == ["to first input: add", "to second input: add"]


def test_a_narrow_screen_does_not_scroll_sideways(tower, open_page):
    page = open_page(tower[2], width=400, height=800)
    page.select_option("#color", "flops")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
