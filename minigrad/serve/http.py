"""HTTP/1.1 over asyncio, as much of it as a model's server needs: bounded in bytes, seconds and connections.

A handler makes a `Response` of a `Request`; it is cancelled when the client leaves before it is answered. Of what is not
understood, such as bodies in chunks, a status code says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

__all__ = ["Limits", "Refusal", "Request", "Response", "Server", "as_json"]

REASONS = {
    200: "OK", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
    408: "Request Timeout", 411: "Length Required", 413: "Content Too Large", 429: "Too Many Requests",
    431: "Request Header Fields Too Large", 500: "Internal Server Error", 503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}  # fmt: skip
BUFFER = 65_536  # bytes that are kept for a client, here and in the system
LINGERING = 1.0  # seconds
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",  # a page's own policy says the rest
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # a method, or the name of a header
ONCE = ("host", "content-length", "authorization", "origin", "transfer-encoding")
TYPES = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
    429: "rate_limit_error",
}  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """What a client may ask for: bytes of a head and of a body, seconds to send one and to take an answer, connections at once."""

    head: int = 16_384
    body: int = 262_144
    sending: float = 10.0
    taking: float = 20.0
    idle: float = 30.0  # between two requests of a connection
    connections: int = 512


class Refusal(Exception):
    """A request that is answered with an error, in the form that clients of OpenAI's interface know."""

    def __init__(
        self, status: int, message: str, param: str | None = None, code: str | None = None, retry: int | None = None
    ):
        super().__init__(message)
        self.status, self.message, self.param, self.code, self.retry = status, message, param, code, retry

    @property
    def body(self) -> dict[str, Any]:
        kind = TYPES.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}

    @property
    def response(self) -> Response:
        """The answer; `retry` are seconds after which it is worth another try."""
        headers = {} if self.retry is None else {"Retry-After": str(self.retry)}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return Response(self.status, as_json(self.body), headers=headers)


@dataclass(frozen=True)
class Request:
    """A request with its whole body. Names of headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""

    def json(self) -> dict[str, Any]:
        """The body, which has to be a JSON object."""
        try:
            found = json.loads(self.body, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            raise Refusal(400, f"the body is no JSON: {error}"[:200]) from None
        if not isinstance(found, dict):
            raise Refusal(400, "the body has to be a JSON object")
        return found


@dataclass(frozen=True)
class Response:
    """An answer: its body, or a `stream` of parts that are sent as they come; `close` is called when it is over, sent or not."""

    status: int = 200
    body: bytes = b""
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: AsyncIterator[bytes] | None = None
    close: Callable[[], object] | None = None


def as_json(value: Any) -> bytes:
    """JSON in ASCII: half a surrogate pair, too, can be written so."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


Handler = Callable[[Request], Awaitable[Response]]


