"""Where numba is missing, too old or broken, everything works on NumPy's kernels, and one warning says why."""

import importlib.util
import subprocess
import sys

import pytest

NUMBA = pytest.mark.skipif(
    importlib.util.find_spec("numba") is None, reason="needs numba: pip install 'minigrad[fast]'"
)
TRAIN = """
import numpy as np
import minigrad as mg
from minigrad import kernels
x = mg.tensor(np.linspace(-3, 3, 20_000, dtype=np.float32).reshape(200, 100), requires_grad=True)
mg.nn.functional.gelu(mg.nn.functional.layer_norm(x, 100)).sum().backward()
assert np.isfinite(x.grad.numpy()).all()
mg.nn.functional.silu(x).sum().backward()
print(kernels.implementation())
"""


def run(code, folder, **environment):
    import os

    kept = {name: value for name, value in os.environ.items() if name not in ("MINIGRAD_KERNELS", "NUMBA_CACHE_DIR")}
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")]))
    settings = {**kept, "PYTHONPATH": path, "XDG_CACHE_HOME": str(folder / "cache"), **environment}
    return subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, text=True, timeout=300)


def module(folder, source):
    """A numba of our own that is found before any other."""
    (folder / "numba").mkdir()
    (folder / "numba" / "__init__.py").write_text(source)
    return folder


MISSING = "raise ModuleNotFoundError(\"No module named 'numba'\", name='numba')"


def test_without_numba_everything_works_and_nothing_is_said(tmp_path):
    done = run(TRAIN, module(tmp_path, MISSING))
    assert (done.stdout, done.stderr) == ("numpy\n", "")


def test_numba_asked_for_but_missing_is_an_error_that_names_the_extra(tmp_path):
    done = run(TRAIN, module(tmp_path, MISSING), MINIGRAD_KERNELS="numba")
    assert done.returncode == 1 and "pip install 'minigrad[fast]'" in done.stderr


def test_a_numba_too_old_for_this_numpy_is_left_aside_with_one_warning(tmp_path):
    done = run(TRAIN, module(tmp_path, 'raise ImportError("Numba needs NumPy 1.26 or less. Got NumPy 2.9.")'))
    assert done.stdout == "numpy\n"
    assert done.stderr.count("RuntimeWarning") == 1 and "Numba needs NumPy 1.26 or less" in done.stderr


@NUMBA
def test_a_numba_that_cannot_compile_is_left_aside_with_one_warning(tmp_path):
    broken = """
from numba.core.compiler import CompilerBase
def fail(*_, **__):
    raise OSError("LLVM is not what it was")
CompilerBase.compile_extra = fail
"""
    done = run(broken + TRAIN, tmp_path)
    assert done.stdout == "numpy\n", done.stderr
    assert done.stderr.count("RuntimeWarning") == 1 and "LLVM is not what it was" in done.stderr


def test_an_unknown_name_in_the_environment_gets_the_known_ones(tmp_path):
    done = run("import minigrad.nn", tmp_path, MINIGRAD_KERNELS="nunba")
    assert done.returncode == 1 and "'numba'" in done.stderr
