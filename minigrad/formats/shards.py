"""Weights in several files, which an index in JSON lists, as Hugging Face writes large models."""

from __future__ import annotations

import os
from collections.abc import Callable

from .json_object import json_object
from .mapped_file import HEADER_LIMIT, Cursor, MappedFile
from .stored_tensor import StoredTensor, Weights

__all__ = ["read_shards"]


def read_shards(index: MappedFile, read: Callable[[MappedFile], Weights]) -> Weights:
    """The tensors of all files that an index names; `read` opens one. Each tensor must be where the index says."""
    if index.size > HEADER_LIMIT:
        raise index.error("is too large for an index", f"at most {HEADER_LIMIT:,} bytes", f"{index.size:,}")
    content = json_object(index, Cursor(index).text(index.size, "its JSON"))
    places, notes = content.get("weight_map"), content.get("metadata", {})
    if not isinstance(places, dict) or not places or not isinstance(notes, dict):
        raise index.error("is no index of weights", '{"weight_map": {tensor: file}}')
    shards: dict[str, Weights] = {}
    for name, shard in places.items():
        path = _beside(index, shard)
        if shard not in shards:
            shards[shard] = read(MappedFile(path))
        if name not in shards[shard]:
            raise index.error(f"says that {name!r} is in {shard!r}, where it is not", fix="fetch all files again")
    tensors: dict[str, StoredTensor] = {}
    for shard, weights in shards.items():
        if twice := weights.keys() & tensors.keys():
            raise index.error(f"lists files that both have {min(twice)!r}", got=shard, fix="fetch all files again")
        tensors |= weights
        notes = {**weights.metadata, **notes}
    return Weights(next(iter(shards.values())).format, tensors, notes)


def _beside(index: MappedFile, shard: object) -> str:
    """The path of a file in the folder of the index, and nowhere else."""
    if not isinstance(shard, str) or not shard or shard in (".", "..") or set(shard) & set("/\\:\0"):
        raise index.error("names a file outside of its folder", "the name of a file beside it", repr(shard)[:100])
    path = os.path.join(os.path.dirname(index.path), shard)
    if not os.path.exists(path):
        raise index.error(f"names a file that is missing: {shard!r}", path, fix="fetch it into the same folder")
    return path
