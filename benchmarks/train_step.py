"""The same GPT and translator trained in minigrad, with NumPy's and with numba's kernels, and in PyTorch: times, losses, memory.

    python -m benchmarks.train_step [--config nano|baby|translator|… …] [--memory] [--quick] [--json] [--write]

Weights, batches, AdamW and clipping are identical; every candidate has a process of its own, and they take turns.
PyTorch runs eagerly with its own number of threads and whichever AdamW is faster, the plain or the fused one. Losses that
differ make the command fail. `--json` prints {"nano": {"numba": ratio, "numpy": ratio}, …, "detail": …} last: PyTorch's
time by ours, so more is better, or with `--memory` our peak by PyTorch's, so less is better; null where one is missing.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from itertools import product
from statistics import median
from typing import Any

import numpy as np

from .floor import gemm_step
from .measure import Worker, alternate, arguments, machine, progress, ratio, serve, summary, table
from .memory import Peak
from .results import add_write_option, conclude
from .twins import gpt, translator

Config = gpt.Config | translator.Config
CONFIGS: dict[str, Config] = {**gpt.CONFIGS, **translator.CONFIGS}
NAMES = {"gpt": "GPT", "translator": "translator"}
KERNELS = ("numpy", "numba")
TORCHES = {"PyTorch": None, "PyTorch, fused AdamW": True}
FLOOR = "bare matmuls"
PEERS = (*(f"minigrad, {name}" for name in KERNELS), *TORCHES)
MODULE = "benchmarks.train_step"
LOSSES = 1e-3  # how far losses may be apart
TO_REACH = {
    "nano": {"numba": 0.8, "numpy": 0.5},
    "baby": {"numba": 0.9, "numpy": 0.5},
    "translator": {"numba": 0.9},
}
MEMORY_TO_REACH = 1.2
# Steps in a round, and before it, while the threads of the one before fall asleep, which takes a fifth of a second.
STEPS = {"tiny": (20, 20), "nano": (20, 10), "baby": (2, 1), "tiny-translator": (20, 20), "translator": (3, 1)}
MILLI = 1e3
MEGA = 2**20


def twin(config: Config, library: str) -> Any:
    """The module of a model in "minigrad" or in "torch"."""
    return import_module(f".twins.{config.family}_{library}", __package__)


def make_step(peer: str, config: Config) -> Callable[[], Any]:
    """One step of a candidate, whose library is imported only here; ImportError if it is not installed."""
    if peer == FLOOR:
        return gemm_step(config.products(), config.dtype)
    import_library(peer, config)
    if peer in TORCHES:
        return twin(config, "torch").torch_step(config, TORCHES[peer])
    return twin(config, "minigrad").minigrad_step(config)


def import_library(peer: str, config: Config) -> None:
    """Import PyTorch, or minigrad with its kernels."""
    if peer in TORCHES:
        twin(config, "torch")
    else:
        os.environ["MINIGRAD_KERNELS"] = peer.removeprefix("minigrad, ")  # which minigrad reads when it is imported
        from .twins.gpt_minigrad import loaded_kernels

        loaded_kernels()
        twin(config, "minigrad")


# What comes before memory is measured. A step of a tiny model loads what a library loads at its first use.
BEFOREHAND: dict[str, Callable[[str, Config], Any]] = {
    "import": import_library,
    "a tiny step": lambda peer, config: make_step(peer, CONFIGS[config.tiny])(),
}


def work(name: str) -> None:
    """Be the worker "CONFIG/PEER", which trains, or "CONFIG/PEER/BEFOREHAND", which returns how far its memory has grown."""
    chosen, peer, *beforehand = name.split("/")
    config = CONFIGS[chosen]
    make = partial(make_step, peer, config)
    serve(partial(Peak, partial(BEFOREHAND[beforehand[0]], peer, config), make) if beforehand else make)


def measure(name: str, rounds: int, losses: int, steps: int, warm: int) -> dict[str, Any]:
    """Milliseconds a step, the losses of the first steps, and how they compare."""
    title = short_title(name)
    with ExitStack() as stack:
        progress(f"{title}: starting every library")
        workers = {p: stack.enter_context(Worker(MODULE, f"{name}/{p}")) for p in (*PEERS, FLOOR)}
        missing = {p: reason for p, w in workers.items() if (reason := w.missing())}
        present = {p: w for p, w in workers.items() if p not in missing}
        curves = {p: first_losses(w, losses, title) for p, w in present.items() if p != FLOOR}
        seconds = alternate({p: partial(w.run, steps, warm=warm) for p, w in present.items()}, rounds, title)
    peer = fastest(seconds)
    floor = median(seconds[FLOOR])
    return {
        "peers": {p: summary(s, MILLI / steps) for p, s in seconds.items()},
        "pytorch": peer,
        "ratios": ratios_to(seconds, peer),
        "floor_share": {p: floor / median(s) for p, s in seconds.items() if p != FLOOR},
        "losses": {p: [curve[0], curve[-1]] for p, curve in curves.items()},
        "loss_steps": losses,
        "loss_difference": largest_difference(curves),
        "missing": missing,
    }


def first_losses(worker: Worker, count: int, title: str) -> list[float]:
    """The losses of its first steps, one by one."""
    losses = []
    for i in range(count):
        progress(f"{title}: loss of step {i + 1} of {count}, {worker.name.partition('/')[2]}")
        worker.run(1)
        losses.append(worker.value)
    return losses


def largest_difference(curves: Mapping[str, list[float]]) -> float:
    """How far any two curves are apart at any step; NaN if any loss is."""
    return float(np.ptp(list(curves.values()), axis=0).max())


def fastest(seconds: Mapping[str, list[float]]) -> str | None:
    """The faster of PyTorch's settings, or None if it is not installed."""
    return min((p for p in TORCHES if p in seconds), key=lambda p: median(seconds[p]), default=None)


