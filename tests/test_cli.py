"""The command line, run as a user runs it: in a process of its own."""

import re
import subprocess
import sys

import pytest

import minigrad


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "minigrad", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )


def truth_table(output: str) -> list[tuple[int, int, int, float, int]]:
    rows = re.findall(r"^ *([01]) +([01]) +([01]) +([01]\.\d+) +([01])$", output, re.MULTILINE)
    return [
        (int(a), int(b), int(target), float(prediction), int(rounded)) for a, b, target, prediction, rounded in rows
    ]


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_demo_learns_xor_from_any_seed(seed):
    done = run("demo", "--seed", str(seed))
    assert (done.returncode, done.stderr) == (0, "")
    table = truth_table(done.stdout)
    assert [(a, b) for a, b, *_ in table] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    for a, b, target, prediction, rounded in table:
        assert target == rounded == a ^ b
        assert abs(prediction - target) < 0.1
    assert "Success: 4 of 4" in done.stdout


def test_demo_shows_a_loss_that_falls():
    losses = [float(loss) for loss in re.findall(r"^ *\d+  (\d\.\d{4})$", run("demo").stdout, re.MULTILINE)]
    assert len(losses) == 11
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0] / 20


def test_demo_repeats_itself_exactly_and_another_seed_differs():
    assert run("demo", "--steps", "20").stdout == run("demo", "--seed", "0", "--steps", "20").stdout
    assert truth_table(run("demo", "--steps", "20").stdout) != truth_table(
        run("demo", "--steps", "20", "--seed", "1").stdout
    )


def test_demo_that_has_not_learned_says_so_and_fails():
    done = run("demo", "--steps", "0")
    assert done.returncode == 1
    assert "Failure: " in done.stdout
    assert any(rounded != target for _, _, target, _, rounded in truth_table(done.stdout))


def test_version_is_that_of_the_package():
    assert run("--version").stdout == f"minigrad {minigrad.__version__}\n"


def test_help_lists_the_commands_and_an_example():
    for arguments in ((), ("--help",)):
        done = run(*arguments)
        assert done.returncode == 0
        assert re.search(r"^ +demo +train a small network", done.stdout, re.MULTILINE)
        assert "example:\n  minigrad demo" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["dmo"], "no command 'dmo': did you mean 'demo'?"),
        (["xyzzy"], "no command 'xyzzy': choose one of demo"),
        (["demo", "--seed", "many"], "expected a whole number from 0 up, got 'many'"),
        (["demo", "--seed", "-1"], "--seed"),
        (["demo", "--steps", "1.5"], "expected a whole number from 0 up, got '1.5'"),
        (["demo", "--sed", "1"], "unrecognized arguments: --sed 1"),
        (["--bogus"], "unrecognized arguments: --bogus"),
    ],
)
def test_a_wrong_call_gets_one_line_and_exit_code_2(arguments, part):
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("minigrad")
    assert part in done.stderr


def test_a_reader_that_leaves_early_gets_no_traceback():
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "minigrad", "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline().startswith("Learning XOR")
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 1
    assert errors == ""
