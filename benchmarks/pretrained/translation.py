"""Our translator, trained for a while on Multi30k, beside CTranslate2 and PyTorch with the same weights: beam search over 1,000 sentences."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .runs import trained

STEPS, COUNT, BEAMS, SAME = 500, 1000, 5, 0.98
WARM = 100  # sentences before anything is measured: they compile kernels, and bring memory
BATCH = 64  # sentences that CTranslate2 takes at once
PEERS = ("minigrad, float32", "minigrad, int8", "CTranslate2, float32", "CTranslate2, int8", "PyTorch")
TO_REACH = {
    "CTranslate2, float32 / minigrad, float32": 0.7,
    "CTranslate2, int8 / minigrad, int8": None,
    "PyTorch / minigrad, float32": 3.0,
}


def opened(runs: Path) -> Any:
    """The trained translator."""
    from minigrad import zoo

    return zoo.load(trained("translator:multi30k", runs, STEPS, warmup=200))


def sources(loaded: Any) -> list[list[int]]:
    """Multi30k's test sentences of 2016 as tokens."""
    from minigrad.data import fetch

    texts = Path(fetch("multi30k/test_2016_flickr.en")).read_text(encoding="utf-8").splitlines()[:COUNT]
    return [loaded.tokenizer.encode(text.lower(), eos=True) for text in texts]


def same_as_ctranslate2(runs: Path) -> float:
    """The share of sentences whose translation is the same, in float32, without a length penalty, which is another there."""
    loaded = opened(runs)
    given = sources(loaded)
    ours, theirs = _ours(loaded, 0.0)(given), _ctranslate2(loaded, "float32", 0.0)(given)
    return sum(a == b for a, b in zip(ours, theirs, strict=True)) / len(given)


def peer(name: str, runs: Path) -> Callable[[], Any]:
    """A worker's step: the translations of all sentences; it returns how many tokens they have."""
    loaded = opened(runs)
    given = sources(loaded)
    library, _, kind = name.partition(", ")
    if library == "CTranslate2":
        translate = _ctranslate2(loaded, kind)
    else:
        translate = _torch(loaded) if library == "PyTorch" else _ours(loaded, bits=8 if kind == "int8" else 32)
    translate(given[:WARM])
    return lambda: np.int64(sum(map(len, translate(given))))


Translate = Callable[[list[list[int]]], list[list[int]]]


def _ours(loaded: Any, alpha: float = 1.0, bits: int = 32) -> Translate:
    from minigrad import nn
    from minigrad.decode.encoder_decoder import search_all

    model = loaded.model if bits == 32 else nn.quantized(loaded.model, bits, embeddings=True)
    return lambda given: [found[0].tokens for found in search_all(model, given, BEAMS, alpha)]


def _torch(loaded: Any) -> Translate:
    """The same search over PyTorch's scores."""
    from minigrad.decode.encoder_decoder import longest_of, search_batches

    from ..twins.translation_torch import Continuation, translator

    state = {name: value.numpy() for name, value in loaded.model.state_dict().items()}
    special = loaded.model.special
    twin = translator(state, loaded.model.decoder.blocks[0].attention.heads)

    def translate(given: list[list[int]]) -> list[list[int]]:
        lengths = [longest_of(loaded.model, special, source) for source in given]
        searched = search_batches(partial(Continuation, twin, special.never), given, lengths, special, BEAMS)
        return [found[0].tokens for found in searched]

    return translate


