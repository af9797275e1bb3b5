"""The functions of a trained model that exports write, as traced graphs whose batch and length may vary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...engine.modes import no_grad
from ...engine.tensor import wrap
from ...errors import ArgumentError
from ...ir import Graph
from ...web.cached import traced_steps
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
    """The programs of a model by name: `model`, or the `encoder` and the `decoder` of a translator.

    Models that have a cache generate with it by `step`, and a translator begins with `start`.
    """
    loaded = merged(loaded)
    model = loaded.model
    task = loaded.spec.task
    if task == "translation" and hasattr(model, "encode") and hasattr(model, "decode"):
        return _encoder_decoder(model)
    if task == "language model":
        lengths = LENGTHS if model.context >= LENGTHS[1] else (1, model.context)
        tokens = [np.ones((rows, length), "int64") for rows, length in zip(ROWS, lengths)]
        _grown(model, np.ones((1, model.context), "int64"))
        whole = _program(model, model, [[x] for x in tokens], ["tokens"], ["logits"])
        return {"model": whole, **(_continuation(model) if hasattr(model, "new_cache") else {})}
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
    missing = [part for part in ("longest", "encode", "decode") if not hasattr(model, part)]
    if missing:
        raise ArgumentError(
            f"{type(model).__name__} cannot be exported as an encoder and a decoder",
            "`encode(sources)`, `decode(targets, memory, mask)` and `longest` in the model",
            f"no {' and no '.join(missing)}",
            "minigrad export RUN FOLDER gives it away for minigrad",
        )
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
    return {"encoder": encoder, "decoder": decoder, **_cached_decoder(model)}


def _continuation(model: Any) -> dict[str, Program]:
    """`step`: a token for each row, and what the cache holds of those before it, which may be none."""

    def call(cache: Any, tokens: Any) -> Any:
        return model(tokens, cache=cache)[:, -1]  # (B, n, V) -> (B, V)

    lengths = LENGTHS if model.context > LENGTHS[1] else (1, 2)
    tokens = [[np.ones((rows, length), "int64")] for rows, length in zip(ROWS, lengths)]
    _, step = _cached(model, call, tokens, ["token"])
    return {"step": step}


def _cached_decoder(model: Any) -> dict[str, Program]:
    """`start`: the sources, and the tokens that each target begins with; `step`: the next token of each, and the cache."""

    def call(cache: Any, source: Any, tokens: Any) -> Any:
        return model(source, tokens, cache=cache)[:, -1]  # (B, n, V) -> (B, V)

    given = [
        [np.full((rows, length), 5, "int64"), np.full((rows, begun), 5, "int64")]
        for rows, length, begun in zip(ROWS, LENGTHS, TARGETS)
    ]
    start, step = _cached(model, call, given, ["source", "target"])
    return {"start": start, "step": step}


def _cached(
    model: Any, call: Callable[..., Any], given: Sequence[Sequence[Any]], names: Sequence[str]
) -> tuple[Program, Program]:
    """The programs that begin and go on, in which what a step reads as `past_i` is what the one before it gave as `present_i`."""
    for arrays in given:
        with no_grad():
            call(model.new_cache(), *[wrap(np.array(x)) for x in arrays])
    start, step, _ = traced_steps(model, call, given, given, graph_of)
    count = len(step.outputs) - 1
    outputs = ["logits", *[f"present_{i}" for i in range(count)]]
    past = [*names[:-1], "token", *[f"past_{i}" for i in range(count)]]
    read = {value for one in step.steps for value in one.values} | {*step.outputs}
    kept = [i for i, value in enumerate(step.inputs) if value in read]  # the sources are in the cache
    step = Graph([step.inputs[i] for i in kept], step.steps, step.outputs, step.constants)
    return Program(start, names, outputs), Program(step, [past[i] for i in kept], outputs)


def _plain(loaded: Any, model: Any) -> Program:
    """What the loss calls a model with, or the function of its page; rows may be any number."""
    said = loaded.spec.page(loaded) if loaded.spec.page is not None else Page()
    function = model if said.function is None else said.function
    if said.kind == "words":
        arrays = [np.array([loaded.tokenizer.vocab_size - 1])]
    else:
        arrays = [np.asarray(x) for x in said.arrays] or called_arrays(loaded)
    given = [[np.repeat(x[:1], rows, axis=0) for x in arrays] for rows in ROWS]
    names = ["input"] if len(arrays) == 1 else [f"input_{i}" for i in range(len(arrays))]
    program = _program(model, function, given, names, ["output"])
    count = len(program.graph.outputs)
    return program if count == 1 else Program(program.graph, names, [f"output_{i}" for i in range(count)])
