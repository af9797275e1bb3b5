"""Decoding with an encoder-decoder model: a batch of tokenized sources, decoded greedily or by beam search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data import BOS, EOS, MASK, PAD, UNK, Padded
from ..data.tokenizers import Tokenizer
from ..engine.modes import no_grad
from ..errors import ArgumentError
from ..ops.creation import tensor
from ..runtime.memory import keep_freed_memory
from ..runtime.threads import can_limit_blas, run_parallel, single_threaded_blas, thread_count
from .beam import Hypothesis, beam_search
from .continuation import Continuation
from .sampling import greedy

__all__ = ["EncoderDecoder", "SpecialIds", "greedy_all", "search_all"]

ROWS = 256  # sentences times beams that are decoded at once


@dataclass(frozen=True)
class SpecialIds:
    """The ids of the tokens that an encoder-decoder treats apart: those of minigrad's own tokenizers unless given.

    Sources are filled up with `pad`. A target begins with `start`, then with `first` where the model wants that, and ends
    with `end`. No translation has one of `never`.
    """

    pad: int = PAD
    start: int = BOS
    end: int = EOS
    never: Sequence[int] = (PAD, BOS, UNK, MASK)
    first: int | None = None

    @property
    def prompt(self) -> list[int]:
        """What every target begins with."""
        return [self.start] if self.first is None else [self.start, self.first]

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> SpecialIds:
        """Those of a tokenizer; a target starts with its token for that, or else for padding."""
        pad, bos, end = tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id
        start = pad if bos is None else bos
        if start is None or end is None:
            raise ArgumentError(
                "SpecialIds: this tokenizer has no token that starts or ends a text", got=repr(tokenizer)
            )
        never = [i for i in (pad, bos, tokenizer.unk_id, tokenizer.mask_id) if i is not None and i != end]
        return cls(end if pad is None else pad, start, end, tuple(dict.fromkeys(never)))


def special_ids(model: Any, tokenizer: Tokenizer | None = None) -> SpecialIds:
    """Those that a model has as `special`, or else those of a tokenizer, or else minigrad's own."""
    found = getattr(model, "special", None)
    if isinstance(found, SpecialIds):
        return found
    return SpecialIds() if tokenizer is None else SpecialIds.of(tokenizer)


def longest_of(model: Any, ids: SpecialIds, source: Sequence[int]) -> int:
    """How long a translation may become: some languages need twice the tokens, and short sentences a few more."""
    most = getattr(model, "longest", None)  # with learned positions there are only so many
    wanted = 2 * len(source) + 10
    return wanted if most is None else max(1, min(wanted, most - len(ids.prompt) + 1))


class EncoderDecoder:
    """The continuation of targets, one for each source, by a model called `model(sources, targets, cache=cache)`.

    The model has `new_cache()`, and `special` tokens if they are not minigrad's own. With `cached=False` nothing is kept
    between tokens: slower, with the same result. With the model's `shortlist`, scores are those of `words` only, the words
    that may come up in the translation of one of the sources; for the other sources they are -inf.
    """

    def __init__(
        self,
        model: Any,
        sources: Sequence[Sequence[int]],
        cached: bool = True,
        ids: SpecialIds | None = None,
        shortlist: bool = False,
    ):
        ids = special_ids(model) if ids is None else ids
        self.model, self.cached = model, cached
        self.source = tensor(Padded.of(sources, ids.pad).ids, device=next(model.parameters()).device)  # (B, S)
        self.cache = model.new_cache() if cached else None
        self.seen: np.ndarray | None = None  # (B, T)
        self.words: np.ndarray | None = None  # (V,)
        self._excluded: np.ndarray | None = None  # (B, V)
        self._options: dict[str, Any] = {}
        self._never = np.array(ids.never, np.int64)
        if shortlist:
            self._use_shortlist(sources)

    def _use_shortlist(self, sources: Sequence[Sequence[int]]) -> None:
        lists = [self.model.shortlist.for_source(source) for source in sources]
        self.words = np.unique(np.concatenate(lists))
        self._excluded = np.stack([~np.isin(self.words, some) for some in lists])
        self._never = np.flatnonzero(np.isin(self.words, self._never))
        self._options = {"head": self.model.head_of(self.words)}

    def __call__(self, tokens: np.ndarray) -> np.ndarray:
        self.seen = tokens if self.seen is None else np.concatenate([self.seen, tokens], axis=1)
        with no_grad():
            new = tensor(tokens if self.cached else self.seen, device=self.source.device)
            logits = self.model(self.source, new, cache=self.cache, **self._options)[:, -1]  # (B, n, V) -> (B, V)
        scores = logits.numpy()
        scores = scores if scores.flags.writeable else scores.copy()
        scores[:, self._never] = -np.inf
        if self._excluded is not None:
            scores[self._excluded] = -np.inf
        return scores

    def select(self, rows: np.ndarray) -> None:
        assert self.seen is not None
        self.seen = self.seen[rows]
        self._excluded = None if self._excluded is None else self._excluded[rows]
        if self.cache is None:
            self.source = self.source[rows]
        else:
            self.cache.select(rows)


