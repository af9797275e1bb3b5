"""Serves one page over HTTP: on loopback alone, read-only, and only to clients that know the token."""

from __future__ import annotations

import contextlib
import io
import ipaddress
import re
import secrets
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from typing import Any, Protocol

__all__ = ["Feed", "serve"]

HOST = "127.0.0.1"
MAX_REQUEST = 8192  # bytes of a request
TIMEOUT = 5.0  # seconds that a client has to ask, and again to take the answer
MAX_CLIENTS = 16  # at once
GRACE = 1.5  # seconds in which open pages can learn that the feed has ended
_SINCE = re.compile(r"since=(\d{1,15})")
_HEADERS = {
    "Cache-Control": "no-store",
    "Connection": "close",
    "Content-Security-Policy": "frame-ancestors 'none'",  # the page's own policy says the rest
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Feed(Protocol):
    """A page, and what is newer than a version of it. Threads may ask at once."""

    ended: bool

    def page(self) -> str:
        """The whole page as of now."""

    def since(self, version: int) -> str:
        """What is newer than a version, as JSON."""


@contextlib.contextmanager
def serve(feed: Feed, name: str) -> Iterator[str]:
    """Inside, the page is at the address that this gives, `http://127.0.0.1:PORT/TOKEN/`, and follows the feed."""
    server = _Server(feed)
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name=name, daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_port}/{server.token}/"
    finally:
        try:
            server.announce_end()
        finally:  # also where it is interrupted meanwhile
            server.shutdown()
            server.server_close()
            thread.join()


class _Server(ThreadingHTTPServer):
    """Serves at most MAX_CLIENTS at once, each in a daemon thread."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = False
    request_queue_size = MAX_CLIENTS

    def __init__(self, feed: Feed):
        self.feed, self.token = feed, secrets.token_urlsafe(32)
        self._places = threading.BoundedSemaphore(MAX_CLIENTS)
        self._asked = float("-inf")  # when a page last asked for what is new
        self._end_seen = threading.Event()
        super().__init__((HOST, 0), _Handler)

    def updates(self, version: int) -> str:
        """What is newer than a version, as JSON; also notes that a page polls."""
        ended, text, self._asked = self.feed.ended, self.feed.since(version), monotonic()
        if ended:
            self._end_seen.set()
        return text

    def announce_end(self) -> None:
        """Wait until a page that polls has seen the end."""
        self.feed.ended = True
        if monotonic() - self._asked < 2 * GRACE:
            self._end_seen.wait(GRACE)

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
        """Errors of clients are ignored."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version, sys_version = "minigrad", ""

    def setup(self) -> None:
        super().setup()
        self.rfile = io.BytesIO(_request(self.connection))
        self.connection.settimeout(TIMEOUT)

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
            return self._answer(200, self.server.feed.page(), "text/html; charset=utf-8")
        if rest == ["data.json"] and since is not None:
            return self._answer(200, self.server.updates(int(since.group(1))), "application/json")
        return self.send_error(404)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse with a status code alone; 405 for any other method."""
        self._answer(405 if code == 501 else code)

    def _answer(self, code: int, text: str = "", kind: str = "text/plain") -> None:
        content = text.encode()
        self.send_response(code)
        for name, value in {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: the terminal belongs to training."""


def _request(connection: socket.socket) -> bytes:
    """The head of a request, up to its empty line; one that is too long or too slow is cut off."""
    content, until = b"", monotonic() + TIMEOUT
    while b"\r\n\r\n" not in content and len(content) < MAX_REQUEST:
        connection.settimeout(max(until - monotonic(), 0.001))
        part = connection.recv(MAX_REQUEST - len(content))
        if not part:
            break
        content += part
    if b"\r\n\r\n" not in content:
        raise ConnectionError("no whole request")
    return content
