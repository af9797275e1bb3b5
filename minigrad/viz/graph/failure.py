"""The picture of a mistake: the graph as far as it came, and the op that failed in red with the shapes it got."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from ...debug import Failure, Recorder
from ...engine.backend import is_array
from ...engine.graph import Node, collect
from ...engine.tensor import Tensor, wrap
from ...errors import describe
from ...tracer import tracing
from ..drawing.scene import checked_target, clean
from .boxes import Box, Input, Names, boxes_of, is_own, key_of, names_in
from .graph import SUFFIXES, Graph
from .labels import short_line
from .values import input_names

__all__ = ["on_error"]

NO_GRAPH = "there is no graph to draw: the error came before any op"


@contextmanager
def on_error(path: str | os.PathLike[str] = "error.html") -> Iterator[None]:
    """If something fails inside, draw the graph that led there, with the op that failed in red. The error goes on its way.

    The suffix says how, as in `Graph.write`; where the picture cannot be made, the text is printed instead.
    """
    checked_target(path, SUFFIXES)
    watcher = _Watcher(keep=False)
    with tracing(watcher):
        try:
            yield
        except Exception as error:
            _draw(error, watcher, Path(path))
            raise
        finally:  # an error that is kept would keep the frames it came through, and so itself
            watcher.failure = watcher.began = watcher.last = None


class _Watcher(Recorder):
    """Also remembers where the backward pass began: nodes come newest first, so a newer one than the last begins another."""

    began: Node | None = None
    last: Node | None = None

    def pulled(self, node: Node, gradient: Any, parts: Sequence[tuple[int, Any, Any]]) -> None:
        if self.last is None or node.time > self.last.time:
            self.began = node
        self.last = node


def _draw(error: Exception, watcher: _Watcher, path: Path) -> None:
    """Nothing that goes wrong here may hide the error itself."""
    found, said = None, NO_GRAPH
    try:
        found = _failed_graph(error, watcher)
        if found is not None:
            said = f"the graph up to the error is in {found.write(path)}"
    except Exception as problem:
        said = f"{path} could not be written: {problem}"
        with suppress(Exception):
            said += f"\nthe graph up to the error:\n{found}" if found is not None else ""
    print(f"minigrad: {said}", file=sys.stderr)


def _failed_graph(error: BaseException, watcher: _Watcher) -> Graph | None:
    frame, line = _user_place(error)
    known, failure = names_in(frame), watcher.failure
    if failure is not None and failure.error not in (error, error.__cause__, error.__context__):
        failure = None  # that one was caught
    if failure is not None and failure.node is None:
        boxes = _forward_boxes(failure, known)
    else:
        boxes = _backward_boxes(failure.node if failure is not None else None, watcher.began, known, error)
    if not any(box.kind == "op" for box in boxes):
        return None
    for box in [box for box in boxes if box.failed]:
        box.line = box.line or line
    graph = Graph(boxes, type(error).__name__, depth=9)
    said = "; ".join(" ".join(part.split()) for part in str(error).split("\n")[:3])
    graph.tree.note = clean(f"{short_line(line)}: {said}" if line else said)
    return graph


def _user_place(error: BaseException) -> tuple[FrameType | None, str]:
    frame, line, traceback = None, "", error.__traceback__
    while traceback is not None:
        if not is_own(traceback.tb_frame):
            frame, line = traceback.tb_frame, f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return frame, line


def _forward_boxes(failure: Failure, known: Names) -> list[Box]:
    names = input_names(failure.op, len(failure.inputs))
    tensors = [wrap(value) if is_array(value) else value for value in failure.inputs]
    given = {name: value for name, value in zip(names, tensors) if isinstance(value, Tensor)}
    boxes = boxes_of(list(given.values()), known)
    sources = {id(box.node) if box.node is not None else id(box.value): box for box in boxes}
    made = Box("op", failure.op.name, "", (), "", failed=True, error=str(failure.error))
    made.id, made.line, made.calls = f"b{len(boxes)}", failure.line, failure.calls
    for name, tensor in given.items():
        made.inputs.append(Input(name, sources.get(key_of(tensor))))
        made.attrs[name] = describe(tensor)
    for box in boxes:
        box.is_output = False
    return [*boxes, made]


def _backward_boxes(failed: Node | None, began: Node | None, known: Names, error: BaseException) -> list[Box]:
    """The graph that a backward went through, or else what the user's variables were made from; the failed node is marked."""
    pairs = [(t.node, t) for _, t in known.values() if t.node is not None and t.node.plan is not None]
    roots = [tensor for node, tensor in pairs if failed is None or failed in collect([node])]
    if failed is not None:
        root = began if began is not None and failed in collect([began]) else failed
        if root is began or not roots:
            outs = root.note.outputs if root.note is not None else (None,)
            roots = [wrap(outs[root.plan.output_index or 0], root)]
    boxes = boxes_of(roots, known) if roots else []
    for box in boxes:
        if failed is not None and box.node is failed:
            box.failed, box.error = True, str(error)
    return boxes
