"""What `mg.compile` makes of small networks, plain functions and transformers, against PyTorch, torch.compile and jax.jit.

    python -m benchmarks.compile [--task xor …] [--before FOLDER] [--jax FOLDER] [--quick] [--json] [--write]

Every candidate has a process of its own, and they take turns; data and weights are identical. PyTorch is measured with each
of its settings, and the fastest counts. A ratio is the other's time by ours, so more is better. Losses, results or
gradients that differ make the command fail. The functions are run forward and backward on 2,048 x 512 numbers.

`baby` and `translator` are compared with an older checkout, `--before FOLDER`: the interval is that of ten pairs without the
two extremes. `memory` is our peak by PyTorch's. `first-call` is how long the first two steps take in a new process, of
which one traces and the other plans, with nothing compiled yet and after that; ordinary steps are not taken off.

jax is no dependency: `--jax FOLDER` names the site-packages of an environment for the same Python that has it.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.metadata import distributions
from pathlib import Path
from statistics import median
from time import sleep
from typing import Any

import numpy as np

from . import train_step
from .compile_tasks import (
    BEFORE,
    COMPILED_TORCH,
    CONFIGS,
    FIRST_CALLS,
    FUNCTIONS,
    OURS,
    PLAIN,
    QUICK,
    TASKS,
    config_name,
    config_of,
    make,
)  # fmt: skip
from .measure import Worker, alternate, arguments, machine, progress, ratio, serve, summary, table, verdict
from .results import add_write_option, conclude

MODULE = "benchmarks.compile"
JAX_FOLDER = "MINIGRAD_BENCHMARK_JAX"  # tells the workers where jax is
SAME = 1e-3  # how far losses may be apart, in parts of them, and results and gradients, in parts of their largest
UNITS = {"microseconds": 1e6, "milliseconds": 1e3}
REST = 0.2  # seconds before each turn, in which the threads of the one before fall asleep
MEMORY = "memory"
MEMORY_TO_REACH = 0.85  # our peak by PyTorch's, of baby
OVER_FUNCTIONS = {COMPILED_TORCH: 1.0}  # to reach in the median over all functions


def work(name: str) -> None:
    """Be the worker "TASK/CANDIDATE" or "TASK/CANDIDATE/quick"."""
    task, candidate, *quick = name.split("/")
    if folder := os.environ.get(JAX_FOLDER):
        sys.path.append(folder)  # last: NumPy and all that is here, too, is imported from here
    serve(partial(make, task, candidate, QUICK in quick))


def measure(name: str, quick: bool, before: Path | None) -> dict[str, Any]:
    """How long a step takes, how it compares, and how far results are apart."""
    task = TASKS[name]
    rounds, steps, rest = (2, 2 if name in CONFIGS else 5, 0.0) if quick else (task.rounds, task.steps, REST)
    missing = {BEFORE: "give --before FOLDER"} if BEFORE in task.candidates and before is None else {}
    with ExitStack() as stack:
        progress(f"{name}: starting every candidate")
        asked = [c for c in task.candidates if c not in missing]
        workers = {c: stack.enter_context(worker_for(name, c, quick, before)) for c in asked}
        missing |= {c: reason for c, w in workers.items() if (reason := w.missing())}
        present = {c: w for c, w in workers.items() if c not in missing}
        checked = [values_after(present, count, name) for count in task.checks]
        turns = {c: partial(turn, w, steps, rest) for c, w in present.items()}
        seconds = alternate(turns, rounds, name)
    return {
        "title": f"{task.title}, {config_of(name, quick)}" if name in CONFIGS else task.title,
        "candidates": {c: summary(s, UNITS[task.unit] / steps) for c, s in seconds.items()},
        "ratios": ratios(seconds, task.ours),
        "apart": apart(checked),
        "missing": missing,
    }


@contextmanager
def worker_for(name: str, candidate: str, quick: bool, before: Path | None) -> Iterator[Worker]:
    """The process of a candidate. This and an older checkout are compared by the benchmark of training steps that each has."""
    with ExitStack() as stack:
        if name not in TASKS or BEFORE not in TASKS[name].candidates:
            yield stack.enter_context(Worker(MODULE, "/".join([name, candidate, *([QUICK] if quick else [])])))
            return
        chosen = f"{config_name(name, quick)}/minigrad, numba"
        if candidate == BEFORE and before is not None:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            Path(folder, "minigrad_models").symlink_to(before / "models")  # which installing it would do
            yield stack.enter_context(Worker(train_step.MODULE, chosen, before, [before, folder]))
        else:
            yield stack.enter_context(Worker(train_step.MODULE, chosen))


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
    return candidate if candidate.startswith("minigrad") else candidate.partition(",")[0]


def ratios(seconds: Mapping[str, Sequence[float]], ours: Sequence[str] = (OURS,)) -> dict[str, dict[str, Any]]:
    """For each of the others, the fastest of its settings: its time by that of the fastest of ours.

    It is the median within a round, that of the best rounds, and the interval of all rounds but the two extremes.
    """
    fastest: dict[str, str] = {}
    for candidate in sorted(seconds, key=lambda c: median(seconds[c])):
        fastest.setdefault("ours" if candidate in ours else group(candidate), candidate)
    if "ours" not in fastest:
        return {}
    best = fastest.pop("ours")
    return {name: compared(seconds[c], seconds[best]) | {"candidate": c, "ours": best} for name, c in fastest.items()}


def compared(others: Sequence[float], ours: Sequence[float]) -> dict[str, Any]:
    inner = sorted(a / b for a, b in zip(others, ours, strict=True))
    inner = inner[1:-1] if len(inner) > 2 else inner
    return {"median": ratio(others, ours), "minimum": min(others) / min(ours), "interval": [inner[0], inner[-1]]}


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


def measure_first_call(name: str, quick: bool) -> dict[str, Any]:
    """Seconds of the first two steps in a new process, cold and warm, and of the ten steps after them; the losses."""
    task = FIRST_CALLS[name]
    seconds: dict[str, dict[str, list[float]]] = {}
    checked: list[dict[str, Any]] = [{}, {}]
    missing = {}
    for candidate, i in [(c, i) for c in task.candidates for i in range(1 if quick else task.rounds)]:
        with tempfile.TemporaryDirectory() as folder, compiled_code_in(folder):
            for state in task.seconds:
                progress(f"{name}: round {i + 1}, {candidate}, {state}")
                with worker_for(name, candidate, quick, None) as worker:
                    if reason := worker.missing():
                        missing[candidate] = reason
                        continue
                    taken = seconds.setdefault(f"{candidate}, {state}", {"first": [], "next": []})
                    for calls, count, losses in zip(taken, (2, 10), checked):
                        taken[calls].append(worker.run(count))
                        losses[f"{candidate}, {state}, round {i + 1}"] = worker.value
    return {
        "seconds": {c: {calls: summary(s) for calls, s in taken.items()} for c, taken in seconds.items()},
        "apart": apart(checked) if checked[0] else {},
        "missing": missing,
    }


def measure_memory(quick: bool) -> dict[str, Any]:
    """Our peak by PyTorch's, and the megabytes."""
    peers = ("minigrad, numba", *train_step.TORCHES)
    measured = train_step.measure_memory(config_name("baby", quick), 2 if quick else 5, peers)
    found = measured["ratios"]["numba"]
    return {
        **measured,
        "title": str(config_of("baby", quick)),
        "ratios": {} if found is None else {"PyTorch": {"median": found}},
        "apart": {},
    }


