"""For every command that a document may name, the short form in which it is tried; a command that is not known here is refused."""

from __future__ import annotations

import configparser
import importlib
import importlib.util
import re
import shlex
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from minigrad import zoo
from minigrad.cli import COMMANDS

from .documents import ROOT, Piece, Unknown

PLACEHOLDERS = {"NAME": "xor", "SEED": "1", "TASK": "sort"}
RUNS = {
    "sample": "gpt",
    "attention": "gpt",
    "paint": "paint",
}  # the model of a RUN on a page that is about no model; else it is xor
BY_THEIR_OWN_TESTS = (
    ["demo"],
    ["demo", "NAME"],
    ["eval", "runs/bert"],
    ["eval", "bert-base", "--data", "my.txt"],
    ["predict", "bert-base", "Paris is the [MASK] of France."],
    ["chat", "smollm"],
    ["chat", "smollm", "--system", "Answer in one sentence."],
    ["learn", "check", "lessons/lesson_04.py"],
    ["learn", "notebooks", "FOLDER"],
    ["learn", "engine", "FILE"],
    ["serve", "smollm"],
    ["serve", "runs/xor"],
)  # test_demo.py; test_model_bert.py, since it trains a baseline; test_hub_encoder_verbs.py; test_hub.py; test_serve*.py;
# test_learn.py, since holes are not right, and test_notebooks.py
# Pretrained models that pages import, and of which model a tiny run stands in for each; test_hub*.py read real ones.
SOURCES = {
    "SmolLM2-135M-Instruct.Q4_1.gguf": "gpt",
    "path/to/all-MiniLM-L6-v2": "bert",
    "path/to/bert-base-uncased": "bert",
    "opus-mt-en-de": "translator",
    "model.enpt.intgemm.alphas.bin": "translator",
}
READ = {"gpt": "my.txt", "bert": "my.txt", "translator": "pairs.tsv"}  # by such a run
TRAINED = {"runs/denoise": "translator:denoise"}  # runs that a page uses and no command of it trains
# What is small, and still knows the words that a page asks for; of other models, what their spec calls tiny.
SMALL: dict[str, dict[str, Any]] = {
    "translator": {"pairs": 100, "depth": 1, "dim": 16, "heads": 2, "hidden": 16, "evaluated": 8},
    "seq2seq": {"pairs": 100, "dim": 16, "hidden": 16, "evaluated": 8},
    "bert": {"layers": 1, "dim": 8, "heads": 2, "hidden": 8, "vocab": 300, "examples": 60, "batch": 512},
    "word2vec": {"size": 4, "stories": 800, "batch": 16},
}


class Step(NamedTuple):
    """What is to be run: a block of Python, or the words of a command with its settings."""

    piece: Piece
    words: Sequence[str] = ()
    settings: Mapping[str, str] = {}


class Page:
    """The steps of a page so far, and the runs, plugins and commands among them; `model` is the one it is about."""

    def __init__(self, model: str | None = None):
        self.model, self.steps = model, list[Step]()
        self.runs, self.plugins, self.commands = set[str](), set[str](), set[str]()
        self.sources = set[str]()  # pretrained models that have a stand-in
        self.optional: list[str] = []  # options of the command at hand that are given in brackets

    def add(self, piece: Piece) -> None:
        """Add a block of Python, or all commands of a line."""
        if piece.kind == "python":
            self.steps.append(Step(piece))
            self.runs |= {*re.findall(r'out="(runs/\w+)"', piece.text)}
        elif piece.kind in ("command", "shell"):
            self.optional = re.findall(r"\[(--[\w-]+)", piece.text)
            for text in re.sub(r"\s\[(?!MASK)[^\]]*\]", "", piece.text).split(" && "):
                if text not in self.commands:
                    self.commands.add(text)
                    self._add_command(piece, text)

    def _add_command(self, piece: Piece, text: str) -> None:
        words = shlex.split(text, comments=True)
        settings = dict(word.split("=", 1) for word in words if re.match(r"[A-Z_]+=", word))
        program, *rest = (word.removeprefix(".venv/bin/") for word in words[len(settings) :])
        try:
            if program not in SHORT:
                raise Unknown("no short form of it is known")
            for short in SHORT[program](self, rest):
                if (short, settings) not in ((step.words, step.settings) for step in self.steps):
                    self.steps.append(Step(piece, short, settings))
        except Unknown as problem:
            raise Unknown(f"line {piece.line}: {text}: {problem}") from None


Short = Iterator[list[str]]  # the words of commands


