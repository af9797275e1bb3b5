"""Inputs and attributes for every fused op, on which each of its kernels is compared with its definition."""

from itertools import product

import numpy as np

from minigrad.maths.packing import encoded

rng = np.random.default_rng(0)
DROPOUT = {"dropout_p": 0.3, "dropout_key": 0x1234567890ABCDEF, "start": 7}
ALL = {"count_include_pad": True, "divisor": None}
NO_DROPOUT = {"dropout_p": 0.0, "dropout_key": 0, "start": 0}


def normal(*shape):
    return rng.standard_normal(shape)


def some(*shape):
    return rng.random(shape) < 0.6


def numbers(high, *shape):
    return rng.integers(0, high, shape)


def packed(format, *shape):
    return encoded(normal(*shape), format)


def labels(classes, count, ignored=-100):
    picked = numbers(classes, count)
    picked[::3] = ignored
    return picked


def layer(gates, steps, batch, inputs, size, *, cells=1, biased=True, ended=False):
    """The inputs of a recurrent layer: with or without biases, and with rows that end before others."""
    weights = [normal(gates * size, width) / np.sqrt(size) for width in (inputs, size)]
    biases = [normal(gates * size) if biased else None for _ in range(2)]
    lengths = 1 + np.arange(batch) % steps if ended else None
    return [normal(steps, batch, inputs), *weights, *biases, *[normal(batch, size) for _ in range(cells)], lengths]


def layers(gates, cells=1):
    return [
        (layer(gates, 5, 3, 7, 9, cells=cells), {"reverse": False}),
        (layer(gates, 6, 9, 5, 33, cells=cells, biased=False, ended=True), {"reverse": True}),
        (layer(gates, 3, 11, 32, 64, cells=cells, ended=True), {"reverse": True}),
        (layer(gates, 5, 56, 64, 32, cells=cells), {"reverse": False}),
        (layer(gates, 1, 2, 1, 16, cells=cells, ended=True), {"reverse": False}),
    ]


