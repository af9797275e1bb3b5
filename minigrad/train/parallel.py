"""Every core at work on one batch: its rows are divided among ranks and threads, each with a forward and a backward of its own.

No thread waits for another within a pass, and every operation, not only the large matrix products, uses every core. The
gradients are those of the whole batch, up to the order of summation: the sums are added up share by share, so a given
number of threads always gives the same bits. Dropout draws do not depend on the division (engine.draws).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..engine.backend import device_of
from ..engine.draws import dividing, new_seed
from ..engine.graph import Node, store, sweep
from ..engine.modes import local
from ..engine.tensor import Tensor
from ..kernels.threads import blas_obeys, cores, run_all, single_blas
from .world import World

__all__ = ["Share", "add_up", "couples", "divide", "of_rank", "on_every_core"]

WORTHWHILE = 3_000_000  # weights times rows: below, waking a thread takes longer than it saves


class Share(NamedTuple):
    """Some rows of a batch: `batch`, which row of the whole batch is its first, how many, and whether they count."""

    batch: Any
    first: int
    rows: int
    counts: bool = True


def divide(batch: Any, count: int) -> list[Share]:
    """The batch in at most `count` shares of nearly equal size; itself, alone, where it is not clear what its rows are."""
    rows = _rows(batch)
    if rows is None:
        return [Share(batch, 0, 1)]
    edges = np.linspace(0, rows, min(count, max(rows, 1)) + 1).astype(int).tolist()
    return [Share(_cut(batch, slice(a, b)), a, b - a) for a, b in zip(edges, edges[1:])]


def _arrays(batch: Any) -> Iterator[Any]:
    if isinstance(batch, Mapping):
        batch = tuple(batch.values())
    if isinstance(batch, (tuple, list)):
        for part in batch:
            yield from _arrays(part)
    else:
        yield batch


def _rows(batch: Any) -> int | None:
    """How many rows all parts of a batch have; None if they do not agree, or one cannot be cut."""
    counts = {len(x) if _has_rows(x) else None for x in _arrays(batch)}
    return counts.pop() if len(counts) == 1 else None


def _has_rows(x: Any) -> bool:
    """A text has characters, which are not examples."""
    return hasattr(x, "__getitem__") and getattr(x, "shape", (1,)) != () and not isinstance(x, (str, bytes))


def _cut(batch: Any, rows: slice) -> Any:
    if isinstance(batch, Mapping):
        return {name: _cut(part, rows) for name, part in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*[_cut(part, rows) for part in batch])
    if isinstance(batch, (tuple, list)):
        return type(batch)(_cut(part, rows) for part in batch)
    return batch[rows]


def of_rank(batch: Any, world: World) -> Share:
    """The rows of a batch that this rank computes.

    Where there are fewer rows than ranks, some ranks compute the first row for nothing: so every rank learns which terms
    the loss has, and calls it equally often. Likewise a batch that cannot be divided is computed by all and counted once.
    """
    if world.size == 1:
        return Share(batch, 0, _rows(batch) or 1)
    rows = _rows(batch)
    if rows is None:
        warnings.warn("batches that cannot be cut into rows are computed by every rank", RuntimeWarning, stacklevel=2)
        return Share(batch, 0, 1, counts=world.rank == 0)
    shares = divide(batch, world.size)
    if world.rank < len(shares):
        return shares[world.rank]
    return Share(_cut(batch, slice(0, 1)), 0, 1, counts=False)


def couples(model: Any, loss: Any) -> str | None:
    """What makes an example's result, or a hook's, depend on the rest of the batch; None if nothing does."""
    if getattr(loss, "couples_batch", False):
        return type(loss).__name__
    for name, module in model.named_modules():
        if module.couples_batch:
            return f"{type(module).__name__} {name!r}"
    for name, p in model.named_parameters():
        if p.node is not None and p.node.hooks:
            return f"the hook on the gradient of {name!r}"
    return None


def on_every_core(model: Any, loss: Any, share: Share, threads: int | None) -> list[Share]:
    """The parts that a share of a batch should be divided into: one where dividing would be wrong, or would not pay."""
    count = cores() if threads is None else threads
    if count == 1 or local.mode.debug or not share.counts:
        return [share]
    params = list(model.parameters())
    if threads is None and sum(p.size for p in params) * share.rows < WORTHWHILE or not blas_obeys():
        return [share]
    if couples(model, loss) is not None or any(device_of(p.data) != "cpu" for p in params):
        return [share]
    return [part._replace(first=share.first + part.first) for part in divide(share.batch, count)]


def forward_all(compute: Callable[[Any], Any], shares: Sequence[Share]) -> list[Any]:
    """What `compute` makes of each share, all at once; random draws are those of the whole batch."""
    seed = new_seed()

    def run(share: Share) -> Any:
        with dividing(seed, share.first, share.rows):
            return compute(share.batch)

    if len(shares) == 1:
        return [run(shares[0])]
    with single_blas():
        return run_all([partial(run, share) for share in shares])


def backward_shares(totals: Sequence[Tensor]) -> None:
    """Add the gradients of all shares' losses to `.grad`, in their order."""
    seeds = [[(total.node, np.ones_like(total.data))] for total in totals]
    with single_blas():
        store(add_up(run_all([partial(sweep, seed) for seed in seeds])))  # type: ignore[arg-type]


def add_up(results: Sequence[dict[Node, Any]]) -> dict[Node, Any]:
    """The sums of the shares' gradients, computed by all threads, each for some of the parameters."""
    nodes = list(dict.fromkeys(node for result in results for node in result))

    def add(own: list[Node]) -> dict[Node, Any]:
        sums = {}
        for node in own:
            first, *others = [result.pop(node) for result in results if node in result]
            for other in others:
                first = first + other
            sums[node] = first
        return sums

    parts = run_all([partial(add, nodes[i :: len(results)]) for i in range(len(results))])
    return {node: g for part in parts for node, g in part.items()}
