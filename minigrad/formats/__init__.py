"""Files of weights that others write: safetensors, GGUF, Marian's and PyTorch's. They are mapped, not read, and never run.

>>> import minigrad as mg, os, tempfile
>>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
>>> mg.save({"w": mg.ones(2, 3)}, path)
>>> weights = open_weights(path)
>>> weights["w"].format, weights["w"].shape, weights["w"].array().sum().item()
('f32', (2, 3), 6.0)
"""

from __future__ import annotations

import os

from ..errors import CheckpointError
from .gguf import read_gguf
from .mapped_file import MappedFile
from .marian import is_marian, read_marian
from .pytorch import is_pytorch, read_pytorch
from .safetensors import read_safetensors
from .shards import read_shards
from .shortlist import Shortlist, read_shortlist
from .stored_tensor import StoredTensor, Weights

__all__ = [
    "MappedFile",
    "Shortlist",
    "StoredTensor",
    "Weights",
    "is_pytorch",
    "open_weights",
    "read_file",
    "read_shortlist",
]

_IN_A_FOLDER = (
    "model.safetensors.index.json", "model.safetensors", "pytorch_model.bin.index.json", "pytorch_model.bin"
)  # fmt: skip


def open_weights(path: str | os.PathLike[str]) -> Weights:
    """The tensors of a file, of the shards that an index lists, or of a folder in Hugging Face's layout, by name.

    The format is told by the content, not by the name. Everything is checked, and nothing is copied until it is asked for:
    while the weights are in use the file must not be changed.
    """
    path = os.fspath(path)
    if os.path.isdir(path):
        found = [name for name in _IN_A_FOLDER if os.path.exists(os.path.join(path, name))]
        if not found:
            raise CheckpointError(
                f"load: the folder {path!r} has no weights", " or ".join(_IN_A_FOLDER), fix="give the path of a file"
            )
        path = os.path.join(path, found[0])
    file = MappedFile(path)
    return read_shards(file, read_file) if path.endswith(".index.json") else read_file(file)


def read_file(file: MappedFile) -> Weights:
    """The tensors of one file, whose first bytes say what it is."""
    if file.starts_with(b"GGUF"):
        return read_gguf(file)
    if is_pytorch(file):
        return read_pytorch(file)
    if is_marian(file):
        return read_marian(file)
    if file.starts_with(b"version https://git-lfs"):
        raise file.error("is a pointer to a file in Git LFS, not the file itself", fix="run git lfs pull in its folder")
    if file.starts_with(b"PK") or file.starts_with(b"\x93NUMPY"):
        raise file.error("is a zip archive or an array of NumPy's, not a file of weights", fix="read it with mg.load")
    return read_safetensors(file)
