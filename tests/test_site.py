"""The site: a part of it built by its command, without a warning; the rest of what goes into it, without building."""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support.browser import CHROMIUM

import minigrad
from minigrad.learn.notebooks import scripts
from minigrad.learn.play import PLAYS

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))  # pytest puts only the tests' own folder there

pytest.importorskip("myst_nb", reason="MyST-NB is not installed: pip install -e '.[docs]'")
pytest.importorskip("furo", reason="Furo is not installed: pip install -e '.[docs]'")

from docs.site import check, extension, reference, staging  # noqa: E402


@pytest.fixture(scope="module")
def part(tmp_path_factory) -> Path:
    """A tutorial, a guide, a model with its live page, and a package of the reference; as a stranger builds them."""
    out = tmp_path_factory.mktemp("site") / "site"
    pages = ["tutorials/01*", "docs/plugins", "models/xor/README", "reference/minigrad.autograd", "play"]
    command = [sys.executable, "-m", "docs.site", "-o", str(out), "--pages", *pages]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == f"wrote {out / 'index.html'}"
    return out


@pytest.mark.graphviz
def test_every_link_of_the_site_leads_somewhere_and_nothing_is_loaded_from_a_network(part):
    assert [*check.broken_links(part)] == []


@pytest.mark.graphviz
def test_a_tutorial_is_shown_with_what_it_prints_and_draws_and_its_formulas(part):
    page = (part / "tutorials" / "01_one_number_at_a_time.html").read_text(encoding="utf-8")
    assert "picture: build/tutorials/01_backward.html" in page
    images, frames = re.findall(r'<img alt="[\w ;]+" src="../_images/\w+.svg"', page), re.findall("<iframe ", page)
    assert images and len(images) + len(frames) == len(re.findall("picture: build/tutorials/", page)) > 3
    assert page.count("<iframe sandbox=") == len(frames) > 1  # graphs, too, are stepped through in the page
    assert '<math xmlns="http://www.w3.org/1998/Math/MathML"' in page and "$" not in re.sub("<[^>]+>", "", page)


@pytest.mark.graphviz
def test_the_page_of_a_model_holds_the_model_itself_and_how_it_learned(part):
    page = (part / "models" / "xor" / "README.html").read_text(encoding="utf-8")
    (address,) = re.findall(r'<iframe class="live" .* src="([^"]+)"', page)
    assert "xor" in (part / "models" / "xor" / address).resolve().read_text(encoding="utf-8")
    assert "curves.svg" in page


@pytest.mark.graphviz
def test_the_pages_to_play_with_are_there(part):
    page = (part / "play.html").read_text(encoding="utf-8")
    frames = re.findall(r'<iframe class="live" .* src="([^"]+)"', page)
    assert len(frames) == len(PLAYS) and all((part / frame).is_file() for frame in frames)


@pytest.mark.graphviz
def test_the_site_can_be_searched_and_shows_where_a_name_is_defined(part):
    assert "minigrad.autograd" in (part / "searchindex.js").read_text(encoding="utf-8")
    page = (part / "reference" / "minigrad.autograd.html").read_text(encoding="utf-8")
    (path, line) = re.findall(r'href="\.\./source/(minigrad/\S+?)\.html#L-(\d+)"', page)[0]
    assert "def grad(" in (ROOT / path).read_text(encoding="utf-8").splitlines()[int(line) - 1]
    assert f'id="L-{line}"' in (part / "source" / f"{path}.html").read_text(encoding="utf-8")


def test_links_that_lead_nowhere_are_told(tmp_path):
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="b.html#there"></a><a href="#here"></a><a href="c.html"></a>'
    )
    (tmp_path / "b.html").write_text('<a href="a.html#nowhere"></a><script src="https://example.org/x.js"></script>')
    told = [*check.broken_links(tmp_path)]
    assert [line.partition(": ")[2].partition(" ")[0] for line in told] == [
        "b.html#there",
        "c.html",
        "a.html#nowhere",
        "https://example.org/x.js",
    ]


