"""Trained models for other frameworks: `export_onnx(loaded, folder)`, `export_numpy(loaded, folder)`."""

from .numpy import export_numpy
from .onnx import export_onnx

__all__ = ["export_numpy", "export_onnx"]
