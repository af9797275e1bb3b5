"""A trained model as a folder for onnxruntime: an .onnx file for each program, and the tokenizer beside it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ... import __version__
from ...onnx import onnx_model
from ...saving import write_atomically
from ..export import TOKENIZER, new_folder
from .programs import programs_of

__all__ = ["export_onnx"]


def export_onnx(loaded: Any, folder: str | os.PathLike[str]) -> Path:
    """Write `model.onnx`, or `encoder.onnx` and `decoder.onnx`, whose batch and length may be any."""
    models = {
        name: onnx_model(program.graph, program.inputs, program.outputs, f"{loaded.spec.name}_{name}")
        for name, program in programs_of(loaded).items()
    }

    def write(target: Path) -> None:
        for name, model in models.items():
            model.producer_version = __version__
            write_atomically(target / f"{name}.onnx", model.SerializeToString())
        if loaded.tokenizer is not None:
            write_atomically(target / TOKENIZER, loaded.tokenizer.to_json().encode())

    return new_folder(folder, write)
