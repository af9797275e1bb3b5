"""The numbers of a graph: where they still are, or computed again.

Who watched (`mg.debug()`, or a graph made by calling a model) has every number. Of a graph that nobody watched, values are
found in tensors that variables hold and in what ops keep for their gradients; and the rest is computed again where its
inputs are known. Memory that was written to since tells nothing about what was there before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..engine.backend import backend_of, is_array, on_device_of, to_numpy
from ..engine.graph import Node
from ..engine.tensor import Tensor
from ..engine.writes import writes

__all__ = ["UNKNOWN", "inputs_of", "plain", "saved_of", "values_of"]

UNKNOWN: Any = object()  # an input that nobody kept; None is an input that was not given


def plain(array: Any) -> Any:
    """A NumPy array; a copy of what lies elsewhere."""
    return None if array is None else np.asarray(to_numpy(array) if is_array(array) else array)


def saved_of(node: Node) -> dict[str, Any]:
    """What a node holds for its gradient, by the names that its rules use."""
    return dict(zip(node.plan.names, node.saved)) if node.saved is not None else {}


def inputs_of(node: Node) -> list[Any]:
    """What went into an op, an entry for each parent; UNKNOWN where it is gone, or was overwritten since."""
    return [UNKNOWN if is_overwritten(value, node) else value for value in _inputs(node)]


def is_overwritten(value: Any, node: Node) -> bool:
    """Whether an array was written to after a node had used it."""
    return is_array(value) and node.time < writes.latest and writes.time(value) > node.time


def _inputs(node: Node) -> list[Any]:
    signature = node.plan.op.signature
    gone = [UNKNOWN] * len(node.parents)
    if node.plan.op.name == "_recompute":  # it comes from all that its function came from, whatever it was given
        return gone
    if node.seen is not None:
        return list(node.seen.inputs)
    saved = saved_of(node)
    if signature.variadic:
        return list(saved.get(signature.inputs[0], gone))
    return [saved.get(name, UNKNOWN) for name in signature.inputs]


def values_of(
    nodes: Sequence[Node], roots: Sequence[Tensor], known: Iterable[Tensor], parents: Mapping[Node, Sequence[Any]]
) -> dict[Node, Any]:
    """The arrays that nodes stand for, as far as they can be told; a tuple where an op has several results."""
    values: dict[Node, Any] = {}
    for tensor in (*roots, *known):
        if tensor.node is not None:
            values.setdefault(tensor.node, tensor.data)
    for node in nodes:
        for value, parent in zip(_inputs(node), parents[node]):
            if parent is None or value is None or value is UNKNOWN:
                continue
            if parent.plan is None or not is_overwritten(value, node):  # a leaf is whatever it is by now
                values.setdefault(parent, value)
        out = node.seen.out if node.seen is not None else saved_of(node).get("out")
        if out is not None and not _is_replaced(out, node):
            values.setdefault(node, out)
    for node in nodes:
        if node not in values and (out := _computed(node, parents[node], values)) is not None:
            values[node] = out
    return values


def _is_replaced(out: Any, node: Node) -> bool:
    """Whether the memory of a result has another content by now; what a write in place wrote itself is its own result."""
    return is_overwritten(out, node) and not writes.wrote_last(out, node, node)


def _computed(node: Node, parents: Sequence[Any], values: Mapping[Node, Any]) -> Any:
    """The value again, where all inputs are known; drawing must not fail because an op does."""
    if node.plan.picks is not None:
        together = values.get(parents[0])
        return None if together is None else together[node.plan.picks]
    inputs = [
        value if value is not UNKNOWN else UNKNOWN if parent is None else values.get(parent, UNKNOWN)
        for value, parent in zip(inputs_of(node), parents)
    ]
    if any(value is UNKNOWN or is_overwritten(value, node) for value in inputs):
        return None
    array = next((value for value in inputs if is_array(value)), np.zeros(()))
    try:
        with on_device_of(array), np.errstate(all="ignore"):
            if node.plan.fused:
                *given, kernel, _, attrs = node.saved
                return kernel.forward(*given, **attrs)[0]
            out = node.plan.op.forward(backend_of(array).xp, *inputs, **node.attrs)
            return tuple(out) if node.plan.op.several else out
    except Exception:
        return None
