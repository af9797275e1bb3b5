"""`minigrad import`: a pretrained model of another framework as a folder that every verb of its task takes."""

from __future__ import annotations

from argparse import Namespace

from .console import as_command, printable
from .parser import Command, Parser
from .show import described

__all__ = ["IMPORT"]


def _arguments(parser: Parser) -> None:
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="a folder with config.json and weights, a .gguf file, a Marian .bin, a pytorch_model.bin, or hf:owner/name@revision",
    )
    parser.add_argument("-o", "--out", required=True, metavar="DIR", help="a folder that is new, or empty")


def _import(options: Namespace) -> int:
    from ..hub import load
    from ..zoo.export import export

    loaded = load(options.source)
    print(printable(described(loaded)), flush=True)
    folder = export(loaded, options.out)
    print(printable(f"wrote {', '.join(sorted(path.name for path in folder.iterdir()))} to {folder}"))
    print(printable(f"look at it: {as_command('show', folder)}"))
    return 0


IMPORT = Command(
    "open a pretrained model of another framework, and write it as a folder",
    "minigrad import hf:HuggingFaceTB/SmolLM2-135M-Instruct --out smollm",
    _arguments,
    _import,
)