def report(measured: Mapping[str, Mapping[str, Any]]) -> str:
    """The figures for people."""
    parts = []
    for name, one in measured.items():
        write = report_memory if name == MEMORY else report_first_call if name in FIRST_CALLS else report_task
        parts.append("\n".join([*write(name, one), *common_lines(one)]))
    over = over_functions(measured)
    lines = [
        verdict_line(f"median over the {len(FUNCTIONS)} functions: {name} / {OURS}", value, OVER_FUNCTIONS.get(name))
        for name, value in over.items()
    ]
    return "\n\n".join([*parts, "\n".join(lines)] if lines else parts)


def report_task(name: str, one: Mapping[str, Any]) -> Iterator[str]:
    task = TASKS[name]
    rows = [
        [c, f"{times['median']:.2f}", f"{times['minimum']:.2f}", f"{one['apart'][c]:.1g}"]
        for c, times in one["candidates"].items()
    ]
    yield f"{name} ({one['title']}): {task.unit} a step"
    yield table(("", "median", "minimum", "apart"), rows)
    for other, found in one["ratios"].items():
        title, goal = f"{found['candidate']} / {found['ours']}", task.goals.get(other)
        if other == BEFORE:
            yield verdict_line(title, found["median"], goal, interval=found["interval"])
        else:
            yield verdict_line(title, found["median"], goal, found["minimum"])


