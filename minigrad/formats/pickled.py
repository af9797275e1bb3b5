"""Reads the pickles of PyTorch without running them: an interpreter that knows tensors, containers, numbers and texts.

A pickle is a program for a small stack machine, and Python's own reader lets it call any function. This one has a table of what
may be asked for; a pickle that asks for anything else is refused by name. It makes no tensors: it says where they are.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .mapped_file import Cursor, MappedFile

__all__ = ["PickledTensor", "Storage", "Unpickler"]

_STEPS = 4_000_000  # opcodes in one pickle: each makes at most one small value
STORAGES = {
    "torch.FloatStorage": "f32", "torch.DoubleStorage": "f64", "torch.HalfStorage": "f16", "torch.BFloat16Storage": "bf16",
    "torch.LongStorage": "i64", "torch.IntStorage": "i32", "torch.ShortStorage": "i16", "torch.CharStorage": "i8",
    "torch.ByteStorage": "u8", "torch.BoolStorage": "bool", "torch.ComplexFloatStorage": "c64",
}  # fmt: skip
_DTYPES = {
    "torch.float16", "torch.float32", "torch.float64", "torch.bfloat16", "torch.int8", "torch.int16", "torch.int32", "torch.int64",
    "torch.uint8", "torch.bool", "torch.complex64", "torch.complex128",
}  # fmt: skip
_CALLABLE = {
    "collections.OrderedDict", "torch.Size", "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_parameter"
}  # fmt: skip


@dataclass(frozen=True)
class Storage:
    """The memory of one or more tensors: `count` numbers, elsewhere in the file under `key`."""

    format: str
    key: str
    count: int


@dataclass(frozen=True, eq=False)
class PickledTensor:
    """A part of a storage: the tensor's first number, shape and strides, none of them checked against the storage."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class Global:
    """A function, class or constant of Python that a pickle may ask for."""

    name: str


class Unpickler:
    """Runs one pickle after the other; `read` gives the value of the next."""

    def __init__(self, cursor: Cursor):
        self.cursor = cursor
        self.file: MappedFile = cursor.file

    def read(self) -> Any:
        """The value of one pickle: dicts, lists, tuples, numbers, texts and `PickledTensor`s."""
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        for _ in range(_STEPS):
            opcode = self.cursor.take(1, "its pickle")
            if opcode == b".":
                return self.pop()
            if opcode not in _ACTIONS:
                raise self.refused(f"has the opcode {opcode!r}")
            _ACTIONS[opcode](self)
        raise self.refused(f"has more than {_STEPS:,} opcodes")

    def refused(self, why: str) -> Exception:
        return self.file.error(
            f"holds a pickle that {why}",
            "named tensors, as torch.save(model.state_dict(), path) writes them",
            fix="a pickle may run code, so nothing else is taken; ask its author for safetensors",
        )

    def number(self, code: str) -> Any:
        return self.cursor.numbers(code, "its pickle")[0]

    def pop(self) -> Any:
        if len(self.stack) <= (self.marks[-1] if self.marks else 0):
            raise self.refused("takes more from its stack than there is")
        return self.stack.pop()

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def popped(self, count: int) -> tuple[Any, ...]:
        return tuple(self.pop() for _ in range(count))[::-1]

    def pop_mark(self) -> list[Any]:
        if not self.marks:
            raise self.refused("takes more from its stack than there is")
        start = self.marks.pop()
        values = self.stack[start:]
        del self.stack[start:]
        return values

    def top(self, kind: type) -> Any:
        """The container on top of the stack."""
        value = self.pop()
        self.push(value)
        if not isinstance(value, kind):
            raise self.refused(f"treats {type(value).__name__} as {kind.__name__}")
        return value

    def put(self, place: int) -> None:
        value = self.pop()
        self.push(value)
        self.memo[place] = value

    def get(self, place: int) -> None:
        if place not in self.memo:
            raise self.refused("recalls what it has not kept")
        self.push(self.memo[place])

    def long(self) -> int:
        size = self.number("B")
        if size > 16:
            raise self.refused(f"has a whole number of {size} bytes")
        return int.from_bytes(self.cursor.take(size, "its pickle"), "little", signed=True)

    def text(self, code: str) -> str:
        return self.cursor.text(self.number(code), "a text of its pickle")

    def line(self) -> str:
        """Text up to the end of the line, which is short."""
        start = self.cursor.at
        end = self.file.bytes[start : min(start + 200, self.cursor.end)].tobytes().find(b"\n")
        if end < 0:
            raise self.refused("asks for a name that is too long")
        found = self.cursor.text(end, "a name in its pickle")
        self.cursor.skip(1, "its pickle")
        return found

    def ask(self, module: Any, name: Any) -> Global:
        """A name of a module: only of those in the tables above."""
        asked = f"{module}.{name}" if isinstance(module, str) and isinstance(name, str) else "something without a name"
        if asked not in _CALLABLE and asked not in _DTYPES and asked not in STORAGES:
            raise self.refused(f"asks for {asked[:100] if asked.isprintable() else repr(asked[:100])}")
        return Global(asked)

    def fill(self, pairs: list[Any]) -> None:
        """Put keys and values into the dict on top of the stack."""
        target = self.top(dict)
        if len(pairs) % 2 or not all(type(key) in (str, int) for key in pairs[::2]):
            raise self.refused("has a dict whose keys are neither texts nor whole numbers")
        target.update(zip(pairs[::2], pairs[1::2], strict=True))

    def persistent(self, described: Any) -> Storage:
        """The storage that a pickle names by ("storage", type, key, device, count), in old files with a view behind."""
        if type(described) is tuple and len(described) in (5, 6) and described[5:] in ((), (None,)):
            word, kind, key, _, count = described[:5]
            format = STORAGES.get(kind.name) if isinstance(kind, Global) else None
            if word == "storage" and format and type(key) is str and type(count) is int and count >= 0:
                return Storage(format, key, count)
        raise self.refused("describes a storage in an unknown way")

    def call(self, function: Any, arguments: Any) -> Any:
        """What one of the callable names gives."""
        name = function.name if isinstance(function, Global) else ""
        if name not in _CALLABLE or type(arguments) is not tuple:
            raise self.refused(f"calls {name or type(function).__name__}")
        if name == "collections.OrderedDict" and not arguments:
            return {}
        if name == "torch.Size" and len(arguments) == 1 and _whole_numbers(arguments[0]):
            return arguments[0]
        if name == "torch._utils._rebuild_parameter" and arguments and isinstance(arguments[0], PickledTensor):
            return arguments[0]
        if name == "torch._utils._rebuild_tensor_v2" and len(arguments) >= 4:
            storage, offset, shape, strides = arguments[:4]
            if isinstance(storage, Storage) and all(map(_whole_numbers, ((offset,), shape, strides))):
                return PickledTensor(storage, offset, shape, strides)
        raise self.refused(f"calls {name} with unknown arguments")

    def build(self) -> None:
        """Attributes of a dict, such as the versions of modules that a state_dict carries, are left out."""
        self.pop()
        self.top(dict)


