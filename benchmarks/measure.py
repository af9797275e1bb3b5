"""How the benchmarks measure: candidates take turns, the median and the minimum of the rounds are reported.

Taking turns spreads whatever else the machine does over all candidates alike. A library that would disturb the
others (by its threads, its allocator, its garbage) runs in a process of its own: a `Worker` in the parent, `serve`
in the child. The child blocks on its input, and so uses no time, until it is asked for its next steps.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = ("minigrad", "numpy", "numba", "cupy-cuda12x", "cupy-cuda13x", "torch", "mygrad", "autograd")
_spoke = float("-inf")


def arguments(description: str | None) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object, last")
    parser.add_argument("--quick", action="store_true", help="few rounds: shows that it works, the figures are rough")
    parser.add_argument("--worker", metavar="NAME", help=argparse.SUPPRESS)
    return parser


def progress(text: str) -> None:
    """Say on stderr what is being measured, at most twice a second: on a terminal always in the same line, which "" clears."""
    global _spoke
    now = perf_counter()
    if text and now - _spoke < 0.5:
        return
    _spoke = now
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


def timed(function: Callable[[], Any], times: int) -> float:
    """The seconds that `times` calls take."""
    start = perf_counter()
    for _ in range(times):
        function()
    return perf_counter() - start


def alternate(candidates: Mapping[str, Callable[[], float]], rounds: int, title: str) -> dict[str, list[float]]:
    """Let every candidate measure itself once in each round; the one that begins changes from round to round."""
    names = list(candidates)
    measured: dict[str, list[float]] = {name: [] for name in names}
    for i in range(rounds):
        for k in range(len(names)):
            name = names[(i + k) % len(names)]
            progress(f"{title}: round {i + 1} of {rounds}, {name}")
            measured[name].append(candidates[name]())
    return measured


def summary(values: Sequence[float], scale: float = 1.0) -> dict[str, float]:
    return {"median": median(values) * scale, "minimum": min(values) * scale}


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the ratios of each round, in which both met the same conditions."""
    return median(a / b for a, b in zip(ours, theirs, strict=True))


def excess(ours: Sequence[float], theirs: Sequence[float], scale: float = 1.0) -> dict[str, float]:
    """How much longer ours takes: the median difference within a round, and the difference of the best rounds."""
    return {
        "median": median(a - b for a, b in zip(ours, theirs, strict=True)) * scale,
        "minimum": (min(ours) - min(theirs)) * scale,
    }


class WorkerFailed(RuntimeError):
    """A worker ended without an answer; its own error stands above, on stderr."""


class Worker:
    """A process of its own, `python -m MODULE --worker NAME`, that runs steps when asked.

    It runs in `folder`, and imports what it can from those in `paths`.
    """

    def __init__(self, module: str, name: str, folder: Path = ROOT, paths: Sequence[str | Path] = ()):
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, "--worker", name],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))} if paths else None,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.value = float("nan")  # what the last step returned

    def missing(self) -> str | None:
        """Wait until it is ready; why it cannot be, if its library is not installed. To be asked once, before `run`."""
        return self._answer().get("missing")

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise WorkerFailed(f"the worker {self.name!r} ended with status {self.process.wait()}")
        return json.loads(line)

    def run(self, steps: int, warm: int = 0) -> float:
        """Run `warm` steps, then `steps` more; the seconds of the latter."""
        assert self.process.stdin is not None
        print(json.dumps({"steps": steps, "warm": warm}), file=self.process.stdin, flush=True)
        answer = self._answer()
        self.value = answer["value"]
        return answer["seconds"]

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()  # the end of its input is the end of its work


def serve(make: Callable[[], Callable[[], Any]]) -> None:
    """Be a worker: build the step with `make`, then run it as often as each line on stdin asks.

    A step returns something with `.item()`, such as its loss. What libraries print goes to stderr.
    """
    answers, sys.stdout = sys.stdout, sys.stderr
    try:
        step = make()
    except ImportError as error:
        print(json.dumps({"missing": str(error)}), file=answers, flush=True)
        return
    print(json.dumps({}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        for _ in range(request["warm"]):
            step()
        start = perf_counter()
        for _ in range(request["steps"]):
            value = step()
        seconds = perf_counter() - start
        print(json.dumps({"seconds": seconds, "value": value.item()}), file=answers, flush=True)


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    config: Any = np.show_config(mode="dicts")
    blas = config["Build Dependencies"]["blas"]
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "blas": f"{blas['name']} {blas['version']}",
        "versions": {name: version for name in LIBRARIES if (version := _version(name))},
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor()
    )


def _version(library: str) -> str | None:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return None


def describe(machine: Mapping[str, Any]) -> str:
    """The machine in two lines."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    hardware = f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']}, {machine['system']}"
    return f"{hardware}\nPython {machine['python']}, {versions}, BLAS {machine['blas']}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Aligned columns: the first to the left, the others to the right."""
    lines = [list(head), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(line, widths))).rstrip()
        for line in lines
    )


def verdict(value: float, limit: float, unit: str = "") -> str:
    return f"{value:.3g}{unit} (to reach: at most {limit:g}{unit}): {'reached' if value <= limit else 'MISSED'}"
