"""The pictures of the README:

python -m docs.front               # writes docs/pictures/graph.svg
python -m docs.front runs/demo     # and attention.svg and report.png, of what `minigrad demo` trained there
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import minigrad as mg

__all__ = ["attention", "graph", "main", "report"]

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
SENTENCE = "Does the boy write a boring book every day?"
SIZE = {"width": 1180, "height": 660}


def graph() -> mg.viz.Graph:
    """An error with all its numbers: values go down, gradients come back."""
    x, y = mg.tensor([1.0, 2.0, 3.0]), mg.tensor(2.0)
    w = mg.tensor([0.5, -1.0, 2.0], requires_grad=True)
    b = mg.tensor(0.1, requires_grad=True)
    return mg.viz.graph(lambda x: ((x * w).sum() + b - y) ** 2, x, direction="both")


def attention(run: Path) -> mg.viz.Scene:
    """Which words of a sentence a translator looks at while it writes."""
    return mg.zoo.load(run).attention(SENTENCE).alignment()


def report(run: Path, path: Path) -> None:
    """The upper part of a run's report, as Chromium shows it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE)
        page.goto((run / "report.html").resolve().as_uri())
        page.screenshot(path=path)
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", type=Path, help="what `minigrad demo` wrote")
    parser.add_argument("-o", "--out", type=Path, default=PICTURES, help="the folder (default: %(default)s)")
    options = parser.parse_args()
    graph().write(options.out / "graph.svg")
    if options.run:
        attention(options.run).write(options.out / "attention.svg")
        report(options.run, options.out / "report.png")


if __name__ == "__main__":
    main()
