"""The same GPT writing in minigrad and in PyTorch, one token after the other with a cache: what a token takes.

    python -m benchmarks.generation [--config tiny|nano|baby …] [--quick] [--json] [--write]

One text at a time is continued greedily, from a short prompt until the context is full, and then from the prompt again.
minigrad is the plugin `gpt` as `minigrad sample` runs it, with NumPy's and with numba's kernels. PyTorch runs eagerly, with
a cache that is allocated beforehand and with one that is joined anew. Everything runs with one thread and with all, which
wait for each other where a machine is busy, and the fastest counts. Every candidate has a process of its own, and they
take turns. Tokens that differ make the command fail. `--json` prints {"baby": {"numba": ratio, "numpy": ratio}, …,
"detail": …} last: PyTorch's time by ours, so more is better; null where one is missing.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from .measure import Worker, alternate, arguments, machine, progress, ratio, serve, summary, table
from .results import add_write_option, conclude
from .train_step import KERNELS, left_out, verdicts
from .twins.gpt import CONFIGS, Config, weights

MODULE = "benchmarks.generation"
LIBRARIES = (*(f"minigrad, {name}" for name in KERNELS), "PyTorch, allocated", "PyTorch, joined")
PEERS = [f"{library}, {threads}" for library in LIBRARIES for threads in ("1 thread", "all threads")]
PROMPT = (1, 2, 3, 4)
BOLD = np.float32(8)
TO_REACH = {"baby": {"numba": 0.8, "numpy": 0.8}}
WARM = 32  # tokens before a round, while the threads of the one before fall asleep
MILLI = 1e3


def tokens_of(config: Config) -> int:
    """How many tokens can be written before the model cannot see the prompt any more."""
    return config.length - len(PROMPT) + 1


def bold_weights(config: Config) -> dict[str, np.ndarray]:
    """The common weights with larger matrices: as they are drawn, every token would be followed by itself."""
    return {name: array * (BOLD if array.ndim == 2 else 1) for name, array in weights(config).items()}


def make_step(name: str, peer: str) -> Callable[[], Any]:
    """A function that returns a candidate's next token; its library is imported only here, an ImportError if it is missing."""
    config = CONFIGS[name]
    library, kind, threads = peer.split(", ")
    count = 1 if threads == "1 thread" else machine()["cores"]
    if library == "PyTorch":
        from .twins.generation_torch import torch_tokens

        return torch_tokens(config, bold_weights(config), PROMPT, tokens_of(config), kind, count)
    os.environ["MINIGRAD_KERNELS"] = kind  # which minigrad reads when it is imported
    from minigrad.runtime.threads import limit_threads

    from .twins.gpt_minigrad import loaded_kernels

    loaded_kernels()
    limit_threads(count)
    return minigrad_tokens(config)


def minigrad_tokens(config: Config) -> Callable[[], np.ndarray]:
    """A function that returns the next token, (1,); after the last of a text the prompt is continued again."""
    from minigrad_models.gpt.model import GPT

    from minigrad.decode import LanguageModel, Sampling, generate

    model = GPT(config.vocabulary, config.length, config.layers, config.heads, config.dim)
    model.load_state_dict(bold_weights(config))
    model.eval()
    given, greedy = np.array([PROMPT]), Sampling(temperature=0)

    def written() -> Iterator[np.ndarray]:
        while True:
            yield from generate(LanguageModel(model), given, length=tokens_of(config), sampling=greedy)

    return written().__next__


def measure(name: str, rounds: int, count: int, warm: int) -> dict[str, Any]:
    """Milliseconds a token in rounds of `count` tokens, whether all wrote the same, and how they compare."""
    title = f"GPT {name}"
    with ExitStack() as stack:
        progress(f"{title}: starting every library")
        workers = {p: stack.enter_context(Worker(MODULE, f"{name}/{p}")) for p in PEERS}
        missing = {p: reason for p, w in workers.items() if (reason := w.missing())}
        present = {p: w for p, w in workers.items() if p not in missing}
        texts = {p: first_tokens(w, tokens_of(CONFIGS[name]), title) for p, w in present.items()}
        seconds = alternate({p: partial(w.run, count, warm=warm) for p, w in present.items()}, rounds, title)
    first = next(iter(texts.values()))
    return {
        "peers": {p: summary(s, MILLI / count) for p, s in seconds.items()},
        "fastest": {name: fastest(name, seconds) for name in ("PyTorch", *KERNELS)},
        "ratios": ratios_of(seconds),
        "tokens": first,
        "same": all(text == first for text in texts.values()),
        "missing": missing,
    }


def first_tokens(worker: Worker, count: int, title: str) -> list[int]:
    """A whole text of a candidate."""
    tokens = []
    for i in range(count):
        progress(f"{title}: token {i + 1} of {count}, {worker.name.partition('/')[2]}")
        worker.run(1)
        tokens.append(int(worker.value))
    return tokens


def fastest(part: str, seconds: Mapping[str, list[float]]) -> str | None:
    """The fastest candidate that has this part in its name; None if there is none."""
    return min((p for p in seconds if part in p.split(", ")), key=lambda p: median(seconds[p]), default=None)


def ratios_of(seconds: Mapping[str, list[float]]) -> dict[str, float | None]:
    """PyTorch's time by ours, for each of our kernels, the fastest of each."""
    theirs = fastest("PyTorch", seconds)
    ours = {name: fastest(name, seconds) for name in KERNELS}
    return {name: ratio(seconds[theirs], seconds[own]) if theirs and own else None for name, own in ours.items()}


def report(measured: Mapping[str, Mapping[str, Any]]) -> str:
    """The times for people."""
    return "\n\n".join(report_config(name, one) for name, one in measured.items())


def report_config(name: str, one: Mapping[str, Any]) -> str:
    rows = [
        [p, f"{times['median']:.2f}", f"{times['minimum']:.2f}", f"{MILLI / times['median']:.0f}"]
        for p, times in one["peers"].items()
    ]
    count = len(one["tokens"])
    c = CONFIGS[name]
    sizes = f"{c.layers} layers, d {c.dim}, {c.heads} heads, context {c.length}, vocabulary {c.vocabulary}, {c.dtype}"
    lines = [
        f"GPT {name} ({sizes}): milliseconds a token",
        table(("", "median", "minimum", "tokens a second"), rows),
        *verdicts(one["ratios"], TO_REACH.get(name, {}), "PyTorch / minigrad, the fastest of each, "),
        f"{count} tokens from a prompt of {len(PROMPT)}: {'all the same' if one['same'] else 'THEY DIFFER'}",
        *left_out(one["missing"]),
    ]
    return "\n".join(lines)


def options_of() -> argparse.Namespace:
    parser = arguments(__doc__)
    add_write_option(parser)
    parser.add_argument(
        "--config",
        choices=CONFIGS,
        nargs="+",
        default=["baby"],
        help="which GPT (default: baby); tiny only shows that everything works",
    )
    return parser.parse_args()


def main() -> int:
    options = options_of()
    if options.worker:
        serve(partial(make_step, *options.worker.split("/")))
        return 0
    rounds, warm = (2, 4) if options.quick else (7, WARM)
    measured = {name: measure(name, rounds, tokens_of(CONFIGS[name]), warm) for name in options.config}
    progress("")
    detail = {"benchmark": "generation", "quick": options.quick, "machine": machine(), "measured": measured}
    ratios = {name: one["ratios"] for name, one in measured.items()}
    conclude(options, "Generating text with a cache", report(measured), {**ratios, "detail": detail})
    return 0 if all(one["same"] for one in measured.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
