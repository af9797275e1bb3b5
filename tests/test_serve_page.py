"""The page of a served model in a real browser: the server computes, and the page shows what Python says."""

import time
from pathlib import Path

import pytest
from support.serving import TOKEN, served

from minigrad import zoo
from minigrad.decode import Sampling

RUNS = Path(__file__).resolve().parent.parent / "tutorials" / "runs"


@pytest.fixture
def visit(browser):
    """Open the page of a served model; afterwards no page may have complained."""
    contexts, complaints = [], []

    def open_it(server, **options):
        context = browser.new_context(reduced_motion="reduce", **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda asked: complaints.append(asked.url) if server.address not in asked.url else None)
        page.goto(f"{server.address}/{TOKEN}/")
        return Visited(page)

    yield open_it
    for context in contexts:
        context.close()
    assert complaints == []


class Visited:
    """An open page: what it says to a text, once it is done."""

    def __init__(self, page):
        self.page = page
        self.wait()

    def wait(self):
        self.page.locator("body[data-state=idle], body[data-state=failed]").wait_for()

    def say(self, text):
        self.page.evaluate(
            "text => { const i = document.getElementById('input'); i.value = text; i.dispatchEvent(new Event('input')); }",
            text,
        )
        self.wait()
        return self.page.text_content("#output")


def test_a_language_model_writes_as_it_comes_and_can_be_stopped(visit, monkeypatch):
    loaded = zoo.load(RUNS / "gpt")
    with served(loaded) as server:
        page = visit(server)
        page.page.evaluate("document.getElementById('temperature').value = 0")
        page.page.evaluate("document.getElementById('tokens').value = 30")
        assert page.say("Ana") == "".join(loaded.sample("Ana", tokens=30, sampling=Sampling(0)))
        assert "on the server" in page.page.text_content("#state")
        page.page.evaluate(
            "const p = document.getElementById('place'); p.value = 1; p.dispatchEvent(new Event('input'));"
        )
        assert page.page.locator("#bars .bar").count() == 8
        page.page.evaluate("document.getElementById('tokens').value = 1000")
        before, write = server.app.worker.counts["cancelled"], server.app.worker._write
        # As slowly as a model writes that is not tiny, so that there is something to stop.
        monkeypatch.setattr(server.app.worker, "_write", lambda: (time.sleep(0.01), write()))
        page.page.evaluate("document.getElementById('input').dispatchEvent(new Event('input'))")
        waits = page.page.wait_for_timeout
        assert any(server.app.worker.state["writing"] == 1 or waits(20) for _ in range(200))
        page.page.click("#stop")
        page.page.wait_for_function("document.getElementById('state').textContent === 'Stopped.'")
        assert any(server.app.worker.state["writing"] == 0 or waits(20) for _ in range(200))
        assert server.app.worker.counts["cancelled"] > before


@pytest.mark.parametrize("options", [{}, {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}}])
def test_a_translator_shows_alternatives_and_where_it_looked(visit, options):
    loaded = zoo.load(RUNS / "translator")
    with served(loaded) as server:
        page = visit(server, **options)
        for text in ("You are welcome", "Where is the library? Thank you!"):
            (wanted,) = loaded.translate([text])
            assert page.say(text) == wanted.text
            assert page.page.locator("#alternatives li").count() == len(wanted.best)
        assert page.page.locator("#alignment table").count() == 2
        assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.say(" ") == ""


def test_a_model_that_no_page_can_hold_is_asked_by_predict(visit, monkeypatch):
    from minigrad.serve import page as pages

    monkeypatch.setattr(pages, "LARGEST", 0)
    loaded = zoo.load(RUNS / "bert")
    text = loaded.spec.inputs_for(loaded.config)[0]
    with served(loaded) as server:
        page = visit(server)
        said = page.say(text)
    (answer,) = loaded.predict(text)
    assert all(f"{name}: " in said for name in answer) and str(answer["input"]) in said


def test_a_page_that_fits_runs_in_the_browser(visit):
    loaded = zoo.load(RUNS / "vit")
    with served(loaded) as server:
        page = visit(server)
        assert (
            "this browser" in page.page.text_content("#state") or page.page.text_content("#state") == "Draw something."
        )
        assert server.app.worker.counts["answered"] == 1  # the page itself
