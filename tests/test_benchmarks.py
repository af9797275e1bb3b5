"""The benchmarks run and report; what they measure is nobody's promise here, since a busy machine would break it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, text=True, capture_output=True, timeout=300)


@pytest.fixture(scope="module")
def overhead() -> subprocess.CompletedProcess[str]:
    return run("benchmarks.overhead", "--quick", "--alone", "--json")


def test_overhead_prints_one_json_object_last(overhead: subprocess.CompletedProcess[str]) -> None:
    assert overhead.returncode == 0, overhead.stderr
    result = json.loads(overhead.stdout.splitlines()[-1])
    assert result["benchmark"] == "overhead"
    assert {"cpu", "cores", "python", "blas", "versions"} <= result["machine"].keys()
    assert " ".join(result["ops"]) == "add multiply matmul exp tanh sum mean reshape getitem relu"
    for times in result["ops"].values():
        assert times.keys() == {"numpy", "numpy_with_backward", "recorded", "no_grad", "with_backward"}
        assert all(summary.keys() == {"median", "minimum"} for summary in times.values())
    assert result["xor_step"]["peers"].keys() == {"minigrad", "NumPy by hand"}
    assert result["xor_step"]["ratios"].keys() == {"NumPy by hand"}
    assert result["import"].keys() == {"numpy", "minigrad"}


def test_overhead_trains_every_library_to_the_same_loss(overhead: subprocess.CompletedProcess[str]) -> None:
    step = json.loads(overhead.stdout.splitlines()[-1])["xor_step"]
    losses = [peer["loss"] for peer in step["peers"].values()]
    assert step["same_loss"]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_overhead_says_on_stderr_what_it_is_doing(overhead: subprocess.CompletedProcess[str]) -> None:
    assert "round 1 of 2" in overhead.stderr


def test_a_library_that_is_not_installed_is_named_and_left_out() -> None:
    code = "from benchmarks.measure import serve\ndef make():\n    import library_that_does_not_exist\nserve(make)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        text=True,
        capture_output=True,
        input='{"steps": 1, "warm": 0}\n',
        timeout=60,
    )
    assert json.loads(done.stdout) == {"missing": "No module named 'library_that_does_not_exist'"}