def minigrad(page: Page, words: list[str]) -> Short:
    """Training takes two steps of a small model; all other verbs do what they do, with runs that were trained so."""
    verb, *rest = words
    if {"SOURCE", "DIR", "init=DIR"} & {
        *rest
    }:  # they stand for any pretrained model; docs/pretrained.md has such commands in full
        if verb not in COMMANDS:
            raise Unknown(f"there is no verb {verb!r}")
        return
    if verb == "help":
        yield ["minigrad", *words]
        return
    if verb not in COMMANDS:
        raise Unknown(f"there is no verb {verb!r}")
    if page.optional:
        raise Unknown(f"{page.optional[0]} in brackets is not tried")
    run = f"runs/{page.model or RUNS.get(verb, 'xor')}"
    rest = [run if word == "RUN" else PLACEHOLDERS.get(word, word) for word in rest]
    if (
        words in BY_THEIR_OWN_TESTS
        or [verb, *rest] in BY_THEIR_OWN_TESTS
        or not rest
        and verb not in ("doctor", "list")
    ):
        return  # without more, it is a name
    if verb == "import":
        yield from imported(page, rest)
    elif verb == "train" and "--help" not in rest:
        yield training(page, rest)
    else:
        needed = [word.partition("=")[2] or word for word in rest if re.match(r"(\w+=)?runs/", word)]
        for one in [*needed, *["runs/translator"] * (verb == "translate" and "--run" not in rest)]:
            if one not in page.runs:
                yield training(page, [TRAINED.get(one, one.removeprefix("runs/")), "--out", one])
        if verb == "new":
            page.plugins.add(rest[0])
        if verb == "average":
            rest[rest.index("--last") + 1] = "1"  # two steps leave one checkpoint
        yield ["minigrad", verb, *rest]


def imported(page: Page, words: list[str]) -> Short:
    """What is imported is a tiny model of ours, which is exported into a folder that stands in for the pretrained one."""
    source, out = words[0], words[-1]
    stand_in = f"{source}.folder"
    if source in SOURCES and source not in page.sources:
        model = SOURCES[source]
        if (run := f"runs/stands-in-for-{model}") not in page.runs:
            yield training(page, [model, "--data", READ[model], "--out", run])
        yield ["minigrad", "export", run, "-o", stand_in, "--no-scores"]
        page.sources.add(source)
    page.runs.add(out)
    yield ["minigrad", "import", stand_in if source in SOURCES else source, *words[1:]]


def training(page: Page, words: list[str]) -> list[str]:
    """The short form of `minigrad train`: small sizes, unless the command or its preset sets them, and two steps."""
    words = [word for word in words if not word.startswith("pairs=")]
    name = next(word for word in words if "=" not in word and not word.startswith("-"))
    model, _, preset = name.partition(":")
    if "--out" in words and (place := words.index("--out") + 1) and words[place] in page.runs:
        words[place] += "-again"  # the page shows two ways to the same run
    page.runs.add(words[place] if "--out" in words else f"runs/{name.replace(':', '-')}")
    tiny: dict[str, Any] = {}
    if model not in page.plugins:
        spec = zoo.find(model)
        own = spec.presets.get(preset, {})
        small = SMALL.get(model) or {key: value for key, value in spec.tiny.items() if key not in own}
        tiny = {key: value for key, value in small.items() if not any(word.startswith(f"{key}=") for word in words)}
    return ["minigrad", "train", *words, *as_words(tiny), "--max-steps", "2", "--no-report"]


def as_words(settings: Mapping[str, Any]) -> list[str]:
    return [f"{name}={','.join(map(str, v)) if isinstance(v, tuple) else v}" for name, v in settings.items()]


def pip(page: Page, words: list[str]) -> Short:
    """Extras and versions are those of setup.cfg and CI; a plugin that was begun on the page is installed."""
    known = configparser.ConfigParser()
    known.read(ROOT / "setup.cfg")
    if words[0] != "install":
        raise Unknown("only pip install is known")
    for what in (word for word in words[1:] if not word.startswith("-")):
        own = re.fullmatch(r"(?:\.|minigrad)(?:\[(.*)\])?", what)
        if what in page.plugins:
            yield ["pip", "install", what]
        elif own and not {*filter(None, (own[1] or "").split(","))} <= known["options.extras_require"].keys():
            raise Unknown("there is no such extra")
        elif "==" in what and what not in (ROOT / ".ci" / "run").read_text(encoding="utf-8"):
            raise Unknown("CI installs another version")
        elif not own and "==" not in what and what not in {"jupytext", "notebook", "PACKAGE"}:
            installed = (ROOT / ".ci" / "run").read_text(encoding="utf-8").split()
            if what not in installed:
                raise Unknown(f"{what} is not known, and CI does not install it")