def report_first_call(name: str, one: Mapping[str, Any]) -> Iterator[str]:
    rows = [
        [c, *(f"{taken[calls][which]:.3f}" for calls in ("first", "next") for which in ("median", "minimum"))]
        for c, taken in one["seconds"].items()
    ]
    task = FIRST_CALLS[name]
    yield f"{name} ({task.title}): seconds in a new process, numba imported"
    yield table(("", "first 2, median", "minimum", "next 10, median", "minimum"), rows)
    for state, limit in task.seconds.items():
        if taken := one["seconds"].get(f"{OURS}, {state}"):
            yield f"first call, {state}: {verdict(taken['first']['median'], limit, ' s')}"


def report_memory(name: str, one: Mapping[str, Any]) -> Iterator[str]:
    before = list(train_step.BEFOREHAND)
    yield f"{name} (training step, {one['title']}): megabytes at the peak less megabytes before"
    yield table(
        ("", *(f"after {b}" for b in before)),
        [[p, *(f"{grown[b]:.1f}" for b in before)] for p, grown in one["megabytes"].items()],
    )
    for found in one["ratios"].values():
        yield f"minigrad, numba / PyTorch, the larger of both: {verdict(found['median'], MEMORY_TO_REACH)}"


def verdict_line(
    title: str,
    value: float,
    goal: float | None,
    minimum: float | None = None,
    interval: Sequence[float] | None = None,
) -> str:
    """A ratio, and whether it, or else the upper end of its interval, is large enough."""
    best = "" if minimum is None else f", of the best rounds {minimum:.2f}"
    best += "" if interval is None else f", between {interval[0]:.3f} and {interval[1]:.3f}"
    reached = goal is not None and (value if interval is None else interval[1]) >= goal
    mark = "" if goal is None else f" (to reach: at least {goal:g}): {'reached' if reached else 'MISSED'}"
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


def figures(name: str, one: Mapping[str, Any]) -> dict[str, float | None]:
    """What the last line says of a task: its ratios, or the seconds of first calls."""
    if name in FIRST_CALLS:
        taken = {state: one["seconds"].get(f"{OURS}, {state}") for state in FIRST_CALLS[name].seconds}
        return {state: None if found is None else found["first"]["median"] for state, found in taken.items()}
    return {other: found["median"] for other, found in one["ratios"].items()}


def surroundings() -> dict[str, Any]:
    """The machine, and the version of jax where it is."""
    found = machine()
    if folder := os.environ.get(JAX_FOLDER):
        found["versions"].update((d.name, d.version) for d in distributions(name="jax", path=[folder]))
    return found


def options_of() -> argparse.Namespace:
    parser = arguments(__doc__)
    add_write_option(parser)
    names = [*TASKS, MEMORY, *FIRST_CALLS]
    parser.add_argument("--task", choices=names, nargs="+", default=names, help="what to measure (default: all)")
    parser.add_argument("--before", metavar="FOLDER", type=Path, help="a checkout of an older version to compare with")
    parser.add_argument("--jax", metavar="FOLDER", help="the site-packages that jax is in, if it is not in these")
    options = parser.parse_args()
    if options.before and not (options.before / "benchmarks" / "train_step.py").exists():
        parser.error(f"--before: expected a checkout of minigrad, got {os.fspath(options.before)!r}")
    return options


def measure_one(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Whatever there is to measure of a task."""
    if name == MEMORY:
        return measure_memory(options.quick)
    if name in FIRST_CALLS:
        return measure_first_call(name, options.quick)
    return measure(name, options.quick, options.before.resolve() if options.before else None)


def main() -> int:
    options = options_of()
    if options.worker:
        work(options.worker)
        return 0
    if options.jax:
        os.environ[JAX_FOLDER] = os.path.abspath(options.jax)
    measured = {name: measure_one(name, options) for name in options.task}
    progress("")
    detail = {"benchmark": "compile", "quick": options.quick, "machine": surroundings(), "measured": measured}
    result = {**{name: figures(name, one) for name, one in measured.items()}, "functions": over_functions(measured)}
    conclude(options, "Compiled steps and functions", report(measured), {**result, "detail": detail})
    return 0 if all(agree(one["apart"]) for one in measured.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
