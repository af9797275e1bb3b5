"""Where numba is missing, too old or broken, everything works on NumPy's kernels, and one warning says why."""

import importlib.util
import json
import subprocess
import sys

import pytest

NUMBA = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs numba: pip install -e '.[fast]'")
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
    assert done.returncode == 1 and "-m pip install -e" in done.stderr and "[fast]" in done.stderr


def test_a_numba_too_old_for_this_numpy_is_left_aside_with_one_warning(tmp_path):
    done = run(TRAIN, module(tmp_path, 'raise ImportError("Numba needs NumPy 1.26 or less. Got NumPy 2.9.")'))
    assert done.stdout == "numpy\n"
    assert done.stderr.count("RuntimeWarning") == 1 and "Numba needs NumPy 1.26 or less" in done.stderr


def test_a_numba_that_does_not_work_but_was_asked_for_is_an_error_with_the_reason(tmp_path):
    broken = module(tmp_path, 'raise ImportError("Numba needs NumPy 1.26 or less. Got NumPy 2.9.")')
    done = run(TRAIN, broken, MINIGRAD_KERNELS="numba")
    assert done.returncode == 1 and done.stdout == ""
    assert "numba does not work here" in done.stderr and "ImportError: Numba needs NumPy 1.26 or less" in done.stderr


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


@pytest.mark.parametrize("code", [TRAIN, TRAIN.replace("20_000", "100").replace("(200, 100)", "(1, 100)")])
def test_an_unknown_name_in_the_environment_gets_the_known_ones_once_an_op_runs(tmp_path, code):
    assert run("import minigrad.nn", tmp_path, MINIGRAD_KERNELS="nunba").returncode == 0
    done = run(code, tmp_path, MINIGRAD_KERNELS="nunba")
    assert done.returncode == 1 and "MINIGRAD_KERNELS: there are no such kernels" in done.stderr
    assert "one of numpy, numba, definitions" in done.stderr and "got:      'nunba'" in done.stderr


DOCTOR = "import sys; from minigrad.cli import main; sys.exit(main(['doctor', '--json']))"


def examined(folder, **environment):
    """What the doctor says, and its exit code."""
    done = run(DOCTOR, folder, **environment)
    return json.loads(done.stdout), done.returncode


@NUMBA
def test_the_doctor_says_why_numba_is_not_used(tmp_path):
    broken = module(tmp_path, 'raise ImportError("Numba needs NumPy 1.26 or less. Got NumPy 2.9.")')
    found, code = examined(broken)
    assert code == 0 and not found["numba"]["found"] and found["kernels"]["detail"].startswith("numpy ")
    assert found["numba"]["detail"].endswith(
        "does not work here: ImportError: Numba needs NumPy 1.26 or less. Got NumPy 2.9."
    )
    found, code = examined(broken, MINIGRAD_KERNELS="numba")
    assert code == 1 and "Numba needs NumPy 1.26 or less" in found["kernels"]["detail"]


@pytest.mark.parametrize(
    ("row", "name", "value", "expected"),
    [
        ("kernels", "MINIGRAD_KERNELS", "nonsense", "one of numpy, numba, definitions"),
        ("cores", "MINIGRAD_THREADS", "many", "a whole number from 1"),
    ],
)
def test_the_doctor_shows_a_wrong_setting_in_its_row_and_fails(tmp_path, row, name, value, expected):
    found, code = examined(module(tmp_path, MISSING), **{name: value})
    assert code == 1
    assert [row for row, finding in found.items() if finding["wrong"]] == [row]
    assert all(part in found[row]["detail"] for part in (name, repr(value), expected))


@pytest.mark.parametrize("name", ["MINIGRAD_KERNELS", "MINIGRAD_THREADS"])
def test_training_fails_for_a_wrong_setting_before_it_writes_anything(tmp_path, name):
    code = f"import sys; from minigrad.cli import main; sys.exit(main(['train', 'xor', '--out', {str(tmp_path / 'run')!r}]))"
    done = run(code, tmp_path, **{name: "nonsense"})
    assert done.returncode == 1 and name in done.stderr and "'nonsense'" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_setting_that_is_empty_counts_as_unset(tmp_path):
    done = run(TRAIN, module(tmp_path, MISSING), MINIGRAD_KERNELS="", MINIGRAD_THREADS="")
    assert (done.stdout, done.stderr) == ("numpy\n", "")


def test_the_doctor_says_which_caches_cannot_be_written_to(tmp_path):
    (tmp_path / "file").write_text("")
    lost = tmp_path / "file" / "cache"
    found, code = examined(
        module(tmp_path, MISSING), XDG_CACHE_HOME=str(lost), NUMBA_CACHE_DIR=str(tmp_path / "numbas")
    )
    assert code == 0 and not found["cache"]["found"]
    assert found["cache"]["detail"] == (
        f"{lost / 'minigrad'} (cannot be written to); compiled kernels: {tmp_path / 'numbas'} (not made yet)"
    )
