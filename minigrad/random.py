"""Where random numbers come from: a seeded source for each backend, and keys for draws that depend on their place alone.

A draw such as dropout's takes a key, and gives element number i of the whole batch a number that is a hash of the key
and i. Within `shard_of_step`, all threads that share a step take the same keys in the same order, and each starts counting
its elements where its rows begin. That supposes that the first axis of what is drawn for is the batch. Within `part_of_draws`
what is drawn for is a part along another axis, such as some of the heads of an attention.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .engine.backend import CPU, Array, Backend, loaded_backends
from .errors import public
from .tracer import number

_GOLDEN = 0x9E3779B97F4A7C15
_WORD = (1 << 64) - 1


class Random:
    """The four draws minigrad needs. All of them descend from one host generator, so its state is the whole state."""

    def __init__(self, xp: Any):
        self.xp = xp

    @cached_property
    def host(self) -> np.random.Generator:
        return np.random.default_rng()  # made when first needed: numpy.random takes a while to load

    def seed(self, seed: int | None) -> None:
        self.host = np.random.default_rng(seed)

    def generator(self, shape: tuple[int, ...]) -> Any:
        return self.host

    def uniform(self, shape: tuple[int, ...], dtype: Any) -> Array:
        return self.xp.asarray(self.generator(shape).random(shape, dtype=_drawn(dtype)), dtype=dtype)

    def normal(self, shape: tuple[int, ...], dtype: Any) -> Array:
        return self.xp.asarray(self.generator(shape).standard_normal(shape, dtype=_drawn(dtype)), dtype=dtype)

    def integers(self, low: int, high: int, shape: tuple[int, ...], dtype: Any) -> Array:
        return self.xp.asarray(self.generator(shape).integers(low, high, shape), dtype=dtype)

    def permutation(self, n: int) -> Array:
        return self.xp.asarray(self.host.permutation(n))

    @property
    def state(self) -> Any:
        """What must be set again so that the same numbers come again."""
        return self.host.bit_generator.state

    @state.setter
    def state(self, state: Any) -> None:
        self.host.bit_generator.state = state


class CupyRandom(Random):
    """Draws on the GPU, from a counter-based generator seeded by the host for each draw."""

    def generator(self, shape: tuple[int, ...]) -> Any:
        random = self.xp.random
        streams = min(max(math.prod(shape), 1), 256_000)  # its default, which small draws need not wait for
        return random.Generator(random.Philox4x3210(int(self.host.integers(2**63)), size=streams))


def _drawn(dtype: Any) -> Any:
    """Generators draw float32 and float64 only; float16 is rounded from float32."""
    return np.float64 if np.dtype(dtype) == np.float64 else np.float32


_sources: dict[str, Random] = {}  # by the name of the backend


def source_of(backend: Backend) -> Random:
    """The random source of a backend."""
    source = _sources.get(backend.name)
    if source is None:
        source = _sources[backend.name] = (Random if backend.xp is np else CupyRandom)(backend.xp)
    return source


def seed_everything(seed: int | None) -> None:
    """Start all sources anew."""
    for backend in loaded_backends():
        source_of(backend).seed(seed)


def random_state() -> dict[str, Any]:
    """The state of every source, for `restore_random_state`."""
    return {backend.name: source_of(backend).state for backend in loaded_backends()}


def restore_random_state(state: dict[str, Any]) -> None:
    """Let every source give again what it gave after `random_state()`."""
    for backend in loaded_backends():
        if backend.name in state:
            source_of(backend).state = state[backend.name]


class _Place(threading.local):
    """Where in a step this thread is: the step's seed, how many keys it took, and which share of the rows it has."""

    seed: int | None = None
    taken = 0
    first, rows = 0, 1
    part: tuple[int, int, int] | None = (
        None  # an axis, the first place on it that is here, and how many there are in all
    )


_place = _Place()


