"""The picture of a mistake: the graph as far as it came, and the op that failed in red with the shapes it got."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from ..engine.backend import is_array
from ..engine.errors import describe
from ..engine.graph import Node, sweep
from ..engine.modes import Call, watching
from ..engine.tensor import Tensor, wrap
from ..nn.module import Module
from .graph import Graph, check_target
from .labels import short_line
from .scene import clean
from .tracing import Box, Input, boxes_of, is_own, names_in

__all__ = ["failed_graph", "on_error"]

# Where an op, or a function made of ops, is computed: whoever calls into these from outside has called what failed.
WITHIN = (
    "minigrad.engine.",
    "minigrad.ops.",
    "minigrad.kernels.",
    "minigrad.nn.functional",
    "minigrad.nn.declare",
    "minigrad.nn.losses",
    "minigrad.nn.norm",
)


@contextmanager
def on_error(path: str | os.PathLike[str] = "error.html") -> Iterator[None]:
    """If something fails inside, draw the graph that led there, with the op that failed in red. The error goes on its way.

    The suffix says how, as in `Graph.write`; where the picture cannot be made, the text is printed instead.
    """
    check_target(Path(path))
    with watching():
        try:
            yield
        except Exception as error:
            _draw(error, Path(path))
            raise


def _draw(error: Exception, path: Path) -> None:
    """Nothing that goes wrong here may hide the error itself."""
    try:
        found = failed_graph(error)
        if found is None:
            print("minigrad: there is no graph to draw: the error came before any op", file=sys.stderr)
            return
        try:
            found.write(path)
            print(f"minigrad: the graph up to the error is in {path}", file=sys.stderr)
        except Exception as problem:
            print(
                f"minigrad: {path} could not be written ({problem}); the graph up to the error:\n{found}",
                file=sys.stderr,
            )
    except Exception as problem:
        print(f"minigrad: the graph up to the error could not be drawn: {problem}", file=sys.stderr)


def failed_graph(error: BaseException) -> Graph | None:
    """The graph that led to an error, from the tensors in the frames it came through; None if no op was called."""
    frames = list(_frames(error.__traceback__))
    boxes = _on_the_way_back(frames, error) or _on_the_way_there(frames, error)
    if not any(box.kind == "op" for box in boxes):
        return None
    line = _line(error.__traceback__)
    for box in boxes:
        if box.failed:
            box.line = box.line or line
    graph = Graph(boxes, type(error).__name__, depth=9)
    said = "; ".join(" ".join(part.split()) for part in str(error).split("\n")[:3])
    graph.tree.note = clean(f"{short_line(line)}: {said}" if line else said)
    return graph


def _on_the_way_there(frames: list[FrameType], error: BaseException) -> list[Box]:
    """What the op that failed was given, and where that came from."""
    entry = _entry(frames)
    if not frames:
        return []
    caller = frames[entry - 1] if entry else frames[-1]
    given = _given(frames[entry] if entry else caller)
    boxes = boxes_of(list(given.values()), names_in(caller))
    for box in boxes:
        box.is_output = False
    if entry and given:
        boxes.append(_failed_box(frames, entry, given, boxes, error))
    return boxes


def _on_the_way_back(frames: list[FrameType], error: BaseException) -> list[Box]:
    """The whole graph that a backward went through, where it was its rule that failed; else nothing."""
    inside = [frame.f_locals for frame in frames if frame.f_globals.get("__name__") == sweep.__module__]
    failed = next((found["node"] for found in reversed(inside) if isinstance(found.get("node"), Node)), None)
    began = {node for found in inside for node, _ in found.get("seeds", ())}
    tensors = {value.node: value for frame in frames for value in frame.f_locals.values() if isinstance(value, Tensor)}
    roots = [tensor for node, tensor in tensors.items() if node in began]
    if failed is None or not roots:
        return []
    outside = [frame for frame in frames if not is_own(frame)]
    boxes = boxes_of(roots, names_in(outside[-1] if outside else None))
    for box in boxes:
        if box.node is failed:
            box.failed, box.error = True, str(error)
    return boxes


def _frames(traceback: TracebackType | None) -> Iterator[FrameType]:
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next


def _line(traceback: TracebackType | None) -> str:
    """Where the user's own code was when it failed."""
    line = ""
    while traceback is not None:
        if not is_own(traceback.tb_frame):
            line = f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return line


def _entry(frames: list[FrameType]) -> int:
    """The number of the frame in which an op was called by somebody else for the last time; 0 if none was."""
    inside = [frame.f_globals.get("__name__", "").startswith(WITHIN) for frame in frames]
    return max((i for i in range(1, len(frames)) if inside[i] and not inside[i - 1]), default=0)


def _given(frame: FrameType) -> dict[str, Tensor]:
    """The tensors that a frame has, by name; what stands in a sequence is numbered."""
    found: dict[str, Tensor] = {}
    for name, value in frame.f_locals.items():
        parts: Mapping[str, Any]
        if isinstance(value, (tuple, list)):
            parts = {f"{name}{i}" if len(value) > 1 else name: part for i, part in enumerate(value)}
        else:
            parts = value if isinstance(value, dict) else {name: value}
        for label, part in list(parts.items()):
            if is_array(part):
                part = wrap(part)
            if isinstance(part, Tensor) and not any(part.data is other.data for other in found.values()):
                found[str(label)] = part
    return found


def _input_names(what: Any) -> list[str]:
    """What an op or a function calls its inputs."""
    signature = getattr(what, "signature", None)
    if signature is not None:
        return list(signature.inputs)
    return list(inspect.signature(what).parameters) if callable(what) else []


def _failed_box(
    frames: list[FrameType], entry: int, given: dict[str, Tensor], boxes: list[Box], error: BaseException
) -> Box:
    frame = frames[entry]
    local = frame.f_locals
    names = ("self", "op", "body", "function")
    what = next((local[name] for name in names if hasattr(local.get(name), "__name__")), frame.f_code)
    name = getattr(what, "__name__", frame.f_code.co_name)
    inputs = _input_names(what)
    by_node = {box.node: box for box in boxes if box.node is not None}
    by_value = {id(box.value): box for box in boxes}
    box = Box("op", name, "", (), "", id=f"b{len(boxes)}", failed=True, error=str(error), calls=_calls(frames))
    for index, (label, tensor) in enumerate(given.items()):
        if label.startswith(("args", "self", "first")) and inputs:
            label = inputs[index] if index < len(inputs) else f"{inputs[-1]} {index}"
        source = by_node.get(tensor.node) if tensor.node is not None else by_value.get(id(tensor.data))
        box.inputs.append(Input(label, source))
        box.attrs[label] = describe(tensor)
    return box


def _calls(frames: list[FrameType]) -> tuple[Call, ...]:
    """The modules that were running."""
    inside = [frame.f_locals.get("calls") for frame in frames if frame.f_globals.get("__name__") == Module.__module__]
    return next((calls for calls in reversed(inside) if isinstance(calls, tuple)), ())
