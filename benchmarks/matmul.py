"""Products of stacks of matrices in minigrad and in PyTorch: what one takes, alone and with its backward.

    python -m benchmarks.matmul [--shape BxMxKxN …] [--quick] [--json] [--write]

`48x64x32x64` is (48, 64, 32) @ (48, 32, 64) in float32. Each library has a process of its own with as many threads as it
takes by itself, and they take turns. Results that differ make the command fail.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np

from .measure import Worker, alternate, arguments, machine, progress, ratio, serve, summary, table
from .results import add_write_option, conclude

MODULE = "benchmarks.matmul"
MICRO = 1e6
TO_REACH = 1.0
SHAPES = ["48x64x32x64", "48x256x64x256", "512x20x32x20", "64x8x20x32", "16x128x128x128"]
WAYS = ("forward", "and backward")
ROUND = 0.6e9  # multiplications that a round takes, more or less


def shape_of(text: str) -> str:
    """Four sizes as the command takes them."""
    if not re.fullmatch("[1-9][0-9]*(x[1-9][0-9]*){3}", text):
        raise argparse.ArgumentTypeError(f"expected four sizes such as {SHAPES[0]}, got {text!r}")
    return text


def factors(shape: str) -> tuple[np.ndarray, np.ndarray]:
    """The two stacks: (B, M, K) and (B, K, N)."""
    batch, rows, depth, columns = map(int, shape.split("x"))
    rng = np.random.default_rng(0)
    left, right = (batch, rows, depth), (batch, depth, columns)
    return rng.standard_normal(left, np.float32), rng.standard_normal(right, np.float32)


def new_step(library: Any, shape: str, way: str) -> Callable[[], Any]:
    """One product in minigrad or PyTorch, which are written alike; it returns an element of the last thing computed."""
    a, b = (library.tensor(array) for array in factors(shape))

    def forward() -> Any:
        with library.no_grad():
            return (a @ b)[-1, -1, -1]

    if way == "forward":
        return forward
    a.requires_grad = b.requires_grad = True
    ones = library.ones_like((a @ b).detach())

    def both() -> Any:
        a.grad = b.grad = None
        (a @ b).backward(ones)
        return b.grad[-1, -1, -1]

    return both


def make_step(shape: str, way: str, peer: str) -> Callable[[], Any]:
    """One step of a candidate, whose library is imported only here; ImportError if it is not installed."""
    if peer == "PyTorch":
        import torch as library
    else:
        import minigrad as library
    return new_step(library, shape, way)


def measure(shape: str, way: str, rounds: int, share: float) -> dict[str, Any]:
    """Microseconds, what was computed, and how it compares."""
    steps = max(int(ROUND * share / math.prod(map(int, shape.split("x")))), 3)
    with ExitStack() as stack:
        progress(f"{shape}: starting both libraries")
        workers = {p: stack.enter_context(Worker(MODULE, f"{shape}/{way}/{p}")) for p in ("minigrad", "PyTorch")}
        missing = {p: reason for p, w in workers.items() if (reason := w.missing())}
        present = {p: w for p, w in workers.items() if p not in missing}
        turns = {p: partial(w.run, steps, warm=max(steps // 4, 2)) for p, w in present.items()}
        seconds = alternate(turns, rounds, f"{shape}, {way}")
        values = {p: w.value for p, w in present.items()}
    return {
        "peers": {p: summary(s, MICRO / steps) for p, s in seconds.items()},
        "ratio": ratio(seconds["PyTorch"], seconds["minigrad"]) if "PyTorch" in seconds else None,
        "same": all(math.isclose(v, values["minigrad"], rel_tol=1e-3, abs_tol=1e-3) for v in values.values()),
        "missing": missing,
    }


def report(measured: Mapping[str, Mapping[str, Any]]) -> str:
    """The times for people."""
    rows, verdicts = [], []
    for name, one in measured.items():
        for peer, times in one["peers"].items():
            rows.append([f"{name}: {peer}", f"{times['median']:.1f}", f"{times['minimum']:.1f}"])
        if one["ratio"] is not None:
            mark = "reached" if one["ratio"] >= TO_REACH else "MISSED"
            goal = f"(to reach: at least {TO_REACH:g})"
            verdicts.append(f"{name}: PyTorch / minigrad: {one['ratio']:.2f} {goal}: {mark}")
        if not one["same"]:
            verdicts.append(f"{name}: THE RESULTS DIFFER")
        verdicts += [f"{name}: left out: {peer} ({reason})" for peer, reason in one["missing"].items()]
    return "\n".join(["Microseconds a product, float32", table(("", "median", "minimum"), rows), *verdicts])


def main() -> int:
    parser = arguments(__doc__)
    add_write_option(parser)
    parser.add_argument(
        "--shape", type=shape_of, nargs="+", default=SHAPES, metavar="BxMxKxN", help="the sizes of the stacks"
    )
    options = parser.parse_args()
    if options.worker:
        serve(partial(make_step, *options.worker.split("/")))
        return 0
    rounds, share = (2, 0.01) if options.quick else (15, 1.0)
    measured = {f"{shape}, {way}": measure(shape, way, rounds, share) for shape in options.shape for way in WAYS}
    progress("")
    detail = {"benchmark": "matmul", "quick": options.quick, "machine": machine(), "measured": measured}
    ratios = {name: one["ratio"] for name, one in measured.items()}
    conclude(options, "Products of stacks of matrices", report(measured), {**ratios, "detail": detail})
    return 0 if all(one["same"] for one in measured.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
