"""`minigrad graph`: the graph of a model's loss on a small batch, in the terminal, as a picture, or as a page."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path
from typing import Any

from .console import printable
from .models import configured, is_path, looked_up, setting_hint
from .parser import Command, Parser, Usage, count

__all__ = ["GRAPH"]


def _arguments(parser: Parser) -> None:
    parser.hint = setting_hint
    from ..viz.graph.labels import COLORS, DIRECTIONS

    parser.add_argument(
        "model", metavar="NAME[:PRESET]|DIR", help="a model of `minigrad list`, or the directory of a run"
    )
    parser.add_argument("settings", nargs="*", metavar="key=value", help="settings of the model")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help=".html to open boxes and step through; .svg .png .pdf .dot .json .txt"
    )
    parser.add_argument("--depth", type=count, default=1, help="how many levels a still picture opens (default: 1)")
    parser.add_argument(
        "--direction", choices=DIRECTIONS, default="forward", help="direction of the arrows (default: forward)"
    )
    parser.add_argument("--color", choices=COLORS, help="what the colours of a still picture show")
    parser.add_argument("--fused", action="store_true", help="draw fused ops as one box each")
    parser.add_argument("--dark", action="store_true", help="a dark .png or .pdf")


def _graph(options: Namespace) -> int:
    from ..saving import check_folder
    from ..viz.graph.graph import SUFFIXES
    from ..zoo.graph import graph_of

    output = Path(options.output) if options.output else None
    if output is not None and output.suffix.lower() not in SUFFIXES:
        raise Usage(f"{options.output!r}: end its name in one of {' '.join(SUFFIXES)}")
    if output is not None:
        check_folder(output)
    spec, config, model = _chosen(options)
    look = {"depth": options.depth, "direction": options.direction, "color": options.color, "fused": options.fused}
    graph = graph_of(spec, config, model, **look)
    if output is None:
        print(printable(graph.text()))
        return 0
    graph.write(output, options.dark)
    print(printable(f"wrote {output}"))
    return 0


def _chosen(options: Namespace) -> tuple[Any, Any, Any]:
    """The spec, the config, and the trained model of a run, or None."""
    if os.path.isdir(options.model):
        from ..zoo import load

        if options.settings:
            raise Usage("a run has its settings already; give key=value with the name of a model")
        loaded = load(options.model)
        return loaded.spec, loaded.config, loaded.model
    if is_path(options.model):
        raise Usage(f"{options.model!r} does not exist: give the directory of a run, or a model of `minigrad list`")
    spec, preset = looked_up(options.model)
    return spec, configured(spec, preset, options.settings)[0], None


GRAPH = Command("draw the computation graph of a model", "minigrad graph xor -o xor.html", _arguments, _graph)
