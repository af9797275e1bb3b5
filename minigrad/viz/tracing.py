"""From the engine's nodes to boxes that can be drawn: each value with its op, name, shape, numbers and cost.

Who watched (`mg.debug()`, or a graph made by calling a model) has every number. Of a graph that nobody watched, values are
found where they still are: in tensors that variables hold, in what ops keep for their gradients; and the rest is computed
again where its inputs are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np

from ..engine.backend import is_array, to_numpy
from ..engine.graph import Node, collect
from ..engine.modes import Call
from ..engine.tensor import Tensor
from ..nn.module import Module, Parameter
from .costs import bytes_of, flops_of
from .numbers import number

__all__ = ["Box", "Input", "boxes_of", "key_of", "names_in"]


@dataclass
class Input:
    """What goes into an op under a name: a box, a number that is written into the op's own box, or something unknown."""

    name: str
    source: Box | None = None
    text: str = ""


@dataclass(eq=False)
class Box:
    """One value: made by an op, or given."""

    kind: str  # "op", "parameter", "input" or "constant"
    op: str  # its name, "" where nothing was computed
    name: str
    shape: Any
    dtype: str
    id: str = ""
    inputs: list[Input] = field(default_factory=list)
    attrs: dict[str, Any] = field(default_factory=dict)
    value: Any = None  # an array, or None where it is not known
    gradient: Any = None
    keeps: list[str] = field(default_factory=list)  # what the op holds for its gradient
    is_kept: bool = False  # whether an op holds this value for its gradient
    is_output: bool = False
    line: str = ""
    seconds: float | None = None
    bytes: int = 0
    flops: int = 0
    calls: tuple[Call, ...] = ()
    node: Node | None = None
    failed: bool = False

    @property
    def label(self) -> str:
        """What it is called: its name, or else that of its op."""
        return self.name or self.op.strip("_") or self.kind


def names_in(frame: FrameType | None) -> dict[int, tuple[str, Tensor]]:
    """Tensors that variables hold, here and in who called, by the identity of their node or else of their array: name and tensor.

    A parameter is named by its path in the module that a variable holds.
    """
    found: dict[int, tuple[str, Tensor]] = {}
    while frame is not None:
        if not frame.f_globals.get("__name__", "").startswith("minigrad."):
            for name, value in list(frame.f_locals.items()):
                if isinstance(value, Module):
                    for path, parameter in value.named_parameters():
                        found.setdefault(key_of(parameter), (path, parameter))
                elif isinstance(value, Tensor) and not name.startswith("_"):
                    found.setdefault(key_of(value), (name, value))
        frame = frame.f_back
    return found


def key_of(tensor: Tensor) -> int:
    """By what a tensor is known: its node, or else its array."""
    return id(tensor.data) if tensor.node is None else id(tensor.node)


def boxes_of(roots: Sequence[Tensor], known: Mapping[int, tuple[str, Tensor]], inputs: Iterable[Any] = ()) -> list[Box]:
    """Every value that `roots` were made from, oldest first, with the names and numbers that are `known`."""
    nodes = list(reversed(collect([root.node for root in roots if root.node is not None])))
    return _Tracer(nodes, known, {id(array): array for array in inputs}).boxes(roots)


