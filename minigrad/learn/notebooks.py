"""Writes the tutorials as notebooks, with everything that they print and draw.

A tutorial is a script in the percent format, which jupytext reads. Beside the notebooks comes what they import and load, so
that the folder can be given away: with `wheel`, the first cell of each installs minigrad, and nothing else has to be there.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, MissingExtraError, install_hint
from ..saving import write_atomically

__all__ = ["notebook_of", "scripts", "write_notebooks"]

FAKE_DEVICE = ("__init__.py", "fake_device.py", "fake_array.py", "cupy_names.py", "cupy_names.json")
# What the tutorials import and load, seen from their folder, and where it lies beside the notebooks.
BESIDE = {"showing.py": "showing.py", "runs": "runs"} | {
    f"../tests/support/{name}": f"tests/support/{name}" for name in FAKE_DEVICE
}
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)")  # the path of a link of Markdown to a file
SECONDS = 600  # that a cell may take


def scripts(tutorials: Path) -> list[Path]:
    """The tutorials of a folder in their order, the errata last."""
    found = sorted(tutorials.glob("[0-9][0-9]_*.py"))
    return [*found, *tutorials.glob("errata.py")]


def write_notebooks(
    tutorials: Path,
    out: Path,
    wheel: str | None = None,
    only: Collection[str] = (),
    execute: bool = True,
    lead: Callable[[str], str] | None = None,
) -> Iterator[Path]:
    """Write a notebook for each tutorial, or for those whose name begins with one of `only`, and yield its path.

    They are executed one after the other, by the Python that runs this, in the folder `out`. `wheel` is a file or an address,
    which the first cell of each notebook gives to pip. `lead` makes the links of a text of Markdown lead where they should;
    without it they lead to the files of the checkout.
    """
    found = [script for script in scripts(tutorials) if not only or script.name.startswith(tuple(only))]
    if not found:
        raise ArgumentError("notebooks: there is no such tutorial", [p.stem for p in scripts(tutorials)], [*only])
    if wheel is not None and "://" not in wheel:
        if not Path(wheel).is_file():
            raise ArgumentError("notebooks: there is no such wheel", "a file that ends in .whl, or an address", wheel)
        wheel = str(Path(wheel).resolve())
    nbformat = _imported("nbformat")
    out.mkdir(parents=True, exist_ok=True)
    if out.resolve() != tutorials.resolve():
        for name, place in BESIDE.items():
            here, there = tutorials / name, out / place
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(here, there, dirs_exist_ok=True) if here.is_dir() else shutil.copy(here, there)
    for script in found:
        notebook = notebook_of(script, lead or partial(_to_the_checkout, tutorials, out))
        if execute:
            _execute(notebook, out)
        if wheel is not None:
            cell = nbformat.v4.new_code_cell(f"%pip install --quiet {wheel!r}", id="install")
            notebook.cells.insert(0, cell)
        path = out / f"{script.stem}.ipynb"
        write_atomically(path, nbformat.writes(notebook).encode(), durable=False)
        yield path


def notebook_of(script: Path, lead: Callable[[str], str]) -> Any:
    """The cells of a tutorial, its texts as `lead` makes them."""
    notebook = _imported("jupytext").read(script)
    notebook.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"  # the same each time
        if cell.cell_type == "markdown":
            cell.source = lead(cell.source)
    return notebook


def _to_the_checkout(tutorials: Path, out: Path, text: str) -> str:
    """A text whose links lead from `out` to the notebooks beside it, and to other files where they are."""
    names = {path.name for path in scripts(tutorials)}

    def lead(link: re.Match[str]) -> str:
        if link[1] in names:
            return f"{Path(link[1]).stem}.ipynb"
        return Path(os.path.relpath(tutorials / link[1], out)).as_posix()

    return LINK.sub(lead, text)


def _execute(notebook: Any, folder: Path) -> None:
    """Run all cells, and keep what they print and draw."""
    client = _imported("nbclient").NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
        coalesce_streams=True,
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
    )
    client.execute()


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtraError(
            f"notebooks: {name} is not installed", fix=f"install the extra for documents: {install_hint('docs')}"
        ) from None
