"""A served language model under 200 clients, slow and broken ones among them, beside a training in another process.

    python -m benchmarks.serving RUN [--clients 200] [--seconds 60] [--quick] [--json] [--write]

RUN is a language model, such as runs/gpt. `minigrad serve` is started for it, on loopback. First there are as many clients
as it has places, those of the batch and of the queue, each with one request after the other; their median answer is what the next
one is held against. Then there are 200 for a minute: four of five ask properly, and ask again after a 429; the others ask a byte at a
time, do not take what they asked for, leave in the middle, or send nonsense. Every answer has to be the text that
Python writes alone. Meanwhile `minigrad train xor` runs in a process of its own, whose numbers have to be those of a training
that nothing disturbed. Memory is that of the server's process, of Linux. It fails where something else than a clean 429 or 503 comes, where a
text differs, where texts go on that nobody waits for, or where the median is more than 3 times the first one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from minigrad import zoo
from minigrad.decode import Sampling

from .measure import arguments, machine, progress
from .results import add_write_option, conclude

TITLE = "A served language model"
TOKEN = "token-of-the-benchmark"
PROMPTS = ("Ana", "One day, Ben went to the", "The", "In the morning", "Leo had a dream")
WRITTEN = 32  # tokens of a text
SLOWER = 3.0  # times the median of one client for each place
TRAINING = ("train", "xor", "--seed", "3", "--no-report")


class Load:
    """Clients of one server, and what became of their requests."""

    def __init__(self, port: int, wanted: dict[str, str]):
        self.port, self.wanted = port, wanted
        self.statuses: Counter[str] = Counter()
        self.seconds: list[float] = []  # of answers
        self.wrong: list[str] = []

    async def run(self, clients: list[Callable[[int], Awaitable[None]]], seconds: float) -> None:
        """All clients at once, each again and again, for so long."""
        end = time.perf_counter() + seconds

        async def again(number: int, client: Callable[[int], Awaitable[None]]) -> None:
            while time.perf_counter() < end:
                await client(number)

        await asyncio.gather(*(again(number, client) for number, client in enumerate(clients)))

    async def proper(self, number: int) -> None:
        """Ask for a text, whole or streamed, and come back after a second if told so."""
        prompt, is_stream = PROMPTS[number % len(PROMPTS)], number % 2 == 1
        began = time.perf_counter()
        try:
            status, text = await self._asked(prompt, is_stream)
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            self.statuses[f"{type(error).__name__}: {error}"[:60]] += 1
            return
        self.statuses[str(status)] += 1
        if status == 200:
            self.seconds.append(time.perf_counter() - began)
            if text != self.wanted[prompt]:
                self.wrong.append(text)
        else:
            await asyncio.sleep(1)

    async def _asked(self, prompt: str, is_stream: bool) -> tuple[int, str]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(request(prompt, is_stream))
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        finally:
            writer.close()
        status = int(head.split(b" ")[1])
        if status != 200:
            json.loads(body)["error"]["message"]  # a clean refusal says why
            return status, ""
        if not is_stream:
            return status, json.loads(body)["text"]
        parts = [json.loads(line[6:]) for line in body.decode().splitlines() if line.startswith("data: ")]
        return status, "".join(part.get("text", "") for part in parts) if "reason" in parts[-1] else "cut off"

    async def slow(self, number: int) -> None:
        """Send a request a byte at a time, and never all of it."""
        await self._broken(request(PROMPTS[0], False)[:60], 0.2)

    async def deaf(self, number: int) -> None:
        """Ask for a stream and take none of it."""
        await self._broken(request(PROMPTS[1], True, 1000), 0.0, stays=5.0)

    async def leaving(self, number: int) -> None:
        """Ask for a text and leave before it has come."""
        await self._broken(request(PROMPTS[2], number % 2 == 0, 1000), 0.0, stays=0.3)

    async def nonsense(self, number: int) -> None:
        """Send what is no request."""
        await self._broken(os.urandom(300) + b"\r\n\r\n", 0.0, stays=0.3)

    async def _broken(self, content: bytes, pause: float, stays: float = 0.0) -> None:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
            for part in [content[i : i + 1] for i in range(len(content))] if pause else [content]:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(pause)
            await asyncio.sleep(stays)
            writer.transport.abort()
        await asyncio.sleep(0.2)


def request(prompt: str, is_stream: bool, tokens: int = WRITTEN) -> bytes:
    """The bytes of a request for a text."""
    body = json.dumps({"prompt": prompt, "tokens": tokens, "temperature": 0, "stream": is_stream}).encode()
    head = ["POST /api/sample HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {TOKEN}", "Connection: close"]
    return "\r\n".join([*head, f"Content-Length: {len(body)}", "", ""]).encode() + body


@contextlib.contextmanager
def serving(run: str, places: int, queue: int) -> Iterator[tuple[int, int]]:
    """Inside, the run is served: the port, and the number of the process."""
    words = ["serve", run, "--port", "0", "--places", str(places), "--queue", str(queue)]
    environment = {**os.environ, "MINIGRAD_TOKEN": TOKEN}
    process = subprocess.Popen([sys.executable, "-m", "minigrad", *words], stdout=subprocess.PIPE, env=environment)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().decode().split()[-1]
        yield int(address.split("/")[2].rpartition(":")[2]), process.pid
    finally:
        process.terminate()
        if process.wait(60) != 0:
            raise SystemExit(f"the server ended with {process.returncode}")


def memory_of(process: int) -> float:
    """Megabytes that a process holds now."""
    for line in Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return float("nan")


async def watched(process: int, seen: list[float]) -> None:
    """Note the memory of a process, twice a second."""
    while True:
        seen.append(memory_of(process))
        await asyncio.sleep(0.5)


def metrics(port: int) -> dict[str, float]:
    """What the server counts."""
    import urllib.request

    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{TOKEN}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def trained(folder: Path) -> tuple[subprocess.Popen[bytes], Path]:
    """A small training in a process of its own, and where its numbers will be."""
    words = [*TRAINING, "--out", str(folder)]
    return subprocess.Popen(
        [sys.executable, "-m", "minigrad", *words], stdout=subprocess.DEVNULL
    ), folder / "metrics.csv"


def losses(path: Path) -> list[str]:
    """What a training measured, without its times."""
    head, *rows = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()]
    kept = [place for place, name in enumerate(head) if "loss" in name or name == "step"]
    return [",".join(row[place] for place in kept) for row in rows]


async def measured(port: int, process: int, options: Any, wanted: dict[str, str], folder: Path) -> dict[str, Any]:
    """One client for each place, then all of them."""
    warm = Load(port, wanted)  # kernels may be compiled at first
    await warm.run([warm.proper] * options.places, 1)
    calm = Load(port, wanted)
    await calm.run([calm.proper] * (options.places + options.queue), options.seconds / 3)
    seen: list[float] = []
    watching = asyncio.create_task(watched(process, seen))
    load = Load(port, wanted)
    others = [load.slow, load.deaf, load.leaving, load.nonsense]
    clients = [others[i // 5 % 4] if i % 5 == 4 else load.proper for i in range(options.clients)]
    training, numbers = trained(folder / "beside")
    began = time.perf_counter()
    await load.run(clients, options.seconds)
    taken = time.perf_counter() - began
    watching.cancel()
    training.wait()
    for _ in range(100):
        state = await asyncio.to_thread(metrics, port)
        if not state["minigrad_writing"] + state["minigrad_reading"] + state["minigrad_waiting"]:
            break
        await asyncio.sleep(0.1)
    alone, own = trained(folder / "alone")
    alone.wait()
    ratio = median(load.seconds) / median(calm.seconds)
    return {
        "clients": options.clients, "places": options.places, "queue": options.queue, "seconds": round(taken, 1),
        "answers": dict(load.statuses), "a second": round(len(load.seconds) / taken, 1),
        "median, one client for each place": round(median(calm.seconds), 3),
        "median": round(median(load.seconds), 3), "ratio": round(ratio, 2),
        "95 %": round(sorted(load.seconds)[int(0.95 * len(load.seconds))], 3),
        "megabytes": {"first": round(seen[0], 1), "most": round(max(seen), 1), "last": round(memory_of(process), 1)},
        "texts that differ": len(load.wrong) + len(calm.wrong),
        "cancelled": int(state["minigrad_cancelled_total"]), "still written": int(state["minigrad_writing"]),
        "training beside it is the same": losses(numbers) == losses(own) and training.returncode == 0,
    }  # fmt: skip


def main() -> int:
    """Measure, and say whether it holds."""
    parser = arguments(__doc__)
    parser.add_argument("run", metavar="RUN", help="a trained language model")
    parser.add_argument("--clients", type=int, default=200, metavar="N", help="how many (default: 200)")
    parser.add_argument("--seconds", type=float, default=60, metavar="S", help="how long (default: 60; 4 with --quick)")
    parser.add_argument("--places", type=int, default=16, metavar="N", help="texts at once (default: 16)")
    parser.add_argument("--queue", type=int, default=64, metavar="N", help="requests that wait (default: 64)")
    add_write_option(parser)
    options = parser.parse_args()
    options.seconds = 4.0 if options.quick else options.seconds
    progress("what Python writes")
    loaded = zoo.load(options.run)
    wanted = {text: "".join(loaded.sample(text, tokens=WRITTEN, sampling=Sampling(0))) for text in PROMPTS}
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(options.run, options.places, options.queue) as (port, process),
    ):
        progress("clients ask")
        found = asyncio.run(measured(port, process, options, wanted, Path(folder)))
    is_clean = set(found["answers"]) <= {"200", "429", "503"} and not found["still written"]
    is_right = not found["texts that differ"] and found["training beside it is the same"]
    is_fast = found["ratio"] <= SLOWER
    lines = [f"{name:34} {value}" for name, value in found.items()]
    words = "clean" if is_clean else "NOT CLEAN", "right" if is_right else "WRONG", "quick" if is_fast else "SLOW"
    here = machine()
    conclude(
        options, TITLE, "\n".join([*lines, ", ".join(words)]), {**found, "machine": here, "detail": {"machine": here}}
    )
    return 0 if is_clean and is_right and is_fast else 1


if __name__ == "__main__":
    sys.exit(main())
