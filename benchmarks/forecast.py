"""Compare the forecasts of `minigrad plan` with steps of 2 and 4 ranks on this machine.

    python -m benchmarks.forecast [--quick] [--json]

The cores are shared: with 4 ranks on 2 cores each rank is given half of one. Prints for each layout the seconds of a step, measured (the
median) and foreseen, and their ratio; and the bytes of weights and optimiser, which have to be equal.
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
from minigrad.parallel.planning import Cluster, measured_rate
from minigrad.runtime.threads import available_cores
from minigrad.zoo.planning import plan

from .measure import arguments, machine
from .parallel import launch
from .soak import helpers

LAYOUTS: list[tuple[int, dict[str, Any]]] = [
    (2, {"tensor": 2}), (2, {"pipeline": 2}), (2, {"shard": 1}), (2, {"shard": 3}),
    (4, {"tensor": 2, "pipeline": 2}), (4, {"tensor": 4}), (4, {"pipeline": 2, "shard": 1}), (4, {"shard": 3}),
]  # fmt: skip
SIZES = {"layers": 4, "heads": 4, "dim": 256, "context": 128, "vocab": 300, "tokenizer": "char"}
BATCH = 16


def main() -> int:
    parser = arguments(__doc__)
    options = parser.parse_args()
    helpers()
    folder = Path(tempfile.mkdtemp())
    cores, rate = len(available_cores()), measured_rate()
    rows = []
    for ranks, layout in LAYOUTS[:1] if options.quick else LAYOUTS:
        task = {"sizes": SIZES, "batch": BATCH, "layout": layout, "steps": 3 if options.quick else 8}
        done = launch(ranks, folder, {"timed": task})
        if done.returncode:
            print(done.stderr[-2000:], file=sys.stderr)
            return 1
        seconds = statistics.median(json.loads((folder / f"told-{ranks}.json").read_text())[1:])
        cluster = Cluster(1, ranks, 1e12, rate=rate * min(cores / ranks, 1), threads=1, inside=2e9, inside_latency=2e-4)
        wanted = Layout(**layout)
        found = [one for one in plan("gpt", cluster, BATCH, SIZES) if one.layout == wanted]
        rows.append({"ranks": ranks, "layout": layout, "measured": seconds, "foreseen": found[0].seconds})
    shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        print(json.dumps({"benchmark": "forecast", "machine": machine(), "rate": rate, "layouts": rows}))
        return 0
    for row in rows:
        ratio = row["foreseen"] / row["measured"]
        print(
            f"{row['ranks']} ranks {row['layout']}: measured {row['measured']:.3f} s, foreseen {row['foreseen']:.3f} s, {ratio:.2f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
