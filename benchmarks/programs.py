"""Run random programs in minigrad and in PyTorch: values and gradients agree, or minigrad refuses for a reason that is listed.

    python -m benchmarks.programs [--count 20000] [--seed 0] [--quick] [--json]

Two processes share the work. Every program is made from its number, so a failure can be looked at again; it is shown as
code, without the steps that it does not need. It resumes where it stopped.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from .soak import Soak, helpers

BATCH = 50


def outcomes_of(first: int) -> tuple[Counter[str], list[str]]:
    """How often each outcome came, and the failures, of one batch of programs."""
    helpers()
    from support.program_generator import generate  # type: ignore[import-not-found]
    from support.programs import judge, shrunk  # type: ignore[import-not-found]

    outcomes: Counter[str] = Counter()
    failures = []
    for seed in range(first, first + BATCH):
        program = generate(seed)
        verdict = judge(program)
        outcomes[verdict.outcome] += 1
        if verdict.outcome == "failed":
            small = shrunk(program)
            failures.append(f"program {seed}: {judge(small).why}\n{small.code()}")
        elif verdict.why:
            outcomes[f"{verdict.outcome}: {verdict.reason}"] += 1
    return outcomes, failures


def main() -> int:
    soak = Soak(
        "programs", __doc__, {"count": 20_000}, {"count": 2 * BATCH}, {"seed": (0, "the number of the first program")}
    )
    if importlib.util.find_spec("torch") is None:
        sys.exit("programs run in minigrad and in PyTorch, which is not installed: pip install torch==2.13.0")
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:

        def run_some(done: int) -> int:
            first = soak.options.seed + done
            for outcomes, failures in pool.map(outcomes_of, (first, first + BATCH)):
                soak.outcomes.update(outcomes)
                soak.failures += failures
            return 2 * BATCH

        soak.run("count", run_some, "programs")
    return soak.report()


if __name__ == "__main__":
    sys.exit(main())
