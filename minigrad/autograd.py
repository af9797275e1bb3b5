"""Derivatives in PyTorch's manner: `mg.autograd.grad(outputs, inputs)` returns gradients and leaves `.grad` alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .engine.backend import as_array, duplicate
from .engine.graph import Node, sweep
from .engine.tensor import Tensor, differentiate, node_of, seed_of, wrap
from .engine.writes import writes
from .errors import ArgumentError, GradientError, public

__all__ = ["grad"]


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Any = None,
    create_graph: bool = False,
    retain_graph: bool | None = None,
    allow_unused: bool = False,
) -> tuple[Tensor | None, ...]:
    """The derivatives of `outputs` (times `grad_outputs`, where they are not scalars) with respect to each of `inputs`.

    With `create_graph=True` the results can be differentiated again. An input that the outputs do not
    depend on is an error, or None with `allow_unused=True`.

    >>> import minigrad as mg
    >>> x = mg.tensor(3.0, requires_grad=True)
    >>> (first,) = mg.autograd.grad(x ** 3, x, create_graph=True)
    >>> mg.autograd.grad(first, x)[0].item()
    18.0
    """
    outs = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    ins = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    given = [grad_outputs] if grad_outputs is None or isinstance(outputs, Tensor) else list(grad_outputs)
    given = given * len(outs) if grad_outputs is None else given
    if len(given) != len(outs):
        raise ArgumentError("autograd.grad: as many grad_outputs as outputs are needed", len(outs), len(given))
    for i, x in enumerate(ins):
        if x.node is None:
            raise GradientError(
                f"autograd.grad: input {i} does not require a gradient",
                got=f"{x.shape} {x.dtype}",
                fix="call x.requires_grad_() before computing the output",
            )
    nodes = [node_of(x, f"autograd.grad: input {i}") for i, x in enumerate(ins)]
    pairs = zip(outs, given)
    roots = [(out, g) for out, g in pairs if out.node is not None or writes.is_stale(out.data, None)]
    seeds = [(node_of(out, "autograd.grad"), _seed(out, g, create_graph)) for out, g in roots]
    if not seeds and not allow_unused:
        raise GradientError(
            "autograd.grad: no output has a graph to differentiate", fix="create inputs with requires_grad=True"
        )
    results: dict[Node, Any] = {}
    if seeds and create_graph:
        results = sweep(seeds, set(nodes), create_graph=True)
    elif seeds:
        results = differentiate(seeds, set(nodes), bool(retain_graph))
    for i, node in enumerate(nodes):
        if node not in results and not allow_unused:
            raise GradientError(
                f"autograd.grad: the outputs do not depend on input {i}",
                got=f"{ins[i].shape} {ins[i].dtype}",
                fix="pass allow_unused=True to get None for it",
            )
    taken = {id(g.data) for g in given if isinstance(g, Tensor)}  # each result gets memory of its own
    return tuple([_finish(results.get(node), taken) for node in nodes])


def _seed(output: Tensor, gradient: Any, create_graph: bool) -> Any:
    if create_graph and isinstance(gradient, Tensor):
        seed_of(output, gradient)  # checks its shape
        return gradient if gradient.dtype == output.dtype else gradient.astype(output.dtype)
    seed = seed_of(output, gradient)
    return wrap(seed) if create_graph else seed


def _finish(g: Any, taken: set[int]) -> Tensor | None:
    if g is None:
        return None
    array, node = (g.data, g.node) if isinstance(g, Tensor) else (as_array(g), None)
    if array.base is not None or id(array) in taken:
        array = duplicate(array)
    taken.add(id(array))
    return g if isinstance(g, Tensor) and array is g.data else wrap(array, node)


if not TYPE_CHECKING:  # a type checker knows what is here
    __getattr__, __dir__ = public(__name__, __all__, "autograd")
