"""Bytes as characters that can be seen: byte-level BPE writes each of the 256 bytes of UTF-8 as one letter or sign."""

from __future__ import annotations

__all__ = ["BYTE_OF", "CHARACTER_OF", "to_bytes", "to_characters"]

_VISIBLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_HIDDEN = [byte for byte in range(256) if byte not in _VISIBLE]
# A byte that is a visible character of Latin-1 stands for itself; the others, in their order, from U+0100 on.
CHARACTER_OF = {byte: chr(byte) for byte in _VISIBLE} | {byte: chr(256 + i) for i, byte in enumerate(_HIDDEN)}
BYTE_OF = {character: byte for byte, character in CHARACTER_OF.items()}

_TABLE = {ord(bytes([byte]).decode("latin-1")): character for byte, character in CHARACTER_OF.items()}


def to_characters(text: str) -> str:
    """The bytes of a text, each as its character.

    >>> to_characters(" é")
    'ĠÃ©'
    """
    return text.encode("utf-8").decode("latin-1").translate(_TABLE)


def to_bytes(token: str) -> bytes:
    """The bytes that a token stands for; one with other characters, such as an added token, stands for itself."""
    try:
        return bytes([BYTE_OF[character] for character in token])
    except KeyError:
        return token.encode("utf-8")
