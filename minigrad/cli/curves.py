"""`minigrad plot`: the curves of a run's metrics.csv, in the terminal or as a picture."""

from __future__ import annotations

import math
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ..saving import check_folder
from .console import printable
from .parser import Command, Parser, Usage

if TYPE_CHECKING:
    from ..train.run_data import Curve

__all__ = ["PLOT", "text_panel"]

PICTURES = (".svg", ".png", ".pdf")
WIDTH, HEIGHT = 64, 12
MARKS = "*o"


def text_panel(curves: dict[str, Curve]) -> str:
    """One panel drawn with characters: the greatest value above, the least below, steps from left to right."""
    known = {name: [point for point in curve if math.isfinite(point[1])] for name, curve in curves.items()}
    known = {name: curve for name, curve in known.items() if curve}
    points = [point for curve in known.values() for point in curve]
    first, last = min(step for step, _ in points), max(step for step, _ in points)
    low, high = min(value for _, value in points), max(value for _, value in points)
    spread = high / 2 - low / 2  # halves, since the whole may be more than a float can be
    field = [[" "] * WIDTH for _ in range(HEIGHT)]
    for mark, curve in zip(MARKS, known.values()):
        for step, value in curve:
            column = round((step - first) / max(last - first, 1) * (WIDTH - 1))
            row = round((high / 2 - value / 2) / spread * (HEIGHT - 1)) if spread > 0 else HEIGHT - 1
            field[row][column] = mark
    labels = [f"{high:.4g}", *[""] * (HEIGHT - 2), f"{low:.4g}"]
    edge = max(map(len, labels))
    lines = [f"{label:>{edge}} |{''.join(row).rstrip()}" for label, row in zip(labels, field)]
    steps = f"{first:<{WIDTH - len(str(last))}}{last}"
    named = "   ".join(f"{mark} {name}: {curve[-1][1]:.4g} at step {curve[-1][0]}" for mark, (name, curve) in zip(MARKS, known.items()))  # fmt: skip
    return "\n".join([named, *lines, f"{'':{edge}} +{'-' * WIDTH}", f"{'':{edge}}  {steps}"])


def _arguments(parser: Parser) -> None:
    parser.add_argument("run_directory", metavar="DIR", help="the directory of a run")
    parser.add_argument("-o", "--output", metavar="FILE", help="a picture to write, .svg, .png or .pdf (default: text)")
    parser.add_argument("--log", action="store_true", help="powers of ten, in a picture, where values differ much")
    parser.add_argument("--dark", action="store_true", help="a dark .png or .pdf")


def _plot(options: Namespace) -> int:
    from ..train.run_data import panels_of, read_metrics
    from ..viz.runs.curves import curves
    from ..zoo.run_arguments import check_is_run

    output = None if options.output is None else Path(options.output)
    if output is not None and output.suffix.lower() not in PICTURES:
        raise Usage(f"{options.output!r} is no picture: end its name in {', '.join(PICTURES[:-1])} or {PICTURES[-1]}")
    if output is not None:
        check_folder(output)
    check_is_run(options.run_directory)
    found = read_metrics(options.run_directory)
    if output is None:
        print(printable("\n\n".join(text_panel(group) for group in panels_of(found).values())))
        return 0
    curves(options.run_directory, log=options.log).write(output, options.dark)
    print(printable(f"wrote {output}"))
    return 0


PLOT = Command("draw the curves of a run", "minigrad plot runs/xor -o curves.svg", _arguments, _plot)
