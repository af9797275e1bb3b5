"""The graph: nodes, and the sweep that carries gradients back through them.

A `Node` remembers how one value was made. Nodes point to the nodes they came from and hold arrays, never
Tensors, and never their own output's Tensor; so nothing here forms a cycle and memory is freed by counting.
Every node takes a number from one clock. A node's number is larger than its parents', so a sweep in falling
order meets each node after everything that used it, without recursion. The same clock dates every write
into memory, so "was this saved value overwritten?" is a comparison of two numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import GradientError, ShapeError, describe, wrong_count
from .backend import Array, as_array, duplicate, is_array, on_device_of
from .modes import Mode, local, notify, reported
from .writes import tick, writes

if TYPE_CHECKING:
    pass

ndarray = np.ndarray
_by_time = attrgetter("time")
_storing = threading.Lock()


class Node:
    """How one value was made: which op, from which nodes, and what its rules will need."""

    __slots__ = (
        "plan", "parents", "saved", "attrs", "shape", "dtype", "time", "fresh", "scope", "note", "hooks", "grad", "late", "retain", "__weakref__",
    )  # fmt: skip

    def __init__(self, plan: Any, parents: Any, saved: Any, attrs: Any, shape: Any, dtype: Any, scope: str):
        self.plan = plan  # None for a leaf
        self.parents = parents  # one entry for each input; None where no gradient is needed
        self.saved = saved  # what the rules ask for; None once a backward has used it up
        self.attrs = attrs
        self.shape, self.dtype = shape, dtype  # tuples of them where the op has several outputs
        self.time = self.fresh = tick()  # `fresh`: no write up to then had made this node stale
        self.scope = scope  # the path of the module that was running
        self.note: Any = None  # what a tracer left here
        self.hooks: Any = None  # functions of the gradient, by number
        self.grad: Array | None = None  # unset where a compiled step left it for later
        self.late: Callable[[], Array]  # which makes it then
        self.retain: Any = None  # a weak reference to the Tensor that keeps its gradient

    def __getattr__(self, name: str) -> Any:
        """The gradient, if it is unset: a compiled step leaves with `late` what makes its array when it is asked for."""
        if name != "grad":
            raise AttributeError(name, name=name, obj=self)
        self.grad = self.late()
        return self.grad

    def __repr__(self) -> str:
        return f"<{self.name} {self.shape} {self.dtype}>"

    @property
    def name(self) -> str:
        return "leaf" if self.plan is None else self.plan.op.name

    @property
    def where(self) -> str:
        """The module, the op and, if a tracer noted it, the source line."""
        line = getattr(self.note, "line", None)
        return ": ".join(filter(None, (self.scope, self.name))) + (f" ({line})" if line else "")


def leaf(array: Array) -> Node:
    """The node of a tensor that the user made."""
    return Node(None, (), (), {}, array.shape, array.dtype, "")


def unbroadcast(g: Any, shape: tuple[int, ...]) -> Any:
    """Sum `g` over the axes that broadcasting had added or stretched, so that it has `shape` again."""
    extra = g.ndim - len(shape)
    if extra > 0:
        axes = 0 if extra == 1 else tuple(range(extra))
        g = np.add.reduce(g, axis=axes) if type(g) is ndarray else g.sum(axis=axes)
    if g.shape == shape or g.ndim < len(shape):
        return g
    stretched = tuple([i for i, n in enumerate(shape) if n == 1])
    return g.sum(axis=stretched, keepdims=True) if stretched else g


def collect(roots: Iterable[Node], stop: Iterable[Node] = ()) -> list[Node]:
    """Every node that `roots` were made from, newest first, without the leaves, `stop`, and what lies beyond them."""
    seen, order = set(stop), list[Node]()
    for root in roots:
        if root.plan is not None and root not in seen:
            seen.add(root)
            order.append(root)
    for node in order:  # which grows meanwhile
        for parent in node.parents:
            if parent is not None and parent.plan is not None and parent not in seen:
                seen.add(parent)
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
    """Refuse to run rules on values that are gone or were overwritten."""
    latest = writes.latest
    for node in order:
        if node.saved is None:
            raise reported(
                node.plan.op, (), node.attrs, GradientError(
                    f"{node.where}: this part of the graph was freed by an earlier backward",
                    fix="pass retain_graph=True to the first backward, or compute the value again",
                ), node,
            )  # fmt: skip
        if node.time < latest:
            for name, value in zip(node.plan.names, node.saved):
                for array in value if isinstance(value, tuple) else (value,):
                    if hasattr(array, "base") and writes.time(array) > node.time:
                        raise reported(
                            node.plan.op, (), node.attrs, GradientError(
                                f"{node.where}: its backward needs {name!r}, which was overwritten in place after {node.name} used it",
                                got=describe(array),
                                fix="write into a copy (x = x.clone()), or write after backward()",
                            ), node,
                        )  # fmt: skip


@np.errstate(all="ignore")
def sweep(
    seeds: Any, targets: Any = None, create_graph: bool = False, retain_graph: bool = False, quiet: bool = False
) -> dict[Node, Any]:
    """Carry the seed gradients back. Returns the gradient of every leaf, retained node and target.

    With `targets`, only what leads to them is computed. With `create_graph`, the very same rules run on
    Tensors instead of arrays, so that the result can be differentiated again. With `quiet`, the targets
    bound what is swept: their hooks, and what lies beyond, are left to the sweep that this one is a part of.
    """
    grads: dict[Node, Any] = {}
    for node, g in seeds:
        grads[node] = g if node not in grads else _sum(grads[node], g)
    order = collect(grads, targets if quiet and targets else ())
    useful = between(order, targets) if targets is not None else None
    if useful is not None:
        order = [node for node in order if node in useful]
        grads = {node: g for node, g in grads.items() if node in useful}
    # A target beyond which nothing is wanted runs no rule.
    check_usable(order if useful is None else [node for node in order if any(p in useful for p in node.parents)])
    checked = writes.latest
    results: dict[Node, Any] = {}
    outer = local.mode
    tracers, keep = outer.tracers, retain_graph or create_graph
    free = not keep and not tracers
    local.mode = Mode(create_graph, tracers, outer.scope)
    try:
        for node in order:
            g = grads.pop(node, None)
            if g is None:
                continue
            if node.hooks or node.retain or targets is not None:
                target = targets is not None and node in targets
                if node.hooks and not (target and quiet):
                    g = _run_hooks(node, g)
                if node.retain and targets is None:
                    _check_retained(node)
                if target or node.retain:
                    results[node] = g
                    if target and not any(parent in useful for parent in node.parents):  # type: ignore[operator]
                        continue  # nothing beyond is wanted, so its saved values stay
            if writes.latest != checked:  # a hook wrote something
                check_usable((node,))
            saved = node.plan.as_tensors(node) if create_graph else node.saved
            if create_graph or type(g) is ndarray:
                pull(grads, node, g, saved, useful, tracers)
            else:
                with on_device_of(next(part for part in g if part is not None) if type(g) is list else g):
                    pull(grads, node, g, saved, useful, tracers)
            if free:
                node.saved = None
        for node, g in grads.items():  # what is left are the leaves
            results[node] = _run_hooks(node, g) if node.hooks and not quiet else g
    finally:
        local.mode = outer
    if tracers and not keep:  # only now, so that a sweep that was stopped can be looked into
        for node in order:
            node.saved = None
    return results


def pull(grads: dict[Node, Any], node: Node, g: Any, saved: Any, useful: set[Node] | None, tracers: Any) -> None:
    """Run the rules of one node, and add each result to the gradient of the parent it belongs to."""
    plan, parents = node.plan, node.parents
    if plan.output_index is not None:  # one of several outputs
        parts = grads.setdefault(parents[0], [None] * len(parents[0].shape))
        known = parts[plan.output_index]
        parts[plan.output_index] = g if known is None else _sum(known, g)
        return
    if type(g) is list:
        g = plan.fill(node, g)
    report: Any = [] if tracers else None
    try:
        for i, rule, pick in plan.rules:
            if i < 0:
                results = rule(g, *pick(saved))
                if not isinstance(results, (tuple, list)) or len(results) != len(parents):
                    raise wrong_count(plan.rule_name(node), len(parents), results)
                made: Any = enumerate(results)
            elif useful is None or parents[i] in useful:
                made = ((i, rule(g, *pick(saved))),)
            else:
                continue
            for k, raw in made:
                parent = parents[k]
                if parent is None or raw is None and i < 0 or useful is not None and parent not in useful:
                    continue
                if type(raw) is ndarray and raw.shape == parent.shape and raw.dtype is parent.dtype:
                    part = raw
                else:
                    part = _fit(node, parent, raw)
                known = grads.get(parent)
                grads[parent] = part if known is None else _sum(known, part)
                if report is not None:
                    report.append((k, raw, part))
        for tracer in tracers:
            tracer.pulled(node, g, report)
    except Exception as error:
        reported(plan.op, (), node.attrs, error, node)
        raise


def _fit(child: Node, parent: Node, g: Any) -> Any:
    """Bring a rule's result to the shape and dtype of the value it is the gradient of."""
    if not local.mode.record and hasattr(g, "node"):
        g = g.data  # the rule used public functions, which give Tensors also for arrays
    try:
        fits = g.shape == parent.shape
    except AttributeError:
        raise GradientError(
            f"{child.plan.rule_name(child)} gave a gradient that is not an array",
            f"a gradient of shape {parent.shape}",
            describe(g),
            f"correct the rule: {child.name}.vjp",
        ) from None
    if not fits:
        g = unbroadcast(g, parent.shape)
        if g.shape != parent.shape:
            raise ShapeError(
                f"{child.plan.rule_name(child)} gave a gradient of a wrong shape",
                parent.shape,
                describe(g),
                f"correct the rule: {child.name}.vjp",
            )
    return g if g.dtype == parent.dtype else g.astype(parent.dtype)


