"""A graph as a file: one safetensors file that holds its constants, and its steps as JSON in the header.

A file may come from anybody. Nothing in it is run: an op is looked up by name among those that minigrad has, and whatever
does not have the form of a graph is refused.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from ..engine.backend import DTYPES, to_numpy
from ..engine.op import OPS
from ..errors import ArgumentError, CheckpointError
from ..kernels.registry import FUSED
from ..saving import load, save
from .graph import Graph, Number, Size, Step, Value, names
from .whole import WHOLE, with_kept

__all__ = ["as_json", "from_json", "load_graph", "save_graph"]

FORM = "minigrad graph 1"


def save_graph(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Write a graph, with its constants, to a safetensors file."""
    named = names(graph)
    constants = {named[v]: to_numpy(array) for v, array in graph.constants.items()}
    save(constants or {"nothing": np.zeros(0, "float32")}, path, {"form": FORM, "graph": json.dumps(as_json(graph))})


def load_graph(path: str | os.PathLike[str]) -> Graph:
    """The graph that `save_graph` wrote."""
    from safetensors import safe_open

    constants = load(path)  # refuses what is not whole
    with safe_open(os.fspath(path), framework="np") as file:
        metadata = file.metadata() or {}
    if metadata.get("form") != FORM:
        raise CheckpointError(f"{os.fspath(path)!r} holds no graph", FORM, repr(metadata.get("form")))
    try:
        return from_json(json.loads(metadata["graph"]), {name: t.data for name, t in constants.items()})
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(f"{os.fspath(path)!r} holds a damaged graph: {error}") from None


def as_json(graph: Graph) -> dict[str, Any]:
    """The graph without the elements of its constants, as what JSON can hold."""
    named = names(graph)
    values = [*graph.inputs, *graph.constants, *[out for step in graph.steps for out in step.outputs]]
    return {
        "values": {named[v]: {"dtype": v.dtype.name, "shape": _packed(v.shape, named)["tuple"]} for v in values},
        "inputs": [named[v] for v in graph.inputs],
        "constants": [named[v] for v in graph.constants],
        "steps": [
            {
                "op": step.op.name,
                "inputs": [_packed(x, named) for x in step.inputs],
                "attrs": {name: _packed(x, named) for name, x in step.attrs.items()},
                "outputs": [named[v] for v in step.outputs],
                "scope": step.scope,
                "constant": list(step.constant),
            }
            for step in graph.steps
        ],
        "outputs": [named[v] for v in graph.outputs],
    }


def from_json(form: dict[str, Any], constants: dict[str, Any]) -> Graph:
    """The graph of `as_json`, given its constants."""
    values = {
        name: Value(_unpacked({"tuple": one["shape"]}, {}), _dtype(one["dtype"]), name)
        for name, one in form["values"].items()
    }
    steps = []
    for one in form["steps"]:
        inputs = tuple([_unpacked(x, values) for x in one["inputs"]])
        attrs = {str(name): _unpacked(x, values) for name, x in one["attrs"].items()}
        outputs = tuple([values[name] for name in one["outputs"]])
        constant = tuple([int(i) for i in one.get("constant", ()) if 0 <= i < len(inputs)])
        steps.append(Step(_op(one["op"]), inputs, attrs, outputs, str(one["scope"]), constant=constant))
    held = {values[name]: constants[name] for name in form["constants"]}
    return Graph([values[n] for n in form["inputs"]], steps, [values[n] for n in form["outputs"]], held)


def _op(name: Any) -> Any:
    if name in OPS:
        return OPS[name]
    if name in FUSED and FUSED[name].lowering == WHOLE:
        return with_kept(FUSED[name])
    raise CheckpointError("graph: an op is not one of minigrad's", got=repr(name))


def _dtype(name: Any) -> str:
    if name not in DTYPES:
        raise CheckpointError("graph: a dtype is not one of a Tensor's", got=repr(name))
    return str(name)


def _packed(x: Any, named: dict[Value, str]) -> Any:
    """What JSON can hold for an input or attribute; what it has no form for becomes a dict of one entry."""
    if isinstance(x, Value):
        return {"value": named[x]}
    if isinstance(x, Size):
        return {"size": [int(x), list(x.symbols), x.factor, x.offset]}
    if isinstance(x, (tuple, list)):
        return {"tuple": [_packed(part, named) for part in x]}
    if isinstance(x, slice):
        return {"slice": [_packed(part, named) for part in (x.start, x.stop, x.step)]}
    if x is Ellipsis:
        return {"ellipsis": True}
    if isinstance(x, (np.dtype, type)):
        return {"dtype": np.dtype(x).name}
    if isinstance(x, Number):
        raise ArgumentError(
            "graph: a number that is asked for at each call cannot be written to a file",
            got=repr(x),
            fix="trace the module in eval mode: model.eval()",
        )
    if x is None or isinstance(x, (bool, int, float, str)):
        return x
    raise ArgumentError("graph: an attribute has no form in a file", "numbers, strings, tuples, slices", repr(x))


def _unpacked(x: Any, values: dict[str, Value]) -> Any:
    if not isinstance(x, dict):
        if x is None or isinstance(x, (bool, int, float, str)):
            return x
        raise CheckpointError("graph: an attribute has an unknown form", got=type(x).__name__)
    ((kind, content),) = x.items()
    if kind == "value":
        return values[content]
    if kind == "size":
        value, symbols, factor, offset = content
        return Size(int(value), [str(s) for s in symbols], int(factor), int(offset))
    if kind == "tuple":
        return tuple([_unpacked(part, values) for part in content])
    if kind == "slice":
        return slice(*[_unpacked(part, values) for part in content])
    if kind == "ellipsis":
        return Ellipsis
    if kind == "dtype":
        return np.dtype(_dtype(content))
    raise CheckpointError("graph: an attribute has an unknown form", got=repr(kind))
