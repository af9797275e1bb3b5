"""A loaded model as a web server: which path is answered by what, who may ask, and how it starts and stops."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import secrets
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, printable
from .answers import verbs_for
from .api import Api
from .http import Refusal, Request, Response, Server, as_json
from .inbox import answers_of
from .openai import OpenAI
from .page import page_of
from .worker import Worker

__all__ = ["App", "run"]

BOUNDS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)  # seconds of an answer, in the histogram of the metrics
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
WHOLE = "text/plain; version=0.0.4; charset=utf-8"


class App:
    """Answers requests for a loaded model.

    `token` has to come with every request but `/health`: as `Authorization: Bearer TOKEN`, or before the path, `/TOKEN/…`.
    None takes any. On loopback only the host names of this machine are taken, so that no page of another site can
    reach the server under a name of its own.
    """

    def __init__(
        self, loaded: Any, *, token: str | None, is_loopback: bool = True, places: int = 16, queue: int = 64, tokens: int = 1024
    ):  # fmt: skip
        self.loaded, self.token, self.is_loopback = loaded, token, is_loopback
        self.name = Path(loaded.path).resolve().name or loaded.spec.name
        verbs = {**verbs_for(loaded), "page": lambda inputs: [page_of(loaded)]}
        self.worker = Worker(loaded, verbs, places=places, queue=queue)
        self.server = Server(self.answer)
        writes = "sample" in loaded.verbs and loaded.tokenizer is not None
        writes = writes and hasattr(loaded.model, "context") and hasattr(loaded.model, "new_cache")
        openai = OpenAI(loaded, self.worker, self.name, tokens) if writes else None
        api = Api(loaded, self.worker, openai, tokens)
        self.api, self._page = api, ""
        self.requests: Counter[tuple[str, int]] = Counter()
        self.seconds, self.buckets = 0.0, [0] * len(BOUNDS)
        posts: dict[str, Callable[[dict[str, Any]], Awaitable[Response]]] = {
            f"/api/{verb}": getattr(api, verb) for verb in verbs if verb != "page"
        }
        gets: dict[str, Callable[[], Any]] = {"/health": self._health, "/api": api.described}
        if openai is not None:
            posts |= {
                "/api/sample": api.sample,
                "/v1/completions": openai.complete,
                "/v1/chat/completions": openai.chat,
            }
            gets |= {"/v1/models": openai.models, f"/v1/models/{self.name}": openai.model}
        self.posts, self.gets = posts, gets

    async def answer(self, request: Request) -> Response:
        """The answer to a request; whatever goes wrong is an answer, too."""
        began, path = time.perf_counter(), request.path
        try:
            path = self._admitted(request)
            response = await self._routed(request, path)
        except Refusal as refusal:
            response = refusal.response
        except Exception:
            print(printable(f"minigrad: {traceback.format_exc()}"), file=sys.stderr, flush=True)
            response = Refusal(500, "the server failed: what went wrong is in its terminal").response
        self._count(path, response.status, time.perf_counter() - began)
        return response

    def _admitted(self, request: Request) -> str:
        """The path behind the token; refuses who may not ask."""
        host = request.headers.get("host", "")
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        if self.is_loopback and name.lower() not in LOOPBACK:
            raise Refusal(403, "this server answers to 127.0.0.1 and localhost alone", code="host")
        origin = request.headers.get("origin")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            raise Refusal(403, "this server answers to no page but its own", code="origin")
        if request.path == "/health" or self.token is None:
            return request.path
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _is_same(given.strip(), self.token):
            return request.path
        _, first, rest = [*request.path.split("/", 2), ""][:3]
        if _is_same(first, self.token) and request.path.count("/") > 1:
            return f"/{rest}"
        raise Refusal(
            401, "a token is needed: open the address that minigrad serve prints, or send it as a bearer token"
        )

    async def _routed(self, request: Request, path: str) -> Response:
        if path == "/" or path in self.gets or path == "/metrics":
            if request.method != "GET":
                raise Refusal(405, f"{path} is asked with GET")
            if path == "/":
                return Response(body=await self._html(), kind="text/html; charset=utf-8")
            if path == "/metrics":
                return Response(body=self.metrics().encode(), kind=WHOLE)
            return Response(body=as_json(self.gets[path]()))
        if path in self.posts:
            if request.method != "POST":
                raise Refusal(405, f"{path} is asked with POST")
            return await self.posts[path](request.json())
        known = ", ".join(["/", "/health", "/metrics", "/api", *self.posts])
        raise Refusal(404, f"there is nothing at this path; there is {known}")

    async def _html(self) -> bytes:
        if not self._page:
            (self._page,) = await answers_of(self.worker, "page", [None])
        return self._page.encode()

    def _health(self) -> dict[str, Any]:
        return {"status": "ok", "model": self.name}

    def _count(self, path: str, status: int, seconds: float) -> None:
        is_known = path in self.posts or path in self.gets or path in ("/", "/metrics")
        self.requests[path if is_known else "other", status] += 1
        if path in self.posts and status == 200:
            self.seconds += seconds
            for place, bound in enumerate(BOUNDS):
                self.buckets[place] += seconds <= bound

    def metrics(self) -> str:
        """What has been done so far, and what is at hand, in the text format of Prometheus."""
        answered = sum(n for (path, status), n in self.requests.items() if path in self.posts and status == 200)
        lines = ["# TYPE minigrad_requests_total counter"]
        lines += [
            f'minigrad_requests_total{{path="{p}",status="{s}"}} {n}' for (p, s), n in sorted(self.requests.items())
        ]
        lines += ["# TYPE minigrad_answer_seconds histogram"]
        pairs = [*zip(map(str, BOUNDS), self.buckets), ("+Inf", answered)]
        lines += [f'minigrad_answer_seconds_bucket{{le="{bound}"}} {count}' for bound, count in pairs]
        lines += [f"minigrad_answer_seconds_sum {self.seconds:.6f}", f"minigrad_answer_seconds_count {answered}"]
        counts = self.worker.counts
        for name, key in (
            ("tokens_written", "written"), ("tokens_read", "read"), ("steps", "steps"), ("inputs_answered", "answered"),
            ("cancelled", "cancelled"), ("refused", "refused"), ("failed", "failed"),
        ):  # fmt: skip
            lines += [f"# TYPE minigrad_{name}_total counter", f"minigrad_{name}_total {counts[key]}"]
        for name, value in {**self.worker.state, "connections": len(self.server.connections)}.items():
            lines += [f"# TYPE minigrad_{name} gauge", f"minigrad_{name} {value}"]
        return "\n".join([*lines, ""])


def _is_same(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode(errors="replace"), token.encode())


def is_loopback(host: str) -> bool:
    """Whether an address is of this machine alone."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def run(
    loaded: Any,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None,
    places: int = 16,
    queue: int = 64,
    tokens: int = 1024,
    grace: float = 10.0,
    ready: Callable[[str], object] = print,
) -> None:
    """Serve a loaded model until SIGINT or SIGTERM. `ready` is told the address; texts that are being written get `grace` seconds."""
    app = App(loaded, token=token, is_loopback=is_loopback(host), places=places, queue=queue, tokens=tokens)
    asyncio.run(_serve(app, host, port, grace, ready))


async def _serve(app: App, host: str, port: int, grace: float, ready: Callable[[str], object]) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError, RuntimeError):  # on Windows Ctrl-C raises KeyboardInterrupt
            loop.add_signal_handler(number, _stop, loop, number, stopping)
    try:
        bound = await app.server.start(host, port)
    except OSError as error:
        raise ArgumentError(
            f"serve: {host}:{port} cannot be listened at: {error.strerror}", fix="choose another: --port 0 takes any"
        ) from error
    app.worker.start()
    shown = f"[{host}]" if ":" in host else host
    ready(f"http://{shown}:{bound}/{'' if app.token is None else f'{app.token}/'}")
    try:
        await stopping.wait()
    finally:
        ending = asyncio.create_task(asyncio.to_thread(app.worker.stop, grace))
        await app.server.stop(grace + 1)
        await ending


def _stop(loop: asyncio.AbstractEventLoop, number: int, stopping: asyncio.Event) -> None:
    """The first signal asks to stop; the second has its usual effect."""
    stopping.set()
    for one in (signal.SIGINT, signal.SIGTERM):
        loop.remove_signal_handler(one)
