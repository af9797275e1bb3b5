"""The traced graph as ONNX, which onnxruntime and others run: `onnx_model(graph)`.

writer        names, constants and sizes while nodes are added, and the whole model
elementwise   ops of one element, and reductions
layout        shapes, and elements by their number
neural        products, norms, softmax and attention
"""

from .model import onnx_model
from .writer import MAPPINGS

__all__ = ["MAPPINGS", "onnx_model"]
