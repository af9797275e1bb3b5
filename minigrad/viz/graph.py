"""`mg.viz.graph`: the computation behind a tensor, or of a model on an input, as an object that can be drawn in many ways."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from .. import kernels
from ..engine.errors import ArgumentError, GradientError, MissingExtraError, describe, is_whole, nearest
from ..engine.graph import Node
from ..engine.modes import enable_grad, keeping_apart, watching
from ..engine.tensor import Tensor
from ..nn.module import Module
from ..saving import check_folder, write_atomically
from .calling import check_inputs, check_options, input_words
from .dot import dot_of
from .drawing import scene_of
from .labels import Look
from .page import as_data
from .replay import Step, is_freed, replay
from .scene import Scene, clean
from .tracing import Box, boxes_of, key_of, names_in
from .tree import Tree
from .view import View

__all__ = ["SUFFIXES", "Graph", "check_target", "graph", "watched"]

SUFFIXES = (".svg", ".png", ".pdf", ".dot", ".json", ".html", ".txt")


def graph(
    what: Tensor | Module | Callable[..., Any],
    *inputs: Any,
    name: str | None = None,
    depth: int = 1,
    direction: str = "forward",
    color: str | None = None,
    fused: bool = False,
    seed: Any = None,
    **options: Any,
) -> Graph:
    """The graph of a tensor, `graph(loss)`; or of a model or function called with inputs, `graph(model, x)`.

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
    if not is_whole(depth) or depth < 1:
        raise ArgumentError("graph: depth counts levels of modules", "a whole number from 1 on", repr(depth))
    known = names_in(sys._getframe(1))
    given: list[Tensor] = []
    apart: list[Node] = []
    if isinstance(what, Tensor):
        check_options(what, options)
        if inputs or options:
            raise ArgumentError("graph: a tensor takes no inputs", "graph(tensor), or graph(model, input)")
        roots, title = [what], known.get(id(what.node), ("graph", what))[0]
    elif callable(what):
        check_options(what, options)
        check_inputs(what, inputs, options)
        arguments = [x if isinstance(x, Tensor) else _as_tensor(x) for x in inputs]
        roots, apart = watched(lambda: what(*arguments, **options), fused)
        if _is_nothing(roots, apart):  # what computes a gradient records nothing, unless its input needs one itself
            arguments = [_needing_gradient(x) for x in arguments]
            roots, apart = watched(lambda: what(*arguments, **options), fused)
        given = [x for x in arguments if isinstance(x, Tensor)]
        title = type(what).__name__ if isinstance(what, Module) else getattr(what, "__name__", "graph")
        known = _names_of_call(what, arguments) | known
    else:
        raise ArgumentError("graph: this has no graph", "a Tensor, or a model and its inputs", type(what).__name__)
    if _is_nothing(roots, apart):
        raise GradientError(
            "graph: nothing was recorded",
            "a tensor made from one with requires_grad=True, outside of no_grad()",
            ", ".join(describe(root) for root in roots) + " without a graph",
            "record it, or watch a call: graph(f, x)",
        )
    boxes = boxes_of(roots, known, [t.data for t in given if t.node is None], apart)
    return Graph(boxes, name or title, depth, look, seed)


def _is_nothing(roots: Sequence[Tensor], apart: Sequence[Node]) -> bool:
    return not apart and all(root.node is None for root in roots)


def _needing_gradient(value: Any) -> Any:
    if not isinstance(value, Tensor) or value.node is not None or value.dtype.kind != "f":
        return value
    return value.detach().requires_grad_()


def _names_of_call(what: Any, arguments: Sequence[Any]) -> dict[int, tuple[str, Tensor]]:
    """The names of a model's parameters, and of what it was called with: what the function calls it."""
    words = input_words(what, len(arguments))
    names = {key_of(t): (word, t) for word, t in zip(words, arguments) if isinstance(t, Tensor)}
    if isinstance(what, Module):
        names |= {key_of(parameter): (path, parameter) for path, parameter in what.named_parameters()}
    return names


