"""Both libraries train the same networks, and the commands that time them report what they say; no time is asserted."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))  # pytest puts only the tests' own folder there

import minigrad as mg  # noqa: E402
from benchmarks import compile as compiling  # noqa: E402
from benchmarks import (  # noqa: E402
    compile_tasks,  # noqa: E402
    floor,
    generation,
    matmul,
    measure,
    memory,
    mlp_step,
    results,
    scaling,
    train_step,
)
from benchmarks.twins import gpt, plain  # noqa: E402

TINY = replace(gpt.CONFIGS["tiny"], layers=2, batch=3, dtype="float64")
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the memory of a process is read from /proc"
)


def run(*arguments: str, hidden: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a benchmark; what lies in the folder `hidden` is imported instead of what is installed."""
    paths = [str(hidden)] if hidden else []
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=ROOT, env=surroundings, text=True, capture_output=True, timeout=300)


def last_line(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def no_torch(tmp_path: Path) -> Path:
    """A folder whose "torch" cannot be imported."""
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "torch.py").write_text('raise ImportError("no PyTorch in this test")\n')
    return tmp_path / "hidden"


@pytest.mark.torch
@pytest.mark.parametrize("fused", [None, True])
def test_both_gpts_have_the_same_losses_in_every_step(fused: bool | None) -> None:
    from benchmarks.twins.gpt_minigrad import minigrad_step
    from benchmarks.twins.gpt_torch import torch_step

    ours, theirs = minigrad_step(TINY), torch_step(TINY, fused)
    curves = np.array([(ours().item(), theirs().item()) for _ in range(5)])
    assert curves[4, 0] < curves[0, 0]
    np.testing.assert_allclose(curves[:, 0], curves[:, 1], rtol=0, atol=1e-9)


@pytest.mark.torch
def test_both_gpts_have_the_same_gradient_for_every_parameter() -> None:
    from benchmarks.twins import gpt_minigrad, gpt_torch

    ours, theirs = gpt_minigrad.new_model(TINY), gpt_torch.new_model(TINY)
    batch = next(gpt.batches(TINY))
    total, tokens = gpt_minigrad.loss(ours, batch)["loss"]
    (total / tokens).backward()
    gpt_torch.loss_of(theirs, *batch).backward()
    expected = {name: p.grad.numpy() for name, p in theirs.named_parameters()}
    found = {gpt_torch.torch_name(name): p.grad.numpy() for name, p in ours.named_parameters()}
    assert found.keys() == expected.keys()
    for name, grad in expected.items():
        assert abs(found[name] - grad).max() < 1e-12, name
    with_effect = [name for name, grad in expected.items() if abs(grad).max() > 1e-6]
    assert len(with_effect) == len(expected)


@pytest.mark.torch
@pytest.mark.parametrize("task", mlp_step.TASKS.values())
def test_both_small_networks_have_the_same_losses(task: str) -> None:
    ours, theirs = mlp_step.make_step(task, "minigrad"), mlp_step.make_step(task, "PyTorch")
    curves = np.array([(ours().item(), theirs().item()) for _ in range(20)])
    assert curves[-1, 0] < curves[0, 0]
    np.testing.assert_allclose(curves[:, 0], curves[:, 1], rtol=1e-5)


def test_every_candidate_is_given_the_same_weights_and_batches() -> None:
    first, second = gpt.weights(TINY), gpt.weights(TINY)
    assert all((first[name] == second[name]).all() for name in first)
    ours, theirs = gpt.batches(TINY), gpt.batches(TINY)
    for _ in range(3):
        (tokens, targets), again = next(ours), next(theirs)
        assert (tokens == again[0]).all() and (targets == again[1]).all()
        assert (tokens[:, 1:] == targets[:, :-1]).all()  # each token's target is the token after it


def test_the_operations_of_the_matmuls_are_those_of_the_formula() -> None:
    c = gpt.CONFIGS["baby"]
    tokens = c.batch * c.length
    linear = 6 * tokens * (c.layers * 12 * c.dim**2 + c.dim * c.vocabulary)  # 2 a weight and token, thrice
    attention = 12 * c.layers * tokens * c.length * c.dim  # two products forward, four backward
    assert floor.operations(c.products()) == linear + attention


