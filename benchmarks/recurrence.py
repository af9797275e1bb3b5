"""Recurrent layers in minigrad and in PyTorch: what all steps of one take, forward and back to its inputs and weights.

    python -m benchmarks.recurrence [--shape TxBxIxH …] [--layer LSTM …] [--quick] [--json] [--write]

`32x64x128x256` is 32 steps of a batch of 64, 128 numbers in, a state of 256, in float32. Each library has a process of its own
with as many threads as it takes by itself, and they take turns. Results that differ make the command fail.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np

from .matmul import shape_of
from .measure import Worker, alternate, arguments, machine, progress, ratio, serve, summary, table
from .results import add_write_option, conclude

MODULE = "benchmarks.recurrence"
MILLI = 1e3
TO_REACH = 1.0
SHAPES = ["32x64x128x256", "64x32x128x256"]
LAYERS = ("RNN", "GRU", "LSTM")


def make_step(kind: str, shape: str, peer: str) -> Callable[[], Any]:
    """A forward and a backward of one layer, with the same numbers in both libraries; it returns an element of a gradient."""
    if peer == "PyTorch":
        import torch as library
    else:
        import minigrad as library
        from minigrad.runtime.memory import keep_freed_memory

        keep_freed_memory()  # as training does
    steps, batch, width, size = map(int, shape.split("x"))
    rng = np.random.default_rng(0)
    layer = getattr(library.nn, kind)(width, size)
    state = {name: (rng.random(tuple(p.shape), np.float32) - 0.5) / 8 for name, p in layer.state_dict().items()}
    layer.load_state_dict({name: library.tensor(value) for name, value in state.items()})
    x = library.tensor(rng.standard_normal((steps, batch, width), np.float32))
    x.requires_grad = True
    slopes = library.tensor(rng.standard_normal((steps, batch, size), np.float32))

    def step() -> Any:
        layer.zero_grad(set_to_none=True)
        x.grad = None
        layer(x)[0].backward(slopes)
        return layer.weight_hh_l0.grad[-1, -1] + x.grad[-1, -1, -1]

    return step


def measure(kind: str, shape: str, rounds: int, steps: int) -> dict[str, Any]:
    """Milliseconds, what was computed, and how it compares."""
    with ExitStack() as stack:
        progress(f"{kind} {shape}: starting both libraries")
        workers = {p: stack.enter_context(Worker(MODULE, f"{kind}/{shape}/{p}")) for p in ("minigrad", "PyTorch")}
        missing = {p: reason for p, w in workers.items() if (reason := w.missing())}
        present = {p: w for p, w in workers.items() if p not in missing}
        turns = {p: partial(w.run, steps, warm=2) for p, w in present.items()}
        seconds = alternate(turns, rounds, f"{kind} {shape}")
        values = {p: w.value for p, w in present.items()}
    return {
        "peers": {p: summary(s, MILLI / steps) for p, s in seconds.items()},
        "ratio": ratio(seconds["PyTorch"], seconds["minigrad"]) if "PyTorch" in seconds else None,
        "same": all(math.isclose(v, values["minigrad"], rel_tol=1e-3, abs_tol=1e-3) for v in values.values()),
        "missing": missing,
    }


def report(measured: Mapping[str, Mapping[str, Any]]) -> str:
    """The times for people."""
    rows, verdicts = [], []
    for name, one in measured.items():
        for peer, times in one["peers"].items():
            rows.append([f"{name}: {peer}", f"{times['median']:.2f}", f"{times['minimum']:.2f}"])
        if one["ratio"] is not None:
            mark = "reached" if one["ratio"] >= TO_REACH else "MISSED"
            verdicts.append(f"{name}: PyTorch / minigrad: {one['ratio']:.2f} (to reach: at least {TO_REACH:g}): {mark}")
        if not one["same"]:
            verdicts.append(f"{name}: THE RESULTS DIFFER")
        verdicts += [f"{name}: left out: {peer} ({reason})" for peer, reason in one["missing"].items()]
    return "\n".join(["Milliseconds, forward and backward, float32", table(("", "median", "minimum"), rows), *verdicts])


def main() -> int:
    parser = arguments(__doc__)
    add_write_option(parser)
    parser.add_argument("--shape", type=shape_of, nargs="+", default=SHAPES, metavar="TxBxIxH", help="the sizes")
    parser.add_argument("--layer", choices=LAYERS, nargs="+", default=LAYERS, help="which layers")
    options = parser.parse_args()
    if options.worker:
        serve(partial(make_step, *options.worker.split("/")))
        return 0
    rounds, steps = (2, 1) if options.quick else (15, 10)
    measured = {
        f"{kind} {shape}": measure(kind, shape, rounds, steps) for kind in options.layer for shape in options.shape
    }
    progress("")
    detail = {"benchmark": "recurrence", "quick": options.quick, "machine": machine(), "measured": measured}
    ratios = {name: one["ratio"] for name, one in measured.items()}
    conclude(options, "Recurrent layers", report(measured), {**ratios, "detail": detail})
    return 0 if all(one["same"] for one in measured.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
