"""Divide models among ranks in every way, compare with one process, count memory and bytes, and kill ranks.

    python -m benchmarks.parallel [--layouts 56] [--costs 10] [--deaths 100] [--quick] [--json] [--write]

Every factorisation of 4 ranks, and 2 x 2 x 2 on 8: 50 steps of gpt, bert and translator, with dropout, clipping and accumulation, in float64
within 1e-10 of one process, and in float32 within rounding: no further from one process than a few times what that is from float64. Memory and
bytes of a rank are those of the formulas. Then ranks are killed with SIGKILL at random: each job has to end within 30 seconds, and the run to go
on to the same bits. It resumes where it stopped, and can be run in pieces: `--deaths 20`, then `--deaths 40`.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from .soak import Soak, helpers

MODELS = ("gpt", "bert", "translator")
STEPS, TOLERANCE, ROUNDINGS, SECONDS = 50, 1e-10, 10, 30
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
BLOCKS = {"gpt": 3, "bert": 4, "translator": 4}
STAGES: dict[int, dict[str, tuple[int, ...]]] = {  # given, so that the bits do not depend on measured times
    2: {"gpt": (2, 1), "bert": (2, 2), "translator": (2, 2)},
    4: {"bert": (1,) * 4, "translator": (1,) * 4},
}
CASES = [
    (n, layout, model)
    for n, layout in FACTORS + OTHERS
    for model in MODELS
    if layout.get("pipeline", 1) <= BLOCKS[model]
]


def launch(ranks: int, folder: Path, jobs: Any, limit: float = 600) -> subprocess.CompletedProcess[str]:
    """Run the jobs on so many ranks."""
    mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
    command = [sys.executable, "-m", "support.parallel_ranks", str(folder), json.dumps(jobs)]
    path = os.pathsep.join(sys.path)
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MINIGRAD_TIMEOUT": "25", "PYTHONPATH": path}
    command = command if ranks == 1 else [str(mpiexec), "-n", str(ranks), *command]
    return subprocess.run(command, capture_output=True, text=True, timeout=limit, env=env)


def shown(layout: dict[str, Any]) -> str:
    """A layout as the command takes it."""
    usual = {"tensor": 1, "pipeline": 1, "shard": 0}
    return " ".join(f"{key}={str(value).lower()}" for key, value in layout.items() if value != usual.get(key))


class Trials:
    """The pieces of work; what they found is kept in a folder, so that they can be done one after the other."""

    def __init__(self, folder: Path, steps: int):
        self.folder, self.steps = folder, steps
        folder.mkdir(parents=True, exist_ok=True)

    def note(self, kind: str, **figures: Any) -> None:
        with (self.folder / f"{kind}.jsonl").open("a") as file:
            file.write(json.dumps(figures) + "\n")

    def noted(self, kind: str) -> list[dict[str, Any]]:
        path = self.folder / f"{kind}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def told(self, ranks: int, jobs: Any) -> Any:
        """What rank 0 of a job that succeeds tells."""
        told = self.folder / f"told-{ranks}.json"
        told.unlink(missing_ok=True)
        done = launch(ranks, self.folder, jobs)
        assert done.returncode == 0 and told.exists(), f"{jobs}: {done.stderr[-2000:]}"
        return json.loads(told.read_text())

    def alone(self, model: str, dtype: str) -> Any:
        """The losses and weights that one process makes of a model."""
        path = self.folder / f"{model}-{self.steps}-{dtype}.npz"
        if not path.exists():
            self.told(1, [self._job(model, {}, dtype)])
        return np.load(path)

    def _job(self, model: str, layout: dict[str, Any], dtype: str) -> dict[str, Any]:
        return {"model": model, "layout": layout, "dtype": dtype, "steps": self.steps}

    def compare(self, number: int) -> int:
        """Train in a layout, and compare with one process."""
        ranks, layout, model = CASES[number % len(CASES)]
        exact, rough = (self.alone(model, dtype) for dtype in ("float64", "float32"))
        rounding = max(float(np.abs(exact[name] - rough[name]).max()) for name in exact.files if name != "__seen__")
        jobs = [self._job(model, layout, dtype) for dtype in ("float64", "float32")]
        errors = {one["dtype"]: one["error"] for one in self.told(ranks, jobs)}
        self.note("layouts", ranks=ranks, layout=shown(layout), model=model, **errors, rounding=rounding)
        assert errors["float64"] < TOLERANCE, f"{model} {layout}: {errors}"
        assert errors["float32"] < ROUNDINGS * rounding, f"{model} {layout}: {errors}, rounding {rounding}"
        return 1

    def count(self, number: int) -> int:
        """Compare memory and bytes of all ranks with the formulas."""
        from support.parallel_ranks import COUNTED  # type: ignore[import-not-found]

        layout = COUNTED[number % len(COUNTED)]
        ranks = self.told(4, {"counted": layout})
        most = max(ranks, key=lambda one: sum(one["held"].values()))
        held, sent = sum(most["held"].values()), max(_total(one["step"]) for one in ranks)
        self.note("costs", layout=shown(layout), held=held, whole=3 * most["whole"], sent=sent)
        for one in ranks:
            assert one["step"] == one["expected"]["traffic"], f"{layout}: {one}"
            assert one["held"] == one["expected"]["memory"], f"{layout}: {one}"
        if layout == {"shard": 3}:
            assert held <= 1.15 / 4 * 3 * most["whole"], f"{layout}: a rank holds {held} of {3 * most['whole']}"
        return 1

    def kill(self, number: int) -> int:
        """Kill a rank somewhere between its start and its end, and resume the run."""
        chance = random.Random(number)
        ranks, layout = chance.choice(FACTORS)
        model = chance.choice([name for name in MODELS if layout["pipeline"] <= BLOCKS[name]])
        stages = STAGES.get(layout["pipeline"], {}).get(model)
        task = {"model": model, "layout": {**layout, "stages": stages}, "steps": 8}
        known = self.folder / f"whole-{model}-{shown(layout).replace(' ', '-')}.json"
        if not known.exists():
            known.write_text(json.dumps(self.told(ranks, {**task, "out": known.stem})))
        (whole,) = json.loads(known.read_text())
        victim, after = chance.randrange(ranks), chance.random() * whole["seconds"]
        run, died = self.folder / f"dead-{number}", self.folder / "died"
        shutil.rmtree(run, ignore_errors=True)
        died.unlink(missing_ok=True)
        done = launch(ranks, self.folder, {**task, "out": run.name, "rank": victim, "after": after})
        ended = time.time()
        if not died.exists():  # it was done before
            raise TimeoutError(
                f"rank {victim} of {model} {layout} was to die after {after:.1f} seconds, and was faster"
            )
        seconds = ended - float(died.read_text())
        (again,) = self.told(ranks, {**task, "out": run.name})
        self.note("deaths", layout=shown(layout), model=model, seconds=seconds, step=again["began"])
        shutil.rmtree(run)
        assert seconds < SECONDS, f"{layout}: the job took {seconds:.0f} seconds to end"
        assert done.returncode and "BAD TERMINATION" in done.stdout + done.stderr, f"{layout}: no message"
        assert again["digest"] == whole["digest"], f"{model} {layout}: the resumed run differs"
        return 1

    def summary(self) -> str:
        """What was found so far, as text."""
        lines = ["layout of the ranks           model       float64  float32  (rounding)"]
        for one in self.noted("layouts"):
            name = f"{one['layout']} on {one['ranks']}"
            lines.append(
                f"{name:36} {one['model']:10} {one['float64']:.0e}    {one['float32']:.0e}    ({one['rounding']:.0e})"
            )
        lines += ["", "layout of 4 ranks              weights and optimiser of a rank  bytes sent in a step"]
        for one in self.noted("costs"):
            lines.append(
                f"{one['layout']:32} {one['held'] / one['whole']:6.1%} of {one['whole']:,} bytes {one['sent']:14,}"
            )
        deaths = self.noted("deaths")
        if deaths:
            slowest = max(one["seconds"] for one in deaths)
            layouts = {(one["layout"], one["model"]) for one in deaths}
            begun = sum(one["step"] > 0 for one in deaths)
            lines += [
                "",
                f"{len(deaths)} ranks killed, in {len(layouts)} kinds of jobs, {begun} of them after a checkpoint of a later step than 0:",
                f"each job ended, the slowest {slowest:.1f} s after the death, and went on to the same bits",
            ]
        return "\n".join(lines)


def _total(traffic: dict[str, dict[str, int]]) -> int:
    return sum(sum(kinds.values()) for kinds in traffic.values())


def main() -> int:
    goals = {"layouts": len(CASES), "costs": 10, "deaths": 100}
    title = "Models divided among ranks"
    soak = Soak("parallel", __doc__, goals, dict.fromkeys(goals, 1), {"steps": (STEPS, "of training")}, title)
    helpers()
    folder = soak.options.state.with_suffix("")
    if not any(soak.done.values()):
        shutil.rmtree(folder, ignore_errors=True)
    trials = Trials(folder, soak.options.steps)
    soak.run("layouts", trials.compare, "comparing layouts")
    soak.run("costs", trials.count, "counting")
    soak.run("deaths", trials.kill, "killing ranks")
    worst = max((one["float64"] for one in trials.noted("layouts")), default=0.0)
    return soak.report(
        trials.summary(), worst=worst, slowest=max((d["seconds"] for d in trials.noted("deaths")), default=0.0)
    )


if __name__ == "__main__":
    sys.exit(main())
