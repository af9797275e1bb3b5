"""Batches: padded sequences of similar length, and blocks of running text, from a position that can be saved.

A sampler is iterated once for each epoch. `state_dict()` between two batches says which batches have been given out, and a
sampler that loads it gives exactly those that remain: the order is computed from seed and epoch, never carried along.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from ..engine.tensor import Tensor
from ..errors import ArgumentError, describe
from ..ops.creation import tensor
from .tokenizers import PAD, UNK, Tokenizer

__all__ = [
    "Batch",
    "BatchReport",
    "BlockBatch",
    "BlockBatches",
    "Padded",
    "PairBatch",
    "PairBatches",
    "Sampler",
    "SequenceBatches",
    "encode_pairs",
]

POSITION = ("epoch", "index", "seed")

Made = TypeVar("Made", bound="Batch")


@dataclass(frozen=True)
class Batch:
    """Named arrays, or smaller batches, whose first axis is the example."""

    def __len__(self) -> int:
        first = getattr(self, fields(self)[0].name)
        return len(first) if isinstance(first, Batch) else int(first.shape[0])

    def __getitem__(self: Made, rows: slice) -> Made:
        """Some of the examples: `batch[:4]`."""
        if not isinstance(rows, slice):
            raise ArgumentError("a batch is cut with a slice", "for instance batch[:4]", describe(rows))
        return type(self)(*(getattr(self, field.name)[rows] for field in fields(self)))

    def to(self: Made, device: str) -> Made:
        """The same batch as Tensors on a device."""
        values = (getattr(self, field.name) for field in fields(self))
        return type(self)(*(v.to(device) if isinstance(v, Batch) else tensor(v, device=device) for v in values))


@dataclass(frozen=True)
class Padded(Batch):
    """Sequences of unequal length in one array; `mask` is True where there is a token, and False where there is padding."""

    ids: Any  # (B, T) int64
    mask: Any  # (B, T) bool
    lengths: Any  # (B,) int64

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]], pad: int = PAD) -> Padded:
        """Sequences of ids, filled up with `pad` to the longest of them."""
        lengths = np.array([len(sequence) for sequence in sequences], dtype=np.int64)
        mask = np.arange(lengths.max(initial=0)) < lengths[:, None]  # (T,) < (B, 1) -> (B, T)
        ids = np.full(mask.shape, pad, dtype=np.int64)
        ids[mask] = np.fromiter((i for sequence in sequences for i in sequence), np.int64, int(lengths.sum()))
        return cls(ids, mask, lengths)

    @property
    def tokens(self) -> int:
        """How many tokens there are, padding not counted."""
        return int(self.lengths.sum())


@dataclass(frozen=True)
class PairBatch(Batch):
    """Sentences and their translations."""

    source: Padded
    target: Padded

    @property
    def tokens(self) -> int:
        """How many target tokens there are, padding not counted."""
        return self.target.tokens


@dataclass(frozen=True)
class BlockBatch(Batch):
    """Blocks of running text, and the same blocks one token later, which a language model is to predict."""

    inputs: Any  # (B, T) int64
    targets: Any  # (B, T) int64

    @property
    def tokens(self) -> int:
        """How many tokens are to be predicted."""
        return int(self.targets.shape[0] * self.targets.shape[1])


class Sampler:
    """What gives out batches: `for batch in sampler` gives those that remain of the epoch, then begins the next epoch.

    A subclass writes `__len__` (batches in an epoch), `batch(epoch, index)`, and `_identity()`, what must be the same for
    a saved position to mean the same batches.
    """

    def __init__(self, seed: int = 0):
        if seed < 0:
            raise ArgumentError(f"{type(self).__name__}: a seed is not negative", "a whole number from 0", seed)
        self.seed = int(seed)
        self.epoch = 0
        self.index = 0

    def __len__(self) -> int:
        raise NotImplementedError

    def batch(self, epoch: int, index: int) -> Any:
        """The batch at a place, whatever the position is."""
        raise NotImplementedError

    def _identity(self) -> dict[str, Any]:
        raise NotImplementedError

    def _most(self) -> float:
        """The largest index of a position."""
        return len(self)

    @property
    def at_end(self) -> bool:
        """Whether no batch of the epoch is left."""
        return self.index >= len(self)

    def __iter__(self) -> Iterator[Any]:
        """The position moves before a batch is handed over, so a state saved after a training step is past its batch."""
        while self.index < len(self):
            made = self.batch(self.epoch, self.index)
            self.index += 1
            yield made
        self.epoch, self.index = self.epoch + 1, 0

    def forever(self) -> Iterator[Any]:
        """Batches without end, epoch after epoch."""
        while True:
            yield from self

    def restart(self) -> None:
        """Go back to the first batch of this epoch, as for validating again."""
        self.index = 0

    def state_dict(self) -> dict[str, Any]:
        """The position, as plain numbers and strings that JSON can hold."""
        return {"epoch": self.epoch, "index": self.index, "seed": self.seed, **self._identity()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where another sampler over the same data stood; on other data, refuse instead of replaying some of it."""
        epoch, index, seed = (state.get(name) for name in POSITION)
        whole = all(type(number) is int and number >= 0 for number in (epoch, index, seed))
        if not whole or index > self._most():  # type: ignore[operator]
            raise ArgumentError(
                f"{type(self).__name__}: this is not a position",
                f"epoch, index (up to {self._most()}) and seed",
                str(dict(state))[:120],
            )
        own = self._identity()
        given = {name: value for name, value in state.items() if name not in POSITION}
        if own != given:
            differing = sorted(name for name in own.keys() | given.keys() if own.get(name) != given.get(name))
            raise ArgumentError(
                f"{type(self).__name__}: the position was saved with other data or settings: {', '.join(differing)[:200]}",
                ", ".join(f"{name}={own.get(name)!r}" for name in differing)[:300],
                ", ".join(f"{name}={given.get(name)!r}" for name in differing)[:300],
                "give the same data, in the same order, and the same settings; or do not load the position",
            )
        self.epoch, self.index, self.seed = epoch, index, seed  # type: ignore[assignment]