def python(page: Page, words: list[str]) -> Short:
    """Modules by their names. Scripts of tutorials and tests are run by tests of their own."""
    if words[0] != "-m":
        if not re.match(r"(tests/support|tutorials)/\w+\.py$", words[0]) or not (ROOT / words[0]).is_file():
            raise Unknown(f"the tests run no script {words[0]}")
        return
    module, *rest = words[1:]
    if module.rpartition(".")[2].isupper():
        return  # it stands for any
    if module.startswith(("benchmarks.", "docs.")):
        check_module(page, module, [PLACEHOLDERS.get(word, word) for word in rest])
    elif module == "pytest":
        yield from pytest_(page, rest)
    elif module == "minigrad":
        yield ["minigrad", *rest]
    elif module not in (
        "minigrad.learn.worker",
        "minigrad.ops.stubs",
        "tests.support.cupy_names",
        "tests.support.wrong_answers",
        "venv",
    ):  # run by other tests, and by CI
        raise Unknown(f"no short form of {module} is known")


def check_module(page: Page, module: str, words: list[str]) -> None:
    """It takes these options, and a test runs it in its own short form."""
    file = ROOT / module.replace(".", "/")
    if not file.with_suffix(".py").is_file() and not (file / "__main__.py").is_file():
        raise Unknown(f"there is no {module}")
    if module == "benchmarks.twins.shakespeare_torch":  # `trained` runs it, and gives it three words
        return
    parser = parser_of(module)
    try:
        parser.parse_args(words)
    except SystemExit:
        raise Unknown("it is called otherwise") from None
    if unknown := [option for option in page.optional if option not in parser.format_help()]:
        raise Unknown(f"it has no {unknown[0]}")
    if not any(f'"{module}", ' in path.read_text(encoding="utf-8") for path in (ROOT / "tests").glob("test_*.py")):
        raise Unknown("no test runs it")


class Parsed(Exception):
    """Raised with the parser, in the place of parsing."""


def parser_of(module: str) -> ArgumentParser:
    """The parser of a module; parsing is the first thing that its main() does."""

    def stop(parser: ArgumentParser, arguments: Any = None) -> None:
        raise Parsed(parser)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Parsed) as parsed:
        patch.setattr(ArgumentParser, "parse_args", stop)
        is_package = (ROOT / module.replace(".", "/")).is_dir()
        importlib.import_module(f"{module}.__main__" if is_package else module).main()
    return parsed.value.args[0]


def pytest_(page: Page, words: list[str]) -> Short:
    """What is named exists: CI runs it all. The tests that come with a new plugin are run."""
    for word in words:
        if word.startswith(("tests", "minigrad")) and not (ROOT / word).exists():
            raise Unknown(f"there is no {word}")
    for plugin in page.plugins if not words else ():
        yield ["pytest", plugin]


def checker(name: str) -> Callable[[Page, list[str]], Short]:
    """CI runs it."""

    def short(page: Page, words: list[str]) -> Short:
        if f"{name} {' '.join(words)}".strip().replace("format .", "format --check .") not in (
            ROOT / ".ci" / "run"
        ).read_text(encoding="utf-8"):
            raise Unknown("CI does not run it")
        yield from ()

    return short


def jupytext(page: Page, words: list[str]) -> Short:
    """The notebook is written here, not beside the tutorial."""
    *options, script = words
    yield ["python", "-m", "jupytext", *options, "-o", f"{Path(script).stem}.ipynb", str(ROOT / script)]


def mpiexec(page: Page, words: list[str]) -> Short:
    """Two ranks train for two steps, in the place of as many as are asked for and of a script of one's own; a model is divided as it says."""
    if words[:1] == ["-n"] and words[2:4] == ["minigrad", "train"]:
        short = training(page, words[4:])
    elif words[:1] == ["-n"] and words[2:4] == ["minigrad", "resume"]:
        short = [*words[2:], "--max-steps", "3", "--no-report"]
    else:
        short = []
    if short and importlib.util.find_spec("mpi4py") is not None:
        yield ["mpiexec", *words[:2], "python", "-m", *short]
    if short:
        return
    if words[:1] != ["-n"] or words[2:] != ["python", "train.py"]:
        raise Unknown("only mpiexec -n N python train.py is known")
    if importlib.util.find_spec("mpi4py") is not None:
        yield ["mpiexec", "-n", "2", "python", "train.py"]


SHORT: dict[str, Callable[[Page, list[str]], Short]] = {
    "minigrad": minigrad,
    "pip": pip,
    "python": python,
    "python3": python,
    "jupytext": jupytext,
    "mpiexec": mpiexec,
    "ruff": checker("ruff"),
    "mypy": checker("mypy"),
}
