"""Reading, rewriting and running single steps of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from . import graph
from .graph import Number, Step, Value


def replaced(x: Any, change: Callable[[Any], Any]) -> Any:
    """`x` with every Value and Number in it, also inside tuples, lists and dicts, put through `change`."""
    if isinstance(x, (Value, Number)):
        return change(x)
    if isinstance(x, (tuple, list)):
        return type(x)(replaced(item, change) for item in x)
    if isinstance(x, dict):
        return {key: replaced(item, change) for key, item in x.items()}
    return x


def values_of(step: Step) -> Iterator[Value]:
    """The Values that a step reads, as inputs and inside its attributes."""
    found: list[Value] = []
    replaced((step.inputs, step.attrs), lambda x: found.append(x) if isinstance(x, Value) else None)
    return iter(dict.fromkeys(found))


def rewritten(step: Step, change: Callable[[Any], Any]) -> Step:
    """The step with its Values put through `change`; itself if none changes."""
    inputs, attrs = replaced(step.inputs, change), replaced(step.attrs, change)
    if all(a is b for a, b in zip(inputs, step.inputs)) and all(attrs[k] is v for k, v in step.attrs.items()):
        return step
    return Step(step.op, inputs, attrs, step.outputs, step.scope, step.line)


def run_step(step: Step, known: Mapping[Any, Any]) -> tuple[Any, ...]:
    """The outputs of one step, computed by its op; numbers become arrays without axes."""
    made = graph.run_step(step, known)
    return tuple([np.asarray(x) if isinstance(x, (np.generic, int, float)) else x for x in made])
