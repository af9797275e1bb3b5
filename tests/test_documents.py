"""What the documents say is so: their code runs and prints what they quote, their commands work, their links lead somewhere."""

from __future__ import annotations

import configparser
import doctest
import importlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from minigrad_models.corpora import phrasebook
from support.documents import PAGES, ROOT, Piece, Unknown, broken_links, docstrings, is_command, links, pieces, unfenced
from support.picture_files import READERS_OWN
from support.short_forms import Page

import minigrad
from minigrad.errors import MinigradError

sys.path.append(str(ROOT))  # pytest puts only the tests' own folder there

README = (ROOT / "README.md").read_text(encoding="utf-8")
MEASURED = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
PAIRS = phrasebook()[:200]
# What commands read that is said to be the reader's own.
INPUTS = {
    "my.txt": "".join(f"{source} {target}\n" for source, target in PAIRS),
    "pairs.tsv": "".join(f"{source}\t{target}\n" for source, target in PAIRS),
    "text.en": "".join(f"{source}\n" for source, _ in PAIRS),
    "text.de": "".join(f"{target}\n" for _, target in PAIRS),
    "labelled.tsv": "".join(f"{source}\tEnglish\n{target}\tSpanish\n" for source, target in PAIRS),
    "five.txt": "#####\n#....\n####.\n....#\n####.\n",
    "train.py": """
import minigrad as mg
from minigrad.train import ListBatches, Trainer

model = mg.nn.Linear(3, 1)
loss = lambda model, rows: {"loss": ((model(mg.tensor(rows)) ** 2).sum(), len(rows))}
data = ListBatches([mg.ones(4, 3).numpy()])
Trainer(model, loss, data, mg.optim.SGD(model.parameters(), lr=0.1), out="runs/ranks", max_steps=2).train()
""",
}
# What a page leaves behind, in its folder and in one of its runs.
LEFT = {
    "docs/training.md": (
        "runs/circle",
        "config.json metrics.csv timing.csv checkpoints latest best lock report.html",
    ),
    "docs/seeing.md": (
        ".",
        "error.html error.svg encoder.html encoder.svg failed.svg attention.html head.svg search.svg next.svg map.svg "
        "curves.svg lines.svg runs curves.png xor.html",
    ),
}


def label(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def follow(found: Sequence[Piece], folder: Path, model: str | None = None) -> dict[Piece, str]:
    """Do in a folder what a page says, all in one process, in its order; what each piece printed."""
    page = Page(model)
    for piece in found:
        page.add(piece)
    for name, text in INPUTS.items():
        if any(name in piece.text for piece in found) or any(name in step.words for step in page.steps):
            (folder / name).write_text(text, encoding="utf-8")
    for name, make in READERS_OWN.items():
        if any(name in step.words for step in page.steps):
            make(folder / name)
    given = [
        {"words": step.words, "settings": step.settings}
        if step.words
        else {"code": step.piece.text, "place": f"line {step.piece.line}"}
        for step in page.steps
    ]
    before, (todo, done) = {*folder.iterdir()}, (folder / name for name in ("steps.json", "done.json"))
    todo.write_text(json.dumps(given), encoding="utf-8")
    settings = {"OPENBLAS_NUM_THREADS": "1", "MINIGRAD_KERNELS": "numpy", **os.environ, "PYTHONUTF8": "1"}
    settings["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, str(ROOT / "tests" / "support" / "document_runner.py"), str(todo), str(done)]
    subprocess.run(command, cwd=folder, env=settings, check=True, stdin=subprocess.DEVNULL, timeout=600)
    printed: dict[Piece, str] = {}
    for step, result in zip(page.steps, json.loads(done.read_text(encoding="utf-8"))):
        said = f"{result['problem']}\n{result['out'][-2000:]}\n{result['err'][-3000:]}"
        assert not result["problem"], f"line {step.piece.line}: {' '.join(step.words) or step.piece.text}: {said}"
        if not step.words:  # all that a block may say besides what it prints is a remark of minigrad's own
            assert re.fullmatch(r"(minigrad: .*\n)*", result["err"]), said
        printed[step.piece] = printed.get(step.piece, "") + result["out"]
    for path in (todo, done, *before):
        path.unlink() if path.is_file() else shutil.rmtree(path)
    return printed


def misquoted(found: Sequence[Piece], printed: dict[Piece, str]) -> list[str]:
    """Lines of quotations that were not printed.

    What stands right behind a block of Python, or behind "It prints", is all that it prints; further on, it is some
    lines of that.
    """
    wrong, last = [], None
    for piece in found:
        if piece.kind in ("python", "shell"):
            last = piece if piece.kind == "python" else None
        elif piece.kind == "text" and last is not None:
            quoted, out = piece.text.splitlines(), printed[last].splitlines()
            rest = iter(out)
            is_whole = piece.gap in ("", "It prints", "It prints:")
            if is_whole:
                wrong += [piece.text] * (out != quoted)
            else:
                wrong += [line for line in quoted if line not in rest]
    return wrong


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.graphviz) if p.name == "seeing.md" else p for p in PAGES],
    ids=label,
)
def test_a_page_does_what_it_says(page, tmp_path):
    found = list(pieces(page.read_text(encoding="utf-8")))
    if page.name == "CONTRIBUTING.md":  # its Python goes into files: see test_contributing.py
        found = [piece for piece in found if piece.kind != "python"]
    model = page.parent.name if page.parent.parent.name == "models" else None
    printed = follow(found, tmp_path, model)
    assert misquoted(found, printed) == []
    for settings in (piece.text for piece in found if piece.kind == "ini"):
        configparser.ConfigParser().read_string(settings)
        assert all(settings in path.read_text(encoding="utf-8") for path in tmp_path.glob("*/setup.cfg"))
    if label(page) in LEFT:
        folder, names = LEFT[label(page)]
        assert {path.name for path in (tmp_path / folder).iterdir()} == set(names.split())