def _whole_numbers(values: Any) -> bool:
    return type(values) is tuple and all(type(n) is int and 0 <= n < 2**63 for n in values)


_ACTIONS: dict[bytes, Callable[[Unpickler], None]] = {
    b"\x80": lambda u: u.number("B"),  # the protocol
    b"\x95": lambda u: u.number("Q"),  # the size of a frame
    b"(": lambda u: u.marks.append(len(u.stack)),
    b"N": lambda u: u.push(None),
    b"\x88": lambda u: u.push(True),
    b"\x89": lambda u: u.push(False),
    b"J": lambda u: u.push(u.number("i")),
    b"K": lambda u: u.push(u.number("B")),
    b"M": lambda u: u.push(u.number("H")),
    b"\x8a": lambda u: u.push(u.long()),
    b"G": lambda u: u.push(struct.unpack(">d", u.cursor.take(8, "its pickle"))[0]),
    b"X": lambda u: u.push(u.text("I")),
    b"\x8c": lambda u: u.push(u.text("B")),
    b"}": lambda u: u.push({}),
    b"]": lambda u: u.push([]),
    b")": lambda u: u.push(()),
    b"\x85": lambda u: u.push(u.popped(1)),
    b"\x86": lambda u: u.push(u.popped(2)),
    b"\x87": lambda u: u.push(u.popped(3)),
    b"t": lambda u: u.push(tuple(u.pop_mark())),
    b"a": lambda u: (value := u.pop(), u.top(list).append(value))[1],
    b"e": lambda u: (values := u.pop_mark(), u.top(list).extend(values))[1],
    b"s": lambda u: u.fill(list(u.popped(2))),
    b"u": lambda u: u.fill(u.pop_mark()),
    b"q": lambda u: u.put(u.number("B")),
    b"r": lambda u: u.put(u.number("I")),
    b"\x94": lambda u: u.put(len(u.memo)),
    b"h": lambda u: u.get(u.number("B")),
    b"j": lambda u: u.get(u.number("I")),
    b"c": lambda u: u.push(u.ask(u.line(), u.line())),
    b"\x93": lambda u: u.push(u.ask(*u.popped(2))),
    b"Q": lambda u: u.push(u.persistent(u.pop())),
    b"R": lambda u: u.push(u.call(*u.popped(2))),
    b"b": Unpickler.build,
}
