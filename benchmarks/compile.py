"""What `mg.compile` makes of small networks and of functions written in plain ops, against PyTorch, torch.compile and jax.jit.

    python -m benchmarks.compile [--task xor …] [--jax FOLDER] [--quick] [--json] [--write]

Every candidate has a process of its own, and they take turns; data and weights are identical. PyTorch is measured as it
comes and with one thread, and the faster counts. A ratio is the other's time by ours, so more is better. Losses, results
or gradients that differ make the command fail. The functions are run forward and backward on 2,048 x 512 numbers;
`first-call` is how long the first step of a network takes in a new process, with nothing compiled yet and after that.

jax is no dependency: `--jax FOLDER` names the site-packages of an environment for the same Python that has it.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import distributions
from statistics import median
from time import sleep
from typing import Any

import numpy as np

from . import mlp_step
from .measure import Worker, alternate, arguments, machine, progress, ratio, serve, summary, table, verdict
from .results import add_write_option, conclude

MODULE = "benchmarks.compile"
OURS, PLAIN = "minigrad, compiled", "minigrad, op by op"
JAXES = {"jax.jit": False, "jax.jit, in this thread": True}
TORCHES: dict[str, int | None] = {"PyTorch": None, "PyTorch, 1 thread": 1}
COMPILED_TORCHES: dict[str, int | None] = {"torch.compile": None, "torch.compile, 1 thread": 1}
JAX_FOLDER = "MINIGRAD_BENCHMARK_JAX"  # tells the workers where jax is
SAME = 1e-3  # how far losses may be apart, in parts of them, and results and gradients, in parts of their largest
UNITS = {"microseconds": 1e6, "milliseconds": 1e3}
REST = 0.25  # seconds before each turn, in which the threads of the one before fall asleep
FIRST_CALL = "first-call"
FIRST_CALL_TASK = "sine, Adam"
SECONDS = {"cold": 5.0, "warm": 0.5}  # that the first call may take
OVER_FUNCTIONS = {"torch.compile": 1.0}  # to reach in the median over all functions


@dataclass(frozen=True)
class Task:
    """Something that several candidates do."""

    make: Callable[[str, str], Callable[[], Any]]  # (task, candidate) -> one step; ImportError if it is not installed
    candidates: Sequence[str]
    goals: Mapping[str, float]  # how many times as fast as others ours is to be
    steps: int  # in a round
    unit: str = "milliseconds"
    checks: Sequence[int] = (1, 2)  # steps after which results must agree, each counted from the one before
    title: str = field(default="", kw_only=True)


def wrapper(candidate: str) -> Callable[[Any], Any]:
    """`mg.compile`, or for the candidate that does without it a function that changes nothing."""
    import minigrad

    if candidate == PLAIN:
        return lambda f: f
    wrap = getattr(minigrad, "compile", None)
    if not callable(wrap):
        raise ImportError("minigrad has no compile")
    return wrap


def make_network(task: str, candidate: str) -> Callable[[], Any]:
    """One step of a small network's training; it returns the loss."""
    if candidate in JAXES:
        from .twins.mlp_jax import jax_step

        return jax_step(JAXES[candidate])
    if candidate in mlp_step.TORCHES:
        return mlp_step.make_step(NETWORKS[task], candidate)
    from .twins.mlp_minigrad import minigrad_step

    return minigrad_step(NETWORKS[task], wrapper(candidate))


def make_function(task: str, candidate: str) -> Callable[[], Any]:
    """One function forward and backward; it returns its results and gradients."""
    if candidate in TORCHES:
        from .twins.plain_torch import torch_step

        return torch_step(task, TORCHES[candidate], compiled=False)
    if candidate in COMPILED_TORCHES:
        from .twins.plain_torch import torch_step

        if not any(map(shutil.which, (os.environ.get("CXX", "g++"), "clang++"))):
            raise ImportError("it needs a C++ compiler")
        return torch_step(task, COMPILED_TORCHES[candidate], compiled=True)
    from .twins.plain_minigrad import minigrad_step

    return minigrad_step(task, wrapper(candidate))


