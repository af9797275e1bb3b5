"""What CONTRIBUTING.md shows of an op, a layer and a kernel, written into a copy of the checkout as it says: all of it works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from support.cupy_names import CUPY_IS_INSTALLED
from support.documents import ROOT, pieces

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCKS = [piece.text for piece in pieces(TEXT) if piece.kind == "python"]
# Where the blocks go, one after the other: to the end of these files.
OP, FUNCTION, LAYER, KERNEL = FILES = [
    "minigrad/ops/elementwise/unary.py",
    "minigrad/nn/functional/activations.py",
    "minigrad/nn/layers/linear.py",
    "minigrad/kernels/definitions.py",
]
*BLOCKS, NUMPY_KERNEL = BLOCKS  # the last one may be left out
TESTS = [f"tests/test_{name}.py" for name in ("registry", "torch_elementwise", "layers", "kernels", "compile_cuda")]


def span(start: str) -> str:
    """The code inside of a sentence that begins so."""
    (found,) = {text for text in re.findall(r"`([^`\n]+)`", TEXT) if text.startswith(start)}
    return found


# (file, what is there, and what is written behind it): what the sentences between the blocks ask for.
LINES = [
    ("tests/support/samples/elementwise.py", r"UNARY = \{.*\n", span('"radians": (') + ",\n"),
    ("tests/test_torch_elementwise.py", r"UNARY = \{\n", span('"radians": Case') + ",\n"),
    (FUNCTION, r"__all__ = \[\n", '"swish",\n'),
    (LAYER, r"from \.\.\.ops\.creation import ", "full, "),
    (LAYER, r"__all__ = \[", '"Swish", '),
    ("tests/support/samples/layers.py", r"CASES = \{\n", span('"Swish": Case') + ",\n"),
    ("tests/support/samples/layers.py", r"(?s).*\n", span('add("swish"') + "\n"),
    (KERNEL, r"__all__ = \[\n", '"squared_relu",\n'),
    ("tests/support/kernel_samples.py", r"SAMPLES = \{\n", span('"squared_relu": ') + ",\n"),
]


def follow(tree: Path) -> None:
    """Do what the page says."""
    assert len(BLOCKS) == len(FILES)
    for name, block in zip(FILES, BLOCKS):
        with open(tree / name, "a", encoding="utf-8") as file:
            file.write(f"\n\n{block}")
    for name, place, line in LINES:
        path = tree / name
        changed, count = re.subn(
            place, lambda found, line=line: found[0] + line, path.read_text(encoding="utf-8"), count=1
        )
        assert count == 1, f"{name}: there is no {place}"
        path.write_text(changed, encoding="utf-8")


def touched(*kinds: str) -> set[str]:
    """The files that are edited by hand for what has one of these names in its code."""
    blocks = {name for name, block in zip(FILES, BLOCKS) if any(kind in block for kind in kinds)}
    return blocks | {name for name, _, line in LINES if any(kind in line for kind in kinds)}


def test_few_files_are_touched():
    assert len(touched("radians")) <= 3
    assert len(touched("swish", "Swish")) <= 3
    assert len(touched("squared_relu")) <= 2


def run(tree: Path, *words: str) -> str:
    """What Python prints when it is called there."""
    settings = {"OPENBLAS_NUM_THREADS": "1", **os.environ, "PYTHONPATH": str(tree), "PYTHONUTF8": "1"}
    done = subprocess.run([sys.executable, *words], cwd=tree, env=settings, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-3000:]
    return done.stdout


def test_an_op_a_layer_and_a_kernel_can_be_added_as_it_says(tmp_path):
    """The op needs a function that the fake device does not know yet: the list is written anew where CuPy is installed."""
    for name in ("minigrad", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "setup.cfg", tmp_path)
    follow(tmp_path)
    run(tmp_path, "-m", "minigrad.ops.stubs")
    assert "def radians(a" in (tmp_path / "minigrad/functions.pyi").read_text(encoding="utf-8")
    if CUPY_IS_INSTALLED:
        run(tmp_path, "-m", "tests.support.cupy_names")
        assert '"radians"' in (tmp_path / "tests/support/cupy_names.json").read_text(encoding="utf-8")
    chosen = "radians or swish or squared_relu or every_fused_op or every_layer_has"
    options = ["-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "-k", chosen, *TESTS, LAYER]
    passed = re.findall(r"^PASSED (.*)$", run(tmp_path, *options), re.MULTILINE)
    counts = {name: sum(name in one for one in passed) for name in ("radians", "swish", "Swish", "squared_relu")}
    assert counts["radians"] >= 10 and counts["swish"] >= 5 and counts["Swish"] >= 3 and counts["squared_relu"] >= 10, (
        counts
    )
    assert f"{LAYER}::minigrad.nn.layers.linear.Swish" in passed
    kernels = tmp_path / "minigrad/kernels/numpy.py"
    kernels.write_text(kernels.read_text(encoding="utf-8") + f"\n\n{NUMPY_KERNEL}", encoding="utf-8")
    chosen = "squared_relu and numpy or every_fused_op"
    report = run(tmp_path, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "-k", chosen, "tests/test_kernels.py")
    assert "SKIPPED" not in report and report.count("PASSED") >= 10
