"""Trained models for other frameworks: `WRITERS["onnx"](loaded, folder)`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .onnx import export_onnx

__all__ = ["WRITERS", "export_onnx"]

WRITERS: dict[str, Callable[[Any, Any], Path]] = {"onnx": export_onnx}