def test_every_command_of_a_docstring_works(tmp_path):
    found = [piece for _, _, text in docstrings() for piece in pieces(text)]
    assert len({piece.text for piece in found}) > 30
    follow(found, tmp_path)


def test_no_page_has_python_outside_of_fences():
    assert {label(page): found for page in PAGES if (found := unfenced(page.read_text(encoding="utf-8")))} == {}


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_every_link_of_a_page_leads_to_a_file_or_to_a_title(page):
    assert broken_links(page) == []


def test_the_readme_has_one_line_for_the_demo_and_one_for_the_tests():
    lines = [piece.text for piece in pieces(README) if piece.kind == "shell"]
    (demo,) = (line for line in lines if line.endswith(".venv/bin/minigrad demo"))
    assert demo.startswith("python3 -m venv .venv && .venv/bin/pip install ")
    assert command_of_the_tests() in lines


def command_of_the_tests() -> str:
    """The line of the README that runs the tests."""
    (line,) = re.findall(r"^<!-- tests -->\n```sh\n(.*)\n```$", README, re.MULTILINE)
    assert line.startswith("python3 -m venv .venv && .venv/bin/pip install ")
    assert "'.[test]'" in line and ".venv/bin/python -m pytest" in line
    return line


def test_ci_takes_the_test_command_from_the_readme():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (extraction,) = re.findall(r"^command=\$\((.*)\)$", script, re.MULTILINE)
    done = subprocess.run(["bash", "-c", extraction], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == [command_of_the_tests()]
    assert "pytest" not in script.replace(extraction, "")


def test_commands_for_windows_are_those_for_linux():
    known = {piece.text for piece in pieces(README) if piece.kind == "shell"}
    seen = 0
    for page in PAGES:
        found = pieces(page.read_text(encoding="utf-8"))
        for block in (piece.text for piece in found if piece.kind == "bat"):
            as_linux = block.replace("py -m", "python3 -m").replace(".venv\\Scripts\\", ".venv/bin/")
            assert {re.sub(r"(\.\[[\w,]+\])", r"'\1'", line) for line in as_linux.splitlines()} <= known
            seen += 1
    assert seen


def run(*words: str) -> str:
    """What a module prints, called from the checkout."""
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.graphviz
def test_the_table_of_the_architecture_has_every_part_on_its_line():
    from docs.architecture import LAYERS

    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \d+ \| (.*?) \|", text, re.MULTILINE)
    assert [set(re.findall(r"`(\w+)`", row)) for row in rows] == [set(parts) for parts in LAYERS]


def test_a_page_says_where_every_package_is():
    packages = {f"minigrad/{path.parent.name}" for path in (ROOT / "minigrad").glob("*/__init__.py")}
    where = (ROOT / "docs" / "where.md").read_text(encoding="utf-8")
    assert "minigrad/web" in packages and packages <= set(
        re.findall(r"^\| \[(.+?)\]\(\.\./\1\) \|", where, re.MULTILINE)
    )


def test_the_readme_is_two_screens_and_leads_to_every_guide():
    assert len(README.splitlines()) <= 120
    linked = {(ROOT / link.partition("#")[0]).resolve() for link in links(README)}
    guides = {*(ROOT / "docs").glob("*.md"), ROOT / "models" / "README.md", ROOT / "benchmarks" / "README.md"}
    behind = {
        (page.parent / link.partition("#")[0]).resolve()
        for page in linked
        if page.suffix == ".md"
        for link in links(page.read_text(encoding="utf-8"))
    }
    assert {label(page) for page in guides - linked - behind} == set()


def test_the_op_of_ones_own_that_a_guide_shows_passes_its_check():
    guide = (ROOT / "docs" / "howto.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| add an op of your own, and check it \| (.*) \|$", guide, re.MULTILINE)
    declared, rule, check = re.findall(r"`(.+?)`", row)
    names = {"mg": minigrad}
    exec(f"{declared.replace('@mg.op ', '@mg.op' + chr(10))}\n{rule}\nfound = {check}", names)
    assert names["found"].ok and names["found"].compared


def test_the_picture_of_the_architecture_shows_what_imports_what_today(tmp_path):
    """Another Graphviz may lay it out otherwise: what is compared are its boxes and arrows, and their texts."""
    run("docs.architecture", "-o", str(tmp_path / "drawn.svg"))
    drawn, kept = (
        {
            re.sub(r' (x|y|d|points|width|height)="[^"]*"', "", tag)
            for tag in re.findall(r"<g [^>]*>|<text.*?</text>", text)
        }
        for path in (tmp_path / "drawn.svg", ROOT / "docs" / "pictures" / "architecture.svg")
        for text in [path.read_text(encoding="utf-8")]
    )
    assert len(drawn) > 50
    assert drawn == kept, "run python -m docs.architecture"


@pytest.mark.graphviz
def test_the_pictures_of_the_readme_can_be_drawn_again(tmp_path):
    run("docs.front", "-o", str(tmp_path))
    drawn = (tmp_path / "graph.svg").read_text(encoding="utf-8")
    hidden = re.findall(r"(\[data-[^{}]+)\{animation:(\w+) ", drawn)
    assert {name for _, name in hidden} == {*re.findall(r"@keyframes (\w+)\{", drawn)} and len(hidden) > 10
    assert {key for keys, _ in hidden for key in re.findall(r"=(\w+)", keys)} <= {
        *re.findall(r'data-key="(\w+)"', drawn)
    }


def test_a_result_of_a_real_training_is_reported_in_a_short_form(tmp_path):
    printed = run("benchmarks.trained", "sort", "--quick", "--json", "--folder", str(tmp_path))
    result = json.loads(printed.splitlines()[-1])
    assert result["detail"]["task"] == "sort" and 0 <= result["right"] <= result["asked"] == 5000


def results_of(command: str) -> str:
    """The section of the results that a command wrote."""
    sections = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8").split("\n## ")
    options = r"( --(json|write)| --\w+ PATH)*"
    pattern = rf"^`{command.replace(' --', options + ' --')}{options}`"
    (section,) = (text for text in sections if re.search(pattern, text, re.MULTILINE))
    return section


def is_among(number: str, measured: Sequence[str]) -> bool:
    """Is it one of those that were measured, as far as it has digits?"""
    digits = len(number.partition(".")[2])
    return any(f"{float(value):.{digits}f}" == number for value in measured)


def test_the_speeds_that_are_told_are_those_that_were_measured():
    rows = re.findall(r"^\|.+?\|(.*?)\|(.*?)\| `(python -m benchmarks[^`]+)` \|$", MEASURED, re.MULTILINE)
    assert len(rows) >= 7
    for with_numba, without, command in rows:
        ratios = re.findall(r" / .*: (\d+\.\d+)(?: \(|$)", results_of(command), re.MULTILINE)
        for number in re.findall(r"[\d.]+", f"{with_numba} {without}"):
            assert is_among(number, ratios), f"{command}: {number}"


def test_the_scores_that_are_told_are_those_that_were_measured():
    rows = re.findall(r"^\| `([\w-]+)`: .* \| (.*) \| (.*) \|$", MEASURED, re.MULTILINE)
    assert len(rows) >= 6
    for task, came_to, minutes in rows:
        section = results_of(f"python -m benchmarks.trained {task}")
        for number in re.findall(r"\d+\.\d+", came_to):
            assert is_among(number, re.findall(r"\d+\.\d+", section)), f"{task}: {number}"
        for took in re.findall(r"trained in ([\d.]+) minutes", section):
            assert minutes.startswith(took), task


def test_the_guide_to_pictures_names_all_of_them():
    import minigrad.viz

    guide = (ROOT / "docs" / "seeing.md").read_text(encoding="utf-8")
    functions = [name for name in minigrad.viz.__all__ if name[0].islower()]
    assert [name for name in functions if f"{name}(" not in guide] == []


def module_of(path: Path) -> str:
    """The name by which a file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return re.sub("^models", "minigrad_models", name)


def test_examples_that_pytest_does_not_find_run():
    """It finds those of minigrad's functions and classes, by an option in setup.cfg: not those of ops, nor of models."""
    found = {
        (module_of(path), name): text for path, name, text in docstrings() if re.search("^>>> ", text, re.MULTILINE)
    }
    modules = {module: importlib.import_module(module) for module, _ in found}
    by_pytest = {
        test.name
        for module, thing in modules.items()
        for test in doctest.DocTestFinder().find(thing)
        if test.examples and module.startswith("minigrad.")
    }
    rest = {key: text for key, text in found.items() if ".".join(filter(None, key)) not in by_pytest}
    assert {("minigrad.ops.neural.softmax", "softmax"), ("minigrad_models.xor.model", "answers_by_hand")} <= rest.keys()
    assert len(rest) < len(found) / 4
    for (module, name), text in rest.items():
        test = doctest.DocTestParser().get_doctest(text, {**vars(modules[module])}, f"{module}.{name}", module, 0)
        assert test.examples and doctest.DocTestRunner().run(test).failed == 0, name


# What the blocks of a module's docstring take for granted, besides the module's own names.
GRANTED = {"minigrad.kernels.registry": "forward, backward, accepts = None, None, None"}


def blocks_of_docstrings() -> dict[str, str]:
    """The indented blocks of docstrings that are no commands, by module."""
    found = {}
    for path, _, text in docstrings():
        parts = re.split(r"\n\s*\n", text)
        indented = "\n\n".join(part for part in parts if part.startswith("    ") and not is_command(part))
        if indented:
            found[module_of(path)] = inspect.cleandoc(f"\n{indented}")
    return found


def test_blocks_of_docstrings_run(tmp_path):
    found = blocks_of_docstrings()
    formulas = {module for module, block in found.items() if "·" in block}
    settings = {module for module, block in found.items() if block.startswith("[")}
    assert formulas == {"minigrad.metrics.bleu"} and settings == {"minigrad.zoo.spec"}
    code = {module: block for module, block in found.items() if module not in formulas | settings}
    assert {"minigrad.engine.op", "minigrad.kernels.registry", "minigrad.nn.functional.declaration"} <= code.keys()
    for module, block in code.items():
        whole = f"{block} ..." if block.endswith(":") else block  # a head alone
        before = f"from __future__ import annotations\nimport {module} as own\nglobals().update(vars(own))\n{GRANTED.get(module, '')}\n"
        follow([Piece("python", before + whole, 1)], tmp_path)
    configparser.ConfigParser().read_string(found["minigrad.zoo.spec"])


@pytest.mark.parametrize(
    ("page", "told"),
    [
        ("```python\nprint(1 / 0)\n```", "ZeroDivisionError"),
        ("```python\nimport warnings\nwarnings.warn('old')\n```", "UserWarning: old"),
        ("`minigrad show nothing`", "there is no model 'nothing'"),
        ("```sh\nminigrad predict runs/nothing 1\n```", "there is no model 'nothing'"),
        ("`minigrad train xor hiden=3`", "did you mean 'hidden'"),
        ("`minigrad fly to the moon`", "there is no verb 'fly'"),
        ("    python -m benchmarks.overhead --fast", "it is called otherwise"),
        ("`python -m benchmarks.nothing`", "there is no benchmarks.nothing"),
        ("`python -m timeit 1`", "no short form of timeit is known"),
        ("`python tutorials/99.py`", "the tests run no script tutorials/99.py"),
        ("`python -m pytest tests/test_nothing.py`", "there is no tests/test_nothing.py"),
        ("`pip install -e '.[nothing]'`", "there is no such extra"),
        ("`pip install torch==1.0`", "CI installs another version"),
        ("`.venv/bin/ruff check minigrad`", "CI does not run it"),
        ("`mpiexec -n 2 python other.py`", "only mpiexec -n N python train.py is known"),
        ("```sh\nrm -r runs\n```", "no short form of it is known"),
        ("```c\nint x;\n```", "nothing here can try a block of 'c'"),
        ("> ```python\n> print(1)\n> ```", "a block begins with ```"),
        ("~~~python\nprint(1)\n~~~", "a block begins with ```"),
        ("```text\n1\n\n`minigrad fly`", "the block has no end"),
        ("python -m docs.site --fast", "it is called otherwise"),
        ("`minigrad train xor [--fast]`", "--fast in brackets is not tried"),
    ],
)
def test_what_does_not_work_is_told(page, told, tmp_path):
    with pytest.raises((AssertionError, Unknown, MinigradError)) as problem:
        follow(list(pieces(page)), tmp_path)
    assert told in str(problem.value)


@pytest.mark.parametrize(
    ("gap", "quoted", "is_right"),
    [
        ("", "1\n2\n3\n", True),
        ("", "1\n2\n", False),
        ("", "1\n3\n2\n", False),
        ("It prints", "1\n3\n", False),
        ("Some of it:", "1\n3\n", True),
        ("Some of it:", "3\n1\n", False),
        ("Some of it:", "4\n", False),
    ],
)
def test_what_is_quoted_must_be_printed(gap, quoted, is_right):
    """All of it right behind a block, or else some lines in their order."""
    block = Piece("python", "", 1)
    assert (misquoted([block, Piece("text", quoted, 2, gap)], {block: "1\n2\n3\n"}) == []) is is_right


@pytest.mark.parametrize(
    ("page", "count"),
    [
        ("Text:\n\n    import minigrad as mg\n    print(mg.nothing)\n", 1),
        ("Text:\n\n\tprint(1)\n\nMore.\n\n    x = 1\n", 2),
        ("Text:\n\n    minigrad train xor\n\n    loss 0.5 after 3 steps\n", 0),
        ("1. Text.\n\n   ```python\n   if True:\n\n       x = 1\n   ```\n", 0),
    ],
)
def test_python_outside_of_fences_is_found(page, count):
    assert len(unfenced(page)) == count


def test_links_that_lead_nowhere_are_told(tmp_path):
    (tmp_path / "other.md").write_text("# A title: with `code`\n\n```sh\n# no title\n```\n")
    page = tmp_path / "page.md"
    right = (
        "[a](other.md) [b](other.md#a-title-with-code) [c](#here) ![d](.) [e](https://example.org/x) `[f](nowhere.md)`"
    )
    page.write_text(f"## Here\n{right}\n")
    assert broken_links(page) == []
    wrong = (
        "[g](nowhere.md) [h](other.md#no-title) ![i](j.svg) [k](l.md 'of a name') <img alt='' src='m.png'>\n[n]: o.md"
    )
    page.write_text(f"{right} {wrong}\n")
    expected = ["#here", "nowhere.md", "other.md#no-title", "j.svg", "l.md", "m.png", "o.md"]
    assert broken_links(page) == expected
