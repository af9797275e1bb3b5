"""Files of tensors: safetensors and NumPy's, which hold numbers and no code, written completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..engine.backend import DTYPES, is_array, to_numpy
from ..engine.tensor import Tensor
from ..errors import ArgumentError, CallError, CheckpointError, DtypeError, describe
from ..formats import MappedFile, StoredTensor, is_pytorch, read_file
from ..kernels import Packed
from ..ops.creation import tensor
from .files import check_folder, sync_folder, write_atomically
from .numpy_files import from_npy, from_npz, to_npy, to_npz
from .packed import PACKED, packed_in, packed_note
from .structure import described, restored

__all__ = ["check_folder", "load", "save", "sync_folder", "write_atomically"]

STRUCTURE = "minigrad.structure"  # in the metadata of a file that holds more than named tensors
PICKLED = (".pt", ".pth", ".bin", ".pkl", ".pickle")


def save(tensors: Any, path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
    """Write named tensors, or a model, an optimiser and more, to one file; an existing file stays until it is complete.

    What has a `state_dict()` is saved by it. Dicts, lists, tuples, numbers and texts around it come back by `load`. The file
    is a safetensors file; if the path ends with .npz, named tensors become NumPy's file, and with .npy a single one does.

    >>> import minigrad as mg, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "weights.safetensors")
    >>> mg.save({"w": mg.ones(2, 3)}, path)
    >>> mg.load(path)["w"].shape
    (2, 3)
    >>> model = mg.nn.Linear(3, 1)
    >>> optimizer = mg.optim.Adam(model.parameters())
    >>> mg.save({"model": model, "optimizer": optimizer, "epoch": 7}, path)
    >>> mg.load(path, into={"model": model, "optimizer": optimizer})["epoch"]
    7
    """
    content = _content(tensors, os.path.splitext(os.fspath(path))[1].lower(), metadata)
    try:
        write_atomically(path, content)
    except OSError as error:
        raise CheckpointError(
            f"save: {os.fspath(path)!r} cannot be written: {error.strerror}", fix="check the folder"
        ) from error


def load(path: str | os.PathLike[str], device: str | None = None, into: Any = None) -> Any:
    """What `save` wrote, and any file of safetensors', .npz or .npy: named tensors, sorted by name, or what was saved.

    Tensors are copied into memory of their own; weights that were saved packed stay in the file until they are used.
    Weights of others are read too, as float32 where they are quantised: GGUF, Marian's and PyTorch's files. No code is run.
    `into` is a model or whatever else has `load_state_dict`, or a dict of such objects by the names that they were saved
    under: each is given its state.
    """
    file = MappedFile(path)
    found: Any
    if file.starts_with(b"\x93NUMPY"):
        found = tensor(from_npy(file.bytes.tobytes(), file.path), device=device)
    elif file.starts_with(b"PK") and not is_pytorch(file):
        arrays = from_npz(file.bytes.tobytes(), file.path)
        found = {name: tensor(array, device=device) for name, array in arrays.items()}
    else:
        found = _from_weights(file, device)
    if into is not None:
        _give(into, found, file.path)
    return found


def _content(value: Any, suffix: str, metadata: Mapping[str, str] | None) -> bytes:
    """The bytes of a file with this suffix."""
    if suffix in PICKLED:
        raise ArgumentError(
            f"save: {suffix} is the name of a pickle, which minigrad does not write",
            "a path that ends with .safetensors, .npz or .npy",
            suffix,
            "save it as .safetensors, which PyTorch reads by safetensors.torch.load_file",
        )
    if not all(isinstance(text, str) for pair in (metadata or {}).items() for text in pair):
        raise ArgumentError("save: metadata is made of strings", "{'name': 'text'}", repr(metadata), "use str(value)")
    if suffix == ".npy":
        return to_npy(_single(value, metadata))
    named: dict[str, Any] = {}
    structure = described(value, "", named)
    if not isinstance(structure, dict) or "dict" not in structure:
        raise ArgumentError(
            "save: the tensors need names", "save({'name': tensor}, path)", f"save({describe(value)}, …)"
        )
    packed = {name: part for name, part in named.items() if isinstance(part, Packed)}
    arrays = {name: _contiguous(name, part, suffix) for name, part in named.items()}
    is_flat = all(part == {"tensor": key} for key, part in structure["dict"])
    if suffix == ".npz":
        if not is_flat or metadata or packed:
            raise ArgumentError(
                "save: .npz holds named tensors and nothing else",
                "a dict from names to tensors, without metadata",
                describe(value),
                "save it as .safetensors",
            )
        return to_npz(arrays)
    import json

    from safetensors.numpy import save as to_bytes

    notes = dict(metadata or {}) if is_flat else {**(metadata or {}), STRUCTURE: json.dumps(structure)}
    notes |= {PACKED: packed_note(packed)} if packed else {}
    return to_bytes(arrays, metadata=notes or None)


def _single(value: Any, metadata: Any) -> np.ndarray:
    if not (isinstance(value, Tensor) or is_array(value)) or metadata:
        raise ArgumentError("save: .npy holds one tensor", "save(tensor, path)", describe(value), "save it as .npz")
    return _contiguous("the tensor", value, ".npy")


def _from_weights(file: MappedFile, device: str | None) -> Any:
    import json

    weights = read_file(file)
    try:
        packed = packed_in(weights.metadata, {name: stored.data for name, stored in weights.items()})
    except (ValueError, TypeError, RecursionError) as error:
        raise file.error(f"has packed weights that do not fit: {error}") from None
    tensors: dict[str, Any] = {
        name: packed[name].to(device or "cpu") if name in packed else tensor(_as_saved(weights[name]), device=device)
        for name in sorted(weights)
    }
    if STRUCTURE not in weights.metadata:
        return tensors
    try:
        return restored(json.loads(weights.metadata[STRUCTURE]), tensors.__getitem__)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise file.error(f"does not say what its tensors belong to: {error}") from None


def _as_saved(stored: StoredTensor) -> np.ndarray:
    """In the dtype of the file, where NumPy has it."""
    return stored.data if stored.format == "f16" else stored.array()


def _give(into: Any, found: Any, shown: str) -> None:
    """Load the states into the objects, after all of them were found."""
    objects = into if isinstance(into, Mapping) else {None: into}
    states = {}
    for name, target in objects.items():
        if not hasattr(target, "load_state_dict"):
            expected = "an object with load_state_dict, or a dict of such"
            raise CallError(f"load: into= cannot take a state: {name or 'it'!r}", expected, describe(target))
        if name is not None and (not isinstance(found, Mapping) or name not in found):
            names = ", ".join(map(str, found)) if isinstance(found, Mapping) else describe(found)
            raise CheckpointError(f"load: {shown!r} holds no {name!r}", names[:200], fix="check the names of into=")
        states[name] = found if name is None else found[name]
    for name, target in objects.items():
        target.load_state_dict(states[name])


def _contiguous(name: str, value: Any, suffix: str) -> np.ndarray:
    """A C-contiguous copy: safetensors 0.8.0 writes other layouts wrongly, without an error."""
    array = value.data if isinstance(value, (Tensor, Packed)) else value
    if array.dtype.name not in DTYPES or array.dtype == "complex128" and suffix not in (".npz", ".npy"):
        raise DtypeError(
            f"save: {name!r} has a dtype that safetensors files cannot hold",
            "bool, integers, float16/32/64 or complex64",
            array.dtype,
            "convert it with x.astype",
        )
    return np.array(to_numpy(array), order="C", copy=True)
