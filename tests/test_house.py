"""Rules that hold the house together: which way imports point, what code must not do, and that the README is true."""

import ast
import graphlib
import inspect
import os
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import minigrad as mg

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted((ROOT / "minigrad").rglob("*.py"))
README = (ROOT / "README.md").read_text(encoding="utf-8")

# Each part of minigrad may import from its own line and from those above; `minigrad` is the package's own __init__.py.
LAYERS = [
    {"engine"},
    {"ops", "kernels"},
    {"functions", "autograd", "transforms", "saving"},
    {"check", "nn", "optim"},
    {"minigrad"},
    {"data", "decode", "metrics", "train", "viz"},
    {"zoo"},
    {"cli"},
    {"__main__"},
]
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}


def label(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_parts(path: Path) -> list[str]:
    """`minigrad/ops/shape.py` -> ["minigrad", "ops", "shape"]; a package's own file ends in "__init__"."""
    return list(path.relative_to(ROOT).with_suffix("").parts)


def imported_modules(path: Path) -> Iterator[str]:
    """The absolute dotted name of everything a file imports, at its top or inside a function, but not for types alone."""
    package = module_parts(path)[:-1]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if node in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = [*base, *(node.module.split(".") if node.module else [])]
            yield from (".".join([*stem, name.name]) for name in node.names)


def part_of(module: str) -> str:
    """Which part of minigrad an imported name belongs to: `minigrad.ops.shape.stack` -> "ops", `minigrad.Tensor` -> "minigrad"."""
    names = module.split(".")
    if len(names) > 1 and ((ROOT / "minigrad" / names[1]).is_dir() or (ROOT / "minigrad" / f"{names[1]}.py").is_file()):
        return names[1]
    return "minigrad"


def edges() -> set[tuple[str, str, str]]:
    """(file, the part it is in, a part of minigrad it imports)."""
    found = set()
    for path in FILES:
        name = module_parts(path)[1]
        own = "minigrad" if name == "__init__" else name
        for module in imported_modules(path):
            if module.split(".")[0] == "minigrad" and part_of(module) != own:
                found.add((label(path), own, part_of(module)))
    return found


def test_every_part_of_minigrad_has_its_place_in_the_order_of_imports():
    parts = {"minigrad" if (name := module_parts(path)[1]) == "__init__" else name for path in FILES}
    assert {"engine", "ops", "minigrad", "cli"} <= parts
    assert parts <= LEVEL.keys()


def test_imports_point_one_way():
    found = edges()
    assert ("minigrad/cli/__init__.py", "cli", "minigrad") in found
    assert [edge for edge in found if LEVEL[edge[2]] > LEVEL[edge[1]]] == []


def test_no_two_parts_import_each_other():
    graph: dict[str, set[str]] = {}
    for _, importer, imported in edges():
        graph.setdefault(importer, set()).add(imported)
    order = list(graphlib.TopologicalSorter(graph).static_order())
    assert order.index("engine") < order.index("ops") < order.index("minigrad") < order.index("cli")


@pytest.mark.parametrize("path", FILES, ids=label)
def test_minigrad_never_imports_a_model_or_a_test(path):
    roots = {module.split(".")[0] for module in imported_modules(path)}
    assert roots.isdisjoint({"models", "minigrad_models", "tests", "benchmarks"})


CODE_AS_DATA = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
RUNS_CODE = {"eval", "exec", "compile", "__import__", "os.system", "os.popen"}


def dangerous(tree: ast.AST) -> Iterator[str]:
    """Ways to run code that came as data."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [name.name for name in node.names]
            yield from (name for name in names if name.split(".")[0] in CODE_AS_DATA)
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called.removeprefix("builtins.") in RUNS_CODE:
                yield called
            for keyword in node.keywords:
                if keyword.arg in {"shell", "allow_pickle"} and ast.unparse(keyword.value) != "False":
                    yield f"{keyword.arg}={ast.unparse(keyword.value)}"


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "def f(): import marshal",
        "eval('1')",
        "exec(code)",
        "os.system('ls')",
        "subprocess.run('ls', shell=True)",
        "subprocess.run('ls', shell=flag)",
        "np.load(path, allow_pickle=True)",
    ],
)
def test_the_search_for_dangerous_code_finds_it(source):
    assert len(list(dangerous(ast.parse(source)))) == 1


@pytest.mark.parametrize("path", FILES, ids=label)
def test_minigrad_runs_no_code_that_came_as_data(path):
    assert list(dangerous(ast.parse(path.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize("path", FILES, ids=label)
def test_public_functions_have_typed_results(path):
    """Ops, composites and kernels are left out: their `def f(xp, a)` is a table entry, and functions.pyi types what users call."""
    untyped = [
        node.name
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
        and not node.name.startswith("_")
        and node.returns is None
        and not re.search(r"_(forward|backward)$|^accepts_", node.name)
        and not any(
            re.match(r"(op|composite|elementwise|Fused|kernel|exact|intrinsic)\b", ast.unparse(d))
            for d in node.decorator_list
        )
    ]
    assert untyped == []


def test_every_public_name_has_a_docstring():
    assert {"Tensor", "tensor", "grad", "exp", "matmul", "nn"} <= set(mg.__all__)
    documented = (types.ModuleType, type, types.FunctionType)
    silent = [
        name
        for name in mg.__all__
        if isinstance(thing := getattr(mg, name), documented) or callable(thing)
        if not inspect.getdoc(thing)
    ]
    assert silent == []


def test_every_public_method_of_a_tensor_has_a_docstring():
    names = [name for name in dir(mg.Tensor) if not name.startswith("_") and name not in ("data", "node")]
    assert {"backward", "sum", "reshape", "T"} <= set(names)
    assert [name for name in names if not inspect.getdoc(getattr(mg.Tensor, name))] == []


def test_importing_minigrad_imports_nothing_heavy():
    optional = {"torch", "cupy", "matplotlib", "numba", "graphviz", "pygraphviz", "scipy", "mpi4py"}
    heavy = optional | {"safetensors", "hypothesis", "pytest"}
    done = subprocess.run(
        [sys.executable, "-c", "import sys, minigrad; print(*sys.modules)"], capture_output=True, text=True, timeout=60
    )
    loaded = set(done.stdout.split())
    assert "minigrad" in loaded
    assert loaded & heavy == set()


def commands() -> list[str]:
    """The one-line commands of the README: what is in its `sh` blocks."""
    return [line for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) for line in block.splitlines()]


def test_the_readme_has_one_line_for_the_demo_and_one_for_the_tests():
    demo, tests = commands()
    for command in (demo, tests):
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install ")
    assert demo.endswith(" && .venv/bin/minigrad demo")
    assert "'.[test]'" in tests and ".venv/bin/python -m pytest" in tests


def test_ci_takes_the_test_command_from_the_readme():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (extraction,) = re.findall(r"^command=\$\((.*)\)$", script, re.MULTILINE)
    done = subprocess.run(["bash", "-c", extraction], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == [commands()[1]]
    assert "pytest" not in script.replace(extraction, "")


def test_the_example_of_the_readme_prints_what_the_readme_says():
    ((code, printed),) = re.findall(r"```python\n(.*?)```\n+It prints\n+```text\n(.*?)```", README, re.DOTALL)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == (printed, "")


def follow(name: str, folder: Path) -> tuple[list[str], list[str], list[str]]:
    """Run the blocks of a guide one after the other: the lines it quotes, what is printed, and what is said on stderr."""
    guide = (ROOT / "docs" / name).read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", guide, re.DOTALL))
    quoted = "".join(re.findall(r"```text\n(.*?)```", guide, re.DOTALL)).splitlines()
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONUTF8": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=120
    )
    # That much may be said, where nothing is compiled yet.
    said = [line for line in done.stderr.splitlines() if not line.startswith("minigrad: compiling kernels")]
    return quoted, done.stdout.splitlines(), said


def test_the_guide_to_training_does_what_it_says(tmp_path):
    """What training shows has times in it, so the guide quotes only some lines: all of them are printed, in this order."""
    quoted, printed, said = follow("training.md", tmp_path)
    assert said == []
    assert len(quoted) == 10
    rest = iter(printed)
    assert [line for line in quoted if line not in rest] == []
    held = {path.name for path in (tmp_path / "runs" / "circle").iterdir()}
    assert held == {"config.json", "metrics.csv", "timing.csv", "checkpoints", "latest", "best", "lock"}


def test_the_guide_to_pictures_does_what_it_says(tmp_path):
    quoted, printed, said = follow("seeing.md", tmp_path)
    assert said == ["minigrad: the graph up to the error is in failed.svg"]
    assert len(quoted) == 4
    rest = iter(printed)
    assert [line for line in quoted if line not in rest] == []
    drawn = {"error.html", "error.svg", "encoder.html", "encoder.svg", "failed.svg", "attention.html", "head.svg"}
    drawn |= {"search.svg", "next.svg", "map.svg", "curves.svg", "lines.svg"}
    assert {path.name for path in tmp_path.iterdir()} == drawn


def test_the_guide_to_pictures_names_all_of_them():
    import minigrad.viz

    guide = (ROOT / "docs" / "seeing.md").read_text(encoding="utf-8")
    functions = [name for name in minigrad.viz.__all__ if name[0].islower()]
    assert [name for name in functions if f"{name}(" not in guide] == []


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "docs/training.md", "docs/seeing.md"])
def test_links_lead_to_files_that_exist(document):
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", (ROOT / document).read_text(encoding="utf-8"))
    assert links or document.startswith("docs/")
    assert [link for link in links if not (ROOT / document).parent.joinpath(link).exists()] == []