SAMPLES = {
    "gelu": [([normal(*s)], {"approximate": a}) for s in ((1,), (3, 17), (1001,)) for a in ("none", "tanh")],
    "silu": [([normal(*s)], {}) for s in ((1,), (3, 17), (1001,))],
    "swiglu": [([normal(*s)], {}) for s in ((2,), (3, 34), (2, 3, 6), (5, 2002))],
    "linear": [
        ([normal(1, 1), normal(1, 1), normal(1)], {}),
        ([normal(2, 17, 3), normal(33, 3), normal(33)], {}),
        ([normal(1001, 17), normal(1, 17), None], {}),
        ([normal(17), normal(3, 17), normal(3)], {}),
    ],
    "linear_gelu": [
        ([normal(1, 1), normal(1, 1), normal(1)], {"approximate": "none"}),
        ([normal(2, 17, 3), normal(33, 3), normal(33)], {"approximate": "tanh"}),
        ([normal(1001, 17), normal(1, 17), None], {"approximate": "tanh"}),
        ([normal(5, 9), normal(65, 9), normal(65)], {"approximate": "none"}),
        ([normal(17), normal(3, 17), None], {"approximate": "none"}),
    ],
    "packed_linear": [
        ([normal(1, 1), packed("i8", 1, 1), normal(1)], {"format": "i8"}),
        ([normal(2, 17, 37), packed("q8_0", 33, 37), normal(33)], {"format": "q8_0"}),
        ([normal(1, 64), packed("q4_0", 5, 64), None], {"format": "q4_0"}),
        ([normal(3, 65), packed("q4_1", 17, 65), normal(17)], {"format": "q4_1"}),
        ([normal(5, 31), packed("q5_0", 3, 31), None], {"format": "q5_0"}),
        ([normal(4, 33), packed("q5_1", 7, 33), normal(7)], {"format": "q5_1"}),
        ([normal(1001, 17), packed("f16", 9, 17), None], {"format": "f16"}),
        ([normal(17), packed("bf16", 33, 17), normal(33)], {"format": "bf16"}),
        ([normal(6, 300), packed("i8", 40, 300), None], {"format": "i8"}),
    ],
    "layer_norm": [
        ([normal(3, 1), normal(1), normal(1)], {"eps": 1e-5}),
        ([normal(2, 3, 17) + 3, normal(17), normal(17)], {"eps": 1e-5}),
        ([normal(17, 1001), None, None], {"eps": 1e-5}),
        ([normal(1001, 3), normal(3), None], {"eps": 1e-2}),
        ([np.zeros((2, 5)), None, normal(5)], {"eps": 1e-5}),
    ],
    "rms_norm": [
        ([normal(3, 1), normal(1)], {"eps": 1e-5}),
        ([normal(2, 3, 17), None], {"eps": 1e-5}),
        ([normal(1001, 33), normal(33)], {"eps": 1e-2}),
        ([np.zeros((2, 5)), normal(5)], {"eps": 1e-5}),
    ],
    "softmax": [([normal(*s) * 3], {"axis": -1}) for s in ((1,), (3, 17), (2, 3, 1001), (1001, 1))],
    "_masked_softmax": [
        ([normal(3, 17), some(3, 17)], {"axis": -1}),
        ([normal(2, 3, 5, 17), some(2, 1, 1, 17)], {"axis": -1}),
        ([normal(2, 3, 5, 17), some(5, 1)], {"axis": -1}),
        ([normal(3, 1001), np.zeros((1, 1001), bool)], {"axis": -1}),
    ],
    "cross_entropy": [
        ([normal(n, v) * 3, labels(v, n, ignored)], {"ignore_index": ignored, "smoothing": s})
        for s, (n, v, ignored) in product((0.1, 0.0), ((1, 1, 5), (17, 3, -100), (5, 1001, 0)))
    ],
    "embedding": [
        ([normal(65, 17), numbers(65, 3, 1001)], {"padding_idx": 3}),
        ([normal(5, 3), numbers(5, 2, 3)], {"padding_idx": None}),
        ([normal(1, 1), numbers(1, 1)], {"padding_idx": None}),
    ],
    "dropout": [([normal(*s)], {"p": p, "key": 2**62 + 3, "start": 2**32 - 5}) for p in (0.1, 1.0) for s in ((1,), (3, 101))],
    "attention": [
        ([normal(2, 3, 17, 5), normal(2, 3, 17, 5), normal(2, 3, 17, 5), None], dict(causal=True, scale=0.4, softcap=None, **NO_DROPOUT)),
        ([normal(1, 2, 5, 4), normal(1, 2, 33, 4), normal(1, 2, 33, 7), None], dict(causal=False, scale=0.5, softcap=None, **DROPOUT)),
        ([normal(2, 2, 9, 8), normal(2, 2, 9, 8), normal(2, 2, 9, 8), some(2, 1, 9, 9)], dict(causal=True, scale=0.3, softcap=None, **DROPOUT)),
        ([normal(1, 1, 4, 1), normal(1, 1, 1, 1), normal(1, 1, 1, 1), None], dict(causal=False, scale=1.0, softcap=None, **NO_DROPOUT)),
        ([normal(2, 6, 9, 8), normal(2, 2, 9, 8), normal(2, 2, 9, 5), some(2, 1, 9, 9)], dict(causal=True, scale=0.3, softcap=None, **DROPOUT)),
        ([normal(2, 6, 5, 4), normal(2, 1, 33, 4), normal(2, 1, 33, 4), None], dict(causal=False, scale=0.5, softcap=None, **NO_DROPOUT)),
    ],
    "packed_attention": [
        ([normal(2, 17, 36), None], dict(heads=3, causal=True, scale=0.5, softcap=None, **NO_DROPOUT)),
        ([normal(2, 5, 24), some(2, 1, 1, 5)], dict(heads=2, causal=False, scale=0.5, softcap=None, **DROPOUT)),
    ],
    "rnn": layers(1),
    "gru": layers(3),
    "lstm": layers(4, cells=2),
    "convolution": [
        ([normal(1, 1, 3, 3), normal(1, 1, 3, 3), None], {"stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "groups": 1}),
        ([normal(3, 4, 9, 10), normal(6, 2, 3, 2), normal(6)], {"stride": (2, 1), "padding": ((1, 1), (0, 2)), "dilation": (1, 2), "groups": 2}),
        ([normal(5, 2, 17, 13), normal(7, 2, 3, 3), normal(7)], {"stride": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1}),
        ([normal(2, 3, 40), normal(4, 3, 5), None], {"stride": (3,), "padding": ((2, 1),), "dilation": (2,), "groups": 1}),
    ],
    "max_pool": [
        ([normal(2, 3, 4, 6)], {"kernel": (2, 2), "stride": (2, 2), "padding": (0, 0), "dilation": (1, 1), "surplus": (0, 0)}),
        ([normal(2, 3, 9, 10)], {"kernel": (3, 2), "stride": (2, 1), "padding": (1, 1), "dilation": (2, 1), "surplus": (1, 0)}),
        ([normal(2, 3, 17)], {"kernel": (3,), "stride": (2,), "padding": (1,), "dilation": (1,), "surplus": (0,)}),
    ],
    "avg_pool": [
        ([normal(2, 3, 4, 6)], dict(kernel=(2, 2), stride=(2, 2), padding=(0, 0), surplus=(0, 0), **ALL)),
        ([normal(2, 3, 9, 10)], dict(kernel=(3, 2), stride=(2, 1), padding=(1, 1), surplus=(1, 0), **{**ALL, "count_include_pad": False})),
        ([normal(2, 3, 17)], dict(kernel=(3,), stride=(2,), padding=(1,), surplus=(0,), **{**ALL, "divisor": 5})),
    ],
    "gated_scan": [([normal(*s), rng.random(s), normal(s[0], s[2])], {}) for s in ((2, 3, 5), (1, 17, 33), (3, 2, 1))],
}  # fmt: skip
