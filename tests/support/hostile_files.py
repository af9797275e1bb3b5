"""Files of weights and tokenizers as a stranger, a failing disk or an enemy would make them: for the tests, and for the long fuzzing."""

from __future__ import annotations

import json
import random
import struct
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from minigrad.errors import MinigradError
from minigrad.formats import open_weights, read_shortlist
from minigrad.hub import load
from minigrad.tokenizers import from_file

from . import marian_files, tokenizer_files
from .weight_files import (
    gguf_file,
    pickled_tensor,
    safetensors_entry,
    safetensors_file,
    sized,
    torch_archive,
    torch_stream,
)


def _gguf() -> bytes:
    numbers = struct.pack("<IQ3i", 5, 3, 1, -2, 3)
    texts = struct.pack("<IQ", 8, 2) + sized("a") + sized("é")
    nested = struct.pack("<IQ", 9, 1) + numbers
    fields = [("n", 4, bytes(4)), ("general.alignment", 4, struct.pack("<I", 32)), ("s", 8, sized("text"))]
    fields += [("yes", 7, b"\1"), ("l", 9, numbers), ("t", 9, texts), ("ll", 9, nested)]
    infos = [("w", (2, 3), 0, 0), ("q", (2, 32), 2, 32), ("k", (256,), 12, 96), ("h", (4,), 30, 256)]
    return gguf_file(fields, infos, np.arange(264, dtype=np.uint8).tobytes())


def _safetensors() -> bytes:
    entries = {
        "__metadata__": {"made": "here"},
        "a": safetensors_entry(),
        "b": safetensors_entry("BF16", (2, 2), (8, 16)),
    }
    return safetensors_file({**entries, "c": safetensors_entry("BOOL", (), (16, 17))}, bytes(range(17)))


def _index() -> bytes:
    return json.dumps({"metadata": {"total_size": 9}, "weight_map": {"a": "shard", "b": "shard"}}).encode()


def _read_weights(path: Path) -> None:
    for stored in open_weights(path).values():
        array = stored.array()
        assert array.shape == stored.shape
        array.tobytes()


def _read_shortlist(path: Path) -> None:
    lists = read_shortlist(path)
    assert lists.for_source(range(len(lists.offsets) - 1)).size <= lists.vocab_size


def _read_tokenizer(path: Path) -> None:
    tokenizer = from_file(path)
    for text in ("hello, wörld", "", " 1234  héllo's\n\t<s>", "\0\ufffd日本語 🙂"):
        tokenizer.decode(tokenizer.encode(text))


def _read_model(path: Path) -> None:
    loaded = load(path.parent)
    assert loaded.logits([[1, 2, 3]]).shape == (1, 3, 9)


LLAMA = {
    "model_type": "llama", "vocab_size": 9, "hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": 1,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "head_dim": 2,
    "tie_word_embeddings": True, "attention_bias": False, "sliding_window": 5, "use_sliding_window": True,
    "rope_scaling": {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0},
}  # fmt: skip
GPT2 = {
    "model_type": "gpt2", "vocab_size": 9, "n_embd": 8, "n_inner": 6, "n_layer": 1, "n_head": 2, "n_positions": 7,
    "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True,
}  # fmt: skip
LLAMA_SHAPES = {
    "model.embed_tokens": (9, 8), "model.norm": (8,), "model.layers.0.self_attn.q_proj": (8, 8),
    "model.layers.0.self_attn.k_proj": (4, 8), "model.layers.0.self_attn.v_proj": (4, 8),
    "model.layers.0.self_attn.o_proj": (8, 8), "model.layers.0.mlp.gate_proj": (6, 8), "model.layers.0.mlp.up_proj": (6, 8),
    "model.layers.0.mlp.down_proj": (8, 6), "model.layers.0.input_layernorm": (8,),
    "model.layers.0.post_attention_layernorm": (8,),
}  # fmt: skip
GPT2_MATRICES = {
    "attn.c_attn": (8, 24), "attn.c_proj": (8, 8), "mlp.c_fc": (8, 6), "mlp.c_proj": (6, 8), "ln_1": (8,), "ln_2": (8,),
}  # fmt: skip
GPT2_SHAPES = {
    "wte.weight": (9, 8), "wpe.weight": (7, 8), "ln_f.weight": (8,), "ln_f.bias": (8,),
    **{f"h.0.{name}.weight": shape for name, shape in GPT2_MATRICES.items()},
    **{f"h.0.{name}.bias": shape[-1:] for name, shape in GPT2_MATRICES.items()},
}  # fmt: skip
WEIGHTS = {
    "config of a Llama": {f"{name}.weight": shape for name, shape in LLAMA_SHAPES.items()},
    "config of a GPT-2": GPT2_SHAPES,
}