@pytest.mark.torch
def test_train_step_prints_the_ratios_last_and_the_losses_agree() -> None:
    names = ["tiny", "tiny-translator"]
    result = last_line(run("benchmarks.train_step", "--quick", "--json", "--config", *names))
    has_numba = importlib.util.find_spec("numba") is not None
    for name in names:
        assert result[name].keys() == {"numpy", "numba"}
        measured = result["detail"]["measured"][name]
        assert measured["missing"].keys() == (set() if has_numba else {"minigrad, numba"})
        peers = measured["peers"]
        assert peers.keys() == {*train_step.PEERS, train_step.FLOOR} - measured["missing"].keys()
        assert all(0 < times["minimum"] <= times["median"] for times in peers.values())
        assert result[name]["numpy"] > 0
        assert measured["pytorch"] in train_step.TORCHES
        assert measured["loss_difference"] < 1e-5
        assert measured["floor_share"].keys() == peers.keys() - {train_step.FLOOR}


def test_train_step_names_pytorch_as_left_out_where_it_is_missing(no_torch: Path) -> None:
    done = run("benchmarks.train_step", "--quick", "--json", "--config", "tiny", hidden=no_torch)
    result = last_line(done)
    assert result["tiny"] == {"numpy": None, "numba": None}
    assert result["detail"]["measured"]["tiny"]["peers"]["minigrad, numpy"]["median"] > 0
    assert "left out: PyTorch (no PyTorch in this test)" in done.stdout
    assert "to reach" not in done.stdout


@needs_proc
def test_memory_is_measured_after_import_and_after_a_tiny_step(no_torch: Path) -> None:
    names = ["tiny", "tiny-translator"]
    done = run("benchmarks.train_step", "--memory", "--quick", "--json", "--config", *names, hidden=no_torch)
    result = last_line(done)
    for name in names:
        assert result[name] == {"numpy": None, "numba": None}
        grown = result["detail"]["measured"][name]["megabytes"]["minigrad, numpy"]
        assert grown.keys() == {"import", "a tiny step"}
        assert 0 <= grown["a tiny step"] <= grown["import"]