def ratios_to(seconds: Mapping[str, list[float]], peer: str | None) -> dict[str, float | None]:
    """PyTorch's time by ours, for each of our kernels."""
    ours = {name: seconds.get(f"minigrad, {name}") for name in KERNELS}
    return {name: ratio(seconds[peer], own) if peer and own else None for name, own in ours.items()}


def measure_memory(name: str, steps: int, peers: Iterable[str] = PEERS) -> dict[str, Any]:
    """Megabytes that each candidate's memory grew by in some steps, one candidate after the other.

    A ratio is the larger of two: to memory after import, and after what each library loads only at its first use.
    """
    grown: dict[str, dict[str, float]] = {}
    missing = {}
    for peer, beforehand in product(peers, BEFOREHAND):
        progress(f"{short_title(name)}: memory of {peer} after {beforehand}")
        with Worker(MODULE, f"{name}/{peer}/{beforehand}") as worker:
            if reason := worker.missing():
                missing[peer] = reason
                continue
            worker.run(steps)
            grown.setdefault(peer, {})[beforehand] = worker.value / MEGA
    theirs = {b: min((grown[p][b] for p in TORCHES if p in grown), default=None) for b in BEFOREHAND}
    ratios = {}
    for kernels in KERNELS:
        ours = grown.get(f"minigrad, {kernels}", {})
        ratios[kernels] = max((own / other for b, own in ours.items() if (other := theirs[b])), default=None)
    return {"megabytes": grown, "ratios": ratios, "missing": missing}


def report(measured: Mapping[str, Mapping[str, Any]]) -> str:
    """The times for people."""
    return "\n\n".join(report_config(name, one) for name, one in measured.items())


