"""Models of the zoo as pages that run them, for the pages that tell of them: small ones are trained here, in seconds."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import minigrad as mg
from minigrad.errors import MinigradError
from minigrad.zoo.pages import export_page

__all__ = ["sections"]

TRAINED = Path(__file__).resolve().parents[2] / "tutorials" / "runs"  # models that take minutes, with their weights
QUICK = ("xor", "regression", "word2vec", "facts", "superposition", "bitmlp", "digits")  # trained in seconds


def sections(staged: Path, models: Collection[str], say: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    """(name, Markdown) of each model: its page in a frame, and its curves if it was trained here.

    Pages go to extra/live of the folder of sources, curves to the folder of the model.
    """
    with tempfile.TemporaryDirectory() as runs:
        for entry in (entry for entry in mg.zoo.list() if entry.name in models):
            run, curves = TRAINED / entry.name, ""
            if entry.name in QUICK:
                run = Path(runs, entry.name)
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                    mg.zoo.train(entry.name, out=str(run))
                picture = staged / "models" / entry.name / "curves.svg"
                picture.parent.mkdir(parents=True, exist_ok=True)
                mg.viz.curves(str(run)).write(picture)
                curves = f"![The curves of {entry.name} while it was trained for this page](curves.svg)\n"
            if run.is_dir():
                yield entry.name, f"{_live(entry.name, run, staged, say)}\n{curves}"


def _live(name: str, run: Path, staged: Path, say: Callable[[str], None]) -> str:
    """A frame with the page of a trained model."""
    try:
        export_page(mg.zoo.load(run), staged / "extra" / "live" / f"{name}.html")
    except MinigradError as problem:
        say(f"{name} has no page: {problem}")
        return ""
    say(f"wrote the page of {name}")
    page = f"../../live/{name}.html"
    return (
        f'<p>Try it here, or <a href="{page}">on a page of its own</a>: it runs in your browser.</p>\n'
        f'<iframe class="live" loading="lazy" title="{name}, live" src="{page}"></iframe>\n'
    )
