"""Divide models among ranks in every way, compare with one process, kill ranks, and compare what becomes of the runs.

    python -m benchmarks.parallel [--layouts 40] [--deaths 100] [--quick] [--json]

Every factorisation of 4 ranks, and 2 x 2 x 2 on 8: 50 steps of gpt, bert and translator in float64, with dropout, clipping and
accumulation, within 1e-10 of one process. Then ranks are killed with SIGKILL at random: each job has to end within 30 seconds, and the run
to go on to the same bits. It resumes where it stopped.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .soak import Soak, helpers

MODELS = ("gpt", "bert", "translator")
STEPS, TOLERANCE, SECONDS = 50, 1e-10, 30
FACTORS: list[tuple[int, dict[str, Any]]] = [
    (4, {"tensor": tensor, "pipeline": pipeline, "shard": shard})
    for tensor, pipeline in ((1, 1), (2, 1), (4, 1), (1, 2), (2, 2), (1, 4))
    for shard in ((0,) if tensor * pipeline == 4 else (0, 1, 2, 3))
    if tensor * pipeline > 1 or shard
]
OTHERS: list[tuple[int, dict[str, Any]]] = [
    (4, {"pipeline": 2, "schedule": "gpipe"}),
    (4, {"tensor": 2, "pipeline": 2, "recompute": True}),
    (4, {"tensor": 4, "sequence": False}),
    (8, {"tensor": 2, "pipeline": 2, "shard": 1}),
    (8, {"tensor": 2, "pipeline": 2, "shard": 3}),
]
STAGES = {
    1: None,
    2: {"gpt": (2, 1), "bert": (2, 2), "translator": (2, 2)},
    4: {"bert": (1,) * 4, "translator": (1,) * 4},
}


def launch(ranks: int, folder: Path, jobs: Any, limit: float = 600) -> subprocess.CompletedProcess[str]:
    """Run the jobs on so many ranks."""
    mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
    command = [sys.executable, "-m", "support.parallel_ranks", str(folder), json.dumps(jobs)]
    path = os.pathsep.join(sys.path)
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MINIGRAD_TIMEOUT": "25", "PYTHONPATH": path}
    command = command if ranks == 1 else [str(mpiexec), "-n", str(ranks), *command]
    return subprocess.run(command, capture_output=True, text=True, timeout=limit, env=env)


def job(model: str, layout: dict[str, Any], dtype: str, steps: int) -> dict[str, Any]:
    return {"model": model, "layout": layout, "dtype": dtype, "steps": steps}


def main() -> int:
    cases = [(ranks, layout, model) for ranks, layout in FACTORS + OTHERS for model in MODELS]
    cases = [case for case in cases if not (case[1].get("pipeline") == 4 and case[2] == "gpt")]  # it has three blocks
    goals = {"layouts": len(cases), "deaths": 100}
    soak = Soak("parallel", __doc__, goals, {"layouts": 1, "deaths": 1}, {"steps": (STEPS, "of training")})
    helpers()
    folder, steps = Path(tempfile.mkdtemp()), soak.options.steps
    worst: dict[str, float] = {"float64": 0.0, "float32": 0.0}

    def told(ranks: int) -> Any:
        return json.loads((folder / f"told-{ranks}.json").read_text())

    def as_one_process(number: int) -> int:
        ranks, layout, model = cases[number % len(cases)]
        for dtype in worst:
            if not (folder / f"{model}-{steps}-{dtype}.npz").exists():
                launch(1, folder, [job(model, {}, dtype, steps)])
        done = launch(ranks, folder, [job(model, layout, dtype, steps) for dtype in worst])
        assert done.returncode == 0, f"{model} {layout}: {done.stderr[-2000:]}"
        for one in told(ranks):
            worst[one["dtype"]] = max(worst[one["dtype"]], one["error"])
            print(f"{model} {layout} {one['dtype']}: {one['error']:.1e}", file=sys.stderr)
            assert one["error"] < (TOLERANCE if one["dtype"] == "float64" else 0.05), f"{model} {layout}: {one}"
        return 1

    def killed(number: int) -> int:
        chance = random.Random(number)
        ranks, layout = chance.choice(FACTORS)
        model = chance.choice(MODELS if layout["pipeline"] < 4 else MODELS[1:])
        stages = (STAGES[layout["pipeline"]] or {}).get(model)
        task = {"model": model, "layout": {**layout, "stages": stages}, "steps": 8}
        whole = launch(ranks, folder, {**task, "out": f"whole-{number}"})
        assert whole.returncode == 0, whole.stderr[-2000:]
        expected = told(ranks)
        begin = time.monotonic()
        dead = {**task, "out": f"dead-{number}", "rank": chance.randrange(ranks), "after": chance.uniform(0, 3)}
        done = launch(ranks, folder, dead)
        seconds = time.monotonic() - begin
        assert seconds < SECONDS + 10, f"{layout}: the job took {seconds:.0f} seconds to end"  # it has to start, too
        assert done.returncode == 0 or done.stderr or "BAD TERMINATION" in done.stdout, "no message"
        again = launch(ranks, folder, {**task, "out": f"dead-{number}"})
        assert again.returncode == 0, again.stderr[-2000:]
        assert told(ranks) == expected, f"{model} {layout}: the resumed run differs"
        return 1

    try:
        soak.run("layouts", as_one_process, "comparing layouts")
        soak.run("deaths", killed, "killing ranks")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return soak.report(worst=worst)


if __name__ == "__main__":
    sys.exit(main())
