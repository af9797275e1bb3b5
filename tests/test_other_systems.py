"""What macOS and Windows lack or do otherwise, simulated here: no fork, no affinity, no glibc, no limit on memory, other slashes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from minigrad.cli import main, plugins

ROOT = Path(__file__).resolve().parent.parent

# What every Python does as it starts, those that minigrad starts, too. NumPy and numba are imported before, since builds of
# theirs for Linux need what is taken away.
ELSEWHERE = """
import contextlib, ctypes, os, platform, signal, subprocess, sys
import numpy
with contextlib.suppress(ImportError):
    import numba
for name in (
    "fork", "forkpty", "register_at_fork", "sched_getaffinity", "sched_setaffinity", "getuid", "geteuid", "uname", "getloadavg", "killpg",
):
    delattr(os, name)
for name in ("SIGKILL", "SIGALRM", "SIGXCPU", "SIGHUP", "setitimer", "alarm"):
    delattr(signal, name)
subprocess.Popen.kill = subprocess.Popen.terminate
for name in ("resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
library = ctypes.CDLL
def load(name, *more, **options):
    if name is None:
        raise TypeError("LoadLibrary() argument 1 must be str, not None")
    return library(name, *more, **options)
ctypes.CDLL = load
platform.libc_ver = lambda *_: ("", "")
platform.system, platform.machine = lambda: "Elsewhere", lambda: "arm64"
"""


def run(code: str, folder: Path) -> str:
    """What a program prints on such a system."""
    start = folder / "start"
    start.mkdir(exist_ok=True)
    (start / "sitecustomize.py").write_text(ELSEWHERE, encoding="utf-8")
    path = os.pathsep.join([str(start), str(ROOT)])
    settings = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": path}
    command = [sys.executable, "-W", "error", "-c", f"import os, sys\nassert not hasattr(os, 'fork')\n{code}"]
    done = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_training_resuming_predicting_and_exporting_need_nothing_of_linux(tmp_path):
    code = """
from minigrad.cli import main
assert main(["train", "xor", "--out", "runs/first", "--max-steps", "20", "--no-report"]) == 0
assert main(["resume", "runs/first", "--max-steps", "40", "--no-report"]) == 0
assert main(["predict", "runs/first", "1 0"]) == 0
assert main(["export", "runs/first", "xor.html"]) == 0
"""
    assert "1 0" in run(code, tmp_path)
    assert (tmp_path / "xor.html").stat().st_size > 10_000


def test_exercises_are_marked_and_endless_ones_stopped_without_process_groups_and_limits(tmp_path):
    code = """
from pathlib import Path
from minigrad.learn import check, sheet
hole = 'raise NotImplementedError("write this")'
path = Path("lesson_01.py")
text = sheet(1).replace(hole, "return b + 1, a + 2 * b + 1", 1).replace(hole, "while True: pass", 1)
path.write_text(text.replace(hole, "import os; return os.fork()", 1), encoding="utf-8")
for one in check(path, seconds=2):
    print(one.name, one.status, one.got.partition(": ")[2])
"""
    assert run(code, tmp_path).splitlines() == [
        "slopes right ",
        "central slow ",
        "prices failed AttributeError: module 'os' has no attribute 'fork'",
    ]


@pytest.mark.parametrize("kernels", ["numpy", "numba"])
def test_the_same_numbers_come_without_forks_and_affinity(kernels, tmp_path):
    if kernels == "numba":
        pytest.importorskip("numba", reason="needs numba: pip install -e '.[fast]'")
    code = f"""
os.environ["MINIGRAD_KERNELS"] = "{kernels}"
import json
import minigrad as mg
x = mg.linspace(-2, 2, 4000).reshape(40, 100)
x.requires_grad = True
mg.nn.functional.gelu(mg.nn.functional.layer_norm(x, 100)).sum().backward()
print(json.dumps(x.grad.tolist()))
"""
    there = json.loads(run(code, tmp_path))
    here = subprocess.run([sys.executable, "-c", "import os" + code], capture_output=True, text=True, timeout=300)
    assert there == json.loads(here.stdout)


def test_a_limit_on_memory_that_the_system_refuses_is_done_without(tmp_path):
    pytest.importorskip("jinja2", reason="needs Jinja: pip install -e '.[hub]'")
    worker = ROOT / "minigrad" / "tokenizers" / "chat_worker.py"
    code = f"""
import io, runpy, sys, types
def refused(*_):
    raise ValueError("current limit exceeds maximum limit")
sys.modules["resource"] = types.SimpleNamespace(RLIMIT_AS=5, setrlimit=refused)
sys.stdin = io.StringIO('{{"template": "{{{{ word }}}}", "variables": {{"word": "de nada"}}}}')
runpy.run_path({str(worker)!r}, run_name="__main__")
"""
    assert json.loads(run(code, tmp_path)) == {"text": "de nada"}


@pytest.mark.parametrize("path", ["runs/nothing", r"runs\nothing"])
def test_a_path_that_does_not_exist_is_no_misspelt_model_whichever_slash_it_has(path, monkeypatch, capsys):
    monkeypatch.setattr(os, "sep", "\\")
    assert main(["graph", path]) == 2
    assert "does not exist: give the directory of a run" in capsys.readouterr().err
    with pytest.raises(Exception, match="nothing") as problem:
        plugins._meant(path)
    assert "did you mean" not in str(problem.value)
