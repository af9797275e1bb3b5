"""Pages of models that nobody trained, and an open page that a test drives."""

from pathlib import Path

import pytest

import minigrad as mg
from minigrad import zoo
from minigrad.zoo.config import configure
from minigrad.zoo.loaded import Loaded
from minigrad.zoo.pages import export_page

RUNS = Path(__file__).resolve().parent.parent.parent / "tutorials" / "runs"
FEW = "You are welcome. Where is the house? de nada ¿dónde está la casa? I see the red dog"


def fresh(name, tokenizer=None, **settings):
    """A model of the zoo that nobody trained, as if it had been loaded."""
    spec = name if isinstance(name, zoo.ModelSpec) else zoo.find(name)
    config = configure(spec, None, settings)
    mg.manual_seed(0)
    model = spec.build(config)
    model.eval()
    return Loaded(spec, config, model, tokenizer, {"data": None}, 0, Path("."))


def exported(name):
    return zoo.load(RUNS / name)


class Driven:
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

    @property
    def state(self):
        return self.page.text_content("#state")

    def bars(self, inside="#bars"):
        return [row.split("\t") for row in self.page.locator(f"{inside} .bar").evaluate_all(
            "rows => rows.map((row) => [...row.querySelectorAll('span')].map((x) => x.textContent).join('\\t'))"
        )]  # fmt: skip


@pytest.fixture
def opened(tmp_path, open_page):
    """Export a loaded model and open its page."""

    def open_it(loaded, weights=None, **options):
        return Driven(open_page(export_page(loaded, tmp_path / "page.html", weights), **options))

    return open_it
