"""What CONTRIBUTING.md shows of an op, a layer and a kernel, written into a copy of the checkout as it says: all of it works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from cupy_names import CUPY_IS_INSTALLED
from documents import ROOT, pieces

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCKS = [piece.text for piece in pieces(TEXT) if piece.kind in ("python", "cuda")]
# Where the blocks go, one after the other: to the end of these files.
FILES = ["minigrad/ops/elementwise.py", "minigrad/nn/functional.py", "minigrad/nn/layers.py"]
FILES += [f"minigrad/kernels/{name}" for name in ("definitions.py", "numpy.py", "numba/elementwise.py")]
FILES += ["minigrad/kernels/cuda/elementwise.cu"]
TESTS = [f"tests/test_{name}.py" for name in ("registry", "torch_elementwise", "layers", "kernels", "cuda_kernels")]


def span(start: str) -> str:
    """The code inside of a sentence that begins so."""
    (found,) = {text for text in re.findall(r"`([^`\n]+)`", TEXT) if text.startswith(start)}
    return found


# (file, what is there, and what is written behind it): what the sentences between the blocks ask for.
LINES = [
    ("tests/samples/elementwise.py", r"UNARY = \{.*\n", span('"exp2": (') + ",\n"),
    ("tests/test_torch_elementwise.py", r"UNARY = \{\n", span('"exp2": Case') + ",\n"),
    ("minigrad/nn/functional.py", r"__all__ = \[\n", '"prelu",\n'),
    ("minigrad/nn/layers.py", r"from \.\.ops\.creation import ", "full, "),
    ("minigrad/nn/layers.py", r"__all__ = \[", '"PReLU", '),
    ("minigrad/nn/__init__.py", r"from \.layers import ", "PReLU, "),
    ("minigrad/nn/__init__.py", r"__all__ = \[\n", '"PReLU",\n'),
    ("tests/layer_cases.py", r"CASES = \{\n", span('"PReLU": Case') + ",\n"),
    ("tests/samples/neural.py", r"(?s).*\n", span('add("prelu"') + "\n"),
    ("minigrad/kernels/__init__.py", r"from \.definitions import \(\n", "squared_relu,\n"),
    ("minigrad/kernels/__init__.py", r"__all__ = \[\n", '"squared_relu",\n'),
    ("tests/test_kernels.py", r"SAMPLES = \{\n", span('"squared_relu": ') + ",\n"),
    ("tests/cuda_cases.py", r' +yield Case\("silu".*\n', "    " + span("yield Case") + "\n"),
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
    path = tree / "minigrad/kernels/cuda/elementwise.py"  # "as for `silu` there"
    own = re.findall(
        r"^(?:def silu_\w+.*?\n\n\n|register\(d\.silu.*?\n)", text := path.read_text(encoding="utf-8"), re.M | re.S
    )
    assert len(own) == 3
    path.write_text(text + "\n\n" + "".join(own).replace("silu", "squared_relu"), encoding="utf-8")


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
    assert "def exp2(a" in (tmp_path / "minigrad/functions.pyi").read_text(encoding="utf-8")
    if CUPY_IS_INSTALLED:
        run(tmp_path, "tests/cupy_names.py")
        assert '"exp2"' in (tmp_path / "tests/cupy_names.json").read_text(encoding="utf-8")
    chosen = "exp2 or prelu or squared_relu or every_fused_op or every_layer_has"
    options = ["-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "-k", chosen, *TESTS, "minigrad/nn/layers.py"]
    passed = re.findall(r"^PASSED (.*)$", run(tmp_path, *options), re.MULTILINE)
    counts = {name: sum(name in one for one in passed) for name in ("exp2", "prelu", "PReLU", "squared_relu")}
    assert counts["exp2"] >= 10 and counts["prelu"] >= 5 and counts["PReLU"] >= 3 and counts["squared_relu"] >= 10, (
        counts
    )
    assert "minigrad/nn/layers.py::minigrad.nn.layers.PReLU" in passed