def _weights(shapes: dict[str, tuple[int, ...]]) -> bytes:
    """Small weights of these names and shapes as a safetensors file."""
    entries, data = {}, b""
    for name, shape in shapes.items():
        numbers = np.full(shape, 0.5, "<f4").tobytes()
        entries[name] = safetensors_entry("F32", shape, (len(data), len(data) + len(numbers)))
        data += numbers
    return safetensors_file(entries, data)


NUMBERS = np.array([1.5, -2], "<f4").tobytes()
# Of each kind of file: a good one, and what reads it.
KINDS: dict[str, tuple[bytes, Callable[[Path], None]]] = {
    "safetensors": (_safetensors(), _read_weights),
    "gguf": (_gguf(), _read_weights),
    "marian": (marian_files.small_model(), _read_weights),
    "shortlist": (marian_files.shortlist({1: [2, 3], 2: [5]}, words=9, first=2), _read_shortlist),
    "archive": (torch_archive(pickled_tensor(), [("data/0", NUMBERS), ("byteorder", b"little")]), _read_weights),
    "stream": (torch_stream(pickled_tensor(view=b"N"), {"0": (2, NUMBERS)}), _read_weights),
    "index": (_index(), _read_weights),
    "byte-level BPE": (tokenizer_files.byte_bpe(), _read_tokenizer),
    "WordPiece": (tokenizer_files.wordpiece(), _read_tokenizer),
    "Unigram": (tokenizer_files.unigram(), _read_tokenizer),
    "sentencepiece": (tokenizer_files.sentencepiece(), _read_tokenizer),
    "config of a Llama": (json.dumps(LLAMA).encode(), _read_model),
    "config of a GPT-2": (json.dumps(GPT2).encode(), _read_model),
}
_EXTREMES = (
    0,
    1,
    2**7,
    2**8 - 1,
    2**15,
    2**16 - 1,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**40,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
)
_TOKENS = [
    b"0",
    b"-1",
    b"[",
    b"]",
    b"{",
    b"}",
    b",",
    b'"',
    b"1e9",
    b"null",
    b"9" * 30,
    b"..",
    b"\\u0000",
    b"\n",
    b": ",
    b"- ",
]