class Server:
    """Listens at an address, `serve` once and then until `stop`; `connections` are those that are open now."""

    def __init__(self, handler: Handler, limits: Limits | None = None):
        self.handler, self.limits = handler, limits or Limits()
        self.connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.AbstractServer | None = None
        self._is_stopping = False

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port, which 0 leaves to the system."""
        self._server = await asyncio.start_server(
            self._connected, host, port, limit=self.limits.head, backlog=self.limits.connections
        )
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self, seconds: float) -> None:
        """Take no new connection, give those that are being answered so many seconds, then close all."""
        self._is_stopping = True
        if self._server is not None:
            self._server.close()
        for task in self.connections:
            if getattr(task, "is_idle", True):
                task.cancel()
        if self.connections:
            await asyncio.wait(self.connections, timeout=seconds)
        for task in list(self.connections):
            task.cancel()
        await asyncio.gather(*self.connections, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.connections.add(task)
        if (own := writer.get_extra_info("socket")) is not None:  # what a client does not take is not kept for it
            own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        writer.transport.set_write_buffer_limits(BUFFER)
        try:
            if len(self.connections) > self.limits.connections:
                refusal = Refusal(503, "there are too many connections", retry=1)
                await self._send(writer, refusal.response, False)
            else:
                await self._converse(task, reader, writer)
            writer.close()
            await asyncio.wait_for(writer.wait_closed(), self.limits.taking)
        except (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has left, was too slow, or the server stops
        finally:
            self.connections.discard(task)
            writer.transport.abort()

    async def _converse(
        self, task: asyncio.Task[None], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        wait = self.limits.sending
        while not self._is_stopping:
            task.is_idle = True  # type: ignore[attr-defined]
            try:
                request, stays = await self._request(reader, writer, wait)
            except Refusal as refusal:
                await self._send(writer, refusal.response, False)
                await self._rest(reader)
                return
            if request is None:
                return
            task.is_idle = False  # type: ignore[attr-defined]
            response = await self._answer(request, reader)
            if response is None:
                return
            stays = stays and not self._is_stopping
            try:
                await self._send(writer, response, stays, reader)
            finally:
                if response.close is not None:
                    response.close()
            if not stays:
                return
            wait = self.limits.idle

    async def _rest(self, reader: asyncio.StreamReader) -> None:
        """Take what a client is still sending for a moment: else it might see a broken connection, and not the answer."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(reader.read(4 * self.limits.body), LINGERING)

    async def _request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, wait: float
    ) -> tuple[Request | None, bool]:
        """The next request, None where there is none any more, and whether the connection stays open after it."""
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), wait)
        except asyncio.LimitOverrunError:
            raise Refusal(431, f"the head of a request has at most {self.limits.head:,} bytes") from None
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise Refusal(400, "this is no whole request") from None
            return None, False
        except asyncio.TimeoutError:
            return None, False
        method, target, version, headers = _parsed(head)
        length = self._length(method, headers)
        if headers.get("expect", "").lower() == "100-continue" and length:
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            body = await asyncio.wait_for(reader.readexactly(length), self.limits.sending) if length else b""
        except asyncio.TimeoutError:
            raise Refusal(408, f"the body did not come within {self.limits.sending:g} s") from None
        stays = version == "HTTP/1.1" and "close" not in headers.get("connection", "").lower()
        return Request(method, unquote(urlsplit(target).path), headers, body), stays

    def _length(self, method: str, headers: Mapping[str, str]) -> int:
        if "transfer-encoding" in headers:
            raise Refusal(411, "a body comes whole, with Content-Length, and not in chunks")
        given = headers.get("content-length", "0" if method in ("GET", "HEAD", "OPTIONS", "DELETE") else "")
        if not re.fullmatch(r"[0-9]{1,12}", given):
            raise Refusal(411 if not given else 400, "Content-Length has to be the number of bytes of the body")
        if int(given) > self.limits.body:
            raise Refusal(413, f"a body has at most {self.limits.body:,} bytes")
        return int(given)

    async def _answer(self, request: Request, reader: asyncio.StreamReader) -> Response | None:
        """What the handler says; None if the client leaves before, or does not wait with its next request."""
        answering = asyncio.ensure_future(self.handler(request))
        leaving = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
            return answering.result() if answering.done() else None
        finally:
            for task in (answering, leaving):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, Refusal, OSError):
                    await task

    async def _send(
        self, writer: asyncio.StreamWriter, response: Response, stays: bool, reader: asyncio.StreamReader | None = None
    ) -> None:
        is_stream = response.stream is not None
        length = {"Transfer-Encoding": "chunked"} if is_stream else {"Content-Length": str(len(response.body))}
        headers = {
            **HEADERS, **response.headers, "Content-Type": response.kind, **length,
            "Connection": "keep-alive" if stays else "close",
        }  # fmt: skip
        lines = [f"HTTP/1.1 {response.status} {REASONS[response.status]}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + response.body)
        await asyncio.wait_for(writer.drain(), self.limits.taking)
        if response.stream is not None:
            await self._stream(writer, response.stream, reader)

    async def _stream(
        self, writer: asyncio.StreamWriter, stream: AsyncIterator[bytes], reader: asyncio.StreamReader | None
    ) -> None:
        """Send parts as they come, until the stream ends or the client has left."""
        leaving = None if reader is None else asyncio.ensure_future(reader.read(1))
        try:
            while True:
                part = asyncio.ensure_future(anext(stream))
                waited = {part} if leaving is None else {part, leaving}
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                if not part.done():
                    part.cancel()
                    with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration):
                        await part
                    raise ConnectionError("the client has left")
                try:
                    content = part.result()
                except StopAsyncIteration:
                    break
                writer.write(b"%x\r\n%b\r\n" % (len(content), content))
                await asyncio.wait_for(writer.drain(), self.limits.taking)
            writer.write(b"0\r\n\r\n")
            await asyncio.wait_for(writer.drain(), self.limits.taking)
        finally:
            if leaving is not None:
                leaving.cancel()
                with contextlib.suppress(asyncio.CancelledError, OSError):
                    await leaving


def _parsed(head: bytes) -> tuple[str, str, str, dict[str, str]]:
    """Method, target, version and headers of a request."""
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    parts = first.split(" ")
    if len(parts) != 3 or not TOKEN.fullmatch(parts[0]) or not parts[1].startswith("/"):
        raise Refusal(400, "this is no request of HTTP/1.1")
    method, target, version = parts
    if version not in ("HTTP/1.1", "HTTP/1.0"):
        raise Refusal(505, "this server speaks HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not TOKEN.fullmatch(name) or "\n" in value or "\r" in value or "\0" in value:
            raise Refusal(400, "a header of this request cannot be read")
        name = name.lower()
        if name in headers and name in ONCE:
            raise Refusal(400, f"the header {name} comes once")
        headers[name] = value.strip()
    return method, target, version, headers
