"""Fused ops that stay whole in a graph, such as attention: their kernels are better than loops written from their definition.

Such an op becomes two ops of the graph: one that also returns what its backward wants kept, and one that is its backward.
A third derivative and beyond go through the definition, as everywhere.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from ..engine.graph import leaf, sweep
from ..engine.modes import enable_grad
from ..engine.op import Op, _output
from ..engine.tensor import Tensor, wrap

__all__ = ["WHOLE", "stays_whole", "with_kept"]

WHOLE = "whole"  # what such an op has for its lowering


def stays_whole(op: Any) -> Callable[[Sequence[Any], dict[str, Any]], Any] | None:
    """What is to be called in place of a fused op that stays whole; None for all others."""
    if op.lowering != WHOLE:
        return None

    def call(args: Sequence[Any], attrs: dict[str, Any]) -> Any:
        arrays = [x.data if isinstance(x, Tensor) else x for x in args]
        if op.kernels.choose(arrays, attrs) is None:
            return op.define(args, attrs)
        out, *_ = with_kept(op)(*args, **attrs)
        return out

    return call


@cache
def with_kept(op: Any) -> Op:
    """The op that returns its output, then what its backward wants kept."""
    inputs, attributes = op.signature.inputs, list(op.signature.defaults)

    def forward(xp: Any, *arrays: Any, **attrs: Any) -> tuple[Any, ...]:
        out, kept = op.kernels.choose(arrays, attrs).forward(*arrays, **attrs)
        return out, kept

    def rule(g: Any, needs: Any, out: Any, *asked: Any) -> list[Any]:
        given, attrs = asked[: len(inputs)], dict(zip(attributes, asked[len(inputs) :]))
        found = iter(_backward(op, needs)(g[0], out[1], *given, **attrs))
        return [next(found) if need else None for need in needs]

    forward.__name__ = op.name
    forward.__doc__ = op.__doc__
    _sign(forward, ["xp", *inputs], attributes)
    _sign(rule, ["g", "needs", "out", *inputs, *attributes], [])
    made = Op(forward, several=True, cost=op.cost)
    made.vjp(rule)
    return made


@cache
def _backward(op: Any, needs: tuple[bool, ...]) -> Op:
    """The op that returns the gradient of each input that needs one."""
    inputs, attributes = op.signature.inputs, list(op.signature.defaults)

    def forward(xp: Any, g: Any, kept: Any, *arrays: Any, **attrs: Any) -> tuple[Any, ...]:
        grads = op.kernels.choose(arrays, attrs).backward(g, kept, needs, *arrays, **attrs)
        return tuple([grad for grad, need in zip(grads, needs) if need])

    def rule(slopes: Any, g: Any, *asked: Any) -> list[Any]:
        given, attrs = asked[: len(inputs)], dict(zip(attributes, asked[len(inputs) :]))
        return _by_definition(op, needs, slopes, g, given, attrs)

    forward.__name__ = f"{op.name}_backward"
    _sign(forward, ["xp", "g", "kept", *inputs], attributes)
    _sign(rule, ["slopes", "g", *inputs, *attributes], [])
    made = Op(forward, several=True, cost=op.cost)
    made.vjp(rule)
    return made


def _by_definition(op: Any, needs: Sequence[bool], slopes: Any, g: Any, given: Sequence[Any], attrs: Any) -> list[Any]:
    """The gradients of a backward, with respect to g, what was kept (which depends on the inputs alone) and the inputs."""
    with enable_grad():
        first = _apart(g)
        apart = [_apart(x) if need else x for x, need in zip(given, needs)]
        out = op.define(apart, attrs)
        targets = [x.node for x, need in zip(apart, needs) if need]
        grads = sweep([(out.node, first)], set(targets), create_graph=True, quiet=True)
        pairs = [
            (grads[t].node, _tensor(s)) for t, s in zip(targets, slopes) if t in grads and grads[t].node is not None
        ]
        found = sweep(pairs, {first.node, *targets}, create_graph=True, quiet=True)
    return [found.get(first.node), None, *[found.get(x.node) if need else None for x, need in zip(apart, needs)]]


def _tensor(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else wrap(x)


def _apart(x: Any) -> Any:
    """The same value behind a node of its own, so that a gradient can be asked for just there."""
    return _output(x) if isinstance(x, Tensor) and x.node is not None else wrap(_tensor(x).data, leaf(_tensor(x).data))


def _sign(function: Any, before: Sequence[str], after: Sequence[str]) -> None:
    """Let a function that takes anything say what it takes."""
    kind = inspect.Parameter
    parameters = [kind(name, kind.POSITIONAL_OR_KEYWORD) for name in before]
    parameters += [kind(name, kind.KEYWORD_ONLY) for name in after]
    function.__signature__ = inspect.Signature(parameters)