def _ctranslate2(loaded: Any, kind: str, penalty: float = 1.0) -> Translate:
    import ctranslate2

    with tempfile.TemporaryDirectory() as folder:
        _converted(loaded, folder)
        translator = ctranslate2.Translator(folder, compute_type=kind, intra_threads=os.cpu_count() or 1)
    token, vocabulary = loaded.tokenizer.token, loaded.tokenizer.vocab_size
    ids = {token(i): i for i in range(vocabulary)}

    def translate(given: list[list[int]]) -> list[list[int]]:
        texts = [[token(i) for i in sentence] for sentence in given]
        longest = 2 * max(map(len, texts)) + 10
        options: dict[str, Any] = {"beam_size": BEAMS, "max_batch_size": BATCH, "max_decoding_length": longest}
        found = translator.translate_batch(texts, length_penalty=penalty, **options)
        return [[ids[token] for token in one.hypotheses[0]] for one in found]

    return translate


def _converted(loaded: Any, folder: str) -> None:
    """Write our weights as a model of CTranslate2's."""
    import ctranslate2
    from ctranslate2.specs import transformer_spec

    c, state = loaded.config, {name: value.numpy() for name, value in loaded.model.state_dict().items()}
    relu = ctranslate2.specs.common_spec.Activation.RELU
    spec = transformer_spec.TransformerSpec.from_config(
        loaded.model.depth, loaded.model.encoder.blocks[0].attention.heads, pre_norm=c.norm_first, activation=relu
    )
    for half in ("encoder", "decoder"):
        _fill_half(getattr(spec, half), half, state, loaded.model)
    spec.decoder.projection.weight = state["embedding.weight"]
    tokens = [loaded.tokenizer.token(i) for i in range(loaded.tokenizer.vocab_size)]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    special = loaded.model.special
    spec.config.bos_token, spec.config.eos_token = tokens[special.start], tokens[special.end]
    spec.config.unk_token = loaded.tokenizer.token(loaded.tokenizer.unk_id)
    spec.config.decoder_start_token = tokens[special.start]
    spec.config.add_source_bos = spec.config.add_source_eos = False
    spec.validate()
    spec.save(folder)


def _fill_half(spec: Any, half: str, state: dict[str, np.ndarray], model: Any) -> None:
    import minigrad as mg

    embeddings = spec.embeddings[0] if half == "encoder" else spec.embeddings
    embeddings.weight = state["embedding.weight"]
    positions = model.positions(mg.zeros(1, 512, model.dim), 0).numpy()[0]  # sines alone
    spec.position_encodings.encodings = positions
    _fill_norm(spec.layer_norm, f"{half}.norm", state)
    for i, layer in enumerate(spec.layer):
        place = f"{half}.blocks.{i}"
        own = [(layer.self_attention, "attention")]
        cross = [(layer.attention, "cross_attention")] if half == "decoder" else []
        for part, name in own + cross:
            _fill_attention(part, f"{place}.{name}", state, name == "cross_attention")
            _fill_norm(part.layer_norm, f"{place}.{name.removesuffix('_attention')}_norm", state)
        _fill_norm(layer.ffn.layer_norm, f"{place}.mlp_norm", state)
        _fill_linear(layer.ffn.linear_0, f"{place}.mlp.up.", state)
        _fill_linear(layer.ffn.linear_1, f"{place}.mlp.down.", state)


def _fill_attention(part: Any, place: str, state: dict[str, np.ndarray], is_cross: bool) -> None:
    weight, bias = state[f"{place}.in_proj_weight"], state[f"{place}.in_proj_bias"]
    cuts = [0, len(weight) // 3, len(weight)] if is_cross else [0, len(weight)]  # queries apart, or all together
    for linear, begin, end in zip(part.linear, cuts, cuts[1:]):
        linear.weight, linear.bias = weight[begin:end], bias[begin:end]
    _fill_linear(part.linear[-1], f"{place}.out_proj.", state)


def _fill_linear(spec: Any, place: str, state: dict[str, np.ndarray]) -> None:
    spec.weight, spec.bias = state[f"{place}weight"], state[f"{place}bias"]


def _fill_norm(spec: Any, place: str, state: dict[str, np.ndarray]) -> None:
    spec.gamma, spec.beta = state[f"{place}.weight"], state[f"{place}.bias"]
