"""`minigrad plot`: the curves of a run's metrics.csv, in the terminal or as a picture."""

from __future__ import annotations

import csv
import io
import math
import os
from argparse import Namespace
from pathlib import Path

from ..engine.errors import MissingExtraError
from ..saving import write_atomically
from .parsing import Command, Parser, Usage
from .telling import plain

__all__ = ["PLOT", "panels_of", "read_metrics", "text_panel"]

Curve = list[tuple[int, float]]
PICTURES = (".png", ".svg")
WIDTH, HEIGHT = 64, 12
MARKS = "*o"
LAST_STEP = 10**15  # no run gets there; a table that says so is damaged


def read_metrics(run: str | os.PathLike[str]) -> dict[str, Curve]:
    """The columns of metrics.csv as (step, value), without cells that are empty or not finite."""
    from ..train import RunError

    path = Path(run) / "metrics.csv"
    try:
        with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise RunError(f"{os.fspath(path)!r} cannot be read: {reason}", fix="give the directory of a run") from None
    curves: dict[str, Curve] = {}
    for row in rows:
        step = _number(row.get("step"))
        if step is None or not 0 <= step < LAST_STEP:
            continue
        for name, cell in row.items():
            value = _number(cell)
            if value is not None and name and name != "step":
                curves.setdefault(name, []).append((int(step), value))
    if not curves:
        raise RunError(f"{os.fspath(path)!r} holds no numbers yet", fix="train for some more steps")
    return curves


def _number(cell: object) -> float | None:
    try:
        value = float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None


def panels_of(curves: dict[str, Curve]) -> dict[str, dict[str, Curve]]:
    """Each quantity with its curves: that of training, and that of validation beside it."""
    panels: dict[str, dict[str, Curve]] = {}
    for name, curve in curves.items():
        panels.setdefault(name.removeprefix("valid_"), {})[name] = curve
    return panels


def text_panel(curves: dict[str, Curve]) -> str:
    """One panel drawn with characters: the greatest value above, the least below, steps from left to right."""
    points = [point for curve in curves.values() for point in curve]
    first, last = min(step for step, _ in points), max(step for step, _ in points)
    low, high = min(value for _, value in points), max(value for _, value in points)
    spread = high / 2 - low / 2  # halves, since the whole may be more than a float can be
    field = [[" "] * WIDTH for _ in range(HEIGHT)]
    for mark, curve in zip(MARKS, curves.values()):
        for step, value in curve:
            column = round((step - first) / max(last - first, 1) * (WIDTH - 1))
            row = round((high / 2 - value / 2) / spread * (HEIGHT - 1)) if spread > 0 else HEIGHT - 1
            field[row][column] = mark
    labels = [f"{high:.4g}", *[""] * (HEIGHT - 2), f"{low:.4g}"]
    edge = max(map(len, labels))
    lines = [f"{label:>{edge}} |{''.join(row).rstrip()}" for label, row in zip(labels, field)]
    steps = f"{first:<{WIDTH - len(str(last))}}{last}"
    named = "   ".join(f"{mark} {name}: {curve[-1][1]:.4g} at step {curve[-1][0]}" for mark, (name, curve) in zip(MARKS, curves.items()))  # fmt: skip
    return "\n".join([named, *lines, f"{'':{edge}} +{'-' * WIDTH}", f"{'':{edge}}  {steps}"])


def _picture(panels: dict[str, dict[str, Curve]], title: str, kind: str) -> bytes:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError(
            "a picture needs matplotlib, which is not installed",
            fix="pip install 'minigrad[viz]', or leave out -o to see the curves as text",
        ) from None
    figure = Figure(figsize=(7, 2.6 * len(panels)), layout="constrained")
    figure.suptitle(title)
    for place, (name, curves) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(len(panels), 1, place)
        for label, curve in curves.items():
            steps, values = zip(*curve)
            axes.plot(steps, values, label=label, marker="." if len(curve) < 30 else None)
        axes.set_ylabel(name)
        axes.legend()
    axes.set_xlabel("step")
    content = io.BytesIO()
    figure.savefig(content, format=kind)
    return content.getvalue()


def _arguments(parser: Parser) -> None:
    parser.add_argument("run_directory", metavar="DIR", help="the directory of a run")
    parser.add_argument("-o", "--output", metavar="FILE", help="a picture to write, .png or .svg (default: text)")


def _plot(options: Namespace) -> int:
    output = None if options.output is None else Path(options.output)
    if output is not None and output.suffix.lower() not in PICTURES:
        raise Usage(f"{options.output!r} is no picture: end its name in {' or '.join(PICTURES)}")
    panels = panels_of(read_metrics(options.run_directory))
    if output is None:
        print(plain("\n\n".join(text_panel(curves) for curves in panels.values())))
        return 0
    title = os.path.basename(os.path.abspath(options.run_directory)).replace("$", r"\$")  # which would begin a formula
    write_atomically(output, _picture(panels, title, output.suffix.lower().removeprefix(".")))
    print(plain(f"wrote {output}"))
    return 0


PLOT = Command("draw the curves of a run", "minigrad plot runs/xor -o curves.svg", _arguments, _plot)
