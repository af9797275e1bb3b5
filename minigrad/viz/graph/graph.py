"""`mg.viz.graph`: the computation behind a tensor, or of a model on an input, as an object that can be drawn in many ways."""

from __future__ import annotations

import difflib
import inspect
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from ... import kernels, tree
from ...engine.graph import Node
from ...engine.modes import enable_grad
from ...engine.tensor import Tensor
from ...errors import ArgumentError, GradientError, MissingExtraError, describe, is_whole, nearest
from ...nn.module import Module
from ...ops.creation import tensor
from ...tracer import tracing
from ..drawing.page import as_data, framed
from ..drawing.scene import Scene, clean, write_as
from .boxes import Box, Watcher, boxes_of, key_of, names_in
from .export import data_of, page_of, text_of
from .labels import Look, labels_of
from .layout import digraph_of
from .picture import scene_of
from .replay import Step, replay
from .tree import Tree
from .values import is_freed
from .view import View

__all__ = ["SUFFIXES", "Graph", "graph", "watched"]

SUFFIXES = (".svg", ".png", ".pdf", ".dot", ".json", ".html", ".txt")
OPTIONS = ("name", "depth", "direction", "color", "fused", "seed")
ONE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def graph(
    what: Tensor | Module | Callable[..., Any], *inputs: Any, name: str | None = None, depth: int = 1,
    direction: str = "forward", color: str | None = None, fused: bool = False, seed: Any = None, **options: Any,
) -> Graph:  # fmt: skip
    """The graph of a tensor, `graph(loss)`; or of a model or function called with inputs, `graph(model, x)`.

    Of a compiled function, `graph(compiled)` shows which ops became one loop.

    A call is watched, so that every number is there; a tensor shows what is still known, which is all of it if it was
    computed inside `with mg.debug():`. `depth` says how many levels of modules a still picture opens; `direction` is
    "forward", "backward" or "both"; `color` tells a cost, "time", "bytes" or "flops". A model is computed by ordinary ops
    unless `fused`. Gradients are those of the output, weighted by `seed`, ones unless given. Other keyword arguments go
    to the model.

    >>> import minigrad as mg
    >>> x, w = mg.tensor(3.0), mg.tensor(2.0, requires_grad=True)
    >>> print(mg.viz.graph(w * x + 1))
    w                 input     float32  2  ∇ 3
    x                 input     float32  3
    multiply          op        float32  6  ∇ 1  <- w, x
    add               output    float32  7  ∇ 1  <- multiply, + ?
    to see every number, compute it inside `with mg.debug():`
    """
    look = Look(direction, color)
    if hasattr(what, "in_loops") and not inputs:  # a compiled function
        what, inputs = what.in_loops()
    if not is_whole(depth) or depth < 1:
        raise ArgumentError("graph: depth counts levels of modules", "a whole number from 1 on", repr(depth))
    _check_call(what, inputs, options)
    known = names_in(sys._getframe(1))
    given, apart = list[Any](), list[Node]()
    if isinstance(what, Tensor):
        roots, title = [what], known.get(id(what.node), ("graph", what))[0]
    else:
        given = [_as_input(x) for x in inputs]
        roots, apart = watched(lambda: what(*given, **options), fused)
        if not apart and not any(root.node for root in roots):  # a gradient records nothing if its input needs none
            given = [_as_input(x, needs_gradient=True) for x in given]
            roots, apart = watched(lambda: what(*given, **options), fused)
        title = type(what).__name__ if isinstance(what, Module) else getattr(what, "__name__", "graph")
        known = _names_of_call(what, given) | known
    if not apart and not any(root.node for root in roots):
        expected = "a tensor made from one with requires_grad=True, outside of no_grad()"
        got = ", ".join(describe(root) for root in roots) + " without a graph"
        raise GradientError("graph: nothing was recorded", expected, got, "record it, or watch a call: graph(f, x)")
    constants = [x.data for x in given if isinstance(x, Tensor) and x.node is None]
    return Graph(boxes_of(roots, known, constants, apart), name or title, depth, look, seed)


