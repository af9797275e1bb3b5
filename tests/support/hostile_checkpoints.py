"""Checkpoint files as a stranger, a failing disk or an enemy would make them: for the tests, and for the long fuzzing."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from minigrad.train import checkpoint as module
from minigrad.train import write_checkpoint

PREFIX = b'{"__metadata__":{"checksum":"' + b"0" * 64 + b'","format":"minigrad-checkpoint-1","state":'


def signed(header: bytes, data: bytes = b"") -> bytes:
    """A file with this header and a checksum that fits."""
    content = bytearray(len(header).to_bytes(8, "little") + header + data)
    content[module._SUM] = module._header_digest(content).hexdigest().encode()
    return bytes(content)


def with_tensors(entries: bytes, data: bytes = b"", state: bytes = b'"{}"') -> bytes:
    """A properly signed file whose tensors are described by `entries`, JSON without its outer braces."""
    return signed(PREFIX + state + b"}" + (b"," + entries if entries else b"") + b"}", data)


def with_state(state: bytes) -> bytes:
    """A properly signed file without tensors and with this JSON as its state."""
    return with_tensors(b"", state=json.dumps(state.decode()).encode())


def entry(name: str = "w", dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8), **more: Any) -> bytes:
    """The description of one tensor."""
    described = {"dtype": dtype, "shape": shape, "data_offsets": offsets, **more}
    return json.dumps({name: described}).encode()[1:-1]


def small_checkpoint(path: Path) -> bytes:
    """A small but complete checkpoint of ours."""
    tensors = {"model.w": np.arange(3, dtype=np.float32), "n": np.array(7), "b": np.array([True, False])}
    write_checkpoint(path, tensors, {"step": 3, "best": None, "text": "é"})
    return path.read_bytes()


DEEP = 100_000
HOSTILE: dict[str, bytes] = {
    "empty": b"",
    "eight zeros": bytes(8),
    "a pickle": b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94\x8c\x06system\x94\x93\x94.",
    "a zip": b"PK\x03\x04" + bytes(200),
    "a giant header": (2**63 - 1).to_bytes(8, "little") + PREFIX + bytes(100),
    "a header larger than the file": (10_000).to_bytes(8, "little") + PREFIX + bytes(100),
    "a header over the limit": signed(PREFIX + b'"{}"}}' + b" " * module.HEADER_LIMIT),
    "a header shorter than its checksum": (10).to_bytes(8, "little") + PREFIX + bytes(100),
    "a checksum that does not fit": len(PREFIX + b'"{}"}}').to_bytes(8, "little") + PREFIX + b'"{}"}}',
    "negative offsets": with_tensors(entry(offsets=(-8, 0)), bytes(8)),
    "offsets the wrong way round": with_tensors(entry(offsets=(8, 0)), bytes(8)),
    "overlapping tensors": with_tensors(entry("a") + b"," + entry("b", offsets=(4, 12)), bytes(12)),
    "two tensors in one place": with_tensors(entry("a") + b"," + entry("b"), bytes(8)),
    "a gap between tensors": with_tensors(entry("a") + b"," + entry("b", offsets=(12, 20)), bytes(20)),
    "a gap before the first tensor": with_tensors(entry(offsets=(4, 12)), bytes(12)),
    "bytes after the last tensor": with_tensors(entry(), bytes(9)),
    "a tensor past the end": with_tensors(entry(shape=(4,), offsets=(0, 16)), bytes(8)),
    "a tensor far past the end": with_tensors(entry(shape=(2**40,), offsets=(0, 2**42)), bytes(8)),
    "offsets beyond 64 bits": with_tensors(entry(offsets=(0, 2**70)), bytes(8)),
    "offsets that are floats": with_tensors(entry(offsets=(0.0, 8.0)), bytes(8)),
    "offsets that are truth values": with_tensors(entry(dtype="U8", shape=(1,), offsets=(False, True)), bytes(1)),
    "three offsets": with_tensors(entry(offsets=(0, 4, 8)), bytes(8)),
    "no offsets": with_tensors(b'"w":{"dtype":"F32","shape":[2]}', bytes(8)),
    "a shape that does not fit its bytes": with_tensors(entry(shape=(3,)), bytes(8)),
    "a negative size": with_tensors(entry(shape=(-2, -1)), bytes(8)),
    "a size that overflows": with_tensors(entry(shape=(2**33, 2**33), offsets=(0, 0))),
    "a size that overflows 64 bits to the right one": with_tensors(entry(shape=(2**62, 4, 2)), bytes(8)),
    "an empty tensor of absurd shape": with_tensors(entry(shape=(0, 2**61, 2**61), offsets=(0, 0))),
    "an empty tensor beyond 64 bits": with_tensors(entry(shape=(0, 2**64), offsets=(0, 0))),
    "too many axes": with_tensors(entry(shape=(1,) * 65, dtype="U8", offsets=(0, 1)), bytes(1)),
    "a shape that is text": with_tensors(entry(shape="2"), bytes(8)),
    "sizes that are truth values": with_tensors(entry(shape=(True, 2)), bytes(8)),
    "an unknown dtype": with_tensors(entry(dtype="F128"), bytes(8)),
    "a dtype of objects": with_tensors(entry(dtype="|O8", shape=(1,)), bytes(8)),
    "a dtype that is a list": with_tensors(entry(dtype=["F32"]), bytes(8)),
    "a dtype of NumPy's own": with_tensors(entry(dtype="<f4"), bytes(8)),
    "truth values of seven": with_tensors(entry(dtype="BOOL", offsets=(0, 2)), b"\x07\x01"),
    "something else in a description": with_tensors(entry(loader="os.system"), bytes(8)),
    "a description that is a number": with_tensors(b'"w":5'),
    "a description that is null": with_tensors(b'"w":null'),
    "a tensor that comes twice": with_tensors(entry() + b"," + entry(), bytes(8)),
    "an offset that comes twice": with_tensors(
        b'"w":{"dtype":"U8","shape":[0],"data_offsets":[9,9],"data_offsets":[0,0]}'
    ),
    "metadata that comes twice": with_tensors(b'"__metadata__":{"format":"minigrad-checkpoint-1","state":"{}"}'),
    "a name that climbs": with_tensors(entry("../../etc/passwd"), bytes(8)),
    "a name that climbs on Windows": with_tensors(entry("..\\..\\boot.ini"), bytes(8)),
    "an absolute name": with_tensors(entry("/etc/passwd"), bytes(8)),
    "a name of two dots": with_tensors(entry(".."), bytes(8)),
    "an empty name": with_tensors(entry(""), bytes(8)),
    "a name with a zero byte": with_tensors(entry("w\0"), bytes(8)),
    "a name with an escape sequence": with_tensors(entry("\x1b[2J"), bytes(8)),
    "a very long name": with_tensors(entry("w" * 1000), bytes(8)),
    "deep lists": with_tensors(b'"w":' + b"[" * DEEP + b"]" * DEEP),
    "deep objects": with_tensors(b'"w":' + b'{"a":' * (DEEP // 2) + b"1" + b"}" * (DEEP // 2)),
    "a deep state": with_state(b'{"a":' + b"[" * DEEP + b"]" * DEEP + b"}"),
    "a state that is a list": with_state(b"[1]"),
    "a state that is no JSON": with_state(b"{"),
    "a state with a name twice": with_state(b'{"step":1,"step":2}'),
    "a state with a number of a million digits": with_state(b'{"a":' + b"9" * 300_000 + b"}"),
    "a state that is no text": with_tensors(b"", state=b"5"),
    "another format": signed(PREFIX.replace(b"checkpoint-1", b"checkpoint-9") + b'"{}"}}'),
    "a header that is no JSON": signed(PREFIX + b'"{}"'),
    "a header with something after it": signed(PREFIX + b'"{}"}}{}'),
    "a header that is not UTF-8": signed(PREFIX + b'"\xff\xfe"}}'),
    "a header in UTF-16": signed(PREFIX + '"{}"}}'.encode("utf-16")),
}


def greedy() -> dict[str, bytes]:
    """Files, all signed, that are small and whose JSON makes as much of itself as JSON can."""
    room = module.HEADER_LIMIT - 400

    def fill(unit: str) -> bytes:
        return ('{"a":[' + ",".join([unit] * (room // (len(json.dumps(unit)) - 1))) + "]}").encode()

    units = {"lists": "[]", "objects": '{"":0}', "nested objects": '{"":{}}', "texts": '"Ā"', "floats": "1.5"}
    made = {f"a state of {name}": with_state(fill(unit)) for name, unit in units.items()}
    made["a header of objects"] = with_tensors(b'"a":[' + b",".join([b'{"":0}'] * (room // 7)) + b"]")
    made["a header of names"] = with_tensors(b",".join(b'"%x":0' % i for i in range(room // 9)))
    empty = b'{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
    made["a header of empty tensors"] = with_tensors(b",".join(b'"%x":%s' % (i, empty) for i in range(room // 58)))
    return made


def mutations(content: bytes) -> list[Callable[[random.Random], bytes]]:
    """Ways to spoil a file; the last ones sign it again, so that what is inside is looked at."""

    def flip(rng: random.Random) -> bytes:
        spoilt = bytearray(content)
        for _ in range(rng.randint(1, 8)):
            spoilt[rng.randrange(len(spoilt))] ^= 1 << rng.randrange(8)
        return bytes(spoilt)

    def cut(rng: random.Random) -> bytes:
        return content[: rng.randrange(len(content))]

    def lengthen(rng: random.Random) -> bytes:
        return content + rng.randbytes(rng.randint(1, 64))

    def splice(rng: random.Random) -> bytes:
        a, b = sorted(rng.randrange(len(content)) for _ in range(2))
        return content[:a] + rng.randbytes(rng.randint(0, 32)) + content[b:]

    def noise(rng: random.Random) -> bytes:
        return rng.randbytes(rng.randint(0, 600))

    def signed_again(rng: random.Random) -> bytes:
        spoilt = bytearray(flip(rng))
        spoilt[: module._SUM.start] = content[: module._SUM.start]
        spoilt[module._SUM] = module._header_digest(spoilt).hexdigest().encode()
        return bytes(spoilt)

    def rearranged(rng: random.Random) -> bytes:
        size = int.from_bytes(content[:8], "little")
        header, data = bytearray(content[8 : 8 + size]), content[8 + size :]
        start = header.index(b'"format"')
        for _ in range(rng.randint(1, 4)):
            place = rng.randrange(start, len(header))
            token = rng.choice(
                [b"0", b"-1", b"[", b"]", b"{", b"}", b",", b'"', b"1e9", b"null", b"99999999999", b"..", b"\\u0000"]
            )
            header[place : place + rng.randint(0, 3)] = token
        return signed(bytes(header), data)

    return [flip, cut, lengthen, splice, noise, signed_again, rearranged]


def spoilt(content: bytes, seed: int) -> bytes:
    """One spoilt file, the same for the same seed."""
    rng = random.Random(seed)
    return rng.choice(mutations(content))(rng)
