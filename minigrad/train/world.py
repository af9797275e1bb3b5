"""The processes that train one model together: this one alone, unless `mpiexec -n 4 python train.py` started several.

Each rank computes its share of the rows of every batch; gradients and sums are added up over all ranks, and so every rank
takes the same step. They talk about nothing else than sums, small JSON values, and the state they begin with.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..engine.backend import backend_of, device_of, on_device_of, to_numpy
from ..kernels.threads import keep_to, launched, own_cores

__all__ = ["World", "alone", "world"]

_SLOT = 256  # bytes: what a small message fits in, so that it takes one exchange
_LONGEST_PAUSE = 1e-3  # seconds between two looks whether the others have come
_PASSING_ON = 0.5  # seconds that mpiexec is given to show a message, which it may lose once the job is ended
_PRECEDENCE = 1.0  # seconds: where all ranks fail alike, the first one's message is enough


class World:
    """A process that trains alone, and what it would ask the others for."""

    rank, size = 0, 1

    def add_up(self, arrays: Sequence[Any]) -> None:
        """Let each array, which every rank has in the same shape, become the sum of all ranks'."""

    def gather(self, value: Any) -> list[Any]:
        """The values of all ranks, in their order; small ones, that JSON can hold."""
        return [value]

    def from_first(self, value: Any) -> Any:
        """The first rank's value; those of the others do not matter."""
        return self.gather(value if self.rank == 0 else None)[0]

    def copy_first(self, arrays: Sequence[np.ndarray]) -> None:
        """Overwrite each array with the first rank's."""

    def fail(self, error: BaseException) -> None:
        """End the whole job with a message, since the others would wait for this rank without end."""

    @contextlib.contextmanager
    def bound(self) -> Iterator[None]:
        """Inside, an error on one rank is the end of all."""
        try:
            yield
        except BaseException as error:
            self.fail(error)
            raise


class Ranks(World):
    """The processes that `mpiexec` started, through mpi4py."""

    def __init__(self, mpi: Any):
        self._mpi, self._comm = mpi, mpi.COMM_WORLD
        self.rank, self.size = self._comm.rank, self._comm.size
        self._flats: dict[tuple[str, np.dtype], Any] = {}
        self._cards: dict[str, Any] = {}  # from each device to how its arrays are added up
        sys.excepthook = lambda kind, error, trace: self.fail(error)
        places = [(host, set(cores)) for host, cores in self.gather([socket.gethostname(), own_cores()])]
        host, mine = places[self.rank]
        rivals = [cores for other, cores in places if other == host]
        keep_to(int(sum(1 / sum(core in cores for cores in rivals) for core in mine) + 1e-9))

    def add_up(self, arrays: Sequence[Any]) -> None:
        kinds: dict[tuple[str, np.dtype], list[Any]] = {}
        for array in arrays:
            wide = np.result_type(array.dtype, np.float32)  # MPI does not know float16, whose sums would overflow, too
            kinds.setdefault((device_of(array), wide), []).append(array)
        for kind, group in kinds.items():
            with on_device_of(group[0]), np.errstate(all="ignore"):
                flat = self._flat(kind, group)
                self._add_up_flat(flat, kind[0])
                start = 0
                for array in group:
                    array[...] = flat[start : start + array.size].reshape(array.shape)
                    start += array.size

    def _flat(self, kind: tuple[str, np.dtype], group: Sequence[Any]) -> Any:
        """All arrays one after the other, in memory that the next step uses again."""
        xp, size = backend_of(group[0]).xp, sum(array.size for array in group)
        if kind not in self._flats or self._flats[kind].size != size:
            self._flats[kind] = xp.empty(size, kind[1])
        return xp.concatenate([array.reshape(-1) for array in group], out=self._flats[kind])

    def _add_up_flat(self, flat: Any, device: str) -> None:
        if isinstance(flat, np.ndarray):
            self._wait(self._comm.Iallreduce(self._mpi.IN_PLACE, flat))
            return
        if device not in self._cards:
            from .cards import between_cards

            self._cards[device] = between_cards(self, flat)
        if self._cards[device] is not None:
            self._cards[device](flat)
            return
        host = to_numpy(flat)
        self._add_up_flat(host, "cpu")
        flat[...] = backend_of(flat).xp.asarray(host)

    def gather(self, value: Any) -> list[Any]:
        text = json.dumps(value).encode()
        slots = self._exchange(len(text).to_bytes(8, "little") + text[: _SLOT - 8], _SLOT)
        lengths = [int.from_bytes(slot[:8], "little") for slot in slots]
        longest = max(lengths)
        texts = [slot[8:] for slot in slots] if longest <= _SLOT - 8 else self._exchange(text, longest)
        return [json.loads(text[:length]) for text, length in zip(texts, lengths)]

    def _exchange(self, content: bytes, width: int) -> list[bytes]:
        """What every rank has to say, filled up to `width` bytes."""
        received = bytearray(width * self.size)
        self._wait(self._comm.Iallgather(content.ljust(width, b"\0"), received))
        return [bytes(received[i * width : (i + 1) * width]) for i in range(self.size)]

    def copy_first(self, arrays: Sequence[np.ndarray]) -> None:
        for array in arrays:
            self._wait(self._comm.Ibcast(array.reshape(-1).view(np.uint8), root=0))

    def _wait(self, request: Any) -> None:
        """Wait without keeping a core busy that the others may need, and so that Ctrl-C is heard."""
        pause = 0.0
        while not request.Test():
            time.sleep(pause)
            pause = min(pause + 1e-5, _LONGEST_PAUSE)

    def fail(self, error: BaseException) -> None:
        if self.rank:
            time.sleep(_PRECEDENCE)
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            os.write(2, f"rank {self.rank} of {self.size} failed, which ends the job\n{trace}".encode(errors="replace"))
        time.sleep(_PASSING_ON)
        self._comm.Abort(1)
        os._exit(1)  # Abort may return before the processes are killed


_alone = False


def world() -> World:
    """All processes that train together; inside `alone`, this one."""
    return World() if _alone else _all_ranks()


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Inside, this process trains and judges for itself, while the others do something else."""
    global _alone
    before, _alone = _alone, True
    try:
        yield
    finally:
        _alone = before


@lru_cache(maxsize=1)
def _all_ranks() -> World:
    """Where they cannot reach each other the first trains alone, and says so."""
    rank, size = launched()
    if size == 1:
        return World()
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # the latter where there is mpi4py, but no MPI library
        _without_the_others(rank, size, f"mpi4py cannot be used ({str(error).splitlines()[0]})")
    else:
        if MPI.COMM_WORLD.size == size:
            return Ranks(MPI)
        _without_the_others(rank, size, "mpi4py uses another MPI than the mpiexec that started them")
    return World()


def _without_the_others(rank: int, size: int, problem: str) -> None:
    """Copies that each train the same would only be in each other's way."""
    if rank:
        raise SystemExit(0)
    warnings.warn(
        f"{size} processes were started, but {problem}: this one trains alone, and the others leave. "
        "`pip install 'minigrad[mpi]'` brings mpi4py, MPICH and its mpiexec.",
        RuntimeWarning,
        stacklevel=3,
    )
