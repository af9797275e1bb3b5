"""The graph: nodes, and the sweep that carries gradients back through them.

A `Node` remembers how one value was made. Nodes point to the nodes they came from and hold arrays, never
Tensors, and never their own output's Tensor; so nothing here forms a cycle and memory is freed by counting.
Every node takes a number from one clock. A node's number is larger than its parents', so a sweep in falling
order meets each node after everything that used it, without recursion. The same clock dates every write
into memory, so "was this saved value overwritten?" is a comparison of two numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import nullcontext
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .backend import Array, as_array, backend_of, duplicate, is_array, on_device_of
from .errors import GradientError, NonFiniteError, ShapeError, describe
from .modes import STRICT, Call, Mode, local
from .writes import tick, writes

if TYPE_CHECKING:
    from .plan import Plan

_by_time = attrgetter("time")
_storing = threading.Lock()


class Seen(NamedTuple):
    """What was kept of an op while somebody watched."""

    inputs: tuple[Any, ...]
    out: Any  # a tuple where there are several
    seconds: float
    calls: tuple[Call, ...]  # the modules and functions it ran in, the outermost first


class Node:
    """How one value was made: which op, from which nodes, and what its rules will need."""

    __slots__ = (
        "plan", "parents", "saved", "attrs", "shape", "dtype", "time", "scope", "line", "seen", "hooks", "grad",
        "retain",
        "__weakref__",
    )  # fmt: skip

    def __init__(
        self,
        plan: Plan | None,
        parents: Sequence[Node | None],
        saved: Any,
        attrs: dict[str, Any],
        shape: Any,
        dtype: Any,
        scope: str,
    ):
        self.plan: Any = plan  # None for a leaf
        self.parents: Any = parents  # one entry for each input; None where no gradient is needed
        self.saved = saved  # what the rules ask for; None once a backward has used it up
        self.attrs = attrs
        self.shape = shape  # a tuple of shapes where the op has several outputs
        self.dtype = dtype
        self.time = tick()
        self.scope = scope  # the path of the module that was running
        self.line: str | None = None  # "file:line" of the user's code, under debug()
        self.seen: Seen | None = None
        self.hooks: dict[int, Callable[..., Any]] | None = None
        self.grad: Array | None = None
        self.retain = False

    def __repr__(self) -> str:
        return f"<{self.name} {self.shape} {self.dtype}>"

    @property
    def name(self) -> str:
        return "leaf" if self.plan is None else self.plan.op.name


def leaf(shape: Any, dtype: Any) -> Node:
    return Node(None, (), (), {}, shape, dtype, "")


def unbroadcast(g: Any, shape: tuple[int, ...]) -> Any:
    """Sum `g` over the axes that broadcasting had added or stretched, so that it has `shape` again."""
    extra = g.ndim - len(shape)
    if extra > 0:
        axes = 0 if extra == 1 else tuple(range(extra))
        g = np.add.reduce(g, axis=axes) if type(g) is np.ndarray else g.sum(axis=axes)
    if g.shape == shape or g.ndim < len(shape):
        return g
    stretched = tuple([i for i, n in enumerate(shape) if n == 1])
    return g.sum(axis=stretched, keepdims=True) if stretched else g


def collect(roots: Iterable[Node], stop: Container[Node] = ()) -> list[Node]:
    """Every node that `roots` were made from, newest first, without the leaves, `stop`, and what lies beyond them."""
    found = {root for root in roots if root.plan is not None and root not in stop}
    order = list(found)
    for node in order:  # which grows meanwhile
        for parent in node.parents:
            if parent is not None and parent.plan is not None and parent not in found and parent not in stop:
                found.add(parent)
                order.append(parent)
    order.sort(key=_by_time, reverse=True)
    return order


def between(order: Sequence[Node], targets: set[Node]) -> set[Node]:
    """Those nodes of `order` (newest first) that lie on a path to one of `targets`."""
    useful = set(targets)
    for node in reversed(order):
        if any(parent in useful for parent in node.parents):
            useful.add(node)
    return useful


def check_usable(order: Iterable[Node]) -> None:
    """Refuse, before anything is touched, a sweep over values that are gone or were overwritten."""
    latest = writes.latest
    for node in order:
        if node.saved is None:
            raise GradientError(
                f"{_where(node)}: this part of the graph was freed by an earlier backward",
                fix="pass retain_graph=True to the first backward, or compute the value again",
            )
        if node.time < latest:
            for name, value in zip(node.plan.names, node.saved):
                for array in value if isinstance(value, tuple) else (value,):
                    if hasattr(array, "base") and writes.time(array) > node.time:
                        raise GradientError(
                            f"{_where(node)}: its backward needs {name!r}, which was overwritten in place after {node.name} used it",
                            got=describe(array),
                            fix="write into a copy (x = x.clone()), or write after backward()",
                        )


def _where(node: Node) -> str:
    return ": ".join(filter(None, (node.scope, node.name))) + (f" ({node.line})" if node.line else "")


def sweep(
    seeds: Sequence[tuple[Node, Any]],
    targets: set[Node] | None = None,
    create_graph: bool = False,
    retain_graph: bool = False,
    quiet: bool = False,
) -> dict[Node, Any]:
    """Carry the seed gradients back. Returns the gradient of every leaf, retained node and target.

    With `targets`, only what leads to them is computed. With `create_graph`, the very same rules run on
    Tensors instead of arrays, so that the result can be differentiated again. With `quiet`, the targets
    bound what is swept: their hooks, and what lies beyond, are left to the sweep that this one is a part of.
    """
    order = collect([node for node, _ in seeds], targets if quiet and targets else ())
    useful = between(order, targets) if targets is not None else None
    if useful is not None:
        order = [node for node in order if node in useful]
    check_usable(order)
    grads: dict[Node, Any] = {}
    for node, g in seeds:
        _accumulate(grads, node, g)
    previous = local.mode
    local.mode = Mode(create_graph, previous.debug, previous.scope, previous.calls)
    keep = retain_graph or create_graph
    try:
        results = _run(order, grads, targets, useful, create_graph, keep or bool(previous.debug), quiet)
        for node, g in grads.items():  # what is left are the leaves
            results[node] = _run_hooks(node, g, create_graph) if node.hooks and not quiet else g
    finally:
        local.mode = previous
    if previous.debug and not keep:  # only now, so that a sweep that was stopped can be looked into
        for node in order:
            node.saved = None
    return results


@np.errstate(all="ignore")
def _run(
    order: Sequence[Node],
    grads: dict[Node, Any],
    targets: set[Node] | None,
    useful: set[Node] | None,
    create_graph: bool,
    keep: bool,
    quiet: bool,
) -> dict[Node, Any]:
    """Run the rules of each node in turn. `grads` is used up but for the leaves; targets and retained nodes are returned."""
    results: dict[Node, Any] = {}
    plain = targets is None and not create_graph and not local.mode.debug
    for node in order:
        g = grads.pop(node, None)
        if g is None:
            continue
        target = targets is not None and node in targets
        if node.hooks and not (target and quiet):
            g = _run_hooks(node, g, create_graph)
        if target or node.retain:
            results[node] = g
        if target and useful is not None and not any(parent in useful for parent in node.parents):
            continue  # nothing beyond is wanted, so its saved values stay
        plan, parents = node.plan, node.parents
        saved = plan.as_tensors(node) if create_graph else node.saved
        if not keep:
            node.saved = None
        if plain and plan.simple and type(g) is np.ndarray:  # the usual case, without a call for each edge
            for i, rule, pick in plan.rules:
                parent = parents[i]
                part = rule(g, *pick(saved))
                if type(part) is not np.ndarray or part.shape != parent.shape or part.dtype is not parent.dtype:
                    part = _fit(node, parent, part)
                known = grads.get(parent)
                grads[parent] = part if known is None else _add(known, part)
        elif plain and plan.fused and type(g) is np.ndarray:
            for parent, part in zip(parents, plan.backward(g, *saved)):
                if parent is None or part is None:
                    continue
                if part.shape != parent.shape or part.dtype is not parent.dtype:
                    part = _fit(node, parent, part)
                known = grads.get(parent)
                grads[parent] = part if known is None else _add(known, part)
        elif plan.picks is not None:
            _accumulate_output(grads, parents[0], plan.picks, g)
        else:
            if plan.op.several:
                g = _fill(g, node, create_graph)
            with nullcontext() if create_graph else on_device_of(_some(g)):
                _propagate(grads, node, g, saved, useful)
    return results


def _propagate(grads: dict[Node, Any], node: Node, g: Any, saved: Any, useful: set[Node] | None) -> None:
    """Run the rules of one node, and hand each result to the parent it belongs to."""
    checking = local.mode.debug == STRICT
    for i, rule, pick in node.plan.rules:
        if i >= 0 and useful is not None and node.parents[i] not in useful:
            continue
        result = rule(g, *pick(saved))
        for parent, part in zip(node.parents, result) if i < 0 else ((node.parents[i], result),):
            if parent is None or part is None and i < 0 or useful is not None and parent not in useful:
                continue
            if checking:
                _check_gradient(part, node)
            _accumulate(grads, parent, _fit(node, parent, part))


def _fit(child: Node, parent: Node, g: Any) -> Any:
    """Bring a rule's result to the shape and dtype of the value it is the gradient of."""
    if not local.mode.record and hasattr(g, "node"):
        g = g.data  # the rule used public functions, which give Tensors also for arrays
    try:
        fits = g.shape == parent.shape
    except AttributeError:
        raise GradientError(
            f"the gradient rule of {child.name} returned no array",
            f"a gradient of shape {parent.shape}",
            describe(g),
            f"mend the rule given to {child.name}.vjp",
        ) from None
    if not fits:
        g = unbroadcast(g, parent.shape)
        if g.shape != parent.shape:
            raise ShapeError(
                f"the gradient rule of {child.name} returned a wrong shape",
                parent.shape,
                describe(g),
                f"mend the rule given to {child.name}.vjp",
            )
    return g if g.dtype == parent.dtype else g.astype(parent.dtype)


