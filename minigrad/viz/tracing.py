"""From the engine's nodes to boxes that can be drawn: each value with its op, name, shape, numbers and cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np

from ..engine.backend import device_of, is_array
from ..engine.graph import Node
from ..engine.modes import Call
from ..engine.op import PACKAGE
from ..engine.tensor import Tensor
from ..nn.module import Module, Parameter
from .costs import bytes_of, flops_of
from .numbers import number
from .values import UNKNOWN, inputs_of, plain, saved_of, values_of

__all__ = ["Box", "Input", "boxes_of", "input_names", "is_own", "key_of", "names_in"]


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
    device: str = "cpu"
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
    node: Node | None = None  # None also where no gradient can come back
    failed: bool = False
    error: str = ""  # what was said when it failed
    number: int = 1  # which one it is of those with the same name

    @property
    def has_parts(self) -> bool:
        """Whether it stands for several values at once, which have boxes of their own."""
        return bool(self.shape) and isinstance(self.shape[0], tuple)

    @property
    def label(self) -> str:
        """What it is called: its name, or else that of its op; the second of a name has a number, and so on."""
        return f"{self.title} {self.number}" if self.number > 1 else self.title

    @property
    def title(self) -> str:
        """What it is called, though others may be called the same."""
        return self.name or self.op.strip("_") or self.kind


def names_in(frame: FrameType | None) -> dict[int, tuple[str, Tensor]]:
    """Tensors that variables hold, here and in who called, by the identity of their node or else of their array: name and tensor.

    A parameter is named by its path in the module that a variable holds.
    """
    found: dict[int, tuple[str, Tensor]] = {}
    while frame is not None:
        if not is_own(frame):
            for name, value in list(frame.f_locals.items()):
                if isinstance(value, Module):
                    for path, parameter in value.named_parameters():
                        found.setdefault(key_of(parameter), (path, parameter))
                elif isinstance(value, Tensor) and not name.startswith("_"):
                    found.setdefault(key_of(value), (name, value))
        frame = frame.f_back
    return found


def is_own(frame: FrameType) -> bool:
    """Whether a frame is minigrad's, and not that of who uses it."""
    return frame.f_code.co_filename.startswith(PACKAGE)


def key_of(tensor: Tensor) -> int:
    """By what a tensor is known: its node, or else its array."""
    return id(tensor.data) if tensor.node is None else id(tensor.node)


def boxes_of(
    roots: Sequence[Tensor],
    known: Mapping[int, tuple[str, Tensor]],
    inputs: Iterable[Any] = (),
    apart: Iterable[Node] = (),
) -> list[Box]:
    """Every value that `roots` were made from, oldest first, with the names and numbers that are `known`.

    `inputs` are the arrays that a call was given, `apart` the nodes of what it computed without need of a gradient.
    """
    return _Tracer(known, {id(array): array for array in inputs}, apart).boxes(roots)


def input_names(node: Node) -> list[str]:
    """What an op calls its inputs; those of an op that takes any number are numbered."""
    signature = node.plan.op.signature
    return [f"{signature.inputs[0]}{i}" for i in range(len(node.parents))] if signature.variadic else signature.inputs


