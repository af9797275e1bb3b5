"""A graph as plain data: what .json holds, and what the page knows. The same graph gives the same data, but for times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .labels import cost, input_word, setting, written
from .numbers import FEW, SOME, array_text, number, statistics
from .replay import Contribution, Step
from .scene import clean
from .tracing import Box
from .tree import Group

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["data_of"]

LONGEST = 10_000  # letters of a name


def data_of(graph: Graph, with_times: bool = False) -> dict[str, Any]:
    """Boxes in the order of time, groups with what is in them, and every step of the backward pass."""
    groups = _all_groups(graph.tree.root)
    homes = {id(child): group for group in groups for child in group.children}
    homes |= {id(copy): homes[id(group)] for group in groups for copy in group.copies if id(group) in homes}
    return {
        "name": graph.name,
        "note": graph.view.note,
        "boxes": {box.id: _box_data(box, homes, with_times) for box in graph.boxes},
        "groups": {group.id: _group_data(group, homes, with_times) for group in groups},
        "backward": [_step_data(step) for step in graph.steps],
    }


def _all_groups(root: Group) -> list[Group]:
    """Every group, also those that are drawn as copies of another."""
    found = [root]
    for group in found:  # which grows meanwhile
        for child in group.children:
            if isinstance(child, Group):
                found.extend(child.copies or [child])
    return found


def _box_data(box: Box, homes: dict[int, Group], with_times: bool) -> dict[str, Any]:
    data: dict[str, Any] = {
        "kind": box.kind,
        "label": clean(box.label, LONGEST),
        "op": box.op.strip("_"),
        "shape": [list(part) if isinstance(part, tuple) else part for part in box.shape],
        "dtype": box.dtype,
        "group": homes[id(box)].id,
        "inputs": [
            {"name": clean(entry.name), "from": entry.source.id, "word": clean(input_word(box, entry.name))}
            if entry.source
            else {"name": clean(entry.name), "text": clean(entry.text), "written": clean(written(box, entry))}
            for entry in box.inputs
        ],
        "settings": {clean(name): clean(setting(value)) for name, value in box.attrs.items()},
        "value": array_data(box.value),
        "gradient": array_data(box.gradient),
        "keeps": box.keeps,
        "kept": box.is_kept,
        "output": box.is_output,
        "failed": box.failed,
        "bytes": box.bytes,
        "flops": box.flops,
    }
    if box.node is not None and box.node.hooks:
        data["hooks"] = len(box.node.hooks)
    if box.error:
        data["error"] = "\n".join(clean(line) for line in box.error.split("\n")[:20])
    if box.line:
        data["line"] = clean(box.line, 300)
    if with_times and box.seconds is not None:
        data["time"] = box.seconds
    return data


def _group_data(group: Group, homes: dict[int, Group], with_times: bool) -> dict[str, Any]:
    data: dict[str, Any] = {
        "kind": group.kind,
        "name": clean(group.name, LONGEST),
        "title": clean(group.title),
        "children": [child.id for child in group.children],
        "copies": [copy.id for copy in group.copies],
        "parent": homes[id(group)].id if id(group) in homes else None,
        "bytes": cost(group, "bytes"),
        "flops": cost(group, "flops"),
    }
    return data | ({"time": cost(group, "time")} if with_times else {})


def array_data(array: Any) -> dict[str, Any] | None:
    """The numbers of a small array as text, the statistics of a large one."""
    if array is None:
        return None
    array = np.asarray(array)
    shown: dict[str, Any] = {"text": array_text(array), "whole": array.size <= SOME}
    return shown | ({"statistics": statistics(array)} if array.size > FEW and array.dtype.kind in "fiub" else {})


def _step_data(step: Step) -> dict[str, Any]:
    upstream = None if step.upstream is None else array_text(np.asarray(step.upstream))
    return {"box": step.box.id, "upstream": upstream, "parts": [_part_data(step, part) for part in step.contributions]}


def _part_data(step: Step, part: Contribution) -> dict[str, Any]:
    data: dict[str, Any] = {
        "input": part.input,
        "word": clean(input_word(step.box, part.input)),
        "to": part.target.id,
        "part": array_text(part.part),
        "formula": part.formula,
    }
    if part.local is not None:
        data["local"] = array_text(part.local)
    if part.is_summed:
        data |= {"raw": array_text(part.raw), "raw_shape": list(part.raw.shape), "shape": list(part.part.shape)}
    if part.before is not None:
        data |= {
            "before": array_text(np.asarray(part.before)),
            "total": array_text(np.asarray(part.before + part.part)),
        }
        if part.part.size > SOME:
            data["sum_at"] = _at_largest(part.before + part.part, before=part.before, part=part.part)
    if part.raw.size > SOME:
        data["large"] = True
    if part.local is not None and part.raw.size > SOME:
        upstream = np.broadcast_to(step.upstream, part.raw.shape)
        local = np.broadcast_to(part.local, part.raw.shape)
        data["product_at"] = _at_largest(part.raw, upstream=upstream, local=local)
    return data


def _at_largest(result: np.ndarray, **terms: np.ndarray) -> dict[str, str]:
    """One element of a large array, the largest in size, with the numbers that it was made from."""
    finite = np.where(np.isfinite(result), np.abs(result), -1)
    index = np.unravel_index(int(np.argmax(finite)), result.shape)
    place = "[" + ", ".join(str(int(i)) for i in index) + "]"
    return {"index": place, "result": number(result[index])} | {k: number(v[index]) for k, v in terms.items()}
