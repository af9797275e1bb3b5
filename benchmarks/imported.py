"""Pretrained models in our own modules, beside what they came from: how far they agree, how fast they are, how they load.

    python -m benchmarks.imported [--task minilm smollm2 loading students gpt translation …] [--peers FOLDER …]
                                  [--runs FOLDER] [--quick] [--json] [--write]

The real weights come in packages, which the error for a missing one names; GPT *baby* and the translator are trained for a
while, once, in the folder of `--runs`. Every candidate has a process of its own, and they take turns. A ratio is the peer's
time by ours, so more is better. *Reading* is what no token can be cheaper than: each byte of the weights once. Results that
differ make the command fail. `--peers` names folders with packages of peers that are no dependencies, such as
llama-cpp-python and ctranslate2.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from .measure import ROOT, Worker, alternate, arguments, machine, progress, ratio, serve, summary, table
from .pretrained import gpt, minilm, smollm2, students, translation
from .pretrained.packages import Missing
from .pretrained.packages import smollm2 as smollm2_file
from .pretrained.reading import READING
from .results import add_write_option, conclude

MODULE = "benchmarks.imported"
OURS = "minigrad"
GPT2_SECONDS, SMOL_SECONDS, SMOL_SHARE = 1.0, 2.0, 1.5


def compared(
    task: str, peers: Sequence[str], steps: int, rounds: int, warm: int, options: argparse.Namespace
) -> tuple[dict[str, Any], dict[str, float]]:
    """Milliseconds of each candidate, and the ratios of every peer to every one of ours; what is missing says so."""
    with ExitStack() as stack:
        progress(f"{task}: starting every library")
        names = {p: f"{task}/{p}/{options.runs.absolute()}" for p in peers}
        workers = {p: stack.enter_context(Worker(MODULE, name, paths=options.peers)) for p, name in names.items()}
        missing = {p: reason for p, w in workers.items() if (reason := w.missing())}
        present = {p: w for p, w in workers.items() if p not in missing}
        seconds = alternate({p: partial(w.run, steps, warm=warm) for p, w in present.items()}, rounds, task)
    times = {p: summary(s, 1e3 / steps) for p, s in seconds.items()}
    ours, theirs = ([p for p in seconds if p.startswith(OURS) == is_ours] for is_ours in (True, False))
    ratios = {f"{p} / {own}": ratio(seconds[p], seconds[own]) for own in ours for p in theirs}
    return {"milliseconds": times, "missing": missing}, ratios


def shown(detail: Mapping[str, Any], ratios: Mapping[str, float], wanted: Mapping[str, float | None]) -> list[str]:
    """The times, and those of the ratios that are `wanted`, for people."""
    rows = [(p, f"{t['median']:.2f}", f"{t['minimum']:.2f}") for p, t in detail["milliseconds"].items()]
    lines = [table(("milliseconds", "median", "minimum"), rows)]
    lines += [ratio_line(name, ratios[name], least) for name, least in wanted.items() if name in ratios]
    return lines + [f"{p} is left out: {reason}" for p, reason in detail["missing"].items()]


def ratio_line(name: str, value: float, least: float | None) -> str:
    """A ratio of a peer to one of ours; of reading, how far ours is above it."""
    peer, _, own = name.partition(" / ")
    if peer.startswith(READING):
        return f"a token of {own} takes {1 / value:.2f} times as long as reading its weights once"
    return f"{name}: {reached(value, least, least=True)}"


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
    detail, ratios = compared("minilm", [OURS, "transformers"], 1, rounds, 0 if options.quick else 1, options)
    lines = [f"vectors of {minilm.COUNT:,} sentences: {reached(apart, minilm.AGREE, least=False)}"]
    lines += shown(detail, ratios, {"transformers / minigrad": minilm.TO_REACH})
    return lines, {"agrees": apart <= minilm.AGREE, "apart": apart, "ratios": ratios, **detail}


def measure_smollm2(options: argparse.Namespace) -> tuple[list[str], dict[str, Any]]:
    """SmolLM2: greedy text and speed."""
    found = smollm2.differing(2 if options.quick else len(smollm2.PROMPTS))
    rounds = 2 if options.quick else 5
    detail, ratios = compared("smollm2", smollm2.PEERS, smollm2.WRITTEN, rounds, 8, options)
    apart = len(found["diverged"])
    lines = [
        f"{found['prompts']} prompts, {found['tokens']} greedy tokens each: {apart} diverge where the best two are more than "
        f"{smollm2.TIE:g} apart ({'reached' if not apart else 'MISSED'}); {found['ties']} ties"
    ]
    lines += shown(detail, ratios, smollm2.TO_REACH)
    return lines, {"agrees": not apart, "greedy": found, "ratios": ratios, **detail}


def measure_loading(options: argparse.Namespace) -> tuple[list[str], dict[str, Any]]:
    """Loading SmolLM2's file, and a GPT-2 of 124 million random weights in transformers' layout."""
    smollm2.loading(smollm2_file())  # kernels that are new here are compiled, once for all processes to come
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


def measure_gpt(options: argparse.Namespace) -> tuple[list[str], dict[str, Any]]:
    """GPT baby: tokens in float32 and packed, and what packing costs."""
    gpt.run(options.runs)
    peers, rounds = [*gpt.BITS, *gpt.TORCH, *gpt.READINGS], 2 if options.quick else 7
    detail, ratios = compared("gpt", peers, gpt.WRITTEN, rounds, 16, options)
    times = detail["milliseconds"]
    fastest = min((p for p in gpt.TORCH if p in times), key=lambda p: times[p]["median"], default="")
    wanted: dict[str, float | None] = {f"{fastest} / {own}": least for own, least in gpt.TO_REACH.items()}
    lines = shown(detail, ratios, {**wanted, **{f"{p} / {own}": None for p, own in gpt.READINGS.items()}})
    quality = gpt.perplexities(options.runs)
    whole = quality[gpt.WHOLE]["perplexity"]
    for own, found in quality.items():
        worse = found["perplexity"] / whole - 1
        said = reached(100 * worse, gpt.WORSE.get(own), least=False)
        lines.append(f"{own}: {found['bytes']:,} bytes, perplexity {found['perplexity']:.4f}, % worse: {said}")
    return lines, {"quality": quality, "ratios": ratios, **detail}


def measure_translation(options: argparse.Namespace) -> tuple[list[str], dict[str, Any]]:
    """Our translator beside the same weights in CTranslate2 and PyTorch."""
    translation.opened(options.runs)
    rounds = 1 if options.quick else 3
    detail, ratios = compared("translation", translation.PEERS, 1, rounds, 0, options)
    lines = shown(detail, ratios, translation.TO_REACH)
    try:
        same = translation.same_as_ctranslate2(options.runs)
    except ImportError:
        return lines, {"ratios": ratios, **detail}
    lines.append(f"the same translation as CTranslate2's, without a length penalty: {same:.1%}")
    return lines, {"agrees": same >= translation.SAME, "same": same, "ratios": ratios, **detail}


TASKS: dict[str, Callable[[argparse.Namespace], tuple[list[str], dict[str, Any]]]] = {
    "minilm": measure_minilm,
    "smollm2": measure_smollm2,
    "loading": measure_loading,
    "students": measure_students,
    "gpt": measure_gpt,
    "translation": measure_translation,
}
PEERS: dict[str, Callable[[str, Path], Callable[[], Any]]] = {
    "minilm": minilm.peer,
    "smollm2": smollm2.peer,
    "gpt": gpt.peer,
    "translation": translation.peer,
}


def options_of() -> argparse.Namespace:
    parser = arguments(__doc__)
    add_write_option(parser)
    parser.add_argument("--task", choices=TASKS, nargs="+", default=list(TASKS), help="which to measure (default: all)")
    parser.add_argument("--peers", nargs="+", default=[], metavar="FOLDER", help="folders with packages of peers")
    parser.add_argument(
        "--runs",
        type=Path,
        default=ROOT / "build/imported",
        metavar="FOLDER",
        help="where models that are trained are kept",
    )
    return parser.parse_args()


def main() -> int:
    options = options_of()
    if options.worker:
        task, peer, runs = options.worker.split("/", 2)
        serve(partial(PEERS[task], peer, Path(runs)))
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
