"""Random programs: `generate(seed)` draws the program of that number. Here are also the steps that write and differentiate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import program_ops as ops
from .program_draft import Draft, dtype_of, is_float
from .programs import Program, torch


def overlaps(a: Any, b: Any) -> bool:
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def write(draft: Draft) -> None:
    x = draft.pick(lambda v: is_float(v) or draft.chance(0.2))
    v = draft.value(x)
    if any(n > 1 and not step for n, step in zip(v.shape, v.stride())) and draft.chance(0.7):
        return  # what broadcast_to gave: refused
    leaf = v.is_leaf and v.requires_grad
    prefix = "with no_grad(): " if draft.chance(0.7 if leaf else 0.15) else ""
    kind = draft.choice(("set", "set", "augment", "augment", "augment part", "whole"))
    if kind in ("set", "whole"):
        index = draft.choice(("...", ":") if v.ndim else ("...", "()")) if kind == "whole" else ops.any_index(draft, x)
        if ("[" in index or ">" in index) and 0 in v.stride():
            return  # PyTorch warns
        try:
            target = eval(f"v[{index.replace(f'{x} >', 'v >')}]", {"v": v.detach(), "tensor": torch.tensor})
        except (IndexError, TypeError):
            return
        set_value(draft, prefix, f"{x}[{index}]", v, target)
    else:
        symbol = draft.choice(("+=", "-=", "*=", "*="))
        place = x if kind == "augment" or not v.ndim else f"{x}[{ops.basic_index(draft, tuple(v.shape))}]"
        augment(draft, prefix, place, symbol, v)


def set_value(draft: Draft, prefix: str, place: str, v: Any, target: Any) -> None:
    shape, dtype = tuple(target.shape), dtype_of(v)
    kind = draft.choice(("number", "tensor", "tensor", "tensor", "array", "itself"))
    if not is_float(v):
        draft.add(f"{prefix}{place} = {draft.choice((1, 0))}", kind="write")
    elif kind == "number":
        draft.add(f"{prefix}{place} = {draft.choice((0.5, 1, -1.25))}", kind="write")
    elif kind == "array":
        array = f"numbers({draft.seed()}, {shape}, '{dtype}')"
        draft.add(f"{prefix}{place} = {array}", f"{prefix}{place} = tensor({array})", kind="write")
    elif kind == "itself" and tuple(v.shape) == shape and ">" not in place:
        name = place.partition("[")[0]
        draft.add(f"{prefix}{place} = {name}", f"{prefix}{place} = {name}.clone()", kind="write")
    else:
        accepts = lambda other: is_float(other) and fills(tuple(other.shape), shape)  # noqa: E731
        try:
            y = draft.pick(accepts, recent=False)
        except LookupError:
            y = draft.leaf(shape, dtype)
        copy = ".clone()" if overlaps(draft.value(y), v) else ""
        cast = f".to({dtype})" if dtype_of(draft.value(y)) != dtype else ""
        draft.add(f"{prefix}{place} = {y}", f"{prefix}{place} = {y}{copy}{cast}", kind="write")


def fills(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether `shape` broadcasts to `target`."""
    return len(shape) <= len(target) and all(m in (1, n) for m, n in zip(shape[::-1], target[::-1]))


def augment(draft: Draft, prefix: str, place: str, symbol: str, v: Any) -> None:
    if not is_float(v):
        draft.add(f"{prefix}{place} {symbol} {draft.choice((1, 2))}", kind="write")
        return
    if draft.chance(0.4) or place.endswith("]"):
        draft.add(f"{prefix}{place} {symbol} {draft.choice((0.5, 2, -1.25))}", kind="write")
        return
    shape = tuple(v.shape)
    y = draft.pick(lambda other: other.dtype == v.dtype and fills(tuple(other.shape), shape), recent=False)
    copy = ".clone()" if overlaps(draft.value(y), v) else ""
    draft.add(f"{prefix}{place} {symbol} {y}", f"{prefix}{place} {symbol} {y}{copy}", kind="write")


def hook(draft: Draft) -> None:
    written = any(step.kind == "write" for step in draft.steps)
    # PyTorch crashes on a hook of a view whose base was written to.
    x = draft.pick(lambda v: is_float(v) and v.requires_grad and not (written and v._is_view()))
    kind = draft.choice(("see", "replace", "write"))
    if kind == "see":
        draft.add(f"{x}.register_hook(see('{x}'))", kind="hook")
    elif kind == "replace":
        draft.add(f"{x}.register_hook(lambda g: g * {draft.choice((2, -0.5))})", kind="hook")
    else:
        y = draft.pick()
        write = f"no_grad()(lambda g: {y}.__setitem__(..., {draft.choice((0.5, 1.5))}))"
        draft.add(f"{x}.register_hook({write})", kind="hook")