class _Tracer:
    def __init__(self, known: Mapping[int, tuple[str, Tensor]], given: dict[int, Any], apart: Iterable[Node]):
        self.known, self.given = known, given
        self.apart: set[Node] = set()
        self.makers: dict[int, list[Node]] = {}  # by their array; an op may return the one that it was given
        for node in apart:
            self.apart.add(node)
            for array in _results(node):
                self.makers.setdefault(id(array), []).append(node)
        self.parents: dict[Node, list[Node | None]] = {}
        self.made: dict[Any, Box] = {}  # by node, or by the identity of a constant's array
        self.order: list[Box] = []
        self.values: dict[Node, Any] = {}
        self.scopes: dict[tuple[str, ...], Call] = {}

    def boxes(self, roots: Sequence[Tensor]) -> list[Box]:
        nodes = self._collected(roots)
        self.values = values_of(nodes, roots, [tensor for _, tensor in self.known.values()], self.parents)
        for node in nodes:
            self._add_op(node)
        for root in roots:
            maker = root.node if root.node is not None else self._maker(root.data)
            if maker is None:
                box = self._constant(root.data)
            else:
                box = self.made.get(maker) or self._leaf(maker, root)
            box.is_output = True
        for index, box in enumerate(self.order):
            box.id = f"b{index}"
        return self.order

    def _collected(self, roots: Sequence[Tensor]) -> list[Node]:
        """Every node that is not a leaf, oldest first; their parents are noted, also those who need no gradient."""
        found = [node for root in roots if (node := root.node or self._maker(root.data)) is not None]
        for node in found:  # which grows meanwhile
            if node.plan is None or node in self.parents:
                continue
            self.parents[node] = [
                parent if parent is not None else self._maker(value, node)
                for parent, value in zip(node.parents, inputs_of(node))
            ]
            used = [self._maker(array, node) for array in _arrays_in(node.attrs)]
            found += [parent for parent in (*self.parents[node], *used) if parent is not None]
        return sorted(self.parents, key=lambda node: node.time)

    def _maker(self, array: Any, user: Node | None = None) -> Node | None:
        """Who made an array without need of a gradient, where that is known, and before who uses it."""
        makers = self.makers.get(id(array), ())
        return next((node for node in reversed(makers) if user is None or node.time < user.time), None)

    def _add_op(self, node: Node) -> None:
        op, picks = node.plan.op, node.plan.picks
        name = op.name if picks is None else "output"
        box = Box(
            "op", name, self._name(node), node.shape, str(node.dtype), node=node if node not in self.apart else None
        )
        if op.several and picks is None:
            box.dtype = ", ".join(map(str, node.dtype))
        self._connect(box, node)
        out = self.values.get(node)
        box.value = plain(out) if not isinstance(out, tuple) else None
        box.device = device_of(out) if is_array(out) else "cpu"
        box.line = node.line or ""
        seen = node.seen if picks is None else node.parents[0].seen
        box.calls = seen.calls if seen is not None else self._calls(node.scope)
        if picks is None:
            self._count(box, node, out)
        self.made[node] = box
        self.order.append(box)

    def _connect(self, box: Box, node: Node) -> None:
        """Where an op's inputs come from, and which of them it keeps."""
        signature = node.plan.op.signature
        for name, parent, value in zip(input_names(node), self.parents[node], inputs_of(node)):
            if parent is not None or value is not None:
                box.inputs.append(self._input(name, parent, value))
        for name, value in node.attrs.items():
            for array in _arrays_in({name: value}):  # as the row numbers that an index is
                box.inputs.append(self._input(name, self._maker(array, node), array))
        box.attrs = {k: v for k, v in node.attrs.items() if _is_plain(v)}
        if box.node is None:
            return
        box.keeps = [name for name in saved_of(node) if name in (*signature.inputs, "out")]
        for entry in box.inputs:
            if entry.source is not None and (entry.name in box.keeps or signature.variadic and box.keeps):
                entry.source.is_kept = True
        box.is_kept = "out" in box.keeps

    def _count(self, box: Box, node: Node, out: Any) -> None:
        """What the op costs."""
        known = [
            value if value is not UNKNOWN else self.values.get(parent) if parent is not None else None
            for parent, value in zip(self.parents[node], inputs_of(node))
        ]
        if out is None:
            out = () if box.has_parts else np.broadcast_to(np.zeros((), node.dtype), node.shape)
        box.bytes, box.flops = bytes_of(known, out), flops_of(node.plan.op.name, known, out, node.attrs)
        box.seconds = node.seen.seconds if node.seen is not None else None

    def _input(self, name: str, parent: Node | None, value: Any) -> Input:
        if parent is not None:
            return Input(name, self.made.get(parent) or self._leaf(parent))
        if value is UNKNOWN:
            return Input(name, text="?")
        if not is_array(value) or value.ndim == 0 and id(value) not in self.known:
            return Input(name, text=number(value) if np.ndim(value) == 0 else str(value))
        return Input(name, self._constant(value))

    def _leaf(self, node: Any, tensor: Tensor | None = None) -> Box:
        name, found = self.known.get(id(node), ("", tensor))
        kind = "parameter" if isinstance(found, Parameter) else "input"
        box = Box(kind, "", name, node.shape, str(node.dtype), value=plain(self.values.get(node)), node=node)
        self.made[node] = box
        self.order.append(box)
        return box

    def _constant(self, array: Any) -> Box:
        array = self._given(array)
        box = self.made.get(id(array))
        if box is None:
            name, found = self.known.get(id(array), ("", None))
            is_given = id(array) in self.given or name and not isinstance(found, Parameter)
            kind = "input" if is_given else "parameter" if isinstance(found, Parameter) else "constant"
            box = Box(kind, "", name, array.shape, str(array.dtype), value=plain(array))
            self.made[id(array)] = box
            self.order.append(box)
        return box

    def _given(self, array: Any) -> Any:
        """The input of the call that an array is, or is a copy or a view of; else the array itself."""
        if id(array) in self.given:
            return array
        for one in self.given.values():
            if one.shape == array.shape and one.dtype == array.dtype and np.array_equal(plain(one), plain(array)):
                return one
        return array

    def _calls(self, scope: str) -> tuple[Call, ...]:
        """What an op that nobody watched ran in: only paths are known, and not which call it was."""
        return tuple([self.scopes.setdefault(path, Call(path[-1], "module")) for path in _path_of(scope)])

    def _name(self, node: Node) -> str:
        return self.known.get(id(node), ("", None))[0]


def _results(node: Node) -> tuple[Any, ...]:
    """What an op that was watched computed."""
    assert node.seen is not None
    return node.seen.out if isinstance(node.seen.out, tuple) else (node.seen.out,)


def _arrays_in(attrs: Mapping[str, Any]) -> list[Any]:
    """The arrays among the attributes of an op, such as the row numbers that an index is."""
    parts = [part for value in attrs.values() for part in (value if isinstance(value, tuple) else (value,))]
    return [part for part in parts if is_array(part) and part.ndim]


def _is_plain(value: Any) -> bool:
    """Whether an attribute can be written into a box."""
    parts = value if isinstance(value, tuple) else (value,)
    return all(part is None or isinstance(part, (bool, int, float, str, slice, np.generic)) for part in parts)


def _path_of(scope: str) -> list[tuple[str, ...]]:
    """The modules that a scope tells of, each by its path; a number belongs to the name before it: `blocks.0` is one."""
    parts: list[str] = []
    for word in filter(None, scope.split(".")):
        if word.isdecimal() and parts:
            parts[-1] += f".{word}"
        else:
            parts.append(word)
    return [tuple(parts[: i + 1]) for i in range(len(parts))]
