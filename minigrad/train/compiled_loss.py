"""The loss of a run as a compiled function, forward and backward."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import tree
from ..compile.function import Compiled, Trace
from ..engine.backend import is_array
from ..engine.modes import local
from ..engine.tensor import wrap
from ..errors import IndexingError
from ..ir.trace import TraceError
from ..random import draws, position, replay, replay_keys

__all__ = ["CompiledLoss"]


class CompiledLoss:
    """`loss(model, batch)` as a compiled function of the batch.

    After `most` traces, what would be traced again runs op by op.
    """

    def __init__(self, loss: Callable[[Any, Any], Any], model: Any, most: int | None = None):
        self.loss, self.model, self.most = loss, model, most
        self._by_form: dict[Any, _Terms] = {}

    def __call__(self, batch: Any) -> Any:
        if local.mode.tracers:  # who watches sees the loss itself
            return self.loss(self.model, batch)
        form, place = tree.form(batch), position()
        terms = self._by_form.get(form)
        if terms is None:
            terms = self._by_form.setdefault(form, _Terms(self.loss, self.model, _Example(batch), self.most))
        try:
            return terms(*[wrap(x) if is_array(x) else x for x in tree.leaves(batch)])
        except IndexingError:
            with replay_keys(place):
                return self.loss(self.model, batch)  # which says what index is wrong, and where

    @property
    def traces(self) -> int:
        """How often it was traced."""
        return sum(len(terms.traces) for terms in self._by_form.values())


class _Example:
    """A batch that others are made like."""

    def __init__(self, batch: Any):
        self.batch = tree.map(lambda leaf: None, batch)

    def filled(self, leaves: Sequence[Any]) -> Any:
        return tree.unflatten(self.batch, leaves)


class _Terms(Compiled):
    """The loss as a function of the leaves of a batch, which is the quickest to call."""

    def __init__(self, loss: Callable[[Any, Any], Any], model: Any, example: _Example, most: int | None):
        super().__init__(lambda *leaves: loss(model, example.filled(leaves)))
        self.name, self.most = getattr(loss, "__name__", type(loss).__name__), most

    def _trace(self, given: Any, leaves: list[Any]) -> tuple[Trace | None, Any]:
        if self.most is not None and len(self.traces) >= self.most:
            self._warn()
            return None, self.function(*given[0])
        first, result = super()._trace(given, leaves)
        with replay(draws()):
            second, _ = super()._trace(given, leaves)
        assert first is not None and second is not None
        _check(first, second)
        return first, result

    def _warn(self) -> None:
        if self.most:
            text = (
                f"{self.name} was compiled {self.most} times, each for other shapes or settings, and goes on op by op"
            )
            warnings.warn(text, RuntimeWarning, stacklevel=4)
            self.most = 0


def _check(first: Trace, second: Trace) -> None:
    """Refuse a loss that cannot be compiled though it can be traced."""
    if first.has_effects:
        raise TraceError(
            "compile: the loss changes tensors besides computing its terms, as BatchNorm changes its running mean",
            "a loss that only computes",
            fix='train with compile="off", or with LayerNorm in the place of BatchNorm',
        )
    graphs = first.program.graph, second.program.graph
    constants = zip(*[graph.constants.values() for graph in graphs])
    if (
        str(graphs[0]) != str(graphs[1])
        or first.form != second.form
        or not all(np.array_equal(a, b) for a, b in constants)
    ):
        raise TraceError(
            "compile: the loss computes something else when it is called again with the same batch",
            "a loss that depends on the batch and the model alone",
            fix='draw random numbers with minigrad, not with Python or NumPy; or train with compile="off"',
        )
