"""Writes nodes of ONNX: names of values, constants, and sizes that are computed from those of the inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..engine.backend import to_numpy
from ..errors import ArgumentError
from ..ir import Graph, Size, Step, Value
from ..ir.lowering import sample

__all__ = ["MAPPINGS", "Writer", "maps"]

Mapping = Callable[["Writer", Step], Any]
COMPLEX = ("_join", "real", "imag", "getitem")  # of complex numbers, which have their parts along a last axis
MAPPINGS: dict[str, Mapping] = {}  # the name of an op -> what adds its nodes and returns the names of its results


def maps(*ops: str) -> Callable[[Mapping], Mapping]:
    """Declare how ops of these names are written: `mapping(writer, step)` returns a name, or one for each output."""

    def declared(mapping: Mapping) -> Mapping:
        MAPPINGS.update(dict.fromkeys(ops, mapping))
        return mapping

    return declared


class Writer:
    """The nodes so far. Methods take and return names of arrays in the ONNX graph."""

    def __init__(self, graph: Graph, inputs: Sequence[str]):
        import onnx

        self.onnx = onnx
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}
        self.names: dict[Value, str] = dict(zip(graph.inputs, inputs))
        self._constants: dict[Any, str] = {}
        self._symbols: dict[str, str] = {}
        self._scope = ""
        for value, name in self.names.items():
            for axis, size in enumerate(value.shape):
                if isinstance(size, Size) and str(size) in size.symbols and str(size) not in self._symbols:
                    whole = self.node("Shape", name)
                    self._symbols[str(size)] = self.node("Gather", whole, self.constant(np.array([axis])), axis=0)
        for number, (value, array) in enumerate(graph.constants.items()):
            self.names[value] = self.initializer(f"{value.name or 'constant'}_{number}", to_numpy(array))

    def write(self, step: Step) -> None:
        """Add the nodes of a step; an op without a mapping is an error that names it."""
        self._scope = f"{step.scope}.{step.op.name}" if step.scope else step.op.name
        mapping = MAPPINGS.get(step.op.name)
        is_complex = any(value.dtype.kind == "c" for value in (*step.values, *step.outputs))
        if is_complex and step.op.name not in COMPLEX:
            mapping = None
        made = NotImplemented if mapping is None or step.numbers else mapping(self, step)
        if made is NotImplemented:
            where = f" in the module {step.scope!r}" if step.scope else ""
            raise ArgumentError(
                f"onnx: there is no mapping for the op {step.op.name!r}{where}",
                "the ops of minigrad.onnx.MAPPINGS, with options that ONNX has",
                ", ".join(f"{k}={v!r}" for k, v in step.attrs.items())[:200] or None,
                "write this part with other ops, add a mapping with minigrad.onnx.writer.maps, or share a folder: minigrad export RUN FOLDER",
            )
        self.names.update(zip(step.outputs, (made,) if isinstance(made, str) else made))

    def node(self, kind: str, *inputs: str, count: int = 1, **attributes: Any) -> Any:
        """Add a node; the name of its result, or a list of names if it has several."""
        outputs = [f"{kind}_{len(self.nodes)}" + (f"_{i}" if i else "") for i in range(count)]
        name = f"{self._scope}/{kind}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), outputs, name=name, **attributes))
        return outputs[0] if count == 1 else outputs

    def initializer(self, name: str, array: np.ndarray) -> str:
        self.initializers[name] = self.onnx.numpy_helper.from_array(
            np.ascontiguousarray(array).reshape(array.shape), name
        )
        return name

    def constant(self, array: Any, dtype: Any = None) -> str:
        """A small array that is known now; equal ones are kept once."""
        array = np.asarray(array, dtype)
        key = (array.tobytes(), array.shape, array.dtype.str)
        if key not in self._constants:
            self._constants[key] = self.initializer(f"const_{len(self._constants)}", array)
        return self._constants[key]

    def sizes(self, shape: Sequence[int]) -> str:
        """Sizes as an array of whole numbers, computed where they vary."""
        if not any(isinstance(n, Size) for n in shape):
            return self.constant(np.array([int(n) for n in shape], "int64"))
        return self.node("Concat", *[self.size(n) for n in shape], axis=0)

    def size(self, size: int) -> str:
        """One size, as an array of one whole number."""
        if not isinstance(size, Size):
            return self.constant(np.array([size], "int64"))
        made = self._symbols[size.symbols[0]]
        for symbol in size.symbols[1:]:
            made = self.node("Mul", made, self._symbols[symbol])
        made = made if size.factor == 1 else self.node("Mul", made, self.constant([size.factor], "int64"))
        return self.node("Add", made, self.constant([size.offset], "int64")) if size.offset else made

    def cast(self, name: str, to: Any) -> str:
        return str(self.node("Cast", name, to=self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(to))))

    def get(self, x: Any, dtype: Any = None) -> str:
        """The name of an input of a step, in this dtype: a Value, a size that varies, or a number."""
        if isinstance(x, Value):
            name = self.names[x]
            return name if dtype is None or x.dtype == np.dtype(dtype) else self.cast(name, dtype)
        if isinstance(x, Size):
            name = self.node("Squeeze", self.size(x), self.constant([0], "int64"))
            return name if dtype is None or np.dtype(dtype) == np.int64 else self.cast(name, dtype)
        return self.constant(x, dtype)

    def both(self, step: Step) -> tuple[list[str], np.dtype]:
        """All inputs of a step in their common dtype, since ONNX promotes nothing."""
        dtype = np.result_type(*[int(x) if isinstance(x, Size) else sample(x) for x in step.inputs])
        return [self.get(x, dtype) for x in step.inputs], dtype
