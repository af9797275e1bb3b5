"""Compare the forecasts of `minigrad plan` with steps of 2 and 4 ranks on this machine.

    python -m benchmarks.forecast [--quick] [--json] [--write]

What a plan needs is measured first: the rate of a core, the share of it at which a block goes, and how long all-reduces of a small and of a large
array take. The cores are shared: with 4 ranks on 2 cores each rank is given half of one. Prints for each layout the seconds of a step, measured
(the median) and foreseen, and their ratio.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from minigrad.parallel import Layout
from minigrad.parallel.machine_speed import measured_rate
from minigrad.parallel.planning import Cluster
from minigrad.runtime.threads import available_cores
from minigrad.zoo.planning import plan

from .measure import arguments, machine
from .parallel import launch, shown
from .results import add_write_option, conclude
from .soak import helpers

LAYOUTS: list[tuple[int, dict[str, Any]]] = [
    (2, {"tensor": 2}), (2, {"pipeline": 2}), (2, {"shard": 1}), (2, {"shard": 3}),
    (4, {"tensor": 2, "pipeline": 2}), (4, {"tensor": 4}), (4, {"pipeline": 2, "shard": 1}), (4, {"shard": 3}),
]  # fmt: skip
SIZES = {"layers": 4, "heads": 4, "dim": 256, "context": 128, "vocab": 300, "tokenizer": "char"}
BATCH = 16
TITLE = "Forecasts of divided models"


def told(ranks: int, folder: Path, job: dict[str, Any]) -> Any:
    """What rank 0 tells of a job."""
    done = launch(ranks, folder, job)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads((folder / f"told-{ranks}.json").read_text())


def cluster_of(ranks: int, folder: Path, rate: float) -> Cluster:
    """This machine, as so many ranks see it."""
    shares = min(len(available_cores()) / ranks, 1)
    small, large = (told(ranks, folder, {"network": size}) for size in (1, 2**21))  # numbers in float32
    rounds = 2 * (ranks - 1)
    latency, speed = small / rounds, rounds * 4 * 2**21 / ranks / max(large - small, 1e-9)
    return Cluster(1, ranks, 1e12, rate=rate * shares, threads=1, inside=speed, inside_latency=latency)


def main() -> int:
    parser = arguments(__doc__)
    add_write_option(parser)
    options = parser.parse_args()
    helpers()
    folder = Path(tempfile.mkdtemp())
    chosen = LAYOUTS[:1] if options.quick else LAYOUTS
    try:
        rate = measured_rate()
        clusters = {ranks: cluster_of(ranks, folder, rate) for ranks in dict.fromkeys(ranks for ranks, _ in chosen)}
        rows = [row(ranks, layout, clusters, folder, 3 if options.quick else 8) for ranks, layout in chosen]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    lines = [
        f"a core does {rate / 1e9:.0f} GFLOP/s in products while the others do, and {rows[0]['efficiency']:.0%} of it in a block"
    ]
    lines += [
        f"{ranks} ranks: {1e6 * one.inside_latency:.0f} us and {one.inside / 1e9:.2f} GB/s from rank to rank"
        for ranks, one in clusters.items()
    ]
    lines += ["", "layout                         measured     foreseen     ratio"]
    lines += [
        f"{one['layout'] + ' on ' + str(one['ranks']):28} {one['measured']:8.3f} s {one['foreseen']:10.3f} s {one['foreseen'] / one['measured']:9.2f}"
        for one in rows
    ]
    wrong = [abs(one["foreseen"] / one["measured"] - 1) for one in rows]
    lines.append(f"\nerror: {statistics.median(wrong):.0%} in the median, {max(wrong):.0%} at most")
    detail = {"machine": machine(), "rate": rate, "layouts": rows}
    conclude(
        options,
        TITLE,
        "\n".join(lines),
        {"benchmark": "forecast", "machine": detail["machine"], "layouts": rows, "detail": detail},
    )
    return 0


def row(ranks: int, layout: dict[str, Any], clusters: dict[int, Cluster], folder: Path, steps: int) -> dict[str, Any]:
    """A layout, measured and foreseen."""
    task = {"sizes": SIZES, "batch": BATCH, "layout": layout, "steps": steps}
    measured = statistics.median(told(ranks, folder, {"timed": task})[1:])
    wanted = Layout(**layout)
    (one,) = [one for one in plan("gpt", clusters[ranks], BATCH, SIZES) if one.layout == wanted]
    clusters[ranks] = one.cluster  # whose efficiency is known now
    print(f"{shown(layout)}: {measured:.3f} s, foreseen {one.seconds:.3f}", file=sys.stderr)
    return {
        "ranks": ranks, "layout": shown(layout), "measured": measured, "foreseen": one.seconds,
        "computing": one.computing, "efficiency": one.cluster.efficiency,
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
