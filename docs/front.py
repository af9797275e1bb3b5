"""The pictures of the README:

python -m docs.front               # writes docs/pictures/graph.svg
python -m docs.front runs/demo     # and attention.svg and report.png, of what `minigrad demo` trained there
"""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path

import minigrad as mg

__all__ = ["attention", "graph", "main", "moving", "report"]

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


def moving(picture: str) -> str:
    """The SVG of a graph, with a style that shows its boxes one after the other, and then the gradients the other way.

    Whoever wants no motion, or whose program knows none, sees the whole.
    """
    boxes = re.findall(r'<g class="box (\w+)" data-key="(\w+)">', picture)
    computed = [key for kind, key in boxes if kind != "input"]
    last = 2 * len(computed) + 1  # steps; a gradient arrives in the step after the one of the box that sends it
    start = {key: 1 + computed.index(key) if key in computed else 0 for _, key in boxes}
    sends = {key: last - start[key] for key in computed}
    rules = []
    for key in computed:
        rules.append(_appears([f"[data-key={key}]", f"[data-to={key}] .forward"], start[key], last))
        rules.append(_appears([f"[data-to={key}] .backward", f"[data-key={key}] .f-gradient"], sends[key], last))
    for source, target in re.findall(r'data-from="(\w+)" data-to="(\w+)"', picture):
        if source not in computed:
            rules.append(_appears([f"[data-key={source}] .f-gradient"], sends[target] + 1, last))
    return picture.replace("</style>", f"@media (prefers-reduced-motion:no-preference){{{''.join(rules)}}}</style>", 1)


def _appears(selectors: list[str], step: int, last: int) -> str:
    """CSS that hides something until a step, in a loop that rests at its end."""
    name, before, after = f"from{step}", 80 * step / (last + 1), 80 * step / (last + 1) + 3
    frames = f"@keyframes {name}{{0%,{before:.1f}%{{opacity:0}}{after:.1f}%,97%{{opacity:1}}100%{{opacity:0}}}}"
    return f"{frames}{','.join(selectors)}{{animation:{name} {last + 3}s infinite}}"


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
    (options.out / "graph.svg").write_text(moving(graph().scene.svg()), encoding="utf-8")
    if options.run:
        attention(options.run).write(options.out / "attention.svg")
        report(options.run, options.out / "report.png")


if __name__ == "__main__":
    main()
