"""Run the steps of a document in this folder, one after the other: python tests/support/document_runner.py STEPS RESULT

Both are JSON: a list of {"code": …} or {"words": […], "settings": {…}}, and what each wrote on stdout and on
stderr, up to the first that fails, whose traceback or exit code is the last.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from minigrad.cli import main as minigrad

ROOT = Path(__file__).resolve().parents[2]
SITE = Path("site").resolve()  # where plugins are installed
PIP = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", str(SITE)]


def run(step: dict[str, Any], names: dict[str, Any]) -> str:
    """Run one step; what is wrong with it, or nothing."""
    if "code" in step:
        with tempfile.TemporaryDirectory() as folder:
            block = Path(folder, f"{step['place']}.py")
            block.write_text(step["code"], encoding="utf-8")
            names.update(runpy.run_path(str(block), init_globals=names, run_name="__main__"))
        return ""
    program, *words = step["words"]
    if program == "minigrad" and not step["settings"]:
        code = minigrad(words)
    else:
        code = elsewhere(program, words, step["settings"])
    return f"it ended with {code}" if code else ""


def elsewhere(program: str, words: list[str], settings: dict[str, str]) -> int:
    """Run a program in a process of its own."""
    folder = None
    if program == "pip":
        words = [*PIP, f"./{words[-1]}"]
        sys.path.insert(0, str(SITE))
    elif program == "pytest":
        folder, words = words[-1], ["-m", "pytest", "-q", "-p", "no:cacheprovider"]
    elif program == "minigrad":
        words = ["-m", "minigrad", *words]
    elif program == "mpiexec":
        words[words.index("python")] = sys.executable
    command = [str(Path(sys.executable).with_name("mpiexec")) if program == "mpiexec" else sys.executable, *words]
    surroundings = {**os.environ, **settings, "PYTHONPATH": os.pathsep.join([str(SITE), str(ROOT)])}
    done = subprocess.run(command, cwd=folder, env=surroundings, capture_output=True, text=True, timeout=300)
    print(done.stdout, end="")
    print(done.stderr, end="", file=sys.stderr)
    return done.returncode


def main(steps: Path, result: Path) -> None:
    names: dict[str, Any] = {}
    seen = []
    for step in json.loads(steps.read_text(encoding="utf-8")):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                problem = run(step, names)
            except BaseException:  # also a SystemExit
                problem = traceback.format_exc()
        seen.append({"out": out.getvalue(), "err": err.getvalue(), "problem": problem})
        if problem:
            break
    result.write_text(json.dumps(seen), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
