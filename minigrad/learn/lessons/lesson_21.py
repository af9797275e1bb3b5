"""Open a real model: weights of four bits, there and back, and a sentence as one vector."""

import math
import struct

import numpy as np

from ..exercise import exercise


def _draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def _bit_by_bit(weights):
    values = weights.tolist()
    step = (max(values) - min(values)) / 15
    levels = [min(15, max(0, round((value - min(values)) / step))) for value in values]
    packed = struct.pack("<ee", step, min(values)) + bytes(16 * levels[16 + i] + levels[i] for i in range(16))
    return [*packed]


@exercise(
    cases=[(_draw(32, seed=seed),) for seed in range(4)] + [(np.arange(32.0) - 7,)],
    oracle=_bit_by_bit,
    hint="16 levels have 15 steps between them; the first sixteen weights are in the lower halves of the bytes, the others in the upper",
)
def packed(weights):
    """32 weights in 20 bytes, as q4_1 has them: an array of 20 numbers of type uint8.

    First the step between two levels and the smallest weight, each as two bytes of little-endian float16 ("<f2"). Then 16
    bytes: byte i has the level of weight i in its lower four bits, and that of weight i + 16 in its upper four. A level is the
    number of steps above the smallest weight, rounded by np.rint, from 0 to 15.

    >>> packed(np.repeat([0.0, 15.0], 16)).tolist()[:6]
    [0, 60, 0, 0, 240, 240]
    """
    smallest = weights.min()
    step = (weights.max() - smallest) / 15
    levels = np.rint((weights - smallest) / step).astype("uint8")
    head = np.array([step, smallest], dtype="<f2").view("uint8")
    return np.concatenate([head, levels[:16] | levels[16:] << 4])


def _read_by_struct(block):
    step, smallest = struct.unpack("<ee", block[:4].tobytes())
    halves = [divmod(byte, 16) for byte in block[4:].tolist()]
    return np.array([step * low + smallest for _, low in halves] + [step * high + smallest for high, _ in halves])


_BLOCKS = [np.array(_bit_by_bit(_draw(32, seed=seed)), dtype="uint8") for seed in (5, 6, 7)]


@exercise(
    cases=[(block,) for block in _BLOCKS],
    oracle=_read_by_struct,
    hint="`& 15` keeps the lower half of a byte, `>> 4` brings the upper half down; view the first four bytes as two numbers of float16",
)
def unpacked(block):
    """The 32 weights of a block of 20 bytes of q4_1, which exercise 1 describes: step · level + smallest.

    >>> unpacked(np.array([0, 60, 0, 0] + [16 * 15] * 16, dtype="uint8"))[[0, 15, 16, 31]].tolist()
    [0.0, 0.0, 15.0, 15.0]
    """
    step, smallest = block[:4].view("<f2").astype("float32")
    return step * np.concatenate([block[4:] & 15, block[4:] >> 4]) + smallest


def _word_by_word(vectors, lengths):
    rows = []
    for words, length in zip(vectors.tolist(), lengths):
        mean = [math.fsum(column) / length for column in zip(*words[:length])]
        size = math.sqrt(math.fsum(value * value for value in mean))
        rows.append([value / size for value in mean])
    return np.array(rows)


@exercise(
    cases=[(_draw(2, 5, 4), [5, 3]), (_draw(3, 4, 2, seed=1), [1, 2, 4]), (1 + _draw(1, 3, 6, seed=2), [3])],
    oracle=_word_by_word,
    hint="filler must add nothing, and is not counted; only then is the mean brought to length 1",
)
def sentences(vectors, lengths):
    """A vector of length 1 for each sentence: the mean of its real words, the first lengths[b]: (B, T, D) -> (B, D).

    >>> sentences(np.array([[[3.0, 4.0], [99.0, 99.0]]]), [1]).round(6).tolist()
    [[0.6, 0.8]]
    """
    real = (np.arange(vectors.shape[1]) < np.array(lengths)[:, None])[..., None]  # (B, T, 1)
    means = (vectors * real).sum(axis=1) / real.sum(axis=1)
    return means / np.sqrt((means**2).sum(axis=1, keepdims=True))
