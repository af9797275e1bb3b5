"""GGUF files of ours in llama.cpp itself: the same tokens, the same logits, the same greedy text."""

import dataclasses

import numpy as np
import pytest

import minigrad as mg
from minigrad import zoo
from minigrad.data import BPETokenizer
from minigrad.hub.gguf_writing import export_gguf
from minigrad.zoo.config import configure
from minigrad.zoo.loaded import Loaded

llama_cpp = pytest.importorskip("llama_cpp", reason="llama.cpp is not installed: pip install llama-cpp-python")
TEXT = "One day, Ana's    dog wasn’t — 123456 ñandú 👋🏽 \n\t x! (¿qué?) 3,5 well-known"
TOKENIZER = BPETokenizer.train([TEXT, "a dog and a doggy day"] * 3, 300)
LLAMA = {"positions": "rotary", "norm": "rms", "activation": "swiglu", "bias": False}
CASES = {
    "gpt2": {"activation": "gelu_tanh"},
    "llama": LLAMA,
    "llama, fewer keys, a head of its own": {**LLAMA, "block": {"kv_heads": 2}, "tied": False},
    "llama, halves, another base": {**LLAMA, "rotary": {"style": "half", "base": 500.0}},
}
FLOAT32 = 0  # of ggml's types
# llama.cpp looks GELU up in a table of float16, whose numbers have three digits; nothing in its Llama is rounded so.
CLOSE = {"gpt2": 5e-3}


def model(settings):
    spec = zoo.find("gpt")
    sizes = {"layers": 2, "heads": 4, "dim": 64, "context": 256, "vocab": TOKENIZER.vocab_size}
    config = configure(spec, None, {**spec.tiny, **sizes, **settings})
    mg.manual_seed(0)
    made = spec.build(config).eval()
    for parameter in made.parameters():
        parameter.data += 0.1 * np.random.default_rng(parameter.size).standard_normal(parameter.shape).astype("float32")
    return Loaded(spec, config, made, TOKENIZER, {"data": None, "config": vars(config)}, 0, None)


@pytest.mark.parametrize("name", CASES)
def test_llama_cpp_computes_the_same(name, tmp_path):
    loaded = model(CASES[name])
    path = export_gguf(loaded, tmp_path / "model.gguf")
    there = llama_cpp.Llama(
        str(path), n_ctx=256, logits_all=True, type_k=FLOAT32, type_v=FLOAT32, n_threads=1, verbose=False
    )
    for text in ("One dog, well-known!", "Ana's doggy wasn't ñandú — 12", "¿qué? 👋🏽\n\tx"):
        ids = TOKENIZER.encode(text)
        assert there.tokenize(text.encode(), add_bos=False) == ids
        assert there.detokenize(ids) == text.encode()
    ids = np.random.default_rng(0).integers(5, TOKENIZER.vocab_size, 40).tolist()
    there.eval(ids)
    with mg.no_grad():
        expected = loaded.model(np.array([ids])).numpy()[0]
    np.testing.assert_allclose(there.scores[: len(ids)], expected, rtol=0, atol=CLOSE.get(name, 1e-4))
    assert there.scores[: len(ids)].argmax(axis=1).tolist() == expected.argmax(axis=1).tolist()


def test_llama_cpp_goes_on_with_the_same_text(tmp_path):
    loaded = model(LLAMA)
    there = llama_cpp.Llama(
        str(export_gguf(loaded, tmp_path / "model.gguf")),
        n_ctx=256,
        type_k=FLOAT32,
        type_v=FLOAT32,
        n_threads=1,
        verbose=False,
    )
    ids = TOKENIZER.encode("One day, Ana")
    bias = dict.fromkeys(range(5), -100.0)  # special tokens, which neither is to write
    answer = there.create_completion(ids, max_tokens=24, temperature=0.0, repeat_penalty=1.0, logit_bias=bias)
    said = list(ids)
    with mg.no_grad():
        for _ in range(24):
            logits = loaded.model(np.array([said])).numpy()[0, -1]
            said.append(5 + int(logits[5:].argmax()))
    expected = there.detokenize(said[len(ids) :]).decode(errors="ignore")  # bytes of no text are left out there
    assert answer["choices"][0]["text"] == expected and len(expected) > 5


def test_a_file_without_a_tokenizer_takes_numbers_of_tokens(tmp_path):
    loaded = dataclasses.replace(model(LLAMA), tokenizer=None)
    there = llama_cpp.Llama(
        str(export_gguf(loaded, tmp_path / "model.gguf")), n_ctx=256, logits_all=True, type_k=FLOAT32, type_v=FLOAT32, n_threads=1,
        verbose=False,
    )  # fmt: skip
    there.eval([7, 8, 9])
    with mg.no_grad():
        expected = loaded.model(np.array([[7, 8, 9]])).numpy()[0]
    np.testing.assert_allclose(there.scores[:3], expected, atol=1e-4)
