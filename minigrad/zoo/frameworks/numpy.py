"""A trained model as one page of plain NumPy, with its weights in an .npz beside it: to see that there is no magic."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ... import __version__
from ...data import BPETokenizer, CharTokenizer, WordTokenizer
from ...engine.backend import to_numpy
from ...saving import write_atomically
from ...web.program import computed_beforehand
from ..export import TOKENIZER, merged, new_folder
from .numpy_ops import EXPRESSIONS, FUNCTIONS, used_by
from .numpy_source import function_of
from .programs import Program, programs_of

__all__ = ["export_numpy"]

SOURCE, ARRAYS = "model.py", "weights.npz"
# Of the programs of a model those that say all: a cache only makes the same quicker, but where a state is all there is.
ENOUGH = (("model",), ("encoder", "decoder"), ("start", "step"))

HEAD = '''"""{title}: {count:,} weights, in plain NumPy. Written by minigrad {version}.

python model.py {usage}
"""

import json
import math
import re
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
W = np.load(HERE / "{arrays}")


def pair(module, kind="."):
    """The weight of a module, and its bias if it has one."""
    return [W[name] for name in (f"{{module}}{{kind}}weight", f"{{module}}{{kind}}bias") if name in W]

'''
LISTED = """
FORM = json.loads((HERE / "tokenizer.json").read_text(encoding="utf-8"))
TOKENS = ["<pad>", "<s>", "</s>", "<unk>", "<mask>", *FORM{split}]
IDS = {{token: i for i, token in enumerate(TOKENS)}}


def encode(text):
    return [IDS.get(part, 3) for part in re.findall({pattern}, text)]


def decode(ids):
    return {glue}.join(TOKENS[i] for i in ids)
"""
BYTE_PAIRS = '''
NUMBERS = [int(word) for word in json.loads((HERE / "tokenizer.json").read_text(encoding="utf-8"))["merges"].split()]
TOKENS = [*(name.encode() for name in ("<pad>", "<s>", "</s>", "<unk>", "<mask>")), *(bytes([b]) for b in range(256))]
IDS = {{token: i for i, token in enumerate(TOKENS) if i > 4}}
MERGES = {{}}  # a pair of tokens -> when it was learned, and what it makes
for rank, (left, right) in enumerate(zip(NUMBERS[::2], NUMBERS[1::2])):
    merged = TOKENS[left] + TOKENS[right]
    if merged not in IDS:
        IDS[merged] = len(TOKENS)
        TOKENS.append(merged)
    MERGES[left, right] = rank, IDS[merged]


def encode(text):
    """Bytes, of which the pair that was learned first is joined, again and again, inside of each word."""
    ids = []
    for word in re.findall({pattern}, text):
        parts = [5 + byte for byte in word.encode()]
        while len(parts) > 1:
            pair = min(zip(parts, parts[1:]), key=lambda pair: MERGES.get(pair, (math.inf, 0))[0])
            if pair not in MERGES:
                break
            place, joined = 0, []
            while place < len(parts):
                is_pair = tuple(parts[place : place + 2]) == pair
                joined.append(MERGES[pair][1] if is_pair else parts[place])
                place += 2 if is_pair else 1
            parts = joined
        ids += parts
    return ids


def decode(ids):
    return b"".join(TOKENS[i] for i in ids).decode(errors="replace")
'''
NUMBERS = '''
def encode(text):
    """The tokenizer of this model is not written here: give numbers of tokens."""
    return [int(word) for word in text.split()]


def decode(ids):
    return " ".join(map(str, ids))
'''
MAINS = {
    "language model": ("'How it begins' [tokens]", '''
def main(text="", count="40"):
    """The likeliest token, again and again."""
    ids = encode(text) or [{begin}]
    for _ in range(int(count)):
        logits = model(np.array([ids[-{context}:]]))[0, -1]
        logits[:5 * {plain}] = -np.inf  # the special tokens
        ids.append(int(logits.argmax()))
    print(decode(ids))
'''),
    "masked language model": ("'A text with <mask> in it.'", '''
def main(text):
    """What may stand for each <mask>."""
    parts = text.split("<mask>")
    ids = [1, *(token for i, part in enumerate(parts) for token in [*[4] * (i > 0), *encode(part)]), 2]
    tokens = np.array([ids])
    logits = model(tokens, np.ones_like(tokens, bool), np.zeros_like(tokens))[0]
    for place in [i for i, token in enumerate(ids) if token == 4]:
        chances = np.exp(logits[place] - logits[place].max())
        for token in chances.argsort()[::-1][:5]:
            print(f"{{chances[token] / chances.sum():6.1%}}  {{decode([int(token)])}}")
'''),
    "translation": ("'A sentence'", '''
def main(text):
    """The likeliest token, again and again, until the end."""
    memory, mask = encoder(np.array([[*encode(text), {end}]]))
    said = {prompt}
    while len(said) < {longest}:
        logits = decoder(np.array([said]), memory, mask)[0, -1]
        logits[{never}] = -np.inf
        said.append(int(logits.argmax()))
        if said[-1] == {end}:
            break
    print(decode([token for token in said[{begun}:] if token != {end}]))
'''),
}  # fmt: skip
BY_STATE = '''
def main(text):
    """The likeliest token, again and again, until the end."""
    said = {prompt}
    logits, *state = start(np.array([[*encode(text), {end}]]), np.array([said]))
    while len(said) < {longest}:
        logits[0, {never}] = -np.inf
        said.append(int(logits[0].argmax()))
        if said[-1] == {end}:
            break
        logits, *state = step(np.array([said[-1:]]), *state)
    print(decode([token for token in said[{begun}:] if token != {end}]))
'''
PLAIN = '''
def main(*files):
    """The inputs as .npy files, {shapes}; or the numbers of one row."""
    numbers = {count} == 1 and not files[0].endswith(".npy")
    given = [np.array(files, "{dtype}").reshape(1, *{row})] if numbers else [np.load(file) for file in files]
    print(model(*given))
'''
TAIL = """
if __name__ == "__main__":
    main(*sys.argv[1:])
