"""Convolutions and pooling, forward and backward, on the shapes of small networks, against PyTorch.

    python -m benchmarks.convolution [--task resnet …] [--layers] [--quick] [--json] [--write]

A step runs every convolution and pooling of a network once, forward and backward, each on numbers of its own. The gradient of
the input of the first layer is left out, as in training. Every candidate has a process of its own, and they take turns;
PyTorch is measured with one thread and with all, and the faster counts. A ratio is PyTorch's time by ours, so more is better.
Values that differ make the command fail. `--layers` also measures each layer alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from .measure import Worker, alternate, arguments, machine, progress, ratio, serve, summary, table
from .results import add_write_option, conclude

MODULE = "benchmarks.convolution"
OURS, TORCH, TORCH_ALONE = "minigrad", "PyTorch", "PyTorch, 1 thread"
TO_REACH = 0.9
SAME = 1e-4
ROUNDS, STEPS = 9, 20


class Layer(NamedTuple):
    """A convolution or pooling: its function, the shape of its input, that of its weights, and options."""

    function: str
    image: tuple[int, ...]
    weight: tuple[int, ...] | None
    options: dict[str, int]

    def __str__(self) -> str:
        shown = ", ".join(f"{name} {value}" for name, value in self.options.items())
        return (
            f"{self.function} {'x'.join(map(str, self.image))}{f' -> {self.weight[0]}' if self.weight else ''}, {shown}"
        )


def conv(batch: int, inner: int, size: int, outer: int, kernel: int = 3, padding: int = 1, stride: int = 1) -> Layer:
    options = {"padding": padding, "stride": stride}
    return Layer("conv2d", (batch, inner, size, size), (outer, inner, kernel, kernel), options)


def pool(name: str, batch: int, channels: int, size: int, kernel: int) -> Layer:
    return Layer(name, (batch, channels, size, size), None, {"kernel_size": kernel})


def conv1d(inner: int, size: int, outer: int, stride: int = 1) -> Layer:
    return Layer("conv1d", (32, inner, size), (outer, inner, 3), {"padding": 1, "stride": stride})


TASKS = {
    "digits": [
        conv(64, 1, 16, 8), pool("max_pool2d", 64, 8, 16, 2), conv(64, 8, 8, 16), pool("max_pool2d", 64, 16, 8, 2),
    ],
    "lenet": [
        conv(64, 1, 28, 6, 5, 2), pool("avg_pool2d", 64, 6, 28, 2), conv(64, 6, 14, 16, 5, 0), pool("avg_pool2d", 64, 16, 10, 2),
    ],
    "resnet": [
        conv(32, 3, 32, 16), conv(32, 16, 32, 16), conv(32, 16, 32, 16), conv(32, 16, 32, 32, stride=2), conv(32, 32, 16, 32),
        conv(32, 16, 32, 32, 1, 0, 2), conv(32, 32, 16, 64, stride=2), conv(32, 64, 8, 64), conv(32, 32, 16, 64, 1, 0, 2),
        pool("avg_pool2d", 32, 64, 8, 8),
    ],
    "wide": [conv(32, 3, 32, 16), conv(32, 16, 32, 32), conv(32, 32, 32, 64), conv(32, 64, 32, 64), pool("max_pool2d", 32, 64, 32, 2)],
    "conv1d": [conv1d(80, 200, 64), conv1d(64, 200, 64, 2), conv1d(64, 100, 128)],
}  # fmt: skip


def work(name: str) -> None:
    """Be the worker "TASK/LAYER/CANDIDATE"; LAYER is a number, or "all"."""
    task, which, candidate = name.split("/")
    layers = TASKS[task] if which == "all" else [TASKS[task][int(which)]]
    serve(partial(make, layers, which == "all" or which == "0", candidate))


def make(layers: list[Layer], begins: bool, candidate: str) -> Callable[[], Any]:
    """A step of some layers; where they begin a network, the first one's input needs no gradient."""
    rng, numbers = np.random.default_rng(0), []
    for layer in layers:
        weight = () if layer.weight is None else (_normal(rng, layer.weight), _normal(rng, layer.weight[:1]))
        numbers.append([_normal(rng, layer.image), *weight])
    return (_ours if candidate == OURS else partial(_torch, alone=candidate == TORCH_ALONE))(layers, numbers, begins)


def _normal(rng: Any, shape: tuple[int, ...]) -> np.ndarray:
    return rng.standard_normal(shape).astype("float32")


def _ours(layers: list[Layer], numbers: list[list[np.ndarray]], begins: bool) -> Callable[[], Any]:
    import minigrad as mg
    from minigrad.nn import functional as F
    from minigrad.runtime.memory import keep_freed_memory

    keep_freed_memory()  # as training does
    return _step(layers, numbers, begins, F, mg.tensor, mg.autograd.grad)


