"""The task "translation": `translate` translates texts, `attention` and `tree` show how a translation was found."""

from __future__ import annotations

import argparse
import json
import math
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError, printable
from .task import Task, TaskCommand, count, utf8_text

if TYPE_CHECKING:
    from ...decode import Translation

__all__ = ["TRANSLATION"]

PAGES = (".html", ".json")  # of all heads; a picture shows which words belong together
PICTURES = (".svg", ".png", ".pdf")
SHOWN = 60  # characters of a text that is named in a message


def translate(loaded: Any, texts: str | Sequence[str], **options: Any) -> list[Translation]:
    """Translate a text, or several, by beam search; `beams`, `alpha` and `max_length` are the config's unless given.

    The model is called `model(sources, targets, cache=cache)`, has `new_cache()`, and comes with a tokenizer.
    """
    from ...decode import translate

    for what, is_there in {
        "a tokenizer in its Data": loaded.tokenizer is not None,
        "`new_cache()` in its model": hasattr(loaded.model, "new_cache"),
    }.items():
        if not is_there:
            raise ArgumentError(
                f"{loaded.spec.name} cannot translate", what, "none", "add it, or a verb `translate` to the spec"
            )
    own = {name: getattr(loaded.config, name, None) for name in ("beams", "alpha", "max_length")}
    given = {name: value for name, value in {**own, **options}.items() if value is not None}
    return translate(loaded.model, loaded.tokenizer, [texts] if isinstance(texts, str) else texts, **given)


def logits(loaded: Any, sources: Any, targets: Any) -> Any:
    """The logits of the token after each of the targets, as an array: token numbers (B, S), (B, T) -> (B, T, vocabulary).

    Sources are filled up with the number of the model's padding; targets begin with that of its start.
    """
    from ...engine.modes import no_grad
    from ...ops.creation import tensor

    with no_grad():
        return loaded.model(tensor(sources), tensor(targets)).numpy()


def attention(loaded: Any, text: str, **options: Any) -> Any:
    """All attentions while a text, or its first piece, is translated: a minigrad.viz Attention."""
    from ...decode.translation import attention_inputs
    from ...viz.attention.attention import attention

    given = attention_inputs(
        loaded.tokenizer, loaded.translate([text], **options)[0], getattr(loaded.model, "vocab", None)
    )
    return attention(loaded.model, *given.pop("inputs"), title=loaded.spec.name, **given)


def tree(loaded: Any, translation: Translation) -> dict[str, Any]:
    """The tree of the search that found a translation, for `mg.viz.beam_tree`."""
    from ...decode.translation import search_tree

    return search_tree(loaded.tokenizer, translation)


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
    if options.interactive:
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
    if not options.texts and not options.interactive:
        raise ArgumentError(
            "what is to be translated?", fix='for instance: minigrad translate "You are welcome"; or --interactive'
        )
    if options.texts and options.interactive:
        raise ArgumentError("--interactive asks for texts", fix="leave out those on the command line")
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


def _beams(options: Namespace, loaded: Any) -> int | None:
    """As many beams as were asked for, at least as many as translations are to be shown."""
    if options.nbest is None:
        return options.beam
    return options.beam or max(options.nbest, getattr(loaded.config, "beams", 1))


def _show(found: list[Translation], options: Namespace) -> None:
    if options.json:
        print(json.dumps([_as_data(one, options.nbest or 1) for one in found], indent=2))
    else:
        for one in found:
            for line in _lines(one, options.nbest):
                print(printable(line))
    for one in found:
        for remark in _remarks(one, is_drawn=bool(options.attention or options.tree)):
            print(printable(f"minigrad: {remark}"), file=sys.stderr)


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


def _translate_lines(loaded: Any, search: dict[str, Any], options: Namespace) -> None:
    """Translate what is typed, line by line, until an empty line or the end of the input."""
    is_person = sys.stdin.isatty()
    if is_person:
        print("type a sentence to have it translated; an empty line ends")
    while True:
        try:
            line = input("> " if is_person else "")
        except EOFError:
            return
        if not line.strip():
            if is_person:
                return
            print()  # a pipe keeps its lines aligned
            continue
        try:
            found = loaded.translate([line], **search)
        except ArgumentError as error:  # as of a line without any word: the next one may have some
            print(printable(f"minigrad: {str(error).splitlines()[0]}"), file=sys.stderr)
            found = []
            print()  # as for an empty line
        _show(found, options)
        sys.stdout.flush()


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


TRANSLATION = Task(
    "translation",
    verbs={"translate": translate, "logits": logits, "attention": attention, "tree": tree},
    commands={
        "translate": TaskCommand(
            "translate with a trained translator",
            'minigrad translate "You are welcome" --nbest 5',
            _arguments,
            _run,
            _check,
        )
    },
)