NETWORKS = {"xor": "XOR, SGD", "sine": "sine, Adam"}
FUNCTIONS = ("layer_norm_gelu", "masked_softmax", "focal_loss", "lotka_volterra", "rms_norm_gated")
_network = partial(Task, make_network, steps=2000, unit="microseconds", checks=(1, mlp_step.SAME - 1))
_function = partial(
    Task, make_function, (OURS, PLAIN, *TORCHES, *COMPILED_TORCHES), {"PyTorch": 2.0, PLAIN: 3.0}, steps=20
)
TASKS: dict[str, Task] = {
    "xor": _network(
        candidates=(OURS, PLAIN, *mlp_step.TORCHES, *JAXES), goals={"PyTorch": 50.0, "jax.jit": 1.0}, title="2-8-1, SGD"
    ),
    "sine": _network(candidates=(OURS, PLAIN, *mlp_step.TORCHES), goals={"PyTorch": 20.0}, title="1-10-10-1, Adam"),
    **{name: _function(title="2,048 x 512, forward and backward") for name in FUNCTIONS},
    # Here belong the training steps of transformers, once the Trainer compiles its TrainStep: a `make_transformer`, and
    #   "gpt": twins/gpt_minigrad.py, nano, compiled and not, PyTorch; goals {"PyTorch": 1.2}
    #   "plain-gpt": the same without any fused op, compiled, against the fused one; at least 0.95
    #   "baby", "translator": compiled against the kernels written by hand; at least 1.0
}


def work(name: str) -> None:
    """Be the worker "TASK/CANDIDATE"."""
    task, candidate = name.split("/")
    if folder := os.environ.get(JAX_FOLDER):
        sys.path.append(folder)  # last: NumPy and all that is here, too, is imported from here
    make = make_first_call if task == FIRST_CALL else partial(TASKS[task].make, task)
    serve(partial(make, candidate))


def measure(name: str, rounds: int, steps: int, rest: float) -> dict[str, Any]:
    """How long a step takes, how it compares, and how far results are apart."""
    task = TASKS[name]
    with ExitStack() as stack:
        progress(f"{name}: starting every candidate")
        workers = {c: stack.enter_context(Worker(MODULE, f"{name}/{c}")) for c in task.candidates}
        missing = {c: reason for c, w in workers.items() if (reason := w.missing())}
        present = {c: w for c, w in workers.items() if c not in missing}
        checked = [values_after(present, count, name) for count in task.checks]
        turns = {c: partial(turn, w, steps, rest) for c, w in present.items()}
        seconds = alternate(turns, rounds, name)
    return {
        "candidates": {c: summary(s, UNITS[task.unit] / steps) for c, s in seconds.items()},
        "ratios": ratios(seconds),
        "apart": apart(checked),
        "missing": missing,
    }