def _in_batches(sources: Sequence[Sequence[int]], rows: int) -> list[np.ndarray]:
    """The indices of the sources in batches of `rows`, those of similar length together."""
    order = np.argsort([len(source) for source in sources], kind="stable")
    return [order[start : start + rows] for start in range(0, len(order), rows)]


def greedy_all(
    model: Any, sources: Sequence[Sequence[int]], cached: bool = True, ids: SpecialIds | None = None
) -> list[list[int]]:
    """The translation of each source, token by token the best; in the order of the sources."""
    found: list[list[int]] = [[] for _ in sources]
    ids = special_ids(model) if ids is None else ids
    for places in _in_batches(sources, ROWS):
        chosen = [sources[place] for place in places]
        lengths = [longest_of(model, ids, source) for source in chosen]
        continuation, prompt = EncoderDecoder(model, chosen, cached, ids), np.array([ids.prompt] * len(chosen))
        said = greedy(continuation, prompt, length=max(lengths), end=ids.end)
        for place, tokens, length in zip(places, said, lengths):
            found[place] = tokens[:length]  # as if it had been translated alone
    return found


def search_all(
    model: Any,
    sources: Sequence[Sequence[int]],
    beams: int = 5,
    alpha: float = 1.0,
    cached: bool = True,
    ids: SpecialIds | None = None,
    shortlist: bool = True,
) -> list[list[Hypothesis]]:
    """The best translations of each source by beam search, best first; in the order of the sources.

    A model that has a lexical `shortlist` uses it, unless told otherwise. Each core decodes batches of its own, if there are
    several.
    """
    ids = special_ids(model) if ids is None else ids
    has_list = shortlist and getattr(model, "shortlist", None) is not None
    lengths = [longest_of(model, ids, source) for source in sources]

    def begin(chosen: list[Sequence[int]]) -> EncoderDecoder:
        return EncoderDecoder(model, chosen, cached, ids, has_list)

    on_cpu = next(model.parameters()).device == "cpu"
    threads = thread_count() if on_cpu and can_limit_blas() else 1
    return search_batches(begin, sources, lengths, ids, beams, alpha, threads)


def search_batches(
    begin: Callable[[list[Sequence[int]]], Continuation],
    sources: Sequence[Sequence[int]],
    lengths: Sequence[int],
    ids: SpecialIds,
    beams: int = 5,
    alpha: float = 1.0,
    threads: int = 1,
) -> list[list[Hypothesis]]:
    """What a beam search finds for each source, up to so many tokens, in batches that `begin` makes continuations of."""
    found: list[list[Hypothesis]] = [[] for _ in sources]
    keep_freed_memory()  # every batch asks for the same again
    batches = _in_batches(sources, ROWS // beams or 1)[::-1]  # the longest first: no thread has it left at the end
    waiting = iter(batches)

    def work() -> None:
        for places in waiting:  # the next batch that no other thread has taken
            continuation, prompt = begin([sources[place] for place in places]), np.array([ids.prompt] * len(places))
            options: dict[str, Any] = {"beams": beams, "end": ids.end, "alpha": alpha}
            options["words"] = getattr(continuation, "words", None)
            searched = beam_search(continuation, prompt, length=[lengths[place] for place in places], **options)
            for place, hypotheses in zip(places, searched):
                found[place] = hypotheses

    if threads > 1 and len(batches) > 1:
        with single_threaded_blas():
            run_parallel([work] * min(threads, len(batches)))
    else:
        work()
    return found
