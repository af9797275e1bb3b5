"""How fast this machine is at what training consists of: products of matrices, reading memory, and a step of a small transformer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

__all__ = ["speeds"]

SECONDS = 3.0  # for each of the three


def speeds() -> Iterator[tuple[str, str]]:
    """(what, how fast), each as soon as it is measured; about ten seconds in all."""
    yield "products of matrices", f"{_product():,.0f} GFLOP/s (1,024 x 1,024, float32)"
    yield "memory", f"{_copy():,.1f} GB/s (read and written, float32)"
    yield "training step", f"{1e3 * _step():,.0f} ms (4 layers, width 128, 12 texts of 64 tokens)"


def _least(work: Callable[[], object]) -> float:
    """The least seconds of a call, the first two of which, which also compile, are not counted."""
    work()
    work()
    ends, least = time.perf_counter() + SECONDS, float("inf")
    while time.perf_counter() < ends:
        start = time.perf_counter()
        work()
        least = min(least, time.perf_counter() - start)
    return least


def _product() -> float:
    import numpy as np

    a = np.ones((1024, 1024), "float32")
    out = np.empty_like(a)
    return 2 * 1024**3 / _least(lambda: np.matmul(a, a, out=out)) / 1e9


def _copy() -> float:
    import numpy as np

    source = np.ones(32 << 20, "float32")
    target = np.empty_like(source)
    return 2 * source.nbytes / _least(lambda: np.copyto(target, source)) / 1e9


def _step() -> float:
    from .. import nn, ops
    from ..optim import AdamW

    model = nn.Sequential(*(nn.TransformerBlock(128, 4, 512) for _ in range(4)))
    optimizer = AdamW(model.parameters(), lr=1e-4)
    texts = ops.random.randn(12, 64, 128)

    def step() -> None:
        optimizer.zero_grad()
        (model(texts) ** 2).mean().backward()
        optimizer.step()

    return _least(step)
