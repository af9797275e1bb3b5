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
from ..engine.modes import watching
from ..engine.tensor import Tensor, wrap
from .graph import Graph
from .tracing import Box, Input, boxes_of, names_in

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
    """The graph that led to an error, from the tensors in the frames it came through; None if there are none."""
    frames = list(_frames(error.__traceback__))
    if not frames:
        return None
    entry = _entry(frames)
    caller = frames[entry - 1] if entry else frames[-1]
    given = _given(frames[entry] if entry else caller)
    if not given:
        return None
    boxes = boxes_of(list(given.values()), names_in(caller))
    for box in boxes:
        box.is_output = False
    if entry:
        boxes.append(_failed_box(frames[entry], given, boxes, error))
    return Graph(boxes, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", depth=9)


def _frames(traceback: TracebackType | None) -> Iterator[FrameType]:
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next


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


def _failed_box(frame: FrameType, given: dict[str, Tensor], boxes: list[Box], error: BaseException) -> Box:
    local = frame.f_locals
    what = next((local[name] for name in ("self", "op", "body") if hasattr(local.get(name), "__name__")), frame.f_code)
    name = getattr(what, "__name__", frame.f_code.co_name)
    names = _input_names(what)
    by_node = {box.node: box for box in boxes if box.node is not None}
    by_value = {id(box.value): box for box in boxes}
    box = Box("op", name, "", (), "", id=f"b{len(boxes)}", failed=True)
    for index, (label, tensor) in enumerate(given.items()):
        if label.startswith("args") and index < len(names):
            label = names[index]
        source = by_node.get(tensor.node) if tensor.node is not None else by_value.get(id(tensor.data))
        box.inputs.append(Input(label, source))
        box.attrs[label] = describe(tensor)
    box.line = str(error)
    return box
