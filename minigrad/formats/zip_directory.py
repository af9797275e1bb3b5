"""Where the members of a zip archive lie in it. Only stored members are taken: nothing is ever decompressed."""

from __future__ import annotations

import struct

from .mapped_file import HEADER_LIMIT, Cursor, MappedFile

__all__ = ["stored_members"]

_END, _END_64, _LOCATOR_64, _ENTRY, _LOCAL = b"PK\5\6", b"PK\6\6", b"PK\6\7", b"PK\1\2", b"PK\3\4"
_BIG = 0xFFFFFFFF  # in the place of a number that is in the part for large archives


def stored_members(file: MappedFile) -> dict[str, tuple[int, int]]:
    """The first byte and the size of each member, by name."""
    count, size, start = _directory(file)
    if size > HEADER_LIMIT or count > size // 46:
        raise file.error("has an impossible zip directory", got=f"{count:,} members in {size:,} bytes")
    cursor = Cursor(file, 0, min(file.size, start + size))
    cursor.skip(start, "its zip directory")
    members: dict[str, tuple[int, int]] = {}
    for _ in range(count):
        name, place, size = _entry(cursor)
        if name in members:
            raise file.error("has a member twice in its zip archive", got=repr(name))
        members[name] = _data_place(file, name, place, size), size
    return members


def _directory(file: MappedFile) -> tuple[int, int, int]:
    """How many members the archive has, and the size and place of its directory, from the record at its end."""
    tail = max(0, file.size - 22 - 0xFFFF)  # a comment may follow
    at = tail + file.bytes[tail:].tobytes().rfind(_END)
    if at < tail:
        raise file.error("is not a whole zip archive", "a directory at its end")
    end = Cursor(file, at + 10)
    count, size, start, comment = end.numbers("HIIH", "its zip directory")
    end.skip(comment, "its zip directory")
    if at >= 20 and file.bytes[at - 20 : at - 16].tobytes() == _LOCATOR_64:
        (place,) = struct.unpack("<Q", file.bytes[at - 12 : at - 4].tobytes())
        cursor = Cursor(file)
        cursor.skip(place, "its zip directory")
        if cursor.take(4, "its zip directory") == _END_64:
            cursor.skip(28, "its zip directory")
            count, size, start = cursor.numbers("QQQ", "its zip directory")
    return count, size, start


def _entry(cursor: Cursor) -> tuple[str, int, int]:
    """The name, place and size of one member."""
    what = "its zip directory"
    if cursor.take(4, what) != _ENTRY:
        raise cursor.file.error("has a damaged zip directory")
    cursor.skip(4, what)
    flags, method = cursor.numbers("HH", what)
    cursor.skip(8, what)
    packed, size, name_size, extra_size, comment_size = cursor.numbers("IIHHH", what)
    cursor.skip(8, what)
    place = cursor.number("I", what)
    name = cursor.text(name_size, "the name of a zip member")
    extra = cursor.take(extra_size, what)
    cursor.skip(comment_size, what)
    if flags & 1 or method:
        raise cursor.file.error(
            f"has the zip member {name!r} encrypted or compressed", "stored members, as torch.save writes them"
        )
    size, packed, place = _large(extra, size, packed, place)
    if size != packed:
        raise cursor.file.error(f"has two sizes for the zip member {name!r}", size, packed)
    return name, place, size


def _large(extra: bytes, *numbers: int) -> tuple[int, ...]:
    """The numbers, of which those that are too large for 32 bits are in the extra field 1, in their order."""
    found: list[int] = []
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<HH", extra)
        if kind == 1:
            found = [n for (n,) in struct.iter_unpack("<Q", extra[4 : 4 + size // 8 * 8])][::-1]
        extra = extra[4 + size :]
    return tuple(found.pop() if n == _BIG and found else n for n in numbers)


def _data_place(file: MappedFile, name: str, place: int, size: int) -> int:
    """The first byte of a member's content, which lies behind a second header and a second copy of its name."""
    cursor = Cursor(file)
    what = f"the zip member {name!r}"
    cursor.skip(place, what)
    if cursor.take(4, what) != _LOCAL:
        raise file.error(f"has no {what} where its directory says")
    cursor.skip(22, what)
    name_size, extra_size = cursor.numbers("HH", what)
    if cursor.take(name_size, what) != name.encode():
        raise file.error(f"has another zip member in the place of {name!r}")
    cursor.skip(extra_size, what)
    return cursor.skip(size, what)
