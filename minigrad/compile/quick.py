"""The quick way for a call that is like the last one: a few comparisons of identities, then the compiled function.

It is for arguments that are Tensors. Where it cannot tell at once that nothing has changed it says so, and everything is
compared (function.py). `python -m benchmarks.compile --task xor` says what it buys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..changes import changes
from ..engine.modes import local
from ..engine.tensor import Tensor, wrap
from ..engine.writes import tick, writes
from ..ops.creation import get_default_dtype
from .surroundings import Surroundings, is_settled

__all__ = ["OTHERWISE", "quick_way"]

ndarray = np.ndarray

OTHERWISE = object()  # the call is not like the last one


def quick_way(trace: Any, args: tuple[Any, ...], surroundings: Surroundings) -> Callable[[tuple[Any, ...]], Any] | None:
    """A function of arguments that returns the result, or OTHERWISE; None if there is no quick way."""
    if not all(isinstance(x, Tensor) for x in args) or not all(is_settled(x) for x in surroundings.objects()):
        return None
    kinds = tuple([(x.data.shape, x.data.dtype, x.data.flags.c_contiguous, x.node is None) for x in args])
    if any(type(x.data) is not np.ndarray for x in args):
        return None
    names = [(look, look()) for look in surroundings.lookups]
    held = [(t, t.data, t.node) for t in dict.fromkeys(surroundings.tensors_only())]
    record, count, seen, dtype = local.mode.record, len(args), changes.count, get_default_dtype()
    decisions = trace.decisions
    run = _one_call(trace, {id(t): array for t, array, _ in held}) or trace.run

    def quick(args: tuple[Any, ...]) -> Any:
        if changes.count != seen or local.mode.record is not record or len(args) != count:
            return OTHERWISE
        for x, (shape, kind, in_order, is_constant) in zip(args, kinds):
            if not isinstance(x, Tensor) or (x.node is None) is not is_constant:
                return OTHERWISE
            array = x.data
            if type(array) is not ndarray or array.shape != shape or array.dtype is not kind:
                return OTHERWISE
            if array.flags.c_contiguous is not in_order:
                return OTHERWISE
        for look, value in names:
            if look() is not value:
                return OTHERWISE
        for t, array, node in held:
            if t.data is not array or t.node is not node:
                return OTHERWISE
        for holds in decisions:
            if not holds():
                return OTHERWISE
        return run(args) if get_default_dtype() is dtype else OTHERWISE

    return quick


def _one_call(trace: Any, held: dict[int, Any]) -> Callable[[tuple[Any, ...]], Any] | None:
    """What runs a training step that is one compiled function; None if it is not.

    The arrays of parameters were just compared, so they are bound here.
    """
    whole = trace.program.plan.whole if trace.has_effects else None
    if whole is None or trace.drawn or any(kind == "i8" for _, kind in whole.kernel.numbers):
        return None
    given: list[Any] = []  # an array, or None for an argument
    arguments: list[tuple[int, int]] = []  # its place in the call, and the number of the argument
    for place in whole.places:
        source = trace.sources[place]
        position = getattr(source, "position", None)
        if position is not None:
            arguments.append((len(given), position))
            given.append(None)
        else:
            found = source(())
            given.append(held.get(id(found)) if isinstance(found, Tensor) else found)
            if not isinstance(given[-1], np.ndarray):
                return None
    if any(getattr(trace.sources[i], "position", None) is not None for i in trace.written) or whole.reshaped:
        return None
    if not trace.returns_one or not all(a is None or a.flags.carray for a in given):
        return None
    written = [source.data if isinstance(source := trace.sources[i](()), Tensor) else source for i in trace.written]
    writes.mark_all(written)
    entries: list[Any] = [writes.entry_of(array) for array in written]
    function, outputs, states, nodes = whole.function, whole.outputs, trace.counts, trace.nodes
    reads = [number.read for number, _ in whole.kernel.numbers]
    constants, returned = whole.constants, trace.returned
    entry, *_ = [made.entry_point for made in function.overloads.values()]  # past the look at types, which are known
    empty = np.empty

    def run(args: tuple[Any, ...]) -> Tensor:
        call = given.copy()
        for place, position in arguments:
            call[place] = args[position].data
        outs = [empty(shape, dtype) for shape, dtype in outputs]
        if entry(*call, *constants, *[read() for read in reads], *outs):
            return trace.run(args)  # which says what is wrong
        for state in states:
            state["step"] += 1
        now = tick()
        for memory in entries:
            memory.time = now
        writes.latest = now
        for node, gradient in zip(nodes, outs[returned:]):
            node.grad = gradient
        return wrap(outs[0])

    return run
