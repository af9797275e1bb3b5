"""A served model for tests: the server runs in a thread of this process, and is stopped as a signal stops it."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

from minigrad.serve import App
from minigrad.serve.http import Limits

TOKEN = "a-token-for-tests"


class Served:
    """A server at hand: its address, its app, and requests to it."""

    def __init__(self, app: App, port: int, loop: asyncio.AbstractEventLoop):
        self.app, self.port, self.loop = app, port, loop

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, content: Any = None, method: str | None = None, **headers: str) -> tuple[int, Any, Any]:
        """The status, the headers and the answer, JSON or text, of a request with the token."""
        body = content if content is None or isinstance(content, (bytes, str)) else json.dumps(content)
        given = {
            "Authorization": f"Bearer {TOKEN}",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method or ("GET" if body is None else "POST"), path, body, given)
            answer = connection.getresponse()
            text = answer.read().decode()
            is_json = answer.headers.get_content_type() == "application/json"
            return answer.status, answer.headers, json.loads(text) if is_json else text

    def raw(self, content: bytes, wait: float = 10.0) -> bytes:
        """What comes back for these bytes, until the server closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as connection:
            connection.sendall(content)
            found = b""
            with contextlib.suppress(ConnectionResetError):
                while part := connection.recv(65_536):
                    found += part
            return found


@contextlib.contextmanager
def served(loaded: Any, token: str | None = TOKEN, limits: Limits | None = None, **options: Any) -> Iterator[Served]:
    """Serve a loaded model on any port of this machine."""
    app = App(loaded, token=token, **options)
    if limits is not None:
        app.server.limits = limits
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    port = asyncio.run_coroutine_threadsafe(app.server.start("127.0.0.1", 0), loop).result(10)
    app.worker.start()
    try:
        yield Served(app, port, loop)
    finally:
        app.worker.stop(2)
        asyncio.run_coroutine_threadsafe(app.server.stop(2), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