def report_config(name: str, one: Mapping[str, Any]) -> str:
    rows = [
        [
            p,
            f"{times['median']:.2f}",
            f"{times['minimum']:.2f}",
            f"{one['floor_share'][p]:.0%}" if p in one["floor_share"] else "",
            f"{one['losses'][p][1]:.5f}" if p in one["losses"] else "",
        ]
        for p, times in one["peers"].items()
    ]
    count, difference = one["loss_steps"], one["loss_difference"]
    agree = "they agree" if difference < LOSSES else "THEY DIFFER"
    lines = [
        f"{title_of(name)}: milliseconds a step",
        table(("", "median", "minimum", "matmuls' share", f"loss {count}"), rows),
        *verdicts(one["ratios"], TO_REACH.get(name, {}), f"{one['pytorch']} / minigrad, "),
        f"losses of the first {count} steps: at most {difference:.2g} apart (below {LOSSES:g}): {agree}",
        *left_out(one["missing"]),
    ]
    return "\n".join(lines)


def short_title(name: str) -> str:
    kind = NAMES[CONFIGS[name].family]
    return kind if name == kind else f"{kind} {name}"


def title_of(name: str) -> str:
    return f"{short_title(name)} ({CONFIGS[name]})"


def verdicts(ratios: Mapping[str, float | None], limits: Mapping[str, float], title: str) -> Iterable[str]:
    """A line for each ratio that there is, which says whether it is large enough."""
    for kernels, value in ratios.items():
        if value is not None:
            goal = f" (to reach: at least {limits[kernels]:g})" if kernels in limits else ""
            mark = "" if kernels not in limits else ": reached" if value >= limits[kernels] else ": MISSED"
            yield f"{title}{kernels}: {value:.2f}{goal}{mark}"


def left_out(missing: Mapping[str, str]) -> Iterable[str]:
    return (f"left out: {peer} ({reason})" for peer, reason in missing.items())


def report_memory(measured: Mapping[str, Mapping[str, Any]]) -> str:
    """The peaks for people."""
    parts = []
    for name, one in measured.items():
        rows = [[p, *(f"{grown[b]:.1f}" for b in BEFOREHAND)] for p, grown in one["megabytes"].items()]
        head = ("", *(f"after {b}" for b in BEFOREHAND))
        lines = [f"{title_of(name)}: megabytes at the peak less megabytes before", table(head, rows)]
        for kernels, value in one["ratios"].items():
            if value is not None:
                mark = "reached" if value <= MEMORY_TO_REACH else "MISSED"
                goal = f"(to reach: at most {MEMORY_TO_REACH:g})"
                lines.append(f"minigrad, {kernels} / PyTorch, the larger of both: {value:.2f} {goal}: {mark}")
        parts.append("\n".join([*lines, *left_out(one["missing"])]))
    return "\n\n".join(parts)


def options_of() -> argparse.Namespace:
    parser = arguments(__doc__)
    add_write_option(parser)
    parser.add_argument(
        "--config",
        choices=CONFIGS,
        nargs="+",
        default=["nano", "baby", "translator"],
        help="which model (default: nano baby translator); the tiny ones only show that everything works",
    )
    parser.add_argument("--memory", action="store_true", help="measure peak memory instead of time")
    return parser.parse_args()


def main() -> int:
    options = options_of()
    if options.worker:
        work(options.worker)
        return 0
    names = options.config
    if options.memory:
        measured = {name: measure_memory(name, 2 if options.quick else 5) for name in names}
        title, text = "Peak memory of a transformer's training step", report_memory(measured)
    else:
        rounds, losses = (2, 5) if options.quick else (7, 20)
        pace = {name: (1, 1) if options.quick else STEPS[name] for name in names}
        measured = {name: measure(name, rounds, losses, *pace[name]) for name in names}
        title, text = "Training step of transformers", report(measured)
    progress("")
    result = {name: one["ratios"] for name, one in measured.items()}
    detail = {"benchmark": "train_step", "quick": options.quick, "machine": machine(), "measured": measured}
    conclude(options, title, text, {**result, "detail": detail})
    return 0 if all(one.get("loss_difference", 0) < LOSSES for one in measured.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
