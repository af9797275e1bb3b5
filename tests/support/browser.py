"""A real browser for the pages that minigrad writes: opened from a file, without a network, and with every complaint collected."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--force-color-profile=srgb",
]  # fmt: skip


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium without a window."""
    if CHROMIUM is None:
        pytest.skip("needs a browser: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open a file: `open_page(path)` returns Playwright's page. Afterwards no page may have complained or asked for anything else."""
    contexts, complaints = [], []

    def open_file(path: Path, dark: bool = False, width: int = 1280, height: int = 800) -> Any:
        scheme = "dark" if dark else "light"
        context = browser.new_context(
            offline=True, color_scheme=scheme, viewport={"width": width, "height": height}, reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        address = Path(path).resolve().as_uri()
        page.on(
            "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"a dialog opened: {dialog.message}"))
        page.on("request", lambda request: _only(address, request.url, complaints))
        page.goto(address)
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert complaints == []


def _only(address: str, asked: str, complaints: list[str]) -> None:
    if asked.partition("#")[0] != address and not asked.startswith(
        ("data:", "blob:")
    ):  # a worker's script is a blob of the page
        complaints.append(f"the page asked for {asked}")
