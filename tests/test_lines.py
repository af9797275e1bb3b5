"""The command that counts lines, and the sizes that packages keep to."""

import subprocess
import sys

import pytest
from support.documents import ROOT

sys.path.append(str(ROOT))  # pytest puts only the tests' own folder there
from benchmarks.lines import Count, add, count, packages  # noqa: E402

SOURCE = '''"""A module
of two lines."""

import sys  # used below

TEXT = """not a docstring

    since it has a name"""


def double(x):
    # No code.
    """Nor is this."""
    if x is None:
        raise ValueError(
            "a number is needed"
        )
    raise SystemExit(2)
'''
# (package, what is counted, at most)
BOUNDS = [
    ("minigrad/compile", lambda lines: lines.code, 2500),
    ("minigrad/engine", lambda lines: lines.code - lines.messages, 1000),
    ("minigrad/viz", lambda lines: lines.all, 4500 + 130),  # the pictures of models on several ranks came later
]


def test_blank_lines_comments_and_docstrings_are_no_code(tmp_path):
    (tmp_path / "one.py").write_text(SOURCE)
    assert count(tmp_path / "one.py") == Count(code=10, messages=3, all=18)
    (tmp_path / "empty.py").touch()
    assert count(tmp_path / "empty.py") == Count(0, 0, 0)


def test_all_checkouts_can_be_counted_side_by_side(tmp_path):
    (tmp_path / "minigrad/engine").mkdir(parents=True)
    (tmp_path / "minigrad/engine/one.py").write_text(SOURCE)

    def run(*words):
        command = [sys.executable, "-m", "benchmarks.lines", *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)

    beside = {line.split("  ")[0]: line.split()[-6:] for line in run("--root", str(tmp_path)).stdout.splitlines()[1:]}
    own = add(map(count, packages(ROOT)["minigrad/engine"]))
    assert beside["minigrad/engine"] == ["10", "3", "18", *(f"{number:,}" for number in own)]
    assert beside["models"][:3] == ["0", "0", "0"]
    listed = run("--files", "minigrad/engine").stdout.splitlines()
    assert listed[0].split() == ["code", "messages", "all"] and any(
        line.startswith("minigrad/engine/tensor.py ") for line in listed
    )
    wrong = run("--files", "engine")
    assert (
        wrong.returncode == 2 and "there is no package 'engine'; there are minigrad, minigrad/array_api" in wrong.stderr
    )


@pytest.mark.parametrize(("package", "counted", "most"), BOUNDS, ids=[package for package, *_ in BOUNDS])
def test_a_package_keeps_to_its_size(package, counted, most):
    assert counted(add(map(count, packages(ROOT)[package]))) <= most


def test_another_checkout_that_is_none_is_refused(tmp_path):
    command = [sys.executable, "-m", "benchmarks.lines", "--root", str(tmp_path / "nowhere")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{str(tmp_path / 'nowhere')!r} is no checkout: expected a folder with minigrad" in done.stderr
