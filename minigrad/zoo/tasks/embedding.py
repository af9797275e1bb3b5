"""The verb `embed`: one vector for each text, and which texts are most alike."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, printable
from .task import TaskCommand, utf8_text

__all__ = ["EMBED", "embed"]

TOKENS = 2048  # of a batch, padding included: more would not stay in the cache of a core
WASTED = 0.05  # the share of a batch that may be padding


def embed(loaded: Any, texts: str | Sequence[str]) -> np.ndarray:
    """One vector for each text, pooled and normalised as the model's config says: an array (n, d).

    The model has `context`, and `embed(ids, mask)`, which makes (B, d) of token numbers (B, T), with a mask that is False
    for padding, or None; it comes with a tokenizer. Texts of similar length are read together, on all cores.
    """
    from ...engine.modes import no_grad
    from ...runtime.threads import can_limit_blas, run_parallel, single_threaded_blas, thread_count

    if loaded.tokenizer is None or not hasattr(loaded.model, "embed"):
        raise ArgumentError(f"{loaded.spec.name} cannot embed", "a tokenizer, and `embed(ids, mask)` in its model")
    rows = [_row(loaded, text) for text in ([texts] if isinstance(texts, str) else texts)]
    if not rows:
        return embed(loaded, [""])[:0]
    batches = iter(list(_batches([len(row) for row in rows])))
    found: dict[int, np.ndarray] = {}

    def work() -> None:
        for chosen in batches:  # the next batch that no other thread has taken
            made = loaded.model.embed(*_padded([rows[i] for i in chosen], loaded.tokenizer.pad_id)).numpy()
            found.update(zip(chosen.tolist(), made))

    with no_grad():
        if can_limit_blas() and thread_count() > 1 and len(rows) > 1:
            with single_threaded_blas():
                run_parallel([work] * thread_count())
        else:
            work()
    return np.stack([found[i] for i in range(len(rows))])


def _row(loaded: Any, text: str) -> list[int]:
    """The tokens of a text between its special tokens; of what is too long the end is cut, before the last token."""
    from ...tokenizers import PretrainedTokenizer

    puts_its_own = isinstance(loaded.tokenizer, PretrainedTokenizer)
    row = loaded.tokenizer.encode(text) if puts_its_own else loaded.tokenizer.encode(text, bos=True, eos=True)
    context = loaded.model.context
    return row if len(row) <= context else [*row[: context - 1], row[-1]]


def _batches(lengths: Sequence[int]) -> Iterator[np.ndarray]:
    """Which rows are read together: the longest first, so that no thread has the largest batch left at the end."""
    order = np.argsort(-np.array(lengths), kind="stable")
    start, tokens = 0, 0
    for end, row in enumerate(order.tolist()):
        width, count = lengths[order[start]], end - start + 1
        tokens += lengths[row]
        if end > start and (width * count > TOKENS or tokens < (1 - WASTED) * width * count):
            yield order[start:end]
            start, tokens = end, lengths[row]
    yield order[start:]


def _padded(rows: Sequence[Sequence[int]], pad: int | None) -> tuple[Any, Any]:
    from ...data.batching import Padded

    made = Padded.of(rows, 0 if pad is None else pad)
    return made.ids, None if made.mask.all() else made.mask


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "run_directory", metavar="DIR", help="a run's directory, a checkpoint file, or an exported folder"
    )
    parser.add_argument(
        "texts", nargs="*", type=utf8_text, metavar="TEXT", help="a text (default: each line of the standard input)"
    )
    parser.add_argument(
        "--similar", action="store_true", help="print how alike the other texts are to the first, most alike first"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for programs to read")


def _check(options: Namespace) -> None:
    if not options.texts and sys.stdin.isatty():
        raise ArgumentError("what is to be embedded?", fix='for instance: minigrad embed DIR "a text" "another"')


def _run(loaded: Any, options: Namespace) -> None:
    texts = options.texts or [line.strip() for line in sys.stdin if line.strip()]
    if len(texts) < 1 + options.similar:
        raise ArgumentError("there are too few texts", "two or more" if options.similar else "one or more", len(texts))
    vectors = loaded.embed(texts)
    if options.similar:
        _show_similar(texts, vectors, options.json)
    elif options.json:
        print(json.dumps([{"text": text, "vector": row} for text, row in zip(texts, vectors.tolist())]))
    else:
        for row in vectors.tolist():
            print(" ".join(f"{x:.7g}" for x in row))


def _show_similar(texts: Sequence[str], vectors: np.ndarray, as_json: bool) -> None:
    """The other texts by their cosine to the first."""
    lengths = np.linalg.norm(vectors, axis=1)
    cosines = vectors @ vectors[0] / np.maximum(lengths * lengths[0], np.finfo(vectors.dtype).tiny)  # (n, d) -> (n,)
    ranked = [(texts[i], round(float(cosines[i]), 6)) for i in 1 + np.argsort(-cosines[1:], kind="stable")]
    if as_json:
        print(json.dumps({"text": texts[0], "similar": [{"text": text, "cosine": c} for text, c in ranked]}, indent=2))
    else:
        for text, cosine in ranked:
            print(printable(f"{cosine:7.4f}  {text}"))


EMBED = TaskCommand(
    "turn texts into vectors, and see which are alike",
    'minigrad embed minilm "a cat sleeps" "a dog barks" "the kitten naps" --similar',
    _arguments,
    _run,
    _check,
)