def _sum(known: Any, g: Any) -> Any:
    """Add on the device of the operands."""
    if type(g) is ndarray or not is_array(g):
        return known + g
    with on_device_of(g):
        return known + g


def _check_retained(node: Node) -> None:
    """Refuse to keep a gradient of values that were replaced through a view."""
    if (kept := node.retain()) is not None and writes.is_stale(kept.data, node):
        raise GradientError(
            f"{node.where}: a tensor that retains its gradient shares memory with a tensor that was written to in place",
            got=f"{node.shape} {node.dtype}",
            fix="call retain_grad() on what was written to, or write through the whole tensor (x[i] = …)",
        )


def _run_hooks(node: Node, g: Any) -> Any:
    return reduce(lambda given, hook: hook(given), list((node.hooks or {}).values()), g)


def store(results: dict[Node, Any], seed: Any = None) -> None:
    """Add the swept gradients to `.grad`, each in memory of its own; that of `seed` is the user's."""
    stored = {id(seed)}
    with _storing:  # two threads may add to the same leaf
        for node, g in results.items():
            if node.grad is not None:
                g = _sum(node.grad, g)
            g = as_array(g)
            g = duplicate(g) if id(g) in stored or g.base is not None else g
            stored.add(id(g))
            node.grad = g
            notify("stored", node, g)
