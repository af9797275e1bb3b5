"""`minigrad report`: a run as one page that opens in any browser, without a network."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from .console import printable
from .parser import Command, Parser, Usage

__all__ = ["REPORT"]


def _arguments(parser: Parser) -> None:
    parser.add_argument("run_directory", metavar="DIR", help="the directory of a run")
    parser.add_argument("-o", "--output", metavar="FILE", help="the page to write, .html (default: report.html in DIR)")
    parser.add_argument("--open", action="store_true", help="open it in a browser")


def _report(options: Namespace) -> int:
    from ..train.run_data import read_run
    from ..zoo.report import report

    if options.output is not None and Path(options.output).suffix.lower() != ".html":
        raise Usage(f"{options.output!r} is no page: end its name in .html")
    page = report(options.run_directory, options.output)
    print(printable("\n".join([f"wrote {page}", *read_run(options.run_directory).problems])))
    if options.open:
        import webbrowser

        webbrowser.open(page.absolute().as_uri())
    return 0


REPORT = Command("show a run as one page", "minigrad report runs/xor --open", _arguments, _report)