def _check_call(what: Any, inputs: Sequence[Any], options: dict[str, Any]) -> None:
    if not callable(what) and not isinstance(what, Tensor):
        raise ArgumentError("graph: this has no graph", "a Tensor, or a model and its inputs", type(what).__name__)
    signature = inspect.Signature() if isinstance(what, Tensor) else _signature(what)
    known = {} if signature is None else signature.parameters
    if signature is not None and not any(p.kind is p.VAR_KEYWORD for p in known.values()):
        for option in options.keys() - known:
            if difflib.get_close_matches(option, OPTIONS):
                fix = nearest(option, OPTIONS)
                raise ArgumentError(f"graph: unknown option {option!r}", ", ".join(OPTIONS), fix=fix)
    if isinstance(what, Tensor) and (inputs or options):
        raise ArgumentError("graph: a tensor takes no inputs", "graph(tensor), or graph(model, input)")
    needed = [p for p in known.values() if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if needed and not inputs and not options:
        kind, owner = ("model", type(what)) if isinstance(what, Module) else ("f", what)
        name = getattr(owner, "__name__", type(owner).__name__)
        raise ArgumentError(f"graph: {name} needs an input", str(signature), "none", f"graph({kind}, x)")


def _signature(what: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(what.forward if isinstance(what, Module) else what)
    except (TypeError, ValueError, AttributeError):
        return None


def _names_of_call(what: Any, given: Sequence[Any]) -> dict[int, tuple[str, Tensor]]:
    signature = _signature(what)
    words = [p.name for p in signature.parameters.values() if p.kind in ONE] if signature else []
    words += [f"input {i}" if len(given) > 1 else "input" for i in range(len(words), len(given))]
    names = {key_of(t): (word, t) for word, t in zip(words, given) if isinstance(t, Tensor)}
    if isinstance(what, Module):
        names |= {key_of(parameter): (path, parameter) for path, parameter in what.named_parameters()}
    return names


def _as_input(value: Any, needs_gradient: bool = False) -> Any:
    if not isinstance(value, Tensor) and (hasattr(value, "__array__") or isinstance(value, (list, int, float))):
        value = tensor(value)
    is_constant = isinstance(value, Tensor) and value.node is None and value.dtype.kind == "f"
    return value.detach().requires_grad_() if needs_gradient and is_constant else value


def watched(function: Callable[[], Any], fused: bool = False) -> tuple[list[Tensor], list[Node]]:
    """Call a function while watching, by ordinary ops unless `fused`; the tensors that it returned, and the nodes apart."""
    watcher = Watcher()
    with enable_grad(), tracing(watcher), nullcontext() if fused else kernels.use("definitions"):
        out = function()
    roots = [leaf for leaf in tree.leaves(out) if isinstance(leaf, Tensor)]
    if not roots:
        expected = "a Tensor, or some in a tuple, list or dict"
        raise ArgumentError("graph: the function returned no tensor", expected, type(out).__name__)
    return roots, watcher.apart


class Graph:
    """A graph that shows itself in a notebook, prints as text, and writes itself as .svg .png .pdf .dot .json .html .txt."""

    remark = ""  # what whoever made it has to say

    def __init__(self, boxes: list[Box], name: str, depth: int = 1, look: Look | None = None, seed: Any = None):
        self.boxes, self.name, self.depth, self.look = boxes, clean(name), depth, look or Look()
        self.is_freed = any(is_freed(box.node) for box in boxes)
        self.steps: list[Step] = [] if self.is_freed else replay(boxes, seed)
        self.tree = Tree(boxes, self.name)

    def __repr__(self) -> str:
        ops = sum(box.kind == "op" for box in self.boxes)
        return f"<Graph {self.name}: {ops} ops; print it, or write it to a file>"

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str | None:
        with suppress(MissingExtraError):  # the notebook shows the text
            return framed(self.html())
        return None

    def _repr_svg_(self) -> str | None:  # for notebooks that show no pages
        with suppress(MissingExtraError):
            return self.scene.svg()
        return None

    @property
    def hint(self) -> str:
        """How to see what is not known, where nobody watched; else the remark."""
        if self.is_freed:
            return "backward() has freed this graph: draw it before, or watch a call with graph(f, x)"
        gone = any(box.value_digest is None and not box.has_parts and box.dtype for box in self.boxes)
        gone |= any(entry.text == "?" for box in self.boxes for entry in box.inputs)
        is_watched = all(box.line for box in self.boxes if box.op not in ("", "output") and box.dtype)
        return "to see every number, compute it inside `with mg.debug():`" if gone and not is_watched else self.remark

    @cached_property
    def view(self) -> View:
        """What the still picture shows."""
        return View(self.tree, self.tree.root, self.depth)

    @cached_property
    def scene(self) -> Scene:
        """The still picture, laid out."""
        return scene_of(self.view, self.look, self.name, self.hint)

    @cached_property
    def digraph(self) -> Any:
        """The still picture as a `graphviz.Digraph`, to be changed, rendered or written by that package."""
        return digraph_of(self.view, self.look, labels_of(self.view, self.look))

    def dot(self) -> str:
        """The still picture in Graphviz's language."""
        return str(self.digraph.source)

    def data(self) -> dict[str, Any]:
        """Everything as plain data: boxes, groups, and how the gradients came about."""
        return data_of(self)

    def html(self) -> str:
        """A page to open boxes, search, and step through forward and backward, one op at a time."""
        return page_of(self)

    def text(self) -> str:
        """Every value on a line, inside its modules."""
        return text_of(self)

    def write(self, path: str | os.PathLike[str], dark: bool = False) -> Path:
        """Write the graph; the suffix of the path says how. `dark` is for .png and .pdf: the others are both."""
        texts = {".dot": self.dot, ".html": self.html, ".txt": lambda: self.text() + "\n"}
        texts[".json"] = lambda: json.dumps(json.loads(as_data(self.data())), indent=1, ensure_ascii=False) + "\n"
        return write_as(path, texts, lambda: self.scene, dark)
