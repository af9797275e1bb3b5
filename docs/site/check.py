"""What is wrong with the site that was written: links that lead nowhere, and what a browser complains about."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

__all__ = ["broken_links", "complaints"]

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 800}


class Page(HTMLParser):
    """The names and the links of a page of HTML."""

    def __init__(self, text: str):
        super().__init__()
        self.names, self.links, self.loaded = set[str](), set[str](), set[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Keep its id and where it leads."""
        given = dict(attributes)
        self.names |= {given[name] for name in ("id", "name") if given.get(name)}
        self.links |= {given[name] for name in ("href", "src") if given.get(name)}
        if tag != "a":
            self.loaded |= {given[name] for name in ("href", "src") if given.get(name)}


def broken_links(site: Path) -> Iterator[str]:
    """Links inside of the site that lead to no file, or to no place in a page; and whatever is loaded from a network."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for link in sorted(page.links):
            if link.startswith(("http:", "https:", "mailto:", "data:", "blob:")):
                if link.startswith("http") and link in page.loaded:
                    yield f"{path.relative_to(site)}: {link} is loaded from a network"
                continue
            file, _, name = unquote(link).partition("#")
            file = file.partition("?")[0]
            target = Path(os.path.normpath(path.parent / file)) if file else path
            if not target.exists() or name and target in pages and name not in pages[target].names:
                yield f"{path.relative_to(site)}: {link} leads nowhere"


def complaints(site: Path, say: Callable[[str], None] = lambda _: None) -> Iterator[str]:
    """What a browser says of each page, on a desk and on a phone: errors, what it asks the network for, pages that are too wide."""
    from playwright.sync_api import sync_playwright

    pages = sorted(site.rglob("*.html"))
    with sync_playwright() as playwright:
        installed = next(filter(None, map(shutil.which, BROWSERS)), None)  # without one, Playwright's own
        browser = playwright.chromium.launch(executable_path=installed, args=["--no-sandbox"])
        for size, scheme in ((DESK, "light"), (PHONE, "dark")):
            tab, said = browser.new_context(viewport=size, color_scheme=scheme).new_page(), list[str]()
            _listen(tab, said)
            for path in pages:
                tab.goto(path.as_uri(), wait_until="load")
                if tab.evaluate("document.documentElement.scrollWidth > innerWidth + 1"):
                    said.append(f"is wider than {size['width']}")
                yield from (f"{path.relative_to(site)}: {text}" for text in said)
                said.clear()
            say(f"walked {len(pages)} pages, {size['width']} wide, {scheme}")
        browser.close()


def _listen(tab: Any, said: list[str]) -> None:
    """Note what the pages of a tab complain of, and what they ask the network for."""

    def of_console(message: Any) -> None:
        if message.type in ("error", "warning"):
            said.append(message.text)

    def of_network(request: Any) -> None:
        if request.url.startswith("http"):
            said.append(request.url)

    tab.on("console", of_console)
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", of_network)