@needs_proc
def test_the_peak_is_what_a_step_held_even_if_it_let_go_of_it() -> None:
    size = 64 * 2**20
    code = f"""
import numpy as np
from benchmarks.memory import Peak
peak = Peak(lambda: None, lambda: lambda: np.ones({size}, np.uint8).sum())
print(peak().item())
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, text=True, capture_output=True, check=True)
    assert size <= int(done.stdout) < 1.2 * size


@needs_proc
def test_a_figure_that_the_system_does_not_give_is_named() -> None:
    with pytest.raises(OSError, match="no VmNothing"):
        memory.resident("VmNothing")


def test_losses_that_are_apart_are_found_wherever_they_are() -> None:
    curves = {"a": [3.0, 2.0, 1.0], "b": [3.0, 2.5, 1.0], "c": [3.0, 2.0, 1.25]}
    assert train_step.largest_difference(curves) == 0.5
    assert np.isnan(train_step.largest_difference({"a": [1.0, float("nan")], "b": [1.0, 2.0]}))


def test_the_faster_pytorch_is_the_peer_and_more_is_better() -> None:
    seconds = {"minigrad, numpy": [2.0, 2.0], "PyTorch": [3.0, 3.0], "PyTorch, fused AdamW": [1.0, 1.0]}
    peer = train_step.fastest(seconds)
    assert peer == "PyTorch, fused AdamW"
    assert train_step.ratios_to(seconds, peer) == {"numpy": 0.5, "numba": None}


@pytest.mark.parametrize(("value", "mark"), [(0.79, "MISSED"), (0.8, "reached")])
def test_a_ratio_below_its_goal_is_said_to_miss_it(value: float, mark: str) -> None:
    assert list(train_step.verdicts({"numba": value}, {"numba": 0.8}, "")) == [
        f"numba: {value:.2f} (to reach: at least 0.8): {mark}"
    ]


def test_kernels_that_do_not_load_are_not_measured_under_their_name(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.twins import gpt_minigrad

    monkeypatch.setenv("MINIGRAD_KERNELS", "numba")
    monkeypatch.setattr(gpt_minigrad.kernels, "implementation", lambda: "numpy")
    with pytest.raises(ImportError, match="numba does not work here"):
        gpt_minigrad.loaded_kernels()


@pytest.mark.torch
def test_generation_prints_the_ratios_last_and_all_write_the_same() -> None:
    result = last_line(run("benchmarks.generation", "--quick", "--json", "--config", "nano"))
    measured = result["detail"]["measured"]["nano"]
    assert measured["peers"].keys() == set(generation.PEERS) - measured["missing"].keys()
    assert measured["fastest"]["PyTorch"].startswith("PyTorch, ") and result["nano"]["numpy"] > 0
    assert measured["same"] and len(measured["tokens"]) == 61 and len(set(measured["tokens"])) > 10


def test_generation_names_pytorch_as_left_out_where_it_is_missing(no_torch: Path) -> None:
    done = run("benchmarks.generation", "--quick", "--json", "--config", "tiny", hidden=no_torch)
    assert last_line(done)["tiny"] == {"numpy": None, "numba": None}
    assert "left out: PyTorch, joined, 1 thread (no PyTorch in this test)" in done.stdout


def test_matmul_reports_every_way(no_torch: Path) -> None:
    result = last_line(run("benchmarks.matmul", "--quick", "--json", "--shape", "3x4x8x16", hidden=no_torch))
    measured = result["detail"]["measured"]
    assert measured.keys() == {f"3x4x8x16, {way}" for way in matmul.WAYS}
    assert all(one["same"] and one["peers"]["minigrad"]["median"] > 0 for one in measured.values())
    assert all(one["missing"].keys() == {"PyTorch"} for one in measured.values())


def test_recurrence_reports_every_layer(no_torch: Path) -> None:
    result = last_line(run("benchmarks.recurrence", "--quick", "--json", "--shape", "3x4x8x16", hidden=no_torch))
    measured = result["detail"]["measured"]
    assert measured.keys() == {"RNN 3x4x8x16", "GRU 3x4x8x16", "LSTM 3x4x8x16"}
    assert all(one["same"] and one["peers"]["minigrad"]["median"] > 0 for one in measured.values())


def test_convolution_reports_every_network(no_torch: Path) -> None:
    done = run("benchmarks.convolution", "--quick", "--json", "--task", "digits", hidden=no_torch)
    result = last_line(done)
    assert result.keys() == {"digits", "detail"} and result["digits"] is None
    measured = result["detail"]["tasks"]["digits"]
    assert measured["milliseconds"]["minigrad"]["median"] > 0 and len(measured["missing"]) == 2


@pytest.mark.parametrize("shape", ["3x4", "3x4x8xa", "3x4x8x0", "3,4,8,16", ""])
def test_a_shape_that_is_none_is_a_usage_error(shape: str) -> None:
    done = run("benchmarks.matmul", "--quick", "--shape", shape)
    assert done.returncode == 2
    assert f"expected four sizes such as 48x64x32x64, got {shape!r}" in done.stderr and "Traceback" not in done.stderr


def test_tasks_have_names_that_need_no_quotes() -> None:
    assert list(mlp_step.TASKS) == ["xor-sgd", "xor-adam", "sine-sgd", "sine-adam"]
    assert list(mlp_step.TASKS.values()) == ["XOR, SGD", "XOR, Adam", "sine, SGD", "sine, Adam"]  # as in RESULTS.md


def test_mlp_step_reports_every_task(no_torch: Path) -> None:
    done = run("benchmarks.mlp_step", "--quick", "--json", "--task", "sine-adam", hidden=no_torch)
    result = last_line(done)
    assert result["sine, Adam"] is None
    assert result["detail"]["measured"]["sine, Adam"]["missing"].keys() == mlp_step.TORCHES.keys()
    assert "sine, Adam: minigrad" in done.stdout


@pytest.mark.parametrize("task", compile_tasks.NETWORKS.values())
def test_a_step_that_can_be_compiled_is_the_step_of_the_same_network(task: str) -> None:
    from benchmarks.twins.mlp_minigrad import minigrad_step

    ours, known = minigrad_step(task, lambda f: f), mlp_step.make_step(task, "minigrad")
    assert [ours().item() for _ in range(5)] == [known().item() for _ in range(5)]


@pytest.mark.torch
@pytest.mark.parametrize("name", compiling.FUNCTIONS)
def test_both_libraries_have_the_same_plain_functions(name: str) -> None:
    from benchmarks.twins import plain_minigrad, plain_torch

    ours = plain_minigrad.minigrad_step(name, lambda f: f)()
    theirs = plain_torch.torch_step(name, None, compiled=False)()
    floating = [a for a in plain.inputs(name).values() if a.dtype == np.float32]
    assert len(ours.tensors) == len(plain.cotangents(name)) + len(floating)
    assert compiling.agree(compiling.apart([{compiling.PLAIN: ours.item(), "PyTorch": theirs.item()}]))


@pytest.mark.parametrize("wrong", [0.01, np.nan])
def test_one_wrong_element_is_found(wrong: float) -> None:
    right = np.random.default_rng(0).standard_normal(plain.SHAPE, np.float32)
    spoilt = right.copy()
    spoilt[1000, 100] += wrong
    values = {name: plain.Computed([array]).item() for name, array in (("right", right), ("spoilt", spoilt))}
    found = compiling.apart([values])
    assert compiling.agree({"right": found["right"]}) and not compiling.agree(found)
    assert not compiling.agree(compiling.apart([{"right": values["right"], "less": []}]))


def test_the_fastest_setting_of_each_other_library_is_compared_with() -> None:
    seconds = {
        compiling.OURS: [1.0, 2.0],
        compiling.PLAIN: [3.0, 6.0],
        "PyTorch": [9.0, 9.0],
        "PyTorch, 1 thread": [4.0, 8.0],
    }
    found = compiling.ratios(seconds)
    assert found["PyTorch"] == {
        "candidate": "PyTorch, 1 thread", "ours": compiling.OURS, "median": 4.0, "minimum": 4.0, "interval": [4.0, 4.0],
    }  # fmt: skip
    assert found[compiling.PLAIN]["median"] == 3.0 and found.keys() == {"PyTorch", compiling.PLAIN}
    assert compiling.ratios({"PyTorch": [1.0]}) == {}


def test_the_faster_of_our_own_ways_counts_and_the_extremes_are_left_out_of_the_interval() -> None:
    seconds = {"a": [2.0] * 4, "b": [1.0] * 4, "other": [1.0, 9.0, 3.0, 2.0]}
    found = compiling.ratios(seconds, ours=("a", "b"))
    assert found.keys() == {"other"} and found["other"]["ours"] == "b"
    assert found["other"]["interval"] == [2.0, 3.0] and found["other"]["median"] == 2.5


@pytest.mark.parametrize(("upper", "mark"), [(0.99, "MISSED"), (1.01, "reached")])
def test_an_interval_reaches_its_goal_with_its_upper_end(upper: float, mark: str) -> None:
    line = compiling.verdict_line("baby", 0.98, 1.0, interval=[0.9, upper])
    assert line == f"baby: 0.98, between 0.900 and {upper:.3f} (to reach: at least 1): {mark}"


def test_an_older_checkout_is_one_that_has_the_benchmark(tmp_path: Path) -> None:
    done = run("benchmarks.compile", "--quick", "--task", "baby", "--before", str(tmp_path))
    assert done.returncode == 2 and "expected a checkout of minigrad" in done.stderr


def test_a_step_of_an_older_checkout_is_that_of_the_same_model(no_torch: Path) -> None:
    pytest.importorskip("numba")
    names = ["baby", "translator"]
    result = last_line(
        run("benchmarks.compile", "--quick", "--json", "--task", *names, "--before", ".", hidden=no_torch)
    )
    for name in names:
        assert result[name].keys() == {compiling.BEFORE} and result[name][compiling.BEFORE] > 0
        assert max(result["detail"]["measured"][name]["apart"].values()) == 0


def test_a_gpt_in_plain_ops_is_the_gpt_of_our_layers() -> None:
    from benchmarks.twins import gpt_minigrad, plain_gpt_minigrad

    plain = plain_gpt_minigrad.minigrad_step(TINY, lambda f: f)
    fused = gpt_minigrad.minigrad_step(TINY)
    curves = np.array([(plain().item(), fused().item()) for _ in range(5)])
    np.testing.assert_allclose(curves[:, 0], curves[:, 1], rtol=1e-6)
    assert curves[-1, 0] < curves[0, 0]


@pytest.mark.parametrize(("value", "mark"), [(49.0, "MISSED"), (50.0, "reached")])
def test_a_compiled_step_that_is_too_slow_is_said_to_be(value: float, mark: str) -> None:
    assert compiling.verdict_line("xor", value, 50.0) == f"xor: {value:.2f} (to reach: at least 50): {mark}"


def test_compile_compares_and_names_what_is_left_out(no_torch: Path) -> None:
    names = ["sine", "lotka_volterra", "first-call"]
    done = run("benchmarks.compile", "--quick", "--json", "--task", *names, hidden=no_torch)
    result = last_line(done)
    assert result.keys() == {*names, "functions", "detail"}
    for name in names[:2]:
        measured = result["detail"]["measured"][name]
        assert "PyTorch" in measured["missing"] and compiling.PLAIN in measured["candidates"]
        assert compiling.agree(measured["apart"])
    assert "left out: PyTorch (no PyTorch in this test)" in done.stdout


@pytest.mark.skipif(not callable(getattr(mg, "compile", None)), reason="minigrad has no compile")
@pytest.mark.skipif(
    importlib.util.find_spec("numba") is None, reason="numba, which first-call imports, is not installed"
)
def test_what_is_compiled_computes_the_same_in_every_task(no_torch: Path) -> None:
    result = last_line(run("benchmarks.compile", "--quick", "--json", hidden=no_torch))
    for name, measured in result["detail"]["measured"].items():
        assert compiling.OURS not in measured["missing"] and compiling.agree(measured["apart"]), name
    for name, task in compiling.TASKS.items():
        assert compiling.PLAIN not in task.candidates or result[name][compiling.PLAIN] > 0
    assert result["functions"][compiling.PLAIN] > 0
    assert all(result[name]["cold"] > 0 and result[name]["warm"] > 0 for name in compiling.FIRST_CALLS)


@pytest.mark.parametrize("k", [-0.5, 1.0, 1.7])
def test_the_exponent_of_a_power_is_found(k: float) -> None:
    assert scaling.exponent([1, 2, 4, 8], [3 * size**k for size in (1, 2, 4, 8)]) == pytest.approx(k)


def test_scaling_prints_an_exponent_for_every_size_and_writes_its_section(tmp_path: Path) -> None:
    file, picture = tmp_path / "RESULTS.md", tmp_path / "scaling.png"
    done = run("benchmarks.scaling", "--quick", "--json", "--plot", str(picture), "--write", str(file))
    result = last_line(done)
    assert result.keys() == {*scaling.SWEEPS, "detail"}
    for one in result["detail"]["measured"].values():
        assert len(one["times"]) == len(one["sizes"])
    assert result["detail"]["measured"]["batch"]["expected"] == pytest.approx(1)
    written = file.read_text()
    assert written.startswith("# Results\n")
    assert "## How the cost of a step grows\n\n`python -m benchmarks.scaling --quick --json --plot" in written
    assert str(file) not in written
    assert picture.exists() == (importlib.util.find_spec("matplotlib") is not None)
    assert ("#### " in done.stdout) == (not picture.exists())


def test_bars_are_longer_for_longer_times() -> None:
    times = [{"median": t} for t in (1.0, 10.0, 100.0)]
    lines = scaling.draw_text({"batch": {"sizes": [1, 2, 4], "times": times}}, width=21).splitlines()
    assert [line.count("#") for line in lines] == [1, 11, 21]


def test_a_section_is_replaced_and_the_others_are_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "RESULTS.md"
    results.write_section(file, "First", "one")
    results.write_section(file, "Second", "two")
    results.write_section(file, "First", "three")
    assert file.read_text() == f"{results.HEAD}\n## First\n\nthree\n\n## Second\n\ntwo\n"
    assert [path.name for path in tmp_path.iterdir()] == ["RESULTS.md"]


def test_figures_that_look_like_a_title_stay_in_their_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "RESULTS.md"
    monkeypatch.setattr(sys, "argv", ["benchmark", "--write", str(file), "--config", "nano"])
    options = SimpleNamespace(write=file, json=False, quick=False)
    for _ in range(2):
        results.conclude(options, "Mine", "## not a title\n", {"detail": {"machine": measure.machine()}})
    written = file.read_text()
    assert written.count("\n## ") == 1
    assert "--write --config nano`" in written
    assert "\n    ## not a title\n" in written


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (["--write"], ["--write"]),
        (["--write", "a.md", "--quick"], ["--write", "--quick"]),
        (["--write=a.md", "b"], ["--write", "b"]),
        (["--json", "--before", str(ROOT)], ["--json", "--before", "PATH"]),
    ],
)
def test_the_command_is_shown_without_paths_of_this_machine(given: list[str], shown: list[str]) -> None:
    assert results._own_arguments(given) == shown