class _Tracer:
    def __init__(self, nodes: list[Node], known: Mapping[int, tuple[str, Tensor]], given: dict[int, Any]):
        self.nodes, self.known, self.given = nodes, known, given
        self.made: dict[Any, Box] = {}  # by node, or by the identity of a constant's array
        self.order: list[Box] = []
        self.values: dict[Node, Any] = {}
        self.scopes: dict[tuple[str, ...], Call] = {}

    def boxes(self, roots: Sequence[Tensor]) -> list[Box]:
        self._find_values(roots)
        for node in self.nodes:
            self._add_op(node)
        for root in roots:
            box = self.made.get(root.node) if root.node is not None else self._constant(root.data)
            if box is None:
                box = self._leaf(root.node, root)
            box.is_output = True
        for index, box in enumerate(self.order):
            box.id = f"b{index}"
        return self.order

    def _find_values(self, roots: Sequence[Tensor]) -> None:
        for name_and_tensor in self.known.values():
            tensor = name_and_tensor[1]
            if tensor.node is not None:
                self.values.setdefault(tensor.node, tensor.data)
        for root in roots:
            if root.node is not None:
                self.values[root.node] = root.data
        for node in self.nodes:  # what was seen, or is kept for gradients
            inputs = _inputs(node)
            for value, parent in zip(inputs, node.parents):
                if parent is not None and value is not None:
                    self.values.setdefault(parent, value)
            out = node.seen.out if node.seen is not None else _saved(node).get("out")
            if out is not None:
                self.values.setdefault(node, out)
        for node in self.nodes:
            if node not in self.values:
                out = self._computed(node)
                if out is not None:
                    self.values[node] = out

    def _computed(self, node: Node) -> Any:
        """The value again, where all inputs are known; drawing must not fail because an op does."""
        inputs = [self.values.get(p) if p is not None else v for p, v in zip(node.parents, _inputs(node))]
        if node.plan.picks is not None:
            return None if inputs[0] is None else inputs[0][node.plan.picks]
        if node.saved is None and any(value is None for value in inputs):
            return None
        try:
            if node.plan.fused:
                *given, kernel, _, attrs = node.saved
                return kernel.forward(*given, **attrs)[0]
            return node.plan.op.forward(np, *inputs, **node.attrs)
        except Exception:
            return None

    def _add_op(self, node: Node) -> None:
        op, picks = node.plan.op, node.plan.picks
        box = Box(
            "op", op.name if picks is None else "output", self._name(node), node.shape, str(node.dtype), node=node
        )
        if op.several and picks is None:
            box.dtype = ", ".join(map(str, node.dtype))
        names = (
            op.signature.inputs
            if not op.signature.variadic
            else [f"{op.signature.inputs[0]}{i}" for i in range(len(node.parents))]
        )
        values = _inputs(node)
        for name, parent, value in zip(names, node.parents, values):
            box.inputs.append(self._input(name, parent, value))
        for name, value in node.attrs.items():
            for array in value if isinstance(value, tuple) else (value,):
                if is_array(array) and array.ndim:  # as the row numbers that an index is
                    box.inputs.append(Input(name, self._constant(array)))
        box.attrs = {k: v for k, v in node.attrs.items() if _is_plain(v)}
        box.keeps = [n for n in (_saved(node) if node.saved is not None else {}) if n in (*op.signature.inputs, "out")]
        for entry in box.inputs:
            if entry.source is not None and (entry.name in box.keeps or op.signature.variadic and box.keeps):
                entry.source.is_kept = True
        box.is_kept = "out" in box.keeps
        out = self.values.get(node)
        box.value = _plain(out) if not isinstance(out, tuple) else None
        box.gradient = None if node.grad is None else _plain(node.grad)
        box.line = node.line or ""
        box.calls = node.seen.calls if node.seen is not None else self._calls(node.scope)
        if picks is None:
            known = [self.values.get(p) if p is not None else v for p, v in zip(node.parents, values)]
            result = (
                out
                if out is not None
                else np.broadcast_to(np.zeros((), node.dtype), node.shape)
                if not op.several
                else ()
            )
            box.bytes, box.flops = bytes_of(known, result), flops_of(op.name, known, result, node.attrs)
            box.seconds = node.seen.seconds if node.seen is not None else None
        self.made[node] = box
        self.order.append(box)

    def _input(self, name: str, parent: Node | None, value: Any) -> Input:
        if parent is not None:
            return Input(name, self.made.get(parent) or self._leaf(parent))
        if value is None:
            return Input(name, text="?")
        if not is_array(value) or value.ndim == 0 and id(value) not in self.known:
            return Input(name, text=number(value) if np.ndim(value) == 0 else str(value))
        return Input(name, self._constant(value))

    def _leaf(self, node: Any, tensor: Tensor | None = None) -> Box:
        name, found = self.known.get(id(node), ("", tensor))
        kind = "parameter" if isinstance(found, Parameter) else "input"
        box = Box(kind, "", name, node.shape, str(node.dtype), value=_plain(self.values.get(node)), node=node)
        box.gradient = None if node.grad is None else _plain(node.grad)
        self.made[node] = box
        self.order.append(box)
        return box

    def _constant(self, array: Any) -> Box:
        array = self._given(array)
        box = self.made.get(id(array))
        if box is None:
            name, _ = self.known.get(id(array), ("", None))
            kind = "input" if id(array) in self.given else "constant"
            box = Box(kind, "", name, array.shape, str(array.dtype), value=_plain(array))
            self.made[id(array)] = box
            self.order.append(box)
        return box

    def _given(self, array: Any) -> Any:
        """The input of the call that an array is, or is a copy or a view of; else the array itself."""
        for one in self.given.values():
            if one is array or one.shape == array.shape and one.dtype == array.dtype and np.array_equal(one, array):
                return one
        return array

    def _calls(self, scope: str) -> tuple[Call, ...]:
        """What an op that nobody watched ran in: only paths are known, and not which call it was."""
        return tuple([self.scopes.setdefault(path, Call(path[-1], "module")) for path in _path_of(scope)])

    def _name(self, node: Node) -> str:
        return self.known.get(id(node), ("", None))[0]


def _is_plain(value: Any) -> bool:
    """Whether an attribute can be written into a box."""
    parts = value if isinstance(value, tuple) else (value,)
    return all(part is None or isinstance(part, (bool, int, float, str, slice, np.generic)) for part in parts)


def _saved(node: Node) -> dict[str, Any]:
    """What a node holds for its gradient, by the names that its rules use."""
    return dict(zip(node.plan.names, node.saved)) if node.saved is not None else {}


def _inputs(node: Node) -> list[Any]:
    """The inputs of an op as far as they are still there, one entry for each parent."""
    if node.seen is not None:
        return list(node.seen.inputs)
    saved, signature = _saved(node), node.plan.op.signature
    if signature.variadic:
        return list(saved.get(signature.inputs[0]) or [None] * len(node.parents))
    return [saved.get(name) for name in signature.inputs]


def _plain(array: Any) -> Any:
    """A NumPy array; a copy of what lies elsewhere."""
    return None if array is None else np.asarray(to_numpy(array) if is_array(array) else array)


def _path_of(scope: str) -> list[tuple[str, ...]]:
    """The modules that a scope tells of, each by its path; a number belongs to the name before it: `blocks.0` is one."""
    parts: list[str] = []
    for word in filter(None, scope.split(".")):
        if word.isdecimal() and parts:
            parts[-1] += f".{word}"
        else:
            parts.append(word)
    return [tuple(parts[: i + 1]) for i in range(len(parts))]