def _add(known: Any, g: Any) -> Any:
    """The sum, computed where the two are, which after a move is not where the sweep is."""
    if type(g) is np.ndarray or not is_array(g):
        return known + g
    with on_device_of(g):
        return known + g


def _accumulate(grads: dict[Node, Any], node: Node, g: Any) -> None:
    known = grads.get(node)
    grads[node] = g if known is None else _add(known, g)


def _accumulate_output(grads: dict[Node, Any], node: Node, index: int, g: Any) -> None:
    """The gradient of one output of a node that has several."""
    parts = grads.setdefault(node, [None] * len(node.shape))
    parts[index] = g if parts[index] is None else _add(parts[index], g)


def _some(g: Any) -> Any:
    """A gradient, or one of the gradients of a node with several outputs."""
    return next(part for part in g if part is not None) if isinstance(g, (tuple, list)) else g


def _fill(parts: list[Any], node: Node, create_graph: bool) -> tuple[Any, ...]:
    """Zeros stand in for the outputs that nobody used; outputs that are not floating have no gradient."""
    from .tensor import wrap

    some = _some(parts)
    array = some.data if create_graph else as_array(some)
    backend = backend_of(array)
    for i, (part, shape, dtype) in enumerate(zip(parts, node.shape, node.dtype)):
        if part is None and dtype.kind == "f":
            zeros = backend.full(shape, 0, dtype, backend.device_of(array))
            parts[i] = wrap(zeros) if create_graph else zeros
    return tuple(parts)


