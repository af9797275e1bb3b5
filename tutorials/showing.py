"""What the tutorials show with: pictures, and numbers of the source document beside ours."""

from __future__ import annotations

import sys
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from minigrad.errors import MissingExtraError

HERE = Path(__file__).resolve().parent
# A folder of notebooks has beside them all that they need, the tests' fake device included.
CHECKOUT = HERE if (HERE / "tests").is_dir() else HERE.parent
FOLDER = CHECKOUT / "build" / "tutorials"
COMPARED: dict[str, tuple[Any, Any]] = {}  # by name, what was computed and what the document says; the tests look here


def show(picture: Any, name: str) -> None:
    """A picture as a file, whose name is printed, and in a notebook right here, too. A name may end in .html, .png …"""
    path = FOLDER / (name if "." in name else f"{name}.svg")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        picture.write(path)
    except MissingExtraError as missing:  # Graphviz lays graphs out, matplotlib paints .png
        print(f"no picture: {missing}")
        if hasattr(picture, "text"):
            print(picture.text())
        return
    print(f"picture: {path.relative_to(FOLDER.parent.parent)}")
    if "ipykernel" in sys.modules:
        from IPython.display import display  # type: ignore[import-not-found]

        display(Page(path.read_text(encoding="utf-8")) if path.suffix == ".html" else picture)


class Page:
    """A page inside of a notebook: it runs its own script, and reaches nothing of the notebook."""

    def __init__(self, text: str):
        self.text = text

    def _repr_html_(self) -> str:
        style = "width: 100%; height: 620px; border: 1px solid #8885; border-radius: 6px"
        return f'<iframe sandbox="allow-scripts" loading="lazy" style="{style}" srcdoc="{escape(self.text)}"></iframe>'


def run_folder(name: str) -> Path:
    """The folder of a small trained model that comes with the tutorials; runs/README.md has the commands that made them."""
    return Path(__file__).resolve().parent / "runs" / name


def package_file(package: str, file: str) -> Path | None:
    """A file or folder of an installed package with a pretrained model, by a pattern; None, and how to install it, without.

    The package itself is not imported: some need others that nobody needs who only reads its weights.
    """
    spec = find_spec(package)
    folders = list(spec.submodule_search_locations or []) if spec else []
    found = next((path for folder in folders for path in sorted(Path(folder).glob(file))), None)
    if found is None:
        print(f"{package} is not installed, so what needs it is left out; to have it:")
        print(f"  pip install --no-deps {package.replace('_', '-')}")
    return found


def compare(name: str, ours: Any, document: Any, why: str = "") -> None:
    """Print what the source document says and what minigrad computes, side by side; `why` they differ, where they do."""
    values = np.asarray(getattr(ours, "data", ours), dtype=float)
    COMPARED[name] = values, document
    print(f"{name}\n  the document: {_written(document)}\n  minigrad:     {_written(values)}")
    if why:
        print(f"  they differ:  {why}")


def _written(value: Any) -> str:
    if isinstance(value, str):
        return value
    with np.printoptions(suppress=True, precision=8):
        return str(np.asarray(value, dtype=float)).replace("\n", "\n" + " " * 16)
