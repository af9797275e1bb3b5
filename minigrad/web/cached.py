"""Generating with a cache as two programs: one reads the beginning and makes the cache, one takes a token and the cache.

A cache is whatever object the model keeps between calls: the Tensors in it become inputs and outputs of the programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..engine.modes import no_grad
from ..engine.tensor import Tensor, wrap
from ..errors import ArgumentError
from ..ir import Graph, Size
from ..ops.layout.joining import concatenate
from .program import traced

__all__ = ["traced_steps"]

DEEPEST = 8  # so deep in lists and objects are the tensors of a cache
Call = Callable[..., Tensor]


def traced_steps(
    model: Any,
    call: Call,
    starts: Sequence[Sequence[Any]],
    primes: Sequence[Sequence[Any]],
    trace: Callable[..., Graph] = traced,
    new_cache: Callable[[], Any] | None = None,
) -> tuple[Graph, Graph, list[int | None]]:
    """The programs `start(*given, tokens)` and `step(*given, token, *state)`, and the axis of each part of the state that is the batch, or None.

    `call(cache, *given, tokens)` returns the logits of the next token, (B, V), and changes the cache. Both programs return
    these, then the state. `starts` and `primes` are two lists of arguments each, of other sizes: those of the first call of a single
    row, and those of the first call of several rows, after which a step is traced; `trace` is what makes a graph of a function.
    Unless `new_cache` makes it, the cache is the model's. Where a cache counts tokens of which it keeps no tensor, as that
    of a recurrence whose positions are added does, the state ends with one number for each token so far.
    """
    new_cache, given = new_cache or model.new_cache, len(primes[0]) - 1
    for counts in (False, True):

        def start(*given: Tensor, counts: bool = counts) -> list[Tensor]:
            cache = new_cache()
            return [call(cache, *given), *_tensors(cache), *([given[-1][0] * 0] if counts else [])]

        (function, arrays), (other, others) = [_step(new_cache(), call, prime, counts) for prime in primes]
        first = trace(start, *starts, holding=[model])
        second = trace(function, arrays, others, otherwise=other, holding=[model])
        batch = second.inputs[given].shape[0]
        if not _counts_by_rows(second, batch):
            break
    rows = [_axis_of(batch, v.shape) for v in second.inputs[given + 1 :]]
    return first, second, rows


def _counts_by_rows(graph: Graph, batch: Any) -> bool:
    """Whether a number that varies was taken for one that the number of rows decides: nothing else says how many tokens came before."""

    def look(x: Any) -> bool:
        if isinstance(x, slice):
            return any(map(look, (x.start, x.stop, x.step)))
        if isinstance(x, (tuple, list)):
            return any(map(look, x))
        return isinstance(x, Size) and isinstance(batch, Size) and x.symbols == batch.symbols and x.offset != 0

    return any(look(x) for step in graph.steps for x in (*step.inputs, *step.attrs.values()))


def _axis_of(batch: Any, shape: Sequence[Any]) -> int | None:
    return next((axis for axis, n in enumerate(shape) if isinstance(n, Size) and n == batch), None)


def _step(cache: Any, call: Call, prime: Sequence[Any], counts: bool) -> tuple[Callable[..., list[Tensor]], list[Any]]:
    """The function of one step after the call `prime` with a new cache, and arrays that it takes."""
    with no_grad():
        call(cache, *[wrap(np.array(x)) for x in prime])
    *given, tokens = prime
    places = list(_places(cache))
    state = [owner[key] for owner, key in places]

    def step(*inputs: Tensor) -> list[Tensor]:
        for (owner, key), value in zip(places, inputs[len(prime) :]):  # a count, if there is one, is left over
            owner[key] = value
        made = call(cache, *inputs[: len(prime)])
        after = _tensors(cache)
        if len(after) != len(places):
            raise ArgumentError(
                "page: the cache of the model has other tensors after each step", len(places), len(after)
            )
        return [made, *after, *([concatenate([inputs[-1], inputs[len(given)][0] * 0])] if counts else [])]

    counted = [tokens[0] * 0] if counts else []
    return step, [*given, tokens[:, -1:], *[t.numpy().copy() for t in state], *counted]


def _tensors(cache: Any) -> list[Tensor]:
    return [owner[key] for owner, key in _places(cache)]


class _InTuple:
    """The parts of a tuple that somebody owns, as if they could be changed."""

    def __init__(self, owner: Any, key: Any):
        self.owner, self.key = owner, key

    def __len__(self) -> int:
        return len(self.owner[self.key])

    def __getitem__(self, place: int) -> Any:
        return self.owner[self.key][place]

    def __setitem__(self, place: int, value: Any) -> None:
        parts = list(self.owner[self.key])
        parts[place] = value
        kind = type(self.owner[self.key])
        self.owner[self.key] = kind(*parts) if hasattr(kind, "_fields") else tuple(parts)


def _places(thing: Any, depth: int = DEEPEST) -> Iterator[tuple[Any, Any]]:
    """Where the Tensors in an object are: `owner[key]`, in a fixed order."""
    slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ()) if hasattr(thing, name)]
    if isinstance(thing, (list, dict, _InTuple)):
        owner: Any = thing
    elif hasattr(thing, "__dict__") and not isinstance(thing, (type, np.ndarray)):
        owner = vars(thing)
    elif slots:
        raise ArgumentError(f"page: a cache of {type(thing).__name__} has slots, which cannot be traced")
    else:
        return
    for key in list(owner) if isinstance(owner, dict) else range(len(owner)):
        part = owner[key]
        if isinstance(part, tuple):
            yield from _places(_InTuple(owner, key), depth - 1)
        elif isinstance(part, Tensor):
            yield owner, key
        elif depth and not hasattr(part, "compiled_state"):  # a module has parameters, not a state
            yield from _places(part, depth - 1)
