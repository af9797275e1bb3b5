"""The benchmarks run and report; what they measure is nobody's promise here, since a busy machine would break it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.browser import CHROMIUM

ROOT = Path(__file__).resolve().parent.parent
OPTIMIZERS = ["SGD", "SGD with momentum", "RMSprop", "Adam", "AdamW", "LAMB"]


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


def result_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The JSON object that a benchmark prints last."""
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert {"cpu", "cores", "python", "blas", "versions"} <= result["machine"].keys()
    return result


def test_optim_times_every_optimiser_and_takes_the_steps_that_pytorch_takes() -> None:
    pytest.importorskip("torch", reason="PyTorch, which it compares with, is not installed")
    result = result_of(run("benchmarks.optim", "--quick", "--json", "--size", "small"))
    measured = result["steps"]["small"]
    assert result["benchmark"] == "optim" and list(measured) == OPTIMIZERS
    for name, one in measured.items():
        assert one["same_weights"] and not one["missing"]
        assert ("PyTorch" in one["peers"]) == ("PyTorch" in one["ratios"]) == (name != "LAMB")
        assert all(0 < times["minimum"] <= times["median"] for times in one["peers"].values())


def test_forecasts_are_compared_with_steps_that_ranks_take() -> None:
    pytest.importorskip("mpi4py", reason="MPI, which ranks communicate by, is not installed")
    (row,) = result_of(run("benchmarks.forecast", "--quick", "--json"))["layouts"]
    assert row["measured"] > 0 and row["foreseen"] > 0


def test_layouts_agree_with_one_process_in_the_benchmark_too(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py", reason="MPI, which ranks communicate by, is not installed")
    state = str(tmp_path / "state.json")
    command = ["--quick", "--json", "--steps", "2", "--state", state]
    result = result_of(run("benchmarks.parallel", *command))
    assert result["failures"] == [] and result["done"] == {"layouts": 1, "costs": 1, "deaths": 1}
    assert 0 < result["worst"] < 1e-10 and 0 < result["slowest"] < 30


def test_hosts_says_what_it_needs_where_it_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    done = run("benchmarks.hosts", "--quick")
    assert done.returncode == 0 and done.stdout == "skipped: network namespaces need root, and ip of iproute2\n"


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_kill_soak_kills_and_finds_nothing_wrong(tmp_path: Path) -> None:
    state = str(tmp_path / "state.json")
    result = result_of(run("benchmarks.kill_soak", "--quick", "--json", "--training", "1", "--state", state))
    assert result["benchmark"] == "kill_soak" and result["failures"] == []
    assert 1 <= result["done"]["training"] <= 3 and result["done"]["saving"] == 20
    assert result["mixtures"] == 7 * 8 * 9


def test_programs_agree_with_pytorch_and_go_on_where_they_stopped(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="PyTorch, which it compares with, is not installed")
    command = ["benchmarks.programs", "--json", "--state", str(tmp_path / "state.json"), "--seed", "0", "--count"]
    for goal in (1, 101):
        result = result_of(run(*command, str(goal)))
        assert (result["benchmark"], result["failures"]) == ("programs", [])
        kinds = ("agreed", "both refused", "refused", "listed", "layout")
        assert sum(result["outcomes"].get(kind, 0) for kind in kinds) == result["done"]["count"] >= goal


def test_fuzz_checkpoints_finds_nothing_wrong_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    command = ["benchmarks.fuzz_checkpoints", "--quick", "--json", "--state", str(tmp_path / "state.json"), "--cases"]
    for goal in (5_000, 10_000):
        done = run(*command, str(goal))
        result = result_of(done)
        assert (result["benchmark"], result["done"], result["failures"]) == ("fuzz_checkpoints", {"cases": goal}, [])
    assert "spoilt files: 5,000 of 10,000" in done.stderr and "spoilt files: 0" not in done.stderr


def test_fuzz_formats_finds_nothing_wrong_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    command = ["benchmarks.fuzz_formats", "--json", "--state", str(tmp_path / "state.json"), "--count"]
    for goal in (2000, 4000):
        result = result_of(run(*command, str(goal)))
        assert (result["benchmark"], result["done"], result["failures"]) == ("fuzz_formats", {"count": goal}, [])
    assert sum(result["outcomes"].values()) == 4000


def test_tokenizers_of_real_models_agree_or_are_named_with_their_packages() -> None:
    result = json.loads(run("benchmarks.tokenizers", "--quick", "--json").stdout.splitlines()[-1])
    assert result["differ"] == 0
    assert all("missing" in one or one["agree"] == one["lines"] for one in result["detail"]["tokenizers"].values())


def test_the_page_of_a_translator_says_what_python_says() -> None:
    if CHROMIUM is None:
        pytest.skip("needs a browser: apt-get install chromium")
    pytest.importorskip("playwright", reason="needs playwright: pip install playwright")
    result = json.loads(
        run("benchmarks.pages", "tutorials/runs/translator", "--quick", "--json").stdout.splitlines()[-1]
    )
    assert (result["same"], result["sentences"], result["console"]) == (40, 40, [])
    assert result["milliseconds"].keys() == {"median", "95 %", "most"}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads how much memory a process holds from /proc")
def test_a_server_writes_the_texts_of_python_for_good_and_bad_clients() -> None:
    run_of = ("tutorials/runs/gpt", "--quick", "--json", "--clients", "40", "--places", "4", "--queue", "8")
    result = json.loads(run("benchmarks.serving", *run_of).stdout.splitlines()[-1])
    assert result["answers"]["200"] > 0 and result["answers"].keys() <= {"200", "429", "503"}
    assert (result["texts that differ"], result["still written"]) == (0, 0)
    assert result["cancelled"] > 0 and result["training beside it is the same"]


@pytest.mark.transformers
def test_real_sentence_vectors_agree_or_their_package_is_named() -> None:
    pytest.importorskip("transformers", reason="transformers is not installed: pip install transformers")
    done = run("benchmarks.imported", "--quick", "--json", "--task", "minilm")
    result = json.loads(done.stdout.splitlines()[-1])["minilm"]
    assert "pip install" in result["missing"] if "apart" not in result else result["apart"] < 1e-5


def test_a_soak_that_fails_says_what_failed_goes_on_and_remembers(tmp_path: Path) -> None:
    code = """
import sys
from benchmarks.soak import Soak
def piece(number):
    assert number != 1, "the second one"
    return 1
soak = Soak("example", None, {"pieces": 3}, {"pieces": 3})
soak.run("pieces", piece, "pieces")
sys.exit(soak.report())
"""
    for _ in range(2):
        command = [sys.executable, "-c", code, "--json", "--state", str(tmp_path / "state.json")]
        done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, timeout=60)
        result = json.loads(done.stdout.splitlines()[-1])
        assert done.returncode == 1 and result["done"] == {"pieces": 3}
        assert result["failures"] == ["pieces 1: AssertionError: the second one"]
