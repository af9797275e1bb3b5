"""How the cost of a training step grows with layers, width, batch and sequence length, in minigrad.

    python -m benchmarks.scaling [--quick] [--json] [--write] [--plot FILE]

One size of a small GPT is doubled again and again. The exponent k of time = c · size^k is fitted by least squares in
log-log, and so is that of the operations counted in the matmuls, which is what to expect: where it is lower, something
that does not grow still counts; where it is higher, something grows too fast, or no longer fits a cache.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from .floor import operations
from .measure import ROOT, alternate, arguments, machine, progress, summary, table, timed
from .results import add_write_option, conclude
from .twins.gpt import Config

BASE = Config(layers=2, dim=128, heads=4, batch=8, length=64)
SWEEPS: dict[str, tuple[int, ...]] = {
    "layers": (1, 2, 4, 8),
    "dim": (64, 128, 256, 512),
    "batch": (2, 4, 8, 16, 32),
    "length": (32, 64, 128, 256, 512),
}
QUICK = Config(layers=1, dim=16, heads=2, batch=2, length=8, vocabulary=11)
QUICK_SWEEPS: dict[str, tuple[int, ...]] = {"layers": (1, 2), "dim": (16, 32), "batch": (2, 4), "length": (8, 16)}
IN_THE_LIMIT = {"layers": "1", "dim": "2", "batch": "1", "length": "2, by attention"}
MILLI = 1e3


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """k of values ≈ c · sizes^k, by least squares of the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def measure(what: str, base: Config, sizes: Sequence[int], rounds: int, steps: int) -> dict[str, Any]:
    """Milliseconds a step for each size, which take turns in one process, and the exponents."""
    from .twins.gpt_minigrad import minigrad_step

    changes: list[dict[str, Any]] = [{what: size} for size in sizes]
    configs = [replace(base, **change) for change in changes]

    def run(step: Callable[[], Any]) -> float:
        step()  # so that the others' arrays have left the caches
        return timed(step, steps)

    turns = {f"{what} {size}": partial(run, minigrad_step(c)) for size, c in zip(sizes, configs)}
    seconds = alternate(turns, rounds, "scaling")
    times = [summary(s, MILLI / steps) for s in seconds.values()]
    medians = [time["median"] for time in times]
    return {
        "sizes": list(sizes),
        "times": times,
        "exponent": exponent(sizes, medians),
        "last_exponent": exponent(sizes[-2:], medians[-2:]),
        "expected": exponent(sizes, [operations(c.products()) for c in configs]),
    }


def report(base: Config, measured: Mapping[str, Mapping[str, Any]]) -> str:
    """The table and the picture for people."""
    rows = []
    for what, one in measured.items():
        for size, time in zip(one["sizes"], one["times"]):
            rows.append([what, str(size), f"{time['median']:.2f}", f"{time['minimum']:.2f}"])
    exponents = [
        [what, *(f"{one[key]:.2f}" for key in ("exponent", "last_exponent", "expected")), IN_THE_LIMIT[what]]
        for what, one in measured.items()
    ]
    sizes = f"{base.layers} layers, d {base.dim}, {base.heads} heads, batch {base.batch} x {base.length}, {base.dtype}"
    return "\n".join(
        [
            f"Milliseconds a step, and the exponents of their growth, from a GPT of {sizes}\n",
            table(("", "size", "median", "minimum"), rows),
            "",
            table(("time = c · size^k", "k", "k at the end", "k of operations", "in the limit"), exponents),
        ]
    )


def draw_text(measured: Mapping[str, Mapping[str, Any]], width: int = 60) -> str:
    """Bars in a logarithmic scale, so that equal steps are equal factors."""
    medians = {what: [time["median"] for time in one["times"]] for what, one in measured.items()}
    everything = [t for times in medians.values() for t in times]
    low, high = np.log(min(everything)), np.log(max(everything))
    lines = []
    for what, one in measured.items():
        for size, t in zip(one["sizes"], medians[what]):
            length = 1 + round((width - 1) * float((np.log(t) - low) / max(high - low, 1e-9)))
            lines.append(f"{what:>7} {size:>4} {'#' * length} {t:.2f} ms")
    return "\n".join(lines)


def draw(measured: Mapping[str, Mapping[str, Any]], path: Path) -> bool:
    """A picture in log-log with the fitted lines; False if matplotlib is not installed."""
    try:
        figures = import_module("matplotlib.figure")
    except ImportError:
        return False
    figure = figures.Figure(figsize=(10, 7), layout="constrained")
    for axes, (what, one) in zip(figure.subplots(2, 2).flat, measured.items()):
        sizes, times = np.array(one["sizes"], float), np.array([time["median"] for time in one["times"]])
        centre = np.exp(np.log(times).mean()) / np.exp(np.log(sizes).mean()) ** one["exponent"]
        axes.loglog(sizes, times, "o", label="measured")
        axes.loglog(sizes, centre * sizes ** one["exponent"], label=f"size^{one['exponent']:.2f}")
        axes.set_xticks(sizes, [str(size) for size in one["sizes"]])
        axes.xaxis.set_minor_formatter("")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
        axes.set(title=what, xlabel=f"{what} (operations: size^{one['expected']:.2f})", ylabel="ms a step")
        axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return True


def main() -> int:
    parser = arguments(__doc__)
    add_write_option(parser)
    parser.add_argument("--plot", type=Path, default=ROOT / "build" / "scaling.png", metavar="FILE", help="the picture")
    options = parser.parse_args()
    base, sweeps = (QUICK, QUICK_SWEEPS) if options.quick else (BASE, SWEEPS)
    rounds, steps = (2, 1) if options.quick else (7, 3)
    measured = {what: measure(what, base, sizes, rounds, steps) for what, sizes in sweeps.items()}
    progress("")
    text = report(base, measured)
    if draw(measured, options.plot):
        print(f"picture: {options.plot}", file=sys.stderr)
    else:
        text += f"\n\n{draw_text(measured)}"
    detail = {"benchmark": "scaling", "quick": options.quick, "machine": machine(), "measured": measured}
    exponents = {what: one["exponent"] for what, one in measured.items()}
    conclude(options, "How the cost of a step grows", text, {**exponents, "detail": detail})
    return 0


if __name__ == "__main__":
    sys.exit(main())
