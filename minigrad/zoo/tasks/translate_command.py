"""The command `minigrad translate`: texts from the command line, a file, or standard input, line by line."""

from __future__ import annotations

import argparse
import json
import math
import os
import stat
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError, printable
from .task import TaskCommand, count, utf8_text

if TYPE_CHECKING:
    from ...decode import Translation

__all__ = ["TRANSLATE"]

PAGES = (".html", ".json")  # of all heads; a picture shows which words belong together
PICTURES = (".svg", ".png", ".pdf")
SHOWN = 60  # characters of a text that is named in a message
BATCH = 32  # lines of a file that are translated together


def _penalty(text: str) -> float:
    """A length penalty that a search can be made with."""
    from ...decode.beam import GREATEST_ALPHA

    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= GREATEST_ALPHA:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to {GREATEST_ALPHA:g}, got {text!r}")
    return number


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("texts", nargs="*", type=utf8_text, metavar="TEXT", help="what to translate")
    parser.add_argument(
        "--run", dest="run_directory", metavar="DIR", help="the run of a translator (default: the newest in runs)"
    )
    parser.add_argument("--interactive", action="store_true", help="translate line by line, until an empty line")
    parser.add_argument(
        "--file", metavar="FILE", help="translate the lines of a text file; without TEXT those of standard input are"
    )
    parser.add_argument("--beam", type=count, metavar="N", help="beams of the search; 1 is greedy (default: the run's)")
    parser.add_argument(
        "--length-penalty",
        type=_penalty,
        metavar="A",
        help="a larger one makes translations longer (default: the run's)",
    )
    parser.add_argument("--nbest", type=count, metavar="N", help="print the N best translations, with their scores")
    parser.add_argument(
        "--attention", metavar="FILE", help="show the attention to the source (.html, .svg, .png, .pdf or .json)"
    )
    parser.add_argument("--tree", metavar="FILE", help="draw the tree of the search (.svg, .png or .pdf)")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs to read")


def _run(loaded: Any, options: Namespace) -> None:
    search = {"beams": _beams(options, loaded), "alpha": options.length_penalty}
    if options.interactive or options.file or not options.texts:
        _translate_lines(loaded, search, options)
        return
    found = loaded.translate(options.texts, **search)
    _show(found, options)
    for path, draw in ((options.attention, _draw_attention), (options.tree, _draw_tree)):
        if path is not None:
            wrote = printable(f"wrote {draw(loaded, found[0], search, Path(path))}")
            print(wrote, file=sys.stderr if options.json else sys.stdout)


def _check(options: Namespace) -> None:
    """Refuse what cannot be done, before a model is loaded."""
    sources = {"texts": options.texts, "--interactive": options.interactive, "--file": options.file}
    given = [name for name, value in sources.items() if value]
    if len(given) > 1:
        raise ArgumentError(f"there is more than one source: {' and '.join(given)}", fix="give one of them")
    if not given and sys.stdin.isatty():
        raise _nothing()
    if options.file and not os.path.isfile(options.file):
        raise ArgumentError(f"--file {options.file!r}: there is no such file", fix="check the path")
    first = "".join(options.texts[:1])
    if options.run_directory is None and os.path.basename(first) != first and os.path.isdir(first):
        raise ArgumentError(f"{first!r} is a folder, not a text", fix=f"to ask that run, write --run {first}")
    for text in options.texts:
        if not text.strip():
            raise ArgumentError("there is nothing to translate", fix="give a text that is not empty")
    if options.nbest is not None and options.beam is not None and options.beam < options.nbest:
        raise ArgumentError(f"--nbest {options.nbest} needs as many beams", fix=f"use --beam {options.nbest} or more")
    for name, forms in (("attention", PAGES + PICTURES), ("tree", PICTURES)):
        path = getattr(options, name)
        if path is None:
            continue
        if Path(path).suffix.lower() not in forms:
            raise ArgumentError(f"--{name} {path!r}", fix=f"end its name in {', '.join(forms)}")
        if len(options.texts) != 1:
            raise ArgumentError(f"--{name} draws one text", fix="give one")


def _nothing() -> ArgumentError:
    fix = 'for instance: minigrad translate "You are welcome"; or --interactive, or --file FILE'
    return ArgumentError("what is to be translated?", fix=fix)


def _beams(options: Namespace, loaded: Any) -> int | None:
    """As many beams as were asked for, at least as many as translations are to be shown."""
    if options.nbest is None:
        return options.beam
    return options.beam or max(options.nbest, getattr(loaded.config, "beams", 1))


def _show(found: list[Translation], options: Namespace) -> None:
    if options.json:
        print(json.dumps([_as_data(one, options.nbest or 1) for one in found], indent=2))
    else:
        blocks = ["\n".join(_lines(one, options.nbest)) for one in found]
        print(printable(("\n\n" if options.nbest else "\n").join(blocks)))
    _say_remarks(found, is_drawn=bool(options.attention or options.tree))


