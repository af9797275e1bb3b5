"""Pretrained models in our own modules, beside what they came from: how far they agree, how fast they are, how they load.

    python -m benchmarks.imported [--task minilm smollm2 loading students …] [--peers FOLDER …] [--quick] [--json] [--write]

The real weights come in packages, which the error for a missing one names. Every candidate has a process of its own, and they
take turns. A ratio is the peer's time by ours, so more is better. Results that differ make the command fail. `--peers` names
folders with packages of peers that are no dependencies, such as llama-cpp-python and ctranslate2.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from .measure import Worker, alternate, arguments, machine, progress, ratio, serve, summary, table
from .pretrained import minilm, smollm2, students
from .pretrained.packages import Missing
from .pretrained.packages import smollm2 as smollm2_file
from .results import add_write_option, conclude

MODULE = "benchmarks.imported"
GPT2_SECONDS, SMOL_SECONDS, SMOL_SHARE = 1.0, 2.0, 1.5


def compared(
    task: str, peers: list[str], steps: int, rounds: int, warm: int, folders: list[str]
) -> tuple[dict[str, Any], dict[str, float]]:
    """Milliseconds of each candidate, and the ratios of the peers to minigrad; what is missing says so."""
    with ExitStack() as stack:
        progress(f"{task}: starting every library")
        workers = {p: stack.enter_context(Worker(MODULE, f"{task}/{p}", paths=folders)) for p in ["minigrad", *peers]}
        missing = {p: reason for p, w in workers.items() if (reason := w.missing())}
        present = {p: w for p, w in workers.items() if p not in missing}
        seconds = alternate({p: partial(w.run, steps, warm=warm) for p, w in present.items()}, rounds, task)
    times = {p: summary(s, 1e3 / steps) for p, s in seconds.items()}
    ratios = {p: ratio(seconds[p], seconds["minigrad"]) for p in seconds if p != "minigrad"}
    return {"milliseconds": times, "missing": missing}, ratios


def shown(detail: Mapping[str, Any], ratios: Mapping[str, float], wanted: Mapping[str, float | None]) -> list[str]:
    """The times and ratios for people."""
    rows = [(p, f"{t['median']:.2f}", f"{t['minimum']:.2f}") for p, t in detail["milliseconds"].items()]
    lines = [table(("milliseconds", "median", "minimum"), rows)]
    lines += [f"{p} / minigrad: {reached(value, wanted.get(p), least=True)}" for p, value in ratios.items()]
    return lines + [f"{p} is left out: {reason}" for p, reason in detail["missing"].items()]


def reached(value: float, wanted: float | None, least: bool) -> str:
    """A figure, and whether it is what it should be."""
    if wanted is None:
        return f"{value:.3g}"
    is_met = value >= wanted if least else value <= wanted
    return f"{value:.3g} (to reach: at {'least' if least else 'most'} {wanted:g}): {'reached' if is_met else 'MISSED'}"


def measure_minilm(options: argparse.Namespace) -> tuple[list[str], dict[str, Any]]:
    """MiniLM: vectors and speed."""
    apart = minilm.agreement()
    rounds = 2 if options.quick else 5
    detail, ratios = compared("minilm", ["transformers"], 1, rounds, 0 if options.quick else 1, options.peers)
    lines = [f"vectors of {minilm.COUNT:,} sentences: {reached(apart, minilm.AGREE, least=False)}"]
    lines += shown(detail, ratios, {"transformers": minilm.TO_REACH})
    return lines, {"agrees": apart <= minilm.AGREE, "apart": apart, "ratios": ratios, **detail}


def measure_smollm2(options: argparse.Namespace) -> tuple[list[str], dict[str, Any]]:
    """SmolLM2: greedy text and speed."""
    found = smollm2.differing(2 if options.quick else len(smollm2.PROMPTS))
    rounds = 2 if options.quick else 5
    detail, ratios = compared("smollm2", list(smollm2.TO_REACH), smollm2.WRITTEN, rounds, 8, options.peers)
    apart = len(found["diverged"])
    lines = [
        f"{found['prompts']} prompts, {found['tokens']} greedy tokens each: {apart} diverge where the best two are more than "
        f"{smollm2.TIE:g} apart ({'reached' if not apart else 'MISSED'}); {found['ties']} ties"
    ]
    lines += shown(detail, ratios, smollm2.TO_REACH)
    return lines, {"agrees": not apart, "greedy": found, "ratios": ratios, **detail}


def measure_loading(options: argparse.Namespace) -> tuple[list[str], dict[str, Any]]:
    """Loading SmolLM2's file, and a GPT-2 of 124 million random weights in transformers' layout."""
    smol = smollm2.loading(smollm2_file())
    with tempfile.TemporaryDirectory() as folder:
        save_gpt2(Path(folder))
        gpt2 = smollm2.loading(Path(folder))
    lines = [
        f"SmolLM2, seconds: {reached(smol['seconds'], SMOL_SECONDS, least=False)}",
        f"SmolLM2, memory by the file's size: {reached(smol['share of the file'], SMOL_SHARE, least=False)}",
        f"GPT-2 124M, seconds: {reached(gpt2['seconds'], GPT2_SECONDS, least=False)}",
        f"GPT-2 124M, memory by the file's size: {gpt2['share of the file']:.2f}",
    ]
    return lines, {"smollm2": smol, "gpt2": gpt2}


def save_gpt2(folder: Path) -> None:
    """A GPT-2 of its first size, with random weights, as transformers saves it."""
    import torch
    import transformers

    torch.manual_seed(0)
    transformers.GPT2LMHeadModel(transformers.GPT2Config()).save_pretrained(folder)


def measure_students(options: argparse.Namespace) -> tuple[list[str], dict[str, Any]]:
    """The Portuguese students: translations beside those of their engine."""
    found = students.agreement(20 if options.quick else students.COUNT)
    lines = [
        f"{name}: {one['same']:,} of {one['sentences']:,} as the engine, share {reached(one['share'], students.AGREE, least=True)}; "
        f"{one['seconds']:.1f} s, the engine {one[students.ENGINE]:.1f} s"
        for name, one in found.items()
    ]
    return lines, {"agrees": all(one["share"] >= students.AGREE for one in found.values()), **found}


TASKS: dict[str, Callable[[argparse.Namespace], tuple[list[str], dict[str, Any]]]] = {
    "minilm": measure_minilm,
    "smollm2": measure_smollm2,
    "loading": measure_loading,
    "students": measure_students,
}
PEERS: dict[str, Callable[[str], Callable[[], Any]]] = {"minilm": minilm.peer, "smollm2": smollm2.peer}


def options_of() -> argparse.Namespace:
    parser = arguments(__doc__)
    add_write_option(parser)
    parser.add_argument("--task", choices=TASKS, nargs="+", default=list(TASKS), help="which to measure (default: all)")
    parser.add_argument("--peers", nargs="+", default=[], metavar="FOLDER", help="folders with packages of peers")
    return parser.parse_args()


def main() -> int:
    options = options_of()
    if options.worker:
        task, _, peer = options.worker.partition("/")
        serve(partial(PEERS[task], peer))
        return 0
    sys.path += options.peers
    options.peers = [*options.peers, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    texts, details = [], {}
    for task in options.task:
        try:
            lines, details[task] = TASKS[task](options)
        except Missing as error:
            lines, details[task] = [str(error)], {"missing": str(error)}
        texts.append("\n".join([task, *lines]))
    progress("")
    detail = {"benchmark": "imported", "quick": options.quick, "machine": machine(), "measured": details}
    conclude(
        options, f"Pretrained models: {', '.join(options.task)}", "\n\n".join(texts), {**details, "detail": detail}
    )
    return 0 if all(one.get("agrees", True) for one in details.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