def _torch(layers: list[Layer], numbers: list[list[np.ndarray]], begins: bool, alone: bool) -> Callable[[], Any]:
    import torch
    import torch.nn.functional as F

    if alone:
        torch.set_num_threads(1)
    return _step(layers, numbers, begins, F, torch.tensor, torch.autograd.grad)


def _step(layers: list[Layer], numbers: list[list[np.ndarray]], begins: bool, F: Any, tensor: Any, grad: Any) -> Any:
    calls = []
    for number, (layer, given) in enumerate(zip(layers, numbers)):
        tensors = [tensor(x, requires_grad=not begins or number + i > 0) for i, x in enumerate(given)]
        function = partial(getattr(F, layer.function), *tensors, **layer.options)
        slope = tensor(_normal(np.random.default_rng(number), tuple(function().shape)))
        calls.append((function, [x for x in tensors if x.requires_grad], slope))

    def step() -> Any:
        found = [(out, grad(out, wanted, slope)) for out, wanted, slope in ((f(), w, s) for f, w, s in calls) if wanted]
        return _Digest(found)

    return step


class _Digest:
    """Sums of the magnitudes of all that was computed; taken when asked for, which is after the clock has stopped."""

    def __init__(self, found: list[Any]):
        self.found = found

    def item(self) -> list[float]:
        arrays = (x.detach().numpy() for out, grads in self.found for x in (out, *grads))
        return [float(np.abs(array, dtype="float64").sum()) for array in arrays]


def measure(task: str, which: str, quick: bool) -> dict[str, Any]:
    """Milliseconds of each candidate, the ratio to the fastest PyTorch, and how far values are apart, in parts of them."""
    rounds, steps = (2, 2) if quick else (ROUNDS, STEPS)
    with ExitStack() as stack:
        candidates = (OURS, TORCH, TORCH_ALONE)
        workers = {c: stack.enter_context(Worker(MODULE, f"{task}/{which}/{c}")) for c in candidates}
        missing = {c: reason for c, w in workers.items() if (reason := w.missing())}
        present = {c: w for c, w in workers.items() if c not in missing}
        seconds = alternate({c: partial(w.run, steps, 3) for c, w in present.items()}, rounds, f"{task} {which}")
        values = {c: np.array(w.value) for c, w in present.items()}
    others = [c for c in present if c != OURS]
    best = min(others, key=lambda c: median(seconds[c]), default=None)
    return {
        "milliseconds": {c: summary(s, 1000 / steps) for c, s in seconds.items()},
        "ratio": None if best is None else ratio(seconds[best], seconds[OURS]),
        "fastest": best,
        "apart": max((float(np.max(np.abs(values[c] / values[OURS] - 1))) for c in others), default=0.0),
        "missing": missing,
    }


def report(measured: Mapping[str, Mapping[str, Any]]) -> str:
    """The figures for people."""
    rows, lines = [], []
    for name, one in measured.items():
        times = one["milliseconds"]
        shown = [f"{times[c]['median']:.3f}" if c in times else "-" for c in (OURS, TORCH, TORCH_ALONE)]
        rows.append([name, *shown, "-" if one["ratio"] is None else f"{one['ratio']:.2f}"])
        if one["ratio"] is not None and name in TASKS:
            reached = "reached" if one["ratio"] >= TO_REACH else "MISSED"
            lines.append(
                f"{name}: {one['fastest']} / {OURS}: {one['ratio']:.2f} (to reach: at least {TO_REACH}): {reached}"
            )
        if one["apart"] > SAME:
            lines.append(f"{name}: THE VALUES DIFFER by {one['apart']:.2g} (at most {SAME:g})")
        lines += [f"{name}: left out: {candidate} ({reason})" for candidate, reason in one["missing"].items()]
    head = ["milliseconds, median", OURS, TORCH, TORCH_ALONE, "speed, PyTorch's = 1"]
    return "\n".join([table(head, rows), "", *lines])


def main() -> int:
    parser = arguments(__doc__)
    add_write_option(parser)
    parser.add_argument("--task", choices=TASKS, nargs="+", default=list(TASKS), help="what to measure (default: all)")
    parser.add_argument("--layers", action="store_true", help="measure each layer alone, too")
    options = parser.parse_args()
    if options.worker:
        work(options.worker)
        return 0
    measured = {}
    for task in options.task:
        measured[task] = measure(task, "all", options.quick)
        for number, layer in enumerate(TASKS[task] if options.layers else []):
            measured[f"  {layer}"] = measure(task, str(number), options.quick)
    progress("")
    result = {
        **{name: one["ratio"] for name, one in measured.items()},
        "detail": {"machine": machine(), "tasks": measured},
    }
    conclude(options, "Convolutions", report(measured), result)
    return int(any(one["apart"] > SAME for one in measured.values()))


if __name__ == "__main__":
    sys.exit(main())
