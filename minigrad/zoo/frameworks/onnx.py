"""A trained model as a folder for onnxruntime: an .onnx file for each program, and the tokenizer beside it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ... import __version__
from ...onnx import MAPPINGS, onnx_model
from ...saving import write_atomically
from ...web.program import computed_beforehand
from ..export import TOKENIZER, new_folder
from .programs import Program, programs_of

__all__ = ["export_onnx"]


def export_onnx(loaded: Any, folder: str | os.PathLike[str]) -> Path:
    """Write an .onnx file for each program of the model; batch and length may be any."""
    models = {
        name: _model(program, f"{loaded.spec.name}_{name}") for name, program in programs_of(loaded, MAPPINGS).items()
    }

    def write(target: Path) -> None:
        for name, model in models.items():
            model.producer_version = __version__
            write_atomically(target / f"{name}.onnx", model.SerializeToString())
        if loaded.tokenizer is not None:
            write_atomically(target / TOKENIZER, loaded.tokenizer.to_json().encode())

    return new_folder(folder, write)


def _model(program: Program, name: str) -> Any:
    """A program as ONNX; what has no mapping, but depends on weights alone, is computed now."""
    graph = computed_beforehand(program.graph, lambda step: step.op.name in MAPPINGS)
    return onnx_model(graph, program.inputs, program.outputs, name)
