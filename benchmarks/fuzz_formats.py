"""Read many spoilt files of weights and tokenizers: each must be read or refused with an error of minigrad's, in little memory and time.

    python -m benchmarks.fuzz_formats [--count 100000] [--quick] [--json]

The files are small ones of every format that `minigrad.formats` and `minigrad.tokenizers` read, with bits flipped, parts cut, moved and joined, and
numbers set to extremes. They are read in a process that may not grow by more than 200 MB. Every case is made from its number,
so a failure can be looked at again. It resumes where it stopped.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections import Counter
from typing import Any

from .soak import Soak, helpers

BATCH = 2000
SECONDS = 10  # that one file may take, on a busy machine
ROOM = 200 << 20


def limit_memory() -> None:
    """Let this process take no more than `ROOM` bytes beyond what it has, where the system can do that."""
    try:
        import resource

        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[0])
        allowed = pages * resource.getpagesize() + ROOM
        resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))
    except (ImportError, OSError):  # on Windows and macOS
        pass


def read_batch(first: int, at: Any, answer: Any) -> None:
    """Read a batch of files; how each ended goes into `answer`, and the number of the current one into `at`."""
    helpers()
    from support import hostile_files as hostile  # type: ignore[import-not-found]
    from support.folders import in_memory  # type: ignore[import-not-found]

    outcomes: Counter[str] = Counter()
    failures = []
    with in_memory() as folder:
        places = {kind: hostile.place_for(kind, folder) for kind in hostile.KINDS}
        for kind, (content, read) in hostile.KINDS.items():  # what is loaded late is loaded before the limit
            places[kind].write_bytes(content)
            read(places[kind])
        limit_memory()
        for seed in range(first, first + BATCH):
            at.value = seed
            kind, content = hostile.case(seed)
            places[kind].write_bytes(content)
            start = time.perf_counter()
            try:
                outcomes[f"{kind} {hostile.outcome(kind, places[kind])}"] += 1
            except Exception as error:
                failures.append(f"case {seed}: {kind}: {type(error).__name__}: {str(error)[:200]}")
            if time.perf_counter() - start > SECONDS:
                failures.append(f"case {seed}: {kind}: took {time.perf_counter() - start:.0f} s")
    answer.put((outcomes, failures))


def main() -> int:
    soak = Soak("fuzz_formats", __doc__, {"count": 100_000}, {"count": 2000})
    context = multiprocessing.get_context("spawn")

    def piece(first: int) -> int:
        at, answer = context.Value("q", first), context.Queue()
        process = context.Process(target=read_batch, args=(first, at, answer))
        process.start()
        try:
            outcomes, failures = answer.get(timeout=BATCH * SECONDS / 20)
        except Exception:
            process.kill()
            raise AssertionError(f"case {at.value}: the process that read it hung or was killed") from None
        finally:
            process.join()
        soak.outcomes.update(outcomes)
        soak.failures += failures
        return BATCH

    soak.run("count", piece, "spoilt files")
    return soak.report()


if __name__ == "__main__":
    sys.exit(main())