def graph(draft: Draft) -> None:
    """What changes a graph, or what is kept of it."""
    kind = draft.choice(("retain_grad", "freeze", "require", "clear"))
    if kind == "retain_grad" and not any(step.ours.startswith("g") for step in draft.steps):
        draft.add(
            f"{draft.pick(lambda v: is_float(v) and v.requires_grad and not v.is_leaf)}.retain_grad()", kind="graph"
        )
    elif kind == "require":
        x = draft.pick(lambda v: is_float(v) and not v.requires_grad)
        frozen = any(step.ours == f"{x}.requires_grad_(False)" for step in draft.steps)
        shared = [n for n, v in draft.names.items() if isinstance(v, torch.Tensor) and overlaps(v, draft.value(x))]
        if not frozen and shared == [x]:  # see docs/differences.md
            draft.add(f"{x}.requires_grad_()", kind="graph")
    elif kind == "freeze":
        x = draft.pick(lambda v: is_float(v) and v.requires_grad and v.is_leaf, recent=False)
        line = f"{x}.requires_grad_(False)"
        draft.add(line, f"{line}; {x}.grad = None", kind="graph")
    elif kind == "clear":
        draft.add(
            f"{draft.pick(lambda v: is_float(v) and v.requires_grad and v.is_leaf, recent=False)}.grad = None",
            kind="graph",
        )


def derivative(draft: Draft) -> None:
    x = draft.pick(lambda v: is_float(v) and v.requires_grad and v.numel())
    seed, retain = draft.seed(), draft.chance(0.75)
    if draft.chance(0.45):
        draft.add(f"score({x}, {seed}).backward({'retain_graph=True' if retain else ''})", kind="derivative")
        return
    if any("retain_grad" in step.ours for step in draft.steps):
        return  # autograd.grad fills what was retained in PyTorch, and not here: see docs/differences.md
    y = draft.pick(lambda v: is_float(v) and v.requires_grad, recent=False)
    name = draft.new("g")
    again = draft.chance(0.8)
    draft.add(
        f"{name}, = grad(score({x}, {seed}), [{y}], create_graph={again}, retain_graph=True, allow_unused=True)",
        kind="derivative",
    )


PLAIN = (
    (ops.unary, 5), (ops.binary, 6), (ops.reduction, 2), (ops.total_of, 0.5), (ops.along, 2), (ops.matrices, 1.5), (ops.joining, 1),
    (ops.fused, 3), (ops.dtypes, 0.7), (ops.indexing, 2), (ops.view, 3), (ops.shapes, 1),
)  # fmt: skip
FLAVOURS: dict[str, tuple[tuple[Any, float], ...]] = {
    "plain": PLAIN,
    "writes": (*PLAIN, (write, 7), (ops.view, 4)),
    "derivatives": (*PLAIN, (derivative, 4), (hook, 1.5), (graph, 1.5)),
    "everything": (*PLAIN, (write, 4), (ops.view, 2), (derivative, 2.5), (hook, 1.5), (graph, 1.5)),
}


def generate(seed: int) -> Program:
    """The random program of this number."""
    draft = Draft(seed)
    flavour = FLAVOURS[draft.choice(("plain", "writes", "derivatives", "everything", "everything"))]
    chosen = draft.choice((None, "numpy", "numba", "definitions"))
    common = draft.choice(("float64", "float64", "float64", "float32"))
    for _ in range(draft.choice((1, 2, 2, 3))):
        dtype = common if draft.chance(0.85) else draft.choice(("float64", "float32", "float16"))
        draft.leaf(dtype=dtype, grad=draft.chance(0.85))
    if draft.chance(0.3):
        draft.whole(draft.shape())
    if draft.chance(0.2):
        name = draft.new("k")
        draft.add(f"{name} = tensor(numbers({draft.seed()}, {draft.shape()}, 'bool'))", kind="leaf")
    kinds, weights = zip(*flavour)
    share = np.cumsum(weights) / math.fsum(weights)
    for _ in range(draft.choice((4, 7, 10, 14))):
        if draft.ended:
            break
        try:
            kinds[int(np.searchsorted(share, draft.rng.random()))](draft)
        except LookupError:
            continue
    if not draft.ended:
        finish(draft)
    return Program(tuple(draft.steps), chosen)


def finish(draft: Draft) -> None:
    """Add up some of the values, and differentiate."""
    draft.add("total = tensor(numbers(0, ()), requires_grad=True) * 1", kind="op")
    for _ in range(draft.choice((1, 2, 3))):
        draft.add(f"total = total + score({draft.pick()}, {draft.seed()})")
    draft.add("total.backward()", kind="derivative")
