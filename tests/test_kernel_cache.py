"""Compiled kernels are kept for other processes; what is damaged or cannot be kept costs time, and is said."""

import importlib.util
import os
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("numba") is None, reason="needs numba: pip install -e '.[fast]'"
)
SILU = """
import numpy as np, numba, minigrad as mg
from minigrad.kernels import silu, use
before = numba.config.CACHE_DIR
with use("numba"):
    print(silu(mg.tensor(np.zeros(5, "float32"))), numba.config.CACHE_DIR == before)
"""


# A kernel that holds another in its closure is not found again: numba looks for it by the name of this process's own.
PACKED = """
import numba
from minigrad.kernels.numba import compiling, packed
packed.part_function("f32")
held = [cell.cell_contents for one in compiling._ours for cell in one.py_func.__closure__ or ()]
print([one for one in held if isinstance(one, numba.core.dispatcher.Dispatcher)])
"""


def in_a_new_process(cache, script=SILU, **changes):
    paths = os.pathsep.join(p for p in sys.path if p)
    env = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": paths, **changes}
    return subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)


def test_kernels_are_compiled_once_and_that_is_said(tmp_path):
    first, second = in_a_new_process(tmp_path), in_a_new_process(tmp_path)
    assert first.stdout == second.stdout == "tensor([0., 0., 0., 0., 0.]) True\n"
    assert first.stderr.startswith("minigrad: compiling kernels that are new here") and first.stderr.count("\n") == 1
    assert second.stderr == ""


def test_products_that_generation_is_made_of_are_compiled_once(tmp_path):
    first, second = in_a_new_process(tmp_path, PACKED), in_a_new_process(tmp_path, PACKED)
    assert first.stdout == second.stdout == "[]\n"
    assert first.stderr.startswith("minigrad: compiling kernels that are new here") and second.stderr == ""


def test_of_several_ranks_only_the_first_says_that_it_compiles(tmp_path):
    assert in_a_new_process(tmp_path, PMI_RANK="1", PMI_SIZE="2").stderr == ""


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A directory with compiled kernels."""
    folder = tmp_path_factory.mktemp("kept")
    in_a_new_process(folder)
    return folder


@pytest.mark.parametrize("size", [0, 20])
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_damaged_files_of_compiled_code_are_dropped_and_made_anew(kept, tmp_path, kind, size):
    shutil.copytree(kept, tmp_path / "cache")
    files = list((tmp_path / "cache").rglob(f"*.{kind}"))
    assert files
    for file in files:
        os.truncate(file, size)
    first, second = in_a_new_process(tmp_path / "cache"), in_a_new_process(tmp_path / "cache")
    assert first.stdout == second.stdout == "tensor([0., 0., 0., 0., 0.]) True\n"
    assert [line.split(" ")[1:3] for line in first.stderr.splitlines()] == [
        ["compiled", "kernels"],
        ["compiling", "kernels"],
    ]
    assert f"{tmp_path / 'cache'}" in first.stderr and "damaged" in first.stderr
    assert second.stderr == ""


def test_a_damaged_file_that_cannot_be_dropped_is_named_once_and_kernels_work(kept, tmp_path):
    shutil.copytree(kept, tmp_path / "cache")
    for file in (tmp_path / "cache").rglob("*.nbi"):
        file.unlink()
        file.mkdir()  # which nobody can read or replace, not even root
    done = in_a_new_process(tmp_path / "cache")
    assert done.stdout == "tensor([0., 0., 0., 0., 0.]) True\n"
    assert done.stderr.count("warning: compiled kernels cannot be kept in") == 1
    assert "delete that directory" in done.stderr


def test_a_cache_that_cannot_be_written_to_gives_one_warning(tmp_path):
    (tmp_path / "file").write_text("")
    done = in_a_new_process(tmp_path / "file")
    assert done.stdout.startswith("tensor([0., 0., 0., 0., 0.]")
    assert (
        done.stderr.count("RuntimeWarning: compiled kernels cannot be kept") == 1 and "NUMBA_CACHE_DIR" in done.stderr
    )
