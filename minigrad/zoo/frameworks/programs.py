"""The functions of a trained model that exports write, as traced graphs whose batch and length may vary."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...engine.modes import no_grad
from ...engine.tensor import wrap
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


def programs_of(loaded: Any, whole: Collection[str]) -> dict[str, Program]:
    """The programs of a model by name: `model`, or the `encoder` and the `decoder` of a translator.

    Models that have a cache generate with it by `step`; those that read something before begin with `start`. Fused ops whose
    names are in `whole` are one step each.
    """
    loaded = merged(loaded)
    made, model, task = _Programs(loaded.model, whole), loaded.model, loaded.spec.task
    if task == "translation" and hasattr(model, "longest"):
        return made.encoder_decoder()
    if task == "translation" and hasattr(model, "new_cache"):
        return made.cached_decoder([1, 1])
    if task == "language model":
        return made.language_model()
    if task == "masked language model" and hasattr(model, "logits"):
        return {"model": made.masked()}
    if all(hasattr(model, part) for part in ("encode", "decode", "decoder")) and hasattr(model.decoder, "new_cache"):
        return made.reader_and_writer(called_arrays(loaded))
    return {"model": made.plain(loaded)}


class _Programs:
    """Traces the functions of one model."""

    def __init__(self, model: Any, whole: Collection[str]):
        self.model, self.trace = model, partial(graph_of, whole=whole)

    def program(
        self,
        function: Callable[..., Any],
        arrays: Sequence[Sequence[Any]],
        inputs: Sequence[str],
        outputs: Sequence[str],
    ) -> Program:
        """Trace with two lists of arrays; a plain call before lets tables grow outside of the trace."""
        for given in arrays:
            called(function, given)
        return Program(self.trace(function, *arrays, holding=[self.model]), inputs, outputs)

    def language_model(self) -> dict[str, Program]:
        """The logits of whole texts; with a cache also `step`: a token for each row, and what is kept of those before it, which may be none."""
        model = self.model
        lengths = _lengths(model)
        tokens = [np.ones((rows, length), "int64") for rows, length in zip(ROWS, lengths)]
        called(model, [np.ones((1, model.context), "int64")])  # since tables of positions are constants of a graph
        programs = {"model": self.program(model, [[x] for x in tokens], ["tokens"], ["logits"])}
        if not hasattr(model, "new_cache"):
            return programs

        def call(cache: Any, tokens: Any) -> Any:
            return model(tokens, cache=cache)[:, -1]  # (B, n, V) -> (B, V)

        lengths = lengths if model.context > lengths[1] else (1, 2)
        begun = [[np.ones((rows, length), "int64")] for rows, length in zip(ROWS, lengths)]
        _, step = self.cached(call, model.new_cache, begun, ["token"])
        return {**programs, "step": step}

    def masked(self) -> Program:
        """Tokens and which of them are no padding, both (B, T), and where there are two texts the number of each."""
        model = self.model
        called(model.logits, [np.ones((1, model.context), "int64")])
        has_types = getattr(model, "segments", None) is not None
        arrays = []
        for rows, length in zip(ROWS, LENGTHS):
            tokens = np.ones((rows, length), "int64")
            arrays.append([tokens, np.ones((rows, length), bool), *([np.zeros_like(tokens)] if has_types else [])])
        names = ["tokens", "mask", *(["types"] if has_types else [])]
        return self.program(lambda *given: model.logits(*given), arrays, names, ["logits"])

    def encoder_decoder(self) -> dict[str, Program]:
        """A translator's parts: sources (B, S) -> memory; targets (B, T), memory -> logits; and those that have a cache."""
        model = self.model
        longest = model.longest or LONGEST
        token = np.full((1, longest), 5, "int64")
        called(model, [token, token])
        sources = [[np.full((rows, length), 5, "int64")] for rows, length in zip(ROWS, LENGTHS)]
        encoder = self.program(model.encode, sources, ["source"], ["memory", "mask"])
        arrays = []
        for (source,), length in zip(sources, TARGETS):
            memory, mask = called(model.encode, [source])
            arrays.append([np.full((len(source), length), 5, "int64"), memory.numpy().copy(), mask.numpy().copy()])
        decoder = self.program(model.decode, arrays, ["target", "memory", "mask"], ["logits"])
        return {"encoder": encoder, "decoder": decoder, **self.cached_decoder(TARGETS)}

    def cached_decoder(self, lengths: Sequence[int]) -> dict[str, Program]:
        """`start`: the sources, and the tokens that each target begins with; `step`: the next token of each, and the cache."""

        def call(cache: Any, source: Any, tokens: Any) -> Any:
            return self.model(source, tokens, cache=cache)[:, -1]  # (B, n, V) -> (B, V)

        given = [
            [np.full((rows, length), 5, "int64"), np.full((rows, begun), 5, "int64")]
            for rows, length, begun in zip(ROWS, LENGTHS, lengths)
        ]
        start, step = self.cached(call, self.model.new_cache, given, ["source", "target"])
        return {"start": start, "step": step}

    def reader_and_writer(self, arrays: Sequence[Any]) -> dict[str, Program]:
        """A model that reads something, such as a picture, and writes tokens: the whole, its encoder, and a decoder with a cache."""
        model, (read, tokens) = self.model, arrays
        shown = [np.repeat(read[:1], rows, axis=0) for rows in ROWS]
        most = tokens.shape[1]
        both = [[x, np.repeat(tokens[:1, : most - 3 * i], len(x), axis=0)] for i, x in enumerate(shown)]
        outputs = called(model, both[0])
        count = len(outputs) if isinstance(outputs, (tuple, list)) else 1
        names = ["output"] if count == 1 else [f"output_{i}" for i in range(count)]
        whole = self.program(model, both, ["input_0", "input_1"], names)
        encoder = self.program(model.encode, [[x] for x in shown], ["input"], ["memory"])

        def call(cache: Any, memory: Any, tokens: Any) -> Any:
            return model.decode(tokens, memory, cache)[:, -1]  # (B, n, V) -> (B, V)

        given = [[called(model.encode, [x]).numpy().copy(), begun[:, : 4 - i]] for i, (x, begun) in enumerate(both)]
        start, step = self.cached(call, model.decoder.new_cache, given, ["memory", "target"])
        return {"model": whole, "encoder": encoder, "start": start, "step": step}

    def cached(
        self,
        call: Callable[..., Any],
        new_cache: Callable[[], Any],
        given: Sequence[Sequence[Any]],
        names: Sequence[str],
    ) -> tuple[Program, Program]:
        """The programs that begin and go on, in which what a step reads as `past_i` is what the one before it gave as `present_i`."""
        for arrays in given:
            called(partial(call, new_cache()), arrays)
        start, step, _ = traced_steps(self.model, call, given, given, self.trace, new_cache)
        count = len(step.outputs) - 1
        outputs = ["logits", *[f"present_{i}" for i in range(count)]]
        past = [*names[:-1], "token", *[f"past_{i}" for i in range(count)]]
        read = {value for one in step.steps for value in one.values} | {*step.outputs}
        kept = [i for i, value in enumerate(step.inputs) if value in read]  # the sources are in the cache
        step = Graph([step.inputs[i] for i in kept], step.steps, step.outputs, step.constants)
        return Program(start, names, outputs), Program(step, [past[i] for i in kept], outputs)

    def plain(self, loaded: Any) -> Program:
        """What the loss calls a model with, or a page of arrays with a function of its own; rows may be any number."""
        said = loaded.spec.page(loaded) if loaded.spec.page is not None else Page()
        function = self.model if said.function is None or said.kind == "painting" else said.function
        if said.kind == "words":
            arrays = [np.array([loaded.tokenizer.vocab_size - 1])]
        else:
            arrays = [np.asarray(x) for x in said.arrays] or called_arrays(loaded)
        given = [[np.repeat(x[:1], rows, axis=0) for x in arrays] for rows in ROWS]
        names = ["input"] if len(arrays) == 1 else [f"input_{i}" for i in range(len(arrays))]
        program = self.program(function, given, names, ["output"])
        count = len(program.graph.outputs)
        return program if count == 1 else Program(program.graph, names, [f"output_{i}" for i in range(count)])


def _lengths(model: Any) -> tuple[int, int]:
    """Of two texts that take the same way: as long as a model can read, and longer than its windows, which shorter ones do not fill."""
    windows = [part.window for part in model.modules() if isinstance(getattr(part, "window", None), int)]
    within = [window for window in windows if window < model.context]
    short, long = (n + max(within, default=0) for n in LENGTHS)
    return (short, long) if long <= model.context else (max(within, default=0) + 1, model.context)


def called(function: Callable[..., Any], arrays: Sequence[Any]) -> Any:
    """What a function of Tensors makes of arrays."""
    with no_grad():
        return function(*[wrap(np.array(x)) for x in arrays])
