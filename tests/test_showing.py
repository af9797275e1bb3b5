"""What the tutorials show with: as a script and in a notebook."""

import importlib
import re
import sys
from html import unescape
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import minigrad as mg
from minigrad.errors import MissingExtraError


@pytest.fixture
def showing(monkeypatch, tmp_path) -> ModuleType:
    """The module, which writes into a folder that is not there yet."""
    monkeypatch.syspath_prepend(Path(__file__).resolve().parent.parent / "tutorials")
    module = importlib.import_module("showing")
    monkeypatch.setattr(module, "FOLDER", tmp_path / "build" / "tutorials")
    return module


@pytest.fixture
def displayed(monkeypatch) -> list:
    """What a notebook displays, from now on: this process passes for one."""
    shown: list = []
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=shown.append))
    return shown


@pytest.mark.graphviz
def test_a_notebook_displays_a_picture_and_has_the_file_that_the_prose_speaks_of(showing, displayed, capsys):
    graph = mg.viz.graph(lambda a: a * a, 3.0)
    showing.show(graph, "square")
    assert displayed == [graph]
    assert (showing.FOLDER / "square.svg").stat().st_size > 500
    assert capsys.readouterr().out == f"picture: {Path('build/tutorials/square.svg')}\n"


@pytest.mark.graphviz
def test_a_notebook_shows_a_page_in_a_frame_of_its_own(showing, displayed, capsys):
    showing.show(mg.viz.graph(lambda a: a * a, 3.0), "page.html")
    written = (showing.FOLDER / "page.html").read_text(encoding="utf-8")
    (frame,) = re.findall('<iframe sandbox="allow-scripts" .* srcdoc="([^"]+)"></iframe>', displayed[0]._repr_html_())
    assert unescape(frame) == written
    assert capsys.readouterr().out == f"picture: {Path('build/tutorials/page.html')}\n"


def test_a_script_displays_nothing(showing, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    showing.show(mg.viz.heatmap([[1.0]], ["a"], ["b"]), "one")
    assert capsys.readouterr().out == f"picture: {Path('build/tutorials', 'one.svg')}\n"


def test_a_notebook_that_cannot_lay_a_graph_out_shows_its_numbers_as_text(showing, displayed, monkeypatch, capsys):
    graph = mg.viz.graph(lambda a: a * a, 3.0)

    def cannot(path):
        raise MissingExtraError("Graphviz is not installed")

    monkeypatch.setattr(graph, "write", cannot)
    showing.show(graph, "square")
    printed = capsys.readouterr().out
    assert "no picture: Graphviz is not installed" in printed
    assert graph.text() in printed
    assert displayed == []
