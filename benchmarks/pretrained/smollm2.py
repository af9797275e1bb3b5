"""SmolLM2: greedy text beside transformers' on the same file, tokens a second beside transformers and llama.cpp, and loading."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .packages import smollm2
from .reading import READING, reading

PROMPTS = (
    "The capital of France is", "Once upon a time, there was a", "Water boils at", "def fibonacci(n):", "The three primary colours are",
    "To make a cup of tea, first", "In the year 1969,", "A triangle has", "The opposite of hot is", "My favourite animal is the",
    "Photosynthesis is the process by which", "The quick brown fox", "Dear Sir or Madam,", "The largest planet is", "Two plus two is",
    "Shakespeare wrote", "The sea was calm, and", "Bread is made of", "A good friend is someone who", "The train left the station at",
)  # fmt: skip
TOKENS, TIE = 200, 1e-3
WRITTEN = 64  # tokens of a round
PEERS = ("minigrad", "transformers", "llama.cpp", READING)
TO_REACH = {"transformers / minigrad": 2.0, "llama.cpp / minigrad": 0.4, f"{READING} / minigrad": None}


def _oracle() -> Any:
    """The same file in transformers, which makes float32 of its blocks."""
    import torch
    import transformers

    path = smollm2()
    return transformers.AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32
    ).eval()


def differing(count: int) -> dict[str, Any]:
    """Where the greedy text of `count` prompts is not what transformers would choose after the same tokens."""
    import torch

    import minigrad as mg
    from minigrad.decode import LanguageModel, Sampling, generate

    loaded, oracle = mg.hub.load(smollm2()), _oracle()
    wrong, ties, largest = [], 0, 0.0
    for prompt in PROMPTS[:count]:
        ids = loaded.tokenizer.encode(prompt)
        drawn = generate(LanguageModel(loaded.model), np.array([ids]), length=TOKENS, sampling=Sampling(0))
        text = [int(token) for (token,) in drawn]
        with torch.inference_mode():
            logits = oracle(torch.tensor([ids + text])).logits[0, len(ids) - 1 : -1].numpy()
        for place, (token, row) in enumerate(zip(text, logits)):
            gap = float(row.max() - row[token])
            largest, ties = max(largest, gap), ties + (0 < gap <= TIE)
            if gap > TIE:
                wrong.append({"prompt": prompt, "place": place, "gap": gap})
                break
    return {"prompts": count, "tokens": TOKENS, "diverged": wrong, "ties": ties, "largest gap": largest}


def peer(name: str, runs: Path) -> Callable[[], Any]:
    """A worker's step: the next token of a text that is written again and again; or what no token can be cheaper than."""
    if name == READING:
        return reading(os.path.getsize(smollm2()))
    return _tokens({"minigrad": _ours, "transformers": _theirs, "llama.cpp": _llama}[name]())


def _tokens(written: Callable[[], Iterator[int]]) -> Callable[[], Any]:
    def forever() -> Iterator[Any]:
        while True:
            yield from (np.int64(token) for token in written())

    return forever().__next__


def _ours() -> Callable[[], Iterator[int]]:
    import minigrad as mg
    from minigrad.decode import LanguageModel, Sampling, generate

    loaded = mg.hub.load(smollm2())
    ids = np.array([loaded.tokenizer.encode(PROMPTS[1])])
    greedy = Sampling(0)

    def written() -> Iterator[int]:
        for (token,) in generate(LanguageModel(loaded.model), ids, length=WRITTEN, sampling=greedy):
            yield int(token)

    return written


def _theirs() -> Callable[[], Iterator[int]]:
    import torch

    import minigrad as mg

    model, ids = _oracle(), mg.hub.load(smollm2()).tokenizer.encode(PROMPTS[1])

    def written() -> Iterator[int]:
        given, cache = torch.tensor([ids]), None
        for _ in range(WRITTEN):
            with torch.inference_mode():
                out = model(given, past_key_values=cache, use_cache=True)
            cache, given = out.past_key_values, out.logits[:, -1:].argmax(-1)
            yield int(given)

    return written


def _llama() -> Callable[[], Iterator[int]]:
    from llama_cpp import Llama

    model = Llama(str(smollm2()), n_ctx=512, n_threads=os.cpu_count(), verbose=False)
    ids = model.tokenize(PROMPTS[1].encode(), add_bos=False)

    def written() -> Iterator[int]:
        model.reset()
        drawn = model.generate(ids, temp=0.0, top_k=1)
        for _ in range(WRITTEN):
            yield next(drawn)

    return written


LOADING = """
import json, sys, time
from benchmarks.memory import Peak
from minigrad import hub, zoo
from minigrad.kernels.selection import numba_problem

seconds = []

def libraries():
    zoo.find("gpt")
    numba_problem()

def load():
    start = time.perf_counter()
    loaded = hub.load(sys.argv[1])
    seconds.append(time.perf_counter() - start)
    return lambda: loaded.logits([[1, 2, 3]])

grown = Peak(libraries, load)()
print(json.dumps({"seconds": seconds[0], "bytes": int(grown)}))
"""


def loading(path: Any) -> dict[str, float]:
    """In a process of its own: the seconds that loading takes, and by how much memory the process has grown at most after
    a first answer, beside the libraries."""
    done = subprocess.run([sys.executable, "-c", LOADING, str(path)], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    size = (
        os.path.getsize(path)
        if os.path.isfile(path)
        else sum(file.stat().st_size for file in path.glob("*.safetensors"))
    )
    return {"seconds": found["seconds"], "share of the file": found["bytes"] / size}
