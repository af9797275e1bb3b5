"""Small files of weights made by hand, byte by byte, right or wrong: safetensors, GGUF, and what torch.save writes."""

from __future__ import annotations

import io
import json
import pickle
import struct
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any


def safetensors_file(entries: Mapping[str, Any], body: bytes = b"") -> bytes:
    """A file with this header."""
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + body


def safetensors_entry(
    dtype: str = "F32", shape: Sequence[Any] = (2,), offsets: Sequence[Any] = (0, 8)
) -> dict[str, Any]:
    """The description of one tensor."""
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def sized(value: str | bytes) -> bytes:
    """Text as GGUF has it: its size in eight bytes, and itself."""
    raw = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(raw)) + raw


def gguf_file(
    fields: Sequence[tuple[str | bytes, int, bytes]] = (),
    infos: Sequence[tuple[str, tuple[int, ...], int, int]] = (),
    body: bytes = b"",
    version: int = 3,
    counts: tuple[int, int] | None = None,
) -> bytes:
    """A file with fields (key, type, bytes) and tensors (name, shape, type, offset)."""
    head = b"GGUF" + struct.pack("<IQQ", version, *(counts or (len(infos), len(fields))))
    head += b"".join(sized(key) + struct.pack("<I", kind) + value for key, kind, value in fields)
    for name, shape, kind, offset in infos:
        head += sized(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], kind, offset)
    return head + bytes(-len(head) % 32) + body


def pickled_tensor(
    shape: bytes = b"K\x02\x85",
    strides: bytes = b"K\x01\x85",
    offset: bytes = b"K\x00",
    count: bytes = b"K\x02",
    key: bytes = b"X\x01\x00\x00\x000",
    kind: bytes = b"Float",
    view: bytes = b"",
) -> bytes:
    """The opcodes of {"w": a tensor of two numbers}, with parts replaced."""
    storage = (
        b"(X\x07\x00\x00\x00storagectorch\n"
        + kind
        + b"Storage\n"
        + key
        + b"X\x03\x00\x00\x00cpu"
        + count
        + view
        + b"tQ"
    )
    arguments = storage + offset + shape + strides + b"\x89ccollections\nOrderedDict\n)R"
    return b"\x80\x02}X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n(" + arguments + b"tRs."


def torch_archive(
    pickled: bytes, members: Sequence[tuple[str, bytes]] = (), compression: int = zipfile.ZIP_STORED
) -> bytes:
    """A zip archive as torch.save writes it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, content in (("data.pkl", pickled), *members):
            file.writestr(zipfile.ZipInfo(f"archive/{name}"), content, compression)
    return buffer.getvalue()


def torch_stream(pickled: bytes, storages: Mapping[str, tuple[int, bytes]] | None = None) -> bytes:
    """A file as torch.save wrote it before there were archives; storages are (how many numbers, bytes)."""
    start = [0x1950A86A20F9469CFC6C, 1001, {"protocol_version": 1001, "little_endian": True}]
    content = b"".join(pickle.dumps(part, 2) for part in start) + pickled + pickle.dumps(list(storages or {}), 2)
    return content + b"".join(struct.pack("<q", count) + data for count, data in (storages or {}).values())