def _say_remarks(found: Iterable[Translation], is_drawn: bool = False) -> None:
    for one in found:
        for remark in _remarks(one, is_drawn):
            print(printable(f"minigrad: {remark}"), file=sys.stderr)


def _as_data(one: Translation, count: int) -> dict[str, Any]:
    best = [{"text": text, "score": score} for score, text in one.best[:count]]
    return {
        "source": one.source, "translation": one.text, "score": one.score, "confidence": round(one.confidence, 4),
        "doubtful": one.is_doubtful,
        "best": best, "unknown": one.unknown,
    }  # fmt: skip


def _lines(one: Translation, count: int | None) -> list[str]:
    if count is None:
        return [one.text]
    return [f"{score:8.3f}  {text}" for score, text in one.best[:count]]


def _remarks(one: Translation, is_drawn: bool) -> Iterator[str]:
    """What the reader of a translation should know."""
    shown = one.source if len(one.source) <= SHOWN else f"{one.source[:SHOWN]}…"
    if one.unknown:
        more = f" and {len(one.unknown) - 5} more" if len(one.unknown) > 5 else ""
        yield f"unknown to this translator: {', '.join(word[:SHOWN] for word in one.unknown[:5])}{more}"
    if one.is_doubtful:
        sure = (
            f"{100 * one.confidence:.0f} % sure of a token on average, {100 * one.weakest:.0f} % of the least sure one"
        )
        yield f"doubtful: {shown!r} is unlike what it learned ({sure})"
    if len(one.pieces) > 1:
        yield f"{shown!r} was translated in {len(one.pieces)} pieces" + (
            ", the first of which is drawn" if is_drawn else ""
        )


def _translate_lines(loaded: Any, search: dict[str, Any], options: Namespace) -> None:
    """Translate line by line; an empty line stays empty, so that both sides keep aligned."""
    from tqdm import tqdm

    (lines, batch), count = _source(options), 0
    with tqdm(unit=" lines", disable=True if batch == 1 else None, leave=False) as bar:  # None: not in a log
        while chunk := [line.rstrip("\n") for line in islice(lines, batch)]:
            found = _translated(loaded, [line for line in chunk if line.strip()], search)
            for line in chunk:
                _show_line(next(found) if line.strip() else None, options)
            sys.stdout.flush()
            bar.update(len(chunk))
            count += len(chunk)
    if not count and not (options.file or options.interactive or sys.stdin.isatty()):
        raise _nothing()


def _source(options: Namespace) -> tuple[Iterator[str], int]:
    """The lines to translate, and how many of them together: what is piped in is answered line by line."""
    if options.file:
        return _lines_of_file(options.file), BATCH
    if not sys.stdin.isatty():
        return iter(sys.stdin), BATCH if _is_file(sys.stdin) else 1
    print("type a sentence to have it translated; an empty line ends")
    return _typed_lines(), 1


def _is_file(stream: Any) -> bool:
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def _lines_of_file(path: str) -> Iterator[str]:
    with open(path, encoding="utf-8", errors="replace") as file:
        yield from file


def _typed_lines() -> Iterator[str]:
    while True:
        try:
            line = input("> ")
        except EOFError:
            return
        if not line.strip():
            return
        yield line


def _translated(loaded: Any, texts: list[str], search: dict[str, Any]) -> Iterator[Translation | None]:
    """The translations of texts; None for one in which there is nothing to translate, such as a line of dots."""
    try:
        yield from loaded.translate(texts, **search) if texts else []
    except ArgumentError as error:
        if len(texts) > 1:
            for text in texts:
                yield from _translated(loaded, [text], search)
            return
        print(printable(f"minigrad: {texts[0][:SHOWN]!r}: {str(error).splitlines()[0]}"), file=sys.stderr)
        yield None


def _show_line(one: Translation | None, options: Namespace) -> None:
    """One line for a line, or the best few and an empty line behind them; with --json one object on a line."""
    if options.json:
        print(json.dumps(None if one is None else _as_data(one, options.nbest or 1)))
    elif one is None:
        print()
    else:
        print(printable("\n".join(_lines(one, options.nbest)) + ("\n" if options.nbest else "")))
    if one is not None:
        _say_remarks([one])


def _draw_attention(loaded: Any, found: Any, search: dict[str, Any], path: Path) -> Path:
    seen = loaded.attention(found.source, **search)
    if path.suffix.lower() in PAGES:
        return Path(seen.write(path))
    seen.alignment().write(path)
    return path


def _draw_tree(loaded: Any, found: Any, search: dict[str, Any], path: Path) -> Path:
    from ...viz.drawing.beam import beam_tree

    beam_tree(loaded.tree(found), title=f"{found.source} -> {found.text}").write(path)
    return path


TRANSLATE = TaskCommand(
    "translate with a trained translator",
    'minigrad translate "You are welcome" --nbest 5',
    _arguments,
    _run,
    _check,
)