"""


def export_numpy(loaded: Any, folder: str | os.PathLike[str]) -> Path:
    """Write model.py, which needs nothing but NumPy, weights.npz, and tokenizer.json where there is a tokenizer."""
    loaded = merged(loaded)
    every = programs_of(loaded, EXPRESSIONS)
    programs = {
        name: Program(computed_beforehand(every[name].graph, _is_known), every[name].inputs, every[name].outputs)
        for name in next(names for names in ENOUGH if names[0] in every)
    }  # fmt: skip
    names = {id(tensor.data): name for name, tensor in reversed(loaded.model.state_dict().items())}
    arrays: dict[str, Any] = {}
    for program in programs.values():
        for array in program.graph.constants.values():
            name = names.setdefault(id(array), f"table_{len(names)}")
            if np.ndim(array):
                arrays[name] = to_numpy(array)
    functions = [function_of(name, program.graph, program.inputs, names) for name, program in programs.items()]
    text = _page(loaded, programs, functions, arrays)

    def write(target: Path) -> None:
        content = io.BytesIO()
        np.savez(content, **arrays)
        write_atomically(target / ARRAYS, content.getvalue())
        write_atomically(target / SOURCE, text.encode())
        if loaded.tokenizer is not None:
            write_atomically(target / TOKENIZER, loaded.tokenizer.to_json().encode())

    return new_folder(folder, write)


def _is_known(step: Any) -> bool:
    return step.op.name in EXPRESSIONS


def _page(loaded: Any, programs: Mapping[str, Program], functions: list[str], arrays: Mapping[str, Any]) -> str:
    """The parts of model.py, one after the other."""
    usage, main = _main(loaded, programs)
    title = loaded.spec.name
    head = HEAD.format(
        title=title, count=sum(array.size for array in arrays.values()), version=__version__, usage=usage, arrays=ARRAYS
    )
    body = "\n\n\n".join(functions)
    tokenizer = _tokenizer(loaded.tokenizer) if "encode(" in main else ""
    used = "\n".join(FUNCTIONS[name] for name in used_by(body))
    return "\n".join([head + used, "", body, tokenizer, main, TAIL]).replace("\n\n\n\n", "\n\n\n")


def _tokenizer(tokenizer: Any) -> str:
    pattern = repr(tokenizer.pattern.pattern) if hasattr(tokenizer, "pattern") else ""
    if type(tokenizer) is BPETokenizer:
        return BYTE_PAIRS.format(pattern=pattern)
    if type(tokenizer) is WordTokenizer:
        return LISTED.format(pattern=pattern, split='["words"].split(" ")', glue='" "')
    if type(tokenizer) is CharTokenizer:
        return LISTED.format(pattern="r'[\\s\\S]'", split='["characters"]', glue='""')
    return NUMBERS


def _main(loaded: Any, programs: Mapping[str, Program]) -> tuple[str, str]:
    """How the page is called, and its last function."""
    task, model = loaded.spec.task, loaded.model
    if task in MAINS and not (task == "masked language model" and "types" not in programs["model"].inputs):
        usage, text = MAINS[task]
        if task == "translation":
            text = text if "encoder" in programs else BY_STATE
            special, longest = model.special, getattr(model, "longest", None) or 2 * loaded.config.max_length
            values = {
                "end": special.end, "prompt": special.prompt, "never": list(special.never), "longest": longest,
                "begun": len(special.prompt),
            }  # fmt: skip
        else:
            plain = int(type(loaded.tokenizer) in (BPETokenizer, WordTokenizer, CharTokenizer))
            values = {"context": getattr(model, "context", 0), "plain": plain, "begin": 1}
        return usage, text.format(**values)
    (program,) = programs.values()
    inputs = program.graph.inputs
    shapes = ", ".join(f"{name} {tuple(map(str, value.shape))}" for name, value in zip(program.inputs, inputs))
    first = inputs[0]
    row = tuple(int(n) for n in first.shape[1:])
    usage = " ".join(["0.5"] * row[0]) if len(inputs) == 1 and len(row) == 1 and row[0] < 9 else "x.npy"
    return usage, PLAIN.format(shapes=shapes.replace("'", ""), count=len(inputs), dtype=first.dtype.name, row=row)
