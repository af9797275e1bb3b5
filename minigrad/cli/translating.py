"""`minigrad translate`: a trained translator, sentence by sentence."""

from __future__ import annotations

import argparse
import math
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .parsing import Command, Parser, Usage, counting, flag_json, flag_threads, readable, use_threads
from .telling import as_json, plain

if TYPE_CHECKING:
    from ..zoo import Loaded

__all__ = ["TRANSLATE"]

TASK = "translation"
PAGES = (".html", ".json")  # of all heads; a picture shows which words belong together
PICTURES = (".svg", ".png", ".pdf")
SHOWN = 60  # characters of a text that is named in a message


def _penalty(text: str) -> float:
    """A length penalty that a search can be made with."""
    from ..decode.beam import GREATEST_ALPHA

    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= GREATEST_ALPHA:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to {GREATEST_ALPHA:g}, got {text!r}")
    return number


def _arguments(parser: Parser) -> None:
    parser.add_argument("texts", nargs="*", type=readable, metavar="TEXT", help="what to translate")
    parser.add_argument(
        "--run", dest="run_directory", metavar="DIR", help="the run of a translator (default: the newest one in runs)"
    )
    parser.add_argument("--interactive", action="store_true", help="translate line by line, until an empty line")
    parser.add_argument("--beam", type=counting, metavar="N", help="how many beams to search with; 1 is greedy")
    parser.add_argument(
        "--length-penalty", type=_penalty, metavar="A", help="the more, the longer (default: the run's)"
    )
    parser.add_argument("--nbest", type=counting, metavar="N", help="print the N best translations, with their scores")
    parser.add_argument(
        "--attention", metavar="FILE", help="draw which words it looked at (.html, .svg, .png, .pdf or .json)"
    )
    parser.add_argument("--tree", metavar="FILE", help="draw the tree of the search (.svg, .png or .pdf)")
    flag_threads(parser)
    flag_json(parser)


def _translate(options: Namespace) -> int:
    _check(options)
    use_threads(options.threads)
    loaded = _opened(options.run_directory)
    search = {"beams": _beams(options, loaded), "alpha": options.length_penalty}
    if options.interactive:
        return _talk(loaded, search, options)
    found = loaded.translate(options.texts, **search)
    _show(found, options)
    for path, draw in ((options.attention, _draw_attention), (options.tree, _draw_tree)):
        if path is not None:
            wrote = plain(f"wrote {draw(loaded, found[0], search, Path(path))}")
            print(wrote, file=sys.stderr if options.json else sys.stdout)
    return 0


def _check(options: Namespace) -> None:
    """Refuse what cannot be done, before a model is loaded."""
    if not options.texts and not options.interactive:
        raise Usage('what is to be translated? for instance: minigrad translate "You are welcome"; or --interactive')
    if options.texts and options.interactive:
        raise Usage("--interactive asks for texts: leave out those on the command line")
    for text in options.texts:
        if not text.strip():
            raise Usage("there is nothing to translate: the text is empty")
    for name, forms in (("attention", PAGES + PICTURES), ("tree", PICTURES)):
        path = getattr(options, name)
        if path is None:
            continue
        if Path(path).suffix.lower() not in forms:
            raise Usage(f"--{name} {path!r}: end its name in {', '.join(forms)}")
        if len(options.texts) != 1:
            raise Usage(f"--{name} draws one text: give one")


def _beams(options: Namespace, loaded: Loaded) -> int | None:
    """As many beams as were asked for, at least as many as translations are to be shown."""
    if options.nbest is None:
        return options.beam
    if options.beam is not None and options.beam < options.nbest:
        raise Usage(f"--nbest {options.nbest} needs as many beams: use --beam {options.nbest} or more")
    own = getattr(loaded.config, "beams", 1)
    return options.beam or max(options.nbest, own)


def _opened(run: str | None) -> Loaded:
    from ..train import RunError
    from ..zoo import load, newest_run

    if run is None:
        try:
            run = str(newest_run(TASK))
        except RunError:
            raise RunError(
                "there is no trained translator in 'runs'",
                fix="train one: minigrad train translator; or say where it is: --run DIR",
            ) from None
    loaded = load(run)
    if loaded.spec.task != TASK or "translate" not in loaded.spec.verbs:
        raise Usage(f"{run!r} holds {loaded.spec.name}, which does not translate: give the run of a translator")
    return loaded


def _show(found: Iterable[Any], options: Namespace) -> None:
    found = list(found)
    if options.json:
        print(as_json([_as_data(one, options.nbest or 1) for one in found]))
    else:
        for one in found:
            for line in _lines(one, options.nbest):
                print(plain(line))
    for one in found:
        for remark in _remarks(one, is_drawn=bool(options.attention or options.tree)):
            print(plain(f"minigrad: {remark}"), file=sys.stderr)


def _as_data(one: Any, count: int) -> dict[str, Any]:
    best = [{"text": text, "score": score} for score, text in one.best[:count]]
    return {"source": one.source, "translation": one.text, "score": one.score, "best": best, "unknown": one.unknown}


def _lines(one: Any, count: int | None) -> list[str]:
    if count is None:
        return [one.text]
    return [f"{score:8.3f}  {text}" for score, text in one.best[:count]]


def _remarks(one: Any, is_drawn: bool) -> Iterator[str]:
    """What the reader of a translation should know."""
    shown = one.source if len(one.source) <= SHOWN else f"{one.source[:SHOWN]}…"
    if one.unknown:
        more = f" and {len(one.unknown) - 5} more" if len(one.unknown) > 5 else ""
        yield f"unknown to this translator: {', '.join(word[:SHOWN] for word in one.unknown[:5])}{more}"
    if len(one.pieces) > 1:
        yield f"{shown!r} was translated in {len(one.pieces)} pieces" + (
            ", the first of which is drawn" if is_drawn else ""
        )


def _talk(loaded: Loaded, search: dict[str, Any], options: Namespace) -> int:
    """Translate what is typed, line by line, until an empty line or the end of the input."""
    from ..engine.errors import ArgumentError

    is_person = sys.stdin.isatty()
    if is_person:
        print("type a sentence to have it translated; an empty line ends")
    while True:
        try:
            line = input("> " if is_person else "")
        except EOFError:
            return 0
        if not line.strip():
            if is_person:
                return 0
            print()  # a pipe keeps its lines aligned
            continue
        try:
            found = loaded.translate([line], **search)
        except ArgumentError as error:  # as of a line without any word: the next one may have some
            print(plain(f"minigrad: {str(error).splitlines()[0]}"), file=sys.stderr)
            found = []
            print()  # as for an empty line
        _show(found, options)
        sys.stdout.flush()


def _draw_attention(loaded: Loaded, found: Any, search: dict[str, Any], path: Path) -> Path:
    seen = loaded.attention(found.source, **search)
    if path.suffix.lower() in PAGES:
        return Path(seen.write(path))
    seen.alignment().write(path)
    return path


def _draw_tree(loaded: Loaded, found: Any, search: dict[str, Any], path: Path) -> Path:
    from ..viz.beam import beam_tree

    beam_tree(loaded.tree(found), title=f"{found.source} -> {found.text}").write(path)
    return path


TRANSLATE = Command(
    "translate with a trained translator",
    'minigrad translate "You are welcome" --nbest 5',
    _arguments,
    _translate,
)
