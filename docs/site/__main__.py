"""`python -m docs.site`: see the package."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from minigrad.errors import install_hint

__all__ = ["main"]

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Lay out, build and check."""
    parser = argparse.ArgumentParser(prog="python -m docs.site", description="Write the site.")
    parser.add_argument(
        "-o", "--out", type=Path, default=ROOT / "build" / "site", help="the folder (default: %(default)s)"
    )
    parser.add_argument(
        "--pages", nargs="+", metavar="PAGE", help="only these, as docs/training 'tutorials/1*' models/xor/README"
    )
    parser.add_argument("--check", action="store_true", help="then check all links, and every page in a browser")
    options = parser.parse_args(arguments)
    try:
        from sphinx.application import Sphinx

        from .check import broken_links, complaints
        from .staging import lay_out
    except ImportError as missing:
        parser.error(f"{missing.name} is not installed: {install_hint('docs')}")

    say = partial(print, flush=True)
    out = options.out.absolute()
    sources = out.with_name(f"{out.name}-sources")
    lay_out(sources, options.pages or ["*"], say)
    shutil.rmtree(out, ignore_errors=True)
    settings = {"html_extra_path": [str(sources / "extra")], "all_sources": not options.pages}
    places = [str(path) for path in (sources, Path(__file__).parent, out, sources / "doctrees")]
    app = Sphinx(*places, "html", settings, warningiserror=True, status=None)
    app.build(force_all=True)
    if app.statuscode:
        return 1
    print(f"wrote {out / 'index.html'}")
    found = [*broken_links(out), *complaints(out, say)] if options.check else []
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