def watched(function: Callable[[], Any], fused: bool = False) -> tuple[list[Tensor], list[Node]]:
    """Call a function while watching, by ordinary ops unless `fused`; the tensors that it returned, and the nodes apart."""
    with enable_grad(), watching(), keeping_apart() as apart:
        if fused:
            out = function()
        else:
            with kernels.use("definitions"):
                out = function()
    roots = list(_tensors(out))
    if not roots:
        expected = "a Tensor, or some in a tuple, list or dict"
        raise ArgumentError("graph: the function returned no tensor", expected, type(out).__name__)
    return roots, apart


def _as_tensor(value: Any) -> Any:
    from ..engine.convert import tensor

    return tensor(value) if hasattr(value, "__array__") or isinstance(value, (list, int, float)) else value


def _tensors(value: Any) -> Any:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _tensors(part)


def check_target(path: Path) -> None:
    """Refuse what a graph cannot be written to, before anything is drawn."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ArgumentError(
            f"{os.fspath(path)!r}: a graph cannot be written like this",
            " ".join(SUFFIXES),
            suffix or "no suffix",
            nearest(suffix, SUFFIXES) if suffix else None,
        )
    check_folder(path)


class Graph:
    """A graph that shows itself in a notebook, prints as text, and writes itself as .svg .png .pdf .dot .json .html .txt."""

    def __init__(
        self, boxes: list[Box], name: str = "graph", depth: int = 1, look: Look | None = None, seed: Any = None
    ):
        self.boxes, self.name, self.depth, self.look = boxes, clean(name), depth, look or Look()
        self.is_freed = any(is_freed(box) for box in boxes)
        self.steps: list[Step] = [] if self.is_freed else replay(boxes, seed)
        self.tree = Tree(boxes, self.name)

    def __repr__(self) -> str:
        return (
            f"<Graph {self.name}: {sum(box.kind == 'op' for box in self.boxes)} ops; print it, or write it to a file>"
        )

    def __str__(self) -> str:
        return self.text()

    def _repr_svg_(self) -> str | None:
        try:
            return self.scene.svg()
        except MissingExtraError:
            return None  # the notebook shows the text

    @property
    def hint(self) -> str:
        """How to see what is not known, where nobody watched."""
        if self.is_freed:
            return "backward() has freed this graph: draw it before, or watch a call with graph(f, x)"
        gone = any(box.value is None and not box.has_parts and box.dtype for box in self.boxes)
        gone |= any(entry.text == "?" for box in self.boxes for entry in box.inputs)
        is_watched = all(box.line for box in self.boxes if box.op not in ("", "output") and box.dtype)
        return "to see every number, compute it inside `with mg.debug():`" if gone and not is_watched else ""

    @cached_property
    def view(self) -> View:
        """What the still picture shows."""
        return View(self.tree, self.tree.root, self.depth)

    @cached_property
    def scene(self) -> Scene:
        """The still picture, laid out."""
        return scene_of(self.view, self.look, self.name, self.hint)

    def dot(self) -> str:
        """The still picture in Graphviz's language."""
        return dot_of(self.view, self.look)

    def data(self) -> dict[str, Any]:
        """Everything as plain data: boxes, groups, and how the gradients came about."""
        from .graph_data import data_of

        return data_of(self)

    def html(self) -> str:
        """A page to open boxes, search, and step through forward and backward, one op at a time."""
        from .graph_page import page_of

        return page_of(self)

    def text(self) -> str:
        """Every value on a line, inside its modules."""
        from .graph_text import text_of

        return text_of(self)

    def write(self, path: str | os.PathLike[str], dark: bool = False) -> Path:
        """Write the graph; the suffix of the path says how. `dark` is for .png and .pdf: the others are both."""
        target = Path(path)
        suffix = target.suffix.lower()
        check_target(target)
        if suffix in (".svg", ".png", ".pdf"):
            return self.scene.write(target, dark)
        writers = {
            ".dot": self.dot,
            ".json": lambda: json.dumps(json.loads(as_data(self.data())), indent=1, ensure_ascii=False) + "\n",
            ".html": self.html,
            ".txt": lambda: self.text() + "\n",
        }
        write_atomically(target, writers[suffix]().encode())
        return target
