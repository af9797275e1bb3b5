"""Translators with and without recurrence, each trained on the phrasebook and the grammar; interrupted, the command goes on where it was.

    python -m benchmarks.seq2seq [--model LSTM …] [--folder build/trained] [--quick] [--json] [--write]

For each: how many sentences that it never saw are exactly right (beam 5), all of them and by the words that they have; seconds
of training, validations included; and the next token's accuracy when the decoder is fed the true tokens before it, and when
it is fed its own (greedy). The difference is exposure bias.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from minigrad.saving import write_atomically

from .measure import ROOT, arguments, machine, progress, table
from .results import add_write_option, conclude
from .trained import trained

MODELS = {
    "RNN": "seq2seq:rnn",
    "GRU": "seq2seq:gru",
    "LSTM": "seq2seq:lstm",
    "LSTM, half its own": "seq2seq:own",
    "LSTM with attention": "seq2seq:attention",
    "transformer": "translator",
}
WORDS = ((1, 4), (5, 6), (7, 8), (9, 99))  # of a source: the first and the last of a group
QUICK = {"pairs": 100, "evaluated": 12, "dim": 16, "hidden": 16}  # what only shows that everything works


def scores_of(loaded: Any) -> dict[str, Any]:
    """What a model translates exactly, by the number of words, and its exposure bias; computed once, and kept beside its run."""
    kept = loaded.path.with_name(f"{loaded.path.name}-by-length.json")
    if kept.exists():
        return json.loads(kept.read_text())
    from minigrad_models.translator.evaluation import tests_of

    held, book = (is_exact(loaded, pairs) for pairs in tests_of(loaded, None).values())
    groups = {}
    for first, last in WORDS:
        inside = [right for words, right in held if first <= words <= last]
        groups[f"{first}-{last}"] = [sum(inside), len(inside)]
    places = loaded.exposure()
    tokens = sum(place.count for place in places)
    scores = {
        "parameters": sum(p.size for p in loaded.model.parameters()),
        "held_out": [sum(right for _, right in held), len(held)],
        "phrasebook": [sum(right for _, right in book), len(book)],
        "by_words": groups,
        "forced": 100 * sum(place.teacher_forced * place.count for place in places) / tokens,
        "free": 100 * sum(place.free_running * place.count for place in places) / tokens,
    }
    write_atomically(kept, json.dumps(scores).encode())
    return scores


def is_exact(loaded: Any, pairs: list[tuple[str, str]]) -> list[tuple[int, bool]]:
    """For each source how many words it has, and whether its translation is one of those that it has in the test."""
    wanted: dict[str, set[str]] = {}
    for source, target in pairs[: loaded.config.evaluated]:
        wanted.setdefault(source, set()).add(target)
    said = loaded.translate(list(wanted))
    return [(len(source.split()), bool(one.text in texts)) for one, (source, texts) in zip(said, wanted.items())]


def share(counts: list[int]) -> str:
    """In per cent, or nothing of nothing."""
    right, count = counts
    return f"{100 * right / count:.1f}" if count else "-"


def report(measured: Mapping[str, Mapping[str, Any]]) -> str:
    """Two tables: what each came to, and how it falls off with length."""
    rows, lengths = [], []
    for name, one in measured.items():
        exact, book = share(one["held_out"]), share(one["phrasebook"])
        sizes = f"{one['seconds']:.0f}", f"{one['parameters']:,}"
        bias = f"{one['forced'] - one['free']:.2f}"
        rows.append([name, exact, book, *sizes, f"{one['forced']:.2f}", f"{one['free']:.2f}", bias])
        lengths.append([name, *map(share, one["by_words"].values())])
    first = next(iter(measured.values()))
    groups = zip(WORDS, first["by_words"].values())
    titles = [f"{a} or more" if b == WORDS[-1][1] else f"{a} to {b}" for (a, b), _ in groups]
    counts = ", ".join(str(count) for _, count in first["by_words"].values())
    tokens = "next token, fed the truth, %", "fed its own, %", "exposure bias"
    return "\n".join(
        [
            f"{first['held_out'][1]:,} sentences that it never saw, {first['phrasebook'][1]} phrases of the phrasebook",
            table(("", "exact, %", "phrases, %", "seconds", "parameters", *tokens), rows),
            "",
            f"exactly right, in per cent, by the words of the source ({counts} sentences)",
            table(("", *titles), lengths),
        ]
    )


def main() -> int:
    parser = arguments(__doc__)
    add_write_option(parser)
    parser.add_argument("--model", choices=MODELS, nargs="+", default=[*MODELS], metavar="MODEL", help=f"of {', '.join(MODELS)}")  # fmt: skip
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "trained", help="where runs are kept")
    options = parser.parse_args()
    measured = {}
    for name in options.model:
        progress(f"{name}: training")
        loaded, steps, seconds = trained(MODELS[name], options, **(QUICK if options.quick else {}))
        progress(f"{name}: translating")
        measured[name] = {"steps": steps, "seconds": seconds, **scores_of(loaded)}
    progress("")
    exact = {name: np.divide(*one["held_out"]).item() for name, one in measured.items()}
    detail = {"benchmark": "seq2seq", "quick": options.quick, "machine": machine(), "measured": measured}
    conclude(options, "Translators before transformers", report(measured), {**exact, "detail": detail})
    return 0


if __name__ == "__main__":
    sys.exit(main())
