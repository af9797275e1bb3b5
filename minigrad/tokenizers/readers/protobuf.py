"""The wire format of protocol buffers, as far as a SentencePiece model uses it: numbered fields, one after the other."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ...data.errors import DataError

__all__ = ["Value", "fields_of"]

Value = int | bytes  # a number as it is stored, or the bytes of a text, a message, or a float

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MAX_VARINT = 10  # bytes of a number of 64 bits, seven at a time


def fields_of(message: bytes, where: str) -> Iterator[tuple[int, Value]]:
    """The fields of a message as (number, value), in their order.

    >>> list(fields_of(bytes([0x08, 0x96, 0x01, 0x12, 0x02, 0x68, 0x69]), "example"))
    [(1, 150), (2, b'hi')]
    """
    place = 0
    while place < len(message):
        key, place = _varint(message, place, where)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, place = _varint(message, place, where)
            yield number, value
            continue
        if kind == BYTES:
            size, place = _varint(message, place, where)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
        else:
            raise DataError(f"{where}: this is no protocol buffer", "a wire type of 0, 1, 2 or 5", kind)
        if place + size > len(message):
            raise DataError(f"{where}: a field is cut off", f"{size} bytes", len(message) - place)
        yield number, message[place : place + size]
        place += size


def float_of(value: Value, where: str) -> float:
    """The float32 in a field of four bytes."""
    if not isinstance(value, bytes) or len(value) != 4:
        raise DataError(f"{where}: this field is no float", "4 bytes", repr(value)[:60])
    return float(struct.unpack("<f", value)[0])


def _varint(message: bytes, place: int, where: str) -> tuple[int, int]:
    """A number, seven bits a byte, the lowest first; the top bit says that more bytes follow."""
    number = 0
    for count in range(MAX_VARINT):
        if place >= len(message):
            raise DataError(f"{where}: the file ends inside a number")
        byte = message[place]
        number |= (byte & 0x7F) << (7 * count)
        place += 1
        if byte < 0x80:
            return number, place
    raise DataError(f"{where}: a number is too long", f"at most {MAX_VARINT} bytes")
