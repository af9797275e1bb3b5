"""From the engine's nodes to boxes that can be drawn: each value with its op, name, shape, numbers and cost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from types import FrameType
from typing import Any

import numpy as np

from ...debug import Call, Recorder
from ...engine.backend import device_of, is_array
from ...engine.graph import Node
from ...engine.op import PACKAGE
from ...engine.tensor import Tensor
from ...nn.module import Module, Parameter
from ..drawing.arrays import Digest, as_numpy, number
from .values import UNKNOWN, input_names, inputs_of, saved_by_name, values_of

__all__ = ["Box", "Input", "Names", "Watcher", "boxes_of", "is_own", "key_of", "names_in"]

Names = dict[int, tuple[str, Tensor]]  # of tensors, by their key
_by_time = attrgetter("time")


@dataclass
class Input:
    """What goes into an op: a box, or a number that is written into the op's own box."""

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
    symbol: str = ""  # how people write the op, as in a + b
    inputs: list[Input] = field(default_factory=list, repr=False)  # each shared box would be printed once a path
    attrs: dict[str, Any] = field(default_factory=dict)
    value_digest: Digest | None = None  # None where it is not known
    gradient_digest: Digest | None = None
    keeps: list[str] = field(default_factory=list)  # what the op holds for its gradient
    is_kept: bool = False  # whether an op holds this value for its gradient
    is_output: bool = False
    line: str = ""
    seconds: float | None = None
    bytes: int = 0
    flops: int = 0
    calls: tuple[Call, ...] = field(default=(), repr=False)
    node: Any = field(default=None, repr=False)  # None also where no gradient can come back
    failed: bool = False
    error: str = ""  # what was said when it failed
    number: int = 1  # which one it is of those with the same name

    @property
    def value(self) -> Any:
        """Its array; None where it is not known, or too large to be kept."""
        return None if self.value_digest is None else self.value_digest.array

    @property
    def gradient(self) -> Any:
        """The array of its gradient; None where it is not known, or too large to be kept."""
        return None if self.gradient_digest is None else self.gradient_digest.array

    @property
    def sources(self) -> list[Box]:
        """The boxes that go into it."""
        return [entry.source for entry in self.inputs if entry.source is not None]

    @property
    def has_parts(self) -> bool:
        """Whether it stands for several values at once, which have boxes of their own."""
        return bool(self.shape) and isinstance(self.shape[0], tuple)

    @property
    def title(self) -> str:
        """What it is called, though others may be called the same: its name, or else that of its op."""
        return self.name or self.op.strip("_") or self.kind

    @property
    def label(self) -> str:
        """What it is called; the second of a name has a number, and so on."""
        return f"{self.title} {self.number}" if self.number > 1 else self.title


def names_in(frame: FrameType | None) -> Names:
    """Tensors that a user's variables hold, in a frame and in those who called, by their key: name and tensor.

    A parameter is named by its path in the module that a variable holds.
    """
    found: Names = {}
    while frame is not None:
        for name, value in [] if is_own(frame) else list(frame.f_locals.items()):
            if isinstance(value, Module):
                found = {key_of(p): (path, p) for path, p in value.named_parameters()} | found
            elif isinstance(value, Tensor) and not name.startswith("_"):
                found.setdefault(key_of(value), (name, value))
        frame = frame.f_back
    return found


def is_own(frame: FrameType) -> bool:
    """Whether a frame is minigrad's, and not the user's."""
    return frame.f_code.co_filename.startswith(PACKAGE)


def key_of(tensor: Tensor) -> int:
    """By what a tensor is known: its node, or else its array."""
    return id(tensor.data) if tensor.node is None else id(tensor.node)