def _run_hooks(node: Node, g: Any, create_graph: bool) -> Any:
    from .tensor import Tensor, wrap

    given = g.clone() if create_graph else wrap(duplicate(as_array(g)))  # a hook may write into what it is given
    for hook in list((node.hooks or {}).values()):
        result = hook(given)
        if result is None:
            continue
        wanted = (given.shape, given.dtype, given.device)
        if not isinstance(result, Tensor) or (result.shape, result.dtype, result.device) != wanted:
            raise GradientError(
                "a hook must return None or a gradient like the one it got",
                f"a Tensor, {describe(given)}, on device {given.device}",
                describe(result) + (f" on device {result.device}" if isinstance(result, Tensor) else ""),
            )
        given = result
    return given if create_graph else duplicate(given.data)


def _check_gradient(g: Any, node: Node) -> None:
    from .tensor import Tensor

    if found := nonfinite(g.data if isinstance(g, Tensor) else g):
        raise NonFiniteError(f"{_where(node)}: its backward produced the first NaN or infinity", got=found)


def nonfinite(array: Array) -> str | None:
    """How many elements are NaN or infinite, in words; None if there are none."""
    array = as_array(array)
    if array.dtype.kind not in "fc":
        return None
    xp = backend_of(array).xp
    with on_device_of(array):
        if xp.isfinite(array).all():
            return None
        return f"{int(xp.isnan(array).sum())} NaN and {int(xp.isinf(array).sum())} infinite of {array.size} in {describe(array)}"


def store(results: dict[Node, Any]) -> None:
    """Add the swept gradients to `.grad`, each in memory of its own."""
    stored: set[int] = set()
    with _storing:  # two threads may add to the same leaf
        for node, g in results.items():
            if node.grad is not None:
                g = _add(node.grad, g)
            g = as_array(g)
            if id(g) in stored or g.base is not None:
                g = duplicate(g)
            stored.add(id(g))
            node.grad = g
