"""How long a rank waits for the others: MINIGRAD_TIMEOUT seconds; unless it is set, two minutes to start, then half an hour."""

from __future__ import annotations

import math
import os
import select
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import ArgumentError

__all__ = ["timeout", "waited", "watchdog"]

VARIABLE, STARTING, USUAL = "MINIGRAD_TIMEOUT", 120.0, 1800.0


def timeout(usual: float = USUAL) -> float:
    """The seconds that a rank waits for the others, at most."""
    text = os.environ.get(VARIABLE, "")
    if not text:
        return usual
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        raise ArgumentError(f"{VARIABLE} is no time to wait", "seconds, above 0", repr(text), f"{VARIABLE}=60")
    return seconds


def waited(what: str, seconds: float) -> str:
    """The message of a rank that has waited for too long."""
    return (
        f"waited {seconds:g} seconds for {what}, in vain\n"
        f"  {'fix:':9} look above for a rank that failed or left, and whether every machine has minigrad and mpi4py; "
        f"for longer waits set {VARIABLE}, in seconds"
    )


@contextmanager
def watchdog(what: str, rank: int, size: int, usual: float = STARTING) -> Iterator[None]:
    """Inside, this process is killed, with a message, if it takes longer than `timeout(usual)`.

    A call into a library that holds Python's lock cannot be ended by a thread or a signal handler, but by a child process.
    """
    seconds = timeout(usual)
    if not hasattr(os, "fork"):
        yield
        return
    reading, writing = os.pipe()
    parent = os.getpid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads; this child starts none
        child = os.fork()
    if not child:
        os.close(writing)
        if not select.select([reading], [], [], seconds)[0]:  # the end of the parent would be readable as well
            os.write(2, f"rank {rank} of {size} {waited(what, seconds)}\n".encode())
            os.kill(parent, signal.SIGKILL)
        os._exit(0)
    os.close(reading)
    try:
        yield
    finally:
        os.close(writing)
        os.waitpid(child, 0)
