"""The tutorials as notebooks: executed, whole wherever they lie, and with a first cell that installs minigrad."""

import re
from pathlib import Path

import nbformat
import pytest

from minigrad.errors import ArgumentError, MissingExtraError
from minigrad.learn import notebooks
from minigrad.learn.notebooks import scripts, write_notebooks

ROOT = Path(__file__).resolve().parent.parent
TUTORIALS = ROOT / "tutorials"


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> list[Path]:
    """Two tutorials of a second each; the second loads nothing, and both draw."""
    pytest.MonkeyPatch().setenv("OPENBLAS_NUM_THREADS", "1")
    return [*write_notebooks(TUTORIALS, tmp_path_factory.mktemp("away") / "notebooks", only=["01", "10"])]


@pytest.mark.graphviz
def test_a_notebook_has_every_output_and_picture_of_its_tutorial(written):
    assert [path.stem for path in written] == ["01_one_number_at_a_time", "10_attention_by_hand"]
    for path in written:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
        outputs = [output for cell in code for output in cell.outputs]
        assert {output.output_type for output in outputs} == {"stream", "display_data"}
        assert {output.name for output in outputs if output.output_type == "stream"} == {"stdout"}
        printed = "".join(output.text for output in outputs if output.output_type == "stream")
        shown = ["".join(output.data) for output in outputs if output.output_type == "display_data"]
        pages = len(re.findall(r"^picture: .+[.]html$", printed, re.MULTILINE))
        assert len(re.findall(r"^picture: ", printed, re.MULTILINE)) == len(shown)
        assert sum("text/html" in kinds for kinds in shown) >= pages == 1
        assert all("image/svg+xml" in kinds or "text/html" in kinds for kinds in shown)


@pytest.mark.graphviz
def test_a_folder_of_notebooks_holds_what_they_need_and_keeps_what_they_draw(written):
    folder = written[0].parent
    assert {path.name for path in folder.iterdir()} == {
        *(path.name for path in written),
        "showing.py",
        "runs",
        "tests",
        "build",
    }
    assert (folder / "build" / "tutorials" / "01_backward.html").is_file()
    assert (folder / "runs" / "gpt" / "model.safetensors").read_bytes() == (
        TUTORIALS / "runs" / "gpt" / "model.safetensors"
    ).read_bytes()


def test_links_of_a_notebook_lead_where_those_of_its_tutorial_lead(tmp_path):
    paths = [*write_notebooks(TUTORIALS, tmp_path / "here", execute=False)]
    assert [path.stem for path in paths] == [script.stem for script in scripts(TUTORIALS)]
    links = [
        link
        for path in paths
        for cell in nbformat.read(path, as_version=4).cells
        if cell.cell_type == "markdown"
        for link in re.findall(r"\]\(([^)\s#]+)", cell.source)
        if "://" not in link
    ]
    assert any(link.endswith(".ipynb") for link in links) and any("minigrad/engine" in link for link in links)
    assert [link for link in links if not (tmp_path / "here" / link).exists()] == []


def test_the_first_cell_installs_the_wheel_that_is_given(tmp_path):
    wheel = tmp_path / "minigrad-1.whl"
    wheel.touch()
    (path,) = write_notebooks(TUTORIALS, tmp_path / "here", wheel=str(wheel), only=["03"], execute=False)
    (first, *rest) = nbformat.read(path, as_version=4).cells
    assert first.source == f"%pip install --quiet {str(wheel)!r}"
    (path,) = write_notebooks(TUTORIALS, tmp_path / "there", only=["03"], execute=False)
    assert [cell.source for cell in rest] == [cell.source for cell in nbformat.read(path, as_version=4).cells]


@pytest.mark.parametrize(
    ("given", "told"), [({"wheel": "nowhere.whl"}, "no such wheel"), ({"only": ["99"]}, "no such tutorial")]
)
def test_what_is_not_there_is_told(given, told, tmp_path):
    with pytest.raises(ArgumentError, match=told):
        next(write_notebooks(TUTORIALS, tmp_path, **given))


def test_without_what_writes_notebooks_the_extra_is_named(tmp_path, monkeypatch):
    def cannot(name: str):
        raise ImportError(name)

    monkeypatch.setattr(notebooks, "import_module", cannot)
    with pytest.raises(MissingExtraError, match=r"\[docs\]"):
        next(write_notebooks(TUTORIALS, tmp_path))
