"""What a rank says before it ends the job."""

from __future__ import annotations

import contextlib
import os
import sys
import time

__all__ = ["tell"]

_PRINTING = 0.5  # seconds for mpiexec to print a message, which it may lose once the job has ended
_PRECEDENCE = 1.0  # seconds: where all ranks fail alike, the first one's message is enough


def tell(message: str, rank: int, size: int) -> None:
    """Print why this rank ends the job."""
    if rank:
        time.sleep(_PRECEDENCE)
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        os.write(2, f"rank {rank} of {size} failed, which ends the job\n{message}".encode(errors="replace"))
    time.sleep(_PRINTING)
