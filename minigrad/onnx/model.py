"""A whole graph as a model of ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentError
from ..ir import Graph, Size, Value
from . import elementwise, fourier, layout, neural, recurrent  # noqa: F401  (they declare the mappings)
from .writer import Writer

__all__ = ["onnx_model"]

OPSET, IR_VERSION = 18, 9


def onnx_model(graph: Graph, inputs: Sequence[str], outputs: Sequence[str], name: str = "minigrad") -> Any:
    """The ModelProto of a traced graph, whose symbols become dynamic axes; an op without a mapping is refused by name."""
    try:
        import onnx
    except ImportError:
        raise ArgumentError("onnx: the package onnx is not installed", fix="pip install 'minigrad[onnx]'") from None
    writer = Writer(graph, inputs)
    for step in graph.steps:
        writer.write(step)
    for value, called in zip(graph.outputs, outputs, strict=True):
        writer.nodes.append(onnx.helper.make_node("Identity", [writer.names[value]], [called], name=called))

    def typed(value: Value, called: str) -> Any:
        kind = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
        shape = [str(n) if isinstance(n, Size) else n for n in value.shape]
        return onnx.helper.make_tensor_value_info(called, kind, shape)

    made = onnx.helper.make_graph(
        writer.nodes, name, [typed(v, n) for v, n in zip(graph.inputs, inputs, strict=True)],
        [typed(v, n) for v, n in zip(graph.outputs, outputs)], list(writer.initializers.values()),
    )  # fmt: skip
    model = onnx.helper.make_model(
        made, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=IR_VERSION,
        producer_name="minigrad",
    )  # fmt: skip
    onnx.checker.check_model(model)
    return model
