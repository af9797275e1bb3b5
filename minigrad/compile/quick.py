"""The quick way for a call that is like the last one: a few comparisons of identities, then the compiled function.

Where it cannot tell at once that nothing has changed it says so, and everything is compared (function.py). Modules,
optimisers and settings note their changes in `changes`; what holds an array, and names, are looked at each time.
`python -m benchmarks.compile --task xor` says what it buys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import tree
from ..changes import changes
from ..engine.backend import owner_of
from ..engine.tensor import Tensor, wrap
from ..engine.writes import tick, writes
from ..ir.surroundings import Argument, Held, Look, look_at_argument, together

__all__ = ["OTHERWISE", "quick_way"]

OTHERWISE = object()  # the call is not like the last one
Quick = Callable[[tuple[Any, ...], bool], Any]
ndarray, empty, may_share_memory = np.ndarray, np.empty, np.may_share_memory


def quick_way(trace: Any, args: tuple[Any, ...], record: bool, seen: int, looks: Sequence[Look]) -> Quick | None:
    """A function of arguments, and whether ops are recorded, that returns the result or OTHERWISE; None if there is none.

    `seen` is the count of changes before all was compared that the trace rests on: the surroundings, and each argument.
    """
    everything = together(looks)
    if not everything.is_settled:
        return None
    buffers = [(state.get, name, x) for state in trace.counts for name, x in state.items() if name != "step"]
    names = [*everything.names, *buffers]
    held = [(t, t.data, t.node) for t in dict.fromkeys(t for t in everything.tensors if isinstance(t, Tensor))]
    was_recorded, decisions = record, trace.decisions
    run = _one_call(trace, args, buffers) or _any_call(trace, args)

    def quick(args: tuple[Any, ...], record: bool) -> Any:
        if changes.count != seen or record is not was_recorded:
            return OTHERWISE
        for get, key, value in names:
            if get(key) is not value:
                return OTHERWISE
        for t, array, node in held:
            if t.data is not array or t.node is not node:
                return OTHERWISE
        for holds in decisions:
            if not holds():
                return OTHERWISE
        return run(args)

    return quick


def _any_call(trace: Any, args: tuple[Any, ...]) -> Callable[[tuple[Any, ...]], Any]:
    """What runs any trace for arguments of the same kind. A module that is the same object is as it was: see `quick`."""
    form, changeable = tree.form(args), object()
    states = [look_at_argument(x).state for x in tree.leaves(args)]
    settled = [changeable if hasattr(x, "dtype") else x for x in tree.leaves(args)]

    def run(args: tuple[Any, ...]) -> Any:
        leaves = list(tree.leaves(args))
        if tree.form(args) != form:
            return OTHERWISE
        for x, same, state in zip(leaves, settled, states):
            if x is not same and look_at_argument(x).state != state:
                return OTHERWISE
        return trace.run(leaves)

    return run


def _one_call(trace: Any, args: tuple[Any, ...], buffers: list[Any]) -> Callable[[tuple[Any, ...]], Any] | None:
    """What runs a training step that is one compiled function of all its arguments; None if it is not.

    The arrays of parameters were just compared, so they are bound here. The function looks at shapes and strides itself.
    """
    whole = trace.program.plan.whole if trace.has_effects else None
    if whole is None or trace.drawn or whole.reshaped or not trace.returns_one:
        return None
    count, numbers = len(args), whole.numbers
    sources = [trace.sources[i] for i in whole.places]
    bound_sources = [*sources[count:], *[trace.sources[i] for i in trace.written]]
    positions = [s.position for s in sources if isinstance(s, Argument)]
    if positions != list(range(count)) or not all(isinstance(s, Held) for s in bound_sources):
        return None
    if not all(isinstance(x, Tensor) for x in args) or any(kind == "i8" for _, kind in numbers):
        return None
    arrays = [x.data if isinstance(x := source(args), Tensor) else x for source in trace.sources]
    if not all(type(array) is ndarray and array.flags.carray for array in arrays):
        return None
    addresses = whole.addresses(arrays)
    bound = [*[arrays[i] for i in whole.places[count:]], *whole.constants]
    owned = {id(x) for _, _, x in buffers}  # by the optimiser, which does not date what it writes into them
    written = [arrays[i] for i in trace.written if id(arrays[i]) not in owned]
    writes.mark_all(written)
    dated: list[Any] = [writes.entry_of(array) for array in written]
    targets = [arrays[i] for i in trace.written]
    owners = {id(owner_of(array)) for array in targets}
    kinds = [(x.data.dtype, x.node is None) for x in args]
    shapes, dtypes = zip(*whole.outputs)
    reads = [number.read for number, _ in numbers]
    states, nodes, cleared = trace.counts, trace.nodes, trace.cleared
    (compiled,) = whole.function.overloads.values()
    function = compiled.entry_point  # past the look at types, which are known

    def run(args: tuple[Any, ...]) -> Any:
        if len(args) != count:
            return OTHERWISE
        given = addresses.copy()
        for x, (dtype, is_constant) in zip(args, kinds):
            if not isinstance(x, Tensor) or (x.node is None) is not is_constant:
                return OTHERWISE
            array = x.data
            if type(array) is not ndarray or array.dtype is not dtype:
                return OTHERWISE
            is_suspect = array.base is not None or id(array) in owners  # a view may be one of what is written
            if is_suspect and any(may_share_memory(array, target) for target in targets):
                return OTHERWISE
            given.append(array)
        given += bound
        for read in reads:
            given.append(read())
        made = [*map(empty, shapes, dtypes)]
        given += made
        try:
            if function(*given):
                return OTHERWISE  # an argument of another shape, or something that is wrong
        except TypeError:  # an argument with another number of axes
            return OTHERWISE
        for state in states:
            state["step"] += 1
        writes.latest = now = tick()
        for memory in dated:
            memory.time = now
        made.reverse()
        result = wrap(made.pop())
        for node in cleared:
            node.grad = None
        for node in nodes:
            node.grad = made.pop()
        return result

    return run
