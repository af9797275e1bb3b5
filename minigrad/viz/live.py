"""A run's page while it trains, served to this machine alone: on loopback, to who knows the token, and only to be read."""

from __future__ import annotations

import contextlib
import io
import ipaddress
import os
import re
import secrets
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from typing import Any

from ..train import RunError
from .feed import Feed
from .report import About

__all__ = ["serve"]

HOST = "127.0.0.1"
LONGEST = 8192  # bytes of a request
PATIENCE = 5.0  # seconds that a client has to ask, and again to take the answer
CLIENTS = 16  # at once
FAREWELL = 1.5  # seconds that pages which are open get to hear that training has ended
_SINCE = re.compile(r"since=(\d{1,15})")
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",  # the page's own policy says the rest
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@contextlib.contextmanager
def serve(run: str | os.PathLike[str], about: About | None = None) -> Iterator[str]:
    """Inside, the page of a run is at the address that this gives, `http://127.0.0.1:PORT/TOKEN/`, and follows it."""
    try:
        server = _Server(Feed(run, about))
    except OSError as error:
        raise RunError(f"the live page cannot be served: {error.strerror}", fix="train without --live") from error
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="minigrad live page", daemon=True)
    thread.start()
    try:
        yield server.address
    finally:
        try:
            server.say_farewell()
        finally:  # also where it is interrupted meanwhile
            server.shutdown()
            server.server_close()
            thread.join()


class _Server(ThreadingHTTPServer):
    """One that takes few clients, each in a thread that does not keep the process alive."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = False
    request_queue_size = CLIENTS

    def __init__(self, feed: Feed):
        self.feed, self.token = feed, secrets.token_urlsafe(32)
        self._places = threading.BoundedSemaphore(CLIENTS)
        self._asked = float("-inf")  # when a page last asked for what is new
        self._told = threading.Event()
        super().__init__((HOST, 0), _Handler)

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def news(self, version: int) -> str:
        """What is newer than a version, and remember that somebody follows."""
        ended = self.feed.ended
        text = self.feed.since(version)
        self._asked = monotonic()
        if ended:
            self._told.set()
        return text

    def say_farewell(self) -> None:
        """Let a page that follows see the end."""
        self.feed.ended = True
        if monotonic() - self._asked < 2 * FAREWELL:
            self._told.wait(FAREWELL)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        return ipaddress.ip_address(client_address[0]).is_loopback and self._places.acquire(blocking=False)

    def process_request(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request(request, client_address)
        except Exception:  # there may be no thread to be had
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away, or talks nonsense, is no news."""


class _Handler(BaseHTTPRequestHandler):
    """Answers GET of the page and of what is new; everything else is refused without a reason."""

    server: _Server
    server_version, sys_version = "minigrad", ""

    def setup(self) -> None:
        super().setup()
        self.rfile = io.BytesIO(_request(self.connection))
        self.connection.settimeout(PATIENCE)

    def do_GET(self) -> None:
        path, _, query = self.requestline.split()[1].partition("?")  # `self.path` has lost what it began with twice
        own = {f"{name}:{self.server.server_port}" for name in (HOST, "localhost")}
        # Another page's script could reach this port under a name of its own, and would send that name.
        if self.headers.get_all("Host", []) not in [[name] for name in own]:
            return self.send_error(403)
        empty, token, *rest = path.split("/") if path.count("/") == 2 else ("", "", "")
        if empty or not secrets.compare_digest(token.encode(errors="replace"), self.server.token.encode()):
            return self.send_error(404)
        since = _SINCE.fullmatch(query)
        if rest == [""] and not query:
            return self._answer("text/html; charset=utf-8", self.server.feed.page())
        if rest == ["data.json"] and since is not None:
            return self._answer("application/json", self.server.news(int(since.group(1))))
        return self.send_error(404)

    def _answer(self, kind: str, text: str) -> None:
        content = text.encode()
        self.send_response(200)
        self._finish_headers(len(content), **{"Content-Type": kind})
        self.wfile.write(content)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse, and say no more than the number: 405 for any other method."""
        self.send_response(405 if code == 501 else code)
        self._finish_headers(0)

    def _finish_headers(self, length: int, **more: str) -> None:
        for name, value in {**_HEADERS, **more, "Content-Length": str(length), "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Training has the terminal for itself."""


def _request(connection: socket.socket) -> bytes:
    """The head of a request, up to its empty line; one that is too long or too slow is cut off."""
    content, until = b"", monotonic() + PATIENCE
    while b"\r\n\r\n" not in content and len(content) < LONGEST:
        connection.settimeout(max(until - monotonic(), 0.001))
        part = connection.recv(LONGEST - len(content))
        if not part:
            break
        content += part
    if b"\r\n\r\n" not in content:
        raise ConnectionError("no whole request")
    return content