class Strided(NamedTuple):
    """Where the numbers of elements have gaps: local element i has the number `first + j // run * stride + j % run`, j = i + skip."""

    first: int
    run: int
    stride: int
    skip: int = 0

    def numbers(self, xp: Any, count: int) -> Any:
        """The numbers of the first `count` elements, as uint32."""
        places = xp.arange(self.skip, self.skip + count, dtype="int64")
        run = max(self.run, 1)
        return (self.first + places // run * self.stride + places % run).astype("uint32")


def next_key(shape: tuple[int, ...]) -> tuple[int, Any]:
    """A key of 64 bits, and the number of the first element of what is drawn for; inside `part_of_draws` a `Strided`."""
    if _place.part is None:
        return _key_and_start(math.prod(shape))
    axis, first, whole = _place.part
    inner, outer = math.prod(shape[axis:][1:]), math.prod(shape[:axis])
    key, start = _key_and_start(outer * whole * inner)
    return key, Strided(start + first * inner, shape[axis] * inner, whole * inner)


def _key_and_start(size: int) -> tuple[int, int]:
    drawn = threading.local()  # the two belong together, also where threads draw at once

    def key() -> int:
        drawn.key, drawn.start = _next_key(size)
        return drawn.key

    return number(key), number(lambda: drawn.start)


def _next_key(size: int) -> tuple[int, int]:
    if _place.seed is None:
        return new_seed(), 0
    _place.taken += 1
    return _mixed(_place.seed + _place.taken * _GOLDEN), size * _place.first // max(_place.rows, 1)


@contextmanager
def part_of_draws(axis: int, first: int, whole: int) -> Iterator[None]:
    """Inside, what is drawn for is a part along an axis that has `whole` places, beginning with place `first`."""
    before, _place.part = _place.part, (axis, first, whole)
    try:
        yield
    finally:
        _place.part = before


def skip_keys(count: int) -> None:
    """Pass over so many keys, which another process takes."""
    if _place.seed is not None:
        _place.taken += count


def position() -> dict[str, Any]:
    """Where in a step this thread is, for `replay_keys`."""
    return dict(vars(_place))


@contextmanager
def replay_keys(to: dict[str, Any]) -> Iterator[None]:
    """Inside, this thread takes the keys that it took when `position()` gave this."""
    before = position()
    _go(to)
    try:
        yield
    finally:
        _go(before)


def _go(to: dict[str, Any]) -> None:
    vars(_place).clear()
    vars(_place).update(to)


Draws = tuple[dict[str, Any], dict[str, Any]]


def draws() -> Draws:
    """The state of every source, and where in a step this thread is, for `rewind` and `replay`."""
    return random_state(), position()


def rewind(to: Draws) -> None:
    """From now on, draw again what was drawn after `draws()` gave this."""
    restore_random_state(to[0])
    _go(to[1])


@contextmanager
def replay(to: Draws) -> Iterator[None]:
    """Inside, what was drawn after `draws()` gave this is drawn again."""
    before = draws()
    rewind(to)
    try:
        yield
    finally:
        rewind(before)


def new_seed() -> int:
    """A seed from the generator that `manual_seed` sets."""
    return int(source_of(CPU).host.integers(1 << 63))


def shard_of_step(seed: int, first: int, rows: int) -> AbstractContextManager[None]:
    """Inside, this thread computes `rows` rows of a batch, beginning with row `first`, of the step with this seed."""
    return replay_keys({"seed": seed, "taken": 0, "first": first, "rows": rows})


def _mixed(x: int) -> int:
    """The finaliser of splitmix64: neighbouring numbers become unlike each other."""
    x &= _WORD
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _WORD
    return x ^ x >> 31


def hashed(xp: Any, numbers: Any, key: int) -> Any:
    """32 random bits for each of the uint32 `numbers`."""
    for half in (key & 0xFFFFFFFF, key >> 32):
        numbers = numbers ^ xp.uint32(half)
        numbers ^= numbers >> xp.uint32(16)
        numbers *= xp.uint32(0x21F0AAAD)
        numbers ^= numbers >> xp.uint32(15)
        numbers *= xp.uint32(0x735A2D97)
        numbers ^= numbers >> xp.uint32(15)
    return numbers


if not TYPE_CHECKING:  # the draws themselves are in minigrad
    __getattr__, __dir__ = public(__name__, ["random_state", "restore_random_state"], "random")