def turn(worker: Worker, steps: int, rest: float) -> float:
    """The seconds of some steps, after a rest and a tenth as many that nobody counts."""
    sleep(rest)
    return worker.run(steps, warm=max(steps // 10, 2))


def values_after(workers: Mapping[str, Worker], count: int, title: str) -> dict[str, Any]:
    """What each candidate has computed after so many steps more."""
    values = {}
    for candidate, worker in workers.items():
        progress(f"{title}: results of {candidate}")
        worker.run(count)
        values[candidate] = worker.value
    return values


def apart(checked: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """How far each candidate's values are from ours without compiling, or the first there are, at most; NaN if any is."""
    found: dict[str, float] = {}
    for values in checked:
        reference = _digests(values[next((c for c in values if c.startswith(PLAIN)), next(iter(values)))])
        for candidate, value in values.items():
            distance = _distance(_digests(value), reference)
            found[candidate] = float(np.max([found.get(candidate, 0.0), distance]))
    return found


def _digests(value: Any) -> list[list[float]]:
    """A number like the digest of an array: its magnitude, and itself."""
    return value if isinstance(value, list) else [[abs(value), value]]


def _distance(own: list[list[float]], other: list[list[float]]) -> float:
    """The largest difference, in parts of the largest magnitude; infinite if there is not as much to compare."""
    if list(map(len, own)) != list(map(len, other)):
        return math.inf
    return float(np.max([np.abs(np.subtract(a, b)).max() / max(b[0], 1e-30) for a, b in zip(own, other)]))


def agree(apart: Mapping[str, float]) -> bool:
    """Whether all values are the same but for rounding; NaN is not."""
    return all(distance <= SAME for distance in apart.values())


def group(candidate: str) -> str:
    """What a candidate is a setting of: "PyTorch, 1 thread" of "PyTorch"."""
    return candidate if candidate in (OURS, PLAIN) else candidate.partition(",")[0]


def ratios(seconds: Mapping[str, Sequence[float]]) -> dict[str, dict[str, Any]]:
    """For each of the others, the fastest of its settings: its time by ours, within a round and in the best rounds."""
    if OURS not in seconds:
        return {}
    fastest: dict[str, str] = {}
    for candidate in sorted(seconds, key=lambda c: median(seconds[c])):
        fastest.setdefault(group(candidate), candidate)
    ours = seconds[OURS]
    return {
        name: {"candidate": c, "median": ratio(seconds[c], ours), "minimum": min(seconds[c]) / min(ours)}
        for name, c in fastest.items()
        if name != OURS
    }


def make_first_call(candidate: str) -> Callable[[], Any]:
    """A step that nobody has called yet, of a network; numba has been imported."""
    import numba  # noqa: F401

    from .twins.mlp_minigrad import minigrad_step

    return minigrad_step(FIRST_CALL_TASK, wrapper(candidate))


@contextmanager
def compiled_code_in(folder: str) -> Iterator[None]:
    """Inside, new processes keep what they compile in this folder."""
    before = os.environ.get("NUMBA_CACHE_DIR")
    os.environ["NUMBA_CACHE_DIR"] = folder
    try:
        yield
    finally:
        del os.environ["NUMBA_CACHE_DIR"]
        if before is not None:
            os.environ["NUMBA_CACHE_DIR"] = before


def measure_first_call(rounds: int) -> dict[str, Any]:
    """Seconds of the first step in a new process, cold and warm, and of the ten steps after it; its losses."""
    seconds: dict[str, dict[str, list[float]]] = {}
    checked: list[dict[str, Any]] = [{}, {}]
    missing = {}
    for candidate in (OURS, PLAIN):
        for i in range(rounds):
            with tempfile.TemporaryDirectory() as folder, compiled_code_in(folder):
                for state in SECONDS:
                    progress(f"{FIRST_CALL}: round {i + 1} of {rounds}, {candidate}, {state}")
                    with Worker(MODULE, f"{FIRST_CALL}/{candidate}") as worker:
                        if reason := worker.missing():
                            missing[candidate] = reason
                            continue
                        for count, losses in zip((1, 10), checked):
                            taken = seconds.setdefault(f"{candidate}, {state}", {"first": [], "next": []})
                            taken["first" if count == 1 else "next"].append(worker.run(count))
                            losses[f"{candidate}, {state}, round {i + 1}"] = worker.value
    return {
        "seconds": {c: {calls: summary(s) for calls, s in taken.items()} for c, taken in seconds.items()},
        "apart": apart(checked) if checked[0] else {},
        "missing": missing,
    }


def report(measured: Mapping[str, Mapping[str, Any]]) -> str:
    """The figures for people."""
    parts = [report_first_call(one) if name == FIRST_CALL else report_task(name, one) for name, one in measured.items()]
    over = over_functions(measured)
    lines = [
        verdict_line(f"median over the {len(FUNCTIONS)} functions: {name} / {OURS}", value, OVER_FUNCTIONS.get(name))
        for name, value in over.items()
    ]
    return "\n\n".join([*parts, "\n".join(lines)] if lines else parts)


def report_task(name: str, one: Mapping[str, Any]) -> str:
    task = TASKS[name]
    rows = [
        [c, f"{times['median']:.2f}", f"{times['minimum']:.2f}", f"{one['apart'][c]:.1g}"]
        for c, times in one["candidates"].items()
    ]
    lines = [
        f"{name} ({task.title}): {task.unit} a step, float32",
        table(("", "median", "minimum", "apart"), rows),
        *(
            verdict_line(f"{found['candidate']} / {OURS}", found["median"], task.goals.get(other), found["minimum"])
            for other, found in one["ratios"].items()
        ),
        *common_lines(one),
    ]
    return "\n".join(lines)


def report_first_call(one: Mapping[str, Any]) -> str:
    rows = [
        [c, *(f"{taken[calls][which]:.3f}" for calls in ("first", "next") for which in ("median", "minimum"))]
        for c, taken in one["seconds"].items()
    ]
    head = ("", "first, median", "minimum", "next 10, median", "minimum")
    lines = [f"{FIRST_CALL} ({FIRST_CALL_TASK}): seconds in a new process, numba imported", table(head, rows)]
    for state, limit in SECONDS.items():
        if taken := one["seconds"].get(f"{OURS}, {state}"):
            lines.append(f"first call, {state}: {verdict(taken['first']['median'], limit, ' s')}")
    return "\n".join([*lines, *common_lines(one)])


def verdict_line(title: str, value: float, goal: float | None, minimum: float | None = None) -> str:
    """A ratio, and whether it is large enough."""
    best = "" if minimum is None else f", of the best rounds {minimum:.2f}"
    mark = "" if goal is None else f" (to reach: at least {goal:g}): {'reached' if value >= goal else 'MISSED'}"
    return f"{title}: {value:.2f}{best}{mark}"


def common_lines(one: Mapping[str, Any]) -> Iterable[str]:
    """Which candidates differ, and which are missing."""
    for candidate, distance in one["apart"].items():
        if not agree({candidate: distance}):
            yield f"THE RESULTS DIFFER: {candidate} is {distance:.2g} apart from {PLAIN} (at most {SAME:g})"
    yield from (f"left out: {candidate} ({reason})" for candidate, reason in one["missing"].items())


def over_functions(measured: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """The median of the ratios over all functions, where all were measured."""
    found = [measured[name]["ratios"] for name in FUNCTIONS if name in measured]
    if len(found) < len(FUNCTIONS):
        return {}
    return {
        name: median(one[name]["median"] for one in found) for name in found[0] if all(name in one for one in found)
    }


def figures(one: Mapping[str, Any]) -> dict[str, float | None]:
    """What the last line says of a task: its ratios, or the seconds of first calls."""
    if "seconds" in one:
        return {s: one["seconds"].get(f"{OURS}, {s}", {}).get("first", {}).get("median") for s in SECONDS}
    return {name: found["median"] for name, found in one["ratios"].items()}


def surroundings() -> dict[str, Any]:
    """The machine, and the version of jax where it is."""
    found = machine()
    if folder := os.environ.get(JAX_FOLDER):
        found["versions"].update((d.name, d.version) for d in distributions(name="jax", path=[folder]))
    return found


def options_of() -> argparse.Namespace:
    parser = arguments(__doc__)
    add_write_option(parser)
    names = [*TASKS, FIRST_CALL]
    parser.add_argument("--task", choices=names, nargs="+", default=names, help="what to measure (default: all)")
    parser.add_argument("--jax", metavar="FOLDER", help="the site-packages that jax is in, if it is not in these")
    return parser.parse_args()


def main() -> int:
    options = options_of()
    if options.worker:
        work(options.worker)
        return 0
    if options.jax:
        os.environ[JAX_FOLDER] = os.path.abspath(options.jax)
    measured = {}
    for name in options.task:
        if name == FIRST_CALL:
            measured[name] = measure_first_call(1 if options.quick else 3)
        else:
            measured[name] = measure(name, *((2, 5, 0.0) if options.quick else (15, TASKS[name].steps, REST)))
    progress("")
    detail = {"benchmark": "compile", "quick": options.quick, "machine": surroundings(), "measured": measured}
    result = {**{name: figures(one) for name, one in measured.items()}, "functions": over_functions(measured)}
    conclude(options, "Compiled steps and functions", report(measured), {**result, "detail": detail})
    return 0 if all(agree(one["apart"]) for one in measured.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