@dataclass(frozen=True)
class BatchReport:
    """What became of the examples; `print` it before a long training."""

    examples: int
    batches: int
    padding: float  # the share of the arrays that is padding
    unknown: tuple[float, ...]  # for each column, the share of its tokens that is <unk>
    too_long: int
    empty: int
    limit: int

    def __str__(self) -> str:
        unknown = " and ".join(f"{share:.2%}" for share in self.unknown)
        dropped = self.too_long + self.empty
        why = f": {self.too_long:,} longer than {self.limit:,} tokens, {self.empty:,} empty" if dropped else ""
        return (
            f"{self.examples:,} example{'s' * (self.examples != 1)} in "
            f"{self.batches:,} batch{'es' * (self.batches != 1)}, padding {self.padding:.1%}, "
            f"unknown {unknown}, dropped {dropped:,}{why}"
        )


class SequenceBatches(Sampler):
    """Batches of sequences of ids; sequences of similar length come together, so that little is padding.

    No batch holds more than `max_tokens` tokens, padding included. Sequences longer than `max_length` (or than
    `max_tokens`) and empty ones are dropped, and `report` counts them. `pad` and `unk` are ids of the tokenizer.

    >>> sampler = SequenceBatches([[5, 6], [7], [8, 9, 10], [11]], max_tokens=4, shuffle=False)
    >>> [batch.ids.tolist() for batch in sampler]
    [[[7], [11]], [[5, 6]], [[8, 9, 10]]]
    >>> print(sampler.report)
    4 examples in 3 batches, padding 0.0%, unknown 0.00%, dropped 0
    """

    _expected = "a sequence of ids"

    def __init__(
        self,
        examples: Iterable[Any],
        max_tokens: int,
        max_length: int | None = None,
        seed: int = 0,
        shuffle: bool = True,
        pad: int = PAD,
        unk: int = UNK,
    ):
        super().__init__(seed)
        self.max_tokens, self.shuffle, self.pad, self.unk = max_tokens, shuffle, pad, unk
        limit = min(max_tokens, max_tokens if max_length is None else max_length)
        given = [self._checked_columns(example) for example in examples]
        empty = sum(1 for columns in given if not all(map(len, columns)))
        self.examples = [columns for columns in given if all(0 < len(column) <= limit for column in columns)]
        if not self.examples:
            raise ArgumentError(
                f"{type(self).__name__}: no example is left to train on",
                f"some that are not empty and have at most {limit} tokens",
                f"{len(given)} examples, {empty} of them empty",
                "raise max_tokens or max_length, or look at the data",
            )
        lengths = [[len(column) for column in columns] for columns in self.examples]
        self._lengths = np.array(lengths, np.int64)  # (N, columns)
        self._cuts = self._cut(np.sort(self._lengths.max(axis=1)))
        self._orders: tuple[int, int, list[np.ndarray]] | None = None
        ids = (np.array(c, np.int64).tobytes() for columns in self.examples for c in columns)
        self._crc = zlib.crc32(b"".join([self._lengths.tobytes(), *ids]))
        self.report = self._reported(len(given) - len(self.examples) - empty, empty, limit)

    def _checked_columns(self, example: Any) -> tuple[Sequence[int], ...]:
        try:
            columns = self._columns(example)
            if all(len(column) >= 0 and not isinstance(column, str) for column in columns):
                return columns
        except (TypeError, ValueError):
            pass
        raise ArgumentError(
            f"{type(self).__name__}: this is no example",
            self._expected,
            repr(example)[:80],
            "encode the text first: tokenizer.encode(text), or encode_pairs(pairs, tokenizer)",
        )

    def _columns(self, example: Any) -> tuple[Sequence[int], ...]:
        return (example,)

    def _made(self, columns: list[Padded]) -> Any:
        return columns[0]

    def _cut(self, widths: np.ndarray) -> list[tuple[int, int]]:
        """Where sorted examples are cut into batches. Only lengths matter, so all epochs have as many batches."""
        cuts, start = [], 0
        for end, width in enumerate(widths.tolist()):
            if (end + 1 - start) * width > self.max_tokens:
                cuts.append((start, end))
                start = end
        return [*cuts, (start, len(widths))]

    def _order(self, epoch: int) -> list[np.ndarray]:
        """Which examples each batch of an epoch has: shuffled, then sorted by length, cut, and the batches shuffled."""
        epoch = epoch if self.shuffle else 0
        if self._orders is None or self._orders[:2] != (self.seed, epoch):
            random = np.random.default_rng([self.seed, epoch])
            shuffled = random.permutation(len(self.examples)) if self.shuffle else np.arange(len(self.examples))
            lengths = self._lengths[shuffled]
            keys = (*lengths.T, lengths.max(axis=1))  # the last is the first to be sorted by
            by_length = shuffled[np.lexsort(keys)]
            batches = [by_length[start:end] for start, end in self._cuts]
            places = random.permutation(len(batches)) if self.shuffle else np.arange(len(batches))
            self._orders = (self.seed, epoch, [batches[place] for place in places])
        return self._orders[2]

    def __len__(self) -> int:
        return len(self._cuts)

    def batch(self, epoch: int, index: int) -> Any:
        chosen = [self.examples[i] for i in self._order(epoch)[index]]
        return self._made([Padded.of(column, self.pad) for column in zip(*chosen)])

    def _identity(self) -> dict[str, Any]:
        return {"data": self._crc, "max_tokens": self.max_tokens, "shuffle": self.shuffle}

    def _reported(self, too_long: int, empty: int, limit: int) -> BatchReport:
        batches = [self._lengths[chosen] for chosen in self._order(0)]
        filled = sum(int(lengths.max(axis=0).sum()) * len(lengths) for lengths in batches)
        tokens = self._lengths.sum(axis=0)
        unknown = [sum(i == self.unk for column in columns for i in column) for columns in zip(*self.examples)]
        return BatchReport(
            examples=len(self.examples),
            batches=len(self),
            padding=1 - int(tokens.sum()) / filled,
            unknown=tuple(u / int(n) for u, n in zip(unknown, tokens)),
            too_long=too_long,
            empty=empty,
            limit=limit,
        )


