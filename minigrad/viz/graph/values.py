"""The numbers of a graph: where they still are, or computed again.

Who watched (`mg.debug()`, or a graph made by calling a model) has every number. Of a graph that nobody watched, values are
found in tensors that variables hold and in what ops keep for their gradients; and the rest is computed again where its
inputs are known. Memory that was written to since tells nothing about what was there before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...engine.backend import as_array, backend_of, is_array, on_device_of
from ...engine.graph import Node
from ...engine.tensor import Tensor
from ...engine.writes import writes

__all__ = ["UNKNOWN", "input_names", "inputs_of", "is_freed", "saved_by_name", "saved_values", "values_of"]

UNKNOWN: Any = object()  # an input that nobody kept; None is an input that was not given


def input_names(op: Any, count: int) -> list[str]:
    """What an op calls its inputs; those of an op that takes any number are numbered."""
    names: list[str] = op.signature.inputs
    return [f"{names[0]}{i}" for i in range(count)] if op.signature.variadic else names


def is_freed(node: Node | None) -> bool:
    """Whether a `backward()` has freed what the rules of an op need, and nobody watched it."""
    if node is None or node.plan is None or node.plan.output_index is not None or node.saved is not None:
        return False
    return node.note is None or bool(node.plan.by_kernel)


def saved_by_name(node: Node) -> dict[str, Any]:
    """What a node holds for its gradient, by the names that its rules use."""
    return dict(zip(node.plan.names, node.saved)) if node.saved is not None else {}


def saved_values(node: Node) -> Any:
    """What the rules need; after a backward that freed it, from what was seen; None if it is gone or was overwritten."""
    saved = node.saved
    if saved is None and not is_freed(node):
        saved = node.plan.save(node.note.inputs, _result(node), node.attrs)
    if saved is None:
        return None
    arrays = [array for value in saved for array in (value if isinstance(value, tuple) else (value,))]
    return None if any(is_overwritten(array, node) for array in arrays) else saved


def inputs_of(node: Node) -> list[Any]:
    """What went into an op, an entry for each parent; UNKNOWN where it is gone, or was overwritten since."""
    return [UNKNOWN if is_overwritten(value, node) else value for value in _inputs(node)]


def is_overwritten(value: Any, node: Node) -> bool:
    """Whether an array was written to after a node had used it."""
    return is_array(value) and node.time < writes.latest and writes.time(value) > node.time


def _inputs(node: Node) -> list[Any]:
    signature, gone = node.plan.op.signature, [UNKNOWN] * len(node.parents)
    if node.plan.op.name == "_recompute":  # it comes from all that its function came from, whatever it was given
        return gone
    if node.note is not None and node.plan.output_index is None:
        return list(node.note.inputs)
    saved, names = saved_by_name(node), signature.inputs
    return list(saved.get(names[0], gone)) if signature.variadic else [saved.get(name, UNKNOWN) for name in names]


def _result(node: Node) -> Any:
    """What an op computed; a tuple where it has several results, None where nobody watched or kept it."""
    if node.note is None:
        return saved_by_name(node).get("out") if not node.plan.by_kernel else None
    outs = node.note.outputs
    return outs if node.plan.op.several else outs[node.plan.output_index or 0]


def values_of(
    nodes: Sequence[Node], roots: Sequence[Tensor], known: Iterable[Tensor], parents: Mapping[Node, Sequence[Any]]
) -> dict[Node, Any]:
    """The arrays that nodes stand for, as far as they can be told; a tuple where an op has several results."""
    values: dict[Node, Any] = {}
    for tensor in (*roots, *known):
        if tensor.node is not None and tensor.data is not None:
            values.setdefault(tensor.node, tensor.data)
    for node in nodes:
        for value, parent in zip(_inputs(node), parents[node]):
            if parent is None or value is None or value is UNKNOWN:
                continue
            if parent.plan is None or not is_overwritten(value, node):  # a leaf is whatever it is by now
                values.setdefault(parent, value)
        out = _result(node)
        # Memory with another content by now tells nothing; but what a write in place wrote is its own result.
        if out is not None and (not is_overwritten(out, node) or writes.wrote_last(out, node, node)):
            values.setdefault(node, out)
    for node in nodes:
        if node not in values and (out := _computed(node, parents[node], values)) is not None:
            values[node] = out
    return values


def _computed(node: Node, parents: Sequence[Any], values: Mapping[Any, Any]) -> Any:
    """The value again, where all inputs are known; drawing must not fail because an op does."""
    if node.plan.output_index is not None:
        together = values.get(parents[0])
        return None if together is None else together[node.plan.output_index]
    pairs = zip(inputs_of(node), parents)
    inputs = [values.get(parent, UNKNOWN) if value is UNKNOWN else value for value, parent in pairs]
    if any(value is UNKNOWN or is_overwritten(value, node) for value in inputs):
        return None
    array = next((value for value in inputs if is_array(value)), np.zeros(()))
    try:
        with on_device_of(array), np.errstate(all="ignore"):
            if node.plan.by_kernel:
                *given, kernel, _, attrs = node.saved
                return kernel.forward(*given, **attrs)[0]
            out = node.plan.op.forward(backend_of(array).xp, *inputs, **node.attrs)
            return tuple(out) if node.plan.op.several else as_array(out)
    except Exception:
        return None
