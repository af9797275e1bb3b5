"""Compare the forecasts of `minigrad plan` with steps of 2 and 4 ranks on this machine.

    python -m benchmarks.forecast [--quick] [--json] [--write]

What a plan needs is measured, all cores busy: how long all-gathers of a small and of a large array take between products of matrices, once for each
number of ranks; and, before each layout, the rate of a core, how much faster it is alone, and at which share of the rate a block goes,
of which the medians count. 4 ranks share 2 cores. Prints for each layout the seconds of a step, measured (the median) and foreseen, and
their ratio.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from minigrad import zoo
from minigrad.parallel import Layout
from minigrad.parallel.machine_speed import measured_boost, measured_efficiency, measured_rate
from minigrad.parallel.pipeline import blocks_of
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


def cluster_of(ranks: int, folder: Path) -> Cluster:
    """This machine, as so many ranks see it; how fast it computes is measured later."""
    cores = len(available_cores())
    small, large = (max(told(ranks, folder, {"network": size}), 1e-6) for size in (ranks, 2**21))  # numbers in float32
    rounds = ranks - 1
    latency, speed = small / rounds, rounds * 4 * 2**21 / ranks / max(large - small, 1e-6)
    return Cluster(1, cores, 1e12, threads=cores / ranks, inside=speed, inside_latency=latency)


def speeds() -> dict[str, float]:
    """How fast this machine computes at the moment."""
    block = blocks_of(zoo.create("gpt", **SIZES))[0][1]
    rate = measured_rate()
    return {"rate": rate, "boost": measured_boost(), "efficiency": measured_efficiency(block, SIZES["context"], rate)}


def main() -> int:
    parser = arguments(__doc__)
    add_write_option(parser)
    options = parser.parse_args()
    helpers()
    folder = Path(tempfile.mkdtemp())
    chosen = LAYOUTS[:1] if options.quick else LAYOUTS
    try:
        clusters = {ranks: cluster_of(ranks, folder) for ranks in dict.fromkeys(ranks for ranks, _ in chosen)}
        runs = [(speeds(), timed(ranks, layout, folder, 3 if options.quick else 16)) for ranks, layout in chosen]
        known = {name: statistics.median(one[name] for one, _ in runs) for name in runs[0][0]}
        rows = [row(*one, measured, clusters, known) for one, (_, measured) in zip(chosen, runs)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    lines = [
        f"a core does {known['rate'] / 1e9:.0f} GFLOP/s in products while the others do, {known['boost']:.2f} times that alone, "
        f"and {known['efficiency']:.0%} of it in a block"
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
    detail = {"machine": machine(), "known": known, "layouts": rows}
    conclude(
        options,
        TITLE,
        "\n".join(lines),
        {"benchmark": "forecast", "machine": detail["machine"], "layouts": rows, "detail": detail},
    )
    return 0


def timed(ranks: int, layout: dict[str, Any], folder: Path, steps: int) -> float:
    """The seconds of a step."""
    task = {"sizes": SIZES, "batch": BATCH, "layout": layout, "steps": steps}
    return statistics.median(told(ranks, folder, {"timed": task})[1:])


def row(
    ranks: int, layout: dict[str, Any], measured: float, clusters: dict[int, Cluster], known: dict[str, float]
) -> dict[str, Any]:
    """A layout, measured and foreseen."""
    wanted, cluster = Layout(**layout), dataclasses.replace(clusters[ranks], **known)
    (one,) = [one for one in plan("gpt", cluster, BATCH, SIZES) if one.layout == wanted]
    return {
        "ranks": ranks, "layout": shown(layout), "measured": measured, "foreseen": one.seconds,
        "computing": one.computing,
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