@pytest.mark.skipif(CHROMIUM is None, reason="needs a browser: apt-get install chromium")
def test_what_a_browser_complains_of_is_told_of_each_page_and_window(tmp_path):
    pytest.importorskip("playwright", reason="needs playwright: pip install playwright")
    bodies = {
        "a": "<script>console.error('red')</script>",
        "b": "<p>",
        "c": "<script>throw Error('thrown')</script>",
        "d": '<p style="width: 800px">wide',
        "e": '<img src="http://127.0.0.1:9/x.png">',
    }
    for name, body in bodies.items():
        (tmp_path / f"{name}.html").write_text(f"<!doctype html><title>{name}</title>{body}")
    said: list[str] = []
    with ThreadPoolExecutor(1) as pool:  # an event loop that another test has left would be in the way
        told = pool.submit(lambda: [*check.complaints(tmp_path, said.append)]).result()
    assert said == ["walked 5 pages, 1280 wide, light", "walked 5 pages, 390 wide, dark"]
    assert {line for line in told if line.startswith(("a", "b", "c", "d"))} == {
        "a.html: red",
        "c.html: thrown",
        "d.html: is wider than 390",
    }
    assert (
        told.count("a.html: red") == told.count("c.html: thrown") == told.count("e.html: http://127.0.0.1:9/x.png") == 2
    )


def test_every_formula_of_the_tutorials_becomes_one_that_browsers_draw():
    texts = "\n".join(
        re.sub("^# ?", "", script.read_text(encoding="utf-8"), flags=re.M) for script in scripts(ROOT / "tutorials")
    )
    formulas = {
        (block, inline) for block, inline in re.findall(r"\$\$(.+?)\$\$|(?<![\w$])\$([^$\n]+)\$", texts, re.DOTALL)
    }
    assert len(formulas) > 300
    for block, inline in formulas:
        written = extension.mathml(block or inline, block=bool(block))
        drawn = ElementTree.fromstring(re.sub("&(?!lt;|gt;|amp;)\\w+;", lambda name: unescape(name[0]), written))
        assert drawn.tag == "{http://www.w3.org/1998/Math/MathML}math"


def test_the_reference_has_every_public_name():
    public = {name for _, name, is_package in pkgutil.iter_modules(minigrad.__path__) if is_package}
    assert {f"minigrad.{name}" for name in public - {"cli", "engine", "maths", "ops"}} <= {*reference.PACKAGES}
    pages = dict(reference.pages())
    for package in reference.PACKAGES:
        module = importlib.import_module(package)
        names = {name for name in module.__all__ if not inspect.ismodule(getattr(module, name))}
        told = re.findall(r"^`+\{py:\w+\} ([\w.]+)", pages[f"reference/{package}.md"], re.MULTILINE)
        assert names <= {*told}
    assert "reshape" in pages["reference/minigrad.md"] and "{py:method} backward(" in pages["reference/minigrad.md"]


def test_the_reference_shows_a_docstring_as_it_is_meant():
    text = "`Linear(2, 3)` of <x> & *y*:\n\n- one\n- `two`\n\n>>> 1 < 2\nTrue"
    assert reference.described(text, {"minigrad.nn.Linear"}, "minigrad.nn") == (
        "{py:obj}`Linear(2, 3) <minigrad.nn.Linear>` of \\<x\\> & \\*y\\*:\n\n- one\n- `two`\n\n```pycon\n>>> 1 < 2\nTrue\n```"
    )


def test_links_lead_to_pages_of_the_site_or_to_sources(tmp_path):
    names = {"docs/a.md": "docs/a.md", "models/xor/README.md": "models/xor/README.md", "README.md": "index.md"}
    text = (
        "[x](../models/xor) [y](../minigrad/tree.py#L-1) [z](../README.md#t) `[n](no.md)` [w](https://example.org)\n"
        "```text\n[n](no.md)\n```\n![p](pictures/graph.svg)"
    )
    assert staging.linked(text, "docs/a.md", names, tmp_path) == (
        "[x](../models/xor/README.md) [y](source:minigrad/tree.py#L-1) [z](../index.md#t) `[n](no.md)` [w](https://example.org)\n"
        "```text\n[n](no.md)\n```\n![p](pictures/graph.svg)"
    )
    assert (tmp_path / "docs" / "pictures" / "graph.svg").is_file()
