"""Collectives as differentiable ops: what one rank computes may depend on the arrays of others, and gradients go back there.

The gradient of a collective is a collective: that of a sum over ranks is the sum of the ranks' gradients, that of a send is a
receive. So a backward pass communicates in the reverse order of its forward pass, and all ranks of a group must call
the same collectives in the same order. The objective is the sum of the objectives of all ranks; with `alike` the ranks of the group
compute one and the same objective from the result, which then counts once.

They are no part of the registry of ops, whose tests run each op by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engine.graph import leaf
from ..engine.op import Op
from ..engine.tensor import Tensor, wrap
from ..ops.creation import zeros
from ..runtime.process_group import ProcessGroup
from .mesh import part_edges, part_sizes

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "broadcast",
    "part",
    "receive",
    "reduce_scatter",
    "replicated",
    "send",
]


@Op
def all_reduce(xp: Any, a: Any, *, group: Any, alike: bool = False) -> Any:
    """The sum over all ranks."""
    result = xp.array(a)
    group.all_reduce([result])
    return result


all_reduce.vjp(a=lambda g, group, alike: g if alike else all_reduce(g, group=group))


@Op
def replicated(xp: Any, a: Any, *, group: Any) -> Any:
    """A value that all ranks have alike, for computations that differ between ranks: their gradients are summed."""
    return a[...]


replicated.vjp(a=lambda g, group: all_reduce(g, group=group))


@Op
def all_gather(xp: Any, a: Any, *, axis: int, group: Any, whole: int | None = None, alike: bool = False) -> Any:
    """The parts of all ranks, joined along an axis, which has `whole` elements then."""
    axis %= a.ndim
    sizes = part_sizes(a.shape[axis] * group.size if whole is None else whole, group.size)
    first = xp.moveaxis(a, axis, 0)
    each = int(np.prod(first.shape[1:]))
    flat = group.all_gather_array(first, [size * each for size in sizes])
    return xp.ascontiguousarray(xp.moveaxis(flat.reshape(sum(sizes), *first.shape[1:]), 0, axis))


@all_gather.vjp
def _all_gather_gradient(g, axis, group, alike):
    return (part(g, axis=axis, group=group) if alike else reduce_scatter(g, axis=axis, group=group),)


@Op
def reduce_scatter(xp: Any, a: Any, *, axis: int, group: Any) -> Any:
    """The sum over all ranks, of which each rank gets its part along an axis."""
    axis %= a.ndim
    sizes = part_sizes(a.shape[axis], group.size)
    first = xp.moveaxis(a, axis, 0)
    each = int(np.prod(first.shape[1:]))
    flat = group.reduce_scatter(first, [size * each for size in sizes])
    return xp.ascontiguousarray(xp.moveaxis(flat.reshape(sizes[group.rank], *first.shape[1:]), 0, axis))


reduce_scatter.vjp(
    a=lambda g, axis, group, a_shape: all_gather(g, axis=axis, group=group, whole=a_shape[axis % len(a_shape)])
)


@Op
def part(xp: Any, a: Any, *, axis: int, group: Any) -> Any:
    """This rank's part along an axis of a value that all ranks have alike."""
    start, stop = part_edges(a.shape[axis], group.size)[group.rank]
    return xp.ascontiguousarray(a[(*[slice(None)] * (axis % a.ndim), slice(start, stop))])


part.vjp(a=lambda g, axis, group, a_shape: all_gather(g, axis=axis, group=group, whole=a_shape[axis % len(a_shape)]))


@Op
def broadcast(xp: Any, a: Any, *, root: int, group: Any) -> Any:
    """The value of rank `root`, on every rank."""
    result = xp.array(a) if group.rank == root else xp.zeros(a.shape, a.dtype)
    group.all_reduce([result])
    return result


broadcast.vjp(a=lambda g, root, group: all_reduce(g, group=group) * (1 if group.rank == root else 0))


@Op
def all_to_all(xp: Any, a: Any, *, group: Any, given: Any, got: Any) -> Any:
    """`given[r]` rows go to rank r, and `got[r]` rows come from it: (rows, …) -> (rows received, …)."""
    each = int(np.prod(a.shape[1:]))
    flat = group.all_to_all(a, [n * each for n in given], [n * each for n in got])
    return flat.reshape(sum(got), *a.shape[1:])


all_to_all.vjp(a=lambda g, group, given, got: all_to_all(g, group=group, given=got, got=given))


@Op
def _send(xp, a, *, group, to):
    group.send(a, to)
    return xp.zeros((), a.dtype)


@_send.vjp
def _send_gradient(g, group, to, a_shape, a_dtype):
    return (_receive(g, group=group, source=to, shape=a_shape, dtype=a_dtype),)


def send(a: Tensor, group: ProcessGroup, to: int) -> Tensor:
    """Send a value to a rank. The result is 0, and its backward waits for the gradient from there."""
    if a.node is None:  # the other rank sends a gradient all the same
        a = wrap(a.data, leaf(a.data))
    return _send(a, group=group, to=to)


@Op
def _receive(xp, like, *, group, source, shape, dtype):
    return xp.asarray(group.receive(shape, dtype, source))


@_receive.vjp
def _receive_gradient(g, group, source):
    group.send(g, source)
    return (None,)


def receive(shape: tuple[int, ...], dtype: Any, group: ProcessGroup, source: int, device: str = "cpu") -> Tensor:
    """What a rank sends; its gradient is sent back there."""
    anchor = zeros((), dtype=dtype, device=device).data
    return _receive(wrap(anchor, leaf(anchor)), group=group, source=source, shape=shape, dtype=np.dtype(dtype))
