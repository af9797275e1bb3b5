"""The page of a translator, in a real browser without a network, beside Python with the same weights.

    python -m benchmarks.pages RUN [--count 1000] [--weights int8|float32] [--quick] [--json]

RUN is a translator, such as runs/demo. Its page is written, opened from a file, and given sentences that it was not trained on, one
after the other. Every answer must be Python's, and nothing may appear on the console; else the command fails. It says how large the
page is, and how long an answer takes from typing to showing. It needs playwright and chromium.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from minigrad_models.corpora import grammar_pairs

from minigrad import zoo
from minigrad.zoo.pages import WEIGHTS, export_page, with_weights

from .measure import arguments, progress

ASK = """async (text) => {
  const [input, began] = [document.getElementById('input'), performance.now()];
  input.value = text;
  await new Promise((resolve) => {
    const watch = new MutationObserver(() => {
      if (!['idle', 'failed'].includes(document.body.dataset.state)) return;
      watch.disconnect();
      resolve();
    });
    watch.observe(document.body, { attributes: true, attributeFilter: ['data-state'] });
    input.dispatchEvent(new Event('input'));
  });
  return [document.getElementById('output').textContent, performance.now() - began];
}"""
ENOUGH = 200.0  # milliseconds that an answer may take


def asked(path: Path, texts: list[str]) -> tuple[list[tuple[str, float]], list[str]]:
    """What the page answers to each text, with the milliseconds it takes; and what the console says."""
    from playwright.sync_api import sync_playwright

    complaints: list[str] = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_context(offline=True).new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path.resolve().as_uri())
        page.locator("body[data-state=idle]").wait_for()
        found = []
        for number, text in enumerate(texts):
            progress(f"sentence {number + 1} of {len(texts)}")
            found.append(tuple(page.evaluate(ASK, text)))
        browser.close()
    return found, complaints


def compared(run: str, count: int, weights: str | None) -> dict[str, Any]:
    """The size of the page, how many answers are Python's, and how long they take."""
    loaded = zoo.load(run)
    texts = [source for source, _ in grammar_pairs("heldout", count, seed=1)]
    small, chosen = with_weights(loaded, weights)
    with tempfile.TemporaryDirectory() as folder:
        path = export_page(loaded, Path(folder) / "page.html", weights)
        size = path.stat().st_size
        found, complaints = asked(path, texts)
    wanted = [one.text for one in small.translate(texts)]
    times = sorted(taken for _, taken in found)
    return {
        "weights": chosen,
        "megabytes": round(size / 1e6, 3),
        "sentences": len(texts),
        "same": sum(said == text for (said, _), text in zip(found, wanted)),
        "milliseconds": {
            "median": round(median(times), 1),
            "95 %": round(times[int(0.95 * len(times))], 1),
            "most": round(times[-1], 1),
        },
        "console": complaints,
    }


def main() -> int:
    """Compare, and say so."""
    parser = arguments(__doc__)
    parser.add_argument("run", metavar="RUN", help="a trained translator")
    parser.add_argument(
        "--count", type=int, default=1000, metavar="N", help="sentences (default: 1000; 40 with --quick)"
    )
    parser.add_argument("--weights", choices=WEIGHTS, help="how the page keeps weights (default: as export chooses)")
    options = parser.parse_args()
    found = compared(options.run, 40 if options.quick else options.count, options.weights)
    print("\n".join(f"{name:14} {value}" for name, value in found.items()))
    is_right = found["same"] == found["sentences"] and not found["console"]
    is_fast = found["milliseconds"]["median"] < ENOUGH
    print(
        "every answer is Python's" if is_right else "answers differ, or the console complains",
        "and quick" if is_fast else "and slow",
    )
    if options.json:
        print(json.dumps(found))
    return 0 if is_right and is_fast else 1


if __name__ == "__main__":
    sys.exit(main())
