"""Trained models for other frameworks: `export_onnx(loaded, folder)`."""

from .onnx import export_onnx

__all__ = ["export_onnx"]
