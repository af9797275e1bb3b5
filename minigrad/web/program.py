"""Programs of a page: functions of a model, traced into graphs that the browser's runtime executes, and the tensors they read.

minigrad.web.runtime/*.js   kernels by the name of the op, and what runs a graph
traced                      a function on arrays -> a Graph whose constants are the weights
Programs                    several graphs, and each of their constants once
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import Any

import numpy as np

from ..engine.backend import to_numpy
from ..engine.modes import Mode, local, no_grad
from ..engine.op import OPS
from ..engine.tensor import Tensor, wrap
from ..errors import ArgumentError, MinigradError
from ..ir import Graph, Size, Tracing, Value, with_symbols
from ..ir.files import as_json
from ..ir.graph import Step, run_step, without_unused
from ..ir.surroundings import Argument, Held, look, sources, together
from ..kernels.registry import FUSED
from ..tracer import tracing

__all__ = ["RUNTIME", "Programs", "computed_beforehand", "graph_of", "kernels", "runtime", "traced"]

RUNTIME = (
    "arrays", "elementwise", "shaping", "indexing", "reductions", "products", "packed", "neural", "recurrent", "program", "weights"
)  # fmt: skip
DTYPES = ("float32", "float64", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "bool")
ALIGNED = 8  # bytes: where a tensor may begin


@cache
def runtime(*names: str) -> str:
    """The text of scripts of minigrad/web/runtime, one after the other."""
    folder = files("minigrad.web") / "runtime"
    return "\n".join((folder / f"{name}.js").read_text(encoding="utf-8") for name in names)


@cache
def kernels() -> frozenset[str]:
    """The names of the ops that a page can compute."""
    text = runtime(*RUNTIME)
    tables = re.findall(r"^(?:elementwise\(|const REDUCTIONS = )\{\n(.*?)^\}", text, re.DOTALL | re.MULTILINE)
    entries = [name for table in tables for name in re.findall(r"(?:^  |[,(] )(\w+)(?=[:,])", table, re.MULTILINE)]
    named = {*entries, *re.findall(r"^KERNELS\.(\w+) = ", text, re.MULTILINE)}
    return frozenset(named & {*OPS, *FUSED})


class WholeTracing(Tracing):
    """Writes fused ops of these names down as they are, and all others as the ops that define them, whatever kernel computes them here."""

    notes_lines = False
    exporting = True

    def __init__(self, whole: Collection[str], *sources: Any):
        super().__init__(*sources)
        self.whole = whole

    def instead(self, op: Any) -> Any:
        is_whole = op.name in self.whole and not local.mode.record  # gradients are those of the definition
        return partial(self._in_one, op) if is_whole else op.define

    def _in_one(self, op: Any, args: Sequence[Any], attrs: dict[str, Any]) -> Any:
        """Compute an op while nobody watches, not even the making of its kernel, and write it down as one step."""
        watched, local.mode = local.mode, Mode(record=False, scope=local.mode.scope)
        try:
            made = op(*args, **attrs)
        finally:
            local.mode = watched
        if isinstance(made[0] if isinstance(made, tuple) else made, Tensor):
            self.called(op, args, attrs, made, 0.0)
        return made

    def _created(self, array: Any) -> None:
        """A new array of one number, or of 0, 1, 2 and so on, is made by steps, so that its size may vary; any other is a constant."""
        super()._created(array)
        value = self.known[id(array)].value
        if value not in self.constants or array.size < 2 or array.dtype.name not in DTYPES:
            return
        is_counting = array.ndim == 1 and array.dtype.kind in "iu" and bool((array == np.arange(array.size)).all())
        if not is_counting and not bool((array == array.flat[0]).all()):
            return
        del self.constants[value]
        one = Value((), array.dtype, "constant")
        self.constants[one] = np.asarray(array.dtype.type(1) if is_counting else array.flat[0])
        if not is_counting:
            self.steps.append(Step(OPS["broadcast_to"], (one,), {"shape": array.shape}, (value,)))
            return
        ones, counted = Value(array.shape, array.dtype), Value(array.shape, array.dtype)
        self.steps.append(Step(OPS["broadcast_to"], (one,), {"shape": array.shape}, (ones,)))
        self.steps.append(Step(OPS["_cumsum"], (ones,), {"axis": 0}, (counted,)))
        self.steps.append(Step(OPS["subtract"], (counted, 1), {}, (value,)))


def traced(
    function: Callable[..., Any],
    arrays: Sequence[Any],
    others: Sequence[Any] | None = None,
    *,
    otherwise: Callable[..., Any] | None = None,
    holding: Sequence[Any] = (),
) -> Graph:
    """The graph of a function of Tensors that returns one or several; its constants are whatever else it reads.

    With `others`, arrays of other sizes, sizes that vary become symbols; `otherwise` is what is called with these, if it is
    not the same function. `holding` are modules that the function uses, where these are not seen in itself. An op that a
    page cannot compute, and whose result is not the same at each call, is refused by name.
    """
    return _computable(graph_of(function, arrays, others, otherwise=otherwise, holding=holding, whole=kernels()))


def graph_of(
    function: Callable[..., Any],
    arrays: Sequence[Any],
    others: Sequence[Any] | None = None,
    *,
    otherwise: Callable[..., Any] | None = None,
    holding: Sequence[Any] = (),
    whole: Collection[str],
) -> Graph:
    """As `traced`, whether a page can compute all ops or not; fused ops of the names in `whole` stay one step each."""
    graph = _once(function, arrays, holding, whole)
    if others is not None:
        try:
            graph = with_symbols(graph, _once(otherwise or function, others, holding, whole))
        except MinigradError as error:
            raise ArgumentError(f"page: the model cannot be traced for inputs of any size: {error}") from error
    return graph


def _once(function: Callable[..., Any], arrays: Sequence[Any], holding: Sequence[Any], whole: Collection[str]) -> Graph:
    tensors = [wrap(np.array(array)) for array in arrays]
    found, _, recorded = sources(function, tensors)
    inside = together([look(thing) for thing in holding]).tensors
    found |= {id(getattr(t, "data", t)): Held(t) for t in inside}
    tracer = WholeTracing(whole, found, recorded)
    try:
        with no_grad(), tracing(tracer):
            made = function(*tensors)
            outputs = [tracer.result(t) for t in (made if isinstance(made, (tuple, list)) else (made,))]
    except MinigradError as error:
        raise ArgumentError(
            f"page: the model cannot be traced: {error}", fix="a page computes with ops alone: see docs/exporting.md"
        ) from error
    if tracer.draws:
        raise ArgumentError(
            "page: the model draws random numbers, which a page cannot",
            fix="switch dropout and the like off: model.eval()",
        )
    graph = tracer.graph(outputs)
    inputs: dict[int, Value] = {}
    constants = dict(graph.constants)
    arrays_of = {value: array for array, value in tracer.outside.values()}
    for value in graph.inputs:
        source = tracer.inputs.get(value)
        if isinstance(source, Argument):
            inputs[source.position] = value
        elif value in arrays_of:
            constants[value] = to_numpy(arrays_of[value])
    ordered = [inputs.get(i) or Value(t.shape, t.dtype) for i, t in enumerate(tensors)]
    return without_unused(Graph(ordered, graph.steps, outputs, constants), outputs, keep_inputs=True)


def _computable(graph: Graph) -> Graph:
    """The graph without ops that a page lacks: what they make of constants is computed now, and anything else refused."""
    made = computed_beforehand(graph, _is_known)
    for step in made.steps:
        if not _is_known(step):
            raise _missing(step)
    for value in (*made.inputs, *made.constants):
        if value.dtype.name not in DTYPES:
            raise ArgumentError("page: a page cannot compute with numbers of this kind", ", ".join(DTYPES), value.dtype)
    return made


def computed_beforehand(graph: Graph, is_known: Callable[[Step], bool]) -> Graph:
    """The graph in which steps that are not known, but depend on constants alone, are constants themselves."""
    known: dict[Any, Any] = dict(graph.constants)
    steps, constants = [], dict(graph.constants)
    for step in graph.steps:
        is_fixed = all(v in known for v in step.values) and not step.numbers and not _has_size(step)
        if is_fixed:
            known.update(zip(step.outputs, run_step(step, known)))
        if is_fixed and not is_known(step) and not step.op.random:
            constants.update({v: to_numpy(known[v]) for v in step.outputs})
        else:
            steps.append(step)
    return without_unused(Graph(graph.inputs, steps, graph.outputs, constants), graph.outputs, keep_inputs=True)


def _is_known(step: Step) -> bool:
    is_ours = step.op is OPS.get(step.op.name) or step.op is FUSED.get(step.op.name)
    dtypes = {v.dtype.name for v in (*step.values, *step.outputs)}
    is_plain = not step.numbers and not step.attrs.get("dropout_p")
    return is_ours and is_plain and step.op.name in kernels() and dtypes <= {*DTYPES}


def _missing(step: Step) -> ArgumentError:
    where = f" in the module {step.scope!r}" if step.scope else ""
    dtypes = ", ".join(dict.fromkeys(v.dtype.name for v in (*step.values, *step.outputs)))
    return ArgumentError(
        f"page: a page cannot compute the op {step.op.name!r}{where} (of {dtypes})",
        "the ops that docs/exporting.md lists, in float32 or float64",
        fix="write this part with other ops, or share a folder: minigrad export RUN FOLDER",
    )


def _has_size(step: Step) -> bool:
    def look(x: Any) -> bool:
        if isinstance(x, slice):
            return any(map(look, (x.start, x.stop, x.step)))
        return any(map(look, x)) if isinstance(x, (tuple, list)) else isinstance(x, Size)

    return any(map(look, (*step.inputs, *step.attrs.values())))


class Programs:
    """Graphs by name, and their constants as bytes, each once, however many graphs and names it has."""

    def __init__(self) -> None:
        self.forms: dict[str, Any] = {}
        self.widths: dict[str, int] = {}  # how many numbers the first output of each has for a row
        self.entries: dict[str, Any] = {}
        self.content = bytearray()
        self._names: dict[int, str] = {}
        self._kept: list[Any] = []  # so that no other array gets the identity of one of these

    def add(self, name: str, graph: Graph) -> None:
        """Take a graph of `traced`."""
        form = as_json(graph)
        read = dict(zip(form["constants"], graph.constants.values()))
        values = form.pop("values")
        form["inputs"] = [{"name": name, **values[name]} for name in form["inputs"]]
        form["constants"] = {name: self.tensor(array) for name, array in read.items()}
        form["dtypes"] = {out: values[out]["dtype"] for step in form["steps"] for out in step["outputs"]}
        for step in form["steps"]:
            del step["constant"]
        self.forms[name] = form
        self.widths[name] = math.prod(graph.outputs[0].shape[1:])

    def tensor(self, array: Any) -> str:
        """Take an array, and say its name."""
        if id(array) not in self._names:
            name = self._names[id(array)] = f"t{len(self._names)}"
            self._kept.append(array)
            data = np.ascontiguousarray(to_numpy(array))
            self.content += bytes(-len(self.content) % ALIGNED)
            start = len(self.content)
            self.entries[name] = {"dtype": data.dtype.name, "shape": list(array.shape), "start": start}
            self.content += data.astype(data.dtype.newbyteorder("<"), copy=False).tobytes()
        return self._names[id(array)]
