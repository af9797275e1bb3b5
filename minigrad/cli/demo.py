"""`minigrad demo`: trains a model that declares a demo, evaluates it, and writes its report."""

from __future__ import annotations

import os
import sys
import webbrowser
from argparse import Namespace
from pathlib import Path
from typing import Any

from ..errors import MinigradError
from .console import as_command, printable, styled
from .models import configured, looked_up, setting_hint
from .parser import (
    Command,
    Parser,
    Usage,
    check_environment,
    count,
    flag_threads,
    use_threads,
    utf8_text,
    whole_number,
)
from .training import free_directory, reported

__all__ = ["DEMO"]


def _arguments(parser: Parser) -> None:
    parser.hint = _hint
    parser.add_argument(
        "words", nargs="*", type=utf8_text, metavar="NAME|key=value",
        help="a model that has a demo (default: the first), and settings of it",
    )  # fmt: skip
    parser.add_argument("--seed", type=whole_number, default=0, metavar="N", help="random seed (default: 0)")
    parser.add_argument("--max-steps", type=count, metavar="N", help="stop after N steps (default: the model's)")
    parser.add_argument("--out", metavar="DIR", help="the run's directory (default: runs/demo)")
    parser.add_argument("--no-open", action="store_true", help="do not open the model's page in a browser")
    flag_threads(parser)


def _demo(options: Namespace) -> int:
    """Train the model, evaluate it, write the report; the exit code says whether it learned enough for its steps."""
    from .. import zoo
    from ..train.run_data import write_scores
    from ..zoo.training import check_out

    spec, _ = looked_up(_name([word for word in options.words if "=" not in word]))
    demo = spec.demo
    if demo is None:
        raise Usage(f"{spec.name} has no demo: {', '.join(_models_with_demo())} has one")
    _, settings = configured(spec, None, [word for word in options.words if "=" in word])
    for name in settings:
        if name in demo.fixed:
            raise Usage(f"{name} is fixed in the demo: to change it, use minigrad train {spec.name} {name}=…")
    use_threads(options.threads)
    check_environment()
    out = free_directory(options.out, "demo")
    check_out(out, "demo")
    print(printable(f"{demo.title}, into {out} (seed {options.seed})"), flush=True)
    options.trained = out
    result = zoo.train(spec.name, out, seed=options.seed, max_steps=options.max_steps, **settings)
    if result.reason == "interrupted":
        return 130
    print(printable(f"\nevaluating: {demo.evaluating}"), flush=True)
    loaded = zoo.load(out)
    found = demo.evaluate(loaded, out)
    print(printable(found.shown))
    write_scores(out, found.scores)
    report, page = reported(out), _page(loaded, out)
    labels = {
        **({"see it": str(report)} if report else {}),
        **({"try it": str(page)} if page else {}),
        **{k: as_command(*v) for k, v in found.commands.items()},
    }
    width = max(map(len, labels), default=0) + 1
    print(printable("\n" + "\n".join(f"{f'{label}:':{width}} {text}" for label, text in labels.items())))
    is_short = options.max_steps is not None and options.max_steps < loaded.config.steps and not found.is_success
    word, style = ("Success:", "good") if found.is_success else ("Failure:", "bad")
    if is_short:
        word, style = f"Stopped after {result.step:,} of {loaded.config.steps:,} steps, as asked:", "good"
    print(f"\n{styled(word, style)} {printable(found.verdict)}")
    if page is not None and not options.no_open and _has_screen():
        webbrowser.open(page.absolute().as_uri())
    return 0 if found.is_success or is_short else 1


def _page(loaded: Any, out: Path) -> Path | None:
    """The model as a page in its run's directory; None, with the reason printed, where there can be none."""
    from ..zoo.pages import export_page

    try:
        return export_page(loaded, Path(out) / f"{loaded.spec.name}.html")
    except MinigradError as error:
        print(printable(f"minigrad: there is no page: {str(error).splitlines()[0]}"), file=sys.stderr)
        return None


def _has_screen() -> bool:
    """Whether a person sits before a screen that a browser could open on."""
    is_desktop = sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    return is_desktop and sys.stdout.isatty()


def _hint(options: Namespace, flag: str, value: str | None) -> str | None:
    """As `setting_hint`; without a name the demo is that of the first model that has one."""
    return setting_hint(Namespace(words=[*options.words, *_models_with_demo()[:1]]), flag, value)


def _models_with_demo() -> list[str]:
    """The models that have a demo, those that come with minigrad first."""
    from ..zoo.registry import entries

    able = [entry for entry in entries() if entry.spec is not None and entry.spec.demo is not None]
    return [entry.name for entry in sorted(able, key=lambda entry: not entry.package.startswith("minigrad "))]


def _name(words: list[str]) -> str:
    if len(words) > 1:
        raise Usage(f"a demo shows one model, got {' and '.join(words)}")
    names = words or _models_with_demo()
    if not names:
        raise Usage("no installed model has a demo")
    return names[0]


DEMO = Command("train a model, and show what it learned", "minigrad demo --seed 1", _arguments, _demo)
