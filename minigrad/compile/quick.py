"""The quick way for a call that is like the last one: a few comparisons of identities, then the compiled function.

Where it cannot tell at once that nothing has changed it says so, and everything is compared (function.py). Modules,
optimisers and settings note their changes in `changes`; what holds an array, and names, are looked at each time. It is
written out as source, since loops would take as long as the work. `python -m benchmarks.compile --task xor` says what it
buys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from .. import tree
from ..changes import changes
from ..engine.backend import owner_of
from ..engine.tensor import Tensor, wrap
from ..engine.writes import tick, writes
from ..ir.surroundings import Argument, Held, Look, look_at_argument, together
from ..kernels.selection import implementation
from .source import in_pool

__all__ = ["OTHERWISE", "quick_way"]

OTHERWISE = object()  # the call is not like the last one
Quick = Callable[[tuple[Any, ...], bool], Any]


class _Writer:
    """The source of a function of arguments, and whether ops are recorded, and the objects that it names."""

    def __init__(self) -> None:
        self.bound: dict[str, Any] = {}
        self.lines: list[str] = []

    def name(self, kind: str, x: Any) -> str:
        name = f"{kind}{len(self.bound)}"
        self.bound[name] = x
        return name

    def unless(self, *tests: str) -> None:
        """One that is true, and the call is not like the last one."""
        if tests:
            self.lines.append(f"if {' or '.join(tests)}: return OTHERWISE")

    def function(self) -> Quick:
        from .cache import load  # which loads numba

        head = f"def bind(OTHERWISE, {', '.join(self.bound)}):\n    def quick(args, record):\n"
        body = "".join(f"        {line}\n" for line in self.lines)
        return load(f"{head}{body}    return quick\n").bind(OTHERWISE, **self.bound)


def quick_way(trace: Any, args: tuple[Any, ...], record: bool, seen: int, looks: Sequence[Look]) -> Quick | None:
    """A function of arguments, and whether ops are recorded, that returns the result or OTHERWISE; None if there is none.

    `seen` is the count of changes before all was compared that the trace rests on: the surroundings, and each argument.
    """
    everything = together(looks)
    if not everything.is_settled or implementation() != "numba":
        return None
    buffers = [(state.get, key, x) for state in trace.counts for key, x in state.items() if key != "step"]
    names = [*everything.names, *buffers]
    tensors = [*dict.fromkeys(t for t in everything.tensors if isinstance(t, Tensor))]
    writer = _Writer()
    name = writer.name
    writer.unless(f"{name('changes', changes)}.count != {name('seen', seen)}", f"record is not {name('was', record)}")
    writer.unless(*[f"{name('get', get)}({name('key', key)}) is not {name('is', x)}" for get, key, x in names])
    writer.unless(*[_changed(writer, name("tensor", t), t) for t in tensors])
    writer.unless(*[f"not {name('holds', holds)}()" for holds in trace.decisions])
    if not _write_step(writer, trace, args, buffers):
        writer.lines.append(f"return {name('run', _any_call(trace, args))}(args)")
    return writer.function()


def _changed(writer: _Writer, tensor: str, t: Tensor) -> str:
    """The test whether a tensor has another array or another node than now."""
    return f"{tensor}.data is not {writer.name('array', t.data)} or {tensor}.node is not {writer.name('node', t.node)}"


def _any_call(trace: Any, args: tuple[Any, ...]) -> Callable[[tuple[Any, ...]], Any]:
    """What runs any trace for arguments of the same kind. A module that is the same object is as it was: see `quick_way`."""
    form, changeable = tree.form(args), object()
    known = [(changeable if hasattr(x, "dtype") else x, look_at_argument(x).state) for x in tree.leaves(args)]

    def run(args: tuple[Any, ...]) -> Any:
        leaves = list(tree.leaves(args))
        is_like = tree.form(args) == form
        is_like = is_like and all(x is y or look_at_argument(x).state == state for x, (y, state) in zip(leaves, known))
        return trace.run(leaves) if is_like else OTHERWISE

    return run


def _write_step(writer: _Writer, trace: Any, args: tuple[Any, ...], buffers: list[Any]) -> bool:
    """What runs a training step that is one compiled function of all its arguments; False if it is not.

    The arrays of parameters were just compared, so they are bound here. The function looks at shapes and strides itself.
    """
    whole = trace.program.plan.whole if trace.has_effects else None
    if whole is None or trace.drawn or whole.reshaped or not trace.returns_one:
        return False
    count, sources = len(args), [trace.sources[i] for i in whole.places]
    is_held = all(isinstance(s, Held) for s in (*sources[count:], *[trace.sources[i] for i in trace.written]))
    is_given = [s.position for s in sources if isinstance(s, Argument)] == [*range(count)]
    is_given = is_given and all(isinstance(x, Tensor) for x in args)
    if not is_held or not is_given or any(kind == "i8" for _, kind in whole.numbers):
        return False
    arrays = [x.data if isinstance(x := source(args), Tensor) else x for source in trace.sources]
    if not all(type(array) is np.ndarray and array.flags.carray for array in arrays):
        return False

    name, targets = writer.name, [arrays[i] for i in trace.written]
    writer.unless(f"len(args) != {count}")
    given = [name("addresses", x) for x in whole.addresses(arrays)]
    for k, x in enumerate(args):
        writer.lines += [f"x{k} = args[{k}]", f"if x{k} is not {name('last', x)} or {_changed(writer, f'x{k}', x)}:"]
        writer.lines.append(f"    if not {name('fits', _fits(x, targets))}(x{k}): return OTHERWISE")
        given.append(f"x{k}.data")
    given += [name("held", x) for x in (*[arrays[i] for i in whole.places[count:]], *whole.constants)]
    given += [f"{name('read', number.read)}()" for number, _ in whole.numbers]

    empty, outs = name("empty", np.empty), [f"out{k}" for k in range(len(whole.outputs))]
    memory: list[Any] = [None]  # the pool of the last call
    if whole.pool:
        writer.lines.append(f"pool = {empty}({whole.pool_size}, {name('bytes', np.dtype(np.uint8))})")
        given.append("pool")
    for out, (shape, dtype) in zip(outs, whole.outputs):
        writer.lines.append(f"{out} = {empty}({name('shape', shape)}, {name('dtype', dtype)})")
    (compiled,) = whole.function.overloads.values()
    called = f"{name('function', compiled.entry_point)}({', '.join([*given, *outs])})"  # past the look at types
    # It returns that an argument has another shape, or that something is wrong; another number of axes is an error.
    writer.lines += ["try:", f"    if {called}: return OTHERWISE", "except TypeError: return OTHERWISE"]

    writer.lines += [f"{name('state', state)}['step'] += 1" for state in trace.counts]
    owned = {id(x) for _, _, x in buffers}  # by the optimiser, which does not date what it writes into them
    written = [array for array in targets if id(array) not in owned]
    writes.mark_all(written)
    dated = [f"{name('write', writes.entry_of(array))}.time" for array in written]
    clocks = " = ".join([f"{name('writes', writes)}.latest", *dated])
    writer.lines.append(f"{clocks} = {name('tick', tick)}()")
    if whole.pool:
        writer.lines.append(f"{name('memory', memory)}[0] = pool")
    writer.lines += [f"{name('node', node)}.grad = None" for node in trace.cleared]
    late = [partial(in_pool, memory, *place) for place in whole.pool]
    for node, gradient in zip(trace.nodes, [*outs[1:], *late]):
        of = name("node", node)
        if callable(gradient):  # not before someone asks for it
            writer.lines += [f"{of}.late, {of}.grad = {name('late', gradient)}, None", f"del {of}.grad"]
        else:
            writer.lines.append(f"{of}.grad = {gradient}")
    writer.lines.append(f"return {name('wrap', wrap)}(out0)")
    return True


def _fits(like: Tensor, targets: list[np.ndarray]) -> Callable[[Any], bool]:
    """Whether an argument is of the same kind, apart from its shape, and shares no memory with what is written to."""
    dtype, is_constant = like.data.dtype, like.node is None
    owners = {id(owner_of(array)) for array in targets}

    def fits(x: Any) -> bool:
        if not isinstance(x, Tensor) or (x.node is None) is not is_constant or type(x.data) is not np.ndarray:
            return False
        is_suspect = x.data.base is not None or id(x.data) in owners  # a view may be one of what is written
        return x.data.dtype is dtype and not (is_suspect and any(np.may_share_memory(x.data, y) for y in targets))

    return fits
