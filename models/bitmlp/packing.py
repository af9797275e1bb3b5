"""Levels of one bit, or of three values, packed into bytes, and the files that they are kept in."""

from __future__ import annotations

import os
import re
from itertools import pairwise
from typing import Any

import numpy as np

import minigrad as mg
from minigrad.errors import CheckpointError

from .model import BitMLP, levels

SIZES = r"[1-9][0-9]{0,8}(,[1-9][0-9]{0,8})+"
POWERS = np.array([1, 3, 9, 27, 81], "uint8")  # five ternary digits fit into a byte: 3⁵ = 243


def pack(values: np.ndarray, kind: str) -> np.ndarray:
    """Levels of any shape -> bytes: 8 levels of ±1 in each, or 5 of -1, 0, 1."""
    flat = np.ravel(values)
    if kind == "binary":
        return np.packbits(flat > 0)
    digits = np.pad((flat + 1).astype("uint8"), (0, -len(flat) % 5)).reshape(-1, 5)
    return (digits * POWERS).sum(axis=1, dtype="uint8")  # (n, 5) -> (n,)


def unpack(packed: np.ndarray, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """What `pack` packed, as float32; bytes that `pack` cannot have made are refused."""
    count, per_byte = int(np.prod(shape)), 8 if kind == "binary" else 5
    if (
        packed.dtype != "uint8"
        or packed.shape != (-(-count // per_byte),)
        or kind == "ternary"
        and (packed > 242).any()
    ):
        raise CheckpointError(
            f"these are no {kind} levels of {shape}",
            f"{-(-count // per_byte)} bytes",
            f"{packed.shape} {packed.dtype}",
            "pack the run again",
        )
    if kind == "binary":
        return np.unpackbits(packed, count=count).reshape(shape) * np.float32(2) - 1
    digits = packed[:, None] // POWERS % 3  # (n,) -> (n, 5)
    return np.ravel(digits)[:count].reshape(shape).astype("float32") - 1


def write(model: BitMLP, path: str | os.PathLike[str]) -> int:
    """Keep a model in a safetensors file, as packed levels with their scales, or whole if it is "float"; the bytes of it."""
    tensors: dict[str, Any] = {}
    for name, weight in model.state_dict().items():
        if model.kind == "float":
            tensors[name] = weight
        else:
            scale, values = levels(np, weight.numpy(), model.kind)
            tensors[name], tensors[f"{name}.scale"] = pack(values, model.kind), np.reshape(scale, 1)
    sizes = ",".join(map(str, model.sizes))
    mg.save(tensors, path, metadata={"model": "bitmlp", "kind": model.kind, "sizes": sizes})
    return os.path.getsize(path)


def read(path: str | os.PathLike[str]) -> BitMLP:
    """The model that `write` kept, its levels times their scales as plain float weights: it predicts the same bits."""
    tensors = mg.load(path)
    kind, sizes = _described(path)
    model = BitMLP(sizes, "float")
    state = {}
    for name, weight in model.state_dict().items():
        wanted = [name] if kind == "float" else [name, f"{name}.scale"]
        if any(key not in tensors for key in wanted) or kind != "float" and tensors[wanted[1]].shape != (1,):
            raise CheckpointError(f"{os.fspath(path)!r} lacks a part of {name}", " and ".join(wanted), list(tensors))
        state[name] = (
            tensors[name]
            if kind == "float"
            else tensors[f"{name}.scale"].numpy() * unpack(tensors[name].numpy(), weight.shape, kind)
        )
    model.load_state_dict(state)
    return model.eval()


def _described(path: str | os.PathLike[str]) -> tuple[str, tuple[int, ...]]:
    """The kind and the sizes that stand in the head of a file."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        said = file.metadata() or {}
    sizes = said.get("sizes", "")
    known = said.get("model") == "bitmlp" and said.get("kind") in BitMLP.KINDS and re.fullmatch(SIZES, sizes)
    numbers = tuple(map(int, sizes.split(","))) if known else ()
    if not known or sum(a * b for a, b in pairwise(numbers)) > 8 * os.path.getsize(path):
        raise CheckpointError(f"{os.fspath(path)!r} was not packed by bitmlp", fix="make one with pack")
    return said["kind"], numbers