class PairBatches(SequenceBatches):
    """Batches of (source, target) pairs of sequences of ids, as `encode_pairs` makes them.

    As in SequenceBatches, except that neither side of a batch holds more than `max_tokens` tokens.

    >>> (batch,) = PairBatches([([5, 6], [1, 9, 2]), ([7], [1, 2])], max_tokens=100, shuffle=False)
    >>> batch.source.ids.tolist(), batch.target.lengths.tolist()
    ([[7, 0], [5, 6]], [2, 3])
    """

    _expected = "a source and a target, each a sequence of ids"

    def _columns(self, example: Any) -> tuple[Sequence[int], ...]:
        source, target = example
        return (source, target)

    def _made(self, columns: list[Padded]) -> PairBatch:
        return PairBatch(*columns)


class BlockBatches(Sampler):
    """Batches of blocks of a running text, given as one long sequence of ids.

    With `order="random"` blocks begin anywhere, and an epoch is as many batches as the text would fill. With
    `order="sequential"` every token after the first is a target exactly once, so that a mean over an epoch is the mean
    over the text; the last batches may then be smaller, and the last one shorter.

    >>> [batch.targets.tolist() for batch in BlockBatches(range(8), block=3, batch_size=2, order="sequential")]
    [[[1, 2, 3], [4, 5, 6]], [[7]]]
    """

    def __init__(self, ids: Any, block: int, batch_size: int, seed: int = 0, order: str = "random"):
        super().__init__(seed)
        given = np.asarray(ids.numpy() if isinstance(ids, Tensor) else ids)
        if given.size and given.dtype.kind not in "iu":
            raise ArgumentError("BlockBatches: these are no ids", "whole numbers", describe(given), "encode the text")
        self.ids = given.astype(np.int64)
        self.block, self.batch_size, self.order = block, batch_size, order
        if order not in ("random", "sequential"):
            raise ArgumentError("BlockBatches: no such order", "'random' or 'sequential'", repr(order))
        if block < 1 or batch_size < 1:
            raise ArgumentError("BlockBatches: sizes are at least 1", got=f"block={block}, batch_size={batch_size}")
        shortest = block + 1 if order == "random" else 2
        if self.ids.ndim != 1 or len(self.ids) < shortest:
            raise ArgumentError(
                "BlockBatches: the text is too short",
                f"one sequence of at least {shortest} tokens",
                describe(self.ids),
                "give more text, or make the block shorter",
            )
        self._crc = zlib.crc32(self.ids.tobytes())

    def __len__(self) -> int:
        targets = len(self.ids) - 1
        if self.order == "random":
            return max(1, targets // (self.block * self.batch_size))
        return -(-(targets // self.block) // self.batch_size) + bool(targets % self.block)

    def batch(self, epoch: int, index: int) -> BlockBatch:
        if self.order == "random":
            random = np.random.default_rng([self.seed, epoch, index])
            return self._blocks(random.integers(0, len(self.ids) - self.block, self.batch_size), self.block)
        whole, rest = divmod(len(self.ids) - 1, self.block)
        first = index * self.batch_size
        if first >= whole:
            return self._blocks(np.array([whole * self.block]), rest)
        return self._blocks(np.arange(first, min(first + self.batch_size, whole)) * self.block, self.block)

    def _blocks(self, starts: np.ndarray, length: int) -> BlockBatch:
        places = starts[:, None] + np.arange(length)  # (B, 1) + (T,) -> (B, T)
        return BlockBatch(self.ids[places], self.ids[places + 1])

    def _identity(self) -> dict[str, Any]:
        return {"data": self._crc, "block": self.block, "batch_size": self.batch_size, "order": self.order}


def encode_pairs(
    pairs: Iterable[tuple[str, str]], source: Tokenizer, target: Tokenizer | None = None
) -> list[tuple[list[int], list[int]]]:
    """Pairs of sentences as ids: sources end with `</s>`, targets begin with `<s>` and end with `</s>`.

    Without a second tokenizer, both sides share the first.
    """
    second = source if target is None else target
    for given in (source, second):
        if not isinstance(given, Tokenizer):
            fix = "train one: BPETokenizer.train(texts, vocab_size=8000)"
            raise ArgumentError("encode_pairs: this is no tokenizer", "a Tokenizer", describe(given), fix)
    return [(source.encode(left, eos=True), second.encode(right, bos=True, eos=True)) for left, right in pairs]
