"""Small networks trained in minigrad and in PyTorch, written alike with layers and optimisers: what a step takes.

    python -m benchmarks.mlp_step [--task xor-sgd …] [--quick] [--json] [--write]

XOR is a 2-8-1 network on its four examples; sine is 1-10-10-1 on 64 points. Weights and data are identical, every
candidate has a process of its own, and they take turns. PyTorch is measured as it comes, with one thread, and with one
thread and its fused optimiser; the fastest counts. Losses that differ make the command fail.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from .measure import Worker, alternate, arguments, machine, progress, ratio, serve, summary, table
from .results import add_write_option, conclude

MODULE = "benchmarks.mlp_step"
MICRO = 1e6
TO_REACH = 1.7
SAME = 100  # steps after which the losses must agree; much later rounding has led them apart
OPTIMIZERS: dict[str, dict[str, Any]] = {"SGD": {"lr": 0.1}, "Adam": {"lr": 1e-3}}
SIZES = {"XOR": (2, 8, 1), "sine": (1, 10, 10, 1)}
TASKS = {f"{problem}-{name}".lower(): f"{problem}, {name}" for problem in SIZES for name in OPTIMIZERS}
TORCHES: dict[str, tuple[int | None, dict[str, bool]]] = {
    "PyTorch": (None, {}),
    "PyTorch, 1 thread": (1, {}),
    "PyTorch, 1 thread, fused": (1, {"fused": True}),
}


def examples(problem: str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets."""
    if problem == "XOR":
        x = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
        return x, (x[:, :1] != x[:, 1:]).astype(np.float32)  # (4, 2), (4, 1)
    x = np.linspace(-math.pi, math.pi, 64, dtype=np.float32).reshape(64, 1)
    return x, np.sin(x)  # (64, 1), (64, 1)


def layers(library: Any, problem: str) -> list[Any]:
    """The layers in minigrad or PyTorch, which name them alike."""
    nn, sizes = library.nn, SIZES[problem]
    parts = [nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])]
    if problem == "XOR":
        return [parts[0], nn.Tanh(), parts[1], nn.Sigmoid()]
    return [parts[0], nn.ReLU(), parts[1], nn.ReLU(), parts[2]]


def new_step(library: Any, task: str, **options: Any) -> Callable[[], Any]:
    """One step of training in minigrad or PyTorch, which are written alike; it returns the loss."""
    problem, optimizer_name = task.split(", ")
    model = library.nn.Sequential(*layers(library, problem))
    rng = np.random.default_rng(0)
    drawn = {name: rng.uniform(-0.5, 0.5, tuple(p.shape)).astype(np.float32) for name, p in model.named_parameters()}
    model.load_state_dict({name: library.tensor(array) for name, array in drawn.items()})
    x, y = (library.tensor(array) for array in examples(problem))
    optimizer = getattr(library.optim, optimizer_name)(model.parameters(), **OPTIMIZERS[optimizer_name], **options)
    mse_loss = library.nn.functional.mse_loss

    def step() -> Any:
        loss = mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return step


def make_step(task: str, peer: str) -> Callable[[], Any]:
    """One step of a candidate, whose library is imported only here; ImportError if it is not installed."""
    if peer not in TORCHES:
        import minigrad

        return new_step(minigrad, task)
    import torch

    threads, options = TORCHES[peer]
    if threads is not None:
        torch.set_num_threads(threads)
    return new_step(torch, task, **options)


def measure(task: str, rounds: int, steps: int) -> dict[str, Any]:
    """Microseconds a step, the losses reached, and how they compare."""
    with ExitStack() as stack:
        progress(f"{task}: starting both libraries")
        workers = {p: stack.enter_context(Worker(MODULE, f"{task}/{p}")) for p in ("minigrad", *TORCHES)}
        missing = {p: reason for p, w in workers.items() if (reason := w.missing())}
        present = {p: w for p, w in workers.items() if p not in missing}
        for worker in present.values():
            worker.run(SAME)
        losses = {p: w.value for p, w in present.items()}
        turns = {p: partial(w.run, steps, warm=steps // 10) for p, w in present.items()}
        seconds = alternate(turns, rounds, task)
    peer = min((p for p in TORCHES if p in seconds), key=lambda p: median(seconds[p]), default=None)
    return {
        "peers": {p: {**summary(s, MICRO / steps), "loss": losses[p]} for p, s in seconds.items()},
        "pytorch": peer,
        "ratio": ratio(seconds[peer], seconds["minigrad"]) if peer else None,
        "steps": SAME,
        "same_loss": all(math.isclose(loss, losses["minigrad"], rel_tol=1e-3) for loss in losses.values()),
        "missing": missing,
    }


def report(measured: Mapping[str, Mapping[str, Any]]) -> str:
    """The times for people."""
    rows, verdicts = [], []
    for task, one in measured.items():
        for peer, times in one["peers"].items():
            rows.append(
                [f"{task}: {peer}", f"{times['median']:.1f}", f"{times['minimum']:.1f}", f"{times['loss']:.6g}"]
            )
        if one["ratio"] is not None:
            mark = "reached" if one["ratio"] >= TO_REACH else "MISSED"
            goal = f"(to reach: at least {TO_REACH:g})"
            verdicts.append(f"{task}: {one['pytorch']} / minigrad: {one['ratio']:.2f} {goal}: {mark}")
        if not one["same_loss"]:
            verdicts.append(f"{task}: THE LOSSES DIFFER: the libraries did not run the same training")
        verdicts += [f"{task}: left out: {peer} ({reason})" for peer, reason in one["missing"].items()]
    steps = next(iter(measured.values()))["steps"]
    head = ("", "median", "minimum", f"loss after {steps} steps")
    return "\n".join(["Microseconds a step, float32", table(head, rows), *verdicts])


def main() -> int:
    parser = arguments(__doc__)
    add_write_option(parser)
    parser.add_argument(
        "--task", choices=TASKS, nargs="+", default=list(TASKS), help="which networks and optimisers (default: all)"
    )
    options = parser.parse_args()
    if options.worker:
        serve(partial(make_step, *options.worker.split("/")))
        return 0
    rounds, steps = (2, 20) if options.quick else (15, 500)
    measured = {TASKS[name]: measure(TASKS[name], rounds, steps) for name in options.task}
    progress("")
    detail = {"benchmark": "mlp_step", "quick": options.quick, "machine": machine(), "measured": measured}
    ratios = {task: one["ratio"] for task, one in measured.items()}
    conclude(options, "Training step of small networks", report(measured), {**ratios, "detail": detail})
    return 0 if all(one["same_loss"] for one in measured.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
