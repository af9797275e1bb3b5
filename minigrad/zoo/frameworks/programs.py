"""The functions of a trained model that exports write, as traced graphs whose batch and length may vary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...engine.modes import no_grad
from ...engine.tensor import wrap
from ...ir import Graph
from ...web.program import graph_of
from ..export import merged
from ..page import Page
from ..pages.plain import called_arrays

__all__ = ["Program", "programs_of"]

ROWS, LENGTHS, TARGETS = (
    (2, 3),
    (5, 11),
    (7, 17),
)  # of the two traces; all differ, so that each gets a symbol of its own
LONGEST = 512  # tokens of a text for which tables of sines are written


@dataclass(frozen=True)
class Program:
    """A graph, and what its inputs and outputs are called."""

    graph: Graph
    inputs: Sequence[str]
    outputs: Sequence[str]


def programs_of(loaded: Any) -> dict[str, Program]:
    """The programs of a model by name: `model`, or the `encoder` and the `decoder` of a translator."""
    loaded = merged(loaded)
    model = loaded.model
    task = loaded.spec.task
    if task == "translation" and hasattr(model, "encode") and hasattr(model, "decode"):
        return _encoder_decoder(model)
    if task == "language model":
        lengths = LENGTHS if model.context >= LENGTHS[1] else (1, model.context)
        tokens = [np.ones((rows, length), "int64") for rows, length in zip(ROWS, lengths)]
        _grown(model, np.ones((1, model.context), "int64"))
        return {"model": _program(model, model, [[x] for x in tokens], ["tokens"], ["logits"])}
    if task == "masked language model" and hasattr(model, "logits"):
        return {"model": _masked(model, loaded.config)}
    return {"model": _plain(loaded, model)}


def _program(
    model: Any,
    function: Callable[..., Any],
    arrays: Sequence[Sequence[Any]],
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> Program:
    """Trace with two lists of arrays; a plain call before lets tables grow, and kernels be made, outside of the trace."""
    with no_grad():
        for given in arrays:
            function(*[wrap(np.array(x)) for x in given])
    return Program(graph_of(function, *arrays, holding=[model]), inputs, outputs)


def _grown(function: Callable[..., Any], *inputs: Any) -> None:
    """Call once with the longest inputs, since tables of positions are constants of a graph."""
    with no_grad():
        function(*[wrap(np.array(x)) for x in inputs])


def _masked(model: Any, config: Any) -> Program:
    """Tokens and which of them are no padding, both (B, T), and where there are two texts the number of each."""
    _grown(model.logits, np.ones((1, model.context), "int64"))
    has_types = getattr(model, "segments", None) is not None
    arrays = []
    for rows, length in zip(ROWS, LENGTHS):
        tokens = np.ones((rows, length), "int64")
        arrays.append([tokens, np.ones((rows, length), bool), *([np.zeros_like(tokens)] if has_types else [])])
    names = ["tokens", "mask", *(["types"] if has_types else [])]
    return _program(model, lambda *given: model.logits(*given), arrays, names, ["logits"])


def _encoder_decoder(model: Any) -> dict[str, Program]:
    longest = model.longest or LONGEST
    token = np.full((1, longest), 5, "int64")
    _grown(model, token, token)
    sources = [[np.full((rows, length), 5, "int64")] for rows, length in zip(ROWS, LENGTHS)]
    encoder = _program(model, model.encode, sources, ["source"], ["memory", "mask"])
    arrays = []
    for (source,), length in zip(sources, TARGETS):
        with no_grad():
            memory, mask = (t.numpy().copy() for t in model.encode(wrap(source)))
        arrays.append([np.full((len(source), length), 5, "int64"), memory, mask])
    decoder = _program(model, model.decode, arrays, ["target", "memory", "mask"], ["logits"])
    return {"encoder": encoder, "decoder": decoder}


def _plain(loaded: Any, model: Any) -> Program:
    """What the loss calls a model with, or the function of its page; rows may be any number."""
    said = loaded.spec.page(loaded) if loaded.spec.page is not None else Page()
    function = model if said.function is None else said.function
    arrays = [np.asarray(x) for x in said.arrays] or called_arrays(loaded)
    given = [[np.repeat(x[:1], rows, axis=0) for x in arrays] for rows in ROWS]
    names = ["input"] if len(arrays) == 1 else [f"input_{i}" for i in range(len(arrays))]
    program = _program(model, function, given, names, ["output"])
    count = len(program.graph.outputs)
    return program if count == 1 else Program(program.graph, names, [f"output_{i}" for i in range(count)])
