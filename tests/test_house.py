"""Rules that hold the house together: which way imports point, what code must not do, and what has a docstring."""

import ast
import graphlib
import inspect
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import minigrad as mg

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))  # pytest puts only the tests' own folder there

from docs.architecture import FILES, LEVEL, edges, imported_modules, module_parts  # noqa: E402


def label(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


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
    assert roots.isdisjoint({"models", "minigrad_models", "tests", "benchmarks", "docs"})


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


@pytest.mark.parametrize("path", [path for path in FILES if path.parent.name != "lessons"], ids=label)
def test_public_functions_have_typed_results(path):
    """Ops, composites and kernels are left out: their `def f(xp, a)` is a table entry, and functions.pyi types what users call.

    So are the lessons, which beginners read.
    """
    untyped = [
        node.name
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
        and not node.name.startswith("_")
        and node.returns is None
        and not re.search(r"_(forward|backward)$|^accepts_", node.name)
        and not any(
            re.match(r"(op|composite|elementwise|fused|kernel|exact|instructions|intrinsic)\b", ast.unparse(d))
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
