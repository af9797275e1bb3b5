"""`minigrad attention`: the attention weights of a trained model for a text, as a page or a picture."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from .console import printable
from .parser import Command, Parser, Usage, flag_threads, use_threads, utf8_text, whole_number

__all__ = ["ATTENTION"]


OWN = "of any model of your own, mg.viz.attention(model, x, tokens=…) shows it: docs/seeing.md"


def _arguments(parser: Parser) -> None:
    parser.add_argument(
        "run_directory", metavar="DIR", help="a run's directory, a checkpoint file, or an exported folder"
    )
    parser.add_argument("text", type=utf8_text, metavar="TEXT", help="what the model reads")
    parser.add_argument(
        "-o", "--output", default="attention.html", metavar="FILE",
        help="a page (.html), a picture (.svg, .png, .pdf) or numbers (.json) to write (default: attention.html)",
    )  # fmt: skip
    parser.add_argument("--layer", metavar="N", help="the layer to show first, by number or path (default: all)")
    parser.add_argument("--head", type=whole_number, metavar="N", help="the head to show first")
    parser.add_argument("--dark", action="store_true", help="a dark .png or .pdf")
    flag_threads(parser)
    parser.epilog = f"{parser.epilog}\n\nDIR is of a model whose plugin has `attend`;\n{OWN}"


def _attention(options: Namespace) -> int:
    from ..viz.attention.attention import FORMS
    from ..zoo import load
    from ..zoo.attention import attention_of, models_with_attention, shows_attention

    if Path(options.output).suffix.lower() not in FORMS:
        raise Usage(f"{options.output!r} is neither a page nor a picture: end its name in {', '.join(FORMS)}")
    use_threads(options.threads)
    loaded = load(options.run_directory)
    if not shows_attention(loaded.spec):
        able = models_with_attention()
        which = f"models that do: {', '.join(able)}" if able else "no installed model does"
        raise Usage(f"{loaded.spec.name} shows no attention; {which}; {OWN}")
    seen = attention_of(loaded, options.text)
    layer = options.layer
    number = int(layer) if layer is not None and layer.isascii() and layer.isdigit() else layer
    print(printable(f"wrote {seen.write(options.output, number, options.head, options.dark)}: {seen.size}"))
    return 0


ATTENTION = Command(
    "show the attention of a trained model",
    "minigrad attention runs/mine 'You are welcome' -o attention.html",
    _arguments,
    _attention,
)