class Watcher(Recorder):
    """Makes nodes also for what needs no gradient, so that it can be drawn like the rest: `apart`."""

    def __init__(self) -> None:
        super().__init__()
        self.apart: list[Node] = []

    def called(self, op: Any, inputs: Sequence[Any], attrs: dict[str, Any], outputs: Any, seconds: float) -> None:
        super().called(op, inputs, attrs, outputs, seconds)
        record, node = self.records[-1]
        if node is None:
            plan = op.plan_for(0, len(record.inputs), by_kernel=op.forward is None)
            out: Any = record.outputs if op.several else record.outputs[0]
            shape = tuple([o.shape for o in out]) if op.several else out.shape
            dtype = tuple([o.dtype for o in out]) if op.several else out.dtype
            self.apart.append(Node(plan, record.parents, (), record.attrs, shape, dtype, ""))
            self.apart[-1].note = record


def boxes_of(roots: Sequence[Tensor], known: Names, given: Iterable[Any] = (), apart: Iterable[Node] = ()) -> list[Box]:
    """Every value that `roots` were made from, oldest first, with the names and numbers that are `known`.

    `given` are the arrays that a call got, `apart` the nodes of what it computed without need of a gradient.
    """
    return _Trace(known, given, apart).boxes(roots)


class _Trace:
    def __init__(self, known: Names, given: Iterable[Any], apart: Iterable[Node]):
        self.known, self.given, self.apart = known, {id(array): array for array in given}, set(apart)
        self.makers: dict[int, list[Node]] = {}  # by their array; an op may return the one that it was given
        for node in sorted(self.apart, key=_by_time):
            for array in node.note.outputs:
                self.makers.setdefault(id(array), []).append(node)
        self.parents: dict[Node, list[Node | None]] = {}
        self.made: dict[Any, Box] = {}  # by node, or by the identity of a constant's array
        self.values: dict[Any, Any] = {}
        self.scopes: dict[tuple[str, ...], Call] = {}

    def boxes(self, roots: Sequence[Tensor]) -> list[Box]:
        nodes = self._collected(roots)
        self.values = values_of(nodes, roots, [tensor for _, tensor in self.known.values()], self.parents)
        for node in nodes:
            self._add_op(node)
        for root in roots:
            self._source(root.node or self._maker(root.data), root.data, root).is_output = True
        for index, box in enumerate(self.made.values()):
            box.id = f"b{index}"
        return list(self.made.values())

    def _collected(self, roots: Sequence[Tensor]) -> list[Node]:
        """Every node that is not a leaf, oldest first; their parents are noted, also those who need no gradient."""
        found = [node for root in roots if (node := root.node or self._maker(root.data)) is not None]
        for node in found:  # which grows meanwhile
            if node.plan is None or node in self.parents:
                continue
            pairs = zip(node.parents, inputs_of(node))
            self.parents[node] = [p if p is not None else self._maker(value, node) for p, value in pairs]
            used = [self._like(array, node) for array in _arrays_in(node.attrs)]
            found += [parent for parent in (*self.parents[node], *used) if parent is not None]
        return sorted(self.parents, key=_by_time)

    def _maker(self, array: Any, user: Node | None = None) -> Node | None:
        """Who made an array without need of a gradient, where that is known, and before who uses it."""
        makers = self.makers.get(id(array), ())
        return next((node for node in reversed(makers) if user is None or node.time < user.time), None)

    def _like(self, array: Any, user: Node) -> Node | None:
        """Who made an array that is used as row numbers, which may be a copy of what was computed."""
        maker = self._maker(array, user)
        if maker is not None or self._given(array) is not array or id(array) in self.given:
            return maker
        parts = ((node, part) for node in self.apart if node.time < user.time for part in node.note.outputs)
        same = (node for node, part in parts if part.dtype == array.dtype and np.array_equal(part, as_numpy(array)))
        return max(same, key=_by_time, default=None)

    def _add_op(self, node: Node) -> None:
        op, index, note, out = node.plan.op, node.plan.output_index, node.note, self.values.get(node)
        name, _ = self.known.get(id(node), ("", None))
        dtype = ", ".join(map(str, node.dtype if isinstance(node.dtype, tuple) else (node.dtype,)))
        box = Box("op", op.name if index is None else "output", name, node.shape, dtype, symbol=op.symbol or "")
        box.node = node if node not in self.apart else None
        self._connect(box, node)
        if is_array(out):
            box.value_digest, box.device = Digest(as_numpy(out)), device_of(out)
        box.calls = note.calls if note is not None else self._calls(node.scope)
        if index is None:
            self._count(box, node, out)
            box.line, box.seconds = (note.line, note.seconds) if note is not None else ("", None)
        self.made[node] = box

    def _connect(self, box: Box, node: Node) -> None:
        signature, names = node.plan.op.signature, input_names(node.plan.op, len(node.parents))
        for name, parent, value in zip(names, self.parents[node], inputs_of(node)):
            if parent is not None or value is not None:
                box.inputs.append(self._input(name, parent, value))
        for name, value in node.attrs.items():
            for array in _arrays_in({name: value}):  # as the row numbers that an index is
                box.inputs.append(self._input(name, self._like(array, node), array))
        box.attrs = {k: v for k, v in node.attrs.items() if _is_plain(v)}
        if box.node is None:
            return
        box.keeps = [name for name in saved_by_name(node) if name in (*signature.inputs, "out")]
        for entry in box.inputs:
            if entry.source is not None and (entry.name in box.keeps or signature.variadic and box.keeps):
                entry.source.is_kept = True
        box.is_kept = "out" in box.keeps

    def _count(self, box: Box, node: Node, out: Any) -> None:
        pairs = zip(inputs_of(node), self.parents[node])
        known = [self.values.get(parent) if value is UNKNOWN else value for value, parent in pairs]
        read: list[Any] = [array for array in known if is_array(array)]
        if out is None:
            out = () if box.has_parts else np.broadcast_to(np.zeros((), node.dtype), node.shape)
        written = out if isinstance(out, tuple) else (out,)
        box.bytes = sum(array.nbytes for array in (*read, *written))
        cost = node.plan.op.cost if read and not node.plan.op.view else 0
        size = max([sum(array.size for array in written), *[array.size for array in read]])
        box.flops = cost(known, out, node.attrs) if callable(cost) else cost * size

    def _input(self, name: str, parent: Node | None, value: Any) -> Input:
        if parent is None and value is UNKNOWN:
            return Input(name, text="?")
        if parent is None and (not is_array(value) or value.ndim == 0 and id(value) not in self.known):
            return Input(name, text=number(value) if np.ndim(value) == 0 else str(value))
        return Input(name, self._source(parent, value))

    def _source(self, node: Node | None, array: Any, tensor: Tensor | None = None) -> Box:
        array = self._given(array) if node is None else self.values.get(node)
        key = id(array) if node is None else node
        if key not in self.made:
            name, found = self.known.get(id(array if node is None else node), ("", tensor))
            is_given = node is not None or id(array) in self.given or bool(name)
            kind = "parameter" if isinstance(found, Parameter) else "input" if is_given else "constant"
            like: Any = array if node is None else node
            known = None if array is None else Digest(as_numpy(array))
            self.made[key] = Box(kind, "", name, like.shape, str(like.dtype), node=node, value_digest=known)
        return self.made[key]

    def _given(self, array: Any) -> Any:
        if id(array) in self.given:
            return array
        for one in self.given.values():
            if one.shape == array.shape and one.dtype == array.dtype and np.array_equal(as_numpy(one), as_numpy(array)):
                return one
        return array

    def _calls(self, scope: str) -> tuple[Call, ...]:
        """What an op that nobody watched ran in: only paths are known, and not which call it was. `blocks.0` is one name."""
        names = re.findall(r"[^.]+(?:\.\d+)*", scope)
        paths = [tuple(names[: i + 1]) for i in range(len(names))]
        return tuple([self.scopes.setdefault(path, Call(path[-1], "module")) for path in paths])


def _arrays_in(attrs: Mapping[str, Any]) -> list[Any]:
    parts = [part for value in attrs.values() for part in (value if isinstance(value, tuple) else (value,))]
    return [part for part in parts if is_array(part) and part.ndim]


def _is_plain(value: Any) -> bool:
    parts = value if isinstance(value, tuple) else (value,)
    return all(part is None or isinstance(part, (bool, int, float, str, slice, np.generic)) for part in parts)