def _mutations(content: bytes) -> list[Callable[[random.Random], bytes]]:
    """Ways to spoil a file."""

    def flip(rng: random.Random) -> bytes:
        spoilt = bytearray(content)
        for _ in range(rng.randint(1, 8)):
            spoilt[rng.randrange(len(spoilt))] ^= 1 << rng.randrange(8)
        return bytes(spoilt)

    def cut(rng: random.Random) -> bytes:
        return content[: rng.randrange(len(content))]

    def lengthen(rng: random.Random) -> bytes:
        return content + rng.randbytes(rng.randint(1, 64))

    def splice(rng: random.Random) -> bytes:
        a, b = sorted(rng.randrange(len(content)) for _ in range(2))
        return content[:a] + rng.randbytes(rng.randint(0, 32)) + content[b:]

    def exaggerate(rng: random.Random) -> bytes:
        """A number that may be a length becomes an extreme one."""
        spoilt = bytearray(content)
        for _ in range(rng.randint(1, 3)):
            size = rng.choice((1, 2, 4, 8))
            place = rng.randrange(len(spoilt))
            spoilt[place : place + size] = (rng.choice(_EXTREMES) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        return bytes(spoilt)

    def move(rng: random.Random) -> bytes:
        """A part comes again elsewhere, over what was there or before it."""
        start, place, size = rng.randrange(len(content)), rng.randrange(len(content)), rng.randint(1, 64)
        over = size if rng.random() < 0.5 else 0
        return content[:place] + content[start : start + size] + content[place + over :]

    def retype(rng: random.Random) -> bytes:
        spoilt = bytearray(content)
        for _ in range(rng.randint(1, 4)):
            place = rng.randrange(len(spoilt))
            spoilt[place : place + rng.randint(0, 3)] = rng.choice(_TOKENS)
        return bytes(spoilt)

    def join(rng: random.Random) -> bytes:
        """The beginning of this file and the end of another."""
        other = rng.choice(list(KINDS.values()))[0]
        return content[: rng.randrange(len(content))] + other[rng.randrange(len(other)) :]

    ways = [flip, cut, lengthen, splice, exaggerate, exaggerate, move, retype, join]
    if content.startswith(b"{"):
        ways += [lambda rng: _restructured(content, rng)] * len(ways)
    if content[8:9] == b"{":  # safetensors

        def restructure_header(rng: random.Random) -> bytes:
            size = int.from_bytes(content[:8], "little")
            header = _restructured(content[8 : 8 + size], rng)
            return len(header).to_bytes(8, "little") + header + content[8 + size :]

        ways += [restructure_header] * len(ways)
    return ways


_VALUES: list[Any] = [
    None, True, -1, 0, 1, 7, 2**31, 2**63, 1e308, -0.5, "", "a", "\0", "\x1b[2J", "hello" * 200, "(a+)+$", "[", r"\p{L}*\p{L}*$", [], [[]], {},
    {"type": "ByteLevel"}, {"type": "Sequence", "decoders": []}, {"Regex": "(?:x*)*y"}, {"String": ""}, [["a", 1]], {"a": {"a": 1}},
]  # fmt: skip


def _restructured(content: bytes, rng: random.Random) -> bytes:
    """JSON that is still JSON: some of its values are replaced, left out, or come again elsewhere."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return content[::-1]
    for _ in range(rng.randint(1, 3)):
        places = list(_places(value))
        if not places:
            break
        container, key = rng.choice(places)
        other, other_key = rng.choice(places)
        action = rng.random()
        if action < 0.15:
            del container[key]
        else:
            container[key] = json.loads(json.dumps(rng.choice(_VALUES) if action < 0.7 else other[other_key]))
    return json.dumps(value).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in a value, with every key or index in it."""
    if isinstance(value, (dict, list)):
        for key, part in list(value.items() if isinstance(value, dict) else enumerate(value)):
            yield value, key
            yield from _places(part)


def case(seed: int) -> tuple[str, bytes]:
    """The kind and the content of one spoilt file, the same for the same seed."""
    kind = list(KINDS)[seed % len(KINDS)]
    rng = random.Random(seed)
    spoilt = rng.choice(_mutations(KINDS[kind][0]))(rng)
    if rng.random() < 0.2:
        spoilt = rng.choice(_mutations(spoilt or b"\0"))(rng)
    return kind, spoilt


def place_for(kind: str, folder: Path) -> Path:
    """Where a file of this kind is written; the shard of an index, or the weights of a config, lie beside it."""
    if kind in WEIGHTS:
        (folder / kind).mkdir(exist_ok=True)
        (folder / kind / "model.safetensors").write_bytes(_weights(WEIGHTS[kind]))
        return folder / kind / "config.json"
    (folder / "shard").write_bytes(KINDS["safetensors"][0])
    suffixes = {"index": ".index.json", "byte-level BPE": ".json", "WordPiece": ".json", "Unigram": ".json"}
    return folder / f"x{suffixes.get(kind, '')}"


def outcome(kind: str, path: Path) -> str:
    """Read a file: "read" or "refused"; any other error, or a warning, is raised."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            KINDS[kind][1](path)
    except MinigradError as error:
        assert str(error).replace("\n", "").isprintable(), "the message could do something to a terminal"
        return "refused"
    return "read"
