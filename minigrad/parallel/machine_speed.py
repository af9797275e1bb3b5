"""How fast this machine computes, for plans: products of matrices, and blocks of a model compared with them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from threading import Thread
from time import perf_counter
from typing import Any

import numpy as np

from ..engine.graph import sweep
from ..nn import TransformerBlock
from ..ops.creation import tensor
from ..random import shard_of_step
from ..runtime.threads import available_cores, single_threaded_blas
from .patches import set_data

__all__ = ["measured_boost", "measured_efficiency", "measured_rate"]

MEASURED = 4e9  # floating-point operations of a block, to measure it with


def measured_rate(seconds: float = 0.5) -> float:
    """Floating-point operations a second of one core, in a product of matrices in float32, while all cores compute.

    Alone, a core may be twice as fast: what a system calls two cores can be two threads of one.
    """
    return 2 * 512**3 / _seconds(_product(), seconds)


def measured_boost(seconds: float = 0.25) -> float:
    """How many times as fast a core is while the others rest."""
    if len(available_cores()) == 1:
        return 1.0
    return max(_seconds(_product(), seconds) / _seconds(_product(), seconds, 1), 1.0)


def _product() -> Callable[[], Any]:
    a, b = (np.random.default_rng(i).random((512, 512), np.float32) for i in range(2))
    return lambda: a @ b


def measured_efficiency(block: TransformerBlock, length: int, rate: float | None = None) -> float:
    """The share of the rate, measured here unless given, at which a block computes forward and backward; its weights are not looked at."""
    rate = measured_rate() if rate is None else rate
    own = copy.deepcopy(block)
    for p in own.parameters():
        set_data(p, np.full(p.shape, 0.01, np.float32))
    dim = own.dim
    size = sum(p.size for p in own.parameters())
    positions = min(length, 128)
    rows = max(min(round(MEASURED / (6 * size * positions)), 2048 // positions), 1)
    x, memory = (np.random.default_rng(i).random((rows, positions, dim), np.float32) for i in range(2))

    def step() -> None:
        with shard_of_step(0, 0, rows):
            made = own(tensor(x), *([] if own.cross_attention is None else [tensor(memory)]))
        sweep([(made.node, np.ones_like(made.data))])

    work = 6 * rows * positions * size + 12 * rows * positions**2 * dim
    return work / _seconds(step) / rate


def _seconds(function: Callable[[], Any], seconds: float = 0.0, cores: int | None = None) -> float:
    """How long a call takes while each core computes one: the median of at least three, which last so many seconds."""
    times: list[float] = []

    def measure() -> None:
        function()
        begin, count = perf_counter(), 0
        while count < 3 or perf_counter() - begin < seconds:
            start = perf_counter()
            function()
            times.append(perf_counter() - start)
            count += 1

    threads = [Thread(target=measure) for _ in range(cores or len(available_cores()))]
    with single_threaded_blas():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return float(np.median(times))
